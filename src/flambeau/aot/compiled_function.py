"""The autograd node of a compiled graph: forward and backward graphs behind one :class:`CompiledFunctionBackward`.

``create_graph=True`` differentiates the backward: the gradient part of the joint graph is then run from the inputs
again, itself traced and compiled ahead of time, so any order of derivative works. It needs the inputs as they were
and draws no random numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from .. import _C, fx
from .. import autograd as _autograd
from ..autograd.function import refusing
from ..autograd.node import Node, Saved, set_history
from ..base.memory_format import MemoryFormat, suggested_format
from ..base.records import slotted
from ..base.shape_checks import about_layout
from ..base.symint import is_symbolic
from ..core.dispatch import wrapped
from ..core.operator import namespace
from ..fx import GraphModule
from ..fx.targets import kind_of
from ..proxy.tape import OffTape
from .facts import Computed, Traced
from .partitioners import extract_graph
from .versions import Kept, Versions, versions_of

__all__ = ["CompiledFunctionBackward", "Plan", "Ways"]


FREED = (
    "Trying to backward through the graph a second time: the saved values of a compiled graph were freed by the "
    "first backward. Specify retain_graph=True to keep them."
)


class CompiledFunctionBackward(Node):
    """The backward of one call: the compiled backward graph on what the forward saved."""

    def __init__(self, plan: Plan, inputs: tuple, outputs: list, saved: list):
        edges = [t if isinstance(t, _C.TensorBase) else None for t in inputs]
        carries = plan.traced.tangent_of
        super().__init__(
            "CompiledFunctionBackward",
            edges,
            # What they are: a cotangent of a result that was broadcast is summed to its shape.
            [t if k in carries else None for k, t in enumerate(outputs)],
        )
        self.materialize = False  # a missing cotangent is None: it tells which inputs get no gradient
        self.plan = plan
        self.inputs: tuple | None = inputs
        self.apart: frozenset[int] | None = None  # once what was saved is gone: tangents that may still come
        # The caller's own tensors are kept, so that a write to one of them is noticed.
        found = [s.find(inputs, outputs) for s in plan.ways.saved_from]
        numbers = {id(outputs[k]): k for k in carries}
        self.saved = [
            Saved(t if s.views or f is None else f, numbers.get(id(f)) if not s.views else None, f"saved tensor {i}")
            if isinstance(t, _C.TensorBase)
            else t  # a size
            for i, (s, f, t) in enumerate(zip(plan.ways.saved_from, found, saved))
        ]
        self.watched = [
            (f if s.of_input else _C.alias(f, type(f)), f._writes, f"saved tensor {i}")
            for i, (s, f) in enumerate(zip(plan.ways.saved_from, found))
            if s.views and isinstance(f, _C.TensorBase)
        ]
        self.shapes = [outputs[k].shape for k in carries] if plan.symbolic else None
        self.versions = Versions(plan.traced.kept, inputs, outputs)

    @property
    def saved_tensors(self) -> tuple:
        for t, version, what in self.watched:
            if t._writes != version:
                raise self._written(what, t._dtype, t._shape, version, t._writes)
        return tuple(s.unpack(self) if isinstance(s, Saved) else s for s in self.saved)

    def _written(self, what: str, dtype, shape, version: int, now: int) -> RuntimeError:
        return RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{dtype} {list(shape)}], which is '{what}' of {self.name()}, is at version {now}; "
            f"expected version {version} instead. Hint: enable anomaly detection to find the operation that failed to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True)."
        )

    def _check_inputs(self, indices) -> None:
        for i in indices:
            t, version = self.inputs[i], self.versions.inputs[i]
            if version is not None and t._writes != version:
                raise self._written(f"input {i}", t._dtype, t._shape, version, t._writes)

    def _check_kept(self, rows: list[Kept]) -> None:
        """RuntimeError when something was written since that the program's own tape keeps."""
        for row in rows:
            self._check_inputs(row.inputs)
            for k in row.outputs:
                counter, version = self.versions.outputs[k]
                memory = counter()
                if memory is not None and memory.version != version:
                    shape, dtype, _ = self.outputs[k]
                    raise self._written(f"result {k}", dtype, shape, version, memory.version)

    def _intact(self) -> bool:
        """Whether nothing that was saved has been written since."""
        try:
            return self.saved_tensors is not None
        except RuntimeError:
            return False

    def _repeatable(self) -> bool:
        """Whether the gradient can be had from the inputs."""
        traced = self.plan.traced
        return self.versions.inputs == versions_of(self.inputs) and not traced.random and not traced.mutated

    def apply(self, *cts):
        plan = self.plan
        if self.inputs is None:
            raise RuntimeError(FREED)
        if plan.traced.once_differentiable and _autograd.is_grad_enabled():
            with _C.Guard(grad_enabled=0):
                grads = self.apply(*cts)
            asking = [t for t in (*self.inputs, *cts) if isinstance(t, _C.TensorBase) and t.requires_grad]
            return list(refusing(tuple(asking), tuple(grads))) if asking else grads
        came = frozenset(i for i, k in enumerate(plan.traced.tangent_of) if cts[k] is not None)
        if self.apart is not None and not (came <= self.apart and (plan.once_only or self._repeatable())):
            raise RuntimeError(FREED)
        self.came = came
        self._check_kept([plan.traced.kept[i] for i in came])
        tangents = []
        for i, (k, (shape, dtype, device, order)) in enumerate(zip(plan.traced.tangent_of, plan.tangents)):
            ct = cts[k]
            if ct is None:
                shape = shape if self.shapes is None else self.shapes[i]
                ct = namespace("aten").zeros(list(shape), dtype=dtype, device=device)
            dense = ct.is_contiguous(memory_format=order)
            tangents.append(ct if dense else ct.contiguous(memory_format=order))
        if _autograd.is_grad_enabled():
            tensors = [t for t in self.inputs if isinstance(t, _C.TensorBase)]
            self._check_inputs(range(len(self.inputs)))
            elsewhere = any(map(wrapped, (*tensors, *tangents)))
            backward = plan.gradient() if elsewhere else plan.differentiable_backward()
            grads = list(backward(*self.inputs, *tangents))
        elif self.apart is not None and not plan.once_only:
            inputs = self.inputs
            if not _C.backward_keeps():
                self.release()
            grads = list(plan.gradient()(*inputs, *tangents))
        elif any(map(wrapped, tangents)):  # they are not for compiled code
            grads = list(plan.gradient()(*self.inputs, *tangents))
        elif None in (cts[k] for k in plan.traced.tangent_of) and not self._intact() and self._repeatable():
            # What was overwritten may belong to the outputs that no cotangent came for. The inputs tell.
            grads = list(plan.gradient()(*self.inputs, *tangents))
        else:
            values = [*self.saved_tensors, *tangents]
            if not _C.backward_keeps():
                self.release()  # the list alone holds what was saved: each goes after its last use
            grads = list(plan.backward(values))
        if len(came) < len(tangents):  # an input that only the others depend on gets no gradient, not zeros
            grads = [g if came & needs else None for g, needs in zip(grads, plan.ways.tangents_of_gradient)]
        return grads

    def inputs_written(self) -> None:
        """The call itself wrote to its inputs, as the last thing that it did. What was saved has none of the elements it wrote: a written input
        is saved as a copy, inputs that overlap one are views of one base, and other views of the same memory only share the counter."""
        self.versions.inputs = versions_of(self.inputs)
        for s in self.saved:
            if isinstance(s, Saved):
                s.written()
        self.watched = [(t, t._writes, what) for t, _, what in self.watched]

    def release(self):
        """Let go of what was saved. The inputs stay while cotangents may come that share no step with those that came: a program that runs
        operator by operator has freed only what it went through. So does what was saved, where the inputs can't tell it again."""
        apart = self.plan.apart_from(self.came)
        self.apart = apart if self.apart is None else self.apart & apart
        if not (self.apart and self.plan.once_only):
            for s in self.saved:
                if isinstance(s, Saved):
                    s.release()
            self.watched = []
        if not self.apart:
            self.inputs = None


