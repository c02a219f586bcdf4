"""Padding, resampling, folding and shuffling of images and signals."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from flambeau.base.memory_format import contiguous_format
from flambeau.base.symint import as_float
from flambeau.core.bindings import function
from flambeau.core.overrides import checked_input, overridable
from flambeau.core.tensor import Tensor

__all__ = [
    "affine_grid",
    "channel_shuffle",
    "fold",
    "grid_sample",
    "interpolate",
    "native_channel_shuffle",
    "pad",
    "pixel_shuffle",
]
__all__ += ["pixel_unshuffle", "unfold", "upsample", "upsample_bilinear", "upsample_nearest"]
__all__ += ["GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES"]

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

channel_shuffle, pixel_shuffle, pixel_unshuffle = map(function, ("channel_shuffle", "pixel_shuffle", "pixel_unshuffle"))
native_channel_shuffle = channel_shuffle
_im2col, _col2im, _constant_pad, _cat = map(function, ("im2col", "col2im", "constant_pad_nd", "cat"))
_grid_sampler, _affine_grid = map(function, ("grid_sampler", "affine_grid_generator"))
_edge = {
    (mode, n): function(f"{op}_pad{n}d")
    for mode, op in (("reflect", "reflection"), ("replicate", "replication"))
    for n in (1, 2, 3)
}
_LINEAR = {
    3: ("linear", "upsample_linear1d"),
    4: ("bilinear", "upsample_bilinear2d"),
    5: ("trilinear", "upsample_trilinear3d"),
}
_upsample = {
    name: function(name)
    for name in (
        *(f"upsample_nearest{n}d" for n in (1, 2, 3)),
        *(f"_upsample_nearest_exact{n}d" for n in (1, 2, 3)),
        *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
        *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
    )
}


@overridable
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions by pairs (before, after), last dimension first: by a constant, reflected, replicated or circular.

    >>> torch.nn.functional.pad(torch.tensor([1, 2]), (1, 2))
    tensor([0, 1, 2, 0, 0])
    """
    checked_input("pad", input)
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' (position 3) must be str, not {type(mode).__name__}")
    pad = list(pad)
    wrong = next((p for p in pad if isinstance(p, str)), None)
    if wrong is not None:
        raise TypeError(
            f"pad(): argument 'pad' (position 2) must be tuple of ints, but found element {wrong!r} of type str"
        )
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {len(pad)}")
    if isinstance(value, complex):
        raise TypeError("pad(): argument 'value' (position 4) must be float, not complex")
    if mode == "constant":
        return _constant_pad(input, pad, 0 if value is None else as_float(value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(pad) // 2
    if input.dim() not in (n + 1, n + 2) or n not in (1, 2, 3):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    if mode == "circular":
        return _circular(input, pad, n)
    if (mode, n) not in _edge:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    return _edge[mode, n](input, pad)


def _circular(x, pad, n):
    grows = False
    for i in range(n):
        dim, (before, after) = x.dim() - 1 - i, pad[2 * i : 2 * i + 2]
        size = x.shape[dim]
        if before > size or after > size:
            raise RuntimeError(
                f"Padding value causes wrapping around more than once: ({before}, {after}) of size {size}"
            )
        if before < 0 or after < 0:
            x = x.narrow(dim, max(-before, 0), size - max(-before, 0) - max(-after, 0))
            before, after, size = max(before, 0), max(after, 0), x.shape[dim]
        parts = [x.narrow(dim, size - before, before)] if before else []
        parts += [x] + ([x.narrow(dim, 0, after)] if after else [])
        if len(parts) > 1:
            x, grows = _cat(parts, dim), True
    return x.contiguous() if grows else x.clone(memory_format=contiguous_format)


# Larger ones give sizes that no tensor has; nan isn't below it.
_MOST_SCALE = 2.0**62


def _list(value, n):
    return list(value) if isinstance(value, (tuple, list)) else [value] * n


def _sizes_and_scales(
    input: Tensor,
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    recompute_scale_factor: bool | None,
) -> tuple[list[int], list[float | None]]:
    """The spatial sizes of the result, and the scales that the kernel takes instead of the sizes' ratios. ValueError unless one of them is given."""
    n = input.dim() - 2
    if n not in (1, 2, 3) and not any(isinstance(v, list | tuple) for v in (size, scale_factor)):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: linear and its kin"
        )
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales = [None] * n
    if size is not None:
        size = _list(size, n)
        if len(size) != n:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output "
                "size in (o1, o2, ...,oK) format."
            )
        if recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        if isinstance(scale_factor, str):
            raise TypeError("interpolate(): argument 'scale_factor' must be float or tuple of floats, not str")
        scales = [float(s) for s in _list(scale_factor, n)]
        if not all(abs(s) < _MOST_SCALE for s in scales):
            raise RuntimeError(
                f"value cannot be converted to type int64_t without overflow: the sizes for scale_factor={scale_factor}"
            )
        if len(scales) != n:
            raise ValueError(
                f"scale_factor must have {n} elements for an input of {input.dim()} dimensions, got {len(scales)}"
            )
        size = [math.floor(input.shape[2 + i] * scales[i]) for i in range(n)]
        if recompute_scale_factor:
            scales = [None] * n
    else:
        raise ValueError("either size or scale_factor should be defined")
    return size, scales


