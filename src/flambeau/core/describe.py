"""Signature and documentation of public functions, derived from the operators' schemas and kinds; loaded when they are asked for.

What a schema can't say, one sentence and an example, is the operator's entry in the manual (``ops/manual/``).
"""

from __future__ import annotations

import functools
import inspect
from inspect import Parameter

from .. import _C
from .bindings import Binder, Signature
from .declare import EXPOSED
from .named_results import return_type
from .operator import OpOverload, namespace

__all__ = ["describe", "overload_signature", "parameter_type"]

_TYPES = {
    "Tensor": "Tensor",
    "Scalar": "Number",
    "number": "Number",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "ScalarType": "dtype",
    "Device": "device",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Generator": "Generator",
    "Storage": "Storage",
}


def parameter_type(a, takes_numbers: bool = False) -> str:
    """The annotation of a schema's argument: ``"Tensor"``, ``"Sequence[int] | None"``."""
    text = _TYPES.get(a.type, "Any")
    if a.is_list:
        text = f"Sequence[{text} | None]" if a.elements_optional else f"Sequence[{text}]"
        if a.size is not None:
            text = f"{_TYPES.get(a.type, 'Any')} | {text}"
    elif a.type == "Tensor" and takes_numbers:
        text = "Tensor | Number"
    return text + (" | None" if a.optional else "")


def _result(op: OpOverload) -> str:
    returns = op._schema.returns
    named = return_type(op)
    if named is not None:
        return f"return_types.{named.__name__}"
    one = ["tuple[Tensor, ...]" if r.is_list else _TYPES.get(r.type, "Any") for r in returns]
    return one[0] if len(one) == 1 else f"tuple[{', '.join(one)}]" if one else "None"


def _default(a):
    value = a.default_value
    if a.is_list and isinstance(value, list):
        return value[0] if a.size is not None and len(value) == 1 else tuple(value)
    return value


def overload_signature(sig: Signature, first: str) -> inspect.Signature:
    """The signature of one overload as users call it. ``first``: what the schema's ``self`` is called."""
    parameters, seen = [], False
    for i, a in enumerate(sig.args):
        if a.is_out:
            continue
        takes_numbers = sig.tensors_take_numbers and not (sig.first_is_tensor and i == 0)
        kind = Parameter.KEYWORD_ONLY if a.kwarg_only else Parameter.POSITIONAL_OR_KEYWORD
        annotation = parameter_type(a, takes_numbers and not (first == "self" and i == 0))
        # What follows an argument with a default is optional in Python too; a few schemas of ATen's have it otherwise.
        default = _default(a) if a.has_default else None if seen and not a.kwarg_only else Parameter.empty
        seen |= a.has_default and not a.kwarg_only
        if i == sig.varargs:
            parameters.append(Parameter(a.name, Parameter.VAR_POSITIONAL, annotation="int | Sequence[int]"))
            continue
        name = first if a.name == "self" else a.name
        if not name.isidentifier() or name in ("from", "lambda"):
            name += "_"
        parameters.append(Parameter(name, kind, default=default, annotation=annotation))
    if sig.makes:
        parameters.append(Parameter("requires_grad", Parameter.KEYWORD_ONLY, default=False, annotation="bool"))
    if getattr(sig.op, "has_out", False) and sig.op.kind != "inplace":
        wanted = len(sig.op._schema.returns)
        annotation = "Tensor | None" if wanted == 1 else "Sequence[Tensor] | None"
        parameters.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    return inspect.Signature(parameters, return_annotation=_result(sig.op))


