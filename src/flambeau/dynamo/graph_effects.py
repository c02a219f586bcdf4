"""What is asked of the calls that a captured graph is made of: their effects, and who waits for their errors."""

from __future__ import annotations

from . import trace_rules

__all__ = ["under_handler", "writes"]


def under_handler(tx) -> bool:
    """Whether an exception raised here comes to a handler of the captured frame, or of one inlined in it, before it leaves."""
    while tx is not None:
        if tx.inst is not None and tx.inst.handler is not None:
            return True
        tx = tx.parent
    return False


def writes(node) -> bool:
    return "writes" in node.meta.get("effects", ()) or trace_rules.is_allowed(node.target)
