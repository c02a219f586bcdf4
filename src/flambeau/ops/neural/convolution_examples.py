"""Convolutions under vmap: examples go into the batch where they share a weight, else into the channels, a group or several each."""

from __future__ import annotations

from ...core.dimensions import movedim, reshape_dim_into, reshape_dim_outof
from ...core.operator import namespace

__all__ = ["batched", "batched_backward"]

aten = namespace("aten")


def _into_batch(x):
    """(B, N, ...) as (B N, ...)."""
    return reshape_dim_into(0, 0, x)


def _into_channels(x):
    """(B, N, C, ...) as (N, B C, ...)."""
    return reshape_dim_into(0, 1, x)


def _out_of(x, dim: int, size: int):
    """The ``size`` examples of a joined dimension, in front."""
    return movedim(reshape_dim_outof(dim, size, x), dim, 0)


def batched(call, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Batching rule of ``convolution``."""
    size, (input_mapped, weight_mapped, bias_mapped) = call.size, call.mask[:3]
    how = (stride, padding, dilation, transposed, output_padding)
    if weight_mapped:
        weight = _into_batch(weight)
        if not input_mapped and groups == 1 and not transposed:
            # All weights meet the same input: they are more channels of one.
            out = _out_of(aten.convolution.default(input, weight, None, *how, 1), 1, size)
        else:
            joined = _into_channels(call.all(input, input_mapped))
            out = _out_of(aten.convolution.default(joined, weight, None, *how, groups * size), 1, size)
    elif input_mapped:
        kept = None if bias_mapped else bias
        out = _out_of(aten.convolution.default(_into_batch(input), weight, kept, *how, groups), 0, size)
        bias = bias if bias_mapped else None
    else:
        out = call.all(aten.convolution.default(input, weight, None, *how, groups), False)
    if bias is None:
        return out
    room = [1] * (out.ndim - 3)
    shape = [size, 1, bias.shape[-1], *room] if bias_mapped else [bias.shape[0], *room]
    return aten.add.Tensor(out, aten.reshape.default(bias, shape))


def batched_backward(call, grad_output, input, weight, bias_sizes, *rest):
    """Batching rule of ``convolution_backward``."""
    *how, groups, mask = rest
    transposed, size = how[3], call.size
    of_output, of_input, of_weight = call.mask[:3]
    every_output = call.all(grad_output, of_output)
    d_input = d_weight = d_bias = None
    if mask[0] and not of_weight:
        found = aten.convolution_backward.default(
            _into_batch(every_output),
            _into_batch(call.all(input, of_input)),
            weight,
            None,
            *how,
            groups,
            [True, False, False],
        )
        d_input = _out_of(found[0], 0, size)
    if mask[1] and not of_input and groups == 1 and not transposed:
        joined = _into_batch(call.all(weight, of_weight))
        found = aten.convolution_backward.default(
            _into_channels(every_output), input, joined, None, *how, 1, [False, True, False]
        )
        d_weight = _out_of(found[1], 0, size)
    missing = [bool(mask[0]) and d_input is None, bool(mask[1]) and d_weight is None, False]
    if any(missing):
        found = aten.convolution_backward.default(
            _into_channels(every_output),
            _into_channels(call.all(input, of_input)),
            _into_batch(call.all(weight, of_weight)),
            None,
            *how,
            groups * size,
            missing,
        )
        d_input = _out_of(found[0], 1, size) if missing[0] else d_input
        d_weight = _out_of(found[1], 0, size) if missing[1] else d_weight
    if mask[2]:
        d_bias = aten.sum.dim_IntList(every_output, [1, *range(3, every_output.ndim)])
    return d_input, d_weight, d_bias
