"""Observers: modules that look at what passes through them, and say by which scale and zero point it should be quantised."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod

import flambeau as torch
from flambeau import nn

from .ranges import best_range, code_range, float_qparams, qparams

__all__ = [
    "FixedQParamsObserver",
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "UniformQuantizationObserverBase",
    "default_debug_observer",
    "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer",
    "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer",
    "default_float_qparams_observer_4bit",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_placeholder_observer",
    "default_reuse_input_observer",
    "default_weight_observer",
    "get_observer_state_dict",
    "load_observer_state_dict",
]

EPS = torch.finfo(torch.float32).eps
_SYMMETRIC = (torch.per_tensor_symmetric, torch.per_channel_symmetric)
_FLOATS = torch.per_channel_affine_float_qparams


class _PartialWrapper:
    """An observer class with some of its arguments; called, it makes one."""

    def __init__(self, p):
        self.p = p

    def __call__(self, *args, **keywords):
        return self.p(*args, **keywords)

    def __repr__(self):
        return f"{self.p!r}"

    def with_args(self, **kwargs):
        return _with_args(self, **kwargs)


def _with_args(cls_or_self, **kwargs):
    """A maker of observers with these arguments: ``MinMaxObserver.with_args(dtype=torch.qint8)()``. Arguments may be given again."""
    return _PartialWrapper(functools.partial(cls_or_self, **kwargs))


class ObserverBase(ABC, nn.Module):
    """What all observers are: a module that returns its input, and knows ``dtype`` and (in subclasses) ``calculate_qparams()``."""

    def __init__(self, dtype, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """Look at ``x`` and return it."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)."""

    with_args = classmethod(_with_args)


