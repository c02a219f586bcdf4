"""Names of classes that programs print, pickle and compare: constraints of distributions, and what functions return with out=."""

import pickle

import pytest

import flambeau as torch
from flambeau.distributions import constraints as c

CONSTRAINTS = {
    "Interval(lower_bound=0, upper_bound=1)": c.interval(0, 1),
    "HalfOpenInterval(lower_bound=0, upper_bound=1)": c.half_open_interval(0, 1),
    "IntegerInterval(lower_bound=0, upper_bound=3)": c.integer_interval(0, 3),
    "GreaterThan(lower_bound=0.0)": c.positive,
    "GreaterThanEq(lower_bound=0)": c.greater_than_eq(0),
    "LessThan(upper_bound=1)": c.less_than(1),
    "IndependentConstraint(Real(), 1)": c.real_vector,
    "Multinomial()": c.multinomial(3),
    "Cat()": c.cat([c.interval(0, 1)], 0, [1]),
}


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_constraints(text):
    made = CONSTRAINTS[text]
    assert repr(made) == text and type(made).__name__ == f"_{text.partition('(')[0]}"
    if "Real" not in text:
        assert repr(pickle.loads(pickle.dumps(made))) == text


@pytest.mark.parametrize("name", ["max", "min", "sort", "topk", "median", "kthvalue"])
def test_results_with_out(name):
    x, k = torch.randn(3, 3), (2,) if name in ("topk", "kthvalue") else (0,)
    out = torch.empty(0), torch.empty(0, dtype=torch.long)
    plain, written = getattr(torch, name)(x, *k), getattr(torch, name)(x, *k, out=out)
    types = torch.return_types
    assert type(plain) is getattr(types, name) and type(written) is getattr(types, f"{name}_out")
    assert type(written).__name__ == f"{name}_out" and type(plain) is not type(written)
