"""Gradients of wrappers (classes with ``__torch_dispatch__`` and no data of their own) in captured code.

Autograd of such a class works on the wrappers: a derivative is again operations that ``__torch_dispatch__`` gets. So while a frame is traced
its wrappers are stand-ins on the tape of fake tensors (operation.py), and when the trace ends ``autograd.grad`` runs over that tape: the
user's handlers are traced once more, into a graph of its own, and what plain tensors need beside is recorded operator by operator.
A call then runs both graphs in one ``autograd.Function`` (:class:`WithGradients`) over the plain tensors and the wrappers that ask for a
gradient: its backward takes the wrappers apart that come in as gradients, and makes those that go out.

As in PyTorch a gradient is taken to be of the class, and to have the parts, of the result that it belongs to; another one is an error.
"""

from __future__ import annotations

import types
from typing import Any

from flambeau import _C, autograd, fx
from flambeau.autograd.function import refusing
from flambeau.autograd.grad_mode import no_grad
from flambeau.core.operator import namespace
from flambeau.fake import FakeTensor
from flambeau.fake.meta import meta_of

from ...base.records import slotted
from ..exc import SkipFrame, Unsupported
from ..graph import tensor_queries
from ..graph.captured_graph import CapturedGraph
from ..higher_order.subgraphs import Level, Slot, fill
from ..rules.reflect import name_of
from ..variables.base import Variable
from ..variables.containers.sequences import SequenceVariable
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.tensor_subclass import SubclassVariable, is_marker, new_wrapper
from .making import like_facts
from .operation import Operation

aten = namespace("aten")

__all__ = ["GradientRegion", "Runner", "region_of"]


@slotted(frozen=False)
class Plain:
    """A plain tensor that comes in: its sizes."""

    facts: tuple


@slotted(frozen=False)
class WrapperParts:
    """A wrapper: its class, sizes and attributes, as a template."""

    cls: type
    facts: tuple
    attributes: dict[str, Any]


def facts_of(val) -> tuple:
    """Shape, strides, offset, dtype and device as they are used outside of the graph: sizes are constants of the variant."""
    shape, strides = tuple(map(_constant, val._shape)), tuple(map(_constant, val._strides))
    return shape, strides, _constant(val._offset), val._dtype, val._device


def _constant(number) -> int:
    return number if type(number) is int else number._value()


class Parts:
    """Takes variables apart into templates."""

    def __init__(self):
        self.nodes: list[Any] = []  # "result" slots
        self.extras: list[Variable] = []  # "extra" slots: what captured code loads

    def tensor(self, v: TensorVariable) -> Any:
        self.nodes.append(v.node)
        return Slot("result", len(self.nodes) - 1)

    def of(self, v: Variable) -> Any:
        v = v.unwrap()
        if isinstance(v, SubclassVariable):
            if v.value is not None:
                return self.extra(v)
            if v.node is not None:
                raise SkipFrame(f"a {name_of(v.cls)} is part of a gradient")
            return WrapperParts(v.cls, facts_of(v.val), {k: self.of(x) for k, x in v.written.items()})
        if isinstance(v, TensorVariable):
            return self.tensor(v)
        if v.can_constant():
            return v.as_constant()
        if isinstance(v, SequenceVariable) and not v.reloadable():
            return tuple(map(self.of, v.realized()))
        return self.extra(v)

    def extra(self, v: Variable) -> Slot:
        if not v.reloadable():
            raise SkipFrame(f"a {v.python_type_name()} that the call makes is part of the gradient of a wrapper")
        self.extras.append(v)
        return Slot("extra", len(self.extras) - 1)


class TangentParts(Parts):
    """Of what comes in: tensors are described, not numbered."""

    def __init__(self, extras: list[Variable]):
        super().__init__()
        self.extras = extras

    def tensor(self, v: TensorVariable) -> Any:
        return Plain(facts_of(v.val))


