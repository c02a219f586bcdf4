"""Small functions of NumPy that serve themselves: as plain code does in every respect, and captured again for other arrays."""

import traceback
import warnings

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.graph import plain_frames

PROGRAMS = """
v[n] = x | v[0] = 0.5 | v[-1] = x | v[n] += x | v[0], v[1] = v[1], v[0] | a[n, n] = x | a[1, 2] = 0.5 | a[n, -1] += x | a[1][2] = x | k[n, n] += 1
k[0, 1] = 3 | k[0, 0] = x | m[n, n] = True | f[n] = x | f[n] *= x | c[n] = x | r[0] = 1.0 | v.sort() | a.sort(axis=0) | v.fill(x) | k.fill(x)
v.put(i, x) | np.put(v, i, x) | np.place(a, m, x) | v.partition(3) | np.maximum.at(v, i, w) | np.subtract.at(v, i, x) | return v.argsort()
return v[i] | return a[i] | return np.interp(v, w, w) | return np.hypot(a, a) | return k << 1 | return np.convolve(v, w) | return v[0] * x
return v[0] + v[n] | return np.sqrt(v[0]) | return np.append(v, x) | return np.digitize(v, np.sort(w)) | v[n] = x; return v[n] | return v[n] / x
a.flat[3] = x | a.ravel()[3] = x | v[n] = v[n + 1] | return np.add.outer(v, w) | v[n] = w | k[n] = w | u[n] = x | return u[0] + u[1] | u[0] += u[1]
"""


def arrays(n: int) -> dict:
    g = np.random.default_rng(n)
    a, r = g.random((n, n)), g.random(n)
    r.flags.writeable = False
    u = np.full(n, 200, np.uint8)
    return dict(
        a=a, v=g.random(n), w=np.sort(g.random(n)), m=a > 0.5, k=g.integers(0, 9, (n, n)), f=a[0].astype("f4"), c=a[0] + 1j, r=r, u=u,
        i=g.permutation(n),
    )  # fmt: skip


def told(f, given: dict, n, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = repr(f(n=n, x=x, **given))
        except Exception as e:
            frames = [(s.name, s.lineno, s.line) for s in traceback.extract_tb(e.__traceback__) if s.name == "f"]
            result = repr(e), frames
    return (
        result,
        [(str(w.message), w.lineno) for w in caught],
        {name: (a.tobytes(), a.strides) for name, a in given.items()},
    )


@pytest.mark.parametrize("source", [s for row in PROGRAMS.strip().splitlines() for s in row.split(" | ")])
def test_as_plainly(source):
    scope = {"np": np}
    exec(compile(f"def f(a, v, w, m, k, f, c, r, u, i, n, x):\n    {source}\n", "<program>", "exec"), scope)
    compiled = torch.compile(scope["f"])
    for size in (6, 6, 9, 40, 6):
        for n, x in (
            (2, 0.25),
            (3, 0.5),
            (-1, 3),
            (99, 0.25),
            (1, 1e300),
            (2, float("nan")),
            (2, 2**70),
            (2, True),
            (1, np.float64(2)),
            (2, 1j),
            (0, "x"),
        ):
            assert told(compiled, arrays(size), n, x) == told(scope["f"], arrays(size), n, x), (size, n, x)


@pytest.mark.parametrize("value", [[1.0] * 6, np.arange(6), slice(1, 3), None])
def test_other_arguments_after_numbers(value):
    def f(v, n, x):
        v[n] = x

    compiled = torch.compile(f)
    for n, x in ((1, 0.5), (value, 0.5), (slice(None), value), (2, 0.25)):
        v, w = np.zeros(6), np.zeros(6)
        results = []
        for g, a in ((f, v), (compiled, w)):
            try:
                results.append(g(a, n, x))
            except (TypeError, ValueError, IndexError) as e:
                results.append(repr(e))
        assert results[0] == results[1]
        np.testing.assert_array_equal(v, w)


def test_tensors_after_arrays():
    def f(v, n, x):
        v[n] = x

    compiled = torch.compile(f)
    compiled(np.zeros(4), 1, 2.0)
    t = torch.zeros(4, requires_grad=True) * 1
    compiled(t, 1, 2.0)
    assert t.tolist() == [0.0, 2.0, 0.0, 0.0] and t.grad_fn is not None


def test_what_serves_itself(monkeypatch):
    """Only small calls on arrays of a known size, and by the compiler whose launches cost more."""
    found = []
    asked = plain_frames.plain_frame
    monkeypatch.setattr("flambeau.dynamo.tracing.executor.plain_frame", lambda tx: found.append(asked(tx)) or found[-1])

    def served(f, *args, **options) -> bool:
        found.clear()
        torch.compile(f, **options)(*args)
        return any(p is not None for p in found)

    def store(v, n):
        v[n] = 1.0

    def in_turn(v):
        v.sort()

    assert served(store, np.zeros(5), 1) and served(in_turn, np.zeros(5))
    assert not served(in_turn, np.zeros(5000))
    assert not served(store, torch.zeros(5), 1)
    assert not served(in_turn, np.zeros(6), backend="eager")
    assert not served(lambda v: v * 2 + 1, np.zeros(5))
    with torch._dynamo.config.patch(small_arrays_plainly=False):
        torch._dynamo.reset()
        assert not served(in_turn, np.zeros(5))
