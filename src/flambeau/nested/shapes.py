"""Functions that move elements of nested tensors: the batch and the ragged dimension stay, the others are those of the values."""

from __future__ import annotations

from flambeau.base.compiling import is_compiling
from flambeau.base.shape_checks import check
from flambeau.core.operator import namespace

from .around import wrapped
from .functions import inner, is_nested, lengths_of, like, padded, rule, same_sequences, unpadded
from .sizes import NestedInt

aten = namespace("aten")


def sequences(t) -> tuple:
    """The sequences, as dense tensors."""
    at = t._ragged_idx - 1
    begins, lengths = t._offsets.tolist(), lengths_of(t).tolist()
    if is_compiling():
        # What the maker of the offsets has seen to, for sizes that captured code doesn't know.
        for b, n in zip(begins, lengths):
            check(b >= 0)
            check(n >= 0)
            check(b + n <= t._values.shape[at])
    return tuple(t._values.narrow(at, b, n) for b, n in zip(begins, lengths))


@rule("unbind")
def unbind(func, t, dim=0):
    if wrapped(t, dim) != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    return sequences(t)


def _sequence(t, index: int):
    n = len(t)
    if not -n <= index < n:
        raise IndexError("tuple index out of range")
    begin, length = int(t._offsets[index % n]), int(lengths_of(t)[index % n])
    return t._values.narrow(t._ragged_idx - 1, begin, length)


@rule("select")
def select(func, t, dim, index):
    if wrapped(t, dim) == 0:
        return _sequence(t, index)
    d = inner("select", t, dim)
    return like(t, t._values.select(d, index), t._ragged_idx - (d + 1 < t._ragged_idx))


@rule("slice")
def slice_(func, t, dim=0, start=None, end=None, step=1):
    d = inner("slice", t, dim)
    return like(t, aten.slice(t._values, d, start, end, step))


@rule("narrow")
def narrow(func, t, dim, start, length):
    return like(t, t._values.narrow(inner("narrow", t, dim), start, length))


@rule("__getitem__")
def getitem(func, t, key):
    keys = key if isinstance(key, tuple) else (key,)
    if keys and isinstance(keys[0], int) and not isinstance(keys[0], bool):
        found = _sequence(t, keys[0])
        return found[keys[1:]] if len(keys) > 1 else found
    if Ellipsis in [k for k in keys if k is Ellipsis]:
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        used = sum(k is not None and k is not Ellipsis for k in keys)
        keys = (*keys[:at], *[slice(None)] * (t.dim() - used), *keys[at + 1 :])
    out, dim = t, 0
    for k in keys:
        if k is None:
            out = out.unsqueeze(dim)
            dim += 1
        elif isinstance(k, slice):
            if k != slice(None):
                out = slice_(None, out, dim, k.start, k.stop, 1 if k.step is None else k.step)
            dim += 1
        elif isinstance(k, int):
            out = select(None, out, dim, k)
        else:
            raise NotImplementedError(f"indexing a nested tensor with a {type(k).__name__}")
    return out


@rule("chunk", "split", "split_with_sizes", "tensor_split")
def divided(func, t, sizes, dim=0):
    name = func.__name__
    if name == "chunk" and wrapped(t, dim) == 0:
        return _chunks(t, sizes)
    return tuple(like(t, part) for part in func(t._values, sizes, inner(name, t, dim)))


