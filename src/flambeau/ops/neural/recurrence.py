"""One recurrent layer in one direction over all time steps (csrc/kernels/recurrent.c), and its derivative.

Shapes, time first: inner (T, B, G H), the inputs' products without a bias; weight (G H, H), biases (G H); h and c (B, H); output and cells (T, B, H); gates after
their functions (T, B, 4 H), of the GRU the fourth is the new gate's hidden product. What a kind doesn't have is (0,). Of the backward: cotangents of inner, of the
state's products (of the GRU, else they are the same), of h and of c.
"""

from __future__ import annotations

from ...base import recurrence
from ...base.dtypes import bfloat16, float16, float32, float64
from ...base.kernels import Recurrence
from ...base.shapes import contiguous_strides
from ...core.declare import explicit
from ...core.definition import TensorMeta
from ...core.dispatch import derivatives_asked
from ...core.operator import namespace

aten = namespace("aten")
LSTM, GRU, TANH, _ = Recurrence
KINDS = {kind.name.lower(): int(kind) for kind in Recurrence}  # plain integers, as operators take them


def streams(tensors) -> bool:
    """Whether there is a kernel for a layer of these."""
    kind = tensors[0].dtype
    return kind in (float32, float64, bfloat16, float16) and all(
        t.dtype is kind and t.device.type != "meta" for t in tensors
    )


def layer(kind: str, x, w_ih, w_hh, b_ih, b_hh, state, reverse):
    """(output, the state after the last step) of inputs x (T, B, features). Of 16-bit numbers state and gates are float32 from step to step;
    what is returned is rounded once."""
    operands = [aten.linear.default(x, w_ih, None), w_hh, b_ih, b_hh, *(*state, None)[:2]]
    narrow = x.dtype in (bfloat16, float16)
    if narrow:
        operands = [t if t is None else aten._to_copy.default(t, dtype=float32) for t in operands]
    out, last, _, _ = aten._recurrence.default(*operands, KINDS[kind], reverse, derivatives_asked())
    if narrow:
        out, last = (aten._to_copy.default(t, dtype=x.dtype) for t in (out, last))
    end = aten.select.int(out, 0, 0 if reverse else -1)
    return out, ((end, last) if kind == "lstm" else (end,))


def _metas(shapes, like):
    return tuple(TensorMeta(s, contiguous_strides(s), like.dtype, like.device) for s in map(tuple, shapes))


def _check_sizes(**expected) -> None:
    """``name=(tensor or None, size)``: RuntimeError for one of another size. Kernels read what the sizes of the state say."""
    for name, (t, size) in expected.items():
        if t is not None and tuple(t.shape) != size:
            raise RuntimeError(f"recurrent layer: expected {name} of size {list(size)}, but got size {list(t.shape)}")


def _sizes_of(x, h, kind):
    """(steps, batch, hidden, width of the gates) of inputs or outputs and a state."""
    if len(x.shape) != 3 or len(h.shape) != 2:
        raise RuntimeError(
            f"recurrent layer: expected 3 and 2 dimensions, but got size {list(x.shape)} and a state of size {list(h.shape)}"
        )
    return x.shape[0], x.shape[1], h.shape[1], recurrence.GATES[kind] * h.shape[1]


def _check_forward(inner, weight, bias_in, bias_hidden, h, c, kind) -> None:
    steps, batch, hidden, wide = _sizes_of(inner, h, kind)
    _check_sizes(
        inputs=(inner, (steps, batch, wide)),
        weight=(weight, (wide, hidden)),
        bias=(bias_in, (wide,)),
        hidden_bias=(bias_hidden, (wide,)),
        state=(h, (batch, hidden)),
        cell=(c, (batch, hidden)),
    )
    if (c is None) == (kind == LSTM) or (bias_in is None) != (bias_hidden is None):
        raise RuntimeError("recurrent layer: a cell belongs to an LSTM, and both biases or none are given")


