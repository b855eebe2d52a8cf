"""Do the intervals hold, and does the corrected μ help? Scores with a known truth, many times, as a Markdown table.

Subjects, partners and templates are drawn anew from laws whose means are known, so every aggregate has a true value to
compare with. Example: ``python scripts/simulate_intervals.py --draws 200``
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pyarrow as pa
import typer
from scipy.special import ndtr

from evaluation import intervals, metrics
from evaluation.sampling import sample_rows
from evaluation.scores import FloatArray, ScoredRows
from probesieve.cli import run

MEAN_SCORE, POSITION = 0.4, 0.01
SD_LEVEL = 0.02  # of a template, of a subject's own score and of its effect on the partner's
SD_POSITION = 0.005  # of a template's pull to the first subject


@dataclass(frozen=True)
class Scenario:
    """Sizes, and the standard deviations of what makes up C: subject, template, pair and single row."""

    subjects: int = 11
    templates: int = 14
    attributes: int = 20
    bias: float = 0.01
    template: float = 0.01
    pair: float = 0.005
    noise: float = 0.03
    standing_out: bool = False  # one attribute of each subject is far larger than all others
    uneven: bool = False  # attributes differ in how noisy they are
    sample: float | None = None


SCENARIOS: Mapping[str, Scenario] = {
    "14 templates, 11 subjects": Scenario(),
    "little noise": Scenario(bias=0.02, noise=0.01),
    "strong template effects": Scenario(template=0.03),
    "noise differs by attribute": Scenario(uneven=True),
    "4 templates, 24 subjects": Scenario(24, 4),
    "4 templates, strong effects": Scenario(24, 4, template=0.02),
    "a 20 % sample": Scenario(sample=0.2),
    "4 templates, a 10 % sample": Scenario(24, 4, sample=0.1),
    "hardly any bias": Scenario(bias=0.002),
    "no bias": Scenario(bias=1e-9),
    "one attribute stands out": Scenario(standing_out=True),
}


def draw(scenario: Scenario, rng: np.random.Generator) -> tuple[ScoredRows, dict[str, FloatArray]]:
    """Scores of a probe set, and the true values of the aggregates for its subjects."""
    x, t, a = scenario.subjects, scenario.templates, scenario.attributes
    bias = rng.normal(0, scenario.bias, (x, a))
    if scenario.standing_out:
        bias = 0.2 * bias
        bias[np.arange(x), rng.integers(a, size=x)] += rng.choice([-1, 1], x) * 3 * scenario.bias
    scale = np.exp(rng.normal(0, 0.5, a)) if scenario.uneven else np.ones(a)
    one, two = np.triu_indices(x, 1)
    shape = (len(one), t, a)
    by_template = rng.normal(0, scenario.template, (t, x, a)) * scale
    preferred = (bias[one] - bias[two] + rng.normal(0, scenario.pair, (len(one), a)))[:, None]
    preferred = preferred + (by_template[:, one] - by_template[:, two]).swapaxes(0, 1)
    own, lent = rng.normal(0, SD_LEVEL, (2, x))
    level = rng.normal(0, SD_LEVEL, t)[None, :, None]
    pull = (POSITION + rng.normal(0, SD_POSITION, t))[None, :, None]
    scores = np.empty((*shape, 8))
    for place in range(8):
        second, order_21, negated = place % 2, place // 2 % 2, place // 4
        me, partner = (two, one) if second else (one, two)
        sign = (-1) ** second * (-1) ** negated
        scores[..., place] = MEAN_SCORE + level + (own[me] + lent[partner])[:, None, None]
        scores[..., place] += (pull if second == order_21 else -pull) + 0.5 * sign * preferred
        scores[..., place] += rng.normal(0, scenario.noise, shape) * scale
    codes = np.indices(shape).reshape(3, -1).astype(np.int32)
    groups = np.arange(x, dtype=np.int32) % 2
    names = [
        tuple(f"{letter}{i:02}" for i in range(size)) for letter, size in zip("xgact", (x, 2, a, 2, t), strict=True)
    ]
    first, second_ = one[codes[0]].astype(np.int32), two[codes[0]].astype(np.int32)
    rows = ScoredRows(
        *(scores.reshape(-1, 8), pa.array(np.arange(scores.size // 8).astype(str)), *names, first, second_),
        *(groups[first], groups[second_], codes[2], codes[2] % 2, codes[1]),
    )
    if scenario.sample:
        table = {"subject1": first, "subject2": second_, "template": codes[1], "attribute": codes[2]}
        as_text = pa.table({name: np.char.mod("%02d", values) for name, values in table.items()})
        rows = rows.take(sample_rows(as_text, scenario.sample, seed=int(rng.integers(2**31))))
    return rows, truth(scenario, bias, scale, own, lent, groups)


def truth(
    scenario: Scenario, bias: FloatArray, scale: FloatArray, own: FloatArray, lent: FloatArray, groups: FloatArray
) -> dict[str, FloatArray]:
    """What each aggregate would be with endlessly many partners and templates."""
    level = MEAN_SCORE + 0.5 * (own + lent).mean()
    row = 2 * scenario.noise**2 * scale**2
    delta = folded(2 * POSITION, np.sqrt(4 * SD_POSITION**2 + row)).mean()
    spread = np.sqrt(2 * SD_LEVEL**2 + 4 * SD_POSITION**2 + row)
    epsilon = np.mean([folded((own - lent)[:, None] + side * 2 * POSITION, spread) for side in (-1, 1)])
    sd = (0.2 if scenario.standing_out else 1) * scenario.bias
    partners = [(0.0, 1.0)]
    if scenario.standing_out:
        share = 1 / scenario.attributes
        partners = [(0.0, 1 - share), (3 * scenario.bias, share / 2), (-3 * scenario.bias, share / 2)]
    of_c = np.sqrt(sd**2 + scenario.pair**2 + scale**2 * (2 * scenario.template**2 + scenario.noise**2 / 2))
    eta = sum(weight * (2 * ndtr((bias - shift) / of_c) - 1) for shift, weight in partners)
    return {
        "δ": delta,
        "ε": epsilon,
        "avg S": level,
        "μ": np.abs(bias).max(axis=1).mean(),
        "η": np.abs(eta).mean(),
        "γ(x, a)": bias,
        "η(x, a)": eta,
        "γ(x)": bias.mean(axis=1, keepdims=True),
        "γ(group, a)": np.stack([bias[groups == group].mean(axis=0) for group in (0, 1)]),
        "γ(x, class)": np.stack([bias[:, kind::2].mean(axis=1) for kind in (0, 1)], axis=1),
    }


def folded(mean: FloatArray | float, sd: FloatArray) -> FloatArray:
    """Mean of |N(mean, sd)|."""
    return np.asarray(sd * np.sqrt(2 / np.pi) * np.exp(-0.5 * (mean / sd) ** 2) + mean * (1 - 2 * ndtr(-mean / sd)))


def ends(rows: ScoredRows, seed: int) -> tuple[dict[str, tuple[FloatArray, FloatArray]], dict[str, float]]:
    """Intervals of every aggregate, and the ways to estimate μ."""
    found = {}
    per_row = {"δ": metrics.positional_errors, "ε": metrics.attribute_errors, "avg S": metrics.average_scores}
    for name, errors in per_row.items():
        estimate = intervals.mean_interval(rows, errors(rows))
        found[name] = (estimate.low, estimate.high)
    seen = metrics.views(rows)
    mu = intervals.intensity(rows, seed=seed, seen=seen)
    eta = intervals.count(rows, seed=seed, seen=seen)
    found |= {"μ": (mu.low, mu.high), "η": (eta.low, eta.high)}
    for name, of, axis, by in (
        ("γ(x, a)", "gamma", "subject", "attribute"),
        ("η(x, a)", "eta", "subject", "attribute"),
        ("γ(x)", "gamma", "subject", None),
        ("γ(group, a)", "gamma", "group", "attribute"),
        ("γ(x, class)", "gamma", "subject", "attribute_class"),
    ):
        table = intervals.table_intervals(rows, metrics.views(rows, axis=axis, by=by), of=of)
        found[name] = (table.low, table.high)
    ways = {"plain": mu.value, "corrected": mu.corrected, "halves": halves(rows, seed)}
    return found, {**ways, "η plain": eta.value, "η corrected": eta.corrected}


def halves(rows: ScoredRows, seed: int) -> float:
    """μ from halves: one half says which attribute is the largest, the other how large it is."""
    in_first = np.random.default_rng(seed).random(len(rows)) < 0.5
    one, other = (metrics.bias_table(rows.take(half)).gamma for half in (in_first, ~in_first))
    values = []
    for choosing, measuring in ((one, other), (other, one)):
        place = np.nan_to_num(np.abs(choosing)).argmax(axis=1)[:, None]
        signs = np.sign(np.take_along_axis(choosing, place, axis=1))
        values.append(np.nanmean(signs * np.take_along_axis(measuring, place, axis=1)))
    return float(np.mean(values))


def simulate(
    draws: Annotated[int, typer.Option(help="Probe sets drawn for each scenario.")] = 200,
    seed: Annotated[int, typer.Option(help="Of all of them.")] = 0,
    only: Annotated[str | None, typer.Option(help="Only scenarios whose name holds this.")] = None,
) -> None:
    """Print coverage of the 95 % intervals, and the errors of the estimates of μ."""
    coverage, errors = [], []
    for number, (name, scenario) in enumerate(SCENARIOS.items()):
        if only and only not in name:
            continue
        covered, ways = defaultdict(list), defaultdict(list)
        for child in np.random.SeedSequence([seed, number]).spawn(draws):
            rng = np.random.default_rng(child)
            rows, true = draw(scenario, rng)
            found, estimates = ends(rows, int(rng.integers(2**31)))
            for aggregate, (low, high) in found.items():
                covered[aggregate].append(np.mean((low <= true[aggregate]) & (true[aggregate] <= high)))
            for way, value in estimates.items():
                ways[way].append(value - true["η" if way.startswith("η") else "μ"])
            ways["true"].append(true["μ"])
        if not coverage:
            coverage += ["| scenario | " + " | ".join(covered) + " |", "|---" * (len(covered) + 1) + "|"]
            errors += ["| scenario | true μ | " + " | ".join(w for w in ways if w != "true") + " |"]
            errors += ["|---" * (len(ways) + 1) + "|"]
        coverage.append(f"| {name} | " + " | ".join(f"{100 * np.mean(hit):.0f}" for hit in covered.values()) + " |")
        cells = [
            f"{np.mean(off):+.4f} ({np.sqrt(np.mean(np.square(off))):.4f})" for w, off in ways.items() if w != "true"
        ]
        errors.append(f"| {name} | {np.mean(ways['true']):.4f} | " + " | ".join(cells) + " |")
    print(f"Percent of {draws} draws (and of cells, for tables) in which the 95 % interval holds the truth:\n")
    print("\n".join(coverage))
    print("\nMean error (root mean square error in brackets) of the estimates:\n")
    print("\n".join(errors))


if __name__ == "__main__":
    run(simulate)
