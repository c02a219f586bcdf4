"""Elements that stay as they are where others in their vector change: written back, not masked, on processors with AVX but not AVX-512.

Of ``a[i] = select(c, x, a[i])`` LLVM makes a masked store. With AVX-512 it takes as long as any other; AVX's (``vmaskmov``) is microcode: on Zen 3
2.2 against 0.6 ns for four float64, and what is read next of the same place waits for it. LLVM makes none where what was read is frozen.

Of ``if a[i] > c: a[i] = x`` LLVM's vectoriser makes a masked store itself. Where the same turns have read the whole vector, memory is there to be
read, and no other thread's turns touch it: it is read again, and written as a whole.
"""

from __future__ import annotations

import re

__all__ = ["blended"]

_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_NAME = r"%[\w.]+"
_OPERAND = rf"<\d+ x \w+> (?:({_NAME})|[^%,]*?(?:<[^>]*>)?)"  # a name, or a constant
_CHOICE = re.compile(
    rf"^ *({_NAME}) = select (?:\w+ )*<\d+ x i1> {_NAME}, {_OPERAND}, {_OPERAND}(?:, !.*)?$", re.MULTILINE
)
_STORE = re.compile(rf"^ *store <\d+ x \w+> ({_NAME}),", re.MULTILINE)
_LOAD = re.compile(rf"^( *)({_NAME}) = load (<\d+ x \w+>), (.*)$", re.MULTILINE)
_MASKED = re.compile(
    rf"^( *)(?:tail )?call void @llvm\.masked\.store\.[\w.]+\((<\d+ x \w+>) (.+), ptr align (\d+) ({_NAME}), (<\d+ x i1> {_NAME})\)(.*)$"
)
_READ = re.compile(rf" = load (<\d+ x \w+>), ptr ({_NAME}),")
_LABEL = re.compile(r"^[\w.]+:")


def blended(text: str) -> str:
    """The module's text with every vector written as a whole that is read from memory and written back in part."""
    if "@llvm.masked.store." in text:
        text = _FUNCTION.sub(lambda function: _whole(function[0]), text)
    return _FUNCTION.sub(lambda function: _frozen(function[0]), text) if " = select <" in text else text


def _whole(function: str) -> str:
    """The function with masked stores of vectors that the same block has read made stores of all elements."""
    read: set[tuple[str, ...]] = set()
    out = []
    for line in function.splitlines():
        if _LABEL.match(line):
            read.clear()
        if load := _READ.search(line):
            read.add(load.groups())
        store = _MASKED.match(line)
        if store and (store[2], store[5]) in read:
            indent, type, value, align, place, mask, notes = store.groups()
            name = f"%blended.{len(out)}"
            out.append(f"{indent}{name}.old = load {type}, ptr {place}, align {align}{notes}")
            line = f"{indent}{name} = select {mask}, {type} {value}, {type} {name}.old\n"
            line += f"{indent}store {type} {name}, ptr {place}, align {align}{notes}"
        out.append(line)
    return "\n".join(out)


def _frozen(function: str) -> str:
    stored = set(_STORE.findall(function))
    kept = {name for chosen, *names in _CHOICE.findall(function) if chosen in stored for name in names}

    def frozen(load: re.Match) -> str:
        indent, name, type, place = load.groups()
        if name not in kept:
            return load[0]
        return f"{indent}{name}.read = load {type}, {place}\n{indent}{name} = freeze {type} {name}.read"

    return _LOAD.sub(frozen, function) if kept else function
