"""Calls of methods of tensors: nodes of the graph, but for those that :data:`DESPITE` and :data:`METHODS` have rules of their own for.

A rule is ``(tx, method, args, kwargs)`` and gives the result, or None for a call that goes the ordinary way."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable

from flambeau.base.shapes import Size

from ...exc import unsupported
from ...graph import tensor_queries
from ...rules import trace_rules
from ...tracing import world
from ..base import MethodOf, Variable
from ..containers.lists import ListVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import arithmetic
from . import gradient_hooks
from .backward import backward
from .storage_facts import is_shared, storage_offset
from .untraced import NOT_TRACED_METHODS, VALUE

__all__ = ["METHODS", "TensorMethodVariable", "method"]

Rule = Callable[..., Variable | None]
DESPITE: dict[str, Rule] = {}
"""Rules that are asked first: calls which are captured though the method as a whole isn't."""
METHODS: dict[str, Rule] = {}
"""Rules that are asked of what is captured."""


def method(*names: str, table: dict[str, Rule] = METHODS):
    """The decorator of the rule of these methods."""

    def decorator(rule: Rule) -> Rule:
        table.update(dict.fromkeys(names, rule))
        return rule

    return decorator


class TensorMethodVariable(MethodOf):
    def python_type(self):
        return types.MethodType

    def call(self, tx, args, kwargs):
        tensor, name = self.owner, self.name
        rule = DESPITE.get(name)
        if rule is not None and (found := rule(tx, self, args, kwargs)) is not None:
            return found
        untraced = NOT_TRACED_METHODS.get(name)
        if untraced and not tx.output.shapes.data_symbols(name):
            unsupported(
                "tensor-method",
                f"call_method TensorVariable() {name} {args!r} {kwargs!r}",
                untraced.why,
                "Compute on the tensor, or move this call out of the function.",
                headline=f".{name}() of a tensor "
                + ("asks for its elements." if untraced.of_elements else "isn't captured."),
            )
        cls_attr = world.class_attr(tx, tensor.cls, name)
        if world.is_defined(cls_attr) and tensor_queries.is_of_program(tensor.cls, name, cls_attr):
            return world.bind(tx, tensor, tensor.cls, name, cls_attr).call(tx, args, kwargs)
        if trace_rules.is_disallowed_method(name, cls_attr):
            unsupported(
                "disallowed", f"call to disallowed operator Tensor.{name}", "disallow_in_graph was called for it."
            )
        rule = METHODS.get(name)
        if rule is not None and (found := rule(tx, self, args, kwargs)) is not None:
            return found
        none_ok = name == "__setitem__"
        return tx.output.call_in_graph(tx, "call_method", name, [tensor, *args], kwargs, none_ok=none_ok)


@method(*gradient_hooks.METHODS, table=DESPITE)
def _(tx, method, args, kwargs):
    if not method.owner.is_plain_tensor:
        return None
    return gradient_hooks.register(tx, method.owner, method.name, args, kwargs)


@method("data_ptr", table=DESPITE)
def _(tx, method, args, kwargs):
    return AddressVariable(method.owner) if method.owner.is_plain_tensor and not args and not kwargs else None


@method("item", table=DESPITE)
def _(tx, method, args, kwargs):
    return DroppedNumber() if not args and not kwargs and DroppedNumber.serves(tx, method.owner) else None


@method("resize_", table=DESPITE)
def _(tx, method, args, kwargs):
    """A call that changes nothing."""
    tensor = method.owner
    if kwargs or not all(a.can_constant() for a in args):
        return None
    sizes = [a.as_constant() for a in args]
    size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    same = not tensor.val.requires_grad and tuple(size) == tuple(tensor.val.shape)
    return tensor if same else None


@method("detach_")
def refuse_to_detach(tx, method, args, kwargs) -> None:
    """A tensor of the caller's that has a history loses it for the caller, too: graphs have no operation that does that. A view's is an error."""
    t = method.owner
    if t.val._is_view():
        unsupported("tensor-method", f"detach_() of {t!r}, a view", "It raises an error.", "Use detach().")
    if t.node.op == "placeholder" and t.val.requires_grad:
        unsupported("tensor-method", f"detach_() of {t!r}", "The caller's tensor loses its history.", "Use detach().")


