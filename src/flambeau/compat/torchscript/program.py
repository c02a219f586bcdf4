"""The classes and functions of one archive: found by qualified name, read from their files when they are first named, compiled once each."""

from __future__ import annotations

import ast
import collections
import enum
import itertools
import linecache
from collections.abc import Callable

from ... import _C
from ...autograd.grad_mode import enable_grad, inference_mode, no_grad
from ...base.device import Device
from ..script_classes import Error
from . import calls, expressions, lowering, modules
from .nodes import Refused
from .syntax import ClassSource, FileSource, MethodSource, parse_file
from .types import ANY, BOOL, COMPLEX, DEVICE, FLOAT, INT, NONE, STR, TENSOR, Type, from_node

__all__ = ["Class", "Method", "Program"]

_BUILTIN = frozenset(
    "Tensor int float bool str complex number NoneType Any Device Layout Generator Stream Storage QScheme List Dict Tuple Optional Union Future "
    "AnyTupleType AnyListType AnyEnumType AnyClassType Function Await RRef Dimname".split()
)
_COUNT = itertools.count()


class Method:
    """A method of a class, or a function (``owner`` None). ``python`` is the function once it is compiled."""

    def __init__(self, program: Program, source: MethodSource, owner: Class | None, path: str, qualified: str):
        self.name, self.node, self.text, self.owner, self.path, self.qualified = (
            source.name,
            source.node,
            source.text,
            owner,
            path,
            qualified,
        )
        self.python: Callable | None = None
        a = source.node.args
        params = a.args[1:] if owner is not None else a.args
        if owner is not None and (not a.args or a.args[0].arg != "self"):
            raise Refused(source.node, f"{qualified} is a method without self")
        if any(p.annotation is None for p in params) or a.kwonlyargs:
            raise Refused(source.node, f"{qualified} has a parameter without a type")
        self.takes = [(p.arg, program.type(p.annotation)) for p in params]
        self.gives = program.type(source.node.returns) if source.node.returns is not None else ANY
        self.defaults = {p.arg: literal(d) for p, d in zip(params[len(params) - len(a.defaults) :], a.defaults)}

    def where(self) -> str:
        owner = f"class {self.owner.name}, method " if self.owner is not None else "function "
        return f"{self.path}, {owner}{self.name}"


