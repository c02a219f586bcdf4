"""Whole optimizer steps as operators (``_fused_adamw_`` and its kin), and hashes of tensors. Declared when used."""

from __future__ import annotations

import numpy as np

from ...base.dtypes import uint64
from ...base.shapes import contiguous_strides, normalize_dims
from ...core.declare import composite, extern
from ...core.definition import TensorMeta
from ...core.operator import namespace
from .adam import adam

aten = namespace("aten")


# ---- optimizer steps: parameters and state change in place -----------------------------------------------------------------


def _number(lr):
    return lr.item() if hasattr(lr, "dtype") else lr


def _usable(grads, grad_scale, found_inf):
    """Gradients divided by the scale of mixed precision; None when the step is to be left out."""
    if found_inf is not None and found_inf.item():
        return None
    if grad_scale is None:
        return list(grads)
    for g in grads:
        aten.div_.Tensor(g, grad_scale)  # as PyTorch's kernels leave them
    return list(grads)


class _Steps:
    """Operations of Adam's rule that write the state in place."""

    neg, sqrt = staticmethod(aten.neg.default), staticmethod(aten.sqrt.default)
    div, add, mul = staticmethod(aten.div.Tensor), staticmethod(aten.add.Tensor), staticmethod(aten.mul_.Tensor)
    lerp = staticmethod(aten.lerp_.Scalar)

    def __init__(self, lr, weight_decay, betas, t):
        self.lr, self.weight_decay = lr, weight_decay
        self.first, self.second = 1 - betas[0] ** t, (1 - betas[1] ** t) ** 0.5

    def shrink(self, p):
        return aten.mul_.Tensor(p, 1 - self.lr * self.weight_decay)

    def decay(self, g, p):
        return aten.add.Tensor(g, p, alpha=self.weight_decay)

    def addcmul(self, x, a, b, value):
        return aten.addcmul_.default(x, a, b, value=value)

    def maximum(self, greatest, square):
        return aten.copy_.default(greatest, aten.maximum.default(greatest, square))

    def descend(self, p, mean, root):
        return aten.addcdiv_.default(p, mean, root, value=-self.lr / self.first)


def _adam(decoupled):
    def step(
        self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize,
        grad_scale, found_inf,
    ):  # fmt: skip
        """Adam's rule on each parameter. The steps were counted by the caller."""
        grads, lr = _usable(grads, grad_scale, found_inf), _number(lr)
        if grads is None:
            return
        options = dict(betas=(beta1, beta2), eps=eps, weight_decay=weight_decay, decoupled=decoupled, maximize=maximize)
        for k, (p, g) in enumerate(zip(self, grads)):
            h = _Steps(lr, weight_decay, (beta1, beta2), state_steps[k].item())
            adam(h, p, g, exp_avgs[k], exp_avg_sqs[k], max_exp_avg_sqs[k] if amsgrad else None, **options)

    return step


def _decayed(g, p, maximize, weight_decay):
    """The gradient to go down, with the parameter's share for weight decay."""
    g = aten.neg.default(g) if maximize else g
    return aten.add.Tensor(g, p, alpha=weight_decay) if weight_decay else g


def _sgd(
    self,
    grads,
    momentum_buffer_list,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale,
    found_inf,
):
    grads, lr = _usable(grads, grad_scale, found_inf), _number(lr)
    if grads is None:
        return
    for k, (p, g) in enumerate(zip(self, grads)):
        g = _decayed(g, p, maximize, weight_decay)
        if momentum:
            kept = momentum_buffer_list[k]
            if is_first_step:
                aten.copy_.default(kept, g)
            else:
                aten.add_.Tensor(aten.mul_.Tensor(kept, momentum), g, alpha=1 - dampening)
            g = aten.add.Tensor(g, kept, alpha=momentum) if nesterov else kept
        aten.add_.Tensor(p, g, alpha=-lr)


def _adagrad(self, grads, state_sums, state_steps, lr, lr_decay, weight_decay, eps, maximize, grad_scale, found_inf):
    """Duchi et al. 2011."""
    grads, lr = _usable(grads, grad_scale, found_inf), _number(lr)
    if grads is None:
        return
    for k, (p, g) in enumerate(zip(self, grads)):
        g = _decayed(g, p, maximize, weight_decay)
        rate = lr / (1 + (state_steps[k].item() - 1) * lr_decay)
        total = aten.addcmul_.default(state_sums[k], g, g)
        aten.addcdiv_.default(p, g, aten.add.Tensor(aten.sqrt.default(total), eps), value=-rate)


_MOMENTS = "Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps"
_SCALES = "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()"
for _overload, _lr in (("", "float lr"), (".tensor_lr", "Tensor lr")):
    for _name, _decoupled in (("_fused_adam_", False), ("_fused_adamw_", True)):
        composite(
            f"{_name}{_overload}({_MOMENTS}, *, {_lr}, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, {_SCALES}",
            variants="function",
        )(_adam(_decoupled))
    composite(
        f"_fused_sgd_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float weight_decay, float momentum, "
        f"{_lr}, float dampening, bool nesterov, bool maximize, bool is_first_step, {_SCALES}",
        variants="function",
    )(_sgd)
    composite(
        f"_fused_adagrad_{_overload}(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] state_sums, Tensor[] state_steps, *, {_lr}, float lr_decay, "
        f"float weight_decay, float eps, bool maximize, {_SCALES}",
        variants="function",
    )(_adagrad)


# ---- hashes ----------------------------------------------------------------------------------------------------------------


def _dims(dim, ndim):
    return (
        normalize_dims([dim] if isinstance(dim, int) else list(dim), ndim)
        if dim not in (None, [], ())
        else tuple(range(ndim))
    )


def _hash_meta(self, dim, keepdim, mode):
    if mode != 0:
        raise RuntimeError(f"hash_tensor: Unknown hash_tensor mode: {mode}")
    dims = _dims(dim, len(self.shape))
    for d in dims:
        if dim and self.shape[d] == 0:
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    shape = tuple(1 if d in dims else n for d, n in enumerate(self.shape) if keepdim or d not in dims)
    return TensorMeta(shape, contiguous_strides(shape), uint64, self.device)


@extern(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    meta=_hash_meta,
    variants="function method",
    has_out=True,
    tags=("kernel_alone",),
)
def hash_tensor(self, dim, keepdim, mode):
    """Exclusive or of the elements' 64 bits, after widening to double or int64."""
    wide = self.astype(np.float64 if self.dtype.kind in "fV" else np.int64 if self.dtype.kind != "u" else np.uint64)
    return np.asarray(np.bitwise_xor.reduce(wide.view(np.uint64), axis=_dims(dim, self.ndim), keepdims=keepdim))
