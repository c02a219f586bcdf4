"""Write the stubs (``*.pyi``) of names that exist only when the package runs, for type checkers and editors.

usage: stubs.py [--check]      --check writes nothing; the exit status is 1 where a file isn't what would be written

Functions and methods that are operators get their overloads from the schemas (core/describe.py), functions in Python the signature and the
annotations of their source, classes and constants an import from where they are defined. What has no annotation is Any.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import warnings
from pathlib import Path

import flambeau as torch
from flambeau.base.public import defined_in
from flambeau.core.bindings import Binder
from flambeau.core.describe import overload_signature

PACKAGE = Path(torch.__file__).parent
HEAD = '''"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false, reportOverlappingOverload=false
# pyright: reportPropertyTypeMismatch=false, reportInvalidTypeVarUse=false

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from flambeau.base.device import Device as _Device
from flambeau.base.dtypes import DType as _DType
from flambeau.base.memory_format import MemoryFormat as _MemoryFormat
from flambeau.base.shapes import Size as _Size
from flambeau.core.generator import Generator as _Generator
{imports}
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = {tensor}
'''
# Annotations as the stubs spell them: builtins have names of dtypes and of methods beside them.
WORDS = {
    "Tensor": "_Tensor",
    "Number": "_Number",
    "int": "_int",
    "float": "_float",
    "bool": "_bool",
    "str": "_str",
    "dtype": "_DType",
    "DType": "_DType",
    "device": "_Device | _str | _int",
    "Device": "_Device",
    "layout": "Any",
    "memory_format": "_MemoryFormat",
    "MemoryFormat": "_MemoryFormat",
    "Generator": "_Generator",
    "Size": "_Size",
    "Any": "Any",
    "None": "None",
    "object": "object",
    "Sequence": "Sequence",
    "Callable": "Callable",
    "Iterator": "Iterator",
    "tuple": "builtins.tuple",
    "list": "builtins.list",
    "dict": "builtins.dict",
    "type": "builtins.type",
    "set": "builtins.set",
    "ndarray": "np.ndarray",
}


@functools.cache
def annotated(text: str) -> str:
    """An annotation in the words of the stubs; Any where it has a name that they don't know."""
    text = text.strip("'\"")
    if text.startswith("return_types."):
        return f"_returns.{text.partition('.')[2]}"
    names = re.findall(r"[A-Za-z_][\w.]*", text)
    if not names or any(name not in WORDS for name in names):
        return "Any"
    return re.sub(r"[A-Za-z_]\w*", lambda m: WORDS[m[0]], text)


def shown_default(value) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, str)) else "..."


def parameters(signature: inspect.Signature) -> list[str]:
    """Parameters as source text."""
    parts, star = [], False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            star = True
        elif p.kind is p.KEYWORD_ONLY and not star:
            star = True
            parts.append("*")
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        text = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__", "Any")
        if p.annotation is p.empty and isinstance(p.default, bool):
            text = "bool"
        elif p.annotation is p.empty and p.name in ("input", "other", "tensor") and p.default is p.empty:
            text = "Tensor"
        kind = "" if p.name in ("self", "cls") and not parts else f": {annotated(text)}"
        # A parameter whose default is None takes more than its annotation may say.
        if p.default is None and kind and "None" not in kind and kind != ": Any":
            kind += " | None"
        parts.append(
            f"{prefix}{p.name}{kind}"
            + ("" if p.default is p.empty else f" = {shown_default(p.default)}" if kind else "=...")
        )
        if p.kind is p.POSITIONAL_ONLY:
            parts.append("/")
    slashes = [i for i, text in enumerate(parts) if text == "/"]
    return [text for i, text in enumerate(parts) if text != "/" or i == slashes[-1]]


def result(signature: inspect.Signature, otherwise: str) -> str:
    given = signature.return_annotation
    if given is signature.empty:
        return otherwise
    return annotated(
        given if isinstance(given, str) else "None" if given is None else getattr(given, "__name__", "Any")
    )


def definition(
    name: str, signature: inspect.Signature, otherwise: str = "Any", indent: str = "", over=False
) -> list[str]:
    head = [f"{indent}@overload"] if over else []
    return [*head, f"{indent}def {name}({', '.join(parameters(signature))}) -> {result(signature, otherwise)}: ..."]


