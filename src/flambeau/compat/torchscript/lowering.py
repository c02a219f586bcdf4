"""One method of an archive as a Python function: types are inferred along the statements, operators are chosen by them, and what is written calls
these directly, so ``torch.compile`` captures it like any function.

Sizes that a trace holds in tensors (``ops.prim.NumToTensor``) stay numbers while only arithmetic of whole numbers is done to them.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable

from . import resolve, rows, upgrades, values
from .types import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INT,
    NONE,
    NUMBER,
    SIZE,
    STR,
    TENSOR,
    Type,
    dotted,
    is_number,
    join,
    match,
)

__all__ = ["INFINITE", "Refused", "lower"]

_SIZES = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
}
_ROUNDED = {"floor": _SIZES["floor_divide"], "trunc": lambda a, b: a // b if (a < 0) == (b < 0) else -(-a // b)}
_CASTS: dict[str, tuple[Type, Callable]] = {
    "int": (INT, int),
    "float": (FLOAT, float),
    "bool": (BOOL, bool),
    "complex": (COMPLEX, complex),
    "str": (STR, values.shown),
}
INFINITE = {
    "inf": float("inf"),
    "nan": float("nan"),
    "infj": complex(0, float("inf")),
    "nanj": complex(0, float("nan")),
}


class Refused(Exception):
    """The code can't be run; ``line`` of its file."""

    def __init__(self, node: ast.AST, why: str, kind: type[Exception] = RuntimeError):
        super().__init__(why)
        self.line, self.kind = getattr(node, "lineno", 0), kind


def lower(method, program) -> ast.FunctionDef:
    """The function of a :class:`program.Method`, as a node whose global names are put into ``program.space``."""
    return _Function(method, program).lowered()


