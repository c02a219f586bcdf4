"""What names of an archive mean: its classes and functions by qualified name, read from their files when they are first named, and their types."""

from __future__ import annotations

import ast
import collections
import enum
import linecache
from collections.abc import Callable

from ... import _C
from ...autograd.grad_mode import enable_grad, inference_mode, no_grad
from ...base.device import Device
from ...core.quantized import PackedWeight
from . import modules, packed
from .declared import Class, Method, literal
from .nodes import Refused
from .syntax import FileSource, parse_file
from .types import ANY, BOOL, COMPLEX, DEVICE, FLOAT, INT, NONE, STR, TENSOR, Type, from_node

__all__ = ["CONTEXTS", "Names", "refusal"]

_BUILTIN = frozenset(
    "Tensor int float bool str complex number NoneType Any Device Layout Generator Stream Storage QScheme List Dict Tuple Optional Union Future "
    "AnyTupleType AnyListType AnyEnumType AnyClassType Function Await RRef Dimname".split()
)
# Contexts that code enters, by the names of their classes.
CONTEXTS = {
    f"__torch__.torch.autograd.grad_mode.{name}": mode
    for name, mode in {"no_grad": no_grad, "enable_grad": enable_grad, "inference_mode": inference_mode}.items()
}


def refusal(where: str, error: Refused) -> Exception:
    """What ``torch.jit.load`` raises for code at a place of the archive."""
    return error.kind(f"torch.jit.load: {where}, line {error.line}: {error}")


class Names:
    """``read(path)`` gives the bytes of a file of the archive ``name``, None where there is none. ``waiting``: what has been named and isn't compiled
    yet."""

    def __init__(self, name: str, read: Callable[[str], bytes | None]):
        self.name, self.read = name, read
        self.files: dict[str, FileSource | None] = {}
        self.classes: dict[str, Class] = {}
        self.functions: dict[str, Method] = {}
        self.constants: tuple = ()
        self.waiting: list[Method] = []

    def _file(self, qualified: str) -> FileSource | None:
        """The file that has the name: ``__torch__.a.b.C`` is C of ``code/__torch__/a/b.py``."""
        path = f"code/{qualified.rpartition('.')[0].replace('.', '/')}.py"
        if path not in self.files:
            data = self.read(path)
            self.files[path] = None if data is None else parse_file(path, data)
            if data is not None:
                shown = self.shown_path(path)
                linecache.cache[shown] = (len(data), None, self.files[path].text.splitlines(True), shown)
        return self.files[path]

    def shown_path(self, path: str) -> str:
        """The path of a file of the archive that tracebacks show."""
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
            raise refusal(found.where(), error) from None
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
                self.waiting.append(made)
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
        if t.name in _BUILTIN or t.name in CONTEXTS:
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
            self.waiting.append(found)
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
        return NONE if kind.name in CONTEXTS else self.method(node, kind, "__enter__").gives

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
        if qualified in CONTEXTS:
            return CONTEXTS[qualified]
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
        if isinstance(value, PackedWeight):
            return Type(packed.class_of(value))
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
