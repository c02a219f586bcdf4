"""``flambeau.Tensor``: the class users see, over the native TensorBase.

Methods that are operators are attached from the declarations (:func:`attach`); what stands here is the rest: properties, conversion to
Python and NumPy, construction of subclasses, and the default ``__torch_function__`` that keeps a subclass's type.
"""

from __future__ import annotations

import copy
import copyreg

import numpy as np

from .. import _C
from ..base import dtypes, shapes
from ..base.device import CPU, META, Device, as_device
from ..base.dtypes import DType
from ..base.memory_format import MemoryFormat, contiguous_format, has_format
from ..base.public import NamedConstant, public_in
from ..base.symint import is_number, is_symbolic
from . import keys as K
from . import own_metadata
from .nested import old_style
from .operator import namespace
from .overrides import DisableTorchFunctionSubclass, handle_torch_function, has_torch_function, wrap_function

aten = namespace("aten")


def _public(fn):
    """Method written in Python that takes part in __torch_function__."""
    out = wrap_function(fn)
    return out


def _refuse_wrapped(cls, data) -> None:
    """RuntimeError where ``data`` is a tensor of another subclass that has no data and takes operators over: it can't be a ``cls`` too."""
    own = type(data)
    if (
        cls is not Tensor
        and data._array is None
        and own.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl
        and not issubclass(own, cls)
        and not issubclass(cls, own)
    ):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python object of type "
            f"{own.__name__}"
        )


def _seen_as(t, cls):
    """The same data as a ``cls``: a view with the history of ``t``."""
    _refuse_wrapped(cls, t)
    out = _C.alias(t, cls)
    if t._requires_grad and _C.tls("grad_enabled"):
        same = _C.past_overrides(aten.alias.default, t)
        _C.set_history(out, same._grad_fn, same._output_nr)
    _C.note_view(out, t, aten.alias.default, ())
    return out


