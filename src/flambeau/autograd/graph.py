"""``torch.autograd.graph``: edges, hooks on saved tensors, hooks on several gradients."""

from __future__ import annotations

import contextlib
import functools
from typing import NamedTuple

from .. import _C
from ..base.forks import held_while_forking
from ..core.operator import namespace
from .node import Node, gradient_edge

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]

aten = namespace("aten")


class GradientEdge(NamedTuple):
    """Where a cotangent goes: result ``output_nr`` of ``node``."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge of a tensor that requires a gradient."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(*gradient_edge(tensor))


def increment_version(tensor) -> None:
    """Count a write to the memory of a tensor (or of several), as if it had been changed in place."""
    for t in [tensor] if isinstance(tensor, _C.TensorBase) else tensor:
        t._bump_version()


class saved_tensors_hooks(_C.Guard):
    """Context manager: what is saved for the backward inside goes through ``pack_hook(tensor)``, and comes back through
    ``unpack_hook(packed)``, which returns the tensor. The innermost pair applies."""

    def __init__(self, pack_hook, unpack_hook):
        message = _C.innermost("saved_hooks")
        if isinstance(message, str):
            raise RuntimeError(message)
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook
        super().__init__(push="saved_hooks", value=(pack_hook, unpack_hook))


def disable_saved_tensors_hooks(error_message: str):
    """Context manager in which making saved_tensors_hooks is a RuntimeError with this text."""
    if isinstance(_C.innermost("saved_hooks"), tuple):
        raise RuntimeError(error_message)
    return _C.Guard(push="saved_hooks", value=str(error_message))


def _saved_tensors_hooks_is_enabled() -> bool:
    """Whether saved_tensors_hooks may be made."""
    return not isinstance(_C.innermost("saved_hooks"), str)


def saved_as_they_were():
    """Context manager in which what a derivative needs is kept as it is, whatever is written into it later: so it is with NumPy's arrays, where
    PyTorch's tensors raise."""

    def copied(t):
        # Hooks are called without gradients; a derivative of the derivative goes through the copy.
        with _C.Guard(grad_enabled=1):
            return aten.clone.default(t)

    return saved_tensors_hooks(copied, lambda t: t)


class save_on_cpu(saved_tensors_hooks):
    """Saved tensors are kept as copies on the CPU (``pin_memory`` means nothing here)."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda t: (t.device, t.detach().clone()), lambda packed: packed[1].to(packed[0]))


def register_multi_grad_hook(tensors, fn, *, mode: str = "all"):
    """``mode="all"``: ``fn(list of gradients)`` (None for those that get none) when all gradients of a pass have come;
    ``"any"``: ``fn(gradient)`` once a pass, with the first. Returns a handle."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = list(tensors)
    for t in tensors:
        if not t.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    return _MultiHandle(_all_hook(tensors, fn) if mode == "all" else _any_hook(tensors, fn))


class _MultiHandle:
    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self):
        for h in self.handles:
            h.remove()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


def _all_hook(tensors, fn):
    passes: dict = {}  # number of the backward pass -> [gradients so far, how many will come, how many came]
    edges = tuple(gradient_edge(t) for t in tensors)

    def inner(k, grad):
        key = _C.backward_id()
        with held_while_forking:
            state = passes.get(key)
            if state is None:
                state = passes[key] = [[None] * len(edges), sum(_C.backward_reaches(node) for node, _ in edges), 0]
            state[0][k] = grad
            state[2] += 1
            done = state[2] == state[1]
            if done:
                del passes[key]
        if done:
            fn(state[0])

    return [t.register_hook(functools.partial(inner, k)) for k, t in enumerate(tensors)]


def _any_hook(tensors, fn):
    last: list = [None]

    def inner(grad):
        key = _C.backward_id()
        with held_while_forking:
            if last[0] == key:
                return
            last[0] = key
        fn(grad)

    return [t.register_hook(inner) for t in tensors]


class _Copies:
    """What was saved. See allow_mutation_on_saved_tensors."""

    def __init__(self):
        self.cloned: dict = {}

    def clear(self):
        """Let go of all of them: a backward through what was recorded so far is an error."""
        self.cloned.clear()


_copying = [False]  # in a block of the next one


@contextlib.contextmanager
def allow_mutation_on_saved_tensors():
    """Tensors saved inside may be written before the backward: they are copied when they are saved."""
    if _copying[0]:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    state = _Copies()
    keys = iter(range(1 << 62))

    def pack(t):
        key = next(keys)
        state.cloned[key] = aten.clone.default(t.detach())
        return key

    def unpack(key):
        found = state.cloned.get(key)
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded."
            )
        return found

    with saved_tensors_hooks(pack, unpack):
        _copying[0] = True
        try:
            yield state
        finally:
            _copying[0] = False
            state.clear()
