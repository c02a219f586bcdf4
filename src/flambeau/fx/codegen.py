"""A graph as the source of a Python function, and the globals that this source needs.

The text runs as it stands wherever its globals can be imported; objects that have no importable name are bound in
``PythonCode.globals`` under a name derived from theirs. Values are dropped at their last use, so that memory is freed
as in eager code.
"""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import operator
import re
import sys
from dataclasses import dataclass
from typing import Any

from .. import _C
from ..base.symint import NUMBERS
from ..core.pickling import public_path
from .node import Node

__all__ = ["PythonCode", "python_code"]

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lshift": "<<", "rshift": ">>", "and_": "&", "or_": "|", "xor": "^",
    "eq": "==", "ne": "!=", "lt": "<", "gt": ">", "le": "<=", "ge": ">=",
}  # fmt: skip
_UNARY = {"neg": "-", "pos": "+", "invert": "~"}
_INPLACE = {
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "imatmul": "@=",
    "ilshift": "<<=", "irshift": ">>=", "iand": "&=", "ior": "|=", "ixor": "^=",
}  # fmt: skip
_MAGIC = {getattr(operator, k): f"{{}} {v} {{}}" for k, v in _BINARY.items()}
_MAGIC |= {getattr(operator, k): f"{v}{{}}" for k, v in _UNARY.items()}
_INPLACE_FN = {getattr(operator, k): v for k, v in _INPLACE.items()}


@dataclass
class PythonCode:
    """``src`` defines ``forward``; ``globals`` are the names it needs.

    ``executable`` is the same text, line for line, with operators bound to globals: ``torch.ops.aten.sin.default`` is
    four attribute lookups, more than a small operator itself takes.
    """

    src: str
    globals: dict[str, Any]
    executable: str


class _Globals:
    """Names for objects: an importable dotted name if there is one, else a fresh global."""

    def __init__(self, taken: set[str]):
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.taken = taken

    def bind(self, hint: str, obj: Any) -> str:
        known = self.names.get(id(obj))
        if known is not None:
            return known
        hint = re.sub(r"[^0-9a-zA-Z_]+", "_", hint).lstrip("0123456789") or "constant"
        name, n = hint, 0
        while name in self.taken or name in self.values or keyword.iskeyword(name) or hasattr(builtins, name):
            n += 1
            name = f"{hint}_{n}"
        self.values[name] = obj
        self.names[id(obj)] = name
        return name

    def root(self, name: str, module) -> str | None:
        """``name`` as a global meaning ``module``, unless the name is taken by something else."""
        if name in self.taken or self.values.get(name, module) is not module:
            return None
        self.values[name] = module
        return name

    def function(self, f: Any) -> str:
        """Source that evaluates to the callable ``f``."""
        known = self.names.get(id(f))
        if known is not None:
            return known
        torch = sys.modules.get("flambeau")
        if hasattr(f, "_schema") and torch is not None:
            if self.root("torch", torch):
                return f"torch.ops.{f}"
        name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
        module = getattr(f, "__module__", None)
        if isinstance(name, str) and name.replace(".", "_").isidentifier():
            if getattr(builtins, name, None) is f and name not in self.taken:
                return name
            short = name.rpartition(".")[2]
            if torch is not None:
                place = public_path(f) if isinstance(f, _C.Function) else None
                if place is not None and self.root("torch", torch):
                    return f"torch{place[0].removeprefix('flambeau')}.{place[1]}"
                for path in (name, f"nn.functional.{short}", f"Tensor.{short}", f"_C.{short}"):
                    if _lookup(torch, path) is f and self.root("torch", torch):
                        return f"torch.{path}"
            if module in ("_operator", "operator") and self.root("operator", operator):
                return f"operator.{name}"
            plain = bool(module) and all(map(str.isidentifier, module.split(".")))
            if plain and module != "__main__" and module in sys.modules:
                top = module.partition(".")[0]
                if _lookup(sys.modules[module], name) is f and _lookup(sys.modules.get(top), module.partition(".")[2]):
                    if top == "flambeau":
                        if self.root("torch", torch):
                            return f"torch.{module.partition('.')[2]}.{name}"
                    elif self.root(top, sys.modules[top]):
                        return f"{module}.{name}"
        return self.bind(f"{(module or '').replace('.', '_').strip('_')}_{name or type(f).__name__}".strip("_"), f)

    def literal(self, v: Any) -> str:
        """Source that evaluates to the constant ``v``."""
        t = type(v)
        if v is None or v is Ellipsis or t in (bool, int, str, bytes):
            return repr(v)
        if t is float:
            if math.isfinite(v):
                return repr(v)
            return f"float('{'-' if v != v and math.copysign(1.0, v) < 0 else ''}{v}')"  # nan has a sign too
        if t is complex:
            # NOTE: read as an expression, the text of a complex number loses signs of zeros: -0j is the negative of 0j.
            return (
                repr(v) if v.imag and math.isfinite(v.real) and math.isfinite(v.imag) and v.real else f"complex('{v}')"
            )
        if t is range:
            return repr(v)
        if isinstance(v, enum.Enum) or t.__name__ in ("Tensor", "Parameter"):
            return self.bind(t.__name__.lower(), v)
        if isinstance(v, type) or callable(v):
            return self.function(v)
        text = repr(v)
        torch = sys.modules.get("flambeau")
        if (
            torch is not None
            and re.fullmatch(r"torch(\.\w+)+", text)
            and _lookup(torch, text[6:]) is v
            and self.root("torch", torch)
        ):
            return text
        if (
            t.__name__.lower() == "device"
            and torch is not None
            and getattr(torch, "device", None) is t
            and self.root("torch", torch)
        ):
            return f"torch.{text}" if text.startswith("device(") else f"torch.device({str(v)!r})"
        return self.bind(t.__name__.lower(), v)


