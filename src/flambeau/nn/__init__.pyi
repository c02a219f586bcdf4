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
from flambeau.modules import parameter as parameter
from flambeau.modules.module import Module as Module
from flambeau.modules.parameter import Buffer as Buffer
from flambeau.modules.parameter import Parameter as Parameter
from flambeau.modules.parameter import UninitializedBuffer as UninitializedBuffer
from flambeau.modules.parameter import UninitializedParameter as UninitializedParameter
from flambeau.nn import attention as attention, parallel as parallel
from flambeau.nn import functional as functional, init as init, modules as modules, utils as utils
from flambeau.nn.functions.linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from flambeau.nn.modules.activation import ELU as ELU
from flambeau.nn.modules.activation import GELU as GELU
from flambeau.nn.modules.activation import Hardsigmoid as Hardsigmoid
from flambeau.nn.modules.activation import Hardswish as Hardswish
from flambeau.nn.modules.activation import Hardtanh as Hardtanh
from flambeau.nn.modules.activation import LeakyReLU as LeakyReLU
from flambeau.nn.modules.activation import LogSigmoid as LogSigmoid
from flambeau.nn.modules.activation import LogSoftmax as LogSoftmax
from flambeau.nn.modules.activation import Mish as Mish
from flambeau.nn.modules.activation import MultiheadAttention as MultiheadAttention
from flambeau.nn.modules.activation import PReLU as PReLU
from flambeau.nn.modules.activation import ReLU as ReLU
from flambeau.nn.modules.activation import ReLU6 as ReLU6
from flambeau.nn.modules.activation import SiLU as SiLU
from flambeau.nn.modules.activation import Sigmoid as Sigmoid
from flambeau.nn.modules.activation import Softmax as Softmax
from flambeau.nn.modules.activation import Softmax2d as Softmax2d
from flambeau.nn.modules.activation import Softplus as Softplus
from flambeau.nn.modules.activation import Tanh as Tanh
from flambeau.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from flambeau.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from flambeau.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from flambeau.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from flambeau.nn.modules.batchnorm import SyncBatchNorm as SyncBatchNorm
from flambeau.nn.modules.container import ModuleDict as ModuleDict
from flambeau.nn.modules.container import ModuleList as ModuleList
from flambeau.nn.modules.container import ParameterDict as ParameterDict
from flambeau.nn.modules.container import ParameterList as ParameterList
from flambeau.nn.modules.container import Sequential as Sequential
from flambeau.nn.modules.conv import Conv1d as Conv1d
from flambeau.nn.modules.conv import Conv2d as Conv2d
from flambeau.nn.modules.conv import Conv3d as Conv3d
from flambeau.nn.modules.conv import ConvTranspose1d as ConvTranspose1d
from flambeau.nn.modules.conv import ConvTranspose2d as ConvTranspose2d
from flambeau.nn.modules.conv import ConvTranspose3d as ConvTranspose3d
from flambeau.nn.modules.distance import PairwiseDistance as PairwiseDistance
from flambeau.nn.modules.dropout import AlphaDropout as AlphaDropout
from flambeau.nn.modules.dropout import Dropout as Dropout
from flambeau.nn.modules.dropout import Dropout1d as Dropout1d
from flambeau.nn.modules.dropout import Dropout2d as Dropout2d
from flambeau.nn.modules.dropout import Dropout3d as Dropout3d
from flambeau.nn.modules.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from flambeau.nn.modules.flatten import Flatten as Flatten
from flambeau.nn.modules.flatten import Unflatten as Unflatten
from flambeau.nn.modules.instancenorm import InstanceNorm1d as InstanceNorm1d
from flambeau.nn.modules.instancenorm import InstanceNorm2d as InstanceNorm2d
from flambeau.nn.modules.instancenorm import InstanceNorm3d as InstanceNorm3d
from flambeau.nn.modules.lazy import LazyConvMixin as LazyConvMixin
from flambeau.nn.modules.lazy import LazyModuleMixin as LazyModuleMixin
from flambeau.nn.modules.lazy import LazyNormMixin as LazyNormMixin
from flambeau.nn.modules.linear import Bilinear as Bilinear
from flambeau.nn.modules.linear import Identity as Identity
from flambeau.nn.modules.linear import LazyLinear as LazyLinear
from flambeau.nn.modules.linear import Linear as Linear
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear
from flambeau.nn.modules.loss import BCELoss as BCELoss
from flambeau.nn.modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from flambeau.nn.modules.loss import CTCLoss as CTCLoss
from flambeau.nn.modules.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from flambeau.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from flambeau.nn.modules.loss import GaussianNLLLoss as GaussianNLLLoss
from flambeau.nn.modules.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from flambeau.nn.modules.loss import HuberLoss as HuberLoss
from flambeau.nn.modules.loss import KLDivLoss as KLDivLoss
from flambeau.nn.modules.loss import L1Loss as L1Loss
from flambeau.nn.modules.loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from flambeau.nn.modules.loss import MSELoss as MSELoss
from flambeau.nn.modules.loss import MarginRankingLoss as MarginRankingLoss
from flambeau.nn.modules.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from flambeau.nn.modules.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from flambeau.nn.modules.loss import MultiMarginLoss as MultiMarginLoss
from flambeau.nn.modules.loss import NLLLoss as NLLLoss
from flambeau.nn.modules.loss import PoissonNLLLoss as PoissonNLLLoss
from flambeau.nn.modules.loss import SmoothL1Loss as SmoothL1Loss
from flambeau.nn.modules.loss import SoftMarginLoss as SoftMarginLoss
from flambeau.nn.modules.loss import TripletMarginLoss as TripletMarginLoss
from flambeau.nn.modules.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from flambeau.nn.modules.normalization import GroupNorm as GroupNorm
from flambeau.nn.modules.normalization import LayerNorm as LayerNorm
from flambeau.nn.modules.normalization import RMSNorm as RMSNorm
from flambeau.nn.modules.padding import _CircularPad as _CircularPad
from flambeau.nn.modules.padding import _ConstantPad as _ConstantPad
from flambeau.nn.modules.padding import _Pad as _Pad
from flambeau.nn.modules.padding import _ZeroPad as _ZeroPad
from flambeau.nn.modules.pooling import FractionalMaxPool2d as FractionalMaxPool2d
from flambeau.nn.modules.pooling import FractionalMaxPool3d as FractionalMaxPool3d
from flambeau.nn.modules.rnn import GRU as GRU
from flambeau.nn.modules.rnn import GRUCell as GRUCell
from flambeau.nn.modules.rnn import LSTM as LSTM
from flambeau.nn.modules.rnn import LSTMCell as LSTMCell
from flambeau.nn.modules.rnn import RNN as RNN
from flambeau.nn.modules.rnn import RNNBase as RNNBase
from flambeau.nn.modules.rnn import RNNCell as RNNCell
from flambeau.nn.modules.rnn import RNNCellBase as RNNCellBase
from flambeau.nn.modules.sparse import Embedding as Embedding
from flambeau.nn.modules.sparse import EmbeddingBag as EmbeddingBag
from flambeau.nn.modules.transformer import Transformer as Transformer
from flambeau.nn.modules.transformer import TransformerDecoder as TransformerDecoder
from flambeau.nn.modules.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from flambeau.nn.modules.transformer import TransformerEncoder as TransformerEncoder
from flambeau.nn.modules.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from flambeau.nn.modules.upsampling import Upsample as Upsample
from flambeau.nn.modules.upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
from flambeau.nn.modules.upsampling import UpsamplingNearest2d as UpsamplingNearest2d
from flambeau.nn.parallel import DataParallel as DataParallel

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = Tensor

