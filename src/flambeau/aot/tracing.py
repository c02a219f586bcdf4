"""Tracing a flat function of tensors into a functional ATen graph, with or without its gradients.

The forward runs once on fake tensors under a proxy mode, with autograd above it when gradients are asked for; then
the engine runs backward in the same trace, which records the gradients' operators behind the forward's. If anything
was written in place, the graph is run again through functional values (``functionalize``), which leaves only
operators that return new tensors."""

from __future__ import annotations

import contextlib
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

from .. import _C
from .. import autograd as _autograd
from ..autograd.function import FunctionCtx, fills_missing, tells_missing
from ..autograd.graph import saved_as_they_were
from ..autograd.node import set_history
from ..base.memory_format import format_strides, suggested_format
from ..base.records import replace
from ..base.relations import symbols
from ..base.shape_checks import about_layout
from ..base.symint import NUMBERS
from ..core import modes
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import meta_of
from ..functionalize import FunctionalValue, Memory
from ..functionalize import call as call_functional
from ..functionalize import call_higher_order as call_functional_higher_order
from ..fx import Graph, GraphModule, Interpreter, Node, map_arg
from ..fx.targets import base_of, is_view
from ..fx.traceback import has_preserved_node_meta, preserve_node_meta
from ..proxy import ASSERT_SCALAR, ProxyTorchDispatchMode, find_fake_mode
from ..proxy.tape import NotesOfTape
from .detached import with_detached
from .facts import Computed, Constant, InputAlias, InputView, Number, OutputView, Traced, View, sizes_in
from .graph_passes import common_subexpressions, draws, fallible, identities, overwritten_parts
from .versions import kept_by

__all__ = ["NoDerivative", "RunsAsItIs", "trace", "trace_subgraph"]


class RunsAsItIs(RuntimeError):
    """What is traced can't be compiled ahead of time; run operator by operator it does what the program does."""


class NoDerivative(RunsAsItIs):
    """The derivative of what is traced is an error: a program that asks for it gets that in its backward, others get none."""


def trace(
    fn: Callable,
    inputs: list[Any],
    *,
    joint: bool,
    decompositions=None,
    names: list[str] | None = None,
    fake_mode: FakeTensorMode | None = None,
    whole: bool = False,
    record_stack: bool = False,
    snapshots: bool = False,
    as_written: bool = False,
    keeps: Callable[[Any], bool] | None = None,
) -> Traced:
    """``fn(*inputs)`` returns a list of leaves. ``joint``: record gradients of the inputs that require them. ``names``: of the placeholders.
    ``whole``: everything that is returned is an output of the graph, views of inputs too. ``record_stack``: keep the user's lines.
    ``snapshots``: what the derivative needs is kept as it was when it was computed with, whatever is written into it later: so it is with NumPy's
    arrays, where PyTorch's tensors raise. ``as_written``: the graph has the calls of the program: composites, writes in place and switches of grad
    mode are nodes, and nothing is merged or left out. ``keeps``: which composites are nodes in a functional graph, where they only compute."""
    fake_mode = fake_mode or find_fake_mode(inputs) or FakeTensorMode(allow_non_fake_inputs=True)
    shown = {"pre_dispatch": as_written, "keeps": keeps, "switches": whole}
    mode = ProxyTorchDispatchMode(Graph(), fake_mode, decompositions, record_stack, **shown)
    mode.execute = fake_mode.run
    mode.tape = NotesOfTape() if joint else None
    fakes = []
    for i, t in enumerate(inputs):
        fake = _fake_input(mode, t, joint) if isinstance(t, _C.TensorBase) else t
        mode.placeholder(names[i] if names else f"primals_{i + 1}" if joint else f"arg{i}_1", fake)
        fakes.append(fake)
    given = [_as_non_leaf(mode, f) if joint else f for f in fakes]
    histories = [f.grad_fn if isinstance(f, _C.TensorBase) else None for f in given]
    # Modes that happen to be on belong to the caller; they see the compiled graph run, not its making.
    with modes.disabled("dispatch"), fake_mode, mode, _C.Guard(grad_enabled=int(_autograd.is_grad_enabled())):
        with saved_as_they_were() if snapshots else contextlib.nullcontext():
            outs = fn(*given)
        mode.stack = None
        traced = _collect(mode, given, histories, fakes, outs, joint, whole, as_written)
    traced.gm = _as_written(mode) if as_written else _finish(mode, traced, whole)
    return traced


