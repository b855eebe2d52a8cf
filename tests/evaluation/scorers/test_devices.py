"""Devices without double precision, such as MPS: what is computed on them is moved before it is widened."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from evaluation.models import resolve_model
from evaluation.scorers import make_scorer
from tests.evaluation.conftest import MakeModel
from tests.evaluation.test_loading import MODELS


class OnDevice(torch.Tensor):
    """A tensor on a device that has no float64; it stands in for one, and is on the CPU."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().__torch_function__(func, types, args, kwargs or {})
        if func is torch.Tensor.cpu:
            return made.as_subclass(torch.Tensor)
        if isinstance(made, OnDevice) and made.dtype == torch.float64:
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
        return made


def to_device(model: torch.nn.Module) -> None:
    """Put the weights there, and so all that is made of them."""
    for module in model.modules():
        for name, weight in list(module.named_parameters(recurse=False)):
            moved = torch.nn.Parameter(weight.detach().as_subclass(OnDevice), requires_grad=False)
            setattr(module, name, moved)


@pytest.mark.parametrize(
    ("name", "config", "shares"),
    [
        ("roberta qa", "qa", None),
        ("bert mlm", "mlm", None),
        ("gpt2", "qa", None),
        ("gpt2", "qa", False),
        ("t5", "qa", None),
    ],
)
def test_scores_need_no_double_precision_on_the_device(
    make_model: MakeModel, few: dict[str, pa.Table], name: str, config: str, shares: bool | None
) -> None:
    model_class, config_class, family, *more = MODELS[name]
    sizes = {**(more[0] if more else {}), **({"decoder_start_token_id": 0} if name == "t5" else {})}
    ref = resolve_model(str(make_model(model_class, config_class, family, **sizes)))
    scorer: Any = make_scorer(ref, device="cpu", batch_size=8)
    if shares is False:
        scorer._shares = False
    able, _ = scorer.select(few[config])
    rows = few[config].filter(pa.array(able))
    before = scorer.score(rows)
    model = scorer._loaded.model
    to_device(model)
    with torch.inference_mode(), pytest.raises(TypeError, match="float64"):
        model.get_input_embeddings()(torch.tensor([1])).double()
    assert np.array_equal(scorer.score(rows), before)
