"""Adam (Kingma & Ba 2015; amsgrad: Reddi et al. 2018). AdamW (``adamw.py``) is the same update with the decay decoupled."""

from __future__ import annotations

from flambeau.base.compiling import is_compiling
from flambeau.base.dtypes import float64
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.eager import backend
from flambeau.inductor.inplace import update
from flambeau.optim import each
from flambeau.optim.optimizer import Optimizer, check_option, check_rate, check_ways, move, number, scaled

__all__ = ["Adam"]

zeros_like = function("zeros_like")
zeros = function("zeros")
maximum = function("maximum")


class Adam(Optimizer):
    """``m`` and ``v`` are running means of the gradient and its square; ``p -= lr * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)``.

    ``weight_decay`` is added to the gradient, or, with ``decoupled_weight_decay``, shrinks the parameter by ``lr * weight_decay``.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        check_rate(lr)
        check_option("learning rate", lr, number(lr) >= 0.0)
        check_option("epsilon value", eps, eps >= 0.0)
        check_option("beta parameter at index 0", betas[0], 0.0 <= betas[0] < 1.0)
        check_option("beta parameter at index 1", betas[1], 0.0 <= betas[1] < 1.0)
        check_option("weight_decay value", weight_decay, weight_decay >= 0.0)
        if not all(isinstance(b, float) for b in betas) and not all(isinstance(b, Tensor) for b in betas):
            raise ValueError("betas must be either both floats or both Tensors")
        for k, beta in enumerate(betas):
            if isinstance(beta, Tensor) and foreach and not capturable:
                raise ValueError(f"betas[{k}] as a Tensor is not supported for capturable=False and foreach=True")
            if isinstance(beta, Tensor) and beta.numel() != 1:
                raise ValueError(f"Tensor betas[{k}] must be 1-element")
        check_ways(foreach, fused, differentiable)
        defaults = dict(
            lr=lr,
            betas=betas,
            eps=eps,
            weight_decay=weight_decay,
            amsgrad=amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=decoupled_weight_decay,
        )
        super().__init__(params, defaults)

    def _init_state(self, state: dict, p, group: dict) -> None:
        # ``step`` is a tensor, as in PyTorch's checkpoints and so that a compiled step has no guard on its value.
        state["step"] = zeros(())
        state["exp_avg"] = zeros_like(p)
        state["exp_avg_sq"] = zeros_like(p)
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(p)

    def step(self, closure=None):
        return self._updated(_update, closure)


def _update(group: dict, rows: list[tuple]) -> None:
    # Captured, the step count must stay a tensor: as a number it would be a guard that fails at every step.
    if group["differentiable"]:
        for p, grad, state in rows:
            _update_recorded(group, p, grad, state)
        return
    tensor_step = group["capturable"] or is_compiling()
    lr = group["lr"] if tensor_step else number(group["lr"])
    if rows and (tensor_step or not _update_compiled(group, rows, lr)):
        _update_lists(group, rows, lr, tensor_step)


def _update_lists(group: dict, rows: list[tuple], lr: float, tensor_step: bool) -> None:
    """An operator at a time on all parameters."""
    beta1, beta2 = map(number, group["betas"])
    eps, weight_decay = group["eps"], number(group["weight_decay"])
    params, grads = [p for p, _, _ in rows], [grad for _, grad, _ in rows]
    steps, means, squares = ([state[name] for _, _, state in rows] for name in ("step", "exp_avg", "exp_avg_sq"))
    if group["maximize"]:
        grads = each.neg(grads)
    if weight_decay != 0:
        if group["decoupled_weight_decay"]:
            each.mul_(params, 1 - lr * weight_decay)
        else:
            grads = each.add(grads, params, alpha=weight_decay)
    each.add_(steps, 1)
    each.lerp_(means, grads, 1 - beta1)
    each.mul_(squares, beta2)
    each.addcmul_(squares, grads, grads, 1 - beta2)
    if group["amsgrad"]:
        greatest = [state["max_exp_avg_sq"] for _, _, state in rows]
        each.maximum_(greatest, squares)
        squares = greatest
    denominators = each.sqrt(squares)
    if tensor_step:
        # In float64, as Python computes it; a 0-d tensor leaves the dtype of the others as it is.
        counts = each.add(steps, zeros((), dtype=float64))
        bias1, bias2 = (each.add(each.neg(each.pow(beta, counts)), 1) for beta in (beta1, beta2))
        each.div_(denominators, each.sqrt(bias2))
        each.add_(denominators, eps)
        sizes = each.mul(each.reciprocal(bias1), -lr)
        each.addcdiv_(params, each.mul(means, sizes), denominators)
        return
    counts = [step.item() for step in steps]
    each.div_(denominators, [(1 - beta2**t) ** 0.5 for t in counts])
    each.add_(denominators, eps)
    each.addcdiv_(params, means, denominators, [-(lr / (1 - beta1**t)) for t in counts])


def _update_recorded(group: dict, p, grad, state: dict) -> None:
    """One parameter's update as autograd can record it, by options that may be tensors with gradients."""
    lr, (beta1, beta2), weight_decay = group["lr"], group["betas"], group["weight_decay"]
    if group["maximize"]:
        grad = -grad
    if isinstance(weight_decay, Tensor) or weight_decay != 0:
        if group["decoupled_weight_decay"]:
            p.mul_(1 - lr * weight_decay)
        else:
            grad = grad + scaled(p.clone(), weight_decay)
    t = state["step"].add_(1)
    mean = state["exp_avg"] + scaled(grad - state["exp_avg"], 1 - beta1)
    square = scaled(state["exp_avg_sq"], beta2) + scaled(grad * grad, 1 - beta2)
    state["exp_avg"], state["exp_avg_sq"] = mean, square
    if group["amsgrad"]:
        state["max_exp_avg_sq"] = square = maximum(state["max_exp_avg_sq"], square)
    t = t.item()
    bias1, bias2 = 1 - beta1**t, 1 - beta2**t
    move(p, mean / (square.sqrt() / bias2**0.5 + group["eps"]), lr / bias1)


