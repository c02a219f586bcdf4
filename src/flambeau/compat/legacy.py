"""Old names of the root namespace: tensor types by element type, typed storages, dtypes and layouts that nothing here computes in.

``torch.LongTensor`` is a class for ``isinstance`` and a constructor, as old programs use it; there is one Tensor class.
"""

from __future__ import annotations

import enum

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import as_device
from ..base.dtypes import DType
from ..core import conversion
from ..core.tensor import Tensor

_NARROW = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2")  # dtypes that came after the last typed tensor
TYPED = tuple(d for d in dtypes.ALL if d.name not in _NARROW)
BY_DTYPE = {d: f"{d.scalar_type}Tensor" for d in TYPED}


class _TypedMeta(type):
    """``isinstance(t, LongTensor)`` asks for a CPU tensor of that dtype; the class itself makes plain tensors."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == "cpu"

    def __call__(cls, *args, device=None):
        if not args:
            return conversion.tensor([], dtype=cls.dtype)
        first = args[0]
        if isinstance(first, _C.TensorBase):
            return first if first.dtype is cls.dtype else first.to(cls.dtype)
        sizes = first if isinstance(first, tuple) and isinstance(first, _SIZE) else args
        if all(isinstance(n, int) for n in sizes):
            return _C.from_array(np.empty(tuple(sizes), cls.dtype.np))
        return conversion.tensor(first, dtype=cls.dtype)

    def __repr__(cls):
        return f"<class 'torch.{cls.__name__}'>"


_SIZE = type(Tensor(0).shape)


def _tensor_type(kind: str, dtype: DType):
    return _TypedMeta(f"{kind}Tensor", (), {"dtype": dtype, "is_cuda": False, "__module__": "torch"})


_TensorMeta = type(Tensor)
UntypedStorage = type(Tensor(0).untyped_storage())


class TypedStorage:
    """The elements of a storage, with a dtype: what ``tensor.storage()`` gives. Indexing reads and writes elements."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        own = getattr(type(self), "dtype", None)
        self.dtype = own if isinstance(own, DType) else dtype or dtypes.get_default_dtype()
        if wrap_storage is None:
            if args and not isinstance(args[0], int):
                array = np.array(args[0], dtype=self.dtype.np)
            else:
                array = np.empty(args[0] if args else 0, dtype=self.dtype.np)
            wrap_storage = _C.from_array(array).untyped_storage()
        self._untyped_storage = wrap_storage

    @property
    def _elements(self) -> np.ndarray:
        return self._untyped_storage.owner.reshape(-1).view(np.uint8).view(self.dtype.np)

    def untyped(self):
        return self._untyped_storage

    def _numpy(self):
        return self._elements

    @property
    def device(self):
        return self._untyped_storage.device

    is_cuda = False
    is_sparse = False

    def size(self) -> int:
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size
    _size = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list:
        return self._elements.tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        found = self._elements[index]
        return found.item() if found.ndim == 0 else type(self)(found, dtype=self.dtype)

    def __setitem__(self, index, value):
        self._elements[index] = value
        self._untyped_storage._note_written()

    def clone(self):
        return type(self)(self._elements.copy(), dtype=self.dtype)

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self):
        return self

    def __repr__(self):
        return (
            "\n".join(f" {x}" for x in self.tolist())
            + f"\n[torch.storage.TypedStorage(dtype={self.dtype}) of size {self.size()}]"
        )


def _storage_type(kind: str, dtype: DType):
    return type(f"{kind}Storage", (TypedStorage,), {"dtype": dtype, "__module__": "torch"})


for _dtype in TYPED:
    globals()[f"{_dtype.scalar_type}Storage"] = _storage_type(_dtype.scalar_type, _dtype)
    if not _dtype.is_complex:
        globals()[f"{_dtype.scalar_type}Tensor"] = _tensor_type(_dtype.scalar_type, _dtype)


