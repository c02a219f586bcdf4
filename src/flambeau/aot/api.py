"""Ahead-of-time autograd: functions and captured modules compiled through functional ATen graphs.

``fw_compiler(gm, example_inputs)`` and ``bw_compiler`` return callables on tensors; ``inference_compiler`` is used
where no gradient can be asked for (the forward's compiler unless given)."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .. import _C
from .. import autograd as _autograd
from ..base import process_state, pytree
from ..base.collector import collecting_later
from ..base.errors import NotFunctional
from ..base.logs import artifact
from ..base.records import replace
from ..core import modes
from ..core.layouts import overlaps_itself
from ..fake import FakeTensor
from ..fx import GraphModule, Interpreter
from ..fx.graph_facts import GraphFacts
from ..proxy import current_proxy_mode
from . import cache, gradient_notes
from .compiled_function import Plan, Ways
from .lookups import products_of_lookups
from .partitioners import default_partition, min_cut_rematerialization_partition
from .runtime import consuming_callable, plain_callable, wrap
from .tracing import RunsAsItIs, trace
from .varying_sizes import VaryingSizes

__all__ = ["aot_function", "aot_module", "aot_module_simplified", "nop"]


def nop(gm: GraphModule, example_inputs) -> Callable:
    """The compiler that runs the graph as it is."""
    return gm.forward


class Compilers:
    """What to do with the graphs."""

    def __init__(self, fw_compiler, bw_compiler=None, partition_fn=None, decompositions=None, inference_compiler=None):
        self.fw = fw_compiler
        self.bw = bw_compiler or fw_compiler
        self.inference = inference_compiler or fw_compiler
        self.partition = partition_fn or default_partition
        self.decompositions = decompositions() if callable(decompositions) else decompositions


@collecting_later
def compile_flat(
    fn: Callable,
    inputs: list[Any],
    compilers: Compilers,
    lifted: list[Any] | None = None,
    captured: GraphModule | None = None,
    positions: list[int] | None = None,
    held: Iterable[int] = (),
) -> Callable:
    """Compile ``fn(*lifted, *inputs) -> list`` for inputs like these; the result takes ``inputs`` and returns a tuple.

    ``captured``: the graph module that ``fn`` runs. ``positions``: which of ``inputs`` its arguments are, where the graph and they tell all that the
    result depends on, so that it may be found on disk. ``held``: which of ``lifted`` and ``inputs`` are parameters and buffers of modules.
    """
    lifted = lifted or []
    everything = [*lifted, *inputs]
    records = _autograd.is_grad_enabled() or (captured is not None and _enables_grad(captured))
    joint = records and any(isinstance(t, _C.TensorBase) and t.requires_grad for t in everything)
    traced, parts, ways = _trace_and_cut(fn, everything, joint, compilers, captured, positions)
    traced.once_differentiable = captured is not None and _once_differentiable(captured)
    shared = _shared_memory(everything) if traced.mutated else ()
    for i in traced.mutated:
        if i in shared:
            raise RunsAsItIs(
                f"ahead-of-time autograd: input {i} is written in place and shares its memory with another input; pass one of them only, or clone it"
            )
        if overlaps_itself(everything[i]._shape, everything[i]._strides):
            raise RunsAsItIs(f"ahead-of-time autograd: input {i} is written in place and is expanded; clone it")
    untouched = False
    if not (traced.num_forward or traced.random or traced.fallible):
        run = _no_outputs
    elif not traced.joint:
        (part,) = parts
        for stream in _FORWARD:
            _log(stream, "forward graph (inference)", part)
        _AOT("traced a graph without a backward: %d inputs", len(traced.fake_inputs))
        # A compiler may write a new value of an input over the old one, and give None in its place. A NumPy program's errors have to find all inputs
        # as they were, so that it can be run plainly.
        untouched = bool(_meta_of(captured).get("arrays")) and traced.fallible
        part.facts.held = tuple(i for i in held if i not in traced.mutated)
        part.facts.untouched_at_errors = untouched
        part.facts.output_aliases = {k: i for k, i in enumerate(traced.mutated) if i not in traced.mutated_with_grad}
        run = plain_callable(part.compile(compilers.inference, traced.fake_inputs))
        if joint:  # inputs require gradients and no output carries one: what runs the graph must not record either
            run = _autograd.no_grad()(run)
    else:
        run = _compile_joint(traced, *parts, ways, compilers, fn)
    call = wrap(traced, run, lifted, len(inputs), lambda *args: tuple(fn(*lifted, *args)))
    if call is not run:
        call.untouched_at_errors = untouched
        call.keeps_inputs_at_errors = not traced.joint and not any(part.facts.output_aliases for part in parts)
    return call


def _meta_of(captured: GraphModule | None) -> dict[str, Any]:
    """What capture says of its graph; a function that isn't captured has nothing said of it."""
    return getattr(captured, "meta", {})


