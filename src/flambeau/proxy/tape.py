"""Where the tape ends in a trace: what second derivatives take for constants."""

from __future__ import annotations

import enum
from typing import Any

from .. import _C
from ..autograd.function import in_forward
from ..core.higher_order import tensors_in
from ..core.operator import namespace
from ..fx import Node

__all__ = ["NotesOfTape", "OffTape"]

_DETACH = namespace("aten").detach.default


class OffTape(enum.Enum):
    """How the tape ends at a call: its result is a constant, it writes to what is on the tape without a trace there, or it is of the forward of a
    Function, which says the derivative."""

    CONSTANT = enum.auto()
    WRITTEN = enum.auto()
    FUNCTION = enum.auto()


class NotesOfTape:
    """Marks nodes at which the tape ends by ``meta["off_tape"]``: detach of what is on it, calls and writes without grad mode."""

    def __init__(self):
        # Of a backward, which runs without grad mode whether its results will be on a tape or not.
        self.in_backward = False
        # Each node's own tensor. Others may share its memory: ``x.data``, and what autograd keeps.
        self._first: dict[Node, Any] = {}
        self._detached: set[Node] = set()

    def made(self, tensor: Any, node: Node) -> None:
        """``tensor`` means ``node`` from now on."""
        self._first.setdefault(node, tensor)

    def note(self, node: Node, args: tuple, kwargs: dict) -> None:
        func = node.target
        if self.in_backward:
            if func is _DETACH and _on_tape(args, kwargs):
                node.meta["off_tape"] = OffTape.CONSTANT
            else:
                self._note_data(node, args, kwargs)
            return
        # Autograd keeps results detached, and attaches them again: a program's own are used by calls of the forward.
        for n in node.all_input_nodes:
            if n in self._detached:
                n.meta["off_tape"] = OffTape.CONSTANT
        if func is _DETACH:
            if _on_tape(args, kwargs):
                self._detached.add(node)
        elif in_forward():
            if _on_tape(args, kwargs):
                node.meta["off_tape"] = OffTape.FUNCTION
        elif func._schema.is_mutable:
            self._note_write(node, args, kwargs)
        else:
            if not _C.tls("grad_enabled"):
                if _on_tape(args, kwargs):
                    node.meta["off_tape"] = OffTape.CONSTANT
            else:
                self._note_data(node, args, kwargs)

    def _note_write(self, node: Node, args: tuple, kwargs: dict) -> None:
        if not args or not isinstance(args[0], _C.TensorBase) or not isinstance(node.args[0], Node):
            return
        quiet = args[0]._requires_grad and not _C.tls("grad_enabled")
        shifts = _shifts(node.target) and not _on_tape(args[1:], kwargs)
        if (quiet or self._is_beside(args[0], node.args[0])) and not shifts:
            node.meta["off_tape"] = OffTape.WRITTEN

    def _note_data(self, node: Node, args: tuple, kwargs: dict) -> None:
        """Detaches what is beside a tensor of the tape, of one memory and one node with it: ``x.data``."""
        if not any(self._is_beside(t, n) for t, n in _pairs((args, kwargs), (node.args, node.kwargs))):
            return
        if node.target.kind == "view":
            node.meta["off_tape"] = OffTape.CONSTANT
            return

        def detached(value, argument):
            if isinstance(argument, Node):
                return self._detach(argument) if self._is_beside(value, argument) else argument
            if isinstance(argument, dict):
                return {k: detached(value[k], a) for k, a in argument.items()}
            if isinstance(argument, (list, tuple)):
                return type(argument)(map(detached, value, argument))
            return argument

        with node.graph.inserting_before(node):
            node.args, node.kwargs = detached(args, node.args), detached(kwargs, node.kwargs)

    def _is_beside(self, t: Any, n: Node) -> bool:
        first = self._first.get(n)
        if first is None or not isinstance(t, _C.TensorBase):
            return False
        return first is not t and first._requires_grad and not t._requires_grad

    def _detach(self, n: Node) -> Node:
        made = n.graph.call_function(_DETACH, (n,))
        made.meta.update(val=n.meta["val"], off_tape=OffTape.CONSTANT)
        return made


def _shifts(op: Any) -> bool:
    """Whether what was there is moved, so that the derivative with respect to it is one."""
    return op.kind == "inplace" and "shifts" in op.definition.functional.tags


def _pairs(value: Any, argument: Any):
    """What is given, with its node."""
    if isinstance(argument, Node):
        yield value, argument
    elif isinstance(argument, dict):
        for k, a in argument.items():
            yield from _pairs(value[k], a)
    elif isinstance(argument, (list, tuple)):
        for v, a in zip(value, argument):
            yield from _pairs(v, a)


def _on_tape(args: tuple, kwargs: dict) -> bool:
    return any(t._requires_grad for t in tensors_in((args, kwargs)))