def _forward_meta(inner, weight, bias_in, bias_hidden, h, c, kind, reverse, keep):
    _check_forward(inner, weight, bias_in, bias_hidden, h, c, kind)
    return _metas(recurrence.results(kind, inner.shape[0], inner.shape[1], h.shape[1], keep), inner)


def _forward_eager(inner, weight, bias_in, bias_hidden, h, c, kind, reverse, keep):
    _check_forward(inner, weight, bias_in, bias_hidden, h, c, kind)
    biases = () if bias_in is None else (bias_in, bias_hidden)
    return recurrence.forward(kind, reverse, keep, inner, weight, biases, h, c)


def _check_backward(ct, ct_last, weight, h, c, output, cells, gates, kind) -> None:
    steps, batch, hidden, wide = _sizes_of(output, h, kind)
    _, _, of_cells, of_gates = recurrence.results(kind, steps, batch, hidden, True)
    _check_sizes(
        gradient=(ct, (steps, batch, hidden)),
        output=(output, (steps, batch, hidden)),
        weight=(weight, (wide, hidden)),
        state=(h, (batch, hidden)),
        cell=(c, (batch, hidden)),
        cells=(cells, of_cells),
        gates=(gates, of_gates),
    )
    if kind == LSTM:
        _check_sizes(last_gradient=(ct_last, (batch, hidden)))
    if (c is None) == (kind == LSTM):
        raise RuntimeError("recurrent layer: a cell belongs to an LSTM")


def _backward_meta(ct, ct_last, weight, h, c, output, cells, gates, kind, reverse):
    _check_backward(ct, ct_last, weight, h, c, output, cells, gates, kind)
    return _metas(_cotangents(output.shape, kind), output)


def _backward_eager(ct, ct_last, weight, h, c, output, cells, gates, kind, reverse):
    _check_backward(ct, ct_last, weight, h, c, output, cells, gates, kind)
    return recurrence.backward(kind, reverse, ct, ct_last, weight, h, c, output, cells, gates)


def _blank(like):
    return aten.new_empty.default(like, [0])


def _steps(output, reverse):
    """(step, the one before it in the layer's order or None), in the layer's order."""
    order = range(output)[::-1] if reverse else range(output)
    return list(zip(order, [None, *order]))


@explicit(
    "_recurrence(Tensor inner, Tensor weight, Tensor? bias_in, Tensor? bias_hidden, Tensor h, Tensor? c, int kind, bool reverse, bool keep) "
    "-> (Tensor output, Tensor last, Tensor cells, Tensor gates)",
    meta=_forward_meta,
    eager=_forward_eager,
    has_out=False,
    tags=("bare_cotangents", "results_in_order"),
)
def forward(inner, weight, bias_in, bias_hidden, h, c, kind, reverse, keep):
    """Hochreiter & Schmidhuber 1997; Cho et al. 2014, the reset gate on the product with the state, as in cuDNN."""
    add, mul, sigmoid, tanh = aten.add.Tensor, aten.mul.Tensor, aten.sigmoid.default, aten.tanh.default
    outputs, cells, gates = {}, {}, {}
    for t, _ in _steps(inner.shape[0], reverse):
        into = aten.select.int(inner, 0, t)
        into = into if bias_in is None else add(into, bias_in)
        hidden = aten.linear.default(h, weight, bias_hidden)
        if kind == LSTM:
            i, f, n, o = aten.chunk.default(add(into, hidden), 4, 1)
            i, f, n, o = sigmoid(i), sigmoid(f), tanh(n), sigmoid(o)
            c = add(mul(f, c), mul(i, n))
            h, kept = mul(o, tanh(c)), [i, f, n, o]
        elif kind == GRU:
            (ri, zi, ni), (rh, zh, nh) = (aten.chunk.default(x, 3, 1) for x in (into, hidden))
            r, z = sigmoid(add(ri, rh)), sigmoid(add(zi, zh))
            n = tanh(add(ni, mul(r, nh)))
            h, kept = add(mul(aten.sub.Tensor(h, n), z), n), [r, z, n, nh]
        else:
            h, kept = (tanh if kind == TANH else aten.relu.default)(add(into, hidden)), []
        outputs[t], cells[t] = h, c
        gates[t] = aten.cat.default(kept, 1) if kept else None

    def stacked(parts, there):
        return aten.stack.default([parts[t] for t in range(len(parts))], 0) if there else _blank(inner)

    last = c if kind == LSTM else _blank(inner)
    return stacked(outputs, True), last, stacked(cells, kind == LSTM and keep), stacked(gates, kind <= GRU and keep)


