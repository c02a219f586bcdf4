"""The Functionalize key: tensors that look mutable to whoever holds them and never are underneath.

A :class:`FunctionalTensor` carries a :class:`Value` as its payload. Calls on it arrive here below autograd, run on
the Values, and what is underneath (plain, fake, or traced by a mode) sees functional operators only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ..base import pytree
from ..core import dispatch
from ..core import keys as K
from ..core.layouts import refuse_overlap
from ..core.operator import OpOverload, namespace
from ..core.tensor import Tensor
from .values import Memory, Value, call

__all__ = ["FunctionalTensor", "functionalize"]


class FunctionalTensor(Tensor):
    """``FunctionalTensor.wrap(tensor)``; ``unwrap`` gives the contents now."""

    __torch_function__ = _C._disabled_torch_function_impl

    @classmethod
    def wrap(cls, value: Any) -> FunctionalTensor:
        """A wrapper of a tensor, or of a Value."""
        value = value if isinstance(value, Value) else Value(Memory(value))
        t = value.tensor
        out = _C.without_data(
            cls, tuple(t.shape), tuple(t.stride()), t.dtype, t.device, t.storage_offset(), value.memory.storage
        )
        value.memory.storage = out._storage
        out._payload = value
        out._keys = out._keys | K.FUNCTIONALIZE
        return out

    def is_conj(self) -> bool:
        return self._odd("_conj")

    def is_neg(self) -> bool:
        return self._odd("_neg_view")

    def _odd(self, name: str) -> bool:
        """Whether an odd number of such views leads from the memory to here."""
        op = getattr(namespace("aten"), name).default
        return sum(link[0] is op for link in self._payload.chain) % 2 == 1

    def unwrap(self) -> Any:
        return self._payload.tensor

    def __repr__(self, *, tensor_contents=None):
        return f"FunctionalTensor({self.unwrap()!r})"


def _payloads(a: Any) -> Any:
    if isinstance(a, FunctionalTensor):
        return a._payload
    if isinstance(a, (list, tuple)):
        return type(a)(map(_payloads, a)) if type(a) in (list, tuple) else list(map(_payloads, a))
    return a


def _handler(op: OpOverload, keys: int, args: tuple, kwargs: dict) -> Any:
    if op.kind in ("inplace", "out"):
        for argument, a in zip(op._schema.arguments, op.full(*args, **kwargs)):
            if argument.is_write and isinstance(a, _C.TensorBase):
                refuse_overlap(op, a._shape, a._strides)
    values = tuple(map(_payloads, args))
    named = {k: _payloads(v) for k, v in kwargs.items()}
    with dispatch.excluding(K.AUTOGRAD):
        out = call(op, values, named)
    given = {id(a._payload): a for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, FunctionalTensor)}
    if op._schema.is_mutable:
        for argument, a in zip(op._schema.arguments, op.full(*args, **kwargs)):
            if argument.is_write and isinstance(a, _C.TensorBase):
                a._bump_version()
    return _wrapped(out, given)


def _wrapped(v: Any, given: dict[int, FunctionalTensor]) -> Any:
    if isinstance(v, Value):
        known = given.get(id(v))
        return FunctionalTensor.wrap(v) if known is None else known
    if isinstance(v, (list, tuple)):
        return type(v)(_wrapped(x, given) for x in v)
    return v


dispatch.install(K.FUNCTIONALIZE, _handler)


def functionalize(fn: Callable) -> Callable:
    """``fn`` run without in-place operators: what it wrote to its arguments is copied into them at the end
    (torch.func.functionalize).
    """

    @functools.wraps(fn)
    def run(*args, **kwargs):
        made: dict[int, tuple[Any, FunctionalTensor]] = {}

        def wrap(a):
            if isinstance(a, _C.TensorBase):
                return made.setdefault(id(a), (a, FunctionalTensor.wrap(a)))[1]
            return a

        inner_args, inner_kwargs = pytree.tree_map(wrap, (args, kwargs))
        out = fn(*inner_args, **inner_kwargs)
        for original, wrapped in made.values():
            if wrapped._payload.memory.version:
                namespace("aten").copy_(original, wrapped.unwrap())
        back = {id(w): t for t, w in made.values()}

        def unwrap(a):
            return back.get(id(a), a.unwrap()) if isinstance(a, FunctionalTensor) else a

        return pytree.tree_map(unwrap, out)

    return run