def _lookup(obj: Any, path: str) -> Any:
    # Looks only at what is already loaded: printing a graph must not import a lazily loaded subpackage.
    for part in path.split(".") if path else ():
        obj = vars(obj).get(part) if type(obj).__name__ == "module" and part in vars(obj) else getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def _attr(root: str, target: str) -> str:
    out = root
    for part in target.split("."):
        plain = part.isidentifier() and not keyword.iskeyword(part)
        out = f"{out}.{part}" if plain else f"getattr({out}, {part!r})"
    return out


def python_code(graph, root: str = "self", *, verbose: bool = False) -> PythonCode:
    """Print ``graph`` as ``def forward(self, ...)``. ``verbose`` adds shapes (from ``meta["val"]``) and the user's
    lines as comments.
    """
    names = {n.name for n in graph.nodes}
    g = _Globals(names | {root})

    def arg(a) -> str:
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            if hasattr(a, "_fields"):
                return f"{g.function(type(a))}({', '.join(map(arg, a))})"
            inner = f"({', '.join(map(arg, a))}{',' if len(a) == 1 else ''})"
            return inner if type(a) is tuple else f"{g.function(type(a))}({inner})"
        if isinstance(a, list):
            return f"[{', '.join(map(arg, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{arg(k)}: {arg(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({arg(a.start)}, {arg(a.stop)}, {arg(a.step)})"
        return g.literal(a)

    def call(args, kwargs) -> str:
        parts = [arg(a) for a in args]
        star = {k: v for k, v in kwargs.items() if not (k.isidentifier() and not keyword.iskeyword(k))}
        parts += [f"{k} = {arg(v)}" for k, v in kwargs.items() if k not in star]
        if star:
            parts.append(f"**{arg(star)}")
        return ", ".join(parts)

    # The node at which each value is used for the last time.
    dying: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for n in reversed(graph.nodes):
        for i in n._inputs:
            if i not in seen:
                seen.add(i)
                dying.setdefault(n, []).append(i)

    params: list[str] = []
    body: list[tuple[str, str]] = []  # a line, and the same with operators bound to globals
    bound: dict[Any, str] = {}

    def emit(text: str, fast: str | None = None) -> None:
        body.append((text, fast or text))

    last_stack = None
    for n in graph.nodes:
        note = f'  # "{_describe(n)}"' if verbose and _describe(n) else ""
        if n.op == "placeholder":
            name = n.target if n.target.startswith("*") else n.name
            params.append(name if not n.args else f"{name} = {arg(n.args[0])}")
            if name.startswith("*") and name.lstrip("*") != n.name:
                emit(f"{n.name} = {name.lstrip('*')}")
            elif note:
                emit(f"# {n.name}: {_describe(n)}")
            continue
        if verbose:
            stack = n.meta.get("stack") or n.meta.get("stack_trace")
            if stack and stack != last_stack:
                last_stack = stack
                if hasattr(stack, "lineno"):
                    stack = f"File: {stack.filename}:{stack.lineno} in {stack.name}, code: {stack.line}"
                for line in str(stack).strip().splitlines()[-2:]:
                    emit(f"# {line}")
        if n.op == "output":
            emit(f"return {arg(n.args[0])}")
            continue
        fast = None
        if n.op == "get_attr":
            rhs = _attr(root, n.target)
        elif n.op == "call_module":
            rhs = f"{_attr(root, n.target)}({call(n.args, n.kwargs)})"
        elif n.op == "call_method":
            receiver = arg(n.args[0])
            receiver = receiver if isinstance(n.args[0], Node) else f"({receiver})"
            rhs = f"{receiver}.{n.target}({call(n.args[1:], n.kwargs)})"
        else:
            rhs = _call_function(n, arg, call, g)
            if hasattr(n.target, "_schema"):
                callee = f"torch.ops.{n.target}"
                if rhs.startswith(callee):
                    if n.target not in bound:
                        short = f"_op_{len(bound)}"
                        bound[n.target] = short if short not in names else f"__{short}"
                    fast = bound[n.target] + rhs[len(callee) :]
        dead = [d.name for d in dying.get(n, []) if d.op != "placeholder" or not d.target.startswith("**")]
        if not n.users:
            dead.append(n.name)
        end = ""
        if dead:
            end = f";  {' = '.join(dead)} = None"
        emit(f"{n.name} = {rhs}{end}{note}", fast and f"{n.name} = {fast}{end}")

    if not body:
        emit("pass")
    header = [f"import {name}" for name, v in g.values.items() if type(v).__name__ == "module" and v.__name__ == name]
    torch = g.values.get("torch")
    if torch is not None and type(torch).__name__ == "module":
        header.append("import flambeau as torch")
    head = [*header, *[""] * bool(header), f"def forward({', '.join([root, *params])}):"]
    src, executable = ("\n".join([*head, *(f"    {line[k]}" for line in body)]) + "\n" for k in (0, 1))
    return PythonCode(src, g.values | {name: op for op, name in bound.items()}, executable)