def literal(node: ast.expr):
    """The value of a constant of the code. Refused for another expression."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name) and node.id in expressions.INFINITE:
        return expressions.INFINITE[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -literal(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = literal(node.left), literal(node.right)
        return left + right if isinstance(node.op, ast.Add) else left - right
    if isinstance(node, ast.List | ast.Tuple):
        parts = [literal(e) for e in node.elts]
        return parts if isinstance(node, ast.List) else tuple(parts)
    if isinstance(node, ast.Dict) and None not in node.keys:
        return {literal(k): literal(v) for k, v in zip(node.keys, node.values)}
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("annotate", "unchecked_cast")
        and len(node.args) == 2
    ):
        return literal(node.args[1])
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.device" and len(node.args) == 1:
        return Device(literal(node.args[0]))
    raise Refused(node, f"{ast.unparse(node)} is no constant")


class Class:
    """A class of the archive. ``python`` is made with it; of a module it is a subclass of :class:`modules.ArchivedModule`."""

    def __init__(self, qualified: str, source: ClassSource, path: str):
        self.qualified, self.name, self.base, self.source, self.path = qualified, source.name, source.base, source, path
        self.attributes: dict[str, Type] = {}
        self.values: dict[str, object] = {}
        self.methods: dict[str, Method] = {}
        self.takes: list[tuple[str, Type]] = []
        self.defaults: dict = {}
        self.python: type | None = None

    def where(self) -> str:
        return f"{self.path}, class {self.name}"


class Program:
    """``read(record)`` gives the bytes of a file of the archive, None where there is none; ``version`` is the archive's."""

    def __init__(self, name: str, read: Callable[[str], bytes | None], version: int):
        self.name, self.read, self.version = f"{name}#{next(_COUNT)}", read, version
        self.files: dict[str, FileSource | None] = {}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Method] = {}
        self.constants: tuple = ()
        self.kept: dict[str, bytes] = {}
        self.space: dict = {"__builtins__": {}, "__name__": "__torch__"}
        self._held: dict[int, str] = {}
        self._waiting: list[Method] = []
        self.CONTEXTS = {
            f"__torch__.torch.autograd.grad_mode.{n}": mode
            for n, mode in {"no_grad": no_grad, "enable_grad": enable_grad, "inference_mode": inference_mode}.items()
        }

    # -- what names mean -----------------------------------------------------------------------------------------------
    def _file(self, qualified: str) -> FileSource | None:
        """The file that has the name: ``__torch__.a.b.C`` is C of ``code/__torch__/a/b.py``."""
        path = f"code/{qualified.rpartition('.')[0].replace('.', '/')}.py"
        if path not in self.files:
            data = self.read(path)
            self.files[path] = None if data is None else parse_file(path, data)
            if data is not None:
                shown = self._shown(path)
                linecache.cache[shown] = (len(data), None, self.files[path].text.splitlines(True), shown)
        return self.files[path]

    def _shown(self, path: str) -> str:
        return f"{self.name}/{path}"

    def find(self, qualified: str) -> Class | None:
        """The class, None where the archive has none of the name."""
        found = self.classes.get(qualified)
        if found is not None:
            return found
        file = self._file(qualified)
        source = file.classes.get(qualified.rpartition(".")[2]) if file is not None else None
        if source is None:
            return None
        found = self.classes[qualified] = Class(qualified, source, file.path)
        try:
            self._fill(found)
        except Refused as error:
            raise self.refusal(found.where(), error) from None
        return found

    def _fill(self, cls: Class) -> None:
        source = cls.source
        cls.values = {name: literal(v) for name, v in source.values.items()}
        if cls.base == "Enum":
            cls.python = enum.Enum(cls.name, cls.values, module="__torch__")
        cls.attributes = {name: self.type(node) for name, node in source.attributes.items()}
        for method in source.methods.values():
            made = cls.methods[method.name] = Method(self, method, cls, cls.path, f"{cls.qualified}.{method.name}")
            if cls.base in (None, "Module"):
                self._waiting.append(made)
        if cls.base == "NamedTuple":
            cls.takes = list(cls.attributes.items())
            try:
                cls.python = collections.namedtuple(cls.name, list(cls.attributes), module="__torch__")
            except ValueError as error:
                raise Refused(ast.Pass(lineno=0), str(error)) from None
        elif cls.base == "Module":
            if any(source.lists.get(n) for n in ("__forward_hooks__", "__forward_pre_hooks__")):
                raise Refused(ast.Pass(lineno=0), "scripted hooks aren't built", NotImplementedError)
            cls.python = modules.subclass(cls)
        elif cls.base is None:
            cls.python = type(cls.name, (modules.ArchivedObject,), {"_archived": cls, "__module__": "__torch__"})

    def type(self, node: ast.AST) -> Type:
        """The type that an annotation of the archive means."""
        try:
            found = from_node(node)
        except ValueError as error:
            raise Refused(node, str(error)) from None
        return self._known(node, found)

    def _known(self, node: ast.AST, t: Type) -> Type:
        if t.args:
            if t.name not in _BUILTIN:
                raise Refused(node, f"Unknown type name '{t.name}'")
            return Type(t.name, tuple(self._known(node, a) for a in t.args))
        if t.name in _BUILTIN or t.name in self.CONTEXTS:
            return t
        if not t.name.startswith("__torch__."):
            raise Refused(node, f"Unknown type name '{t.name}'")
        if t.name.startswith("__torch__.torch.classes."):
            return t
        cls = self.class_of(node, t.name)
        return Type(f"enum {t.name}") if cls.base == "Enum" else t

    def class_of(self, node: ast.AST, qualified: str) -> Class:
        """The class. Refused where there is none; NotImplementedError's for classes written in C++."""
        qualified = qualified.removeprefix("enum ")
        if qualified.startswith("__torch__.torch.classes."):
            raise Refused(node, f"{qualified} is a class of C++, which flambeau doesn't have", NotImplementedError)
        found = self.find(qualified)
        if found is None:
            raise Refused(node, f"Unknown type name '{qualified}'")
        return found

    def function(self, node: ast.AST, qualified: str) -> Method | None:
        """The function of the archive, None for the name of something else."""
        found = self.functions.get(qualified)
        if found is None:
            file = self._file(qualified)
            source = file.functions.get(qualified.rpartition(".")[2]) if file is not None else None
            if source is None:
                return None
            found = self.functions[qualified] = Method(self, source, None, file.path, qualified)
            self._waiting.append(found)
        return found

    def attribute(self, node: ast.AST, kind: Type, name: str) -> Type:
        """The declared type of an attribute of a value of this type."""
        if kind.name.startswith("enum ") and name in ("name", "value"):
            return STR if name == "name" else self.type_of(next(iter(self.class_of(node, kind.name).values.values())))
        if not kind.name.startswith("__torch__."):
            raise Refused(node, f"Tried to access nonexistent attribute or method '{name}' of type '{kind}'")
        cls = self.class_of(node, kind.name)
        if name in cls.attributes:
            return cls.attributes[name]
        if name in cls.values:
            return self.type_of(cls.values[name])
        raise Refused(node, f"Tried to access nonexistent attribute or method '{name}' of type '{kind}'")

    def method(self, node: ast.AST, kind: Type, name: str) -> Method:
        """The method of a value of this type."""
        cls = self.class_of(node, kind.name) if kind.name.startswith("__torch__.") else None
        if cls is None or name not in cls.methods:
            raise Refused(node, f"Tried to access nonexistent attribute or method '{name}' of type '{kind}'")
        return cls.methods[name]

    def entered(self, node: ast.AST, kind: Type) -> Type:
        """The type of the name behind ``as`` of a with statement."""
        return NONE if kind.name in self.CONTEXTS else self.method(node, kind, "__enter__").gives

    def elements(self, node: ast.AST, kind: Type) -> tuple[Type, ...]:
        """The types of the elements of a tuple."""
        if kind.name == "Tuple":
            return kind.args
        cls = self.class_of(node, kind.name) if kind.name.startswith("__torch__.") else None
        if cls is None or cls.base != "NamedTuple":
            raise Refused(node, f"{kind} is no tuple")
        return tuple(cls.attributes.values())

    def member(self, node: ast.AST, path: str):
        """The member of an enumeration."""
        owner, _, name = path.rpartition(".")
        cls = self.class_of(node, owner)
        if cls.base != "Enum" or name not in cls.values:
            raise Refused(node, f"{path} isn't a value")
        return cls.python[name]

    def maker(self, node: ast.AST, qualified: str) -> Callable:
        """What makes an object of the class without its ``__init__``."""
        if qualified in self.CONTEXTS:
            return self.CONTEXTS[qualified]
        cls = self.class_of(node, qualified)
        if cls.base is not None:
            raise Refused(node, f"{qualified} isn't a class whose objects code makes")
        return cls.python

    def constant(self, node: ast.AST, name: str):
        """``CONSTANTS.c0``."""
        at = name[1:]
        if not (name.startswith("c") and at.isdecimal() and int(at) < len(self.constants)):
            raise Refused(node, f"CONSTANTS has no {name}")
        return self.constants[int(at)]

    def type_of(self, value) -> Type:
        """The type of a value that is here."""
        if isinstance(value, _C.TensorBase):
            return TENSOR
        if value is None:
            return NONE
        if isinstance(value, enum.Enum):
            return Type(f"enum {next((q for q, c in self.classes.items() if c.python is type(value)), '')}")
        if isinstance(value, list):
            return Type("List", (self.type_of(value[0]) if value else ANY,))
        if isinstance(value, dict):
            key, item = next(iter(value.items()), (None, None))
            return Type("Dict", (self.type_of(key), self.type_of(item)) if value else (ANY, ANY))
        if isinstance(value, tuple):
            named = next((q for q, c in self.classes.items() if c.python is type(value)), None)
            return Type(named) if named is not None else Type("Tuple", tuple(map(self.type_of, value)))
        return {bool: BOOL, int: INT, float: FLOAT, str: STR, complex: COMPLEX, Device: DEVICE}.get(type(value), ANY)

    # -- compiling -----------------------------------------------------------------------------------------------------
    def hold(self, value, name: str) -> str:
        """The global name of a value that code uses."""
        found = self._held.get(id(value))
        if found is None:
            found = f"_ts_{''.join(c if c.isalnum() else '_' for c in name)}_{len(self._held)}"
            self._held[id(value)] = found
            self.space[found] = value
        return found

    def raw(self, name: str) -> str:
        """The attribute of the classes that is the method itself, without a look at its arguments."""
        return f"_ts_{name}"

    def name_of(self, method: Method) -> str:
        """The global name of a function of the archive."""
        return f"_ts_function_{method.qualified.replace('.', '_')}"

    def tester(self, kinds: tuple[Type, ...]) -> Callable:
        return lambda value: any(calls.holds(self, value, kind) for kind in kinds)

    def raising(self, method: Method) -> Callable:
        """What ``ops.prim.RaiseException`` does in this method."""
        head = (
            "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript, serialized code (most recent call last):\n"
            f'  File "{method.path}", in {method.name}\n'
        )

        def fail(message: str, kind: str | None = None):
            raise Error(f"{head}{kind or 'RuntimeError'}: {message}")

        return fail

    def missing(self, method: Method, space: str, name: str) -> Callable:
        """In the place of an operator that only PyTorch has."""
        text = f"{space}::{name} is an operator of PyTorch's that flambeau doesn't have ({method.where()} of a TorchScript archive)"

        def fail(*args, **kwargs):
            raise NotImplementedError(text)

        return fail

    def refusal(self, where: str, error: Refused) -> Exception:
        return error.kind(f"torch.jit.load: {where}, line {error.line}: {error}")

    def compile(self) -> None:
        """Compile what has been named and isn't yet, and what that names."""
        while self._waiting:
            method = self._waiting.pop()
            try:
                node = lowering.lower(method, self)
                code = compile(
                    ast.fix_missing_locations(ast.Module([node], [])),
                    self._shown(method.path),
                    "exec",
                    dont_inherit=True,
                )
            except Refused as error:
                raise self.refusal(method.where(), error) from None
            except (RecursionError, ValueError, SyntaxError, MemoryError) as error:
                raise RuntimeError(f"torch.jit.load: {method.where()}: the code can't be compiled ({error})") from None
            made: dict = {}
            exec(code, self.space, made)
            method.python = made[method.name]
            if method.owner is None:
                self.space[self.name_of(method)] = method.python
            else:
                modules.add_method(self, method)

    def keep(self, files: dict[str, bytes]) -> None:
        """Hold the files that a program of the same classes is written with."""
        self.kept = files
