"""``autograd.Function`` in captured code: forward and backward are traced once each, into two subgraphs of one node.

The real ``apply`` runs on fake tensors with a class whose forward traces the user's (so outputs are aliased, recorded and mapped as
everywhere). What the user's forward saves, and the tensors it puts on its ctx, are further results of the forward's subgraph and inputs
of the backward's. A backward with side effects breaks the graph: it would run when the graph is made, not at each backward.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from flambeau import _C
from flambeau.autograd.function import Function, for_each_argument, is_linearizing
from flambeau.base import pytree

from ...base.records import slotted
from ..exc import unsupported
from ..graph import tensor_queries
from ..guards.source import GetAttrSource
from ..rules import trace_rules
from ..rules.reflect import dict_of, name_of
from ..tracing.wrapping import CLASS_WRAPPERS
from ..variables.base import MethodOf, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import TupleVariable
from ..variables.objects.class_object import ClassVariable
from ..variables.tensors.graph_results import Opaque, wrap_result
from ..variables.tensors.tensor import TensorVariable
from ..variables.values.constant import ConstantVariable
from .subgraphs import Bodies, Body, SubgraphCall, Template, bound, fill, trace_body, variable_of

__all__ = ["ApplyVariable", "AutogradFunctionVariable", "ContextVariable"]


def is_tensor_or_none(v: Variable) -> bool:
    return issubclass(v.python_type(), _C.TensorBase | type(None))


class ContextVariable(Variable):
    """The ctx of a Function while its forward or backward is traced."""

    MARKS = ("mark_dirty", "mark_non_differentiable", "set_materialize_grads", "save_for_backward", "save_for_forward")

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        super().__init__()
        self.needs_input_grad = needs_input_grad
        self.namespace = DictVariable()  # its __dict__
        self.saved: list[Variable] = []
        self.saved_for_forward: list[Variable] = []
        self.marks: dict[str, list[Variable]] = {}
        self.materialize = True

    def python_type(self):
        return Function

    def getattr(self, tx, name):
        if name == "__dict__":
            return self.namespace
        if name in self.namespace.entries:
            return self.namespace.entries[name][1]
        if name == "needs_input_grad":
            return tx.wrap_known(self.needs_input_grad)
        if name == "saved_tensors":
            return TupleVariable(self.saved)
        if name == "saved_for_forward":
            return TupleVariable(self.saved_for_forward)
        if name in self.MARKS:
            return MethodOf(self, name)
        tx.raise_user(AttributeError(f"'{name_of(Function)}' object has no attribute {name!r}"))

    def hasattr(self, tx, name):
        return name in self.namespace.entries or name in (
            *self.MARKS,
            "__dict__",
            "needs_input_grad",
            "saved_tensors",
            "saved_for_forward",
        )

    def setattr(self, tx, name, value):
        self.namespace.entries[name] = ConstantVariable(name), value

    def delattr(self, tx, name):
        if self.namespace.entries.pop(name, None) is None:
            tx.raise_user(AttributeError(f"'{name_of(Function)}' object has no attribute {name!r}"))

    def call_method(self, tx, name, args, kwargs):
        if name in self.MARKS and name != "set_materialize_grads" and not all(map(is_tensor_or_none, args)):
            unsupported("autograd-function", f"{name} of what isn't a tensor", "Plain code raises its error.")
        if name == "save_for_backward":
            self.saved = list(args)
        elif name == "save_for_forward":
            self.saved_for_forward = list(args)
        elif name == "set_materialize_grads":
            self.materialize = bool(args[0].as_constant())
        elif name in self.MARKS:
            self.marks[name] = list(args)
        else:
            return super().call_method(tx, name, args, kwargs)
        return ConstantVariable(None)


class ApplyVariable(Variable):
    """``cls.apply``."""

    calls_user = True

    def __init__(self, cls: Variable, source=None):
        super().__init__(source)
        self.cls = cls

    def __repr__(self):
        return f"AutogradFunctionApplyVariable({name_of(self.cls.value)})"

    def python_type(self):
        return type(self.cls.value.apply)

    def truth(self, tx):
        return True

    def reconstruct(self, cg):
        cg(self.cls)
        cg.load_attr("apply")

    def call(self, tx, args, kwargs):
        cls = self.cls.value
        if _C.tls("transforms") and "vmap" in dict_of(cls) and not cls.generate_vmap_rule:
            unsupported("autograd-function", f"{name_of(cls)}.apply under vmap", "Its own vmap is not traced.")
        pushes = is_linearizing() and cls.jvp is not Function.jvp
        if pushes and _C.tls("transforms") and cls.generate_vmap_rule:
            unsupported("autograd-function", f"{name_of(cls)}.apply in forward mode with a generated vmap rule")
        if kwargs:
            unsupported("autograd-function", f"{name_of(cls)}.apply with keyword arguments")
        template = Template(tx, callables=False, kept=True)
        pargs = tuple(template.of(a) for a in args)
        forward = ForwardTrace(tx, self.cls)
        stand_in, stand_in_jvp = StandIn(), StandIn()
        rules = {
            "forward": staticmethod(forward),
            "backward": staticmethod(stand_in),
            "generate_vmap_rule": cls.generate_vmap_rule,
            "_nested_results": cls._nested_results,
        }
        if pushes:
            rules["jvp"] = staticmethod(stand_in_jvp)
        shown = type(name_of(cls), (Function,), rules)
        operands = template.operands
        value = tx.output.checked_fake(
            name_of(cls), lambda xs: shown.apply(*fill(pargs, {"operand": xs})), [[v.val for v in operands]]
        )
        found = Bodies(tx)
        # Under a transform that is on at the call, it is the transform's tensors that ask for gradients.
        asked = any(v.val.requires_grad for v in operands) or tx.output.modes.transforms
        recording = tensor_queries.grad_enabled() and asked
        backward = BackwardTrace(tx, self.cls, forward, value).run() if recording else None
        stand_in.traced = backward and next(iter(backward.traced.values()))
        jvp = JvpTrace(tx, self.cls, forward, fill(pargs, {"operand": [v.val for v in operands]}), value)
        stand_in_jvp.traced = jvp.run() if pushes and recording else None
        tx.output.references.at_end.append(
            lambda: [vars(x).clear() for x in (forward, stand_in, stand_in_jvp)]
        )  # ``shown``, a class, is in a cycle
        target = AutogradCall(
            cls,
            pargs,
            found.add(forward.traced),
            backward and {came: found.add(traced) for came, traced in backward.traced.items()},
            stand_in_jvp.traced and found.add(stand_in_jvp.traced),
            forward.marks,
        )
        node = found.node(target, [v.as_proxy() for v in operands], value)
        return wrap_result(tx, node, value, *operands)


class StandIn:
    """The backward, or the jvp, while tracing, when a derivative is asked for inside the captured code: values of the right form, with a
    history that leads to all that the real ones may come from."""

    traced: Any = None

    def __call__(self, ctx, *grads):
        if self.traced is None:
            unsupported("autograd-function", "the gradient of an autograd.Function that was not recorded")
        given = [g for g in (*grads, *ctx.saved_tensors) if isinstance(g, _C.TensorBase) and g.dtype.is_floating_point]

        def like(x):
            if not isinstance(x, _C.TensorBase):
                return x
            return sum((g.sum() for g in given), tensor_queries.Tensor.clone(x)).to(x.dtype)

        return pytree.tree_map(like, fill(self.traced.template, {"result": self.traced.values}))


class ForwardTrace:
    """The forward of the class that is applied while tracing."""

    def __init__(self, tx, cls: Variable):
        self.tx, self.cls = tx, cls
        self.traced: Any = None
        self.ctx: ContextVariable | None = None
        self.marks: dict[str, Any] = {}
        self.shared: list[Variable] = []  # tensors that go from forward to backward

    def __call__(self, ctx, *args):
        tx = self.tx
        inputs = [x for x in pytree.tree_leaves(args) if isinstance(x, _C.TensorBase)]
        self.ctx = shown = ContextVariable(ctx.needs_input_grad)

        def run(variables):
            known = {id(x): v for x, v in zip(inputs, variables)}
            given = [variable_of(tx, a, known) for a in args]
            if self.cls.value.setup_context is not Function.setup_context:
                out = self.cls.getattr(tx, "forward").call(tx, given, {})
                self.cls.getattr(tx, "setup_context").call(tx, [shown, tx.make_tuple(given), out], {})
            else:
                out = self.cls.getattr(tx, "forward").call(tx, [shown, *given], {})
            attributes = [t for _, v in shown.namespace.entries.values() for t in tensors_of(tx, v)]
            kept = [*shown.saved, *shown.saved_for_forward, *attributes]
            self.shared = list({id(v): v for v in kept if isinstance(v, TensorVariable)}.values())
            marked = [v for n in ("mark_dirty", "mark_non_differentiable") for v in shown.marks.get(n, ())]
            return tx.make_tuple([out, tx.make_tuple(self.shared), tx.make_tuple(marked)])

        self.traced = trace_body(tx, run, inputs, kept=True)
        out, shared, marked = fill(self.traced.template, {"result": self.traced.values})
        dirty = len(shown.marks.get("mark_dirty", ()))
        self.marks = {"dirty": dirty, "materialize": shown.materialize}
        finish(ctx, shared, marked, self.marks)
        return out


def tensors_of(tx, v: Variable) -> Iterator[TensorVariable]:
    """The tensors that an attribute of ctx is or holds, in lists, tuples and dicts."""
    v = v.unwrap()
    if isinstance(v, TensorVariable):
        yield v
    elif isinstance(v, (ListVariable, TupleVariable)):
        for x in v.elements:
            yield from tensors_of(tx, x)
    elif isinstance(v, DictVariable):
        for _, x in v.pairs(tx):
            yield from tensors_of(tx, x)


def finish(ctx, shared, marked, marks) -> None:
    """Tell the real ctx what the forward told it."""
    ctx.save_for_backward(*shared)
    if marks["dirty"]:
        ctx.mark_dirty(*marked[: marks["dirty"]])
    if marked[marks["dirty"] :]:
        ctx.mark_non_differentiable(*marked[marks["dirty"] :])
    ctx.set_materialize_grads(marks["materialize"])


MOST_OPTIONAL = 3  # results of a Function whose missing gradients are None


@slotted
class Backwards:
    """The backward as it was traced: once (None), or for each choice of results that get a gradient."""

    traced: dict[tuple[bool, ...] | None, Any]


class DerivativeTrace:
    """The class's ``backward`` or ``jvp``, traced after its forward."""

    name: str

    def __init__(self, tx, cls: Variable, forward: ForwardTrace):
        self.tx, self.cls, self.forward = tx, cls, forward

    def saved(self) -> list[Variable]:
        """What its ``ctx.saved_tensors`` are."""
        raise NotImplementedError

    def trace(self, like: list):
        """Of gradients or tangents in the form of ``like``; None is given where it is None."""
        tx, forward = self.tx, self.forward
        grads = [None if o is None else tx.output.eval_fake(cotangent, [o]) for o in like]
        shared = fill(forward.traced.template, {"result": forward.traced.values})[1]
        inputs = [*[g for g in grads if g is not None], *shared]
        at = sum(g is not None for g in grads)
        ctx = ContextVariable(forward.ctx.needs_input_grad)

        def run(variables):
            kept = dict(zip(map(id, forward.shared), variables[at:]))
            ctx.saved = [kept.get(id(v), v) for v in self.saved()]
            ctx.saved_for_forward = [kept.get(id(v), v) for v in forward.ctx.saved_for_forward]
            ctx.namespace.entries = {
                k: (key, kept.get(id(v), v)) for k, (key, v) in forward.ctx.namespace.entries.items()
            }
            given = iter(variables[:at])
            cts = [ConstantVariable(None) if g is None else next(given) for g in grads]
            mark = tx.side_effects.mark()
            handed_on = tx.output.recorder.handed_on
            handed_on.update((v.node, x.node) for v, x in zip(forward.shared, variables[at:], strict=True))
            out = self.cls.getattr(tx, self.name).call(tx, [ctx, *cts], {})
            if tx.side_effects.since(mark):
                unsupported(
                    "autograd-function",
                    f"the {self.name} of {name_of(self.cls.value)} has side effects",
                    f"They belong to each {self.name}, not to the trace.",
                )
            return out if isinstance(out, TupleVariable) else tx.make_tuple([out])

        before = tensor_queries.grad_enabled()
        tensor_queries.set_grad_enabled(False)
        try:
            return trace_body(tx, run, inputs)
        finally:
            tensor_queries.set_grad_enabled(before)
            for v in forward.shared:
                tx.output.recorder.handed_on.pop(v.node, None)


