"""The table: NumPy callables, ndarray methods, attributes and operators as functions on tensors.

A function raises TypeError for what it does not cover (dtypes that NumPy treats specially, ``out=``, ``where=``): the piece then runs
in NumPy.
"""

from __future__ import annotations

import builtins

import numpy as np

from flambeau.base.dtypes import from_numpy as from_numpy_dtype
from flambeau.core import operator as registry
from flambeau.dynamo import numpy_bridge as bridge

from .promotion import as_tensor, cast, dtype_of, floating, is_tensor, result_dtype

__all__ = ["stack"]

aten = registry.namespace("aten")


def _named(fn, name):
    fn.__name__ = fn.__qualname__ = name
    return fn


# -- elementwise, one argument --


def _float_unary(name: str, method: str):
    def impl(x, /):
        return getattr(floating(x), method)()

    return _named(impl, name)


def _same_unary(name: str, method: str):
    def impl(x, /):
        t = as_tensor(x)
        if dtype_of(t).kind == "b" and name in ("negative", "sign", "positive"):
            raise TypeError(f"np.{name} of booleans")
        if dtype_of(t).kind in "iu" and name in ("reciprocal",):
            raise TypeError(f"np.{name} of integers")
        if dtype_of(t).kind in "iub" and name in ("floor", "ceil", "trunc", "rint", "round"):
            return t.clone()
        return getattr(t, method)()

    return _named(impl, name)


for _name, _method in {
    "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sqrt": "sqrt",
}.items():  # fmt: skip
    bridge.register(getattr(np, _name), _float_unary(_name, _method))

for _name, _method in {
    "negative": "neg", "absolute": "abs", "fabs": "abs", "sign": "sign", "square": "square", "reciprocal": "reciprocal", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "rint": "round", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "logical_not": "logical_not", "invert": "bitwise_not",
}.items():  # fmt: skip
    bridge.register(getattr(np, _name), _same_unary(_name, _method))


# -- elementwise, two arguments --


def _operand(x, dtype: np.dtype):
    """A number stays one (its value takes part in ``dtype``), a tensor is cast."""
    return cast(x, dtype) if is_tensor(x) else dtype.type(x).item()


def _binary(name: str, method: str, *, true_division=False, integers=True, booleans=True):
    def impl(a, b, /):
        dtype = result_dtype(a, b)
        if dtype.kind not in "biufc" or (dtype.kind in "fc" and dtype.itemsize not in (4, 8, 16)):
            raise TypeError(f"np.{name} in {dtype}")
        if true_division and dtype.kind in "biu":
            dtype = np.dtype(np.float64)
        if (dtype.kind in "iu" and not integers) or (dtype.kind == "b" and not booleans):
            raise TypeError(f"np.{name} in {dtype}")
        if not is_tensor(a):
            a = as_tensor(a, dtype)
        return getattr(cast(a, dtype), method)(_operand(b, dtype))

    return _named(impl, name)


add = _binary("add", "add")
subtract = _binary("subtract", "sub", booleans=False)
multiply = _binary("multiply", "mul")
divide = _binary("divide", "div", true_division=True)
floor_divide = _binary("floor_divide", "floor_divide", integers=False, booleans=False)
remainder = _binary("remainder", "remainder", integers=False, booleans=False)
power = _binary("power", "pow", integers=False, booleans=False)


def _two_tensors(name: str, method: str):
    inner = _binary(name, method)

    def impl(a, b, /):
        dtype = result_dtype(a, b)
        return inner(as_tensor(a, dtype), as_tensor(b, dtype))

    return _named(impl, name)


maximum, minimum = _two_tensors("maximum", "maximum"), _two_tensors("minimum", "minimum")


def _compare(name: str, method: str):
    def impl(a, b, /):
        dtype = result_dtype(a, b)
        if not is_tensor(a):
            a = as_tensor(a, dtype)
        return getattr(cast(a, dtype), method)(_operand(b, dtype))

    return _named(impl, name)


def _bits(name: str, method: str):
    def impl(a, b, /):
        dtype = result_dtype(a, b)
        if dtype.kind not in "biu":
            raise TypeError(f"np.{name} in {dtype}")
        return getattr(as_tensor(a, dtype), method)(as_tensor(b, dtype))

    return _named(impl, name)


def matmul(a, b, /):
    dtype = result_dtype(a, b)
    if dtype.kind not in "fc":
        raise TypeError(f"np.matmul in {dtype}")
    return cast(a, dtype).matmul(cast(b, dtype))


