"""What to compare a filtered set with: random subsets, one-shot filters, word associations, reweighting."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aflite import validation

Mask = NDArray[np.bool_]


def random_subset(labels: ArrayLike, *, size: int, seed: int, balanced: bool = False) -> Mask:
    """Draw `size` rows at random: the equal-size baseline D_n of the paper.

    Parameters
    ----------
    labels : array_like of int, shape (N,)
        Labels.
    size : int
        Rows to draw, 1 <= size <= N.
    seed : int
        Seed.
    balanced : bool
        Equally many of every label, up to one row; labels with too few rows give all they have.

    Returns
    -------
    ndarray of bool, shape (N,)
        True for the drawn rows.

    Raises
    ------
    ValueError, TypeError
        The size or the seed is out of range.
    """
    array = _one_axis("labels", labels)
    validation.integer("size", size, least=1, most=array.size, why=f" (there are {array.size} rows)")
    rng = np.random.default_rng(validation.integer("seed", seed, least=0))
    mask = np.zeros(array.size, dtype=bool)
    if not balanced:
        mask[rng.choice(array.size, size, replace=False)] = True
        return mask
    _, codes = np.unique(array, return_inverse=True)
    order = rng.permutation(array.size)
    # The r-th drawn row of every label goes before any label's next one; chance decides within a round.
    turn = np.empty(array.size, dtype=np.int64)
    for code in range(codes.max() + 1):
        rows = order[codes[order] == code]
        turn[rows] = np.arange(rows.size)
    mask[np.lexsort((rng.random(array.size), turn))[:size]] = True
    return mask


def single_model(features: ArrayLike, labels: ArrayLike, *, n: int, t: int, seed: int, c: float = 1.0) -> Mask:
    """Filter once with one classifier instead of many in turn.

    A logistic regression trains on t random rows; of the others, those leave first to whose label it gives
    the highest probability, until n rows are left. The training rows stay.

    Parameters
    ----------
    features, labels, c
        As in `filter_dataset`.
    n, t : int
        Rows to keep and to train on, t <= n < N.
    seed : int
        Seed.

    Returns
    -------
    ndarray of bool, shape (N,)
        True for kept rows; exactly n.

    Raises
    ------
    ValueError, TypeError
        As in `filter_dataset`, or the training rows have one class.
    """
    from sklearn.linear_model import LogisticRegression

    c = validation.number("c", c, above=0)
    seed = validation.integer("seed", seed, least=0)
    matrix = validation.features(features)
    n_rows = matrix.shape[0]
    _, codes = validation.labels(labels, n_rows)
    validation.integer("n", n, least=1, most=n_rows - 1, why=f" (less than the {n_rows} rows of features)")
    validation.integer("t", t, least=1, most=n, why=f" (training rows stay, so at most n = {n})")
    order = np.random.default_rng(seed).permutation(n_rows)
    train, others = order[:t], np.sort(order[t:])
    if np.unique(codes[train]).size < 2:
        raise ValueError(f"t must be large enough to draw two classes, got {t}; raise it")
    model = LogisticRegression(C=c, solver="newton-cg").fit(matrix[train].astype(np.float32), codes[train])
    probability = np.zeros((others.size, codes.max() + 1))
    probability[:, model.classes_] = model.predict_proba(matrix[others].astype(np.float32))
    certainty = probability[np.arange(others.size), codes[others]]
    kept = np.ones(n_rows, dtype=bool)
    kept[others[np.argsort(-certainty, kind="stable")[: n_rows - n]]] = False
    return kept


@dataclass(frozen=True)
class Associations:
    """Word-label association of a data set.

    Attributes
    ----------
    words : tuple of str
        Vocabulary, in order of first appearance.
    labels : ndarray of int, shape (K,)
        Labels, ascending.
    pmi : ndarray of float64, shape (V, K)
        log p(word, label) / (p(word) p(label)) over rows that contain the word, in nats; positive where the
        word is more frequent with the label than without.
    """

    words: tuple[str, ...]
    labels: NDArray[np.int64]
    pmi: NDArray[np.float64]


def associations(texts: Sequence[str], labels: ArrayLike, *, smoothing: float = 100.0) -> Associations:
    """Pointwise mutual information of words and labels.

    Counts are of rows that contain the word (lower-cased, split at what is no letter, digit or apostrophe),
    with `smoothing` added to every count, as Gururangan et al. (2018) do to look for artifacts.

    Parameters
    ----------
    texts : sequence of str, length N
        One text a row, for instance the hypothesis.
    labels : array_like of int, shape (N,)
        Labels.
    smoothing : float
        Added to the count of each pair of word and label, >= 0; 0 makes unseen pairs minus infinity.

    Returns
    -------
    Associations

    Raises
    ------
    ValueError, TypeError
        Lengths differ, a text is no string, labels are of one class, or smoothing is negative.
    """
    rows = validation.texts(texts)
    names, codes = validation.labels(labels, len(rows), of="texts")
    smoothing = validation.number("smoothing", smoothing, least=0)
    vocabulary: dict[str, int] = {}
    pairs = [
        (vocabulary.setdefault(word, len(vocabulary)), code)
        for text, code in zip(rows, codes.tolist(), strict=True)
        for word in dict.fromkeys(_words(text))
    ]
    counts = np.full((len(vocabulary), names.size), smoothing)
    if pairs:
        np.add.at(counts, tuple(np.array(pairs).T), 1)
    joint = counts / max(counts.sum(), 1)
    pmi = np.full(joint.shape, -np.inf)
    seen = joint > 0
    expected = joint.sum(1, keepdims=True) * joint.sum(0)
    pmi[seen] = np.log(joint[seen] / expected[seen])
    return Associations(tuple(vocabulary), names, pmi)


def pmi_scores(texts: Sequence[str], labels: ArrayLike, *, smoothing: float = 100.0) -> NDArray[np.float64]:
    """Score each row by the strongest association of one of its words with its label.

    Parameters
    ----------
    texts, labels, smoothing
        As in `associations`.

    Returns
    -------
    ndarray of float64, shape (N,)
        Nats; higher means that a word gives the label away. 0 for a text without words.

    Raises
    ------
    ValueError, TypeError
        As in `associations`.
    """
    rows = validation.texts(texts)
    table = associations(rows, labels, smoothing=smoothing)
    codes = np.searchsorted(table.labels, np.asarray(labels))
    return strongest(table, rows)[np.arange(len(rows)), codes]


def strongest(table: Associations, texts: Sequence[str]) -> NDArray[np.float64]:
    """Give, for each text and label, the strongest association of one of the text's words with the label.

    The label with the highest value is the decision of the word-association classifier of the AFLite paper (NLI
    experiments, the maximum of pointwise mutual information).

    Parameters
    ----------
    table : Associations
        Learned from these or other texts.
    texts : sequence of str, length N
        One text a row.

    Returns
    -------
    ndarray of float64, shape (N, K)
        Nats, in the order of ``table.labels``; all 0 for a text none of whose words is in the table.
    """
    row_of = {word: row for row, word in enumerate(table.words)}
    values = np.zeros((len(texts), table.labels.size))
    for index, text in enumerate(texts):
        if rows := [row_of[word] for word in dict.fromkeys(_words(text)) if word in row_of]:
            values[index] = table.pmi[rows].max(axis=0)
    return values


def lowest(scores: ArrayLike, *, n: int) -> Mask:
    """Keep the rows with the lowest scores: a filter from any score of ease.

    Parameters
    ----------
    scores : array_like of float, shape (N,)
        Higher is easier. Rows without a score, NaN, stay before all others.
    n : int
        Rows to keep, 1 <= n <= N.

    Returns
    -------
    ndarray of bool, shape (N,)
        True for the n kept rows; of equal scores the later rows stay, as in `filter_dataset`.

    Raises
    ------
    ValueError, TypeError
        n is out of range.
    """
    array = _one_axis("scores", scores).astype(np.float64)
    validation.integer("n", n, least=1, most=array.size, why=f" (there are {array.size} rows)")
    kept = np.ones(array.size, dtype=bool)
    kept[np.argsort(-array, kind="stable")[: array.size - n]] = False
    return kept


def partial_input(texts: Sequence[str], *, width: int = 1024) -> NDArray[np.float32]:
    """Make features of one field alone: hypothesis-only or premise-only rows for `filter_dataset`.

    Hashed counts of words and word pairs, each row of length 1, or 0 for a text without words.

    Parameters
    ----------
    texts : sequence of str, length N
        The hypotheses, or the premises.
    width : int
        Columns.

    Returns
    -------
    ndarray of float32, shape (N, width)

    Raises
    ------
    ValueError, TypeError
        A text is no string, or width is less than 1.
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    rows, width = validation.texts(texts), validation.integer("width", width, least=1)
    hashed = HashingVectorizer(n_features=width, ngram_range=(1, 2), dtype=np.float32).transform(rows)
    dense: NDArray[np.float32] = hashed.toarray()
    return dense


