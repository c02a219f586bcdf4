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
from flambeau import amp as amp
from flambeau import ao as ao
from flambeau import autograd as autograd
from flambeau import base as base
from flambeau import compat as compat
from flambeau import compiler as compiler
from flambeau import core as core
from flambeau import distributed as distributed
from flambeau import distributions as distributions
from flambeau import eager as eager
from flambeau import export as export
from flambeau import fake as fake
from flambeau import fft as fft
from flambeau import func as func
from flambeau import fx as fx
from flambeau import library as library
from flambeau import linalg as linalg
from flambeau import nested as nested
from flambeau import nn as nn
from flambeau import numpy as numpy
from flambeau import ops as ops
from flambeau import optim as optim
from flambeau import overrides as overrides
from flambeau import package as package
from flambeau import return_types as return_types
from flambeau import serialization as serialization
from flambeau import sparse as sparse
from flambeau import special as special
from flambeau import testing as testing
from flambeau import utils as utils
from flambeau import version as version
from flambeau.amp.autocast_mode import autocast as autocast
from flambeau.amp.grad_scaler import GradScaler as GradScaler
from flambeau.amp.state import autocast_decrement_nesting as autocast_decrement_nesting
from flambeau.amp.state import autocast_increment_nesting as autocast_increment_nesting
from flambeau.amp.state import clear_autocast_cache as clear_autocast_cache
from flambeau.amp.state import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from flambeau.amp.state import get_autocast_dtype as get_autocast_dtype
from flambeau.amp.state import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from flambeau.amp.state import is_autocast_cache_enabled as is_autocast_cache_enabled
from flambeau.amp.state import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from flambeau.amp.state import is_autocast_enabled as is_autocast_enabled
from flambeau.amp.state import set_autocast_cache_enabled as set_autocast_cache_enabled
from flambeau.amp.state import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from flambeau.amp.state import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from flambeau.amp.state import set_autocast_dtype as set_autocast_dtype
from flambeau.amp.state import set_autocast_enabled as set_autocast_enabled
from flambeau.amp.state import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from flambeau.aot.control_flow import cond as cond
from flambeau.aot.control_flow import while_loop as while_loop
from flambeau.autograd.anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from flambeau.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from flambeau.autograd.anomaly import set_anomaly_enabled as set_anomaly_enabled
from flambeau.autograd.grad_mode import enable_grad as enable_grad
from flambeau.autograd.grad_mode import inference_mode as inference_mode
from flambeau.autograd.grad_mode import is_grad_enabled as is_grad_enabled
from flambeau.autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from flambeau.autograd.grad_mode import no_grad as no_grad
from flambeau.autograd.grad_mode import set_grad_enabled as set_grad_enabled
from flambeau.base.device import Device as device
from flambeau.base.dtypes import DType as dtype
from flambeau.base.dtypes import finfo as finfo
from flambeau.base.dtypes import get_default_dtype as get_default_dtype
from flambeau.base.dtypes import iinfo as iinfo
from flambeau.base.dtypes import set_default_dtype as set_default_dtype
from flambeau.base.errors import OutOfMemoryError as OutOfMemoryError
from flambeau.base.memory_format import MemoryFormat as memory_format
from flambeau.base.shapes import Size as Size
from flambeau.base.symint import SymBool as SymBool
from flambeau.base.symint import SymFloat as SymFloat
from flambeau.base.symint import SymInt as SymInt
from flambeau.base.symint import sym_float as sym_float
from flambeau.base.symint import sym_int as sym_int
from flambeau.base.symint import sym_ite as sym_ite
from flambeau.base.symint import sym_max as sym_max
from flambeau.base.symint import sym_min as sym_min
from flambeau.base.symint import sym_not as sym_not
from flambeau.base.symint import sym_sum as sym_sum
from flambeau.compat.composed import broadcast_shapes as broadcast_shapes
from flambeau.compat.composed import from_file as from_file
from flambeau.compat.composed import frombuffer as frombuffer
from flambeau.compat.composed import range_ as range
from flambeau.compat.defaults import are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled
from flambeau.compat.defaults import get_default_device as get_default_device
from flambeau.compat.defaults import get_deterministic_debug_mode as get_deterministic_debug_mode
from flambeau.compat.defaults import get_device_module as get_device_module
from flambeau.compat.defaults import get_float32_matmul_precision as get_float32_matmul_precision
from flambeau.compat.defaults import get_num_interop_threads as get_num_interop_threads
from flambeau.compat.defaults import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from flambeau.compat.defaults import is_warn_always_enabled as is_warn_always_enabled
from flambeau.compat.defaults import set_default_device as set_default_device
from flambeau.compat.defaults import set_default_tensor_type as set_default_tensor_type
from flambeau.compat.defaults import set_deterministic_debug_mode as set_deterministic_debug_mode
from flambeau.compat.defaults import set_float32_matmul_precision as set_float32_matmul_precision
from flambeau.compat.defaults import set_flush_denormal as set_flush_denormal
from flambeau.compat.defaults import set_num_interop_threads as set_num_interop_threads
from flambeau.compat.defaults import set_warn_always as set_warn_always
from flambeau.compat.defaults import use_deterministic_algorithms as use_deterministic_algorithms
from flambeau.compat.dlpack import from_dlpack as from_dlpack
from flambeau.compat.dlpack import to_dlpack as to_dlpack
from flambeau.compat.jit import CompilationUnit as CompilationUnit
from flambeau.compat.jit import fork as fork
from flambeau.compat.jit import wait as wait
from flambeau.compat.legacy import AcceleratorError as AcceleratorError
from flambeau.compat.legacy import DispatchKey as DispatchKey
from flambeau.compat.legacy import FatalError as FatalError
from flambeau.compat.legacy import Tag as Tag
from flambeau.compat.older_functions import conv_tbc as conv_tbc
from flambeau.compat.older_functions import detach_ as detach_
from flambeau.compat.older_functions import embedding_renorm_ as embedding_renorm_
from flambeau.compat.older_functions import native_channel_shuffle as native_channel_shuffle
from flambeau.compat.older_functions import norm_except_dim as norm_except_dim
from flambeau.compat.older_functions import rrelu_ as rrelu_
from flambeau.compat.queries import can_cast as can_cast
from flambeau.compat.queries import is_storage as is_storage
from flambeau.compat.queries import result_type as result_type
from flambeau.compat.queries import typename as typename
from flambeau.compat.random import get_rng_state as get_rng_state
from flambeau.compat.random import initial_seed as initial_seed
from flambeau.compat.random import set_rng_state as set_rng_state
from flambeau.compat.random import thread_safe_generator as thread_safe_generator
from flambeau.compat.script_classes import Error as JITException
from flambeau.compat.script_classes import ScriptFunction as ScriptFunction
from flambeau.compat.streams import Event as Event
from flambeau.compat.streams import Stream as Stream
from flambeau.core.conversion import is_tensor as is_tensor
from flambeau.core.generator import Generator as Generator
from flambeau.core.generator import manual_seed as manual_seed
from flambeau.core.generator import seed as seed
from flambeau.core.overrides import DisableTorchFunction as DisableTorchFunction
from flambeau.core.overrides import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from flambeau.core.printing import set_printoptions as set_printoptions
from flambeau.core.quantized import QScheme as qscheme
from flambeau.core.tensor import Layout as layout
from flambeau.core.typed_storage import TypedStorage as TypedStorage
from flambeau.distributed.futures import Future as Future
from flambeau.func.mapping import vmap as vmap
from flambeau.serialization import load as load
from flambeau.serialization import save as save

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_str: TypeAlias = builtins.str
_Number: TypeAlias = builtins.int | builtins.float | builtins.complex
_Tensor: TypeAlias = Tensor

AVG: _int
AggregationType: Any
AliasDb: Any
AnyType: Any
Argument: Any
ArgumentSpec: Any
AwaitType: Any
BFloat16Storage: Any
BFloat16Tensor: Any
BenchmarkConfig: Any
BenchmarkExecutionStats: Any
Block: Any
BoolStorage: Any
BoolTensor: Any
BoolType: Any
BufferDict: Any
ByteStorage: Any
ByteTensor: Any
CallStack: Any
Capsule: Any
CharStorage: Any
CharTensor: Any
ClassType: Any
Code: Any
CompleteArgumentSpec: Any
ComplexDoubleStorage: Any
ComplexFloatStorage: Any
ComplexType: Any
ConcreteModuleType: Any
ConcreteModuleTypeBuilder: Any
DeepCopyMemoTable: Any
DeserializationStorageContext: Any
DeviceObjType: Any
DictType: Any
DispatchKeySet: Any
DoubleStorage: Any
DoubleTensor: Any
EnumType: Any
ErrorReport: Any
ExcludeDispatchKeyGuard: Any
ExecutionPlan: Any
FileCheck: Any
FloatStorage: Any
FloatTensor: Any
FloatType: Any
FunctionSchema: Any
FutureType: Any
Gradient: Any
Graph: Any
GraphExecutorState: Any
HalfStorage: Any
HalfTensor: Any
IODescriptor: Any
InferredType: Any
IntStorage: Any
IntTensor: Any
IntType: Any
InterfaceType: Any
ListType: Any
LiteScriptModule: Any
LockingLogger: Any
LongStorage: Any
LongTensor: Any
ModuleDict: Any
Node: Any
NoneType: Any
NoopLogger: Any
NumberType: Any
OperatorInfo: Any
OptionalType: Any
ParameterDict: Any
PyObjectType: Any
PyTorchFileReader: Any
PyTorchFileWriter: Any
RRefType: Any
SUM: _int
ScriptClass: Any
ScriptClassFunction: Any
ScriptDict: Any
ScriptDictIterator: Any
ScriptDictKeyIterator: Any
ScriptList: Any
ScriptListIterator: Any
ScriptMethod: Any
ScriptModule: Any
ScriptModuleSerializer: Any
ScriptObject: Any
ScriptObjectProperty: Any
SerializationStorageContext: Any
ShortStorage: Any
ShortTensor: Any
StaticModule: Any
Storage: Any
StorageBase: Any
StreamObjType: Any
StringType: Any
SymBoolType: Any
SymIntType: Any
TensorType: Any
ThroughputBenchmark: Any
TracingState: Any
TupleType: Any
Type: Any
UnionType: Any
UntypedStorage: Any
Use: Any
Value: Any

