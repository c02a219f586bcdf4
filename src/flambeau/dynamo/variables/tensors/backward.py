"""``tensor.backward()`` in captured code: one call of ``autograd.grad`` in the graph, whose results go into the leaves' ``.grad``."""

from __future__ import annotations

from flambeau import _C, autograd
from flambeau.autograd.node import set_history
from flambeau.base import pytree
from flambeau.core.operator import namespace

from ...exc import unsupported
from ...graph import tensor_queries
from ..base import Variable
from ..containers.sequences import SequenceVariable
from ..values.constant import ConstantVariable
from .gradient_hooks import last_handle

__all__ = ["backward", "check_ends", "derivative", "is_freed", "with_freed_history"]


def is_bare_leaf(tensor) -> bool:
    """Whether a gradient that arrives here goes nowhere else and nothing runs for it."""
    return tensor.grad_fn is None and not _C.leaf_hooks(tensor, False) and not _C.leaf_hooks(tensor, True)


def is_end(tensor) -> bool:
    """Whether a gradient that arrives here goes nowhere else."""
    return not has_history(tensor)


def has_history(tensor) -> bool:
    # Asked by a guard, of which a class with __torch_function__ hears nothing.
    with _C.Guard(function_disabled=1):
        return tensor.grad_fn is not None


def give_histories(output) -> bool:
    """Inputs that have a history may be written where a leaf may not: their fake tensors get one. Whether any of them lacked it."""
    found = [
        i
        for i in output.recorder.inputs
        if not (i.number or i.ndarray) and has_history(i.example) and i.node.meta["val"].grad_fn is None
    ]
    for i in found:
        fake = i.node.meta["val"]
        root = tensor_queries.same_place(fake)
        with output.fake_mode, autograd.enable_grad():
            made = root.clone()
        set_history(fake, made._grad_fn, made._output_nr)
        output.roots[id(root)] = i
        output.objects.keep.append(root)
        output.guard(i.source, "CALL", has_history)
    return bool(found)


def inputs_by_leaf(output) -> dict:
    """The inputs of the graph by the leaves of the tape that stand for them."""
    return {**{id(i.node.meta["val"]): i for i in output.recorder.inputs}, **output.roots}


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
    def forward(ctx, x, *ways):
        return x.alias() if hasattr(x, "alias") else x.view(x.shape)

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
            "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
            "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
            "after calling backward."
        )


def with_freed_history(value, *ways):
    """The tensor as a result whose history, which led to ``ways``, a backward has freed."""
    with autograd.enable_grad():
        return Freed.apply(value.requires_grad_(), *ways)


OWN_HISTORY = "The graph holds its own part of the history only: what lies before its inputs would be missing."


def check_ends(tx, outputs, inputs) -> None:
    """``autograd.grad(outputs, inputs)``: breaks where a gradient would go on through the history that an input of the graph has."""
    wanted = [id(v.val) for v in _tensors(tx, inputs)]
    by_value = inputs_by_leaf(tx.output)
    reached = {}
    for v in _tensors(tx, outputs):
        for leaf in (n.variable for n in tape_of(v.val) if hasattr(n, "variable")) if v.val.requires_grad else ():
            found = by_value.get(id(leaf))
            if found is not None and not found.ndarray:
                reached[id(leaf)] = found
    # NOTE: gradients of one input with a history, and of nothing else, end there.
    on = [k for k, i in reached.items() if i.example.grad_fn is not None]
    if on and wanted != on:
        unsupported("backward", "autograd.grad() that goes on through an input's own history", OWN_HISTORY)
    for k, i in reached.items():
        if k not in on:
            tx.output.guard(i.source, "CALL", is_end)


def free_way(tx, outputs, inputs) -> None:
    """After ``autograd.grad(outputs, inputs)``: what the derivatives between them need is freed."""
    ends = {(id(v.val.grad_fn), v.val._output_nr) for v in _tensors(tx, inputs) if v.val.grad_fn is not None}
    leaves = {id(v.val) for v in _tensors(tx, inputs)}
    needed: dict[int, bool] = {}
    stack = [(v.val.grad_fn, False) for v in _tensors(tx, outputs) if v.val.grad_fn is not None]
    while stack:
        node, seen = stack.pop()
        if not seen:
            if id(node) not in needed:
                needed[id(node)] = False
                stack.append((node, True))
                stack.extend((n, False) for n, _ in node.next_functions if n is not None and id(n) not in needed)
        elif any(
            n is not None and ((id(n), k) in ends or needed.get(id(n)) or id(getattr(n, "variable", None)) in leaves)
            for n, k in node.next_functions
        ):
            needed[id(node)] = True
            tx.output.freed[id(node)] = node


