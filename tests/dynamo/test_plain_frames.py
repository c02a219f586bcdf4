"""Small functions of NumPy that serve themselves: as plain code does in every respect, and captured again for other arrays."""

import math
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
return float(v[0]) | return v.item(2) | return int(k[0, 1]) | return math.sqrt(v[n]) | return bool(m[n, 0]) | return complex(c[n]) | return float(a)
return float(v[n]) * x | y = int(k[n, n]); return v[y] | v[n] = float(w[0]) + x | return int(v[0]), float(u[1]) | return math.log(u[n] - 200)
return a.item(n, 1) | return float(r[n:n + 1][0]) | return float(x) + v[0] | return math.floor(x) + len(v) | return int(u[n]) << n | return float(f[n])
return a.shape | return len(v), a.ndim | return a.T | return a[:, n] | return v.flags.writeable | return m.nonzero() | return np.transpose(a)
v[:] = v[::-1] | a[n] = v | a[:, n] = v | a[1:3] = a[0:2] | k[n] = 7 | a[:] = a.T | return [y * 2 for y in v] | return [v[n], v[0]]
return v.item(0) | return v.argsort() | k.fill(3) | m.sort() | return m.nonzero() | return a.tolist() | v.fill(x) | return v.item(n)
return a.item() | return int(c[0]) | return abs(k[n, 0]) + int(k[0, 0]) | return float(v[0]) > x
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
    scope = {"np": np, "math": math}
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
    monkeypatch.setattr(
        "flambeau.dynamo.tracing.root_frame.plain_frame", lambda tx: found.append(asked(tx)) or found[-1]
    )

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


def test_numbers_of_elements(monkeypatch):
    """The part behind the break is plain too: it has to be of numbers, and all arrays have to be small."""
    found = []
    asked = plain_frames.plain_at_break
    monkeypatch.setattr(
        "flambeau.dynamo.tracing.root_frame.plain_at_break", lambda tx: found.append(asked(tx)) or found[-1]
    )

    def served(f, *args) -> bool:
        found.clear()
        expected = f(*args)
        np.testing.assert_array_equal(torch.compile(f)(*args), expected)
        return any(p is not None for p in found)

    v, large = np.arange(1.0, 6.0), np.arange(5000.0)
    assert served(lambda v: float(v[0]), v) and served(lambda v, n: math.sqrt(v[n]) + v.item(1), v, 2)
    assert not served(lambda v: float(v[0]), large)
    assert not served(lambda v, w: float(v[0]) * w, v, large)
    assert not served(lambda v: np.sin(v * float(v[0])), v)
    assert not served(lambda v: [float(x) for x in v], v)


def test_arguments_behind_the_break_are_guarded():
    def f(v, w):
        return float(v[0]) + w[1]

    compiled, v = torch.compile(f), np.arange(1.0, 6.0)
    for w in (v, np.arange(5000.0), torch.arange(3), [1, 2], v.astype("f4"), np.float64(1)):
        try:
            expected = f(v, w)
        except IndexError:
            with pytest.raises(IndexError):
                compiled(v, w)
            continue
        made = compiled(v, w)
        assert type(made) is type(expected) and made == expected


def test_names_of_the_program_come_first():
    """What looks at arrays asks nothing of the process, but who its globals are."""
    scope = {}
    exec("def f(v): return len(v), v.shape\ndef g(v): return float(v[0])", scope)
    f, g, v = torch.compile(scope["f"]), torch.compile(scope["g"]), np.arange(3.0)
    for _ in range(2):
        assert f(v) == (3, (3,)) and g(v) == 0.0
    with np.errstate(all="raise"), torch.no_grad():
        assert f(v) == (3, (3,)) and g(v) == 0.0
    scope["len"] = scope["float"] = lambda x: "mine"
    assert f(v) == ("mine", (3,)) and g(v) == "mine"
    del scope["len"], scope["float"]
    assert f(v) == (3, (3,)) and g(v) == 0.0


def test_states_that_are_looked_at_are_asked():
    def f(v):
        return v.shape[0] if torch.is_grad_enabled() else -1

    def g(v):
        return len(v), torch.get_default_dtype()

    def h(v):
        return v.T, np.geterr()["divide"]

    f, g, h, v = torch.compile(f), torch.compile(g), torch.compile(h), np.arange(3.0)
    assert f(v) == 3 and g(v) == (3, torch.float32) and h(v)[1] == "warn"
    torch.set_default_dtype(torch.float64)
    try:
        with torch.no_grad(), np.errstate(divide="ignore"):
            assert f(v) == -1 and g(v) == (3, torch.float64) and h(v)[1] == "ignore"
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "source", ["v[n] = x", "return float(v[3])", "return v.T", "return len(v), v[0]", "v.sort()", "return v[n] + v[0]"]
)
def test_one_variant_for_all_small_sizes(source):
    scope = {}
    exec(compile(f"def f(v, n, x):\n    {source}\n", "<program>", "exec"), scope)
    f = scope["f"]
    compiled = torch.compile(f)
    before = torch._dynamo.utils.counters["frames"]["ok"]
    sizes = (5, 9, 2, 256, 31, 4, 0, 1, 2000, 7)
    for k in sizes * 2:
        for step in (1, -2):
            a, b = np.arange(0.0, 2 * k)[::step][:k], np.arange(0.0, 2 * k)[::step][:k]
            results = []
            for g, array in ((f, a), (compiled, b)):
                try:
                    results.append(repr(g(array, 1, 0.5)))
                except IndexError as e:
                    results.append(repr(e))
            assert results[0] == results[1], (k, step)
            np.testing.assert_array_equal(a, b)
    # A variant for the first, one for all small ones, and for large ones one of a size and one of all.
    assert torch._dynamo.utils.counters["frames"]["ok"] - before <= 4


def test_results_of_loops_are_arrays_of_their_own():
    """The number's array of one call serves the next, unless somebody has it."""

    def f(a):
        c = 0
        for v in a:
            c += int(v) & 1
        return c, np.asarray(c)

    compiled = torch.compile(f)
    held = []
    for k in range(40):
        a = np.arange(k)
        held.append((compiled(a), f(a)))
    for made, expected in held:
        assert made == expected and type(made[0]) is int


def test_loops_that_were_short(monkeypatch):
    """Calls after a short one keep the GIL; a long one among them gives it back, and other threads go on."""
    import threading

    def f(a, n):
        c = 0
        for _ in range(n):
            for v in a:
                c = (c * 31 + int(v)) & 0xFFFF
        return c

    compiled, a = torch.compile(f), np.arange(8)
    for _ in range(300):
        assert compiled(a, 3) == f(a, 3)
    went_on = threading.Event()
    thread = threading.Thread(target=went_on.set)
    thread.start()
    assert compiled(a, 2000) == f(a, 2000)
    thread.join()
    assert went_on.is_set()
