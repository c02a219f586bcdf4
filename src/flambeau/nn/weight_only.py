"""Linear layers whose weights have 8 or 4 bits, for inference: ``quantize_(model, Int8WeightOnlyConfig())``.

The names are torchao's, reached as ``torch.ao.quantization.quantize_`` and so on. A layer keeps its name, hooks and bias; the floating-point
parameter gives way to buffers, so that ``state_dict`` holds the small weights and ``load_state_dict`` wants a model on which ``quantize_`` was
called with the same configuration.
Products are ATen's ``_weight_int8pack_mm`` and ``_weight_int4pack_mm_for_cpu``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flambeau.base import dtypes
from flambeau.core.bindings import function
from flambeau.core.operator import namespace
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.nn.modules.linear import Linear

__all__ = ["Int4WeightOnlyConfig", "Int4WeightOnlyLinear", "Int8WeightOnlyConfig", "Int8WeightOnlyLinear", "quantize_"]

aten = namespace("aten")
amax, amin, clamp, round_, stack, where = map(function, ("amax", "amin", "clamp", "round", "stack", "where"))

GROUPS = (32, 64, 128, 256)
_DTYPES = (dtypes.float32, dtypes.bfloat16, dtypes.float16)


class _WeightOnlyLinear(Linear):
    """What a Linear becomes. It has no ``weight``; :meth:`dequantize` makes one."""

    def forward(self, input: Tensor) -> Tensor:
        rows = self._product(input.reshape(-1, input.shape[-1]))
        out = rows.reshape(*input.shape[:-1], self.out_features)
        return out if self.bias is None else out + self.bias.to(out.dtype)

    def reset_parameters(self) -> None:
        raise RuntimeError(f"{type(self).__name__}: the weight has been quantised and can't be drawn again")


class Int8WeightOnlyLinear(_WeightOnlyLinear):
    """``int8_weight`` (out_features, in_features) times ``scales`` (out_features)."""

    def _keep(self, weight, config) -> None:
        """The nearest multiples of a 127th of each row's greatest magnitude: off by at most half a scale."""
        wide = weight.float()
        scales = _positive(amax(wide.abs(), 1) / 127)
        self.register_buffer("int8_weight", clamp(round_(wide / scales[:, None]), -127, 127).to(dtypes.int8))
        self.register_buffer("scales", scales.to(weight.dtype))

    def _product(self, rows):
        return aten._weight_int8pack_mm.default(rows, self.int8_weight, self.scales.to(rows.dtype))

    def dequantize(self) -> Tensor:
        """The weights that products are made with (out_features, in_features)."""
        return self.int8_weight.to(self.scales.dtype) * self.scales[:, None]


class Int4WeightOnlyLinear(_WeightOnlyLinear):
    """``int4_weight`` (out_features, in_features / 2), packed by ``_convert_weight_to_int4pack_for_cpu``, and ``scales_and_zeros``
    (in_features / group, out_features, 2)."""

    def _keep(self, weight, config) -> None:
        """The nearest of 16 steps between the least and the greatest of each group: off by at most half a step."""
        n, k = weight.shape
        self.group_size = config.group_size
        groups = weight.float().reshape(n, k // config.group_size, config.group_size)
        least = amin(groups, 2)
        scales = _positive((amax(groups, 2) - least) / 15)
        numbers = clamp(round_((groups - least[..., None]) / scales[..., None]), 0, 15).to(dtypes.int32)
        packed = aten._convert_weight_to_int4pack_for_cpu.default(numbers.reshape(n, k), 1)
        self.register_buffer("int4_weight", packed)
        both = stack([scales, least + 8 * scales], -1).transpose(0, 1).contiguous()
        self.register_buffer("scales_and_zeros", both.to(weight.dtype))

    def _product(self, rows):
        scales = self.scales_and_zeros.to(rows.dtype)
        return aten._weight_int4pack_mm_for_cpu.default(rows, self.int4_weight, self.group_size, scales)

    def dequantize(self) -> Tensor:
        """The weights that products are made with (out_features, in_features)."""
        blocks = self.int4_weight.reshape(self.out_features, -1, 1, 16)
        numbers = stack([blocks & 15, blocks >> 4], 2).reshape(self.out_features, -1, self.group_size)
        scales, zeros = self.scales_and_zeros.permute(2, 1, 0)[..., None]
        return ((numbers.to(scales.dtype) - 8) * scales + zeros).reshape(self.out_features, self.in_features)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, group_size={self.group_size}"


def _positive(scales):
    """Ones where all weights are alike."""
    return where(scales == 0, 1.0, scales)


@dataclass
class Int8WeightOnlyConfig:
    """Weights of 8 bits, a scale for each output channel. ValueError for groups, which aren't built."""

    group_size: int | None = None

    def __post_init__(self):
        if self.group_size is not None:
            raise ValueError(
                f"Int8WeightOnlyConfig: only one scale a channel is built, got group_size={self.group_size}"
            )

    def _check(self, name: str, layer: Linear) -> None:
        """Nothing more is asked of a layer."""

    _becomes = Int8WeightOnlyLinear


@dataclass
class Int4WeightOnlyConfig:
    """Weights of 4 bits, a scale and a zero for ``group_size`` inputs of an output channel: 32, 64, 128 or 256, else ValueError."""

    group_size: int = 128

    def __post_init__(self):
        if self.group_size not in GROUPS:
            raise ValueError(f"Int4WeightOnlyConfig: group_size is one of {GROUPS}, got {self.group_size!r}")

    def _check(self, name: str, layer: Linear) -> None:
        if layer.in_features % self.group_size:
            raise ValueError(
                f"quantize_: {name} has {layer.in_features} inputs, which groups of {self.group_size} don't divide; "
                "take another group_size, or leave the layer out by filter_fn"
            )

    _becomes = Int4WeightOnlyLinear


def _is_linear(module, name: str) -> bool:
    return type(module) is Linear


def quantize_(
    model: Module,
    config: Int8WeightOnlyConfig | Int4WeightOnlyConfig,
    filter_fn: Callable[[Module, str], bool] | None = None,
) -> None:
    """Turns the Linear layers of ``model`` (the model itself too) into ones with small weights, in place. ``filter_fn(module, name)`` chooses among
    the modules; by default every Linear, but not what derives from it. TypeError for a configuration that is none and for modules that aren't
    Linear, ValueError for weights that the configuration doesn't fit: then nothing is changed."""
    if not isinstance(config, (Int8WeightOnlyConfig, Int4WeightOnlyConfig)):
        raise TypeError(
            f"quantize_: expected Int8WeightOnlyConfig or Int4WeightOnlyConfig, got {type(config).__name__}"
        )
    chosen = [(name, m) for name, m in model.named_modules() if (filter_fn or _is_linear)(m, name)]
    for name, layer in chosen:
        name = name or "the model"
        if type(layer) is not Linear:
            raise TypeError(f"quantize_: {name} is a {type(layer).__name__}, only Linear layers are built")
        if layer.weight.dtype not in _DTYPES or layer.weight.device.type != "cpu":
            raise ValueError(
                f"quantize_: the weight of {name} is {layer.weight.dtype} on {layer.weight.device}; "
                "float32, bfloat16 or float16 on the CPU is expected"
            )
        config._check(name, layer)
    for _, layer in chosen:
        weight = layer.weight.detach()
        del layer.weight
        layer.__class__ = config._becomes
        layer._keep(weight, config)