@slotted(frozen=False)
class GradientRegion:
    """What a frame whose results are wrappers with a history, or come from such, is compiled to."""

    graph: fx.GraphModule  # of the derivative: gradients and saved values to results
    examples: list
    outputs: list[Any]  # nodes of the forward graph; None for a wrapper
    tangents: list[tuple[int, Any]]  # which outputs have a gradient, and its template (for a plain tensor: its strides)
    saved: list[Any]  # nodes
    bare: dict[int, tuple]  # wrappers among the outputs: class and facts
    grads: list[Any]  # templates, for the inputs that ask
    asking: list[Any]  # graph inputs that ask
    wrappers: list[SubclassVariable]
    extras: list[Variable]

    def prepare(self, root: fx.Graph) -> None:
        """Nothing is recorded while the forward graph runs, and wrappers are no outputs of it."""
        for n in list(root.nodes):
            if n.op == "call_function" and (n.target is tensor_queries.set_grad_enabled or is_marker(n)):
                root.erase_node(n)

    def pushed(self) -> list[Variable]:
        """What captured code gives to the runner after the inputs of the graph."""
        return [*self.wrappers, *self.extras]

    def needed(self, node) -> bool:
        """Whether an input is wanted, though the forward graph may not read it."""
        return node in self.asking or node in self.saved

    def results(self) -> list:
        """The results of the forward graph: outputs, then saved values that aren't inputs."""
        return [n for n in [*self.outputs, *(n for n in self.saved if n.op != "placeholder")] if n is not None]


def region_of(tx, outputs: list) -> GradientRegion | None:
    """The derivative of a trace, when wrappers are on its tape. ``outputs``: nodes, markers among them."""
    output = tx.output
    if not output.stand_ins.recorded or not any(asks(n.meta["val"]) for n in outputs):
        return None
    try:
        return Derivative(tx, outputs).region()
    except Unsupported as e:
        raise SkipFrame(f"the derivative of a wrapper: {e.reason.reason}") from e


def asks(val) -> bool:
    return isinstance(val, _C.TensorBase) and val.requires_grad


