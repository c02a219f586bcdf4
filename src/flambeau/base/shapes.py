"""Shapes and strides: plain arithmetic on tuples of ints. Strides count elements."""

from __future__ import annotations

import math
import operator

from .memory_format import channels_last, format_strides, has_format
from .public import public_in
from .relations import compare
from .symint import SymBool, SymInt, expression, is_symbolic, wrap

_LEAST, _MOST = -(2**63), 2**63 - 1  # what memory is counted with


def _size(i: int, n):
    if isinstance(n, SymInt):
        return n
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')") from None
    if not _LEAST <= n <= _MOST:
        raise ValueError("Overflow when unpacking long long")
    return n


@public_in("")
class Size(tuple):
    """Shape of a tensor: a tuple of ints with ``numel()``. TypeError for elements that are no integers,
    ValueError for those of more than 64 bits."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        out = tuple.__new__(cls, sizes)
        if all(_LEAST <= n <= _MOST if n.__class__ is int else isinstance(n, SymInt) for n in out):
            return out
        return tuple.__new__(cls, (_size(i, n) for i, n in enumerate(out)))

    def numel(self) -> int:
        return math.prod(self)

    def __repr__(self):
        return f"torch.Size({list(self)})"

    def __add__(self, other):
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, n):
        if not hasattr(n, "__index__"):
            raise TypeError(f"can't multiply sequence by non-int of type '{type(n).__name__}'")
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __getitem__(self, i):
        out = tuple.__getitem__(self, i)
        return Size(out) if isinstance(i, slice) else out

    def __reduce__(self):
        return (Size, (tuple(self),))


def contiguous_strides(shape) -> tuple[int, ...]:
    """Row-major strides; a dimension of size 0 counts as 1, as in PyTorch."""
    out, step = [], 1
    for n in reversed(shape):
        out.append(step)
        step *= max(n, 1)
    return tuple(reversed(out))


def is_contiguous(shape, strides) -> bool:
    """Whether the strides are row-major (those of dimensions of size 1 don't count)."""
    if is_symbolic((*shape, *strides)) and are_products(shape, strides):
        return True
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n == 0:
            return True
        if n != 1:
            if s != step:
                return any(m == 0 for m in shape)
            step *= n
    return True


def are_products(shape, strides) -> bool:
    """Whether the strides are row-major whatever the sizes are. Asks no question."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if not statically_equal(s, step):
            return False
        step = step * n
    return True


def known_dense(shape, strides) -> bool:
    """:func:`is_dense` where sizes may be symbolic: whether it is known; asks no question."""
    left, step = [d for d, n in enumerate(shape) if not statically_equal(n, 1)], 1
    while left:
        d = next((d for d in left if statically_equal(strides[d], step)), None)
        if d is None:
            return False
        left.remove(d)
        step = step * shape[d]
    return True


def statically_equal(a, b) -> bool:
    """Whether two numbers are known to be equal; asks no question."""
    env = a.env if is_symbolic(a) else b.env if is_symbolic(b) else None
    return a == b if env is None else env.known(compare("eq", expression(a), expression(b))) is True


def same_shape(a, b) -> bool:
    """Whether two shapes are equal. NOTE: tuples compare their elements before their lengths, which asks more of symbolic sizes than is needed."""
    return len(a) == len(b) and tuple(a) == tuple(b)


def _differ(a, b, dim: int) -> bool:
    """Whether two sizes that aren't 1 differ. Where only data tells, they are taken to be equal, and the program checks it when it runs."""
    if type(a) is SymInt or type(b) is SymInt:
        env = (a if type(a) is SymInt else b).env
        same = compare("eq", *(n.expr if type(n) is SymInt else n for n in (a, b)))
        if type(same) is bool:
            return not same
        if env.known(same) is None and env.is_unbacked(env.simplify(same)):
            env.expect(same, _MISMATCH.format(a=a, b=b, dim=dim))
            return False
    return a != b


_MISMATCH = "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"


def broadcast_shapes(*shapes) -> tuple[int, ...]:
    """Common shape. RuntimeError in PyTorch's words when there is none."""
    ndim = max(map(len, shapes), default=0)
    out = [1] * ndim
    if is_symbolic(shapes):  # sizes that are known to be equal aren't asked whether they are 1
        for d in range(ndim):
            sizes = [n for s in shapes if len(s) >= ndim - d for n in (s[d - ndim],) if type(n) is not int or n != 1]
            if sizes and all(statically_equal(n, sizes[0]) for n in sizes):
                out[d] = sizes[0]
    for shape in shapes:
        for i, n in enumerate(reversed(shape)):
            d = ndim - 1 - i
            if out[d] is n or (is_symbolic(n) and statically_equal(n, out[d])) or n == 1:
                continue
            if out[d] == 1:
                out[d] = n
            elif _differ(out[d], n, d):
                raise RuntimeError(_MISMATCH.format(a=out[d], b=n, dim=d))
    return tuple(out)


def normalize_dim(dim: int, ndim: int, what: str = "Dimension") -> int:
    """Non-negative dimension, a constant where it varied. IndexError in PyTorch's words when out of range; a scalar has the dimension 0 and -1."""
    if type(dim) is SymInt:
        dim = int(dim)
    lim = max(ndim, 1)
    if not -lim <= dim < lim:
        raise IndexError(f"{what} out of range (expected to be in range of [{-lim}, {lim - 1}], but got {dim})")
    return dim % lim


def normalize_dims(dims, ndim: int) -> tuple[int, ...]:
    """Non-negative dimensions of a reduction; None or () means all. RuntimeError for one that appears twice."""
    if dims is None:
        return tuple(range(ndim))
    if isinstance(dims, int):
        dims = (dims,)
    out = tuple(normalize_dim(d, ndim) for d in dims)
    if not out:
        return tuple(range(ndim))
    if len(set(out)) != len(out):
        twice = next(d for d in out if out.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return out if ndim else ()


def infer_size(shape, numel: int) -> tuple[int, ...]:
    """Replace one -1 of ``shape``. RuntimeError when the shape doesn't hold ``numel`` elements."""
    shape = tuple(shape)
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    if any(n < -1 for n in shape):
        raise RuntimeError(f"invalid shape dimension {next(n for n in shape if n < -1)}")
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        if rest == 0 and numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
                "can be any value and is ambiguous"
            )
        _fits(rest != 0, shape, numel)
        _fits(numel % rest == 0, shape, numel)
        return tuple(numel // rest if n == -1 else n for n in shape)
    _fits(math.prod(shape) == numel, shape, numel)
    return shape


def _fits(holds, shape: tuple, numel: int) -> None:
    """RuntimeError unless ``holds``; of sizes that depend on data it is checked when the program runs."""
    if isinstance(holds, SymBool) and holds.env.is_unbacked(holds.expr):
        holds.env.expect(holds.expr, f"shape '{list(shape)}' is invalid for input of size {numel}")
    elif not holds:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")


def view_strides(shape, strides, new_shape) -> tuple[int, ...] | None:
    """Strides under which ``new_shape`` sees the same memory, or None when a copy is needed.

    Walks both shapes from the right, matching chunks of dimensions that are contiguous among themselves.
    """
    if shape and is_symbolic((*shape, *strides, *new_shape)):
        found = _symbolic_view(shape, strides, new_shape)
        if found is not None:
            return found
    if math.prod(shape) == 0:
        return contiguous_strides(new_shape) if not same_shape(shape, new_shape) else tuple(strides)
    if not shape:
        return (1,) * len(new_shape)
    out = [0] * len(new_shape)
    view_d = len(new_shape) - 1
    base = strides[-1]
    chunk = view_chunk = 1
    for d in range(len(shape) - 1, -1, -1):
        chunk *= shape[d]
        if d == 0 or (shape[d - 1] != 1 and strides[d - 1] != chunk * base):
            while view_d >= 0 and (view_chunk < chunk or new_shape[view_d] == 1):
                out[view_d] = view_chunk * base
                view_chunk *= new_shape[view_d]
                view_d -= 1
            if view_chunk != chunk:
                return None
            if d > 0:
                base = strides[d - 1]
                chunk = view_chunk = 1
    return tuple(out) if view_d == -1 else None


def _symbolic_view(shape, strides, new_shape) -> tuple | None:
    """The same where chunks match as expressions, whatever the sizes are; None when they don't, which says nothing. Asks no question."""
    env = next(n.env for n in (*shape, *strides, *new_shape) if is_symbolic(n))
    old, steps, new = ([env.simplify(expression(n)) for n in part] for part in (shape, strides, new_shape))

    def equal(a, b) -> bool:
        return env.known(compare("eq", a, b)) is True

    out: list = [0] * len(new)
    at = len(new) - 1
    base, chunk = steps[-1], 1
    for d in range(len(old) - 1, -1, -1):
        chunk = chunk * old[d]
        if d == 0 or not (equal(old[d - 1], 1) or equal(steps[d - 1], chunk * base)):
            part = 1
            while at >= 0 and not equal(part, chunk):
                out[at], part, at = part * base, part * new[at], at - 1
            if not equal(part, chunk):
                return None
            while at >= 0 and equal(new[at], 1):
                out[at], at = part * base, at - 1
            if d > 0:
                base, chunk = steps[d - 1], 1
    return tuple(wrap(e, env) for e in out) if at == -1 else None


def dense_order(shape, strides) -> tuple[int, ...]:
    """Dimensions from outermost to innermost by stride; those of size 1 or stride 0 keep their places, and ties their order."""
    counted = [d for d in range(len(shape)) if shape[d] != 1 and strides[d] != 0]
    by_stride = iter(sorted(counted, key=lambda d: strides[d], reverse=True))
    places = set(counted)
    return tuple(next(by_stride) if d in places else d for d in range(len(shape)))


def is_dense(shape, strides) -> bool:
    """Whether the elements fill a stretch of memory, each place once, in whatever order of the dimensions."""
    if is_contiguous(shape, strides):
        return True
    step = 1
    for s, n in sorted((s, n) for n, s in zip(shape, strides) if n != 1):
        if s != step:
            return False
        step = step * n
    return True


def _permutation(shape, operands) -> list[int]:
    """Dimensions from the innermost, as the strides of the operands have them: the first operand that tells two dimensions apart decides."""

    def further_out(a, b) -> int:  # 1: a must be further out than b, -1: b than a, 0: nothing tells
        for st in operands:
            if st[a] == 0 or st[b] == 0:
                continue
            if st[a] != st[b]:
                return 1 if st[a] > st[b] else -1
            if shape[a] > shape[b]:
                return 1
        return 0

    # Insertion sort, because the comparison is partial.
    perm = list(range(len(shape) - 1, -1, -1))
    for i in range(1, len(perm)):
        k = i
        for j in range(i - 1, -1, -1):
            c = further_out(perm[j], perm[k])
            if c > 0:
                perm[j], perm[k] = perm[k], perm[j]
                k = j
            elif c < 0:
                break
    return perm


def elementwise_strides(shape, inputs) -> tuple[int, ...]:
    """Strides of an elementwise result, PyTorch's exactly. ``inputs``: (shape, strides) of each operand; a number is one without dimensions.

    Operands of one shape that are all row-major, all channels-last or all laid out alike give that. Otherwise the result is dense in the order
    of the dimensions that the operands have; where nothing tells it is row-major.
    """
    ndim = len(shape)
    if is_symbolic((*shape, *(n for _, st in inputs for n in st))):
        # What is row-major whatever the sizes are asks no question, nor do the short ways for other orders.
        whole = [(s, st) for s, st in inputs if len(s)]
        if all(len(s) == ndim and all(map(statically_equal, s, shape)) and are_products(s, st) for s, st in whole):
            return contiguous_strides(shape)
        if all(len(s) == ndim and tuple(s) == tuple(shape) and is_contiguous(s, st) for s, st in inputs):
            return contiguous_strides(shape)
    elif all(len(s) == ndim and tuple(s) == tuple(shape) for s, _ in inputs):
        if all(is_contiguous(shape, st) for _, st in inputs):
            return contiguous_strides(shape)
        if ndim == 4 and all(has_format(shape, st, channels_last) for _, st in inputs):
            return format_strides(shape, channels_last)
        first = inputs[0][1]
        if all(tuple(st) == tuple(first) for _, st in inputs) and is_dense(shape, first):
            return tuple(first)
    aligned = []
    for s, st in inputs:
        pad = ndim - len(s)
        aligned.append([0] * pad + [0 if n == 1 and shape[pad + i] != 1 else x for i, (n, x) in enumerate(zip(s, st))])
    perm = _permutation(shape, aligned)
    if perm == list(range(ndim - 1, -1, -1)):
        return contiguous_strides(shape)
    out, step = [0] * ndim, 1
    for d in perm:
        out[d] = step
        step = step * shape[d]
    return tuple(out)


def preserved_strides(shape, strides) -> tuple[int, ...]:
    """Strides of a copy that preserves the format: a dense tensor's own, else its order of dimensions without the gaps."""
    if is_contiguous(shape, strides) or (not is_symbolic((*shape, *strides)) and is_dense(shape, strides)):
        return tuple(strides)
    out, step = [0] * len(shape), 1
    for d in _permutation(shape, [strides]):
        out[d] = step
        step = step * max(shape[d], 1)
    return tuple(out)


def spread(value, n):
    """``n`` numbers from one, from a list of one, or from ``n``. RuntimeError for another number of them."""
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(value) not in (1, n):
        raise RuntimeError(f"expected a single int or {n} ints, got {value}")
    return value * n if len(value) == 1 else value


def check_expands(shape, wanted) -> None:
    """RuntimeError when a tensor of ``shape`` isn't one that can be expanded to ``wanted``."""
    if len(shape) > len(wanted):
        raise RuntimeError(
            f"expand(size={list(wanted)}): the number of sizes provided ({len(wanted)}) must be greater or equal to the number of dimensions in "
            f"the tensor ({len(shape)})"
        )
    for k, (n, m) in enumerate(zip(reversed(shape), reversed(wanted)), 1):
        if n != 1 and n != m:
            raise RuntimeError(
                f"The expanded size of the tensor ({m}) must match the existing size ({n}) at non-singleton dimension {len(wanted) - k}.  "
                f"Target sizes: {list(wanted)}.  Tensor sizes: {list(shape)}"
            )
