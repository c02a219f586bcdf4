"""The graph of an exported program as a graph for each submodule, by the ``nn_module_stack`` of its nodes.

A call of a submodule is a :class:`Part`: the nodes that it ran, in a graph of their own. Further calls of one module share its graph where they
ran the same operators; otherwise they have a module of their own, ``name@1`` and so on."""

from __future__ import annotations

import operator
from collections import defaultdict
from typing import Any

from ..base.public import public_in
from ..base.symint import NUMBERS
from ..core.operator import namespace
from ..fx import Graph, GraphModule, Node, map_arg
from ..modules.module import Module
from .module_calls import ModuleCallSignature
from .structure import Structure

__all__ = ["InterpreterModule", "Part", "Scopes"]

_SIZE = namespace("aten").sym_size.int


@public_in("export.unflatten")
class InterpreterModule(GraphModule):
    """A submodule of an unflattened program: runs its part of the graph."""

    def __init__(self, graph: Graph):
        super().__init__({}, Graph(), "InterpreterModule")
        self.graph = graph


class FurtherCall(Module):
    """What a further call of a module runs where that differs from the first: other operators on the same tensors. It is given the module, and calls
    it where that is a replacement."""

    def __init__(self, first: InterpreterModule, code: InterpreterModule):
        super().__init__()
        code.real_recompile()
        self.graph, self.run = code.graph, type(code).forward
        self.part = first.meta["part"]

    def forward(self, module, *args, **kwargs):
        if isinstance(module, InterpreterModule) and module.meta.get("part") == self.part:
            return self.run(module, *args, **kwargs)
        return module(*args, **kwargs)


class Scopes:
    """Which calls of modules each node of a graph belongs to, the outermost first."""

    def __init__(self, graph: Graph):
        self.names: dict[str, str] = {}  # call -> name of the module
        self.of: dict[Node, tuple[str, ...]] = {}
        self.members: dict[str, list[Node]] = defaultdict(list)
        nodes = [n for n in graph.nodes if n.op not in ("placeholder", "output")]
        for n in nodes:
            self.of[n] = self._scope(n)
        for n in reversed(nodes):
            if n.op == "get_attr":  # a body of an operator
                self.of[n] = min((self.of[u] for u in n.users), key=len)
        for n in nodes:
            for call in self.of[n]:
                self.members[call].append(n)
        self.given = self._given()

    def _scope(self, n: Node) -> tuple[str, ...]:
        stack = n.meta.get("nn_module_stack")
        if stack is None or isinstance(n.meta.get("val"), NUMBERS):
            # Numbers are computed where what they are computed from is known.
            return max((self.of.get(i, ()) for i in n.all_input_nodes), key=len, default=())
        scope: list[str] = []
        for key, (name, _) in stack.items():
            outer = self.names[scope[-1]] + "." if scope else ""
            # A module that is called by one that it isn't a part of runs as the caller's own operators.
            if name and name.startswith(outer):
                call = key.removeprefix("L__self__")
                scope.append(call)
                self.names[call] = name
        return tuple(scope)

    def _given(self) -> dict[str, list[Node]]:
        """By call, the nodes whose values others need. Calls that ran the same operators give the same ones."""
        needed: dict[str, list[int]] = {}
        alike: dict[tuple, set[int]] = defaultdict(set)
        for call, nodes in self.members.items():
            inside = set(nodes)
            needed[call] = [k for k, n in enumerate(nodes) if any(u not in inside for u in n.users)]
            alike[self._kind(call)].update(needed[call])
        return {call: [nodes[k] for k in sorted(alike[self._kind(call)])] for call, nodes in self.members.items()}

    def _kind(self, call: str) -> tuple:
        return self.names[call], *(str(n.target) for n in self.members[call])


