"""The graph of a method of a TorchScript archive, of its parsed and typed code: ``prim::If`` and ``prim::Loop`` have blocks, and locals that these
assign are their results."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from ..torchscript.nodes import Refused
from ..torchscript.types import TENSOR as TENSOR_TYPE
from ..torchscript.types import Type
from .archived_calls import Calls
from .archived_expressions import Constants
from .blocks import Block, Graph
from .builder import Builder
from .types import ScriptType, of_type
from .values import Result, Value

__all__ = ["of_method"]

_MOST_TURNS = 2**63 - 1  # of a while loop


def of_method(method, program, inline: bool = False) -> Graph:
    """The graph of a ``declared.Method``; ``inline``: calls of methods and functions are replaced by what these do. NotImplementedError for a
    construct whose graph isn't built, with file, class, method and line."""
    owner = method.owner
    inputs = [Result(method.of, ScriptType(owner.qualified))] if owner is not None else []
    build = Builder(inputs + [Result(name, of_type(kind)) for name, kind in method.takes])
    first = build.inner([])
    result = _Method(method, program, build, Constants(first), inline).result(build.inputs)
    build.nodes[:0] = first.nodes
    return build.graph([result])


def _loads(nodes) -> Counter[str]:
    """How often each name is read."""
    return Counter(
        n.id for top in nodes for n in ast.walk(top) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)
    )


