"""``torch.random``: state of the default generator."""

from __future__ import annotations

import contextlib

from ..core.generator import default_generator, manual_seed, seed

__all__ = [
    "default_generator",
    "fork_rng",
    "thread_safe_generator",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


def get_rng_state():
    """The state as a uint8 tensor, for :func:`set_rng_state`."""
    return default_generator.get_state()


def set_rng_state(new_state) -> None:
    """Put the state that ``get_rng_state`` gave back into the default generator."""
    default_generator.set_state(new_state)


def initial_seed() -> int:
    """The seed of the default generator, as it was last set."""
    return default_generator.initial_seed()


def thread_safe_generator():
    """None: outside of PyTorch's worker threads there is none."""


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True):
    """Restore the generator after the block."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)
