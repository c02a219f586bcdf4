"""``torch.special``, ``torch.linalg``, ``torch.fft``, ``torch.signal``: operators under another name, from their declarations."""

from __future__ import annotations

import types

from ..core.bindings import function
from ..core.declare import EXPOSED
from ..core.operator import namespace

__all__ = ["fft", "linalg", "signal", "special"]

# Names of torch.special that are operators of the root namespace.
_RENAMED = {
    "special": {
        "psi": "digamma",
        "expit": "sigmoid",
        "gammaln": "lgamma",
        "gammainc": "igamma",
        "gammaincc": "igammac",
        "multigammaln": "mvlgamma",
        **{
            n: n
            for n in "digamma erf erfc erfinv exp2 expm1 log1p logit round sinc xlogy softmax log_softmax polygamma i0 logsumexp".split()
        },
    },
    "linalg": {"diagonal": "diagonal", "matmul": "matmul", "matrix_exp": "matrix_exp", "vecdot": "linalg_vecdot"},
    "fft": {},
    "signal": {},
}


# Names that programs import; those without an operator (yet) refuse when they are called.
_KNOWN = {
    "special": "",
    "linalg": "cholesky cholesky_ex cond cross det diagonal eig eigh eigvals eigvalsh householder_product inv inv_ex ldl_factor ldl_factor_ex "
    "ldl_solve lstsq lu lu_factor lu_factor_ex lu_solve matmul matrix_exp matrix_norm matrix_power matrix_rank multi_dot norm pinv qr slogdet "
    "solve solve_ex solve_triangular svd svdvals tensorinv tensorsolve vander vecdot vector_norm",
    "fft": "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn "
    "rfftfreq",
    "signal": "",
}


def _refuse(path: str):
    def missing(*args, **kwargs):
        raise NotImplementedError(f"{path} is not implemented in flambeau")

    missing.__name__ = path.rpartition(".")[2]
    return missing


def _build(place: str) -> types.ModuleType:
    module = types.ModuleType(f"flambeau.{place}", f"torch.{place}, from the operators' declarations.")
    aten = namespace("aten")

    def operator(name: str) -> str | None:
        for opname in (EXPOSED.get(place, {}).get(name), f"{place}_{name}", _RENAMED[place].get(name)):
            if opname and aten._packet(opname) is not None:
                return opname
        return None

    def __getattr__(name):
        opname = None if name.startswith("_") else operator(name)
        if opname is None and name in known_names:
            made = module.__dict__[name] = _refuse(f"torch.{place}.{name}")
            return made
        if opname is None:
            raise AttributeError(f"module 'torch.{place}' has no attribute {name!r}", name=name, obj=module)
        made = module.__dict__[name] = function(opname, name)
        return made

    prefix = f"{place}_"
    known_names = set(_KNOWN[place].split())
    known = {n for n in aten._packets if n.startswith(prefix)}
    names = sorted({*EXPOSED.get(place, {}), *(n.removeprefix(prefix) for n in known), *_RENAMED[place]})
    names = [n for n in names if operator(n) is not None]
    module.__dict__.update(__getattr__=__getattr__, __all__=names, __dir__=lambda: sorted({*module.__dict__, *names}))
    return module


special, linalg, fft, signal = map(_build, ("special", "linalg", "fft", "signal"))
linalg.LinAlgError = type(
    "LinAlgError",
    (RuntimeError,),
    {"__module__": "flambeau.linalg", "__doc__": "A matrix that the algorithm can't take."},
)
