"""``torch.autograd.forward_ad``: dual numbers. A tensor carries a tangent while a level is open; operators push it forward, those of a backward
pass too (:mod:`flambeau.autograd.forward`). Inside vmap a mapped tensor has its tangent where its values are, mapped at the same levels.
"""

from __future__ import annotations

import collections

from ..autograd import forward
from ..autograd.function import Function
from ..autograd.grad_mode import set_grad_enabled
from ..base.public import public_in
from ..batching import conceal, current, expose, innermost, wrap
from ..core import keys as K
from ..core.dispatch import excluding, install
from ..core.operator import namespace

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

aten = namespace("aten")
UnpackedDualTensor = collections.namedtuple(
    "UnpackedDualTensor", ("primal", "tangent"), module="flambeau.autograd.forward_ad"
)
UnpackedDualTensor.__doc__ = "``primal`` and ``tangent`` (None when there is none) of a dual tensor."


def _tangent(x):
    """The tangent of a tensor, mapped at its levels; or None."""
    if innermost(x) is x:
        return forward.tangent(x)
    value, level = x._payload
    found = _tangent(value)
    return None if found is None else wrap(found, level)


def _function(cls, args, kwargs):
    """An ``autograd.Function`` on dual numbers: its own ``jvp`` says the tangents."""
    tangents = [forward.tangent(a) if forward.is_float(a) else None for a in args]
    versions = [None if t is None or t._inference else t._version for t in tangents]
    with excluding(K.FORWARD):
        if all(t is None for t in tangents):
            return cls._run(args, kwargs)
        if cls.jvp is Function.jvp:
            return cls.jvp(None)  # raises
        found: list = []

        def push(ctx, output):
            given = [
                aten.zeros_like.default(a) if t is None and ctx._materialize and forward.is_float(a) else t
                for a, t in zip(args, tangents)
            ]
            ctx._forward = True
            try:
                with set_grad_enabled(True):
                    made = cls.jvp(ctx, *given)
            finally:
                ctx._forward = False
            found[:] = made if isinstance(made, (tuple, list)) else [made]

        result = cls._run(args, kwargs, push)
    outputs = result if isinstance(result, (tuple, list)) else [result]
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function {cls.__name__}Backward: jvp returned {len(found)} tangents for {len(outputs)} outputs of forward"
        )
    for out, t in zip(outputs, found):
        _check_tangent(out, t, args, tangents, versions)
        if t is not None and forward.is_float(out):
            if tuple(t.shape) != tuple(out.shape):
                raise RuntimeError(
                    f"{cls.__name__}: jvp returned a tangent of shape {list(t.shape)} for an output of shape {list(out.shape)}"
                )
            forward.give(out, t)
    return result


def _check_tangent(out, t, args, tangents, versions) -> None:
    """RuntimeError where a jvp gives no part of an argument's tangent though forward gave that part of the argument."""
    if t is None:
        return
    for a, given, version in zip(args, tangents, versions):
        if given is None:
            continue
        if a is out and (t is not given or given._version == version):
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, "
                "then the jvp function must modify the corresponding gradient inplace."
            )
        if a is not out and out._base is not None and (out._base is a or out._base is a._base):
            what = "A custom Function's forward is returning a view but the jvp is not returning a view"
            if t._base is None:
                raise RuntimeError(f"{what}.")
            if given._base is None and t._base is not given:
                raise RuntimeError(f"{what} of the given grad input.")
            if t._base is not given and t._base is not given._base:
                raise RuntimeError(f"{what} of the same base as the given grad input.")


install("dual", _function)


def enter_dual_level():
    """Open a level. RuntimeError inside another one."""
    if forward.level():
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    forward.open_level()
    return 0


def exit_dual_level(*, level=None):
    """Close the level: its tangents are gone. RuntimeError when none is open."""
    if not forward.level():
        raise RuntimeError("Trying to exit a forward AD level but no level is active")
    forward.close_level()


@public_in("autograd.forward_ad")
class dual_level:  # noqa: N801 - PyTorch's name
    """Context in which tensors may carry tangents."""

    def __enter__(self):
        inside = forward.level() is not None
        try:
            return enter_dual_level()
        except BaseException:
            # An interrupt: nothing would close the level.
            if not inside and forward.level() is not None:
                forward.close_level()
            raise

    def __exit__(self, *exc):
        try:
            exit_dual_level()
        finally:
            if forward.level() is not None:
                forward.close_level()
        return False


class _set_fwd_grad_enabled:  # noqa: N801 - PyTorch's name
    """Whether operators push tangents: takes effect at once, and as a context manager restores the state before."""

    def __init__(self, mode: bool):
        self._before = forward.is_enabled()
        forward.set_enabled(mode)

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        forward.set_enabled(self._before)


_is_fwd_grad_enabled = forward.is_enabled


def __getattr__(name):
    """``_current_level``: 0 in an open level, else -1."""
    if name == "_current_level":
        return 0 if forward.level() else -1
    raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute {name!r}")


def make_dual(tensor, tangent, *, level=None):
    """An alias of ``tensor`` that carries ``tangent`` (same shape and dtype) in the open level. RuntimeError without a level and where one of both
    carries a tangent already, ValueError for integers. A tangent that lies in memory otherwise than the tensor is copied: writes to the
    dual tensor are writes to both."""
    if not forward.level():
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not forward.is_float(t):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {t.dtype}")
    if tuple(tensor.shape) != tuple(tangent.shape):
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is "
            f"of size {list(tensor.shape)} while the given forward gradient is of size {list(tangent.shape)}."
        )
    if tensor.dtype is not tangent.dtype:
        raise RuntimeError(
            f"Expected tensor and tangent to have the same dtype, but got {tensor.dtype} and {tangent.dtype}"
        )
    if _tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported."
        )
    if _tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported."
        )
    levels = current()
    x, t = (tensor, tangent) if not levels else (expose(tensor, levels), expose(tangent, levels))
    out = aten.alias.default(x)
    forward.give(out, forward.in_order_of(x, t))
    return conceal(out, levels)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one without, and outside a level."""
    tangent = _tangent(tensor) if forward.level() and forward.is_float(tensor) else None
    return UnpackedDualTensor(tensor if tangent is None else forward.primal(tensor), tangent)
