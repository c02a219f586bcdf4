"""In which order the elements of an intermediate image lie: as those of the images that it is made from.

PyTorch's rule makes each result between channels-last operands channels last. Inside a graph nobody sees that: native kernels (convolutions,
pooling) make row-major results whatever the rule says, and what loops make of them stays so, up to the graph's outputs. Images that are made
from channels-last inputs alone stay channels last.
"""

from __future__ import annotations

from ...base.expr import coefficient, variable
from ...base.memory_format import is_last
from ..ir.nodes import dense_strides, is_dense
from ..ir.sizes import sizes
from ..ir.values import walk
from .eager_call import same_layout
from .lazy import LazyTensor

__all__ = ["chosen", "exact", "followed", "ruled", "strides_in"]


def strides_in(order, shape) -> tuple:
    """Strides of a dense tensor whose dimensions lie in this order."""
    by_place = dense_strides([shape[d] for d in order])
    return tuple(by_place[order.index(d)] for d in range(len(shape)))


def followed(lowering, x, strides):
    """The strides to give ``x``, which isn't in memory and for which the shape rule says ``strides``: C order instead of channels last where at least
    half of the whole images that an element is computed from lie so."""
    if strides is None or not is_last(x.sizes, strides):
        return strides
    loops = lowering.variables(x.sizes)
    rows = last = 0
    for v in walk(x.at(tuple(map(variable, loops)))):
        if v.op != "load":
            continue
        steps = [coefficient(v.args[1], loop) for loop in loops if loop.extent != 1]
        if None in steps or 0 in steps:
            continue  # a number a channel, or read by other indices
        hints = list(map(lowering.values.hint, steps))
        if hints == sorted(hints, reverse=True):
            rows += 1
        else:
            last += 1
    return dense_strides(x.sizes) if rows and rows >= last else strides


def chosen(lowering, k: int, x, strides):
    """The strides of output ``k``, whose order nobody but another compiled graph sees and for which the shape rule says ``strides``."""
    if strides is None or not is_last(x.sizes, strides):
        return strides
    hint = lowering.values.hint
    own = x.region.strides if x.region is not None else followed(lowering, x, strides)
    if same_layout(x.sizes, own, strides) or not is_dense(x.sizes, own, hint):
        return strides
    lowering.orders[k] = tuple(sorted(range(len(own)), key=lambda d: (-hint(own[d]), d)))
    return own


def exact(lowering, operand, val):
    """An operand in memory by the strides that its shape rule says, for a call that looks at them; with gaps closed where they aren't there."""
    if not isinstance(operand, LazyTensor) or not hasattr(val, "stride"):
        return operand
    hint, strides = lowering.values.hint, sizes(val.stride())
    if is_dense(operand.sizes, strides, hint):
        return _laid_out(lowering, operand, strides)
    region = lowering.realize(operand)
    if same_layout(region.shape, region.strides, strides):
        return operand
    order = sorted(range(len(strides)), key=lambda d: (-hint(strides[d]), d))
    return _laid_out(lowering, operand, strides_in(order, operand.sizes))


def ruled(lowering, result, val):
    """The results of a call in memory, in the order that their shape rules say."""
    if isinstance(result, (tuple, list)):
        return [ruled(lowering, x, v) for x, v in zip(result, val)]
    if not isinstance(result, LazyTensor) or not hasattr(val, "stride"):
        return result
    strides = sizes(val.stride())
    if not is_dense(result.sizes, strides, lowering.values.hint):
        return result  # a view of what lies as it should
    return _laid_out(lowering, result, strides)


def _laid_out(lowering, x, strides):
    """A tensor in memory by dense strides: itself, or a copy."""
    if not same_layout(x.sizes, lowering.realize(x, strides).strides, strides):
        x = lowering.lazy(x.sizes, x.dtype, x.at, strides=strides, device=x.device)
        lowering.realize(x, strides)
    return x
