"""Functions of the user that are given to functions of the library (transforms, checkpoint, autograd.Function) as subgraphs.

The library's function runs for real, on fake tensors, with a :class:`Callback` in the place of each user function. When it is called, the
user function is traced on what it is called with (a batched tensor inside vmap, an input of the tape inside grad) into a graph of its
own; tensors from outside are lifted to operands. So nested transforms, auxiliary outputs, keyword arguments and errors are the
library's own. In the graph stands one node, a :class:`LibraryCall`, which runs the library's function again with the subgraphs.

Guards and side effects of what is traced are those of any other code. A tensor that escapes from a subgraph other than as a result
breaks the graph.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

from flambeau import _C, fx
from flambeau.base import pytree

from ...base.records import slotted
from ..exc import unsupported
from ..graph.captured_graph import CapturedGraph
from ..guards.source import GetAttrSource
from ..rules import trace_rules
from ..rules.constants import is_constant_value
from ..tracing.wrapping import FUNCTION_WRAPPERS, pin
from ..variables.base import Lazy, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import SequenceVariable, TupleVariable
from ..variables.containers.sets import SetVariable
from ..variables.contexts.managers import ModeWrapped, of_switch, switch_of
from ..variables.functions.partials import PartialVariable
from ..variables.functions.python_functions import FunctionVariable, UserMethodVariable
from ..variables.modules.module import ModuleVariable
from ..variables.numpy.ndarray import NumpyNdarrayVariable, as_ndarray
from ..variables.objects.instance import ObjectVariable
from ..variables.tensors.graph_results import Opaque, wrap_result
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.tensor_subclass import SubclassVariable
from ..variables.values.constant import ConstantVariable

__all__ = [
    "LibraryCall",
    "Slot",
    "SubgraphCall",
    "TransformVariable",
    "call_library",
    "is_callable_of_user",
    "trace_body",
]


@slotted
class Slot:
    """A place in a template."""

    kind: str  # "operand", "body" or "result"
    index: int


def fill(template: Any, values: dict[str, list]) -> Any:
    """The template with values in its places."""
    if isinstance(template, Slot):
        return values[template.kind][template.index]
    if isinstance(template, tuple):
        made = [fill(x, values) for x in template]
        return type(template)(*made) if hasattr(template, "_fields") else tuple(made)
    if isinstance(template, list):
        return [fill(x, values) for x in template]
    if isinstance(template, dict):
        return {k: fill(v, values) for k, v in template.items()}
    if isinstance(template, slice):
        return slice(*(fill(x, values) for x in (template.start, template.stop, template.step)))
    return template


class Template:
    """Takes variables apart: tensors to operands, callables to bodies, the rest stays.

    ``kept``: lists, dicts and sets stay themselves, for a function that hands them on as they are (others make new ones of their leaves).
    Those with tensors of ``made``, the graph of a body whose results are taken apart, are made anew from the results.
    """

    def __init__(self, tx, callables: bool, kept: bool = False, made: fx.Graph | None = None):
        self.tx, self.callables, self.kept, self.made = tx, callables, kept, made
        self.operands: list[TensorVariable] = []
        self.bodies: list[Variable] = []

    def keeps(self, v: Variable) -> bool:
        return self.kept and isinstance(v, ListVariable | DictVariable | SetVariable) and not self.has_made(v)

    def has_made(self, v: Variable) -> bool:
        v = v.real(self.tx) if isinstance(v, Lazy) else v
        if isinstance(v, TensorVariable):
            return v.node.graph is self.made
        if isinstance(v, SequenceVariable):
            return any(map(self.has_made, v.items(self.tx)))
        return isinstance(v, DictVariable) and any(self.has_made(x) for _, x in v.pairs(self.tx))

    def of(self, v: Variable) -> Any:
        v = v.real(self.tx) if isinstance(v, Lazy) else v
        if isinstance(v, SubclassVariable):
            # Bodies are called with plain tensors, and give plain ones: what has a class of the program's would lose it.
            unsupported("tensor-subclass", f"{v!r} as an operand or a result of a body that is captured by itself")
        if isinstance(v, TensorVariable):
            self.operands.append(v)
            return Slot("operand", len(self.operands) - 1)
        if isinstance(v, TransformVariable | FunctionVariable | UserMethodVariable | PartialVariable) or (
            self.callables and is_callable_of_user(v)
        ):
            if not self.callables:
                return Opaque(v)
            self.bodies.append(v)
            return Slot("body", len(self.bodies) - 1)
        if self.keeps(v):
            return Opaque(v)
        if isinstance(v, ListVariable):
            return [self.of(e) for e in v.items(self.tx)]
        if isinstance(v, SequenceVariable):
            elements = [self.of(e) for e in v.items(self.tx)]
            return v.cls(*elements) if hasattr(v.cls, "_fields") else tuple(elements)
        if isinstance(v, DictVariable):
            return {k.as_constant(): self.of(x) for k, x in v.pairs(self.tx)}
        return v.as_constant() if v.can_constant() else Opaque(v)


NO_CALLABLES = frozenset((ConstantVariable, NumpyNdarrayVariable, TensorVariable, TupleVariable))


def is_callable_of_user(v: Variable) -> bool:
    """Whether the library's function would run the user's code by calling ``v``."""
    if isinstance(v, FunctionVariable | UserMethodVariable | ModuleVariable | TransformVariable) or v.calls_user:
        return True
    if isinstance(v, PartialVariable):
        return is_callable_of_user(v.fn)
    return isinstance(v, ObjectVariable) and trace_rules.class_call(v.cls) is not None


# -- tracing a body --


class Level:
    """A subgraph being traced: placeholders for its inputs, then, as they are met, for what it reads from outside."""

    def __init__(self, graph: fx.Graph):
        self.graph = graph
        self.lifted: dict[Any, Any] = {}  # node outside -> placeholder here
        self.attributes: dict[str, Any] = {}


@slotted(frozen=False)
class Traced:
    """A body: the module, the nodes outside that are its last inputs, and its results as a template with "result" slots."""

    module: fx.GraphModule
    lifted: list[Any]
    template: Any
    values: list[Any]
    variables: list[TensorVariable]
    effects: frozenset[str]


def trace_body(tx, run: Callable[[list[TensorVariable]], Variable], inputs: list[Any], kept: bool = False) -> Traced:
    """Trace ``run``, which gets a variable for each tensor among ``inputs``, into a subgraph. ``kept``: see Template."""
    output = tx.output
    level = Level(CapturedGraph())
    variables = []
    for i, value in enumerate(inputs):
        node = level.graph.placeholder(f"arg{i}")
        node.meta["val"] = node.meta["example_value"] = value
        variables.append(TensorVariable(node, value))
    with output.recorder.entered(level):
        result = run(variables)
        template = Template(tx, callables=False, kept=kept, made=level.graph)
        made = as_results(template.of(result))
        nodes = [output.recorder.lift(v.node) for v in template.operands]
        values = [v.val for v in template.operands]
        level.graph.output(tuple(nodes))
    module = fx.GraphModule(level.attributes, level.graph)
    effects = frozenset().union(*(n.meta.get("effects", ()) for n in level.graph.nodes))
    return Traced(module, list(level.lifted), made, values, template.operands, effects)


def as_results(template: Any) -> Any:
    return pytree.tree_map(lambda x: Slot("result", x.index) if isinstance(x, Slot) else x, template)


def variable_of(tx, value: Any, tensors: dict[int, TensorVariable]) -> Variable:
    """The variable for an argument with which a library function calls a user's."""
    if isinstance(value, _C.TensorBase):
        return tensors[id(value)]
    if isinstance(value, Opaque):
        return value.variable
    if isinstance(value, list):
        return ListVariable([variable_of(tx, v, tensors) for v in value])
    if isinstance(value, tuple) and not is_constant_value(value):
        return TupleVariable([variable_of(tx, v, tensors) for v in value], cls=type(value))
    if isinstance(value, dict):
        return DictVariable({k: (ConstantVariable(k), variable_of(tx, v, tensors)) for k, v in value.items()})
    return tx.wrap_known(value)


