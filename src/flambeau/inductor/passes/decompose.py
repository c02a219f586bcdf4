"""Opens the composite operators of a graph: the flat program that lowering reads.

A composite's ``fn`` is run on tensors without data under a dispatch mode that writes down every call. Composites met on the way are decomposed in
turn. The result is a list of :class:`OpCall` records in order, each with its shape rule's result and the number of its readers.
"""

from __future__ import annotations

import operator
from typing import Any

from ... import _C
from ...base.relations import symbols
from ...core import keys
from ...core.definition import TensorMeta
from ...core.dispatch import excluding
from ...core.modes import TorchDispatchMode
from ...core.tensor import Tensor
from ...fx.graph_facts import facts_of
from ...fx.targets import kind_of

__all__ = ["OpCall", "OpProgram", "decompose_graph"]


class OpCall:
    """``what``: "input", "constant" or "call". ``args`` and ``kwargs`` refer to other calls. ``val``: tensors without data, or plain values.
    ``node``: of the graph that was decomposed, which it is or is a part of."""

    __slots__ = ("what", "target", "args", "kwargs", "val", "uses", "node")

    def __init__(self, what, target, args, kwargs, val):
        self.what, self.target, self.args, self.kwargs, self.val = what, target, args, kwargs, val
        self.uses = 0
        self.node: Any = None

    def __repr__(self):
        return f"<{self.what} {self.target}>"


class OpProgram:
    """``free``, ``orders``: see compile_graph."""

    def __init__(self):
        self.calls: list[OpCall] = []
        self.node: Any = None  # that is being decomposed
        self.outputs: list[Any] = []
        self.backward = False
        self.free: tuple[int, ...] = ()
        self.orders: dict[int, tuple[int, ...]] = {}

    def add(self, *parts) -> OpCall:
        call = OpCall(*parts)
        call.node = self.node
        self.calls.append(call)
        return call

    def count(self) -> None:
        """Number of readers of each call."""
        for call in self.calls:
            rewritten((call.args, call.kwargs), _count)
        rewritten(self.outputs, _count)

    def show(self) -> str:
        names = {c: f"v{i}" for i, c in enumerate(self.calls)}
        text = lambda x: rewritten(x, names.__getitem__)  # noqa: E731
        lines = [
            f"{names[c]} = {c.what} {c.target}({text(c.args)}, {text(c.kwargs)}) # {_describe(c.val)}"
            for c in self.calls
        ]
        return "\n".join([*lines, f"return {text(self.outputs)}"])


def _describe(val) -> str:
    if isinstance(val, (tuple, list)):
        return f"({', '.join(map(_describe, val))})"
    return f"{val.dtype}{list(val.shape)}{list(val.stride())}" if isinstance(val, _C.TensorBase) else repr(val)