def _as_written(mode) -> GraphModule:
    for t in mode.constants.values():
        if isinstance(t, _C.TensorBase) and id(t._storage) in mode.written:
            _refuse_write(t)
    return GraphModule(mode.constants, mode.graph, "graph")


def _fake_input(mode, t, joint: bool):
    fake = mode.snapshot(t)
    if joint and t.requires_grad:
        fake.requires_grad_(True)
    return fake


def _as_non_leaf(mode, fake):
    """What the function gets for an input that requires a gradient. It may be written in place under grad, which a leaf may
    not be, so it is the result of an operation (that the trace doesn't see). Whether the caller's tensor may be written
    is checked when its new contents are copied into it."""
    if not isinstance(fake, _C.TensorBase) or not fake.requires_grad:
        return fake
    with modes.disabled("dispatch"), _C.Guard(grad_enabled=1, inference=0):
        result = fake.clone()
    given = mode.snapshot(fake)  # a clone may be laid out differently
    set_history(given, result._grad_fn, result._output_nr)
    mode.track(given, mode.node_of(fake))
    return given


def _collect(mode, given, histories, fakes, outs, joint: bool, whole: bool, as_written: bool) -> Traced:
    storages = {id(t._storage): i for i, t in reversed(list(enumerate(given))) if isinstance(t, _C.TensorBase)}
    by_id = {id(t): i for i, t in enumerate(given)}
    written = [i for i, t in enumerate(given) if isinstance(t, _C.TensorBase) and id(t._storage) in mode.written]
    mutated = [] if as_written else written  # what its nodes write is no result of the graph
    uncounted = frozenset(i for i in mutated if given[i]._writes == 0)
    under_grad = frozenset(i for i in mutated if id(given[i]._storage) in mode.written_under_grad)
    with_grad = frozenset(i for i in mutated if joint and given[i].grad_fn is not histories[i])
    forward: list[Any] = [given[i] for i in mutated]
    fresh = [o for o in outs if isinstance(o, _C.TensorBase) and id(o) not in by_id]
    derived = {} if whole else _views_among(mode, fresh, storages if joint else None)
    facts: list[Any] = []
    at: dict[int, int] = {}

    def computed(o) -> int:
        index = at.setdefault(id(o), len(forward))
        if index == len(forward):
            forward.append(o)
        return index

    for o in outs:
        if isinstance(o, NUMBERS):
            known = all(s in o.env.hints for s in symbols(o.expr)) and not whole
            facts.append(Number(o.env.simplify(o.expr)) if known else Computed(computed(o), False))
        elif not isinstance(o, _C.TensorBase):
            facts.append(Constant(o))
        elif whole:
            facts.append(Computed(computed(o), False))
        elif id(o) in by_id:
            facts.append(InputAlias(by_id[id(o)]))
        elif id(o._storage) in storages and (view := _view_of_input(mode, o, given)) is not None:
            facts.append(replace(view, history=computed(o)) if _own_history(o, given[view.index]) else view)
        elif id(o) in derived:
            base, view = derived[id(o)]
            facts.append(replace(view, index=computed(base), history=computed(o) if _own_history(o, base) else None))
        else:
            facts.append(Computed(computed(o), joint and o.requires_grad))
    mode.insert_checks()
    num = len(forward)
    nodes = [_input_node(mode, i, given) for i in mutated] + [mode.argument(o) for o in forward[len(mutated) :]]
    traced = Traced(
        None,
        fakes,
        facts,
        mutated,
        num,
        joint,
        mutated_with_grad=with_grad,
        uncounted=uncounted,
        mutated_under_grad=under_grad,
    )
    for i, t in enumerate(given):
        if id(t) in mode.reshaped:
            if i in with_grad:
                raise RunsAsItIs(
                    f"input {i} is written in place under grad and its sizes are changed in place: compiled code can't hand back both"
                )
            fakes[i] = mode.inputs[i].meta["val"] if fakes[i] is t else fakes[i]
            _, chain = _view_chain(mode, t, lambda n: n.op == "placeholder")
            traced.reshaped.append((i, InputView(i, chain)))
    if joint:
        grads = _gradients(mode, traced, given, fakes, forward)
        # If nothing that comes out carries a gradient, this is a forward graph.
        traced.joint = bool(traced.tangent_of)
        nodes += grads if traced.joint else []
    mode.graph.output(tuple(nodes))
    _refuse_huge(mode.graph)
    return traced


