"""Rearrangements composed of views and copies: roll, rot90, stacking, splitting, padding, meshgrid, diagonals."""

from __future__ import annotations

import numpy as np

from ...base import dtypes
from ...base.device import CPU
from ...base.errors import AllocationError
from ...base.memory_format import contiguous_format
from ...base.shape_checks import check_creatable, data_dependent_size
from ...base.shapes import broadcast_shapes, infer_size, normalize_dim, same_shape
from ...base.symint import is_int
from ...core.declare import composite, explicit, extern
from ...core.definition import TensorMeta
from ...core.device_memory import elements
from ...core.images import as_image
from ...core.layouts import image_format, strides_of
from ...core.modes import current_dispatch_mode
from ...core.operator import namespace
from ...core.promotion import refused
from ..creation.factories import OPTIONS

aten = namespace("aten")


@explicit("roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor", variants="function method")
def roll(self, shifts, dims):
    shifts, dims = ([v] if is_int(v) else list(v) for v in (shifts, dims))
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims and len(shifts) == 1:
        return aten.view.default(aten.roll.default(aten.reshape.default(self, [-1]), shifts, [0]), list(self.shape))
    if len(shifts) != len(dims):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    out = self
    for s, d in zip(shifts, dims):
        n = self.shape[normalize_dim(d, self.ndim)]
        at = -s % n if n else 0
        if at:
            out = aten.cat.default([aten.slice.Tensor(out, d, at, n), aten.slice.Tensor(out, d, 0, at)], d)
    return aten.clone.default(out, memory_format=contiguous_format) if out is self else out


roll.derivative(
    self=lambda ct, shifts, dims: aten.roll.default(ct, [-s for s in ([shifts] if is_int(shifts) else shifts)], dims)
)


@composite("rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor")
def rot90(self, k, dims):
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    a, b = dims
    if normalize_dim(a, self.ndim) == normalize_dim(b, self.ndim):
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {a} and dim1 = {b}")
    if k % 4 == 0:
        return aten.clone.default(self, memory_format=contiguous_format)
    if k % 4 == 2:
        return aten.flip.default(self, [a, b])
    if k % 4 == 1:
        return aten.transpose.int(aten.flip.default(self, [b]), a, b)
    return aten.transpose.int(aten.flip.default(self, [a]), a, b)


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self):
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return aten.flip.default(self, [1])


@composite("flipud(Tensor self) -> Tensor")
def flipud(self):
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return aten.flip.default(self, [0])


@composite("tile(Tensor self, SymInt[] dims) -> Tensor")
def tile(self, dims):
    return aten.repeat.default(self, [1] * (self.ndim - len(dims)) + list(dims))


@composite(
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor"
)
def repeat_interleave(self, repeats, dim, output_size):
    x = aten.reshape.default(self, [-1]) if dim is None else self
    d = 0 if dim is None else normalize_dim(dim, x.ndim)
    if output_size is not None and output_size != x.shape[d] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {x.shape[d] * repeats} but got {output_size}"
        )
    wide = aten.expand.default(aten.unsqueeze.default(x, d + 1), [*x.shape[: d + 1], repeats, *x.shape[d + 1 :]])
    return aten.reshape.default(
        aten.clone.default(wide, memory_format=contiguous_format),
        [*x.shape[:d], x.shape[d] * repeats, *x.shape[d + 1 :]],
    )


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor"
)
def repeat_interleave_tensor(self, repeats, dim, output_size):
    x = aten.reshape.default(self, [-1]) if dim is None else self
    d = 0 if dim is None else normalize_dim(dim, x.ndim)
    n = x.shape[d]
    counts = aten.expand.default(repeats, [n]) if repeats.ndim == 0 or repeats.shape[0] == 1 else repeats
    if counts.shape[0] != n:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.shape[0]} and input.size({d}) = {n}"
        )
    return aten.index_select.default(x, d, aten.repeat_interleave.Tensor(counts, output_size=output_size))


def _repeat_meta(repeats, output_size):
    n = data_dependent_size("repeat_interleave") if output_size is None else output_size
    check_creatable(n, (n,))
    return TensorMeta((n,), (1,), repeats.dtype, repeats.device)


