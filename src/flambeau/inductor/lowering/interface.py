"""What a graph takes and what it returns: inputs, constants and outputs, in the layouts that the caller knows."""

from __future__ import annotations

from ...base.enums import Out
from ...base.expr import Expr, symbols
from ...core.device_memory import elements
from ..ir.nodes import Buffer, BufferKind, ExternCall, Region, is_dense
from ..ir.sizes import size, sizes
from ..ir.values import stored
from . import layouts
from .eager_call import NumberCall, same_layout
from .extern import floats
from .lazy import LazyTensor

__all__ = ["constant", "finish", "placeholder"]


def placeholder(lowering, val, order=None):
    if not hasattr(val, "stride"):
        lowering.inputs.append(None)
        if hasattr(val, "__sym__"):
            return number(lowering, val)
        return int(val) if hasattr(val, "__index__") and not isinstance(val, (bool, float)) else val
    for n in (*val.shape, *val.stride()):
        lowering.meet(n)
    shape, strides = sizes(val.shape), sizes(val.stride())
    lowering.given.update(s for n in (*shape, *strides) for s in symbols(n))
    if order is not None:
        strides = layouts.strides_in(order, shape)
    buffer = lowering.new_buffer(shape, strides, stored(val.dtype), BufferKind.INPUT, val.dtype.np)
    lowering.inputs.append(buffer.name)
    return lowering.in_memory(Region(buffer.name, shape, strides), val.dtype, strides, val.device)


def number(lowering, val):
    """An input that is a symbolic number. A floating-point one is read from memory, like a tensor of one element."""
    lowering.meet(val)
    k, e = len(lowering.inputs) - 1, val.expr
    if isinstance(e, Expr):
        # With what was learnt of it put in, as in the sizes: it may be the only input that tells another symbol, which it equals.
        lowering.numbers[k] = size(val)
    elif not isinstance(e, (bool, int, float)):
        lowering.inputs[k] = lowering.values.scalars[e] = _scalar(lowering, k)
    return val


def _scalar(lowering, k: int) -> str:
    name = f"arg{k}"
    lowering.buffers[name] = Buffer(name, (), (), "f64", BufferKind.INPUT)
    return name


def constant(lowering, tensor, device=None):
    """A value that the graph knows. ``device``: where the graph has it, the tensor's own for None."""
    if not hasattr(tensor, "stride"):
        return tensor
    array = elements(tensor.detach())
    strides = tuple(tensor.stride())
    buffer = lowering.new_buffer(
        tuple(tensor.shape), strides, stored(tensor.dtype), BufferKind.CONSTANT, tensor.dtype.np, array
    )
    region = Region(buffer.name, tuple(tensor.shape), strides)
    return lowering.in_memory(region, tensor.dtype, strides, device or tensor.device)


def _root(x):
    """The tensor that ``x`` is a view of, or itself."""
    return x if x.view is None else _root(x.view[0])


def finish(lowering, results, vals) -> None:
    roots = [id(_root(x)) for k, x in enumerate(results) if isinstance(x, LazyTensor) and k not in lowering.free]
    for k, (x, val) in enumerate(zip(results, vals)):
        if not isinstance(x, LazyTensor):
            lowering.outputs.append(plain_output(lowering, x))
            continue
        strides = sizes(val.stride()) if hasattr(val, "stride") else x.strides
        if k in lowering.free:
            strides = layouts.chosen(lowering, k, x, strides)
        dense = strides is None or is_dense(x.sizes, strides, lowering.values.hint)
        if not dense:
            x = as_view(lowering, x, strides)
        if not dense or roots.count(id(_root(x))) > 1:  # results that share memory in eager share it here
            lowering.realize_base(x)
        region = lowering.realize(x, strides)
        if dense and strides is not None and not same_layout(x.sizes, region.strides, strides):
            region = lowering.realize(lowering.lazy(x.sizes, x.dtype, x.at), strides)
        buffer = lowering.buffers[region.buffer]
        if buffer.kind == BufferKind.TEMP:
            buffer.kind = BufferKind.OUTPUT
        lowering.outputs.append((Out.SLOT, region, x.dtype))


def as_view(lowering, x: LazyTensor, strides) -> LazyTensor:
    """``x`` without the dense memory that an earlier reader gave it, where it is a view of other strides."""
    if x.region is None or x.view is None or same_layout(x.sizes, x.region.strides, strides):
        return x
    again = lowering.lazy(x.sizes, x.dtype, x.at, strides=x.strides, device=x.device)
    again.view = x.view
    return again


def plain_output(lowering, x):
    """What the caller gets for a result that is no tensor."""
    if not hasattr(x, "__sym__"):
        return Out.CONSTANT, x
    if isinstance(x.expr, Expr):
        e = size(x)
        return (Out.NUMBER, e) if type(e) is Expr else (Out.CONSTANT, e)
    given = lowering.values.scalars.get(x.expr)
    if given is not None and given in lowering.inputs:
        return Out.INPUT, lowering.inputs.index(given)
    floating, regions = floats(lowering, [x])
    buffer = lowering.new_buffer((), (), "f64", BufferKind.VALUE)
    lowering.add(ExternCall("call", "number", regions, [buffer.name], NumberCall(x, floating), effect=True))
    return Out.VALUE, buffer.name
