"""What autograd does with an operator of a program's that has a kernel for CPU and none for autograd: the kernel runs as it is, so that operators
in it are recorded, and a backward that passes its results warns that the gradient may be wrong.

``torch._C._set_autograd_fallback_mode``: "warn", or "nothing" for silence.
"""

from __future__ import annotations

import warnings

from .. import _C
from ..autograd.function import Function
from ..core import keys as K
from ..core.dispatch import excluding
from ..core.operator import OpOverload, namespace

__all__ = ["Fallback", "get_mode", "set_mode"]

aten = namespace("aten")
_mode = ["warn"]


def get_mode() -> str:
    """ "warn" or "nothing"."""
    return _mode[0]


def set_mode(mode: str) -> None:
    """RuntimeError for another word."""
    if mode not in ("warn", "nothing"):
        raise RuntimeError(f"Invalid AutogradFallbackMode: expected 'nothing' or 'warn', got {mode!r}")
    _mode[0] = mode


def _warn(name: str) -> None:
    warnings.warn(
        f"{name}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This may lead to "
        "silently incorrect behavior. If your operator is differentiable, please register an autograd formula with "
        "torch.library.register_autograd; if it is not, or to squash this warning, register torch.library.fallthrough_kernel for Autograd.",
        stacklevel=3,
    )


class _NotDifferentiable(Function):
    """A result that has no history: its backward warns and leads nowhere."""

    @staticmethod
    def forward(ctx, name, result, *inputs):
        ctx.operator = name
        return aten.view_as.default(result, result)

    @staticmethod
    def backward(ctx, grad):
        _warn(ctx.operator)
        return (None,) * len(ctx.needs_input_grad)


def _tensors(values) -> list:
    return [
        x
        for v in values
        for x in (v if isinstance(v, (list, tuple)) else [v])
        if isinstance(x, _C.TensorBase) and x._dtype.category >= 2
    ]


class Fallback:
    """The "autograd" override of such an operator."""

    def __init__(self, op: OpOverload, call):
        self.op, self.call = op, call

    def __call__(self, *values):
        with excluding(K.AUTOGRAD):
            result = self.call(self.op, self.op, values)
        inputs = [t for t in _tensors(values) if t._requires_grad]
        if get_mode() == "nothing" or not inputs or not _C.tls("grad_enabled"):
            return result
        given = {id(t) for t in _tensors(values)}
        if isinstance(result, (list, tuple)):
            return type(result)(self._watched(t, inputs, given) for t in result)
        return self._watched(result, inputs, given)

    def _watched(self, t, inputs, given):
        """The result, with a warning where a backward passes."""
        if not isinstance(t, _C.TensorBase) or t._dtype.category < 2:
            return t
        name = self.op.name()
        if t._requires_grad:
            for x in (t, t._base):
                if x is not None and x._requires_grad:
                    x.register_hook(lambda grad: _warn(name))
            return t
        # An argument that was written and has no history stays without one.
        return t if id(t) in given else _NotDifferentiable.apply(name, t, *inputs)


def recording(fn):
    """The kernel with autograd on, also below the dispatch of its operator."""

    def run(*args, **kwargs):
        with _C.Guard(readmit=K.AUTOGRAD):
            return fn(*args, **kwargs)

    return run