class UniformQuantizationObserverBase(ObserverBase):
    """Observers of ranges. ``dtype``: that of the codes; ``qscheme``: affine or symmetric, per tensor or per channel; ``reduce_range``: half
    of the codes; ``quant_min``, ``quant_max``: the codes themselves, in place of the dtype's; ``eps``: the least scale."""

    def __init__(
        self, dtype=torch.quint8, qscheme=torch.per_tensor_affine, reduce_range=False, quant_min=None, quant_max=None,
        factory_kwargs=None, eps=EPS, is_dynamic=False, **kwargs,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic, **kwargs)
        if qscheme not in (*_SYMMETRIC, torch.per_tensor_affine, torch.per_channel_affine, _FLOATS):
            raise ValueError(f"Default Observer only works for affine and symmetric schemes, got {qscheme}")
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", torch.tensor([eps]))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not quant_min < quant_max:
                raise ValueError(f"quant_min must be less than quant_max, got {quant_min} and {quant_max}")
            if not quant_min <= 0 <= quant_max:
                raise ValueError(f"Used-specified quantization range must include 0, got {quant_min} to {quant_max}")
            halved = ((quant_min) // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
            self.quant_min, self.quant_max = halved
        else:
            self.quant_min, self.quant_max = code_range(dtype, reduce_range)

    def _calculate_qparams(self, min_val, max_val):
        if min_val.numel() == 0 or bool((min_val > max_val).any()):
            # Nothing was observed: as PyTorch, scale 1 and zero point 0.
            return torch.tensor([1.0]), torch.tensor([0])
        if self.qscheme is _FLOATS:
            return float_qparams(min_val, max_val, self.quant_min, self.quant_max, float(self.eps))
        symmetric = self.qscheme in _SYMMETRIC
        scale, zero = qparams(min_val, max_val, self.quant_min, self.quant_max, symmetric, float(self.eps))
        return scale.reshape(-1), zero.reshape(-1)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        raise NotImplementedError(f"{type(self).__name__}: cannot reset min/max values")


class MinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest of everything seen: buffers ``min_val``, ``max_val``. Arguments: :class:`UniformQuantizationObserverBase`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self.qscheme in (torch.per_channel_affine, torch.per_channel_symmetric) and type(self)._whole:
            raise NotImplementedError(
                f"{type(self).__name__}'s qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))

    _whole = True

    def forward(self, x_orig):
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            least, most = torch.aminmax(x)
            self._take(least, most)
        return x_orig

    def _take(self, least, most):
        self.min_val.copy_(torch.minimum(least, self.min_val))
        self.max_val.copy_(torch.maximum(most, self.max_val))

    def calculate_qparams(self):
        """(scale, zero point), each of one element."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return (
            f"min_val={self.min_val}, max_val={self.max_val}"
            if self.min_val.numel() != 1
            else (f"min_val={self.min_val.item()}, max_val={self.max_val.item()}")
        )

    def reset_min_max_vals(self):
        self.min_val.copy_(torch.tensor(float("inf")))
        self.max_val.copy_(torch.tensor(float("-inf")))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Running means of the least and the greatest of each call: ``(1 - averaging_constant) * old + averaging_constant * new``."""

    def __init__(self, averaging_constant=0.01, dtype=torch.quint8, qscheme=torch.per_tensor_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.averaging_constant = averaging_constant

    def _take(self, least, most):
        if torch.isinf(self.min_val) and torch.isinf(self.max_val):
            super()._take(least, most)
        else:
            self.min_val.lerp_(least, self.averaging_constant)
            self.max_val.lerp_(most, self.averaging_constant)


class PerChannelMinMaxObserver(UniformQuantizationObserverBase):
    """The least and the greatest of each index of dimension ``ch_axis``."""

    def __init__(self, ch_axis=0, dtype=torch.quint8, qscheme=torch.per_channel_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        if qscheme not in (torch.per_channel_affine, torch.per_channel_symmetric, _FLOATS):
            raise NotImplementedError(
                "PerChannelMinMaxObserver's qscheme only support torch.per_channel_symmetric and torch.per_channel_affine."
            )
        self.ch_axis = ch_axis
        self.register_buffer("min_val", torch.tensor([]))
        self.register_buffer("max_val", torch.tensor([]))

    def forward(self, x_orig):
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            lines = x.transpose(self.ch_axis, 0).flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
            self._take(*torch.aminmax(lines, dim=1))
        return x_orig

    def _take(self, least, most):
        if self.min_val.numel():
            least, most = torch.minimum(least, self.min_val), torch.maximum(most, self.max_val)
        self._keep(least, most)

    def _keep(self, least, most):
        self.min_val.resize_(least.shape).copy_(least)
        self.max_val.resize_(most.shape).copy_(most)

    def calculate_qparams(self):
        """(scale, zero point), an element a channel."""
        return self._calculate_qparams(self.min_val, self.max_val)

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                getattr(self, name).resize_(state_dict[prefix + name].shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def reset_min_max_vals(self):
        self.min_val, self.max_val = torch.tensor([]), torch.tensor([])


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Running means of the least and the greatest of each channel."""

    def __init__(
        self, averaging_constant=0.01, ch_axis=0, dtype=torch.quint8, qscheme=torch.per_channel_affine, *args, **kwargs
    ):
        super().__init__(ch_axis, dtype, qscheme, *args, **kwargs)
        self.averaging_constant = averaging_constant

    def _take(self, least, most):
        if self.min_val.numel():
            least = self.min_val + self.averaging_constant * (least - self.min_val)
            most = self.max_val + self.averaging_constant * (most - self.max_val)
        self._keep(least, most)


class HistogramObserver(UniformQuantizationObserverBase):
    """A histogram of everything seen, in ``bins`` bins between the least and the greatest; the range is the part of it with the least squared
    error (:func:`ranges.best_range`). Where later values reach further, the histogram is counted anew in wider bins."""

    def __init__(self, bins: int = 2048, dtype=torch.quint8, qscheme=torch.per_tensor_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        if qscheme not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        self.bins = bins
        self.register_buffer("histogram", torch.zeros(bins))
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach().to(torch.float32)
        least, most = torch.aminmax(x)
        if not bool(torch.isfinite(least)) or not bool(torch.isfinite(most)):
            x = x[torch.isfinite(x)]
            if x.numel() == 0:
                return x_orig
            least, most = torch.aminmax(x)
        self._widen(torch.minimum(least, self.min_val), torch.maximum(most, self.max_val))
        # A constant has no width; its bins stand around it.
        self.histogram.add_(torch.histc(x, self.bins, float(self.min_val), float(self.max_val)))
        return x_orig

    def _widen(self, least, most):
        """The histogram between new ends: each bin's values go where its middle is."""
        before = float(self.min_val), float(self.max_val)
        if self.histogram.sum() and (least != self.min_val or most != self.max_val):
            width = (before[1] - before[0]) / self.bins
            middles = before[0] + (torch.arange(self.bins, dtype=torch.float64) + 0.5) * width
            span = float(most - least)
            at = ((middles - float(least)) / span * self.bins).long().clamp(0, self.bins - 1)
            self.histogram.copy_(torch.zeros(self.bins).index_add_(0, at, self.histogram.clone()))
        self.min_val.copy_(least)
        self.max_val.copy_(most)

    def calculate_qparams(self):
        """(scale, zero point), each of one element."""
        if float(self.min_val) > float(self.max_val):
            return self._calculate_qparams(self.min_val, self.max_val)
        codes = self.quant_max - self.quant_min + 1
        least, most = best_range(self.histogram.double().numpy(), float(self.min_val), float(self.max_val), codes)
        return self._calculate_qparams(torch.tensor(least), torch.tensor(most))

    def extra_repr(self):
        return f"min_val={self.min_val.item()}, max_val={self.max_val.item()}"


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known beforehand."""

    def __init__(
        self,
        scale,
        zero_point,
        dtype=torch.quint8,
        qscheme=torch.per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ):
        super().__init__(dtype, is_dynamic, **kwargs)
        self.qscheme, self.quant_min, self.quant_max = qscheme, quant_min, quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Looks at nothing: names the dtype to which something is converted, or quantised at each call (``is_dynamic``)."""

    def __init__(
        self,
        dtype=torch.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype, is_dynamic or compute_dtype is not None)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps, self.custom_op = quant_min, quant_max, eps, custom_op_name
        if compute_dtype is not None:
            self.dtype = compute_dtype

    def forward(self, x):
        return x

    def extra_repr(self):
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")  # noqa: TRY002 (PyTorch's type)


class RecordingObserver(ObserverBase):
    """Keeps clones of everything seen, for a look at it: :meth:`get_tensor_value`."""

    def __init__(self, dtype=torch.quint8):
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for RecordingObserver")  # noqa: TRY002 (PyTorch's type)

    def get_tensor_value(self):
        """The tensors, in their order."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Looks at nothing."""

    def __init__(self, dtype=torch.float16, custom_op_name=""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for NoopObserver")  # noqa: TRY002 (PyTorch's type)


class ReuseInputObserver(ObserverBase):
    """Stands for: quantised as the input was."""

    def __init__(self):
        super().__init__(torch.quint8)

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")  # noqa: TRY002 (PyTorch's type)


def get_observer_state_dict(mod):
    """The entries of ``mod.state_dict()`` that observers own."""
    return {k: v for k, v in mod.state_dict().items() if "activation_post_process" in k}


def load_observer_state_dict(mod, obs_dict):
    """Put what :func:`get_observer_state_dict` gave back. RuntimeError where a name is missing or unknown."""
    missing, unexpected = [], []
    for name, module in mod.named_modules():
        prefix = f"{name}."
        if isinstance(module, ObserverBase):
            module._load_from_state_dict(obs_dict, prefix, {}, False, missing, unexpected, [])
    if missing or unexpected:
        raise RuntimeError(f"Error(s) in loading the observers' state_dict: missing {missing}, unexpected {unexpected}")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
default_weight_observer = MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=torch.qint8, qscheme=torch.per_channel_symmetric
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=torch.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(dtype=torch.quint8, qscheme=_FLOATS, ch_axis=0)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=torch.quint4x2, qscheme=_FLOATS, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=torch.quint8, quant_min=0, quant_max=255
)
default_reuse_input_observer = ReuseInputObserver