def _back_through_time(ct, ct_last, ct_cells, ct_gates, weight, h, c, output, cells, gates, kind, reverse):
    """As the kernel does it, with cotangents of the kept values as well, on operators that can be differentiated once more."""
    add, mul, sub = aten.add.Tensor, aten.mul.Tensor, aten.sub.Tensor
    slope = lambda y: mul(y, aten.rsub.Scalar(y, 1))  # noqa: E731
    bend = lambda y: aten.rsub.Scalar(mul(y, y), 1)  # noqa: E731
    at = lambda x, t: aten.select.int(x, 0, t)  # noqa: E731
    of_inner, of_hidden, dh, dc = {}, {}, None, ct_last
    for t, before in reversed(_steps(output.shape[0], reverse)):
        g = at(ct, t) if dh is None else add(at(ct, t), dh)
        extra = [None] * 4 if ct_gates is None else aten.chunk.default(at(ct_gates, t), 4, 1)
        more = lambda x, k: x if extra[k] is None else add(x, extra[k])  # noqa: B023, E731
        past = None
        if kind == LSTM:
            i, f, n, o = aten.chunk.default(at(gates, t), 4, 1)
            was = c if before is None else at(cells, before)
            y = aten.tanh.default(at(cells, t))
            dcell = mul(mul(g, o), bend(y))
            dcell = dcell if dc is None else add(dcell, dc)
            dcell = dcell if ct_cells is None else add(dcell, at(ct_cells, t))
            parts = [mul(more(mul(dcell, n), 0), slope(i)), mul(more(mul(dcell, was), 1), slope(f))]
            parts += [mul(more(mul(dcell, i), 2), bend(n)), mul(more(mul(g, y), 3), slope(o))]
            dc, hidden = mul(dcell, f), parts
        elif kind == GRU:
            r, z, n, nh = aten.chunk.default(at(gates, t), 4, 1)
            was = h if before is None else at(output, before)
            dn = mul(more(mul(g, aten.rsub.Scalar(z, 1)), 2), bend(n))
            dr = mul(more(mul(dn, nh), 0), slope(r))
            dz = mul(more(mul(g, sub(was, n)), 1), slope(z))
            parts, hidden, past = [dr, dz, dn], [dr, dz, more(mul(dn, r), 3)], mul(g, z)
        else:
            y = at(output, t)
            parts = hidden = [mul(g, bend(y)) if kind == TANH else aten.where.ScalarOther(aten.gt.Scalar(y, 0), g, 0)]
        of_inner[t], of_hidden[t] = aten.cat.default(parts, 1), aten.cat.default(hidden, 1)
        dh = aten.mm.default(of_hidden[t], weight)
        dh = dh if past is None else add(dh, past)
    stacked = lambda parts: aten.stack.default([parts[t] for t in range(len(parts))], 0)  # noqa: E731
    last = dc if kind == LSTM else _blank(output)
    return stacked(of_inner), stacked(of_hidden) if kind == GRU else _blank(output), dh, last


