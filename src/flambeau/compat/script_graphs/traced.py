"""The graph of a trace: its fx graph as TorchScript writes one, with all arguments of the schemas, and constants as nodes."""

from __future__ import annotations

import operator
from typing import Any

from ... import fx
from ...base import dtypes, pytree
from ...core.conversion import tensor
from ...core.schema import Argument, Schema
from ...core.tensor import Tensor
from ..torchscript.values import code_of
from .blocks import Graph
from .builder import Builder
from .types import TENSOR, ScriptType, of_value
from .values import Result, Value

__all__ = ["of_trace"]

_NUMBERS = (bool, int, float, complex)


def of_trace(graph: fx.Graph, root, class_name: str | None, states: tuple = (), named: bool = True) -> Graph:
    """The graph of a trace. ``root`` has what its ``get_attr`` nodes name; ``class_name``: of the module, its first input; None for a function,
    whose tensors are constants, but ``states``, which are inputs behind the others. Inputs that aren't ``named`` have numbers for names."""
    return _Trace(graph, root, class_name, states, named).made()


class _Trace:
    """``values``: of the fx nodes; of one with several results the tuple of them. ``held``: the objects of attributes by their path."""

    def __init__(self, graph: fx.Graph, root, class_name: str | None, states: tuple, named: bool):
        self.source, self.root, self.class_name = graph, root, class_name
        self.modules = dict(root.named_modules(remove_duplicate=False)) if class_name is not None else {}
        self.values: dict[fx.Node, Any] = {}
        inputs = [Result("self", ScriptType(f"__torch__.{class_name}"))] if class_name is not None else []
        placeholders = [n for n in graph.nodes if n.op == "placeholder"]
        inputs += [Result(n.target.removesuffix("_1") if named else "", _type_of(n)) for n in placeholders]
        own = len(inputs)
        inputs += [Result("", of_value(t, t.requires_grad)) for t in states]
        self.build = Builder(inputs)
        self.values |= zip(placeholders, self.build.inputs[own - len(placeholders) :])
        self.held: dict[str, Value] = {"": self.build.inputs[0]} if class_name is not None else {}
        self.states = {id(t): value for t, value in zip(states, self.build.inputs[own:])}

    def made(self) -> Graph:
        """The graph."""
        output: Any = None
        for node in self.source.nodes:
            self.build.scope = _scope(node)
            if node.op == "get_attr":
                self.values[node] = self.attribute(node)
            elif node.op == "call_function" and node.target is operator.getitem:
                self.values[node] = self.values[node.args[0]][node.args[1]]
            elif node.op == "call_function":
                self.values[node] = self.called(node)
            elif node.op == "output":
                (output,) = node.args
        self.build.scope = ""
        specs = self.source.specs
        if specs is not None and specs[1] is not None:
            output = pytree.tree_unflatten(list(output), specs[1])
        return self.build.graph([self.result(output)])

    def attribute(self, node: fx.Node) -> Value:
        path = node.target
        if self.class_name is None:
            value = getattr(self.root, path)
            if id(value) in self.states:
                return self.states[id(value)]
            if not isinstance(value, Tensor):  # the branches of torch.cond and the like
                return self.build.node("prim::GetAttr", (), (ScriptType("Any"),), attributes={"name": path}).output()
            return self.build.constant(value, of_value(value, value.requires_grad))
        if path not in self.held:
            self.build.scope = ""
            self.held[path] = self._reached(path)
        return self.held[path]

    def _reached(self, path: str) -> Value:
        """The attribute of the module at a path, through its submodules."""
        owner, _, name = path.rpartition(".")
        if owner not in self.held:
            self.held[owner] = self._reached(owner)
        found = self.modules.get(path)
        kind = TENSOR if found is None else ScriptType(f"__torch__.{found.original_name}")
        return self.build.attribute(self.held[owner], name, kind)

    def called(self, node: fx.Node):
        """The values that a call gives: one, or a tuple of them."""
        schema: Schema | None = getattr(node.target, "_schema", None)
        if schema is None:
            given = [self.argument(a, None) for a in (*node.args, *node.kwargs.values())]
            attributes = {"name": getattr(node.target, "__name__", str(node.target))}
            parts = _parts(node)
            made = self.build.node("prim::PythonOp", given, parts or (_type_of(node),), attributes=attributes)
            return made._outputs if parts else made.output()
        given = [self.argument(value, a) for a, value in _bound(schema, node)]
        returns = schema.returns
        if len(returns) == 1 and returns[0].is_list:
            listed = self.build.node(schema.name, given, (ScriptType("List", (TENSOR,)),), schema=schema).output()
            return self.build.node("prim::ListUnpack", (listed,), _parts(node))._outputs
        if len(returns) == 1:
            return self.build.node(schema.name, given, (_type_of(node),), schema=schema).output()
        kinds = _parts(node) if "val" in node.meta else (TENSOR,) * len(returns)
        return self.build.node(schema.name, given, kinds, schema=schema)._outputs

    def argument(self, value, a: Argument | None) -> Value:
        """The value of an argument: of a node, or constants."""
        if isinstance(value, fx.Node):
            return self.values[value]
        if isinstance(value, (list, tuple)):
            parts = [self.argument(v, a) for v in value]
            kind = TENSOR if a is None or a.type == "Tensor" else ScriptType(_base(a))
            kind = ScriptType("Optional", (kind,)) if a is not None and a.elements_optional else kind
            return self.build.collected(ScriptType("List", (kind,)), parts)
        if a is not None and a.type == "Tensor" and isinstance(value, _NUMBERS):
            # A number beside a tensor is a tensor without dimensions, of the widest dtype of its kind.
            wide = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
            made = tensor(value, dtype=wide[type(value)])
            return self.build.constant(made, of_value(made, False))
        if a is not None and a.type == "float" and isinstance(value, int):
            return self.build.constant(float(value))
        if isinstance(value, int) and type(value) not in (int, bool):
            return self.build.constant(int(value))
        return self.build.constant(code_of(value))

    def result(self, value) -> Value:
        """What the trace returns: tuples, lists and dicts of values."""
        if isinstance(value, fx.Node):
            found = self.values[value]
            if not isinstance(found, tuple):
                return found
            return self.build.collected(ScriptType("Tuple", tuple(v.type() for v in found)), found)
        if isinstance(value, dict):
            pairs = [v for item in value.items() for v in map(self.result, item)]
            kinds = [v.type() if v.type().base != "Tensor" else TENSOR for v in pairs[:2]]
            return self.build.node("prim::DictConstruct", pairs, (ScriptType("Dict", tuple(kinds)),)).output()
        if isinstance(value, (list, tuple)):
            parts = list(map(self.result, value))
            if isinstance(value, tuple):
                return self.build.collected(ScriptType("Tuple", tuple(p.type() for p in parts)), parts)
            return self.build.collected(ScriptType("List", (TENSOR,)), parts)
        if isinstance(value, Tensor):
            return self.build.constant(value)
        return self.build.constant(code_of(value))


