"""Orthogonal parametrizations: orthonormal rows or columns, the first value, assignment."""

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.nn.utils.parametrizations import orthogonal

SHAPES = [(3, 3), (4, 2), (2, 4), (2, 3, 3), (2, 5, 3)]
MAPS = ["matrix_exp", "cayley", "householder"]


def _module(shape, dtype=flambeau.float64):
    flambeau.manual_seed(0)
    module = nn.Module()
    module.weight = nn.Parameter(flambeau.randn(shape, dtype=dtype))
    return module


def _assert_orthonormal(q):
    tall = q if q.shape[-2] >= q.shape[-1] else q.mT
    product = (tall.mH @ tall).detach().numpy()
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(tall.shape[-1]), product.shape), atol=1e-12)


@pytest.mark.parametrize("trivial", [True, False])
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_orthonormal_before_and_after_a_step(shape, name, trivial):
    module = orthogonal(_module(shape), orthogonal_map=name, use_trivialization=trivial)
    _assert_orthonormal(module.weight)
    assert ("parametrizations.weight.0.base" in module.state_dict()) is trivial
    optimizer = flambeau.optim.SGD(module.parameters(), 0.1)
    before = module.weight.detach().clone()
    (module.weight * flambeau.arange(before.numel(), dtype=before.dtype).reshape(shape)).sum().backward()
    optimizer.step()
    _assert_orthonormal(module.weight)
    assert (module.weight - before).abs().max() > 1e-3


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MAPS)
def test_an_assigned_matrix_is_the_value(shape, name):
    wanted = orthogonal(_module(shape), orthogonal_map="householder").weight.detach().clone()
    module = orthogonal(_module(shape), orthogonal_map=name)
    module.weight = wanted
    np.testing.assert_allclose(module.weight.detach().numpy(), wanted.numpy(), atol=1e-12)


def test_complex_matrices_are_unitary():
    _assert_orthonormal(orthogonal(_module((3, 3), flambeau.complex128)).weight)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: orthogonal(nn.Linear(2, 2), orthogonal_map="x"), ValueError, "orthogonal_map has to be one of"),
        (lambda: orthogonal(nn.Linear(2, 2), "bias"), ValueError, "Expected a matrix or batch of matrices"),
        (lambda: orthogonal(nn.Linear(2, 2), "nothing"), ValueError, "has no parameter or buffer with name"),
        (lambda: orthogonal(_module((2, 2), flambeau.complex64), orthogonal_map="householder"), ValueError, "complex"),
        (
            lambda: setattr(
                orthogonal(_module((2, 2)), orthogonal_map="cayley", use_trivialization=False),
                "weight",
                flambeau.eye(2, dtype=flambeau.float64),
            ),
            NotImplementedError,
            "not possible to assign",
        ),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
