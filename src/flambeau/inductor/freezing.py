"""Inference graphs whose parameters and buffers count as constant (``config.freezing``).

A graph is split in two. What follows from constants alone is the *frozen* part: it is run once, operator by operator, and
again only when one of the constants was written or replaced (``_C.marks``: writes by whatever name, ``.data`` among them).
The *living* part is compiled. Its last inputs are the results of the frozen one, so that what is compiled doesn't depend on
the constants' values and may come from the disk. Before that, factors and summands that follow a convolution or a product
move into its weight and bias (folding.py), and constant right operands of products are packed (packing.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import operator
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from .. import _C
from ..base.records import replace
from ..core import modes
from ..core.operator import namespace
from ..fx import Graph, GraphModule, Node
from ..fx.graph_facts import facts_of
from ..fx.node import map_arg
from ..fx.targets import kind_of
from .compile import compile_graph, recalled
from .passes.folding import fold, follows, number
from .passes.packing import pack

__all__ = ["compile_frozen"]

aten = namespace("aten")


def compile_frozen(gm, example_inputs=None, **_unused) -> Callable:
    """As ``compile_graph``; what is made of the inputs that ``gm.facts.held`` names is made once."""
    facts = facts_of(gm)
    work = _copy(gm.graph)
    inputs = [n for n in work.nodes if n.op == "placeholder"]
    constant = {inputs[i] for i in facts.held if _is_static(inputs[i].meta.get("val"))}
    if not constant:
        return _compiled(gm, gm.graph, facts.output_aliases, "")
    _made_static(work, constant)
    folds = fold(work, constant)
    packs = pack(work, constant)
    work.eliminate_dead_code()
    wanted = _split(work, constant)
    if not wanted:
        return _compiled(gm, gm.graph, facts.output_aliases, "")
    living, kept = _living(work, wanted, constant)
    output_aliases = {k: kept.index(i) for k, i in facts.output_aliases.items()}
    # What is folded follows from the graph, what is packed from the machine and the environment too; its name says the rest.
    graph = _compiled(gm, living, output_aliases, f"{sorted(facts.held)} {folds} {packs}")
    first, read = _first(work, wanted)
    return _Frozen(GraphModule(gm, first), tuple(read), kept, graph)


def _compiled(gm, graph: Graph, output_aliases: dict[int, int], what: str):
    """The compiled graph, from the disk where it is there."""
    entry = facts_of(gm).entry
    if entry is not None and what:
        entry = f"{entry} frozen {hashlib.sha256(what.encode()).hexdigest()[:20]}"
    found = recalled(entry, output_aliases) if entry is not None else None
    if found is not None:
        return found
    module = gm if graph is gm.graph else GraphModule(gm, graph)
    module.facts = replace(facts_of(module), entry=entry, output_aliases=output_aliases)
    return compile_graph(module)


_NOTHING: tuple[bytes, list] = (b"", [])


class _Frozen:
    """A call: the results of the frozen part, made again where needed, and the living part on them. Modules that share a compiled graph (the
    layers of a network) have results each, which go with the memory of their first constant. Threads may make them twice; each takes those
    that belong to the marks that it has seen."""

    def __init__(self, first: GraphModule, read: tuple[int, ...], kept: list[int], graph: Any):
        self.first, self.read, self.graph = first, read, graph
        self.info = getattr(graph, "info", None)
        self.states: WeakKeyDictionary[Any, tuple[bytes, list]] = WeakKeyDictionary()
        self.pick = operator.itemgetter(*kept) if len(kept) > 1 else lambda inputs: tuple(inputs[i] for i in kept)

    def __call__(self, *inputs):
        marks = _C.marks(inputs, self.read)  # before the contents are read: what is written meanwhile has others
        owner = inputs[self.read[0]]._storage
        seen, values = self.states.get(owner, _NOTHING)
        if seen != marks:
            values = self._made(inputs)
            self.states[owner] = marks, values
        return self.graph(*self.pick(inputs), *values)

    def _made(self, inputs) -> list:
        with _plainly():
            likes = [n.meta["val"] for n in self.first.graph.output_node().args[0]]
            return list(map(_laid_out, self.first(*(inputs[i] for i in self.read)), likes))


@contextlib.contextmanager
def _plainly():
    """Operators on tensors, whatever modes the caller is in."""
    with modes.disabled("dispatch"), modes.disabled("function"), _C.Guard(grad_enabled=0):
        yield


def _laid_out(t, like):
    """The tensor with the strides that the compiled part was made for."""
    if t.stride() == like.stride():
        return t
    out = aten.empty_strided.default(list(like.shape), list(like.stride()), dtype=t.dtype, device=t.device)
    return aten.copy_.default(out, t)


# -- what is constant --------------------------------------------------------------------------------------------------------------


def _copy(graph: Graph) -> Graph:
    out = Graph()
    env: dict[Node, Node] = {}
    for n in graph.nodes:
        env[n] = out.node_copy(n, env.__getitem__)
    return out


def _is_static(val) -> bool:
    """Whether it is a tensor on the CPU all of whose sizes are numbers."""
    if not isinstance(val, _C.TensorBase) or val._device.type != "cpu":
        return False
    return all(number(n) is not None for n in (*val.shape, *val.stride()))


def _made_static(graph: Graph, constant: set[Node]) -> None:
    """Write sizes that are numbers as numbers, in constants and what follows from them: their symbols may have no other input that tells them."""
    for n in _spread(graph, constant):
        val = n.meta.get("val")
        if _is_static(val) and any(type(s) is not int for s in (*val.shape, *val.stride())):
            sizes, strides = (list(map(number, s)) for s in (val.shape, val.stride()))
            with val.fake_mode, modes.disabled("function"), _C.Guard(grad_enabled=0):
                n.meta["val"] = aten.empty_strided.default(sizes, strides, dtype=val.dtype, device=val.device)


def _spread(graph: Graph, constant: set[Node]) -> set[Node]:
    found = set(constant)
    for n in graph.nodes:
        if follows(n, found):
            found.add(n)
    return found


def _is_view(n: Node) -> bool:
    return kind_of(n.target) == "view"


def _split(graph: Graph, constant: set[Node]) -> list[Node]:
    """What follows from constants and is read by the rest. Views of the inputs cost nothing where they are, and what is
    much larger than what it was made of would cost more to read than to make."""
    frozen = _spread(graph, constant)
    bare = set(constant)  # inputs and views of them
    size = {n: _bytes(n) for n in constant}
    for n in graph.nodes:
        if n not in frozen or n in constant:
            continue
        size[n] = max((size[a] for a in n.all_input_nodes), default=0)
        if (_is_view(n) and all(a in bare for a in n.all_input_nodes)) or not isinstance(
            n.meta.get("val"), _C.TensorBase
        ):
            bare.add(n)
        elif not _is_static(n.meta["val"]) or _bytes(n) > 4 * size[n] + 4096:
            bare.add(n)
    return [n for n in graph.nodes if n in frozen - bare and any(u not in frozen or u in bare for u in n.users)]


def _bytes(n: Node) -> int:
    val = n.meta.get("val")
    return val.numel() * val.dtype.itemsize if _is_static(val) else 0


def _living(graph: Graph, wanted: list[Node], constant: set[Node]) -> tuple[Graph, list[int]]:
    """The graph with the wanted results as its last inputs, and which of the inputs it has. What the caller gets is never one of these results
    themselves: it may write there."""
    out = Graph()
    env: dict[Node, Node] = {}
    inside = set(wanted)
    needed: set[Node] = set()
    stack = [graph.output_node()]
    while stack:
        n = stack.pop()
        for a in n.all_input_nodes:
            if a not in needed:
                needed.add(a)
                if a not in inside:
                    stack.append(a)
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    kept = [i for i, n in enumerate(inputs) if n in needed or n not in constant]
    for i in kept:
        env[inputs[i]] = out.node_copy(inputs[i])
    for n in wanted:
        env[n] = out.placeholder(n.name)
        env[n].meta = dict(n.meta)
    for n in graph.nodes:
        if n not in env and n in needed:
            env[n] = out.node_copy(n, env.__getitem__)

    def own(n: Node) -> Node:
        if not (n in inside or inside.intersection(_roots(n))):
            return env[n]
        copy = out.call_function(aten.clone.default, (env[n],))
        copy.meta.update(n.meta)
        return copy

    out.output(map_arg(graph.output_node().args[0], own))
    return out, kept


def _roots(n: Node) -> list[Node]:
    """What a node is a view of."""
    found = []
    while n.op == "call_function" and (_is_view(n) or n.target is operator.getitem) and isinstance(n.args[0], Node):
        n = n.args[0]
        found.append(n)
    return found


def _first(graph: Graph, wanted: list[Node]) -> tuple[Graph, list[int]]:
    """The frozen part, and which of the inputs it reads."""
    needed = set(wanted)
    for n in reversed(list(graph.nodes)):
        if n in needed:
            needed.update(n.all_input_nodes)
    out = Graph()
    env: dict[Node, Node] = {}
    read = []
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    for i, n in enumerate(inputs):
        if n in needed:
            read.append(i)
            env[n] = out.node_copy(n)
    for n in graph.nodes:
        if n in needed and n not in env:
            env[n] = out.node_copy(n, env.__getitem__)
    out.output(tuple(env[n] for n in wanted))
    return out, read
