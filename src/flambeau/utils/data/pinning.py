"""Batches in memory that is meant for copies to a device."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from ...core.tensor import Tensor

__all__ = ["pinned"]


def pinned(batch: Any) -> Any:
    """The batch, its tensors pinned: those in mappings and sequences, and what an object's own ``pin_memory()`` gives. Other values stay."""
    if isinstance(batch, Tensor):
        return batch.pin_memory()
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, tuple):
        made = [pinned(x) for x in batch]
        return type(batch)(*made) if hasattr(batch, "_fields") else tuple(made)
    if isinstance(batch, Mapping):
        made = {k: pinned(v) for k, v in batch.items()}
        return _filled(batch, made, lambda own: own.update(made)) if isinstance(batch, MutableMapping) else made
    if isinstance(batch, Sequence):
        made = [pinned(x) for x in batch]
        return (
            _filled(batch, made, lambda own: own.__setitem__(slice(None), made))
            if isinstance(batch, MutableSequence)
            else made
        )
    return batch


def _filled(batch, plain, fill):
    """A container of the batch's class, with what else it holds; a plain one where its class can't be filled."""
    if type(batch) in (list, dict):
        return plain
    try:
        own = copy.copy(batch)
        fill(own)
        return own
    except TypeError:
        return plain
