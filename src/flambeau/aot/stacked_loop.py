"""``while_loop_stack_output``: a loop of unknown length that gives what every turn carried, stacked.

Called plainly it is a loop of Python, recorded by autograd as any code. Under tracing it is one node, whose results have a first dimension that
only running the loop tells.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from ..base.dtypes import bool_
from ..base.shape_env import data_dependent_size, shape_rules
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensorMode
from ..proxy import ProxyTorchDispatchMode
from .control_flow import is_tensor, must_agree, recorded

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


@while_loop_stack_output_op.rule("autograd")
def _(op, test, body, carried, others):
    raise RuntimeError(
        "while_loop_stack_output: the derivative of a traced loop of unknown length is not supported; call it outside the "
        "compiled function, or use scan"
    )
