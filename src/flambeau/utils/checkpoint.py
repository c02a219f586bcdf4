"""Activation checkpointing: intermediate values are computed again in the backward pass instead of being kept (Chen et al., arXiv:1604.06174).

With ``use_reentrant=False`` the values that autograd saves are replaced by places; the first one that the backward pass asks for runs the function
again and fills all of them. With ``use_reentrant=True`` the function is one node whose backward runs it again and calls backward inside.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
import weakref

from .. import _C
from ..autograd import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ..autograd.graph import saved_tensors_hooks
from ..core.generator import default_generator
from ..core.tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from .selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SAC_IGNORED_OPS",
]
__all__ += [
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
]
__all__ += [
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """The second run differs from the first: other tensors were saved."""


class _StopRecomputation(Exception):
    """All values that are needed have been computed."""


_debug: list = [None]  # what set_checkpoint_debug_enabled says, None: each checkpoint itself
_early_stop: list = [None]  # likewise


def noop_context_fn():
    """Two contexts that do nothing: for ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def detach_variable(inputs):
    """Tensors without history that ask for a gradient as the originals do."""
    if not isinstance(inputs, tuple):
        raise RuntimeError("Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__)
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs) -> None:
    """Warn when no input requires a gradient: then none flows through a checkpoint."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def get_device_states(*args) -> tuple[list, list]:
    """States of accelerators' generators: there are none."""
    return [], []


def set_device_states(devices, states, *, device_type=None) -> None:
    """Put the states of generators of devices back: there are no other devices."""
    if devices:
        raise RuntimeError("set_device_states: there are no accelerators here")


@contextlib.contextmanager
def _random_state(state):
    """Run with the generator at ``state`` (None: as it is), and put it back."""
    if state is None:
        yield
        return
    now = default_generator.get_state()
    default_generator.set_state(state)
    try:
        yield
    finally:
        default_generator.set_state(now)