def _enables_grad(captured: GraphModule) -> bool:
    """Whether a captured graph has a region under enable_grad: what is computed there carries gradients whatever the mode of the call."""
    return any(getattr(n.target, "is_grad_mode_switch", False) and n.args[0] for n in captured.graph.nodes)


def _once_differentiable(captured: GraphModule) -> bool:
    """Whether some node of a captured graph, or of a graph in it, has a derivative that says it isn't differentiable."""
    graphs = [m.graph for m in captured.modules() if isinstance(m, GraphModule)]
    return any(getattr(n.target, "once_differentiable", False) for g in graphs for n in g.nodes)


class GraphPart:
    """A graph to compile. ``make`` makes it. A compiler that finds its own result on disk doesn't need that
    (``compiler.recall(entry, output_aliases)``)."""

    def __init__(self, make: Callable[[], GraphModule], entry: str | None = None):
        self.make, self.facts = make, GraphFacts(entry)

    @functools.cached_property
    def gm(self) -> GraphModule:
        return self.make()

    @collecting_later
    def compile(self, compiler: Callable, example_inputs: list[Any] | None = None) -> Callable:
        recall = getattr(compiler, "recall", None)
        facts = self.facts
        if facts.entry is not None and facts.untouched_at_errors:
            facts = replace(facts, entry=f"{facts.entry} untouched at errors")
        if facts.entry is not None and (facts.free or facts.orders):
            facts = replace(facts, entry=f"{facts.entry} {facts.free} {sorted(facts.orders.items())}")
        known = recall is not None and facts.entry is not None
        found = recall(facts.entry, facts.output_aliases) if known else None
        if found is not None:
            return found
        gm = self.gm
        gm.facts = facts
        return compiler(gm, _example_inputs(gm) if example_inputs is None else example_inputs)


def _trace_and_cut(
    fn, everything, joint: bool, compilers: Compilers, captured, positions
) -> tuple[Any, list[GraphPart], Ways | None]:
    """Facts, and the graphs to compile: one, or forward and backward and what must be known of them."""
    key, known = None, compilers.partition in _PARTITIONS and compilers.decompositions is None
    known = known and not gradient_notes.active()
    if known and positions is not None and not (_GRAPHS.on or _JOINT.on):
        key = cache.key_of(captured, positions, everything, compilers.partition)
    found = cache.read(key) if key is not None else None
    if found is not None:
        traced, makers, ways, entry = found
        traced.load = makers[0]
        parts = [GraphPart(make, f"{entry} {k}") for k, make in enumerate(makers)]
        return traced, parts[1:] if traced.joint else parts, ways
    mode = _meta_of(captured).get("fake_mode")
    try:
        traced = trace(fn, everything, joint=joint, decompositions=compilers.decompositions, fake_mode=mode)
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error) or not _meta_of(captured).get("arrays"):
            raise
        traced = trace(fn, everything, joint=joint, decompositions=compilers.decompositions, snapshots=True)
    if compilers.partition is min_cut_rematerialization_partition and products_of_lookups(traced.gm.graph):
        traced.gm.recompile()
    graphs, ways = [traced.gm], None
    if traced.joint:
        _log(_JOINT, "joint graph", GraphPart(lambda: traced.gm))
        joint_inputs = (traced.fake_inputs, traced.fake_tangents)
        graphs += compilers.partition(traced.gm, joint_inputs, num_fwd_outputs=traced.num_forward)
        if gradient_notes.active():
            gradient_notes.insert(graphs[-1], everything)
        ways = Ways.of(traced, *graphs[1:])
    entry = cache.write(key, traced, graphs, ways) if key is not None and traced.num_forward else None
    parts = [GraphPart(lambda gm=gm: gm, entry and f"{entry} {k}") for k, gm in enumerate(graphs)]
    return traced, parts[1:] if traced.joint else parts, ways


