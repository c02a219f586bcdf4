"""``torch.testing.assert_close`` and ``torch.testing.make_tensor``, with PyTorch's semantics."""

from __future__ import annotations

import collections.abc
import math

import numpy as np

from .. import _C
from ..base import dtypes
from ..core.conversion import as_tensor
from ..core.device_memory import on_device
from ..core.operator import namespace

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

aten = namespace("aten")
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


class _Mismatch(AssertionError):
    pass


def _default(*kinds):
    found = [_TOLERANCES.get(k.name, (0.0, 0.0)) for k in kinds]
    return max(r for r, _ in found), max(a for _, a in found)


def _number_kind(x):
    return dtypes.complex128 if isinstance(x, complex) else dtypes.float64 if isinstance(x, float) else dtypes.int64


def _wide(t):
    """The elements as an array in which differences can be taken."""
    a = t.detach().numpy(force=True)
    return a.astype(np.float64) if a.dtype.kind in "V" or t.dtype.name in ("float16", "bfloat16", "float32") else a


def _differences(a, b):
    """(absolute, relative) differences; integers exactly."""
    if a.dtype.kind in "bui" and a.dtype.itemsize == 8:
        gap = np.abs(a.astype(object) - b.astype(object)).astype(np.float64)
    elif a.dtype.kind in "bui":
        gap = np.abs(a.astype(np.int64) - b.astype(np.int64))
    else:
        gap = np.abs(a - b)
    with np.errstate(all="ignore"):
        return gap, gap / np.abs(b)


def _report(what, equal, count, total, absolute, relative, at, rtol, atol):
    lines = [f"{what} are not {'equal' if equal else 'close'}!", ""]
    lines.append(f"Mismatched elements: {count} / {total} ({count / total:.1%})")
    for name, value, index, allowed in (("absolute", absolute, at[0], atol), ("relative", relative, at[1], rtol)):
        where = f" at index {index}" if index is not None else ""
        lines.append(f"Greatest {name} difference: {value}{where}" + ("" if equal else f" (up to {allowed} allowed)"))
    return "\n".join(lines)


def _compare_tensors(a, b, o):
    if tuple(a.shape) != tuple(b.shape):
        raise _Mismatch(f"The values for attribute 'shape' do not match: {a.shape} != {b.shape}.")
    if o["check_layout"] and a.layout is not b.layout:
        raise _Mismatch(f"The values for attribute 'layout' do not match: {a.layout} != {b.layout}.")
    if o["check_device"] and a.device != b.device:
        raise _Mismatch(f"The values for attribute 'device' do not match: {a.device} != {b.device}.")
    if o["check_dtype"] and a.dtype is not b.dtype:
        raise _Mismatch(f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}.")
    if o["check_stride"] and a.stride() != b.stride():
        raise _Mismatch(f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}.")
    a, b = (x.resolve_conj().resolve_neg() if not x._has_data else x for x in (a, b))
    a, b = (x.detach().cpu() if on_device(x) else x for x in (a, b))
    if not a._has_data or not b._has_data:
        raise NotImplementedError("comparing tensors without data (meta) is not possible")
    rtol, atol = (o["rtol"], o["atol"]) if o["rtol"] is not None else _default(a.dtype, b.dtype)
    if a.dtype is not b.dtype:
        kind = dtypes.promote_types(a.dtype, b.dtype)
        a, b = a.to(kind), b.to(kind)
    x, y = _wide(a), _wide(b)
    if x.dtype.kind in "bui":
        near = (
            (x == y) if not rtol and not atol else _differences(x, y)[0] <= atol + rtol * np.abs(y.astype(np.float64))
        )
    else:
        with np.errstate(all="ignore"):
            near = (x == y) | (np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y)))
        if o["equal_nan"]:
            near |= np.isnan(x) & np.isnan(y)
    if np.all(near):
        return
    wrong = ~np.asarray(near)
    gap, ratio = _differences(x, y)
    gap, ratio = np.where(wrong, gap, 0), np.where(wrong, ratio, 0)
    places = [np.unravel_index(int(np.argmax(np.where(np.isnan(v), np.inf, v))), v.shape) for v in (gap, ratio)]
    values = [v[p].item() for v, p in zip((gap, ratio), places)]
    at = [tuple(int(k) for k in p) for p in places]
    equal = not rtol and not atol
    if x.ndim == 0:
        raise _Mismatch(_scalars(x.item(), y.item(), values[0], values[1], rtol, atol))
    raise _Mismatch(_report("Tensor-likes", equal, int(wrong.sum()), wrong.size, *values, at, rtol, atol))


def _scalars(a, b, gap, ratio, rtol, atol):
    if not rtol and not atol:
        return f"Scalars are not equal!\n\nExpected {b} but got {a}.\nAbsolute difference: {gap}\nRelative difference: {ratio}"
    return (
        f"Scalars are not close!\n\nExpected {b} but got {a}.\nAbsolute difference: {gap} (up to {atol} allowed)\n"
        f"Relative difference: {ratio} (up to {rtol} allowed)"
    )


def _compare_numbers(a, b, o):
    if o["check_dtype"] and type(a) is not type(b):
        raise _Mismatch(f"The (d)types do not match: {type(a)} != {type(b)}.")
    rtol, atol = (o["rtol"], o["atol"]) if o["rtol"] is not None else _default(_number_kind(a), _number_kind(b))
    if o["equal_nan"] and a != a and b != b:
        return
    if a == b:
        return
    gap = abs(a - b)
    if math.isfinite(gap) and gap <= atol + rtol * abs(b):
        return
    raise _Mismatch(_scalars(a, b, gap, gap / abs(b) if b else math.inf, rtol, atol))