class Derivative:
    def __init__(self, tx, outputs: list):
        self.tx, self.output, self.outputs = tx, tx.output, outputs
        self.inputs = [i for i in self.output.recorder.inputs if not i.number and asks(i.node.meta["val"])]
        self.wrappers = self.output.stand_ins.inputs
        for val in [*(i.node.meta["val"] for i in self.inputs), *(w.val for w in self.wrappers)]:
            if val.grad_fn is not None:
                raise SkipFrame("a frame with wrappers that require grad writes to an input that requires grad")
        if any(i.ndarray for i in self.inputs):
            raise SkipFrame("wrappers that require grad, and NumPy arrays with a history")
        self.parts = Parts()
        self.operation = Operation(tx, False, derivative=True)
        self.recorder = self.operation.recorder

    def region(self) -> GradientRegion:
        tx, output = self.tx, self.output
        level = Level(CapturedGraph())
        mark = tx.side_effects.mark()
        inputs = {id(i.node.meta["val"]._storage) for i in output.recorder.inputs if not i.number}
        with output.recorder.entered(level):
            given, tangents = [], []
            for k, n in enumerate(self.outputs):
                val = n.meta["val"]
                if not asks(val):
                    continue
                if not is_marker(n) and id(val._storage) in inputs:
                    raise SkipFrame("a view of an input comes out of a frame with wrappers that require grad")
                tangent, template = self.tangent(level, n)
                given.append((val, tangent))
                tangents.append((k, template))
            ends = [*(i.node.meta["val"] for i in self.inputs), *(w.val for w in self.wrappers)]
            found = self.differentiate(given, ends)
            if tx.side_effects.since(mark):
                raise SkipFrame("the derivative of a wrapper has side effects, which belong to each backward")
            grads = [None if g is None else self.parts.of(g) for g in found]
            results = [output.recorder.lift(n) for n in self.parts.nodes]
            level.graph.output(tuple(results))
        graph = in_order(level.graph)
        module = fx.GraphModule(level.attributes, graph)
        saved = list(level.lifted)
        nodes = [None if is_marker(n) else n for n in self.outputs]
        bare = {
            k: (n.meta["variable"].cls, facts_of(n.meta["val"])) for k, n in enumerate(self.outputs) if is_marker(n)
        }
        examples = [plain(n.meta["val"]) for n in graph.nodes if n.op == "placeholder"]
        return GradientRegion(
            module,
            examples,
            nodes,
            tangents,
            saved,
            bare,
            grads,
            [i.node for i in self.inputs],
            self.wrappers,
            self.parts.extras,
        )

    def tangent(self, level: Level, node):
        """A value for the gradient of an output, and what takes it apart."""
        val = node.meta["val"]
        if not is_marker(node):
            return self.placeholder(level, val), Plain(facts_of(val))
        v = node.meta["variable"]
        made = self.like(level, v)
        return self.operation.value(made), TangentParts(self.parts.extras).of(made)

    def like(self, level: Level, v: SubclassVariable) -> SubclassVariable:
        """A wrapper with the parts of ``v``, the tensors among them inputs of the derivative."""
        made = SubclassVariable(None, like_facts(self.tx, facts_of(v.val)), None, v.cls)
        attributes = v.written if v.value is None else None
        if attributes is None:
            raise SkipFrame("an input wrapper comes out with another history")
        for k, x in attributes.items():
            x = x.unwrap()
            if isinstance(x, SubclassVariable):
                x = self.like(level, x)
            elif isinstance(x, TensorVariable):
                t = self.placeholder(level, x.val)
                x = TensorVariable(self.recorder.nodes[id(t)], t)
            made.written[k] = x
        return made

    def placeholder(self, level: Level, val):
        node = level.graph.placeholder(f"tangent{len(level.graph.nodes)}")
        made = plain(val)
        self.recorder.track(made, node)
        return made

    def differentiate(self, given: list, ends: list) -> list[Variable | None]:
        results, tangents = zip(*given)
        found = self.operation.run(
            "backward", lambda: autograd.grad(results, ends, tangents, allow_unused=True), [], {}
        )
        return [None if g is None else self.operation.variable(g) for g in found]


def plain(val):
    """A fake tensor like another one, without history, in memory of its own."""
    return FakeTensor(val.fake_mode, meta_of(val))


def in_order(graph: fx.Graph) -> fx.Graph:
    """The graph with its inputs in front: what it takes from outside is met along the way."""
    made, env = CapturedGraph(), {}
    for n in sorted(graph.nodes, key=lambda n: n.op != "placeholder"):
        if n.op == "output":
            made.output(fx.map_arg(n.args[0], env.__getitem__))
        else:
            env[n] = made.node_copy(n, env.__getitem__)
    return made


# -- at a call --


class Runner:
    """What captured code calls: the inputs of the graph, the wrappers that ask for a gradient, what gradients need beside."""

    def __init__(self, region: GradientRegion, forward, backward, inputs: list):
        self.forward, self.backward = forward, backward
        self.n, self.wrappers = len(inputs), len(region.wrappers)
        at = {i.node: k for k, i in enumerate(inputs)}
        self.asking = [at[n] for n in region.asking]
        self.saved = [at.get(n) for n in region.saved]  # the number of an input; None: the forward graph returns it
        self.outputs = [k for k, n in enumerate(region.outputs) if n is not None]
        self.count = len(region.outputs)
        self.bare, self.tangents, self.grads = region.bare, region.tangents, region.grads

    def __call__(self, *args):
        given, wrappers = args[: self.n], args[self.n : self.n + self.wrappers]
        extras = list(args[self.n + self.wrappers :])
        box: list[Any] = [None] * self.count
        made = WithGradients.apply(self, given, extras, box, *(given[i] for i in self.asking), *wrappers)
        for (k, _), t in zip(self.tangents, made):
            box[k] = t
        return tuple(box)


