"""Calls of an archive's own functions and classes, and of what is TorchScript's alone, as nodes of a graph."""

from __future__ import annotations

import ast

from ..torchscript import packed
from ..torchscript.declared import literal
from ..torchscript.names import CONTEXTS
from ..torchscript.nodes import Closure, Refused
from ..torchscript.types import dotted
from .archived_operators import CASTS, OF_TENSORS, Operators
from .types import TENSOR, ScriptType, of_type
from .values import Value

__all__ = ["Calls"]

_TYPED = ("annotate", "unchecked_cast")


class Calls(Operators):
    """What a call gives is one value: of several results of an operator their tuple."""

    def called(self, node: ast.Call, name: str) -> Value:
        """The one value of a call."""
        fn = node.func
        path = dotted(fn) or ""
        if isinstance(fn, ast.Name):
            found = self.typing.function_of(fn)
            if found is not None:
                return self.function(node, found, name)
            if fn.id in CASTS:
                return self.node(CASTS[fn.id], [self.value(node.args[0])], self.type_of(node), name)
            if fn.id in _TYPED:
                return self.typed(node, name)
            if hasattr(self.typing, f"call_{fn.id}"):
                return self.special(node, name)
        elif isinstance(fn, ast.Attribute) and path.split(".")[0] == "__torch__":
            return self.global_(node, path, name)
        if path == "torch.device" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            return self.constants.value(literal(node))
        if self.operator_of(node) is not None:
            made = self.operator(node, name)
            if made.outputsSize() > 1:
                return self.node("prim::TupleConstruct", list(made.outputs()), self.type_of(node), name)
            return made.output() if made.outputsSize() else self.constants.value(None)
        assert isinstance(fn, ast.Attribute)
        return self.of_method(node, fn, name)

    def typed(self, node: ast.Call, name: str) -> Value:
        """``annotate(T, x)``: ``x`` itself, of the type that is said."""
        kind, inner = of_type(self.program.type(node.args[0])), node.args[1]
        if node.func.id == "unchecked_cast":  # type: ignore[attr-defined]
            return self.node("prim::unchecked_cast", [self.value(inner)], kind, name)
        if isinstance(inner, ast.List):
            return self.node("prim::ListConstruct", [self.value(e) for e in inner.elts], kind, name)
        if isinstance(inner, ast.Dict) and not inner.keys:
            return self.node("prim::DictConstruct", [], kind, name)
        if isinstance(inner, ast.Constant) and inner.value is None:
            return self.constants.value(None, kind if kind.base == "NoneType" else None)
        if self.type_of(inner) == TENSOR and kind.base in OF_TENSORS:
            return self.node(OF_TENSORS[kind.base], [self.value(inner)], kind, name)
        return self.value(inner, name)

    def special(self, node: ast.Call, name: str) -> Value:
        """What is TorchScript's alone."""
        called = node.func.id  # type: ignore[attr-defined]
        if called == "getattr":
            attr = node.args[1].value  # type: ignore[attr-defined]
            return self.build.attribute(self.value(node.args[0]), attr, self.type_of(node), name)
        if called == "uninitialized":
            return self.node("prim::Uninitialized", [], self.type_of(node), name)
        if called == "isinstance":
            return self.node("prim::isinstance", [self.value(node.args[0])], self.type_of(node), name)
        if called == "print":
            self.build.node("prim::Print", [self.value(a) for a in node.args])
            return self.constants.value(None)
        if called == "fork":
            return self.forked(node, name)
        raise Refused(node, f"the graph of {called} isn't built")

    def forked(self, node: ast.Call, name: str) -> Value:
        """The future of a function inside of the method, which is a block of the node."""
        raise NotImplementedError

    def bound(self, node: ast.Call, takes) -> list[Value]:
        """The values of the arguments of a function or class of the archive, in its order."""
        given = dict(zip((n for n, _ in takes.takes), node.args)) | {str(k.arg): k.value for k in node.keywords}
        return [self.value(given[n]) if n in given else self.constants.value(takes.defaults[n]) for n, _ in takes.takes]

    def function(self, node: ast.Call, found, name: str) -> Value:
        if isinstance(found, Closure):
            raise Refused(node, f"the graph of a call of {found.name} outside of fork isn't built")
        args = self.bound(node, found)
        if self.inline:
            return self.inlined(found, args)
        return self.node("prim::CallFunction", [self.constants.function(found.name), *args], of_type(found.gives), name)

    def global_(self, node: ast.Call, path: str, name: str) -> Value:
        """A call of a function or class by its qualified name."""
        found = self.program.function(node, path)
        if found is not None:
            return self.function(node, found, name)
        if path.endswith(".__new__"):
            return self.node("prim::CreateObject", [], ScriptType(path.removesuffix(".__new__")), name)
        args = self.bound(node, self.program.class_of(node, path))
        return self.node("prim::TupleConstruct", args, self.type_of(node), name)

    def of_method(self, node: ast.Call, fn: ast.Attribute, name: str) -> Value:
        kind = self.typing.value(fn.value).type
        of = self.value(fn.value)
        if kind.name in CONTEXTS or kind.name in packed.CLASSES:
            args = [of, *map(self.value, node.args)]
            return self.call(fn.attr, args, self.type_of(node), name)
        method = self.program.method(node, kind, fn.attr)
        args = [of, *self.bound(node, method)]
        if self.inline:
            return self.inlined(method, args)
        return self.call(method.name, args, of_type(method.gives), name)

    def call(self, called: str, args: list[Value], gives: ScriptType, name: str) -> Value:
        made = self.build.node("prim::CallMethod", args, (gives,), name=name, attributes={"name": called})
        return made.output()

    def inlined(self, method, args: list[Value]) -> Value:
        """What a method gives, by its own nodes."""
        raise NotImplementedError
