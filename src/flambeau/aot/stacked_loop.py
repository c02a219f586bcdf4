"""``while_loop_stack_output``: a loop of unknown length that gives what every turn carried, stacked; the derivative of ``while_loop`` by it.

Called plainly it is a loop of Python, recorded by autograd as any code. Under tracing it is one node, whose results have a first dimension that
only running the loop tells.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from .. import autograd as _autograd
from ..autograd.function import Function
from ..base.dtypes import bool_, int64
from ..base.shape_checks import data_dependent_size, shape_rules
from ..base.shape_env import ShapeEnv
from ..core import modes
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import meta_of
from ..proxy import ProxyTorchDispatchMode
from .control_flow import differentiable, is_tensor, must_agree, pullback, recorded, spread, while_loop_op

__all__ = ["while_loop_stack_output", "while_loop_stack_output_op"]

aten = namespace("aten")
while_loop_stack_output_op = HigherOrderOperator("while_loop_stack_output")


def while_loop_stack_output(
    cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list, additional_inputs: tuple | list = ()
) -> tuple:
    """``carried = body_fn(*carried, *additional)`` as long as ``cond_fn(*carried, *additional)`` holds; of each carried value a tensor (turns, ...)
    of what the turns gave, or (1, ...) of what came in where there is no turn. RuntimeError for what isn't a tuple of tensors and for a
    condition that isn't one truth value."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    for what, values in (("carried_inputs", carried_inputs), ("additional_inputs", additional_inputs)):
        if not isinstance(values, (tuple, list)):
            raise RuntimeError(f"{what} must be a tuple or list but got {type(values)}")
    if not all(map(is_tensor, carried_inputs)):
        kinds = [type(x) for x in carried_inputs]
        raise RuntimeError(f"all carried_inputs must be tensors for stack_output, got {kinds}")
    return while_loop_stack_output_op(
        lambda *values: (cond_fn(*values),), body_fn, tuple(carried_inputs), tuple(additional_inputs)
    )


def holds(test: Callable, values: tuple) -> bool:
    (on,) = test(*values)
    if isinstance(on, bool) or (is_tensor(on) and on.dtype is bool_ and on.dim() == 0):
        return bool(on)
    raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {on}")


@while_loop_stack_output_op.rule("eager")
def _(op, test, body, carried, others):
    turns: list[tuple] = []
    values = tuple(carried)
    while holds(test, (*values, *others)):
        values = tuple(body(*values, *others))
        if len(values) != len(carried):
            raise RuntimeError(
                f"body_fn has to return as many values as are carried, got {len(values)} and {len(carried)}"
            )
        turns.append(values)
    return tuple(aten.stack.default(list(column), 0) for column in zip(*(turns or [values])))


def about_data(env):
    """What depends on data gets a symbol of ``env``, where there is one."""
    return contextlib.nullcontext() if env is None else shape_rules(env)


@while_loop_stack_output_op.rule(FakeTensorMode)
def _(op, mode, test, body, carried, others):
    with mode:
        out = tuple(body(*carried, *others))
        must_agree("while_loop_stack_output: carried inputs and what body_fn returns", carried, out)
        with about_data(mode.shape_env):
            n = data_dependent_size("while_loop_stack_output")
        return tuple(aten.new_empty.default(x, [n, *x.shape]) for x in out)


@while_loop_stack_output_op.rule(ProxyTorchDispatchMode)
def _(op, mode, test, body, carried, others):
    out = tuple(op(test, body, carried, others))
    operands = [*carried, *others]
    return recorded(mode, op, [(test, operands), (body, operands)], lambda g, x: (*g, carried, (*others, *x)), out)


# -- derivatives --


def depends(body: Callable, carried: tuple, others: tuple) -> bool:
    """Whether anything that the loop carries depends on a tensor that requires a gradient."""
    inputs = [*carried, *others]
    mode = next((m for m in modes.dispatch_stack() if isinstance(m, FakeTensorMode)), None) or FakeTensorMode()
    with modes.disabled("dispatch"), mode:
        twins = [FakeTensor(mode, meta_of(x)).requires_grad_(x.requires_grad) if is_tensor(x) else x for x in inputs]
        return any(x.requires_grad for x in (*carried, *body(*twins)) if is_tensor(x))


def sizes_of_turns():
    """The number of turns may be a symbol in this block."""
    mode = next((m for m in modes.dispatch_stack() if isinstance(m, FakeTensorMode)), None)
    if mode is None:
        return contextlib.nullcontext()
    if mode.shape_env is None:  # of a function that is differentiated again
        mode.shape_env = ShapeEnv()
    return mode.shape_env.data_sizes()


def shown_only() -> bool:
    """Whether only shapes are asked for, as while capturing: no trace is written, so nothing needs a turn."""
    return not any(isinstance(m, ProxyTorchDispatchMode) for m in modes.dispatch_stack())


def shapes_of_cotangents(operands: tuple) -> tuple:
    """What the backward of a loop gives where only shapes are asked for: a loop inside another one's body is shown so, then differentiated."""
    return (None, None, None, *(aten.zeros_like.default(x) if differentiable(x) else None for x in operands))