def _base(a: Argument) -> str:
    """The name of the static type of an argument's elements: dtypes and the like are numbers."""
    names = {"SymInt": "int", "ScalarType": "int", "Layout": "int", "MemoryFormat": "int", "Scalar": "number"}
    return names.get(a.type, a.type)


def _bound(schema: Schema, node: fx.Node):
    """(argument, value) for each argument of the schema, in its order."""
    places = iter(node.args)
    for a in schema.arguments:
        if a.name in node.kwargs:
            yield a, node.kwargs[a.name]
        elif a.kwarg_only:
            yield a, a.default_value
        else:
            yield a, next(places, a.default_value)


def _type_of(node: fx.Node) -> ScriptType:
    held = node.meta.get("val")
    return TENSOR if held is None else of_value(held, node.meta.get("requires_grad"))


def _parts(node: fx.Node) -> tuple[ScriptType, ...]:
    """The types of the parts of a call's result: as many as are known, or used."""
    if "val" in node.meta:
        held = node.meta["val"]
        return tuple(map(of_value, held)) if isinstance(held, (list, tuple)) else ()
    places = [u.args[1] for u in node.users if u.target is operator.getitem]
    return (TENSOR,) * (max(places, default=-1) + 1)


def _scope(node: fx.Node) -> str:
    calls = list(node.meta.get("nn_module_stack", {}).values())
    return "/".join(f"__module.{name}" for name, _ in calls if name)
