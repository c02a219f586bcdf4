"""What functions do with nested tensors of the strided layout: elementwise ones, autograd's, and the parts that the other rules share."""

from __future__ import annotations

from collections.abc import Callable

from flambeau import _C
from flambeau.compiler.controls import assume_constant_result
from flambeau.core.function_kinds import FunctionRules, is_elementwise
from flambeau.core.function_kinds import name_of as public_name
from flambeau.core.operator import Packet, namespace

from ..around import add_rules, inner_of
from . import tensor as _tensor

__all__ = [
    "RULES",
    "buffer_as",
    "call",
    "call_operator",
    "components",
    "is_strided",
    "joined",
    "like",
    "rule",
]

aten = namespace("aten")
RULES = FunctionRules()
rule = RULES.rule


def is_strided(x) -> bool:
    return isinstance(x, _tensor.StridedNestedTensor)


def like(t, buffer):
    """The nested tensor with another buffer and the places of ``t``."""
    return _tensor.StridedNestedTensor(buffer, t._places)


def components(t) -> tuple:
    """The parts, views of the buffer."""
    if t.is_contiguous():
        pieces = aten.split_with_sizes(t._buffer, [p.numel for p in t._places]) if t._places else ()
        return tuple(x.view(p.size) for x, p in zip(pieces, t._places))
    return tuple(aten.as_strided(t._buffer, p.size, p.stride, p.offset) for p in t._places)


def joined(parts):
    """The contiguous nested tensor of parts of one dtype, with their history."""
    places, at = [], 0
    for x in parts:
        places.append(_tensor.Place(tuple(x.shape), _tensor.packed_strides(tuple(x.shape)), at))
        at += x.numel()
    return _tensor.StridedNestedTensor(aten.cat([x.reshape(-1) for x in parts]), places)


def each(t, function):
    """The nested tensor of ``function(part)``; that of none, where ``t`` has no part."""
    return joined([function(x) for x in components(t)]) if t._places else t


def same_sizes(a, b) -> bool:
    return [p.size for p in a._places] == [p.size for p in b._places]


def buffer_as(t, other):
    """The buffer of ``other``, laid out as ``t``. RuntimeError where it isn't a nested tensor of the same sizes."""
    if not is_strided(other) or not same_sizes(t, other):
        raise RuntimeError("expected a nested tensor of the strided layout with the same sizes")
    if other._places == t._places:
        return other._buffer
    out = aten.zeros_like(t._buffer, dtype=other.dtype)
    for x, y in zip(components(like(t, out)), components(other)):
        x.copy_(y)
    return out


# -- entry ---------------------------------------------------------------------------------------------------------------
def _missing(func) -> NotImplementedError:
    name = str(func) if isinstance(func, (_C.Operator, Packet)) else getattr(func, "__name__", str(func))
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the 'NestedTensorCPU' backend: nested tensors of the strided layout have no rule for it"
    )


def call(func, args, kwargs):
    """``func`` with nested tensors among its arguments, from ``__torch_function__``."""
    found = rule_of(func)
    if found is None:
        raise _missing(func)
    return found(func, *args, **kwargs)


def call_operator(op, args, kwargs):
    """An operator called directly, from ``__torch_dispatch__``."""
    found = rule_of(op)
    if found is None:
        raise _missing(op)
    if _C.tls("grad_enabled") and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in args):
        raise NotImplementedError(f"{op} of nested tensors that require grad: call the public function instead")
    return found(op, *args, **kwargs)


@assume_constant_result
def rule_of(func) -> Callable | None:
    """The rule of a public function, a method or an operator; None without one."""
    return RULES.of(func)


# -- elementwise -----------------------------------------------------------------------------------------------------------
@RULES.rule_of_kind(is_elementwise)
def elementwise(func, *args, **kwargs):
    """A function of one element of each argument. RuntimeError for nested tensors of other sizes, and for dense tensors of more than one element."""
    name = func.__name__
    nested = [x for x in (*args, *kwargs.values()) if is_strided(x)]
    t = nested[0]
    for x in (*args, *kwargs.values()):
        if not isinstance(x, _C.TensorBase) or is_strided(x):
            continue
        if x.is_nested:
            raise RuntimeError(f"{name}: nested tensors of the layouts strided and jagged don't go together")
        if x.dim():
            order = ("nested", "non-nested") if x is not args[0] else ("non-nested", "nested")
            raise RuntimeError(
                f"Expected both self and other to be nested, but got a {order[0]} self and {order[1]} other"
            )
    if not all(same_sizes(t, x) for x in nested[1:]):
        raise RuntimeError(f"{name.strip('_')} does not support broadcasting when given a NestedTensor")
    # NOTE: holes in the buffer are computed along; nobody reads them.
    whole = all(x._places == t._places for x in nested[1:]) and (t.is_contiguous() or _is_permuted(t))
    if whole:
        out = func(*map(inner_of, args), **{k: inner_of(v) for k, v in kwargs.items()})
        written = next((x for x in nested if out is x._buffer), None)
        return written if written is not None else like(t, out)
    if not t._places:
        return t
    rows = {id(x): components(x) for x in nested}
    made = []
    for k in range(len(t._places)):
        part = lambda x, k=k: rows[id(x)][k] if id(x) in rows else x  # noqa: E731
        made.append(func(*map(part, args), **{key: part(v) for key, v in kwargs.items()}))
    written = next((x for x in nested if all(m is y for m, y in zip(made, rows[id(x)]))), None)
    return written if written is not None else joined(made)


def _is_permuted(t) -> bool:
    """Whether each element of the buffer belongs to one part: the parts' sizes fill it, and none reads an element twice."""
    if t.numel() != t._buffer.numel():
        return False
    at = 0
    for p in t._places:
        order = sorted(range(len(p.size)), key=lambda d, p=p: p.stride[d], reverse=True)
        sizes, strides = tuple(p.size[d] for d in order), tuple(p.stride[d] for d in order)
        if p.offset != at or (p.numel and strides != _tensor.packed_strides(sizes)):
            return False
        at += p.numel
    return True


@rule("contiguous")
def contiguous(func, t, **kwargs):
    """The parts one behind the other; ``t`` itself where they are."""
    return t if t.is_contiguous() else each(t, lambda x: x.contiguous())


@rule("where")
def where(func, condition, input=None, other=None):
    if input is None:
        raise NotImplementedError("where of one nested tensor: nested tensors have no indices")
    return elementwise(func, condition, input, other)


# -- autograd and attributes -------------------------------------------------------------------------------------------------
add_rules(RULES)


@rule("is_same_size")
def is_same_size(func, t, other):
    return is_strided(t) and is_strided(other) and same_sizes(t, other)


@rule("data_ptr", "untyped_storage")
def of_buffer(func, t):
    return func(t._buffer)


@rule("__get__")
def attribute(func, t, *owner):
    """An attribute that the class doesn't answer itself is that of the buffer."""
    if public_name(getattr(func, "__self__", None)) in ("T", "H", "mH"):
        raise _missing(func)
    out = func(t._buffer)
    return like(t, out) if isinstance(out, _C.TensorBase) else out


@rule("numpy", "__array__", "tolist")
def refused(func, t, *args, **kwargs):
    raise RuntimeError(f".{func.__name__}() of a nested tensor: its parts differ in size; unbind() it first")