class BackwardTrace(DerivativeTrace):
    name = "backward"

    def __init__(self, tx, cls: Variable, forward: ForwardTrace, value):
        super().__init__(tx, cls, forward)
        self.outputs = results_of(cls.value, value)

    def saved(self):
        return self.forward.ctx.saved

    def run(self) -> Backwards:
        outputs = [o if isinstance(o, _C.TensorBase) else None for o in self.outputs]
        if self.forward.ctx.materialize:
            return Backwards({None: self.trace(outputs)})
        asked = [is_differentiable(o) for o in outputs]
        if sum(asked) > MOST_OPTIONAL:
            unsupported(
                "autograd-function",
                "set_materialize_grads(False)",
                f"It has more than {MOST_OPTIONAL} results: the backward is traced for each choice of gradients that are None.",
            )
        found = {}
        for came in itertools.product((True, False), repeat=len(outputs)):
            if any(came) and not any(c and not a for c, a in zip(came, asked)):
                found[came] = self.trace([o if c else None for o, c in zip(outputs, came)])
        return Backwards(found)


class JvpTrace(DerivativeTrace):
    name = "jvp"

    def __init__(self, tx, cls: Variable, forward: ForwardTrace, args: tuple, value):
        super().__init__(tx, cls, forward)
        self.args, self.outputs = args, results_of(cls.value, value)

    def saved(self):
        return self.forward.ctx.saved_for_forward

    def run(self):
        if not self.forward.ctx.materialize:
            unsupported("autograd-function", "set_materialize_grads(False) with a jvp")
        traced = self.trace([a if is_differentiable(a) else None for a in self.args])
        made = len(traced.template)
        if made != len(self.outputs):  # the number is part of the error that it raises
            unsupported("autograd-function", f"jvp returned {made} tangents for {len(self.outputs)} outputs of forward")
        return traced