class WithGradients(autograd.Function):
    @staticmethod
    def forward(ctx, call, given, extras, box, *asking):
        results = call.forward(*(t.detach() if isinstance(t, _C.TensorBase) and t.requires_grad else t for t in given))
        for k, t in zip(call.outputs, results):
            box[k] = t
        for k, (cls, facts) in call.bare.items():
            box[k] = new_wrapper(cls, facts)
        made = iter(results[len(call.outputs) :])
        ctx.save_for_backward(*(next(made) if i is None else given[i] for i in call.saved))
        ctx.call, ctx.extras = call, extras
        ctx.set_materialize_grads(False)  # zeros would be plain tensors
        return tuple(box[k] for k, _ in call.tangents)

    @staticmethod
    def backward(ctx, *gradients):
        with no_grad():
            found = WithGradients.gradients(ctx, gradients)
        # Its derivative isn't traced, whether or not what came in has a history.
        return (None, None, None, None, *(refusing((), found) if tensor_queries.grad_enabled() else found))

    @staticmethod
    def gradients(ctx, gradients) -> tuple:
        call = ctx.call
        flat: list[Any] = []
        for (_, template), g in zip(call.tangents, gradients):
            take_apart(g, template, ctx.extras, flat)
        results = call.backward(*flat, *(t.detach() for t in ctx.saved_tensors))
        values = {"result": list(results), "extra": ctx.extras}
        return tuple(build(t, values) for t in call.grads)


def build(template: Any, values: dict) -> Any:
    if isinstance(template, WrapperParts):
        made = new_wrapper(template.cls, template.facts)
        for k, v in template.attributes.items():
            object.__setattr__(made, k, build(v, values))
        return made
    if isinstance(template, tuple):
        return tuple(build(x, values) for x in template)
    return fill(template, values)


def take_apart(g: Any, template: Any, extras: list, flat: list) -> None:
    """Append the plain tensors of a gradient, zeros for None; an error when it isn't of the form that it was taken to have."""
    if isinstance(template, WrapperParts):
        if g is None:
            g = types.SimpleNamespace(**dict.fromkeys(template.attributes))
        elif type(g) is not template.cls:
            wrong(name_of(template.cls), f"a {name_of(type(g))}")
        for k, part in template.attributes.items():
            take_apart(getattr(g, k), part, extras, flat)
    elif isinstance(template, Slot) and template.kind == "extra":
        if g is not None and g is not extras[template.index] and g != extras[template.index]:
            wrong(repr(extras[template.index]), repr(g))
    elif isinstance(template, Plain):
        if g is None:
            shape, strides, _, dtype, device = template.facts
            g = aten.empty_strided(shape, strides, dtype=dtype, device=device).zero_()
        elif tensor_queries.overrides_dispatch(type(g)):
            wrong("a plain tensor", f"a {name_of(type(g))}")
        flat.append(laid_out(g, template.facts))
    elif isinstance(template, tuple):
        for x, part in zip([None] * len(template) if g is None else g, template, strict=True):
            take_apart(x, part, extras, flat)
    elif g is not None and g != template:
        wrong(repr(template), repr(g))


def laid_out(t, facts: tuple):
    """The tensor with the strides that the graph was compiled for."""
    shape, strides, _, dtype, _ = facts
    if t.dtype is not dtype or tuple(t.shape) != shape:
        wrong(f"{dtype} of shape {list(shape)}", f"{t.dtype} of shape {list(t.shape)}")
    if tuple(t.stride()) == strides:
        return t
    return aten.empty_strided(shape, strides, dtype=dtype, device=t.device).copy_(t)


def wrong(expected: str, got: str):
    raise RuntimeError(
        "During the backward, we encountered a tensor subclass where we guessed its metadata incorrectly. "
        f"Expected metadata: {expected}, runtime metadata: {got}. The gradient of a compiled function's result must be made of the same "
        "parts as the result itself."
    )
