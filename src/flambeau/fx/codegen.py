"""A graph as the source of a Python function, and the globals that this source needs.

The text is PyTorch's for the same graph. ``PythonCode.globals`` binds what it names: ``torch``, and functions of other modules under their
path with underscores; ``PythonCode.imports`` are import lines that do the same. Values are dropped at their last use, so that memory is freed
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
import typing
from collections.abc import Callable
from typing import Any, Union

from .. import _C
from ..base.records import slotted
from ..base.symint import NUMBERS
from ..core.pickling import public_path
from .node import Node

__all__ = ["CodeGen", "PythonCode", "python_code"]

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


@slotted(frozen=False)
class PythonCode:
    """``src`` defines ``forward``; ``globals`` are the names it needs; ``imports`` are the lines that bind those which can be imported.

    ``executable`` is the same text, line for line, with operators bound to globals: ``torch.ops.aten.sin.default`` is
    four attribute lookups, more than a small operator itself takes.
    """

    src: str
    globals: dict[str, Any]
    executable: str
    imports: list[str]


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
        label = f"{module}_{name}" if module and name else name or type(f).__name__
        return self.bind(label.replace(".", "_"), f)

    def imports(self) -> list[str]:
        """The lines that bind what can be imported: modules, and what a module has under its own name."""
        lines = []
        for name, v in self.values.items():
            if name == "torch" and getattr(v, "__name__", "") == "flambeau":
                lines.append("import flambeau as torch")
            elif name in ("device", "inf", "nan"):
                lines.append(f"from flambeau import {name}")
            elif type(v).__name__ == "module" and v.__name__ == name:
                lines.append(f"import {name}")
            else:
                module, own = getattr(v, "__module__", None), getattr(v, "__qualname__", None)
                if module and own and module in sys.modules and getattr(sys.modules[module], own, None) is v:
                    lines.append(f"from {module} import {own} as {name}")
        return lines

    def literal(self, v: Any) -> str:
        """Source that evaluates to the constant ``v``."""
        t = type(v)
        if v is None or v is Ellipsis or t in (bool, int, str, bytes):
            return repr(v)
        if t is float:
            if math.isfinite(v):
                return repr(v)
            if v != v and math.copysign(1.0, v) < 0:
                return "float('-nan')"  # nan has a sign too
            self.root("nan" if v != v else "inf", math.nan if v != v else math.inf)
            return repr(v)
        if t is complex:
            # NOTE: read as an expression, the text of a complex number loses signs of zeros: -0j is the negative of 0j.
            return (
                repr(v) if v.imag and math.isfinite(v.real) and math.isfinite(v.imag) and v.real else f"complex('{v}')"
            )
        if t is range:
            return repr(v)
        if isinstance(v, enum.Enum):
            return f"{self.function(t)}.{v.name}" if v.name is not None else self.bind(t.__name__.lower(), v)
        if t.__name__ in ("Tensor", "Parameter"):
            return self.bind(t.__name__.lower(), v)
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
            and self.root("device", t)
        ):
            return text if text.startswith("device(") else f"device({str(v)!r})"
        if isinstance(v, type) or callable(v):
            return self.function(v)
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


class CodeGen:
    """How a graph becomes a function: its head, what it returns, what is done to inputs and results around it. A subclass changes parts.

    ``graph.set_codegen(MyCodeGen())`` installs one.
    """

    def __init__(self):
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line ``def forward(self, ...):``; ``free_vars`` are the parameters as they are written."""
        if len(free_vars) == 0 or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any, **_ignored) -> str:
        """The statement that returns; ``output_args`` prints as the code of what is returned."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders are given for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns for what the graph returns."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """(name, value) of what the code of this class reads."""
        return []


class _Code:
    """Prints as the text it holds: what :meth:`CodeGen.generate_output` is given."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def python_code(graph, root: str = "self", *, verbose: bool = False) -> PythonCode:
    """Print ``graph`` as ``def forward(self, ...)``. ``verbose`` adds shapes (from ``meta["val"]``) as annotations and the
    user's lines as comments.
    """
    codegen = graph._codegen
    names = {n.name for n in graph.nodes}
    names.update(n.target.lstrip("*") for n in graph.nodes if n.op == "placeholder")
    g = _Globals(names | {root})
    g.values.update(codegen.additional_globals())

    def arg(a) -> str:
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            inner = f"({', '.join(map(arg, a))}{',' if len(a) == 1 else ''})"
            if hasattr(a, "_fields"):
                return f"{g.function(type(a))}{inner}"
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

    def annotation(n: Node) -> str:
        if verbose and (text := _describe(n)):
            return f': "{text}"'
        return "" if n.type is None else f" : {_type_text(n.type, g)}"

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
    returns = ""

    def emit(text: str, fast: str | None = None) -> None:
        body.append((text, fast or text))

    last_stack = None
    for n in graph.nodes:
        if n.op == "placeholder":
            plain = n.target.lstrip("*")
            if not plain.isidentifier() or keyword.iskeyword(plain):
                plain = n.name
            stars = n.target[: len(n.target) - len(n.target.lstrip("*"))]
            params.append(f"{stars}{plain}{annotation(n)}" + (f" = {arg(n.args[0])}" if n.args else ""))
            if plain != n.name:
                emit(f"{n.name} = {plain}")
            continue
        if n.op == "output":
            if n.type is not None:
                returns = f" -> {_type_text(n.type, g)}"
            emit(codegen.generate_output(_Code(arg(n.args[0]))))
            continue
        if verbose:
            stack = n.meta.get("stack") or n.meta.get("stack_trace")
            if stack and stack != last_stack:
                last_stack = stack
                emit("")
                emit(f"# {_summary(stack)}")
            elif not stack and last_stack != "":
                last_stack = ""
                emit("")
                emit("# No stacktrace found for following nodes")
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
        if rhs.endswith("="):
            # `a += b` gives a another value, and the node is what a is then.
            emit(f"{rhs} {arg(n.args[1])}")
            rhs = n.args[0].name
        dead = [d.name for d in dying.get(n, [])]
        if not n.users:
            dead.append(n.name)
        end = f";  {' = '.join(dead)} = None" if dead else ""
        named = f"{n.name}{annotation(n)}"
        emit(f"{named} = {rhs}{end}", fast and f"{named} = {fast}{end}")

    if not body:
        emit("pass")
    if codegen._body_transformer is not None:
        lines = "".join(f"{line}\n" for line, _ in body)
        changed = "".join(codegen._body_transformer(lines.splitlines(True))).splitlines()
        body = [(line, line) for line in changed]
    while body and not body[0][0]:
        body.pop(0)
    head = codegen.gen_fn_def(params, returns)
    src, executable = ("\n".join(["", "", "", head, *(f"    {line[k]}" for line in body), "    "]) for k in (0, 1))
    return PythonCode(src, g.values | {name: op for op, name in bound.items()}, executable, g.imports())