def results_of(cls: type, output) -> list:
    """What a gradient is given for, or None, in the order of backward's arguments."""
    if cls._nested_results:
        return pytree.tree_leaves(output)
    return [*output] if isinstance(output, tuple) else [output]


def is_differentiable(x) -> bool:
    return isinstance(x, _C.TensorBase) and (x.dtype.is_floating_point or x.dtype.is_complex)


def cotangent(o):
    return tensor_queries.Tensor.detach(o).clone()


class AutogradCall(SubgraphCall):
    """Target of the node: applies a Function whose forward and backward run the subgraphs."""

    def __init__(self, cls: type, args: tuple, forward: Body, backward: dict | None, jvp: Body | None, marks: dict):
        self.__name__ = self.__qualname__ = name_of(cls)
        self.__module__ = __name__
        self.plain, self.args, self.marks = cls, args, marks
        self.forward, self.backward, self.jvp = forward, backward, jvp
        self.once_differentiable = getattr(cls.backward, "once_differentiable", False)
        # The name shows in grad_fn.
        rules: dict[str, Any] = {n: getattr(cls, n) for n in ("generate_vmap_rule", "_nested_results")}
        if cls.vmap is not Function.vmap:  # it runs plainly, at each call
            rules["vmap"] = staticmethod(lambda info, in_dims, call, *args: cls.vmap(info, in_dims[1:], *args))
        if jvp is not None:
            rules["jvp"] = staticmethod(Replayed.push)
        self.function = type(name_of(cls), (Replayed,), rules)

    def __call__(self, subgraphs, lifted, operands):
        args = fill(self.args, {"operand": list(operands)})
        if self.backward is None and tensor_queries.grad_enabled() and any(t.requires_grad for t in operands):
            # Captured where nothing was recorded, as another function's backward is, and now that one is differentiated.
            return self.plain.apply(*map(constant_of, args))
        return self.function.apply((self, subgraphs, lifted), *args)