class CheckpointFunction(Function):
    """One node for the whole function: its backward runs it again and calls backward inside."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.state = default_generator.get_state() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_indices = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        from ..autograd import backward

        inputs = list(ctx.inputs)
        for k, t in zip(ctx.tensor_indices, ctx.saved_tensors):
            inputs[k] = t
        with _random_state(ctx.state):
            detached = detach_variable(tuple(inputs))
            with enable_grad():
                outputs = ctx.run_function(*detached)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))


class _Holder:
    """Stands for a value that autograd saved."""

    __slots__ = ("__weakref__", "values")

    def __init__(self):
        self.values: dict = {}


class _Frame:
    """One checkpointed call: the places of its saved values and how to compute them again.

    ``early_stop``: the second run ends with the last value that is needed. ``debug``: the operators of both runs are listed in errors."""

    def __init__(self, recompute, early_stop: bool, debug: bool):
        self.recompute, self.early_stop = recompute, early_stop
        self.holders: list = []
        self.done: set = set()  # numbers of the backward passes for which the second run was made
        self.finished = False  # the first run
        self.operators = ([], []) if debug else None  # of the first and of the second run

    def pack(self, x):
        holder = _Holder()
        self.holders.append((weakref.ref(holder), _facts(x)))
        return holder

    def unpack(self, holder):
        key = _C.backward_id()
        key = next(_outside) if key < 0 else key  # outside of a pass each value is computed again
        if key not in self.done:
            self.run(key)
            self.done.add(key)
        if key not in holder.values:
            raise self._error(
                "A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.holders)}"
            )
        value, holder.values[key] = holder.values[key], None
        if value is None:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue."
            )
        return value

    def _error(self, what: str) -> CheckpointError:
        if self.operators is None:
            return CheckpointError(f"torch.utils.checkpoint: {what}")
        first, second = ("\n".join(names) for names in self.operators)
        return CheckpointError(
            "You are seeing this error because you passed `debug=True` to checkpoint and the second run differs from the first.\n"
            f"Operators of the first run:\n{first}\nOperators of the second run:\n{second}\ntorch.utils.checkpoint: {what}"
        )

    def listing(self, again: bool):
        """Context manager: the operators that run are listed, when they are asked for."""
        return contextlib.nullcontext() if self.operators is None else _Listing(self.operators[again])

    def run(self, key: int) -> None:
        count = [0]
        last = max((k for k, (ref, _) in enumerate(self.holders) if ref() is not None), default=-1)

        def pack(x):
            k = count[0]
            count[0] += 1
            if k >= len(self.holders):
                if not self.finished:  # a backward inside the first run: the second one goes further
                    return x.detach()
                raise self._error(
                    "trying to save more tensors during recomputation than during the original forward pass."
                )
            ref, facts = self.holders[k]
            if facts != _facts(x):
                raise self._error(
                    "Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                    f"tensor at position {k}:\nsaved metadata: {facts}\nrecomputed metadata: {_facts(x)}"
                )
            holder = ref()
            if holder is not None:
                holder.values[key] = x.detach()
            if self.early_stop and k >= last:
                raise _StopRecomputation
            return x

        with contextlib.suppress(_StopRecomputation), saved_tensors_hooks(pack, lambda x: x), enable_grad():
            with self.listing(again=True):
                self.recompute()


_outside = itertools.count(-1, -1)


class _Listing(TorchDispatchMode):
    def __init__(self, names: list):
        super().__init__()
        self._names = names

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self._names.append(str(func))
        return func(*args, **(kwargs or {}))


def _facts(x) -> dict:
    return {"shape": tuple(x.shape), "dtype": x.dtype, "device": x.device}


def _without_reentry(function, preserve_rng_state, context_fn, early_stop, debug, args, kwargs):
    before, again = context_fn()
    state = default_generator.get_state() if preserve_rng_state else None
    from ..amp.autocast_mode import autocast
    from ..amp.state import current

    casting = current("cpu")

    def recompute():
        with _random_state(state), again:
            if casting[0]:
                with autocast("cpu", dtype=casting[1]):
                    function(*args, **kwargs)
            else:
                function(*args, **kwargs)

    frame = _Frame(recompute, early_stop, debug)
    with saved_tensors_hooks(frame.pack, frame.unpack), before, frame.listing(again=False):
        result = function(*args, **kwargs)
    frame.finished = True
    return result


def _differentiated_ahead() -> bool:
    """Whether a compiler is tracing. It decides itself what is computed again in the backward; a second run in the trace would draw other random
    numbers, and the backward that reentrant checkpoints call inside would lose the gradients of what the function closes over."""
    from ..dynamo.convert import is_compiling

    return is_compiling()


def checkpoint(
    function, *args, use_reentrant: bool | None = None, context_fn=noop_context_fn, determinism_check: str = "default", debug: bool = False,
    early_stop: bool = True, **kwargs,
):  # fmt: skip
    """``function(*args, **kwargs)`` whose intermediate values are computed again in the backward pass.

    The generator is put back for the second run unless ``preserve_rng_state=False``. CheckpointError when the second run saves other tensors.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
            "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    if _differentiated_ahead():
        return function(*args, **kwargs)
    if use_reentrant:
        return CheckpointFunction.apply(function, preserve, *args)
    if not _C.tls("grad_enabled"):
        return function(*args, **kwargs)
    stop, told = (own if said is None else said for own, said in ((early_stop, _early_stop[0]), (debug, _debug[0])))
    return _without_reentry(function, preserve, context_fn, stop, told, args, kwargs)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool):
    """Whether the second run ends with the last value that is needed."""
    before, _early_stop[0] = _early_stop[0], enable
    try:
        yield
    finally:
        _early_stop[0] = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """Context manager: checkpoints tell what they recompute differently (None: as each says itself)."""
    before, _debug[0] = _debug[0], enabled
    try:
        yield
    finally:
        _debug[0] = before


class DefaultDeviceType:
    """The device type of checkpoints whose tensors are on the CPU."""

    _type = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._type


class GraphExecGroup:
    """Several backward calls that share what was computed again; here each computes its own."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


from .checkpoint_sequence import checkpoint_sequential  # noqa: E402  it calls checkpoint
