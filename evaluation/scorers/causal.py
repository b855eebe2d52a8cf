"""Causal LMs: S(x) is the geometric mean of the probabilities of x's tokens behind the prompt.

The mean, not the product, so that a name of three tokens is not punished for its length; `joint` gives the product.
No end-of-text token counts, nor a space before a name of a script without spaces. This is beyond the paper.
"""

from __future__ import annotations

import copy
import inspect
import logging
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from builders.features.lengths import equal_length_batches
from evaluation.errors import EvaluationError
from evaluation.loading import Loaded
from evaluation.scorers.base import Settings, check_lengths, common_facts, refuse_nan, select_all, told
from evaluation.scorers.encoding import Encoded
from evaluation.scorers.prompts import EXAMPLE, Answer, Prompts
from evaluation.scorers.trial import agree, looks_ahead
from evaluation.scorers.work import Indices, ReadingsOf, Work, make_work

if TYPE_CHECKING:
    import torch

_log = logging.getLogger(__name__)


class CausalScorer:
    """Scores continuations of a prompt.

    What a prompt shares with others is computed once and kept in the model's cache: the part up to the context for
    all its questions, and the whole prompt for both subjects. Whether a model's cache can do that is tried out once;
    where it cannot, every prompt is computed with every subject.
    """

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        self._loaded, self._settings = loaded, settings
        self._prompts = Prompts(loaded, settings)
        accepted = inspect.signature(loaded.model.forward).parameters
        self._keep = "logits_to_keep" in accepted
        self._cache = next((name for name in ("cache", "past_key_values") if name in accepted), None)
        self._shares = self._try_cache()
        self.row_facts: dict[str, NDArray[np.float64]] = {}
        self.facts: dict[str, Any] = common_facts(loaded, settings)
        self.facts |= {**self._prompts.facts, "joint": settings.joint, "shares_prefix": self._shares}

    @told
    def select(self, table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Every row can be scored."""
        return select_all(table)

    @told
    def score(self, table: pa.Table) -> NDArray[np.float64]:
        """Score rows of config ``qa``; see `Scorer`."""
        import torch

        work = make_work(table, "question", by="text", prefix=self._settings.context_prefix)
        if not table.num_rows:
            return np.empty((0, 8))
        encoded = self._prompts.encode(work)
        answers = [self._prompts.answer(self._prompts.text(*EXAMPLE), text) for text, _ in work.texts]
        longest = int(encoded.lengths.argmax())
        most = max(len(answer.ids) for answer in answers)
        check_lengths(self._loaded, encoded.lengths + most, work.contexts[work.inputs[longest, 0]])
        run = self._run_shared if self._shares else self._run_whole
        with torch.inference_mode():
            logp = run(work, encoded, answers)
        counts = np.array([len(answer.ids) - answer.uncounted for answer in answers])[work.readings[:, 1]]
        return np.exp(logp if self._settings.joint else logp / counts)[work.rows]

    def _run_shared(self, work: Work, encoded: Encoded, answers: list[Answer]) -> NDArray[np.float64]:
        """Sum the log-probabilities of each reading's tokens, from caches."""
        logp = np.empty(len(work.readings))
        readings_of, tails = ReadingsOf(work), encoded.tail_lengths
        head_of, tail_of = encoded.parts.T
        by_head = np.argsort(head_of, kind="stable")
        ends = np.searchsorted(head_of[by_head], np.arange(len(encoded.heads) + 1))
        for heads in equal_length_batches(encoded.head_lengths, self._settings.batch_size):
            cache, last = self._extend(None, [encoded.heads[head].ids for head in heads])
            inputs = np.concatenate([by_head[ends[head] : ends[head + 1]] for head in heads])
            row = np.repeat(np.arange(len(heads)), ends[heads + 1] - ends[heads])
            for some in equal_length_batches(tails[tail_of[inputs]], self._settings.batch_size):
                chosen, rows = inputs[some], row[some]
                if tails[tail_of[chosen[0]]]:
                    kept, here = self._extend(pick(cache, rows), [encoded.tails[tail].ids for tail in tail_of[chosen]])
                else:
                    kept, here = pick(cache, rows), last[rows]
                readings, at = readings_of(chosen)
                logp[readings] = self._answers(kept, here, at, [answers[s] for s in work.readings[readings, 1]])
        return logp

    def _answers(self, cache: Any, last: torch.Tensor, at: Indices, answers: list[Answer]) -> NDArray[np.float64]:
        """Sum log-probabilities of answers, from the caches and last log-probabilities of their prompts."""
        import torch

        firsts = torch.tensor([answer.ids[0] for answer in answers], device=last.device)
        logp: NDArray[np.float64] = last[torch.from_numpy(at), firsts].cpu().double().numpy()
        skipped = np.array([answer.uncounted for answer in answers])
        logp[skipped > 0] = 0.0
        rest = np.array([len(answer.ids) - 1 for answer in answers])
        longer = np.flatnonzero(rest)
        for some in equal_length_batches(rest[longer], self._settings.batch_size):
            chosen = longer[some]
            ids = [answers[i].ids[:-1] for i in chosen]
            _, logits = self._forward(pick(cache, at[chosen]), ids, whole=True)
            wanted = torch.tensor([answers[i].ids[1:] for i in chosen], device=logits.device)
            each = logits.gather(2, wanted[..., None])[..., 0].cpu().double()
            before = torch.arange(1, 1 + wanted.shape[1]) < torch.from_numpy(skipped[chosen])[:, None]
            logp[chosen] += each.masked_fill(before, 0.0).sum(1).numpy()
        return logp

    def _run_whole(self, work: Work, encoded: Encoded, answers: list[Answer]) -> NDArray[np.float64]:
        """Sum the log-probabilities of each reading's tokens, each with its whole prompt."""
        import torch

        logp = np.empty(len(work.readings))
        whole, skipped = np.array([(len(ids), skip) for ids, skip in answers])[work.readings[:, 1]].T
        lengths, count = encoded.lengths[work.readings[:, 0]] + whole, whole - skipped
        for batch in equal_length_batches(lengths, self._settings.batch_size):
            ids = [encoded.ids(i) + answers[s].ids for i, s in work.readings[batch].tolist()]
            _, logits = self._forward(None, ids, whole=True, caching=False)
            wanted = torch.tensor(ids, device=logits.device)[:, 1:]
            each = logits[:, :-1].gather(2, wanted[..., None])[..., 0].cpu().double().numpy()
            logp[batch] = [each[i, -n:].sum() for i, n in enumerate(count[batch])]
        return logp

    def _extend(self, cache: Any, ids: list[list[int]]) -> tuple[Any, torch.Tensor]:
        """Run tokens behind a cache; give the cache behind them and the log-probabilities of what comes next."""
        cache, logits = self._forward(cache, ids, whole=False)
        return cache, logits[:, -1]

    def _forward(
        self, cache: Any, ids: list[list[int]], *, whole: bool, caching: bool = True
    ) -> tuple[Any, torch.Tensor]:
        import torch

        tokens = torch.tensor(ids, device=self._loaded.device)
        past = cache.get_seq_length() if cache is not None else 0
        more: dict[str, Any] = {"attention_mask": tokens.new_ones(len(ids), past + tokens.shape[1])}
        if self._cache is not None:
            more |= {"use_cache": caching} | ({} if cache is None else {self._cache: cache})
        if self._keep and not whole:
            more["logits_to_keep"] = 1
        output = self._loaded.model(input_ids=tokens, return_dict=True, **more)
        logits = (output.logits if whole else output.logits[:, -1:]).float().log_softmax(-1)
        refuse_nan(logits, self._loaded)
        return output.get(self._cache) if self._cache else None, logits

    def _try_cache(self) -> bool:
        """Compare shared with whole computing on two prompts, and see that no token attends to later ones."""
        import torch

        one = self._prompts.ids(self._prompts.text(*EXAMPLE))[: self._loaded.limit]
        other = one[:1] + one[:0:-1]
        cut, order = len(one) // 2, np.array([1, 0, 1])
        prompts = [[one, other][i] for i in order]
        with torch.inference_mode():
            _, whole = self._forward(None, prompts, whole=True, caching=False)
            _, part = self._forward(None, [ids[:cut] for ids in prompts], whole=True, caching=False)
            if looks_ahead(self._loaded, whole, part):
                raise EvaluationError(f"{self._loaded.ref.name} attends to later tokens: it is no causal LM")
            if self._cache is None:
                return False
            try:
                cache, _ = self._extend(None, [one[:cut], other[:cut]])
                for _again in range(2):  # what was picked from a cache must leave it as it was
                    _, shared = self._forward(pick(cache, order), [ids[cut:] for ids in prompts], whole=True)
            except (RuntimeError, AttributeError, TypeError, ValueError, IndexError, NotImplementedError) as error:
                _log.warning(
                    "the cache of %s cannot be shared (%s): scores are right, only slower", self._loaded.ref.name, error
                )
                return False
            if not agree(self._loaded, shared, whole[:, cut:]):
                _log.warning(
                    "the cache of %s cannot be shared and is not: scores are right, only slower", self._loaded.ref.name
                )
                return False
        return True


def pick(cache: Any, rows: Indices) -> Any:
    """Give a cache of some rows, any of them several times, and leave the one given as it is."""
    import torch

    if not hasattr(cache, "layers"):
        raise TypeError(f"a cache of type {type(cache).__name__} has no layers to pick from")
    picked = copy.copy(cache)
    picked.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in picked.layers:  # linear attention keeps its states in dictionaries
        vars(layer).update({name: dict(value) for name, value in vars(layer).items() if isinstance(value, dict)})
    picked.reorder_cache(torch.from_numpy(rows))
    return picked
