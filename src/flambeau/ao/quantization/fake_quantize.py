"""Fake quantisation as modules: an observer, and the rounding that it asks for, for training that knows of the rounding."""

from __future__ import annotations

from abc import ABC, abstractmethod

import flambeau as torch
from flambeau import nn

from .observer import (
    FixedQParamsObserver,
    HistogramObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _with_args,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
)
from .ranges import code_range, fused_qparams

__all__ = [
    "FakeQuantize",
    "FakeQuantizeBase",
    "FixedQParamsFakeQuantize",
    "FusedMovingAvgObsFakeQuantize",
    "default_dynamic_fake_quant",
    "default_fake_quant",
    "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant",
    "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant",
    "default_fused_wt_fake_quant",
    "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
]

_BY_CHANNEL = (torch.per_channel_affine, torch.per_channel_symmetric)


class FakeQuantizeBase(ABC, nn.Module):
    """What all of them are: buffers ``fake_quant_enabled`` and ``observer_enabled`` of one element turn the halves on and off."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", torch.tensor([1], dtype=torch.uint8))
        self.register_buffer("observer_enabled", torch.tensor([1], dtype=torch.uint8))

    @abstractmethod
    def forward(self, x):
        """``x``, rounded to what codes stand for."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on; or don't."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        """Don't round from now on."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Observe from now on; or don't."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        """Keep the scale from now on."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


class FakeQuantize(FakeQuantizeBase):
    """``x`` rounded to ``(clamp(round(x / scale + zero_point), quant_min, quant_max) - zero_point) * scale``.

    ``observer``: the class that finds scale and zero point, with its arguments by keyword. Buffers: ``scale`` (float32), ``zero_point`` (int32)."""

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            kind = observer_kwargs.get("dtype", torch.quint8)
            low, high = code_range(kind)
            if not low <= quant_min or not quant_max <= high:
                raise AssertionError(f"quant_min and quant_max out of bound of {kind}: {quant_min} to {quant_max}")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        observer_kwargs["is_dynamic"] = self.is_dynamic = is_dynamic
        self.activation_post_process = observer(**observer_kwargs)
        seen = self.activation_post_process
        self.quant_min, self.quant_max = seen.quant_min, seen.quant_max
        self.register_buffer("scale", torch.tensor([1.0], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([0], dtype=torch.int))
        self.dtype, self.qscheme = seen.dtype, seen.qscheme
        self.ch_axis = getattr(seen, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _BY_CHANNEL

    def calculate_qparams(self):
        return self.activation_post_process.calculate_qparams()

    def _scales(self):
        """(scale, zero point) to round by."""
        return self.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero = self._scales()
            for held, found in ((self.scale, scale), (self.zero_point, zero)):
                if held.shape != found.shape:
                    held.resize_(found.shape)
                held.copy_(found)
        if self.fake_quant_enabled[0] != 1:
            return X
        ends = self.quant_min, self.quant_max
        if self.is_per_channel:
            return torch.fake_quantize_per_channel_affine(X, self.scale, self.zero_point, self.ch_axis, *ends)
        return torch.fake_quantize_per_tensor_affine(X, self.scale, self.zero_point, *ends)

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, scale={self.scale}, "
            f"zero_point={self.zero_point}, dtype={self.dtype}, quant_min={self.quant_min}, quant_max={self.quant_max}, "
            f"qscheme={self.qscheme}, reduce_range={getattr(self.activation_post_process, 'reduce_range', False)}"
        )

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)


class FixedQParamsFakeQuantize(FakeQuantize):
    """With a scale and a zero point that are known beforehand. TypeError unless the observer is a :class:`FixedQParamsObserver`."""

    def __init__(self, observer):
        super().__init__(observer=observer)
        if not isinstance(self.activation_post_process, FixedQParamsObserver):
            raise TypeError(
                f"FixedQParamsFakeQuantize takes FixedQParamsObserver, got {type(self.activation_post_process).__name__}"
            )
        seen = self.activation_post_process
        self.scale, self.zero_point = seen.scale, seen.zero_point


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """As :class:`FakeQuantize` with an observer of moving averages. TypeError with another observer."""

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **observer_kwargs):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, MovingAverageMinMaxObserver | MovingAveragePerChannelMinMaxObserver
        ):
            raise TypeError("Fused observer+fake_quant module only works with MovingAverageMinMaxObserver")

    def _scales(self):
        seen = self.activation_post_process
        symmetric = self.qscheme in (torch.per_tensor_symmetric, torch.per_channel_symmetric)
        found = fused_qparams(seen.min_val, seen.max_val, self.quant_min, self.quant_max, symmetric)
        return tuple(t.reshape(-1) for t in found)


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255,
    dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=True,
)  # fmt: skip
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric, reduce_range=False,
)  # fmt: skip
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, is_dynamic=True,
    dtype=torch.quint8, averaging_constant=1,
)  # fmt: skip
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=default_fixed_qparams_range_0to1_observer
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric, reduce_range=False, ch_axis=0,
)  # fmt: skip
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=HistogramObserver, quant_min=0, quant_max=255,
    dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=True,
)  # fmt: skip
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=torch.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_tensor_symmetric,
)  # fmt: skip
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver, quant_min=-128, quant_max=127,
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric,
)  # fmt: skip


def disable_fake_quant(mod):
    """Don't round in ``mod``, if it is a fake quantisation: ``model.apply(disable_fake_quant)``."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_fake_quant()


def enable_fake_quant(mod):
    """Round in ``mod``, if it is a fake quantisation: ``model.apply(enable_fake_quant)``."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_fake_quant()


def disable_observer(mod):
    """Keep the scale of ``mod``, if it is a fake quantisation: ``model.apply(disable_observer)``."""
    if isinstance(mod, FakeQuantizeBase):
        mod.disable_observer()


def enable_observer(mod):
    """Observe in ``mod``, if it is a fake quantisation: ``model.apply(enable_observer)``."""
    if isinstance(mod, FakeQuantizeBase):
        mod.enable_observer()