def _assigns(body: list[ast.stmt]) -> set[str]:
    """Names that the statements assign."""
    return {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


class _Function:
    def __init__(self, method, program):
        self.method, self.program = method, program
        self.types: dict[str, Type] = {}
        self.functions: dict[str, object] = {}  # locals that stand for functions, and closures
        self.depth = 0
        self.returns: list[Type] = []

    # -- writing -------------------------------------------------------------------------------------------------------
    def load(self, node: ast.AST, name: str) -> ast.expr:
        return ast.copy_location(ast.Name(name, ast.Load()), node)

    def held(self, node: ast.AST, value, name: str) -> ast.expr:
        """``value`` as a global of the function."""
        return self.load(node, self.program.hold(value, name))

    def constant(self, node: ast.AST, value) -> ast.expr:
        return ast.copy_location(ast.Constant(value), node)

    def call(self, node: ast.AST, fn: ast.expr, args: list, kwargs: dict | None = None) -> ast.expr:
        keywords = [ast.keyword(k, v) for k, v in (kwargs or {}).items()]
        return ast.copy_location(ast.Call(fn, args, keywords), node)

    def calling(self, node: ast.AST, fn: Callable, name: str, *args) -> ast.expr:
        return self.call(node, self.held(node, fn, name), list(args))

    # -- the function --------------------------------------------------------------------------------------------------
    def lowered(self) -> ast.FunctionDef:
        source, params = self.method.node, []
        if self.method.owner is not None:
            params.append(ast.arg("self"))
            self.types["self"] = Type(self.method.owner.qualified)
        for name, kind in self.method.takes:
            params.append(ast.arg(name))
            self.types[name] = kind
        arguments = ast.arguments([], params, None, [], [], None, [])
        body = self.block(source.body)
        return self._def(source, source.name, arguments, body)

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

    # -- statements ----------------------------------------------------------------------------------------------------
    def do_Pass(self, s):
        return [ast.Pass()]

    def do_Return(self, s):
        if s.value is None:
            self.returns.append(NONE)
            return [ast.Return(self.constant(s, None))]
        made, kind = self.value(s.value, self.method.gives if self.depth >= 0 else None)
        self.returns.append(kind)
        return [ast.Return(self.fitted(made, kind, self.method.gives) if self.depth >= 0 else made)]

    def do_Expr(self, s):
        return [ast.Expr(self.expr(s.value)[0])]

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
            names = [self.assign(e, kind) for e, (_, kind) in zip(target.elts, parts)]
            made: ast.expr = ast.copy_location(ast.Tuple([m for m, _ in parts], ast.Load()), s)
            if len(names) == 1:
                return [ast.Assign(names, parts[0][0])]
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
        before = dict(self.types), dict(self.functions)
        with self.inside():
            body = self.block(s.body)
            after = self.types
            self.types, self.functions = dict(before[0]), before[1]
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
                made = self.calling(s, rows.PRIM["NumToTensor"][0].fn, "tensor", self.load(s, name))
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
            if kind.name not in self.program.CONTEXTS:
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
        self.functions[s.name] = ("closure", name, gives)
        return [self._def(s, name, ast.arguments([], [], None, [], [], None, []), body)]

    # -- expressions ---------------------------------------------------------------------------------------------------
    def value(self, node: ast.expr, wanted: Type | None = None) -> tuple[ast.expr, Type]:
        """An expression that is never a size as a number."""
        made, kind = self.expr(node)
        if kind == SIZE:
            return self.calling(node, rows.PRIM["NumToTensor"][0].fn, "tensor", made), TENSOR
        return made, kind

    def condition(self, node: ast.expr) -> ast.expr:
        made, kind = self.expr(node)
        if kind == TENSOR:
            return self.calling(node, bool, "bool", made)
        if kind not in (BOOL, ANY) and not is_number(kind):
            raise Refused(node, f"Expected a boolean expression for condition but found {kind}")
        return made

    def number(self, node: ast.expr) -> ast.expr:
        made, kind = self.expr(node)
        if kind == TENSOR:
            return self.calling(node, int, "int", made)
        if kind not in (INT, BOOL, SIZE):
            raise Refused(node, f"range of a {kind}")
        return made

    def fitted(self, made: ast.expr, given: Type, wanted: Type | None) -> ast.expr:
        """The value as the declared type has it: TorchScript turns tensors into numbers by itself."""
        if given == TENSOR and wanted in (INT, FLOAT, NUMBER):
            fn = {INT: int, FLOAT: float, NUMBER: _item}[wanted]
            return self.calling(made, fn, wanted.name, made)
        return self.calling(made, float, "float", made) if given == INT and wanted == FLOAT else made

    def expr(self, node: ast.expr) -> tuple[ast.expr, Type]:
        handler = getattr(self, "of_" + type(node).__name__, None)
        if handler is None:
            raise Refused(node, f"{type(node).__name__} isn't TorchScript")
        return handler(node)

    def of_Constant(self, node):
        v = node.value
        kind = NONE if v is None else {bool: BOOL, int: INT, float: FLOAT, str: STR, complex: COMPLEX}.get(type(v))
        if kind is None:
            raise Refused(node, f"the constant {v!r}")
        return self.constant(node, v), kind

    def of_UnaryOp(self, node):
        made, kind = self.expr(node.operand)
        if not isinstance(node.op, ast.USub) or not isinstance(made, ast.Constant) or not is_number(kind):
            raise Refused(node, f"{ast.unparse(node)} isn't TorchScript")
        return self.constant(node, -made.value), kind

    def of_BinOp(self, node):
        (a, _), (b, kind) = self.expr(node.left), self.expr(node.right)
        if not (
            isinstance(a, ast.Constant)
            and isinstance(b, ast.Constant)
            and kind == COMPLEX
            and isinstance(node.op, ast.Add | ast.Sub)
        ):
            raise Refused(node, f"{ast.unparse(node)} isn't TorchScript")
        return self.constant(
            node, complex(a.value + b.value if isinstance(node.op, ast.Add) else a.value - b.value)
        ), COMPLEX

    def of_Name(self, node):
        if node.id in self.types:
            return self.load(node, node.id), self.types[node.id]
        if node.id in INFINITE:
            value = INFINITE[node.id]
            return self.constant(node, value), COMPLEX if isinstance(value, complex) else FLOAT
        raise Refused(node, f"undefined value {node.id}")

    def _sequence(self, node, wanted: Type | None = None):
        parts = [self.value(e) for e in node.elts]
        return [m for m, _ in parts], [k for _, k in parts]

    def of_List(self, node):
        made, kinds = self._sequence(node)
        of = kinds[0] if kinds else ANY
        for kind in kinds[1:]:
            of = join(of, kind)
        if of.name == "Union" and all(
            k in (INT, TENSOR) for k in of.args
        ):  # a list of sizes, of which some are tensors
            made = [self.fitted(m, k, INT) for m, k in zip(made, kinds)]
            of = INT
        return ast.copy_location(ast.List(made, ast.Load()), node), Type("List", (of,))

    def of_Tuple(self, node):
        made, kinds = self._sequence(node)
        return ast.copy_location(ast.Tuple(made, ast.Load()), node), Type("Tuple", tuple(kinds))

    def of_Dict(self, node):
        if None in node.keys:
            raise Refused(node, "** in a dict isn't TorchScript")
        keys, items = [self.value(k) for k in node.keys], [self.value(v) for v in node.values]
        kinds = []
        for parts in (keys, items):
            of = parts[0][1] if parts else ANY
            for _, kind in parts[1:]:
                of = join(of, kind)
            kinds.append(of)
        return ast.copy_location(ast.Dict([m for m, _ in keys], [m for m, _ in items]), node), Type(
            "Dict", tuple(kinds)
        )

    def of_Subscript(self, node):
        made, kind = self.value(node.value)
        at, place = self.value(node.slice)
        if kind.name == "List" and place == INT:
            gives = kind.args[0]
        elif kind.name == "Dict":
            gives = kind.args[1]
        elif kind == STR and place == INT:
            return self.calling(node, rows.character, "character", made, at), STR
        elif kind == ANY:
            gives = ANY
        else:
            kinds = self.program.elements(node, kind)
            if (
                not isinstance(at, ast.Constant)
                or type(at.value) is not int
                or not -len(kinds) <= at.value < len(kinds)
            ):
                raise Refused(node, f"{ast.unparse(node)}: an element of {kind}")
            gives = kinds[at.value]
        return ast.copy_location(ast.Subscript(made, at, ast.Load()), node), gives

    def of_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "CONSTANTS" and "CONSTANTS" not in self.types:
            value = self.program.constant(node, node.attr)
            return self.held(node, value, node.attr), self.program.type_of(value)
        path = dotted(node)
        if path is not None and path.startswith("__torch__."):
            member = self.program.member(node, path)
            return self.held(node, member, node.attr), self.program.type_of(member)
        made, kind = self.value(node.value)
        gives = self.program.attribute(node, kind, node.attr)
        return ast.copy_location(ast.Attribute(made, node.attr, ast.Load()), node), gives

    # -- calls ---------------------------------------------------------------------------------------------------------
    def function_of(self, node: ast.expr):
        """The function of the archive that the expression names, or a closure; None for values."""
        if isinstance(node, ast.Name):
            return None if node.id in self.types else self.functions.get(node.id)
        path = dotted(node)
        return self.program.function(node, path) if path is not None and path.startswith("__torch__.") else None

    def of_Call(self, node):
        fn = node.func
        if isinstance(fn, ast.Name):
            found = self.function_of(fn)
            if found is not None:
                return self._call_function(node, found)
            special = getattr(self, f"call_{fn.id}", None)
            if fn.id in _CASTS:
                return self._cast(node)
            if special is None and fn.id in rows.ROWS:
                return self._operator(node, "aten", fn.id)
            if special is None:
                raise Refused(node, f"undefined function {fn.id}")
            return special(node)
        if not isinstance(fn, ast.Attribute):
            raise Refused(node, f"a call of {ast.unparse(fn)}")
        path = dotted(fn)
        root = path.split(".")[0] if path is not None else ""
        if root == "torch" and root not in self.types and path.count(".") == 1:
            return self._operator(node, "aten", fn.attr)
        if root == "ops" and root not in self.types and path.count(".") == 2:
            return self._ops(node, path)
        if root == "__torch__":
            return self._global(node, path)
        made, kind = self.value(fn.value)
        return self._method(node, made, kind, fn.attr)

    def arguments(self, node, method) -> list[ast.expr]:
        """The arguments of a call of a function of the archive, all of them in its order."""
        given = dict(zip((name for name, _ in method.takes), node.args))
        if len(node.args) > len(method.takes):
            raise Refused(node, f"{method.name} takes {len(method.takes)} arguments, given {len(node.args)}")
        for k in node.keywords:
            if k.arg in given or k.arg not in dict(method.takes):
                raise Refused(node, f"{method.name}: the argument {k.arg}")
            given[k.arg] = k.value
        out = []
        for name, wanted in method.takes:
            if name in given:
                made, kind = self.value(given[name])
                out.append(self.fitted(made, kind, wanted))
            elif name in method.defaults:
                out.append(self.held(node, method.defaults[name], name))
            else:
                raise Refused(node, f"{method.name}() is missing value for argument '{name}'")
        return out

    def _call_function(self, node, found):
        if isinstance(found, tuple):
            return self.call(node, self.load(node, found[1]), []), found[2]
        name = self.program.name_of(found)
        return self.call(node, self.load(node, name), self.arguments(node, found)), found.gives

    def _global(self, node, path: str):
        found = self.program.function(node, path)
        if found is not None:
            return self._call_function(node, found)
        if path.endswith(".__new__"):
            owner = path.removesuffix(".__new__")
            made = self.program.maker(node, owner)
            return self.call(node, self.held(node, made, "new"), []), Type(owner)
        cls = self.program.class_of(node, path)
        if cls.base != "NamedTuple":
            raise Refused(node, f"a call of {path}")
        args = self.arguments(node, cls)
        return self.call(node, self.held(node, cls.python, cls.name), args), Type(path)

    def _method(self, node, made: ast.expr, kind: Type, name: str):
        if kind.name in self.program.CONTEXTS and name == "__init__":
            return self.constant(node, None), NONE
        method = self.program.method(node, kind, name)
        fn = ast.copy_location(ast.Attribute(made, self.program.raw(name), ast.Load()), node)
        return self.call(node, fn, self.arguments(node, method)), method.gives

    def _cast(self, node):
        if len(node.args) != 1:
            raise Refused(node, f"{ast.unparse(node)}")
        (arg,), name = node.args, node.func.id
        made, kind = self.expr(arg)
        gives, fn = _CASTS[name]
        if kind == SIZE and name == "int":
            return made, INT
        if kind == SIZE:
            return self.calling(node, fn, name, made), gives
        return self.calling(node, fn, name, made), gives

    def _typed(self, node) -> tuple[Type, ast.expr]:
        if len(node.args) != 2 or node.keywords:
            raise Refused(node, f"{ast.unparse(node)}: a type and a value")
        return self.program.type(node.args[0]), node.args[1]

    def call_annotate(self, node):
        kind, inner = self._typed(node)
        made, given = self.expr(inner)
        if given == SIZE and kind in (INT, NUMBER):
            return made, INT
        if given == SIZE:
            made, given = self.value(inner)
        return self.fitted(made, given, kind), kind

    def call_unchecked_cast(self, node):
        kind, inner = self._typed(node)
        return self.value(inner)[0], kind

    def call_uninitialized(self, node):
        if len(node.args) != 1:
            raise Refused(node, ast.unparse(node))
        return self.constant(node, None), self.program.type(node.args[0])

    def call_isinstance(self, node):
        if len(node.args) != 2:
            raise Refused(node, ast.unparse(node))
        of = node.args[1]
        kinds = tuple(map(self.program.type, of.elts if isinstance(of, ast.Tuple | ast.List) else [of]))
        made, given = self.value(node.args[0])
        if given != ANY and given.name not in ("Union", "Optional"):
            return self.constant(node, any(match(k, given, {}) for k in kinds)), BOOL
        return self.calling(node, self.program.tester(kinds), "isinstance", made), BOOL

    def call_getattr(self, node):
        if len(node.args) != 2 or not isinstance(node.args[1], ast.Constant) or not isinstance(node.args[1].value, str):
            raise Refused(node, f"{ast.unparse(node)}: getattr of a name")
        made, kind = self.value(node.args[0])
        gives = self.program.attribute(node, kind, node.args[1].value)
        return self.calling(node, getattr, "getattr", made, self.constant(node, node.args[1].value)), gives

    def call_print(self, node):
        parts = [self.value(a)[0] for a in node.args]
        return self.calling(node, _printed, "print", *parts), NONE

    def call_fork(self, node):
        found = self.function_of(node.args[0]) if len(node.args) == 1 else None
        if not isinstance(found, tuple):
            raise Refused(node, "a fork of something that is no function in this one")
        made, gives = self._call_function(node, found)
        return made, Type("Future", (gives,))

    def call_range(self, node):
        raise Refused(node, "range outside of a for statement")

    # -- operators -----------------------------------------------------------------------------------------------------
    def _ops(self, node, path: str):
        _, space, name = path.split(".")
        if space == "prim" and name == "RaiseException":
            parts = [self.value(a)[0] for a in node.args]
            return self.calling(node, self.program.raising(self.method), "raise", *parts), NONE
        if space == "prim" and name == "NumToTensor" and len(node.args) == 1 and not self.depth:
            made, kind = self.expr(node.args[0])
            if kind in (INT, SIZE):
                return made, SIZE
        return self._operator(node, space, name)

    def _small(self, node) -> tuple[ast.expr, Type]:
        """An operand that is a size: one already, or a whole number that the archive holds in a tensor."""
        made, kind = self.expr(node)
        if (
            kind == TENSOR
            and isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "CONSTANTS"
        ):
            held = self.program.constant(node, node.attr)
            if held.dim() == 0 and values.code_of(held.dtype) == 4:
                return self.constant(node, int(held)), SIZE
        return made, kind

    def _of_sizes(self, node, name: str):
        """An operator on sizes as arithmetic of numbers; None where it isn't that."""
        if self.depth or len(node.args) != 2 or name not in (*_SIZES, "div"):
            return None
        mode = node.keywords[0].value if len(node.keywords) == 1 and node.keywords[0].arg == "rounding_mode" else None
        fn = _SIZES.get(name) if not node.keywords else None
        if name == "div" and isinstance(mode, ast.Constant):
            fn = _ROUNDED.get(mode.value)
        if fn is None:
            return None
        (a, first), (b, second) = map(self._small, node.args)
        if first != SIZE or second not in (SIZE, INT) or isinstance(a, ast.Constant):
            return None
        return self.calling(node, fn, name, a, b), SIZE

    def _operator(self, node, space: str, name: str):
        if space == "aten" and name in ("format", "percentFormat"):
            parts = [self.value(a)[0] for a in node.args]
            return self.calling(node, rows.formatted if name == "format" else rows.percent, name, *parts), STR
        small = self._of_sizes(node, name) if space == "aten" else None
        if small is not None:
            return small
        args = [self.expr(a) for a in node.args]
        kwargs = {k.arg: self.expr(k.value) for k in node.keywords}
        space, name = upgrades.named(self.program.version, space, name, [k for _, k in args], kwargs)
        try:
            choice = self._chosen(space, name, args, kwargs)
        except resolve.UnknownOperator:
            raise Refused(
                node,
                f"Unknown builtin op: {space}::{name}.\nThis op may not exist or may not be currently supported in TorchScript.",
            ) from None
        except resolve.NoMatch as error:
            raise Refused(node, str(error)) from None
        except resolve.Unbuilt:
            return self.calling(node, self.program.missing(self.method, space, name), "missing"), ANY
        made = [self.converted(node, m, k, choice.convert.get(i)) for i, (m, k) in enumerate(args)]
        named = {n: self.converted(node, m, k, choice.convert.get(n)) for n, (m, k) in kwargs.items()}
        return self.call(node, self.held(node, choice.fn, name), made, named), choice.gives

    def _chosen(self, space, name, args, kwargs) -> resolve.Choice:
        if upgrades.held(space):
            return upgrades.choice(name)
        kinds, named = [k for _, k in args], {n: k for n, (_, k) in kwargs.items()}
        return resolve.choose(space, name, kinds, named)

    def converted(self, node, made: ast.expr, kind: Type, how: str | None) -> ast.expr:
        if how is None:
            return self.calling(node, rows.PRIM["NumToTensor"][0].fn, "tensor", made) if kind == SIZE else made
        if how == "tensor":
            return self.calling(node, rows.PRIM["NumToTensor"][0].fn, "tensor", made)
        if how == "number":
            return made
        if how.startswith("repeat"):
            return self.calling(node, _repeated, "repeated", made, self.constant(node, int(how.split()[1])))
        if how in ("dtype", "layout", "format"):
            fn = {"dtype": values.dtype_of, "layout": values.layout_of, "format": values.format_of}[how]
            if isinstance(made, ast.Constant):
                return self.held(node, fn(made.value), how)
            return self.calling(node, fn, how, made)
        fns: dict[str, Callable] = {"int": int, "float": float, "item": _item, "device": rows.ROWS["device"][0].fn}
        return self.calling(node, fns[how], how, made)


def _of_length(xs: list, n: int) -> list:
    if len(xs) != n:
        raise RuntimeError(f"Provided list has {len(xs)} elements, expected {n}")
    return xs


def _repeated(n, times: int) -> list:
    return n if isinstance(n, list) else [n] * times


def _item(x):
    return x.item()


def _printed(*values_) -> None:
    print(*map(values.shown, values_))