def function(name: str, fn, indent: str = "", otherwise: str = "Any") -> list[str]:
    """The stub of a public function or method."""
    if isinstance(fn, torch._C.Function) and isinstance(fn.impl, Binder):
        first = "self" if indent else "input"
        texts: list[list[str]] = []
        for sig in fn.impl.signatures:
            text = definition(name, overload_signature(sig, first), "Any", indent)
            if text not in texts:
                texts.append(text)
        if not texts:
            return []
        return texts[0] if len(texts) == 1 else [line for text in texts for line in (f"{indent}@overload", *text)]
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        self = "self, " if indent else ""
        return [f"{indent}def {name}({self}*args: Any, **kwargs: Any) -> Any: ..."]
    return definition(name, signature, otherwise, indent)


@functools.cache
def definitions() -> dict[str, list[str]]:
    """{name of a class or function at the top of a module: modules}."""
    found: dict[str, list[str]] = {}
    for info in pkgutil.walk_packages([str(PACKAGE)], "flambeau."):
        path = PACKAGE / (info.name.removeprefix("flambeau.").replace(".", "/"))
        file = path / "__init__.py" if info.ispkg else path.with_suffix(".py")
        if not file.is_file() or "flambeau.examples" in info.name:
            continue
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                found.setdefault(node.name, []).append(info.name)
    return found


def home(value) -> tuple[str, str] | None:
    """(module, name) of the statement that defines a class or function; None where it is made some other way."""
    name = defined_in(value)[1] if inspect.isclass(value) else getattr(value, "__name__", None)
    for module in definitions().get(name, ()):
        if vars(importlib.import_module(module)).get(name) is value:
            return module, name
    return None


def origin(value) -> str | None:
    """The module that a class or function is defined in."""
    return defined_in(value)[0] if inspect.isclass(value) else getattr(value, "__module__", None)


def import_of(name: str, value) -> str | None:
    place = home(value)
    return None if place is None else f"from {place[0]} import {place[1]} as {name}"


def stub_of_names(module, names, otherwise: str = "Any") -> tuple[list[str], list[str]]:
    """(imports, definitions) of names of a module."""
    imports, lines = [], []
    for name in names:
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError):
            continue
        if inspect.ismodule(value):
            path = PACKAGE / value.__name__.removeprefix("flambeau.").replace(".", "/")
            real = value.__name__.startswith("flambeau.") and (path.is_dir() or path.with_suffix(".py").is_file())
            made = value.__name__.removeprefix("flambeau.") in MADE_MODULES
            if (real or made) and value.__name__.count(".") == 1:
                imports.append(f"from flambeau import {value.__name__.partition('.')[2]} as {name}")
            else:
                lines.append(f"{name}: Any")
        elif isinstance(value, torch._C.Function):
            lines += function(name, value, otherwise=otherwise)
        elif isinstance(value, torch.dtype):
            lines.append(f"{name}: _DType")
        elif isinstance(value, (bool, int, float, str)):
            lines.append(f"{name}: _{type(value).__name__}")
        elif isinstance(value, torch.memory_format):
            lines.append(f"{name}: _MemoryFormat")
        elif inspect.isclass(value) or inspect.isfunction(value):
            imported = import_of(name, value)
            if imported and not (inspect.isfunction(value) and module is torch.nn.functional):
                imports.append(imported)
            elif inspect.isfunction(value):
                lines += function(name, value, otherwise=otherwise)
            else:
                lines.append(f"{name}: Any")
        elif name == "default_generator":
            lines.append(f"{name}: _Generator")
        else:
            lines.append(f"{name}: Any")
    return imports, lines


MADE_MODULES = ("linalg", "special", "fft")
TENSOR_IMPORT = "from flambeau.core.tensor import Tensor as Tensor"


def written(imports, lines, tensor: str = "Tensor", tensor_import: str = TENSOR_IMPORT, returns: bool = True) -> str:
    rows = [tensor_import] if tensor_import else []
    if returns:
        rows.append("from flambeau import return_types as _returns")
    return (
        HEAD.format(imports="\n".join([*rows, *sorted(set(imports))]), tensor=tensor) + "\n" + "\n".join(lines) + "\n"
    )


