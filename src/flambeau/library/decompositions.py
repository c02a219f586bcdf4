"""``torch._decomp``: operators as Python over other operators, from their definitions, and those that programs register."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.operator import OpOverload, Packet, namespace

__all__ = ["core_aten_decompositions", "decomposition_table", "get_decompositions", "register_decomposition"]


class _Table(dict):
    """{overload: function} of what programs registered; another overload's is its definition. KeyError where it has none."""

    def __missing__(self, op: OpOverload) -> Callable:
        own = getattr(op, "decompose", None)
        if own is None:
            raise KeyError(op)
        return own


decomposition_table: dict[OpOverload, Callable] = _Table()
_tables: dict[str, dict[OpOverload, Callable]] = {"post_autograd": decomposition_table, "pre_autograd": {}, "meta": {}}


def _overloads(ops) -> list[OpOverload]:
    if isinstance(ops, OpOverload):
        return [ops]
    if isinstance(ops, Packet):
        return [getattr(ops, name) for name in ops.overloads()]
    return [o for op in ops for o in _overloads(op)]


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):  # noqa: A002
    """Decorator: the function is how ``aten_op`` (an overload, a packet, or a list of them) is decomposed. ValueError for an unknown
    ``type``, RuntimeError when the registry has one already."""
    if type not in _tables:
        raise ValueError(f"type must be one of {sorted(_tables)}, not {type!r}")
    table = _tables[type] if registry is None else registry

    def wrap(fn):
        for op in _overloads(aten_op):
            if op in table:
                raise RuntimeError(f"duplicate registrations for {op}")
            table[op] = fn
        return fn

    return wrap


def get_decompositions(aten_ops: Iterable, type="post_autograd") -> dict[OpOverload, Callable]:  # noqa: A002
    """{overload: function} for those of the overloads and packets that have a decomposition: a registered one, else the definition's."""
    if type not in _tables:
        raise ValueError(f"type must be one of {sorted(_tables)}, not {type!r}")
    found = {}
    for op in _overloads(list(aten_ops)):
        fn = _tables[type].get(op) or op.decompose
        if fn is not None:
            found[op] = fn
    return found


def core_aten_decompositions() -> dict[OpOverload, Callable]:
    """The decompositions of every explicit composite of aten, with what programs registered."""
    own = {
        op: op.decompose
        for packet in list(namespace("aten")._packets.values())
        for op in list(packet._overloads.values())
        if op.kind == "composite" and not op.definition.implicit
    }
    return {**own, **decomposition_table}


def remove_decompositions(decompositions: dict, aten_ops: Iterable) -> None:
    """Take the given overloads and packets out of a table."""
    for op in _overloads(list(aten_ops)):
        decompositions.pop(op, None)


# Operators that a compiler of small graphs wants in parts: activations, their derivatives, fills.
_POINTWISE = """
conj_physical elu elu_backward gelu_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh hardtanh_backward
leaky_relu leaky_relu_backward masked_fill sigmoid_backward silu_backward tanh_backward threshold_backward
"""


def __getattr__(name: str):
    """``default_decompositions``: a table of pointwise operators; ``decompositions``: the core table. Made when they are first asked for."""
    if name == "default_decompositions":
        aten = namespace("aten")
        made = get_decompositions([getattr(aten, op) for op in _POINTWISE.split()])
    elif name == "decompositions":
        made = core_aten_decompositions()
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made
    return made


def select_decomp_table() -> dict[OpOverload, Callable]:
    """The table that a backend with ATen's core operators takes."""
    return core_aten_decompositions()
