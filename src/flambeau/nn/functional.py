"""The functions behind the layers.

The first block are bindings of one ATen operator each. The others are Python over such bindings, as in PyTorch. ``overridable`` lets
``__torch_function__`` (a function mode, a subclass among the tensors) take the call first, under the function's own name.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import flambeau.ops  # noqa: F401  (declares the operators bound below)
from flambeau._C import Function
from flambeau._C import has_override as has_torch_function  # noqa: F401  (public)
from flambeau.base.compiling import is_compiling
from flambeau.base.dtypes import DType
from flambeau.core.bindings import function as _binding
from flambeau.core.device_memory import elements
from flambeau.core.operator import namespace
from flambeau.core.overrides import (
    handle_torch_function,  # noqa: F401  (public)
    overridable,
)
from flambeau.core.public import overwrite
from flambeau.core.tensor import Tensor
from flambeau.nn.functions.activation import *  # noqa: F403
from flambeau.nn.functions.attention import *  # noqa: F403
from flambeau.nn.functions.dropout import *  # noqa: F403
from flambeau.nn.functions.linear_cross_entropy import *  # noqa: F403
from flambeau.nn.functions.losses import *  # noqa: F403
from flambeau.nn.functions.normalization import *  # noqa: F403
from flambeau.nn.functions.normalization import renormed
from flambeau.nn.functions.pooling import *  # noqa: F403
from flambeau.nn.functions.vision import *  # noqa: F403


def function(name: str) -> Callable:
    """The binding of ``aten::name``; a function that says so where the operator isn't there yet."""
    if hasattr(namespace("aten"), name):
        return _binding(name)

    def missing(*args, **kwargs) -> Any:
        raise NotImplementedError(f"torch.nn.functional: operator aten::{name} is not implemented in flambeau")

    missing.__name__ = missing.__qualname__ = name
    return missing


linear = function("linear")
gelu = function("gelu")
logsigmoid = function("log_sigmoid")
softplus = function("softplus")
scaled_dot_product_attention = function("scaled_dot_product_attention")
one_hot = function("one_hot")
conv1d = function("conv1d")
conv2d = function("conv2d")
conv3d = function("conv3d")
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(
    function, ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
)
bilinear = function("bilinear")
cosine_similarity = function("cosine_similarity")

_relu, _relu_ = function("relu"), function("relu_")
_silu, _silu_ = function("silu"), function("silu_")
_elu, _elu_ = function("elu"), function("elu_")
_leaky_relu, _leaky_relu_ = function("leaky_relu"), function("leaky_relu_")
_softmax, _log_softmax = function("softmax"), function("log_softmax")
_dropout = function("dropout")
_embedding = function("embedding")
_layer_norm, _rms_norm, _group_norm = function("layer_norm"), function("rms_norm"), function("group_norm")
_batch_norm = function("batch_norm")
_cross_entropy_loss, _nll_loss = function("cross_entropy_loss"), function("nll_loss_nd")
_mse_loss, _l1_loss = function("mse_loss"), function("l1_loss")
_smooth_l1_loss, _huber_loss = function("smooth_l1_loss"), function("huber_loss")
_bce, _bce_logits = function("binary_cross_entropy"), function("binary_cross_entropy_with_logits")

_REDUCTION = {"none": 0, "mean": 1, "sum": 2}


def _reduction(name: str) -> int:
    """The integer that ATen's losses take."""
    if not isinstance(name, str) or name not in _REDUCTION:
        raise ValueError(f"{name} is not a valid value for reduction")
    return _REDUCTION[name]


def _legacy_reduction(size_average, reduce) -> str:
    """What the deprecated pair of flags means."""
    warnings.warn("size_average and reduce args will be deprecated, please use reduction instead.", stacklevel=4)
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


# Activations


@overridable(overloads=_relu)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0).

    >>> torch.nn.functional.relu(torch.tensor([-1., 2.]))
    tensor([0., 2.])
    """
    return _relu_(input) if inplace else _relu(input)


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6).

    >>> torch.nn.functional.relu6(torch.tensor([-1., 9.]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


@overridable
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x clamped to [min_val, max_val].

    >>> torch.nn.functional.hardtanh(torch.tensor([-3., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    aten = namespace("aten")
    return (aten.hardtanh_ if inplace else aten.hardtanh)(input, min_val, max_val)


@overridable(overloads=_silu)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x).

    >>> torch.nn.functional.silu(torch.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return _silu_(input) if inplace else _silu(input)


def _may_replace(name: str, doc: str):
    """The function of one operator with ``inplace``."""

    def activation(input: Tensor, inplace: bool = False) -> Tensor:
        aten = namespace("aten")
        if not inplace:
            return getattr(aten, name)(input)
        # The copy is what the derivative reads: the input is written over.
        return overwrite(input, getattr(aten, name)(aten.clone(input)))

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = doc
    return overridable(activation, overloads=function(name))


hardsigmoid = _may_replace("hardsigmoid", "min(max(x + 3, 0), 6) / 6.")
hardswish = _may_replace("hardswish", "x * min(max(x + 3, 0), 6) / 6.")
mish = _may_replace("mish", "x * tanh(softplus(x)). Misra, arXiv:1908.08681.")


@overridable
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where positive, alpha * (exp(x) - 1) elsewhere.

    >>> torch.nn.functional.elu(torch.tensor([-1., 1.]))
    tensor([-0.6321,  1.0000])
    """
    return _elu_(input, alpha) if inplace else _elu(input, alpha)


