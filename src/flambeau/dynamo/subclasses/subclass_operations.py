"""Tensor subclasses in captured code.

A subclass with data and no ``__torch_dispatch__`` is a node of the graph like any tensor, and its class; the graph itself runs on plain tensors.
One that has ``__torch_dispatch__`` and no data of its own (a wrapper) is no node: it is its attributes, which are found and guarded like those
of any object, and its sizes.

An operation on one runs for real, on fake *stand-ins* whose ``__torch_function__`` and ``__torch_dispatch__`` trace the user's: so which
function is passed, in which order classes are asked, and which operators a call comes down to are the library's own. What the user's
handlers do with plain tensors goes into the graph; their guards and side effects are those of any code. So every backend sees only
operations on plain tensors.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau import _C
from flambeau.base import pytree
from flambeau.core.modes import TorchFunctionMode

from ..exc import Unsupported, unsupported
from ..graph import tensor_queries
from ..rules.reflect import dict_of, mro_of
from ..tracing import world
from ..tracing.current_frame import current
from ..variables.base import Lazy, Variable
from ..variables.containers.sequences import SequenceVariable
from ..variables.objects.instance import ObjectVariable
from ..variables.tensors.codes import of_argument as of_quantised
from ..variables.tensors.graph_results import Opaque
from ..variables.tensors.tensor_subclass import SubclassVariable
from ..variables.tensors.torch_classes import UnboundTensorMethod
from .making import as_class, as_subclass, make, of_argument
from .operation import Operation
from .overrides import AttributeFunction, DisableFunctionVariable, function_disabled
from .stand_ins import StandIns

__all__ = [
    "AttributeFunction",
    "DisableFunctionVariable",
    "StandIns",
    "as_class",
    "as_subclass",
    "asked_of_mode",
    "call",
    "call_operation",
    "handler_is_user",
    "interposes",
    "make",
    "of_argument",
    "of_quantised",
    "without_overrides",
]


class Asked(Exception):
    """Ends a call that only was to tell what a function mode gets."""


class Probe(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise Asked(func, args, kwargs or {})


def asked_of_mode(tx, fn: Callable, args, kwargs) -> tuple[Variable, list, dict] | None:
    """With which function and arguments ``fn(*args, **kwargs)``, an operator of Python's or the read of an attribute, comes to a function mode.
    None: with none."""
    run = Operation(tx, False)
    values, named = [run.value(a) for a in args], {k: run.value(v) for k, v in kwargs.items()}
    try:
        with Probe():
            fn(*values, **named)
    except Asked as e:
        func, given, keywords = e.args
    except Exception:  # the operation itself says what is wrong
        return None
    else:
        return None
    name = getattr(func, "__name__", "")
    known = (
        UnboundTensorMethod(tensor_queries.Tensor, name) if getattr(tensor_queries.Tensor, name, None) is func else None
    )
    return (
        known or run.variable(func),
        [run.variable(a) for a in given],
        {k: run.variable(v) for k, v in keywords.items()},
    )


def handler_is_user(tx, cls: type, name: str) -> bool:
    found = world.class_attr(tx, cls, name)
    return tensor_queries.is_user_code(getattr(found, "__func__", found))


def parts(args, kwargs):
    for v in [*args, *kwargs.values()]:
        v = looked_at(v)
        yield v
        if isinstance(v, SequenceVariable):
            yield from map(looked_at, v.seen())


def looked_at(e: Variable) -> Variable:
    """An argument or an element of one. What nothing has looked at yet is, where its class, or that of an element, may take over."""
    e = e.unwrap()
    if isinstance(e, Lazy) and (
        e.python_type() in (list, tuple) or any("__torch_function__" in dict_of(c) for c in mro_of(e.python_type()))
    ):
        return e.real(current()).unwrap()
    return e


def interposes(output, args, kwargs) -> str | None:
    """Whether classes among the arguments take the operation over, and how."""
    found = None
    for v in parts(args, kwargs):
        if isinstance(v, SubclassVariable):
            if not output.blocks.function_disabled and tensor_queries.overrides_function(v.cls):
                return "function"
            if tensor_queries.overrides_dispatch(v.cls):
                found = "dispatch"
        elif (
            isinstance(v, ObjectVariable)
            and not output.blocks.function_disabled
            and tensor_queries.overrides_function(v.cls)
        ):
            return "function"
    return found


def call(
    tx, name: str, fn: Callable, args, kwargs, otherwise: Callable | None = None, function: bool = True
) -> Variable:
    """``fn(*args, **kwargs)`` with subclasses among the arguments. ``otherwise``: what to do when no class is asked."""
    run = Operation(tx, function and not tx.output.blocks.function_disabled)
    values, named = [run.value(a) for a in args], {k: run.value(v) for k, v in kwargs.items()}
    leaves = pytree.tree_leaves([values, named])
    if tensor_queries.grad_enabled():
        run.records = any(isinstance(x, _C.TensorBase) and x.requires_grad for x in leaves)
        for x in leaves if run.records else ():
            if id(x) in run.known:
                tx.output.stand_ins.keep(x, run.known[id(x)])
    try:
        with _C.Guard(function_disabled=0):
            out = run.run(name, fn, values, named)
    except Unsupported as e:
        if run.calls or otherwise is None or e.reason.id != "fake-tensor":
            raise
        return otherwise()
    if run.records:
        check_written(name, run, leaves)
    if not run.calls:
        if otherwise is not None:
            return otherwise()
        if not any(isinstance(x, _C.TensorBase) for x in pytree.tree_leaves(out)):
            return tx.wrap_known(out)  # sizes and the like are the tensor's own
        unsupported("tensor-subclass", f"{name} asks no class among its arguments")
    # What __torch_function__ returned is of operations that were traced on their own.
    if run.records and not isinstance(out, Opaque):
        if run.stand_ins.differentiated:
            unsupported("tensor-subclass", f"{name} of a tensor subclass that requires grad, behind a derivative")
        run.stand_ins.recorded = True
    return run.variable(out)


def check_written(name: str, run: Operation, leaves: list) -> None:
    """A wrapper of the caller's that had no history has one behind a write: graphs give it none."""
    for x in leaves:
        v = run.known.get(id(x)) if isinstance(x, _C.TensorBase) and x.requires_grad else None
        if isinstance(v, SubclassVariable) and v.value is not None and v.node is None and not v.value.requires_grad:
            unsupported("tensor-subclass", f"{name} writes what requires grad to {v!r}, which came in without")


def call_operation(tx, op: str, target, args, kwargs, none_ok: bool) -> Variable:
    """An operation of the graph with subclasses among its arguments."""

    def otherwise():
        with function_disabled(tx):
            return tx.output.call_in_graph(tx, op, target, args, kwargs, none_ok=none_ok)

    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    fn = (lambda o, *a, **k: getattr(o, target)(*a, **k)) if op == "call_method" else target
    return call(tx, name, fn, args, kwargs, None if tx.output.blocks.function_disabled else otherwise)


def without_overrides(fn: Callable) -> Callable:
    """What runs a graph of which inputs are subclasses: what they override is in the graph."""

    def run(*args):
        with _C.Guard(function_disabled=1):
            return fn(*args)

    return run