def public(module) -> list[str]:
    return [
        n
        for n in dir(module)
        if not n.startswith("_") and n.isidentifier() and n not in ("annotations", "LAZY", "Tensor")
    ]


def root() -> str:
    private = [
        "_assert",
        "_C",
        "_dynamo",
        "_inductor",
        "_check",
        "_check_type",
        "_check_value",
        "_check_index",
        "_check_is_size",
    ]
    imports, lines = stub_of_names(torch, [n for n in public(torch) if n != "compile"])
    lines += ["from flambeau import _C as _C", *decorator("compile", torch.compile)]
    lines += [f"{name}: Any" for name in private if name != "_C"]
    lines += ["__version__: _str"]
    return written(imports, lines)


def decorator(name: str, fn) -> list[str]:
    """A function that returns what it is given, or such a function when it is given options alone."""
    signature = inspect.signature(fn)
    first, *options = signature.parameters.values()
    rest = ", ".join(parameters(signature.replace(parameters=options)))
    given = "Callable[[_Decorated], _Decorated]"
    return [
        '_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])',
        "@overload",
        f"def {name}({first.name}: _Decorated, {rest}) -> _Decorated: ...",
        "@overload",
        f"def {name}({first.name}: None = None, {rest}) -> {given}: ...",
    ]


BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
COMPARED = "lt le gt ge eq ne".split()
# What native code or a descriptor holds, which has no annotation.
ATTRIBUTES = {
    "device": "_Device",
    "dtype": "_DType",
    "grad": "_Tensor | None",
    "grad_fn": "Any",
    "is_leaf": "_bool",
    "ndim": "_int",
    "requires_grad": "_bool",
    "shape": "_Size",
    "data": "_Tensor",
    "itemsize": "_int",
    "nbytes": "_int",
    "output_nr": "_int",
    "retains_grad": "_bool",
    **dict.fromkeys(("H", "T", "mH", "mT", "imag", "real"), "_Tensor"),
}
SPECIAL = """\
    def __init__(self, data: Any = None, *sizes: Any, dtype: _DType | None = None, device: Any = None, requires_grad: _bool = False) -> None: ...
    def __bool__(self) -> _bool: ...
    def __int__(self) -> _int: ...
    def __float__(self) -> _float: ...
    def __complex__(self) -> builtins.complex: ...
    def __index__(self) -> _int: ...
    def __len__(self) -> _int: ...
    def __iter__(self) -> Iterator[_Tensor]: ...
    def __reversed__(self) -> _Tensor: ...
    def __contains__(self, element: Any) -> _bool: ...
    def __hash__(self) -> _int: ...
    def __getitem__(self, index: Any) -> _Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __neg__(self) -> _Tensor: ...
    def __abs__(self) -> _Tensor: ...
    def __invert__(self) -> _Tensor: ...
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray: ...
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __dlpack_device__(self) -> Any: ...
    def __deepcopy__(self, memo: Any) -> _Tensor: ...
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any: ...
    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any: ...
    @staticmethod
    def _make_subclass(cls: Any, data: _Tensor, require_grad: _bool = False, **kwargs: Any) -> Any: ...
    @staticmethod
    def _make_wrapper_subclass(cls: Any, size: Any, *args: Any, **kwargs: Any) -> Any: ..."""


