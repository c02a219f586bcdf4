"""What a shape rule that a program registered asks for: sizes that only the values of the arguments tell."""

from __future__ import annotations

import contextlib
import contextvars
import warnings

from ..base.shape_checks import check, data_dependent_size
from ..base.symint import SymInt
from ..core.operator import OpOverload

__all__ = ["FakeImplCtx", "entered", "get_ctx"]


class FakeImplCtx:
    """What :func:`get_ctx` gives."""

    __slots__ = ("_op",)

    def __init__(self, op: OpOverload):
        self._op = op

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> SymInt:
        """A size of the result that depends on data, from ``min`` to ``max`` (None: without end), which is checked when the program runs.
        ValueError for bounds that are symbols or negative; DataDependentOutputException where no symbol may stand for a size."""
        call = f"ctx.new_dynamic_size(min={min}, max={max})"
        if isinstance(min, SymInt) or isinstance(max, SymInt):
            raise ValueError(
                f"{call}: expected min and max to be statically known ints but got SymInt. This is not supported."
            )
        if min < 0:
            raise ValueError(
                f"{call}: expected min to be greater than or equal to 0: this API can only create non-negative sizes."
            )
        size = data_dependent_size(self._op.name())
        if min > 0:
            check(size >= min)
        if max is not None:
            check(size <= max)
        return size

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> SymInt:
        """:meth:`new_dynamic_size` by its former name, with its former ``min``."""
        warnings.warn(
            "`create_unbacked_symint` is deprecated, please use `new_dynamic_size` instead", FutureWarning, stacklevel=2
        )
        return self.new_dynamic_size(min=min, max=max)


_current: contextvars.ContextVar[FakeImplCtx | None] = contextvars.ContextVar("fake_context", default=None)


@contextlib.contextmanager
def entered(op: OpOverload):
    """While a shape rule of ``op`` runs."""
    token = _current.set(FakeImplCtx(op))
    try:
        yield
    finally:
        _current.reset(token)


def get_ctx() -> FakeImplCtx | None:
    """Inside a function that was given to ``register_fake``: what makes sizes that depend on data. None elsewhere."""
    return _current.get()
