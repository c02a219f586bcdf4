"""``torch.autograd.forward_ad``: dual numbers. A tensor carries a tangent while a level is open; public functions push it forward.

Each call that meets a tangent is linearised by two pullbacks on the tape (:func:`.derivatives.linearized`), so that no operator has a forward
formula of its own, and tangents can be differentiated again by the ordinary backward. In-place calls give their target the new tangent.
"""

from __future__ import annotations

import collections
import weakref

from .. import _C
from ..autograd import engine
from ..autograd.function import Function
from ..autograd.grad_mode import set_grad_enabled
from ..base import pytree
from ..core.dispatch import install
from ..core.modes import TorchFunctionMode
from ..core.operator import namespace
from ..core.overrides import wrap_function
from .derivatives import linearized, vjp

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

aten = namespace("aten")
UnpackedDualTensor = collections.namedtuple("UnpackedDualTensor", ("primal", "tangent"))
UnpackedDualTensor.__doc__ = "``primal`` and ``tangent`` (None when there is none) of a dual tensor."
_levels: list[_Level] = []


def _is_float(x) -> bool:
    return isinstance(x, _C.TensorBase) and (x._dtype.is_floating_point or x._dtype.is_complex)


class _Whole(Exception):
    """The result of a call that returns nothing differentiable."""


class _Level(TorchFunctionMode):
    """An open level: tangents by tensor, and the mode that pushes them through calls."""

    def __init__(self):
        self._tangents: dict[int, tuple] = {}
        self.resting = False  # what runs now pushes its tangents itself

    def tangent(self, x):
        found = self._tangents.get(id(x))
        return found[1] if found is not None and found[0]() is x else None

    def give(self, x, tangent) -> None:
        self._tangents[id(x)] = (weakref.ref(x), tangent)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        return func(*args, **kwargs) if self.resting else self.push(func, types, args, kwargs)

    def push(self, func, types, args, kwargs):
        """The call, and the tangents of what it returns or writes."""
        leaves, spec = pytree.tree_flatten((args, kwargs))
        at = [k for k, x in enumerate(leaves) if isinstance(x, _C.TensorBase) and self.tangent(x) is not None]
        name = getattr(func, "__name__", "")
        if at and (func is engine.grad or name == "backward"):
            raise NotImplementedError(
                "forward_ad: gradients of dual tensors would lose their tangents; take torch.func.jvp of torch.func.grad instead"
            )
        if not at or name in (
            "__get__",
            "__set__",
            "requires_grad_",
            "size",
            "stride",
            "item",
            "tolist",
            "numpy",
            "backward",
        ):
            return func(*args, **kwargs)
        in_place = (
            args
            and isinstance(args[0], _C.TensorBase)
            and (name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or name[2:-2] in _AUGMENTED)
        )
        if in_place and self.tangent(args[0]) is None and _is_float(args[0]):
            self.give(args[0], aten.zeros_like.default(aten.detach.default(args[0])))
            return self.__torch_function__(func, types, args, kwargs)
        primals = tuple(leaves[k] for k in at)
        tangents = tuple(self.tangent(x) for x in primals)

        def run(*xs):
            full = list(leaves)
            for k, x in zip(at, xs):
                full[k] = x
            a, kw = pytree.tree_unflatten(full, spec)
            if in_place:
                target = aten.clone.default(a[0])
                func(target, *a[1:], **kw)
                return (target,), None
            flat, out_spec = pytree.tree_flatten(func(*a, **kw))
            floats = [x for x in flat if _is_float(x)]
            if not floats:
                raise _Whole(pytree.tree_unflatten(flat, out_spec))
            return tuple(floats), (flat, out_spec)

        with set_grad_enabled(True):
            try:
                outs, push, aux = linearized(run, primals, has_aux=True)
            except _Whole as e:
                return e.args[0]
            derivatives = push(tangents)
        if in_place:
            result = func(*args, **kwargs)
            self.give(args[0], derivatives[0])
            return result
        flat, out_spec = aux
        made = iter(zip(outs, derivatives))
        full = []
        for x in flat:
            if _is_float(x):
                x, tangent = next(made)
                self.give(x, tangent)
            full.append(x)
        return pytree.tree_unflatten(full, out_spec)


def _custom(cls, args, kwargs):
    """An ``autograd.Function`` on dual numbers: its own ``jvp`` says the tangents; without one they follow from its backward."""
    level = _levels[-1] if _levels else None
    if level is None or level.resting:
        return NotImplemented
    tangents = [level.tangent(a) if _is_float(a) else None for a in args]
    if all(t is None for t in tangents):
        return NotImplemented
    if cls.jvp is Function.jvp:
        level.resting = True
        try:
            return level.push(cls.apply, (), args, kwargs)
        finally:
            level.resting = False
    found: list = []

    def push(ctx, output):
        given = [
            aten.zeros_like.default(a) if t is None and ctx._materialize and _is_float(a) else t
            for a, t in zip(args, tangents)
        ]
        ctx._forward = True
        try:
            with set_grad_enabled(True):
                made = cls.jvp(ctx, *given)
        finally:
            ctx._forward = False
        found[:] = made if isinstance(made, (tuple, list)) else [made]

    level.resting = True
    try:
        result = cls._run(args, kwargs, push)
    finally:
        level.resting = False
    outputs = result if isinstance(result, (tuple, list)) else [result]
    if len(found) != len(outputs):
        raise RuntimeError(
            f"Function {cls.__name__}Backward: jvp returned {len(found)} tangents for {len(outputs)} outputs of forward"
        )
    for out, t in zip(outputs, found):
        if t is not None and _is_float(out):
            if tuple(t.shape) != tuple(out.shape):
                raise RuntimeError(
                    f"{cls.__name__}: jvp returned a tangent of shape {list(t.shape)} for an output of shape {list(out.shape)}"
                )
            level.give(out, t)
    return result


install("dual", _custom)
_AUGMENTED = {"iadd", "isub", "imul", "itruediv", "ipow", "ifloordiv", "imod"}


def enter_dual_level():
    """Open a level. RuntimeError inside another one."""
    if _levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    level = _Level()
    level.__enter__()
    _levels.append(level)
    return 0


def exit_dual_level(*, level=None):
    """Close the level: its tangents are gone. RuntimeError when none is open."""
    if not _levels:
        raise RuntimeError("Trying to exit a forward AD level but no level is active")
    _levels.pop().__exit__(None, None, None)


class dual_level:  # noqa: N801 - PyTorch's name
    """Context in which tensors may carry tangents."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *exc):
        exit_dual_level()
        return False


def make_dual(tensor, tangent, *, level=None):
    """An alias of ``tensor`` that carries ``tangent`` (same shape and dtype) in the open level. RuntimeError without one, ValueError for integers."""
    if not _levels:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, t in (("primal", tensor), ("tangent", tangent)):
        if not _is_float(t):
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
    out = aten.alias.default(tensor)
    _levels[-1].give(out, tangent)
    return out


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor; the tangent is None for one without, and outside a level."""
    tangent = _levels[-1].tangent(tensor) if _levels else None
    return UnpackedDualTensor(tensor if tangent is None else aten.alias.default(tensor), tangent)


@wrap_function
def pulled(func, primals, cotangents):
    """The gradients of ``func`` at ``primals`` along ``cotangents`` as one function of both: tangents are pushed through it as a whole."""
    return vjp(func, *primals)[1](cotangents)
