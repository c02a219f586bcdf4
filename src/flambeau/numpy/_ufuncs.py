"""``torch._numpy._ufuncs``: NumPy's universal functions that tensors have an implementation of."""

from __future__ import annotations

import numpy as np

from .ndarrays import attribute, implemented

# Second names that NumPy 2 brought, and functions of dtypes that tensors don't have.
_LEFT_OUT = frozenset(
    "acos acosh asin asinh atan atan2 atanh bitwise_count bitwise_invert bitwise_left_shift bitwise_right_shift isnat pow spacing".split()
)


def _names(inputs: int) -> list[str]:
    """Names of those with so many arguments."""
    return [
        n
        for n, f in sorted(vars(np).items())
        if isinstance(f, np.ufunc)
        and f.nin == inputs
        and (inputs > 1 or f.nout == 1)
        and n not in _LEFT_OUT
        and implemented(f)
    ]


_unary, _binary = _names(1), _names(2)
_unary.append("fix")  # a plain function of NumPy's
# Names come from NumPy's table.
__all__ = [*_unary, *_binary]  # noqa: PLE0604
globals().update({name: attribute(name) for name in __all__})