def remembered(test: Callable, body: Callable, carried: tuple, others: tuple) -> list:
    """The number of turns (1,), of each carried value what the turns began with, stacked, and what they gave, stacked."""
    n = len(carried)

    def counted_test(i, *values):
        return tuple(test(*values[n:]))

    def counted(i, *values):
        now = values[n : 2 * n]
        # NOTE: copies, as a result may not be an operand itself.
        return (aten.add.Tensor(i, 1), *(aten.clone.default(x) for x in now), *body(*values[n:]))

    zero = aten.zeros.default([1], dtype=int64)
    with sizes_of_turns():
        stacks = while_loop_stack_output_op(counted_test, counted, (zero, *carried, *carried), others)
    return [aten.select.int(stacks[0], 0, -1), *stacks[1:]]


def row(stack, i):
    """``stack[i]``, for an ``i`` of shape (1,)."""
    return aten.squeeze.dim(aten.index_select.default(stack, 0, i), 0)


def turned_back(body: Callable, n: int, saved: tuple, ends: list, rows: list) -> list:
    """Cotangents of the ``n`` carried values and of the other operands, None where there is none. ``saved``: the number of turns, what they began
    with, the other operands. ``ends``: cotangents of what the last turn gave. ``rows``: of what each turn gave, or nothing."""
    turns, states, others = saved[0], saved[1 : n + 1], saved[n + 1 :]
    pull = pullback(body, len(saved) - 1)
    sums = [aten.zeros_like.default(x) for x in others if differentiable(x)]
    k, q, m = len(ends), len(sums), len(rows)

    def left(i, *values):
        return (aten.reshape.default(aten.gt.Scalar(i, 0), []),)

    def back(i, *values):
        i = aten.sub.Tensor(i, 1)
        cts, totals, rest = values[:k], values[k : k + q], values[k + q :]
        cts = [aten.add.Tensor(c, row(r, i)) for c, r in zip(cts, rest[:m])] if m else cts
        got = pull(*(row(x, i) for x in rest[m : m + n]), *rest[m + n :], *cts)
        return (i, *got[:k], *(aten.add.Tensor(t, g) for t, g in zip(totals, got[k:])))

    out = while_loop_op(left, back, (turns, *ends, *sums), (*rows, *states, *others))[1:]
    return spread(out, [*states, *others])


class WhileFunction(Function):
    """A loop of unknown length. Forward it counts its turns and keeps what each began with; backward it is a loop over these from the end, which
    carries the cotangents and, summed up, those of the other operands."""

    @staticmethod
    def forward(ctx, test, body, n, *operands):
        carried, others = operands[:n], operands[n:]
        ctx.shown = operands if shown_only() else None
        if ctx.shown is not None:
            return tuple(while_loop_op(test, body, carried, others))
        turns, *stacks = remembered(test, body, carried, others)
        ctx.body, ctx.n = body, n
        ctx.save_for_backward(turns, *stacks[:n], *others)
        return tuple(aten.clone.default(aten.select.int(x, 0, -1)) for x in stacks[n:])

    @staticmethod
    def backward(ctx, *cts):
        if ctx.shown is not None:
            return shapes_of_cotangents(ctx.shown)
        ends = [c for c in cts if differentiable(c)]
        return (None, None, None, *turned_back(ctx.body, ctx.n, ctx.saved_tensors, ends, []))


class StackedFunction(Function):
    """The same with what every turn gave. Where there was no turn, the only row is what came in."""

    @staticmethod
    def forward(ctx, test, body, n, *operands):
        carried, others = operands[:n], operands[n:]
        ctx.shown = operands if shown_only() else None
        if ctx.shown is not None:
            return tuple(while_loop_stack_output_op(test, body, carried, others))
        turns, *stacks = remembered(test, body, carried, others)
        ctx.body, ctx.n = body, n
        ctx.save_for_backward(turns, *stacks[:n], *others)
        return tuple(stacks[n:])

    @staticmethod
    def backward(ctx, *cts):
        if ctx.shown is not None:
            return shapes_of_cotangents(ctx.shown)
        turns = ctx.saved_tensors[0]
        rows = [c for c in cts if differentiable(c)]
        first = [aten.select.int(c, 0, 0) for c in rows]
        none = aten.reshape.default(aten.eq.Scalar(turns, 0), [])
        ends = [aten.where.self(none, x, aten.zeros_like.default(x)) for x in first]
        return (None, None, None, *turned_back(ctx.body, ctx.n, ctx.saved_tensors, ends, rows))


def differentiated(function: type[Function], op, test: Callable, body: Callable, carried: tuple, others: tuple):
    if depends(body, carried, others):
        return function.apply(test, body, len(carried), *carried, *others)
    with _autograd.no_grad():
        return op(test, body, carried, others)


@while_loop_op.rule("autograd")
def _(op, test, body, carried, others):
    return differentiated(WhileFunction, op, test, body, carried, others)


@while_loop_stack_output_op.rule("autograd")
def _(op, test, body, carried, others):
    return differentiated(StackedFunction, op, test, body, carried, others)