def constant_of(x):
    """A container that was handed on while tracing, as ordinary code makes it."""
    return x.variable.as_constant() if isinstance(x, Opaque) and x.variable.can_constant() else x


class Replayed(Function):
    @staticmethod
    def forward(ctx, call, *args):
        target, graphs, lifted = call
        ctx.call = call
        out, shared, marked = bound([target.forward], graphs, lifted)(*args)
        finish(ctx, shared, marked, target.marks)
        return out

    @staticmethod
    def backward(ctx, *grads):
        target = ctx.call[0]
        body = target.backward.get(None) or target.backward[tuple(g is not None for g in grads)]
        made = derivative(ctx, body, grads)
        # Told here, the numbers are those of the user's backward, which knows nothing of ``call``.
        return None, *(made if target.plain._nested_results else for_each_argument(ctx, made, len(target.args)))

    @staticmethod
    def push(ctx, _call, *tangents):
        """The jvp, where there is one."""
        ctx._forward = False  # what it saved for either direction is in one place
        given = [t for t, a in zip(tangents, ctx._given[1:], strict=True) if is_differentiable(a)]
        return derivative(ctx, ctx.call[0].jvp, given)


def derivative(ctx, body: Body, given):
    _, graphs, lifted = ctx.call
    results = graphs[body.graph](
        *(g for g in given if g is not None), *ctx.saved_tensors, *(lifted[i] for i in body.lifted)
    )
    return fill(body.template, {"result": list(results)})


class AutogradFunctionVariable(ClassVariable):
    """A class of the user's derived from ``autograd.Function``."""

    def getattr(self, tx, name):
        if name == "apply":
            return ApplyVariable(self, GetAttrSource(self.source, name) if self.source is not None else None)
        return super().getattr(tx, name)


@CLASS_WRAPPERS.row("autograd function")
def _(tx, value, source):
    if not trace_rules.is_autograd_function(value) or trace_rules.is_allowed(value):
        return None
    return AutogradFunctionVariable(value, source)