@method("storage_offset")
def _(tx, method, args, kwargs):
    return storage_offset(tx, method.owner)


@method("is_shared")
def _(tx, method, args, kwargs):
    return is_shared(tx, method.owner)


@method("as_subclass")
def _(tx, method, args, kwargs):
    return None if kwargs else tx.subclasses.as_subclass(tx, method.owner, args[0].as_constant())


@method("backward")
def _(tx, method, args, kwargs):
    tensor = method.owner
    if not tensor.is_plain_tensor:
        unsupported("backward", f"backward() of {tensor!r}", "Gradients go to leaves outside of the graph.")
    return backward(tx, tensor, args, kwargs)


@method("requires_grad_")
def _(tx, method, args, kwargs):
    tensor = method.owner
    if tensor.source is None:
        return None
    asked = [a.as_constant() for a in (*args, *kwargs.values()) if a.is_constant()] or [True]
    if asked == [tensor.val.requires_grad]:
        return tensor
    unsupported(
        "tensor-method",
        "call_method TensorVariable() requires_grad_",
        "It changes how autograd treats an input.",
        headline=".requires_grad_() of an argument isn't captured.",
    )


@method("new")
def _(tx, method, args, kwargs):
    if len(args) != 1 or args[0].python_type() is not Size:
        return None
    # In the graph a size is a tuple, which would be the elements.
    return tx.output.call_in_graph(tx, "call_method", "new", [method.owner, *args[0].items(tx)], kwargs)


@method("tolist")
def _(tx, method, args, kwargs):
    return numbers_of(tx, method.owner) if not args and not kwargs and method.owner.is_plain_tensor else None


@method("__int__", "__float__", "__index__")
def _(tx, method, args, kwargs):
    tensor = method.owner
    if tensor.val.dtype.name == "bool":
        tensor = tx.output.call_in_graph(tx, "call_method", "long", [tensor], {})
    number = tx.output.call_in_graph(tx, "call_method", "item", [tensor], {})
    return arithmetic(tx, float if method.name == "__float__" else int, [number])


@method("item")
def _(tx, method, args, kwargs):
    """Of a truth value. An integer is known by its symbol alone, whatever has been learned of it; a truth value would be the constant that it was
    checked to be."""
    tensor = method.owner
    if args or tensor.val.dtype.name != "bool" or not tensor.is_plain_tensor:
        return None
    number = tx.output.call_in_graph(tx, "call_method", "long", [tensor], {}).call_method(tx, "item", [], {})
    return arithmetic(tx, operator.ne, [number, ConstantVariable(0)])


class AddressVariable(Variable):
    """``t.data_ptr()``: a number that each call has its own of. Captured code asks for it behind the graph; what depends on it breaks the graph."""

    def __init__(self, tensor: Variable):
        super().__init__()
        self.tensor = tensor

    def __repr__(self):
        return "the .data_ptr() of a tensor"

    def python_type(self):
        return int

    def as_proxy(self):
        unsupported(
            "tensor-method",
            "call_method TensorVariable() data_ptr",
            NOT_TRACED_METHODS["data_ptr"].why,
            "Compute on the tensor, or move this call out of the function.",
            headline=".data_ptr() of a tensor isn't captured.",
        )

    def reconstruct(self, cg):
        cg.push_callable(lambda: (cg(self.tensor), cg.load_attr("data_ptr")))
        cg.call(0)


class DroppedNumber(Variable):
    """``t.item()`` as a statement, where such numbers are captured: nobody gets to see it, and the graph doesn't read it."""

    @staticmethod
    def serves(tx, tensor: Variable) -> bool:
        if not tensor.is_plain_tensor or tx.insts[tx.ip].name != "POP_TOP":
            return False
        if not tx.output.shapes.data_symbols("item"):
            return False
        # The number of a tensor of more elements is an error.
        return all(type(n) is int and n == 1 for n in tensor.val._shape)

    def as_proxy(self):
        unsupported("tensor-method", "call_method TensorVariable() item", VALUE.why)


def numbers_of(tx, t: Variable) -> Variable:
    """``t.tolist()``: a number of the graph for each element."""
    if not t.val.ndim:
        return t.call_method(tx, "item", [], {})
    return ListVariable([numbers_of(tx, row) for row in t.items(tx)])
