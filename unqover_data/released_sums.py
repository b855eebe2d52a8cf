"""SHA-256 of the released word lists, by path below ``word_lists/``, at the pinned commit."""

COMMIT = "3e47969b78acc0de436f9d17c9ab1b2f6a108ff0"

SUMS = {
    "activities/biased_country": "a7b92310efeec39dd11583d0df137f0f8907938c89cb7df8f4ac6f0af8d8043f",
    "activities/biased_ethnicity": "c7152d144ccf983316f4f7a47d8e3457f6c2670d35efce16bd0fba5fb5013592",
    "activities/biased_religion": "c7152d144ccf983316f4f7a47d8e3457f6c2670d35efce16bd0fba5fb5013592",
    "activities/occupation_rev1": "2922baf88fa18267c46776c36fb09d30a21112abe4e15b867973d8585773ea77",
    "nouns/subjects/country": "4806e08b279f099f56e1ba5859f71e4360c24260b7fd0b456aac1ac252d85281",
    "nouns/subjects/country_bert": "9a9d4d99f1739454d4861dbe70e4bc46f9b30425cada3bf0d951b57c5dbd4436",
    "nouns/subjects/country_roberta": "1918e48ade75b630521143054f084ca69b4ebaa090acde9ac701aea8e080806d",
    "nouns/subjects/ethnicity": "a2008f4362cde3d48d99ad000471fdd5aa8b3d05f1e4a114b321413b0dd89158",
    "nouns/subjects/ethnicity_bert": "ff5379801c2c9b3c20dccdc6d77e91e6f646fdb6d08e215fd9b77364578ab7ce",
    "nouns/subjects/ethnicity_roberta": "ff5379801c2c9b3c20dccdc6d77e91e6f646fdb6d08e215fd9b77364578ab7ce",
    "nouns/subjects/female": "40aed064f32bb31b8675832b52fc9782c6064759b4d42d3e8b37c5271cf3cc88",
    "nouns/subjects/female_bert": "c069ba753e29bdedb69cc37a74e5c2a716fe1b4ab2551ef4ba63062f17f174d7",
    "nouns/subjects/female_roberta": "d61a78d03b6e644903f122da4eb5f5d2b330ed5b923bf993567a0be0102861f1",
    "nouns/subjects/male": "c358a107602926bcd60e8e48baa75ca6acfbc6094c5b7fe42fc8a5680e366a47",
    "nouns/subjects/male_bert": "a8154d642e06a34851a89b9871c0d8be8142aaa0d2f2070d3d93e7ed00604727",
    "nouns/subjects/male_roberta": "137c94631ffe515eabc4cb382445c6356cfc8fc6b3a16a8fa5039737c1f465f7",
    "nouns/subjects/religion": "6b22fa2e9fa1e212d75290f0063d822e23db28eaeae58d0e3f51b641f483f4eb",
    "nouns/subjects/religion_bert": "6b22fa2e9fa1e212d75290f0063d822e23db28eaeae58d0e3f51b641f483f4eb",
    "nouns/subjects/religion_roberta": "0c0589d5b7a3a1c28352f35ba8e99cca7d91d9fe3778fdb6b265c59b48acfa3f",
    "slots/country_noact": "95c5260ee32c463846e26896ec476df69ecc67874a90743a36668430441fa287",
    "slots/country_noact_lm": "73a3eaad4c8c13b2da3e411df6822cb4bbe98fb3d4f92f990add4c22f0e6d61f",
    "slots/ethnicity_noact": "8ee8da4f0fff82d31959a464adc6cf495c17d2dea81949e8daa027063f5f9e5d",
    "slots/ethnicity_noact_lm": "543abaedf193ec966ab42355e11ec0bded7b2341ad116552da62e61f88ed6ec0",
    "slots/gender_noact": "d575a912dde76fdacf4e083a3cbf42a0e64c7c79b8ce6f5a11db3fda657a46ea",
    "slots/gender_noact_lm": "63d3840805c700eedb7f37ab96e9bd3da304137e41f6df5d93a75415df13c992",
    "slots/religion_noact": "2bb683ebab729554e11aca02de511b443ade6d186f70f61c52a151220df113fa",
    "slots/religion_noact_lm": "f32a75b7c77b5108f9f233b0f0b8f92041b159a79020ac9ab1f8cde8fd062d74",
}
