"""Convolutions of any number of spatial dimensions: windows of the padded input times the weight, as matrix products.

One kernel and its two adjoints (with respect to the input and to the weight) serve all: a transposed convolution is the adjoint with respect to
the input run forwards. float32 and float64 in up to three dimensions are the runtime's (csrc/kernels/conv.c), the rest is NumPy's here. Shapes: input (N, C, *S), weight (O, C / groups, *K); transposed: weight (C, O / groups, *K).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ...base import blas
from ...base.dtypes import c_name
from ...base.kernels import Conv
from ...base.memory_format import is_last
from ...core.declare import composite, extern
from ...core.definition import TensorMeta
from ...core.layouts import common_image_strides, in_order, strides_of
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from ...core.sharding import Letters
from .convolution_examples import batched, batched_backward

aten = namespace("aten")

FORWARD, INPUT, WEIGHT = Conv


def _windows(x, kernel, stride, padding, dilation):
    """(N, C, *out, *K): for each output position the inputs under the kernel, a view of the padded input."""
    x = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in padding)]) if any(padding) else x
    n = len(kernel)
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    w = np.lib.stride_tricks.sliding_window_view(x, extent, axis=tuple(range(2, 2 + n)))
    return w[
        (slice(None), slice(None), *(slice(None, None, s) for s in stride), *(slice(None, None, d) for d in dilation))
    ]


def _columns(x, kernel, stride, padding, dilation, groups):
    """(N, groups, positions, C / groups * prod(K)) and the output sizes."""
    w = _windows(x, kernel, stride, padding, dilation)
    n, out = len(kernel), w.shape[2 : 2 + len(kernel)]
    w = w.reshape(x.shape[0], groups, x.shape[1] // groups, *w.shape[2:])
    w = np.transpose(w, (0, 1, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n)))
    return w.reshape(x.shape[0], groups, math.prod(out), x.shape[1] // groups * math.prod(kernel)), out


def _in_order(a):
    there = a.flags.c_contiguous or is_last(a.shape, strides_of(a))
    return a if there and a.flags.aligned else a.copy()


def _native(what, a, b, bias, sizes, stride, padding, dilation, groups, last):
    """The runtime's convolution; None for dtypes, dimensions and paddings it doesn't have, and for empty tensors."""
    if (
        a.dtype != b.dtype
        or a.dtype not in (np.float32, np.float64)
        or not 3 <= a.ndim <= 5
        or not a.size
        or not b.size
    ):
        return None
    if min(padding) < 0 or 0 in sizes:
        return None
    if bias is not None:
        bias = _in_order(bias.astype(a.dtype, copy=False))
    return blas.convolve(what, _in_order(a), _in_order(b), bias, sizes, stride, padding, dilation, groups, last)


def _forward(x, weight, stride, padding, dilation, groups, bias=None, last=False):
    out = _native(FORWARD, x, weight, bias, (), stride, padding, dilation, groups, last)
    if out is None:
        out = _forward_numpy(x, weight, stride, padding, dilation, groups)
        if bias is not None:
            out = out + bias.reshape(-1, *[1] * (x.ndim - 2)).astype(out.dtype, copy=False)
    return out


def _input_adjoint(g, weight, spatial, stride, padding, dilation, groups, last=False):
    out = _native(INPUT, g, weight, None, spatial, stride, padding, dilation, groups, last)
    return _input_adjoint_numpy(g, weight, spatial, stride, padding, dilation, groups) if out is None else out


def _weight_adjoint(g, x, kernel, stride, padding, dilation, groups, last=False):
    out = _native(WEIGHT, g, x, None, kernel, stride, padding, dilation, groups, last)
    return _weight_adjoint_numpy(g, x, kernel, stride, padding, dilation, groups) if out is None else out


def _forward_numpy(x, weight, stride, padding, dilation, groups):
    columns, out = _columns(x, weight.shape[2:], stride, padding, dilation, groups)
    o = weight.shape[0]
    w = weight.reshape(groups, o // groups, math.prod(weight.shape[1:]))
    y = np.matmul(w, columns.swapaxes(2, 3))  # (N, groups, O / groups, positions)
    return y.reshape(x.shape[0], o, *out)


def _input_adjoint_numpy(g, weight, spatial, stride, padding, dilation, groups):
    """Cotangent of the input with sizes ``spatial``: each kernel position adds its part at its offset."""
    kernel, n = weight.shape[2:], g.shape[0]
    o, per = weight.shape[0], weight.shape[1]
    w = weight.reshape(groups, o // groups, math.prod(weight.shape[1:]))
    parts = np.matmul(
        w.swapaxes(1, 2), g.reshape(n, groups, o // groups, math.prod(g.shape[2:]))
    )  # (N, groups, C / groups * prod(K), positions)
    parts = parts.reshape(n, groups * per, math.prod(kernel), *g.shape[2:])
    padded = np.zeros((n, groups * per, *(s + 2 * p for s, p in zip(spatial, padding))), parts.dtype)
    for k, offset in enumerate(itertools.product(*map(range, kernel))):
        at = tuple(
            slice(j * d, j * d + (m - 1) * s + 1, s) for j, d, s, m in zip(offset, dilation, stride, g.shape[2:])
        )
        padded[(slice(None), slice(None), *at)] += parts[:, :, k]
    return padded[(slice(None), slice(None), *(slice(p, p + s) for p, s in zip(padding, spatial)))]


def _weight_adjoint_numpy(g, x, kernel, stride, padding, dilation, groups):
    columns, out = _columns(x, kernel, stride, padding, dilation, groups)
    n, o = g.shape[:2]
    # NOTE: with a stride the last inputs may lie under no window; g then has as many positions as there are windows.
    g = g[(slice(None), slice(None), *(slice(0, m) for m in out))].reshape(n, groups, o // groups, math.prod(out))
    columns = columns.reshape(n, groups, *out, columns.shape[-1])[
        (slice(None), slice(None), *(slice(0, m) for m in out))
    ].reshape(n, groups, g.shape[3], columns.shape[-1])
    w = np.matmul(g, columns).sum(0)  # (groups, O / groups, C / groups * prod(K))
    return w.reshape(o, x.shape[1] // groups, *kernel)


def _wide(*arrays):
    """16-bit floats are computed in float32."""
    kind = arrays[0].dtype
    return kind, [a.astype(np.float32) if a.dtype.itemsize == 2 and a.dtype.kind in "fV" else a for a in arrays]


def _transposed_sizes(spatial, kernel, stride, padding, dilation, output_padding):
    return tuple(
        (s - 1) * st - 2 * p + d * (k - 1) + 1 + op
        for s, st, p, d, k, op in zip(spatial, stride, padding, dilation, kernel, output_padding)
    )


_MOST_PADDING = 2**62 - 1


def check_numbers(stride, padding, dilation, groups):
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError("dilation should be greater than zero")


def _check_elements(input) -> None:
    """RuntimeError for images without elements, unless there are no images or no channels."""
    if 0 in input.shape[2:] and 0 not in input.shape[:2]:
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input.shape)}"
        )


def _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Output shape. RuntimeError in PyTorch's words when the arguments don't fit."""
    n = len(weight.shape) - 2
    if len(input.shape) != n + 2:
        raise RuntimeError(
            f"Expected {n + 2}D input to convolution, but got input of size: {list(input.shape)} for weight of size {list(weight.shape)}"
        )
    check_numbers(stride, padding, dilation, groups)
    channels = input.shape[1]
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != expected:
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else 'groups=' + str(groups) + ', '}weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {expected} channels, but got {channels} channels instead"
        )
    if transposed:
        _check_elements(input)
    out_channels = weight.shape[1] * groups if transposed else weight.shape[0]
    if weight.shape[0] == 0:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least 1 at dimension 0, but got weight of size {list(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        least = "at least" if weight.shape[0] < groups else "divisible by"
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be {least} {groups} at dimension 0, but got weight of size {list(weight.shape)} instead"
        )
    if bias is not None and tuple(bias.shape) != (out_channels,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {out_channels} elements, but got bias of size "
            f"{list(bias.shape)} instead"
        )
    if input.dtype != weight.dtype:
        raise RuntimeError(
            f"Input type ({c_name(input.dtype)}) and weight type ({c_name(weight.dtype)}) should be the same"
        )
    if bias is not None and bias.dtype != input.dtype:
        raise RuntimeError(
            f"Input type ({c_name(input.dtype)}) and bias type ({c_name(bias.dtype)}) should be the same"
        )
    kernel, spatial = weight.shape[2:], input.shape[2:]
    if 0 in kernel:
        raise RuntimeError(f"kernel size should be greater than zero, but got kernel: {list(kernel)}")
    if max(padding) > _MOST_PADDING:
        raise RuntimeError(f"Given padding={max(padding)}, expected padding to be at most {_MOST_PADDING}")
    if transposed:
        for op, st, d in zip(output_padding, stride, dilation):
            if st >= 2**31:
                raise RuntimeError(f"stride should be below 2 ** 31, but got stride={st}")
            if op < 0:
                raise RuntimeError("negative output_padding is not supported")
            if op >= st and op >= d:
                raise RuntimeError(
                    f"output padding must be smaller than either stride or dilation, but got output_padding: {op} stride: {st} dilation: {d}"
                )
        sizes = _transposed_sizes(spatial, kernel, stride, padding, dilation, output_padding)
        if any(s < 0 for s in sizes):
            line = "1 x " if n == 1 else ""
            raise RuntimeError(
                f"Given input size per channel: ({line}{' x '.join(map(str, spatial))}). "
                f"Calculated output size per channel: ({line}{' x '.join(map(str, sizes))}). Output size is too small"
            )
        return (input.shape[0], out_channels, *sizes)
    padded = [s + 2 * p for s, p in zip(spatial, padding)]
    extent = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    if any(e > s for e, s in zip(extent, padded)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel size: ({' x '.join(map(str, extent))}). "
            "Kernel size can't be greater than actual input size"
        )
    _check_elements(input)
    return (input.shape[0], out_channels, *((s - e) // st + 1 for s, e, st in zip(padded, extent, stride)))


def _strides(shape, input, weight):
    """Channels-last when the input or the weight is; of sequences only the weight is asked, as in PyTorch."""
    return common_image_strides(shape, *((input, weight) if len(shape) > 3 else (weight,)))


def _is_last(input, weight) -> bool:
    """Whether the results are channels last."""
    shape = (2,) * input.ndim
    return is_last(shape, _strides(shape, input, weight))


def _meta(input, weight, bias, *rest):
    shape = _check(input, weight, bias, *rest)
    return TensorMeta(shape, _strides(shape, input, weight), input.dtype, input.device)


@extern(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups) -> Tensor",
    meta=_meta,
    variants="function",
    has_out=True,
)
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    kind, (x, w) = _wide(input, weight)
    if transposed:
        sizes = _transposed_sizes(x.shape[2:], w.shape[2:], stride, padding, dilation, output_padding)
        out = _input_adjoint(x, w, sizes, stride, padding, dilation, groups, _is_last(input, weight))
    else:
        out = _forward(x, w, stride, padding, dilation, groups, bias, _is_last(input, weight))
    if bias is not None and transposed:
        out = out + bias.reshape(-1, *[1] * (x.ndim - 2)).astype(out.dtype, copy=False)
    out = out.astype(kind, copy=False)
    return in_order(out, _strides(out.shape, input, weight))


def _check_backward(grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, mask):
    """RuntimeError unless the gradient has the size and the dtype of the result: kernels read as much as that. The dtype of a gradient that is only
    summed, for the bias, may be another."""
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    if len(grad_output.shape) != len(weight.shape) or grad_output.shape[1] != channels:
        raise RuntimeError(
            f"convolution_backward: weight of size {list(weight.shape)} gives {channels} channels, but the gradient has size "
            f"{list(grad_output.shape)}"
        )
    size = _check(input, weight, None, stride, padding, dilation, transposed, output_padding, groups)
    if tuple(grad_output.shape) != tuple(size):
        raise RuntimeError(
            f"convolution_backward: input of size {list(input.shape)} and weight of size {list(weight.shape)} give a result of size "
            f"{list(size)}, but the gradient has size {list(grad_output.shape)}"
        )
    if (mask[0] or mask[1]) and grad_output.dtype != input.dtype:
        expected, found = (_scalar_name(t.dtype) for t in (input, grad_output))
        raise RuntimeError(f"expected scalar type {expected} but found {found}")


def _backward_meta(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    _check_backward(
        grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups, output_mask
    )

    def like(t):
        return TensorMeta(tuple(t.shape), _strides(tuple(t.shape), input, weight), t.dtype, t.device)

    bias = TensorMeta((grad_output.shape[1],), (1,), grad_output.dtype, grad_output.device)
    return tuple(m if on else None for m, on in zip((like(input), like(weight), bias), output_mask))


@extern(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    meta=_backward_meta,
    variants="",
)
def convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    kind, (g, x, w) = _wide(grad_output, input, weight)
    last = _is_last(input, weight)
    d_input = d_weight = d_bias = None
    if output_mask[0]:
        # NOTE: with output padding there may be room for one more window than the input has elements.
        d_input = (
            _forward(g, w, stride, padding, dilation, groups, last=last)[(..., *map(slice, x.shape[2:]))]
            if transposed
            else _input_adjoint(g, w, x.shape[2:], stride, padding, dilation, groups, last)
        )
    if output_mask[1]:
        d_weight = (
            _weight_adjoint(x, g, w.shape[2:], stride, padding, dilation, groups, last)
            if transposed
            else _weight_adjoint(g, x, w.shape[2:], stride, padding, dilation, groups, last)
        )
    if output_mask[2]:
        d_bias = g.sum((0, *range(2, g.ndim)))
    d_input, d_weight = (
        None if d is None else in_order(d.astype(kind, copy=False), _strides(d.shape, input, weight))
        for d in (d_input, d_weight)
    )
    return d_input, d_weight, None if d_bias is None else np.ascontiguousarray(d_bias).astype(kind, copy=False)


convolution.derivative(
    input__weight__bias=lambda ct, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, mask: (
        aten.convolution_backward.default(
            ct,
            input,
            weight,
            None if bias is None else list(bias.shape),
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            [bool(m) for m in mask],
        )
    )
)


@convolution.override("lower")
def _lower(lowering, val, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    how = (stride, padding, dilation, groups)
    if not transposed:
        return lowering.convolution(FORWARD, input, weight, bias, val.shape, val, how)
    return lowering.convolution(INPUT, input, weight, bias, val.shape, val, how)


@convolution_backward.override("lower")
def _lower_backward(
    lowering,
    val,
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    mask,
):
    # With output padding there may be room for one more window than the input has elements: the native kernel makes as many as its result has.
    how, results = (stride, padding, dilation, groups), [None] * 3
    if mask[0]:
        what = FORWARD if transposed else INPUT
        results[0] = lowering.convolution(what, grad_output, weight, None, val[0].shape, val[0], how)
    if mask[1]:
        pair = (input, grad_output) if transposed else (grad_output, input)
        results[1] = lowering.convolution(WEIGHT, *pair, None, val[1].shape, val[1], how)
    if mask[2]:
        over = [0, *range(2, grad_output.ndim)]
        results[2] = lowering.operator(aten.sum.dim_IntList, (grad_output, over), {}, val[2])
    return results


def _products(positions, weight):
    """Multiply-adds of a convolution: each of its positions meets the weight once."""
    return 2 * math.prod(positions) * math.prod(weight.shape[1:])


convolution.override(
    "flops",
    lambda input, weight, bias, stride, padding, dilation, transposed, output_padding, groups: _products(
        input.shape
        if transposed
        else _check(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups),
        weight,
    ),
)
convolution_backward.override(
    "flops",
    lambda grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask: (
        (bool(mask[0]) + bool(mask[1])) * _products(input.shape if transposed else grad_output.shape, weight)
    ),
)


def _add(a, b):
    return b if a is None else a if b is None else aten.add.Tensor(a, b)


def _of_grad_output(
    ct0, ct1, ct2, grad_output, input, weight, stride, padding, dilation, transposed, output_padding, groups
):
    rest = (stride, padding, dilation, transposed, output_padding, groups)
    out = aten.convolution.default(ct0, weight, None, *rest) if ct0 is not None else None
    out = _add(out, aten.convolution.default(input, ct1, None, *rest) if ct1 is not None else None)
    if ct2 is not None:
        out = _add(
            out,
            aten.expand.default(
                aten.view.default(ct2, [1, -1, *[1] * (grad_output.ndim - 2)]), list(grad_output.shape)
            ),
        )
    return out


def _adjoint(which, *operands_and_how):
    """One of the results of convolution_backward: of (grad_output, input, weight, stride, ...)."""
    tensors, how = operands_and_how[:3], operands_and_how[3:]
    return aten.convolution_backward.default(*tensors, None, *how, [i == which for i in range(3)])[which]


def _of_input(ct1, grad_output, input, stride, padding, dilation, transposed, output_padding, groups):
    how = (stride, padding, dilation, transposed, output_padding, groups)
    return None if ct1 is None else _adjoint(0, grad_output, input, ct1, *how)


def _of_weight(ct0, grad_output, weight, stride, padding, dilation, transposed, output_padding, groups):
    how = (stride, padding, dilation, transposed, output_padding, groups)
    return None if ct0 is None else _adjoint(1, grad_output, ct0, weight, *how)


convolution_backward.derivative(grad_output=_of_grad_output, input=_of_input, weight=_of_weight)


# ---- conv1d ... conv_transpose3d ----------------------------------------------------------------------------------------


def _each(values, n):
    return list(values) * n if len(values) == 1 else list(values)


def _run(name, n, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if weight.ndim != n + 2 and input.ndim in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{list(weight.shape)}, but got {input.ndim}-dimensional "
            f"input of size {list(input.shape)} instead"
        )
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {list(input.shape)}"
        )
    for what, value in (
        ("stride", stride),
        ("padding", padding),
        ("dilation", dilation),
        ("output_padding", output_padding),
    ):
        if len(value) not in (1, n):
            raise RuntimeError(
                f"expected {what} to be a single integer value or a list of {n} values to match the convolution dimensions, "
                f"but got {what}={list(value)}"
            )
    x = aten.unsqueeze.default(input, 0) if input.ndim == n + 1 else input
    out = aten.convolution.default(
        x,
        weight,
        bias,
        _each(stride, n),
        _each(padding, n),
        _each(dilation, n),
        transposed,
        _each(output_padding, n),
        groups,
    )
    return aten.squeeze.dim(out, 0) if input.ndim == n + 1 else out


def _same_padding(name, n, input, weight, padding, stride, dilation):
    """(input, padding) for the names "valid" and "same"."""
    if padding == "valid":
        return input, [0]
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    total = [d * (k - 1) for d, k in zip(_each(dilation, n), weight.shape[2:])]
    if all(t % 2 == 0 for t in total):
        return input, [t // 2 for t in total]
    for e, t in enumerate(total):  # an odd total: one zero more at the end
        if t % 2:
            d = input.ndim - n + e
            edge = aten.new_zeros.default(input, [1 if k == d else m for k, m in enumerate(input.shape)])
            input = aten.cat.default([input, edge], d)
    return input, [t // 2 for t in total]


def _declare(n):
    name, tname = f"conv{n}d", f"conv_transpose{n}d"
    sizes = f"SymInt[{n}] stride=1, SymInt[{n}] padding=0"

    @composite(
        f"{name}(Tensor input, Tensor weight, Tensor? bias=None, {sizes}, SymInt[{n}] dilation=1, SymInt groups=1) -> Tensor",
        variants="function nn",
    )
    def conv(input, weight, bias, stride, padding, dilation, groups):
        return _run(name, n, input, weight, bias, stride, padding, dilation, False, [0], groups)

    @composite(
        f'{name}.padding(Tensor input, Tensor weight, Tensor? bias=None, SymInt[{n}] stride=1, str padding="valid", SymInt[{n}] dilation=1, '
        "SymInt groups=1) -> Tensor",
        variants="function nn",
    )
    def conv_padding(input, weight, bias, stride, padding, dilation, groups):
        input, amounts = _same_padding(name, n, input, weight, padding, stride, dilation)
        return _run(name, n, input, weight, bias, stride, amounts, dilation, False, [0], groups)

    @composite(
        f"{tname}.{'input' if n > 1 else 'default'}(Tensor input, Tensor weight, Tensor? bias=None, {sizes}, SymInt[{n}] output_padding=0, "
        f"SymInt groups=1, SymInt[{n}] dilation=1) -> Tensor".replace(".default", ""),
        variants="function nn",
    )
    def conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
        return _run(tname, n, input, weight, bias, stride, padding, dilation, True, output_padding, groups)


for _n in (1, 2, 3):
    _declare(_n)


convolution.override("sharding", Letters("n,->n"))
convolution_backward.override("sharding", Letters("n,n,->n,,"))


@convolution.override("batch")
def _batched(call, *values):
    # The operator's errors, about one example.
    shape = _check(*call.logical)
    return batched(call, *values) if call.size else aten.new_empty.default(values[0], [0, *shape])


@convolution_backward.override("batch")
def _batched_backward(call, *values):
    grad_output, input, weight, _, *how, mask = call.logical
    _check_backward(grad_output, input, weight, *how, mask)
    if not call.size:
        shapes = (input.shape, weight.shape, grad_output.shape[1:2])
        return tuple(aten.new_empty.default(values[0], [0, *s]) if on else None for s, on in zip(shapes, values[-1]))
    return batched_backward(call, *values)
