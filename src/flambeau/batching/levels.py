"""Levels of vmap, and the tensors that are mapped at one.

Invariants: a BatchedTensor's batch dimension is dimension 0 of its value; the value of a tensor mapped at level n is
mapped at most at levels below n. Levels live on a stack of the thread; a tensor that outlives its level counts as its
value.
"""

from __future__ import annotations

from .. import _C
from ..core import keys as K
from ..core.dimensions import movedim
from ..core.operator import namespace
from ..core.tensor import Tensor

__all__ = [
    "BatchedTensor",
    "Level",
    "below",
    "conceal",
    "current",
    "expose",
    "innermost",
    "level",
    "movedim",
    "value_at",
    "wrap",
]

aten = namespace("aten")


class Level(_C.Guard):
    """One vmap: its depth (from 1), batch size and randomness ("error", "same", "different"). It runs while the block under it does."""

    def __init__(self, size: int, randomness: str = "error"):
        super().__init__(push="transforms")
        running = _C.innermost("transforms")
        self.number = 1 if running is None else running.number + 1
        self.size, self.randomness = size, randomness

    alive = _C.Guard.entered

    def __repr__(self):
        return f"Level({self.number}, size={self.size})"


def current() -> list[Level]:
    """The levels that are running, outermost first (a copy)."""
    return list(_C.stack("transforms"))


def level(size: int, randomness: str = "error") -> Level:
    """Context manager: a new innermost level for the duration."""
    return Level(size, randomness)


def below(lvl: Level):
    """Context manager: only the levels outside ``lvl`` are running for the duration: how a rule of ``lvl`` is run."""
    return _C.Guard(replace="transforms", value=[x for x in _C.stack("transforms") if x.number < lvl.number])


_REQUIRES_GRAD = (
    "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside "
    "of a function being "
    "transformed by a functorch transform. This is unsupported, please attempt to use the functorch transforms (e.g. "
    "grad, vjp, "
    "jacrev, jacfwd, hessian) or call requires_grad_() outside of a function being transformed instead."
)


class BatchedTensor(Tensor):
    """One example's shape outside, the batch inside: ``_payload`` is ``(value, level)``. Made by :func:`wrap`."""

    __torch_function__ = _C._disabled_torch_function_impl

    def __repr__(self, *, tensor_contents=None):
        value, lvl = self._payload
        body = repr(value).replace("\n", "\n    ")
        return f"BatchedTensor(lvl={lvl.number}, bdim=0, value=\n    {body}\n)"

    def is_conj(self):
        return self._payload[0].is_conj()

    def is_neg(self):
        return self._payload[0].is_neg()

    layout = property(lambda self: self._payload[0].layout)
    is_sparse = property(lambda self: self._payload[0].is_sparse)
    is_sparse_csr = property(lambda self: self._payload[0].is_sparse_csr)

    @property
    def requires_grad(self):
        return self._payload[0].requires_grad

    @requires_grad.setter
    def requires_grad(self, value):
        raise RuntimeError(_REQUIRES_GRAD)

    def requires_grad_(self, requires_grad=True):
        raise RuntimeError(_REQUIRES_GRAD)

    @property
    def data(self):
        return aten.detach.default(self)

    @data.setter
    def data(self, value):
        raise RuntimeError("vmap: setting .data of a mapped tensor is not supported; use copy_")


def wrap(value, lvl: Level) -> BatchedTensor:
    """``value`` mapped over its dimension 0 at ``lvl``."""
    out = _C.without_data(
        BatchedTensor,
        tuple(value._shape)[1:],
        tuple(value._strides)[1:],
        value._dtype,
        value._device,
        value._offset,
        value._storage,
    )
    out._payload = (value, lvl)
    out._keys |= K.TRANSFORM
    return out


def value_at(x, lvl: Level):
    """(value, True) when ``x`` is mapped at ``lvl``, else (x, False). Tensors of finished levels count as their
    value."""
    while isinstance(x, BatchedTensor):
        value, own = x._payload
        if own is lvl:
            return value, True
        if own.alive:
            return x, False
        x = value
    return x, False


def innermost(x):
    """What a tensor is made of below all levels."""
    while isinstance(x, BatchedTensor):
        x = x._payload[0]
    return x


def expose(x, levels: list[Level]):
    """``x`` with the batch dimensions of ``levels`` (the outermost ones running) in front of its shape, outermost
    first; where it isn't mapped, it is expanded. Mappings at other, inner levels stay."""
    if not levels:
        return x
    if isinstance(x, BatchedTensor):
        value, own = x._payload
        if not own.alive:
            return expose(value, levels)
        if own.number > levels[-1].number:
            return wrap(movedim(expose(value, levels), len(levels), 0), own)
    value, mapped = value_at(x, levels[-1])
    if not mapped:
        value = aten.expand.default(aten.unsqueeze.default(value, 0), [levels[-1].size, *value._shape])
    return expose(value, levels[:-1])


def conceal(x, levels: list[Level]):
    """Inverse of :func:`expose`: the leading dimensions become the batch dimensions of ``levels``."""
    if not levels:
        return x
    if isinstance(x, BatchedTensor) and x._payload[1].alive:
        value, own = x._payload
        return wrap(conceal(movedim(value, 0, len(levels)), levels), own)
    for lvl in levels:
        x = wrap(x, lvl)
    return x
