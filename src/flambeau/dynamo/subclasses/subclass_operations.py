"""Tensor subclasses in captured code.

A subclass with data and no ``__torch_dispatch__`` is a node of the graph like any tensor, and its class; the graph itself runs on plain tensors.
One that has ``__torch_dispatch__`` and no data of its own (a wrapper) is no node: it is its attributes, which are found and guarded like those
of any object, and its sizes.

An operation on one runs for real, on fake *stand-ins* whose ``__torch_function__`` and ``__torch_dispatch__`` trace the user's: so which
function is passed, in which order classes are asked, and which operators a call comes down to are the library's own. What the user's
handlers do with plain tensors goes into the graph; their guards and side effects are those of any code. So every backend sees only
operations on plain tensors.
"""

from __future__ import annotations

import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any

from flambeau import _C
from flambeau.base import pytree
from flambeau.base.symint import NUMBERS
from flambeau.core.definition import TensorMeta
from flambeau.core.modes import TorchFunctionMode
from flambeau.core.operator import namespace
from flambeau.core.tensor import attribute_of, keeps_type
from flambeau.fake import FakeTensor

from ..config import config
from ..exc import Unsupported, unsupported
from ..graph import tensor_queries
from ..guards.source import ConstSource
from ..guards.tree import tensor_facts
from ..rules.reflect import dict_of, mro_of, name_of, qualname_of
from ..tracing import world
from ..tracing.current_frame import current
from ..variables.base import KnownVariable, Lazy, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable, Result, SequenceVariable, SliceVariable, TupleVariable
from ..variables.contexts.managers import ContextManagerVariable
from ..variables.functions.python_functions import UserMethodVariable
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.instance import ObjectVariable
from ..variables.tensors.codes import of_argument as of_quantised
from ..variables.tensors.tensor import NumpyNdarrayVariable, Opaque, TensorVariable
from ..variables.tensors.tensor_subclass import SubclassVariable
from ..variables.tensors.torch_functions import TorchFunctionVariable, UnboundTensorMethod, special
from ..variables.values.constant import ConstantVariable
from ..variables.values.symbolic import SymbolicVariable
from .recorder import Recorder

__all__ = ["SubclassVariable", "call", "interposes", "make", "of_argument", "of_quantised"]

ALL_KEYS = 0xFFFFFFFF


# -- where they come from --


def of_argument(tx, value, source) -> Variable:
    """The variable of a tensor of a user's class that existed before the call."""
    cls = type(value)
    if cls in config.nontraceable_tensor_subclasses:
        unsupported("tensor-subclass", f"a {qualname_of(cls)}", "It is one of config.nontraceable_tensor_subclasses.")
    dispatches = tensor_queries.overrides_dispatch(cls)
    if not dispatches:
        plain = tx.output.add_input(value, source, ndarray=False)
        tx.output.has_subclasses = True
        return SubclassVariable(plain.node, plain.val, source, cls, value)
    if value._has_data:
        unsupported("tensor-subclass", f"a {qualname_of(cls)} with __torch_dispatch__ and data of its own")
    tx.output.guard(source, "TENSOR_MATCH", tensor_facts(value))
    val = like(tx, value)
    if not value._requires_grad:
        return SubclassVariable(None, val, source, cls, value)
    stand_ins = tx.output.stand_ins
    val = _C.alias(val, stand_ins.of(cls, False)).requires_grad_()
    made = SubclassVariable(None, val, source, cls, value)
    stand_ins.inputs.append(made)
    stand_ins.keep(val, made)
    return made


def like(tx, t) -> FakeTensor:
    return like_facts(tx, (tuple(t._shape), tuple(t._strides), t._offset, t._dtype, t._device))


def like_facts(tx, facts: tuple) -> FakeTensor:
    shape, strides, offset, dtype, device = facts
    return FakeTensor(tx.output.fake_mode, TensorMeta(shape, strides, dtype, device, offset))