@overridable(overloads=_leaky_relu)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where positive, negative_slope * x elsewhere.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-1., 1.]), 0.1)
    tensor([-0.1000,  1.0000])
    """
    return _leaky_relu_(input, negative_slope) if inplace else _leaky_relu(input, negative_slope)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)).

    >>> torch.nn.functional.sigmoid(torch.tensor([0.]))
    tensor([0.5000])
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent.

    >>> torch.nn.functional.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()


def _softmax_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


@overridable(overloads=_softmax)
def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along ``dim``.

    >>> torch.nn.functional.softmax(torch.tensor([0., 0.]), dim=0)
    tensor([0.5000, 0.5000])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input.dim())
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


@overridable(overloads=_log_softmax)
def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: DType | None = None) -> Tensor:
    """log(softmax(x)) along ``dim``, computed stably.

    >>> torch.nn.functional.log_softmax(torch.tensor([0., 0.]), dim=0)
    tensor([-0.6931, -0.6931])
    """
    if dim is None:
        dim = _softmax_dim("log_softmax", input.dim())
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


# Regularisation, look-up, normalisation


@overridable
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zero elements with probability ``p`` and scale the rest by 1/(1-p), if ``training``.

    >>> torch.nn.functional.dropout(torch.ones(3), 0.5, training=False)
    tensor([1., 1., 1.])
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if inplace and training and p > 0:
        return overwrite(input, _dropout(input, p, training))
    return _dropout(input, p, training)


@overridable
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of ``weight`` (n, d) at the indices ``input`` (*): (*, d).

    >>> torch.nn.functional.embedding(torch.tensor([2, 0]), torch.eye(3))
    tensor([[0., 0., 1.],
            [1., 0., 0.]])
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        n = weight.size(0)
        if padding_idx >= n or padding_idx < -n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx = padding_idx % n
    if max_norm is not None:
        renormed(weight, input, max_norm, norm_type)
    return _embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@overridable
def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last ``len(normalized_shape)`` dimensions.

    >>> torch.nn.functional.layer_norm(torch.tensor([1., 2., 3.]), (3,))
    tensor([-1.2247,  0.0000,  1.2247])
    """
    return _layer_norm(input, normalized_shape, weight, bias, eps)


@overridable
def rms_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight over the last ``len(normalized_shape)`` dimensions.

    >>> torch.nn.functional.rms_norm(torch.tensor([3., 4.]), (2,))
    tensor([0.8485, 1.1314])
    """
    return _rms_norm(input, normalized_shape, weight, eps)


@overridable
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each group of channels of (N, C, *). ValueError for one example whose groups are of one value.

    >>> torch.nn.functional.group_norm(torch.ones(4, 6, 8), 2).shape
    torch.Size([4, 6, 8])
    """
    if (
        input.ndim > 1
        and num_groups > 0
        and input.shape[0] * input.shape[1] // num_groups * math.prod(input.shape[2:]) == 1
    ):
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(input.shape)}")
    return _group_norm(input, num_groups, weight, bias, eps)


@overridable
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of (N, C, *) by the statistics of the batch (``training``) or the running ones.

    >>> torch.nn.functional.batch_norm(torch.tensor([[1.], [3.]]), torch.zeros(1), torch.ones(1), training=True).round()
    tensor([[-1.],
            [ 1.]])
    """
    if training and math.prod(n for d, n in enumerate(input.shape) if d != 1) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.size()}")
    if training and eps <= 0.0:
        raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    if eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


_div = _binding("div")


@overridable
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(norm_p(x), eps) along ``dim``.

    >>> torch.nn.functional.normalize(torch.tensor([3., 4.]), dim=0)
    tensor([0.6000, 0.8000])
    """
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else _div(input, denominator, out=out)


# Losses


def _of_one_size(name: str, input, target):
    """Both expanded to their common size, with a warning where it isn't each one's: what had no dimensions takes part in promotion then."""
    if target.size() != input.size():
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely lead to "
            "incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
        input, target = namespace("aten").broadcast_tensors.default([input, target])
    return input, target