class Callback:
    """Stands for a user function while the library's function runs on fake tensors. ``on_arrays``: the function is one of NumPy arrays."""

    def __init__(self, tx, variable: Variable, kept: bool, on_arrays: bool = False):
        self.tx, self.variable, self.kept, self.on_arrays = tx, variable, kept, on_arrays
        self.__name__ = getattr(variable, "name", None) or "fn"
        self.calls: list[Traced] = []

    def __call__(self, *args, **kwargs):
        tx = self.tx
        inputs = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, _C.TensorBase)]

        def run(variables):
            known = {id(x): as_array(v) if self.on_arrays else v for x, v in zip(inputs, variables)}
            return self.variable.call(
                tx,
                [variable_of(tx, a, known) for a in args],
                {k: variable_of(tx, v, known) for k, v in kwargs.items()},
            )

        traced = trace_body(tx, run, inputs, self.kept)
        self.calls.append(traced)
        return fill(traced.template, {"result": traced.values})


# -- the node --


@slotted
class Body:
    """One call of a traced function: number of its subgraph, numbers of its lifted operands, template of its results."""

    graph: int
    lifted: tuple[int, ...]
    template: Any


class SubgraphCall:
    """Target of a node with subgraphs: ``target(subgraphs, lifted, operands)``."""

    tags: tuple[str, ...] = ()