def as_class(tx, v: Variable, cls: type) -> Variable:
    """What a function returned, with plain tensors made ``cls``."""
    if isinstance(v, TensorVariable) and not isinstance(v, NumpyNdarrayVariable):
        if issubclass(v.python_type(), cls):
            return v
        return SubclassVariable(v.as_proxy(), v.val, None, cls)
    if type(v) in (ListVariable, TupleVariable) or isinstance(v, Result):
        made = [as_class(tx, e, cls) for e in v.items(tx)]
        return ListVariable(made) if isinstance(v, ListVariable) else TupleVariable(made, cls=v.cls)
    return v


def make(tx, var: ClassVariable, args, kwargs) -> Variable:
    """An object of a tensor subclass: ``cls(...)``."""
    cls = var.value
    new = world.class_attr(tx, cls, "__new__")
    new = new.__func__ if isinstance(new, staticmethod) else new
    if type(new) is not types.FunctionType:
        unsupported("construct", f"constructing {qualname_of(cls)}")
    out = tx.wrap_function(new).call(tx, [var, *args], kwargs)
    init = world.class_attr(tx, cls, "__init__")
    if (
        isinstance(out, TensorVariable)
        and issubclass(out.python_type(), cls)
        and tensor_queries.is_of_program(cls, "__init__", init)
    ):
        world.bind(tx, out, cls, "__init__", init).call(tx, args, kwargs)
    return out


@special("__new__")
def _(tx, var, args, kwargs):
    """``torch.Tensor.__new__(cls, data)``"""
    if var.value is not tensor_queries.Tensor.__new__:
        return None
    cls = args[0].as_constant()
    if len(args) != 2 or kwargs or not isinstance(args[1], TensorVariable):
        unsupported("construct", f"constructing {qualname_of(cls)} of something that isn't a tensor")
    return detached(tx, cls, args[1])


@special("_make_subclass")
def _(tx, var, args, kwargs):
    names = dict(zip(("cls", "data", "require_grad"), args)) | kwargs
    if "require_grad" in names and names["require_grad"].as_constant():
        unsupported("leaf", "_make_subclass(require_grad=True)", "The leaf must be made outside of the graph.")
    return detached(tx, names["cls"].as_constant(), names["data"])


def detached(tx, cls: type, data: TensorVariable) -> Variable:
    if isinstance(data, SubclassVariable):
        data = data.plain()
    plain = tx.output.call_in_graph(tx, "call_method", "detach", [data], {}) if data.val.requires_grad else data
    return plain if cls is tensor_queries.Tensor else SubclassVariable(plain.node, plain.val, None, cls)


@special("_make_wrapper_subclass")
def _(tx, var, args, kwargs):
    names = (
        "cls",
        "size",
        "strides",
        "storage_offset",
        "memory_format",
        "dtype",
        "layout",
        "device",
        "pin_memory",
        "requires_grad",
    )
    given = dict(zip(names, args)) | kwargs
    if "requires_grad" in given and given["requires_grad"].as_constant():
        unsupported("leaf", "_make_wrapper_subclass(requires_grad=True)", "The leaf must be made outside of the graph.")
    values = {k: sizes(v) if k in ("size", "strides") else v.as_constant() for k, v in given.items()}
    cls = values.pop("cls")
    made = tensor_queries.Tensor._make_wrapper_subclass(cls, **values)
    return SubclassVariable(None, like(tx, made), None, cls)


def sizes(v: Variable):
    """A wrapper says its sizes itself, when it is made anew behind the graph as well: here they are constants of the variant."""
    return tuple(e.as_constant() for e in v.realized()) if isinstance(v, SequenceVariable) else v.as_constant()


@special("is_torch_function_enabled", "is_torch_function_all_disabled")
def _(tx, var, args, kwargs):
    """As it was before the call, which is guarded, and what blocks of the traced code make of it."""
    disabled = max(tx.output.process.field("function_disabled"), tx.output.blocks.function_disabled)
    return ConstantVariable(not disabled if var.value.__name__.endswith("_enabled") else disabled > 1)


@special("as_subclass")
def _(tx, var, args, kwargs):
    return as_subclass(tx, args[0], args[1].as_constant())