@public_in("")
class Tensor(_C.TensorBase):
    """A multi-dimensional array over NumPy memory. See torch.Tensor."""

    __torch_dispatch__ = _C._disabled_torch_dispatch_impl
    __hash__ = _C.TensorBase.__hash__
    __array_priority__ = 1000
    # What the class says of its own metadata: "size", "stride", "layout". A comment is its type: get_type_hints of subclasses shows no such names.
    _answers = frozenset()  # type: frozenset[str]

    def __new__(cls, *data, dtype=None, device=None, requires_grad=False, size=None):
        if len(data) == 1 and isinstance(data[0], _C.TensorBase):
            return _seen_as(data[0], cls)
        arr = old_style(data if size is None else (shapes.Size(size),), dtype or dtypes.get_default_dtype())
        if cls is Tensor and _C.tls("dispatch_modes"):
            return aten.lift_fresh.default(_C.from_array(arr))
        return _C.from_array(arr, cls)

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # NOTE: a class that defines __torch_dispatch__ without staticmethod/classmethod is a frequent slip; take it as a classmethod.
        handler = cls.__dict__.get("__torch_dispatch__")
        if (
            handler is not None
            and callable(handler)
            and not isinstance(handler, (classmethod, staticmethod))
            and hasattr(handler, "__code__")
        ):
            cls.__torch_dispatch__ = classmethod(handler)
        # As in PyTorch: a class with __torch_dispatch__ is not asked for functions too, unless it defines __torch_function__.
        if cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
            inherited = getattr(cls.__torch_function__, "__func__", None)
            if inherited is Tensor.__dict__["__torch_function__"].__func__:
                cls.__torch_function__ = _C._disabled_torch_function_impl

    def __dir__(self):
        """The attributes that it has: what a device's interface is for, on that device only."""
        return [name for name in super().__dir__() if name != "__cuda_array_interface__" or self.is_cuda]

    # -- subclasses ----------------------------------------------------------------------------------------------------
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Run ``func`` without overrides and give plain results the type ``cls``. NotImplemented for unrelated types."""
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result if keeps_type(func) else _as_class(result, cls)

    @staticmethod
    def _make_subclass(
        cls,
        data,
        require_grad=False,
        dispatch_sizes_strides_policy=None,
        dispatch_device=False,
        dispatch_layout=False,
        **_unused,
    ):
        """A ``cls`` on the data of ``data``, without its autograd history. ``dispatch_...``: what its ``__torch_dispatch__`` is asked for."""
        if not isinstance(data, _C.TensorBase):
            raise TypeError(f"_make_subclass expects a Tensor, got {type(data).__name__}")
        if dispatch_sizes_strides_policy or dispatch_device or dispatch_layout:
            own_metadata.answer(cls, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
        _refuse_wrapped(cls, data)
        out = _C.alias(data, cls)
        if require_grad:  # the class isn't asked: its __new__ isn't done
            Tensor.requires_grad_.impl(out, True)
        return out

    @staticmethod
    def _make_wrapper_subclass(
        cls,
        size,
        strides=None,
        storage_offset=None,
        memory_format=None,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        dispatch_sizes_strides_policy=None,
        dispatch_device=False,
        dispatch_layout=False,
        _extra_dispatch_keys=None,
        storage_size=None,
    ):
        """A ``cls`` that has shape, strides, dtype and device but no data: the subclass holds what it wraps. ``dispatch_...``: what its
        ``__torch_dispatch__`` is asked for (core/own_metadata.py)."""
        if cls.__torch_dispatch__ is _C._disabled_torch_dispatch_impl:
            raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
        if dispatch_sizes_strides_policy or dispatch_device or dispatch_layout:
            own_metadata.answer(cls, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
        size = tuple(size)
        strides = tuple(strides) if strides is not None else shapes.contiguous_strides(size)
        if len(strides) != len(size):
            raise RuntimeError(f"size and strides must have the same length, got {len(size)} and {len(strides)}")
        out = _C.without_data(
            cls, size, strides, dtype or dtypes.get_default_dtype(), as_device(device), storage_offset or 0, None
        )
        if requires_grad:
            Tensor.requires_grad_.impl(out, True)
        return out

    def as_subclass(self, cls):
        """The same data seen as ``cls``: a view with its autograd history, so that a write to either is one to both."""
        return _seen_as(self, cls)

    # -- metadata ------------------------------------------------------------------------------------------------------
    def stride(self, dim=None):
        """Strides in elements, or that of ``dim``."""
        if has_torch_function((self,)):
            return handle_torch_function(Tensor.stride, (self,), self, *(() if dim is None else (dim,)))
        if "stride" in self._answers:
            return own_metadata.stride_of(self, dim)
        return self._strides if dim is None else self._strides[shapes.normalize_dim(dim, self._ndim)]

    def size(self, dim=None):
        """Shape, or the size of ``dim``."""
        if has_torch_function((self,)):
            return handle_torch_function(Tensor.size, (self,), self, *(() if dim is None else (dim,)))
        if "size" in self._answers:
            return own_metadata.size_of(self, dim)
        return self._shape if dim is None else self._shape[shapes.normalize_dim(dim, self._ndim)]

    def dim(self):
        """The number of dimensions."""
        return self._ndim

    def ndimension(self):
        """The number of dimensions, by its second name."""
        return self.dim()

    def numel(self):
        """The number of elements."""
        return self._shape.numel()

    def nelement(self):
        """The number of elements, by its second name."""
        return self.numel()

    def storage_offset(self):
        """Where the first element lies in the storage, in elements."""
        return self._offset

    def element_size(self):
        """The bytes of one element."""
        return self._dtype.itemsize

    @property
    def itemsize(self):
        return self._dtype.itemsize

    @property
    def nbytes(self):
        return self.numel() * self._dtype.itemsize

    def untyped_storage(self):
        """The storage that all views of this memory share."""
        if self.layout is not strided:
            raise NotImplementedError("Cannot access storage of SparseTensorImpl")
        return self._storage

    def data_ptr(self):
        """Address of the first element; 0 without data, and without elements."""
        if self.layout is not strided:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        if self._answers and not self.numel():
            return 0
        if self._array is None and self._storage.device_memory is not None:
            return self._storage.data_ptr() + self._offset * self._dtype.itemsize if self.numel() else 0
        memory = self._array if self._array is not None else getattr(self._plain(), "_array", None)
        return 0 if memory is None or not memory.size else memory.__array_interface__["data"][0]

    def _plain(self):
        """The plain tensor below a conjugated or negated view (core/lazy.py), else None."""
        return getattr(self._payload, "plain", None)

    def is_contiguous(self, memory_format=contiguous_format):
        """Whether the elements lie row-major, or in another memory format, without gaps. False for a format of another rank."""
        if not isinstance(memory_format, MemoryFormat):
            kind = type(memory_format).__name__
            raise TypeError(f"is_contiguous(): argument 'memory_format' must be torch.memory_format, not {kind}")
        if self.layout is not strided:
            return False
        if memory_format.rank is None:
            return shapes.is_contiguous(self._shape, self._strides)
        return has_format(self._shape, self._strides, memory_format)

    def is_floating_point(self):
        """Whether the dtype is a floating-point one."""
        return self._dtype.is_floating_point

    def is_complex(self):
        """Whether the dtype is complex."""
        return self._dtype.is_complex

    def is_signed(self):
        """Whether the dtype has negative numbers."""
        return self._dtype.is_signed

    def is_conj(self):
        """Whether the elements are the conjugates of what lies in memory."""
        return self._array is None and getattr(self._payload, "conj", False)

    def is_neg(self):
        """Whether the elements are the negatives of what lies in memory."""
        return self._array is None and getattr(self._payload, "neg", False)

    def is_inference(self):
        """Whether the tensor was made in inference mode."""
        return self._inference

    def get_device(self):
        """The index of the device; -1 for the CPU."""
        return -1 if self._device.type == "cpu" else self._device.index or 0

    @property
    def layout(self):
        """How the elements are kept: torch.strided, or one of the sparse layouts."""
        found = strided if self._has_data else getattr(self._payload, "layout", strided)
        return own_metadata.layout_of(self, found) if "layout" in self._answers else found

    is_sparse = property(lambda self: not self._has_data and getattr(self._payload, "layout", None) is sparse_coo)
    is_sparse_csr = property(lambda self: not self._has_data and getattr(self._payload, "layout", None) is sparse_csr)
    is_quantized = property(lambda self: not self._has_data and hasattr(self._payload, "zero_point"))
    is_nested = property(lambda self: False)
    # What programs tell one tensor from another by.
    _cdata = property(id)
    is_cpu = property(lambda self: self._device.type == "cpu")
    is_cuda = property(lambda self: self._device.type == "cuda")
    is_meta = property(lambda self: self._device.type == "meta")
    names = property(lambda self: (None,) * self._ndim)
    output_nr = property(lambda self: self._output_nr)

    @property
    def data(self):
        """The same memory without autograd history. Writes to it are not counted as writes to this tensor (``_version``)."""
        if self._keys & K.PYTHON and type(self).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
            made = aten.detach.default(self)  # a class that does the operators itself does this one, too
            return made if made is self else _C.counted_alone(made)
        return _C.data(self, type(self) if not self._flags & K.PARAMETER else Tensor)

    @data.setter
    def data(self, value):
        if not isinstance(value, _C.TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if self._requires_grad and value._dtype.category < 2:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        if not _has_elements(self) and not _has_elements(value) and type(self) is type(value):
            # What a subclass wraps, or the parts of a sparse tensor, go along.
            _C.take_place(self, value)
            self._payload = value._payload
            vars(self).update(vars(value))
            return
        if not (_has_elements(self) and _has_elements(value)):
            raise RuntimeError("setting .data needs tensors with data on both sides")
        _C.take_place(self, value)

    @data.deleter
    def data(self):
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    # -- to Python and NumPy -------------------------------------------------------------------------------------------
    def item(self):
        """The only element as a Python number. RuntimeError when there isn't exactly one."""
        element = _C.element(self)
        if element is not None:
            return element
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return aten._local_scalar_dense.default(self)

    def tolist(self):
        """Nested lists of Python numbers."""
        if self._ndim == 0:
            return self.item()
        if self._array is None or self._keys:
            if self._plain() is not None:
                return aten.clone.default(aten.detach.default(self)).tolist()
            if self._device.type == "cuda" and not self._keys:
                return self.cpu().tolist()
            self._refuse_wrapper("tolist")
            return [x.tolist() for x in self.unbind(0)]
        return self._array.tolist()

    def _refuse_wrapper(self, name: str) -> None:
        """RuntimeError for a subclass that has no data of its own and takes operators over: it must say what ``name`` is."""
        if self._array is None and type(self).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl:
            raise RuntimeError(f".{name}() is not supported for tensor subclasses.")

    def numpy(self, *, force=False):
        """The ndarray sharing this tensor's memory. RuntimeError for tensors that require grad (unless ``force``) or have no data."""
        if self._array is None or self._keys:
            self._refuse_wrapper("numpy")
            if self.layout is not strided:
                raise TypeError(
                    f"can't convert {kind_of(self.layout)} layout tensor to numpy. Use Tensor.to_dense() first."
                )
            if self._plain() is not None:
                return self._numpy_of_view(force)
            if self.is_quantized:
                raise TypeError(
                    f"Got unsupported ScalarType {self._dtype.scalar_type}: numpy() of a quantised tensor; dequantize() it first"
                )
            if self._device.type != "cpu" and not self._keys:
                if force and self._device.type == "cuda":
                    return self.detach().cpu().numpy()
                raise TypeError(
                    f"can't convert {self._device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
                )
            raise RuntimeError(
                f"{type(self).__name__} has no data of its own: .numpy() is not supported for tensor subclasses"
            )
        if self._requires_grad and not force and _C.tls("grad_enabled"):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self._array

    def _numpy_of_view(self, force):
        if not force:
            what, other = ("conjugate", "conj") if self.is_conj() else ("negative", "neg")
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {what} bit set. Use tensor.resolve_{other}().numpy() instead."
            )
        return aten.clone.default(aten.detach.default(self)).numpy()

    def __array__(self, dtype=None, copy=None):
        a = self.numpy()
        if copy:
            return a.astype(a.dtype if dtype is None else dtype)
        if copy is not None and dtype is not None and a.dtype != dtype:
            raise ValueError("Unable to avoid copy while creating an array as requested.")
        return a if dtype is None else a.astype(dtype, copy=False)

    @property
    def __cuda_array_interface__(self):
        if self._device.type != "cuda" or not _has_elements(self):
            raise AttributeError(
                f"Can't get __cuda_array_interface__ on non-CUDA tensor type: torch.{self._dtype.scalar_type}Tensor. If CUDA data is "
                "required use tensor.cuda() to copy tensor to device memory."
            )
        if self._requires_grad:
            raise RuntimeError(
                "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use var.detach() to get "
                "Variable that doesn't require grad."
            )
        item = self._dtype.itemsize
        return {
            "typestr": self._dtype.np.str,
            "shape": tuple(self._shape),
            "strides": None if self.is_contiguous() else tuple(s * item for s in self._strides),
            "data": (self.data_ptr(), False),
            "version": 2,
        }

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        """A DLPack capsule of the memory. BufferError for tensors that require gradients or aren't plain memory."""
        for refused, what in (
            (self.requires_grad, "that require gradient, use tensor.detach()"),
            (self.is_conj(), "with the conjugate bit set"),
            (self.is_sparse or self.layout is not strided, "with layout other than torch.strided"),
        ):
            if refused:
                raise BufferError(f"Can't export tensors {what}")
        if self._device.type not in ("cpu", "cuda"):
            raise BufferError(f"Cannot pack tensors on {self._device}")
        if self._device.type == "cuda" and (dl_device is None or tuple(dl_device) == self.__dlpack_device__()):
            from .device_exchange import capsule_of  # it makes tensors

            return capsule_of(self.clone() if copy else self, stream)
        given = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        return self.cpu().numpy().__dlpack__(**{k: v for k, v in given.items() if v is not None})

    def __dlpack_device__(self):
        return (2, self._device.index) if self._device.type == "cuda" else (1, 0)

    def __bool__(self):
        if self.numel() != 1:
            what = "no values" if self.numel() == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
        return bool(self.item())

    def _number(self, dtype: DType):
        """The only element, as a number that ``dtype`` holds. ValueError when there isn't exactly one."""
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        number = self.item()
        if number.__class__ is complex:
            dtypes.check_number(number, dtype)
            return number if dtype.is_complex else number.real
        return number

    def __int__(self):
        return int(self._number(dtypes.int64))

    def __float__(self):
        return float(self._number(dtypes.float64))

    def __complex__(self):
        return complex(self._number(dtypes.complex128))

    def __index__(self):
        if self._dtype.category > 1 or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self):
        if self._ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._shape[0]

    def __iter__(self):
        if self._ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, x):
        if not (isinstance(x, _C.TensorBase) or is_number(x) or is_symbolic(x)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(x)}.")
        return bool((self == x).any().item())

    def __repr__(self, *, tensor_contents=None):
        from . import printing

        return printing.tensor_str(self, tensor_contents)

    def __format__(self, spec):
        if self._ndim == 0 and type(self) is Tensor and self._device.type != "meta":
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __deepcopy__(self, memo):
        if not self._is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment"
            )
        if id(self) in memo:
            return memo[id(self)]
        if self.layout is not strided or self._plain() is not None:
            out = aten.clone.default(aten.detach.default(self))
            memo[id(self)] = out
            if self._requires_grad:
                out.requires_grad_(True)
            return out
        if self._array is None and self._storage.device_memory is not None and not self._keys:
            return _deep_copied_on_device(self, memo)
        if self._array is None and self._device == META and type(self) is Tensor:
            shape, strides = tuple(self._shape), tuple(self._strides)
            out = memo[id(self)] = _C.without_data(Tensor, shape, strides, self._dtype, META, self._offset, None)
            return out.requires_grad_(True) if self._requires_grad else out
        if self._array is None:
            out = self.clone()
            if type(out) is not type(self):
                raise RuntimeError(
                    "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly "
                    "implement clone(), for which cloning returns another instance of the same subclass. You should either properly "
                    f"implement clone() for {type(self).__name__} or override __deepcopy__() if it is intended behavior for clone() to "
                    "return an instance of a different type."
                )
            if not out._is_leaf:
                out = out.detach()
        else:
            out = _deep_copied(self, memo)
        return _completed(out, self, memo)


