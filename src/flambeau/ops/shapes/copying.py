"""Copies, conversions and fills: what moves or sets elements without computing."""

from __future__ import annotations

from ... import _C
from ...base.memory_format import contiguous_format, preserve_format
from ...base.shape_checks import data_dependent_number
from ...core.declare import composite, explicit, pointwise
from ...core.definition import TensorMeta
from ...core.device_memory import in_rows
from ...core.operator import namespace

aten = namespace("aten")


@pointwise(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    promote="keep",
    inplace=False,
    tags=("sets_apart",),
)
def clone(s, self, memory_format):
    return self


clone.derivative(self=lambda ct: ct)


def _copy_dtype(args):
    return args[1] or args[0].dtype


@pointwise(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
    "MemoryFormat? memory_format=None) -> Tensor",
    promote="keep",
    out=_copy_dtype,
    variants="",
    inplace=False,
    tags=("pointwise", "crosses_devices"),
)
def _to_copy(s, self, dtype, *_):
    return self if dtype is None else s.cast(self, dtype)


def _returned(ct, like):
    """A cotangent in the dtype and on the device of the argument it goes to: of a real one its real part."""
    ct = aten.real.default(ct) if ct.dtype.is_complex and not like.dtype.is_complex else ct
    if ct.device != like.device:
        return aten._to_copy.default(ct, dtype=like.dtype, device=like.device)
    return aten._to_copy.default(ct, dtype=like.dtype)


_to_copy.derivative(self=lambda ct, self_like: _returned(ct, self_like))


@pointwise(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    promote="keep",
    operands=("self",),
    out=lambda args: args[0].dtype,
    variants="method",
    tags=("pointwise", "crosses_devices"),
)
def copy(s, self, src, non_blocking):
    """``copy_`` is its in-place form: src broadcast to self and converted to its dtype."""
    return src


@copy.override("in_memory")
def _copied(self, src, non_blocking):
    """Row-major memory to other memory of its device: the driver's copy. (Between devices one stream would have to wait for the other.)"""
    alike = self._dtype is src._dtype and self._shape == src._shape and self._device == src._device
    if not (alike and self._storage is not src._storage and in_rows(self) and in_rows(src)):
        return False
    item = self._dtype.itemsize
    source, nbytes = src._storage.device_memory, self.numel() * item
    self._storage.device_memory.copy(self._offset * item, source, src._offset * item, nbytes)
    return True


copy.derivative(
    self=lambda ct: aten.zeros_like.default(ct),
    src=lambda ct, src_like: _returned(aten.sum_to_size.default(ct, list(src_like.shape)), src_like),
)


@pointwise(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    promote="keep",
    layout="self",
    operands=("self",),
    tags=("pointwise", "overlapping_writes", "numbers_as_elements"),
)
def fill(s, self, value):
    return s.where(True, value, self)


fill.derivative(self=lambda ct: aten.zeros_like.default(ct))


@pointwise(
    "zero(Tensor self) -> Tensor",
    promote="keep",
    variants="method",
    has_out=False,
    tags=("pointwise", "overlapping_writes"),
)
def zero(s, self):
    return s.where(True, 0, self)


@zero.override("in_memory")
def _zeroed(self):
    if not in_rows(self):
        return False
    item = self._dtype.itemsize
    self._storage.device_memory.fill(self._offset * item, self.numel() * item, 0)
    return True


zero.derivative(self=lambda ct: aten.zeros_like.default(ct))


@composite(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)", variants="method"
)
def contiguous(self, memory_format):
    if memory_format is preserve_format:
        if self.is_contiguous():
            return self
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return self if self.is_contiguous(memory_format) else aten.clone.default(self, memory_format=memory_format)


_C.made_by_numbers(contiguous, "order")


def _number(self):
    kind = "float" if self.dtype.is_floating_point else "bool" if self.dtype.name == "bool" else "int"
    return data_dependent_number("aten._local_scalar_dense.default", kind)


@explicit(
    "_local_scalar_dense(Tensor self) -> Scalar",
    meta=_number,
    eager=lambda a: a.item() if a.dtype.kind != "V" else float(a.reshape(())),
    has_out=False,
    tags=("data",),
)
def _local_scalar_dense(self):
    return _number(self)


_local_scalar_dense.override("lower", lambda lowering, val, self: lowering.item(val, self))


@composite("repeat(Tensor self, SymInt[] repeats) -> Tensor", variants="method")
def repeat(self, repeats):
    pad = len(repeats) - self.ndim
    if pad < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = [1] * pad + list(self.shape)
    x = aten.reshape.default(self, [m for n in shape for m in (1, n)])
    x = aten.expand.default(x, [m for r, n in zip(repeats, shape) for m in (r, n)])
    return aten._unsafe_view.default(
        aten.clone.default(x, memory_format=contiguous_format), [r * n for r, n in zip(repeats, shape)]
    )


@explicit(
    "lift_fresh(Tensor(a) self) -> Tensor(a)",
    meta=lambda self: TensorMeta(tuple(self.shape), self.stride(), self.dtype, self.device),
    has_out=False,
)
def lift_fresh(self):
    """Marks a tensor that came from Python data, so that modes see it come into being."""
    return self


lift_fresh.derivative(self=lambda ct: ct)


def _keep_dtype(args):
    _one_value(len(args[1].shape))
    return "keep"


def _one_value(ndim: int) -> None:
    if ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {ndim} dimensions.")


@pointwise(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    promote=_keep_dtype,
    operands=("self",),
    out=lambda args: args[0].dtype,
    tags=("pointwise", "overlapping_writes", "aliased_operands"),
)
def fill_tensor(s, self, value):
    return value


fill_tensor.derivative(self=lambda ct: aten.zeros_like.default(ct), value=lambda ct: ct)


@fill_tensor.override("batch")
def _fill_batch(b, self, value):
    self = b.all(self, b.mask[0])
    if not b.mask[1]:
        return aten.fill.Tensor(self, value)
    # A value for each example is no single value any more.
    _one_value(len(value.shape) - 1)
    return aten.copy.default(self, aten.reshape.default(value, [value.shape[0], *[1] * (len(self.shape) - 1)]))
