"""Tensor methods that are no operators: makers, questions about devices and layouts, storage surgery, Python functions over elements."""

from __future__ import annotations

import weakref

import numpy as np

from .. import _C
from ..base import accelerator, dtypes, shapes
from ..base.device import as_device
from ..base.dtypes import DType
from . import pickling as _pickling  # noqa: F401  (how functions are pickled)
from . import quantized, rebuild  # also: how tensors are pickled
from . import shared as _shared  # noqa: F401  (tensors in shared memory)
from . import storage as _storage
from .conversion import tensor, to
from .device_memory import described_at, is_described, on_device
from .modes import tell_resized
from .operator import namespace
from .overrides import wrap_function
from .tensor import Tensor

aten = namespace("aten")


def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **_unused):
    """A copy of ``data`` with the dtype and device of ``self`` unless given; a tensor stays on its device."""
    if isinstance(data, _C.TensorBase):
        out = to(data.detach().clone(), device or data.device, dtype or self.dtype)
        return out.requires_grad_(True) if requires_grad else out
    return tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def new(self, *args, device=None):
    """The old maker: ``t.new(2, 3)`` has that size, ``t.new([...])`` that data; the dtype of ``self``."""
    if len(args) == 1 and not isinstance(args[0], int):
        if isinstance(args[0], shapes.Size):
            return self.new_empty(args[0])
        return new_tensor(self, args[0], device=device)
    return self.new_empty(args)