_FLOAT_BITS = 1023  # no floating-point number is greater


def _refuse_huge(graph: Graph) -> None:
    """An integer that no number of a kernel holds is an error of the operator that is given it, when it runs."""
    for n in graph.nodes:
        if any(type(a) is int and a.bit_length() > _FLOAT_BITS for a in (*n.args, *n.kwargs.values())):
            raise RunsAsItIs(f"{n.target} is given an integer that no floating-point number holds")


def _view_chain(mode, o, is_base: Callable[[Node], bool]) -> tuple[Node, tuple] | None:
    """How ``o`` is made by views alone of the earliest node for which ``is_base`` holds, read off the graph."""
    node, chain, which, found = mode.argument(o), [], None, None
    while True:
        if is_base(node):
            found = node, tuple(reversed(chain))
        if node.op != "call_function":
            break
        if node.target is operator.getitem:
            which = node.args[1]
        elif is_view(node.target):
            rest, kwargs = map_arg((node.args[1:], dict(node.kwargs)), lambda n: n.meta["val"])  # sizes, when symbolic
            chain.append((node.target, rest, kwargs, which))
            which = None
        elif node.target.kind == "out":  # it returns what was given for its results
            given = [node.kwargs[a.name] for a in node.target._schema.arguments if a.is_out]
            node, which = given[which or 0], None
            continue
        elif node.target.kind != "inplace":  # an in-place operator returns its first argument
            break
        node = node.args[0]
    return found


def _unwritten(node: Node) -> Node:
    """The node that made the tensor, of one that in-place operators returned."""
    while node.op == "call_function" and getattr(node.target, "kind", None) == "inplace":
        node = node.args[0]
    return node


def _made_again(kind: type[View], index: int, chain: tuple, view, base) -> View:
    """How ``view`` is made of ``base`` at each call: through ``.data`` where its writes are counted apart; under no_grad, or ended by detach,
    where it carries no gradient though its base does."""
    detach = namespace("aten").detach.default
    if view._counter is not base._counter:
        return kind(index, (*chain, (getattr, ("data",), {}, None)))
    if not base.requires_grad or view.requires_grad:
        return kind(index, chain)
    if any(link[0] is detach for link in chain):
        return kind(index, (*chain, (detach, (), {}, None)))
    return kind(index, chain, unrecorded=True)


def _own_history(o, base) -> bool:
    """Whether ``o``, in the memory of ``base``, carries a gradient that views of the base don't: another's, or one that a Function between them
    makes of it."""
    if not o.requires_grad:
        return False
    root = lambda t: t if t._base is None else t._base  # noqa: E731
    return root(o) is not root(base) or any(isinstance(n, FunctionCtx) for n in _steps([o.grad_fn], base.grad_fn))


def _view_of_input(mode, o, given) -> InputView | None:
    found = _view_chain(mode, o, lambda n: n.op == "placeholder")
    if found is None:
        return None
    index = mode.inputs.index(found[0])
    if mode.fake_mode.shape_env is not None and any(
        s not in n.env.hints for link in found[1] for n in sizes_in(link) for s in n.expr.symbols()
    ):
        return None  # a size that depends on data is known inside the graph only
    return _made_again(InputView, index, found[1], o, given[index])


def _views_among(mode, outs: list[Any], given: dict | None) -> dict[int, tuple[Any, OutputView]]:
    """Outputs that are views of other outputs: by id, what they are views of and how (with no index yet).

    In a joint graph, where ``given`` are the inputs' storages, views of one tensor that isn't returned are made of it again, too: a gradient
    that is recorded for a write to one of them reaches the others through it."""
    storages = Counter(id(t._storage) for t in {id(o): o for o in outs}.values())
    sharing = [o for o in outs if storages[id(o._storage)] > 1]
    # `.data` of a tensor has its node, too: of the two the one that counts its memory's writes is what the other is made of.
    roots = [
        o._base
        for o in sharing
        if given is not None and id(o._storage) not in given and o._base is not None and o._base.requires_grad
    ]
    bases = sorted(reversed([*sharing, *roots]), key=lambda o: o._counter is o._storage)
    shared = {_unwritten(mode.argument(o)): o for o in bases}
    derived = {}
    for o in sharing:
        found = _view_chain(mode, o, shared.__contains__)
        if found is not None and shared[found[0]] is not o:
            base, chain = shared[found[0]], found[1] or ((namespace("aten").alias.default, (), {}, None),)
            derived[id(o)] = base, _made_again(OutputView, -1, chain, o, base)
    return derived