def pair_features(premise: ArrayLike, hypothesis: ArrayLike) -> NDArray[np.float32]:
    """Join sentence embeddings p and h to rows [p, h, |p - h|, p * h].

    Parameters
    ----------
    premise, hypothesis : array_like of float, shape (N, d)
        Embeddings p and h.

    Returns
    -------
    ndarray of float32, shape (N, 4 d)

    Raises
    ------
    ValueError
        Shapes differ.
    """
    p, h = (np.asarray(part, dtype=np.float32) for part in (premise, hypothesis))
    if p.ndim != 2 or p.shape != h.shape:
        raise ValueError(f"hypothesis must have the shape (N, d) of premise, {p.shape}, got {h.shape}")
    return np.hstack([p, h, np.abs(p - h), p * h])


def repair_weights(
    features: ArrayLike,
    labels: ArrayLike,
    *,
    seed: int,
    steps: int = 200,
    model_rate: float = 0.01,
    weight_rate: float = 0.1,
) -> NDArray[np.float64]:
    """Learn row weights that make a linear classifier least able to use the features (after REPAIR).

    Li and Vasconcelos (CVPR 2019): the bias of a representation is 1 - (weighted cross-entropy, in nats, of the
    best linear classifier) / (weighted entropy of the labels). The classifier descends on its loss while the
    weights descend on the bias, in turn. AFLite's nearest published relative: rows are weighed instead of
    removed, once and with in-sample predictions. Use `lowest(-weights, n=n)` for a subset.

    Parameters
    ----------
    features, labels
        As in `filter_dataset`.
    seed : int
        Seed of the starting point.
    steps : int
        Steps of each player, over all rows at a time.
    model_rate, weight_rate : float
        Learning rates (Adam) of the classifier and the weights.

    Returns
    -------
    ndarray of float64, shape (N,)
        Weights in [0, 1]; lower for rows that are easy to classify.

    Raises
    ------
    ValueError, TypeError
        As in `filter_dataset`, or steps or rates are out of range.
    """
    import torch

    seed = validation.integer("seed", seed, least=0)
    steps = validation.integer("steps", steps, least=1)
    model_rate = validation.number("model_rate", model_rate, above=0)
    weight_rate = validation.number("weight_rate", weight_rate, above=0)

    matrix = validation.features(features)
    classes, codes = validation.labels(labels, matrix.shape[0])
    x, y = torch.from_numpy(matrix.astype(np.float32)), torch.from_numpy(codes)
    generator = torch.Generator().manual_seed(seed)
    start = 0.01 * torch.randn(matrix.shape[1] + 1, classes.size, generator=generator)
    theta, omega = start.requires_grad_(), torch.zeros(codes.size, requires_grad=True)
    model = torch.optim.Adam([theta], lr=model_rate)
    weights = torch.optim.Adam([omega], lr=weight_rate)
    for _ in range(steps):
        losses = torch.nn.functional.cross_entropy(x @ theta[:-1] + theta[-1], y, reduction="none")
        share = torch.sigmoid(omega)
        share = share / share.sum()
        model.zero_grad()
        (share.detach() @ losses).backward()  # type: ignore[no-untyped-call]
        model.step()
        entropy = torch.special.entr(torch.zeros(classes.size).index_add(0, y, share)).sum()
        weights.zero_grad()
        (1 - share @ losses.detach() / entropy).backward()
        weights.step()
    result: NDArray[np.float64] = torch.sigmoid(omega).detach().double().numpy()
    return result


def _one_axis(name: str, value: ArrayLike) -> NDArray[Any]:
    array = np.asarray(value)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (N,), got shape {array.shape}")
    return array


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower())
