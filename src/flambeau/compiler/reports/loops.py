"""A kernel of the compiler as loops to read."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["loops_of"]

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and": "&", "or": "|",
}  # fmt: skip
CALLED = {"maximum": "max", "minimum": "min"}
LETTERS = "ijklmnopqrstuvwxyz"
MOST = 600  # characters of a line


class _Writer:
    def __init__(self, kernel: Any):
        self.renamed = kernel.renamed
        loops = [v for v in (*kernel.outer, *kernel.inner)]
        self.names = {v: LETTERS[i] if i < len(LETTERS) else f"i{i}" for i, v in enumerate(loops)}
        self.by_text = {f"i{v.id}": name for v, name in self.names.items()}
        self.internal = {n.buffer for n in kernel.nodes if n.internal}

    def index(self, e: Any) -> str:
        return re.sub(r"\bi\d+\b", lambda m: self.by_text.get(m.group(0), m.group(0)), str(e).replace("*", " * "))

    def buffer(self, name: str, index: Any) -> str:
        name = self.renamed.get(name, name)
        return name if name in self.internal else f"{name}[{self.index(index)}]"

    def value(self, v: Any, inside: bool = False) -> str:
        op, args = v.op, v.args
        if op == "load":
            return self.buffer(args[0], args[1])
        if op == "const":
            return f"{args[0]:g}" if isinstance(args[0], float) else str(args[0])
        if op == "index":
            return self.index(args[0])
        parts = [self.value(a, op in INFIX) if hasattr(a, "op") else str(a) for a in args]
        if op in INFIX and len(parts) == 2:
            text = f"{parts[0]} {INFIX[op]} {parts[1]}"
            return f"({text})" if inside else text
        if op == "neg":
            return f"-{self.value(args[0], True)}"
        if op == "where":
            parts = [self.value(a, True) for a in args[:3]]
            text = f"{parts[1]} if {parts[0]} else {parts[2]}"
            return f"({text})" if inside else text
        return f"{CALLED.get(op, op)}({', '.join(parts)})"

    def store(self, node: Any) -> str:
        target = self.buffer(node.buffer, node.index)
        value = self.value(node.value)
        sign = {"add": "+=", "mul": "*="}.get(node.combine or "", "=")
        if node.combine in (None, "assign", "add", "mul"):
            text = f"{target} {sign} {value}"
        else:
            text = f"{target} = {CALLED.get(node.combine, node.combine)}({target}, {value})"
        return text if len(text) <= MOST else f"{text[:MOST]} ..."


def loops_of(kernel: Any) -> str:
    """Python-like text: the loops, what is computed in each, sums as ``+=``."""
    w = _Writer(kernel)
    lines: list[str] = []
    depth = 0

    def loop(variables: Iterable[Any], at: int, parallel: bool) -> int:
        for v in variables:
            lines.append(f"{'    ' * at}for {w.names[v]} in {'parallel' if parallel else 'range'}({v.extent}):")
            at += 1
        return at

    depth = loop(kernel.outer, 0, not kernel.serial)
    for kind, what in kernel.items:
        if kind == "loop":
            at = loop(kernel.inner, depth, False)
            lines += [f"{'    ' * at}{w.store(n)}" for n in what]
        else:
            lines.append(f"{'    ' * depth}{w.store(what)}")
    return "\n".join(itertools.chain(lines))
