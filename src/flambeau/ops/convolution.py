"""Convolution. One operator for all ranks, strides and paddings; ``transposed`` is its own derivative with respect to the input.

Computed as a contraction over a strided view of the padded input (no copy of the windows), which NumPy hands to BLAS.
"""

from __future__ import annotations

import numpy as np

from ..base.shapes import contiguous_strides
from ..core.declare import composite, extern
from ..core.definition import TensorMeta
from ..core.operator import namespace

aten = namespace("aten")


def _sizes(shape, kernel, stride, padding, dilation):
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(shape, kernel, stride, padding, dilation))


def _per_dim(values, nd, what):
    values = list(values)
    if len(values) == 1:
        values *= nd
    if len(values) != nd:
        raise RuntimeError(f"expected {what} to be a single integer value or a list of {nd} values to match the convolution dimensions, but got {what}={values}")
    return values


def _check(input, weight, nd, groups):
    if len(input.shape) != nd + 2:
        raise RuntimeError(f"Expected {nd + 1}D (unbatched) or {nd + 2}D (batched) input to conv{nd}d, but got input of size: {list(input.shape)}")
    if input.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have {weight.shape[1] * groups} "
                           f"channels, but got {input.shape[1]} channels instead")


def _convolution_meta(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    nd = len(weight.shape) - 2
    stride, padding, dilation = (_per_dim(v, nd, w) for v, w in ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    if transposed:
        out = _per_dim(output_padding, nd, "output_padding")
        size = tuple((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, s, p, d, k, o in zip(input.shape[2:], stride, padding, dilation, weight.shape[2:], out))
        shape = (input.shape[0], weight.shape[1] * groups, *size)
    else:
        _check(input, weight, nd, groups)
        size = _sizes(input.shape[2:], weight.shape[2:], stride, padding, dilation)
        shape = (input.shape[0], weight.shape[0], *size)
    if min(size, default=1) < 1:
        raise RuntimeError(f"Calculated padded input size per channel: {[n + 2 * p for n, p in zip(input.shape[2:], padding)]}. Kernel size: "
                           f"{list(weight.shape[2:])}. Kernel size can't be greater than actual input size")
    return TensorMeta(shape, contiguous_strides(shape), input.dtype, input.device)


def _windows(x, kernel, stride, dilation, size):
    """Strided view (batch, channels, *out, *kernel) of a padded input."""
    item = x.strides
    return np.lib.stride_tricks.as_strided(x, (*x.shape[:2], *size, *kernel), (*item[:2], *(a * b for a, b in zip(item[2:], stride)),
                                                                               *(a * b for a, b in zip(item[2:], dilation))), writeable=False)


def _forward(x, w, stride, padding, dilation, groups):
    nd = w.ndim - 2
    size = _sizes(x.shape[2:], w.shape[2:], stride, padding, dilation)
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)]) if any(padding) else x
    win = _windows(x, w.shape[2:], stride, dilation, size)
    axes = [1, *range(2 + nd, 2 + 2 * nd)]
    per_in, per_out = w.shape[1], w.shape[0] // groups
    parts = []
    for g in range(groups):
        part = np.tensordot(win[:, g * per_in:(g + 1) * per_in], w[g * per_out:(g + 1) * per_out], (axes, [1, *range(2, 2 + nd)]))
        parts.append(np.moveaxis(part, -1, 1))
    return np.ascontiguousarray(np.concatenate(parts, 1) if groups > 1 else parts[0])


def _input_gradient(ct, w, input_shape, stride, padding, dilation, groups):
    """Each window's cotangent is added where the window was: loops over the kernel positions, which are few."""
    nd = w.ndim - 2
    padded = [n + 2 * p for n, p in zip(input_shape[2:], padding)]
    out = np.zeros((*input_shape[:2], *padded), ct.dtype)
    per_in, per_out = w.shape[1], w.shape[0] // groups
    for position in np.ndindex(*w.shape[2:]):
        where = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, n, s in zip(position, dilation, ct.shape[2:], stride))
        for g in range(groups):
            part = np.tensordot(ct[:, g * per_out:(g + 1) * per_out], w[(slice(g * per_out, (g + 1) * per_out), slice(None), *position)], ([1], [0]))
            out[(slice(None), slice(g * per_in, (g + 1) * per_in), *where)] += np.moveaxis(part, -1, 1)
    crop = tuple(slice(p, p + n) for p, n in zip(padding, input_shape[2:]))
    return np.ascontiguousarray(out[(slice(None), slice(None), *crop)]) if nd else out


