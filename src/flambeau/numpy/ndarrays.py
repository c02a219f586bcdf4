"""NumPy's interface on tensors, eagerly: ``import flambeau._numpy as np``.

:class:`ndarray` holds a tensor; functions and methods come from the table. What the table doesn't cover is computed
by NumPy itself on the tensor's memory, unless a gradient is asked for: that would be lost, and is an error.
"""

from __future__ import annotations

import types
from typing import Any

import numpy as np

from .. import _C
from ..base.dtypes import uint8
from ..core.operator import namespace
from ..core.tensor import Tensor
from ..dynamo.numpy import numpy_bridge
from .promotion import dtype_of, is_tensor
from .table import ATTRIBUTES, METHODS, OPERATORS

__all__ = ["attribute", "implemented", "ndarray", "unwrap"]


aten = namespace("aten")


class ndarray:
    """An array over a tensor, ``tensor``. Results without dimensions are arrays too."""

    __array_priority__ = 2000
    __hash__ = None

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def __class_getitem__(cls, item):
        return cls

    shape = property(lambda self: tuple(self.tensor.shape))
    ndim = property(lambda self: self.tensor.ndim)
    size = property(lambda self: self.tensor.numel())
    dtype = property(lambda self: dtype_of(self.tensor))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.itemsize)
    strides = property(lambda self: tuple(s * self.itemsize for s in self.tensor.stride()))

    def __getattr__(self, name):
        if name in ATTRIBUTES:
            return wrap(ATTRIBUTES[name](self.tensor))
        plain = getattr(np.ndarray, name, None)
        if plain is None or name.startswith("__"):
            raise AttributeError(f"'ndarray' object has no attribute '{name}'")
        if not callable(plain):
            return wrap(getattr(_memory(self.tensor), name))
        return lambda *args, **kwargs: _call(METHODS.get(name), plain, (self, *args), kwargs)

    def __getitem__(self, key):
        key = _index(key)
        try:
            return wrap(self.tensor[key])
        except (ValueError, TypeError):
            return wrap(_memory(self.tensor)[_plain(key)])  # negative steps, fields

    def __setitem__(self, key, value):
        value = unwrap(np.asarray(_plain(value)) if isinstance(value, (list, tuple)) else value)
        self.tensor[_index(key)] = value.to(self.tensor.dtype) if is_tensor(value) else value

    @property
    def real(self) -> Any:
        return wrap(ATTRIBUTES["real"](self.tensor))

    @real.setter
    def real(self, value: Any) -> Any:
        (aten.real(self.tensor) if self.tensor.is_complex() else self.tensor).copy_(_numbers(value))

    @property
    def imag(self) -> Any:
        return wrap(ATTRIBUTES["imag"](self.tensor))

    @imag.setter
    def imag(self, value: Any) -> Any:
        if not self.tensor.is_complex():
            raise TypeError("array does not have imaginary part to set")
        aten.imag(self.tensor).copy_(_numbers(value))

    def __contains__(self, value):
        return bool(aten.eq(self.tensor, _numbers(value)).any())

    def __dlpack__(self, **kwargs):
        return self.tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __len__(self):
        return len(self.tensor)

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __array__(self, dtype=None, copy=None):
        return self.tensor.__array__(dtype, copy)

    def __repr__(self):
        return (
            repr(_memory(self.tensor.detach())).replace("array", "array_w", 1)
            if not self.tensor.requires_grad
            else f"array_w({self.tensor!r})"
        )

    __str__ = __repr__

    def __bool__(self):
        return bool(self.tensor)

    def __int__(self):
        return int(self.tensor)

    def __float__(self):
        return float(self.tensor)

    def __complex__(self):
        return complex(self.tensor)

    def __index__(self):
        return self.tensor.__index__()

    def item(self, *args) -> Any:
        """The element as a Python number."""
        return _memory(self.tensor.detach()).item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        return self.tensor.tolist()


def wrap(x: Any) -> Any:
    """Tensors and NumPy arrays as ndarrays, in tuples and lists too."""
    if is_tensor(x):
        return ndarray(x)
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biufc" and x.dtype.itemsize <= 16:
        return ndarray(_from_numpy(x))
    if isinstance(x, (tuple, list)):
        made = [wrap(y) for y in x]
        return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
    return x


def _from_numpy(x):

    a = np.asarray(x)
    return _C.from_array(a if all(s >= 0 for s in a.strides) else a.copy())


def unwrap(x: Any) -> Any:
    """ndarrays as tensors, in containers too."""
    if isinstance(x, ndarray):
        return x.tensor
    if isinstance(x, np.ndarray):
        return _from_numpy(x)
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)(map(unwrap, x))
    return x


def _numbers(value):
    """What is written or looked for, as a tensor."""
    value = unwrap(value)
    return value if is_tensor(value) else _from_numpy(np.asarray(value))


def _index(key):
    """A key as tensors take it: arrays of uint8 are numbers to NumPy and masks to PyTorch. A bool of NumPy's is a mask."""
    key = bool(key) if isinstance(key, np.bool_) else unwrap(key)
    parts = [p.long() if is_tensor(p) and p.dtype is uint8 else p for p in (key if isinstance(key, tuple) else (key,))]
    return tuple(parts) if isinstance(key, tuple) else parts[0]


