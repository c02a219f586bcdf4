"""Cutting a joint graph into a forward and a backward graph, and choosing what is kept between them.

The joint graph takes primals and tangents and returns the forward's outputs followed by the gradients. Everything
that depends on a tangent belongs to the backward graph. What the backward reads of the rest is either saved by the
forward or recomputed: :func:`default_partition` saves all of it; :func:`min_cut_rematerialization_partition`
minimises the bytes saved, by a minimum cut in which values that are cheap to compute again may be (after Chen et al.,
Training Deep Nets with Sublinear Memory Cost, 2016, and the formulation as a cut used by PyTorch). Costs come from an
operator's kind and never from its name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import _C
from ..base.relations import as_symbol, symbols
from ..base.symint import NUMBERS, SymInt
from ..core.operator import namespace
from ..fx import Graph, GraphModule, Node
from ..fx.node import map_arg
from ..fx.targets import tags_of
from .budget import budget, within
from .costs import Cost, cost, is_fusible, is_view, nbytes
from .graph_passes import draws
from .maxflow import INFINITE, FlowNetwork
from .recompute import open_for_backward, open_parts
from .wide import wide_values

__all__ = ["default_partition", "min_cut_rematerialization_partition"]


aten = namespace("aten")


class _Sides:
    """The joint graph sorted into what depends on tangents (``backward``) and the rest (``forward``, with
    placeholders).
    """

    def __init__(self, graph: Graph, num_fwd_outputs: int):
        out = graph.output_node().args[0]
        self.fw_outputs, self.grads = list(out[:num_fwd_outputs]), list(out[num_fwd_outputs:])
        self.primals: list[Node] = []
        self.tangents: list[Node] = []
        self.backward: dict[Node, None] = {}
        self.forward: dict[Node, None] = {}
        for n in graph.nodes:
            if n.op == "placeholder":
                (self.tangents if n.target.startswith("tangents") else self.primals).append(n)
                (self.backward if n.target.startswith("tangents") else self.forward)[n] = None
            elif n.op != "output":
                late = "in_backward" in n.meta or any(i in self.backward for i in n._inputs)
                (self.backward if late else self.forward)[n] = None
        for o in self.fw_outputs:
            if isinstance(o, Node) and o in self.backward:
                raise RuntimeError(f"output {o} of the forward depends on a tangent; the joint graph is malformed")
        self.needed_forward = _ancestors([o for o in self.fw_outputs if isinstance(o, Node)])
        # Of the backward's side only what gradients need, draws and effects.
        self.late_effects = [n for n in self.backward if has_effects(n)]
        needed = _ancestors([*(g for g in self.grads if isinstance(g, Node)), *self.late_effects])
        self.backward = {n: None for n in self.backward if n in needed or n.op == "placeholder"}
        wanted = [i for n in self.backward for i in n._inputs if i in self.forward]
        wanted += [g for g in self.grads if isinstance(g, Node) and g in self.forward]
        self.wanted = dict.fromkeys(wanted)  # forward values that the backward reads


def has_effects(n: Node) -> bool:
    """Whether a node runs though nothing reads what it gives."""
    return n.op == "call_function" and (n.is_impure() or draws(n))


def _ancestors(nodes: list[Node]) -> set[Node]:
    seen = set(nodes)
    stack = list(nodes)
    while stack:
        for i in stack.pop()._inputs:
            if i not in seen:
                seen.add(i)
                stack.append(i)
    return seen


def _is_saveable(n: Node) -> bool:
    value = n.meta.get("val")
    if isinstance(value, NUMBERS):  # what is computed from sizes in floating point is computed again
        return isinstance(value, SymInt) or n.op == "placeholder"
    return hasattr(value, "dtype") and hasattr(value, "shape")


def default_partition(joint_module: GraphModule, _joint_inputs, *, num_fwd_outputs: int, **_ignored):
    """Save every forward value that the backward reads. Returns (forward module, backward module)."""
    sides = _Sides(joint_module.graph, num_fwd_outputs)
    saved: dict[Node, None] = {}
    stack = list(reversed(sides.wanted))
    while stack:
        n = stack.pop()
        if n in saved:
            continue
        if n.op == "get_attr":
            continue  # a constant of the module; both graphs hold it
        if _is_saveable(n):
            saved[n] = None
        else:  # a tuple: its users are saved, or what it is computed from
            stack.extend(n._inputs)
    # Tuples that the backward reads whole are rebuilt from what is saved; their elements are saved instead where they
    # exist.
    return _split(joint_module, sides, list(saved))


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs=None, compiler: str = "inductor", *, num_fwd_outputs: int, **_ignored
):
    """Save the fewest bytes. Returns (forward module, backward module)."""
    open_parts(joint_module.graph)
    sides = _Sides(joint_module.graph, num_fwd_outputs)
    wide = wide_values(sides.forward, sides.fw_outputs)
    if open_for_backward(joint_module.graph, sides.backward, sides.fw_outputs, wide):
        sides = _Sides(joint_module.graph, num_fwd_outputs)
        wide = wide_values(sides.forward, sides.fw_outputs)
    reach = _ancestors(list(sides.wanted))
    nodes = [n for n in sides.forward if n in reach]
    if not nodes:
        return _split(joint_module, sides, [])
    saved = _minimum_cut(nodes, sides, lambda n: n in wide or not _never_again(n, sides))
    part = budget()
    if part < 1:
        saved = within(nodes, part, saved, lambda may: _minimum_cut(nodes, sides, may, limited=True))
    return _split(joint_module, sides, saved)


def _minimum_cut(nodes: list[Node], sides: _Sides, again: Callable[[Node], bool], limited: bool = False) -> list[Node]:
    """Which of the nodes to save. ``again``: whether a node may be computed again; ``limited``: inputs count for nothing, the caller has them."""
    index = {n: i for i, n in enumerate(nodes)}
    source, sink = 2 * len(nodes), 2 * len(nodes) + 1
    net = FlowNetwork(2 * len(nodes) + 2)
    distance = _distance_from_backward(nodes, sides)
    materialised = _materialised(nodes, sides)
    for n, i in index.items():
        if n.op == "get_attr":
            continue  # available to both graphs
        if n.op == "placeholder" or not again(n):
            net.add_edge(source, 2 * i, INFINITE)
        if _is_saveable(n) and "overwritten" not in n.meta:
            # A value that needn't exist in memory otherwise costs a write and a read. Among equals the nearest to its
            # use is saved.
            weight = max(nbytes(n), 1) * (1 if n in materialised else 1.5)
            if limited and n.op == "placeholder":
                weight = 1
            if is_view(n):
                weight *= 1.5  # what a view is a view of serves as well, and others may read it too
            net.add_edge(2 * i, 2 * i + 1, int(weight * 64 * 1.05 ** min(distance[n], 60)))
        else:
            net.add_edge(2 * i, 2 * i + 1, INFINITE)
        if n in sides.wanted:
            net.add_edge(2 * i + 1, sink, INFINITE)
        for u in n.users:
            if u in index:
                net.add_edge(2 * i + 1, 2 * index[u], INFINITE)
    _, side = net.minimum_cut(source, sink)
    return [n for n, i in index.items() if 2 * i + 1 in side and 2 * i not in side and n.op != "get_attr"]


def _sets_apart(n: Node, sides: _Sides) -> bool:
    """Whether the program copies what others hold, an input or an output of the forward: they may write to it in front of the backward."""
    if "sets_apart" not in tags_of(n.target):
        return False
    source = n.args[0]
    while isinstance(source, Node) and is_view(source):
        source = source.args[0]
    return source in sides.primals or source in sides.fw_outputs


def _never_again(n: Node, sides: _Sides) -> bool:
    c = cost(n)
    if _sets_apart(n, sides):
        return True
    if c is Cost.MEDIUM:
        # A small result of a large input (the sum of a row) is cheap to keep and dear to compute.
        return nbytes(n) * 4 < sum(nbytes(i) for i in n._inputs)
    return (
        c is Cost.NEVER or "copy_of_overwritten" in n.meta or (c is Cost.CHEAP and _materialised_in_backward(n, sides))
    )


def _materialised_in_backward(n: Node, sides: _Sides) -> bool:
    """Whether the backward passes the value (or a view of it) to an operator that doesn't fuse: computing it again would
    cost the memory that saving it costs, and the time besides."""
    stack = [n]
    while stack:
        for u in stack.pop().users:
            if u.op == "output":
                continue
            if is_view(u):
                stack.append(u)
            elif u not in sides.needed_forward and not is_fusible(u):
                return True
    return False


def _distance_from_backward(nodes: list[Node], sides: _Sides) -> dict[Node, int]:
    far = 1 << 30
    out: dict[Node, int] = {}
    for n in reversed(nodes):
        if n in sides.wanted:
            out[n] = 0
        else:
            out[n] = 1 + min((out.get(u, far) for u in n.users), default=far)
    return out


def _materialised(nodes: list[Node], sides: _Sides) -> set[Node]:
    """Values that the forward has in memory anyway: inputs, outputs, inputs and results of operators that don't fuse, and values
    that several operators read."""
    outs = {o for o in sides.fw_outputs if isinstance(o, Node)}
    found = set()
    for n in nodes:
        readers = _readers(n) & sides.needed_forward
        if (
            n.op == "placeholder"
            or n in outs
            or not is_fusible(n)
            or len(readers) > 1
            or not all(map(is_fusible, readers))
        ):
            found.add(n)
    return found


def _readers(n: Node) -> set[Node]:
    """Operators that read a value or a view of it."""
    out: set[Node] = set()
    stack = [n]
    while stack:
        for u in stack.pop().users:
            if is_view(u):
                stack.append(u)
            else:
                out.add(u)
    return out


# -- making the two graphs ------------------------------------------------------------------------------------------


def _numbers(n: Node):
    """Sizes and strides of a node's tensors, or the number that it is."""
    value = n.meta.get("val")
    for v in value if isinstance(value, (tuple, list)) else (value,):
        if isinstance(v, NUMBERS):
            yield v
        elif isinstance(v, _C.TensorBase):
            yield from (s for s in (*v._shape, *v._strides) if isinstance(s, NUMBERS))