def _input_node(mode, i: int, given) -> Node:
    # The placeholder: functionalization reads the memory's last contents from it.
    return mode.inputs[i]


def _gradients(mode, traced: Traced, given, fakes, forward) -> list[Node | None]:
    wanted = [i for i, t in enumerate(fakes) if isinstance(t, _C.TensorBase) and t.requires_grad]
    ends = []
    for k, o in enumerate(forward):
        mutated = k < len(traced.mutated)
        if (
            isinstance(o, _C.TensorBase)
            and o.requires_grad
            and (not mutated or traced.mutated[k] in traced.mutated_with_grad)
        ):
            ends.append(k)
    with mode.graph.inserting_after(mode.inputs[-1]):
        for k in ends:
            # Tangents are dense, with the channels innermost where the output's are: CompiledFunctionBackward sees to it.
            meta = meta_of(forward[k])
            with about_layout(meta.shape):
                strides = format_strides(meta.shape, suggested_format(meta.shape, meta.strides))
            tangent = FakeTensor(mode.fake_mode, replace(meta, strides=strides, offset=0))
            mode.placeholder(f"tangents_{len(traced.tangent_of) + 1}", tangent)
            traced.tangent_of.append(k)
            traced.fake_tangents.append(tangent)
    grads: list[Node | None] = [None] * len(fakes)
    if ends and wanted:
        if len(ends) > 1 and any(map(tells_missing, _steps([forward[k].grad_fn for k in ends]))):
            raise RunsAsItIs("a Function is told which gradients are missing, and compiled code fills them in")
        traced.filled = _filled([forward[k].grad_fn for k in ends], fakes)
        traced.kept = kept_by([forward[k] for k in ends], given, forward)
        before = len(mode.graph.nodes)
        mode.tape.in_backward = True
        try:
            found = _autograd.grad(
                [forward[k] for k in ends], [fakes[i] for i in wanted], traced.fake_tangents, allow_unused=True
            )
        except RuntimeError as e:
            raise NoDerivative(f"the backward of the graph raises {type(e).__name__}: {e}") from e
        for n in [*mode.graph.nodes][before:]:
            if draws(n):  # in the backward, whether it depends on gradients or not
                n.meta["in_backward"] = True
        for i, g in zip(wanted, found):
            grads[i] = None if g is None else mode.argument(g)
    return grads


def _filled(ends: list, fakes: list) -> list[set[int]]:
    """For each input the ends from which its gradient comes through a Function that fills in missing gradients."""
    place = {id(t): i for i, t in enumerate(fakes)}
    found: list[set[int]] = [set() for _ in fakes]
    for k, end in enumerate(ends if len(ends) > 1 else ()):
        functions = filter(fills_missing, _steps([end]))
        for n in _steps([f for node in functions for f, _ in node.next_functions]):
            i = place.get(id(getattr(n, "variable", None)))
            if i is not None:
                found[i].add(k)
    return found


def _steps(todo: list, end=None):
    """The nodes of a tape, from these on; neither ``end`` nor what is reached through it alone."""
    seen = {id(end)}
    while todo:
        n = todo.pop()
        if n is not None and id(n) not in seen:
            seen.add(id(n))
            yield n
            todo += [f for f, _ in n.next_functions]


def _finish(mode, traced: Traced, whole: bool) -> GraphModule:
    graph = mode.graph
    graph.eliminate_dead_code()
    constants = mode.constants
    if mode.written:
        graph, constants = _functional(mode, graph, whole)
        graph.eliminate_dead_code()
    if traced.joint:
        gradient = with_detached(graph, traced.num_forward)
        traced.gradient = GraphModule(constants, gradient) if isinstance(gradient, Graph) else gradient
    bases = [base_of(n) for n in graph.output_node().args[0]]
    identities(graph)
    if not whole:  # an exported graph keeps each call, with the module that it belongs to
        overwritten_parts(graph)
        common_subexpressions(graph)
    graph.eliminate_dead_code()
    if not whole:
        _separate_outputs(graph, traced, bases)
    if traced.joint:
        _keep_overwritten(graph, traced)
    gm = GraphModule(constants, graph, "joint_graph" if traced.joint else "graph")
    traced.random = any(map(draws, graph.nodes))
    traced.fallible = any(map(fallible, graph.nodes))
    return gm


