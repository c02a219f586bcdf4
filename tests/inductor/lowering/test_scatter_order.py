"""A scatter writes into a buffer that another kernel filled: whoever reads the buffer afterwards stays behind the scatter."""

import pytest

import flambeau as torch
from flambeau.aot import aot_function
from flambeau.inductor import compile_graph

aten = torch.ops.aten


def reduced(b):
    return aten.scatter.src(b.reshape(-1) * 1, 0, torch.arange(3), b[1] * 2).mean()


def reduced_and_returned(b):
    r = aten.scatter.src(b.reshape(-1), 0, torch.arange(3), b[1] * 2).reshape(2, 3)
    return r.mean(), r


def written_through_a_view(b):
    c = b.clone()
    c[0].fill_(3.0)
    return c.mean(), c


@pytest.mark.parametrize("f", [reduced, reduced_and_returned, written_through_a_view])
def test_readers_stay_behind(f):
    b = torch.arange(6.0).reshape(2, 3)
    expected, got = f(b), aot_function(f, compile_graph)(b)
    for e, g in zip(*((x,) if isinstance(x, torch.Tensor) else x for x in (expected, got)), strict=True):
        assert torch.allclose(e, g)
