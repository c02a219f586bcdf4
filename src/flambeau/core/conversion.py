"""Making tensors from Python and NumPy data, and converting their dtype and device."""

from __future__ import annotations

import importlib

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import CPU, Device, as_device
from ..base.dtypes import DType
from ..base.memory_format import MemoryFormat, preserve_format, suggested_format
from .bindings import as_dtype, current_device
from .nested import array_from, has_no_values, is_plain
from .operator import namespace
from .overrides import wrap_function
from .tensor import Tensor

aten = namespace("aten")
_LARGE = 2.0**15  # every floating type holds what is below


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """A new tensor with a copy of ``data`` (nested sequences, numbers, NumPy arrays). A tensor is cloned and detached."""
    dtype = as_dtype(dtype, "tensor")
    device = as_device(device) if device is not None else current_device()
    if data.__class__ is float and dtype is None and -_LARGE < data < _LARGE:
        out = aten.lift_fresh.default(_C.from_array(np.array(data, dtypes.get_default_dtype().np)))
    elif isinstance(data, _C.TensorBase):
        out = aten.clone.default(aten.detach.default(data))
        if dtype is not None and dtype is not out._dtype:
            out = aten._to_copy.default(out, dtype=dtype)
    elif not (plain := is_plain(data)) and has_no_values(data):
        # Its module is for captured code alone.
        out = importlib.import_module("flambeau.core.traced_numbers").made_of_operators(data, dtype)
    else:
        out = aten.lift_fresh.default(_C.from_array(array_from(data, dtype, plain)))
    if device != CPU:
        out = to(out, device)
    return out.requires_grad_(requires_grad) if requires_grad is not False else out


def as_tensor(data, dtype=None, device=None):
    """``data`` as a tensor, sharing memory where that is possible."""
    dtype = as_dtype(dtype, "as_tensor")
    if isinstance(data, _C.TensorBase):
        return (
            to(data, *(x for x in (device, dtype) if x is not None))
            if dtype is not None or device is not None
            else data
        )
    if (
        isinstance(data, np.ndarray)
        and (dtype is None or dtype.np == data.dtype)
        and not any(s < 0 for s in data.strides)
    ):
        return to(from_numpy(data), current_device() if device is None else device)
    if (found := _shared_on_device(data)) is not None:
        return as_tensor(found, dtype, device)
    return tensor(data, dtype=dtype, device=device)


def _shared_on_device(obj):
    """A tensor over the memory of another library's array on a device; None for anything else."""
    if isinstance(obj, (list, tuple, int, float, np.generic, np.ndarray)) or not hasattr(
        obj, "__cuda_array_interface__"
    ):
        return None
    from .device_exchange import from_interface  # where there is a device

    return from_interface(obj)


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """``obj`` (a tensor, an array, a scalar, a nested sequence, something with DLPack or the buffer protocol) as a tensor.

    ``copy``: True always copies, False raises ValueError where that can't be avoided, None copies if needed. ``requires_grad``: None keeps what a
    tensor has, False leaves its autograd history behind. ValueError for arrays with negative strides."""
    dtype = as_dtype(dtype, "asarray")
    if not isinstance(obj, (_C.TensorBase, np.ndarray, np.generic)):
        if (found := _shared_on_device(obj)) is not None:
            obj = found
        elif hasattr(obj, "__dlpack__"):
            obj = np.from_dlpack(obj)
        elif isinstance(obj, (bytes, bytearray, memoryview)):
            obj = np.frombuffer(obj, (dtype or dtypes.get_default_dtype()).np)
        elif hasattr(obj, "__array_interface__") or hasattr(obj, "__array__"):
            obj = np.asarray(obj)
    if isinstance(obj, np.ndarray) and dtype in (None, dtypes.from_numpy(obj.dtype)):
        made = from_numpy(obj) if device is None else to(from_numpy(obj), device)
        shares = made.device == CPU
    else:
        made = as_tensor(obj, dtype, device)
        shares = made is obj
    if not shares and copy is False:
        kind = obj.dtype if isinstance(obj, _C.TensorBase) else getattr(obj, "dtype", type(obj).__name__)
        raise ValueError(f"can't alias {kind} into a tensor of {made.dtype} on {made.device}")
    if copy and shares:
        made = aten.clone.default(made)
    if requires_grad is None or requires_grad == made.requires_grad:
        return made
    return made.detach().requires_grad_(requires_grad)