def _is_sequence(x):
    return isinstance(x, collections.abc.Sequence) and not isinstance(x, str)


def _compare(a, b, o, path):
    try:
        if _is_sequence(a) and _is_sequence(b):
            if len(a) != len(b):
                raise _Mismatch(f"The length of the sequences mismatch: {len(a)} != {len(b)}")
            for k, (x, y) in enumerate(zip(a, b)):
                _compare(x, y, o, (*path, k))
        elif isinstance(a, collections.abc.Mapping) and isinstance(b, collections.abc.Mapping):
            if set(a) != set(b):
                missing, more = sorted(set(b) - set(a), key=str), sorted(set(a) - set(b), key=str)
                raise _Mismatch(
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {missing}\nAdditional keys in the actual mapping: {more}"
                )
            for k in a:
                _compare(a[k], b[k], o, (*path, k))
        elif a is None or b is None:
            if a is not b:
                raise _Mismatch(f"None mismatch: {a} is not {b}")
        elif isinstance(a, bool | np.bool_) and isinstance(b, bool | np.bool_):
            if bool(a) is not bool(b):
                raise _Mismatch(f"Booleans mismatch: {a} is not {b}")
        elif _is_number(a) and _is_number(b):
            _compare_numbers(a, b, o)
        else:
            _compare_arrays(a, b, o)
    except _Mismatch as e:
        if e.args and len(e.args) == 1:
            raise _Mismatch(e.args[0], path) from None
        raise


def _is_number(x):
    return isinstance(x, (int, float, complex, np.number)) and not isinstance(x, bool)


def _compare_arrays(a, b, o):
    related = isinstance(a, type(b)) or isinstance(b, type(a))
    if (
        not related
        or not isinstance(a, (_C.TensorBase, np.ndarray))
        or (not o["allow_subclasses"] and type(a) is not type(b))
    ):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.")
    _compare_tensors(*(x if isinstance(x, _C.TensorBase) else as_tensor(x) for x in (a, b)), o)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """AssertionError unless tensors, arrays, numbers, or sequences and mappings of them agree: ``abs(actual - expected) <= atol + rtol *
    abs(expected)``. Tolerances follow from the dtype when neither is given. ``msg``: the text of the error, or a function of the usual one.
    ValueError when only one tolerance is given, TypeError for objects that can't be compared."""
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or unspecified, but got no {'rtol' if rtol is None else 'atol'} while the other was."
        )
    options = {
        "allow_subclasses": allow_subclasses,
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
    }
    try:
        _compare(actual, expected, options, ())
    except _Mismatch as e:
        text, path = e.args[0], e.args[1] if len(e.args) > 1 else ()
        if path:
            text += "\n\nThe failure occurred for item " + "".join(f"[{k!r}]" for k in path)
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """:func:`assert_close` without looking at dtypes, devices and strides (deprecated in PyTorch)."""
    if rtol is None and atol is None and isinstance(actual, _C.TensorBase):
        rtol, atol = _default(actual.dtype)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=True,
        check_dtype=False,
        msg=msg or None,
    )


def make_tensor(
    *shape,
    dtype,
    device="cpu",
    low=None,
    high=None,
    requires_grad=False,
    noncontiguous=False,
    exclude_zero=False,
    memory_format=None,
):
    """A tensor of random elements in [low, high), by default -9 to 9 (0 to 9 for unsigned integers, both values for bool). ValueError when ``low``
    isn't below ``high`` or a number is nan, or a gradient is asked of integers."""
    if len(shape) == 1 and isinstance(shape[0], collections.abc.Sequence):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    if requires_grad and dtype.category < 2:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype}"
        )
    if dtype is dtypes.bool_:
        low, high = 0 if low is None else low, 2 if high is None else high
    elif dtype.category == 1:
        info = dtypes.iinfo(dtype)
        low = (0 if info.min == 0 else -9) if low is None else max(low, info.min)
        high = 10 if high is None else min(high, info.max)
    else:
        low, high = -9.0 if low is None else low, 9.0 if high is None else high
    if any(isinstance(x, float) and math.isnan(x) for x in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={low} and high={high}")
    if low > high or (low == high and dtype.category < 2):
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    size = list(shape)
    if noncontiguous and size:
        size = [*size[:-1], 2 * size[-1]]
    if dtype.category < 2:
        wide = aten.randint.low(math.floor(low), math.ceil(high), size, dtype=dtypes.int64)
        out = aten._to_copy.default(wide, dtype=dtype)
    else:
        real = dtype.to_real()
        compute = dtypes.float32 if real.itemsize == 2 else real

        def draw():
            u = aten.rand.default(size, dtype=compute)
            return aten.add.Tensor(aten.mul.Tensor(u, high - low), low)

        out = aten.complex.default(draw(), draw()) if dtype.is_complex else aten._to_copy.default(draw(), dtype=dtype)
    if noncontiguous and size:
        out = aten.slice.Tensor(out, -1, 0, None, 2)
    if memory_format is not None:
        out = aten.clone.default(out, memory_format=memory_format)
    if exclude_zero:
        tiny = 1 if dtype.category < 2 else dtypes.finfo(dtype).tiny
        aten.copy_.default(out, aten.masked_fill.Scalar(out, aten.eq.Scalar(out, 0), tiny))
    out = out if str(device) == "cpu" else out.to(device)
    return out.requires_grad_(requires_grad)