class Part:
    """The graph of one call. ``tensors``: the placeholders of parameters, buffers and constants, each with its names in the program. ``made``: by
    name the modules that there are."""

    def __init__(
        self,
        program: GraphModule,
        scopes: Scopes,
        tensors: dict[Node, list[str]],
        outer: Part | None = None,
        call: str = "",
    ):
        self.program, self.scopes, self.tensors, self.outer, self.call = program, scopes, tensors, outer, call
        self.name = scopes.names[call] if call else ""
        self.depth: int = outer.depth + 1 if outer else 0
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.inputs: list[Node] = []
        self.bodies: dict[str, Any] = {}
        self.made: dict[str, Any] = outer.made if outer else {}
        self.signatures: dict[str, ModuleCallSignature] = outer.signatures if outer else {}
        self.by_name: dict[str, Node] = outer.by_name if outer else {}

    # -- values ----------------------------------------------------------------------------------------------------------
    def value(self, n: Node) -> Node:
        """What stands for ``n`` in this graph."""
        if n not in self.values:
            self.values[n] = self._attribute(n) or self._number(n) or self._input(n)
        return self.values[n]

    def _attribute(self, n: Node) -> Node | None:
        prefix = f"{self.name}." if self.name else ""
        name = next((t for t in self.tensors.get(n, ()) if t.startswith(prefix)), None)
        if name is None:
            return None
        node = self.graph.get_attr(name.removeprefix(prefix))
        node.meta["val"] = n.meta["val"]
        return node

    def _number(self, n: Node) -> Node | None:
        """A number that the tensors of this part say: the size of one, or computed from such."""
        val = n.meta.get("val")
        if not isinstance(val, NUMBERS) or self.outer is None or n.op != "call_function":
            return None
        for p in [p for p in self.graph.nodes if p.op == "placeholder"]:
            for d, size in enumerate(getattr(p.meta.get("val"), "shape", ())):
                if getattr(size, "expr", None) == val.expr:
                    return self._copied(n, _SIZE, (p, d))
        inner = [self.values.get(i) or self._number(i) for i in n.all_input_nodes]
        if not inner or any(i is None for i in inner):
            return None
        at = dict(zip(n.all_input_nodes, inner))
        return self._copied(n, n.target, map_arg(n.args, at.__getitem__))

    def _copied(self, n: Node, target: Any, args: tuple) -> Node:
        node = self.graph.call_function(target, args)
        node.meta["val"] = n.meta["val"]
        return node

    def _input(self, n: Node) -> Node:
        if self.outer is None:
            raise RuntimeError(f"unflatten: the value {n.name} is used before the submodule that computes it has ended")
        if self.call in self.signatures:
            raise RuntimeError(f"unflatten: the submodule {self.name} uses {n.name}, which it isn't called with")
        self.inputs.append(n)
        return self.placeholder(n.name, n.meta.get("val"))

    def placeholder(self, name: str, val: Any = None) -> Node:
        """A new input of this graph, behind the others."""
        last = next((m for m in reversed(self.graph.nodes) if m.op == "placeholder"), None)
        with self.graph.inserting_after(last) if last is not None else self.graph.inserting_before():
            node = self.graph.placeholder(name)
        node.meta["val"] = val
        return node

    # -- nodes -----------------------------------------------------------------------------------------------------------
    def fill(self, nodes: list[Node]) -> None:
        """Copy the nodes of this call; those of a submodule's call become that call."""
        groups: dict[str, list[Node]] = defaultdict(list)
        for n in nodes:
            if len(self.scopes.of[n]) > self.depth:
                groups[self.scopes.of[n][self.depth]].append(n)
        for n in nodes:
            scope = self.scopes.of[n]
            if len(scope) == self.depth:
                self.values[n] = self.graph.node_copy(n, self.value)
                if n.op == "get_attr":
                    self.bodies[n.target] = getattr(self.program, n.target)
            elif groups[scope[self.depth]][-1] is n:
                call = scope[self.depth]
                self._call(Part(self.program, self.scopes, self.tensors, self, call), groups[call])

    def _call(self, inner: Part, nodes: list[Node]) -> None:
        signature = self.signatures.get(inner.call)
        if signature is not None:
            self._call_as_written(inner, nodes, signature)
            return
        given = self.scopes.given[inner.call]
        inner.fill(nodes)
        results = [inner.value(n) for n in given]
        inner.graph.output(results[0] if len(results) == 1 else tuple(results))
        node = self._node(inner, tuple(map(self.value, inner.inputs)), {})
        node.meta["val"] = given[0].meta.get("val") if len(given) == 1 else tuple(n.meta.get("val") for n in given)
        for k, n in enumerate(given):
            self.values[n] = node if len(given) == 1 else self._copied(n, operator.getitem, (node, k))

    def _call_as_written(self, inner: Part, nodes: list[Node], s: ModuleCallSignature) -> None:
        def leaf(a):
            return self.by_name.get(a.name) if a.name else None

        leaves = [self.value(leaf(a)) if leaf(a) is not None else a.value for a in s.inputs]
        args, kwargs = s.in_spec.unflatten(leaves)
        inner.accept(s)
        inner.fill(nodes)
        made = [inner.value(leaf(a)) if leaf(a) is not None else a.value for a in s.outputs]
        inner.graph.output(s.out_spec.unflatten(made))
        node = self._node(inner, args, kwargs)
        for path, a in zip(_paths(s.out_spec), s.outputs):
            n = leaf(a)
            if n is not None and n not in self.values:
                self.values[n] = _part(self.graph, node, path)
        missing = next((n for n in self.scopes.given[inner.call] if n not in self.values), None)
        if missing is not None:
            raise RuntimeError(
                f"unflatten: {missing.name} of the submodule {inner.name} is used, which it doesn't return"
            )

    def accept(self, s: ModuleCallSignature) -> None:
        """Make placeholders for the arguments of a signature, and their tensors known."""
        args, kwargs = s.in_spec.parts
        names = [*(s.forward_arg_names or [f"arg_{k}" for k in range(len(args.parts))]), *kwargs.keys]
        outer: list[Node] = []
        for name, spec in zip(names, (*args.parts, *kwargs.parts), strict=True):
            outer += [self.placeholder(name)] * spec.num_leaves
        paths = [path[1:] for path in _paths(s.in_spec.parts[0])] + [path[1:] for path in _paths(s.in_spec.parts[1])]
        for node, path, a in zip(outer, paths, s.inputs):
            n = self.by_name.get(a.name) if a.name else None
            if n is not None:
                self.values.setdefault(n, _part(self.graph, node, path))
                self.values[n].meta.setdefault("val", n.meta.get("val"))

    def _node(self, inner: Part, args: tuple, kwargs: dict) -> Node:
        """The call of the module of ``inner``, which is made unless an earlier call ran the same."""
        target = inner.name
        for target in (inner.name, inner.call):
            known = self.made.get(target)
            if known is None or _rows(known.graph) == _rows(inner.graph):
                break
        if self.made.get(target) is None:
            first, code = self.made.get(inner.name), InterpreterModule(inner.graph)
            code.meta["part"] = f"{inner.name} {id(self.made)}"  # known again in a copy of the module
            self.made[target] = code if first is None else FurtherCall(first, code)
            for name, body in inner.bodies.items():
                self.made[inner.name].add_module(name, body)
        outer = f"{self.name}." if self.name else ""
        if isinstance(self.made[target], FurtherCall):
            args = (self.graph.get_attr(inner.name.removeprefix(outer)), *args)
        return self.graph.call_module(target.removeprefix(outer), args, kwargs)


def _rows(graph: Graph) -> list[str]:
    """The nodes as text, which is the same for the same calls of operators."""
    number: dict[Node, str] = {}
    rows = []
    for n in graph.nodes:
        number[n] = f"%{len(number)}"
        rows.append(
            f"{n.op} {n.target if n.op != 'placeholder' else ''} {_text(n.args, number)} {_text(n.kwargs, number)}"
        )
    return rows


def _text(tree: Any, number: dict[Node, str]) -> str:
    return repr(map_arg(tree, number.__getitem__))


def _paths(spec: Structure) -> list[tuple]:
    """For each leaf how it is reached: keys of containers, or names of attributes."""
    if spec.kind == "leaf":
        return [()]
    keys: Any = spec.keys or range(len(spec.parts))
    named = spec.kind in ("namedtuple", "dataclass")
    return [((named, key), *rest) for key, part in zip(keys, spec.parts) for rest in _paths(part)]


def _part(graph: Graph, node: Node, path: tuple) -> Node:
    for named, key in path:
        node = graph.call_function(getattr if named else operator.getitem, (node, key))
    return node
