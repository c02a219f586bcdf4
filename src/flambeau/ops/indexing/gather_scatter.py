"""Gather, scatter and embedding."""

from __future__ import annotations

from ...base import dtypes
from ...base.errors import Uncaptured
from ...base.shape_env import GuardOnDataDependentSymNode
from ...base.shapes import broadcast_shapes, normalize_dim, same_shape
from ...core.declare import composite, explicit, index
from ...core.operator import namespace
from ...core.promotion import _scalar_name
from ...core.sharding import Rows
from ..pointwise.arithmetic import scaled

aten = namespace("aten")


def _loaded(dim, shape):
    """Coordinates of gather and scatter: the index tensor along ``dim``, the loop's own elsewhere. A scalar has one, which is looked at only."""
    d = normalize_dim(dim, len(shape))
    return lambda i, load, h: tuple(load("index", *i) if e == d else i[e] for e in range(max(len(shape), 1)))


def _only_place(index):
    """The coordinate of a scalar's element, which ``index`` has to name: its only number."""
    return lambda i, load, h: (load("index", *(0,) * len(index.shape)),)


def _need_index(name, t, *, dtypes=("int64", "int32")):
    if t.dtype.name not in dtypes:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index, but got {t.dtype}")


@index(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    mode="read",
    source="weight",
    variants="function",
)
def embedding(ix, weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if len(weight.shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype.name not in ("int64", "int32"):
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got {indices.dtype} instead "
            "(while checking arguments for embedding)"
        )
    n = len(indices.shape)
    return (*indices.shape, weight.shape[1]), lambda i, load, h: (load("indices", *i[:n]), i[n])


embedding.derivative(
    weight=lambda ct, weight_like, indices, padding_idx, scale_grad_by_freq, sparse: (
        aten.embedding_sparse_backward if sparse else aten.embedding_dense_backward
    ).default(ct, indices, weight_like.shape[0], padding_idx, scale_grad_by_freq)
)


embedding.override("sharding", Rows("weight", "indices"))


@embedding.override("uncaptured")
def _sparse_gradient(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if sparse and weight.requires_grad:
        raise Uncaptured("embedding(sparse=True): its gradient is a sparse tensor, and these are not captured")


@index(
    "_embedding_scatter(Tensor grad_output, Tensor indices, SymInt num_weights) -> Tensor",
    mode="write",
    source="grad_output",
    combine="add",
    shape_of=lambda grad_output, indices, num_weights: (num_weights, grad_output.shape[-1]),
    variants="",
)
def _embedding_scatter(ix, grad_output, indices, num_weights):
    n = len(indices.shape)
    _need_index("embedding_dense_backward", indices)
    if not same_shape(tuple(grad_output.shape[:-1]), tuple(indices.shape)) or len(grad_output.shape) != n + 1:
        raise RuntimeError(
            f"embedding_dense_backward: the gradient has the shape {list(grad_output.shape)}, the indices {list(indices.shape)}"
        )
    return tuple(grad_output.shape), lambda i, load, h: (load("indices", *i[:n]), i[n])


_embedding_scatter.derivative(grad_output=lambda ct, indices: aten.embedding.default(ct, indices))


@explicit(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor"
)
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    return aten._embedding_scatter.default(
        _embedding_weighted(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq), indices, num_weights
    )


def _embedding_weighted(x, indices, num_weights, padding_idx, scale_grad_by_freq):
    """What each position contributes: nothing where it is padding, its share when rows are scaled by how often they occur."""
    if scale_grad_by_freq:
        flat = aten.reshape.default(indices, [-1])
        zeros = aten.new_zeros.default(x, [num_weights])
        counts = aten.index_add.default(zeros, 0, flat, aten.new_ones.default(x, [flat.numel()]))
        x = aten.div.Tensor(
            x,
            aten.unsqueeze.default(aten.embedding.default(aten.unsqueeze.default(counts, 1), indices), -1).squeeze(-1),
        )
    if padding_idx >= 0:
        x = aten.masked_fill.Scalar(x, aten.unsqueeze.default(aten.eq.Scalar(indices, padding_idx), -1), 0)
    return x


embedding_dense_backward.derivative(
    grad_output=lambda ct, indices, num_weights, padding_idx, scale_grad_by_freq: _embedding_weighted(
        aten.embedding.default(ct, indices, padding_idx), indices, num_weights, padding_idx, scale_grad_by_freq
    )
)


@index(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    mode="read",
    source="self",
    has_out=True,
)
def gather(ix, self, dim, index, sparse_grad):
    if 0 not in index.shape:  # what has no elements may have any dtype
        _need_index("gather", index)
    ndim = max(len(self.shape), 1)
    d = normalize_dim(dim, ndim)
    if 0 in index.shape:
        return tuple(index.shape), lambda i, load, h: tuple(0 for _ in self.shape)
    if max(len(index.shape), 1) != ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for e, (n, m) in enumerate(zip(index.shape, self.shape)):
        if e != d and n > m:
            raise RuntimeError(
                f"Size does not match at dimension {e} expected index {list(index.shape)} to be no larger than self {list(self.shape)} "
                f"apart from dimension {d}"
            )
    return tuple(index.shape), _loaded(dim, self.shape)


gather.override("sharding", Rows("self", "index", "dim"))
gather.derivative(
    self=lambda ct, self_like, dim, index: aten.scatter_add.default(
        aten.new_zeros.default(ct, list(self_like.shape)), dim, index, ct
    )
)


def check_scatter(self, dim, index, src) -> None:
    """RuntimeError unless ``index`` and ``src`` (a tensor or a number) fit ``self`` for a write at places along ``dim``."""
    d, shape = normalize_dim(dim, len(self.shape)), getattr(src, "shape", None)
    if shape is not None and src.dtype != self.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if 0 in index.shape:  # what has no elements may have any dtype and rank
        return
    _need_index("scatter", index)
    for name, other in (("self", self.shape), ("src", shape)):
        if other is not None and max(len(index.shape), 1) != max(len(other), 1):
            raise RuntimeError(f"Index tensor must have the same number of dimensions as {name} tensor")
    large = any(e != d and n > m for e, (n, m) in enumerate(zip(index.shape, self.shape)))
    if large or (shape is not None and any(n > m for n, m in zip(index.shape, shape))):
        beyond = "" if shape is None else f" and to be no larger size than src {list(shape)}"
        raise RuntimeError(
            f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} apart from dimension {d}{beyond}"
        )


def _scatter_coords(ix, self, dim, index, src):
    check_scatter(self, dim, index, src)
    d = normalize_dim(dim, len(self.shape))
    return tuple(index.shape), lambda i, load, h: tuple(
        # Without indices nothing is written: they may have another rank.
        load("index", *i) if e == d or 0 in index.shape else i[e]
        for e in range(max(len(self.shape), 1))
    )


def _gathered(ct, dim, index, src_like):
    """Cotangent of ``src_like``: what it was written to; nothing for the part of it that ``index`` doesn't reach."""
    out = aten.gather.default(ct, dim, index)
    for d, (n, m) in enumerate(zip(index.shape, src_like.shape)):
        if n < m:
            out = aten.slice_backward.default(out, [*out.shape[:d], m, *out.shape[d + 1 :]], d, 0, n, 1)
    return out


scatter_src = index(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    mode="write",
    source="src",
    base="self",
    inplace=True,
    has_out=True,
)(_scatter_coords)
scatter_src.derivative(
    self=lambda ct, dim, index: aten.scatter.value(ct, dim, index, 0),
    src=lambda ct, dim, index, src_like: _gathered(ct, dim, index, src_like),
)
scatter_value = index(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    mode="write",
    source="value",
    base="self",
    inplace=True,
    has_out=True,
)(_scatter_coords)
scatter_value.derivative(self=lambda ct, dim, index: aten.scatter.value(ct, dim, index, 0))
scatter_add = index(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    mode="write",
    source="src",
    base="self",
    combine="add",
    inplace=True,
    has_out=True,
)(_scatter_coords)
scatter_add.derivative(self=lambda ct: ct, src=lambda ct, dim, index, src_like: _gathered(ct, dim, index, src_like))


@index("index_select(Tensor self, int dim, Tensor index) -> Tensor", mode="read", source="self", has_out=True)
def index_select(ix, self, dim, index):
    _need_index("index_select", index)
    if len(index.shape) > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    d = normalize_dim(dim, len(self.shape))
    count = index.shape[0] if len(index.shape) else 1  # one place may come without a dimension
    shape = tuple(count if e == d else n for e, n in enumerate(self.shape))
    if not shape:
        if count != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {count} value(s)")
        return shape, _only_place(index)

    def place(i, load, h):
        at = load("index", i[d]) if len(index.shape) else load("index")
        return tuple(at if e == d else i[e] for e in range(len(shape)))

    return shape, place


index_select.derivative(
    self=lambda ct, self_like, dim, index: aten.index_add.default(
        aten.new_zeros.default(ct, list(self_like.shape)), dim, index, ct
    )
)


@index(
    "_index_add(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    mode="write",
    source="source",
    base="self",
    combine="add",
    variants="",
)
def _index_add(ix, self, dim, index, source):
    d = normalize_dim(dim, len(self.shape))
    if not source.shape:
        return (), _only_place(index)
    return tuple(source.shape), lambda i, load, h: tuple(
        load("index", i[d]) if e == d else i[e] for e in range(len(source.shape))
    )


_index_add.derivative(self=lambda ct: ct, source=lambda ct, dim, index: aten.index_select.default(ct, dim, index))


def count_of(self, index, source, dim, name):
    """An error unless there is one index for each slice of ``source`` along a dimension of ``self``."""
    d = normalize_dim(dim, self.ndim)
    if d and d >= source.ndim:
        raise RuntimeError(f"{name}_(): Indexing dim {d} is out of bounds of the source tensor with dim {source.ndim}")
    n = source.shape[d] if source.ndim else 1
    if index.numel() == n:
        return
    if not source.ndim:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    raise RuntimeError(
        f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({n}), for dim: {d}"
    )


def check_slices(self, source, dim):
    """RuntimeError unless ``source`` has the dimensions of ``self``, and its sizes but along ``dim``."""
    d = normalize_dim(dim, self.ndim)
    if self.ndim != source.ndim or any(e != d and n != m for e, (n, m) in enumerate(zip(self.shape, source.shape))):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}"
        )