def _update_compiled(group: dict, rows: list[tuple], lr: float) -> bool:
    """The same arithmetic on all parameters by compiled kernels that write in place; False when that isn't for this group (yet)."""
    if (
        group["amsgrad"]
        or group["maximize"]
        or backend.accelerate is None
        or sum(p.numel() for p, _, _ in rows) < backend.LARGE
    ):
        return False
    steps = {float(state["step"]._array) for _, _, state in rows}
    tensors = [t for p, grad, state in rows for t in (p, grad, state["exp_avg"], state["exp_avg_sq"])]
    if len(steps) != 1 or any(
        t.dtype is not rows[0][0].dtype or not t.dtype.is_floating_point or t.is_sparse for t in tensors
    ):
        return False
    beta1, beta2 = map(number, group["betas"])
    eps, weight_decay, decoupled = group["eps"], number(group["weight_decay"]), group["decoupled_weight_decay"]
    t = steps.pop() + 1

    def compute(tensors, numbers):
        decay, bias2_root, step_size = numbers
        out = []
        for k in range(0, len(tensors), 4):
            p, grad, m, v = tensors[k : k + 4]
            if weight_decay != 0:
                if decoupled:
                    p = p * decay
                else:
                    grad = grad.add(p, alpha=weight_decay)
            m = m.lerp(grad, 1 - beta1)
            v = (v * beta2).addcmul(grad, grad, value=1 - beta2)
            p = p + (m * step_size) / (v.sqrt() / bias2_root + eps)
            out += [(k, p), (k + 2, m), (k + 3, v)]
        return out

    numbers = [1 - lr * weight_decay, (1 - beta2**t) ** 0.5, -(lr / (1 - beta1**t))]
    if not update(("adam", beta1, beta2, eps, weight_decay, decoupled), compute, tensors, numbers):
        return False
    for _, _, state in rows:
        state["step"].add_(1)
    return True
