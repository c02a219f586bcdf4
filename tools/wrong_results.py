"""What ``wrong_arguments.py`` compares of calls that both libraries take, dtypes, shapes, strides and values, and what differs by a rule."""

from __future__ import annotations

import numpy as np
import torch

import flambeau

# What their elements are isn't told by the arguments.
UNWRITTEN = ("empty", "resize", "set_")
OWN_CODE = (
    "object has no attribute",
    "unsupported operand",
    "not supported between",
    "object is not",
    "unhashable type",
)
NO_DIMENSION = ("Dimension specified as 0", "Dimension out of range", "tuple index out of range")
TOLERANCES = {
    torch.float16: 2e-2,
    torch.bfloat16: 1e-1,
    torch.float32: 2e-3,
    torch.complex64: 2e-3,
    torch.float64: 1e-6,
    torch.complex128: 1e-6,
}


def leaves(v) -> list:
    if isinstance(v, (list, tuple)):
        return [x for e in v for x in leaves(e)]
    return [v]


def strides(t):
    """Strides along dimensions that have several elements."""
    return [t.stride(k) for k, n in enumerate(t.shape) if n > 1] if t.numel() else []


def array(t):
    if t.layout not in (torch.strided, flambeau.strided) or t.device.type == "meta":
        return None
    t = t.detach().resolve_conj().resolve_neg()
    return (t.float() if t.dtype in (torch.bfloat16, flambeau.bfloat16) else t).numpy()


def close(a, b, rtol) -> bool:
    if a.dtype.kind not in "fc":
        return np.array_equal(a, b)
    with np.errstate(all="ignore"):
        scale = np.abs(a[np.isfinite(a)]).max(initial=0)
        return np.allclose(a, b, rtol=rtol, atol=rtol * max(float(scale) * 0.1, 1e-6), equal_nan=True)


def told(there, here) -> str:
    """What differs first between two results, by a word in front; "" where they agree."""
    a, b = leaves(there), leaves(here)
    if len(a) != len(b):
        return f"number: {len(a)} results there, {len(b)} here"
    for x, y in zip(a, b):
        if not isinstance(x, torch.Tensor):
            if (
                type(x).__name__ != type(y).__name__
                or isinstance(x, (int, float, complex, str, bool))
                and x != y
                and x == x
            ):
                return f"object: {x!r:.60} there, {y!r:.60} here"
            continue
        if not isinstance(y, flambeau.Tensor):
            return f"object: a tensor there, {type(y).__name__} here"
        for what, got in (
            ("dtype", lambda t: str(t.dtype)),
            ("shape", lambda t: list(t.shape)),
            ("device", lambda t: t.device.type),
        ):
            if got(x) != got(y):
                return f"{what}: {got(x)} there, {got(y)} here"
        first, second = array(x), array(y)
        if first is not None and not close(first, second, TOLERANCES.get(x.dtype, 0)):
            at = [k for k, (p, q) in enumerate(zip(first.flat, second.flat)) if not (p == q or p != p and q != q)][:4]
            return f"values: {first.reshape(-1)[at].tolist()} there, {second.reshape(-1)[at].tolist()} here"
        if strides(x) != strides(y):
            return f"strides: {tuple(x.shape)} {x.stride()} there, {y.stride()} here"
    return ""


def same(there, here) -> bool:
    return not told(there, here)


def difference(name, there, here, again, given) -> str:
    """What differs on behalf of the libraries: values that PyTorch itself gives otherwise in a second call aren't."""
    found = told(there, here)
    if not found.startswith("values"):
        return found
    if any(word in name for word in UNWRITTEN):
        return ""
    a, b = ([array(x) for x in leaves(v) if isinstance(x, torch.Tensor)] for v in (there, again))
    return found if all(x is None or np.array_equal(x, y, equal_nan=x.dtype.kind in "fc") for x, y in zip(a, b)) else ""


# Vectors of decompositions, which have no one sign or phase.
FACTORS = ("eig", "svd", "qr", "geqrf", "ldl", "lobpcg", "pca_lowrank")
# Which of equal elements is meant, and how rounding falls where it decides.
TIES = (
    "mode",
    "sort",
    "topk",
    "kthvalue",
    "median",
    "max",
    "min",
    "cond",
    "matrix_rank",
    "isclose",
    "unique",
    "pinv",
    "lstsq",
)


def known_result(name, found, given) -> str:
    """The rule of docs/reference/differences.md that explains it."""
    what = found.partition(":")[0]
    if "meta" in {t.device.type for t in tensors(given)} and what == "device":
        return "CPU and meta"
    if what == "values" and any(word in name for word in FACTORS):
        return "signs of factors"
    if what == "values" and any(word in name for word in TIES):
        return "ties"
    if what == "strides" and "lstsq" in name:
        return "strides of lstsq"
    return ""


def tensors(v):
    if isinstance(v, (list, tuple)):
        return [t for x in v for t in tensors(x)]
    return [v] if isinstance(v, torch.Tensor) else []


def known_refusal(name, there, here, given, changes) -> str:
    """The rule of docs/reference/differences.md that explains it."""
    devices = {t.device.type for t in tensors(given)}
    told = str(there[1])
    if devices == {"cpu", "meta"}:
        return "CPU and meta"
    if devices == {"meta"} and there[0] == "NotImplementedError":
        return "meta"
    if there[0] in ("AttributeError", "TypeError") and any(words in told for words in OWN_CODE):
        return "PyTorch's own Python code fails"
    if there[0] == "IndexError" and here[0] == "RuntimeError" and any(words in told for words in NO_DIMENSION):
        return "numbers of dimensions"
    if there[0] == "ok" and 0 in [t.numel() for t in tensors(given)]:
        return "without elements"
    if there[0] == "TypeError" and "must be tuple of ints, not int" in told:
        return "one size for several"
    if (there[0], here[0]) == ("NotImplementedError", "ok"):
        return "not implemented there"
    if there[0] == "ok" and "half precision" in str(here[1]):
        return "complex numbers of half precision"
    if "out" in told and here[0] == "ok" and "signal.windows" in name:
        return "windows take out="
    if "`-` operator, with a bool tensor" in told and here[0] == "ok":
        return "PyTorch's own Python code fails"
    if changes > 1 and "ok" not in (there[0], here[0]):
        return "two mistakes"
    return "MKL" if "MKL FFT" in told else ""