def as_subclass(tx, v: TensorVariable, cls: type) -> Variable:
    plain = v.plain() if isinstance(v, SubclassVariable) else v
    if cls is tensor_queries.Tensor:
        out = TensorVariable(plain.node, plain.val)
        if plain.node.op != "placeholder":
            return out
        return tx.output.call_in_graph(
            tx, "call_function", namespace("aten").alias.default, [out], {}
        )  # not the object itself
    if not tensor_queries.is_subclass(cls):
        unsupported("tensor-method", f"as_subclass({qualname_of(cls)})")
    return SubclassVariable(plain.node, plain.val, None, cls)


# -- __torch_function__ --


@special("__torch_function__")
def _(tx, var, args, kwargs):
    """``super().__torch_function__(func, types, args, kwargs)``: the library's own."""
    if var.value is not tensor_queries.Tensor.__dict__["__torch_function__"].__func__:
        return None
    cls, func, kinds, *rest = args
    given = rest[0] if rest else kwargs.get("args")
    named = rest[1] if len(rest) > 1 else kwargs.get("kwargs")
    cls = cls.as_constant()
    if not all(issubclass(cls, t.as_constant()) for t in kinds.items(tx)):
        return ConstantVariable(NotImplemented)
    positional = given.items(tx) if given is not None else []
    keywords = {} if named is None or named.is_constant() else {k.as_constant(): v for k, v in named.pairs(tx)}
    with function_disabled(tx):
        out = func.call(tx, positional, keywords)
    return out if keeps_type(getattr(func, "value", None)) else as_class(tx, out, cls)


class function_disabled:
    """While entered, subclasses do not override."""

    def __init__(self, tx):
        self.output = tx.output

    def __enter__(self):
        self.output.blocks.function_disabled += 1

    def __exit__(self, *exc):
        self.output.blocks.function_disabled -= 1


class DisableFunctionVariable(ContextManagerVariable):
    """DisableTorchFunctionSubclass, DisableTorchFunction."""

    enters_again = True

    def __init__(self, cls):
        super().__init__()
        self.cls = cls
        self.modes: list = []

    def python_type(self):
        return self.cls

    def enter(self, tx):
        tx.output.blocks.function_disabled += 1
        if name_of(self.cls) == "DisableTorchFunction":
            self.modes, tx.output.blocks.function_modes = tx.output.blocks.function_modes, []
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.blocks.function_disabled -= 1
        if name_of(self.cls) == "DisableTorchFunction":
            tx.output.blocks.function_modes = self.modes

    def reconstruct(self, cg):
        cg.call_function(self.cls, None, 0)


class AttributeFunction(KnownVariable):
    """``Tensor.shape.__get__``: what ``__torch_function__`` gets when an attribute is read."""

    def __init__(self, value):
        super().__init__(value, ConstSource(value, "attribute"))
        self.name = attribute_of(value)

    def real_value(self, tx):
        return self.value

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        if self.value.__name__ != "__get__":
            unsupported("tensor-setattr", f"setting {self.name} of {args[0]!r}")
        with function_disabled(tx):
            return args[0].getattr(tx, self.name)


class Asked(Exception):
    """Ends a call that only was to tell what a function mode gets."""


