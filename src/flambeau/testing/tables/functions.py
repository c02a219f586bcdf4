"""Samples: special functions and orthogonal polynomials."""

import numpy as np
import scipy.special as special

from ..samples import T, apart, call, f, fixed, i, pos, row, unit


def one(make, *rest):
    return [call(make(2, 3), *rest), call(T(make(3, 2)), *rest), call(make(0, 3), *rest)]


_inside = lambda *s: unit(*s) * 0.5 + 0.5  # noqa: E731 - (0.05, 0.95)
row("i0", one(f), special.i0)
row("special_modified_bessel_i0 special_modified_bessel_i1", one(f), [special.i0, special.i1], grad=())
row("special_bessel_j0 special_bessel_j1", one(f), [special.j0, special.j1], grad=(), rtol=1e-7)
row("special_bessel_y0 special_bessel_y1", one(pos), [special.y0, special.y1], grad=(), rtol=1e-7)
row("special_modified_bessel_k0 special_modified_bessel_k1", one(pos), [special.k0, special.k1], rtol=1e-7, grad=())
row("special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1", one(pos), [special.k0e, special.k1e], rtol=1e-7, grad=())
row("special_spherical_bessel_j0", one(pos), lambda x: special.spherical_jn(0, x), rtol=1e-7, grad=())
row("special_airy_ai", one(f), lambda x: special.airy(x)[0], rtol=1e-7, grad=())
row("special_digamma special_psi", one(pos), [special.digamma] * 2)
row("special_erf special_erfc", one(f), [special.erf, special.erfc])
row("special_erfinv", one(unit), special.erfinv)
row("special_exp2 special_expm1 special_expit", one(f), [np.exp2, np.expm1, special.expit])
row("special_gammaln", one(pos), special.gammaln)
row("special_log1p", one(pos), np.log1p)
row("special_logit", one(_inside), lambda x, eps=None: special.logit(x))
row("special_ndtr", one(f), special.ndtr)
row("special_sinc", one(f), np.sinc)
row("special_round", [call(apart(2, 3)), fixed(apart(2, 3), decimals=1)], lambda x, decimals=0: np.round(x, decimals))
row("special_softmax special_log_softmax", [call(f(2, 3), 1), call(f(3), 0)], [special.softmax, special.log_softmax])
row("igamma special_gammainc", [call(pos(2, 3), pos(3)), call(pos(3), pos(3))], [special.gammainc] * 2, grad=(1,))
row("igammac special_gammaincc", [call(pos(2, 3), pos(3)), call(pos(3), pos(3))], [special.gammaincc] * 2, grad=(1,))
row("mvlgamma special_multigammaln", [call(pos(2, 3) + 2, 2), call(pos(3) + 2, 3)], [special.multigammaln] * 2)
row("polygamma special_polygamma", [call(n, pos(2, 3)) for n in (0, 1, 2, 3)], [special.polygamma] * 2, rtol=1e-8)
row("special_xlogy", [call(f(2, 3), pos(3)), call(f(3), pos(3))], special.xlogy)
row("special_xlogy.self_scalar", [call(2.0, pos(2, 3))], special.xlogy)
row("special_xlog1py.self_scalar", [call(2.0, pos(2, 3))], special.xlog1py)
row("special_xlog1py.other_scalar", [call(f(2, 3), 2.0)], special.xlog1py)
row("special_xlogy.other_scalar", [call(f(2, 3), 2.0)], special.xlogy)
row("special_zeta", [call(pos(2, 3) + 1.5, pos(3))], special.zeta, grad=(1,), rtol=1e-8)
row("special_zeta.self_scalar", [call(2.5, pos(2, 3))], special.zeta, rtol=1e-8)
row("special_zeta.other_scalar", [call(pos(2, 3) + 1.5, 2.0)], special.zeta, grad=(), rtol=1e-8)

_degrees = np.array([0, 1, 2, 3, 5])
_POLYNOMIALS = {
    "chebyshev_polynomial_t": special.eval_chebyt, "chebyshev_polynomial_u": special.eval_chebyu, "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm, "laguerre_polynomial_l": special.eval_laguerre, "legendre_polynomial_p": special.eval_legendre,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt, "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    # of the third and fourth kind: by their trigonometric forms
    "chebyshev_polynomial_v": lambda n, x: np.cos((n + 0.5) * np.arccos(x)) / np.cos(np.arccos(x) / 2),
    "chebyshev_polynomial_w": lambda n, x: np.sin((n + 0.5) * np.arccos(x)) / np.sin(np.arccos(x) / 2),
    "shifted_chebyshev_polynomial_v": lambda n, x: np.cos((n + 0.5) * np.arccos(2 * x - 1)) / np.cos(np.arccos(2 * x - 1) / 2),
    "shifted_chebyshev_polynomial_w": lambda n, x: np.sin((n + 0.5) * np.arccos(2 * x - 1)) / np.sin(np.arccos(2 * x - 1) / 2),
}  # fmt: skip
for _name, _value in _POLYNOMIALS.items():
    _x = _inside if "shifted" in _name else unit
    row(f"special_{_name}", [call(_x(5), _degrees), call(_x(2, 3), i(3, high=6))], lambda x, n, value=_value: value(n, x), grad=(), rtol=1e-8)
    row(f"special_{_name}.x_scalar", [call(0.3, _degrees)], lambda x, n, value=_value: value(n, x), grad=(), rtol=1e-6)
    row(f"special_{_name}.n_scalar", [call(_x(2, 3), 4)], lambda x, n, value=_value: value(n, x), grad=(), rtol=1e-8)