def _memory(t) -> np.ndarray:
    if t.requires_grad:
        raise RuntimeError(
            "this NumPy function has no derivative: it is computed by NumPy, and the tensor requires grad"
        )
    return t.numpy()


def _plain(x):
    if isinstance(x, ndarray):
        return _memory(x.tensor)
    if is_tensor(x):
        return _memory(x)
    if isinstance(x, (tuple, list)) and not hasattr(x, "_fields"):
        return type(x)(map(_plain, x))
    if isinstance(x, dict):
        return {k: _plain(v) for k, v in x.items()}
    return x


def _call(impl, plain, args, kwargs):
    """``impl`` on tensors; where it declines, NumPy's own function on their memory. The arrays given as ``out`` are the results."""
    if kwargs.get("like") is not None:
        raise NotImplementedError("like= is not built: arrays are tensors'")
    if kwargs.get("out") is not None and isinstance(plain, np.ufunc) and len(args) > plain.nin:
        raise TypeError("cannot specify 'out' as both a positional and keyword argument")
    if impl is not None:
        try:
            return _given(
                wrap(impl(*map(unwrap, args), **{k: unwrap(v) for k, v in kwargs.items()})), plain, args, kwargs
            )
        except TypeError:
            pass
    return _given(wrap(plain(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})), plain, args, kwargs)


def _given(result, plain, args, kwargs):
    """``result``, or in its place the arrays that the caller had it written into."""
    out = kwargs.get("out")
    if out is None and isinstance(plain, np.ufunc):
        out = args[plain.nin :] or None
    if isinstance(result, tuple):
        return result if out is None else type(result)(r if o is None else o for r, o in zip(result, out))
    if isinstance(out, tuple) and len(out) == 1:
        out = out[0]
    return out if isinstance(out, ndarray) else result


def _operator(name, dunder, reflected):
    plain = getattr(np.ndarray, dunder)
    impl = OPERATORS.get(name)

    def forward(self, *other) -> Any:
        return _call(impl, plain, (self, *other), {})

    setattr(ndarray, dunder, forward)
    if reflected is not None:
        setattr(ndarray, reflected, lambda self, other: _call(impl, getattr(np, _UFUNCS[name]), (other, self), {}))


_UFUNCS = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and_": "bitwise_and",
    "or_": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}


def _install():
    for name in _UFUNCS:
        base = name.rstrip("_")
        _operator(name, f"__{base}__", f"__r{base}__")

        def in_place(self, other: Any, base: str = base) -> ndarray:
            result = getattr(self, f"__{base}__")(other)
            if not np.can_cast(result.dtype, self.dtype, "same_kind"):
                raise TypeError(
                    f"Cannot cast ufunc output from {result.dtype!r} to {self.dtype!r} with casting rule 'same_kind'"
                )
            self.tensor.copy_(result.tensor)
            return self

        setattr(ndarray, f"__i{base}__", in_place)
    for name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
        _operator(name, f"__{name}__", None)


_install()


def implemented(plain: Any) -> bool:
    """Whether a function of NumPy's has an implementation on tensors."""
    return numpy_bridge.lookup(plain) is not None


def _function(plain):
    implementation = numpy_bridge.lookup(plain)

    def call(*args, **kwargs) -> Any:
        return _call(implementation, plain, args, kwargs)

    call.__name__ = call.__qualname__ = getattr(plain, "__name__", "function")
    call.__doc__ = getattr(plain, "__doc__", None)
    return call


class _Submodule(types.ModuleType):
    """np.linalg, np.fft, np.random: their functions on ndarrays."""

    def __init__(self, plain: Any) -> None:
        super().__init__(plain.__name__.replace("numpy", "flambeau._numpy", 1))
        self._plain = plain

    def __getattr__(self, name):
        return attribute(name, self._plain, self)


# Names that PyTorch's NumPy has kept after NumPy 2 dropped them.
_OLD = {
    "alltrue": "all",
    "cfloat": "complex128",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "product": "prod",
}
_OLD |= {"round_": "round", "singlecomplex": "complex64", "sometrue": "any"}


def isscalar(element: object) -> bool:
    """Whether it is a number, or an array of one element: results without dimensions are arrays here."""
    value = unwrap(element)
    return value.numel() == 1 if is_tensor(value) else bool(np.isscalar(value))


def attribute(name: str, plain: Any = np, owner: Any = None) -> Any:
    """``np.<name>`` for tensors: a function, a submodule, or NumPy's own constant or type."""
    if name.startswith("__"):
        raise AttributeError(name)
    if plain is np and name == "ndarray":
        return ndarray
    if plain is np and name == "isscalar":
        return isscalar
    if plain is np and name == "AxisError":
        return np.exceptions.AxisError
    found = getattr(plain, _OLD.get(name, name) if plain is np else name)
    if isinstance(found, types.ModuleType):
        return _Submodule(found)
    if isinstance(found, type) or not callable(found):
        return found
    return _function(found)
