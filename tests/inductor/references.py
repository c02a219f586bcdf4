"""What NumPy and SciPy say a function of the scalar table is; those rows' own loops are the expansions under test."""

import numpy as np
import scipy.special

from flambeau.base.elements import FUNCTIONS
from flambeau.core.body import TABLE
from flambeau.inductor.exactness import EXACT

# Rows that are expansions, with bits of their own.
EXPANDED = {n for n, row in TABLE.items() if row.llvm.get("f", "").startswith("@") and n not in EXACT}

_NAMES = {
    "floordiv": "floor_divide",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "atan2": "arctan2",
}


def _trigamma(x):
    """By reflection below 0; nan at -inf."""
    wide = np.asarray(x, np.float64)
    up = scipy.special.zeta(2.0, np.where(wide < 0, 1 - wide, wide))
    reflected = (np.pi / np.sin(np.pi * (wide - np.rint(wide)))) ** 2 - up
    return np.where(wide < 0, reflected, up).astype(np.asarray(x).dtype)


_OWN = {
    "trigamma": _trigamma,
    "sigmoid": lambda x: np.reciprocal(np.exp(np.negative(x)) + 1.0),
    "normal_cdf": scipy.special.ndtr,
    "lgamma": lambda x: scipy.special.gammaln(np.where(x == -np.inf, np.inf, x)),
}


def independent(name):
    """A function of arrays."""
    if name not in FUNCTIONS:
        return TABLE[name].numpy
    found = _OWN.get(name) or getattr(np, _NAMES.get(name, name), None)
    return found if found is not None else getattr(scipy.special, name)
