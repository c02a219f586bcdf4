"""What functions do with nested tensors. A rule is registered for the name of the public function and computes with the values.

Elementwise functions have one rule, told from the definitions of their operators. Functions written in Python (``nn.functional``) run their own
body, which calls functions that have rules.
"""

from __future__ import annotations

from collections.abc import Callable

from flambeau import _C
from flambeau.compiler.controls import assume_constant_result
from flambeau.core.function_kinds import FunctionRules, is_elementwise
from flambeau.core.operator import Packet, namespace

from . import tensor as _tensor
from .around import add_rules, wrapped
from .sizes import RAGGED_SIZES, Extremes

__all__ = ["RULES", "call", "call_operator", "extremes", "like", "matching", "rule"]

aten = namespace("aten")
# ``func`` of a rule works on dense tensors.
RULES = FunctionRules()
rule = RULES.rule


def is_nested(x) -> bool:
    return isinstance(x, _tensor.NestedTensor)


def like(t, values, ragged_idx: int | None = None):
    """The nested tensor with other values and the sequences of ``t``."""
    out = _tensor.NestedTensor(
        values, t._offsets, lengths=t._lengths, _ragged_idx=t._ragged_idx if ragged_idx is None else ragged_idx
    )
    out._extremes = t._extremes
    return out


def same_sequences(a, b) -> bool:
    """Whether two nested tensors are known to have the same lengths, in the same dimension."""
    if a._ragged_idx != b._ragged_idx:
        return False
    return a._offsets is b._offsets and a._lengths is b._lengths or _said_to_be_one(a, b)


def _said_to_be_one(a, b) -> bool:
    """Whether a program noted one ragged size for copies of offsets, or of lengths."""
    if (a._lengths is None) != (b._lengths is None):
        return False
    of, other = (a._offsets, b._offsets) if a._lengths is None else (a._lengths, b._lengths)
    size = RAGGED_SIZES.get(of)
    return size is not None and size == RAGGED_SIZES.get(other) and bool(aten.equal(a._offsets, b._offsets))


def matching(t, other):
    """``other``. RuntimeError where it isn't a nested tensor with the sequences of ``t``."""
    if not is_nested(other) or not same_sequences(t, other):
        raise RuntimeError(f"expected a nested tensor of shape {_sizes(t)}, got {_sizes(other)}")
    return other


def _sizes(x) -> str:
    return f"({', '.join(map(str, x.shape))})" if isinstance(x, _C.TensorBase) else type(x).__name__


def lengths_of(t):
    """The length of each sequence: (B,)."""
    return t._offsets.diff() if t._lengths is None else t._lengths


def extremes(t) -> Extremes:
    if t._extremes is None:
        lengths = lengths_of(t)
        t._extremes = Extremes(int(lengths.min()), int(lengths.max())) if len(lengths) else Extremes(0, 0)
    return t._extremes


def inner(name: str, t, dim: int) -> int:
    """The dimension of the values that is ``dim`` of ``t``. RuntimeError for the batch and the ragged dimension."""
    d = wrapped(t, dim)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == t._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    return d - 1


# -- entry ---------------------------------------------------------------------------------------------------------------
def call(func, args, kwargs):
    """``func`` with nested tensors among its arguments, from ``__torch_function__``."""
    found = rule_of(func)
    if found is None:
        name = str(func) if isinstance(func, (_C.Operator, Packet)) else getattr(func, "__name__", str(func))
        raise NotImplementedError(f"{name}: nested tensors of the jagged layout have no rule for it")
    return found(func, *args, **kwargs)


def call_operator(op, args, kwargs):
    """An operator called directly, from ``__torch_dispatch__``."""
    found = rule_of(op)
    if found is None:
        raise NotImplementedError(f"{op}: nested tensors of the jagged layout have no rule for it")
    if _C.tls("grad_enabled") and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in args):
        raise NotImplementedError(f"{op} of nested tensors that require grad: call the public function instead")
    return found(op, *args, **kwargs)


@assume_constant_result
def rule_of(func) -> Callable | None:
    """The rule of a public function, a method or an operator; None without one."""
    return RULES.of(func)


# -- elementwise -----------------------------------------------------------------------------------------------------------
def rows_of(t):
    """Which sequence each row of the values belongs to: (N,). Rows of holes belong to the sequence before."""
    at = t._ragged_idx - 1
    where = _arange(t._values.shape[at], t)
    return aten.searchsorted(t._offsets, where, right=True) - 1


def _arange(n, t):
    return aten.arange(n, dtype=t._offsets.dtype, device=t.device)


