"""The text of a filtered set's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any

from builders.owner_words import SECTION
from builders.text import code, fenced, markdown

if TYPE_CHECKING:
    from builders.findings import Example, Findings

_LONGEST = 300

_AFLITE = """
@inproceedings{lebras-etal-2020-adversarial,
  title     = {Adversarial Filters of Dataset Biases},
  author    = {Le Bras, Ronan and Swayamdipta, Swabha and Bhagavatula, Chandra and Zellers, Rowan and
               Peters, Matthew and Sabharwal, Ashish and Choi, Yejin},
  booktitle = {Proceedings of the 37th International Conference on Machine Learning},
  year      = {2020},
  pages     = {1078--1088},
}"""

_COLUMNS = """\
| column | what |
|---|---|
| `source_index` | place of the row in its split of the source, from 0, before anything was left out |
| `predictability` | share, from 0 to 1, of the classifiers that did not train on the row and predicted its label \
right, in the phase that removed the row, or in the last one; higher is easier; null where it was never scored |
| `times_scored` | how many classifiers that were |
| `removed_in_phase` | phase that removed the row, from 0; null when kept |
| `in_random_subset` | whether the row is in the random baseline: in each split as many scored rows as are kept, and \
all rows of a split that is not filtered |"""

REASONS = {
    "reached_n": "n rows were left",
    "few_predictable": "fewer than k rows had a predictability of at least tau",
    "one_class_left": "only one class was left",
    "scored_only": "it was only to score",
    "phase_limit": "the number of phases was limited",
    "look_ahead_held_back_all": "look-ahead held back all candidates",
}

SUBSETS = {
    "all": "all scored rows",
    "random": "random baseline",
    "kept": "kept (`filtered`)",
    "removed": "`removed`",
}


def cell(text: str) -> str:
    """Give a text as one cell of a Markdown table, its own markup as text, cut where it is long."""
    line = " ".join(text.split())
    return markdown(line if len(line) <= _LONGEST else line[:_LONGEST] + "…")


def filtered_card(facts: Mapping[str, Any], findings: Findings, alts: Mapping[str, str]) -> str:
    """Give the text of a card, without its front matter.

    Parameters
    ----------
    facts : mapping
        The manifest's.
    findings : Findings
        Numbers and examples.
    alts : mapping of str to str
        The pictures beside the card, and what each of them shows.
    """
    sections = [
        f"# {markdown(facts['title'])}",
        f"{markdown(facts['description'])} The filter is AFLite ([Le Bras et al., 2020]"
        "(https://proceedings.mlr.press/v119/bras20a.html)). **No row is lost**: those that were removed"
        f"{', and those that trained the encoder,' if facts['encoder']['trained'] else ''} are in configs of their own,"
        " and every scored row has its predictability.",
        _intended_use(facts),
        f"## Sizes\n\n{_sizes(facts)}",
        f"## Use\n\n{_use(facts)}",
        f"## Columns\n\nThe source's own, and:\n\n{_COLUMNS}",
        f"## What the filter did\n\n{_phases(findings, alts)}",
        *_comparison(facts, findings),
        f"## Label shares\n\n{_labels(facts, alts)}",
        *_breakdown(facts, findings),
        f"## Examples\n\n{_examples(facts, findings, alts)}",
        *_alike(findings, alts),
        f"## Parameters\n\n{_parameters(facts)}",
        f"## Provenance\n\n{_provenance(facts)}",
        _citations(facts),
    ]
    return "\n\n".join(sections) + "\n" + SECTION


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _intended_use(facts: Mapping[str, Any]) -> str:
    kind = facts["encoder"]["kind"]
    model = next((value for key, value, _ in facts["spec"] if key == "encoder.model"), None)
    by = code(model) if model else f"the {kind} encoder"
    if kind == "no encoder":
        by = "the encoder of the features that were given"
    limits = [
        f"Adversarial to {by}: rows were chosen because simple classifiers on its features fail on them, so a model"
        " of that kind is at a disadvantage here, and models should not be ranked by this set alone (Phang et al.,"
        " 2021, *Adversarially Constructed Evaluation Sets Are More Challenging, but May Not Be Fair*).",
        "A score depends on the encoder, its warm-up sample and the seed; it is no property of the row alone.",
        "Predictable rows may be spurious or simply easy: rows that are easy for good reasons left too, and rows"
        " with wrong or doubtful labels are more frequent among those that stayed.",
        *map(markdown, facts["limits"]),
    ]
    return (
        "## Intended use and limits\n\nFor comparing what models learn from, or do on, rows with fewer"
        " regularities that give the label away. The filter lowers what simple classifiers can predict; it does not"
        " make a set free of bias.\n\n" + "\n".join(f"- {limit}" for limit in limits)
    )


def _sizes(facts: Mapping[str, Any]) -> str:
    keys = ("source", "unlabelled", "warmup", "removed", "filtered")
    counts: Mapping[str, Mapping[str, int]] = facts["counts"]
    rows = [[f"`{split}`", *(f"{of[key]:,}" for key in keys)] for split, of in counts.items()]
    rows.append(["all", *(f"{sum(of[key] for of in counts.values()):,}" for key in keys)])
    whole = [split for split in counts if split not in facts["inputs"]["source"]["filtered"]]
    kept = ", ".join(f"`{split}`" for split in whole if counts[split]["filtered"])
    return (
        f"{_table(['split', *keys], rows)}\n\nsource = unlabelled + warmup + removed + filtered, in every line."
        f"{f' Not filtered, but kept whole and without scores: {kept}.' if kept else ''}"
    )


def _use(facts: Mapping[str, Any]) -> str:
    kept, removed = facts["configs"]["filtered"], facts["configs"].get("removed", {})
    split = next((split for split in removed if split in kept), None)
    name, revision = f"ORG/{facts['name']}", f'revision="v{facts["version"]}"'
    if split is None:
        return (
            "```python\nfrom datasets import load_dataset\n\n"
            f'kept = load_dataset("{name}", split="{next(iter(kept))}", {revision})\n```'
        )
    return (
        "```python\nfrom datasets import concatenate_datasets, load_dataset\n\n"
        f'kept = load_dataset("{name}", split="{split}", {revision})\n'
        f'removed = load_dataset("{name}", "removed", split="{split}", {revision})\n'
        "scored = concatenate_datasets([kept, removed])\n"
        'baseline = scored.filter(lambda row: row["in_random_subset"])  # as many rows as kept, at random\n```'
    )


def _picture(name: str, alts: Mapping[str, str]) -> str:
    """Give a picture and an empty line; nothing where it could not be drawn."""
    return f"![{markdown(alts[name])}]({name})\n\n" if name in alts else ""


def _phases(findings: Findings, alts: Mapping[str, str]) -> str:
    rows = [
        [
            str(one["phase"]),
            f"{one['size']:,}",
            f"{one['bias']:.4f}",
            "" if one["eligible"] is None else f"{one['eligible']:,}",
            f"{one['removed']:,}",
        ]
        for one in findings.phases
    ]
    return (
        f"{_picture('phases.png', alts)}{_picture('scores.png', alts)}"
        f"It ended after {len(rows)} phases since {REASONS[findings.stop_reason]}. Mean predictability is the"
        " estimate of the representation bias: the accuracy of the classifiers on rows that they did not train on."
        " Of equally predictable rows, chance decides which leave first, so that no split is emptied before another."
        f"\n\n{_table(['phase', 'rows', 'mean predictability', 'rows >= tau', 'removed'], rows)}"
    )


def _comparison(facts: Mapping[str, Any], findings: Findings) -> list[str]:
    if not findings.subsets:
        return []
    trained = any("accuracy" in of for of in findings.subsets.values())
    rows = [
        [
            SUBSETS[name],
            f"{of['rows']:,}",
            _share(of["bias"]),
            *([_share(of.get("accuracy"))] if trained else []),
        ]
        for name, of in findings.subsets.items()
    ]
    head = ["rows", "number", "classifiers", *(["warm-up model"] if trained else [])]
    return [
        "## How predictable the parts are\n\nAccuracy of the filter's classifiers"
        f" (`{facts['inputs']['filter']['model']}`) on the features, trained and tested within each part by itself on"
        " training parts of one size"
        f"{', and of the warm-up model' if trained else ''}.\n\n{_table(head, rows)}"
    ]


def _labels(facts: Mapping[str, Any], alts: Mapping[str, str]) -> str:
    counts: Mapping[str, Mapping[str, int]] = facts["labels"]
    scored = {name: counts["filtered"][name] + counts["removed"][name] for name in counts["filtered"]}
    sides = [scored, counts["filtered"], counts["removed"]]
    totals = [max(1, sum(side.values())) for side in sides]
    rows = [
        [
            cell(name),
            *(f"{side[name]:,} ({side[name] / total:.1%})" for side, total in zip(sides, totals, strict=True)),
        ]
        for name in scored
    ]
    return f"{_picture('labels.png', alts)}{_table(['label', 'before', 'kept', 'removed'], rows)}"


def _breakdown(facts: Mapping[str, Any], findings: Findings) -> list[str]:
    if not findings.breakdown:
        return []
    rows = [
        [
            cell(name),
            f"{of['scored']:,}",
            f"{of['kept']:,}",
            f"{of['removed']:,}",
            f"{of['removed'] / max(1, of['scored']):.1%}",
        ]
        for name, of in findings.breakdown.items()
    ]
    column = code(facts["breakdown"], cell=True)
    return [f"## By {column}\n\n{_table([column, 'scored', 'kept', 'removed', 'share removed'], rows)}"]


def _examples(facts: Mapping[str, Any], findings: Findings, alts: Mapping[str, str]) -> str:
    shown = {"Most predictable (left first)": findings.most, "Least predictable (kept)": findings.least}
    if "examples.png" in alts:
        return _picture("examples.png", alts).rstrip()
    return "\n\n".join(f"{title}:\n\n{_texts(facts['columns'], examples)}" for title, examples in shown.items())


def _alike(findings: Findings, alts: Mapping[str, str]) -> list[str]:
    if not findings.similarity or not findings.similarity["blocks"]:
        return []
    means = findings.similarity["means"]
    shown = [block["label"] for block in findings.similarity["blocks"]]
    rows = [
        [cell(name), *("" if value is None else f"{value:.2f}" for value in means[name].values())] for name in shown
    ]
    of = f" ({len(shown)} of {len(means):,} classes)" if len(shown) < len(means) else ""
    return [
        f"## How alike the rows are\n\n{_picture('similarity.png', alts)}The cosine of the features of every two"
        " of the least predictable kept rows and of the rows that left first, class by class, as in figure 1 of"
        f" the paper, and its mean over all pairs of rows of a class{of}: the lower, the more the rows differ in the"
        f" eyes of the encoder.\n\n{_table(['label', *next(iter(means.values()))], rows)}"
    ]


def _texts(columns: Sequence[str], examples: Sequence[Example]) -> str:
    rows = [
        [
            *(cell(one.inputs[column]) for column in columns),
            cell(one.label),
            f"{one.predictability:.2f} of {one.times_scored}",
        ]
        for one in examples
    ]
    return _table([*map(cell, columns), "label", "predictability"], rows) if rows else "None."


def _parameters(facts: Mapping[str, Any]) -> str:
    rows = [[f"`{key}`", cell(value), cell(source)] for key, value, source in facts["spec"]]
    return _table(["parameter", "value", "from"], rows)


def _provenance(facts: Mapping[str, Any]) -> str:
    encoder = facts["encoder"]
    if encoder["kind"] == "no encoder":
        how = "Features were given as a file (its SHA-256 is in the manifest); no warm-up sample was taken."
    elif encoder["trained"]:
        how = "The encoder was trained on the warm-up sample, which was not used again."
    else:
        how = "**The encoder is an existing checkpoint, taken as it is, without a warm-up sample.**"
    cut = facts["inputs"].get("refiltered_from")
    if cut:
        how += (
            f" Rows were cut again from the scores of version {cut['version']}; those that came back have the score of"
            " the phase that had removed them."
        )
    return (
        f"Version {facts['version']}, built with probesieve {metadata.version('probesieve')} from"
        f" {cell(facts['source']['origin'])}, revision {code(facts['source']['revision'])}, with seed {facts['seed']}."
        f" {how} `manifest.json` has every setting, library version and the SHA-256 of every file. A published version"
        " is never changed: any change of rows or scores is a new version."
    )


def _citations(facts: Mapping[str, Any]) -> str:
    cited = [_AFLITE.strip(), *([facts["citation"].strip()] if facts["citation"] else [])]
    return "## Citation\n\n" + fenced("\n".join(cited), "bibtex")
