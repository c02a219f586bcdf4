"""Programs that run plainly and compiled and must do the same: ``agree(prog)`` runs ``prog(C, torch)`` with ``C`` the identity, then with
``C`` compiling for each backend, and compares what it returns and prints."""

import contextlib
import io
import random
import warnings

import numpy as np

import flambeau as torch
from flambeau import _frame
from flambeau.compiler import compile, reset

BACKENDS = ("eager", "aot_eager", "inductor")


def snapshot(x, depth=0):
    """A comparable copy of an observation."""
    if isinstance(x, torch.Tensor):
        d = x.detach()
        return (
            "tensor",
            str(d.dtype),
            tuple(d.shape),
            np.array(d.numpy(), copy=True),
            x.requires_grad,
            type(x).__name__,
        )
    if isinstance(x, np.ndarray):
        return ("array", str(x.dtype), x.shape, np.array(x, copy=True))
    if isinstance(x, BaseException):
        return (type(x).__name__, str(x))
    if isinstance(x, (list, tuple)):
        return (type(x).__name__, [snapshot(v, depth + 1) for v in x])
    if isinstance(x, (set, frozenset)):
        return (type(x).__name__, sorted(map(repr, x)))
    if isinstance(x, dict):
        return (type(x).__name__, [(snapshot(k, depth + 1), snapshot(v, depth + 1)) for k, v in x.items()])
    if hasattr(x, "__dict__") and depth < 6 and not isinstance(x, type) and not callable(x):
        return (type(x).__name__, snapshot(vars(x), depth + 1))
    return (type(x).__name__, repr(x) if isinstance(x, (int, float, complex, str, bytes, bool, type(None))) else "")


def differ(a, b, path=""):
    """None, or where two snapshots differ."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        same = (
            np.allclose(a, b, rtol=2e-4, atol=1e-5, equal_nan=True)
            if a.dtype.kind in "fc" and a.shape == b.shape
            else np.array_equal(a, b)
        )
        return None if same else f"{path}: {a!r} != {b!r}"
    if type(a) is not type(b):
        return f"{path}: {a!r} != {b!r}"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{path}: {a!r} != {b!r}"
        return next((d for i, (x, y) in enumerate(zip(a, b)) if (d := differ(x, y, f"{path}[{i}]"))), None)
    return None if a == b else f"{path}: {a!r} != {b!r}"


def attempt(fn, *args, **kwargs):
    """The value, or the error's type and text."""
    try:
        return fn(*args, **kwargs)
    except Exception as e:
        return ("error", type(e).__name__, str(e))


def outcome(prog, C):
    reset()
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    printed = io.StringIO()
    old = _frame.set_strict_guards(True)
    try:
        with warnings.catch_warnings(record=True) as seen, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            out = attempt(prog, C, torch)
    finally:
        _frame.set_strict_guards(old)
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
    internal = [
        str(w.message) for w in seen if "inside the compiler" in str(w.message) or "very call" in str(w.message)
    ]
    return [snapshot(out), printed.getvalue()], internal


def agree(prog, backends=BACKENDS):
    want, _ = outcome(prog, lambda f=None, **k: (lambda g: g) if f is None else f)
    assert want[0][:1] != ("tuple",) or want[0][1][0][1] != "'error'", f"the program itself fails: {want[0]}"
    for backend in backends:

        def C(f=None, *, backend=backend, **k):
            return (lambda g: compile(g, backend=backend, **k)) if f is None else compile(f, backend=backend, **k)

        got, internal = outcome(prog, C)
        where = differ(want, got)
        assert where is None, f"{backend}: plain != compiled at {where}"
        assert not internal, f"{backend}: {internal[0]}"


def graphs_of(prog) -> int:
    """How many graphs the program is captured in."""
    graphs = []

    def backend(gm, inputs):
        graphs.append(gm)
        return gm.forward

    outcome(prog, lambda f, **k: compile(f, backend=backend, **k))
    return len(graphs)


def X():
    return torch.tensor([1.0, 2.0])


def changed(C, fn, change, *args, again=None):
    """fn before the change, after it, and once more."""
    f = C(fn)
    out = [attempt(f, X(), *args), attempt(f, X(), *args)]
    change()
    out += [attempt(f, X(), *args), attempt(f, X(), *args)]
    if again is not None:
        again()
        out.append(attempt(f, X(), *args))
    return out
