"""Functions of Python as those of TorchScript's archives: types stand at parameters, and the last statement returns."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import typing

from ...core.tensor import Tensor
from ..torchscript.nodes import Refused
from .source_calls import SourceCalls, hints, kind_of
from .source_expressions import Kind, Known, call

__all__ = ["translated"]

_PLAIN = {
    Tensor: "Tensor",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    complex: "complex",
    type(None): "NoneType",
}
_RESULT = "_result"
_MADE = (_RESULT, "_chosen", "_turn")


def translated(function: types.FunctionType) -> tuple[str, dict[str, types.FunctionType]]:
    """The text of a function in an archive's language, and the functions that it calls. Refused for a construct that isn't translated, with its
    line; OSError for a function without source."""
    lines, first = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    ast.increment_lineno(tree, first - 1)
    if not isinstance(tree, ast.FunctionDef):
        raise Refused(tree, "the graph of a lambda isn't built")
    taken = next((n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id.startswith(_MADE)), None)
    if taken is not None:
        raise Refused(taken, f"the name {taken.id} is one of those that the translation makes")
    closure = inspect.getclosurevars(function)
    source = _Function({**function.__globals__, **closure.nonlocals})
    return ast.unparse(ast.fix_missing_locations(source.function(tree, function))), source.called


def _annotation(node: ast.AST, given) -> str:
    """A type as archives write it."""
    if given in _PLAIN:
        return _PLAIN[given]
    origin, args = typing.get_origin(given), typing.get_args(given)
    if origin in (typing.Union, types.UnionType) and len(args) == 2 and type(None) in args:
        return f"Optional[{_annotation(node, next(a for a in args if a is not type(None)))}]"
    names = {list: "List", dict: "Dict", tuple: "Tuple"}
    if origin not in names or Ellipsis in args:
        raise Refused(node, f"the type {given} isn't translated")
    return f"{names[origin]}[{', '.join(_annotation(node, a) for a in args)}]"


def _returns(body: list[ast.stmt]) -> bool:
    """Whether some statement returns."""
    return any(isinstance(n, ast.Return) for s in body for n in ast.walk(s))


class _Function(SourceCalls):
    """``do_*``: the statements for a node of that class."""

    def function(self, tree: ast.FunctionDef, function: types.FunctionType) -> ast.FunctionDef:
        """The whole function."""
        a = tree.args
        if a.vararg or a.kwarg or a.kwonlyargs:
            raise Refused(tree, "the graph of a function with *args, **kwargs or keywords only isn't built")
        known = hints(function)
        if function.__annotations__.keys() - known.keys():
            raise Refused(tree, "the annotations can't be read")
        params = []
        for p in [*a.posonlyargs, *a.args]:
            kind = _annotation(tree, known.get(p.arg, Tensor))
            self.kinds[p.arg] = kind_of(known.get(p.arg, Tensor))
            params.append(ast.arg(p.arg, ast.parse(kind, mode="eval").body))
        body = self.body(tree.body)
        arguments = ast.arguments([], params, None, [], [], None, list(a.defaults))
        made = ast.FunctionDef(function.__name__, arguments, body, [], None, None)
        made.type_params = []  # type: ignore[attr-defined]
        return made

    def body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made = self.ending(body)
        return [*made, ast.Return(ast.Name(_RESULT, ast.Load()))] if _returns(body) else made

    def ending(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements behind which nothing is run: what they return is a local."""
        out: list[ast.stmt] = []
        for i, s in enumerate(body):
            if isinstance(s, ast.Return):
                value = ast.Constant(None) if s.value is None else s.value
                return out + self.block([ast.copy_location(ast.Assign([ast.Name(_RESULT, ast.Store())], value), s)])
            if isinstance(s, ast.If) and _returns([s]):
                return out + self.branches(s, [*s.body, *body[i + 1 :]], [*s.orelse, *body[i + 1 :]], self.ending)
            if _returns([s]):
                raise Refused(s, "the graph of a return in a loop isn't built")
            out += self.block([s])
        return out

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            handler = getattr(self, f"do_{type(s).__name__}", None)
            if handler is None:
                raise Refused(s, f"the graph of {type(s).__name__} isn't built")
            self.before = []
            made = handler(s)
            out += [*self.before, *made]
        self.before = []
        return out

    def do_Pass(self, s):
        return []

    def do_Expr(self, s):
        return [] if isinstance(s.value, ast.Constant) else [ast.Expr(self.code(s.value))]

    def assigned(self, target: str, value: Known) -> list[ast.stmt]:
        self.kinds[target] = value.kind
        return [ast.Assign([ast.Name(target, ast.Store())], value.code)]

    def do_Assign(self, s):
        target, *others = s.targets
        if isinstance(target, ast.Name) and not others:
            return self.assigned(target.id, self.expression(s.value))
        if others or not isinstance(target, ast.Tuple) or not all(isinstance(e, ast.Name) for e in target.elts):
            raise Refused(s, f"the graph of an assignment to {ast.unparse(target)} isn't built")
        if isinstance(s.value, ast.Tuple):
            parts = list(map(self.expression, s.value.elts))
            value: ast.expr = ast.Tuple([p.code for p in parts], ast.Load())
        else:
            whole = self.expression(s.value)
            value, parts = whole.code, [Known(whole.code, whole.kind.element)] * len(target.elts)
        self.kinds |= {e.id: part.kind for e, part in zip(target.elts, parts)}
        return [ast.Assign([target], value)]

    def do_AnnAssign(self, s):
        if s.value is None or not isinstance(s.target, ast.Name):
            raise Refused(s, "the graph of an annotation without a value isn't built")
        given = eval(compile(ast.Expression(s.annotation), "<annotation>", "eval"), dict(self.scope))
        text = _annotation(s, given)
        value = call("annotate", ast.parse(text, mode="eval").body, self.code(s.value))
        return self.assigned(s.target.id, Known(value, kind_of(given)))

    def do_AugAssign(self, s):
        if not isinstance(s.target, ast.Name) or s.target.id not in self.kinds:
            raise Refused(s, f"the graph of {ast.unparse(s)} isn't built")
        name = ast.copy_location(ast.Name(s.target.id, ast.Load()), s)
        value = self.expression(ast.copy_location(ast.BinOp(name, s.op, s.value), s))
        if self.kinds[name.id] is Kind.TENSOR:
            # A tensor is written in place.
            assert isinstance(value.code, ast.Call) and isinstance(value.code.func, ast.Attribute)
            value.code.func.attr += "_"
        return self.assigned(name.id, value)

    def branches(self, s: ast.If, first, second, run) -> list[ast.stmt]:
        """An if statement with these branches."""
        self.before = []
        test = self.expression(s.test)
        before, kinds, made = self.before, dict(self.kinds), []
        after: list[dict[str, Kind]] = []
        for body in (first, second):
            self.kinds = dict(kinds)
            made.append(run(body) or [ast.Pass()])
            after.append(self.kinds)
        one, other = after
        self.kinds = {
            n: one.get(n, other.get(n, Kind.OTHER))
            if one.get(n, other.get(n)) is other.get(n, one.get(n))
            else Kind.OTHER
            for n in one.keys() | other.keys()
        }
        self.before = []
        return [*before, ast.If(self.truth(test), *made)]

    def do_If(self, s):
        return self.branches(s, s.body, s.orelse, self.block)

    def do_For(self, s):
        counted = isinstance(s.iter, ast.Call) and isinstance(s.iter.func, ast.Name) and s.iter.func.id == "range"
        if not counted or s.orelse or not isinstance(s.target, ast.Name):
            raise Refused(s, f"the graph of a loop over {ast.unparse(s.iter)} isn't built")
        bounds = [self.code(a) for a in s.iter.args]
        counter, first, count = s.target.id, [], bounds[0]
        if len(bounds) > 1:
            # Loops count from 0.
            start, step, self.temporaries = bounds[0], (bounds[2:] or [ast.Constant(1)])[0], self.temporaries + 1
            counter, count = f"_turn{self.temporaries}", call("torch.__range_length", start, bounds[1], step)
            derived = call("torch.__derive_index", ast.Name(counter, ast.Load()), start, step)
            first = [ast.Assign([ast.Name(s.target.id, ast.Store())], derived)]
        self.kinds[s.target.id] = Kind.NUMBER
        before = self.before
        body = self.repeated(s)
        self.before = before
        return [ast.For(ast.Name(counter, ast.Store()), call("range", count), [*first, *body], [])]

    def do_While(self, s):
        self.before = None
        test = self.truth(self.expression(s.test))
        if s.orelse:
            raise Refused(s, "the graph of else of a loop isn't built")
        return [ast.While(test, self.repeated(s), [])]

    def repeated(self, s: ast.For | ast.While) -> list[ast.stmt]:
        """The body of a loop, in which locals keep what is known of them."""
        kinds = dict(self.kinds)
        body = self.block(s.body)
        changed = [n for n, kind in kinds.items() if self.kinds[n] is not kind]
        if changed:
            raise Refused(s, f"{changed[0]} changes its type in a loop")
        return body
