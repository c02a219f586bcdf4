"""The views that copy: ``permute_copy`` of ``permute`` and the like, made from the views' own schemas; splits that aren't views."""

from __future__ import annotations

import re

from ... import _C
from ...base.dtypes import bool_
from ...base.memory_format import contiguous_format
from ...base.shapes import contiguous_strides, same_shape
from ...core.declare import composite, explicit, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from ...core.out_lists import declare_out_list

aten = namespace("aten")
_VIEWS = (
    "expand permute diagonal alias as_strided view unfold split unbind squeeze narrow detach t transpose unsqueeze split_with_sizes slice select "
    "view_as_real view_as_complex"
).split()


def _copies(op, name):
    text = re.sub(r"\([a-z]( -> \*)?\)", "", str(op._schema).replace("aten::", ""))
    head, _, rest = text.partition("(")
    base, dot, overload = head.partition(".")
    several = op._schema.returns[0].is_list
    op = aten.reshape.default if op is aten.view.default else op  # a copy has no layout that it can't be had of

    def fn(*args, op=op):
        positional, named = op.split(args)
        made = op(*positional, **named)
        if several:
            return [aten.clone.default(t, memory_format=contiguous_format) for t in made]
        return aten.clone.default(made, memory_format=contiguous_format)

    explicit(
        f"{base}_copy{dot}{overload}({rest}",
        variants="function method" if name == "narrow" else "function",
        has_out=not several,
        tags=("out_copied",) if several else (),
    )(fn)


for _name in _VIEWS:
    for _op in list(getattr(aten, _name)._overloads.values()):
        if _op.kind != "out":
            _copies(_op, _name)


def _conj_copy(self):
    return aten.clone.default(aten.conj.default(self), memory_format=contiguous_format)


explicit("_conj_copy(Tensor self) -> Tensor", variants="function")(_conj_copy)
explicit("_neg_view_copy(Tensor self) -> Tensor", variants="function")(
    lambda self: aten.clone.default(aten.neg.default(self), memory_format=contiguous_format)
)
explicit("lift_fresh_copy(Tensor self) -> Tensor", variants="function")(
    lambda self: aten.clone.default(self, memory_format=contiguous_format)
)


# ---- splits without the promise of a view ----------------------------------------------------------------------------------

composite("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")(
    lambda self, split_size, dim: aten.split.Tensor(self, split_size, dim)
)
composite("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")(
    lambda self, split_sizes, dim: aten.split_with_sizes.default(self, split_sizes, dim)
)

for _op, _name in (
    (aten.split_copy.Tensor, "Tensor_out"),
    (aten.split_with_sizes_copy.default, "out"),
    (aten.unbind_copy.int, "int_out"),
    (aten.unsafe_split.Tensor, "Tensor_out"),
    (aten.unsafe_split_with_sizes.default, "out"),
):
    declare_out_list(_op, _name)
composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")(
    lambda self, chunks, dim: aten.chunk.default(self, chunks, dim)
)


@explicit("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", variants="function", out_rules="any")
def _chunk_cat(tensors, dim, num_chunks):
    """Each tensor padded to ``num_chunks`` equal chunks along ``dim``, flattened from there, side by side."""
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got num_chunks: {num_chunks}")
    if any(t.numel() == 0 for t in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    if any(t.ndim != tensors[0].ndim for t in tensors) and dim < 0:
        raise RuntimeError("_chunk_cat expects non-negative dim when input tensors have different ndims")
    if any(dim >= t.ndim for t in tensors):
        raise RuntimeError("_chunk_cat expects dim < ndim for all input tensors")
    parts = []
    d = dim % tensors[0].ndim
    if any(not same_shape(t.shape[:d], tensors[0].shape[:d]) for t in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors")
    for t in tensors:
        n = t.shape[d]
        missing = -n % num_chunks
        if missing:
            t = aten.constant_pad_nd.default(t, [*[0, 0] * (t.ndim - d - 1), 0, missing], 0)
        parts.append(aten.reshape.default(t, [*t.shape[:d], num_chunks, -1]))
    return aten.cat.default(parts, d + 1)


# ---- writes into a view, as new tensors ------------------------------------------------------------------------------------


@explicit(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    variants="function method",
)
def diagonal_scatter(self, src, offset, dim1, dim2):
    part = aten.diagonal.default(self, offset, dim1, dim2)
    if tuple(part.shape) != tuple(src.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(part.shape)}"
        )
    shape = list(self.shape)
    placed = aten.diagonal_backward.default(src, shape, offset, dim1, dim2)
    here = aten.diagonal_backward.default(aten.ones_like.default(src, dtype=bool_), shape, offset, dim1, dim2)
    made = aten.where.self(here, aten._to_copy.default(placed, dtype=self.dtype), self)
    return aten.copy.default(self, made)  # in the order of self


diagonal_scatter.derivative(
    self=lambda ct, src_like, offset, dim1, dim2: aten.diagonal_scatter.default(
        ct, aten.new_zeros.default(ct, list(src_like.shape)), offset, dim1, dim2
    ),
    src=lambda ct, offset, dim1, dim2: aten.clone.default(aten.diagonal.default(ct, offset, dim1, dim2)),
)


def _check_source(src, size):
    if tuple(size) != tuple(src.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(size)}"
        )


