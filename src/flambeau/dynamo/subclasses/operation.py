"""One operation on stand-ins: values to fake tensors, the user's handlers traced, and results to variables."""

from __future__ import annotations

import types
from collections import ChainMap
from collections.abc import Callable
from typing import Any

from flambeau import _C
from flambeau.base.symint import NUMBERS

from ..graph import tensor_queries
from ..guards.source import ConstSource
from ..rules.reflect import qualname_of
from ..tracing import world
from ..variables.base import Lazy, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import SequenceVariable, TupleVariable
from ..variables.containers.slices import SliceVariable
from ..variables.functions.python_functions import UserMethodVariable
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.instance import ObjectVariable
from ..variables.tensors.graph_results import Opaque
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.tensor_subclass import SubclassVariable
from ..variables.tensors.torch_functions import TorchFunctionVariable
from ..variables.values.constant import ConstantVariable
from ..variables.values.symbolic import SymbolicVariable
from .overrides import AttributeFunction
from .recorder import Recorder

__all__ = ["Operation"]

ALL_KEYS = 0xFFFFFFFF


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