def _known_as(v) -> Any:
    """The expression that compilers see: of a size that a check made the rest of another, for example, that difference."""
    return v.env.simplify(v.expr)


def _missing_sizes(joint: GraphModule, sides: _Sides, saved: list[Node]) -> list[Node]:
    """Nodes for the symbols of the backward that none of its inputs has as a size of its own."""
    inputs = dict.fromkeys((*saved, *sides.tangents))
    known = {as_symbol(_known_as(v)) for n in inputs for v in _numbers(n)}
    made = {s for n in sides.backward if n not in inputs and n.op != "placeholder" for s in _made_here(n)}
    wanted = {s: None for n in (*sides.backward, *inputs) for v in _numbers(n) for s in symbols(_known_as(v))}
    out = []
    for s in sorted((s for s in wanted if s not in known and s not in made), key=lambda s: s.name):
        node = _size_node(joint.graph, sides.primals, s)
        if node is not None:
            out.append(node)
    return out


def _made_here(n: Node):
    """Symbols of data-dependent results that the node itself makes."""
    return {s for v in _numbers(n) for s in symbols(v.expr) if s not in v.env.hints}


def _size_node(graph: Graph, primals: list[Node], s) -> Node | None:
    for p in primals:
        value = p.meta.get("val")
        if isinstance(value, NUMBERS) and value.expr is s:
            return p
        if isinstance(value, _C.TensorBase):
            for op, numbers in ((aten.sym_size.int, value._shape), (aten.sym_stride.int, value._strides)):
                for d, v in enumerate(numbers):
                    if isinstance(v, NUMBERS) and as_symbol(_known_as(v)) is s:
                        with graph.inserting_after(primals[-1]):
                            node = graph.call_function(op, (p, d))
                        node.meta["val"] = v
                        return node
        elif isinstance(value, NUMBERS) and as_symbol(_known_as(value)) is s:
            return p
    return None