def _weight_gradient(ct, x, weight_shape, stride, padding, dilation, groups):
    nd = len(weight_shape) - 2
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)]) if any(padding) else x
    win = _windows(x, weight_shape[2:], stride, dilation, ct.shape[2:])
    axes = [0, *range(2, 2 + nd)]
    per_in, per_out = weight_shape[1], weight_shape[0] // groups
    return np.ascontiguousarray(np.concatenate([
        np.tensordot(ct[:, g * per_out:(g + 1) * per_out], win[:, g * per_in:(g + 1) * per_in], (axes, axes)) for g in range(groups)], 0))


@extern("convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
        "SymInt groups) -> Tensor", meta=_convolution_meta, variants="function", has_out=True)
def convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
    nd = w.ndim - 2
    stride, padding, dilation = (_per_dim(v, nd, n) for v, n in ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    if transposed:
        opad = _per_dim(output_padding, nd, "output_padding")
        size = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, s, p, d, k, o in zip(x.shape[2:], stride, padding, dilation, w.shape[2:], opad)]
        out = _input_gradient(x, w, (x.shape[0], w.shape[1] * groups, *size), stride, padding, dilation, groups)
    else:
        if x.ndim != w.ndim or x.shape[1] != w.shape[1] * groups:
            _check(x, w, nd, groups)
        out = _forward(x, w, stride, padding, dilation, groups)
    return out if bias is None else out + bias.reshape(-1, *[1] * nd)


def _backward_meta(ct, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    dense = lambda shape: TensorMeta(tuple(shape), contiguous_strides(tuple(shape)), ct.dtype, ct.device)  # noqa: E731
    return (dense(input.shape) if mask[0] else None, dense(weight.shape) if mask[1] else None, dense((ct.shape[1],)) if mask[2] else None)


@extern("convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
        "bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)", meta=_backward_meta, variants="")
def convolution_backward(ct, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask):
    nd = w.ndim - 2
    stride, padding, dilation = (_per_dim(v, nd, n) for v, n in ((stride, "stride"), (padding, "padding"), (dilation, "dilation")))
    dx = dw = db = None
    if mask[0]:
        dx = _forward(ct, w, stride, padding, dilation, groups) if transposed else _input_gradient(ct, w, x.shape, stride, padding, dilation, groups)
    if mask[1]:
        dw = _weight_gradient(x, ct, w.shape, stride, padding, dilation, groups) if transposed else _weight_gradient(ct, x, w.shape, stride, padding, dilation, groups)
    if mask[2]:
        db = ct.sum(axis=(0, *range(2, ct.ndim)))
    return dx, dw, db


convolution.derivative(input__weight__bias=lambda ct, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, mask:
                       aten.convolution_backward.default(ct, input, weight, None if bias is None else list(bias.shape), stride, padding, dilation, transposed,
                                                         output_padding, groups, mask))


def _same_padding(weight, stride, dilation, nd):
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(_per_dim(dilation, nd, "dilation"), weight.shape[2:])]
    if any(t % 2 for t in total):
        raise NotImplementedError("padding='same' with an even kernel needs uneven padding, which is not built yet; pad the input first")
    return [t // 2 for t in total]


def _declare_conv(nd):
    def conv(input, weight, bias, stride, padding, dilation, groups):
        if isinstance(padding, str):
            if padding not in ("valid", "same"):
                raise RuntimeError(f"Invalid padding string: '{padding}'")
            padding = [0] * nd if padding == "valid" else _same_padding(weight, _per_dim(stride, nd, "stride"), dilation, nd)
        batched = input.ndim == nd + 2
        x = input if batched else aten.unsqueeze.default(input, 0)
        out = aten.convolution.default(x, weight, bias, list(stride), list(padding), list(dilation), False, [0] * nd, groups)
        return out if batched else aten.squeeze.dim(out, 0)

    composite(f"conv{nd}d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{nd}] stride=1, SymInt[{nd}] padding=0, SymInt[{nd}] dilation=1, "
              "SymInt groups=1) -> Tensor", variants="nn function")(conv)
    composite(f"conv{nd}d.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{nd}] stride=1, str padding='valid', SymInt[{nd}] dilation=1, "
              "SymInt groups=1) -> Tensor", variants="")(conv)

    def transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
        return aten.convolution.default(input, weight, bias, list(stride), list(padding), list(dilation), True, list(output_padding), groups)

    composite(f"conv_transpose{nd}d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{nd}] stride=1, SymInt[{nd}] padding=0, SymInt[{nd}] output_padding=0, "
              f"SymInt groups=1, SymInt[{nd}] dilation=1) -> Tensor", variants="nn function")(transpose)


for _nd in (1, 2, 3):
    _declare_conv(_nd)

