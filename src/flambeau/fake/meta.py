"""The shape rule of each kind: TensorMeta of the result from arguments with or without data. Plain arithmetic, nothing is dispatched
(except explicit composites without a rule of their own, which run on tensors without data)."""

from __future__ import annotations

import math

from .. import _C
from ..base import process_state
from ..base.device import CPU, Device
from ..base.dtypes import DType, NamedDType
from ..base.records import replace
from ..base.shape_checks import check, check_creatable
from ..base.shapes import broadcast_shapes, contiguous_strides, normalize_dims
from ..base.symint import SymInt, check_fits, is_symbolic
from ..core import contractions, keys
from ..core.definition import TensorMeta
from ..core.dispatch import excluding
from ..core.indexing import describe
from ..core.layouts import (
    dense_like,
    made_strides,
    pointwise_strides,
    strides_of,
    takes_format,
)
from ..core.operator import FACETS, OpOverload
from ..core.promotion import (
    DIFFERENT_DEVICES,
    check_same_device,
    check_scalars,
    compute_dtype,
    operand_indices,
    result_dtype,
)
from ..core.reductions import arguments
from ..core.tensor import meta_tensor
from ..core.viewmap import Strided

RULES = {}
KEPT = 64  # calls of an operator
_PLAIN = (int, float, bool, str, type(None), DType, NamedDType, Device)


def rule(kind):
    def wrap(build):
        RULES[kind] = build
        return build

    return wrap


FACETS["meta"] = lambda op: RULES[op.kind](op) if op.kind in RULES else None


def is_tensor(x) -> bool:
    return isinstance(x, (_C.TensorBase, TensorMeta))


def common_device(tensors):
    """Device of an operation, where ones on the CPU may stand beside those of another. RuntimeError when tensors are on two others."""
    found = CPU
    for t in tensors:
        if (len(t.shape) or found == CPU) and t.device != CPU:
            if found != CPU and t.device != found:
                raise RuntimeError(DIFFERENT_DEVICES.format(found, t.device))
            found = t.device
    return found


def dense(shape, dtype, device) -> TensorMeta:
    shape = tuple(shape)
    return TensorMeta(shape, contiguous_strides(shape), dtype, device)


@rule("pointwise")
def pointwise(op: OpOverload):
    tensor_at = [i for i, a in enumerate(op._schema.arguments) if a.is_tensor]
    together = operand_indices(op)
    layout = pointwise_strides(op)
    device_at = next((i for i, a in enumerate(op._schema.arguments) if a.type == "Device"), None)

    def run(*args):
        tensors = [args[i] for i in tensor_at if is_tensor(args[i])]
        compute = compute_dtype(op, args)
        check_scalars(op, args, compute)
        shape = broadcast_shapes(*[t.shape for t in tensors])
        check_same_device(args[i] for i in together if is_tensor(args[i]))
        device = (device_at is not None and args[device_at]) or common_device(tensors)
        return TensorMeta(tuple(shape), layout(shape, args), result_dtype(op, args, compute), device)

    return run


def _check_some(n, op: OpOverload, dim: int) -> None:
    """There is no extreme of nothing: where data tells a size, the graph asks when it runs."""
    if type(n) is SymInt and n.env.is_unbacked(n.expr):
        check(n >= 1, f"{op._opname}(): Expected reduction dim {dim} to have non-zero size.")


@rule("reduction")
def reduction(op: OpOverload):
    spec = arguments(op)
    of_nothing = op.definition.init is not None

    def run(*args):
        r = spec(args)
        shape = r.input.shape
        axes = normalize_dims(r.dims, len(shape))
        if not of_nothing:
            for k in axes:
                _check_some(shape[k], op, k)
        if r.keepdim:
            out = [1 if i in axes else n for i, n in enumerate(shape)]
        else:
            out = [n for i, n in enumerate(shape) if i not in axes]
        return dense(out, r.out, r.input.device)

    return run


@rule("view")
def view(op: OpOverload):
    map = op.definition.map

    def run(x, *rest):
        v = map(Strided(x.shape, strides_of(x), 0), *rest)
        base = x._offset if isinstance(x, _C.TensorBase) else x.offset
        one = lambda w: TensorMeta(w.shape, w.strides, x.dtype, x.device, base + w.offset)  # noqa: E731
        return one(v) if isinstance(v, Strided) else [one(w) for w in v]

    return run


