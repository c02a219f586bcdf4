"""One graph as several submodules, each node in the part that a callback names."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

from ...modules.module import Module
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg

__all__ = ["Partition", "split_module", "split_module_simple"]


class Partition:
    """One part while it is made: its nodes, its inputs and outputs (in order), and the parts that it depends on."""

    def __init__(self, name: str):
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


def _value(m: Any, path: str) -> Any:
    for part in path.split("."):
        if not hasattr(m, part):
            raise AttributeError(f"Node target {path} not found!")
        m = getattr(m, part)
    return m


def _order(partitions: dict[str, Partition]) -> list[str]:
    """Names of the parts, each after those it reads from. RuntimeError for a cycle."""
    waiting = {name: set(p.dependencies) for name, p in partitions.items()}
    ready = [name for name, needs in waiting.items() if not needs]
    out: list[str] = []
    while ready:
        name = ready.pop()
        out.append(name)
        for later in partitions[name].dependents:
            waiting[later].discard(name)
            if not waiting[later]:
                ready.append(later)
    if len(out) != len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return out


def split_module(
    m: GraphModule,
    root_m: Module | None,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """``m`` as a GraphModule of submodules ``submod_<part>``, where ``split_callback(node)`` says the part of each node (inputs, attributes and the
    output stay outside; attributes that are tensors are handed in).

    ``qualname_map`` is filled with {new path of a called module: its path in ``m``}. ``keep_original_order`` calls the parts in the order they
    first appear in instead of an order that their needs allow. RuntimeError when the parts need each other in a circle. ``root_m`` is not looked at.
    """
    partitions: dict[str, Partition] = {}
    home: dict[Node, Partition] = {}
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = "_".join(filter(None, (partition_affix, str(split_callback(node)))))
            home[node] = partitions.setdefault(name, Partition(name))
            home[node].node_names.append(node.name)
    nodes = {node.name: node for node in m.graph.nodes}

    def use(of: Node, by: Partition | None) -> Node:
        maker = home.get(of)
        if maker is not by:
            if maker is not None:
                maker.outputs.setdefault(of.name)
                if by is not None:
                    maker.dependents.setdefault(by.name)
                    by.dependencies.setdefault(maker.name)
            if by is not None:
                by.inputs.setdefault(of.name)
        return of

    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr"):
            by = home.get(node)
            map_arg((node.args, node.kwargs), functools.partial(use, by=by))
    order = list(partitions) if keep_original_order else _order(partitions)

    for p in partitions.values():
        _take_inputs(m, p, nodes, keep_original_input_name)
    for node, p in home.items():
        target = node.target
        if node.op == "call_module":
            target = node.target.replace(".", "_")
            p.targets[target] = _value(m, node.target)
            if qualname_map is not None:
                qualname_map[f"{p.submod_name}.{target}"] = node.target
        args, kwargs = map_arg((node.args, node.kwargs), p.environment.__getitem__)
        name = node.name if keep_original_node_name else None
        new = p.environment[node] = p.graph.create_node(node.op, target, args, kwargs, name, node.type)
        new.meta = dict(node.meta)
    return _around(m, partitions, order, nodes, bool(keep_original_node_name), tuple_return, not keep_original_order)


def _take_inputs(m: GraphModule, p: Partition, nodes: dict[str, Node], keep_names: bool) -> None:
    """Placeholders for what comes from outside; an attribute that is a module is the part's own."""
    count = itertools.count()
    given: dict[str, None] = {}
    of_modules = [n for n in p.inputs if nodes[n].op == "get_attr" and isinstance(_value(m, nodes[n].target), Module)]
    for name in [*(n for n in p.inputs if n not in of_modules), *of_modules]:
        node = nodes[name]
        if name in of_modules:
            new = p.graph.get_attr(node.target)
            p.targets[node.target] = _value(m, node.target)
        else:
            new = p.graph.placeholder(name if keep_names else f"arg_{next(count)}", type_expr=node.type)
            given[name] = None
        new.meta = dict(node.meta)
        p.environment[node] = new
    p.inputs = given


def _around(m, partitions, order, nodes, keep_names: bool, tuple_return: bool, early: bool) -> GraphModule:
    """The graph that calls the parts. ``early``: attributes are read before the first call, else before the call that needs them."""
    graph = Graph()
    env: dict[str, Node] = {}
    attrs: dict[str, Any] = {}

    def copied(name: str) -> Node:
        if name not in env:
            node = nodes[name]
            if node.op == "get_attr":
                env[name] = graph.get_attr(node.target)
                attrs[node.target] = _value(m, node.target)
            else:
                target = node.name if keep_names else node.target
                env[name] = graph.create_node("placeholder", target, node.args, {}, None, node.type)
            env[name].meta = dict(node.meta)
        return env[name]

    for node in m.graph.nodes:
        if node.op == "placeholder" or (node.op == "get_attr" and early):
            copied(node.name)
    for name in order:
        p = partitions[name]
        results = [p.environment[nodes[n]] for n in p.outputs]
        single = len(results) == 1 and not tuple_return
        p.graph.output(results[0] if single else tuple(results))
        attrs[p.submod_name] = GraphModule(p.targets, p.graph, class_name=p.submod_name)
        call = graph.call_module(p.submod_name, tuple([copied(n) for n in p.inputs]))
        if single:
            env[next(iter(p.outputs))] = call
            call.meta = dict(results[0].meta)
        else:
            for i, n in enumerate(p.outputs):
                env[n] = graph.call_function(operator.getitem, (call, i))
                env[n].meta = dict(nodes[n].meta)
    for node in m.graph.nodes:
        if node.op == "output":
            graph.output(map_arg(node.args[0], lambda n: copied(n.name)))
    return GraphModule(attrs, graph)


def split_module_simple(
    m: GraphModule, node_to_partition: dict[Node, int], *, partition_affix: str | None = None
) -> GraphModule:
    """:func:`split_module` with the part of each node in a dictionary; parts are called in the order in which they first appear."""
    return split_module(
        m, None, node_to_partition.__getitem__, keep_original_order=True, partition_affix=partition_affix
    )