def new_empty_strided(self, size, stride, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """An uninitialised tensor of ``size`` and ``stride`` (elements)."""
    out = aten.new_empty_strided.default(
        self, list(size), list(stride), dtype=dtype, device=None if device is None else as_device(device)
    )
    out._autograd = None
    return out.requires_grad_(True) if requires_grad else out


def cuda(self, device=None, non_blocking=False, memory_format=None):
    """The tensor on a CUDA device (the current one when not given), itself if it is there. AssertionError where there is none."""
    device = as_device("cuda" if device is None else device)
    if device.type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device but got {device}")
    return to(self, device, memory_format=memory_format)


def xpu(self, device=None, non_blocking=False, memory_format=None):
    """Refuses: there is no such device here."""
    return to(self, as_device("xpu" if device is None else device))


_pinned: weakref.WeakKeyDictionary = (
    weakref.WeakKeyDictionary()
)  # storage -> what keeps its memory pinned, and goes before it


def pin_memory(self, device=None):
    """The elements in memory that the device's driver copies from and to without a detour. RuntimeError where there is no device, and for tensors
    on it."""
    if not accelerator.count():
        raise RuntimeError("Cannot access accelerator device when none is available: pin_memory() needs one")
    if not self._has_data:
        raise RuntimeError(f"cannot pin '{self.type()}' only dense CPU tensors can be pinned")
    if is_pinned(self):
        return self
    out = aten.clone.default(self)
    _pinned[out._storage] = accelerator.needed().Pinned(out._storage.data_ptr(), out._storage.nbytes())
    return out


def is_pinned(self, device=None) -> bool:
    """Whether the memory was made by :meth:`pin_memory`."""
    return bool(_pinned) and self._has_data and self._storage in _pinned


def record_stream(self, stream):
    """The tensor's memory isn't used again before the work of ``stream`` is done. RuntimeError on the CPU."""
    if not on_device(self):
        raise RuntimeError("record_stream: tensors on the CPU have no streams")
    self._storage.device_memory.used_by_others()


def is_nonzero(self) -> bool:
    """Whether the only element differs from zero."""
    return bool(self)


def is_same_size(self, other) -> bool:
    """Whether two tensors have the same shape."""
    return shapes.same_shape(self._shape, other._shape)


def is_set_to(self, tensor) -> bool:
    """Whether both are the same view of the same memory."""
    return (
        self._storage is tensor._storage
        and self._offset == tensor._offset
        and self._shape == tensor._shape
        and self._strides == tensor._strides
    )


def is_distributed(self) -> bool:
    """False: the tensor lies in one process."""
    return False


def dim_order(self, ambiguity_check=False) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost. RuntimeError with ``ambiguity_check``, True or a list of memory formats,
    when strides leave several orders possible, or several of the formats."""
    if ambiguity_check is not False:
        formats = [] if ambiguity_check is True else ambiguity_check
        fits = sum(self.is_contiguous(memory_format=f) for f in formats)
        own = [s for n, s in zip(self._shape, self._strides) if n != 1]
        if fits != 1 if formats else len(own) != self._ndim or len(set(own)) != len(own):
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    return tuple(sorted(range(self._ndim), key=lambda d: (-self._strides[d], d)))


def const_data_ptr(self) -> int:
    """The address of the first element, for reading."""
    return self.data_ptr()


def reinforce(self, reward):
    """Refuses, as PyTorch does: use torch.distributions."""
    raise RuntimeError(
        "reinforce() was removed. Use torch.distributions instead: sample an action and weigh its log_prob with the reward."
    )


def module_load(self, other, assign=False):
    """What ``load_state_dict`` puts in place of ``self`` under swapping: ``other`` (detached), or ``self`` with its values."""
    return other.detach() if assign else self.copy_(other).detach()


# -- elements through a Python function --------------------------------------------------------------------------------


def _elementwise(self, function, *others):
    if self._array is None or self._keys:
        raise TypeError(f"apply_ and map_ need a tensor with data on the CPU, not a {type(self).__name__}")
    if self._requires_grad and _C.tls("grad_enabled"):
        raise RuntimeError("Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead.")
    for place, o in enumerate(others):
        if not isinstance(o, _C.TensorBase):
            raise TypeError(f"map_(): argument 'other' (position {place + 1}) must be Tensor, not {type(o).__name__}")
    arrays = [np.broadcast_to(o._array, self._array.shape) for o in others]
    new = [function(*(a.item() for a in each)) for each in zip(self._array.flat, *(a.flat for a in arrays))]
    return aten.copy_(self, tensor(new, dtype=self.dtype).reshape(self._shape))


def apply_(self, callable):
    """``callable(element)`` in place of each element. Slow: a Python call for each."""
    return _elementwise(self, callable)


def map_(self, tensor, callable):
    """``callable(a, b)`` of each element and that of ``tensor``, in place."""
    return _elementwise(self, callable, tensor)


def map2_(self, x, y, callable):
    """``callable(a, x, y)`` elementwise, in place."""
    return _elementwise(self, callable, x, y)


# -- storage -----------------------------------------------------------------------------------------------------------


def _take_over(self, other):
    """Make ``self`` the view of memory that ``other`` is; autograd counts a write."""
    _C.take_place(self, other)
    self._autograd = None
    self._bump_version()
    return self


def _plain(self, name: str):
    if not is_described(self) and (self._keys or not (self._has_data or on_device(self))):
        raise RuntimeError(f"{name} needs a tensor with data of its own, not a {type(self).__name__}")
    if self._requires_grad and _C.tls("grad_enabled"):
        if name == "set_" and self.is_leaf:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        raise RuntimeError(f"cannot resize variables that require grad: {name} on a tensor that requires a gradient")


def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make ``self`` look at the memory of ``source`` (a tensor or a storage); empty without one."""
    if source is None:
        return aten.set_.default(self)
    place = () if size is None else (storage_offset, list(size), [] if stride is None else list(stride))
    if isinstance(source, _C.TensorBase):
        return (aten.set_.source_Tensor_storage_offset if place else aten.set_.source_Tensor)(self, source, *place)
    storage = getattr(source, "_untyped_storage", source)
    if not isinstance(storage, _C.UntypedStorage):
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), but expected a Tensor or a Storage"
        )
    return (aten.set_.source_Storage_storage_offset if place else aten.set_.source_Storage)(self, storage, *place)


def check_source(self, source) -> None:
    """RuntimeError unless ``self`` may have the memory of the tensor ``source``."""
    if source._has_data is not self._has_data and is_described(source) is not is_described(self):
        raise RuntimeError(
            f"set_: a {type(self).__name__} can't take the memory of a {type(source).__name__}: one of them has no data"
        )
    if source.dtype is not self.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {dtypes.c_name(source.dtype)} to a tensor of type {dtypes.c_name(self.dtype)}"
        )


