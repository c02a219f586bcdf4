"""autograd.functional beside PyTorch."""

import importlib

import numpy as np
import pytest

import flambeau


def _facts(lib):
    F = importlib.import_module(f"{lib.__name__}.autograd.functional")
    x, y = lib.tensor([0.3, -0.5]), lib.tensor([1.0, 2.0, 3.0])
    two = lambda a, b: (a.sin()[:, None] * b, a.sum() * 2)  # noqa: E731
    one = lambda a, b: (a.exp().sum() * b.pow(2)).sum()  # noqa: E731
    v = (lib.tensor([1.0, 2.0]), lib.tensor([0.5, 0.0, 1.0]))
    out = [
        F.jacobian(lambda a: a.exp(), x),
        F.jacobian(two, (x, y)),
        F.hessian(lambda a: a.pow(3).sum(), x),
        F.hessian(one, (x, y)),
        F.vjp(two, (x, y), (lib.ones(2, 3), lib.tensor(1.0))),
        F.jvp(two, (x, y), v),
        F.vhp(one, (x, y), v),
        F.hvp(one, (x, y), v),
        F.vjp(lambda a: lib.tensor(1.0), x),
    ]
    x.requires_grad_()
    F.jacobian(lambda a: a.pow(3), x, create_graph=True).sum().backward()
    errors = []
    for call in (
        lambda: F.hessian(lambda a: a, x),
        lambda: F.jvp(lambda a: a, x),
        lambda: F.jvp(lambda a: a, x, lib.ones(3)),
        lambda: F.vjp(lambda a: lib.tensor(1.0), x, strict=True),
        lambda: F.jacobian(lambda a: 3, x),
    ):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call()
        errors.append(type(caught.value))
    return _flat((*out, x.grad)), errors


def _flat(x):
    return [v for part in x for v in _flat(part)] if isinstance(x, tuple | list) else [x.detach().numpy()]


def test_a_jacobian_is_diagonal():
    assert np.allclose(_facts(flambeau)[0][0], np.diag(np.exp([0.3, -0.5])))


@pytest.mark.parity
def test_beside_pytorch():
    torch = pytest.importorskip("torch")
    (expected, errors), (got, here) = _facts(torch), _facts(flambeau)
    assert errors == here and len(expected) == len(got)
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_switches_of_the_native_module_are_real():
    native = importlib.import_module("flambeau._C")
    before = flambeau.is_grad_enabled()
    try:
        native._set_grad_enabled(False)
        assert not flambeau.is_grad_enabled()
    finally:
        native._set_grad_enabled(before)


def test_an_import_by_another_name_leaves_the_function():
    package = importlib.import_module("flambeau.autograd")
    package.gradcheck_before = package.gradcheck
    package.gradcheck = importlib.import_module("flambeau.autograd.gradcheck")
    assert callable(package.gradcheck) and package.gradcheck is package.gradcheck_before
    del package.gradcheck_before
