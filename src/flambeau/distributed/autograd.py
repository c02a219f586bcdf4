"""``torch.distributed.autograd``: gradients of a program whose parts run on several workers (rpc/)."""

from __future__ import annotations

import contextlib
from typing import Any

from ..autograd.grad_mode import no_grad
from .rpc._agent import Kind, current
from .rpc._backward import run_backward

__all__ = ["backward", "context", "get_gradients"]


class context:  # noqa: N801
    """``with context() as context_id:`` calls of other workers in this block take the histories of tensors along, both ways. RuntimeError inside of
    another one."""

    def __enter__(self) -> int:
        self._agent = current()
        if self._agent.contexts.current is not None:
            raise RuntimeError("Already have an autograd context id for this thread.")
        self._context = self._agent.contexts.new()
        self._entered = self._agent.contexts.entered(self._context)
        self._entered.__enter__()
        return self._context.id

    def __exit__(self, *error) -> None:
        self._entered.__exit__(*error)
        for worker in self._agent.workers:
            with contextlib.suppress(RuntimeError):  # a worker that is gone has forgotten it
                self._agent.send(worker.id, Kind.RELEASE, 0, self._context.id)


def backward(context_id: int, roots: list, retain_graph: bool = False) -> None:
    """Gradients of the sum of ``roots``, scalars of this worker, for the leaves of all workers: :func:`get_gradients` has them, ``grad`` is not
    touched.

    Called again within the context they are added. Histories are kept until the context ends, with ``retain_graph`` and without. RuntimeError for a
    context that isn't there and for roots that need no gradient or have several elements."""
    if not isinstance(roots, (list, tuple)):
        raise TypeError(
            f"backward(): incompatible function arguments: roots must be a list of tensors, got {type(roots).__name__}"
        )
    agent = current()
    run_backward(agent, agent.contexts.get(context_id), list(roots))


def get_gradients(context_id: int) -> dict[Any, Any]:
    """{leaf of this worker: its gradient} of a context."""
    found = current().contexts.get(context_id)
    with found.lock, no_grad():
        return dict(found.gradients)
