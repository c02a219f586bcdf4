"""autocast: matrix products and convolutions in a 16-bit dtype, what needs range in float32, the rest as it comes.

A function mode: it sees the public functions, casts the tensors among the arguments and calls on. The casts are operators that autograd records, so
gradients arrive in the dtype of the parameters. The lists are PyTorch's, for the CPU and for CUDA; each mode casts tensors of its own device.
"""

from __future__ import annotations

import functools
import warnings

from .. import _C
from ..base import accelerator, dtypes
from ..base.device import Device
from ..base.public import public_in
from ..core.operator import namespace
from ..core.python_operators import function_of
from ..core.tensor import Tensor
from .state import Layer, current, state

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

LOWER = frozenset(
    "conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d bmm mm baddbmm addmm addbmm linear matmul __matmul__ "
    "__rmatmul__ __imatmul__ multi_dot linalg_multi_dot linalg_vecdot vecdot einsum lstm lstm_cell gru gru_cell rnn_tanh rnn_tanh_cell rnn_relu "
    "rnn_relu_cell mv addmv chain_matmul tensordot scaled_dot_product_attention prelu dot".split()
)
FLOAT32 = frozenset(
    "avg_pool3d binary_cross_entropy grid_sample grid_sampler polar prod quantile nanquantile stft cdist trace view_as_complex cholesky "
    "cholesky_inverse cholesky_solve inverse lu_solve orgqr ormqr pinverse max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d "
    "reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d mse_loss cosine_embedding_loss nll_loss "
    "hinge_embedding_loss poisson_nll_loss smooth_l1_loss cross_entropy l1_loss huber_loss margin_ranking_loss soft_margin_loss "
    "triplet_margin_loss multi_margin_loss ctc_loss kl_div multilabel_margin_loss binary_cross_entropy_with_logits gaussian_nll_loss "
    "fft ifft fft2 ifft2 fftn ifftn rfft irfft cond matrix_rank slogdet solve svd det logdet eigh eigvals lstsq geqrf".split()
)
WIDEST = frozenset(["stack", "cat", "index_copy", "concat", "concatenate"])
CUDA_LOWER = frozenset(
    "__matmul__ __rmatmul__ __imatmul__ addbmm addmm addmv addr baddbmm bmm chain_matmul multi_dot linalg_multi_dot linalg_vecdot vecdot conv1d "
    "conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d einsum gru gru_cell linear lstm lstm_cell matmul mm mv prelu "
    "rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell scaled_dot_product_attention".split()
)
CUDA_FLOAT32 = frozenset(
    "__pow__ __rdiv__ __rpow__ __rtruediv__ acos asin binary_cross_entropy_with_logits cdist cosh cosine_embedding_loss cosine_similarity "
    "cross_entropy cumprod cumsum dist erfinv exp expm1 group_norm hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log log10 log1p log2 "
    "log_softmax logsumexp margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss norm normalize pdist poisson_nll_loss pow "
    "prod reciprocal renorm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan triplet_margin_loss".split()
)
CUDA_WIDEST = frozenset(
    "addcdiv addcmul atan2 bilinear cat cross dot grid_sample index_put scatter_add stack tensordot".split()
)


def _cast(x, dtype, on):
    """Tensors on the devices ``on`` as ``dtype``."""
    if isinstance(x, Tensor):
        if x.is_floating_point() and x.dtype is not dtype and x.dtype is not dtypes.float64 and x.device.type in on:
            return x.to(dtype)
        return x
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_cast(v, dtype, on) for v in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_cast(v, dtype, on) for v in x)
    return x


def _floating(x):
    if isinstance(x, Tensor):
        return [x.dtype] if x.is_floating_point() else []
    return [d for v in x for d in _floating(v)] if isinstance(x, (list, tuple)) else []


_POLICIES: dict = {}  # (device, dtype) -> {function: policy}