class CELU(Module):
    def __init__(self, alpha: Any = ..., inplace: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class GLU(Module):
    def __init__(self, dim: Any = -1) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Hardshrink(Module):
    def __init__(self, lambd: Any = ...) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class RReLU(Module):
    def __init__(self, lower: Any = ..., upper: Any = ..., inplace: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class SELU(Module):
    def __init__(self, inplace: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Softmin(Module):
    def __init__(self, dim: Any = None) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Softshrink(Module):
    def __init__(self, lambd: Any = ...) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Softsign(Module):
    def __init__(self) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Tanhshrink(Module):
    def __init__(self) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Threshold(Module):
    def __init__(self, threshold: Any, value: Any, inplace: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LazyBatchNorm1d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyBatchNorm2d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyBatchNorm3d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ChannelShuffle(Module):
    def __init__(self, groups: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LazyConv1d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyConv2d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyConv3d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyConvTranspose1d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor, output_size: _int | Sequence[_int] | None = None) -> _Tensor: ...

class LazyConvTranspose2d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor, output_size: _int | Sequence[_int] | None = None) -> _Tensor: ...

class LazyConvTranspose3d(LazyConvMixin):
    def __init__(
        self,
        out_channels: _int,
        *args: Any,
        bias: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
        **kwargs: Any,
    ) -> None: ...
    def forward(self, input: _Tensor, output_size: _int | Sequence[_int] | None = None) -> _Tensor: ...

class CosineSimilarity(Module):
    def __init__(self, dim: Any = 1, eps: Any = ...) -> None: ...
    def forward(self, x1: Any, x2: Any) -> Any: ...

class Fold(Module):
    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class Unfold(Module):
    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LazyInstanceNorm1d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyInstanceNorm2d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class LazyInstanceNorm3d(LazyNormMixin):
    def __init__(
        self,
        eps: _float = ...,
        momentum: _float | None = ...,
        affine: _bool = True,
        track_running_stats: _bool = True,
        device: _Device | _str | _int | None = None,
        dtype: _DType | None = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class NLLLoss2d(NLLLoss):
    def __init__(
        self,
        weight: _Tensor | None = None,
        size_average: _bool | None = None,
        ignore_index: _int = -100,
        reduce: _bool | None = None,
        reduction: _str = "mean",
    ) -> None: ...
    def forward(self, input: _Tensor, target: _Tensor) -> _Tensor: ...

class CrossMapLRN2d(Module):
    def __init__(self, size: Any, alpha: Any = ..., beta: Any = ..., k: Any = 1) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LocalResponseNorm(Module):
    def __init__(self, size: Any, alpha: Any = ..., beta: Any = ..., k: Any = ...) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class ConstantPad1d(_ConstantPad):
    def __init__(self, padding: _int | Sequence[_int], value: _float) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ConstantPad2d(_ConstantPad):
    def __init__(self, padding: _int | Sequence[_int], value: _float) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ConstantPad3d(_ConstantPad):
    def __init__(self, padding: _int | Sequence[_int], value: _float) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ZeroPad1d(_ZeroPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ZeroPad2d(_ZeroPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ZeroPad3d(_ZeroPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReflectionPad1d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReflectionPad2d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReflectionPad3d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReplicationPad1d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReplicationPad2d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class ReplicationPad3d(_Pad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class CircularPad1d(_CircularPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class CircularPad2d(_CircularPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class CircularPad3d(_CircularPad):
    def __init__(self, padding: _int | Sequence[_int]) -> None: ...
    def forward(self, input: _Tensor) -> _Tensor: ...

class PixelShuffle(Module):
    def __init__(self, upscale_factor: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class PixelUnshuffle(Module):
    def __init__(self, downscale_factor: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class MaxPool1d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: _bool = False,
        ceil_mode: _bool = False,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AvgPool1d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: _bool = False,
        count_include_pad: _bool = True,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LPPool1d(Module):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveAvgPool1d(Module):
    def __init__(self, output_size: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveMaxPool1d(Module):
    def __init__(self, output_size: Any, return_indices: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class MaxUnpool1d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None: ...
    def forward(self, input: _Tensor, indices: Any, output_size: Any = None) -> Any: ...

class MaxPool2d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: _bool = False,
        ceil_mode: _bool = False,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AvgPool2d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: _bool = False,
        count_include_pad: _bool = True,
        divisor_override: Any = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LPPool2d(Module):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveMaxPool2d(Module):
    def __init__(self, output_size: Any, return_indices: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class MaxUnpool2d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None: ...
    def forward(self, input: _Tensor, indices: Any, output_size: Any = None) -> Any: ...

class MaxPool3d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: _bool = False,
        ceil_mode: _bool = False,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AvgPool3d(Module):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: _bool = False,
        count_include_pad: _bool = True,
        divisor_override: Any = None,
    ) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class LPPool3d(Module):
    def __init__(self, norm_type: Any, kernel_size: Any, stride: Any = None, ceil_mode: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveAvgPool3d(Module):
    def __init__(self, output_size: Any) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class AdaptiveMaxPool3d(Module):
    def __init__(self, output_size: Any, return_indices: _bool = False) -> None: ...
    def forward(self, input: _Tensor) -> Any: ...

class MaxUnpool3d(Module):
    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None: ...
    def forward(self, input: _Tensor, indices: Any, output_size: Any = None) -> Any: ...