class LibraryCall(SubgraphCall):
    """A function of the library that calls traced functions."""

    def __init__(self, name: str, run: Callable[[list[Callable], list], Any], bodies: list[list[Body]]):
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__
        self.run, self.bodies = run, bodies

    def __call__(self, subgraphs, lifted, operands):
        return self.run([bound(calls, subgraphs, lifted) for calls in self.bodies], list(operands))


def bound(calls: list[Body], subgraphs, lifted) -> Callable:
    """The function that runs the subgraphs of its calls, one after the other; again from the first when it is called again (a checkpoint's
    backward)."""
    left = itertools.cycle(calls)

    def fn(*args, **kwargs):
        body = next(left)
        inputs = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, _C.TensorBase)]
        results = subgraphs[body.graph](*inputs, *(lifted[i] for i in body.lifted))
        return fill(body.template, {"result": list(results)})

    return fn


class Bodies:
    """Collects subgraphs and what they read, as operands of one node."""

    def __init__(self, tx):
        self.tx = tx
        self.graphs: list[Any] = []
        self.lifted: dict[Any, int] = {}
        self.effects: frozenset[str] = frozenset()

    def add(self, traced: Traced) -> Body:
        output = self.tx.output
        self.graphs.append(output.recorder.add_subgraph(traced.module))
        numbers = tuple(self.lifted.setdefault(n, len(self.lifted)) for n in traced.lifted)
        self.effects |= traced.effects
        return Body(len(self.graphs) - 1, numbers, traced.template)

    def node(self, target, operands, value):
        output = self.tx.output
        node = output.recorder.create_node(
            self.tx, "call_function", target, (tuple(self.graphs), tuple(self.lifted), tuple(operands)), {}
        )
        node.meta["val"] = node.meta["example_value"] = value
        node.meta["effects"] = self.effects
        return node


def runner(fn: Callable, args: tuple, kwargs: dict) -> Callable[[list[Callable], list], Any]:
    """``fn(*args, **kwargs)`` with bodies and operands in their places."""

    def run(callables, operands):
        values = {"body": callables, "operand": operands}
        return fn(*fill(args, values), **fill(kwargs, values))

    return run


def record(
    tx,
    name: str,
    run,
    bodies: list[Variable],
    operands: list[TensorVariable],
    kept: bool = False,
    on_arrays: bool = False,
) -> Variable:
    """Run the library's function on fake tensors and put it into the graph. ``on_arrays``: its bodies take NumPy arrays."""
    callbacks = [Callback(tx, b, kept, on_arrays) for b in bodies]
    value = tx.output.checked_fake(name, run, [callbacks, [v.val for v in operands]])
    if is_transformed(value) and not any(c.calls for c in callbacks):
        return TransformVariable(name, lambda callables: run(callables, []), bodies)
    found = Bodies(tx)
    calls = [[found.add(t) for t in c.calls] for c in callbacks]
    target = LibraryCall(name, run, calls)
    node = found.node(target, [v.as_proxy() for v in operands], value)
    if value is None:
        return ConstantVariable(None)
    if isinstance(value, Opaque):
        return value.variable
    return wrap_result(tx, node, value, *operands)


def is_transformed(value) -> bool:
    return type(value) is types.FunctionType and trace_rules.is_torch_callable(value) and hasattr(value, "__wrapped__")