@rule("index")
def index(op: OpOverload):
    d = op.definition
    names = [a.name for a in op._schema.arguments]
    source_at = names.index(d.source)
    base_at = names.index(d.base) if d.base is not None else None

    def run(*args):
        source = args[source_at]
        shape, _ = d.coords(describe(args), *args)
        if d.mode == "write":
            target = args[base_at] if base_at is not None else source
            # A number that is written nowhere isn't converted.
            if not is_tensor(source) and not any(type(n) is int and n == 0 for n in shape):
                check_fits(source, target.dtype)
            shape = target.shape if base_at is not None else tuple(d.shape_of(*args))
            out, like = dense(shape, target.dtype, target.device), target
        else:
            out, like = dense(shape, source.dtype, source.device), source
        return replace(out, strides=dense_like(out.shape, strides_of(like))) if d.keeps_order else out

    return run


@rule("contraction")
def contraction(op: OpOverload):
    output = op.definition.letters.partition("->")[2]

    def run(*tensors):
        sizes = contractions.check(op, tensors)
        return dense([sizes[c] for c in output], tensors[0].dtype, common_device(tensors))

    return run


def _device_argument(op, args):
    for a, x in zip(op._schema.arguments, args):
        if a.type == "Device" and x is not None:
            return x
    tensors = [x for x in args if is_tensor(x)]
    return tensors[0].device if tensors else CPU


def creatable(shape, dtype) -> tuple:
    """The shape. RuntimeError where it has a negative size, or more bytes than 64 bits count; a size that depends on data is checked at run time."""
    shape = tuple(shape)
    for n in shape:
        check_creatable(n, shape)
    if not is_symbolic(shape) and math.prod(shape) * dtype.itemsize >= 1 << 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    return shape


@rule("factory")
@rule("random")
def factory(op: OpOverload):
    d = op.definition
    formed, in_order = takes_format(op), "memory_order" in op.tags

    def run(*args):
        out = dense(creatable(d.shape(*args), d.dtype(*args)), d.dtype(*args), _device_argument(op, args))
        if not formed and not in_order:
            return out
        return replace(out, strides=made_strides(out.shape, args if formed else (args[0], None)))

    return run


@rule("extern")
def extern(op: OpOverload):
    return op.definition.meta


@rule("composite")
def composite(op: OpOverload):
    d = op.definition
    if d.meta is not None:
        return d.meta

    def run(*args):
        device = common_device([x for x in args if is_tensor(x)])
        with excluding(keys.PYTHON | keys.FUNCTIONALIZE | keys.AUTOGRAD | keys.TRANSFORM):
            return _raise_metas(d.fn(*map(_lower_metas, args)), device)

    # What a composite of our own makes of known sizes depends on them alone. A trace asks twice where it is functionalized, and networks repeat.
    return known_once(run) if op.namespace == "aten" else run


def known_once(run):
    """``run``, kept for the arguments of the last calls where all of their sizes are known."""
    known: dict[tuple, object] = {}

    def kept(*args):
        key = tuple(map(_described, args))
        if None in key:
            return run(*args)
        key = key, process_state.key()
        if key not in known:
            made = run(*args)
            if not isinstance(made, (TensorMeta, tuple)):
                return made
            if len(known) >= KEPT:
                known.clear()
            known[key] = made
        return known[key]

    return kept


def _described(x):
    """What a shape rule may read of an argument, by value and type; None where that is more than plain values."""
    if is_tensor(x):
        m = meta_of(x) if isinstance(x, _C.TensorBase) else x
        plain = all(type(n) is int for n in (*m.shape, *m.strides, m.offset))
        return (m.shape, m.strides, m.dtype, m.device, m.offset) if plain else None
    if isinstance(x, (list, tuple)):
        parts = tuple(map(_described, x))
        return None if None in parts else (type(x), parts)
    return (type(x), x) if type(x) in _PLAIN else None


def _lower_metas(x):
    if isinstance(x, TensorMeta):
        return meta_tensor(x)
    if isinstance(x, _C.TensorBase):
        return meta_tensor(meta_of(x))
    return [_lower_metas(y) for y in x] if isinstance(x, (list, tuple)) and any(map(is_tensor, x)) else x


def _raise_metas(x, device):
    if isinstance(x, _C.TensorBase):
        return TensorMeta(tuple(x._shape), x._strides, x._dtype, device, x._offset)
    if isinstance(x, (list, tuple)):
        return type(x)(_raise_metas(y, device) for y in x)
    return x


def meta_of(t) -> TensorMeta:
    """TensorMeta of any tensor."""
    return TensorMeta(tuple(t._shape), t._strides, t._dtype, t._device, t._offset)


__all__ = ["RULES", "common_device", "dense", "meta_of"]
