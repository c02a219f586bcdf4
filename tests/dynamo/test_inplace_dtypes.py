"""An in-place operation whose result doesn't fit into its tensor is the error of plain code, captured or not."""

import numpy as np
import pytest

import flambeau as torch


def multiply(x):
    x *= 1.5
    return x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [multiply, lambda x: x.add_(0.5), lambda x: x.div_(2), lambda x: x.view(-1).mul_(0.5)])
def test_a_float_into_integers(f, backend):
    torch._dynamo.reset()
    x = torch.arange(4)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        torch.compile(f, backend=backend)(x)
    assert x.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_numpy_raises_its_own_error(backend):
    torch._dynamo.reset()
    x = np.arange(4)
    with pytest.raises(TypeError, match="same_kind"):
        torch.compile(multiply, backend=backend)(x)
    assert x.tolist() == [0, 1, 2, 3]