class _Named:
    """A dtype, layout or format that can be named and compared; no tensor has it."""

    def __init__(self, name: str):
        self.name = name

    is_floating_point = is_complex = is_signed = False

    def __repr__(self):
        return f"torch.{self.name}"


complex32, float4_e2m1fn_x2, float8_e8m0fnu = map(_Named, ("complex32", "float4_e2m1fn_x2", "float8_e8m0fnu"))
bit, bits16, bits1x8, bits2x4, bits4x2, bits8 = map(_Named, ("bit", "bits16", "bits1x8", "bits2x4", "bits4x2", "bits8"))
int1, int2, int3, int4, int5, int6, int7 = (_Named(f"int{n}") for n in range(1, 8))
uint1, uint2, uint3, uint4, uint5, uint6, uint7 = (_Named(f"uint{n}") for n in range(1, 8))
qint32, qint8, quint2x4, quint4x2, quint8 = map(_Named, ("qint32", "qint8", "quint2x4", "quint4x2", "quint8"))
float8_e4m3fnuz, float8_e5m2fnuz = map(_Named, ("float8_e4m3fnuz", "float8_e5m2fnuz"))
jagged, _mkldnn = map(_Named, ("jagged", "_mkldnn"))
per_tensor_affine, per_channel_affine, per_tensor_symmetric, per_channel_symmetric = map(
    _Named, ("per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric")
)
qscheme = _Named


class Tag(enum.Enum):
    """What ``torch.Tag`` names; an operator's ``tags`` are these words."""

    core = "core"
    pointwise = "pointwise"
    reduction = "reduction"
    inplace_view = "inplace_view"
    nondeterministic_seeded = "nondeterministic_seeded"
    data_dependent_output = "data_dependent_output"
    dynamic_output_shape = "dynamic_output_shape"
    generated = "generated"
    view_copy = "view_copy"
    needs_fixed_stride_order = "needs_fixed_stride_order"
    flexible_layout = "flexible_layout"
    pt2_compliant_tag = "pt2_compliant_tag"


class _Key(str):
    """One of PyTorch's dispatch keys, by name."""

    __slots__ = ()
    name = property(str.__str__)


class _KeyNames(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return _Key(name)


class DispatchKey(metaclass=_KeyNames):
    """PyTorch's dispatch keys by name, for code that mentions them: ``DispatchKey.AutogradCPU``."""


class DispatchKeySet(frozenset):
    """A set of such keys."""

    def __new__(cls, keys=()):
        return super().__new__(cls, [keys] if isinstance(keys, str) else keys)

    def __or__(self, other):
        return type(self)(frozenset.__or__(self, other))

    def has(self, key) -> bool:
        return key in self


def _parse_to(*args, **kwargs):
    """(device, dtype, non_blocking, memory_format) from the arguments of ``Module.to``."""
    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = kwargs.get("non_blocking", False)
    for a in args:
        if isinstance(a, DType):
            dtype = a
        elif isinstance(a, bool):
            non_blocking = a
        elif isinstance(a, _C.TensorBase):
            device, dtype = a.device, a.dtype
        elif a is not None:
            device = a
    return (None if device is None else as_device(device)), dtype, non_blocking, kwargs.get("memory_format")


class TransformGetItemToIndex:
    """PyTorch turns indexing by tensors into index operators in this block; here it always is."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


class FatalError(RuntimeError):
    """``torch.FatalError``."""


class OutOfMemoryError(RuntimeError):
    """``torch.OutOfMemoryError``: raised by accelerators; never here."""


class AcceleratorError(RuntimeError):
    """``torch.AcceleratorError``: raised by accelerators; never here."""


class TracerWarning(Warning):
    """PyTorch's tracer of TorchScript warns with it; nothing here does."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Nothing to ignore."""


class _VariableMeta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """The old name of tensors that autograd looks at: ``Variable(x)`` is ``x``, every tensor is an instance."""

    def __new__(cls, data, requires_grad: bool = False, volatile: bool = False):
        return data.detach().requires_grad_(requires_grad) if data.requires_grad != requires_grad else data