def from_numpy(array):
    """A tensor sharing the memory of ``array``. TypeError for dtypes that tensors don't have; ValueError for negative strides."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().)"
        )
    if any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    return aten.lift_fresh.default(_C.from_array(array))


def array_operand(array: np.ndarray):
    """The tensor of an ndarray that stands beside a tensor in an operator: of its memory where a tensor can have it, else of a copy."""
    if any(s < 0 or s % array.itemsize for s in array.strides):
        array = array.copy()
    return from_numpy(array)


def _check_order(args) -> None:
    """TypeError unless positional arguments of ``to`` are a device, a dtype, or both in this order, or a tensor, and flags behind them."""
    kinds = ["b" if isinstance(a, bool) else "d" if isinstance(a, (str, int, Device)) else "t" for a in args]
    text = "".join(kinds).replace("b", "")
    if text not in ("d", "t", "dt") or "bd" in "".join(kinds) or "bt" in "".join(kinds) or kinds.count("b") > 2:
        given = ", ".join(type(a).__name__ for a in args)
        raise TypeError(f"to() received an invalid combination of arguments - got ({given})")


def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """``to(dtype)``, ``to(device)``, ``to(other)``, ``to(memory_format=...)``: converted, or self when nothing changes (and ``copy`` is False).
    RuntimeError for a memory format of another rank."""
    if len(args) > 1:
        _check_order(args)
    for a in args:
        if isinstance(a, _C.TensorBase):
            dtype, device = a._dtype, a._device
        elif isinstance(a, DType) or a in (float, int, bool, complex):
            dtype = as_dtype(a)
        elif isinstance(a, bool):
            continue  # non_blocking: nothing is asynchronous here
        elif isinstance(a, (str, int, Device)):
            device = a
        elif a is not None:
            raise TypeError(f"to() received an invalid combination of arguments - got ({type(a).__name__})")
    if dtype is not None and not isinstance(dtype, DType):
        try:
            dtype = as_dtype(dtype)
        except TypeError:
            raise TypeError(
                f"to() received an invalid combination of arguments - got (dtype={type(dtype).__name__})"
            ) from None
    for name, given, kind in (
        ("non_blocking", non_blocking, bool),
        ("copy", copy, bool),
        ("memory_format", memory_format, MemoryFormat),
    ):
        if given is not None and not isinstance(given, kind):
            raise TypeError(f"to() received an invalid combination of arguments - got ({name}={type(given).__name__})")
    device = as_device(device) if device is not None else None
    keeps = memory_format in (None, preserve_format) or suggested_format(self._shape, self._strides) is memory_format
    if not copy and keeps and (dtype is None or dtype is self._dtype) and (device is None or device == self._device):
        return self
    kwargs = {} if memory_format is None else {"memory_format": memory_format}
    if dtype is not None:
        kwargs["dtype"] = dtype
    if device is not None and device != self._device:
        kwargs["device"] = device
    return aten._to_copy.default(self, **kwargs)


def _converter(name, dtype):
    def convert(self, memory_format=None):
        if memory_format is not None and not isinstance(memory_format, MemoryFormat):
            given = type(memory_format).__name__
            raise TypeError(f"{name}(): argument 'memory_format' must be torch.memory_format, not {given}")
        if memory_format is None:
            return self if self._dtype is dtype else aten._to_copy.default(self, dtype=dtype)
        return to(self, dtype, memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"The tensor as {dtype}."
    return wrap_function(convert)


def type_(self, dtype=None, non_blocking=False):
    """The old name of the tensor's type (``torch.FloatTensor``, ``torch.cuda.FloatTensor``) without argument, else conversion to a dtype or a type
    by that name."""
    if dtype is None:
        where = ("cuda." if self._device.type == "cuda" else "") + ("sparse." if self.is_sparse else "")
        return f"torch.{where}{self._dtype.scalar_type}Tensor"
    if isinstance(dtype, _C.TensorBase):
        raise TypeError("dtype must be a type, str, or dtype object")
    device = CPU if getattr(dtype, "is_cuda", None) is False else None
    if isinstance(dtype, str):
        device = as_device("cuda") if dtype.startswith("torch.cuda.") else CPU
        name = dtype.removeprefix("torch.").removeprefix("cuda.").removeprefix("sparse.").removesuffix("Tensor")
        found = next((d for d in dtypes.ALL if d.scalar_type == name), None)
        if found is None:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found
    if getattr(dtype, "is_cuda", False):
        device = as_device("cuda")
    wanted = dtype if isinstance(dtype, DType) else as_dtype(getattr(dtype, "dtype", dtype))
    return to(self, wanted) if device is None or device.type == self._device.type else to(self, device, wanted)


def is_tensor(x) -> bool:
    """Whether ``obj`` is a tensor."""
    return isinstance(x, _C.TensorBase)


Tensor.to = wrap_function(to)
for _name, _dtype in (
    ("float", dtypes.float32),
    ("double", dtypes.float64),
    ("half", dtypes.float16),
    ("bfloat16", dtypes.bfloat16),
    ("int", dtypes.int32),
    ("long", dtypes.int64),
    ("short", dtypes.int16),
    ("char", dtypes.int8),
    ("byte", dtypes.uint8),
    ("bool", dtypes.bool_),
    ("cfloat", dtypes.complex64),
    ("cdouble", dtypes.complex128),
):
    setattr(Tensor, _name, _converter(_name, _dtype))
type_.__name__ = "type"
Tensor.type = wrap_function(type_)


def cpu(self, memory_format=None):
    """The tensor on the CPU, itself if it is there."""
    return to(self, CPU, memory_format=memory_format)


Tensor.cpu = wrap_function(cpu)