def _tensors(tx, v) -> list:
    """The tensors of an argument: one, or a list of them."""
    values = v.items(tx) if isinstance(v, SequenceVariable) else [v]
    return [x for x in values if x.is_tensor]


def derivative(tx, args, kwargs) -> Variable:
    """A call of ``autograd.grad`` in the graph."""
    stand_ins = tx.output.stand_ins
    if stand_ins.recorded:
        unsupported("backward", "a derivative behind an operation on a tensor subclass that requires grad")
    out = tx.output.call_in_graph(tx, "call_function", autograd.grad, args, kwargs)
    stand_ins.differentiated = True
    return out


def memories(output) -> set[int]:
    """The storages of the values of the graph, by id. A leaf's gradient lies in none of them, nor in another leaf's."""
    values = (v for n in output.recorder.root.nodes for v in pytree.tree_leaves(n.meta.get("val")))
    return {id(v._storage) for v in values if isinstance(v, _C.TensorBase)}


def copy_like(tx, leaf, g) -> Variable:
    """The gradient in memory of its own, laid out as the leaf."""
    place = tx.output.call_in_graph(tx, "call_function", namespace("aten").empty_like.default, [leaf], {})
    return place.call_method(tx, "copy_", [g], {})


def backward(tx, owner, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    given = {**dict(zip(("gradient", "retain_graph", "create_graph", "inputs"), args)), **kwargs}
    plain = {k: v.as_constant() for k, v in given.items() if k != "gradient" and v.can_constant()}
    if plain.get("create_graph") or plain.get("inputs") is not None or "inputs" in given.keys() - plain.keys():
        unsupported("backward", "backward() with create_graph or inputs", "Only gradients of all leaves are captured.")
    if last_handle(tx.output) is not None:
        unsupported(
            "backward", "backward() behind the registration of a hook", "The hook is registered behind the graph."
        )
    if owner.val.grad_fn is None:
        unsupported("backward", "backward() of a tensor without a history", "It raises an error or writes to a leaf.")
    by_value = inputs_by_leaf(tx.output)
    inputs = []
    tape = tape_of(owner.val)
    for leaf in (n.variable for n in tape if hasattr(n, "variable")):
        found = by_value.get(id(leaf))
        if found is None or found.ndarray:
            unsupported("backward", "backward() that reaches a leaf made while tracing")
        if found.example.grad_fn is not None:
            unsupported("backward", "backward() that goes on through an input's own history", OWN_HISTORY)
        inputs.append(found)
    for i in inputs:
        if not is_bare_leaf(i.example):
            unsupported("backward", "backward() to a tensor with hooks", "They run at each backward.")
        tx.output.guard(i.source, "CALL", is_bare_leaf)
    leaves = [tx.wrap(i.example, i.source) for i in inputs]
    keep = bool(plain.get("retain_graph"))
    options = {"retain_graph": ConstantVariable(keep), "allow_unused": ConstantVariable(True)}
    if not keep:
        tx.output.freed.update({id(n): n for n in tape if not hasattr(n, "variable")})
    gradient = given.get("gradient")
    if gradient is not None and not gradient.is_constant():
        options["grad_outputs"] = gradient
    taken = memories(tx.output)
    grads = derivative(tx, [owner, tx.make_tuple(leaves)], options).items(tx)
    for leaf, g in zip(leaves, grads):
        if g.is_constant():
            continue
        old = leaf.getattr(tx, "grad")
        if old.is_constant():
            own = id(g.val._storage) not in taken and g.val._strides == leaf.val._strides
            taken.add(id(g.val._storage))
            leaf.setattr(tx, "grad", g if own else copy_like(tx, leaf, g))
            continue
        before = tensor_queries.grad_enabled()
        tx.output.set_grad_mode(tx, False)
        old.call_method(tx, "add_", [g], {})
        tx.output.set_grad_mode(tx, before)
    return ConstantVariable(None)