def tensor() -> str:
    lines = ["class Tensor(TensorBase):", '    """A multi-dimensional array over NumPy memory."""', ""]
    for name in public(torch.Tensor):
        value = next(vars(k)[name] for k in torch.Tensor.__mro__ if name in vars(k))
        if name in ATTRIBUTES or isinstance(value, property):
            kind = ATTRIBUTES.get(name, "_bool" if name.startswith("is_") else "Any")
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
            if getattr(value, "fset", True) is not None and name not in (
                "shape",
                "ndim",
                "dtype",
                "device",
                "is_leaf",
                "grad_fn",
            ):
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
        elif callable(value):
            lines += function(name, value, "    ")
    private = [n for n in dir(torch.Tensor) if n.startswith("_") and not n.startswith("__") and f" {n}(" not in SPECIAL]
    lines += [f"    {name}: Any" for name in sorted({*private, "_backward_hooks"})]
    lines += SPECIAL.splitlines()
    for name in BINARY:
        for form in (f"__{name}__", f"__r{name}__", f"__i{name}__"):
            lines.append(f"    def {form}(self, other: Any) -> _Tensor: ...")
    lines += [f"    def __{name}__(self, other: Any) -> _Tensor: ..." for name in COMPARED]
    # What the package itself takes from the module.
    module = importlib.import_module("flambeau.core.tensor")
    own = [
        n for n, v in vars(module).items() if n != "Tensor" and module.__name__ in (defined_in(type(v))[0], origin(v))
    ]
    names = sorted(
        {*own, *getattr(module, "__all__", ()), "strided", "sparse_coo", "sparse_csr", "kind_of", "keeps_type"}
        - {"Tensor"}
    )
    lines += ["", *(f"{name}: Any" for name in names if hasattr(module, name) and name.isidentifier())]
    return written(["from flambeau._C import TensorBase"], lines, tensor_import="", tensor='"Tensor"')


def functional() -> str:
    F = torch.nn.functional
    several = re.compile("with_indices|max_pool|multi_head|has_torch|handle_torch|is_compiling")
    imports, lines = [], []
    for name in public(F):
        value = getattr(F, name)
        if inspect.isclass(value) or inspect.ismodule(value) or not callable(value):
            continue
        lines += function(name, value, otherwise="Any" if several.search(name) else "_Tensor")
    return written(imports, lines)


def layers() -> str:
    """torch.nn: a layer that a statement defines is imported from there, one that is made at run time has its signatures here."""
    nn = torch.nn
    imports, lines = (
        ["from flambeau.nn import functional as functional, init as init, modules as modules, utils as utils"],
        [],
    )
    imports.append("from flambeau.modules import parameter as parameter")
    imports.append("from flambeau.nn import attention as attention, parallel as parallel")
    for name in [*nn.__all__, "UninitializedParameter", "UninitializedBuffer", "DataParallel"]:
        value = getattr(nn, name)
        if inspect.ismodule(value):
            continue
        imported = import_of(name, value)
        if imported:
            imports.append(imported)
            continue
        base = next(b for b in value.__mro__[1:] if home(b))
        imports.append(import_of(base.__name__, base))
        lines += [f"class {name}({base.__name__}):"]
        lines += definition("__init__", inspect.signature(value.__init__), "None", "    ")
        lines += definition("forward", inspect.signature(value.forward), "Any", "    ")
    return written(imports, lines)


def made(place: str) -> str:
    module = importlib.import_module("flambeau.compat.operators").__dict__[place]
    imports, lines = stub_of_names(module, module.__all__)
    return written(imports, lines)


def return_types() -> str:
    """The named tuples that operators return."""
    seen: dict[str, tuple[str, ...]] = {}
    module = importlib.import_module("flambeau.return_types")
    for name in dir(module):
        value = getattr(module, name, None)
        fields = getattr(value, "_fields", None)
        if fields is not None:
            seen[name] = fields
    for where in (torch, torch.Tensor, torch.linalg, torch.nn.functional):
        for name in dir(where):
            fn = getattr(where, name, None)
            if isinstance(fn, torch._C.Function) and isinstance(fn.impl, Binder):
                for sig in fn.impl.signatures:
                    given = overload_signature(sig, "input").return_annotation
                    if given.startswith("return_types."):
                        seen[given.partition(".")[2]] = tuple(r.name for r in sig.op._schema.returns)
    lines = ["from typing import NamedTuple", ""]
    for name in sorted(seen):
        lines += [f"class {name}(NamedTuple):", *(f"    {field}: _Tensor" for field in seen[name]), ""]
    lines += ["def __getattr__(name: _str) -> Any: ..."]
    return written([], lines, returns=False)