def _strided_scatter_meta(self, src, size, stride, storage_offset):
    _check_source(src, size)
    strides = self.strides if isinstance(self, TensorMeta) else self.stride()
    offset = self.offset if isinstance(self, TensorMeta) else self._offset
    return TensorMeta(tuple(self.shape), tuple(strides), self.dtype, self.device, offset)


as_strided_scatter = extern(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor",
    meta=_strided_scatter_meta,
    has_out=True,
)(lambda self, *rest: self)


@as_strided_scatter.override("eager")
def _strided_scatter(self, src, size, stride, storage_offset):
    """A copy of the whole memory of ``self``, so that strides and offset mean what they mean there."""
    _check_source(src, size)
    offset = self._offset
    n = self._storage.nbytes() // self._dtype.itemsize
    memory = _C.from_array(_C.strided(self, (n,), (1,), -offset)._array.copy())
    where = offset if storage_offset is None else storage_offset
    if len(stride) == len(size) and min(stride, default=0) >= 0:
        place = aten._as_strided.default(memory, size, stride, where, (1,))
    else:
        place = aten.as_strided.default(memory, size, stride, where)  # says what is wrong
    if src._dtype is self._dtype:
        place._array[...] = src._array
    else:
        aten.copy_.default(place, src)
    out = _C.strided(memory, self._shape, self._strides, offset)
    _C.forget_view(out)
    return out


@as_strided_scatter.override("batch")
def _strided_scatter_batched(b, self, src, size, stride, storage_offset):
    """Offset and strides are those of the first example; the others lie as far apart as ``self`` has them."""
    self, src = b.all(self, b.mask[0]), b.all(src, b.mask[1])
    outer = self.stride()[0]
    if b.size > 1 and not outer:
        if list(self.stride())[1:] != list(contiguous_strides(tuple(self.shape)[1:])):
            raise RuntimeError("vmap: as_strided_scatter into an example that all share needs it to be contiguous")
        if storage_offset is not None:
            storage_offset -= self.storage_offset()
        self = aten.clone.default(self, memory_format=contiguous_format)
        outer = self.stride()[0]
    return aten.as_strided_scatter.default(self, src, [b.size, *size], [outer, *stride], storage_offset)


as_strided_scatter.derivative(
    self=lambda ct, size, stride, storage_offset: aten.as_strided_scatter.default(
        aten.contiguous.default(ct), aten.new_zeros.default(ct, list(size)), size, stride, storage_offset
    ),
    src=lambda ct, size, stride, storage_offset: aten.clone.default(
        aten.as_strided.default(aten.contiguous.default(ct), size, stride, storage_offset)
    ),
)


@composite("fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", variants="method")
def fill_diagonal_(self, fill_value, wrap):
    """Of a matrix, or of a tensor with equal dimensions; ``wrap`` goes on below in a tall matrix, a row left out after each square."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    aten.fill_.Scalar(aten.as_strided.default(self, [min(self.shape)], [sum(self.stride())]), fill_value)
    if wrap and self.ndim == 2 and self.shape[0] > self.shape[1] + 1:
        rows, columns = self.shape
        for first in range(columns + 1, rows, columns + 1):
            part = aten.slice.Tensor(self, 0, first, rows)
            aten.fill_.Scalar(aten.diagonal.default(part), fill_value)
    return self
