"""A small BERT with random weights, to train where no model can be fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builders.atomic import whole_folder
from builders.disk import told_when_full
from builders.features.checkpoints import quiet

_SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def write_blank_bert(
    folder: Path, texts: Iterable[str], *, seed: int, layers: int = 2, width: int = 128, words: int = 2_000,
    max_length: int = 128,
) -> Path:  # fmt: skip
    """Write a BERT that has learned nothing but its vocabulary, unless it is there already.

    Parameters
    ----------
    folder : Path
        Where; it is there whole or not at all.
    texts : iterable of str
        What the vocabulary (lower case) is made of.
    seed : int
        Decides the weights.
    layers, width : int
        Layers, and numbers a token; `width` is a multiple of 64, the width of a head.
    words : int
        Most whole words of the vocabulary.
    max_length : int
        Most tokens that the model takes.

    Returns
    -------
    Path
        `folder`.
    """
    import torch
    import transformers

    if folder.is_dir():
        return folder
    tokenizer = word_tokenizer(texts, words, max_length)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            max_position_embeddings=max_length,
            pad_token_id=tokenizer.pad_token_id,
        )
        model = transformers.BertModel(config)
    with quiet(), whole_folder(folder) as unfinished:
        with told_when_full(unfinished / "model.safetensors"):
            model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
    return folder


def word_tokenizer(texts: Iterable[str], words: int, max_length: int) -> Any:
    """Make a tokenizer of the most frequent words and of single characters, so that any word can be spelled.

    The trainer of tokenizers gives another order of equally good pieces each time; this gives the same for equal texts.
    """
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    normalizer, splitter = normalizers.BertNormalizer(lowercase=True), pre_tokenizers.BertPreTokenizer()
    counts = Counter(word for text in texts for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    letters = sorted({letter for word in counts for letter in word})
    common = sorted(counts, key=lambda word: (-counts[word], word))[:words]
    pieces = dict.fromkeys((*_SPECIAL.values(), *letters, *(f"##{letter}" for letter in letters), *common))
    backend: Any = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer, backend.pre_tokenizer = normalizer, splitter
    ends = [(token, backend.token_to_id(token)) for token in (_SPECIAL["sep_token"], _SPECIAL["cls_token"])]
    backend.post_processor = processors.BertProcessing(*ends)
    names = ["input_ids", "token_type_ids", "attention_mask"]
    fast: Any = transformers.PreTrainedTokenizerFast
    return fast(tokenizer_object=backend, model_max_length=max_length, model_input_names=names, **_SPECIAL)
