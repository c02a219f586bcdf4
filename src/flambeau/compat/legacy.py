"""Old names of the root namespace: tensor types by element type, typed storages, dtypes and layouts that nothing here computes in.

``torch.LongTensor`` is a class for ``isinstance`` and a constructor, as old programs use it; there is one Tensor class.
"""

from __future__ import annotations

import enum
import functools
import types

from .. import _C
from ..autograd.engine import queue_callback
from ..base import dtypes
from ..base.device import as_device
from ..base.dtypes import DType
from ..base.public import public_in
from ..core import conversion
from ..core.nested import old_style
from ..core.overrides import wrap_function
from ..core.tensor import Tensor
from ..core.typed_storage import TypedStorage

TYPED = tuple(d for d in dtypes.ALL if d not in dtypes.LATE)
BY_DTYPE = {d: f"{d.scalar_type}Tensor" for d in TYPED}


class _TypedMeta(type):
    """``isinstance(t, LongTensor)`` asks for a tensor of that dtype on that device; the class itself makes plain tensors."""

    def __instancecheck__(cls, instance):
        kind = "cuda" if cls.is_cuda else "cpu"
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.device.type == kind

    def __call__(cls, *args, device=None):
        if args and isinstance(args[0], _C.TensorBase):
            if args[0].dtype is not cls.dtype:
                raise TypeError(f"expected a tensor of {cls.dtype} (got one of {args[0].dtype})")
            return args[0]
        made = conversion.from_numpy(old_style(args, cls.dtype))
        return made.to(as_device("cuda")) if cls.is_cuda else made

    def __repr__(cls):
        return f"<class '{cls.__module__}.{cls.__name__}'>"


@functools.cache
def cuda_type(name: str):
    """``torch.cuda.FloatTensor`` and the like. KeyError for another name."""
    own = {f"{d.scalar_type}Tensor": d for d in TYPED if not d.is_complex}[name]
    return _tensor_type(own.scalar_type, own, "torch.cuda")


def _tensor_type(kind: str, dtype: DType, module: str = "torch"):
    doc = f"Tensors of {dtype}: a call makes one of sizes or of values, as PyTorch's first versions did; isinstance asks for the dtype."
    names = {"dtype": dtype, "is_cuda": module == "torch.cuda", "__module__": module, "__doc__": doc}
    return _TypedMeta(f"{kind}Tensor", (), names)


_TensorMeta = type(Tensor)
UntypedStorage = type(Tensor(0).untyped_storage())


def _storage_type(kind: str, dtype: DType):
    return type(
        f"{kind}Storage",
        (TypedStorage,),
        {"dtype": dtype, "__module__": "torch", "__doc__": f"The memory of tensors of {dtype}."},
    )


for _dtype in TYPED:
    globals()[f"{_dtype.scalar_type}Storage"] = _storage_type(_dtype.scalar_type, _dtype)
    if not _dtype.is_complex:
        globals()[f"{_dtype.scalar_type}Tensor"] = _tensor_type(_dtype.scalar_type, _dtype)


class _Named:
    """A layout or format that can be named and compared; no tensor has it."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"


_mkldnn = _Named("_mkldnn")


@public_in("")
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
    needs_exact_strides = "needs_exact_strides"
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


@public_in("")
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


@wrap_function
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


@public_in("")
class FatalError(RuntimeError):
    """``torch.FatalError``."""


@public_in("")
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


@public_in("autograd.variable")
class Variable(metaclass=_VariableMeta):
    """The old name of tensors that autograd looks at: ``Variable(x)`` shares the memory of ``x`` and has no history, every tensor is an instance.
    ``Variable._execution_engine.queue_callback(f)`` calls ``f`` at the end of the backward pass that runs."""

    _execution_engine = types.SimpleNamespace(queue_callback=queue_callback)

    def __new__(cls, data, requires_grad: bool = False, volatile: bool = False):
        return data.detach().requires_grad_(requires_grad)