@extern(
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    meta=_repeat_meta,
    places=("repeats",),
)
def repeat_interleave_positions(repeats, output_size):
    """Position k, ``repeats[k]`` times."""
    if repeats.ndim != 1 or repeats.dtype.kind not in "iu":
        raise RuntimeError("repeat_interleave only accept 1D int32 or int64 vector as repeat")
    if repeats.size and repeats.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and int(repeats.sum()) != output_size:
        raise RuntimeError("allocated size does not match required size")
    return np.repeat(np.arange(len(repeats), dtype=repeats.dtype), repeats)


repeat_interleave_positions.derivative()
repeat_interleave_positions.override(
    "lower",
    lambda lowering, val, repeats, output_size: lowering.repeated(val, repeats, output_size is not None),
)


@repeat_interleave_positions.override("by_parts")
def _repeated_by_parts(repeats, output_size):
    """Position k is where the running sum of repeats passes it."""
    if repeats.ndim != 1 or repeats.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError("repeat_interleave only accept 1D int32 or int64 vector as repeat")
    ends = aten.cumsum.default(aten._to_copy.default(repeats, dtype=dtypes.int64), 0)
    if repeats.numel() and repeats.min().item() < 0:
        raise RuntimeError("repeats can not be negative")
    n = int(ends[-1].item()) if repeats.numel() else 0
    if output_size is not None and n != output_size:
        raise RuntimeError("allocated size does not match required size")
    if not n:
        return aten.new_empty.default(repeats, [0])
    at = aten.searchsorted.Tensor(ends, aten.arange.default(n, device=repeats.device), right=True)
    return aten._to_copy.default(at, dtype=repeats.dtype)


def _at_least(t, n):
    if n == 1:
        return aten.reshape.default(t, [1]) if t.ndim == 0 else t
    if n == 2:
        return aten.reshape.default(t, [1, 1]) if t.ndim == 0 else aten.unsqueeze.default(t, 0) if t.ndim == 1 else t
    return (
        aten.reshape.default(t, [1, 1, 1])
        if t.ndim == 0
        else aten.unsqueeze.default(aten.unsqueeze.default(t, 0), 2)
        if t.ndim == 1
        else aten.unsqueeze.default(t, 2)
        if t.ndim == 2
        else t
    )


for _n in (1, 2, 3):
    composite(f"atleast_{_n}d(Tensor self) -> Tensor", variants="function")(lambda self, n=_n: _at_least(self, n))
    composite(f"atleast_{_n}d.Sequence(Tensor[] tensors) -> Tensor[]", variants="")(
        lambda tensors, n=_n: [_at_least(t, n) for t in tensors]
    )


