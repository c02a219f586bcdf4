"""``torch.fx.experimental.symbolic_shapes``: the questions about numbers that libraries ask, over flambeau's SymInts."""

from __future__ import annotations

from ..base.symbolic_queries import free_symbols, has_static_value, hint_int, statically_known_true
from ..base.symint import SymBool, SymFloat, SymInt
from ..core.tensor import Tensor

py_sym_types = (SymInt, SymFloat, SymBool)


def free_unbacked_symbols(x) -> set:
    """The symbols of ``x`` whose values only data tells."""
    return {s for s in free_symbols(x) if str(s).startswith("u")}


def has_free_symbols(x) -> bool:
    """Whether a value depends on symbols."""
    return bool(free_symbols(x))


def has_free_unbacked_symbols(x) -> bool:
    """Whether a value depends on symbols that only data tell."""
    return bool(free_unbacked_symbols(x))


def has_symbolic_sizes_strides(x) -> bool:
    """Whether a tensor's sizes or strides depend on symbols."""
    return isinstance(x, Tensor) and any(isinstance(n, SymInt) for n in (*x.shape, *x.stride()))


def is_concrete_int(a) -> bool:
    """Whether an integer is known without a guard."""
    return isinstance(a, int) or has_static_value(a)


def is_concrete_float(a) -> bool:
    """Whether a number is known without a guard."""
    return isinstance(a, float) or has_static_value(a)


def is_concrete_bool(a) -> bool:
    """Whether a truth value is known without a guard."""
    return isinstance(a, bool) or has_static_value(a)


def is_nested_int(s) -> bool:
    """Whether ``s`` is the size of a ragged dimension."""
    return hasattr(s, "factor") and hasattr(s, "number")


def statically_known_false(x) -> bool:
    """Whether ``x`` is known not to hold, without a guard."""
    return statically_known_true(not x) if isinstance(x, bool) else statically_known_true(x.__sym_not__())


def guard_scalar(a):
    """The plain number that ``a`` is now; from then on it is fixed."""
    if isinstance(a, SymBool | bool):
        return bool(a)
    return int(a) if isinstance(a, SymInt | int) else float(a)


def guard_float(a) -> float:
    """The value of a number; of a symbolic one the example's, with a guard."""
    return float(a)


def guarding_hint_or_throw(a):
    """The example value of ``a``."""
    return hint_int(a)


def optimization_hint(a, fallback: int | None = None):
    """The value that a size has in this call, or ``fallback`` where it has none."""
    return hint_int(a, fallback)


def sym_and(x, *others):
    """``x and y and ...`` of truth values that may be symbolic, without asking them."""
    for y in others:
        x = x & y
    return x


def sym_or(x, *others):
    """Whether one of them holds, without a guard."""
    for y in others:
        x = x | y
    return x


def sym_eq(x, y):
    """Whether two numbers, or two sequences of them, are equal, as one truth value."""
    if isinstance(x, tuple | list):
        if len(x) != len(y):
            return False
        return sym_and(True, *(sym_eq(a, b) for a, b in zip(x, y, strict=True)))
    return x == y


def is_symbol_binding_fx_node(node):
    """The symbol that a placeholder brings in, or None."""
    val = node.meta.get("val")
    return val if node.op == "placeholder" and isinstance(val, SymInt) else None


def is_accessor_node(node) -> bool:
    """Whether a node reads sizes or strides of a tensor."""
    return node.op == "call_method" and node.target in ("size", "stride", "storage_offset", "item")
