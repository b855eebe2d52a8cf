"""Masked LMs: S(x) is the probability of the subject's single token at the mask (Li et al. 2020, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.features.lengths import equal_length_batches
from evaluation.errors import EvaluationError
from evaluation.loading import Loaded
from evaluation.scorers.base import Inputs, Settings, check_lengths, common_facts, refuse_nan, told
from evaluation.scorers.coverage import covered
from evaluation.scorers.encoding import Encoded, Encoding, behind_first, call_tokenizer, encode_pairs
from evaluation.scorers.head import MaskedHead
from evaluation.scorers.masks import PRONOUNS, Masks, Surroundings, decoded_tokens
from evaluation.scorers.work import Indices, ReadingsOf, Work, make_work

if TYPE_CHECKING:
    import torch


class MlmScorer:
    """Scores single tokens at the mask of ``context statement``.

    Parameters
    ----------
    loaded : Loaded
        A masked LM.
    settings : Settings
        Under ``exact`` a subject is the token that it is in that place, with its space and case, and rows with a
        subject of several tokens are left out. Under ``paper`` only the `top` likeliest tokens count, compared
        decoded and lower-cased, and any other subject scores 0.
    """

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        self._loaded, self._settings = loaded, settings
        self._masks = Masks(loaded.tokenizer, loaded.ref.name)
        self._inputs = Inputs(loaded)
        self._head = MaskedHead(loaded, self._masks)
        self._tokens: dict[tuple[Any, ...], list[int]] = {}
        self.row_facts: dict[str, NDArray[np.float64]] = {}
        self.facts: dict[str, Any] = common_facts(loaded, settings)
        self.facts["mask_only_logits"] = self._head.cuts
        if settings.protocol == "paper":
            self.facts["top"] = settings.top

    @told
    def select(self, table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Find the rows whose subjects are both a single token wherever the row needs them.

        Returns
        -------
        mask : (rows,) bool array
            Rows that can be scored.
        facts : dict
            As `covered` gives them.
        """
        work = self._work(table)
        self.facts["pronouns"] = self._pronouns(table)
        code, tokens = self._tokens_of(work, self.facts["pronouns"])
        good = np.array([bool(found) for found in tokens], dtype=bool)[code][work.rows]
        keep = np.ones(table.num_rows, dtype=bool)
        if self._settings.protocol == "exact":
            keep &= good.all(axis=1)
        lacking = ~np.stack([good[:, ::2].all(axis=1), good[:, 1::2].all(axis=1)], axis=1)
        return keep, covered(table, keep, lacking)

    @told
    def score(self, table: pa.Table) -> NDArray[np.float64]:
        """Score rows of config ``mlm``; under ``exact`` only those that `select` kept; see `Scorer`."""
        work = self._work(table)
        if not table.num_rows:
            return np.empty((0, 8))
        code, tokens = self._tokens_of(work, self._pronouns(table))
        if self._settings.protocol == "exact" and not all(tokens):
            without = [not found for found in tokens]
            text = work.texts[work.readings[np.array(without)[code].argmax(), 1]][0]
            raise EvaluationError(
                f"{text!r} is not one token of {self._loaded.ref.name}: score the rows of select only"
            )
        encoded = self._encode(work)
        longest = int(encoded.lengths.argmax())
        check_lengths(self._loaded, encoded.lengths, work.contexts[work.inputs[longest, 0]])
        return self._run(work, encoded, _square(tokens)[code])[work.rows]

    def _work(self, table: pa.Table) -> Work:
        return make_work(table, "statement", by="text", prefix=self._settings.context_prefix)

    def _pronouns(self, table: pa.Table) -> bool:
        """Whether she and he count: as asked for, or under ``paper`` where the groups are female and male."""
        if self._settings.pronouns is not None:
            return self._settings.pronouns
        if self._settings.protocol == "exact":
            return False
        groups = set(table["group1"].unique().to_pylist()) | set(table["group2"].unique().to_pylist())
        return {str(group).lower() for group in groups} == set(PRONOUNS)

    def _tokens_of(self, work: Work, pronouns: bool) -> tuple[Indices, list[list[int]]]:
        """Give the tokens that count for each reading, as numbers into a list; the likeliest of them scores."""
        if self._settings.protocol == "paper":
            return work.readings[:, 1], self._decoded(work, pronouns)
        ends = sorted({context[-1:] for context in work.contexts})
        end_of = np.array([ends.index(context[-1:]) for context in work.contexts], dtype=np.int64)
        around_of = work.inputs[:, 1] * len(ends) + end_of[work.inputs[:, 0]]
        keys, code = np.unique(
            around_of[work.readings[:, 0]] * len(work.texts) + work.readings[:, 1], return_inverse=True
        )
        tokens = []
        for key in keys.tolist():
            around, subject = divmod(key, len(work.texts))
            statement, end = work.asked[around // len(ends)], ends[around % len(ends)]
            tokens.append(self._cached(work.texts[subject], self._masks.surroundings(end, statement), pronouns))
        return code, tokens

    def _cached(self, subject: tuple[str, str | None], around: Surroundings, pronouns: bool) -> list[int]:
        key = (subject, around, pronouns)
        if key not in self._tokens:
            text, group = subject
            token = self._masks.single(text, around)
            found = [] if token is None else [token]
            self._tokens[key] = found + (self._masks.pronoun(group, around) if found and pronouns else [])
        return self._tokens[key]

    def _decoded(self, work: Work, pronouns: bool) -> list[list[int]]:
        """Give the tokens of each text, under ``paper``."""
        words = {text.strip().lower() for text, _ in work.texts} | set(PRONOUNS.values())
        new = sorted(word for word in words if (word,) not in self._tokens)
        if new:
            self._tokens |= {(word,): found for word, found in decoded_tokens(self._loaded.tokenizer, new).items()}
        tokens = []
        for text, group in work.texts:
            extra = self._tokens[(PRONOUNS[str(group).lower()],)] if pronouns else []
            tokens.append(self._tokens[(text.strip().lower(),)] + extra)
        return tokens

    def _encode(self, work: Work) -> Encoded:
        def encode(contexts: Sequence[str], statements: Sequence[str]) -> list[Encoding]:
            joined = [f"{one} {other}" for one, other in zip(contexts, statements, strict=True)]
            return call_tokenizer(self._loaded.tokenizer, [self._masks.write(text) for text in joined], None, True)

        return encode_pairs(work.contexts, work.asked, work.inputs, encode, behind_first)

    def _run(self, work: Work, encoded: Encoded, tokens: Indices) -> NDArray[np.float64]:
        """Give S of every reading from its tokens, (readings, most tokens), -1 where it has none."""
        import torch

        scores = np.empty(len(work.readings))
        readings_of = ReadingsOf(work)
        with torch.inference_mode():
            for batch in equal_length_batches(encoded.lengths, self._settings.batch_size):
                inputs = self._inputs(encoded, batch)
                positions = self._positions(inputs["input_ids"], work, batch)
                logp = self._head(inputs, positions).float().log_softmax(-1)
                refuse_nan(logp, self._loaded)
                readings, row = readings_of(batch)
                chosen = torch.from_numpy(tokens[readings]).to(logp.device)
                values = logp[torch.from_numpy(row).to(logp.device)[:, None], chosen.clamp(min=0)]
                values = values.masked_fill(chosen < 0, float("-inf"))
                values = self._counted(values, logp, row).amax(1)
                scores[readings] = values.cpu().double().exp().numpy()
        return scores

    def _counted(self, values: torch.Tensor, logp: torch.Tensor, row: Indices) -> torch.Tensor:
        """Drop what is not among the likeliest tokens, under ``paper``."""
        import torch

        top = self._settings.top
        if self._settings.protocol == "exact" or top is None or top >= logp.shape[1]:
            return values
        least = logp.topk(top).values[:, -1][torch.from_numpy(row).to(logp.device)]
        return values.masked_fill(values < least[:, None], float("-inf"))

    def _positions(self, ids: torch.Tensor, work: Work, batch: Indices) -> torch.Tensor:
        found = ids == self._masks.id
        if not bool((found.sum(1) == 1).all()):
            wrong = int((found.sum(1) != 1).int().argmax())
            statement = work.asked[work.inputs[batch[wrong], 1]]
            raise EvaluationError(f"an input needs exactly one mask, not {int(found[wrong].sum())}: {statement!r}")
        return found.int().argmax(1)


def _square(tokens: Sequence[Sequence[int]]) -> Indices:
    """Repeat tokens until all have equally many; -1 for none."""
    widest = max([1, *(len(found) for found in tokens)])
    return np.array([[*found, *[found[0] if found else -1] * (widest - len(found))] for found in tokens])
