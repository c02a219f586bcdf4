"""One method of an archive as a Python function: types are inferred along the statements, operators are chosen by them, and what is written calls
these directly, so ``torch.compile`` captures it like any function.

Sizes that a trace holds in tensors (``ops.prim.NumToTensor``) stay numbers while only arithmetic of whole numbers is done to them.
"""

from __future__ import annotations

import ast
import contextlib

from . import rows
from .lowered_calls import Calls
from .names import CONTEXTS
from .nodes import Closure, Refused
from .types import ANY, INT, NONE, SIZE, TENSOR, Type, join

__all__ = ["lower", "opened"]


def lower(method, program) -> ast.FunctionDef:
    """The function of a :class:`declared.Method`, as a node whose global names are put into ``program.space``."""
    return _Function(method, program).lowered()


def opened(method, program) -> _Function:
    """What tells the types of a method's expressions: it knows those of the parameters, and of locals once it was given the statements before."""
    made = _Function(method, program)
    made.parameters()
    return made


def _assigns(body: list[ast.stmt]) -> set[str]:
    """Names that the statements assign."""
    return {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


class _Function(Calls):
    """``do_*``: the statements of a node of that class."""

    def lowered(self) -> ast.FunctionDef:
        source = self.method.node
        arguments = ast.arguments([], self.parameters(), None, [], [], None, [])
        body = self.block(source.body)
        return self._def(source, source.name, arguments, body)

    def parameters(self) -> list[ast.arg]:
        """The parameters, whose types are known from here on."""
        if self.method.owner is not None:
            self.types[self.method.of] = Type(self.method.owner.qualified)
        self.types |= self.method.takes
        return [ast.arg(name) for name in self.types]

    def _def(self, source, name, arguments, body) -> ast.FunctionDef:
        made = ast.FunctionDef(name, arguments, body, [], None, None)
        made.type_params = []  # type: ignore[attr-defined]
        return ast.copy_location(made, source)

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out = []
        for s in body:
            handler = getattr(self, "do_" + type(s).__name__, None)
            if handler is None:
                raise Refused(s, f"{type(s).__name__} isn't TorchScript")
            out += [ast.copy_location(made, s) if not hasattr(made, "lineno") else made for made in handler(s)]
        return out or [ast.copy_location(ast.Pass(), body[0])]

    @contextlib.contextmanager
    def inside(self):
        self.depth += 1
        yield
        self.depth -= 1

    def do_Pass(self, s):
        return [ast.Pass()]

    def do_Return(self, s):
        if s.value is None:
            self.returns.append(NONE)
            return [ast.Return(self.constant(s, None))]
        made, kind = self.value(s.value)
        self.returns.append(kind)
        return [ast.Return(self.fitted(made, kind, self.method.gives) if self.depth >= 0 else made)]

    def do_Expr(self, s):
        return [ast.Expr(self.expr(s.value).code)]

    def do_AnnAssign(self, s):
        if not isinstance(s.target, ast.Name) or s.value is None:
            raise Refused(s, "an annotation without a value")
        kind = self.program.type(s.annotation)
        made, given = self.value(s.value)
        self.types[s.target.id] = kind
        return [ast.Assign([self.target(s.target)], self.fitted(made, given, kind))]

    def target(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Name(node.id, ast.Store()), node)

    def assign(self, node: ast.Name, kind: Type) -> ast.expr:
        self.types[node.id] = kind
        self.functions.pop(node.id, None)
        return self.target(node)

    def do_Assign(self, s):
        if len(s.targets) != 1:
            raise Refused(s, "an assignment to several targets")
        target = s.targets[0]
        if isinstance(target, ast.Name):
            found = self.function_of(s.value)
            if found is not None:
                self.types.pop(target.id, None)
                self.functions[target.id] = found
                return []
            made, kind = self.expr(s.value) if not self.depth else self.value(s.value)
            return [ast.Assign([self.assign(target, kind)], made)]
        if isinstance(target, ast.Attribute):
            of, owner = self.expr(target.value)
            kind = self.program.attribute(target, owner, target.attr)
            made, given = self.value(s.value)
            place = ast.copy_location(ast.Attribute(of, target.attr, ast.Store()), target)
            return [ast.Assign([place], self.fitted(made, given, kind))]
        if isinstance(target, ast.Tuple) and all(isinstance(e, ast.Name) for e in target.elts):
            return self._unpack(s, target)
        raise Refused(s, f"an assignment to {ast.unparse(target)}")

    def _unpack(self, s, target: ast.Tuple):
        if isinstance(s.value, ast.Tuple) and len(s.value.elts) == len(target.elts):
            parts = [self.value(e) for e in s.value.elts]
            names = [self.assign(e, part.type) for e, part in zip(target.elts, parts)]
            if len(names) == 1:
                return [ast.Assign(names, parts[0].code)]
            made: ast.expr = ast.copy_location(ast.Tuple([p.code for p in parts], ast.Load()), s)
        else:
            made, kind = self.value(s.value)
            if kind == ANY:
                kinds = (ANY,) * len(target.elts)
            elif kind.name == "List":
                kinds = kind.args * len(target.elts)
                made = self.calling(s, _of_length, "unpacked", made, self.constant(s, len(target.elts)))
            else:
                kinds = self.program.elements(s, kind)
            if len(kinds) != len(target.elts):
                raise Refused(s, f"{len(target.elts)} names for the {len(kinds)} elements of {kind}")
            names = [self.assign(e, k) for e, k in zip(target.elts, kinds)]
        place = ast.copy_location(ast.Tuple(names, ast.Store()), target)
        return [ast.Assign([place], made)]

    def do_If(self, s):
        test = self.condition(s.test)
        types, functions = dict(self.types), dict(self.functions)
        with self.inside():
            body = self.block(s.body)
            after = self.types
            self.types, self.functions = types, functions
            orelse = self.block(s.orelse) if s.orelse else []
        for name in after.keys() | self.types.keys():
            a, b = after.get(name), self.types.get(name)
            self.types[name] = join(a, b) if a is not None and b is not None else a if b is None else b
        return [ast.If(test, body, orelse)]

    def settled(self, s, body) -> list[ast.stmt]:
        """Statements that make tensors of sizes that a loop assigns."""
        out: list[ast.stmt] = []
        for name in sorted(_assigns(body)):
            if self.types.get(name) == SIZE:
                made = self.calling(s, rows.tensor_of, "tensor", self.load(s, name))
                out.append(
                    ast.copy_location(
                        ast.Assign([self.assign(ast.copy_location(ast.Name(name, ast.Store()), s), TENSOR)], made), s
                    )
                )
        return out

    def loop(self, body):
        """The statements of a loop, and the types behind it: a name may have been assigned or not."""
        before = dict(self.types)
        with self.inside():
            made = self.block(body)
            joined = {n: join(before[n], k) if n in before else k for n, k in self.types.items()}
            if any(n in before and joined[n] != before[n] for n in joined):
                self.types = dict(joined)
                made = self.block(body)
                joined = {n: join(joined[n], k) if n in joined else k for n, k in self.types.items()}
        self.types = joined
        return made

    def do_While(self, s):
        first = self.settled(s, s.body)
        test = self.condition(s.test)
        return [*first, ast.While(test, self.loop(s.body), [])]

    def do_For(self, s):
        call = s.iter
        if not (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "range"
            and isinstance(s.target, ast.Name)
        ):
            raise Refused(s, f"for ... in {ast.unparse(s.iter)}: TorchScript counts by range")
        first = self.settled(s, s.body)
        bounds = [self.number(a) for a in call.args]
        target = self.assign(s.target, INT)
        counted = self.call(call, self.held(call, range, "range"), bounds)
        return [*first, ast.For(target, counted, self.loop(s.body), [])]

    def do_With(self, s):
        items = []
        for item in s.items:
            made, kind = self.expr(item.context_expr)
            if kind.name not in CONTEXTS:
                self.program.method(item.context_expr, kind, "__enter__")
            name = None
            if item.optional_vars is not None:
                if not isinstance(item.optional_vars, ast.Name):
                    raise Refused(s, "with ... as something that is no name")
                name = self.assign(item.optional_vars, self.program.entered(item.context_expr, kind))
            items.append(ast.withitem(made, name))
        return [ast.With(items, self.block(s.body))]

    def do_FunctionDef(self, s):
        """A function of a fork: it takes nothing and sees the locals."""
        a = s.args
        if a.args or a.kwonlyargs:
            raise Refused(s, "a function inside of a function takes nothing")
        types, depth, returns = dict(self.types), self.depth, self.returns
        self.depth, self.returns = -1000, []
        body = self.block(s.body)
        gives = self.returns[0] if self.returns else NONE
        self.types, self.depth, self.returns = types, depth, returns
        name = f"_ts_closure_{s.name.strip('_')}"
        self.functions[s.name] = Closure(name, gives)
        return [self._def(s, name, ast.arguments([], [], None, [], [], None, []), body)]


def _of_length(xs: list, n: int) -> list:
    if len(xs) != n:
        raise RuntimeError(f"Provided list has {len(xs)} elements, expected {n}")
    return xs