def call_library(tx, fn, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """A call of the library's ``fn`` with user functions among its arguments."""
    kept = trace_rules.file_of(fn) == trace_rules.CHECKPOINT  # transforms make new containers of their leaves
    template = Template(tx, callables=True, kept=kept)
    pargs = tuple(template.of(a) for a in args)
    pkwargs = {k: template.of(v) for k, v in kwargs.items()}
    if any(isinstance(v, NumpyNdarrayVariable) for v in template.operands):
        unsupported("numpy", f"{fn.__name__} of an ndarray", "NumPy arrays are not differentiated or mapped over.")
    return record(tx, fn.__name__, runner(fn, pargs, pkwargs), template.bodies, template.operands, kept)


class TransformVariable(Variable):
    """A function that a transform made of user functions: ``make(callables)`` makes it of others."""

    def __init__(self, name: str, make: Callable[[list[Callable]], Callable], bodies: list[Variable], source=None):
        super().__init__(source)
        self.name, self.make, self.bodies = name, make, bodies

    def __repr__(self):
        return f"TransformVariable({self.name})"

    def python_type(self):
        return types.FunctionType

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        template = Template(tx, callables=False)
        pargs = tuple(template.of(a) for a in args)
        pkwargs = {k: template.of(v) for k, v in kwargs.items()}
        make = self.make

        def run(callables, operands):
            values = {"operand": operands}
            return make(callables)(*fill(pargs, values), **fill(pkwargs, values))

        on_arrays = any(isinstance(v, NumpyNdarrayVariable) for v in template.operands)
        made = record(tx, self.name, run, self.bodies, template.operands, on_arrays=on_arrays)
        return arrays_of(tx, made) if on_arrays else made

    def reconstruct(self, cg):
        def push():
            cg.load_const(self.make)
            cg.all(self.bodies)

        cg.call_function(remade, push, 1 + len(self.bodies))


def as_array(v: TensorVariable) -> NumpyNdarrayVariable:
    return as_ndarray(v, scalar=v.val.ndim == 0)


def arrays_of(tx, v: Variable) -> Variable:
    """What a transform gives, with NumPy arrays for its tensors, as its function takes and gives them."""
    if isinstance(v, TensorVariable):
        return as_array(v)
    if isinstance(v, ListVariable):
        return ListVariable([arrays_of(tx, x) for x in v.items(tx)])
    if isinstance(v, TupleVariable):
        return TupleVariable([arrays_of(tx, x) for x in v.items(tx)], cls=v.cls)
    if isinstance(v, DictVariable):
        return DictVariable({k.as_constant(): (k, arrays_of(tx, x)) for k, x in v.pairs(tx)})
    return v


def remade(make, *callables):
    return make(list(callables))


def of_wrapper(fn: types.FunctionType, inner: Variable, source) -> TransformVariable:
    """For a transformed function that existed before the call: the same with another function in the place of the user's."""

    def make(callables):
        return replaced(fn, fn.__wrapped__, callables[0])

    return TransformVariable(fn.__name__, make, [inner], source)


def replaced(fn: types.FunctionType, old, new) -> types.FunctionType:
    """``fn`` with ``new`` where its closure, or a closure in it, holds ``old``."""

    def other(value):
        if value is old:
            return new
        if type(value) is types.FunctionType and getattr(value, "__wrapped__", None) is old:
            return replaced(value, old, new)
        return value

    cells = tuple(types.CellType(other(c.cell_contents)) for c in fn.__closure__ or ())
    out = types.FunctionType(fn.__code__, fn.__globals__, fn.__name__, fn.__defaults__, cells)
    out.__kwdefaults__ = fn.__kwdefaults__
    return out


@FUNCTION_WRAPPERS.row("wrapper of the library")
def _(tx, value, source):
    """A function of the library made around a user's function."""
    inner = getattr(value, "__wrapped__", None)
    if type(inner) is not types.FunctionType or not trace_rules.is_torch_callable(value):
        return None
    if trace_rules.is_torch_callable(inner):
        return None
    pin(tx, source, "ID_MATCH", value)
    switch = switch_of(value)
    wrapped = tx.wrap(inner, GetAttrSource(source, "__wrapped__"))
    return of_wrapper(value, wrapped, source) if switch is None else ModeWrapped(of_switch(switch), wrapped, source)