def _completed(out, t, memo):
    """A copy of a tensor with copies of what belongs to the tensor."""
    memo[id(t)] = out
    out.__dict__.update(copy.deepcopy(t.__dict__, memo))
    for name in copyreg._slotnames(type(t)):
        if hasattr(t, name):
            setattr(out, name, copy.deepcopy(getattr(t, name), memo))
    if t._requires_grad:
        out.requires_grad_(True)
    if t._grad is not None:
        out._grad = copy.deepcopy(t._grad, memo)
    return out


def _has_elements(t) -> bool:
    """Whether the elements lie in some memory, and not only their description."""
    return t._has_data or t._storage.device_memory is not None


def _deep_copied_on_device(t, memo):
    copied = copy.deepcopy(t._storage, memo)
    out = _C.without_data(type(t), t._shape, t._strides, t._dtype, t._device, t._offset, copied)
    return _completed(out, t, memo)


def _deep_copied(t, memo):
    """A tensor of its class over a copy of its memory, laid out as it is. What shares a storage shares the copy."""
    copied = copy.deepcopy(t._storage, memo)
    array, owner = t._array, t._storage.owner
    at = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0] if array.size else 0
    out = _C.from_array(np.ndarray(array.shape, array.dtype, copied.owner, at, array.strides), type(t))
    out._storage = copied
    return out


