"""The scalar table and what handlers make of bodies."""

import numpy as np
import pytest

import flambeau  # noqa: F401  (fills the table)
from flambeau.core import body as bodies
from flambeau.core.body import TABLE, Expr, Input, evaluate, substitute, topological, trace, vjp
from flambeau.eager.pointwise import NUMPY

DIFFERENTIABLE = [row for row in TABLE.values() if row.vjp is not None and row.kind in ("arith", "float")]
DOMAIN = {
    "log": (0.2, 3),
    "log2": (0.2, 3),
    "log1p": (-0.5, 3),
    "sqrt": (0.2, 3),
    "rsqrt": (0.2, 3),
    "reciprocal": (0.3, 3),
    "div": (0.3, 3),
    "pow": (0.3, 2),
    "tan": (-1, 1),
    "fmod": (0.3, 3),
    "remainder": (0.3, 3),
    "acosh": (1.2, 3),
    "asin": (-0.8, 0.8),
    "acos": (-0.8, 0.8),
    "atanh": (-0.8, 0.8),
    "lgamma": (0.5, 3),
    "digamma": (0.5, 3),
    "erfinv": (-0.8, 0.8),
    "log10": (0.2, 3),
    "ndtri": (0.05, 0.95),
}


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda r: r.name)
def test_vjp_is_the_derivative(row):
    rng = np.random.default_rng(0)
    lo, hi = DOMAIN.get(row.name, (-2, 2))
    xs = [rng.uniform(lo, hi, 50) for _ in range(row.arity)]
    names = [f"x{i}" for i in range(row.arity)]
    root, inputs = trace(lambda s, *a: getattr(s, row.name)(*a), [Input(n) for n in names])
    parts = vjp(root, [inputs[n] for n in names], Expr("input", ("ct",)))
    ct = rng.uniform(0.5, 2, 50)
    h = 1e-6
    for i, part in enumerate(parts):
        up = [x + h * (k == i) for k, x in enumerate(xs)]
        down = [x - h * (k == i) for k, x in enumerate(xs)]
        numeric = ct * (row.numpy(*up) - row.numpy(*down)) / (2 * h)
        if part is None:
            flat = np.mean(np.abs(numeric) < 1e-6)  # but for the steps that a difference may straddle
            assert flat > 0.9, f"{row.name} has no derivative in operand {i}, but is not flat"
            continue
        got = evaluate(part, {**dict(zip(names, xs)), "ct": ct}, NUMPY)
        smooth = np.abs(numeric) < 1e3  # not at a step of floor-like functions
        assert np.allclose(np.broadcast_to(got, ct.shape)[smooth], numeric[smooth], rtol=1e-4, atol=1e-5), row.name


def test_trace_shares_and_folds():
    def body(s, x, k):
        y = s.mul(x, k)
        return s.add(s.exp(y), s.mul(y, 1.0))

    root, inputs = trace(body, [Input("x"), 2.0])
    assert [n.op for n in topological(root)] == ["input", "mul", "exp", "add"]
    (g,) = vjp(root, [inputs["x"]], Expr("input", ("ct",)))
    x = np.linspace(-1, 1, 5)
    assert np.allclose(evaluate(g, {"x": x, "ct": np.ones(5)}, NUMPY), 2 * np.exp(2 * x) + 2)


def test_substitute_keeps_sharing():
    root, inputs = trace(lambda s, x: s.mul(s.tanh(x), s.tanh(x)), [Input("x")])
    new = substitute(root, inputs["x"], Expr("input", ("y",)))
    assert bodies.inputs_used(new) == ["y"]
    assert len(topological(new)) == len(topological(root))


def test_unknown_scalar_operation_names_the_table():
    with pytest.raises(AttributeError, match="scalars.py"):
        trace(lambda s, x: s.frobnicate(x), [Input("x")])


@pytest.mark.parametrize(
    "name,x,y,expected",
    [
        ("maximum", np.nan, 1.0, np.nan),
        ("minimum", 1.0, np.nan, np.nan),
        ("sign", np.nan, None, 0.0),
        ("abs", -0.0, None, 0.0),
        ("remainder", -3.0, 2.0, 1.0),
        ("fmod", -3.0, 2.0, -1.0),
        ("floordiv", -3.0, 2.0, -2.0),
        ("round", 2.5, None, 2.0),
    ],
)
def test_conventions(name, x, y, expected):
    args = [np.float64(x)] + ([np.float64(y)] if y is not None else [])
    assert np.array_equal(NUMPY.__getattr__(name)(*args), expected, equal_nan=True)


def test_gradient_is_halved_at_a_tie():
    root, inputs = trace(lambda s, x, y: s.maximum(x, y), [Input("x"), Input("y")])
    gx, gy = vjp(root, [inputs["x"], inputs["y"]], Expr("input", ("ct",)))
    env = {"x": np.array([1.0, 2.0]), "y": np.array([1.0, 1.0]), "ct": np.ones(2)}
    assert evaluate(gx, env, NUMPY).tolist() == [0.5, 1.0]
    assert evaluate(gy, env, NUMPY).tolist() == [0.5, 0.0]
