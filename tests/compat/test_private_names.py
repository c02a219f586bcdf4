"""Private names of PyTorch's that libraries use, where they do something."""

import pytest
from flambeau._guards import active_fake_mode, detect_fake_mode
from flambeau._ops import HigherOrderOperator
from flambeau._subclasses.fake_tensor import FakeTensorMode
from flambeau.utils.data._utils.worker import _generate_state

import flambeau as torch
from flambeau import nn
from flambeau.nn.utils._named_member_accessor import swap_tensor
from flambeau.utils._contextlib import _DecoratorContextManager


def test_the_fake_mode():
    mode = FakeTensorMode()
    assert active_fake_mode() is None and detect_fake_mode([torch.ones(2)]) is None
    with mode:
        x = torch.ones(2)
        assert active_fake_mode() is mode and detect_fake_mode() is mode
    assert detect_fake_mode([1, {"x": x}]) is mode
    with FakeTensorMode(), pytest.raises(AssertionError, match="doesn't match"):
        detect_fake_mode(x)


def test_swap_tensor():
    layer, t = nn.BatchNorm1d(2), torch.zeros(2)
    weight, mean = layer.weight, layer.running_mean
    assert swap_tensor(layer, "weight", t) is weight and layer.weight is t and "weight" in layer._parameters
    assert swap_tensor(layer, "weight", weight) is t
    assert swap_tensor(layer, "running_mean", t) is mean and layer._buffers["running_mean"] is t
    assert swap_tensor(layer, "new", t, allow_missing=True) is None and layer.new is t
    for name, value, kind in (
        ("none", t, AttributeError),
        ("a.b", t, KeyError),
        ("weight", 1, TypeError),
        ("eps", t, TypeError),
    ):
        with pytest.raises(kind):
            swap_tensor(layer, name, value)


def test_a_context_manager_that_decorates():
    log = []

    class Noted(_DecoratorContextManager):
        def __init__(self, name):
            self.name = name

        def clone(self):
            return Noted(self.name)

        def __enter__(self):
            log.append(self.name)

        def __exit__(self, *exc):
            log.append("end")

    @Noted("f")
    def f(x):
        return x + 1

    @Noted("g")
    def g():
        yield len(log)
        yield len(log)

    assert f(1) == 2 and log == ["f", "end"]
    assert list(g()) == [3, 5] and f.__name__ == "f"
    with Noted("block"):
        assert log[-1] == "block"


def test_seeds_of_workers_and_kinds_of_operators():
    assert _generate_state(2**40 + 123, 3) == [3802114287, 1968366439, 1035169469, 4205892126]
    assert isinstance(torch.ops.higher_order.cond, HigherOrderOperator)
    assert isinstance(torch.ones(2).untyped_storage(), torch.StorageBase)