@composite("hstack(Tensor[] tensors) -> Tensor", variants="function", out_rules="casts outside joins")
def hstack(tensors):
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    ts = [_at_least(t, 1) for t in tensors]
    return aten.cat.default(ts, 0 if ts and ts[0].ndim == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", variants="function", out_rules="casts outside joins")
def vstack(tensors):
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return aten.cat.default([_at_least(t, 2) for t in tensors], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", variants="function", out_rules="casts outside joins")
def dstack(tensors):
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return aten.cat.default([_at_least(t, 3) for t in tensors], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", variants="function", out_rules="casts outside joins")
def column_stack(tensors):
    return aten.hstack.default([t if t.ndim > 1 else aten.reshape.default(t, [t.numel(), 1]) for t in tensors])


def _splittable(self):
    if self.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")


# A view takes some 200 bytes: no machine holds as many.
_MOST_VIEWS = 1 << 30


def _pieces(self, cuts, dim):
    n, out, at = self.shape[normalize_dim(dim, self.ndim)], [], 0
    for cut in [*cuts, n]:
        out.append(aten.slice.Tensor(self, dim, at, max(cut + n if cut < 0 else cut, at)))
        at = cut
    return out


@composite("tensor_split.sections(Tensor(a -> *) self, SymInt sections, int dim=0) -> Tensor(a)[]")
def tensor_split(self, sections, dim):
    _splittable(self)
    if sections <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
    if sections > _MOST_VIEWS:
        raise AllocationError(f"tensor_split: {sections} views don't fit into memory")
    q, r = divmod(self.shape[normalize_dim(dim, self.ndim)], sections)
    return _pieces(self, [k * q + min(k, r) for k in range(1, sections)], dim)


@composite("tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]")
def tensor_split_indices(self, indices, dim):
    _splittable(self)
    return _pieces(self, indices, dim)


@composite(
    "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]"
)
def tensor_split_by_tensor(self, tensor_indices_or_sections, dim):
    t = tensor_indices_or_sections
    _splittable(self)
    if t.dtype is not dtypes.int64:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {t.dtype.scalar_type}"
        )
    if t.ndim > 1:
        raise RuntimeError(
            f"tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {t.ndim} dims"
        )
    if t.ndim == 0:
        return aten.tensor_split.sections(self, t.item(), dim)
    return aten.tensor_split.indices(self, t.tolist(), dim)


@composite("unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)")
def unflatten(self, dim, sizes):
    d = normalize_dim(dim, self.ndim)
    if len(sizes) == 0:
        raise RuntimeError("unflatten: sizes must be non-empty")
    try:
        sizes = infer_size(sizes, self.shape[d])
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({self.shape[d]}) in the input tensor"
        ) from None
    return aten.view.default(self, [*self.shape[:d], *sizes, *self.shape[d + 1 :]])


@composite("movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def movedim(self, source, destination):
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims as "
            f"destination ({list(destination)} dims)"
        )
    src, dst = ([normalize_dim(d, self.ndim) for d in ds] for ds in (source, destination))
    for name, dims, given in (("source", src, source), ("destination", dst, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(given)})")
    order = [None] * self.ndim
    for s, d in zip(src, dst):
        order[d] = s
    rest = iter(d for d in range(self.ndim) if d not in src)
    return aten.permute.default(self, [next(rest) if d is None else d for d in order])


@composite("swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)")
def swapaxes(self, axis0, axis1):
    return aten.transpose.int(self, axis0, axis1)


@composite("swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)")
def swapdims(self, dim0, dim1):
    return aten.transpose.int(self, dim0, dim1)


@composite("moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)")
def moveaxis(self, source, destination):
    return aten.movedim.int(self, source, destination)


@composite("moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)")
def moveaxis_list(self, source, destination):
    return aten.movedim.intlist(self, source, destination)


@composite("reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", variants="method")
def reshape_as(self, other):
    return aten.reshape.default(self, list(other.shape))


@composite("ravel(Tensor(a) self) -> Tensor(a)")
def ravel(self):
    return aten.reshape.default(aten.contiguous.default(self), [-1])


@composite("broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)")
def broadcast_to(self, size):
    return aten.expand.default(self, size)


@composite("broadcast_tensors(Tensor[] tensors) -> Tensor[]", variants="")
def broadcast_tensors(tensors):
    shape = list(broadcast_shapes(*[tuple(t.shape) for t in tensors]))
    return [t if same_shape(t.shape, shape) else aten.expand.default(t, shape) for t in tensors]


@composite("meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]", variants="")
def meshgrid(tensors, indexing):
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of size {list(t.shape)}"
            )
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) > 1
    ts = [tensors[1], tensors[0], *tensors[2:]] if swap else list(tensors)
    shape = [t.numel() for t in ts]
    out = [
        aten.expand.default(aten.view.default(t, [-1 if k == j else 1 for j in range(len(ts))]), shape)
        for k, t in enumerate(ts)
    ]
    if swap:
        out[0], out[1] = out[1], out[0]
    return out


composite("meshgrid(Tensor[] tensors) -> Tensor[]", variants="")(lambda tensors: meshgrid.definition.fn(tensors, "ij"))


@explicit("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", variants="function method")
def diag_embed(self, offset, dim1, dim2):
    n = self.shape[-1] + abs(offset)
    d1, d2 = normalize_dim(dim1, self.ndim + 1), normalize_dim(dim2, self.ndim + 1)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rest = iter(self.shape[:-1])
    shape = [n if e in (d1, d2) else next(rest) for e in range(self.ndim + 1)]
    return aten.diagonal_backward.default(self, shape, offset, d1, d2)


@composite("diag(Tensor self, int diagonal=0) -> Tensor", out_rules="exact")
def diag(self, diagonal):
    if self.ndim == 1:
        return aten.diag_embed.default(self, diagonal)
    if self.ndim == 2:
        return aten.clone.default(aten.diagonal.default(self, diagonal), memory_format=contiguous_format)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self, offset):
    return aten.diag_embed.default(aten.reshape.default(self, [-1]), offset)


