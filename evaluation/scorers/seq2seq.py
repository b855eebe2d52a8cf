"""Encoder-decoder models: S(x) is the geometric mean of the probabilities of x's tokens as the decoder's answer.

The prompt goes to the encoder, which runs once for both subjects. Tokens that the tokenizer adds to an answer
(language, start, end) are given to the decoder but do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
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
    select_all,
    told,
)
from evaluation.scorers.encoding import Encoded
from evaluation.scorers.prompts import EXAMPLE, Prompts, uncounted
from evaluation.scorers.trial import looks_ahead
from evaluation.scorers.work import ReadingsOf, Work, make_work

if TYPE_CHECKING:
    import torch


class _Read(NamedTuple):
    """What the encoder read, as (rows, tokens) tokens and mask, and what it gave."""

    ids: torch.Tensor
    mask: torch.Tensor
    output: Any

    def take(self, rows: torch.Tensor) -> _Read:
        """Give some rows; of what the encoder gave, the hidden states alone."""
        return _Read(self.ids[rows], self.mask[rows], type(self.output)(last_hidden_state=self.output[0][rows]))


class Seq2SeqScorer:
    """Scores answers of an encoder-decoder model to a prompt."""

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        self._loaded, self._settings = loaded, settings
        self._prompts = Prompts(loaded, settings, closed=True)
        self._inputs = Inputs(loaded)
        start = decoder_start(loaded.model)
        if start is None:
            raise EvaluationError(
                f"{loaded.ref.name} names no decoder_start_token_id in its config.json: it cannot answer"
            )
        self._start = start
        self._needs_ids = self._try_decoder()
        self.row_facts: dict[str, NDArray[np.float64]] = {}
        self.facts: dict[str, Any] = common_facts(loaded, settings)
        self.facts |= {**self._prompts.facts, "joint": settings.joint}

    @told
    def select(self, table: pa.Table) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Every row can be scored."""
        return select_all(table)

    @told
    def score(self, table: pa.Table) -> NDArray[np.float64]:
        """Score rows of config ``qa``; see `Scorer`."""
        work = make_work(table, "question", by="text", prefix=self._settings.context_prefix)
        if not table.num_rows:
            return np.empty((0, 8))
        encoded = self._prompts.encode(work)
        longest = int(encoded.lengths.argmax())
        check_lengths(self._loaded, encoded.lengths, work.contexts[work.inputs[longest, 0]])
        return self._run(work, encoded, [self._answer(text) for text, _ in work.texts])[work.rows]

    def _answer(self, subject: str) -> tuple[list[int], list[bool]]:
        """Give the tokens of an answer up to the subject's last, and which of them are the subject's."""
        tokenizer = self._loaded.tokenizer
        added = set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}
        labels = self._labels(subject)
        counts = [token not in added for token in labels]
        if True not in counts:
            raise EvaluationError(
                f"{subject!r} has no tokens in {self._loaded.ref.name}: pass another model, or a set without it"
            )
        first, upto = counts.index(True), len(counts) - counts[::-1].index(True)
        skipped = uncounted(tokenizer, labels[first:upto], subject)
        counts[first : first + skipped] = [False] * skipped
        return labels[:upto], counts[:upto]

    def _labels(self, text: str) -> list[int]:
        return list(self._loaded.tokenizer(text_target=text, verbose=False)["input_ids"])

    def _run(self, work: Work, encoded: Encoded, answers: list[tuple[list[int], list[bool]]]) -> NDArray[np.float64]:
        """Give S of every reading."""
        import torch

        scores = np.empty(len(work.readings))
        readings_of = ReadingsOf(work)
        length = np.array([len(labels) for labels, _ in answers])
        with torch.inference_mode():
            for batch in equal_length_batches(encoded.lengths, self._settings.batch_size):
                inputs = self._inputs(encoded, batch)
                read = self._encode(inputs)
                readings, row = readings_of(batch)
                for some in equal_length_batches(length[work.readings[readings, 1]], 2 * self._settings.batch_size):
                    chosen = [answers[s] for s in work.readings[readings[some], 1]]
                    rows = torch.from_numpy(row[some]).to(self._loaded.device)
                    each = self._decode(read.take(rows), [labels for labels, _ in chosen])
                    counts = torch.tensor([counts for _, counts in chosen])
                    total = each.cpu().masked_fill(~counts, 0.0).double().sum(1)
                    mean = total if self._settings.joint else total / counts.sum(1)
                    scores[readings[some]] = mean.exp().numpy()
        return scores

    def _encode(self, inputs: dict[str, torch.Tensor]) -> _Read:
        output = self._loaded.model.get_encoder()(**inputs, return_dict=True)
        return _Read(inputs["input_ids"], inputs["attention_mask"], output)

    def _decode(self, read: _Read, labels: list[list[int]]) -> torch.Tensor:
        """Give the log-probability of every label behind those before it."""
        import torch

        wanted = torch.tensor(labels, device=read.ids.device)
        return self._behind(read, wanted, needs_ids=self._needs_ids).gather(2, wanted[..., None])[..., 0]

    def _behind(self, read: _Read, labels: torch.Tensor, *, needs_ids: bool) -> torch.Tensor:
        """Give the log-probabilities of what comes behind the start token and each label but the last."""
        import torch

        start = torch.full_like(labels[:, :1], self._start)
        output = self._loaded.model(
            **({"input_ids": read.ids} if needs_ids else {}),
            encoder_outputs=read.output,
            attention_mask=read.mask,
            decoder_input_ids=torch.cat([start, labels[:, :-1]], dim=1),
            use_cache=False,
            return_dict=True,
        )
        logp: torch.Tensor = output.logits.float().log_softmax(-1)
        refuse_nan(logp, self._loaded)
        return logp

    def _try_decoder(self) -> bool:
        """See that no label is read before it is given, and say whether the decoder needs the encoder's tokens for it.

        FSMT masks what is to come only where it gets the tokens beside what the encoder made of them.
        """
        import torch

        device, limit = self._loaded.device, self._loaded.limit
        ids = torch.tensor([self._prompts.ids(self._prompts.text(*EXAMPLE))[:limit]], device=device)
        labels = torch.tensor([self._labels(EXAMPLE[1])[:limit]], device=device)
        cut = max(1, labels.shape[1] // 2)
        with torch.inference_mode():
            read = self._encode({"input_ids": ids, "attention_mask": torch.ones_like(ids)}).take(
                torch.tensor([0], device=device)
            )
            for needs_ids in (False, True):
                whole = self._behind(read, labels, needs_ids=needs_ids)
                start = self._behind(read, labels[:, :cut], needs_ids=needs_ids)
                if not looks_ahead(self._loaded, whole, start):
                    return needs_ids
        raise EvaluationError(
            f"the decoder of {self._loaded.ref.name} attends to later tokens: its answers cannot be scored"
        )
