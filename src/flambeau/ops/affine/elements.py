"""What operators do with the elements of quantised tensors that are quantised as a whole, in three classes.

*Moved*: elements are copied or chosen by their order, so codes stand for them. *Computed*: values are computed and quantised again as the
argument was. *Bounded*: as computed, with the scale that fits the operator's range. Comparisons give truth values of the values.
"""

from __future__ import annotations

import functools

from ... import _C
from ...base import affine
from ...core.operator import OpOverload, namespace
from ...core.quantized import dequantized, is_quantized, like, parts, quantised, quantized_rule, through_values, whole

aten = namespace("aten")


def _called(op: OpOverload, args):
    positional, named = op.split(args)
    return op(*positional, **named)


def moved(*ops: OpOverload):
    """Run ``ops`` on the codes of the first argument; what has the codes' dtype among the results is quantised alike."""
    for op in ops:
        quantized_rule(op)(_moved(op))


def _moved(op: OpOverload):
    def run(self, *args):
        p = whole(op.name(), self)
        made = _called(op, (p.codes, *args))
        if not isinstance(made, tuple):
            return like(self, made)
        return type(made)(like(self, x) if x._dtype is p.codes._dtype else x for x in made)

    return run


def computed(*ops: OpOverload):
    """Run ``ops`` on the values; results are quantised as the first argument."""
    for op in ops:
        quantized_rule(op)(functools.partial(through_values, op))


def bounded(scale: float, zero_point: float, *ops: OpOverload):
    """Run ``ops`` on the values; results have the scale, and the zero point at a part of the range of codes."""
    for op in ops:
        quantized_rule(op)(_bounded(op, scale, zero_point))


def _bounded(op: OpOverload, scale: float, zero_point: float):
    def run(self, *args):
        low, high = affine.range_of(whole(op.name(), self).codes._dtype.np)
        made = _called(op, (_C.computed(dequantized(self)), *args))
        return quantised(made._array, scale, low + int(zero_point * (high - low + 1)), self._dtype)

    return run


def compared(*ops: OpOverload):
    """Compare the values, of quantised arguments and others."""
    for op in ops:
        quantized_rule(op)(lambda *args, op=op: _called(op, tuple(_values(a) for a in args)))


def _values(x):
    return _C.computed(dequantized(x)) if is_quantized(x) else x


moved(
    aten.index_select.default, aten.index.Tensor, aten.gather.default, aten.take.default, aten.masked_select.default,
    aten.flip.default, aten.roll.default, aten.repeat.default, aten.sort.default, aten.sort.stable, aten.topk.default,
    aten.max.default, aten.max.dim, aten.min.default, aten.min.dim, aten.amax.default, aten.amin.default, aten.median.default,
    aten.median.dim,
)  # fmt: skip
computed(
    aten.relu.default, aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default,
    aten.leaky_relu.default, aten.threshold.default, aten.gelu.default, aten.mean.default, aten.mean.dim, aten.std.default,
    aten.std.dim, aten.std.correction,
)  # fmt: skip
bounded(1 / 256, 0, aten.sigmoid.default, aten.hardsigmoid.default)
bounded(1 / 128, 1 / 2, aten.tanh.default)
compared(
    *(getattr(aten, name).Scalar for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(getattr(aten, name).Tensor for name in ("eq", "ne", "lt", "le", "gt", "ge")),
)


@quantized_rule(aten.cat.default)
def cat(tensors, dim=0):
    """Quantised as the first one."""
    first = whole("cat", tensors[0])
    if any(t._dtype is not tensors[0]._dtype for t in tensors):
        raise RuntimeError(f"cat: expected quantised tensors of one dtype, got {[t._dtype for t in tensors]}")
    alike = all((p.scale, p.zero_point) == (first.scale, first.zero_point) for p in (whole("cat", t) for t in tensors))
    if alike:
        return like(tensors[0], aten.cat.default([parts(t).codes for t in tensors], dim))
    joined = aten.cat.default([_C.computed(dequantized(t)) for t in tensors], dim)
    return quantised(joined._array, first.scale, first.zero_point, tensors[0]._dtype)


def _code(t, value: float) -> int:
    p = whole("fill_", t)
    return int(affine.codes(value, p.scale, p.zero_point, p.codes._dtype.np))


@quantized_rule(aten.fill_.Scalar)
def fill_(self, value):
    parts(self).codes.fill_(_code(self, value))
    return self


@quantized_rule(aten.masked_fill.Scalar)
def masked_fill(self, mask, value):
    code = _code(self, value)
    return like(self, aten.masked_fill.Scalar(parts(self).codes, mask, code))


@quantized_rule(aten.constant_pad_nd.default)
def constant_pad_nd(self, pad, value=0):
    code = _code(self, value)
    return like(self, aten.constant_pad_nd.default(parts(self).codes, pad, code))


@quantized_rule(aten.empty_like.default)
def empty_like(self, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return like(self, aten.empty_like.default(whole("empty_like", self).codes, memory_format=memory_format))
