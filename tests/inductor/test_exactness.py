"""Which operators' graphs give the very bits of eager's loops: the answer for each, and the bits where it is yes."""

import pytest
from tests.cuda.kernels import program_of

import flambeau as torch
from flambeau.inductor.exactness import is_exact
from flambeau.inductor.single import find

A = torch.ops.aten
X = torch.linspace(-3, 3, 600).reshape(20, 30)
N = torch.arange(600).reshape(20, 30) % 17
C = torch.complex(X, X.flip(0))
INDEX = torch.arange(20) % 3

EXACT = [
    (A.add.Tensor, (X, X)),
    (A.add.Tensor, (C, C)),
    (A.neg.default, (C,)),
    (A.lerp.Scalar, (X, X.flip(0), 0.3)),
    (A.sqrt.default, (X.abs(),)),
    (A.rsqrt.default, (X.abs(),)),
    (A.sin.default, (X,)),  # the compiler's expansion is eager's loop
    (A.exp.default, (X.double(),)),
    (A.gelu.default, (X,)),
    (A.where.self, (X > 0, X, X.flip(0))),
    (A.remainder.Tensor, (X, X.flip(0))),
    (A.sum.default, (N,)),
    (A.sum.default, (X > 0,)),
    (A.prod.default, (N + 1,)),
    (A.any.default, (X > 2,)),
    (A.amax.default, (X,)),
    (A.argmax.default, (X,)),
    (A.max.dim, (X, 1)),
    (A.index_add.default, (X, 0, INDEX, X)),
    (A.gather.default, (X, 0, N)),
    (A.eye.default, (5,)),
    (A.arange.default, (50,)),
]
NOT = [
    (A.pow.Tensor_Tensor, (X, X)),
    (A.mul.Tensor, (C, C)),
    (A.sum.default, (X,)),  # another order
    (A.mean.dim, (X, [0])),
    (A.prod.default, (X,)),
    (A._softmax.default, (X, 1, False)),  # its parts are both
    (A.mm.default, (X, X.t())),
    (A.addmm.default, (torch.ones(20, 20), X, X.t())),
    (A.logspace.default, (0, 1, 5)),
]


def named(calls):
    return pytest.mark.parametrize("op, args", calls, ids=[f"{op}-{k}" for k, (op, _) in enumerate(calls)])


@named(EXACT)
def test_exact(op, args):
    assert is_exact(program_of(op, op.full(*args)))
    graph, _ = find(op, op.full(*args), True, exact=True)
    found, expected = graph(*[x for x in args if isinstance(x, torch.Tensor)]), op(*args)
    for a, b in zip(found, expected if isinstance(expected, tuple) else [expected]):
        assert a.dtype is b.dtype and a.numpy().tobytes() == b.numpy().tobytes()


@named(NOT)
def test_not_exact(op, args):
    assert not is_exact(program_of(op, op.full(*args)))
    assert find(op, op.full(*args), True, exact=True) is None