class Probe(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise Asked(func, args, kwargs or {})


def asked_of_mode(tx, fn: Callable, args, kwargs) -> tuple[Variable, list, dict] | None:
    """With which function and arguments ``fn(*args, **kwargs)``, an operator of Python's or the read of an attribute, comes to a function mode.
    None: with none."""
    run = Operation(tx, False)
    values, named = [run.value(a) for a in args], {k: run.value(v) for k, v in kwargs.items()}
    try:
        with Probe():
            fn(*values, **named)
    except Asked as e:
        func, given, keywords = e.args
    except Exception:  # the operation itself says what is wrong
        return None
    else:
        return None
    name = getattr(func, "__name__", "")
    known = (
        UnboundTensorMethod(tensor_queries.Tensor, name) if getattr(tensor_queries.Tensor, name, None) is func else None
    )
    return (
        known or run.variable(func),
        [run.variable(a) for a in given],
        {k: run.variable(v) for k, v in keywords.items()},
    )


# -- operations --


def handler_is_user(tx, cls: type, name: str) -> bool:
    found = world.class_attr(tx, cls, name)
    return tensor_queries.is_user_code(getattr(found, "__func__", found))


def parts(args, kwargs):
    for v in [*args, *kwargs.values()]:
        v = looked_at(v)
        yield v
        if isinstance(v, SequenceVariable):
            yield from map(looked_at, v.seen())


def looked_at(e: Variable) -> Variable:
    """An argument or an element of one. What nothing has looked at yet is, where its class, or that of an element, may take over."""
    e = e.unwrap()
    if isinstance(e, Lazy) and (
        e.python_type() in (list, tuple) or any("__torch_function__" in dict_of(c) for c in mro_of(e.python_type()))
    ):
        return e.real(current()).unwrap()
    return e


def interposes(output, args, kwargs) -> str | None:
    """Whether classes among the arguments take the operation over, and how."""
    found = None
    for v in parts(args, kwargs):
        if isinstance(v, SubclassVariable):
            if not output.blocks.function_disabled and tensor_queries.overrides_function(v.cls):
                return "function"
            if tensor_queries.overrides_dispatch(v.cls):
                found = "dispatch"
        elif (
            isinstance(v, ObjectVariable)
            and not output.blocks.function_disabled
            and tensor_queries.overrides_function(v.cls)
        ):
            return "function"
    return found


class StandInObject:
    """For an object that is no tensor and overrides functions."""


class StandIns:
    """The classes whose objects stand for a trace's wrappers, and the wrappers that are on the tape of fake tensors."""

    def __init__(self):
        self.classes: dict[tuple[type, bool], type] = {}
        self.users: dict[type, type] = {}
        self.running: list[Operation] = []
        self.inputs: list[SubclassVariable] = []  # that require grad
        self.recorded = False  # whether an operation on wrappers, or one that a wrapper took over, was recorded
        self.differentiated = False  # whether the graph holds a derivative, which the region of such operations can't
        self.known: dict[int, Variable] = {}  # by id of the value, what the tape may hold
        self.alive: list[Any] = []

    def keep(self, value, v: Variable) -> None:
        self.known[id(value)] = v
        self.alive.append(value)

    def of(self, cls: type, function: bool) -> type:
        """The class of stand-ins for objects of ``cls``; derived from one another as theirs are."""
        made = self.classes.get((cls, function))
        if made is not None:
            return made
        body: dict[str, Any] = {}
        if issubclass(cls, _C.TensorBase):
            bases = tuple(self.of(b, function) for b in cls.__bases__ if tensor_queries.is_subclass(b)) or (
                tensor_queries.Tensor,
            )
            body["__torch_function__"] = _C._disabled_torch_function_impl
            if tensor_queries.overrides_dispatch(cls):
                body["__torch_dispatch__"] = classmethod(self.callback(cls, "__torch_dispatch__"))
        else:
            bases = tuple(self.of(b, function) for b in cls.__bases__ if b is not object) or (StandInObject,)
        if function and tensor_queries.overrides_function(cls):
            body["__torch_function__"] = classmethod(self.callback(cls, "__torch_function__"))
        made = self.classes[cls, function] = type(name_of(cls), bases, body)
        self.users[made] = cls
        return made

    def callback(self, cls: type, name: str) -> Callable:
        running = self.running  # the class must not keep the trace

        def handler(_, func, kinds, args=(), kwargs=None):
            return running[-1].handle(cls, name, func, kinds, args, kwargs)

        return handler


class Operation:
    """One operation on stand-ins. ``derivative``: it is that of a whole trace."""

    def __init__(self, tx, function: bool, derivative: bool = False):
        self.tx, self.function = tx, function
        self.stand_ins = tx.output.stand_ins
        self.known: dict[int, Variable] = {}  # by id of the value
        self.alive: list[Any] = []
        self.calls = 0
        self.records = derivative  # whether the tape may hold what it meets
        self.recorder = Recorder(tx, ChainMap(self.known, self.stand_ins.known), self.stand_ins.users.__contains__)

    def run(self, name: str, fn: Callable, values: list, named: dict):
        """``fn`` on fake tensors and stand-ins."""

        def recorded(*args, **kwargs):
            with self.recorder:
                return fn(*args, **kwargs)

        self.stand_ins.running.append(self)
        try:
            return self.tx.output.checked_fake(name, recorded, values, named)
        finally:
            self.stand_ins.running.pop()

    # -- values --
    def value(self, v: Variable) -> Any:
        v = v.real(self.tx) if isinstance(v, Lazy) else v.unwrap()
        if isinstance(v, SubclassVariable):
            if self.function and tensor_queries.overrides_function(v.cls):
                return self.keep(_C.alias(v.val, self.stand_ins.of(v.cls, True)), v)
            if tensor_queries.overrides_dispatch(v.cls) and type(v.val) not in self.stand_ins.users:
                return self.keep(_C.alias(v.val, self.stand_ins.of(v.cls, False)), v)
            return self.keep(v.val, v)
        if isinstance(v, TensorVariable):
            return self.keep(v.val, v)
        if isinstance(v, ObjectVariable) and self.function and tensor_queries.overrides_function(v.cls):
            return self.keep(self.stand_ins.of(v.cls, True)(), v)
        if isinstance(v, ListVariable):
            return [self.value(e) for e in v.items(self.tx)]
        if isinstance(v, SequenceVariable):
            made = [self.value(e) for e in v.items(self.tx)]
            return v.cls(*made) if hasattr(v.cls, "_fields") else tuple(made)
        if isinstance(v, DictVariable):
            return {k.as_constant(): self.value(x) for k, x in v.pairs(self.tx)}
        if isinstance(v, SliceVariable):
            return slice(*map(self.value, v.parts))
        if isinstance(v, SymbolicVariable):
            return self.keep(v.number, v)
        if v.can_constant():
            return v.as_constant()
        if isinstance(v, TorchFunctionVariable):
            return v.value
        return Opaque(v)

    def keep(self, value, v: Variable) -> Any:
        self.known[id(value)] = v
        self.alive.append(value)
        if self.records:
            self.stand_ins.keep(value, v)
        return value

    def variable(self, value: Any) -> Variable:
        """The variable for what the library passes to a handler, or returns."""
        found = self.known.get(id(value)) or self.stand_ins.known.get(id(value))
        if found is not None:
            if isinstance(found, SubclassVariable) and found.val is not value and value.requires_grad:
                found.val = value  # with the history that it has got
            return found
        if isinstance(value, Opaque):
            return value.variable
        if isinstance(value, NUMBERS):
            return SymbolicVariable(value)
        if isinstance(value, type):
            return self.tx.wrap_known(self.stand_ins.users.get(value, value))
        if isinstance(value, _C.TensorBase):
            return self.recorder.variable(value)
        if isinstance(value, list):
            return ListVariable([self.variable(x) for x in value])
        if isinstance(value, tuple):
            return TupleVariable([self.variable(x) for x in value], cls=type(value))
        if isinstance(value, dict):
            return DictVariable({k: (ConstantVariable(k), self.variable(x)) for k, x in value.items()})
        if isinstance(value, types.MethodWrapperType):
            return AttributeFunction(value)
        return self.tx.wrap_known(value)

    # -- handlers --
    def handle(self, cls: type, name: str, func, kinds, args, kwargs):
        self.calls += 1
        with _C.Guard(function_disabled=1):
            return self.run_handler(cls, name, func, kinds, args, kwargs or {})

    def run_handler(self, cls: type, name: str, func, kinds, args, kwargs):
        tx = self.tx
        found = world.class_attr(tx, cls, name)
        f = tx.wrap_function(getattr(found, "__func__", found))
        owner = ClassVariable(cls, ConstSource(cls, qualname_of(cls)))
        bound = UserMethodVariable(f, owner) if isinstance(found, classmethod) else f
        given = [
            self.variable(func),
            TupleVariable([self.variable(k) for k in kinds]),
            TupleVariable([self.variable(a) for a in args]),
            DictVariable({k: (ConstantVariable(k), self.variable(v)) for k, v in kwargs.items()}),
        ]
        if name == "__torch_function__":
            out = bound.call(tx, given, {})
            return NotImplemented if is_not_implemented(out) else Opaque(out)
        with below_autograd(tx):
            out = bound.call(tx, given, {})
        return NotImplemented if is_not_implemented(out) else self.value(out)


def is_not_implemented(v: Variable) -> bool:
    return v.is_constant() and v.as_constant() is NotImplemented


class below_autograd:
    """A ``__torch_dispatch__`` handler runs: nothing it does is recorded, and the state of the thread is that of tracing again."""

    def __init__(self, tx):
        self.tx = tx
        self.guard = _C.Guard(readmit=ALL_KEYS, clear="dispatch_modes")

    def __enter__(self):
        output = self.tx.output
        self.before = tensor_queries.grad_enabled()
        self.nodes = len(output.recorder.graph.nodes)
        self.guard.__enter__()
        output.blocks.dispatch_handlers += 1
        output.set_grad_mode(self.tx, False)

    def __exit__(self, *exc):
        output = self.tx.output
        output.set_grad_mode(self.tx, self.before)
        output.blocks.dispatch_handlers -= 1
        self.guard.__exit__(*exc)
        if exc[0] is None:
            self.drop_switches(list(output.recorder.graph.nodes)[self.nodes :])

    def drop_switches(self, made) -> None:
        """Without an input that asks for a gradient the mode makes no difference."""
        switches = [n for n in made if n.target is tensor_queries.set_grad_enabled]
        others = [n for n in made if n not in switches]
        if any(getattr(a.meta.get("val"), "requires_grad", False) for n in others for a in n.all_input_nodes):
            return
        for n in switches:
            n.graph.erase_node(n)


def call(
    tx, name: str, fn: Callable, args, kwargs, otherwise: Callable | None = None, function: bool = True
) -> Variable:
    """``fn(*args, **kwargs)`` with subclasses among the arguments. ``otherwise``: what to do when no class is asked."""
    run = Operation(tx, function and not tx.output.blocks.function_disabled)
    values, named = [run.value(a) for a in args], {k: run.value(v) for k, v in kwargs.items()}
    leaves = pytree.tree_leaves([values, named])
    if tensor_queries.grad_enabled():
        run.records = any(isinstance(x, _C.TensorBase) and x.requires_grad for x in leaves)
        for x in leaves if run.records else ():
            if id(x) in run.known:
                tx.output.stand_ins.keep(x, run.known[id(x)])
    try:
        with _C.Guard(function_disabled=0):
            out = run.run(name, fn, values, named)
    except Unsupported as e:
        if run.calls or otherwise is None or e.reason.id != "fake-tensor":
            raise
        return otherwise()
    if run.records:
        check_written(name, run, leaves)
    if not run.calls:
        if otherwise is not None:
            return otherwise()
        if not any(isinstance(x, _C.TensorBase) for x in pytree.tree_leaves(out)):
            return tx.wrap_known(out)  # sizes and the like are the tensor's own
        unsupported("tensor-subclass", f"{name} asks no class among its arguments")
    # What __torch_function__ returned is of operations that were traced on their own.
    if run.records and not isinstance(out, Opaque):
        if run.stand_ins.differentiated:
            unsupported("tensor-subclass", f"{name} of a tensor subclass that requires grad, behind a derivative")
        run.stand_ins.recorded = True
    return run.variable(out)


def check_written(name: str, run: Operation, leaves: list) -> None:
    """A wrapper of the caller's that had no history has one behind a write: graphs give it none."""
    for x in leaves:
        v = run.known.get(id(x)) if isinstance(x, _C.TensorBase) and x.requires_grad else None
        if isinstance(v, SubclassVariable) and v.value is not None and v.node is None and not v.value.requires_grad:
            unsupported("tensor-subclass", f"{name} writes what requires grad to {v!r}, which came in without")


def call_operation(tx, op: str, target, args, kwargs, none_ok: bool) -> Variable:
    """An operation of the graph with subclasses among its arguments."""

    def otherwise():
        with function_disabled(tx):
            return tx.output.call_in_graph(tx, op, target, args, kwargs, none_ok=none_ok)

    name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
    fn = (lambda o, *a, **k: getattr(o, target)(*a, **k)) if op == "call_method" else target
    return call(tx, name, fn, args, kwargs, None if tx.output.blocks.function_disabled else otherwise)


def without_overrides(fn: Callable) -> Callable:
    """What runs a graph of which inputs are subclasses: what they override is in the graph."""

    def run(*args):
        with _C.Guard(function_disabled=1):
            return fn(*args)

    return run
