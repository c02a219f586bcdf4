"""Nodes, inputs and subgraphs of a trace."""

from __future__ import annotations

import contextlib
import re
import types
import weakref
from collections import Counter
from typing import Any

from flambeau import _C, fx
from flambeau.core.generator import default_generator

from ..exc import unsupported
from ..guards.source import Source
from ..higher_order.subgraphs import Level
from ..rules.reflect import module_of
from ..tracing import trace_logs
from ..variables.tensors.tensor import TensorVariable
from . import tensor_queries
from .captured_graph import CapturedGraph
from .inputs import GraphInput

PLACE, NO_WORD = re.compile(r" at 0x[0-9a-f]+>"), re.compile(r"[^a-zA-Z0-9]+")
TABLE = re.compile(r"\._modules\['([^']+)'\]")
ESCAPE = "a tensor that a transformed function made leaves it other than as its result"


class GraphRecorder:
    """The graph being made: the root graph, or that of the innermost subgraph."""

    def __init__(self, output):
        self.output = weakref.proxy(output)  # no cycle: a trace is freed with its last reference
        self.graph = self.root = CapturedGraph()
        self.levels: list[Level] = []
        """Subgraphs being traced, outermost first."""
        self.had_subgraphs = False
        self.handed_on: dict[Any, Any] = {}
        """For nodes of a subgraph that is done (the forward of a Function) the inputs of the one being traced that stand for them."""
        self.subgraphs_of: Counter = Counter()
        """How many subgraphs of each kind there were."""
        self.attributes: dict[str, Any] = {}
        """Subgraphs that the root graph holds."""
        self.first_call = None
        """The first node that is no input: placeholders go in front of it."""
        self.inputs: list[GraphInput] = []
        self.names: dict[str, int] = {}
        """The names of inputs, with the last number that made another one of each."""
        self.examples: dict[Any, Any] = {}
        """The tensors of this call, by the nodes of inputs."""
        self.watched = trace_logs.watching()
        self.operators: list[tuple[str, Any]] = []
        """The operators with subgraphs whose calls are being traced, outermost first."""
        self.modules: dict[str, tuple[str, type]] = {}
        """The modules whose calls are being traced, outermost first: by name (path, class). It is replaced, never written to."""

    def placeholder(self, source: Source):
        # Without the places of keys: the text of a graph must be that of the next process.
        name = source.name
        if " at 0x" in name:
            name = PLACE.sub(">", name)
        name = NO_WORD.sub("_", name)
        if name[:1].isdigit():
            name = "_" + name
        base = name  # the graph's text has the argument by this name
        while name in self.names:
            self.names[base] += 1
            name = f"{base}_{self.names[base]}"
        self.names[name] = 0
        last = self.inputs[-1].node if self.inputs else None
        with self.root.inserting_before(None) if last is None else self.root.inserting_after(last):
            node = self.root.placeholder(name)
        node.meta["source"] = source.name
        if self.modules:
            node.meta["nn_module_stack"] = self.modules
        return node

    @contextlib.contextmanager
    def within_operator(self, fn: Any):
        """Nodes of subgraphs come from a call of the operator."""
        self.operators.append((fn.__name__, fn))
        try:
            yield
        finally:
            self.operators.pop()

    @contextlib.contextmanager
    def within_module(self, source: Source | None, cls: type):
        """Nodes come from a call of the module."""
        before = self.modules
        path = TABLE.sub(r".\1", source.name) if source is not None else cls.__name__
        self.modules = {**before, NO_WORD.sub("_", path): (path, cls)}
        try:
            yield
        finally:
            self.modules = before

    def input_values(self):
        return (i.node.meta["val"] for i in self.inputs)

    def source_of_node(self, node) -> Source | None:
        """The source of a graph input that is a tensor, for a value that is that tensor again."""
        return next((i.source for i in self.inputs if i.node is node and not i.ndarray and not i.number), None)

    def example_of(self, var: TensorVariable):
        """The tensor of this call behind a graph input (its fake tensor for an intermediate)."""
        return self.examples.get(var.node, var.val)

    def real_value(self, node) -> Any:
        """What the node is at the call that is captured. The inputs aren't written to, and random numbers are drawn again later."""
        if node in self.examples:
            return self.examples[node]
        if node.graph is not self.root:
            unsupported("not-constant", "a tensor of a transformed function given to a function of constants")
        numbers = {i.node: i.example for i in self.inputs if i.number}
        run = fx.Interpreter(types.SimpleNamespace(**self.attributes), garbage_collect_values=False, graph=self.root)
        place = default_generator.place()
        with _C.Guard(grad_enabled=_C.tls("grad_enabled")):
            for n in self.root.nodes:
                if n.op != "placeholder":
                    run.env[n] = run.run_node(n)
                else:
                    run.env[n] = numbers[n] if n in numbers else self.examples[n].clone()
                if n is node:
                    break
        default_generator.go_back(place)
        return run.env[node]

    def create_node(self, tx, op: str, target, args: tuple, kwargs: dict):
        if self.levels:
            args, kwargs = fx.map_arg((args, kwargs), self.lift)
        elif self.had_subgraphs and any(n.graph is not self.root for n in fx.node.nodes_in((args, kwargs))):
            unsupported("subgraph-escape", ESCAPE)
        node = self.graph.create_node(op, target, args, kwargs)
        if self.first_call is None and not self.levels:
            self.first_call = node
        if self.watched and op.startswith("call"):
            trace_logs.called(tx, f"FX call {node.name}")
        stack = tx.user_stack()
        node.meta["stack"] = stack[-1]
        node.meta["user_stack"] = stack
        if op.startswith("call"):
            self._note_origin(node)
        if self.output.blocks.errstates:
            node.meta["errstate"] = self.output.blocks.errstates
        return node

    def _note_origin(self, node) -> None:
        """Which modules the call stands in, and which call of the program it is: that of a module of the library, or its own function."""
        origin: Any = node.target
        if self.modules:
            node.meta["nn_module_stack"] = self.modules
            innermost = next(reversed(self.modules.values()))[1]
            module = module_of(innermost)
            if module.startswith("flambeau.nn.modules.") and module != "flambeau.nn.modules.container":
                origin = innermost
        node.meta["source_fn_stack"] = [*self.operators[: len(self.levels)], (node.name, origin)]

    @contextlib.contextmanager
    def entered(self, level: Level):
        """Nodes go into the subgraph."""
        before = self.graph
        self.had_subgraphs = True
        self.levels.append(level)
        self.graph = level.graph
        try:
            yield
        finally:
            self.levels.pop()
            self.graph = before

    def lift(self, node):
        """The node in the graph being made that stands for ``node``, which may be one of a graph around it."""
        if node.graph is self.graph:
            return node
        node = self.handed_on.get(node, node)
        graphs = [self.root, *(level.graph for level in self.levels)]
        if node.graph not in graphs:
            unsupported("subgraph-escape", ESCAPE)
        for level in self.levels[graphs.index(node.graph) :]:
            inside = level.lifted.get(node)
            if inside is None:
                inside = level.lifted[node] = level.graph.placeholder(f"lifted_{node.name}")
                inside.meta.update(node.meta)
            node = inside
        return node

    def place(self, args: tuple) -> tuple[CapturedGraph, tuple]:
        """The graph for a node of sizes and numbers, with its arguments as they are there: the root graph where it has all of them."""
        if all(n.graph is self.root for n in fx.node.nodes_in(args)):
            return self.root, args
        return self.graph, fx.map_arg(args, self.lift)

    def add_subgraph(self, module, kind: str = "body"):
        """A get_attr node for a subgraph of the graph being made, ``kind_0`` and so on."""
        table = self.levels[-1].attributes if self.levels else self.attributes
        # A subgraph within a subgraph is traced first, and numbered first.
        count = len(table) if kind == "body" else self.subgraphs_of[kind]
        self.subgraphs_of[kind] += 1
        name = f"{kind}_{count}"
        table[name] = module
        node = self.graph.get_attr(name)
        node.meta["val"] = None
        if self.first_call is None and not self.levels:
            self.first_call = node
        return node

    def detached(self, node):
        """The node of the same value without a history."""
        found = next((n for n in node.users if n.target == "detach" and n.op == "call_method"), None)
        if found is None:
            found = self.root.call_method("detach", (node,))
            found.meta["val"] = found.meta["example_value"] = node.meta["val"].detach()
        return found

    def has_work(self) -> bool:
        """Whether the graph has to run: something is taken from it, it writes, or it may raise an error that depends on data."""
        return any(n.op.startswith("call") and n.target is not tensor_queries.set_grad_enabled for n in self.root.nodes)

    def drop_calls(self) -> None:
        for n in reversed(list(self.root.nodes)):
            if n.op != "placeholder" and not n.users:
                self.root.erase_node(n)
        self.first_call = None