@explicit("constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor")
def constant_pad_nd(self, pad, value):
    if len(pad) % 2 or len(pad) > 2 * self.ndim:
        raise RuntimeError(
            f"Length of pad must be even and no more than twice the number of dimensions, but got pad={list(pad)} for {self.ndim} dimensions"
        )
    out, grows = self, False
    for k in range(len(pad) // 2):
        d, (before, after) = self.ndim - 1 - k, pad[2 * k : 2 * k + 2]
        n = out.shape[d]
        if n + before + after < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {before} and {after}, resulted in a negative output size, which is invalid."
            )
        if before < 0 or after < 0:
            out = aten.slice.Tensor(out, d, max(-before, 0), n + min(after, 0))
        edges = [
            aten.new_full.default(out, [m if e == d else s for e, s in enumerate(out.shape)], value) if m > 0 else None
            for m in (before, after)
        ]
        parts = [t for t in (edges[0], out, edges[1]) if t is not None]
        if len(parts) > 1:
            out, grows = aten.cat.default(parts, d), True
    if not grows:
        return aten.clone.default(out)  # in the input's memory order, and never a view of it
    return as_image(out, image_format(tuple(self.shape), strides_of(self)))


@constant_pad_nd.override("keep_fused")
def _(self, pad, value):
    number = type(value) is float if self.dtype.is_floating_point else type(value) in (bool, int)
    plain = (number or value == 0) and not self.dtype.is_complex and all(type(n) is int for n in pad)
    return plain and sum(n > 0 for n in pad) > 1


@constant_pad_nd.override("lower")
def _(lowering, val, self, pad, value):
    rest = [0] * (self.ndim - len(pad) // 2)
    before, after = ([*rest, *reversed(pad[k::2])] for k in (0, 1))
    return lowering.pad(self, before, after, value, val)


@explicit("block_diag(Tensor[] tensors) -> Tensor", variants="")
def block_diag(tensors):
    """A matrix with the given ones on its diagonal; vectors and numbers are rows."""
    parts = [aten.reshape.default(t, [1, -1]) if t.ndim < 2 else t for t in tensors]
    if any(t.ndim > 2 for t in parts):
        raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions")
    if not parts:
        return aten.empty.memory_format([1, 0])
    width, rows, before = sum([t.shape[1] for t in parts]), [], 0
    for t in parts:
        rows.append(aten.constant_pad_nd.default(t, [before, width - before - t.shape[1]], 0))
        before += t.shape[1]
    return aten.cat.default(rows, 0)


block_diag.override("rows", lambda h, tensors: h.block_diag(tensors))


# A tensor of its own, as PyTorch's: not a view into the cotangent.
constant_pad_nd.derivative(self=lambda ct, pad: aten.constant_pad_nd.default(ct, [-p for p in pad], 0))


def _edge_pad(name, n, index_of):
    """Padding that repeats elements: the index each output position reads, a dimension at a time."""

    def check(self, padding):
        if len(padding) != 2 * n:
            raise RuntimeError(f"padding size is expected to be {2 * n}")
        if self.ndim not in (n + 1, n + 2) or 0 in self.shape[self.ndim - n - 1 :]:
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
                f"got: {list(self.shape)}"
            )
        given = self.shape[self.ndim - n :]
        made = [size + padding[-2 - 2 * d] + padding[-1 - 2 * d] for d, size in enumerate(given)]
        if all(size < 1 for size in made):
            before, after = (
                " ".join(f"{axis}: {size}" for axis, size in zip("DHW"[3 - n :], sizes)) for sizes in (given, made)
            )
            raise RuntimeError(f"input ({before}) is too small. Calculated output {after}")

    @explicit(f"{name}{n}d(Tensor self, SymInt[{2 * n}] padding) -> Tensor", images=0)
    def pad(self, padding):
        check(self, padding)
        out = self
        for k in range(n):
            d, (before, after) = self.ndim - 1 - k, padding[2 * k : 2 * k + 2]
            size = out.shape[d]
            if name == "reflection_pad" and max(before, after) >= size:
                raise RuntimeError(
                    "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
                    f"({before}, {after}) at dimension {d} of input {list(self.shape)}"
                )
            positions = aten.arange.start(-before, size + after, device=self.device)
            out = aten.index_select.default(out, d, index_of(positions, size))
        return out

    @pad.override("rows")
    def _(h, self, padding):
        check(self, padding)
        return h.pad_edges(self, padding, name == "reflection_pad")


def _reflected(i, n):
    i = aten.abs.default(i)
    return aten.sub.Tensor(
        aten.full_like.default(i, n - 1), aten.abs.default(aten.sub.Tensor(i, aten.full_like.default(i, n - 1)))
    )


for _n in (1, 2, 3):
    _edge_pad("reflection_pad", _n, _reflected)
    _edge_pad("replication_pad", _n, lambda i, n: aten.clamp.default(i, 0, n - 1))


