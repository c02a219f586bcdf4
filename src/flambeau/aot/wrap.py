"""``wrap``: a call that stands in the captured graph as one node, its function as a subgraph (``torch._higher_order_ops.wrap``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["wrap"]


def wrap(func: Callable, *args: Any, **kwargs: Any) -> Any:
    """``func(*args, **kwargs)``.

    Capture makes one node ``wrap(subgraph, *operands)`` of it; tensors that ``func`` reads from outside are operands.
    """
    return func(*args, **kwargs)
