"""SciPy's functions in captured code: called as they are, like NumPy's (see :mod:`opaque`), with the derivatives of ATen's operators.

Entered when the program has imported the module; this file imports none of them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..core.operator import namespace
from ..core.tensor import Tensor
from ..dynamo.numpy import numpy_bridge
from .graph_calls import FUNCTIONS_BY_MODULE
from .opaque import DIFFERENTIABLE, opaque

aten = namespace("aten")

FUNCTIONS_BY_MODULE.update(
    {
        "scipy.special": "logsumexp softmax log_softmax comb factorial multigammaln",
        "scipy.linalg": "cholesky det eigh eigvalsh expm inv solve solve_triangular svdvals toeplitz",
        "scipy.signal": "convolve convolve2d correlate correlate2d detrend fftconvolve hilbert lfilter medfilt oaconvolve savgol_filter sosfilt",
    }
)


def logsumexp(
    a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None, keepdims: bool = False
) -> Tensor:
    """scipy.special.logsumexp without weights."""
    if b is not None:
        raise NotImplementedError("scipy.special.logsumexp with weights has no derivative here")
    return aten.logsumexp(a, list(range(a.ndim)) if axis is None else axis, keepdims)


def _normalised(name):
    def normalised(x: ArrayLike, axis: int | Sequence[int] | None = None) -> Tensor:
        packet = getattr(aten, name)
        return packet(x, axis) if axis is not None else packet(x.reshape(-1), 0).reshape(x.shape)

    return normalised


def cholesky(a: ArrayLike, lower: bool = False) -> Tensor:
    """scipy.linalg.cholesky of a symmetric matrix."""
    factor = aten.linalg_cholesky(a)
    return factor if lower else factor.mH


def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False) -> Tensor:
    """scipy.linalg.solve_triangular; ``trans`` 1 or "T": with the transpose, 2 or "C": with the adjoint of what is triangular."""
    if trans not in (0, "N"):
        a, lower = a.mT if trans in (1, "T") else a.mH, not lower
    out = aten.linalg_solve_triangular(a, b if b.ndim > 1 else b.unsqueeze(-1), upper=not lower)
    return out if b.ndim > 1 else out.squeeze(-1)


_SPECIAL = {
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "erfcx": "special_erfcx", "gammaln": "lgamma", "loggamma": "lgamma", "psi": "digamma",
    "digamma": "digamma", "expit": "sigmoid", "logit": "logit", "i0": "special_i0", "i0e": "special_i0e", "i1": "special_i1", "i1e": "special_i1e",
    "ndtr": "special_ndtr", "ndtri": "special_ndtri", "log_ndtr": "special_log_ndtr", "entr": "special_entr", "expm1": "expm1", "log1p": "log1p",
    "exp2": "exp2", "xlogy": "xlogy", "xlog1py": "special_xlog1py", "zeta": "special_zeta",
}  # fmt: skip

DIFFERENTIABLE.update(
    {f"scipy.special.{f}": (op, 2 if f in ("xlogy", "xlog1py", "zeta") else 1, {}) for f, op in _SPECIAL.items()}
)
DIFFERENTIABLE.update(
    {
        "scipy.special.logsumexp": logsumexp,
        "scipy.special.softmax": _normalised("softmax"),
        "scipy.special.log_softmax": _normalised("log_softmax"),
        "scipy.linalg.cholesky": cholesky,
        "scipy.linalg.solve_triangular": solve_triangular,
        "scipy.linalg.solve": ("linalg_solve", 2, {}),
        "scipy.linalg.inv": ("linalg_inv", 1, {}),
        "scipy.linalg.det": ("linalg_det", 1, {}),
        "scipy.linalg.expm": ("linalg_matrix_exp", 1, {}),
        "scipy.linalg.svdvals": ("linalg_svdvals", 1, {}),
        "scipy.linalg.eigvalsh": ("linalg_eigvalsh", 1, {}),
        "scipy.linalg.eigh": ("linalg_eigh", 1, {}),
    }
)
_entered: set[str] = set()


def enter() -> bool:
    """Enter the functions of SciPy's modules that are loaded. Whether there are new ones."""
    new = [m for m in ("scipy.special", "scipy.linalg", "scipy.signal") if m in sys.modules and m not in _entered]
    for module in new:
        _entered.add(module)
        where = sys.modules[module]
        names = FUNCTIONS_BY_MODULE[module].split()
        if module == "scipy.special":
            names += [n for n in dir(where) if isinstance(getattr(where, n), np.ufunc)]
        for name in names:
            f = getattr(where, name, None)
            if f is not None and id(f) not in numpy_bridge.functions:
                numpy_bridge.register(f, opaque(module, name))
    return bool(new)


numpy_bridge.late.append(enter)