def abs(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def abs_(input: _Tensor) -> _Tensor: ...
def absolute(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

accelerator: Any

def acos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def acos_(input: _Tensor) -> _Tensor: ...
def acosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def acosh_(input: _Tensor) -> _Tensor: ...
def adaptive_avg_pool1d(
    input: _Tensor, output_size: _int | Sequence[_int], *, out: _Tensor | None = None
) -> _Tensor: ...
def adaptive_max_pool1d(
    input: _Tensor, output_size: _int | Sequence[_int], *, out: Sequence[_Tensor] | None = None
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def add(
    input: _Tensor | _Number, other: _Tensor | _Number, *, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def add(input: _Tensor, other: _Number, alpha: _Number = 1, *, out: _Tensor | None = None) -> _Tensor: ...
def addbmm(
    input: _Tensor,
    batch1: _Tensor,
    batch2: _Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
def addcdiv(
    input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def addcmul(
    input: _Tensor, tensor1: _Tensor, tensor2: _Tensor, *, value: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def addmm(
    input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def addmv(
    input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def addmv_(input: _Tensor, mat: _Tensor, vec: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor: ...
def addr(
    input: _Tensor, vec1: _Tensor, vec2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def adjoint(input: _Tensor) -> _Tensor: ...
def affine_grid_generator(
    theta: _Tensor, size: Sequence[_int], align_corners: _bool, *, out: _Tensor | None = None
) -> _Tensor: ...
def alias_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def all(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def all(input: _Tensor, dim: _int, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def all(
    input: _Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def allclose(
    input: _Tensor, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = False
) -> _bool: ...
def alpha_dropout(input: _Tensor, p: _float, train: _bool, *, out: _Tensor | None = None) -> _Tensor: ...
def alpha_dropout_(input: _Tensor, p: Any, train: Any) -> Any: ...
def amax(
    input: _Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def amin(
    input: _Tensor, dim: _int | Sequence[_int] = ..., keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def aminmax(
    input: _Tensor, *, dim: _int | None = None, keepdim: _bool = False, out: Sequence[_Tensor] | None = None
) -> _returns.aminmax: ...
def angle(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def any(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def any(input: _Tensor, dim: _int, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def any(
    input: _Tensor, dim: Sequence[_int] | None = None, keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def arange(
    end: _Number,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def arange(
    start: _Number,
    end: _Number,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def arange(
    start: _Number,
    end: _Number,
    step: _Number = 1,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def arccos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arccos_(input: _Tensor) -> _Tensor: ...
def arccosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arccosh_(input: _Tensor) -> _Tensor: ...
def arcsin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arcsin_(input: _Tensor) -> _Tensor: ...
def arcsinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arcsinh_(input: _Tensor) -> _Tensor: ...
def arctan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arctan2(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arctan_(input: _Tensor) -> _Tensor: ...
def arctanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def arctanh_(input: _Tensor) -> _Tensor: ...
def argmax(
    input: _Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def argmin(
    input: _Tensor, dim: _int | None = None, keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def argsort(input: _Tensor, dim: _int = -1, descending: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def argsort(
    input: _Tensor, *, stable: _bool, dim: _int = -1, descending: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def argwhere(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def as_strided(
    input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None
) -> _Tensor: ...
def as_strided_(
    input: _Tensor, size: Sequence[_int], stride: Sequence[_int], storage_offset: _int | None = None
) -> _Tensor: ...
def as_strided_copy(
    input: _Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def as_strided_scatter(
    input: _Tensor,
    src: _Tensor,
    size: Sequence[_int],
    stride: Sequence[_int],
    storage_offset: _int | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any: ...
def asarray(obj: Any, *, dtype: Any = None, device: Any = None, copy: Any = None, requires_grad: Any = None) -> Any: ...
def asin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def asin_(input: _Tensor) -> _Tensor: ...
def asinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def asinh_(input: _Tensor) -> _Tensor: ...
def atan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atan2(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atan_(input: _Tensor) -> _Tensor: ...
def atanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def atanh_(input: _Tensor) -> _Tensor: ...
def atleast_1d(*tensors: Any) -> Any: ...
def atleast_2d(*tensors: Any) -> Any: ...
def atleast_3d(*tensors: Any) -> Any: ...
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

backends: Any

def baddbmm(
    input: _Tensor,
    batch1: _Tensor,
    batch2: _Tensor,
    *,
    beta: _Number = 1,
    alpha: _Number = 1,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def bartlett_window(
    window_length: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def bartlett_window(
    window_length: _int,
    periodic: _bool,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def batch_norm(
    input: _Tensor,
    weight: _Tensor | None,
    bias: _Tensor | None,
    running_mean: _Tensor | None,
    running_var: _Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
    cudnn_enabled: _bool,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def batch_norm_backward_elemt(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_backward_reduce(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_elemt(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_gather_stats(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_gather_stats_with_counts(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_stats(*args: Any, **kwargs: Any) -> Any: ...
def batch_norm_update_stats(*args: Any, **kwargs: Any) -> Any: ...
@overload
def bernoulli(input: _Tensor, p: _float, *, generator: _Generator | None = None) -> _Tensor: ...
@overload
def bernoulli(input: _Tensor, p: _Tensor, *, generator: _Generator | None = None) -> _Tensor: ...
@overload
def bernoulli(input: _Tensor, *, generator: _Generator | None = None, out: _Tensor | None = None) -> _Tensor: ...

bfloat16: _DType

def bilinear(
    input1: _Tensor, input2: _Tensor, weight: _Tensor, bias: _Tensor | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def binary_cross_entropy_with_logits(
    input: _Tensor,
    target: _Tensor,
    weight: _Tensor | None = None,
    pos_weight: _Tensor | None = None,
    reduction: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def bincount(input: _Tensor, weights: _Tensor | None = None, minlength: _int = 0) -> _Tensor: ...
def binomial(count: _Tensor, prob: _Tensor, generator: _Generator | None = None) -> _Tensor: ...

bit: _DType
bits16: _DType
bits1x8: _DType
bits2x4: _DType
bits4x2: _DType
bits8: _DType

@overload
def bitwise_and(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_and(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_and(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_left_shift(
    input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def bitwise_left_shift(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_left_shift(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def bitwise_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_or(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_or(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_or(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_right_shift(
    input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def bitwise_right_shift(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_right_shift(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_xor(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_xor(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def bitwise_xor(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def blackman_window(
    window_length: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def blackman_window(
    window_length: _int,
    periodic: _bool,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def block_diag(*tensors: Any) -> Any: ...
def bmm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

bool: _DType

def broadcast_tensors(*tensors: Any) -> Any: ...
def broadcast_to(input: _Tensor, *size: _int | Sequence[_int]) -> _Tensor: ...
@overload
def bucketize(
    input: _Tensor, boundaries: _Tensor, *, out_int32: _bool = False, right: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def bucketize(
    input: _Number, boundaries: _Tensor, *, out_int32: _bool = False, right: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def cartesian_prod(*tensors: Any) -> Any: ...
def cat(tensors: Sequence[_Tensor], dim: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def ccol_indices_copy(*args: Any, **kwargs: Any) -> Any: ...
def cdist(x1: Any, x2: Any, p: Any = ..., compute_mode: Any = "use_mm_for_euclid_dist_if_necessary") -> Any: ...

cdouble: _DType

def ceil(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ceil_(input: _Tensor) -> _Tensor: ...
def celu(input: _Tensor, alpha: _Number = ..., *, out: _Tensor | None = None) -> _Tensor: ...
def celu_(input: _Tensor, alpha: _Number = ...) -> _Tensor: ...

cfloat: _DType

def chain_matmul(*matrices: Any, out: Any = None) -> Any: ...

chalf: _DType

def channel_shuffle(input: _Tensor, groups: _int, *, out: _Tensor | None = None) -> _Tensor: ...

channels_last: _MemoryFormat
channels_last_3d: _MemoryFormat

def cholesky(input: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
def cholesky_inverse(input: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
def cholesky_solve(input: _Tensor, input2: _Tensor, upper: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
def choose_qparams_optimized(*args: Any, **kwargs: Any) -> Any: ...
def chunk(input: _Tensor, chunks: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def clamp(
    input: _Tensor, min: _Number | None = None, max: _Number | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def clamp(
    input: _Tensor, min: _Tensor | None = None, max: _Tensor | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def clamp_(input: _Tensor, min: _Number | None = None, max: _Number | None = None) -> _Tensor: ...
@overload
def clamp_(input: _Tensor, min: _Tensor | None = None, max: _Tensor | None = None) -> _Tensor: ...
@overload
def clamp_max(input: _Tensor, max: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def clamp_max(input: _Tensor, max: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def clamp_max_(input: _Tensor, max: _Number) -> _Tensor: ...
@overload
def clamp_max_(input: _Tensor, max: _Tensor | _Number) -> _Tensor: ...
@overload
def clamp_min(input: _Tensor, min: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def clamp_min(input: _Tensor, min: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def clamp_min_(input: _Tensor, min: _Number) -> _Tensor: ...
@overload
def clamp_min_(input: _Tensor, min: _Tensor | _Number) -> _Tensor: ...

classes: Any

@overload
def clip(
    input: _Tensor, min: _Number | None = None, max: _Number | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def clip(
    input: _Tensor, min: _Tensor | None = None, max: _Tensor | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def clip_(input: _Tensor, min: _Number | None = None, max: _Number | None = None) -> _Tensor: ...
@overload
def clip_(input: _Tensor, min: _Tensor | None = None, max: _Tensor | None = None) -> _Tensor: ...
def clone(input: _Tensor, *, memory_format: _MemoryFormat | None = None, out: _Tensor | None = None) -> _Tensor: ...
def col_indices_copy(*args: Any, **kwargs: Any) -> Any: ...
def column_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def combinations(input: _Tensor, r: _int = 2, with_replacement: _bool = False) -> Any: ...
def complex(real: _Tensor, imag: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

complex128: _DType
complex32: _DType
complex64: _DType

def concat(tensors: Sequence[_Tensor], dim: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def concatenate(tensors: Sequence[_Tensor], dim: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def conj(input: _Tensor) -> _Tensor: ...
def conj_physical(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def conj_physical_(input: _Tensor) -> _Tensor: ...

contiguous_format: _MemoryFormat

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
def convolution(
    input: _Tensor,
    weight: _Tensor,
    bias: _Tensor | None,
    stride: Sequence[_int],
    padding: Sequence[_int],
    dilation: Sequence[_int],
    transposed: _bool,
    output_padding: Sequence[_int],
    groups: _int,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def copysign(input: _Tensor, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def copysign(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def corrcoef(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def cos(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def cos_(input: _Tensor) -> _Tensor: ...
def cosh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def cosh_(input: _Tensor) -> _Tensor: ...
def cosine_embedding_loss(
    input1: _Tensor,
    input2: _Tensor,
    target: _Tensor,
    margin: _float = ...,
    reduction: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def cosine_similarity(
    x1: _Tensor, x2: _Tensor, dim: _int = 1, eps: _float = ..., *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def count_nonzero(input: _Tensor, *dim: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...
@overload
def count_nonzero(input: _Tensor, dim: _int | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def cov(
    input: _Tensor,
    *,
    correction: _int = 1,
    fweights: _Tensor | None = None,
    aweights: _Tensor | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...

cpu: Any

def cross(input: _Tensor, other: _Tensor, dim: _int | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def crow_indices_copy(*args: Any, **kwargs: Any) -> Any: ...
@overload
def ctc_loss(
    log_probs: _Tensor,
    targets: _Tensor,
    input_lengths: Sequence[_int],
    target_lengths: Sequence[_int],
    blank: _int = 0,
    reduction: _int = 1,
    zero_infinity: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def ctc_loss(
    log_probs: _Tensor,
    targets: _Tensor,
    input_lengths: _Tensor,
    target_lengths: _Tensor,
    blank: _int = 0,
    reduction: _int = 1,
    zero_infinity: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...

cuda: Any

def cudnn_affine_grid_generator(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_batch_norm(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_convolution(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_convolution_add_relu(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_convolution_relu(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_convolution_transpose(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_grid_sampler(*args: Any, **kwargs: Any) -> Any: ...
def cudnn_is_acceptable(*args: Any, **kwargs: Any) -> Any: ...
def cummax(input: _Tensor, dim: _int, *, out: Sequence[_Tensor] | None = None) -> _returns.cummax: ...
def cummin(input: _Tensor, dim: _int, *, out: Sequence[_Tensor] | None = None) -> _returns.cummin: ...
def cumprod(input: _Tensor, dim: _int, *, dtype: _DType | None = None, out: _Tensor | None = None) -> _Tensor: ...
def cumsum(input: _Tensor, dim: _int, *, dtype: _DType | None = None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def cumulative_trapezoid(y: _Tensor, x: _Tensor, *, dim: _int = -1) -> _Tensor: ...
@overload
def cumulative_trapezoid(y: _Tensor, *, dx: _Number = 1, dim: _int = -1) -> _Tensor: ...

default_generator: _Generator

def deg2rad(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def deg2rad_(input: _Tensor) -> _Tensor: ...
@overload
def dequantize(input: _Tensor) -> _Tensor: ...
@overload
def dequantize(tensors: Sequence[_Tensor]) -> builtins.tuple[_Tensor, ...]: ...
def det(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def detach(input: _Tensor) -> _Tensor: ...
def detach_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def diag(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def diag_embed(
    input: _Tensor, offset: _int = 0, dim1: _int = -2, dim2: _int = -1, *, out: _Tensor | None = None
) -> _Tensor: ...
def diagflat(input: _Tensor, offset: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def diagonal(input: _Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1) -> _Tensor: ...
def diagonal_copy(
    input: _Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: _Tensor | None = None
) -> _Tensor: ...
def diagonal_scatter(
    input: _Tensor, src: _Tensor, offset: _int = 0, dim1: _int = 0, dim2: _int = 1, *, out: _Tensor | None = None
) -> _Tensor: ...
def diff(
    input: _Tensor,
    n: _int = 1,
    dim: _int = -1,
    prepend: _Tensor | None = None,
    append: _Tensor | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def digamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def dist(input: _Tensor, other: _Tensor, p: _Number = 2, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def div(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def div(
    input: _Tensor | _Number, other: _Tensor | _Number, *, rounding_mode: _str | None, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def div(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def div(input: _Tensor, other: _Number, *, rounding_mode: _str | None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def divide(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def divide(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def divide(input: _Tensor, other: _Tensor, *, rounding_mode: _str | None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def divide(input: _Tensor, other: _Number, *, rounding_mode: _str | None, out: _Tensor | None = None) -> _Tensor: ...
def dot(input: _Tensor, tensor: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

double: _DType

def dropout(input: _Tensor, p: _float, train: _bool, *, out: _Tensor | None = None) -> _Tensor: ...
def dropout_(input: _Tensor, p: Any, train: Any) -> Any: ...
def dsmm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def dsplit(input: _Tensor, sections: _int) -> builtins.tuple[_Tensor, ...]: ...
@overload
def dsplit(input: _Tensor, *indices: _int | Sequence[_int]) -> builtins.tuple[_Tensor, ...]: ...
def dstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...

e: _float

def einsum(equation: Any, *operands: Any) -> Any: ...
def embedding(
    weight: _Tensor, indices: _Tensor, padding_idx: _int = -1, scale_grad_by_freq: _bool = False, sparse: _bool = False
) -> _Tensor: ...
@overload
def embedding_bag(
    weight: _Tensor,
    indices: _Tensor,
    offsets: _Tensor,
    scale_grad_by_freq: _bool = False,
    mode: _int = 0,
    sparse: _bool = False,
    per_sample_weights: _Tensor | None = None,
    include_last_offset: _bool = False,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor, _Tensor]: ...
@overload
def embedding_bag(
    weight: _Tensor,
    indices: _Tensor,
    offsets: _Tensor,
    scale_grad_by_freq: _bool,
    mode: _int,
    sparse: _bool,
    per_sample_weights: _Tensor | None,
    include_last_offset: _bool,
    padding_idx: _int | None,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor, _Tensor]: ...
def empty(
    *size: _int | Sequence[_int],
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def empty_like(
    input: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def empty_permuted(
    size: Sequence[_int],
    physical_layout: Sequence[_int],
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def empty_quantized(*args: Any, **kwargs: Any) -> Any: ...
def empty_strided(
    size: Sequence[_int],
    stride: Sequence[_int],
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def eq(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def eq(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def equal(input: _Tensor, other: _Tensor) -> _bool: ...
def erf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def erf_(input: _Tensor) -> _Tensor: ...
def erfc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def erfc_(input: _Tensor) -> _Tensor: ...
def erfinv(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def exp2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def exp2_(input: _Tensor) -> _Tensor: ...
def exp_(input: _Tensor) -> _Tensor: ...
def expand_copy(
    input: _Tensor, *size: _int | Sequence[_int], implicit: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def expm1(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def expm1_(input: _Tensor) -> _Tensor: ...
@overload
def eye(
    n: _int,
    m: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def eye(
    n: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def fake_quantize_per_channel_affine(
    input: _Tensor,
    scale: _Tensor,
    zero_point: _Tensor,
    axis: _int,
    quant_min: _int,
    quant_max: _int,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def fake_quantize_per_tensor_affine(
    input: _Tensor, scale: _float, zero_point: _int, quant_min: _int, quant_max: _int, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def fake_quantize_per_tensor_affine(
    input: _Tensor, scale: _Tensor, zero_point: _Tensor, quant_min: _int, quant_max: _int, *, out: _Tensor | None = None
) -> _Tensor: ...
def fbgemm_linear_fp16_weight(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_linear_fp16_weight_fp32_activation(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_linear_int8_weight(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_linear_int8_weight_fp32_activation(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_linear_quantize_weight(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_pack_gemm_matrix_fp16(*args: Any, **kwargs: Any) -> Any: ...
def fbgemm_pack_quantized_matrix(*args: Any, **kwargs: Any) -> Any: ...
def feature_alpha_dropout(input: _Tensor, p: _float, train: _bool, *, out: _Tensor | None = None) -> _Tensor: ...
def feature_alpha_dropout_(input: _Tensor, p: Any, train: Any) -> Any: ...
def feature_dropout(input: _Tensor, p: _float, train: _bool, *, out: _Tensor | None = None) -> _Tensor: ...
def feature_dropout_(input: _Tensor, p: Any, train: Any) -> Any: ...
@overload
def fill(input: _Tensor, value: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def fill(input: _Tensor | _Number, value: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def fill_(input: _Tensor, value: _Number) -> _Tensor: ...
@overload
def fill_(input: _Tensor | _Number, value: _Tensor | _Number) -> _Tensor: ...
def fix(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def fix_(input: _Tensor) -> _Tensor: ...
def flatten(input: _Tensor, start_dim: _int = 0, end_dim: _int = -1) -> _Tensor: ...
def flip(input: _Tensor, *dims: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...
def fliplr(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def flipud(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

float: _DType
float16: _DType
float32: _DType
float4_e2m1fn_x2: _DType
float64: _DType
float8_e4m3fn: _DType
float8_e4m3fnuz: _DType
float8_e5m2: _DType
float8_e5m2fnuz: _DType
float8_e8m0fnu: _DType

@overload
def float_power(input: _Tensor, exponent: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def float_power(input: _Number, exponent: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def float_power(input: _Tensor, exponent: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def floor(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def floor_(input: _Tensor) -> _Tensor: ...
@overload
def floor_divide(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def floor_divide(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def fmax(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def fmin(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def fmod(input: _Tensor, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def fmod(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def frac(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def frac_(input: _Tensor) -> _Tensor: ...
def frexp(input: _Tensor, *, out: Sequence[_Tensor] | None = None) -> _returns.frexp: ...
def frobenius_norm(
    input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def from_numpy(array: Any) -> Any: ...
def full(
    size: Sequence[_int],
    fill_value: _Number,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def full_like(
    input: _Tensor,
    fill_value: _Number,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...

functional: Any
functorch: Any

def fused_moving_avg_obs_fake_quant(*args: Any, **kwargs: Any) -> Any: ...

futures: Any

def gather(
    input: _Tensor, dim: _int, index: _Tensor, *, sparse_grad: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def gcd(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def gcd_(input: _Tensor, other: _Tensor) -> _Tensor: ...
@overload
def ge(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def ge(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def geqrf(input: _Tensor, *, out: Sequence[_Tensor] | None = None) -> _returns.geqrf: ...
def ger(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def get_autocast_ipu_dtype(*args: Any, **kwargs: Any) -> Any: ...
def get_autocast_xla_dtype(*args: Any, **kwargs: Any) -> Any: ...
def get_device(input: _Tensor) -> _int: ...

get_num_threads: Any

@overload
def gradient(
    input: _Tensor, *, spacing: _Number | None = None, dim: _int | None = None, edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(
    input: _Tensor, *, spacing: _Number, dim: Sequence[_int], edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(input: _Tensor, *, dim: Sequence[_int], edge_order: _int = 1) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(
    input: _Tensor, *, spacing: Sequence[_Number], dim: _int | None = None, edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(
    input: _Tensor, *, spacing: Sequence[_Number], dim: Sequence[_int], edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(
    input: _Tensor, *, spacing: Sequence[_Tensor], dim: _int | None = None, edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def gradient(
    input: _Tensor, *, spacing: Sequence[_Tensor], dim: Sequence[_int], edge_order: _int = 1
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def greater(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def greater(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def greater_equal(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def greater_equal(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def grid_sampler(
    input: _Tensor,
    grid: _Tensor,
    interpolation_mode: _int,
    padding_mode: _int,
    align_corners: _bool,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def grid_sampler_2d(
    input: _Tensor,
    grid: _Tensor,
    interpolation_mode: _int,
    padding_mode: _int,
    align_corners: _bool,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def grid_sampler_3d(
    input: _Tensor,
    grid: _Tensor,
    interpolation_mode: _int,
    padding_mode: _int,
    align_corners: _bool,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def group_norm(
    input: _Tensor,
    num_groups: _int,
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    eps: _float = ...,
    cudnn_enabled: _bool = True,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def gru(
    input: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    batch_first: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def gru(
    data: _Tensor,
    batch_sizes: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def gru_cell(
    input: _Tensor,
    hx: _Tensor,
    w_ih: _Tensor,
    w_hh: _Tensor,
    b_ih: _Tensor | None = None,
    b_hh: _Tensor | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def gt(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def gt(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

half: _DType

@overload
def hamming_window(
    window_length: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def hamming_window(
    window_length: _int,
    periodic: _bool,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def hamming_window(
    window_length: _int,
    periodic: _bool,
    alpha: _float,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def hamming_window(
    window_length: _int,
    periodic: _bool,
    alpha: _float,
    beta: _float,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def hann_window(
    window_length: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def hann_window(
    window_length: _int,
    periodic: _bool,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def hardshrink(input: _Tensor, lambd: _Number = ..., *, out: _Tensor | None = None) -> _Tensor: ...

has_lapack: _bool
has_mkl: _bool
has_openmp: _bool
has_spectral: _bool

def hash_tensor(
    input: _Tensor,
    dim: _int | Sequence[_int] = ...,
    *,
    keepdim: _bool = False,
    mode: _int = 0,
    out: _Tensor | None = None,
) -> _Tensor: ...
def heaviside(input: _Tensor, values: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def hinge_embedding_loss(
    input: _Tensor, target: _Tensor, margin: _float = ..., reduction: _int = 1, *, out: _Tensor | None = None
) -> _Tensor: ...
def histc(
    input: _Tensor, bins: _int = 100, min: _Number = 0, max: _Number = 0, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def histogram(
    input: _Tensor,
    bins: _Tensor,
    *,
    weight: _Tensor | None = None,
    density: _bool = False,
    out: Sequence[_Tensor] | None = None,
) -> _returns.histogram: ...
@overload
def histogram(
    input: _Tensor,
    bins: _int = 100,
    *,
    range: Sequence[_float] | None = None,
    weight: _Tensor | None = None,
    density: _bool = False,
    out: Sequence[_Tensor] | None = None,
) -> _returns.histogram: ...
def histogramdd(input: _Tensor, bins: Any, range: Any = None, weight: Any = None, density: _bool = False) -> Any: ...
def hsmm(mat1: _Tensor, mat2: _Tensor) -> _Tensor: ...
@overload
def hsplit(input: _Tensor, sections: _int) -> builtins.tuple[_Tensor, ...]: ...
@overload
def hsplit(input: _Tensor, *indices: _int | Sequence[_int]) -> builtins.tuple[_Tensor, ...]: ...
def hspmm(mat1: _Tensor, mat2: _Tensor) -> _Tensor: ...
def hstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...

hub: Any

def hypot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def i0(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def i0_(input: _Tensor) -> _Tensor: ...
def igamma(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def igammac(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def imag(input: _Tensor) -> _Tensor: ...
def import_ir_module(*args: Any, **kwargs: Any) -> Any: ...
def import_ir_module_from_buffer(*args: Any, **kwargs: Any) -> Any: ...
def index_add(
    input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def index_copy(
    input: _Tensor, dim: _int, index: _Tensor, source: _Tensor, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def index_fill(input: _Tensor, dim: _int, index: _Tensor, value: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def index_fill(input: _Tensor, dim: _int, index: _Tensor, value: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def index_put(
    input: _Tensor, indices: Sequence[_Tensor | None], values: _Tensor, accumulate: _bool = False
) -> _Tensor: ...
def index_put_(
    input: _Tensor, indices: Sequence[_Tensor | None], values: _Tensor, accumulate: _bool = False
) -> _Tensor: ...
def index_reduce(
    input: _Tensor,
    dim: _int,
    index: _Tensor,
    source: _Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
    out: _Tensor | None = None,
) -> _Tensor: ...
def index_select(input: _Tensor, dim: _int, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def indices_copy(*args: Any, **kwargs: Any) -> Any: ...

inf: _float

def init_num_threads(*args: Any, **kwargs: Any) -> Any: ...
def inner(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def instance_norm(
    input: _Tensor,
    weight: _Tensor | None,
    bias: _Tensor | None,
    running_mean: _Tensor | None,
    running_var: _Tensor | None,
    use_input_stats: _bool,
    momentum: _float,
    eps: _float,
    cudnn_enabled: _bool,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...

int: _DType
int1: _DType
int16: _DType
int2: _DType
int3: _DType
int32: _DType
int4: _DType
int5: _DType
int6: _DType
int64: _DType
int7: _DType
int8: _DType

def int_repr(input: _Tensor) -> _Tensor: ...
def inverse(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def is_autocast_ipu_enabled(*args: Any, **kwargs: Any) -> Any: ...
def is_autocast_xla_enabled(*args: Any, **kwargs: Any) -> Any: ...
def is_complex(input: _Tensor) -> _bool: ...
def is_conj(input: _Tensor) -> _bool: ...
def is_distributed(*args: Any, **kwargs: Any) -> Any: ...
def is_floating_point(input: _Tensor) -> Any: ...
def is_inference(input: _Tensor) -> _bool: ...
def is_neg(input: _Tensor) -> _bool: ...
def is_nonzero(input: _Tensor) -> _bool: ...
def is_same_size(input: _Tensor, other: _Tensor) -> _bool: ...
def is_signed(input: _Tensor) -> _bool: ...
def is_vulkan_available(*args: Any, **kwargs: Any) -> Any: ...
def isclose(
    input: _Tensor, other: _Tensor, rtol: _float = ..., atol: _float = ..., equal_nan: _bool = False
) -> _Tensor: ...
def isfinite(input: _Tensor) -> _Tensor: ...
@overload
def isin(
    elements: _Tensor,
    test_elements: _Tensor,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def isin(
    elements: _Tensor,
    test_element: _Number,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def isin(
    element: _Number,
    test_elements: _Tensor,
    *,
    assume_unique: _bool = False,
    invert: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def isinf(input: _Tensor) -> _Tensor: ...
def isnan(input: _Tensor) -> _Tensor: ...
def isneginf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isposinf(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def isreal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def istft(
    input: _Tensor,
    n_fft: _int,
    hop_length: _int | None = None,
    win_length: _int | None = None,
    window: _Tensor | None = None,
    center: _bool = True,
    normalized: _bool = False,
    onesided: _bool | None = None,
    length: _int | None = None,
    return_complex: _bool = False,
) -> _Tensor: ...

jagged: Any
jit: Any

@overload
def kaiser_window(
    window_length: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def kaiser_window(
    window_length: _int,
    periodic: _bool,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def kaiser_window(
    window_length: _int,
    periodic: _bool,
    beta: _float,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def kl_div(
    input: _Tensor, target: _Tensor, reduction: _int = 1, *, log_target: _bool = False, out: _Tensor | None = None
) -> _Tensor: ...
def kron(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def kthvalue(
    input: _Tensor, k: _int, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None
) -> _returns.kthvalue: ...
def layer_norm(
    input: _Tensor,
    normalized_shape: Sequence[_int],
    weight: _Tensor | None = None,
    bias: _Tensor | None = None,
    eps: _float = ...,
    cudnn_enable: _bool = True,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def lcm(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def lcm_(input: _Tensor, other: _Tensor) -> _Tensor: ...
def ldexp(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ldexp_(input: _Tensor, other: _Tensor) -> _Tensor: ...
@overload
def le(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def le(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

legacy_contiguous_format: _str

@overload
def lerp(input: _Tensor, end: _Tensor, weight: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def lerp(
    input: _Tensor | _Number, end: _Tensor | _Number, weight: _Tensor | _Number, *, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def less(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def less(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def less_equal(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def less_equal(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def lgamma(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def linspace(
    start: _Number,
    end: _Number,
    steps: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def linspace(
    start: _Tensor,
    end: _Tensor,
    steps: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def linspace(
    start: _Tensor,
    end: _Number,
    steps: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def linspace(
    start: _Number,
    end: _Tensor,
    steps: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def lobpcg(
    A: Any,
    k: Any = None,
    B: Any = None,
    X: Any = None,
    n: Any = None,
    iK: Any = None,
    niter: Any = None,
    tol: Any = None,
    largest: Any = None,
    method: Any = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> Any: ...
def log(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log10(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log10_(input: _Tensor) -> _Tensor: ...
def log1p(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log1p_(input: _Tensor) -> _Tensor: ...
def log2(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def log2_(input: _Tensor) -> _Tensor: ...
def log_(input: _Tensor) -> _Tensor: ...
def log_softmax(input: _Tensor, dim: _int, dtype: _DType | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def logaddexp(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logaddexp2(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logcumsumexp(input: _Tensor, dim: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def logdet(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_and(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_not(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_or(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logical_xor(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def logit(input: _Tensor, eps: _float | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
def logit_(input: _Tensor, eps: _float | None = None) -> _Tensor: ...
@overload
def logspace(
    start: _Number,
    end: _Number,
    steps: _int,
    base: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def logspace(
    start: _Tensor,
    end: _Tensor,
    steps: _int,
    base: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def logspace(
    start: _Tensor,
    end: _Number,
    steps: _int,
    base: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def logspace(
    start: _Number,
    end: _Tensor,
    steps: _int,
    base: _float = ...,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def logsumexp(
    input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...

long: _DType

@overload
def lstm(
    input: _Tensor,
    hx: Sequence[_Tensor],
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    batch_first: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor]: ...
@overload
def lstm(
    data: _Tensor,
    batch_sizes: _Tensor,
    hx: Sequence[_Tensor],
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor]: ...
def lstm_cell(
    input: _Tensor,
    hx: Sequence[_Tensor],
    w_ih: _Tensor,
    w_hh: _Tensor,
    b_ih: _Tensor | None = None,
    b_hh: _Tensor | None = None,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def lt(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def lt(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def lu(A: Any, pivot: _bool = True, get_infos: _bool = False, out: Any = None) -> Any: ...
def lu_solve(input: _Tensor, LU_data: _Tensor, LU_pivots: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def lu_unpack(
    LU_data: _Tensor,
    LU_pivots: _Tensor,
    unpack_data: _bool = True,
    unpack_pivots: _bool = True,
    *,
    out: Sequence[_Tensor] | None = None,
) -> _returns.lu_unpack: ...
def margin_ranking_loss(
    input1: _Tensor,
    input2: _Tensor,
    target: _Tensor,
    margin: _float = ...,
    reduction: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...

masked: Any

@overload
def masked_fill(input: _Tensor, mask: _Tensor, value: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def masked_fill(input: _Tensor, mask: _Tensor, value: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def masked_scatter(input: _Tensor, mask: _Tensor, source: _Tensor) -> _Tensor: ...
def masked_select(input: _Tensor, mask: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matmul(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matrix_exp(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def matrix_power(input: _Tensor, n: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def max(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def max(input: _Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None) -> _returns.max: ...
@overload
def max(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def max_pool1d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def max_pool1d_with_indices(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def max_pool2d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def max_pool3d(
    input: _Tensor,
    kernel_size: _int | Sequence[_int],
    stride: _int | Sequence[_int] = ...,
    padding: _int | Sequence[_int] = 0,
    dilation: _int | Sequence[_int] = 1,
    ceil_mode: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def maximum(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def mean(input: _Tensor, *, dtype: _DType | None = None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def mean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def median(
    input: _Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None
) -> _returns.median: ...
@overload
def median(input: _Tensor) -> _Tensor: ...
def merge_type_from_type_comment(*args: Any, **kwargs: Any) -> Any: ...
def meshgrid(*tensors: Any, indexing: Any = None) -> Any: ...
@overload
def min(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def min(input: _Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None) -> _returns.min: ...
@overload
def min(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def minimum(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def miopen_batch_norm(*args: Any, **kwargs: Any) -> Any: ...
def miopen_convolution(*args: Any, **kwargs: Any) -> Any: ...
def miopen_convolution_add_relu(*args: Any, **kwargs: Any) -> Any: ...
def miopen_convolution_relu(*args: Any, **kwargs: Any) -> Any: ...
def miopen_convolution_transpose(*args: Any, **kwargs: Any) -> Any: ...
def miopen_ctc_loss(*args: Any, **kwargs: Any) -> Any: ...
def miopen_depthwise_convolution(*args: Any, **kwargs: Any) -> Any: ...
def miopen_rnn(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_adaptive_avg_pool2d(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_convolution(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_linear_backward_weights(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_max_pool2d(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_max_pool3d(*args: Any, **kwargs: Any) -> Any: ...
def mkldnn_rnn_layer(*args: Any, **kwargs: Any) -> Any: ...
def mm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def mode(
    input: _Tensor, dim: _int = -1, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None
) -> _returns.mode: ...

monitor: Any

@overload
def moveaxis(input: _Tensor, source: _int, destination: _int) -> _Tensor: ...
@overload
def moveaxis(input: _Tensor, source: Sequence[_int], destination: Sequence[_int]) -> _Tensor: ...
@overload
def movedim(input: _Tensor, source: Sequence[_int], destination: Sequence[_int]) -> _Tensor: ...
@overload
def movedim(input: _Tensor, source: _int, destination: _int) -> _Tensor: ...

mps: Any

def msort(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

mtia: Any

@overload
def mul(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def mul(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def multinomial(
    input: _Tensor,
    num_samples: _int,
    replacement: _bool = False,
    *,
    generator: _Generator | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def multiply(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def multiply(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...

multiprocessing: Any

def mv(input: _Tensor, vec: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def mvlgamma(input: _Tensor, p: _int, *, out: _Tensor | None = None) -> _Tensor: ...

nan: _float

def nan_to_num(
    input: _Tensor,
    nan: _float | None = None,
    posinf: _float | None = None,
    neginf: _float | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def nan_to_num_(
    input: _Tensor, nan: _float | None = None, posinf: _float | None = None, neginf: _float | None = None
) -> _Tensor: ...
def nanmean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def nanmedian(
    input: _Tensor, dim: _int, keepdim: _bool = False, *, out: Sequence[_Tensor] | None = None
) -> _returns.nanmedian: ...
@overload
def nanmedian(input: _Tensor) -> _Tensor: ...
@overload
def nanquantile(
    input: _Tensor,
    q: _Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def nanquantile(
    input: _Tensor,
    q: _float,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...
def nansum(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def narrow(input: _Tensor, dim: _int, start: _int, length: _int) -> _Tensor: ...
@overload
def narrow(input: _Tensor, dim: _int, start: _Tensor, length: _int) -> _Tensor: ...
@overload
def narrow_copy(input: _Tensor, dim: _int, start: _int, length: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def narrow_copy(input: _Tensor, dim: _int, start: _Tensor, length: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def native_batch_norm(
    input: _Tensor,
    weight: _Tensor | None,
    bias: _Tensor | None,
    running_mean: _Tensor | None,
    running_var: _Tensor | None,
    training: _bool,
    momentum: _float,
    eps: _float,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor]: ...
def native_dropout(
    input: _Tensor, p: _float, train: _bool | None, *, out: Sequence[_Tensor] | None = None
) -> builtins.tuple[_Tensor, _Tensor]: ...
def native_group_norm(
    input: _Tensor, weight: _Tensor | None, bias: _Tensor | None, N: _int, C: _int, HxW: _int, group: _int, eps: _float
) -> builtins.tuple[_Tensor, _Tensor, _Tensor]: ...
def native_layer_norm(
    input: _Tensor,
    normalized_shape: Sequence[_int],
    weight: _Tensor | None,
    bias: _Tensor | None,
    eps: _float,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor, _Tensor]: ...
@overload
def ne(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def ne(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def neg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def neg_(input: _Tensor) -> _Tensor: ...
def negative(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def negative_(input: _Tensor) -> _Tensor: ...

newaxis: Any

def nextafter(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def nonzero(input: _Tensor, *, out: Any = None, as_tuple: _bool = False) -> Any: ...
def nonzero_static(input: _Tensor, *, size: _int, fill_value: _int = -1, out: _Tensor | None = None) -> _Tensor: ...
def norm(
    input: _Tensor, p: Any = "fro", dim: Any = None, keepdim: _bool = False, out: Any = None, dtype: Any = None
) -> Any: ...
@overload
def normal(
    mean: _Tensor, std: _Tensor, *, generator: _Generator | None = None, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def normal(
    mean: _Tensor, std: _float = ..., *, generator: _Generator | None = None, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def normal(
    mean: _float, std: _Tensor, *, generator: _Generator | None = None, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def normal(
    mean: _float,
    std: _float,
    size: Sequence[_int],
    *,
    generator: _Generator | None = None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def not_equal(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def not_equal(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def nuclear_norm(input: _Tensor, keepdim: _bool = False, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def nuclear_norm(
    input: _Tensor, dim: _int | Sequence[_int], keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...

numa: Any

def numel(input: _Tensor) -> Any: ...
def ones(
    *size: _int | Sequence[_int],
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ones_like(
    input: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...

onnx: Any

def orgqr(input: _Tensor, input2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def ormqr(
    input: _Tensor,
    input2: _Tensor,
    input3: _Tensor,
    left: _bool = True,
    transpose: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def outer(input: _Tensor, vec2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def pairwise_distance(
    x1: _Tensor, x2: _Tensor, p: _float = ..., eps: _float = ..., keepdim: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def parse_ir(*args: Any, **kwargs: Any) -> Any: ...
def parse_schema(*args: Any, **kwargs: Any) -> Any: ...
def parse_type_comment(*args: Any, **kwargs: Any) -> Any: ...
def pca_lowrank(A: Any, q: Any = None, center: _bool = True, niter: Any = 2) -> Any: ...
def pdist(input: _Tensor, p: _float = ..., *, out: _Tensor | None = None) -> _Tensor: ...

per_channel_affine: Any
per_channel_affine_float_qparams: Any
per_channel_symmetric: Any
per_tensor_affine: Any
per_tensor_symmetric: Any

def permute(input: _Tensor, *dims: _int | Sequence[_int]) -> _Tensor: ...
def permute_copy(input: _Tensor, *dims: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...

pi: _float

def pinverse(input: _Tensor, rcond: _float = ..., *, out: _Tensor | None = None) -> _Tensor: ...
def pixel_shuffle(input: _Tensor, upscale_factor: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def pixel_unshuffle(input: _Tensor, downscale_factor: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def poisson(input: _Tensor, generator: _Generator | None = None) -> _Tensor: ...
def poisson_nll_loss(
    input: _Tensor,
    target: _Tensor,
    log_input: _bool,
    full: _bool,
    eps: _float,
    reduction: _int,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def polar(abs: _Tensor, angle: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def polygamma(n: _int, input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def positive(input: _Tensor) -> _Tensor: ...
@overload
def pow(input: _Tensor, exponent: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def pow(input: _Tensor, exponent: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def pow(input: _Number, exponent: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def prelu(input: _Tensor, weight: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

preserve_format: _MemoryFormat

@overload
def prod(input: _Tensor, *, dtype: _DType | None = None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def prod(
    input: _Tensor, dim: _int, keepdim: _bool = False, *, dtype: _DType | None = None, out: _Tensor | None = None
) -> _Tensor: ...

profiler: Any
promote_types: Any

def put(
    input: _Tensor, index: _Tensor, source: _Tensor, accumulate: _bool = False, *, out: _Tensor | None = None
) -> _Tensor: ...
def q_per_channel_axis(input: _Tensor) -> _int: ...
def q_per_channel_scales(input: _Tensor) -> _Tensor: ...
def q_per_channel_zero_points(input: _Tensor) -> _Tensor: ...
def q_scale(input: _Tensor) -> _float: ...
def q_zero_point(input: _Tensor) -> _int: ...

qint32: _DType
qint8: _DType

def qr(input: _Tensor, some: _bool = True, *, out: Sequence[_Tensor] | None = None) -> _returns.qr: ...
@overload
def quantile(
    input: _Tensor,
    q: _Tensor,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def quantile(
    input: _Tensor,
    q: _float,
    dim: _int | None = None,
    keepdim: _bool = False,
    *,
    interpolation: _str = "linear",
    out: _Tensor | None = None,
) -> _Tensor: ...

quantization: Any

def quantize_per_channel(
    input: _Tensor, scales: _Tensor, zero_points: _Tensor, axis: _int, dtype: _DType
) -> _Tensor: ...
@overload
def quantize_per_tensor(input: _Tensor, scale: _float, zero_point: _int, dtype: _DType) -> _Tensor: ...
@overload
def quantize_per_tensor(input: _Tensor, scale: _Tensor, zero_point: _Tensor, dtype: _DType) -> _Tensor: ...
@overload
def quantize_per_tensor(
    tensors: Sequence[_Tensor], scales: _Tensor, zero_points: _Tensor, dtype: _DType
) -> builtins.tuple[_Tensor, ...]: ...
def quantize_per_tensor_dynamic(input: _Tensor, dtype: _DType, reduce_range: _bool) -> _Tensor: ...
def quantized_batch_norm(*args: Any, **kwargs: Any) -> Any: ...
def quantized_gru_cell(*args: Any, **kwargs: Any) -> Any: ...
def quantized_lstm_cell(*args: Any, **kwargs: Any) -> Any: ...
def quantized_max_pool1d(*args: Any, **kwargs: Any) -> Any: ...
def quantized_max_pool2d(*args: Any, **kwargs: Any) -> Any: ...
def quantized_max_pool3d(*args: Any, **kwargs: Any) -> Any: ...
def quantized_rnn_relu_cell(*args: Any, **kwargs: Any) -> Any: ...
def quantized_rnn_tanh_cell(*args: Any, **kwargs: Any) -> Any: ...

quasirandom: Any
quint2x4: _DType
quint4x2: _DType
quint8: _DType

def rad2deg(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def rad2deg_(input: _Tensor) -> _Tensor: ...
@overload
def rand(
    *size: _int | Sequence[_int],
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def rand(
    *size: _int | Sequence[_int],
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def rand_like(
    input: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def rand_like(
    input: _Tensor,
    *,
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint(
    high: _int,
    size: Sequence[_int],
    *,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randint(
    low: _int,
    high: _int,
    size: Sequence[_int],
    *,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randint(
    high: _int,
    size: Sequence[_int],
    *,
    generator: _Generator | None,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randint(
    low: _int,
    high: _int,
    size: Sequence[_int],
    *,
    generator: _Generator | None,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    high: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    high: _int,
    *,
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    low: _int,
    high: _int,
    *,
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    low: _int,
    high: _int,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    high: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randint_like(
    input: _Tensor,
    high: _Tensor,
    *,
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randn(
    *size: _int | Sequence[_int],
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randn(
    *size: _int | Sequence[_int],
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randn_like(
    input: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def randn_like(
    input: _Tensor,
    *,
    generator: _Generator | None,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...

random: Any

@overload
def randperm(
    n: _int,
    *,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def randperm(
    n: _int,
    *,
    generator: _Generator | None,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def ravel(input: _Tensor) -> _Tensor: ...
def real(input: _Tensor) -> _Tensor: ...
def reciprocal(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def reciprocal_(input: _Tensor) -> _Tensor: ...
def relu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def relu_(input: _Tensor) -> _Tensor: ...
@overload
def remainder(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def remainder(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def remainder(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def renorm(input: _Tensor, p: _Number, dim: _int, maxnorm: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def repeat_interleave(
    input: _Tensor,
    repeats: _int,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def repeat_interleave(
    input: _Tensor,
    repeats: _Tensor,
    dim: _int | None = None,
    *,
    output_size: _int | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def repeat_interleave(repeats: _Tensor, *, output_size: _int | None = None) -> _Tensor: ...
def reshape(input: _Tensor, *shape: _int | Sequence[_int]) -> _Tensor: ...
def resize_as_(self, the_template: Any, *, memory_format: Any = None) -> Any: ...
def resolve_conj(input: _Tensor) -> _Tensor: ...
def resolve_neg(input: _Tensor) -> _Tensor: ...
def rms_norm(
    input: _Tensor,
    normalized_shape: Sequence[_int],
    weight: _Tensor | None = None,
    eps: _float | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def rnn_relu(
    input: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    batch_first: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def rnn_relu(
    data: _Tensor,
    batch_sizes: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def rnn_relu_cell(
    input: _Tensor,
    hx: _Tensor,
    w_ih: _Tensor,
    w_hh: _Tensor,
    b_ih: _Tensor | None = None,
    b_hh: _Tensor | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def rnn_tanh(
    input: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    batch_first: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def rnn_tanh(
    data: _Tensor,
    batch_sizes: _Tensor,
    hx: _Tensor,
    params: Sequence[_Tensor],
    has_biases: _bool,
    num_layers: _int,
    dropout: _float,
    train: _bool,
    bidirectional: _bool,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def rnn_tanh_cell(
    input: _Tensor,
    hx: _Tensor,
    w_ih: _Tensor,
    w_hh: _Tensor,
    b_ih: _Tensor | None = None,
    b_hh: _Tensor | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def roll(
    input: _Tensor, shifts: _int | Sequence[_int], dims: _int | Sequence[_int] = ..., *, out: _Tensor | None = None
) -> _Tensor: ...
def rot90(input: _Tensor, k: _int = 1, dims: Sequence[_int] = ..., *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def round(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def round(input: _Tensor, *, decimals: _int, out: _Tensor | None = None) -> _Tensor: ...
@overload
def round_(input: _Tensor) -> _Tensor: ...
@overload
def round_(input: _Tensor, *, decimals: _int) -> _Tensor: ...
def row_indices_copy(*args: Any, **kwargs: Any) -> Any: ...
def row_stack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def rrelu(
    input: _Tensor,
    lower: _Number = ...,
    upper: _Number = ...,
    training: _bool = False,
    generator: _Generator | None = None,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def rsqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def rsqrt_(input: _Tensor) -> _Tensor: ...
@overload
def rsub(input: _Tensor, other: _Tensor, *, alpha: _Number = 1, out: _Tensor | None = None) -> _Tensor: ...
@overload
def rsub(input: _Tensor, other: _Number, alpha: _Number = 1, *, out: _Tensor | None = None) -> _Tensor: ...
def saddmm(
    input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
def scalar_tensor(
    s: _Number,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def scatter(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def scatter(input: _Tensor, dim: _int, index: _Tensor, value: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def scatter(
    input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, *, reduce: _str, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def scatter(
    input: _Tensor, dim: _int, index: _Tensor, value: _Number, *, reduce: _str, out: _Tensor | None = None
) -> _Tensor: ...
def scatter_add(input: _Tensor, dim: _int, index: _Tensor, src: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def scatter_reduce(
    input: _Tensor,
    dim: _int,
    index: _Tensor,
    src: _Tensor,
    reduce: _str,
    *,
    include_self: _bool = True,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def searchsorted(
    sorted_sequence: _Tensor,
    input: _Tensor,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    side: _str | None = None,
    sorter: _Tensor | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def searchsorted(
    sorted_sequence: _Tensor,
    input: _Number,
    *,
    out_int32: _bool = False,
    right: _bool = False,
    side: _str | None = None,
    sorter: _Tensor | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def segment_reduce(
    data: _Tensor,
    reduce: _str,
    *,
    lengths: _Tensor | None = None,
    indices: _Tensor | None = None,
    offsets: _Tensor | None = None,
    axis: _int = 0,
    unsafe: _bool = False,
    initial: _Number | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def select(input: _Tensor, dim: _int, index: _int) -> _Tensor: ...
def select_copy(input: _Tensor, dim: _int, index: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def select_scatter(input: _Tensor, src: _Tensor, dim: _int, index: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def selu(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def selu_(input: _Tensor) -> _Tensor: ...
def set_autocast_ipu_dtype(*args: Any, **kwargs: Any) -> Any: ...
def set_autocast_ipu_enabled(*args: Any, **kwargs: Any) -> Any: ...
def set_autocast_xla_dtype(*args: Any, **kwargs: Any) -> Any: ...
def set_autocast_xla_enabled(*args: Any, **kwargs: Any) -> Any: ...

set_num_threads: Any

def sgn(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

short: _DType

def sigmoid(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sigmoid_(input: _Tensor) -> _Tensor: ...
def sign(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...

signal: Any

def signbit(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sin(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sin_(input: _Tensor) -> _Tensor: ...
def sinc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sinc_(input: _Tensor) -> _Tensor: ...
def sinh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sinh_(input: _Tensor) -> _Tensor: ...
def slice_copy(
    input: _Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def slice_scatter(
    input: _Tensor,
    src: _Tensor,
    dim: _int = 0,
    start: _int | None = None,
    end: _int | None = None,
    step: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def slogdet(input: _Tensor, *, out: Sequence[_Tensor] | None = None) -> _returns.slogdet: ...
def smm(input: _Tensor, mat2: _Tensor) -> _Tensor: ...
def softmax(input: _Tensor, dim: _int, dtype: _DType | None = None, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def sort(
    input: _Tensor, dim: _int = -1, descending: _bool = False, *, out: Sequence[_Tensor] | None = None
) -> _returns.sort: ...
@overload
def sort(
    input: _Tensor,
    *,
    stable: _bool | None,
    dim: _int = -1,
    descending: _bool = False,
    out: Sequence[_Tensor] | None = None,
) -> _returns.sort: ...

sparse_bsc: Any

def sparse_bsc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> _Tensor: ...

sparse_bsr: Any

def sparse_bsr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> _Tensor: ...
def sparse_compressed_tensor(
    compressed_indices: Any,
    plain_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
    check_invariants: Any = None,
) -> Any: ...

sparse_coo: Any

def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: _bool = False,
    requires_grad: _bool = False,
    check_invariants: Any = None,
    is_coalesced: Any = None,
) -> Any: ...

sparse_csc: Any

def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> _Tensor: ...

sparse_csr: Any

def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> _Tensor: ...
@overload
def split(input: _Tensor, split_size: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split(input: _Tensor, split_size: Sequence[_int], dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split_copy(input: _Tensor, split_size: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split_copy(input: _Tensor, split_size: Sequence[_int], dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split_copy(input: _Tensor, split_size: _int, dim: _int = 0) -> None: ...
def split_with_sizes(input: _Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split_with_sizes_copy(
    input: _Tensor, split_sizes: Sequence[_int], dim: _int = 0
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def split_with_sizes_copy(input: _Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> None: ...
def spmm(input: _Tensor, mat2: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sqrt(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def sqrt_(input: _Tensor) -> _Tensor: ...
def square(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def square_(input: _Tensor) -> _Tensor: ...
@overload
def squeeze(input: _Tensor) -> _Tensor: ...
@overload
def squeeze(input: _Tensor, dim: _int) -> _Tensor: ...
@overload
def squeeze(input: _Tensor, *dim: _int | Sequence[_int]) -> _Tensor: ...
@overload
def squeeze_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def squeeze_copy(input: _Tensor, dim: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def squeeze_copy(input: _Tensor, *dim: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...
def sspaddmm(input: _Tensor, mat1: _Tensor, mat2: _Tensor, *, beta: _Number = 1, alpha: _Number = 1) -> _Tensor: ...
def stack(tensors: Sequence[_Tensor], dim: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def std(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def std(input: _Tensor, unbiased: _bool = True, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def std(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def std_mean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def std_mean(
    input: _Tensor, unbiased: _bool = True, *, out: Sequence[_Tensor] | None = None
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def std_mean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def stft(
    input: _Tensor,
    n_fft: Any,
    hop_length: Any = None,
    win_length: Any = None,
    window: Any = None,
    center: _bool = True,
    pad_mode: Any = "reflect",
    normalized: _bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    align_to_window: Any = None,
) -> Any: ...

storage: Any
strided: Any

@overload
def sub(
    input: _Tensor | _Number, other: _Tensor | _Number, *, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def sub(input: _Tensor, other: _Number, alpha: _Number = 1, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def subtract(
    input: _Tensor | _Number, other: _Tensor | _Number, *, alpha: _Number = 1, out: _Tensor | None = None
) -> _Tensor: ...
@overload
def subtract(input: _Tensor, other: _Number, alpha: _Number = 1, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def sum(input: _Tensor, *, dtype: _DType | None = None, out: _Tensor | None = None) -> _Tensor: ...
@overload
def sum(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    keepdim: _bool = False,
    *,
    dtype: _DType | None = None,
    out: _Tensor | None = None,
) -> _Tensor: ...
def svd(
    input: _Tensor, some: _bool = True, compute_uv: _bool = True, *, out: Sequence[_Tensor] | None = None
) -> _returns.svd: ...
def svd_lowrank(A: Any, q: Any = 6, niter: Any = 2, M: Any = None) -> Any: ...
def swapaxes(input: _Tensor, axis0: _int, axis1: _int) -> _Tensor: ...
def swapdims(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: ...
def sym_constrain_range(*args: Any, **kwargs: Any) -> Any: ...
def sym_constrain_range_for_size(*args: Any, **kwargs: Any) -> Any: ...
def sym_sqrt(a: Any) -> Any: ...
def t(input: _Tensor) -> _Tensor: ...
def t_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def take(input: _Tensor, index: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def take_along_dim(
    input: _Tensor, indices: _Tensor, dim: _int | None = None, *, out: _Tensor | None = None
) -> _Tensor: ...
def tan(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def tan_(input: _Tensor) -> _Tensor: ...
def tanh(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def tanh_(input: _Tensor) -> _Tensor: ...
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: _bool = False, pin_memory: _bool = False
) -> Any: ...
@overload
def tensor_split(input: _Tensor, sections: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def tensor_split(input: _Tensor, indices: Sequence[_int], dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def tensor_split(
    input: _Tensor, tensor_indices_or_sections: _Tensor, dim: _int = 0
) -> builtins.tuple[_Tensor, ...]: ...
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any: ...
def threshold(input: _Tensor, threshold: _Number, value: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def threshold_(input: _Tensor, threshold: _Number, value: _Number) -> _Tensor: ...
def tile(input: _Tensor, *dims: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...
def topk(
    input: _Tensor,
    k: _int,
    dim: _int = -1,
    largest: _bool = True,
    sorted: _bool = True,
    *,
    out: Sequence[_Tensor] | None = None,
) -> _returns.topk: ...

torch_version: Any

def trace(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def transpose(input: _Tensor, dim0: _int, dim1: _int) -> _Tensor: ...
def transpose_copy(input: _Tensor, dim0: _int, dim1: _int, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def trapezoid(y: _Tensor, x: _Tensor, *, dim: _int = -1) -> _Tensor: ...
@overload
def trapezoid(y: _Tensor, *, dx: _Number = 1, dim: _int = -1) -> _Tensor: ...
@overload
def trapz(y: _Tensor, x: _Tensor, *, dim: _int = -1) -> _Tensor: ...
@overload
def trapz(y: _Tensor, *, dx: _float = ..., dim: _int = -1) -> _Tensor: ...
def triangular_solve(
    input: _Tensor,
    A: _Tensor,
    upper: _bool = True,
    transpose: _bool = False,
    unitriangular: _bool = False,
    *,
    out: Sequence[_Tensor] | None = None,
) -> _returns.triangular_solve: ...
def tril(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def tril_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
def triplet_margin_loss(
    anchor: _Tensor,
    positive: _Tensor,
    negative: _Tensor,
    margin: _float = ...,
    p: _float = ...,
    eps: _float = ...,
    swap: _bool = False,
    reduction: _int = 1,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
def triu(input: _Tensor, diagonal: _int = 0, *, out: _Tensor | None = None) -> _Tensor: ...
def triu_indices(
    row: _int,
    col: _int,
    offset: _int = 0,
    *,
    dtype: _DType | None = ...,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
) -> _Tensor: ...
@overload
def true_divide(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def true_divide(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
def trunc(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def trunc_(input: _Tensor) -> _Tensor: ...

types: Any
uint1: _DType
uint16: _DType
uint2: _DType
uint3: _DType
uint32: _DType
uint4: _DType
uint5: _DType
uint6: _DType
uint64: _DType
uint7: _DType
uint8: _DType

def unbind(input: _Tensor, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def unbind_copy(input: _Tensor, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def unbind_copy(input: _Tensor, dim: _int = 0) -> None: ...
def unflatten(input: _Tensor, dim: _int, sizes: Sequence[_int]) -> _Tensor: ...
def unfold_copy(input: _Tensor, dimension: _int, size: _int, step: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def unify_type_list(*args: Any, **kwargs: Any) -> Any: ...
def unique(
    input: _Tensor, sorted: _bool = True, return_inverse: _bool = False, return_counts: _bool = False, dim: Any = None
) -> Any: ...
def unique_consecutive(
    input: _Tensor, return_inverse: _bool = False, return_counts: _bool = False, dim: Any = None
) -> Any: ...
def unravel_index(indices: Any, shape: Any) -> Any: ...
def unsafe_chunk(input: _Tensor, chunks: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def unsafe_split(input: _Tensor, split_size: _int, dim: _int = 0) -> builtins.tuple[_Tensor, ...]: ...
@overload
def unsafe_split(input: _Tensor, split_size: _int, dim: _int = 0) -> None: ...
@overload
def unsafe_split_with_sizes(
    input: _Tensor, split_sizes: Sequence[_int], dim: _int = 0
) -> builtins.tuple[_Tensor, ...]: ...
@overload
def unsafe_split_with_sizes(input: _Tensor, split_sizes: Sequence[_int], dim: _int = 0) -> None: ...
def unsqueeze(input: _Tensor, dim: _int) -> _Tensor: ...
def unsqueeze_copy(input: _Tensor, dim: _int, *, out: _Tensor | None = None) -> _Tensor: ...
def values_copy(*args: Any, **kwargs: Any) -> Any: ...
def vander(x: Any, N: Any = None, increasing: _bool = False) -> Any: ...
@overload
def var(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def var(input: _Tensor, unbiased: _bool = True, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def var(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: _Tensor | None = None,
) -> _Tensor: ...
@overload
def var_mean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None = None,
    *,
    correction: _Number | None = None,
    keepdim: _bool = False,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def var_mean(
    input: _Tensor, unbiased: _bool = True, *, out: Sequence[_Tensor] | None = None
) -> builtins.tuple[_Tensor, _Tensor]: ...
@overload
def var_mean(
    input: _Tensor,
    dim: _int | Sequence[_int] | None,
    unbiased: _bool = True,
    keepdim: _bool = False,
    *,
    out: Sequence[_Tensor] | None = None,
) -> builtins.tuple[_Tensor, _Tensor]: ...
def vdot(input: _Tensor, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def view_as_complex(input: _Tensor) -> _Tensor: ...
def view_as_complex_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
def view_as_real(input: _Tensor) -> _Tensor: ...
def view_as_real_copy(input: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def view_copy(input: _Tensor, dtype: _DType, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def view_copy(input: _Tensor, *size: _int | Sequence[_int], out: _Tensor | None = None) -> _Tensor: ...
@overload
def vsplit(input: _Tensor, sections: _int) -> builtins.tuple[_Tensor, ...]: ...
@overload
def vsplit(input: _Tensor, *indices: _int | Sequence[_int]) -> builtins.tuple[_Tensor, ...]: ...
def vstack(tensors: Sequence[_Tensor], *, out: _Tensor | None = None) -> _Tensor: ...
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any: ...
@overload
def xlogy(input: _Tensor | _Number, other: _Tensor | _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def xlogy(input: _Tensor, other: _Number, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def xlogy(input: _Number, other: _Tensor, *, out: _Tensor | None = None) -> _Tensor: ...
@overload
def xlogy_(input: _Tensor | _Number, other: _Tensor | _Number) -> _Tensor: ...
@overload
def xlogy_(input: _Tensor, other: _Number) -> _Tensor: ...

xpu: Any

def zeros(
    *size: _int | Sequence[_int],
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...
def zeros_like(
    input: _Tensor,
    *,
    dtype: _DType | None = None,
    layout: Any | None = None,
    device: _Device | _str | _int | None = None,
    pin_memory: _bool | None = None,
    memory_format: _MemoryFormat | None = None,
    requires_grad: _bool = False,
    out: _Tensor | None = None,
) -> _Tensor: ...

from flambeau import _C as _C

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

@overload
def compile(
    model: _Decorated,
    *,
    fullgraph: _bool = False,
    dynamic: _bool | None = None,
    backend: _str | Callable | None = None,
    mode: _str | None = None,
    options: builtins.dict[_str, Any] | None = None,
    disable: _bool = False,
    name: _str | None = None,
    verify: _bool = False,
    dynamic_shapes: Any = None,
    recompile_limit: _int | None = None,
    isolate_recompiles: _bool = False,
) -> _Decorated: ...
@overload
def compile(
    model: None = None,
    *,
    fullgraph: _bool = False,
    dynamic: _bool | None = None,
    backend: _str | Callable | None = None,
    mode: _str | None = None,
    options: builtins.dict[_str, Any] | None = None,
    disable: _bool = False,
    name: _str | None = None,
    verify: _bool = False,
    dynamic_shapes: Any = None,
    recompile_limit: _int | None = None,
    isolate_recompiles: _bool = False,
) -> Callable[[_Decorated], _Decorated]: ...

_assert: Any
_dynamo: Any
_inductor: Any
_check: Any
_check_type: Any
_check_value: Any
_check_index: Any
_check_is_size: Any
__version__: _str