def _summary(stack: Any) -> str:
    """The user's line of a stack, as one line."""
    if hasattr(stack, "lineno"):
        return f"File: {stack.filename}:{stack.lineno} in {stack.name}, code: {stack.line}"
    lines = [line.strip() for line in str(stack).strip().splitlines()]
    for at in range(len(lines) - 1, -1, -1):
        found = re.fullmatch(r'File "(.*)", line (\d+), in (.*)', lines[at])
        if found:
            code = lines[at + 1] if at + 1 < len(lines) else ""
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {code}"
    return lines[-1] if lines else ""


def _type_text(t: Any, g: _Globals) -> str:
    """An annotation as code: ``int``, ``torch.Tensor``, ``typing_List[torch.Tensor]``."""
    if t == ():
        return "()"
    origin = getattr(t, "__origin__", None)
    args = getattr(t, "__args__", None)
    if origin is not None and args and getattr(t, "__module__", None) == "typing" and origin is not Union:
        generic = getattr(typing, getattr(t, "_name", None) or "", origin)
        return f"{g.bind(f'typing_{generic._name}', generic)}[{','.join(_type_text(a, g) for a in args)}]"
    if isinstance(t, type) and origin is None:
        torch = sys.modules.get("flambeau")
        if torch is not None and getattr(torch, t.__name__, None) is t and g.root("torch", torch):
            return f"torch.{t.__name__}"
        return g.function(t)
    if isinstance(t, str):
        return repr(t)
    return g.bind(re.sub(r"\W+", "_", repr(t)).strip("_"), t)


def _call_function(n: Node, arg, call, g: _Globals) -> str:
    f, args = n.target, n.args
    try:
        magic, inplace = _MAGIC.get(f), _INPLACE_FN.get(f)
    except TypeError:  # an unhashable callable
        magic = inplace = None

    if magic is not None and not n.kwargs and len(args) == magic.count("{}"):
        # A constant needs parentheses where its sign would be taken for the operator's: (-2) ** x, -(-2).
        loose = magic.count("{}") == 1 or f is operator.pow
        parts = [arg(a) for a in args]
        return magic.format(
            *(f"({p})" if loose and not isinstance(a, Node) and p[:1] == "-" else p for a, p in zip(args, parts))
        )
    if inplace is not None and len(args) == 2 and isinstance(args[0], Node) and not n.kwargs:
        return f"{args[0].name} {inplace}"
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
    """``f32[3, 4]`` for a tensor, ``Sym(s0)`` for a number of the trace, else empty."""
    if hasattr(v, "dtype") and hasattr(v, "shape"):
        name = str(v.dtype).rpartition(".")[2]
        return f"{_SHORT.get(name, name)}[{', '.join(str(s) for s in v.shape)}]"
    return f"Sym({v})" if isinstance(v, NUMBERS) and not isinstance(v, (int, float, bool)) else ""


def _describe(n: Node) -> str:
    return describe_value(n.meta.get("val", n.meta.get("example_value")))