_KEEPS_TYPE = {"__set__", "item", "tolist", "numpy", "backward", "size", "stride", "__reduce_ex__"}
_PLAIN_ATTRIBUTES = {"grad", "_grad", "_base"}


def attribute_of(func) -> str | None:
    """``"shape"`` for ``Tensor.shape.__get__``, None for what doesn't read an attribute."""
    if getattr(func, "__name__", "") != "__get__":
        return None
    descriptor = func.__self__
    return getattr(descriptor, "__name__", None) or descriptor.fget.__name__


def keeps_type(func) -> bool:
    """Whether the default ``__torch_function__`` returns what the function gives as it is."""
    return getattr(func, "__name__", "") in _KEEPS_TYPE or attribute_of(func) in _PLAIN_ATTRIBUTES


def _as_class(result, cls):
    if isinstance(result, _C.TensorBase):
        return result if isinstance(result, cls) else Tensor.as_subclass(result, cls)
    if isinstance(result, (tuple, list)):
        made = [_as_class(r, cls) for r in result]
        return type(result)(*made) if hasattr(result, "_fields") else type(result)(made)
    return result


@public_in("", "layout")
class Layout(NamedConstant):
    """How a tensor keeps its elements: ``strided``, ``jagged`` (flambeau/nested) or one of the sparse layouts (core/sparse.py)."""