def _merged(signatures: list[inspect.Signature]) -> inspect.Signature:
    """One signature for several overloads: the longest where all others are the beginning of it, else what they have in common,
    ``*args``, and every other parameter by its keyword."""
    longest = max(signatures, key=lambda s: len(s.parameters))
    rows = [list(s.parameters.values()) for s in signatures]
    positional = [[p for p in row if p.kind is Parameter.POSITIONAL_OR_KEYWORD] for row in rows]
    most = [p for p in longest.parameters.values() if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
    fits = all(
        len(own) <= len(most)
        and all(p.name == q.name for p, q in zip(own, most))
        and all(p.name in longest.parameters for p in row)
        for own, row in zip(positional, rows)
    )
    results = {s.return_annotation for s in signatures}
    result = results.pop() if len(results) == 1 else "Any"
    if fits:
        needed = min(sum(p.default is Parameter.empty for p in own) for own in positional)
        parameters, optional = [], False
        for i, p in enumerate(longest.parameters.values()):
            annotations = {row.parameters[p.name].annotation for row in signatures if p.name in row.parameters}
            everywhere = all(p.name in s.parameters for s in signatures)
            if p.default is Parameter.empty and p.kind is not Parameter.VAR_POSITIONAL:
                optional |= i >= needed or not everywhere
                p = p.replace(default=None) if optional else p
            elif p.kind is Parameter.POSITIONAL_OR_KEYWORD:
                optional = True
            parameters.append(p.replace(annotation=_union(annotations)))
        return longest.replace(parameters=parameters, return_annotation=result)
    common = []
    for column in zip(*positional):
        if len({p.name for p in column}) > 1 or any(p.default is not Parameter.empty for p in column):
            break
        common.append(column[0].replace(annotation=_union({p.annotation for p in column})))
    return inspect.Signature([*common, *_others(rows, {p.name for p in common})], return_annotation=result)


def _others(rows: list[list[Parameter]], common: set[str]) -> list[Parameter]:
    """``*args``, and by keyword what not every overload takes at the same place."""
    found: dict[str, list[Parameter]] = {}
    variadic = Parameter("args", Parameter.VAR_POSITIONAL)
    for p in (p for row in rows for p in row if p.name not in common):
        if p.kind is Parameter.VAR_POSITIONAL:
            variadic = p
        else:
            found.setdefault(p.name, []).append(p)
    found.pop(variadic.name, None)
    found.update({name: found.pop(name) for name in ("out",) if name in found})  # last, as elsewhere
    named = [
        same[0].replace(
            kind=Parameter.KEYWORD_ONLY,
            default=next((p.default for p in same if p.default is not Parameter.empty), None),
            annotation=_union({p.annotation for p in same}),
        )
        for same in found.values()
    ]
    return [variadic, *named]


def _union(annotations) -> str:
    parts = dict.fromkeys(part for text in sorted(annotations) for part in text.split(" | "))
    none = parts.pop("None", 0) is None
    return " | ".join([*parts, *(["None"] if none else [])])


_ELEMENTWISE = "Shapes: the tensors are broadcast with one another; the result has the common shape."
_PROMOTED = {
    "default": "Dtype: the common dtype of the arguments (see result_type).",
    "float": "Dtype: the common dtype of the arguments; integers and truth values become the default dtype.",
    "keep": "Dtype: that of the first argument.",
}
_ACCUMULATED = {
    "same": "Dtype: that of the argument.",
    "sum": "Dtype: that of the argument; integers and truth values become int64.",
    "float": "Dtype: that of the argument, which has to be floating or complex unless dtype is given.",
    "bool": "Dtype: bool.",
}


def _facts(op: OpOverload) -> list[str]:
    """What the kind of an operator says of shapes, dtypes, memory and randomness."""
    made = op.definition
    if op.kind == "pointwise":
        lines = (
            [_ELEMENTWISE] if sum(a.is_tensor for a in op._schema.arguments) > 1 else ["Shape: that of the argument."]
        )
        if made.out != "same" and not callable(made.out):
            lines.append(f"Dtype: {str(made.out).removeprefix('torch.')}.")
        elif isinstance(made.promote, str):
            lines.append(_PROMOTED[made.promote])
    elif op.kind == "reduction":
        lines = [_ACCUMULATED[made.acc] if made.combine not in ("argmax", "argmin") else "Dtype: int64."]
        if made.dims:
            lines.insert(0, "Shape: without the dimensions that are reduced, or with size 1 there if keepdim.")
    elif op.kind == "view":
        lines = ["The result is a view: it shares its memory with the argument."]
    elif op.kind == "factory":
        lines = [
            "Makes a new tensor: of the default dtype and on the default device unless the arguments say otherwise."
        ]
    elif op.kind == "random":
        lines = ["Draws from the generator, which is torch.default_generator unless one is given."]
    else:
        lines = []
    if op.refuses:
        lines.append(f"RuntimeError for the dtypes {', '.join(sorted(op.refuses))}.")
    return lines


def _summary(opname: str):
    """The operator's sentences and example in the manual or at its definition. (None, None) where nobody has written them."""
    found = namespace("aten")._manual(opname)
    if found is not None:
        return found
    packet = namespace("aten")._packet(opname)
    for op in () if packet is None else packet._overloads.values():
        written = getattr(op.definition, "body", None) or getattr(op.definition, "fn", None)
        if written is not None and written.__doc__:
            return inspect.cleandoc(written.__doc__), None
    return None, None


def _text(name: str, opname: str, binder: Binder, signatures: list[inspect.Signature]) -> str:
    summary, example = _summary(opname)
    if summary is None and opname.endswith("_"):
        summary, example = _summary(opname[:-1])
        if summary is not None:
            summary = f":func:`{name[:-1]}` in place: the first argument is written and returned.\n\n{summary}"
            example = None
    parts = [summary] if summary else []
    if len(signatures) > 1:
        parts.append("\n".join(["Overloads:", *(f"    {name}{s}".replace("'", "") for s in signatures)]))
    else:
        shown = [(p.name, p) for p in signatures[0].parameters.values()]
        rows = [
            f"    {n}: {p.annotation}" + ("" if p.default is Parameter.empty else f", {p.default!r} unless given")
            for n, p in shown
        ]
        parts.append("\n".join(["Arguments:", *rows]))
    first = binder.signatures[0].op
    base = first.definition.functional if first.kind == "inplace" else first
    facts = _facts(base)
    if f"{opname}_" in EXPOSED["method"].values():
        facts.append(f"In place as the method {name}_.")
    facts.append(
        "TypeError for arguments that fit no overload." if len(signatures) > 1 else "TypeError for other arguments."
    )
    parts.append("\n".join(facts))
    if example:
        parts.append("Example:\n" + "\n".join(f"    {line}" for line in example.splitlines()))
    return "\n\n".join(parts)


@functools.lru_cache(64)
def describe(function: _C.Function) -> tuple[inspect.Signature | None, str | None]:
    """(signature, text) of a public function or method."""
    binder = function.impl
    if not isinstance(binder, Binder):
        try:
            return inspect.signature(binder), binder.__doc__
        except (TypeError, ValueError):
            return None, binder.__doc__
    is_method = binder.method
    signatures = [overload_signature(s, "self" if is_method else "input") for s in binder.signatures]
    if not signatures:
        return None, None
    signature = signatures[0] if len(signatures) == 1 else _merged(signatures)
    return signature, _text(binder.__name__, binder.name, binder, signatures)