def _chunks(t, count: int) -> tuple:
    """The batch in ``count`` parts."""
    n = -(-len(t) // count)
    return tuple(rows(t, k, min(k + n, len(t))) for k in range(0, len(t), n))


def rows(t, begin: int, end: int):
    """Sequences ``begin`` to ``end``, a nested tensor with offsets of its own."""
    first, last = int(t._offsets[begin]), int(t._offsets[end])
    values = t._values.narrow(t._ragged_idx - 1, first, last - first)
    lengths = None if t._lengths is None else t._lengths[begin:end]
    return type(t)(values, t._offsets[begin : end + 1] - first, lengths=lengths, _ragged_idx=t._ragged_idx)


@rule("cat", "concat", "concatenate", "stack")
def joined(func, tensors, dim=0, **kwargs):
    name = func.__name__
    t = next(x for x in tensors if is_nested(x))
    d = dim % (t.dim() + 1) if name == "stack" else wrapped(t, dim)
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    if d == t._ragged_idx:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    for x in tensors:
        if not is_nested(x) or not same_sequences(t, x):
            raise RuntimeError(
                f"{name}(): expected nested tensors of the same sequences, got {[x.shape for x in tensors]}"
            )
    ragged = t._ragged_idx + (name == "stack" and d < t._ragged_idx)
    return like(t, func([x._values for x in tensors], d - 1), ragged)


@rule("transpose", "swapaxes", "swapdims")
def transpose(func, t, dim0, dim1):
    a, b = wrapped(t, dim0), wrapped(t, dim1)
    if a == b:
        return t
    if 0 in (a, b):
        raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
    ragged = {a: b, b: a}.get(t._ragged_idx, t._ragged_idx)
    return like(t, t._values.transpose(a - 1, b - 1), ragged)


@rule("permute")
def permute(func, t, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
    order = [wrapped(t, d) for d in dims]
    if len(order) != t.dim():
        raise ValueError(f"permute(): number of dimensions in the tensor input ({t.dim()}) does not match the length of the desired "
                         f"ordering of dimensions ({len(order)}).")  # fmt: skip
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return like(t, t._values.permute([d - 1 for d in order[1:]]), order.index(t._ragged_idx))


@rule("unsqueeze")
def unsqueeze(func, t, dim):
    n = t.dim() + 1
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    d = dim % n
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return like(t, t._values.unsqueeze(d - 1), t._ragged_idx + (d <= t._ragged_idx))


@rule("squeeze")
def squeeze(func, t, dim=None):
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeezing without the dim arg is not supported")
    for d in sorted((wrapped(t, d) for d in ([dim] if isinstance(dim, int) else dim)), reverse=True):
        at = inner("squeeze", t, d)
        if t._values.shape[at] == 1:
            t = like(t, t._values.squeeze(at), t._ragged_idx - (d < t._ragged_idx))
    return t


@rule("flatten")
def flatten(func, t, start_dim=0, end_dim=-1):
    a, b = wrapped(t, start_dim), wrapped(t, end_dim)
    if a == 0:
        raise RuntimeError("flatten(): not supported for NestedTensor on dim=0")
    if a <= t._ragged_idx <= b:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    return like(t, t._values.flatten(a - 1, b - 1), t._ragged_idx - (b - a if b < t._ragged_idx else 0))


@rule("unflatten")
def unflatten(func, t, dim, sizes):
    d = inner("unflatten", t, dim)
    made = t._values.unflatten(d, sizes)
    return like(t, made, t._ragged_idx + (made.dim() - t._values.dim() if d + 1 < t._ragged_idx else 0))


@rule("view", "reshape")
def view(func, t, *sizes):
    name = func.__name__
    sizes = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)
    r = t._ragged_idx
    # The ragged size stays where it is, by its symbol or as the -1 in its place.
    fits = (
        len(sizes) > max(r, 1)
        and (sizes[0] in (len(t), -1) and not isinstance(sizes[0], NestedInt))
        and (
            isinstance(sizes[r], NestedInt)
            and sizes[r] == t.shape[r]
            or not isinstance(sizes[r], NestedInt)
            and sizes[r] == -1
        )
    )
    if not fits or sizes[0] == -1:
        raise _no_view(name, t, sizes)
    inside = sizes[1:]
    inside[r - 1] = t._values.shape[r - 1]
    try:
        return like(t, getattr(t._values, name)(inside))
    except RuntimeError:
        raise _no_view(name, t, sizes) from None


def _no_view(name: str, t, sizes) -> RuntimeError:
    return RuntimeError(f"{name}(): cannot view shape ({', '.join(map(str, t.shape))}) as {sizes}")


@rule("expand")
def expand(func, t, *sizes):
    sizes = list(sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes)
    if len(sizes) != t.dim() or sizes[0] not in (len(t), -1):
        raise RuntimeError(f"expand(): cannot expand shape ({', '.join(map(str, t.shape))}) to {sizes}")
    inside = [-1 if isinstance(n, NestedInt) or d + 1 == t._ragged_idx else n for d, n in enumerate(sizes[1:])]
    return like(t, t._values.expand(inside))


@rule("expand_as", "view_as", "reshape_as")
def as_other(func, t, other):
    return getattr(t, func.__name__[:-3])(*other.shape)


@rule("diff")
def diff(func, t, n=1, dim=-1, **kwargs):
    return like(t, func(t._values, n, inner("diff", t, dim), **kwargs))


@rule("softmax", "log_softmax", "_softmax", "_log_softmax")
def softmax(func, t, dim, *args, **kwargs):
    d, name = wrapped(t, dim), func.__name__.strip("_")
    if d == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if d != t._ragged_idx:
        return like(t, func(t._values, d - 1, *args, **kwargs))
    if t._lengths is not None:
        raise RuntimeError(f"{name}(): not supported where lengths is not None for NestedTensor")
    rows = func(padded(t, float("-inf")), 1, *args, **kwargs)
    return like(t, unpadded(rows.movedim(1, d), t))