def _separate_outputs(graph: Graph, traced: Traced, bases: list) -> None:
    """Outputs that were different tensors stay so, though their values turned out equal to each other or to an input. ``bases``: what each was a
    view of when it was traced; those of one base share its memory."""
    out = graph.output_node()
    values = list(out.args[0])
    seen: dict[Node, Any] = {}
    for k in range(len(traced.mutated), traced.num_forward):
        node = values[k]
        if not isinstance(node, Node) or isinstance(node.meta.get("val"), NUMBERS):
            continue
        if node.op in ("placeholder", "get_attr") or node in seen:
            shares = node in seen and seen[node] is bases[k]
            again = namespace("aten").alias if shares else namespace("aten").clone
            with graph.inserting_before(out):
                values[k] = graph.call_function(again.default, (node,))
            values[k].meta.update(node.meta)
        seen.setdefault(node, bases[k])
    out.args = (tuple(values),)


def _keep_overwritten(graph: Graph, traced: Traced) -> None:
    """An input that the caller's tensor will overwrite can't be kept for the backward; a copy of it can. The partitioner drops copies
    that it doesn't save."""
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    for i in traced.mutated:
        if inputs[i].users:
            with graph.inserting_after(inputs[-1]):
                copy = graph.call_function(namespace("aten").clone.default, (inputs[i],))
            inputs[i].replace_all_uses_with(copy, lambda user, copy=copy: user is not copy)
            copy.meta.update(inputs[i].meta)
            inputs[i].meta["overwritten"] = copy.meta["copy_of_overwritten"] = True


class _Inner(ProxyTorchDispatchMode):
    """Traces a body: tensors of the trace around it are its last inputs."""

    def __init__(self, outer: ProxyTorchDispatchMode):
        super().__init__(Graph(), outer.fake_mode)
        self.execute = outer.fake_mode.run
        self.outer, self.lifted = outer, {}

    def constant(self, tensor):
        if id(tensor._storage) in self._memory:
            return super().constant(tensor)
        self.outer.argument(tensor)  # it has to be known there, or be a constant
        node = self.placeholder(f"lifted_{len(self.lifted)}", tensor)
        self.lifted[id(tensor)] = tensor, node
        return node


class Subgraph:
    """A traced body. ``lifted``: tensors from outside that it reads."""

    def __init__(self, mode: _Inner, operands: list[Node], results: list):
        self.mode, self.operands, self.results = mode, operands, results
        self.lifted = [t for t, _ in mode.lifted.values()]

    def module(self, lifted: list) -> GraphModule:
        """The body as a graph of its operands and of these tensors, which contain its own lifted ones."""
        graph, at = Graph(), {}
        known = {i: node for i, (_, node) in self.mode.lifted.items()}
        for n in [*self.operands, *(known.get(id(t)) or t for t in lifted)]:
            fresh = graph.placeholder(f"arg{len(graph.nodes)}")
            if isinstance(n, Node):
                at[n] = fresh
            fresh.meta["val"] = n.meta["val"] if isinstance(n, Node) else self.mode.snapshot(n)
        for n in self.mode.graph.nodes:
            if n.op not in ("placeholder", "output"):
                at[n] = graph.node_copy(n, at.__getitem__)
        outs = []
        for r in self.results:
            node = at[r] if isinstance(r, Node) else r
            if isinstance(node, Node) and (node.op in ("placeholder", "get_attr") or node in outs):
                node = graph.call_function(namespace("aten").clone.default, (node,))
                node.meta["val"] = node.args[0].meta["val"]
            outs.append(node)
        graph.output(tuple(outs))
        return _without_writes(self.mode, graph)