_PARTITIONS = (default_partition, min_cut_rematerialization_partition)
_GRAPHS = artifact("aot_graphs", "forward and backward graphs after differentiation")
_FORWARD = _GRAPHS, artifact("aot_forward_graph", "")
_BACKWARD = _GRAPHS, artifact("aot_backward_graph", "")
_AOT = artifact("aot", "")
_HINTS = artifact("perf_hints", "fallbacks and other things that cost time")
_JOINT = artifact("aot_joint_graph", "the joint graph before partitioning")


def _log(stream, what: str, part: GraphPart) -> None:
    if stream.on:
        stream("===== %s =====\n%s", what, part.gm.print_readable(print_output=False))


def _no_outputs(*args):
    return ()


def _compile_joint(
    traced, fw: GraphPart, bw: GraphPart, ways: Ways, compilers: Compilers, plainly: Callable
) -> Callable:
    for streams, what, part in ((_FORWARD, "forward graph", fw), (_BACKWARD, "backward graph", bw)):
        for stream in streams:
            _log(stream, what, part)
    _AOT("traced a graph and its backward: %d results, %d inputs", traced.num_forward, len(traced.fake_inputs))

    def recompile(fn):
        return aot_function(fn, compilers.fw, compilers.bw, compilers.partition, compilers.decompositions)

    if all(getattr(c, "chooses_orders", False) for c in (compilers.fw, compilers.bw)):
        # What only the two graphs see lies as the forward finds best; the backward is made for that.
        fw.facts.free = tuple(traced.num_forward + i for i, s in enumerate(ways.saved_from) if s.index is None)
    made = fw.compile(compilers.fw)
    orders = getattr(getattr(made, "info", None), "orders", {})
    bw.facts.orders = {k - traced.num_forward: order for k, order in orders.items()}
    forward, backward = plain_callable(made), consuming_callable(bw.compile(compilers.bw))
    return Plan(traced, ways, forward, backward, recompile, plainly)


