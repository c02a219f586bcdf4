"""Numba's decorators, for programs that were written for it: ``import flambeau.numba as numba``.

``njit`` and ``jit`` are ``flambeau.compile`` under Numba's options, ``prange`` is ``range`` (turns that are independent are spread over threads
anyway), ``vectorize`` and ``guvectorize`` make functions of arrays. docs/guide/from-numba.md says what is different.
"""

from __future__ import annotations

from ..base.nearest import Absent
from ..base.threads import get_num_threads, set_num_threads
from . import types
from .dispatchers import jit, njit
from .ufuncs import guvectorize, vectorize

__all__ = ["get_num_threads", "guvectorize", "jit", "njit", "prange", "set_num_threads", "types", "vectorize"]

prange = range
"""A range: loops over it are parallel where flambeau shows that their turns are independent, and give the same results where not."""

_NOT_BUILT = frozenset(
    "cfunc cuda experimental extending generated_jit gdb jit_module literal_unroll literally objmode pndindex stencil typed typeof".split()
)


def __getattr__(name: str):
    if name in types.NAMES:
        return types.NAMES[name]
    if name in _NOT_BUILT:
        raise NotImplementedError(f"numba.{name} isn't built in flambeau.numba")
    raise AttributeError(
        Absent(f"module 'flambeau.numba' has no attribute '{name}'", name, lambda: [*__all__, *types.NAMES])
    )
