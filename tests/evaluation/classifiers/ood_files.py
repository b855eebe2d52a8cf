"""Small files in the layouts in which sets out of distribution are distributed, with sentences of our own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

SHARED = Path(__file__).parents[3].parent / "shared" / "data"

HANS_COLUMNS = (
    "gold_label",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1_parse",
    "sentence2_parse",
    "sentence1",
    "sentence2",
    "pairID",
    "heuristic",
    "subcase",
    "template",
)
HEURISTICS = ("lexical_overlap", "subsequence", "constituent")
DIAGNOSTIC_COLUMNS = (
    "Lexical Semantics",
    "Predicate-Argument Structure",
    "Logic",
    "Knowledge",
    "Domain",
    "Premise",
    "Hypothesis",
    "Label",
)
STRESS_FILES = {
    "Antonym": ("antonym_matched", "antonym_mismatched"),
    "Numerical_Reasoning": ("quant_hard",),
    "Word_Overlap": ("taut2_matched", "taut2_mismatched"),
    "Negation": ("negation_matched", "negation_mismatched"),
    "Length_Mismatch": ("length_mismatch_matched", "length_mismatch_mismatched"),
    "Spelling_Error": (
        "dev_gram_contentword_swap_perturbed_matched",
        "dev_gram_contentword_swap_perturbed_mismatched",
    ),
}


def write_tsv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join("\t".join(row) + "\n" for row in (columns, *rows)).encode())
    return path


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def hans_row(
    number: int, label: str, heuristic: str, *, subcase: str = "sub", premise: str = "A dog ran ."
) -> list[str]:
    return [label, "( )", "( )", "(ROOT)", "(ROOT)", premise, "A dog moved .", f"ex{number}", heuristic, subcase, "t1"]


def hans_rows() -> list[list[str]]:
    """Two entailed and two other rows of each heuristic: ex0 to ex3, ex4 to ex7, ex8 to ex11."""
    labels = ("entailment", "entailment", "non-entailment", "non-entailment")
    pairs = [(heuristic, label) for heuristic in HEURISTICS for label in labels]
    return [
        hans_row(number, label, heuristic, subcase=f"{heuristic}_{label}")
        for number, (heuristic, label) in enumerate(pairs)
    ]


def write_hans(folder: Path) -> Path:
    return write_tsv(folder / "heuristics_evaluation_set.txt", HANS_COLUMNS, hans_rows())


def write_stress(folder: Path) -> Path:
    """A stress-test archive with one row a file, of label neutral."""
    for test, files in STRESS_FILES.items():
        for file in files:
            row = {"sentence1": f"It is {file}.", "sentence2": "It is.", "gold_label": "neutral", "pairID": "1n"}
            write_jsonl(folder / test / f"multinli_0.9_{file}.jsonl", [row])
    return folder


def write_anli(folder: Path, split: str = "dev") -> Path:
    for round_, label in (("R1", "e"), ("R2", "n"), ("R3", "c")):
        row = {"uid": f"{round_}-{split}", "context": "It rains.", "hypothesis": "It is wet.", "label": label}
        write_jsonl(folder / round_ / f"{split}.jsonl", [row | {"model_label": "e", "emturk": True}])
    return folder