strided, jagged = Layout("strided"), Layout("jagged")
sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc = map(
    Layout, ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
)


def kind_of(layout) -> str:
    """A layout as error messages name it: ``Sparse``, ``SparseCsr``, ``Strided``."""
    return "Sparse" if layout is sparse_coo else "".join(w.capitalize() for w in layout._name.split("_"))


def from_array(array) -> Tensor:
    """Tensor sharing memory with ``array``. TypeError for an element type tensors don't have."""
    return _C.from_array(array)


def meta_tensor(meta) -> Tensor:
    """A tensor without data on the meta device, from a TensorMeta."""
    return _C.without_data(Tensor, tuple(meta.shape), tuple(meta.strides), meta.dtype, META, meta.offset, None)


def _set_requires_grad(t, value):
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    if value and not (t._dtype.is_floating_point or t._dtype.is_complex):
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    if value and t._inference and not _C.tls("inference"):
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
    if not value and t._grad_fn is not None:
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if value and not t._requires_grad and t._grad_fn is None:
        t._autograd = None  # a leaf of its own from now on, also when it is a view
    t._flags = t._flags | K.REQUIRES_GRAD if value else t._flags & ~K.REQUIRES_GRAD


def _check_grad(t, grad):
    if not isinstance(grad, _C.TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
    if grad is t:
        raise RuntimeError("can't assign Variable as its own grad")
    if not shapes.same_shape(grad._shape, t._shape):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._shape)}' to a tensor of size '{list(t._shape)}'. Please ensure that the "
            "gradient and the tensor are the same size"
        )
    if grad._dtype is not t._dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{grad._dtype}' to a tensor with grad_dtype '{t._dtype}'. The gradient must match "
            "the tensor's grad_dtype, which is the tensor's dtype"
        )
    if grad._device.type != t._device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad._device.type}' to a tensor with device type '{t._device.type}'. "
            "Please ensure that the gradient and the tensor are on the same device"
        )


def _requires_grad_(self, requires_grad=True):
    """Ask for a gradient, in place. TypeError for a ``requires_grad`` that is no bool."""
    if not isinstance(requires_grad, bool):
        kind = type(requires_grad).__name__
        raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {kind}")
    _set_requires_grad(self, requires_grad)
    return self


_requires_grad_.__name__ = "requires_grad_"
Tensor.requires_grad_ = wrap_function(_requires_grad_)
_C.configure(
    size=shapes.Size,
    cpu=CPU,
    tensor=Tensor,
    dtypes=dtypes.BY_NUMPY,
    bfloat16=dtypes.bfloat16,
    requires_grad=_set_requires_grad,
    grad=_check_grad,
)

__all__ = ["CPU", "DType", "Device", "Layout", "Tensor", "from_array", "meta_tensor", "strided"]