def operand(name: str, t, x):
    """What a dense argument is beside the values of ``t``."""
    if x.dim() < t.dim():
        return x
    r = t._ragged_idx
    if x.dim() > t.dim():
        raise RuntimeError(
            f"cannot call binary pointwise function {name} with inputs of shapes {_sizes(t)} and {tuple(x.shape)}"
        )
    if x.shape[0] == 1 and x.shape[r] == 1:
        return x.squeeze(0)
    if x.shape[r] == 1:
        return x.squeeze(r).index_select(0, rows_of(t)).movedim(0, r - 1)
    longest = extremes(t).longest
    if x.shape[r] != longest:
        raise RuntimeError(
            f"The expanded size of the tensor ({longest}) must match the existing size ({x.shape[r]}) at non-singleton dimension {r}.  "
            f"Target sizes: {[len(t), *t._values.shape[: r - 1], longest, *t._values.shape[r:]]}.  Tensor sizes: {list(x.shape)}"
        )
    return unpadded(x.expand(len(t), *x.shape[1:]), t)


@RULES.rule_of_kind(is_elementwise)
def elementwise(func, *args, **kwargs):
    """A function of one element of each argument. RuntimeError for nested tensors with other sequences."""
    nested = [x for x in (*args, *kwargs.values()) if is_nested(x)]
    t = nested[0]
    name = _name(func)
    for other in nested[1:]:
        if not same_sequences(t, other):
            raise RuntimeError(
                f"cannot call binary pointwise function {name} with inputs of shapes {_sizes(t)} and {_sizes(other)}"
            )

    def part(x):
        if is_nested(x):
            return x._values
        return operand(name, t, x) if isinstance(x, _C.TensorBase) and x.dim() else x

    out = func(*map(part, args), **{k: part(v) for k, v in kwargs.items()})
    for x in nested:
        if out is x._values:  # written in place
            return x
    return like(t, out)


def _name(func) -> str:
    return func.__name__


@rule("type")
def type_(func, t, *args, **kwargs):
    return elementwise(func, t, *args, **kwargs) if args or kwargs else func(t._values)


@rule("contiguous")
def contiguous(func, t, **kwargs):
    """Without holes."""
    if t._lengths is None:
        return like(t, func(t._values, **kwargs))
    ends = t._lengths.cumsum(0)
    at, lengths = t._ragged_idx - 1, t._lengths
    shift = aten.repeat_interleave(t._offsets[:-1] - (ends - lengths), lengths)
    values = t._values.index_select(at, shift + _arange(shift.shape[0], t))
    offsets = aten.cat([aten.zeros_like(ends[:1]), ends]).to(t._offsets.dtype)
    return _tensor.NestedTensor(values, offsets, _ragged_idx=t._ragged_idx)


@rule("where")
def where(func, condition, input=None, other=None):
    if input is None:
        raise NotImplementedError("where of one nested tensor: nested tensors have no indices")
    return elementwise(func, condition, input, other)


# -- between ragged and padded -------------------------------------------------------------------------------------------
def padded(t, fill, longest: int | None = None):
    """(B, L, ...) with ``fill`` behind the end of each sequence; the ragged dimension comes second."""
    values = t._values.movedim(t._ragged_idx - 1, 0)
    longest = extremes(t).longest if longest is None else longest
    batch, rest = len(t), values.shape[1:]
    if not values.shape[0] or not longest:
        return values.new_full((batch, longest, *rest), fill)
    steps = _arange(longest, t)
    kept = steps < lengths_of(t).unsqueeze(1)
    at = aten.where(kept, t._offsets[:-1].unsqueeze(1) + steps, 0)
    rows = values.index_select(0, at.flatten()).view(batch, longest, *rest)
    return aten.where(kept.view(batch, longest, *[1] * len(rest)), rows, fill)


def mask_of(t):
    """(B, L), True where a sequence has an element."""
    return _arange(extremes(t).longest, t) < lengths_of(t).unsqueeze(1)


def unpadded(x, t):
    """The values of (B, ..., L, ...), whose dimension ``_ragged_idx`` is as long as the longest sequence of ``t``."""
    r = t._ragged_idx
    x = x.movedim(r, 1)
    rows = rows_of(t)
    at = rows * x.shape[1] + (_arange(rows.shape[0], t) - t._offsets.index_select(0, rows))
    if t._lengths is not None:  # rows of holes take the place of the last element, if there is one
        at = at.clamp(max=x.shape[0] * x.shape[1] - 1)
    return x.flatten(0, 1).index_select(0, at).movedim(0, r - 1)


@rule("to_padded_tensor")
def to_padded_tensor(func, t, padding, output_size=None):
    if t._lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    longest = None if output_size is None else output_size[t._ragged_idx]
    out = padded(t, padding, longest).movedim(1, t._ragged_idx)
    if output_size is None:
        return out
    room = [(0, want - have) for want, have in zip(output_size, out.shape)]
    return aten.constant_pad_nd(out, [n for pair in reversed(room) for n in pair], padding)


add_rules(RULES)


@rule("is_same_size")
def is_same_size(func, t, other):
    return is_nested(other) and t.shape == other.shape


@rule("__get__")
def attribute(func, t, *owner):
    """An attribute that the class doesn't answer itself is that of the values."""
    out = func(t._values)
    return like(t, out) if isinstance(out, _C.TensorBase) else out


@rule("storage_offset")
def storage_offset(func, t):
    return 0


@rule("numpy", "__array__", "tolist")
def refused(func, t, *args, **kwargs):
    if _name(func) == "tolist":
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")