def rewritten(x, fn):
    """Nested arguments with ``fn(call)`` for each call in them."""
    if isinstance(x, OpCall):
        return fn(x)
    if isinstance(x, (tuple, list)):
        return [rewritten(y, fn) for y in x]
    if isinstance(x, dict):
        return {k: rewritten(v, fn) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(rewritten(x.start, fn), rewritten(x.stop, fn), rewritten(x.step, fn))
    return x


def tensor_meta(t) -> TensorMeta:
    """What is known of a tensor without its data."""
    return TensorMeta(tuple(t.shape), tuple(t.stride()), t.dtype, t.device)


def _without_data(meta):
    if isinstance(meta, TensorMeta):
        return _C.without_data(Tensor, meta.shape, meta.strides, meta.dtype, meta.device, meta.offset, None)
    if isinstance(meta, (tuple, list)):
        return type(meta)(map(_without_data, meta))
    return meta


class _Recording(TorchDispatchMode):
    """Writes calls on tensors without data into a program. ``calls``: which call made a tensor (kept alive by the program)."""

    sees_parts = True

    def __init__(self, program: OpProgram):
        super().__init__()
        self.program = program
        self.made: dict[int, Any] = {}
        self.alive: list = []

    def know(self, tensor, call):
        self.made[id(tensor)] = call
        self.alive.append(tensor)
        return tensor

    def reference(self, x):
        if isinstance(x, _C.TensorBase):
            call = self.made.get(id(x))
            if call is None:
                call = self.made[id(x)] = self.program.add("constant", "tensor", (), {}, x)
                self.alive.append(x)
            return call
        if isinstance(x, (tuple, list)):
            return [self.reference(y) for y in x]
        return x

    def __torch_dispatch__(self, func, types, args=(), kwargs=None, positional=False):
        """``positional``: ``args`` are all arguments in schema order."""
        full = args if positional else func.full(*args, **(kwargs or {}))
        if func.kind == "composite" and not _kept_fused(func, full):
            with self:
                return func.definition.fn(*full)
        out = _without_data(func.facet("meta")(*full))
        names = [a.name for a in func._schema.arguments if a.kwarg_only]
        split = len(full) - len(names)
        call = self.program.add(
            "call", func, self.reference(full[:split]), dict(zip(names, map(self.reference, full[split:]))), out
        )
        self.results(out, call)
        return out

    def results(self, out, call):
        if isinstance(out, (tuple, list)):
            for i, x in enumerate(out):
                if isinstance(x, _C.TensorBase):
                    self.know(x, self.program.add("call", operator.getitem, (call, i), {}, x))
        elif isinstance(out, _C.TensorBase):
            self.know(out, call)


def decompose_graph(gm) -> OpProgram:
    """The program of an ATen-level graph module whose nodes carry ``meta["val"]``."""
    program = OpProgram()
    facts = facts_of(gm)
    program.free, program.orders = facts.free, facts.orders
    recording = _Recording(program)
    env: dict[Any, Any] = {}  # node -> OpCall, or a nested list of them for a decomposed composite with several results
    known: set = set()  # symbols that inputs and calls so far have told

    def look(x):
        return _nodes(x, env.__getitem__)

    with excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM):
        for node in gm.graph.nodes:
            val = node.meta.get("val")
            program.node = node if node.op == "call_function" else None
            if node.op == "placeholder":
                program.backward |= node.name.startswith("tangents_")
                env[node] = program.add("input", node.name, (), {}, val)
            elif node.op == "get_attr":
                owner = gm
                for part in node.target.split("."):
                    owner = getattr(owner, part)
                env[node] = program.add("constant", node.target, (), {}, owner)
            elif node.op == "output":
                outputs = look(node.args[0])
                program.outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
            elif node.op != "call_function":
                raise NotImplementedError(
                    f"inductor: node {node.name} is a {node.op}; graphs are lowered with modules inlined"
                )
            elif node.target is operator.getitem and isinstance(env.get(node.args[0]), list):
                env[node] = env[node.args[0]][node.args[1]]
            elif hasattr(val, "__sym__") and symbols(val.expr) <= known:
                env[node] = val  # a number that follows from others
            elif kind_of(node.target) == "composite" and not _numeric(node, val, known):

                def tensor(call):
                    return recording.know(call.val, call) if isinstance(call.val, _C.TensorBase) else call.val

                args, kwargs = rewritten((look(node.args), look(dict(node.kwargs))), tensor)
                full = node.target.full(*args, **kwargs)
                if _kept_fused(node.target, full):
                    env[node] = program.add("call", node.target, look(node.args), look(dict(node.kwargs)), val)
                else:
                    with recording:
                        env[node] = recording.reference(node.target.definition.fn(*full))
            else:
                env[node] = program.add("call", node.target, look(node.args), look(dict(node.kwargs)), val)
            _learn(val, known)
    program.count()
    return program


def _numeric(node, val, known) -> bool:
    """A composite that gives or looks at a number, or makes sizes, that are known only when the graph runs: a call, not to be decomposed (its parts
    would make other sizes)."""
    told: set = set()
    _learn(val, told)
    return hasattr(val, "__sym__") or bool(told - known) or "has_side_effects" in node.target.tags


def _kept_fused(op, full) -> bool:
    """Whether a composite has a lowering of its own for these arguments and stays closed."""
    takes = op.overrides.get("keep_fused")
    return takes is not None and takes(*full)


def _learn(val, known: set) -> None:
    """Symbols in a node's value."""
    if hasattr(val, "__sym__"):
        known |= symbols(val.expr)
    elif isinstance(val, (tuple, list)):
        for v in val:
            _learn(v, known)
    elif isinstance(val, _C.TensorBase):
        for n in (*val.shape, *val.stride()):
            if type(n) is not int and hasattr(n, "__sym__"):
                known |= symbols(n.expr)


def _count(call):
    call.uses += 1
    return call


def _nodes(x, fn):
    """Map fx nodes in a tree of arguments."""
    if isinstance(x, (tuple, list)):
        return [_nodes(y, fn) for y in x]
    if isinstance(x, dict):
        return {k: _nodes(v, fn) for k, v in x.items()}
    if isinstance(x, slice):
        return slice(_nodes(x.start, fn), _nodes(x.stop, fn), _nodes(x.step, fn))
    return fn(x) if hasattr(x, "users") and hasattr(x, "meta") else x