@overridable
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resample (N, C, ...) to ``size`` or by ``scale_factor``. ``mode``: nearest, nearest-exact, linear, bilinear, bicubic, trilinear, area.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1., 2.]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    n = input.dim() - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    size, scales = _sizes_and_scales(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if mode == "nearest":
        return _upsample[f"upsample_nearest{n}d"](input, size, *scales)
    if mode == "nearest-exact":
        return _upsample[f"_upsample_nearest_exact{n}d"](input, size, *scales)
    if mode == "area":
        from . import pooling

        return getattr(pooling, f"adaptive_avg_pool{n}d")(input, size)
    if mode == "bicubic" and n == 2:
        return _upsample["_upsample_bicubic2d_aa" if antialias else "upsample_bicubic2d"](
            input, size, align_corners, *scales
        )
    linear, op = _LINEAR.get(input.dim(), (None, None))
    if mode == linear:
        return _upsample["_upsample_bilinear2d_aa" if antialias else op](input, size, align_corners, *scales)
    raise NotImplementedError(
        "Input Error: Only 3D, 4D and 5D input Tensors supported "
        f"(got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
    )


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """``interpolate`` under its old name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate` by the nearest element. Deprecated."""
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """:func:`interpolate`, bilinear with corners aligned. Deprecated."""
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


@overridable
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """The input (N, C, ...) at the positions ``grid`` (N, ..., n) in [-1, 1], x first.

    >>> torch.nn.functional.grid_sample(torch.ones(1, 1, 4, 4), torch.zeros(1, 2, 2, 2), align_corners=False).shape
    torch.Size([1, 1, 2, 2])
    """
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if str(padding_mode) not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if "
            "the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=3,
        )
        align_corners = False
    modes = GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode]
    return _grid_sampler(input, grid, *modes, align_corners)


@overridable
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Positions for ``grid_sample`` of affine maps theta (N, 2, 3) or (N, 3, 4); ``size``: the output's (N, C, ...).

    >>> torch.nn.functional.affine_grid(torch.tensor([[[1., 0., 0.], [0., 1., 0.]]]), (1, 1, 2, 2), align_corners=True)[0, 0]
    tensor([[-1., -1.],
            [ 1., -1.]])
    """
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if "
            "the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=3,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    if len(size) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    n = len(size) - 2
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _affine_grid(theta, list(size), align_corners)


def _pairs(**sizes) -> dict:
    """Two numbers for each. RuntimeError for a list of another length."""
    pairs = {name: _list(value, 2) for name, value in sizes.items()}
    for name, value in pairs.items():
        if len(value) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(value)}")
    return pairs


@overridable
def unfold(
    input: Tensor,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """Sliding blocks of (N, C, H, W) as columns: (N, C * kernel elements, blocks).

    >>> torch.nn.functional.unfold(torch.ones(1, 3, 4, 4), 2).shape
    torch.Size([1, 12, 9])
    """
    return _im2col(input, **_pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride))


@overridable
def fold(
    input: Tensor,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Tensor:
    """The sum of blocks at their places: the transpose of ``unfold``."""
    return _col2im(
        input,
        **_pairs(output_size=output_size, kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride),
    )
