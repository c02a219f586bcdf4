"""Integer expressions: canonical forms, and agreement of every operation with Python's integers on random expressions."""

import random

import numpy as np
import pytest

import flambeau
from flambeau.base.expr import (
    INF,
    Symbol,
    Var,
    apply,
    at_least,
    bounds,
    coefficient,
    floordiv,
    linear,
    maximum,
    minimum,
    mod,
    nonnegative,
    of,
    substitute,
    variable,
)
from flambeau.base.expr_walks import emit, evaluate

S, T, U = Symbol("s0", 2), Symbol("s1", 2), Symbol("u0", -5, 9)
s, t, u = of(S), of(T), of(U)


def test_split_and_merge_cancel():
    i, j = Var(0, 6), Var(1, 4)
    flat = linear([variable(i), variable(j)], (4, 1))
    assert floordiv(flat, 4) == variable(i)
    assert mod(flat, 4) == variable(j)
    k = variable(Var(2, 24))
    assert floordiv(k, 4) * 4 + mod(k, 4) == k
    assert floordiv(k, 24) == 0 and mod(k, 24) == k


def test_symbolic_extents_split_and_merge():
    i, j = variable(Var(0, s)), variable(Var(1, t))
    flat = i * t + j
    assert floordiv(flat, t) == i and mod(flat, t) == j
    assert floordiv(flat, s * t) == 0 and mod(flat, s * t) == flat
    k = variable(Var(2, s * t))
    assert floordiv(k, t) * t + mod(k, t) == k
    assert floordiv(k * 4, t * 4) == floordiv(k, t)


FORMS = {
    "constants are ints": (lambda: s - s, 0),
    "sum": (lambda: s + t + s, "2*s0 + s1"),
    "product": (lambda: (s + 1) * (s - 1), "s0*s0 - 1"),
    "exact division": (lambda: (s * t + t) // t, "s0 + 1"),
    "long division": (lambda: (s * s - 1) // (s + 1), "s0 - 1"),
    "remainder": (lambda: (s * t + t + 1) % t, 1),
    "remainder of a multiple": (lambda: of(Symbol("s3", 8, INF, 8)) % 4, 0),
    "minimum by range": (lambda: minimum(s, 3 * s), "s0"),
    "maximum with zero": (lambda: maximum(s - 2, 0), "s0 - 2"),
    "minimum stays": (lambda: minimum(s, t, 7), "min(7, s0, s1)"),
    "negative divisor": (lambda: s // -2, "(-s0)//2"),
    "power": (lambda: apply("pow", s, 3), "s0*s0*s0"),
    "shift": (lambda: apply("lshift", s, 3), "8*s0"),
    "mask": (lambda: apply("and", s, 7), "(s0 % 8)"),
}


@pytest.mark.parametrize("name", FORMS)
def test_form(name):
    make, want = FORMS[name]
    got = make()
    assert (got if isinstance(want, int) else repr(got)) == want


def test_what_ranges_prove():
    assert at_least(s * t - s, 2) and nonnegative(s - 2) and not nonnegative(s - 3)
    assert not nonnegative(s - t) and not nonnegative(u)
    i = Var(0, s)
    assert at_least(s - variable(i), 1)
    assert bounds(s * 3 + 1) == (7, INF) and bounds(u * u)[0] == 0


def test_coefficients():
    i, j = Var(0, s), Var(1, 8)
    ix = variable(i) * t * 2 + variable(j) * 3 + 5
    assert coefficient(ix, i) == 2 * t and coefficient(ix, j) == 3
    assert coefficient(ix * t + floordiv(variable(j), 3), j) is None
    assert substitute(ix, {i: 1, j: 2}) == 2 * t + 11


def test_equal_expressions_are_one_object():
    assert (s * t + 1) is (1 + t * s)


class Text:
    """An emitter whose output is Python again."""

    constant = leaf = staticmethod(repr)
    add = staticmethod(lambda a, b: f"({a} + {b})")
    mul = staticmethod(lambda a, b: f"({a} * {b})")
    floordiv = staticmethod(lambda a, b: f"({a} // {b})")
    mod = staticmethod(lambda a, b: f"({a} % {b})")
    minimum = staticmethod(lambda a, b: f"min({a}, {b})")
    maximum = staticmethod(lambda a, b: f"max({a}, {b})")


def _random(rng, depth):
    leaves = [s, t, u, variable(_X), 1, 3, -2]
    if depth == 0:
        leaf = rng.choice(leaves)
        return leaf, lambda env: evaluate(leaf, env)
    a, fa = _random(rng, depth - 1)
    b, fb = _random(rng, rng.randrange(depth))
    k = rng.choice([2, 3, 4, 6, -2, s, t, s * t, s + 1])
    fk = lambda env: evaluate(k, env)  # noqa: E731
    return rng.choice(
        [
            lambda: (a + b, lambda env: fa(env) + fb(env)),
            lambda: (a - b, lambda env: fa(env) - fb(env)),
            lambda: (a * b, lambda env: fa(env) * fb(env)),
            lambda: (floordiv(a, k), lambda env: fa(env) // fk(env)),
            lambda: (mod(a, k), lambda env: fa(env) % fk(env)),
            lambda: (minimum(a, b), lambda env: min(fa(env), fb(env))),
            lambda: (maximum(a, b), lambda env: max(fa(env), fb(env))),
        ]
    )()


_X = Var(3, 7)


@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(seed):
    rng = random.Random(seed)
    for _ in range(60):
        e, f = _random(rng, rng.randint(1, 5))
        lo, hi = bounds(e)
        for _ in range(4):
            env = {S: rng.randint(2, 12), T: rng.randint(2, 9), U: rng.randint(-5, 9), _X: rng.randint(0, 6)}
            want = f(env)
            assert evaluate(e, env) == want and lo <= want <= hi
            assert substitute(e, {k: v for k, v in env.items()}) == want
            names = {"s0": env[S], "s1": env[T], "u0": env[U], "i3": env[_X]}
            assert eval(repr(e), names) == want and eval(emit(e, Text), names) == want
            for least in (-3, 0, 2):
                assert not at_least(e, least) or want >= least


@pytest.mark.parametrize("size", [2**63, 2**126, -(2**63) - 1, np.uint64(2**63)])
def test_a_size_has_64_bits(size):
    with pytest.raises(ValueError, match="Overflow"):
        flambeau.Size([1, size])
    assert flambeau.Size([2**63 - 1, -(2**63)])[0] == 2**63 - 1