@explicit(
    "_recurrence_backward(Tensor ct, Tensor? ct_last, Tensor weight, Tensor h, Tensor? c, Tensor output, Tensor cells, Tensor gates, int kind, bool reverse) "
    "-> (Tensor of_inner, Tensor of_hidden, Tensor of_h, Tensor of_c)",
    meta=_backward_meta,
    eager=_backward_eager,
    has_out=False,
    tags=("results_in_order",),
)
def backward(ct, ct_last, weight, h, c, output, cells, gates, kind, reverse):
    return _back_through_time(ct, ct_last, None, None, weight, h, c, output, cells, gates, kind, reverse)


def _cotangents(shape, kind):
    steps, batch, hidden = shape
    wide = (steps, batch, recurrence.GATES[kind] * hidden)
    return wide, wide if kind == GRU else (0,), (batch, hidden), (batch, hidden) if kind == LSTM else (0,)


def _vjp(
    ct0, ct1, ct2, ct3, weight, bias_in, h, c, kind, reverse, result, result2, result3, mask
):  # result1, the last cells, is among the cells
    ct = aten.zeros_like.default(result) if ct0 is None else ct0
    if ct2 is None and ct3 is None:
        of_inner, of_hidden, of_h, of_c = aten._recurrence_backward.default(
            ct, ct1, weight, h, c, result, result2, result3, kind, reverse
        )
    else:  # the backward is differentiated: it read what is kept
        of_inner, of_hidden, of_h, of_c = _back_through_time(
            ct, ct1, ct2, ct3, weight, h, c, result, result2, result3, kind, reverse
        )
    of_hidden = of_hidden if kind == GRU else of_inner
    steps, batch, wide = of_hidden.shape

    def product(cotangents, states):
        flat = aten.reshape.default(cotangents, [-1, wide])
        return aten.mm.default(aten.t.default(flat), aten.reshape.default(states, [-1, h.shape[1]]))

    of_weight = of_bias = of_state = None
    if mask[1]:
        first, rest, states = (steps - 1, (0, steps - 1), (1, steps)) if reverse else (0, (1, steps), (0, steps - 1))
        of_weight = product(aten.select.int(of_hidden, 0, first), h)
        if steps > 1:
            later = product(aten.slice.Tensor(of_hidden, 0, *rest), aten.slice.Tensor(result, 0, *states))
            of_weight = aten.add.Tensor(later, of_weight)
    if mask[2] or mask[3]:
        of_bias = aten.sum.dim_IntList(of_inner, [0, 1])
        of_state = of_bias if kind != GRU else aten.sum.dim_IntList(of_hidden, [0, 1])
    return of_inner, of_weight, of_bias, of_state, of_h, of_c if kind == LSTM else None


forward.derivative((0, 1, 2, 3), inner__weight__bias_in__bias_hidden__h__c=_vjp)


@forward.override("keep_fused")
def _(inner, *rest):
    return inner.dtype in (float32, float64)


@backward.override("keep_fused")
def _(ct, *rest):
    return ct.dtype in (float32, float64)


@forward.override("lower")
def _(lowering, val, inner, weight, bias_in, bias_hidden, h, c, kind, reverse, keep):
    operands = (inner, weight, h, bias_in, None if bias_in is None else bias_hidden, c if kind == LSTM else None)
    return lowering.recurrence(val, operands, kind, reverse)


@backward.override("lower")
def _(lowering, val, ct, ct_last, weight, h, c, output, cells, gates, kind, reverse):
    of_cells = (c, cells) if kind == LSTM else (None, None)
    operands = (ct, weight, h, output, *of_cells, gates if kind <= GRU else None, ct_last if kind == LSTM else None)
    return lowering.recurrence_backward(val, operands, kind, reverse)


def _work(tensors):
    """Multiply-adds of the products with the state, twice."""
    return 2 * tensors[0].numel() * tensors[1].shape[1]


forward.override("flops", lambda inner, weight, *rest: _work((inner, weight)))
backward.override("flops", lambda ct, ct_last, weight, h, *rest: 2 * ct.shape[0] * ct.shape[1] * weight.numel())
