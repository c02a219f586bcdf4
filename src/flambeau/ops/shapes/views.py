"""Views: rearrangements of the same memory, written in the steps of a view handler."""

from __future__ import annotations

import math

from ...base.memory_format import contiguous_format
from ...base.shape_checks import about_layout, check, check_is_size
from ...base.shapes import infer_size, normalize_dim, normalize_dims, view_strides
from ...base.symbolic_queries import is_one, sizes_of
from ...core.declare import composite, view
from ...core.operator import namespace

aten = namespace("aten")


@view("view(Tensor(a) self, SymInt[] size) -> Tensor(a)", variants="method")
def view_(v, size):
    return v.reshape(infer_size(size, v.numel()))


view_.derivative(self=lambda ct, self_like: aten.reshape.default(ct, list(self_like.shape)))


@view("_unsafe_view(Tensor self, SymInt[] size) -> Tensor", variants="")
def unsafe_view(v, size):
    return v.reshape(infer_size(size, v.numel()))


unsafe_view.derivative(self=lambda ct, self_like: aten.reshape.default(ct, list(self_like.shape)))


@view("alias(Tensor(a) self) -> Tensor(a)", variants="")
def alias(v):
    return v


@view("detach(Tensor(a) self) -> Tensor(a)")
def detach(v):
    return v


detach.derivative()


@view("t(Tensor(a) self) -> Tensor(a)")
def t(v):
    if v.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {v.ndim}D")
    return v.permute((1, 0)) if v.ndim == 2 else v


t.derivative(self=lambda ct: aten.t.default(ct))


@view("transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
def transpose(v, dim0, dim1):
    return v.transpose(v.dim(dim0), v.dim(dim1))


transpose.derivative(self=lambda ct, dim0, dim1: aten.transpose.int(ct, dim0, dim1))


@view("permute(Tensor(a) self, int[] dims) -> Tensor(a)")
def permute(v, dims):
    if len(dims) != v.ndim:
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of "
            f"dimensions i.e. input.dim() = {v.ndim} is not equal to len(dims) = {len(dims)}".replace(
                "(sparse_coo)", ""
            )
        )
    perm = tuple(v.dim(d) for d in dims)
    if len(set(perm)) != len(perm):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return v.permute(perm)


LARGEST = 1 << 63  # elements


@view("expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)", variants="method")
def expand(v, size, implicit):
    pad = len(size) - v.ndim
    if pad < 0:
        raise RuntimeError(
            f"expand(torch.Tensor{{{list(v.shape)}}}, size={list(size)}): the number of sizes provided ({len(size)}) must be greater or "
            f"equal to the number of dimensions in the tensor ({v.ndim})"
        )
    shape = []
    for i, n in enumerate(size):
        own = v.shape[i - pad] if i >= pad else None
        if n == -1:
            if own is None:
                raise RuntimeError(
                    "expand: the expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension "
                    f"{i}"
                )
            n = own
        elif own is not None and own != 1 and own != n:
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at non-singleton dimension {i}.  "
                f"Target sizes: {list(size)}.  Tensor sizes: {list(v.shape)}"
            )
        shape.append(n)
    if all(type(n) is int for n in shape) and math.prod(shape) >= LARGEST:
        raise RuntimeError("numel: integer multiplication overflow")
    return v.expand(tuple(shape))


@view("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)")
def unsqueeze(v, dim):
    return v.unsqueeze(v.dim(dim, 1))


unsqueeze.derivative(self=lambda ct, dim: aten.squeeze.dim(ct, dim))


@view("squeeze(Tensor(a) self) -> Tensor(a)")
def squeeze(v):
    return v.squeeze(tuple(i for i, n in enumerate(v.shape) if is_one(n)))


@view("squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)")
def squeeze_dim(v, dim):
    d = v.dim(dim)
    return v.squeeze((d,)) if v.ndim and is_one(v.shape[d]) else v


@view("squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)")
def squeeze_dims(v, dim):
    dims = normalize_dims(dim, v.ndim) if dim else ()
    return v.squeeze(tuple(d for d in dims if is_one(v.shape[d])))


@view("select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)")
def select(v, dim, index):
    if v.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = v.dim(dim)
    n = v.shape[d]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(v.shape)} at dimension {d}")
    return v.select(d, index % n)


select.derivative(
    self=lambda ct, self_like, dim, index: aten.select_backward.default(ct, list(self_like.shape), dim, index)
)


def _slice_bounds(n, start, end, step):
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, end = 0 if start is None else start, n if end is None else end
    start = min(max(start + n if start < 0 else start, 0), n)
    end = min(max(end + n if end < 0 else end, start), n)
    return start, (end - start + step - 1) // step


@view(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    variants="",
)
def slice_(v, dim, start, end, step):
    if v.ndim == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    d = v.dim(dim)
    begin, length = _slice_bounds(v.shape[d], start, end, step)
    return v.slice(d, begin, length, step)


slice_.derivative(
    self=lambda ct, self_like, dim, start, end, step: aten.slice_backward.default(
        ct,
        list(self_like.shape),
        dim,
        0 if start is None else start,
        self_like.shape[dim] if end is None else end,
        step,
    )
)


