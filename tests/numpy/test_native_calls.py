"""Functions that graphs leave to NumPy are called natively (csrc/runtime/numpy_call.c): with the results, warnings and errors that NumPy has."""

import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.numpy import graph_calls, rewriting

CALLS = {
    "a ufunc": lambda a, v: np.hypot(a, a.T),
    "integers": lambda a, v: (a * 9).astype(int) << 1,
    "keywords": lambda a, v: np.argsort(v, kind="stable"),
    "a function behind which is a method": lambda a, v: (
        v.argsort()[:3],
        np.argsort(a, 0),
        np.searchsorted(np.sort(v), a, side="right"),
        np.argsort(a, None),
    ),
    "a named tuple": lambda a, v: np.linalg.eigh(a @ a.T + np.eye(4)),
    "a list": lambda a, v: np.gradient(a),
    "a scalar": lambda a, v: np.linalg.det(a + np.eye(4)) * 2,
    "arrays in a list": lambda a, v: np.select([v > 0.5, v > 0.2], [v, v * 2]),
    "complex": lambda a, v: np.fft.rfft(v),
    "two calls": lambda a, v: np.interp(np.diff(v), np.sort(v), v),
    "another order in memory": lambda a, v: np.linalg.inv(a + np.eye(4)).T,
}


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert type(got) is type(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    assert type(got) is type(want) and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


def no_python(*args):
    raise AssertionError("the call goes through Python")


@pytest.mark.parametrize("name", CALLS)
def test_results(name, monkeypatch):
    f = CALLS[name]
    compiled = torch.compile(f)
    monkeypatch.setattr(graph_calls, "run_telling", no_python)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, v = rng.random((4, 4)), rng.random(9)
        same(compiled(a, v), f(a, v))


WRITES = {
    "np.add.at": lambda a, i, v: np.add.at(a, i, 1.5),
    "of pairs": lambda a, i, v: np.subtract.at(a, (i, i[::-1]), 2),
    "by its own elements": lambda a, i, v: np.maximum.at(v, i, v[: len(i)]),
    "without an operand": lambda a, i, v: np.negative.at(v, i),
    "put": lambda a, i, v: np.put(a, i, v),
    "a method": lambda a, i, v: v.put(i, 7, mode="clip"),
    "place": lambda a, i, v: np.place(a, a > 0.5, v),
    "put_along_axis": lambda a, i, v: np.put_along_axis(a, i[:, None], 3, axis=1),
    "partition": lambda a, i, v: v.partition(3),
}


@pytest.mark.parametrize("layout", [lambda a: a, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]])
@pytest.mark.parametrize("name", WRITES)
def test_writes_by_index(name, layout, monkeypatch):
    f = WRITES[name]
    compiled = torch.compile(f)
    monkeypatch.setattr(graph_calls, "run_telling", no_python)
    monkeypatch.setattr(rewriting, "run_telling", no_python)
    for seed, dtype in enumerate(("f8", "f8", "f4")):
        rng = np.random.default_rng(seed)
        want = [layout(rng.random((4, 4)).astype(dtype)), np.array([0, 3, 3, 1]), layout(rng.random(9).astype(dtype))]
        got = [layout(x.copy()) if k != 1 else x for k, x in enumerate(want)]
        f(*want), compiled(*got)
        for w, g in zip(want, got):
            assert g.strides == w.strides
            np.testing.assert_array_equal(g, w)


def test_a_write_that_fails():
    def f(v, i):
        np.add.at(v, i, 1)

    compiled = torch.compile(f)
    v = np.zeros(4)
    compiled(v, np.array([1, 1]))
    np.testing.assert_array_equal(v, [0, 2, 0, 0])
    plain = v.copy()
    for fn, x in ((f, plain), (compiled, v)):
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4") as told:
            fn(x, np.array([0, 9]))
        assert told.traceback[-1].frame.code.name == "f"
    np.testing.assert_array_equal(v, plain)


def test_an_array_that_nobody_may_write():
    compiled = torch.compile(lambda v, i: v.put(i, 1))
    v = np.zeros(4)
    for _ in range(2):
        compiled(v, np.array([0, 1]))
    v.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(v, np.array([0, 1]))


def test_sizes_that_vary(monkeypatch):
    f = CALLS["a ufunc"]
    compiled = torch.compile(f, dynamic=True)
    monkeypatch.setattr(graph_calls, "run_telling", no_python)
    for n in (3, 5, 3, 8):
        a = np.random.default_rng(n).random((n, n))
        same(compiled(a, a), f(a, a))


def test_memory_that_numpy_shares():
    for f in (lambda v: np.linalg.matrix_power(v, 1), lambda v: np.linalg.matrix_power(v, 2)):
        compiled = torch.compile(f)
        a, b = np.eye(3), np.ones((3, 3))
        first, second = compiled(a), compiled(b)
        same(first, np.eye(3))
        assert np.shares_memory(first, a) == np.shares_memory(f(a), a) and not np.shares_memory(first, second)


@pytest.mark.parametrize("action", ["always", "error", "ignore"])
def test_warnings_are_the_program_s(action):
    def f(v):
        return np.polyfit(v * 0 + 1, v, 2)

    def told(fn):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter(action)
            try:
                fn(np.arange(7.0))
            except Warning as w:
                return type(w).__name__, str(w)
        return [(str(w.message), w.filename, w.lineno) for w in caught], len(warnings.filters)

    compiled = torch.compile(f)
    before = list(warnings.filters)
    assert [told(compiled), told(compiled)] == [told(f)] * 2
    assert warnings.filters == before


def test_errors_are_numpy_s():
    compiled = torch.compile(lambda a: np.linalg.inv(a))
    same(compiled(np.eye(3)), np.eye(3))
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        compiled(np.zeros((3, 3)))
