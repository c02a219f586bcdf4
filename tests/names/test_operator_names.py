"""An operator's name is in the root namespace, or a method of Tensor, only where PyTorch has it. ``oracle.py`` wrote the list."""

import json
import pickle
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.ops.aten_names import NAMES

THERE = {k: {*v.split()} for k, v in json.loads(Path(__file__).with_name("operators_2_13.json").read_text()).items()}
SPACES = {"torch": torch, "Tensor": torch.Tensor}


@pytest.mark.parametrize("place", SPACES)
def test_no_other_name_of_an_operator_is_there(place):
    assert len(NAMES) > 1500 and len(THERE[place]) > 500
    assert not {n for n in NAMES if n not in THERE[place] and hasattr(SPACES[place], n)}


@pytest.mark.parametrize(
    "name", ["view", "linear", "add_", "absolute_", "scatter_", "_cdist_forward", "expand", "index_put_backward"]
)
def test_a_name_that_is_not_there_is_an_attribute_error(name):
    for _ in range(2):  # a look-up that failed leaves nothing behind
        with pytest.raises(AttributeError, match=f"module 'torch' has no attribute '{name}'"):
            getattr(torch, name)
    assert name not in dir(torch)
    # The operator is there.
    assert name not in NAMES or getattr(torch.ops.aten, name) is not None


def test_listed_names_are_there():
    assert not [n for n in dir(torch) if not hasattr(torch, n)]


def test_operators_without_a_public_function_still_work():
    x = torch.ones(2)
    assert torch.ops.aten.add_(x, 1) is x and x.tolist() == [2.0, 2.0]
    assert torch.ops.aten.view(x, [2, 1]).shape == (2, 1) and torch.ops.aten.linear(x, x).item() == 8.0
    assert pickle.loads(pickle.dumps(torch.Tensor.add_)) is torch.Tensor.add_
    assert (3 - x).tolist() == [1.0, 1.0] and torch.rsub(x, 3).tolist() == [1.0, 1.0]