equal, not_equal = _compare("equal", "eq"), _compare("not_equal", "ne")
less, less_equal = _compare("less", "lt"), _compare("less_equal", "le")
greater, greater_equal = _compare("greater", "gt"), _compare("greater_equal", "ge")
bitwise_and, bitwise_or, bitwise_xor = (
    _bits("bitwise_and", "bitwise_and"),
    _bits("bitwise_or", "bitwise_or"),
    _bits("bitwise_xor", "bitwise_xor"),
)

for _f in (
    add, subtract, multiply, divide, floor_divide, remainder, power, maximum, minimum, matmul, equal, not_equal, less, less_equal,
    greater, greater_equal, bitwise_and, bitwise_or, bitwise_xor,
):  # fmt: skip
    bridge.register(getattr(np, _f.__name__), _f)
for _name in ("logical_and", "logical_or", "logical_xor"):
    bridge.register(getattr(np, _name), _named(lambda a, b, /, _m=_name: getattr(as_tensor(a), _m)(as_tensor(b)), _name))
for _op, _f in {
    "add": add, "sub": subtract, "mul": multiply, "truediv": divide, "floordiv": floor_divide, "mod": remainder, "pow": power,
    "matmul": matmul,
    "eq": equal, "ne": not_equal, "lt": less, "le": less_equal, "gt": greater, "ge": greater_equal, "and_": bitwise_and, "or_": bitwise_or,
    "xor": bitwise_xor,
}.items():  # fmt: skip
    bridge.register_operator(_op, _f)


# -- reductions --


def _axes(x, axis) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    out = [int(a) + x.ndim if a < 0 else int(a) for a in axes]
    if builtins.any(not 0 <= a < x.ndim for a in out):
        raise np.exceptions.AxisError(f"axis {axis} is out of bounds for array of dimension {x.ndim}")
    return out


def sum(a, axis=None, dtype=None, *, keepdims=False):
    x = as_tensor(a)
    d = np.dtype(dtype) if dtype is not None else dtype_of(x)
    if dtype is None and d.kind in "bi":
        d = np.dtype(np.int64)
    elif d.kind == "u" or d.itemsize == 2:
        raise TypeError(f"np.sum in {d}")
    return cast(x, d).sum(dim=_axes(x, axis), keepdim=keepdims)


def mean(a, axis=None, dtype=None, *, keepdims=False):
    x = cast(as_tensor(a), dtype) if dtype is not None else floating(a)
    return x.mean(dim=_axes(x, axis), keepdim=keepdims)


def prod(a, axis=None, *, keepdims=False):
    x = as_tensor(a)
    if dtype_of(x).kind in "bi":
        x = cast(x, np.int64)
    if axis is None:
        r = x.reshape(-1).prod(dim=0)
        return r.reshape((1,) * x.ndim) if keepdims else r
    if not isinstance(axis, int):
        raise TypeError("np.prod over several axes")
    return x.prod(dim=axis, keepdim=keepdims)


def var(a, axis=None, *, ddof=0, keepdims=False):
    x = floating(a)
    axes = _axes(x, axis)
    n = 1
    for i in axes:
        n *= x.shape[i]
    centred = x - x.mean(dim=axes, keepdim=True)
    return (centred * centred).sum(dim=axes, keepdim=keepdims) / (n - ddof)


def std(a, axis=None, *, ddof=0, keepdims=False):
    return var(a, axis, ddof=ddof, keepdims=keepdims).sqrt()


def amax(a, axis=None, *, keepdims=False):
    x = as_tensor(a)
    return x.amax(dim=_axes(x, axis), keepdim=keepdims)


def amin(a, axis=None, *, keepdims=False):
    x = as_tensor(a)
    return x.amin(dim=_axes(x, axis), keepdim=keepdims)


def _arg(name):
    def impl(a, axis=None, *, keepdims=False):
        x = as_tensor(a)
        if axis is None:
            if keepdims:
                raise TypeError(f"np.{name} of all axes with keepdims")
            return getattr(x.reshape(-1), name)(0)
        return getattr(x, name)(axis, keepdims)

    return _named(impl, name)


argmax, argmin = _arg("argmax"), _arg("argmin")


def _truth(name):
    def impl(a, axis=None, *, keepdims=False):
        x = as_tensor(a).to(from_numpy_dtype(np.bool_))
        if axis is None:
            if keepdims:
                raise TypeError(f"np.{name} of all axes with keepdims")
            return getattr(x.reshape(-1), name)(0)
        if not isinstance(axis, int):
            raise TypeError(f"np.{name} over several axes")
        return getattr(x, name)(axis, keepdims)

    return _named(impl, name)


any, all = _truth("any"), _truth("all")

REDUCTIONS = {"sum": sum, "mean": mean, "prod": prod, "var": var, "std": std, "max": amax, "min": amin, "argmax": argmax, "argmin": argmin,
              "any": any, "all": all}  # fmt: skip
