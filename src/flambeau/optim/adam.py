"""Adam (Kingma & Ba 2015; amsgrad: Reddi et al. 2018). AdamW (``adamw.py``) is the same update with the decay decoupled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from flambeau.base.compiling import is_compiling
from flambeau.base.dtypes import float64
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.eager import backend
from flambeau.inductor.inplace import update
from flambeau.ops.lists.adam import adam
from flambeau.optim import each
from flambeau.optim.optimizer import Optimizer, ParamsT, check_option, check_rate, check_ways
from flambeau.optim.rates import move, number, scalar, scaled

__all__ = ["Adam"]

zeros_like = function("zeros_like")
zeros = function("zeros")
maximum = function("maximum")


class Adam(Optimizer):
    """``m`` and ``v`` are running means of the gradient and its square; ``p -= lr * m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)``.

    ``weight_decay`` is added to the gradient, or, with ``decoupled_weight_decay``, shrinks the parameter by ``lr * weight_decay``.
    """

    sparse_refusal = "Adam does not support sparse gradients, please consider SparseAdam instead"
    later_options = MappingProxyType(
        dict(
            amsgrad=False,
            maximize=False,
            foreach=None,
            capturable=False,
            differentiable=False,
            decoupled_weight_decay=False,
            fused=None,
        )
    )

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1e-3,
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
    ) -> None:
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

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        return self._updated(_update, closure)


def _update(group: dict, rows: list[tuple]) -> None:
    # Captured, the step count must stay a tensor: as a number it would be a guard that fails at every step.
    if group["differentiable"]:
        for p, grad, state in rows:
            _update_recorded(group, p, grad, state)
        return
    tensor_step = group["capturable"] or is_compiling()
    if isinstance(group["lr"], Tensor) and group["foreach"] and not tensor_step:
        raise RuntimeError("lr as a Tensor is not supported for capturable=False and foreach=True")
    lr = scalar(group["lr"]) if tensor_step else number(group["lr"])
    if rows and (tensor_step or not _update_compiled(group, rows, lr)):
        _update_lists(group, rows, lr, tensor_step)


def _options(group: dict, **more) -> dict[str, Any]:
    """What the rule takes of a group."""
    found = {name: group[name] for name in ("betas", "eps", "weight_decay", "maximize")}
    return {**found, "decoupled": group["decoupled_weight_decay"], **more}


class _Lists:
    """An operator at a time on all parameters, in place."""

    def __init__(
        self,
        lr: Tensor | float,
        weight_decay: float,
        betas: tuple[float, float],
        steps: Sequence[Tensor],
        tensor_step: bool,
    ) -> None:
        self.lr, self.weight_decay, self.tensor_step = lr, weight_decay, tensor_step
        beta1, beta2 = betas
        if tensor_step:
            # In float64, as Python computes it; a 0-d tensor leaves the dtype of the others as it is.
            counts = each.add(steps, zeros((), dtype=float64))
            bias1, bias2 = (each.add(each.neg(each.pow(beta, counts)), 1) for beta in betas)
            self.second, self.rates = each.sqrt(bias2), each.mul(each.reciprocal(bias1), -lr)
        else:
            counts = [step.item() for step in steps]
            self.second, self.rates = [(1 - beta2**t) ** 0.5 for t in counts], [-(lr / (1 - beta1**t)) for t in counts]

    def neg(self, x: Sequence[Tensor]) -> Sequence[Tensor]:
        return each.neg(x)

    def sqrt(self, x: Sequence[Tensor]) -> Sequence[Tensor]:
        return each.sqrt(x)

    def shrink(self, params: Sequence[Tensor]) -> Sequence[Tensor]:
        each.mul_(params, 1 - self.lr * self.weight_decay)
        return params

    def decay(self, grads: Sequence[Tensor], params: Sequence[Tensor]) -> Sequence[Tensor]:
        return each.add(grads, params, alpha=self.weight_decay)

    def descend(self, params: Sequence[Tensor], means: Sequence[Tensor], roots: Sequence[Tensor]) -> Sequence[Tensor]:
        if self.tensor_step:
            each.addcdiv_(params, each.mul(means, self.rates), roots)
        else:
            each.addcdiv_(params, means, roots, self.rates)
        return params

    def div(self, x: Sequence[Tensor], y: Sequence[Tensor] | Sequence[float] | float) -> Sequence[Tensor]:
        each.div_(x, y)
        return x

    def add(self, x: Sequence[Tensor], y: Sequence[Tensor] | float) -> Sequence[Tensor]:
        each.add_(x, y)
        return x

    def mul(self, x: Sequence[Tensor], y: Sequence[Tensor] | Sequence[float] | float) -> Sequence[Tensor]:
        each.mul_(x, y)
        return x

    def lerp(self, x: Sequence[Tensor], y: Sequence[Tensor], weight: Tensor | float) -> Sequence[Tensor]:
        each.lerp_(x, y, weight)
        return x

    def addcmul(
        self, x: Sequence[Tensor], a: Sequence[Tensor], b: Sequence[Tensor], value: Tensor | float
    ) -> Sequence[Tensor]:
        each.addcmul_(x, a, b, value)
        return x

    def maximum(self, x: Sequence[Tensor], y: Sequence[Tensor]) -> Sequence[Tensor]:
        each.maximum_(x, y)
        return x


def _update_lists(group: dict, rows: list[tuple], lr: float, tensor_step: bool) -> None:
    betas, weight_decay = tuple(map(number, group["betas"])), number(group["weight_decay"])
    params, grads = [p for p, _, _ in rows], [grad for _, grad, _ in rows]
    steps, means, squares = ([state[name] for _, _, state in rows] for name in ("step", "exp_avg", "exp_avg_sq"))
    greatest = [state["max_exp_avg_sq"] for _, _, state in rows] if group["amsgrad"] else None
    each.add_(steps, 1)
    h = _Lists(lr, weight_decay, betas, steps, tensor_step)
    adam(h, params, grads, means, squares, greatest, **_options(group, betas=betas, weight_decay=weight_decay))


class _Functional:
    """On one tensor, by new tensors."""

    def neg(self, x: Tensor) -> Tensor:
        return -x

    def sqrt(self, x: Tensor) -> Tensor:
        return x.sqrt()

    def div(self, x: Tensor, y: Tensor | float) -> Tensor:
        return x / y

    def add(self, x: Tensor, y: Tensor | float) -> Tensor:
        return x + y

    def mul(self, x: Tensor, y: Tensor | float) -> Tensor:
        return x * y

    def lerp(self, x: Tensor, y: Tensor, weight: Tensor | float) -> Tensor:
        return x.lerp(y, weight)

    def addcmul(self, x: Tensor, a: Tensor, b: Tensor, value: Tensor | float) -> Tensor:
        return x.addcmul(a, b, value=value)

    def maximum(self, x: Tensor, y: Tensor) -> Tensor:
        return maximum(x, y)


class _Recorded(_Functional):
    """As autograd can record it, by options that may be tensors with gradients; the parameter is written."""

    def __init__(
        self, lr: Tensor | float, betas: tuple[Tensor | float, Tensor | float], weight_decay: Tensor | float, t: float
    ) -> None:
        self.lr, self.weight_decay = lr, weight_decay
        self.bias1, self.second = 1 - betas[0] ** t, (1 - betas[1] ** t) ** 0.5

    def shrink(self, p: Tensor) -> Tensor:
        return p.mul_(1 - self.lr * self.weight_decay)

    def decay(self, grad: Tensor, p: Tensor) -> Tensor:
        return grad + scaled(p.clone(), self.weight_decay)

    def mul(self, x: Tensor, y: Tensor | float) -> Tensor:
        return scaled(x, y)

    def lerp(self, x: Tensor, y: Tensor, weight: Tensor | float) -> Tensor:
        return x + scaled(y - x, weight)

    def addcmul(self, x: Tensor, a: Tensor, b: Tensor, value: Tensor | float) -> Tensor:
        return x + scaled(a * b, value)

    def descend(self, p: Tensor, mean: Tensor, root: Tensor) -> Tensor:
        move(p, mean / root, self.lr / self.bias1)
        return p


def _update_recorded(group: dict, p, grad, state: dict) -> None:
    t = state["step"].add_(1).item()
    h = _Recorded(group["lr"], group["betas"], group["weight_decay"], t)
    made = adam(h, p, grad, state["exp_avg"], state["exp_avg_sq"], state.get("max_exp_avg_sq"), **_options(group))
    _, state["exp_avg"], state["exp_avg_sq"], greatest = made
    if greatest is not None:
        state["max_exp_avg_sq"] = greatest


class _Compiled(_Functional):
    """In a kernel that all parameters share: numbers that change from step to step are its inputs."""

    def __init__(self, weight_decay: float, keep: Tensor | float, second: Tensor | float, rate: Tensor | float) -> None:
        self.weight_decay, self.keep, self.second, self.rate = weight_decay, keep, second, rate

    def shrink(self, p: Tensor) -> Tensor:
        return p * self.keep

    def decay(self, grad: Tensor, p: Tensor) -> Tensor:
        return grad.add(p, alpha=self.weight_decay)

    def descend(self, p: Tensor, mean: Tensor, root: Tensor) -> Tensor:
        return p + (mean * self.rate) / root


def _update_compiled(group: dict, rows: list[tuple], lr: float) -> bool:
    """On all parameters by compiled kernels that write in place; False when that isn't for this group (yet)."""
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
    betas, weight_decay = tuple(map(number, group["betas"])), number(group["weight_decay"])
    options = _options(group, betas=betas, weight_decay=weight_decay)
    t = steps.pop() + 1

    def compute(tensors: Sequence[Tensor], numbers: Sequence[Tensor]) -> list[tuple[int, Tensor]]:
        h = _Compiled(weight_decay, *numbers)
        out = []
        for k in range(0, len(tensors), 4):
            p, m, v, _ = adam(h, *tensors[k : k + 4], **options)
            out += [(k, p), (k + 2, m), (k + 3, v)]
        return out

    numbers = [1 - lr * weight_decay, (1 - betas[1] ** t) ** 0.5, -(lr / (1 - betas[0] ** t))]
    if not update(("adam", *options.values()), compute, tensors, numbers):
        return False
    for _, _, state in rows:
        state["step"].add_(1)
    return True
