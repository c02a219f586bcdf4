"""The schema of a Python function, from its annotations."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing

from ..base.device import Device
from ..base.dtypes import DType
from ..core.tensor import Tensor

__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "infer_schema"]

_SCALARS = {
    Tensor: "Tensor",
    int: "SymInt",
    float: "float",
    bool: "bool",
    str: "str",
    DType: "ScalarType",
    Device: "Device",
}
_UNIONS = {frozenset({int, float, bool}): "Scalar", frozenset({int, float}): "Scalar"}
_SEQUENCES = (list, collections.abc.Sequence, tuple)


_NUMBER = typing.Union[int, float, bool]  # noqa: UP007


def _supported() -> tuple[dict, dict]:
    """(type of a parameter -> its name in a schema, type of a result -> its name)."""
    parameters: dict = {}
    for t, in_list, in_optional_list in (
        (Tensor, True, True),
        (int, True, False),
        (float, True, False),
        (bool, True, False),
        (str, False, False),
        (_NUMBER, True, False),
        (DType, False, False),
        (Device, False, False),
    ):
        name = "Scalar" if t is _NUMBER else _SCALARS[t]
        for made, text in ((t, name), (typing.Optional[t], f"{name}?")):  # noqa: UP045
            parameters[made] = text
        for sequence in (typing.Sequence, typing.List) if in_list else ():  # noqa: UP006
            parameters[sequence[t]] = f"{name}[]"
            parameters[typing.Optional[sequence[t]]] = f"{name}[]?"  # noqa: UP045
            if in_optional_list:
                parameters[sequence[typing.Optional[t]]] = f"{name}?[]"  # noqa: UP045
    returns = {Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", int: "SymInt", float: "float", bool: "bool"}  # noqa: UP006
    return parameters, {**returns, _NUMBER: "Scalar"}


SUPPORTED_PARAM_TYPES, SUPPORTED_RETURN_TYPES = _supported()


def _type(t, where: str) -> str:
    if t in _SCALARS:
        return _SCALARS[t]
    origin, args = typing.get_origin(t), typing.get_args(t)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        if frozenset(rest) in _UNIONS:
            base = _UNIONS[frozenset(rest)]
        elif len(rest) == 1:
            base = _type(rest[0], where)
        else:
            base = None
        if base is not None:
            return base + ("?" if len(rest) < len(args) else "")
    if origin in _SEQUENCES and args and (origin is not tuple or (len(args) == 2 and args[1] is Ellipsis)):
        element = _type(args[0], where)
        if not element.endswith("]") and (not element.endswith("?") or element == "Tensor?"):
            return element + "[]"
    advice = " We do not support Tuple inputs in schema. Please use List instead." if origin is tuple else ""
    raise ValueError(
        f"infer_schema(func): {where} has unsupported type {t}.{advice} The valid types are Tensor, int, float, bool, str, torch.dtype, "
        "torch.device, number unions, and Optional and Sequence of those."
    )


def infer_schema(prototype_function, /, *, mutates_args=(), op_name: str | None = None) -> str:
    """``(Tensor x, SymInt n=1) -> Tensor`` of ``f(x: Tensor, n: int = 1) -> Tensor``.

    ``mutates_args``: names of arguments that are written, or "unknown" (every tensor may be). ValueError for what a schema can't say.
    """
    signature = inspect.signature(prototype_function)
    hints = typing.get_type_hints(prototype_function)
    parts, star = [], False
    unknown = mutates_args == "unknown"
    written = set() if unknown else set(mutates_args)
    for place, (name, p) in enumerate(signature.parameters.items()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise ValueError("infer_schema(func): We do not support positional-only args, varargs, or varkwargs.")
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        if name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {name} must have a type annotation. Got func with signature {signature}"
            )
        text = _type(hints[name], f"Parameter {name}")
        if text.startswith("Tensor") and (unknown or name in written):
            text = f"Tensor(a{place}!)" + text[len("Tensor") :]
        elif name in written:
            raise ValueError(
                f"infer_schema(func): Parameter {name} is in mutates_args but only Tensors or collections of Tensors can be mutated"
            )
        written.discard(name)
        default = ""
        if p.default is not p.empty:
            if p.default is not None and not isinstance(p.default, (bool, int, float, str)):
                raise ValueError(f"infer_schema(func): Parameter {name} has an unsupported default value {p.default!r}")
            default = f'="{p.default}"' if isinstance(p.default, str) else f"={p.default}"
        parts.append(f"{text} {name}{default}")
    if written:
        raise ValueError(
            f"infer_schema(func): {written} in mutates_args were not found in the custom op's signature. "
            "mutates_args should contain the names of all args that the custom op mutates, or just the string "
            '"unknown" if you don\'t know.'
        )
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns(hints.get('return', signature.return_annotation), signature)}"


def _returns(t, signature) -> str:
    if t is None or t is type(None):
        return "()"
    if t is signature.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    if typing.get_origin(t) is tuple and Ellipsis not in typing.get_args(t):
        return f"({', '.join(_type(a, 'Return') for a in typing.get_args(t))})"
    return _type(t, "Return")
