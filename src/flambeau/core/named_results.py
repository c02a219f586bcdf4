"""The named tuples that operators with several results give: ``torch.return_types``."""

from __future__ import annotations

import collections
import collections.abc
import functools

from .operator import OpOverload

__all__ = ["named_return_type", "return_type"]


@functools.cache
def return_type(op: OpOverload):
    """The named tuple class of an operator with several named results (``torch.return_types.max``), else None."""
    fields = [r.name for r in op._schema.returns]
    if len(fields) < 2 or not all(fields):
        return None
    name = op._opname
    return named_return_type(name, tuple(fields))


@functools.cache
def named_return_type(name, fields):
    """The class of that name and these fields, the same one each time. It is called with a sequence of its elements, as PyTorch's is, and
    with the elements themselves, as named tuples are."""
    base, n = collections.namedtuple(name, fields), len(fields)

    # NOTE: an element may be None; a dict it never is.
    def new(cls, sequence, dict={}, *more):  # noqa: B006
        if len(more) == n - 2 and not isinstance(dict, collections.abc.Mapping):
            return tuple.__new__(cls, (sequence, dict, *more))
        return tuple.__new__(cls, _sequence_of(f"torch.return_types.{name}", n, sequence, dict, *more))

    def reduce(self):
        return type(self), (tuple(self), {})

    def show(self):
        return f"torch.return_types.{name}(\n" + ",\n".join(f"{k}={v!r}" for k, v in zip(fields, self)) + ")"

    names = {
        "__slots__": (),
        "__new__": new,
        "__reduce__": reduce,
        "__repr__": show,
        "__module__": "flambeau.return_types",
    }
    counts = {"n_fields": n, "n_sequence_fields": n, "n_unnamed_fields": 0}
    return type(
        name, (base,), {**names, **counts, "__doc__": f"What the operator {name} returns: {', '.join(fields)}."}
    )


def _sequence_of(name: str, n: int, sequence, dict, *more) -> tuple:
    """The elements that the constructor of such a class is given: a sequence, and a dict of the fields beyond it, of which there are none."""
    if not isinstance(dict, collections.abc.Mapping) and not more:
        raise TypeError(f"{name}() takes a dict as second arg, if any")
    if more:
        raise TypeError(f"{name}() takes a {n}-sequence ({2 + len(more)} arguments given)")
    if not isinstance(sequence, collections.abc.Iterable):
        raise TypeError("constructor requires a sequence")
    elements = tuple(sequence)
    if len(elements) != n:
        raise TypeError(f"{name}() takes a {n}-sequence ({len(elements)}-sequence given)")
    return elements
