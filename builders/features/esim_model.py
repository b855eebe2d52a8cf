"""The network of ESIM (Chen et al., ACL 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class Esim(nn.Module):
    """Premise and hypothesis to a representation and logits.

    Parameters
    ----------
    learned : int
        Words with an embedding of their own, padding (0) and the unknown word (1) among them.
    dimension : int
        Numbers a word.
    hidden : int
        Width of each LSTM direction, of the projection and of the representation.
    labels : int
        Labels K.
    dropout : float
        Before every feed-forward layer and on the embeddings.
    """

    def __init__(self, learned: int, dimension: int, hidden: int, labels: int, dropout: float) -> None:
        super().__init__()
        self.learned = nn.Embedding(learned, dimension, padding_idx=0)
        self.encoding = nn.LSTM(dimension, hidden, batch_first=True, bidirectional=True)
        self.projection = nn.Linear(8 * hidden, hidden)
        self.composition = nn.LSTM(hidden, hidden, batch_first=True, bidirectional=True)
        self.hidden = nn.Linear(8 * hidden, hidden)
        self.output = nn.Linear(hidden, labels)
        self.dropout = nn.Dropout(dropout)
        # torch's small first weights leave all words of a sentence alike, and the alignment with nothing to tell apart.
        for name, weight in self.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(weight)
            elif weight.ndim == 2 and "learned" not in name:
                nn.init.xavier_uniform_(weight)

    def forward(
        self,
        premises: Tensor,
        premise_lengths: Tensor,
        hypotheses: Tensor,
        hypothesis_lengths: Tensor,
        fixed: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Give representation (batch, hidden) and logits (batch, K).

        Parameters
        ----------
        premises, hypotheses : Tensor of int64, shape (batch, longest)
            Numbers of words, padded with 0; numbers past the learned words are rows of `fixed`.
        premise_lengths, hypothesis_lengths : Tensor of int64, shape (batch,)
            Words of each, at least 1, on the CPU.
        fixed : Tensor, shape (words, dimension), optional
            Vectors that are not trained.
        """
        one = _run(self.encoding, self.dropout(self._embed(premises, fixed)), premise_lengths)
        two = _run(self.encoding, self.dropout(self._embed(hypotheses, fixed)), hypothesis_lengths)
        of_one, of_two = premises == 0, hypotheses == 0
        scores = one @ two.transpose(1, 2)
        aligned_one = scores.masked_fill(of_two[:, None, :], -torch.inf).softmax(2) @ two
        aligned_two = scores.masked_fill(of_one[:, :, None], -torch.inf).softmax(1).transpose(1, 2) @ one
        pooled = torch.cat(
            [
                self._compose(one, aligned_one, premise_lengths, of_one),
                self._compose(two, aligned_two, hypothesis_lengths, of_two),
            ],
            dim=1,
        )
        features = torch.tanh(self.hidden(self.dropout(pooled)))
        return features, self.output(self.dropout(features))

    def _embed(self, words: Tensor, fixed: Tensor | None) -> Tensor:
        learned = self.learned.num_embeddings
        vectors: Tensor = self.learned(words.clamp(max=learned - 1))
        if fixed is not None and len(fixed):
            known = nn.functional.embedding((words - learned).clamp(min=0), fixed)
            vectors = torch.where((words >= learned)[:, :, None], known, vectors)
        return vectors

    def _compose(self, encoded: Tensor, aligned: Tensor, lengths: Tensor, padding: Tensor) -> Tensor:
        """Enhance, project, compose, and pool by mean and maximum over the words: (batch, 4 * hidden)."""
        enhanced = torch.cat([encoded, aligned, encoded - aligned, encoded * aligned], dim=2)
        composed = _run(self.composition, self.dropout(torch.relu(self.projection(self.dropout(enhanced)))), lengths)
        mean = composed.sum(1) / lengths.to(composed.device)[:, None]
        highest = composed.masked_fill(padding[:, :, None], -torch.inf).amax(1)
        return torch.cat([mean, highest], dim=1)


def _run(lstm: nn.LSTM, words: Tensor, lengths: Tensor) -> Tensor:
    """Run over the words alone; what stands at padding is 0."""
    packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
    unpacked = pad_packed_sequence(lstm(packed)[0], batch_first=True, total_length=words.shape[1])
    return unpacked[0]
