"""Running a function twice with the same random numbers: ``torch.testing._utils``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..core.generator import default_generator, manual_seed

__all__ = ["freeze_rng_state", "wrapper_set_seed"]


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """Draws within the block don't change the draws after it."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)


def wrapper_set_seed(op: Callable, *args, **kwargs) -> Any:
    """``op(*args, **kwargs)`` with the seed 42; the generator is as before afterwards."""
    with freeze_rng_state():
        manual_seed(42)
        return op(*args, **kwargs)
