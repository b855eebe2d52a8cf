"""What a model was tuned for and from, as far as its kind, settings and name tell, and which models go together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.report.inputs import Inputs, Model

TUNINGS = (
    "masked LM",
    "SQuAD",
    "NewsQA",
    "question answering",
    "causal LM",
    "encoder-decoder",
)
"""In the order of their colours."""

_KINDS = {"mlm": "masked LM", "causal": "causal LM", "seq2seq": "encoder-decoder"}
_PURPOSE = re.compile(r"squad\w*|newsqa\w*|qa|mlm|lm|question|answering|fine|tuned|finetuned|distilled|v?\d")


def tuning(model: Model) -> str:
    """Say what a model was tuned for, one of `TUNINGS`.

    Examples
    --------
    >>> tuning(Model("org/bert-base-cased-squad2", "", "qa", "{}"))
    'SQuAD'
    """
    if model.kind in _KINDS:
        return _KINDS[model.kind]
    name = model.short.lower()
    if "newsqa" in name or model.settings.get("context_prefix") == "newsqa":
        return "NewsQA"
    return "SQuAD" if "squad" in name else "question answering"


def stem(model: Model) -> str:
    """Give what is left of a name without the words at its end for what the model was tuned for.

    Examples
    --------
    >>> stem(Model("org/roberta-base-squad2", "", "qa", "{}")), stem(Model("FacebookAI/roberta-base", "", "mlm", "{}"))
    ('roberta-base', 'roberta-base')
    """
    words = re.split(r"[-_. ]+", model.short.lower())
    while words and _PURPOSE.fullmatch(words[-1]):
        words.pop()
    return "-".join(words) or model.short.lower()


@dataclass(frozen=True)
class Family:
    """Models that were tuned from one base, which comes first if it was scored."""

    base: Model | None
    models: tuple[Model, ...]


def families(inputs: Inputs) -> list[Family]:
    """Put models together with their base, families in the order of their smallest member.

    A base is the one that ``--base`` names, if it does, else the only language model with the `stem` of the tuned one.
    """
    bases = {model: _base(model, inputs) for model in inputs.models}
    known = set(bases.values())
    groups: dict[Model | str, list[Model]] = {}
    for model in inputs.models:
        groups.setdefault(bases[model] or (model if model in known else stem(model)), []).append(model)
    order = {name: place for place, name in enumerate(TUNINGS)}
    found = []
    for key, members in groups.items():
        base = key if isinstance(key, Model) else None
        rest = sorted((m for m in members if m != base), key=lambda m: (order[tuning(m)], inputs.labels[m]))
        found.append(Family(base, (*((base,) if base else ()), *rest)))
    return found


def _base(model: Model, inputs: Inputs) -> Model | None:
    for tuned, base in inputs.bases.items():
        if tuned in (model.name, model.short):
            return next((m for m in inputs.models if base in (m.name, m.short) and m != model), None)
    if model.kind in _KINDS:
        return None
    similar: Sequence[Model] = [m for m in inputs.models if m.kind in _KINDS and stem(m) == stem(model)]
    return similar[0] if len(similar) == 1 else None
