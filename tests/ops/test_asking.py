"""What requires a gradient: results of functions whose derivative PyTorch has, lacks, or gives as zeros; arguments that may not ask for one."""

import functools

import pytest

import flambeau as torch

X = [[0.25, 0.5], [0.75, 0.5]]
POLYNOMIALS = (
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he "
    "laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w"
).split()
BESSEL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 "
    "scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0"
).split()


def _of_degree_3(polynomial, x):
    return polynomial(x, 3)


# name: (function of a matrix that asks, what PyTorch does: "none" the result doesn't ask, "zeros", or the error of its backward)
ASKED = {
    **{name: (getattr(torch.special, name), "none") for name in BESSEL},
    **{name: (functools.partial(_of_degree_3, getattr(torch.special, name)), "none") for name in POLYNOMIALS},
    "degree of a polynomial": (lambda x: torch.special.legendre_polynomial_p(1.0, x), "none"),
    "linspace": (lambda x: torch.linspace(x[0, 0], x[1, 0], 3), "none"),
    "heaviside": (lambda x: torch.heaviside(x, x), "error"),
    "bernoulli": (torch.bernoulli, "zeros"),
    "normal, mean": (torch.normal, "zeros"),
    "normal, deviation": (lambda x: torch.normal(0.0, x), "zeros"),
    "poisson": (torch.poisson, "zeros"),
    "binomial": (lambda x: torch.binomial(torch.full((2, 2), 3.0), x), "zeros"),
    "sign": (torch.sign, "zeros"),
    "matrix_power 0": (lambda x: torch.matrix_power(x, 0), "zeros"),
    "unique": (torch.unique, "error"),
    "unique, counts": (lambda x: torch.unique(x, return_counts=True)[0], "error"),
    "unique rows": (lambda x: torch.unique(x, dim=0), "error"),
    "unique_consecutive": (torch.unique_consecutive, "error"),
    "counts": (lambda x: torch.unique(x, return_counts=True)[1], "none"),
    "zeta": (lambda x: torch.special.zeta(x + 2, 1.5), "error"),
    "igamma": (lambda x: torch.igamma(x, torch.ones(2, 2)), "error"),
    "argmax": (torch.argmax, "none"),
    "bucketize": (lambda x: torch.bucketize(x, torch.tensor([0.5])), "none"),
}


@pytest.mark.parametrize("name", ASKED)
def test_results(name):
    fn, want = ASKED[name]
    x = torch.tensor(X, requires_grad=True)
    y = fn(x)
    assert y.requires_grad is (want != "none")
    if want == "zeros":
        assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.zeros(2, 2))
    elif want == "error":
        with pytest.raises(NotImplementedError, match="not implemented"):
            y.sum().backward()


def _asks(*shape):
    return torch.ones(*shape, requires_grad=True)


NOT_DIFFERENTIABLE = {
    "weight": lambda: torch.nn.functional.nll_loss(torch.zeros(2, 3), torch.tensor([0, 1]), _asks(3)),
    "rtol": lambda: torch.linalg.pinv(torch.eye(2), rtol=torch.tensor(1e-5, requires_grad=True)),
}


@pytest.mark.parametrize("argument", NOT_DIFFERENTIABLE)
def test_arguments_that_may_not_ask(argument):
    with pytest.raises(RuntimeError, match=f"not differentiable with respect to argument '{argument}'"):
        NOT_DIFFERENTIABLE[argument]()
    with torch.no_grad():
        NOT_DIFFERENTIABLE[argument]()


PHASES = {
    "svd_backward: The singular vectors": lambda a: torch.linalg.svd(a)[0],
    "svd_backward: The singular": lambda a: torch.linalg.svd(a)[2],
    "linalg_eigh_backward: The eigenvectors": lambda a: torch.linalg.eigh(a)[1],
    "linalg_eig_backward: The eigenvectors": lambda a: torch.linalg.eig(a)[1],
}


@pytest.mark.parametrize("words", PHASES)
def test_phases_that_nothing_determines_are_refused(words):
    a = torch.complex(torch.tensor(X), torch.tensor([[0.1, 0.7], [-0.4, 0.3]])).requires_grad_()
    fn = PHASES[words]
    with pytest.raises(RuntimeError, match=words):
        fn(a).real.sum().backward()
    fn(a).abs().sum().backward()  # these don't depend on them


def test_what_goes_back_to_real_numbers_is_real():
    """Without a warning about the imaginary part that isn't theirs."""
    x = torch.tensor(X, requires_grad=True)
    (x.to(torch.complex64) * (2 + 1j)).real.sum().backward()
    assert torch.equal(x.grad, torch.full((2, 2), 2.0))
    torch.zeros(2, 2, dtype=torch.complex64).mul(1).copy_(x).imag.sum().backward()
    assert torch.equal(x.grad, torch.full((2, 2), 2.0))
