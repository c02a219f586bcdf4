"""Runs a graph node by node; each kind of node is a method that a subclass may replace."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .graph import Graph
from .node import Argument, Node, Target
from .traceback import preserve_node_meta, set_current_meta

__all__ = ["Interpreter", "Transformer"]


def _load(a: Any, env: dict[Node, Any]) -> Any:
    """``a`` with nodes replaced by their values and containers made ordinary."""
    if isinstance(a, Node):
        return env[a]
    if isinstance(a, tuple):
        items = tuple(_load(e, env) for e in a)
        return type(a)(*items) if hasattr(a, "_fields") else items
    if isinstance(a, list):
        return [_load(e, env) for e in a]
    if isinstance(a, dict):
        return {k: _load(v, env) for k, v in a.items()}
    if isinstance(a, slice):
        return slice(_load(a.start, env), _load(a.stop, env), _load(a.step, env))
    return a


class Interpreter:
    """``Interpreter(gm).run(*args)`` gives what ``gm(*args)`` gives. Values are freed at their last use."""

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.garbage_collect_values = garbage_collect_values
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        self.extra_traceback = True
        if garbage_collect_values:
            seen: set[Node] = set()
            for n in reversed(self.graph.nodes):
                for i in n.all_input_nodes:
                    if i not in seen:
                        seen.add(i)
                        self.user_to_last_uses.setdefault(n, []).append(i)

    def run(self, *args, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Run the graph. ``initial_env`` gives values of nodes that are then not run. Returns the output's value."""
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node not in self.env:
                try:
                    self.env[node] = self.run_node(node)
                except Exception as e:
                    if self.extra_traceback:
                        e.add_note(
                            f"While executing {node.format_node()}"
                            + (f"\n{node.stack_trace}" if node.stack_trace else "")
                        )
                    raise
            if node.op == "output":
                out = self.env[node]
                return self.graph.process_outputs(out) if enable_io_processing else out
            for dead in self.user_to_last_uses.get(node, ()):
                self.env.pop(dead, None)
        return None

    def boxed_run(self, args_list: list) -> Any:
        """As :meth:`run`, taking (and emptying) a list."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        with set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        obj = self.module
        for part in target.split("."):
            if not hasattr(obj, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}")
            obj = getattr(obj, part)
        return obj

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        return tuple(_load(a, self.env) for a in n.args), {k: _load(v, self.env) for k, v in n.kwargs.items()}

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        return _load(args, self.env)


class Transformer(Interpreter):
    """An Interpreter whose values are Proxies of a new graph: override a method to rewrite nodes, ``transform()``
    gives the module.
    """

    def __init__(self, module: Any):
        from .proxy import TracerBase

        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = TracerBase()
        self.tracer.graph = self.new_graph
        self.tracer.root = module

    def placeholder(self, target, args, kwargs):
        return self.tracer.create_proxy("placeholder", target, args, kwargs)

    def get_attr(self, target, args, kwargs):
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target, args, kwargs):
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target, args, kwargs):
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def transform(self):
        """Run over Proxies and return the new GraphModule."""
        from .graph_module import GraphModule
        from .proxy import Proxy, map_proxies

        with preserve_node_meta():
            result = super().run(enable_io_processing=False)
        self.new_graph.set_codegen(self.graph._codegen)
        if result is not None:
            self.new_graph.output(map_proxies(result, lambda p: p.node if isinstance(p, Proxy) else p))
        return GraphModule(self.module, self.new_graph)
