"""The Functionalize key: tensors that look mutable from outside and never are underneath.

A :class:`FunctionalTensor` carries a :class:`FunctionalValue` as its payload. Calls on it arrive here below autograd, run on
the Values, and what is underneath (plain, fake, or traced by a mode) sees functional operators only."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from .. import _C
from ..base import pytree
from ..core import dispatch
from ..core import keys as K
from ..core.layouts import refuse_overlap
from ..core.operator import OpOverload, namespace
from ..core.tensor import Tensor
from .values import FunctionalValue, Memory, call
from .views import settings

__all__ = ["FunctionalTensor", "beneath", "crossref"]


class FunctionalTensor(Tensor):
    """``FunctionalTensor.wrap(tensor)``; ``unwrap`` gives the contents now."""

    __torch_function__ = _C._disabled_torch_function_impl

    @classmethod
    def wrap(cls, value: Any) -> FunctionalTensor:
        """A wrapper of a tensor, or of a FunctionalValue."""
        value = value if isinstance(value, FunctionalValue) else FunctionalValue(Memory(value))
        t = value.tensor
        out = _C.without_data(
            cls, tuple(t.shape), tuple(t.stride()), t.dtype, t.device, t.storage_offset(), value.memory.storage
        )
        value.memory.storage = out._storage
        out._payload = value
        out._keys = out._keys | K.FUNCTIONALIZE
        return out

    def asks_beneath(self) -> bool:
        """Whether what it holds asks for a gradient, and what runs beneath is recorded."""
        return settings.recorded and self.unwrap()._requires_grad

    def is_conj(self) -> bool:
        return self._odd("_conj")

    def is_neg(self) -> bool:
        return self._odd("_neg_view")

    def _odd(self, name: str) -> bool:
        """Whether an odd number of such views leads from the memory to here."""
        op = getattr(namespace("aten"), name).default
        return sum(link.op is op for link in self._payload.chain) % 2 == 1

    def unwrap(self) -> Any:
        """The contents now."""
        with beneath():
            return self._payload.tensor

    def sync(self) -> Any:
        """The contents now, as a view of what its memory holds: aliases of one memory stay aliases."""
        with beneath():
            return self._payload.sync()

    @staticmethod
    def to_functional(value: Any) -> Any:
        """A wrapper of a tensor; a functional tensor and what isn't a tensor as they are."""
        if not isinstance(value, _C.TensorBase) or isinstance(value, FunctionalTensor):
            return value
        out = FunctionalTensor.wrap(value)
        out.requires_grad = value.requires_grad
        return out

    def __repr__(self, *, tensor_contents=None):
        return f"FunctionalTensor({self.unwrap()!r})"


def _payloads(a: Any) -> Any:
    if isinstance(a, FunctionalTensor):
        return a._payload
    if isinstance(a, (list, tuple)):
        return type(a)(map(_payloads, a)) if type(a) in (list, tuple) else list(map(_payloads, a))
    return a


def _handler(op: OpOverload, keys: int, args: tuple, kwargs: dict) -> Any:
    given = {id(a._payload): a for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, FunctionalTensor)}
    if op._schema.is_mutable and not given:
        # Switched on for all calls; a write among tensors that aren't functional stays one.
        with beneath():
            return op(*args, **kwargs)
    if op.kind in ("inplace", "out"):
        for argument, a in zip(op._schema.arguments, op.full(*args, **kwargs)):
            if argument.is_write and isinstance(a, _C.TensorBase):
                refuse_overlap(op, a._shape, a._strides)
    values = tuple(map(_payloads, args))
    named = {k: _payloads(v) for k, v in kwargs.items()}
    with beneath():
        out = call(op, values, named)
    if op._schema.is_mutable:
        for argument, a in zip(op._schema.arguments, op.full(*args, **kwargs)):
            if argument.is_write and isinstance(a, _C.TensorBase):
                a._bump_version()
    out = _wrapped(out, given)
    if crossref.on:
        _compare(op, out)
    return out


def _wrapped(v: Any, given: dict[int, FunctionalTensor]) -> Any:
    if isinstance(v, FunctionalValue):
        known = given.get(id(v))
        return FunctionalTensor.wrap(v) if known is None else known
    if isinstance(v, (list, tuple)):
        return type(v)(_wrapped(x, given) for x in v)
    return v


@contextlib.contextmanager
def beneath() -> Iterator[None]:
    """What runs in the block is below autograd (but for what is to be recorded there), and functional only where its tensors are."""
    included, excluded = _C.tls("included"), _C.tls("excluded")
    _C.tls("excluded", excluded & ~K.AUTOGRAD if settings.recorded else excluded | K.AUTOGRAD)
    _C.tls("included", included & ~K.FUNCTIONALIZE)
    try:
        yield
    finally:
        _C.tls("included", included)
        _C.tls("excluded", excluded)


class _Crossref(threading.local):
    on = False


crossref = _Crossref()


def _compare(op: OpOverload, out: Any) -> None:
    """AssertionError when a wrapper describes itself otherwise than what it holds."""
    for t in pytree.tree_leaves(out):
        if isinstance(t, FunctionalTensor):
            held = t.unwrap()
            for name in ("shape", "dtype", "device"):
                if getattr(t, name) != getattr(held, name):
                    raise AssertionError(
                        f"functionalization of {op}: {name} is {getattr(t, name)} outside and {getattr(held, name)} inside"
                    )


def _run_bodies(op, args: tuple, kwargs: dict) -> Any:
    """A higher-order operator on functional tensors: its bodies are given functional tensors, and return what these hold."""
    included = _C.tls("included") & K.FUNCTIONALIZE

    def opened(x):
        if isinstance(x, FunctionalTensor):
            return x.unwrap()
        return body(x) if callable(x) and not isinstance(x, _C.TensorBase) else x

    def body(fn):
        def run(*operands):
            with _C.Guard(include=included):
                out = fn(*pytree.tree_map(FunctionalTensor.to_functional, operands))
            return pytree.tree_map(opened, out)

        return run

    args, kwargs = pytree.tree_map(opened, (args, kwargs))
    with beneath():
        out = op(*args, **kwargs)
    return pytree.tree_map(lambda x: FunctionalTensor.wrap(x) if isinstance(x, _C.TensorBase) else x, out)


def _check_function(cls: type, args: tuple) -> None:
    """RuntimeError for a custom Function whose backward would not be asked: its forward is recorded beneath, if anything is."""
    if any(isinstance(a, FunctionalTensor) and a.asks_beneath() for a in args):
        raise RuntimeError(f"functionalize: there is no rule for the custom autograd.Function {cls.__name__}")


dispatch.install(K.FUNCTIONALIZE, _handler)
dispatch.install("functional function", _check_function)
dispatch.install("functional bodies", _run_bodies)
