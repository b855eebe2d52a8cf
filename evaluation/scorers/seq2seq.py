"""Encoder-decoder models: S(x) is the geometric mean of the probabilities of x's tokens as the decoder's answer.

The prompt goes to the encoder, which runs once for both subjects. Tokens that the tokenizer adds to an answer
(language, start, end) are given to the decoder but do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

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
from evaluation.scorers.prompts import Prompts
from evaluation.scorers.work import ReadingsOf, Work, equal_length_batches, make_work

if TYPE_CHECKING:
    import torch


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
        labels = list(tokenizer(text_target=subject, verbose=False)["input_ids"])
        counts = [token not in added for token in labels]
        if True not in counts:
            raise EvaluationError(
                f"{subject!r} has no tokens in {self._loaded.ref.name}: pass another model, or a set without it"
            )
        upto = len(counts) - counts[::-1].index(True)
        return labels[:upto], counts[:upto]

    def _run(self, work: Work, encoded: Encoded, answers: list[tuple[list[int], list[bool]]]) -> NDArray[np.float64]:
        """Give S of every reading."""
        import torch

        scores = np.empty(len(work.readings))
        readings_of = ReadingsOf(work)
        length = np.array([len(labels) for labels, _ in answers])
        with torch.inference_mode():
            for batch in equal_length_batches(encoded.lengths, self._settings.batch_size):
                inputs = self._inputs(encoded, batch)
                encoder = self._loaded.model.get_encoder()(**inputs, return_dict=True)
                readings, row = readings_of(batch)
                for some in equal_length_batches(length[work.readings[readings, 1]], 2 * self._settings.batch_size):
                    chosen = [answers[s] for s in work.readings[readings[some], 1]]
                    rows = torch.from_numpy(row[some]).to(encoder[0].device)
                    hidden = type(encoder)(last_hidden_state=encoder[0][rows])
                    each = self._decode(hidden, inputs["attention_mask"][rows], [labels for labels, _ in chosen])
                    counts = torch.tensor([counts for _, counts in chosen], device=each.device)
                    total = each.masked_fill(~counts, 0.0).double().sum(1)
                    mean = total if self._settings.joint else total / counts.sum(1)
                    scores[readings[some]] = mean.exp().cpu().numpy()
        return scores

    def _decode(self, hidden: Any, mask: torch.Tensor, labels: list[list[int]]) -> torch.Tensor:
        """Give the log-probability of every label behind those before it, from what the encoder gives."""
        import torch

        wanted = torch.tensor(labels, device=mask.device)
        start = torch.full_like(wanted[:, :1], self._start)
        output = self._loaded.model(
            encoder_outputs=hidden,
            attention_mask=mask,
            decoder_input_ids=torch.cat([start, wanted[:, :-1]], dim=1),
            use_cache=False,
            return_dict=True,
        )
        logp: torch.Tensor = output.logits.float().log_softmax(-1)
        refuse_nan(logp, self._loaded)
        return logp.gather(2, wanted[..., None])[..., 0]
