"""Pooling layers in one, two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn import functional as F
from flambeau.nn.modules._made import layer
from flambeau.nn.modules._tuples import _pair, _triple

__all__ = []

_STRIDE = "stride = kernel_size if stride is None else stride"
_TUPLES = "\n".join(f"{name} = single({name})" for name in ("kernel_size", "stride", "padding"))


def _put(name: str, cls: type) -> None:
    globals()[name] = cls
    __all__.append(name)


def _shown(call: str, n: int, result: str) -> str:
    """An example: a layer on ``n`` dimensions of size 8, with 3 channels."""
    size, pooled = ", ".join(["8"] * n), ", ".join([result] * n)
    return f"\n\n>>> torch.nn.{call}(torch.ones(1, 3, {size})).shape\ntorch.Size([1, 3, {pooled}])"


for _n in (1, 2, 3):
    _put(
        f"MaxPool{_n}d",
        layer(
            f"MaxPool{_n}d",
            getattr(F, f"max_pool{_n}d"),
            "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False",
            "The maximum of each window; with ``return_indices`` also its place." + _shown(f"MaxPool{_n}d(2)", _n, "4"),
            check=_STRIDE,
            shown="kernel_size stride padding dilation ceil_mode",
        ),
    )
    _extra = ", divisor_override=None" if _n > 1 else ""
    _put(
        f"AvgPool{_n}d",
        layer(
            f"AvgPool{_n}d",
            getattr(F, f"avg_pool{_n}d"),
            f"kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True{_extra}",
            "The mean of each window." + _shown(f"AvgPool{_n}d(2)", _n, "4"),
            check=_STRIDE if _n > 1 else f"{_STRIDE}\n{_TUPLES}",
            shown="kernel_size stride padding",
        ),
    )
    _put(
        f"LPPool{_n}d",
        layer(
            f"LPPool{_n}d",
            getattr(F, f"lp_pool{_n}d"),
            "norm_type, kernel_size, stride=None, ceil_mode=False",
            "(sum of x^p over each window)^(1/p)." + _shown(f"LPPool{_n}d(2, 4)", _n, "2"),
        ),
    )
    _put(
        f"AdaptiveAvgPool{_n}d",
        layer(
            f"AdaptiveAvgPool{_n}d",
            getattr(F, f"adaptive_avg_pool{_n}d"),
            "output_size",
            "Means of windows that share the input evenly." + _shown(f"AdaptiveAvgPool{_n}d(1)", _n, "1"),
        ),
    )
    _put(
        f"AdaptiveMaxPool{_n}d",
        layer(
            f"AdaptiveMaxPool{_n}d",
            getattr(F, f"adaptive_max_pool{_n}d"),
            "output_size, return_indices=False",
            "Maxima of windows that share the input evenly." + _shown(f"AdaptiveMaxPool{_n}d(1)", _n, "1"),
            shown="output_size",
        ),
    )
    _put(
        f"MaxUnpool{_n}d",
        layer(
            f"MaxUnpool{_n}d",
            getattr(F, f"max_unpool{_n}d"),
            "kernel_size, stride=None, padding=0",
            "Puts maxima back to the places that ``return_indices`` gave; the rest is zero.",
            inputs="input, indices, output_size=None",
            check=_STRIDE,
            passed="kernel_size stride padding output_size=output_size",
        ),
    )


class _FractionalMaxPool(Module):
    """Maxima of windows at random places. Graham, arXiv:1412.6071."""

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        each = _pair if self.dimensions == 2 else _triple
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = each(output_size) if output_size is not None else None
        self.output_ratio = each(output_ratio) if output_ratio is not None else None
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Tensor:
        pool = F.fractional_max_pool2d if self.dimensions == 2 else F.fractional_max_pool3d
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maximum of windows at drawn places (Graham 2014): (N, C, H, W) -> (N, C, *output_size).

    Either ``output_size`` or ``output_ratio`` (between 0 and 1) is given. ``return_indices`` returns the places too.
    """

    dimensions = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maximum of windows at drawn places: (N, C, D, H, W) -> (N, C, *output_size). Options as for :class:`FractionalMaxPool2d`."""

    dimensions = 3


__all__ += ["FractionalMaxPool2d", "FractionalMaxPool3d"]