@view("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)")
def diagonal(v, offset, dim1, dim2):
    d1, d2 = v.dim(dim1), v.dim(dim2)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return v.diagonal(d1, d2, offset)


@view("unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)", variants="method")
def unfold(v, dimension, size, step):
    d = v.dim(dimension)
    n = v.shape[d] if v.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    return v.unfold(d, size, step)


def _pieces(v, d, sizes):
    out, at = [], 0
    for n in sizes:
        out.append(v.slice(d, at, n, 1))
        at += n
    return out


@view("split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]")
def split(v, split_size, dim):
    if v.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = v.dim(dim)
    n = v.shape[d]
    if split_size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    # The number of pieces is asked for, not the sizes: a graph for one number of them serves all sizes that give it.
    count = max(int(-(-n // split_size)), 1) if split_size else 1
    sizes = [split_size] * (count - 1)
    return _pieces(v, d, [*sizes, n - split_size * (count - 1)])


@view("split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]")
def split_with_sizes(v, split_sizes, dim):
    d = v.dim(dim)
    for n in split_sizes:
        if not isinstance(n, int):
            check_is_size(n)
    check(
        sum(split_sizes) == v.shape[d],
        lambda: (
            f"split_with_sizes expects split_sizes to sum exactly to {v.shape[d]} (input tensor's size at dimension {d}), "
            f"but got split_sizes={list(split_sizes)}"
        ),
    )
    return _pieces(v, d, split_sizes)


def _unsplit(cts, dim):
    """Cotangents of all pieces, side by side; a piece nobody used counts as zeros."""
    return aten.cat.default(list(cts), dim)


split.derivative(self=lambda cts, dim: _unsplit(cts, dim))
split_with_sizes.derivative(self=lambda cts, dim: _unsplit(cts, dim))


@view("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]")
def unbind(v, dim):
    d = v.dim(dim)
    if v.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return [v.select(d, i) for i in range(v.shape[d])]


unbind.derivative(self=lambda cts, dim: aten.stack.default(list(cts), dim))


@composite("split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]")
def split_sizes(self, split_size, dim):
    return aten.split_with_sizes.default(self, split_size, dim)


@composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]")
def chunk(self, chunks, dim):
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if not self.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    n = self.shape[normalize_dim(dim, self.ndim)]
    if n == 0:
        return aten.split_with_sizes.default(self, [0] * chunks, dim)
    return aten.split.Tensor(self, max(-(-n // chunks), 1), dim)


@composite("narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)")
def narrow(self, dim, start, length):
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    n = self.shape[normalize_dim(dim, self.ndim)]
    if start < -n or start > n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    start = start + n if start < 0 else start
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return aten.slice.Tensor(self, dim, start, start + length)


@composite("narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)")
def narrow_at(self, dim, start, length):
    if start.ndim or start.dtype.category != 1:
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    return aten.narrow.default(self, dim, start.item(), length)


def _fits(self, shape):
    with about_layout(self.shape):
        return view_strides(tuple(self.shape), self.stride(), shape) is not None


@composite("reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)")
def reshape(self, shape):
    shape = infer_size(shape, self.numel())
    if sizes_of(shape) == sizes_of(self.shape):
        return aten.view.default(self, list(shape)) if self.ndim else aten.alias.default(self)
    if _fits(self, shape):
        return aten.view.default(self, list(shape))
    return aten._unsafe_view.default(aten.clone.default(self, memory_format=contiguous_format), list(shape))


@composite("flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)")
def flatten(self, start_dim, end_dim):
    start, end = normalize_dims([start_dim], self.ndim)[:1] or (0,), normalize_dims([end_dim], self.ndim)[:1] or (0,)
    start, end = start[0], end[0]
    if self.ndim == 0:
        return aten.reshape.default(self, [1])
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return self
    whole = math.prod(self.shape[start : end + 1])  # not -1: with a size of 0 that could be anything
    return aten.reshape.default(self, [*self.shape[:start], whole, *self.shape[end + 1 :]])


@composite("movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
def movedim(self, source, destination):
    n = self.ndim
    source, destination = normalize_dim(source, n), normalize_dim(destination, n)
    if n == 0:
        return aten.alias.default(self)
    order = [d for d in range(n) if d != source]
    order.insert(destination, source)
    return aten.permute.default(self, order)


@composite("expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method")
def expand_as(self, other):
    return aten.expand.default(self, list(other.shape))


@composite("view_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method")
def view_as(self, other):
    return aten.view.default(self, list(other.shape))


@composite("sum_to_size(Tensor self, SymInt[] size) -> Tensor", variants="method")
def sum_to_size(self, size):
    pad = self.ndim - len(size)
    if pad < 0 or any(n != 1 and n != m for n, m in zip(size, self.shape[pad:])):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(self.shape)}}}.")
    dims = list(range(pad)) + [i + pad for i, n in enumerate(size) if n == 1 and self.shape[i + pad] != 1]
    if not len(size):
        return aten.sum.default(self)
    if not dims:
        return self
    out = aten.sum.dim_IntList(self, dims, True)
    return aten.view.default(out, list(size)) if pad else out
