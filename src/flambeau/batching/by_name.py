"""functorch's functions on mapped tensors, for containers of tensors that carry vmap out themselves (tensordict's): ``_add_batch_dim`` and its like.

A level is told by its :class:`Level` or, as functorch's are, by its number.
"""

from __future__ import annotations

from .levels import BatchedTensor, Level, current, movedim, value_at, wrap

__all__ = ["add_batch_dim", "batches_itself", "get_unwrapped", "is_batchedtensor", "level_of", "remove_batch_dim"]


def batches_itself(x) -> bool:
    """Whether ``x`` is such a container: its class says how to map it and how to take the batch out again."""
    cls = type(x)
    return hasattr(cls, "_add_batch_dim") and hasattr(cls, "_maybe_remove_batch_dim")


def level_of(which: Level | int) -> Level:
    """The running level of that number. RuntimeError when there is none."""
    if isinstance(which, Level):
        return which
    for running in current():
        if running.number == which:
            return running
    raise RuntimeError(f"no vmap of level {which} is running")


def is_batchedtensor(x) -> bool:
    """Whether ``x`` is mapped at a level that is running."""
    return isinstance(x, BatchedTensor) and x._payload[1].alive


def get_unwrapped(x):
    """The batch of a mapped tensor, whose examples are along dimension 0; any other tensor itself."""
    return x._payload[0] if isinstance(x, BatchedTensor) else x


def add_batch_dim(x, in_dim: int, level: Level | int):
    """``x`` mapped over its dimension ``in_dim`` at ``level``. RuntimeError when no such level is running."""
    return wrap(movedim(x, in_dim % x._ndim, 0), level_of(level))


def remove_batch_dim(x, level: Level | int, batch_size: int, out_dim: int):
    """The batch of ``x`` at ``level``, its examples along ``out_dim``. What isn't mapped is repeated ``batch_size`` times."""
    value, mapped = value_at(x, level_of(level))
    if not mapped:
        value = value.unsqueeze(0).expand(batch_size, *value._shape)
    return movedim(value, 0, out_dim % value._ndim)