@explicit(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    variants="function method",
    inplace=True,
    has_out=True,
)
def index_add(self, dim, index, source, alpha):
    if self.dtype is not source.dtype:
        raise RuntimeError(
            f"index_add_(): self ({_scalar_name(self.dtype)}) and source ({_scalar_name(source.dtype)}) must have the same scalar type"
        )
    _need_index("index_add", index)
    if index.ndim > 1:
        raise IndexError(f"index_add_(): Index is supposed to be a vector, but got dim: {index.ndim}")
    count_of(self, index, source, dim, "index_add")
    check_slices(self, source, dim)
    places = index if index.ndim else aten.reshape.default(index, [1])
    return aten._index_add.default(self, dim, places, scaled(source, alpha))


def _scaled_select(ct, dim, index, alpha):
    out = aten.index_select.default(ct, dim, index)
    return out if alpha == 1 else aten.mul.Tensor(out, alpha)


index_add.derivative(self=lambda ct: ct, source=_scaled_select)


# Slices written into zeros: the derivatives of select and slice.


def _slice(shape, d, start, end, step):
    """(where a slice along the dimension ``d`` begins, its shape). RuntimeError for a step that isn't positive."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    n = shape[d]
    begin, stop = (min(max(x + n if x < 0 else x, 0), n) for x in (start, end))
    length = max(-(-(stop - begin) // step), 0)
    return begin, tuple(length if e == d else m for e, m in enumerate(shape))


def _check_gradient(name: str, given, what: str, shape) -> None:
    """RuntimeError unless a gradient has the shape of what was read, as far as sizes are known."""
    try:
        fits = same_shape(tuple(given.shape), shape)
    except GuardOnDataDependentSymNode:
        fits = True
    if not fits:
        raise RuntimeError(f"{name}: the gradient has the shape {list(given.shape)}, the {what} {list(shape)}")


@index(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt step) -> Tensor",
    mode="write",
    source="grad_output",
    shape_of=lambda g, sizes, *o: sizes,
    variants="",
    tags=("copies",),
)
def slice_backward(ix, grad_output, input_sizes, dim, start, end, step):
    d = normalize_dim(dim, len(input_sizes))
    begin, shape = _slice(input_sizes, d, start, end, step)
    _check_gradient("slice_backward", grad_output, "slice", shape)
    return tuple(grad_output.shape), lambda i, load, h: tuple(
        h.add(h.mul(i[e], step), begin) if e == d else i[e] for e in range(len(i))
    )


slice_backward.derivative(grad_output=lambda ct, dim, start, end, step: aten.slice.Tensor(ct, dim, start, end, step))


@index(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> Tensor",
    mode="write",
    source="grad_output",
    shape_of=lambda g, sizes, *o: sizes,
    variants="",
)
def diagonal_backward(ix, grad_output, input_sizes, offset, dim1, dim2):
    d1, d2 = (normalize_dim(d, len(input_sizes)) for d in (dim1, dim2))
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = max(min(input_sizes[d1] + min(offset, 0), input_sizes[d2] - max(offset, 0)), 0)
    shape = (*(n for e, n in enumerate(input_sizes) if e not in (d1, d2)), length)
    _check_gradient("diagonal_backward", grad_output, "diagonal", shape)

    def at(i, load, h):
        rest, k = iter(i[:-1]), i[-1]
        return tuple(
            (h.add(k, -offset) if offset < 0 else k)
            if e == d1
            else (h.add(k, offset) if offset > 0 else k)
            if e == d2
            else next(rest)
            for e in range(len(input_sizes))
        )

    return tuple(grad_output.shape), at


diagonal_backward.derivative(grad_output=lambda ct, offset, dim1, dim2: aten.diagonal.default(ct, offset, dim1, dim2))


@index(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    mode="write",
    source="grad_in",
    combine="add",
    shape_of=lambda g, sizes, *o: sizes,
    variants="",
)
def unfold_backward(ix, grad_in, input_sizes, dim, size, step):
    if not input_sizes:
        return tuple(grad_in.shape), lambda i, load, h: ()
    d = normalize_dim(dim, len(input_sizes))
    if step <= 0 or size < 0:
        raise RuntimeError(f"unfold_backward: the step is {step} and the size {size}, but they have to be positive")
    windows = (input_sizes[d] - size) // step + 1
    shape = (*(windows if e == d else n for e, n in enumerate(input_sizes)), size)
    _check_gradient("unfold_backward", grad_in, "windows", shape)
    return tuple(grad_in.shape), lambda i, load, h: tuple(
        h.add(h.mul(i[d], step), i[-1]) if e == d else i[e] for e in range(len(input_sizes))
    )


unfold_backward.derivative(grad_in=lambda ct, dim, size, step: aten.unfold.default(ct, dim, size, step))


@explicit("select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor")
def select_backward(grad_output, input_sizes, dim, index):
    d = normalize_dim(dim, len(input_sizes))
    n = input_sizes[d]
    if isinstance(index, int) and isinstance(n, int) and not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input_sizes)} at dimension {d}"
        )
    index = index % n
    return aten.slice_backward.default(aten.unsqueeze.default(grad_output, d), input_sizes, d, index, index + 1, 1)


select_backward.derivative(grad_output=lambda ct, dim, index: aten.select.int(ct, dim, index))


@index(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    mode="write",
    source="src",
    base="self",
    keeps_order=True,
    out_rules="rows",
    has_out=True,
)
def slice_scatter(ix, self, src, dim, start, end, step):
    """A slice of ``self`` replaced by ``src``: the inverse of slicing, which functionalization uses for writes through views."""
    d = normalize_dim(dim, len(self.shape))
    begin, want = _slice(self.shape, d, start or 0, self.shape[d] if end is None else end, step)
    if list(src.shape) != list(want):
        raise RuntimeError(
            f"slice_scatter: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(want)}"
        )
    return tuple(src.shape), lambda i, load, h: tuple(
        h.add(h.mul(i[e], step), begin) if e == d else i[e] for e in range(len(i))
    )


slice_scatter.derivative(
    self=lambda ct, src_like, dim, start, end, step: aten.slice_scatter.default(
        ct, aten.new_zeros.default(ct, list(src_like.shape)), dim, start, end, step
    ),
    src=lambda ct, dim, start, end, step: aten.slice.Tensor(ct, dim, start, end, step),
)


@composite("select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor")
def select_scatter(self, src, dim, index):
    d = normalize_dim(dim, len(self.shape))
    if isinstance(index, int) and isinstance(self.shape[d], int) and not -self.shape[d] <= index < self.shape[d]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {d}")
    index = index % self.shape[d]
    return aten.slice_scatter.default(self, aten.unsqueeze.default(src, d), d, index, index + 1, 1)


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", out_rules="exact outside")
def take_along_dim(self, indices, dim):
    if dim is None:
        return aten.gather.default(aten.reshape.default(self, [-1]), 0, aten.reshape.default(indices, [-1]))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {self.ndim} dimensions for "
            f"input, and {indices.ndim} dimensions for indices"
        )
    if not self.ndim:
        return aten.gather.default(self, dim, indices)
    d = normalize_dim(dim, self.ndim)
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got " + indices.dtype.scalar_type
        )
    own, wanted = list(self.shape), list(indices.shape)
    shape = list(broadcast_shapes([*own[:d], 1, *own[d + 1 :]], [*wanted[:d], 1, *wanted[d + 1 :]]))
    self = aten.expand.default(self, [*shape[:d], own[d], *shape[d + 1 :]])
    indices = aten.where.self(aten.lt.Scalar(indices, 0), aten.add.Tensor(indices, own[d]), indices)
    return aten.gather.default(self, d, aten.expand.default(indices, [*shape[:d], wanted[d], *shape[d + 1 :]]))


def _scatter_reducing(self, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce == "add":
        return aten.scatter_add.default(self, dim, index, src)
    return aten.scatter_reduce.two(self, dim, index, src, "prod", include_self=True)


composite(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    inplace=True,
    out_rules="exact",
)(_scatter_reducing)
composite(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    inplace=True,
    out_rules="exact",
)(
    lambda self, dim, index, value, reduce: _scatter_reducing(
        self, dim, index, aten.full.default(list(index.shape), value, dtype=self.dtype, device=self.device), reduce
    )
)