for _name, _f in REDUCTIONS.items():
    bridge.register(getattr(np, _name), _f)
    bridge.register_method(_name, _f)


# -- shapes --


def _shape(args):
    return tuple(args[0]) if len(args) == 1 and isinstance(args[0], (tuple, list)) else args


def reshape(a, *shape):
    return as_tensor(a).reshape(_shape(shape))


def transpose(a, *axes):
    x = as_tensor(a)
    axes = _shape(axes)
    if len(axes) == 1 and axes[0] is None:
        axes = ()
    return x.permute(tuple(axes) or tuple(reversed(range(x.ndim))))


def ravel(a):
    return as_tensor(a).reshape(-1)


def flatten(a):
    return as_tensor(a).clone().reshape(-1)


def expand_dims(a, axis):
    return as_tensor(a).unsqueeze(axis)


def squeeze(a, axis=None):
    x = as_tensor(a)
    return x.squeeze() if axis is None else x.squeeze(axis)


def swapaxes(a, axis1, axis2):
    return as_tensor(a).transpose(axis1, axis2)


def broadcast_to(a, shape):
    return as_tensor(a).expand(_shape((shape,) if not isinstance(shape, int) else (shape,)))


def concatenate(arrays, axis=0):
    dtype = result_dtype(*arrays)
    tensors = [as_tensor(a, dtype) for a in arrays]
    if axis is None:
        tensors, axis = [t.reshape(-1) for t in tensors], 0
    return aten.cat.default(tensors, axis)


def stack(arrays, axis=0):
    dtype = result_dtype(*arrays)
    return aten.stack.default([as_tensor(a, dtype) for a in arrays], axis)


def where(condition, x, y, /):
    dtype = result_dtype(x, y)
    return aten.where.self(cast(as_tensor(condition), np.bool_), as_tensor(x, dtype), as_tensor(y, dtype))


def clip(a, a_min=None, a_max=None):
    x = as_tensor(a)
    for bound in (a_min, a_max):
        if bound is not None and (is_tensor(bound) or result_dtype(x, bound) != dtype_of(x)):
            raise TypeError("np.clip with bounds that change the dtype")
    return x.clamp(a_min, a_max)


def round_(a, decimals=0):
    x = as_tensor(a)
    if decimals != 0:
        raise TypeError("np.round to decimals")
    return x.round() if dtype_of(x).kind == "f" else x.clone()


def dot(a, b):
    x, y = as_tensor(a), as_tensor(b)
    if x.ndim == 0 or y.ndim == 0:
        return multiply(x, y)
    if y.ndim > 2:
        raise TypeError("np.dot of more than two dimensions")
    return matmul(x, y)


def outer(a, b):
    dtype = result_dtype(a, b)
    return cast(as_tensor(a), dtype).reshape(-1).outer(cast(as_tensor(b), dtype).reshape(-1))


def astype(a, dtype, copy=True):
    return as_tensor(a).to(from_numpy_dtype(np.dtype(dtype)), copy=copy) if copy else cast(as_tensor(a), np.dtype(dtype))


def copy(a):
    return as_tensor(a).clone()


def _like(name, value):
    def impl(a, dtype=None):
        x = as_tensor(a)
        return aten.full.default(list(x.shape), value, dtype=from_numpy_dtype(np.dtype(dtype)) if dtype is not None else x.dtype)

    return _named(impl, name)


def _filled(name, value):
    def impl(shape, dtype=np.float64):
        shape = [shape] if isinstance(shape, int) else list(shape)
        return aten.full.default(shape, value, dtype=from_numpy_dtype(np.dtype(dtype)))

    return _named(impl, name)


def tril(m, k=0):
    return as_tensor(m).tril(k)


def triu(m, k=0):
    return as_tensor(m).triu(k)


for _f in (
    reshape, transpose, ravel, expand_dims, squeeze, swapaxes, broadcast_to, concatenate, stack, where, clip, dot, outer, copy, tril, triu,
    _like("zeros_like", 0), _like("ones_like", 1), _filled("zeros", 0), _filled("ones", 1),
):  # fmt: skip
    bridge.register(getattr(np, _f.__name__), _f)
bridge.register(np.round, round_)
for _name, _f in {
    "reshape": reshape, "transpose": transpose, "ravel": ravel, "flatten": flatten, "squeeze": squeeze, "swapaxes": swapaxes, "clip": clip,
    "round": round_, "dot": dot, "astype": astype, "copy": copy,
}.items():  # fmt: skip
    bridge.register_method(_name, _f)
bridge.register_attribute("T", _named(lambda a: transpose(a), "T"))