def trace_subgraph(outer: ProxyTorchDispatchMode, fn: Callable, operands: list[Any]) -> Subgraph:
    """Trace a body on fake twins of ``operands``, without recording gradients. RuntimeError when it writes to what it is given."""
    mode = _Inner(outer)
    nodes, given = [], []
    for i, x in enumerate(operands):
        fake = outer.snapshot(x)
        nodes.append(mode.placeholder(f"arg{i}", fake))
        given.append(fake)
    with modes.disabled("dispatch"), mode.fake_mode, mode, _autograd.no_grad():
        outs = list(fn(*given))
        results = [mode.argument(o) for o in outs]
    inputs = [*given, *(t for t, _ in mode.lifted.values())]
    if any(isinstance(t, _C.TensorBase) and id(t._storage) in mode.written for t in inputs):
        raise RuntimeError(f"{getattr(fn, '__name__', 'a body')} might be modifying the input! Write to a copy of it.")
    return Subgraph(mode, nodes, results)


def _without_writes(mode: ProxyTorchDispatchMode, graph: Graph) -> GraphModule:
    constants = mode.constants
    if mode.written:
        graph, constants = _functional(mode, graph, whole=True)
    graph.eliminate_dead_code()
    identities(graph)
    return GraphModule(constants, graph)


class _Functional(Interpreter):
    """Runs a graph on functional values."""

    def call_function(self, target, args, kwargs):
        if isinstance(target, HigherOrderOperator):
            return call_functional_higher_order(target, args, kwargs)
        if target is ASSERT_SCALAR and isinstance(args[0], NUMBERS):
            self.mode.insert_check(*args)  # of numbers that this run has made anew
            return None
        if hasattr(target, "_schema"):
            return call_functional(target, args, kwargs)
        if target is operator.getitem:
            return args[0][args[1]]
        if not any(isinstance(a, FunctionalValue) for a in (*args, *kwargs.values())):
            return target(*args, **kwargs)  # arithmetic on sizes
        raise RuntimeError(f"functionalization met the call of {target}, which is not an operator")

    def fetch_attr(self, target):
        found = super().fetch_attr(target)
        return FunctionalValue(Memory(found)) if isinstance(found, _C.TensorBase) else found

    def run_node(self, n):
        self.mode.stack = n.meta.get("stack")
        self.mode.off_tape = n.meta.get("off_tape")
        try:
            return super().run_node(n)
        finally:
            self.mode.off_tape = None


def _refuse_write(t):
    raise RuntimeError(
        f"the traced function writes a tensor of shape {list(t.shape)} that is neither an argument nor made inside it; "
        "pass it as an argument"
    )


def _is_functional(o) -> bool:
    return isinstance(o, FunctionalValue)


def _functional(raw: ProxyTorchDispatchMode, graph: Graph, whole: bool):
    """The graph without mutation. Outputs that share memory share it at the end, too, but in a ``whole`` graph, which is exported."""
    mode = ProxyTorchDispatchMode(Graph(), raw.fake_mode, keeps=raw.keeps, switches=raw.switches)
    mode.execute = raw.fake_mode.run
    inputs = []
    for n in graph.nodes:
        if n.op == "placeholder":
            value = n.meta["val"]
            if isinstance(value, _C.TensorBase):
                value = raw.snapshot(value)
            mode.placeholder(n.target, value)
            inputs.append(FunctionalValue(Memory(value)) if isinstance(value, _C.TensorBase) else value)
    run = _Functional(GraphModule(raw.constants, graph), garbage_collect_values=False)
    run.mode = mode
    # Whatever is recorded of grad mode begins as it was.
    grad_mode = _C.Guard(grad_enabled=int(mode.switches and _C.tls("grad_enabled")))
    with mode.fake_mode, mode, grad_mode, preserve_node_meta(mode.switches or has_preserved_node_meta()):
        out = run.run(*inputs)
        mode.insert_checks()
        wanted = graph.output_node().args[0]
        sharing = Counter(id(o.memory) for o in {id(o): o for o in out if _is_functional(o)}.values())

        def last(n, o):
            if not _is_functional(o):
                return o
            # What was written last through a view is no view of what the others are.
            return o.sync() if sharing[id(o.memory)] > 1 and not whole else o.laid_out(n.meta["val"].stride())

        nodes = [mode.argument(last(n, o)) for n, o in zip(wanted, out, strict=True)]
    for n, value in run.env.items():
        if n.op == "get_attr" and isinstance(value, FunctionalValue) and value.memory.version:
            _refuse_write(value.tensor)
    mode.graph.output(tuple(nodes))
    return mode.graph, mode.constants
