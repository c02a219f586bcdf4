"""Questions about operators and their schemas that tools ask: ``torch._library.utils``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.operator import OpOverload
from ..core.schema import Schema, parse
from ..utils._python_dispatch import fill_defaults
from .registry import find

__all__ = [
    "fill_defaults",
    "has_kwarg_only_args",
    "has_kwarg_only_tensors",
    "is_builtin",
    "is_functional_schema",
    "is_tensor_like_type",
    "is_tensorlist_like_type",
    "lookup_op",
    "mutates_and_returns_first_arg",
    "parse_namespace",
    "zip_schema",
]


def lookup_op(qualname: str) -> OpOverload:
    """The operator for ``"ns::name"`` or ``"ns::name.overload"``."""
    return find(qualname)


def parse_namespace(qualname: str) -> tuple[str, str]:
    """``"ns::name"`` in two. ValueError for another form."""
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            f'Expected `qualname` to be of the form "namespace::name", but got {qualname}. '
            "The qualname passed to the torch.library APIs must consist of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def is_builtin(op: OpOverload) -> bool:
    """Whether the operator is one of PyTorch's own namespaces."""
    return op.namespace in {"aten", "prim", "prims"}


def _parsed(schema: Any) -> Schema:
    return parse(schema) if isinstance(schema, str) else schema


def is_functional_schema(schema: Any) -> bool:
    """Whether an operator of this schema (or its text) returns something, writes no argument and returns no view."""
    schema = _parsed(schema)
    return not (schema.is_mutable or schema.is_view) and len(schema.returns) > 0


def is_tensorlist_like_type(typ: Any) -> bool:
    """Whether a type of a schema is a list of tensors, optional or of optional ones."""
    return str(typ).replace("?", "").replace("Optional", "") in ("Tensor[]", "List[Tensor]")


def is_tensor_like_type(typ: Any) -> bool:
    """Whether a type of a schema is a tensor or an optional one."""
    return str(typ).removesuffix("?") == "Tensor"


def mutates_and_returns_first_arg(op: OpOverload) -> bool:
    """Whether the operator writes its first argument, and only it, and returns it: the in-place form of an operator."""
    schema = op._schema
    if not schema.arguments:
        return False
    first, *rest = schema.arguments
    if len(schema.returns) != 1 or not first.is_write or any(a.is_write for a in rest):
        return False
    returned = schema.returns[0].alias_info
    return returned is not None and returned.before_set == first.alias_info.before_set


def zip_schema(schema: Any, args: tuple, kwargs: dict) -> Iterator[tuple[Any, Any]]:
    """(argument of the schema, value) for each argument of a call. Arguments that are left to their defaults aren't among them."""
    for i, argument in enumerate(schema.arguments):
        if argument.kwarg_only:
            if argument.name in kwargs:
                yield argument, kwargs[argument.name]
        elif i < len(args):
            yield argument, args[i]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def has_kwarg_only_args(schema: Any) -> bool:
    """Whether some arguments are given by name only."""
    return any(a.kwarg_only for a in schema.arguments)


def has_kwarg_only_tensors(schema: Any) -> bool:
    """Whether some of the arguments that are given by name only are tensors."""
    return any(a.kwarg_only and str(a.type).startswith("Tensor") for a in schema.arguments)
