"""Parsing the code of an archive, and refusing what isn't TorchScript: only the statements and expressions that PyTorch writes are taken."""

from __future__ import annotations

import ast
import re
import warnings

__all__ = ["ClassSource", "FileSource", "MethodSource", "parse_file"]

_PREFIX = "_ts_"  # of names that lowering makes
_STATEMENTS = (
    ast.Assign,
    ast.AnnAssign,
    ast.Expr,
    ast.If,
    ast.While,
    ast.For,
    ast.With,
    ast.Return,
    ast.Pass,
    ast.FunctionDef,
)
_EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Tuple, ast.Dict, ast.UnaryOp, ast.BinOp, ast.keyword,
    ast.expr_context, ast.USub, ast.Add, ast.Sub, ast.withitem, ast.arguments, ast.arg,
)  # fmt: skip
_BASES = (None, "Module", "NamedTuple", "Enum", "ModuleInterface", "Interface")
_DUNDERS = frozenset(
    f"__{n}__"
    for n in (
        "init len contains getitem setitem delitem enter exit str call hash eq ne lt le gt ge add sub mul truediv floordiv mod pow neg pos abs "
        "invert and or xor lshift rshift iadd isub imul bool int float getstate setstate iter next new forked_function reversed matmul radd rsub "
        "rmul rtruediv"
    ).split()
)


class MethodSource:
    """A function or method: its node, and its own lines as text."""

    def __init__(self, node: ast.FunctionDef, text: str):
        self.node, self.name, self.text = node, node.name, text


class ClassSource:
    """``base``: None, "Module", "NamedTuple", "Enum", "ModuleInterface" or "Interface"; ``attributes``: {name: annotation},
    ``values``: {name: node} of constants and members."""

    def __init__(self, name: str, base: str | None):
        self.name, self.base = name, base
        self.attributes: dict[str, ast.expr] = {}
        self.values: dict[str, ast.expr] = {}
        self.lists: dict[str, list[str]] = {}
        self.methods: dict[str, MethodSource] = {}


class FileSource:
    """Classes and functions of one file by name."""

    def __init__(self, path: str, text: str):
        self.path, self.text = path, text
        self.classes: dict[str, ClassSource] = {}
        self.functions: dict[str, MethodSource] = {}


class _Refused(Exception):
    def __init__(self, node: ast.AST, why: str):
        super().__init__(why)
        self.line = getattr(node, "lineno", 0)


def _name(node: ast.AST, name: str) -> None:
    if name.startswith(_PREFIX) or name.startswith("__") and name.endswith("__") and name not in _DUNDERS:
        raise _Refused(node, f"the name {name} isn't one of TorchScript's")


def _check(node: ast.AST) -> None:
    """_Refused for a node, or one below it, that PyTorch doesn't write."""
    for child in ast.walk(node):
        if not isinstance(child, _STATEMENTS + _EXPRESSIONS):
            raise _Refused(child if hasattr(child, "lineno") else node, f"{type(child).__name__} isn't TorchScript")
        if isinstance(child, ast.Name) and child.id != "__torch__":
            _name(child, child.id)
        elif isinstance(child, ast.Attribute) and child.attr.startswith(_PREFIX):
            raise _Refused(child, f"the name {child.attr} isn't one of TorchScript's")
        elif isinstance(child, ast.arg):
            _name(child, child.arg)
        elif isinstance(child, ast.keyword) and child.arg is None:
            raise _Refused(node, "** in a call isn't TorchScript")
        elif isinstance(child, ast.arguments) and (child.vararg or child.kwarg or child.posonlyargs):
            raise _Refused(node, "* in parameters isn't TorchScript")
        elif isinstance(child, ast.FunctionDef):
            _name(child, child.name)
            if child.decorator_list or getattr(child, "type_params", None):
                raise _Refused(child, "a decorator isn't TorchScript")
        elif isinstance(child, (ast.For, ast.While)) and child.orelse:
            raise _Refused(child, "else of a loop isn't TorchScript")
        elif isinstance(child, ast.Constant) and isinstance(child.value, bytes | type(Ellipsis)):
            raise _Refused(child, f"{child.value!r} isn't TorchScript")


def _text(lines: list[str], node: ast.FunctionDef) -> str:
    """The lines of a method, as ``.code`` shows them: at the margin, and ``self`` without its type. Parameters stand at four spaces everywhere."""
    first, body = node.lineno, node.body[0].lineno
    numbered = enumerate(lines[first - 1 : node.end_lineno], first)
    own = [line if first < at < body else line[node.col_offset :] for at, line in numbered]
    return re.sub(r"^(def \w+\()self: __torch__[\w.]*", r"\1self", "\n".join(own) + "\n")