@slotted
class SavedFrom:
    """Which tensor of the caller a saved value is, or shares memory with (``views``): an input or an output; or neither."""

    index: int | None
    of_input: bool = False
    views: bool = False

    def find(self, inputs, outputs):
        return None if self.index is None else (inputs if self.of_input else outputs)[self.index]


def saved_sources(fw: GraphModule, num_forward: int) -> list[SavedFrom]:
    """For each value that the forward graph saves."""
    values = list(fw.graph.output_node().args[0])
    inputs = {n: i for i, n in enumerate(n for n in fw.graph.nodes if n.op == "placeholder")}
    outputs = {n: k for k, n in reversed(list(enumerate(values[:num_forward]))) if isinstance(n, fx.Node)}
    return [_source(n, inputs, outputs) for n in values[num_forward:]]


def _source(node, inputs, outputs) -> SavedFrom:
    start = node
    while isinstance(node, fx.Node):
        if node in inputs:
            return SavedFrom(inputs[node], True, node is not start)
        if node in outputs:
            return SavedFrom(outputs[node], False, node is not start)
        if node.op != "call_function" or not (node.target is operator.getitem or kind_of(node.target) == "view"):
            break
        node = node.args[0]
    return SavedFrom(None)


def tangents_of_gradients(bw: GraphModule, num_tangents: int, filled: list[set[int]]) -> list[set[int]]:
    """For each gradient that the backward graph returns, the tangents it is computed from, and those of ``filled``: eager code would give it, too,
    if only these came."""
    inputs = [n for n in bw.graph.nodes if n.op == "placeholder"]
    first = len(inputs) - num_tangents
    reach = {n: {i - first} if i >= first else set() for i, n in enumerate(inputs)}
    for n in bw.graph.nodes:
        if n.op != "placeholder":
            reach[n] = set().union(*(reach[a] for a in n.all_input_nodes))
    found = [reach[n] if isinstance(n, fx.Node) else set() for n in bw.graph.output_node().args[0]]
    return [own | more for own, more in zip(found, filled)] if filled else found


