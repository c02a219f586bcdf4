"""Optimizers of parameters that lie on several workers."""

from __future__ import annotations

import threading
from typing import Any

from ...base.public import public_in
from ..autograd import get_gradients
from ..futures import wait_all
from .api import remote, rpc_async
from .references import RRef

__all__ = ["DistributedOptimizer"]


class _Local:
    """The optimizer of one worker's parameters."""

    def __init__(self, optimizer_class: type, parameters: list[RRef], args: tuple, kwargs: dict[str, Any]):
        self.parameters = [p.local_value() for p in parameters]
        self.optimizer = optimizer_class(self.parameters, *args, **kwargs)
        self.lock = threading.Lock()

    def step(self, context_id: int) -> None:
        """Step with the context's gradients; ``grad`` is not touched."""
        gradients = get_gradients(context_id)
        with self.lock:
            before = [p.grad for p in self.parameters]
            try:
                for p in self.parameters:
                    p.grad = gradients.get(p)
                self.optimizer.step()
            finally:
                for p, g in zip(self.parameters, before):
                    p.grad = g


def _step(local: RRef, context_id: int) -> None:
    local.local_value().step(context_id)


@public_in("distributed.optim.optimizer")
class DistributedOptimizer:
    """``optimizer_class(parameters, *args, **kwargs)`` on each worker that owns some of ``params_rref``, references to parameters.

    ``step(context_id)`` uses the gradients of a context of ``torch.distributed.autograd``. RuntimeError or what a worker raised where its
    optimizer can't be made."""

    def __init__(self, optimizer_class: type, params_rref: list[RRef], *args: Any, **kwargs: Any):
        owned: dict[str, list[RRef]] = {}
        for p in params_rref:
            owned.setdefault(p.owner_name(), []).append(p)
        self.remote_optimizers = [remote(to, _Local, (optimizer_class, ps, args, kwargs)) for to, ps in owned.items()]
        wait_all([rpc_async(r.owner(), _made, (r,)) for r in self.remote_optimizers])

    def step(self, context_id: int) -> None:
        """One step on all workers. RuntimeError for a context that isn't there."""
        wait_all([rpc_async(r.owner(), _step, (r, context_id)) for r in self.remote_optimizers])


def _made(local: RRef) -> None:
    """Raise what making it raised."""
    local.local_value()
