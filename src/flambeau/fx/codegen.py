"""A graph as the source of a Python function, and the globals that this source needs.

The text is PyTorch's for the same graph. ``PythonCode.globals`` binds what it names: ``torch``, and functions of other modules under their
path with underscores; ``PythonCode.imports`` are import lines that do the same. Values are dropped at their last use, so that memory is freed
as in eager code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ..base.records import slotted
from ..base.symint import NUMBERS
from .node import Node
from .source_names import Globals, is_name, type_text

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


def _attr(root: str, target: str) -> str:
    out = root
    for part in target.split("."):
        out = f"{out}.{part}" if is_name(part) else f"getattr({out}, {part!r})"
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
    return _Printer(graph, root, verbose).printed()


class _Printer:
    """Writes the lines of one graph."""

    def __init__(self, graph, root: str, verbose: bool):
        self.graph, self.root, self.verbose = graph, root, verbose
        self.names = {n.name for n in graph.nodes}
        self.names.update(n.target.lstrip("*") for n in graph.nodes if n.op == "placeholder")
        self.globals = Globals(self.names | {root})
        self.globals.values.update(graph._codegen.additional_globals())
        self.dying = _last_uses(graph)
        self.params: list[str] = []
        self.returns = ""
        # A line, and the same with operators bound to globals.
        self.body: list[tuple[str, str]] = []
        self.bound: dict[Any, str] = {}
        self.last_stack: Any = None

    def printed(self) -> PythonCode:
        for n in self.graph.nodes:
            if n.op == "placeholder":
                self.placeholder(n)
            elif n.op == "output":
                self.output(n)
            else:
                self.origin(n)
                self.statement(n)
        body = self.transformed()
        head = self.graph._codegen.gen_fn_def(self.params, self.returns)
        src, executable = ("\n".join(["", "", "", head, *(f"    {line[k]}" for line in body), "    "]) for k in (0, 1))
        operators = {name: op for op, name in self.bound.items()}
        return PythonCode(src, self.globals.values | operators, executable, self.globals.imports())

    def transformed(self) -> list[tuple[str, str]]:
        """The body as the transformer of the graph's CodeGen leaves it, without empty lines in front."""
        if not self.body:
            self.emit("pass")
        body, transformer = self.body, self.graph._codegen._body_transformer
        if transformer is not None:
            lines = "".join(f"{line}\n" for line, _ in body)
            body = [(line, line) for line in "".join(transformer(lines.splitlines(True))).splitlines()]
        while body and not body[0][0]:
            body.pop(0)
        return body

    def emit(self, text: str, fast: str | None = None) -> None:
        self.body.append((text, fast or text))

    def arg(self, a) -> str:
        """The source of an argument."""
        if isinstance(a, Node):
            return a.name
        if isinstance(a, tuple):
            inner = f"({', '.join(map(self.arg, a))}{',' if len(a) == 1 else ''})"
            if hasattr(a, "_fields"):
                return f"{self.globals.function(type(a))}{inner}"
            return inner if type(a) is tuple else f"{self.globals.function(type(a))}({inner})"
        if isinstance(a, list):
            return f"[{', '.join(map(self.arg, a))}]"
        if isinstance(a, dict):
            return "{" + ", ".join(f"{self.arg(k)}: {self.arg(v)}" for k, v in a.items()) + "}"
        if isinstance(a, slice):
            return f"slice({self.arg(a.start)}, {self.arg(a.stop)}, {self.arg(a.step)})"
        return self.globals.literal(a)

    def arguments(self, args, kwargs) -> str:
        """What stands between the parentheses of a call."""
        parts = [self.arg(a) for a in args]
        star = {k: v for k, v in kwargs.items() if not is_name(k)}
        parts += [f"{k} = {self.arg(v)}" for k, v in kwargs.items() if k not in star]
        if star:
            parts.append(f"**{self.arg(star)}")
        return ", ".join(parts)

    def annotation(self, n: Node) -> str:
        if self.verbose and (text := _describe(n)):
            return f': "{text}"'
        return "" if n.type is None else f" : {type_text(n.type, self.globals)}"

    def placeholder(self, n: Node) -> None:
        plain = n.target.lstrip("*")
        stars = n.target[: len(n.target) - len(plain)]
        if not is_name(plain):
            plain = n.name
        default = f" = {self.arg(n.args[0])}" if n.args else ""
        self.params.append(f"{stars}{plain}{self.annotation(n)}{default}")
        if plain != n.name:
            self.emit(f"{n.name} = {plain}")

    def output(self, n: Node) -> None:
        if n.type is not None:
            self.returns = f" -> {type_text(n.type, self.globals)}"
        self.emit(self.graph._codegen.generate_output(_Code(self.arg(n.args[0]))))

    def origin(self, n: Node) -> None:
        """A comment with the user's line, where it is another one than that of the statement above."""
        if not self.verbose:
            return
        stack = n.meta.get("stack") or n.meta.get("stack_trace") or ""
        if stack == self.last_stack:
            return
        self.last_stack = stack
        self.emit("")
        self.emit(f"# {_summary(stack)}" if stack else "# No stacktrace found for following nodes")

    def statement(self, n: Node) -> None:
        rhs = self.value(n)
        fast = self.with_bound_operator(n, rhs)
        if rhs.endswith("="):
            # `a += b` gives `a` another value, and the node is what `a` is then.
            self.emit(f"{rhs} {self.arg(n.args[1])}")
            rhs = n.args[0].name
        dead = [d.name for d in self.dying.get(n, [])]
        if not n.users:
            dead.append(n.name)
        end = f";  {' = '.join(dead)} = None" if dead else ""
        named = f"{n.name}{self.annotation(n)}"
        self.emit(f"{named} = {rhs}{end}", fast and f"{named} = {fast}{end}")

    def value(self, n: Node) -> str:
        """The expression that a node stands for."""
        if n.op == "get_attr":
            return _attr(self.root, n.target)
        if n.op == "call_module":
            return f"{_attr(self.root, n.target)}({self.arguments(n.args, n.kwargs)})"
        if n.op == "call_method":
            receiver = self.arg(n.args[0])
            receiver = receiver if isinstance(n.args[0], Node) else f"({receiver})"
            return f"{receiver}.{n.target}({self.arguments(n.args[1:], n.kwargs)})"
        return _call_function(n, self.arg, self.arguments, self.globals)

    def with_bound_operator(self, n: Node, rhs: str) -> str | None:
        """``rhs`` with its operator as a global, where it calls one by its path."""
        callee = f"torch.ops.{n.target}"
        if n.op != "call_function" or not hasattr(n.target, "_schema") or not rhs.startswith(callee):
            return None
        if n.target not in self.bound:
            short = f"_op_{len(self.bound)}"
            self.bound[n.target] = short if short not in self.names else f"__{short}"
        return self.bound[n.target] + rhs[len(callee) :]


def _last_uses(graph) -> dict[Node, list[Node]]:
    """By node, the values that are used for the last time there."""
    dying: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for n in reversed(graph.nodes):
        for i in n._inputs:
            if i not in seen:
                seen.add(i)
                dying.setdefault(n, []).append(i)
    return dying


def _summary(stack: Any) -> str:
    """The user's line of a stack, as one line."""
    if hasattr(stack, "lineno"):
        return f"File: {stack.filename}:{stack.lineno} in {stack.name}, code: {stack.line}"
    lines = [line.strip() for line in str(stack).strip().splitlines()]
    for at in range(len(lines) - 1, -1, -1):
        found = re.fullmatch(r'File "(.*)", line (\d+), in (.*?)(?:, code:\s*(.*))?', lines[at])
        if found:
            code = found[4] or (lines[at + 1] if at + 1 < len(lines) else "")
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {code}"
    return lines[-1] if lines else ""


def _call_function(n: Node, arg, call, g: Globals) -> str:
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