def take_memory(self, source=None, storage_offset=0, size=None, stride=None):
    """:func:`set_` itself, behind the names of the operator's overloads."""
    if source is self and size is None and not (self._requires_grad and self.is_leaf):
        return self
    _plain(self, "set_")
    given = isinstance(source, _C.TensorBase)
    if given:
        check_source(self, source)
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    tell_resized(self, "set_")
    if source is None:
        return _take_over(self, self.new_empty(0))
    if given:
        return _take_over(self, source)
    rows = _storage.span(source) // self.dtype.itemsize
    size = (rows,) if size is None else size
    stride = stride or shapes.contiguous_strides(tuple(size))
    if is_described(self):
        return _take_over(self, described_at(self, source, size, stride, storage_offset))
    flat = rebuild.make(source, self.dtype, 0, (rows,), (1,))
    return _take_over(self, aten.as_strided(flat.detach(), size, stride, storage_offset))


def _neg_view(self):
    """The elements with the other sign, as a view: they are negated when they are read."""
    return aten._neg_view.default(self)


def resize(self, *sizes):
    """``reshape`` under its oldest name: the number of elements may not change."""
    return self.reshape(*sizes)


def resize_as(self, tensor):
    """The elements in the shape of ``tensor``: a new tensor."""
    return self.reshape(tensor.shape)


def __setstate__(self, state):  # noqa: N807
    """Attributes from a pickle."""
    self.__dict__.update(state if isinstance(state, dict) else {})


def __reversed__(self):  # noqa: N807
    """The elements in reverse along the first dimension."""
    return self if self._ndim == 0 else aten.flip(self, [0])


def __array_wrap__(self, array, context=None, return_scalar=False):  # noqa: N807
    """NumPy hands a ufunc's result back: as a tensor."""
    array = np.asarray(array)
    return _C.from_array(array.astype(np.uint8) if array.dtype == bool else array)


def __delitem__(self, key):  # noqa: N807
    raise TypeError("Tensor does not support deleting items")


def qscheme(self):
    """How the codes of a quantised tensor are read: ``torch.per_tensor_affine`` or ``torch.per_channel_affine``. RuntimeError for others."""
    if not quantized.is_quantized(self):
        raise RuntimeError(f"qscheme() takes quantised tensors, got one of {self.dtype}")
    return quantized.parts(self).scheme


def _refusal(name: str, what: str):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(f"Tensor.{name}: {what}")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Refuses: {what}."
    return refuse


_REFUSED = {
    "nested tensors are not built in flambeau": "to_padded_tensor",
    "there is no such device here": "ipu mtia",
    "oneDNN tensors are not built in flambeau": "to_mkldnn",
    "this function was removed from PyTorch": "symeig eig solve lstsq",
}
_FALSE = "is_ipu is_maia is_mkldnn is_mps is_mtia is_vulkan is_xla is_xpu is_hpu"

for _fn in (
    *(
        new_tensor,
        new,
        new_empty_strided,
        cuda,
        xpu,
        pin_memory,
        is_pinned,
        record_stream,
        is_nonzero,
        is_same_size,
        is_set_to,
    ),
    *(
        is_distributed,
        dim_order,
        const_data_ptr,
        reinforce,
        module_load,
        apply_,
        map_,
        map2_,
        set_,
        qscheme,
    ),
    *(resize, resize_as, _neg_view),
):
    setattr(Tensor, _fn.__name__, wrap_function(_fn))
for _fn in (__setstate__, __reversed__, __array_wrap__, __delitem__):
    setattr(Tensor, _fn.__name__, _fn)


def _grad_dtype(self):
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return self.dtype


def _set_grad_dtype(self, dtype):
    if dtype is not None and not isinstance(dtype, DType):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(dtype).__name__}")
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if dtype is not self.dtype:
        raise NotImplementedError(
            f"a gradient has its tensor's dtype, {self.dtype}; grad_dtype {dtype} is not supported"
        )


for _what, _names in _REFUSED.items():
    for _name in _names.split():
        setattr(Tensor, _name, wrap_function(_refusal(_name, _what)))
for _name in _FALSE.split():
    setattr(Tensor, _name, property(lambda self: False))
Tensor.name = property(lambda self: None, doc="The tensor's name: none has one.")
Tensor.volatile = property(lambda self: False, doc="False: the oldest name of no_grad.")
Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype, doc="The dtype of the gradient: the tensor's.")
Tensor.__long__ = Tensor.__int__
Tensor.__nonzero__ = Tensor.__bool__