def tangents_together(joint: fx.Graph, num_tangents: int) -> list[frozenset[int]]:
    """For each step of the backward part of a joint graph that uses a value of the forward, the tangents it is computed from."""
    inputs = [n for n in joint.nodes if n.op == "placeholder"]
    first = len(inputs) - num_tangents
    reach = {n: frozenset({i - first} if i >= first else ()) for i, n in enumerate(inputs)}
    steps = set()
    for n in joint.nodes:
        if n.op == "placeholder":
            continue
        reach[n] = frozenset().union(*(reach[a] for a in n.all_input_nodes))
        if n.op != "output" and not all(reach[a] for a in n.all_input_nodes):
            steps.add(reach[n])
    return list(steps)


@slotted(frozen=False)
class Ways:
    """What must be known of a forward and a backward graph to run them."""

    saved_from: list[SavedFrom]
    tangents_of_gradient: list[set[int]]
    tangents_together: list[frozenset[int]]

    @classmethod
    def of(cls, traced: Traced, fw: GraphModule, bw: GraphModule) -> Ways:
        n = len(traced.tangent_of)
        together = tangents_together(traced.graph_module().graph, n) if n > 1 else []
        return cls(saved_sources(fw, traced.num_forward), tangents_of_gradients(bw, n, traced.filled), together)

    def rows(self) -> tuple:
        """Plain values, for a file."""
        saved = [(s.index, s.of_input, s.views) for s in self.saved_from]
        return saved, list(map(sorted, self.tangents_of_gradient)), list(map(sorted, self.tangents_together))

    @classmethod
    def read(cls, rows: tuple) -> Ways:
        return cls([SavedFrom(*s) for s in rows[0]], list(map(set, rows[1])), list(map(frozenset, rows[2])))


def _order(tangent) -> MemoryFormat:
    with about_layout(tangent.shape):
        return suggested_format(tangent.shape, tangent.stride())


