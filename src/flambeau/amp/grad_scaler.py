"""Scaling of the loss, so that small gradients survive 16-bit floats."""

from __future__ import annotations

import enum
from collections import defaultdict

from ..autograd.grad_mode import no_grad
from ..base import accelerator
from ..base.dtypes import float16
from ..base.public import public_in
from ..core.conversion import tensor
from ..core.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(enum.Enum):
    """How far a GradScaler is with an optimizer in this step."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


class GradScaler:
    """``scale(loss).backward(); scaler.step(optimizer); scaler.update()``: a step with infinite gradients is left out and the scale falls."""

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000,
        enabled: bool = True,
    ):  # fmt: skip
        self._device = device
        if enabled and device == "cuda" and not accelerator.count():
            import warnings

            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            enabled = False
        self._enabled = enabled
        if enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._growth_factor, self._backoff_factor, self._growth_interval = (
            init_scale,
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale, self._growth_tracker = None, 0
        self._optimizers: dict = defaultdict(self._fresh)

    @staticmethod
    def _fresh() -> dict:
        return {"stage": OptState.READY, "infinite": False, "checked": False}

    def _current(self) -> Tensor:
        if self._scale is None:
            self._scale = tensor(float(self._init_scale))
        return self._scale

    def scale(self, outputs):
        """A tensor, or an iterable of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            return outputs * self._current().to(outputs.dtype)
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(map(self.scale, outputs))
        if hasattr(outputs, "__iter__"):
            return map(self.scale, outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _check_scaled(self, what: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or outputs) earlier in "
                "the iteration."
            )

    def unscale_(self, optimizer) -> None:
        """Divide the gradients by the scale, once between updates."""
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        own = self._optimizers[id(optimizer)]
        if own["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if own["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        # Nothing is divided where a gradient can't be.
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype is float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        inverse, infinite = 1.0 / self._current().item(), False
        with no_grad():
            for grad in grads:
                grad.mul_(inverse)
                infinite = infinite or not bool(grad.isfinite().all())
        own["infinite"], own["stage"], own["checked"] = infinite, OptState.UNSCALED, bool(grads)

    def step(self, optimizer, *args, **kwargs):
        """``optimizer.step`` unless a gradient is infinite or nan."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scaled("step")
        own = self._optimizers[id(optimizer)]
        if own["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if own["stage"] is OptState.READY:
            self.unscale_(optimizer)
        if not own["checked"]:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        out = None if own["infinite"] else optimizer.step(*args, **kwargs)
        own["stage"] = OptState.STEPPED
        return out

    def update(self, new_scale=None) -> None:
        """The scale for the next iteration: less after an infinity, more after ``growth_interval`` steps without."""
        if not self._enabled:
            return
        self._check_scaled("update")
        scale = self._current()
        if new_scale is not None:
            if isinstance(new_scale, Tensor) and (new_scale.numel() != 1 or new_scale.requires_grad):
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with requires_grad=False."
                )
            scale.fill_(new_scale.item() if isinstance(new_scale, Tensor) else new_scale)
        else:
            if not any(own["checked"] for own in self._optimizers.values()):
                raise AssertionError("No inf checks were recorded prior to update.")
            if any(own["infinite"] for own in self._optimizers.values()):
                scale.mul_(self._backoff_factor)
                self._growth_tracker = 0
            else:
                self._growth_tracker += 1
                if self._growth_tracker == self._growth_interval:
                    grown = scale * self._growth_factor
                    # Not past what float32 holds.
                    if grown.isfinite():
                        scale.copy_(grown)
                    self._growth_tracker = 0
        self._optimizers = defaultdict(self._fresh)

    def get_scale(self) -> float:
        return (self._init_scale if self._scale is None else self._scale.item()) if self._enabled else 1.0

    def _get_growth_tracker(self) -> int:
        return self._growth_tracker if self._enabled else 0

    def get_growth_factor(self) -> float:
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        return self._enabled

    def state_dict(self) -> dict:
        if not self._enabled:
            return {}
        names = ("growth_factor", "backoff_factor", "growth_interval")
        return {
            "scale": self.get_scale(),
            **{n: getattr(self, f"_{n}") for n in names},
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict) -> None:
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._scale.fill_(state_dict["scale"])
        for n in ("growth_factor", "backoff_factor", "growth_interval"):
            setattr(self, f"_{n}", state_dict[n])
        self._growth_tracker = state_dict["_growth_tracker"]


@public_in("cuda.amp.grad_scaler", "GradScaler")
class CudaGradScaler(GradScaler):
    """``torch.cuda.amp.GradScaler``."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


@public_in("cpu.amp.grad_scaler", "GradScaler")
class CpuGradScaler(GradScaler):
    """``torch.cpu.amp.GradScaler``."""

    def __init__(self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
