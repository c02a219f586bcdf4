"""``tensor.backward()`` in captured code: one call of ``autograd.grad`` in the graph, whose results go into the leaves' ``.grad``."""

from __future__ import annotations

from flambeau import _C, autograd

from .. import tensors
from ..exc import unsupported
from .base import Variable
from .constant import ConstantVariable

__all__ = ["backward", "is_freed", "with_freed_history"]


def without_hooks(leaf) -> bool:
    """Whether nothing runs when the leaf's gradient arrives."""
    return not _C.leaf_hooks(leaf, False) and not _C.leaf_hooks(leaf, True)


def tape_of(val) -> list:
    """The nodes of the tape that ``val`` leads to."""
    found, seen, stack = [], set(), [val.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and id(node) not in seen:
            seen.add(id(node))
            found.append(node)
            stack.extend(n for n, _ in node.next_functions)
    return found


def is_freed(output, val) -> bool:
    """Whether a backward while tracing has freed what the derivative of ``val`` needs."""
    return bool(output.freed) and val.requires_grad and any(id(n) in output.freed for n in tape_of(val))


class Freed(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.alias() if hasattr(x, "alias") else x.view(x.shape)

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
            "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
            "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
            "after calling backward."
        )


def with_freed_history(value):
    """The tensor as a result whose history a backward has freed."""
    with autograd.enable_grad():
        return Freed.apply(value.requires_grad_())


def backward(tx, owner, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    given = {**dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), args)), **kwargs}
    plain = {k: v.as_constant() for k, v in given.items() if k != "gradient" and v.can_constant()}
    if plain.get("create_graph") or plain.get("inputs") is not None or "inputs" in given.keys() - plain.keys():
        unsupported("backward", "backward() with create_graph or inputs", "Only gradients of all leaves are captured.")
    if owner.val.grad_fn is None:
        unsupported("backward", "backward() of a tensor without a history", "It raises an error or writes to a leaf.")
    by_value = {id(i.node.meta["val"]): i for i in tx.output.inputs}
    inputs = []
    tape = tape_of(owner.val)
    for leaf in (n.variable for n in tape if hasattr(n, "variable")):
        found = by_value.get(id(leaf))
        if found is None or found.ndarray:
            unsupported("backward", "backward() that reaches a leaf made while tracing")
        inputs.append(found)
    for i in inputs:
        if not without_hooks(i.example):
            unsupported("backward", "backward() to a tensor with hooks", "They run at each backward.")
        tx.output.guard(i.source, "CALL", without_hooks)
    leaves = [tx.wrap(i.example, i.source) for i in inputs]
    keep = bool(plain.get("retain_graph"))
    options = {"retain_graph": ConstantVariable(keep), "allow_unused": ConstantVariable(True)}
    if not keep:
        tx.output.freed.update({id(n): n for n in tape if not hasattr(n, "variable")})
    gradient = given.get("gradient")
    if gradient is not None and not gradient.is_constant():
        options["grad_outputs"] = gradient
    grads = tx.output.call_in_graph(tx, "call_function", autograd.grad, [owner, tx.make_tuple(leaves)], options).items(
        tx
    )
    for leaf, g in zip(leaves, grads):
        if g.is_constant():
            continue
        old = leaf.getattr(tx, "grad")
        if old.is_constant():
            leaf.setattr(tx, "grad", g)
            continue
        before = tensors.grad_enabled()
        tx.output.set_grad_mode(tx, False)
        old.call_method(tx, "add_", [g], {})
        tx.output.set_grad_mode(tx, before)
    return ConstantVariable(None)
