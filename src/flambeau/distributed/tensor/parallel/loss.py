"""Losses of logits that are cut along the classes."""

from __future__ import annotations

import contextlib

from ....base.public import public_in

__all__ = ["loss_parallel"]


@public_in("distributed.tensor.parallel.loss")
@contextlib.contextmanager
def loss_parallel():
    """In the block ``cross_entropy`` of a DTensor whose placement is Shard of the classes runs on the parts: one number a position crosses ranks for
    the maximum, the sum and the class that was meant. DTensors do this outside of the block, too, forward and backward; PyTorch does not."""
    yield
