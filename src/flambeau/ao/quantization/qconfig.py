"""Configurations: which observer (or fake quantisation) looks at activations, and which at weights."""

from __future__ import annotations

from collections import namedtuple

import flambeau as torch

from .fake_quantize import (
    FusedMovingAvgObsFakeQuantize,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    _PartialWrapper,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_reuse_input_observer,
    default_weight_observer,
)

__all__ = [
    "QConfig",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qconfig",
    "default_per_channel_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_reuse_input_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """Makers of the observers of activations and of weights: classes, or what ``with_args`` gives. ValueError for instances."""

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, torch.nn.Module) or isinstance(weight, torch.nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(activation=default_observer, weight=default_weight_observer)
default_debug_qconfig = QConfig(weight=default_weight_observer, activation=default_debug_observer)
default_per_channel_qconfig = QConfig(activation=default_observer, weight=default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(activation=default_dynamic_quant_observer, weight=default_weight_observer)
float16_dynamic_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=torch.float16, is_dynamic=True),
    weight=PlaceholderObserver.with_args(dtype=torch.float16),
)
float16_static_qconfig = QConfig(
    activation=PlaceholderObserver.with_args(dtype=torch.float16),
    weight=PlaceholderObserver.with_args(dtype=torch.float16),
)
per_channel_dynamic_qconfig = QConfig(
    activation=default_dynamic_quant_observer, weight=default_per_channel_weight_observer
)
default_qat_qconfig = QConfig(activation=default_fake_quant, weight=default_weight_fake_quant)
default_weight_only_qconfig = QConfig(activation=torch.nn.Identity, weight=default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=default_fake_quant, weight=torch.nn.Identity)
default_qat_qconfig_v2 = QConfig(activation=default_fused_act_fake_quant, weight=default_fused_wt_fake_quant)
float_qparams_weight_only_qconfig = QConfig(
    activation=default_placeholder_observer, weight=default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    activation=default_placeholder_observer, weight=default_float_qparams_observer_4bit
)
default_reuse_input_qconfig = QConfig(activation=default_reuse_input_observer, weight=NoopObserver)

_HALVED = {"x86": True, "fbgemm": True, "onednn": False, "qnnpack": False}


def _known(backend: str) -> None:
    if backend not in _HALVED:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {list(_HALVED)}")


def get_default_qconfig(backend="x86", version=0):
    """The configuration for quantising a trained model: histograms of activations, weights by output channel (by tensor for ``qnnpack``).

    Kernels here have 32-bit sums and need no halved range, which ``x86`` and ``fbgemm`` ask for in PyTorch and have here too."""
    _known(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0"
        )
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(activation=HistogramObserver.with_args(reduce_range=_HALVED[backend]), weight=weight)


def get_default_qat_qconfig(backend="x86", version=1):
    """The configuration for training with fake quantisation. ``version`` 0 has separate observers, 1 fused ones."""
    _known(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version} in get_default_qat_qconfig is not supported. Version number must be 0 or 1"
        )
    maker = FusedMovingAvgObsFakeQuantize if version else default_fake_quant
    activation = maker.with_args(
        observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, reduce_range=_HALVED[backend]
    )
    by_tensor, by_channel = (
        (default_fused_wt_fake_quant, default_fused_per_channel_wt_fake_quant)
        if version
        else (default_weight_fake_quant, default_per_channel_weight_fake_quant)
    )
    return QConfig(activation=activation, weight=by_tensor if backend == "qnnpack" else by_channel)


def qconfig_equals(q1, q2):
    """Whether two configurations make the same observers."""
    if q1 is None or q2 is None:
        return q1 is q2
    return _alike(q1.activation, q2.activation) and _alike(q1.weight, q2.weight)


def _alike(a, b) -> bool:
    if isinstance(a, _PartialWrapper) and isinstance(b, _PartialWrapper):
        return (
            _alike(a.p.func, b.p.func)
            and a.p.keywords.keys() == b.p.keywords.keys()
            and all(_alike(v, b.p.keywords[k]) for k, v in a.p.keywords.items())
        )
    return a == b