class _Mode(Layer):
    """csrc/core/autocast.c runs it where the arguments are plain tensors and numbers. The innermost one of a device alone casts."""

    on = ("cpu", "meta")
    lower, float32, widest = LOWER, FLOAT32, WIDEST

    def __init__(self, device, enabled, dtype, cache):
        super().__init__(device, enabled, dtype, cache)
        self.policies = _POLICIES.setdefault((device, dtype if enabled else None), {})

    def policy(self, func):
        """What calls of ``func`` do: a dtype that its arguments are cast to, None for nothing, True to run with the mode still on (a function over
        others: they are cast one by one), False for the widest dtype among the arguments."""
        if not self.enabled:
            return None
        name = getattr(function_of(func), "__name__", "")
        if name in self.lower:
            return self.dtype
        if name in self.float32:
            return dtypes.float32
        if name in self.widest:
            return False
        inner = getattr(func, "impl", None)
        inside = inner is not None and getattr(inner, "__globals__", {}).get("__name__", "").startswith("flambeau.nn")
        return True if inside else None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, target = kwargs or {}, self.policy(func)
        if target is True:
            with self:
                return func.impl(*args, **kwargs)
        others = [m for m in _C.stack("function_modes") if not (isinstance(m, _Mode) and m.device == self.device)]
        with _C.Guard(replace="function_modes", value=others):
            if target is False:
                found = _floating(args)
                target = functools.reduce(dtypes.promote_types, found) if found else None
            if target is not None:
                args = _cast(args, target, self.on)
                kwargs = {k: _cast(v, target, self.on) for k, v in kwargs.items()}
            return func(*args, **kwargs)


class _CudaMode(_Mode):
    """Native code doesn't know it: tensors of a device have no array."""

    on = ("cuda",)
    lower, float32, widest = CUDA_LOWER, CUDA_FLOAT32, CUDA_WIDEST


_C.set_autocast(_Mode, namespace("aten")._to_copy.default)


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast can be used on ``device_type``."""
    kind = Device(device_type).type
    return kind == "cpu" or (kind == "cuda" and accelerator.count() > 0)


def autocast_decorator(autocast_instance, func):
    """``func`` with each call under a new block like ``autocast_instance``."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    return decorated


class autocast(_C.Guard):  # noqa: N801
    """Block or decorator: ``autocast("cpu", dtype=torch.bfloat16)``. The innermost block counts; it may turn it off again.

    RuntimeError for a device type that doesn't exist; for one that isn't here it warns and does nothing, as PyTorch does.
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = Device(device_type).type
        if self.device not in state.enabled:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        now = current(self.device)
        self.fast_dtype = now[1] if dtype is None else dtype
        self.cache_enabled = now[2] if cache_enabled is None else cache_enabled
        if self.device == "cuda" and enabled and not accelerator.count():
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            enabled = False
        if self.device == "cpu" and enabled and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warnings.warn(
                "In CPU autocast, but the target dtype is not supported. Disabling autocast.\nCPU Autocast only supports dtype of torch.bfloat16, "
                "torch.float16 currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        if self.device == "cpu" or (self.device == "cuda" and accelerator.count()):
            mode = _Mode if self.device == "cpu" else _CudaMode
            super().__init__(
                push="function_modes", value=mode(self.device, enabled, self.fast_dtype, self.cache_enabled)
            )
        else:
            super().__init__()

    def __call__(self, func):
        return autocast_decorator(self, func)


def _enter_autocast(device_type: str, dtype, enabled: bool, cache_enabled: bool) -> autocast:
    """A node of captured graphs: the block begins. What comes back is given to ``_exit_autocast``."""
    entered = autocast(device_type, dtype, enabled, cache_enabled)
    entered.__enter__()
    return entered


def _exit_autocast(entered: autocast) -> None:
    entered.__exit__(None, None, None)


@public_in("cuda.amp.autocast_mode", "autocast")
class CudaAutocast(autocast):
    """``torch.cuda.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype=dtypes.float16, cache_enabled: bool = True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


@public_in("cpu.amp.autocast_mode", "autocast")
class CpuAutocast(autocast):
    """``torch.cpu.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype=dtypes.bfloat16, cache_enabled: bool = True):
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, device_type: str = "cpu", cast_inputs=None):
    """Decorator of ``forward`` of an autograd.Function: with ``cast_inputs`` it runs with autocast off on inputs of that dtype."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args, **kwargs):
        args[0]._fwd_used_autocast, args[0]._dtype, _ = current(device_type)
        if cast_inputs is None or not args[0]._fwd_used_autocast:
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            on = (_CudaMode if device_type == "cuda" else _Mode).on
            return fwd(*_cast(args, cast_inputs, on), **{k: _cast(v, cast_inputs, on) for k, v in kwargs.items()})

    return decorate_fwd


def custom_bwd(bwd=None, *, device_type: str = "cpu"):
    """Decorator of ``backward``: autocast is as it was in the forward pass."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