class Plan:
    """What all calls of one compiled graph share. ``backward(values)`` may empty the list. ``recompile(fn)`` compiles a function that is
    differentiated again. ``plainly(*inputs)``: the results operator by operator."""

    def __init__(
        self, traced: Traced, ways: Ways, forward: Callable, backward: Callable, recompile: Callable, plainly: Callable
    ):
        self.ways, self.plainly = ways, plainly
        self.grad_at_entry = _autograd.is_grad_enabled()
        self.traced, self.forward, self.backward, self._recompile = traced, forward, backward, recompile
        self.once_only = bool(traced.random or traced.mutated)  # the inputs can't tell again what was computed
        self.tangents = [(tuple(t.shape), t.dtype, t.device, _order(t)) for t in traced.fake_tangents]
        self.symbolic = any(is_symbolic(shape) for shape, *_ in self.tangents)
        self._second: Callable | None = None
        self._gradient: Callable | None = None
        self._apart: dict[frozenset[int], frozenset[int]] = {}

    def apart_from(self, came: frozenset[int]) -> frozenset[int]:
        """The tangents whose way back meets no step that uses what the forward saved and that ``came`` take too."""
        found = self._apart.get(came)
        if found is None:
            if not came or len(came) == len(self.tangents):
                found = frozenset()
            else:
                gone = frozenset().union(*(t for t in self.ways.tangents_together if t & came))
                found = frozenset(range(len(self.tangents))) - came - gone
            self._apart[came] = found
        return found

    def gradient(self) -> Callable:
        """The gradients as a function of inputs and tangents, operator by operator."""
        if self._gradient is None:
            self._gradient = _gradient_function(self.traced, self.plainly)
        return self._gradient

    def differentiable_backward(self) -> Callable:
        if self._second is None:
            gradient = self.gradient()
            self._second = self._recompile(gradient) if isinstance(gradient, GraphModule) else gradient
        return self._second

    def __call__(self, *inputs):
        """The forward outputs, carrying one node."""
        n = self.traced.num_forward
        if self.grad_at_entry and not _autograd.is_grad_enabled():
            return tuple(self.forward(*inputs)[:n])
        with _autograd.no_grad():
            outs = self.forward(*inputs)
            outputs = list(outs[:n])
            node = CompiledFunctionBackward(self, inputs, outputs, outs[n:])
        for o in outputs:
            if isinstance(o, _C.TensorBase):
                _C.forget_view(o)  # of an intermediate: eager backends run the graph's view operators in no_grad
        for k in self.traced.tangent_of:
            set_history(outputs[k], node, k)
        return tuple(outputs)


def _gradient_function(traced: Traced, plainly: Callable) -> Callable[..., list[Any]]:
    """The gradients as a function of inputs and tangents that autograd can run through: a module, or a function that is by the tape."""
    if traced.random:
        raise RuntimeError(
            "a second derivative through a compiled graph that draws random numbers is not supported: the draws "
            "would be repeated with other values. Compile without the random operator, or run this part eagerly."
        )
    if traced.mutated:
        raise RuntimeError(
            f"a second derivative through a compiled graph that writes its inputs (number {traced.mutated}) is not "
            "supported: their former contents are gone. Clone them first, or run this part eagerly."
        )
    gradient = traced.gradient_module()
    if gradient is OffTape.FUNCTION:
        return _by_the_tape(traced, plainly)
    if gradient is OffTape.WRITTEN:
        raise RuntimeError(
            "a second derivative through a compiled graph that writes to a tensor with a history through `.data` or under no_grad is not "
            "supported: autograd knows nothing of the write. Make a new tensor instead, or run this part eagerly."
        )
    if gradient is not None:
        return gradient
    graph = traced.graph_module().graph
    inputs = [n for n in graph.nodes if n.op == "placeholder"]
    outputs = list(graph.output_node().args[0])[traced.num_forward :]
    return GraphModule(traced.graph_module(), extract_graph(graph, inputs, outputs, "the gradient"))


def _by_the_tape(traced: Traced, plainly: Callable) -> Callable[..., list[Any]]:
    """The gradients of a graph that has only the results of what an autograd.Function computes: all of it runs once more, operator by operator,
    so that the tape has the Function's own backward."""
    places = {o.index: i for i, o in enumerate(traced.outputs) if isinstance(o, Computed)}
    if not places.keys() >= set(traced.tangent_of):
        raise RuntimeError(
            "a second derivative through a compiled graph is not supported where the gradient depends on what an autograd.Function computed and "
            "the graph returns views. Run this part eagerly (torch.compiler.disable)."
        )

    def gradient(*given):
        inputs, tangents = given[: len(traced.fake_inputs)], given[len(traced.fake_inputs) :]
        asked = [k for k, t in enumerate(inputs) if isinstance(t, _C.TensorBase) and t.requires_grad]
        differentiated = _autograd.is_grad_enabled()
        with _autograd.enable_grad():
            results = plainly(*inputs)
            ends = [results[places[k]] for k in traced.tangent_of]
            found = _autograd.grad(
                ends, [inputs[k] for k in asked], tangents, create_graph=differentiated, allow_unused=True
            )
        grads: list[Any] = [None] * len(inputs)
        for k, g in zip(asked, found, strict=True):
            grads[k] = g
        return grads

    return gradient
