"""What a function on NumPy arrays does, plainly and captured: results, what it wrote into its arguments, its error."""

import copy
import warnings

import numpy as np
from numpy.lib.array_utils import byte_bounds

import flambeau as torch

BACKENDS = ("eager", "inductor")


def described(x):
    """A value as something that compares equal for equal values: class, dtype, shape and memory order of arrays, and what is exact in them."""
    if isinstance(x, (np.ndarray, np.generic)):
        a = np.asarray(x)
        text = a.tolist() if a.dtype.kind not in "fc" else None
        return (
            "scalar" if isinstance(x, np.generic) else type(x).__name__,
            a.dtype,
            a.shape,
            str(text),
            a.flags.writeable,
            a.flags.c_contiguous,
            a.flags.f_contiguous,
        )
    if isinstance(x, (tuple, list)):
        return type(x).__name__, [described(v) for v in x]
    if isinstance(x, dict):
        return {k: described(v) for k, v in x.items()}
    return type(x).__name__, repr(x)


def numbers(x):
    """The floating-point contents, in order."""
    if isinstance(x, (np.ndarray, np.generic)):
        return [np.asarray(x)] if np.asarray(x).dtype.kind in "fc" else []
    if isinstance(x, dict):
        x = list(x.values())
    return [a for v in x for a in numbers(v)] if isinstance(x, (tuple, list)) else []


def cloned(a):
    """An argument of its own memory, arrays with the same strides and flags."""
    if not isinstance(a, np.ndarray):
        return copy.deepcopy(a)
    low, high = byte_bounds(a)
    memory = np.zeros(high - low, np.uint8)
    made = np.ndarray(a.shape, a.dtype, memory, a.__array_interface__["data"][0] - low if a.size else 0, a.strides)
    made[...] = a
    made.flags.writeable = a.flags.writeable
    return made


def outcome(f, args):
    """(result or None, arguments afterwards, error as text)"""
    args = tuple(map(cloned, args))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            made = f(*args)
            return (made, shared(made, args)), args, None
        except Exception as e:
            return None, args, f"{type(e).__name__}: {e}"


def is_defined(f, args):
    """Whether a plain call makes no integer of nan or infinity, for which each processor has a number of its own."""
    with warnings.catch_warnings(), np.errstate(all="ignore", invalid="raise"):
        warnings.simplefilter("ignore")
        try:
            f(*map(cloned, args))
        except Exception as e:
            return "in cast" not in str(e)
    return True


def shared(x, args):
    """Which arguments the arrays of a result are, or share memory with."""
    if isinstance(x, np.ndarray):
        return [(x is a) + np.shares_memory(x, a) for a in args if isinstance(a, np.ndarray)]
    if isinstance(x, dict):
        x = list(x.values())
    return [s for v in x for s in shared(v, args)] if isinstance(x, (tuple, list)) else []


def close(got, want):
    if want.size == 0:
        return True
    eps = {2: 2e-3, 4: 2e-5, 8: 1e-9, 16: 1e-9}.get(want.dtype.itemsize // (2 if want.dtype.kind == "c" else 1), 1e-9)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(want[np.isfinite(want)]), initial=0.0)
        return np.allclose(got, want, rtol=eps, atol=eps * max(float(scale), 1e-300), equal_nan=True)


def difference(f, args, backend="eager", calls=2):
    """How captured calls differ from a plain one, as text; empty when they don't."""
    want = outcome(f, args)
    torch._dynamo.reset()
    captured = torch.compile(f, backend=backend)
    for _ in range(calls):
        got = outcome(captured, args)
        if got[2] != want[2]:
            return f"error {got[2]!r} instead of {want[2]!r}"
        for name, g, w in (("result", got[0], want[0]), ("arguments", got[1], want[1])):
            if described(g) != described(w):
                return f"{name} {g!r} instead of {w!r}"
            if not all(map(close, numbers(g), numbers(w))):
                return f"{name} {g!r} instead of {w!r}"
    return ""
