"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false, reportOverlappingOverload=false
# pyright: reportPropertyTypeMismatch=false, reportInvalidTypeVarUse=false

import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np

from flambeau.base.device import Device as _Device
from flambeau.base.dtypes import DType as _DType
from flambeau.base.memory_format import MemoryFormat as _MemoryFormat
from flambeau.base.shapes import Size as _Size
from flambeau.core.generator import Generator as _Generator
from flambeau.core.tensor import Tensor as Tensor
from flambeau import return_types as _returns

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = Tensor

def adaptive_avg_pool1d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor: ...
def adaptive_avg_pool2d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor: ...
def adaptive_avg_pool3d(input: _Tensor, output_size: _int | Sequence[_int]) -> _Tensor: ...
def adaptive_max_pool1d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> Any: ...
def adaptive_max_pool1d_with_indices(
    input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False
) -> builtins.tuple[_Tensor, _Tensor]: ...
def adaptive_max_pool2d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> Any: ...
def adaptive_max_pool2d_with_indices(
    input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False
) -> builtins.tuple[_Tensor, _Tensor]: ...
def adaptive_max_pool3d(input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False) -> Any: ...
def adaptive_max_pool3d_with_indices(
    input: _Tensor, output_size: _int | Sequence[_int], return_indices: _bool = False
) -> builtins.tuple[_Tensor, _Tensor]: ...
def affine_grid(theta: _Tensor, size: Sequence[_int], align_corners: _bool | None = None) -> _Tensor: ...
def alpha_dropout(input: _Tensor, p: _float = ..., training: _bool = False, inplace: _bool = False) -> _Tensor: ...
def avg_pool1d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def avg_pool2d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def avg_pool3d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    ceil_mode: _bool = False,
    count_include_pad: _bool = True,
    divisor_override: _int | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def batch_norm(
    input: _Tensor,
    running_mean: _Tensor | None,
    running_var: _Tensor | None,
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    training: _bool = False,
    momentum: _float = ...,
    eps: _float = ...,
) -> _Tensor: ...
def bilinear(
    input1: _Tensor, input2: _Tensor, weight: _Tensor, bias: _Tensor | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def binary_cross_entropy(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def binary_cross_entropy_with_logits(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    pos_weight: _Tensor | None = None,
) -> _Tensor: ...
def celu(input: _Tensor, alpha: _float = ..., inplace: _bool = False) -> _Tensor: ...
def celu_(input: _Tensor, alpha: _Number = ...) -> _Tensor: ...
def channel_shuffle(input: _Tensor, groups: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def conv1d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def conv1d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def conv2d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def conv2d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def conv3d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def conv3d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _str = "valid",
    dilation: _int | Sequence[_int] = 1,
    groups: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def conv_transpose1d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def conv_transpose2d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def conv_transpose3d(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None = None,
    stride: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    output_padding: _int | Sequence[_int] = 0,
    groups: _int = 1,
    dilation: _int | Sequence[_int] = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def cosine_embedding_loss(
    input1: _Tensor,
    input2: _Tensor,
    target: _Tensor,
    margin: _float = 0,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def cosine_similarity(
    x1: _Tensor, x2: _Tensor, dim: _int = 1, eps: _float = ..., *, out: _Tensor | None = None
) -> _Tensor: ...
def cross_entropy(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    ignore_index: _int = -100,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    label_smoothing: _float = ...,
) -> _Tensor: ...
def ctc_loss(
    log_probs: _Tensor,
    targets: _Tensor,
    input_lengths: _Tensor | Sequence[_int],
    target_lengths: _Tensor | Sequence[_int],
    blank: _int = 0,
    reduction: _str = "mean",
    zero_infinity: _bool = False,
) -> _Tensor: ...
def dropout(input: _Tensor, p: _float = ..., training: _bool = True, inplace: _bool = False) -> _Tensor: ...
def dropout1d(input: _Tensor, p: _float = ..., training: _bool = True, inplace: _bool = False) -> _Tensor: ...
def dropout2d(input: _Tensor, p: _float = ..., training: _bool = True, inplace: _bool = False) -> _Tensor: ...
def dropout3d(input: _Tensor, p: _float = ..., training: _bool = True, inplace: _bool = False) -> _Tensor: ...
def elements(t: Any) -> Any: ...
def elu(input: _Tensor, alpha: _float = ..., inplace: _bool = False) -> _Tensor: ...
def elu_(input: _Tensor, alpha: _Number = 1, scale: _Number = 1, input_scale: _Number = 1) -> _Tensor: ...
def embedding(
    input: _Tensor,
    weight: _Tensor,
    padding_idx: _int | None = None,
    max_norm: _float | None = None,
    norm_type: _float = ...,
    scale_grad_by_freq: _bool = False,
    sparse: _bool = False,
) -> _Tensor: ...
def embedding_bag(
    input: _Tensor,
    weight: _Tensor,
    offsets: _Tensor | None = None,
    max_norm: _float | None = None,
    norm_type: _float = 2,
    scale_grad_by_freq: _bool = False,
    mode: _str = "mean",
    sparse: _bool = False,
    per_sample_weights: _Tensor | None = None,
    include_last_offset: _bool = False,
    padding_idx: _int | None = None,
) -> _Tensor: ...
def feature_alpha_dropout(
    input: _Tensor, p: _float = ..., training: _bool = False, inplace: _bool = False
) -> _Tensor: ...
def fold(
    input: _Tensor,
    output_size: _int | Sequence[_int],
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    stride: _int | Sequence[_int] = 1,
) -> _Tensor: ...
def fractional_max_pool2d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: _Tensor | None = None,
) -> Any: ...
def fractional_max_pool2d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: _Tensor | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def fractional_max_pool3d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: _Tensor | None = None,
) -> Any: ...
def fractional_max_pool3d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    output_size: _int | Sequence[_int] | None = None,
    output_ratio: _float | Sequence[_float] | None = None,
    return_indices: _bool = False,
    _random_samples: _Tensor | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def function(name: _str) -> Callable: ...
def gaussian_nll_loss(
    input: _Tensor,
    target: _Tensor,
    var: _Tensor | _float,
    full: _bool = False,
    eps: _float = ...,
    reduction: _str = "mean",
) -> _Tensor: ...
def gelu(input: _Tensor, *, approximate: _str = "none", out: _Tensor | None = None) -> _Tensor: ...
def glu(input: _Tensor, dim: _int = -1, *, out: _Tensor | None = None) -> _Tensor: ...
def grid_sample(
    input: _Tensor,
    grid: _Tensor,
    mode: _str = "bilinear",
    padding_mode: _str = "zeros",
    align_corners: _bool | None = None,
) -> _Tensor: ...
def group_norm(
    input: _Tensor, num_groups: _int, weight: _Tensor | None = None, bias: _Tensor | None = None, eps: _float = ...
) -> _Tensor: ...
def gumbel_softmax(
    logits: _Tensor, tau: _float = 1, hard: _bool = False, eps: _float = ..., dim: _int = -1
) -> _Tensor: ...
def handle_torch_function(public_api: Any, relevant: Any, *args: Any, **kwargs: Any) -> Any: ...
def hardshrink(input: _Tensor, lambd: _Number = ..., *, out: _Tensor | None = None) -> _Tensor: ...
def hardsigmoid(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def hardswish(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def hardtanh(input: _Tensor, min_val: _float = ..., max_val: _float = ..., inplace: _bool = False) -> _Tensor: ...
def hardtanh_(input: _Tensor, min_val: _Number = -1, max_val: _Number = 1) -> _Tensor: ...
def has_torch_function(*arguments: Any) -> Any: ...
def hinge_embedding_loss(
    input: _Tensor,
    target: _Tensor,
    margin: _float = ...,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def huber_loss(
    input: _Tensor, target: _Tensor, reduction: _str = "mean", delta: _float = ..., weight: _Tensor | None = None
) -> _Tensor: ...
def instance_norm(
    input: _Tensor,
    running_mean: _Tensor | None = None,
    running_var: _Tensor | None = None,
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    use_input_stats: _bool = True,
    momentum: _float = ...,
    eps: _float = ...,
) -> _Tensor: ...
def interpolate(
    input: _Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
    mode: _str = "nearest",
    align_corners: _bool | None = None,
    recompute_scale_factor: _bool | None = None,
    antialias: _bool = False,
) -> _Tensor: ...
def is_compiling() -> _bool: ...
def kl_div(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    log_target: _bool = False,
) -> _Tensor: ...
def l1_loss(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    weight: _Tensor | None = None,
) -> _Tensor: ...
def layer_norm(
    input: _Tensor,
    normalized_shape: _int | Sequence[_int],
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    eps: _float = ...,
) -> _Tensor: ...
def leaky_relu(input: _Tensor, negative_slope: _float = ..., inplace: _bool = False) -> _Tensor: ...
def leaky_relu_(input: _Tensor, negative_slope: _Number = ...) -> _Tensor: ...
def linear(input: _Tensor, weight: _Tensor, bias: _Tensor | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def linear_cross_entropy(
    input: _Tensor,
    linear_weight: _Tensor,
    target: _Tensor,
    *,
    linear_bias: _Tensor | None = None,
    weight: _Tensor | None = None,
    reduction: _str = "mean",
    ignore_index: _int | None = None,
    label_smoothing: _float = ...,
    options: Any = None,
) -> _Tensor: ...
def local_response_norm(
    input: _Tensor, size: _int, alpha: _float = ..., beta: _float = ..., k: _float = ...
) -> _Tensor: ...
def log_softmax(
    input: _Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _DType | None = None
) -> _Tensor: ...
def logsigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def lp_pool1d(
    input: _Tensor,
    norm_type: _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> _Tensor: ...
def lp_pool2d(
    input: _Tensor,
    norm_type: _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> _Tensor: ...
def lp_pool3d(
    input: _Tensor,
    norm_type: _float,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    ceil_mode: _bool = False,
) -> _Tensor: ...
def margin_ranking_loss(
    input1: _Tensor,
    input2: _Tensor,
    target: _Tensor,
    margin: _float = 0,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def max_pool1d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any: ...
def max_pool1d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def max_pool2d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any: ...
def max_pool2d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def max_pool3d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> Any: ...
def max_pool3d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    return_indices: _bool = False,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def max_unpool1d(
    input: _Tensor,
    indices: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: _int | Sequence[_int] | None = None,
) -> _Tensor: ...
def max_unpool2d(
    input: _Tensor,
    indices: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: _int | Sequence[_int] | None = None,
) -> _Tensor: ...
def max_unpool3d(
    input: _Tensor,
    indices: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] | None = None,
    padding: _int | Sequence[_int] = 0,
    output_size: _int | Sequence[_int] | None = None,
) -> _Tensor: ...
def mish(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def mse_loss(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    weight: _Tensor | None = None,
) -> _Tensor: ...
def multi_head_attention_forward(
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    embed_dim_to_check: _int,
    num_heads: _int,
    in_proj_weight: _Tensor | None,
    in_proj_bias: _Tensor | None,
    bias_k: _Tensor | None,
    bias_v: _Tensor | None,
    add_zero_attn: _bool,
    dropout_p: _float,
    out_proj_weight: _Tensor,
    out_proj_bias: _Tensor | None,
    training: _bool = True,
    key_padding_mask: _Tensor | None = None,
    need_weights: _bool = True,
    attn_mask: _Tensor | None = None,
    use_separate_proj_weight: _bool = False,
    q_proj_weight: _Tensor | None = None,
    k_proj_weight: _Tensor | None = None,
    v_proj_weight: _Tensor | None = None,
    static_k: _Tensor | None = None,
    static_v: _Tensor | None = None,
    average_attn_weights: _bool = True,
    is_causal: _bool = False,
) -> builtins.tuple[_Tensor, _Tensor | None]: ...
def multi_margin_loss(
    input: _Tensor,
    target: _Tensor,
    p: _int = 1,
    margin: _float = ...,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def multilabel_margin_loss(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def multilabel_soft_margin_loss(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def namespace(name: _str) -> Any: ...
def native_channel_shuffle(input: _Tensor, groups: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def nll_loss(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    size_average: _bool | None = None,
    ignore_index: _int = -100,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def normalize(
    input: _Tensor, p: _float = ..., dim: _int = 1, eps: _float = ..., out: _Tensor | None = None
) -> _Tensor: ...
def one_hot(input: _Tensor, num_classes: _int = -1, *, out: _Tensor | None = None) -> _Tensor: ...
def overridable(fn: Any = None, *, overloads: Any = None) -> _Tensor: ...
def overwrite(target: Any, made: Any) -> _Tensor: ...
def pad(input: _Tensor, pad: Sequence[_int], mode: _str = "constant", value: _float | None = None) -> _Tensor: ...
def pairwise_distance(
    x1: _Tensor, x2: _Tensor, p: _float = ..., eps: _float = ..., keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def pdist(input: _Tensor, p: _float = ..., *, out: _Tensor | None = None) -> _Tensor: ...
def pixel_shuffle(input: _Tensor, upscale_factor: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def pixel_unshuffle(input: _Tensor, downscale_factor: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def poisson_nll_loss(
    input: _Tensor,
    target: _Tensor,
    log_input: _bool = True,
    full: _bool = False,
    size_average: _bool | None = None,
    eps: _float = ...,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def prelu(input: _Tensor, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def relu(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def relu6(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def relu_(input: _Tensor) -> _Tensor: ...
def renormed(weight: _Tensor, indices: _Tensor, max_norm: _float, norm_type: _float) -> None: ...
def rms_norm(
    input: _Tensor, normalized_shape: _int | Sequence[_int], weight: _Tensor | None = None, eps: _float | None = None
) -> _Tensor: ...
def rrelu(
    input: _Tensor, lower: _float = ..., upper: _float = ..., training: _bool = False, inplace: _bool = False
) -> _Tensor: ...
def rrelu_(input: _Tensor, lower: _float = ..., upper: _float = ..., training: _bool = False) -> _Tensor: ...
def scaled_dot_product_attention(
    query: _Tensor,
    key: _Tensor,
    value: _Tensor,
    attn_mask: _Tensor | None = None,
    dropout_p: _float = ...,
    is_causal: _bool = False,
    *,
    scale: _float | None = None,
    enable_gqa: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def selu(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def selu_(input: _Tensor) -> _Tensor: ...
def sigmoid(input: _Tensor) -> _Tensor: ...
def silu(input: _Tensor, inplace: _bool = False) -> _Tensor: ...
def smooth_l1_loss(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
    beta: _float = ...,
) -> _Tensor: ...
def soft_margin_loss(
    input: _Tensor,
    target: _Tensor,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def softmax(input: _Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _DType | None = None) -> _Tensor: ...
def softmin(input: _Tensor, dim: _int | None = None, _stacklevel: _int = 3, dtype: _DType | None = None) -> _Tensor: ...
def softplus(input: _Tensor, beta: _Number = 1, threshold: _Number = 20, *, out: _Tensor | None = None) -> _Tensor: ...
def softshrink(input: _Tensor, lambd: _Number = ..., *, out: _Tensor | None = None) -> _Tensor: ...
def softsign(input: _Tensor) -> _Tensor: ...
def tanh(input: _Tensor) -> _Tensor: ...
def tanhshrink(input: _Tensor) -> _Tensor: ...
def threshold(input: _Tensor, threshold: _float, value: _float, inplace: _bool = False) -> _Tensor: ...
def threshold_(input: _Tensor, threshold: _Number, value: _Number) -> _Tensor: ...
def triplet_margin_loss(
    anchor: _Tensor,
    positive: _Tensor,
    negative: _Tensor,
    margin: _float = ...,
    p: _float = 2,
    eps: _float = ...,
    swap: _bool = False,
    size_average: _bool | None = None,
    reduce: _bool | None = None,
    reduction: _str = "mean",
) -> _Tensor: ...
def triplet_margin_with_distance_loss(
    anchor: _Tensor,
    positive: _Tensor,
    negative: _Tensor,
    *,
    distance_function: Callable[[_Tensor, _Tensor], _Tensor] | None = None,
    margin: _float = ...,
    swap: _bool = False,
    reduction: _str = "mean",
) -> _Tensor: ...
def unfold(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    dilation: _int | Sequence[_int] = 1,
    padding: _int | Sequence[_int] = 0,
    stride: _int | Sequence[_int] = 1,
) -> _Tensor: ...
def upsample(
    input: _Tensor,
    size: _int | Sequence[_int] | None = None,
    scale_factor: _float | Sequence[_float] | None = None,
    mode: _str = "nearest",
    align_corners: _bool | None = None,
) -> _Tensor: ...
def upsample_bilinear(
    input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: _float | Sequence[_float] | None = None
) -> _Tensor: ...
def upsample_nearest(
    input: _Tensor, size: _int | Sequence[_int] | None = None, scale_factor: _float | Sequence[_float] | None = None
) -> _Tensor: ...
