"""Loops of NumPy's and SciPy's functions of elements that graphs run without Python (the kernel "ufunc" of csrc/kernels/special.c)."""

from __future__ import annotations

import functools

import numpy

from .. import _runtime
from .elements import pair_function

__all__ = ["NAMES", "ready", "slot_of"]

# Name -> operands and results, where f stands for the floating type; a slot is a place here, doubled, and one more for float64.
_PAIRS = ("gammainc", "gammaincc", "zeta")  # base/elements.py has them
_TYPES = {
    **dict.fromkeys(("j0", "j1", "y0", "y1", "i0", "i1", "k0", "k1", "k0e", "k1e"), "f->f"),
    **dict.fromkeys(_PAIRS, "ff->f"),
    "airy": "f->ffff",
    "frexp": "f->fi",
    "sin": "f->f",
}
NAMES = tuple(_TYPES)


def slot_of(name: str, wide: bool) -> int:
    """The slot of a function of float32, or (``wide``) float64."""
    return 2 * NAMES.index(name) + bool(wide)


@functools.cache
def ready(slot: int) -> None:
    """Hands the loop of a slot to the runtime. A graph that is read from a file asks for it too."""
    name, letter = NAMES[slot // 2], "fd"[slot % 2]
    fn = getattr(numpy, name, None)
    if name in _PAIRS:
        fn = pair_function(name)
    elif not isinstance(fn, numpy.ufunc):
        import scipy.special

        fn = getattr(scipy.special._ufuncs, name)
    _runtime.use_ufunc(slot, fn, _TYPES[name].replace("f", letter))