def _loss_reduction(size_average, reduce, reduction: str) -> int:
    if size_average is not None or reduce is not None:
        reduction = _legacy_reduction(size_average, reduce)
    return _reduction(reduction)


@overridable
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy of logits (N, C, ...) with class indices (N, ...) or probabilities (N, C, ...).

    >>> torch.nn.functional.cross_entropy(torch.tensor([[2., 0., 0.]]), torch.tensor([0]))
    tensor(0.2395)
    """
    reduction = _loss_reduction(size_average, reduce, reduction)
    return _cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)


@overridable
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log likelihood: log-probabilities (N, C, ...), class indices (N, ...).

    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -1.]]), torch.tensor([1]))
    tensor(1.)
    """
    return _nll_loss(input, target, weight, _loss_reduction(size_average, reduce, reduction), ignore_index)


@overridable
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of (input - target)^2.

    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """
    input, target = _of_one_size("mse_loss", input, target)
    code = _loss_reduction(size_average, reduce, reduction)
    if weight is None:
        return _mse_loss(input, target, code)
    return _weighted_mean(_mse_loss(input, target, 0), weight, code)


def _weighted_mean(losses, weight, code):
    """``losses`` by ``weight``: each, their sum, or their mean by the sum of the weights."""
    weighted = _weighted(losses, weight)
    return weighted if code == 0 else weighted.sum() if code == 2 else weighted.sum() / weight.sum()


def _weighted(losses, weight):
    """``losses`` times ``weight``, of the same size."""
    if weight.size() != losses.size():
        raise ValueError("Weights and input must have the same size.")
    return losses * weight


@overridable
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Mean of |input - target|, by ``weight``, of the input's size.

    >>> torch.nn.functional.l1_loss(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """
    input, target = _of_one_size("l1_loss", input, target)
    code = _loss_reduction(size_average, reduce, reduction)
    return _l1_loss(input, target, code) if weight is None else _weighted_mean(_l1_loss(input, target, 0), weight, code)


@overridable
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Quadratic below ``beta``, linear above.

    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0., 0.]), torch.tensor([0.5, 3.]))
    tensor(1.3125)
    """
    input, target = _of_one_size("smooth_l1_loss", input, target)
    code = _loss_reduction(size_average, reduce, reduction)
    return _l1_loss(input, target, code) if beta == 0.0 else _smooth_l1_loss(input, target, code, beta)


@overridable
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Squared below ``delta``, ``delta``-scaled absolute above; times ``weight``, of the input's size, before the reduction.

    >>> torch.nn.functional.huber_loss(torch.tensor([0., 0.]), torch.tensor([0.5, 3.]))
    tensor(1.3125)
    """
    input, target = _of_one_size("huber_loss", input, target)
    code = _reduction(reduction)
    if weight is None:
        return _huber_loss(input, target, code, delta)
    weighted = _weighted(_huber_loss(input, target, 0, delta), weight)
    return weighted if code == 0 else weighted.sum() if code == 2 else weighted.mean()


@overridable
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross-entropy of probabilities with targets in [0, 1], of the same size.

    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 0.5]), torch.tensor([0., 1.]))
    tensor(0.6931)
    """
    code = _loss_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    values = None if is_compiling() or type(input) is not Tensor else elements(input)
    if values is not None and values.size and not (values.min() >= 0 and values.max() <= 1):  # nan isn't either
        raise RuntimeError("all elements of input should be between 0 and 1")
    wanted = None if is_compiling() or type(target) is not Tensor else elements(target)
    if wanted is not None and wanted.size and (wanted.min() < 0 or wanted.max() > 1):
        raise RuntimeError("all elements of target should be between 0 and 1")
    return _bce(input, target, weight, code)


@overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of logits with targets in [0, 1], of the same size.

    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0., 0.]), torch.tensor([0., 1.]))
    tensor(0.6931)
    """
    code = _loss_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return _bce_logits(input, target, weight, pos_weight, code)


# Where PyTorch says that functions of this module are: the root namespace's, operators that it binds for this module alone, and here the
# others, which it has in Python.
_OF_ROOT = """adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_similarity hardshrink native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_
    selu_ threshold_""".split()
_OF_NN = """avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear log_sigmoid one_hot scaled_dot_product_attention softplus
    softshrink""".split()

for _name, _fn in list(globals().items()):
    if isinstance(_fn, Function) and not _name.startswith("_"):
        if _fn.__name__ in _OF_NN:
            _fn.__module__ = "torch._C._nn"
        elif _fn.__name__ not in _OF_ROOT:
            _fn.__module__ = "torch.nn.functional"
        _fn.binds = _fn.__module__ == "torch.nn.functional"