def _split(joint: GraphModule, sides: _Sides, saved: list[Node]) -> tuple[GraphModule, GraphModule]:
    saved = [*saved, *(n for n in _missing_sizes(joint, sides, saved) if n not in saved)]
    effects = [n for n in sides.forward if has_effects(n)]
    forward = extract_graph(joint.graph, sides.primals, [*sides.fw_outputs, *saved], "the forward", kept=effects)
    order = [n for n in sides.backward if n.op != "placeholder"]
    inputs = [*saved, *sides.tangents]
    backward = extract_graph(joint.graph, inputs, sides.grads, "the backward", order, sides.late_effects)
    _drop_needless_copies(forward, {n.name for n in saved})
    fw = GraphModule(joint, forward, "GraphModule")
    bw = GraphModule(joint, backward, "GraphModule")
    return fw, bw


def _drop_needless_copies(forward: Graph, saved: set[str]) -> None:
    for n in list(forward.nodes):
        if n.meta.get("copy_of_overwritten") and n.name not in saved:
            n.replace_all_uses_with(n.args[0])
            forward.erase_node(n)


def extract_graph(
    graph: Graph,
    inputs: list[Node],
    outputs: list,
    what: str,
    order: list[Node] | None = None,
    kept: Sequence[Node] = (),
) -> Graph:
    """A new graph computing ``outputs`` (nodes, None or constants) from ``inputs``. Nodes in ``order`` are computed
    in that order, each after what it reads and nothing earlier than needed; without it the order of ``graph`` is
    kept. Nodes in ``kept`` are in it, whether something reads them or not: they draw, or have effects."""
    new = Graph()
    env: dict[Node, Node] = {}
    for n in inputs:
        copy = new.create_node("placeholder", n.target if n.op == "placeholder" else n.name, name=n.name)
        copy.meta = dict(n.meta)
        env[n] = copy
    ends = [o for o in outputs if isinstance(o, Node)]
    needed = _needed([*ends, *(n for n in kept if n not in env)], env, what)
    if order is None:
        for n in graph.nodes:
            if n in needed and n not in env:
                env[n] = new.node_copy(n, env.__getitem__)
    else:
        for n in (*(n for n in order if n in needed), *ends):
            _emit(n, new, env)
    out = new.output(tuple(map_arg(tuple(outputs), env.__getitem__)))
    out.meta = dict(graph.output_node().meta)
    return new


def _needed(ends: list[Node], env: dict[Node, Node], what: str) -> set[Node]:
    needed: set[Node] = set()
    stack = list(ends)
    while stack:
        n = stack.pop()
        if n in needed or n in env:
            continue
        if n.op == "placeholder":
            raise RuntimeError(f"{what} graph needs {n}, which is neither saved nor one of its inputs")
        needed.add(n)
        stack.extend(n._inputs)
    return needed


def _emit(end: Node, new: Graph, env: dict[Node, Node]) -> None:
    stack = [end]
    while stack:
        n = stack[-1]
        if n in env:
            stack.pop()
            continue
        missing = [i for i in n._inputs if i not in env]
        if missing:
            stack.extend(reversed(missing))
        else:
            env[n] = new.node_copy(n, env.__getitem__)
            stack.pop()


PartitionFn = Callable[..., tuple[GraphModule, GraphModule]]