def _call_function(n: Node, arg, call, g: _Globals) -> str:
    f, args = n.target, n.args
    try:
        magic, inplace = _MAGIC.get(f), _INPLACE_FN.get(f)
    except TypeError:  # an unhashable callable
        magic = inplace = None

    def operand(a) -> str:
        text = arg(a)
        return text if isinstance(a, Node) or text.isalnum() else f"({text})"

    if magic is not None and not n.kwargs and len(args) == magic.count("{}"):
        return magic.format(*map(operand, args))
    if inplace is not None and len(args) == 2 and isinstance(args[0], Node) and not n.kwargs:
        # `a += b` rebinds a as well; through the operator function the statement stays one expression.
        name = g.function(f)
        return f"{name}({arg(args[0])}, {arg(args[1])})"
    if (
        f is getattr
        and len(args) == 2
        and isinstance(args[1], str)
        and args[1].isidentifier()
        and isinstance(args[0], Node)
    ):
        return f"{args[0].name}.{args[1]}"
    if f is operator.getitem and len(args) == 2 and isinstance(args[0], Node):
        return f"{args[0].name}[{arg(args[1])}]"
    return f"{g.function(f)}({call(args, n.kwargs)})"


_SHORT = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32", "int16":
    "i16",
    "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
}  # fmt: skip


def describe_value(v: Any) -> str:
    """``f32[3, 4]`` for a tensor, ``Sym``-free text for numbers, a tuple of them for a sequence, empty if unknown."""
    if isinstance(v, (list, tuple)) and not hasattr(v, "dtype"):
        return f"({', '.join(describe_value(x) for x in v)})"
    if hasattr(v, "dtype") and hasattr(v, "shape"):
        name = str(v.dtype).rpartition(".")[2]
        return f"{_SHORT.get(name, name)}[{', '.join(str(s) for s in v.shape)}]"
    return "" if v is None else f"Sym({v})" if isinstance(v, NUMBERS) else type(v).__name__


def _describe(n: Node) -> str:
    return describe_value(n.meta.get("val", n.meta.get("example_value")))
