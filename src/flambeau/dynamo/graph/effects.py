"""Questions about the calls of a captured graph: their effects, and whether code of the program handles their errors."""

from __future__ import annotations

import functools
from collections.abc import Callable

from flambeau import fx
from flambeau.core.generator import Generator, default_generator, is_engine

from ..exc import SkipFrame, unsupported
from ..guards.tree import overlapping
from ..rules import trace_rules
from ..rules.reflect import module_of
from ..variables.numpy.read_only import is_read_only

__all__ = [
    "drawing_again",
    "draws",
    "has_effects",
    "has_nodes",
    "may_run_again",
    "of_the_library",
    "refuse_acting",
    "refuse_read_only",
    "refuse_shared_memory",
    "under_handler",
    "writes",
    "written_inputs",
]


_LIBRARY = ("flambeau", "_operator", "builtins", "math", "numpy")


def under_handler(tx) -> bool:
    """Whether an exception raised here comes to a handler of the captured frame, or of one inlined in it, before it leaves."""
    while tx is not None:
        if tx.inst is not None and tx.inst.handler is not None:
            return True
        tx = tx.parent
    return False


def writes(node) -> bool:
    return "writes" in node.meta.get("effects", ()) or trace_rules.is_allowed(node.target)


def written_inputs(inputs: list) -> list[int]:
    """Positions of those that the graph writes to."""
    return [k for k, i in enumerate(inputs) if not i.number and i.node.meta["val"]._writes]


def draws(node) -> bool:
    return node.op.startswith("call") and "draws" in node.meta.get("effects", ())


def draws_by_default(node) -> bool:
    """Whether the node draws from the default generator, as far as it draws."""
    return not draws(node) or not any(map(_is_generator, (*node.args, *node.kwargs.values())))


def _is_generator(x) -> bool:
    return isinstance(x, Generator) or isinstance(x, fx.Node) and is_engine(x.meta.get("val"))


def drawing_again(fn: Callable) -> Callable:
    """``fn``, a graph, with the default generator set back when it raises an error."""

    @functools.wraps(fn, updated=())
    def run(*args):
        place = default_generator.place()
        try:
            return fn(*args)
        except BaseException:
            default_generator.go_back(place)
            raise

    run.keeps_inputs_at_errors = getattr(fn, "keeps_inputs_at_errors", False)
    run.untouched_at_errors = getattr(fn, "untouched_at_errors", False)
    return run


def has_effects(output) -> bool:
    """Whether running the graph does more than give values, write, draw from the default generator and switch the grad mode (which is set back at an
    error): it draws from others or calls what it knows nothing of."""
    if output.python_draws:
        return True
    for n in output.recorder.root.nodes:
        if n.op.startswith("call") and (not draws_by_default(n) or trace_rules.is_allowed(n.target)):
            return True
    return False


def may_run_again(node) -> bool:
    """Whether the node may run, raise, and run again with the frame. An operator that a program defined may do anything before it raises, and
    the error of a program's own check says more than the plain one."""
    if node.meta.get("val") is None and "checks" in node.meta.get("effects", ()):
        return False
    return of_the_library(node.target) if node.op == "call_function" else node.op != "call_module"


def of_the_library(target) -> bool:
    """Whether a function or operator is the library's, not one that a program made."""
    module = module_of(target) or module_of(type(target))
    operators = module.removeprefix("flambeau._ops.")
    return operators in ("aten", "prims", "flambeau") if operators != module else module.split(".")[0] in _LIBRARY


def refuse_shared_memory(output, inputs: list) -> None:
    """Something is written: no input that is may share memory with another one, at this call and at later ones."""
    if not overlapping([i.example._array for i in inputs if i.example._array is not None]):
        output.guards.no_overlap([i.source for i in inputs])
        return
    opaque = any(trace_rules.is_allowed(n.target) for n in output.recorder.root.nodes if n.op == "call_function")
    for i in inputs:
        if not opaque and i.node.meta["val"]._writes == 0:
            continue  # what is written is made here, or another input
        for other in inputs:
            if other is i:
                continue
            if overlapping([x.example._array for x in (i, other) if x.example._array is not None]):
                raise SkipFrame("the function writes to a tensor, and two of its inputs share memory")
            output.guards.no_overlap([i.source, other.source])


def has_nodes(args, kwargs) -> bool:
    return any(True for _ in fx.node.nodes_in((args, kwargs)))


def refuse_read_only(name: str, operands) -> None:
    if any(is_read_only(n) for n in fx.node.nodes_in(operands)):
        unsupported("numpy", f"{name} may write into an array that is only read", "NumPy decides, and tells the error.")


def refuse_acting(target, operands) -> None:
    """Unsupported for a function of the library that would act while it is captured, and once more when the graph or the plain call runs."""
    if trace_rules.may_act(target) and not has_nodes(*operands):
        unsupported(
            "skipped-function",
            f"call to skipped function {getattr(target, '__qualname__', target)}",
            "Not traced: a function of the library that takes and makes no tensors may have effects.",
            "torch._dynamo.allow_in_graph puts it in the graph as it is.",
        )