def native(name: str) -> str:
    """A module of compiled code: its functions take what they take, its classes have their methods' names."""
    module = importlib.import_module(f"flambeau.{name}")
    lines = []
    for key in sorted(vars(module)):
        value = vars(module)[key]
        if key.startswith("__") or not key.isidentifier() or inspect.ismodule(value):
            continue
        if inspect.isclass(value):
            base = value.__base__
            derived = base is not None and vars(module).get(base.__name__) is base
            lines.append(f"class {key}({base.__name__}):" if derived else f"class {key}:")
            members = [
                m for m in sorted(vars(value)) if m.isidentifier() and (not m.startswith("__") or m == "__call__")
            ]
            for member in members:
                if inspect.isdatadescriptor(vars(value)[member]):
                    lines.append(f"    {member}: Any")
                else:
                    lines.append(f"    def {member}(self, *args: Any, **kwargs: Any) -> Any: ...")
            lines.append("    def __init__(self, *args: Any, **kwargs: Any) -> None: ...")
            if key != "TensorBase":  # what users see of it is all that Tensor has
                lines.append("    def __getattr__(self, name: str) -> Any: ...")
            lines += [
                "    def __enter__(self) -> Any: ...",
                "    def __exit__(self, *args: Any) -> None: ...",
            ] * hasattr(value, "__enter__")
        elif callable(value):
            lines.append(f"def {key}(*args: Any, **kwargs: Any) -> Any: ...")
        else:
            lines.append(f"{key}: {type(value).__name__ if type(value) in (int, float, str, bool, dict) else 'Any'}")
    lines.append("def __getattr__(name: str) -> Any: ...")
    return PLAIN_HEAD + "from typing import Any\n\n" + "\n".join(lines) + "\n"


PLAIN_HEAD = '"""Written by tools/stubs.py."""\n\n# ruff: noqa\n# mypy: ignore-errors\n\n'


def enumerations() -> str:
    """base/enums.py: the enumerations that C declares."""
    module = importlib.import_module("flambeau.base.enums")
    lines = ["import enum", ""]
    for name in module.__all__:
        lines += [f"class {name}(enum.IntEnum):", *(f"    {m.name} = {m.value}" for m in getattr(module, name)), ""]
    return PLAIN_HEAD + "\n".join(lines)


def kernels() -> str:
    """base/kernels.py: its functions, the enumerations, and a name for each kernel."""
    module = importlib.import_module("flambeau.base.kernels")
    enums = sorted(importlib.import_module("flambeau.base.enums").__all__)
    lines = [
        "from typing import Any",
        "",
        f"from flambeau.base.enums import {', '.join(f'{n} as {n}' for n in enums)}",
        "",
    ]
    own = [
        n
        for n in vars(module)
        if n in module.__all__
        or (not n.startswith("__") and getattr(vars(module)[n], "__module__", "") == module.__name__)
    ]
    for name in sorted(own):
        is_function = inspect.isroutine(vars(module)[name]) or hasattr(vars(module)[name], "cache_info")
        lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ..." if is_function else f"{name}: Any")
    lines.append("def __getattr__(name: str) -> Any: ...")
    return PLAIN_HEAD + "\n".join(lines) + "\n"


def every() -> dict[Path, str]:
    files = {
        "__init__": root,
        "core/tensor": tensor,
        "nn/__init__": layers,
        "nn/functional": functional,
        "return_types": return_types,
        "base/enums": enumerations,
        "base/kernels": kernels,
        "utils/_pytree": lambda: PLAIN_HEAD + "from flambeau.base.pytree import *\n",
    }
    made_files = {place: functools.partial(made, place) for place in MADE_MODULES}
    natives = {name: functools.partial(native, name) for name in ("_C", "_frame", "_runtime", "_exchange", "_device")}
    return {PACKAGE / f"{name}.pyi": make() for name, make in {**files, **made_files, **natives}.items()}


def formatted(text: str) -> str:
    command = ["ruff", "format", "-q", "--stdin-filename", "stub.pyi", "-"]
    root = Path(__file__).resolve().parents[1]  # whose settings hold
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=root).stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file isn't up to date")
    check = parser.parse_args().check
    warnings.simplefilter("ignore")
    stale = 0
    for path, text in every().items():
        text = formatted(text)
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        print(f"{'stale' if check else 'written'}: {path.relative_to(PACKAGE)}")
        if not check:
            path.write_text(text)
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main())
