"""Optimizers that step as soon as a gradient is there, in the backward: gradients needn't all live at once."""

from __future__ import annotations

from collections.abc import Iterable

from ..modules.module import Module
from ..optim import Optimizer

__all__ = ["apply_optimizer_in_backward", "get_in_backward_optimizers", "step_and_clear", "take_over"]


def step_and_clear(p) -> None:
    """Run a parameter's optimizers and let go of its gradient."""
    for optimizer in p._in_backward_optimizers:
        optimizer.step()
    p.grad = None


def apply_optimizer_in_backward(
    optimizer_class: type[Optimizer], params: Iterable, optimizer_kwargs: dict, register_hook: bool = True
) -> None:
    """Give each parameter an ``optimizer_class([p], **optimizer_kwargs)`` that steps once its gradient was accumulated, after which the gradient is
    None. Several of them step one after the other. ``register_hook=False``: somebody else runs them."""
    for p in params:
        if not hasattr(p, "_in_backward_optimizers"):
            p._in_backward_optimizers, p._in_backward_handle = [], None
        p._in_backward_optimizers.append(optimizer_class([p], **optimizer_kwargs))
        if register_hook and p._in_backward_handle is None:
            p._in_backward_handle = p.register_post_accumulate_grad_hook(step_and_clear)


def get_in_backward_optimizers(module: Module) -> list[Optimizer]:
    """The optimizers of a module's parameters, for checkpoints."""
    return [o for p in module.parameters() for o in getattr(p, "_in_backward_optimizers", ())]


def take_over(parameters: Iterable) -> set[int]:
    """Remove the hooks that step optimizers, for a reducer that steps them after reduction. Returns the indices of the parameters that had hooks."""
    found = set()
    for i, p in enumerate(parameters):
        if getattr(p, "_in_backward_optimizers", None):
            found.add(i)
            if p._in_backward_handle is not None:
                p._in_backward_handle.remove()
                p._in_backward_handle = None
    return found