def _class(node: ast.ClassDef, lines: list[str]) -> ClassSource:
    if node.decorator_list or node.keywords or len(node.bases) > 1 or getattr(node, "type_params", None):
        raise _Refused(node, f"class {node.name}: more than one base, or a decorator")
    base = node.bases[0] if node.bases else None
    if base is not None and not isinstance(base, ast.Name) or (base and base.id) not in _BASES:
        raise _Refused(node, f"class {node.name}: the base {ast.unparse(base)} isn't one of TorchScript's")
    out = ClassSource(node.name, base and base.id)
    for item in node.body:
        if not isinstance(item, ast.Assign):
            _check(item)
        if isinstance(item, ast.FunctionDef):
            out.methods[item.name] = MethodSource(item, _text(lines, item))
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            _declare(out, item, item.target.id, item.annotation, item.value)
        elif isinstance(item, ast.Assign) and len(item.targets) == 1:
            _assigned(out, item, item.targets[0])
        elif not isinstance(item, ast.Pass):
            raise _Refused(item, f"class {node.name}: {type(item).__name__} in a class isn't TorchScript")
    return out


def _declare(out: ClassSource, item: ast.stmt, name: str, annotation: ast.expr, value: ast.expr | None) -> None:
    final = (
        isinstance(annotation, ast.Subscript)
        and isinstance(annotation.value, ast.Name)
        and annotation.value.id == "Final"
    )
    if final:
        annotation = annotation.slice  # type: ignore[attr-defined]
    if name.startswith("__") and name.endswith("__"):
        raise _Refused(item, f"class {out.name}: the attribute {name} isn't TorchScript")
    if value is None:
        out.attributes[name] = annotation
    elif final:
        out.values[name] = value
    else:
        raise _Refused(item, f"class {out.name}: a value of {name}, which isn't Final")


def _assigned(out: ClassSource, item: ast.Assign, target: ast.expr) -> None:
    _check(item.value)
    lists = "__parameters__ __buffers__ __forward_hooks__ __forward_pre_hooks__".split()
    if isinstance(target, ast.Name) and target.id in lists and isinstance(item.value, ast.List):
        names = [e.value if isinstance(e, ast.Constant) and isinstance(e.value, str) else None for e in item.value.elts]
        if None in names:
            raise _Refused(item, f"class {out.name}: {target.id} must hold names")
        out.lists[target.id] = names
    elif (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id == "__annotations__"
        and isinstance(target.slice, ast.Constant)
        and isinstance(target.slice.value, str)
    ):
        if target.slice.value.startswith(_PREFIX):
            raise _Refused(item, f"class {out.name}: the attribute {target.slice.value} isn't TorchScript")
        _declare(out, item, target.slice.value, item.value, None)
    elif out.base == "Enum" and isinstance(target, ast.Name):
        out.values[target.id] = item.value
    else:
        raise _Refused(item, f"class {out.name}: {ast.unparse(target)} = ... in a class isn't TorchScript")


def parse_file(path: str, data: bytes) -> FileSource:
    """The classes and functions of a file of the archive. RuntimeError for text that isn't TorchScript, with file and line."""
    try:
        text = data.decode()
        # What the text says is checked here and not by the interpreter's warnings.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RuntimeError(
            f"torch.jit.load: {path}: the code can't be parsed ({type(error).__name__}: {error})"
        ) from None
    out, lines = FileSource(path, text), text.splitlines()
    try:
        for item in tree.body:
            if isinstance(item, ast.ClassDef):
                _name(item, item.name)
                out.classes[item.name] = _class(item, lines)
            elif isinstance(item, ast.FunctionDef):
                _check(item)
                out.functions[item.name] = MethodSource(item, _text(lines, item))
            elif not _is_version(item):
                raise _Refused(item, f"{type(item).__name__} outside of a class isn't TorchScript")
    except _Refused as error:
        raise RuntimeError(f"torch.jit.load: {path}, line {error.line}: {error}") from None
    return out


def _is_version(item: ast.stmt) -> bool:
    """``op_version_set = 1``, which files before PyTorch 1.6 begin with."""
    return (
        isinstance(item, ast.Assign)
        and isinstance(item.targets[0], ast.Name)
        and item.targets[0].id == "op_version_set"
    )
