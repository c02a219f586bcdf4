"""What is asked of the calls that a captured graph is made of: their effects, and who waits for their errors."""

from __future__ import annotations

from . import tensors, trace_rules
from .exc import SkipFrame
from .guards import overlapping

__all__ = ["has_effects", "refuse_shared_memory", "under_handler", "writes"]


def under_handler(tx) -> bool:
    """Whether an exception raised here comes to a handler of the captured frame, or of one inlined in it, before it leaves."""
    while tx is not None:
        if tx.inst is not None and tx.inst.handler is not None:
            return True
        tx = tx.parent
    return False


def writes(node) -> bool:
    return "writes" in node.meta.get("effects", ()) or trace_rules.is_allowed(node.target)


def has_effects(output, writes: bool = True) -> bool:
    """Whether running the graph does more than give values: it draws random numbers, calls what it knows nothing of or, with ``writes``, writes
    to inputs. What it writes to arrays of its own doesn't count."""
    for n in output.root.nodes:
        if n.op.startswith("call") and (
            "draws" in n.meta.get("effects", ())
            or n.target is tensors.set_grad_enabled
            or trace_rules.is_allowed(n.target)
        ):
            return True
    return writes and any(not i.number and i.node.meta["val"]._version for i in output.inputs)


def refuse_shared_memory(output, inputs: list) -> None:
    """Something is written: no input that is may share memory with another one, at this call and at later ones."""
    if not overlapping([i.example._array for i in inputs if i.example._array is not None]):
        output.guards.no_overlap([i.source for i in inputs])
        return
    opaque = any(trace_rules.is_allowed(n.target) for n in output.root.nodes if n.op == "call_function")
    for i in inputs:
        if not opaque and i.node.meta["val"]._version == 0:
            continue  # what is written is made here, or another input
        for other in inputs:
            if other is i:
                continue
            if overlapping([x.example._array for x in (i, other) if x.example._array is not None]):
                raise SkipFrame("the function writes to a tensor, and two of its inputs share memory")
            output.guards.no_overlap([i.source, other.source])