@composite("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor", variants="function nn", images=0)
def pixel_shuffle(self, upscale_factor):
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    if self.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {self.ndim} dimension(s)"
        )
    r, (c, h, w) = upscale_factor, self.shape[-3:]
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    x = aten.reshape.default(self, [*self.shape[:-3], c // (r * r), r, r, h, w])
    b = self.ndim - 3
    x = aten.clone.default(
        aten.permute.default(x, [*range(b), b, b + 3, b + 1, b + 4, b + 2]), memory_format=contiguous_format
    )
    return aten._unsafe_view.default(x, [*self.shape[:-3], c // (r * r), h * r, w * r])


@composite("one_hot(Tensor self, int num_classes=-1) -> Tensor", variants="nn")
def one_hot(self, num_classes):
    if self.dtype.name != "int64":
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor. Got {self.dtype}")
    if num_classes < -1:
        raise RuntimeError("num_classes should be positive")
    known = elements(self)
    least, most = (0, -1) if known is None or not known.size else _range_of(self, known)
    if least < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        if not self.numel():
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(aten.max.default(self).item()) + 1 if known is None else most + 1
        if num_classes < 1:
            raise RuntimeError("Class values must be non-negative.")
        if known is not None and num_classes == _counted[0] and current_dispatch_mode() is None:
            return aten.one_hot.default(self, num_classes)
        _counted[0] = num_classes
    elif most >= num_classes or (num_classes == 0 and self.numel()):
        raise RuntimeError("Class values must be smaller than num_classes.")
    if known is not None and known.size:
        made = aten.zeros.default([*self.shape, num_classes], dtype=self.dtype, device=self.device)
        return aten.scatter_.value(made, -1, aten.unsqueeze.default(self, -1), 1)
    classes = aten.arange.default(num_classes, device=self.device)
    if known is None:
        # The values aren't known yet: a read at each, which a kernel checks, is the value itself.
        flat = aten.gather.default(classes, 0, aten.reshape.default(self, [-1]))
        self = aten.view.default(flat, list(self.shape))
    hit = aten.eq.Tensor(aten.unsqueeze.default(aten.contiguous.default(self), -1), classes)
    return aten._to_copy.default(hit, dtype=self.dtype)


# The number of classes that the last call counted. A call that counts it again asks with that number: such calls have a plan. Modes see
# the same operators whatever was called before.
_counted = [0]


def _range_of(x, array) -> tuple[int, int]:
    """The least and the greatest of the integers of a tensor, which has some: those of ``array``."""
    if array.size <= _FEW:
        numbers = array.reshape(-1).tolist()
        return min(numbers), max(numbers)
    return int(aten.min.default(x).item()), int(aten.max.default(x).item())


_FEW = 24  # integers that Python compares as fast


def _triangle_indices(name, pick):
    def meta(row, col, offset, dtype, layout, device, pin_memory):
        for size, what in ((row, "row"), (col, "col")):
            if size < 0:
                raise RuntimeError(f"{what} must be non-negative, got{size}")
        dtype = dtype or dtypes.int64
        if dtype not in (dtypes.int32, dtypes.int64):
            refused(name, dtype)
        n = int(pick(row, col, offset)[1].sum())
        return TensorMeta((2, n), (n, 1), dtype, device or CPU)

    @extern(
        f"{name}(int row, int col, int offset=0, {OPTIONS.replace('dtype=None', 'dtype=long')}) -> Tensor",
        meta=meta,
        variants="function",
    )
    def indices(row, col, offset, dtype, layout, device, pin_memory):
        meta(row, col, offset, dtype, layout, device, pin_memory)
        first, counts = pick(row, col, offset)
        out = np.empty((2, int(counts.sum())), np.int64)
        out[0] = np.repeat(np.arange(row), counts)
        out[1] = np.arange(out.shape[1]) + np.repeat(first - np.cumsum(counts) + counts, counts)
        return out.astype((dtype or dtypes.int64).np, copy=False)

    indices.derivative()
    indices.override("lower", lambda lowering, val, *given: lowering.known(val, indices, *given))


def _left(row, col, offset):
    """The first column and the number of columns of each row on and below a diagonal."""
    return np.zeros(row, np.int64), np.clip(np.arange(1, row + 1) + offset, 0, col)


def _right(row, col, offset):
    first = np.clip(np.arange(row) + offset, 0, col)
    return first, col - first


_triangle_indices("tril_indices", _left)
_triangle_indices("triu_indices", _right)
