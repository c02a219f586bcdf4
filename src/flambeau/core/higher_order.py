"""Operators whose arguments are graphs: ``cond``, ``while_loop``, ``scan`` and their kin.

A :class:`HigherOrderOperator` is the target of a ``call_function`` node; its subgraphs are GraphModules that the surrounding module holds
(``get_attr`` nodes), and what they read from outside is handed to them as operands. It has one rule for each layer that a call passes
through, as operators have a facet: ``"vmap"``, ``"autograd"``, a rule for a class of dispatch modes, and ``"eager"``, which is also what a
mode without a rule gets to see the parts of. Functional tensors are unwrapped around it, and its bodies run on functional tensors again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .. import _C
from . import modes
from .dispatch import HANDLERS
from .keys import FUNCTIONALIZE, TRANSFORM

__all__ = ["NAMED", "HigherOrderOperator", "tensors_in"]


def tensors_in(tree: Any) -> Iterator[Any]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(tree, _C.TensorBase):
        yield tree
    elif isinstance(tree, (tuple, list)):
        for x in tree:
            yield from tensors_in(x)
    elif isinstance(tree, dict):
        yield from tensors_in(list(tree.values()))


NAMED: dict[str, HigherOrderOperator] = {}  # for graphs in files


class HigherOrderOperator:
    """``rule(key)`` is a decorator that sets the rule of a layer: ``rule(op, *args, **kwargs)``, for a mode ``rule(op, mode, *args,
    **kwargs)`` with that mode off."""

    kind = "higher_order"
    tags: tuple[str, ...] = ()

    def __init__(self, name: str):
        NAMED.setdefault(name, self)
        self.__name__ = name
        self.__module__ = "flambeau.ops.higher_order"
        self.rules: dict[Any, Callable] = {}

    def __repr__(self) -> str:
        return f"higher_order.{self.__name__}"

    def rule(self, key: Any) -> Callable[[Callable], Callable]:
        def add(fn):
            self.rules[key] = fn
            return fn

        return add

    def __call__(self, *args, **kwargs):
        found = list(tensors_in((args, kwargs)))
        if "vmap" in self.rules and any(t._keys & TRANSFORM for t in found):
            return self.rules["vmap"](self, *args, **kwargs)
        if any(t._keys & FUNCTIONALIZE for t in found):
            return HANDLERS["functional bodies"](self, args, kwargs)
        stack = modes.dispatch_stack()
        if stack:
            recording = _C.tls("grad_enabled") and any(t._requires_grad for t in found)
            if recording and "autograd" in self.rules and any(self.mode_rule(type(m)) for m in stack):
                return self.rules["autograd"](self, *args, **kwargs)
            rule = self.mode_rule(type(stack[-1]))
            if rule is not None:
                with modes.popped("dispatch") as mode:
                    return rule(self, mode, *args, **kwargs)
        return self.rules["eager"](self, *args, **kwargs)

    def mode_rule(self, cls: type) -> Callable | None:
        return next((self.rules[c] for c in cls.__mro__ if c in self.rules), None)
