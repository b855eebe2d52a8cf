"""Extractive question answering: S(x) = sqrt(p_start * p_end) over the span of x (Li et al. 2020, section 3.2)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from builders.features.lengths import equal_length_batches
from evaluation.errors import EvaluationError
from evaluation.loading import Loaded
from evaluation.scorers.base import (
    Inputs,
    Settings,
    check_lengths,
    common_facts,
    decoder_start,
    refuse_nan,
    told,
)
from evaluation.scorers.coverage import covered
from evaluation.scorers.encoding import Encoded, Encoding, Piece, call_tokenizer, encode_pairs, second_starts
from evaluation.scorers.paper import PaperPairs, Widening
from evaluation.scorers.prompts import EXAMPLE
from evaluation.scorers.spans import Place, find_tokens
from evaluation.scorers.work import Indices, ReadingsOf, Work, make_work

if TYPE_CHECKING:
    import torch

_WORD_BEHIND = re.compile(r"\s*\S*")
_NOWHERE = Place(-1, -1, -1, -1)
_WIDEST = 4  # tokens that a start may choose from: the subject's own and the three before it


class QaScorer:
    """Scores spans; the softmax is over all tokens of the input, and there is never any padding.

    Parameters
    ----------
    loaded : Loaded
        A model for extractive question answering.
    settings : Settings
        Under ``exact`` the input is the tokenizer's own pair encoding: question, then context, and the other way
        round for a tokenizer that pads on the left, which is how such models are trained.
    """

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        self._loaded, self._settings = loaded, settings
        tokenizer = loaded.tokenizer
        self._inputs = Inputs(loaded)
        self._context_first = settings.protocol == "exact" and tokenizer.padding_side == "left"
        self._paper: PaperPairs | None = None
        self._widen: Widening | None = None
        if settings.protocol == "paper":
            self._paper, self._widen = PaperPairs(tokenizer), Widening(tokenizer)
            if not self._paper.possible:
                raise EvaluationError(
                    f"{loaded.ref.name} has neither bos and eos nor cls and sep tokens, which protocol paper needs: "
                    "use protocol exact"
                )
        self.row_facts: dict[str, NDArray[np.float64]] = {}
        self.facts: dict[str, Any] = common_facts(loaded, settings)
        self.facts["input"] = "context, question" if self._context_first else "question, context"
        self._try()

    @told
    def select(self, table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Leave out rows with a subject that cannot be scored.

        The vocabulary lacks it (all such look alike; ``paper`` keeps them), or its tokens cannot be told from those
        around it.

        Returns
        -------
        mask : (rows,) bool array
            Rows that can be scored.
        facts : dict
            As `covered` gives them.
        """
        lacking = np.zeros((table.num_rows, 2), dtype=bool)
        unknown = self._loaded.tokenizer.unk_token_id
        if unknown is not None and self._settings.protocol == "exact":
            for number in (0, 1):
                texts = table[f"text{number + 1}"].cast(pa.string())
                lacks = [text for text in texts.unique().to_pylist() if unknown in self._tokens(text)]
                lacking[:, number] = pc.is_in(texts, value_set=pa.array(lacks, pa.string())).to_numpy()
        unplaced = np.zeros_like(lacking)
        known = np.logical_not(lacking.any(axis=1))
        unplaced[known] = self._unplaced(table.filter(pa.array(known)))
        keep = np.asarray(~(lacking | unplaced).any(axis=1))
        return keep, covered(table, keep, lacking, unplaced)

    def _unplaced(self, table: pa.Table) -> NDArray[np.bool_]:
        """Whether the tokens of subject 1 or 2 cannot be found in a context of a row, (rows, 2).

        How a subject is cut depends on what it touches, so one context is looked at of all where that is the same.
        """
        work = make_work(table, "question", by="span", prefix=self._settings.context_prefix)
        if not table.num_rows:
            return np.zeros((0, 2), dtype=bool)
        index, span = work.readings.T
        keys, firsts, key_of = np.unique(
            work.inputs[index, 0] * len(work.spans) + span, return_index=True, return_inverse=True
        )
        around: dict[tuple[str, ...], int] = {}
        code = np.array([around.setdefault(self._touched(work, int(key)), len(around)) for key in keys])
        chosen = firsts[np.unique(code, return_index=True)[1]]
        inputs, input_of = np.unique(index[chosen], return_inverse=True)
        few = replace(work, inputs=work.inputs[inputs], readings=np.stack([input_of, span[chosen]], axis=1))
        missing = self._places(few, self._encode(few), skip=True)[:, 0] < 0
        of_row = missing[code[key_of]][work.rows]
        return np.stack([of_row[:, ::2].any(axis=1), of_row[:, 1::2].any(axis=1)], axis=1)

    def _touched(self, work: Work, key: int) -> tuple[str, ...]:
        """Give a subject with what stands on either side of it up to the next space but one."""
        context, span = divmod(key, len(work.spans))
        text, (start, end) = work.contexts[context], work.spans[span]
        before, right = text[:start], _WORD_BEHIND.match(text, end)
        left = before[len(before.rstrip().rpartition(" ")[0]) :]
        return (left, text[start:end], right[0] if right else "")

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self._loaded.tokenizer(text, add_special_tokens=False).input_ids
        return ids

    @told
    def score(self, table: pa.Table) -> NDArray[np.float64]:
        """Score rows of config ``qa``; see `Scorer`."""
        work = make_work(table, "question", by="span", prefix=self._settings.context_prefix)
        if not table.num_rows:
            return np.empty((0, 8))
        encoded = self._encode(work)
        longest = int(encoded.lengths.argmax())
        check_lengths(self._loaded, encoded.lengths, work.contexts[work.inputs[longest, 0]])
        scores, no_answer = self._run(work, encoded, self._places(work, encoded))
        self.row_facts = {"no_answer": no_answer[work.readings[work.rows[:, ::2], 0]].mean(axis=1)}
        return scores[work.rows]

    def _encode(self, work: Work) -> Encoded:
        def encode(firsts: Any, seconds: Any) -> list[Encoding]:
            return call_tokenizer(self._loaded.tokenizer, firsts, seconds, True)

        if self._context_first:
            return encode_pairs(work.contexts, work.asked, work.inputs, encode, second_starts)
        pairs = work.inputs[:, ::-1]
        return encode_pairs(work.asked, work.contexts, pairs, self._paper or encode, second_starts)

    def _places(self, work: Work, encoded: Encoded, *, skip: bool = False) -> NDArray[np.int64]:
        """Give the `Place` of every reading, as positions in its input; -1 where it is not found, if `skip`."""
        side = 0 if self._context_first else 1
        index, span = work.readings.T
        context = work.inputs[index, 0]
        if encoded.apart:
            sample = np.array([encoded.sample_of.get((side, i), -1) for i in range(len(work.contexts))])[context]
        else:
            sample = np.array([encoded.sample_of[2, i] for i in range(len(work.inputs))])[index]
        _, firsts, code = np.unique(sample * len(work.spans) + span, return_index=True, return_inverse=True)
        found = []
        for i in firsts:
            encoding, cut = encoded.samples[sample[i]]
            try:
                found.append(self._find(work, encoding, cut * side, (int(context[i]), int(span[i])), side))
            except EvaluationError:
                if not skip:
                    raise
                found.append(_NOWHERE)
        places = np.array(found, dtype=np.int64)[code]
        if encoded.apart and side == 1:
            places += np.where(places < 0, 0, encoded.head_lengths[encoded.parts[index, 0]][:, None])
        return places

    def _find(self, work: Work, encoding: Encoding, cut: int, where: tuple[int, int], side: int) -> Place:
        context, span = where
        tokenizer = self._loaded.tokenizer
        start, end = find_tokens(tokenizer, encoding, side, work.spans[span], work.contexts[context])
        place = self._widen(encoding.ids, start, end) if self._widen else Place(start, start, end, end)
        return Place(*(position - cut for position in place))

    def _run(self, work: Work, encoded: Encoded, places: Indices) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Give S of every reading, and the no-answer mass of every input."""
        import torch

        scores = np.empty(len(work.readings))
        no_answer = np.empty(len(work.inputs))
        readings_of = ReadingsOf(work)
        cls = self._loaded.tokenizer.cls_token_id
        with torch.inference_mode():
            for batch in equal_length_batches(encoded.lengths, self._settings.batch_size):
                inputs = self._inputs(encoded, batch)
                both = self._both(inputs)
                readings, row = readings_of(batch)
                first, start, end, last = (torch.from_numpy(p).to(both.device) for p in places[readings].T)
                row_at = torch.from_numpy(row).to(both.device)
                back = torch.arange(_WIDEST, device=both.device)
                starts = torch.maximum(start[:, None] - back, first[:, None])
                ends = torch.minimum(end[:, None] + back, last[:, None])
                p_start = both[0][row_at[:, None], starts].amax(1)
                p_end = both[1][row_at[:, None], ends].amax(1)
                is_cls = inputs["input_ids"] == (-1 if cls is None else cls)
                at = is_cls.int().argmax(1)  # the first token of a model without cls
                nothing = both[:, torch.arange(len(batch), device=both.device), at].mean(0)
                refuse_nan(both, self._loaded)
                scores[readings] = ((p_start + p_end) / 2).cpu().double().exp().numpy()
                no_answer[batch] = nothing.cpu().double().exp().numpy()
        return scores, no_answer

    def _both(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        """Give the log-probabilities of every token as start and as end, (2, inputs, tokens)."""
        import torch

        output = self._loaded.model(**inputs)
        both = torch.stack([output.start_logits, output.end_logits]).float().log_softmax(-1)
        if both.shape[1:] != inputs["input_ids"].shape:
            raise EvaluationError(
                f"{self._loaded.ref.name} ({type(self._loaded.model).__name__}) gives no start and end for each token: "
                "it answers otherwise than by a span; pass another model"
            )
        return both

    def _try(self) -> None:
        """Let the model read a pair, so that one that cannot is told before a run begins."""
        import torch

        model = self._loaded.model
        if model.config.is_encoder_decoder and getattr(model.config, "decoder_start_token_id", None) is None:
            model.config.decoder_start_token_id = decoder_start(model)
        (encoding,) = call_tokenizer(self._loaded.tokenizer, [EXAMPLE[1]], [EXAMPLE[0]], True)
        encoded = Encoded([Piece(encoding.ids, encoding.types)], [Piece([], [])], np.zeros((1, 2), np.int64), False)
        if self._loaded.limit is None or encoded.lengths[0] <= self._loaded.limit:
            with torch.inference_mode():
                self._both(self._inputs(encoded, [0]))