def _example_inputs(gm: GraphModule) -> list[Any]:
    return [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"]


def _shared_memory(inputs: list[Any]) -> set[int]:
    """Indices of inputs that share memory with another (different) input, as far as is known."""
    owners: dict[int, list[int]] = {}
    for i, t in enumerate(inputs):
        if isinstance(t, _C.TensorBase):
            owners.setdefault(id(t._storage), []).append(i)

    def meet(i: int, j: int) -> bool:
        a, b = inputs[i]._array, inputs[j]._array
        return a is None or b is None or np.may_share_memory(a, b)

    return {i for group in owners.values() for i in group if any(i != j and meet(i, j) for j in group)}


def aot_function(
    fn: Callable,
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable | None = None,
    decompositions: Any = None,
    inference_compiler: Callable | None = None,
    dynamic: bool = False,
    **_ignored,
) -> Callable:
    """Compile ``fn`` of nested tensors. Compiled at the first call for each combination of shapes, dtypes and gradient
    requirements. ``dynamic``: sizes are symbols in the graphs, and what they assume of them decides where another compilation is needed.
    """
    compilers = Compilers(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)
    cache: dict[Any, list[tuple[Callable, Any, VaryingSizes | None]]] = {}

    @functools.wraps(fn if not isinstance(fn, GraphModule) else fn.forward)
    def compiled(*args, **kwargs):
        if _C.tls("forward_open"):  # tensors may carry tangents, which a graph knows nothing of
            return fn(*args, **kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        unique, positions = _deduplicate(leaves)
        key = (spec, tuple(positions), process_state.key(), *map(_form if dynamic else _key, unique))
        entries = cache.setdefault(key, [])
        found = next((e for e in entries if e[2] is None or e[2].fit(unique)), None)
        if found is None:
            out_spec: list[Any] = []

            def flat(*flat_args):
                inner_args, inner_kwargs = pytree.tree_unflatten([flat_args[p] for p in positions], spec)
                out, structure = pytree.tree_flatten(fn(*inner_args, **inner_kwargs))
                out_spec[:] = [structure]
                return out

            sizes = VaryingSizes(unique) if dynamic else None
            call = compile_flat(flat, unique if sizes is None else sizes.examples, compilers)
            found = (call, out_spec[0], sizes)
            entries.append(found)
        call, structure, _ = found
        return pytree.tree_unflatten(list(call(*unique)), structure)

    return compiled


def _deduplicate(leaves: list[Any]) -> tuple[list[Any], list[int]]:
    """Each tensor once, and for each leaf its position among them."""
    unique: list[Any] = []
    where: dict[int, int] = {}
    positions = []
    for leaf in leaves:
        at = where.setdefault(id(leaf), len(unique)) if isinstance(leaf, _C.TensorBase) else len(unique)
        if at == len(unique):
            unique.append(leaf)
        positions.append(at)
    return unique, positions


def _key(x: Any):
    if isinstance(x, _C.TensorBase):
        return (tuple(x.shape), tuple(x.stride()), x.dtype, x.device, x.requires_grad, x.is_leaf)
    return (type(x), x)


def _form(x: Any):
    """What tells arguments apart whose sizes may be others."""
    if isinstance(x, _C.TensorBase):
        return (x.ndim, x.dtype, x.device, x.requires_grad, x.is_leaf)
    return (type(x), x)


def _is_wrapper(x: Any) -> bool:
    """Whether it is a tensor of a program's class that does the operators itself."""
    if not isinstance(x, _C.TensorBase) or isinstance(x, FakeTensor):
        return False
    return type(x).__torch_dispatch__ is not _C._disabled_torch_dispatch_impl


def aot_module_simplified(
    mod: Any,
    args: list[Any],
    fw_compiler: Callable,
    bw_compiler: Callable | None = None,
    partition_fn: Callable | None = None,
    decompositions: Any = None,
    inference_compiler: Callable | None = None,
    **_ignored,
) -> Callable:
    """Compile a captured module whose ``forward`` takes flat tensors and returns a flat tuple. ``args``: example
    inputs.

    Parameters and buffers that the module holds become inputs of the graph, passed by the returned callable at each
    call.
    """
    compilers = Compilers(fw_compiler, bw_compiler, partition_fn, decompositions, inference_compiler)
    held = _held_tensors(mod)
    names, lifted = list(held), list(held.values())
    n = len(lifted)
    # The structure of what the module returns: of a captured graph it is known, otherwise it is seen when it runs.
    structure: list[Any] = []
    captured = mod if isinstance(mod, GraphModule) else None
    unique, positions = _deduplicate(list(args))
    told = captured is not None and not held and mod.graph.specs is None and _is_flat(mod.graph.output_node().args[0])
    if told:
        structure[:] = [None, True]

    def flat(*everything):
        # What function modes do is in the captured graph already.
        with modes.disabled("function"):
            out = run_with(mod, dict(zip(names, everything[:n])), everything[n:])
        simple = _is_flat(out)
        # What a captured graph returns are tensors and numbers. optree is long to import beside a small compilation.
        leaves, spec = (list(out), None) if told and simple else pytree.tree_flatten(out)
        wrapper = next((type(x) for x in leaves if _is_wrapper(x)), None)
        # A function in the graph made it: the class would hold the tensors of this trace.
        if wrapper is not None:
            raise RunsAsItIs(f"a function in the graph makes a {wrapper.__name__}, which the graph returns")
        structure[:] = [spec, simple]
        return leaves

    def of_unique(*a):
        return flat(*a[:n], *(a[n + p] for p in positions))

    once = len(unique) == len(args)
    try:
        call = inner = compile_flat(
            flat if once else of_unique,
            unique,
            compilers,
            lifted,
            captured,
            positions if told else None,
            [*range(n), *sorted({n + positions[i] for i in _of_modules(mod)})],
        )
    except (RunsAsItIs, NotFunctional) as e:
        if not isinstance(mod, GraphModule):
            raise
        # A value that the backward needs is written over, say: the error is the program's own, and only if it gets there.
        _HINTS("a graph runs operator by operator: %s", str(e))
        return mod.forward
    if not once:
        first = [positions.index(i) for i in range(len(unique))]

        def call(*args):
            return inner(*(args[i] for i in first))

    spec, is_flat = structure
    if is_flat:
        return call
    return lambda *args: pytree.tree_unflatten(list(call(*args)), spec)


_OF_MODULE = re.compile(r"\._(parameters|buffers)\['[^']*'\]$")


def _of_modules(mod: Any) -> list[int]:
    """Which of a captured graph's inputs are parameters and buffers of modules: their sources tell."""
    if not isinstance(mod, GraphModule):
        return []
    inputs = [n for n in mod.graph.nodes if n.op == "placeholder"]
    return [i for i, n in enumerate(inputs) if _OF_MODULE.search(n.meta.get("source", ""))]


def _is_flat(out: Any) -> bool:
    return type(out) in (tuple, list) and not any(isinstance(o, (tuple, list, dict)) for o in out)


def _held_tensors(mod: Any) -> dict[str, Any]:
    """Parameters, buffers and tensor attributes that a module's graph reads, by name; each tensor once."""
    if isinstance(mod, GraphModule):
        found: dict[str, Any] = {}
        for node in mod.graph.nodes:
            if node.op == "get_attr":
                value = _attribute(mod, node.target)
                if isinstance(value, _C.TensorBase):
                    found[node.target] = value
            elif node.op == "call_module":
                sub = _attribute(mod, node.target)
                for kind in ("named_parameters", "named_buffers"):
                    if hasattr(sub, kind):
                        found.update({f"{node.target}.{k}": v for k, v in getattr(sub, kind)()})
        return found
    return {**dict(mod.named_parameters()), **dict(mod.named_buffers())} if hasattr(mod, "named_parameters") else {}


def _attribute(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = getattr(obj, part)
    return obj


class _WithTensors(Interpreter):
    """Runs a captured module with other tensors in the place of those it holds."""

    def __init__(self, module, tensors):
        super().__init__(module)
        self.tensors = tensors

    def run_node(self, n):
        # The user's line goes from the captured node to the operators it becomes.
        mode = current_proxy_mode()
        if mode is not None:
            mode.stack = n.meta.get("stack") or n.meta.get("stack_trace")
        result = super().run_node(n)
        if mode is not None:
            mode.lines.ran(mode.stack)
        return result

    def get_attr(self, target, args, kwargs):
        return self.tensors[target] if target in self.tensors else self.fetch_attr(target)

    def call_module(self, target, args, kwargs):
        prefix = target + "."
        inner = {k[len(prefix) :]: v for k, v in self.tensors.items() if k.startswith(prefix)}
        sub = self.fetch_attr(target)
        with swapped(sub, inner):
            return sub(*args, **kwargs)


def run_with(mod: Any, tensors: dict[str, Any], args) -> Any:
    """``mod(*args)`` with its parameters and buffers replaced by ``tensors``."""
    if isinstance(mod, GraphModule):
        return _WithTensors(mod, tensors).run(*args)
    with swapped(mod, tensors):
        return mod(*args)


def swapped(mod: Any, tensors: dict[str, Any]) -> Any:
    """A block in which the module holds ``tensors`` under the given names. Other threads see them too."""
    rows = []
    for name, t in tensors.items():
        path, _, last = name.rpartition(".")
        owner = _attribute(mod, path) if path else mod
        tables = (getattr(owner, table, {}) for table in ("_parameters", "_buffers"))
        rows.append((next((held for held in tables if last in held), vars(owner)), last, t))
    return _C.Replaced(rows)


def aot_module(mod: Any, *args, **kwargs) -> Callable:
    """``aot_function`` of a module, its parameters and buffers passed at each call."""

    def functional(tensors, inputs):
        return run_with(mod, tensors, inputs)

    compiled = aot_function(functional, *args, **kwargs)

    def forward(*inputs):
        return compiled(_held_tensors(mod), inputs)

    return forward
