"""The mask of a masked LM: how it stands in a text, and which subjects are one token there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evaluation.errors import EvaluationError

PLACEHOLDER = "[MASK]"
_LEFT = re.compile(r"\S?\s*$")
_RIGHT = re.compile(r"\s*\S*")
PRONOUNS = {"female": "she", "male": "he"}

Surroundings = tuple[str, str]
"""What stands directly before and behind a mask: enough to know how a word between them is cut into tokens."""


class Masks:
    """Writes a model's own mask into texts and finds the tokens that can stand for a subject there.

    Parameters
    ----------
    tokenizer : PreTrainedTokenizer
        One with a mask token.
    name : str
        What to call the model in an error.
    """

    def __init__(self, tokenizer: Any, name: str) -> None:
        if tokenizer.mask_token is None or tokenizer.mask_token_id is None:
            raise EvaluationError(f"{name} has no mask token in its tokenizer: it is no masked LM")
        self._tokenizer = tokenizer
        self.token, self.id = tokenizer.mask_token, int(tokenizer.mask_token_id)
        # Byte-level and Metaspace vocabularies write the space into the word that the mask stands for. Where the mask
        # does not take it by itself, a lone token for the space would stand before it; models never saw that.
        self._takes_space = len(self._ids(f"x {self.token}")) > len(self._ids(f"x{self.token}"))

    def write(self, text: str) -> str:
        """Put the mask in place of the placeholder."""
        if self._takes_space:
            text = text.replace(f" {PLACEHOLDER}", self.token)
        return text.replace(PLACEHOLDER, self.token)

    def surroundings(self, context: str, statement: str) -> Surroundings:
        """Give what stands around the mask of a statement."""
        left, _, right = f"{context} {statement}".partition(PLACEHOLDER)
        before, behind = _LEFT.search(left), _RIGHT.match(right)
        return (before[0] if before else "", behind[0] if behind else "")

    def single(self, text: str, around: Surroundings) -> int | None:
        """Give the token that is `text` in place of the mask, or None if it takes several or an unknown one.

        The text as it stands there and the masked text must be the same tokens except for that one.
        """
        left, right = around
        masked = self._ids(self.write(left + PLACEHOLDER + right))
        filled = self._ids(left + text + right)
        if masked.count(self.id) != 1 or len(masked) != len(filled):
            return None
        at = masked.index(self.id)
        if filled[:at] != masked[:at] or filled[at + 1 :] != masked[at + 1 :]:
            return None
        return None if filled[at] in (self._tokenizer.unk_token_id, self.id) else filled[at]

    def pronoun(self, group: str | None, around: Surroundings) -> list[int]:
        """Give the tokens of ``she`` or ``he`` in place of the mask, lower-case and capitalised."""
        word = PRONOUNS.get((group or "").lower())
        if word is None:
            raise EvaluationError(f"pronouns need the groups female and male, not {group!r}: leave the option out")
        found = {self.single(form, around) for form in (word, word.capitalize())}
        return sorted(token for token in found if token is not None)

    def _ids(self, text: str) -> list[int]:
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


def decoded_tokens(tokenizer: Any, words: Sequence[str]) -> dict[str, list[int]]:
    """Give, for each word, all tokens that are it once decoded, stripped and lower-cased (protocol ``paper``)."""
    found: dict[str, list[int]] = {word.strip().lower(): [] for word in words}
    for token in sorted(set(tokenizer.get_vocab().values())):
        word = tokenizer.decode([token]).strip().lower()
        if word in found:
            found[word].append(token)
    return found
