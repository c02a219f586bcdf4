"""Operators become in-place ones where nobody can tell; the graph computes the same, and its inputs stay as they are."""

import pytest

import flambeau as torch
from flambeau.fx.passes.reinplace import reinplace
from flambeau.proxy import make_fx


def chain(x):
    return x.clone().add(1).mul(2).sin()


def input_is_not_written(x):
    return x.add(1)


def alias_is_used_later(x):
    a = x.clone()
    view = a.view(-1)
    return a.add(1), view.mul(2)


def another_dtype(x):
    a = x.clone()
    return (a + 1).ge(a)


def used_twice(x):
    a = x * 2
    b = a.add(1)
    return a.mul(b)


def expanded(x):
    return x.sum().expand(2, 3).add(1)


INPLACE = {chain: 3, input_is_not_written: 0, alias_is_used_later: 1, another_dtype: 0, used_twice: 1, expanded: 0}


@pytest.mark.parametrize("program", INPLACE, ids=lambda f: f.__name__)
def test_reinplace(program):
    x = torch.arange(6.0).reshape(2, 3)
    gm = reinplace(make_fx(program)(x.clone()), x.clone())
    given = x.clone()
    got, expected = gm(given), program(x.clone())
    assert torch.equal(given, x)
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, expected)), strict=True):
        assert torch.equal(a, b)
    written = [n for n in gm.graph.nodes if n.op == "call_function" and n.target._schema.is_mutable]
    assert len(written) == INPLACE[program], gm.code