class _Method(Calls):
    """``do_*``: the nodes of a statement of that class."""

    def result(self, inputs) -> Value:
        """The nodes of the whole method, and what it returns."""
        names = [self.method.of] if self.method.owner is not None else []
        self.names |= zip([*names, *(name for name, _ in self.method.takes)], inputs)
        self.reads = _loads(self.method.node.body)
        self.returned: Value | None = None
        try:
            self.block(self.method.node.body)
        except Refused as error:
            raise NotImplementedError(f"{self.method.where()}, line {error.line}: {error}") from None
        return self.constants.value(None) if self.returned is None else self.returned

    def inlined(self, method, args: list[Value]) -> Value:
        return _Method(method, self.program, self.build, self.constants, True).result(args)

    def block(self, body: list[ast.stmt]) -> None:
        for s in body:
            handler: Callable | None = getattr(self, f"do_{type(s).__name__}", None)
            if handler is None:
                raise Refused(s, f"the graph of {type(s).__name__} isn't built")
            handler(s)

    def do_Pass(self, s):
        pass

    def do_Expr(self, s):
        self.value(s.value)
        self.typing.do_Expr(s)

    def do_Return(self, s):
        self.returned = self.constants.value(None) if s.value is None else self.value(s.value)

    def do_AnnAssign(self, s):
        self.names[s.target.id] = self.value(s.value, s.target.id)
        self.typing.do_AnnAssign(s)

    def do_Assign(self, s):
        target = s.targets[0]
        if isinstance(target, ast.Attribute):
            inputs = [self.value(target.value), self.value(s.value)]
            self.build.node("prim::SetAttr", inputs, attributes={"name": target.attr})
        elif isinstance(target, ast.Tuple):
            names = [e.id for e in target.elts]
            self.names |= zip(names, self.parts(s.value, names))
        elif self.typing.function_of(s.value) is None:
            self.names[target.id] = self.value(s.value, target.id)
        self.typing.do_Assign(s)

    def parts(self, node: ast.expr, names: list[str]) -> list[Value]:
        """The values of an expression that several names are assigned."""
        if isinstance(node, ast.Tuple):
            return [self.value(e, name) for e, name in zip(node.elts, names)]
        if self.operator_of(node) is not None:
            made = self.operator(node)
            if made.outputsSize() == len(names) != 1:
                return list(made.outputs())
            whole = made.output()
        else:
            whole = self.value(node)
        kind = whole.type()
        if kind.base == "List":
            return list(self.build.node("prim::ListUnpack", [whole], kind.args * len(names)).outputs())
        types = list(map(of_type, self.program.elements(node, self.type_for(node))))
        return list(self.build.node("prim::TupleUnpack", [whole], types).outputs())

    def condition(self, node: ast.expr) -> Value:
        """A truth value."""
        made = self.value(node)
        return made if made.type().base == "bool" else self.node("aten::Bool", [made], ScriptType("bool"))

    def inside(self, body: list[ast.stmt], inputs: list[Result], names: list[str]) -> tuple[Builder, dict[str, Value]]:
        """The nodes of a block whose inputs are these locals, and its locals at the end; those here stay."""
        outer, before = self.build, self.names
        self.build = inner = outer.inner(inputs)
        self.names = before | dict(zip(names, inner.inputs[len(inputs) - len(names) :]))
        self.block(body)
        after, self.build, self.names = self.names, outer, before
        return inner, after

    def joined(self, s: ast.stmt) -> dict[str, Type]:
        """The types of locals behind a statement with blocks. The functions that locals stand for are as before it."""
        types, functions = dict(self.typing.types), dict(self.typing.functions)
        getattr(self.typing, f"do_{type(s).__name__}")(s)
        after, self.typing.types, self.typing.functions = self.typing.types, types, functions
        return after

    def do_FunctionDef(self, s):
        self.typing.do_FunctionDef(s)
        self.closures[s.name] = s

    def forked(self, node: ast.Call, name: str) -> Value:
        closure = self.closures[node.args[0].id]  # type: ignore[attr-defined]
        gives, returned, types = self.type_of(node), self.returned, dict(self.typing.types)
        inner, _ = self.inside(closure.body, [], [])
        result, self.returned, self.typing.types = self.returned, returned, types
        blocks = (inner.block([self.constants.value(None) if result is None else result]),)
        return self.build.node("prim::fork", [], (gives,), name=name, blocks=blocks).output()

    def do_If(self, s):
        test, types, before = self.condition(s.test), self.joined(s), dict(self.typing.types)
        branches = []
        for body in (s.body, s.orelse):
            self.typing.types = dict(before)
            branches.append(self.inside(body, [], []))
        self.typing.types = types
        read = self.reads - _loads([*s.body, *s.orelse])
        (_, first), (_, second) = branches
        changed = [n for n in first if n in second and read[n] and first[n] is not second[n]]
        blocks = tuple(inner.block([after[n] for n in changed]) for inner, after in branches)
        self.gives("prim::If", [test], blocks, changed)

    def gives(self, kind: str, inputs: list[Value], blocks: tuple[Block, ...], names: list[str]) -> None:
        """A node with blocks whose results are these locals from here on."""
        types = [of_type(self.known(n)) for n in names]
        only = names[0] if len(names) == 1 else ""
        self.names |= zip(names, self.build.node(kind, inputs, types, name=only, blocks=blocks).outputs())

    def known(self, name: str) -> Type:
        """The type of a local: sizes are numbers in tensors here."""
        found = self.typing.types[name]
        return TENSOR_TYPE if found.name == "size as tensor" else found

    def loop(self, s, turns: Value, first: Value, counter: str | None, test: ast.expr | None) -> None:
        """``prim::Loop`` of ``turns`` turns at most, as long as the test holds."""
        self.typing.types = types = self.joined(s)
        stored = {n.id for b in s.body for n in ast.walk(b) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        read = self.reads - _loads([test] if test is not None else [])
        carried = [n for n in self.names if n in stored and read[n]]
        start = [self.names[n] for n in carried]
        inputs = [Result(counter or "", ScriptType("int")), *(Result(n, of_type(self.known(n))) for n in carried)]
        names = ([counter] if counter is not None else []) + carried
        inner, after = self.inside(s.body, inputs, names)
        outer, before = self.build, self.names
        self.build, self.names = inner, after
        going = first if test is None else self.condition(test)
        self.build, self.names = outer, before
        self.typing.types = types
        self.gives("prim::Loop", [turns, first, *start], (inner.block([going, *(after[n] for n in carried)]),), carried)

    def do_While(self, s):
        self.loop(s, self.constants.value(_MOST_TURNS), self.condition(s.test), None, s.test)

    def do_For(self, s):
        if len(s.iter.args) != 1:
            raise Refused(s, "the graph of range with a start isn't built")
        self.loop(s, self.value(s.iter.args[0]), self.constants.value(True), s.target.id, None)

    def do_With(self, s):
        entered = []
        for item in s.items:
            of = self.value(item.context_expr)
            kind = self.program.entered(item.context_expr, self.typing.value(item.context_expr).type)
            made = self.node("prim::Enter", [of], of_type(kind))
            entered.append(of)
            if item.optional_vars is not None:
                self.names[item.optional_vars.id] = made
                self.typing.types[item.optional_vars.id] = kind
        self.block(s.body)
        for of in reversed(entered):
            self.node("prim::Exit", [of], ScriptType("Tensor"))
