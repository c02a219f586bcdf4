"""What public functions return and refuse, beyond values."""

import copy
import pickle

import numpy as np
import pytest

import flambeau as torch


def test_named_results():
    r = torch.max(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)
    assert r.values.tolist() == [2.0, 4.0] and r.indices.tolist() == [1, 0]
    assert isinstance(r, torch.return_types.max) and repr(r).startswith("torch.return_types.max(\nvalues=")


def test_classes_of_named_results_take_a_sequence():
    cls, pair = torch.return_types.max, (torch.ones(2), torch.zeros(2))
    made = [cls(pair), cls(list(pair)), cls(x for x in pair), cls(sequence=pair), cls(pair, {}), type(cls(pair))(pair)]
    assert all(type(r) is cls and r.values is pair[0] and r.indices is pair[1] for r in made)
    assert cls(1, None) == (1, None) and torch.return_types.linalg_svd((1, 2, 3)) == (
        1,
        2,
        3,
    ) == torch.return_types.linalg_svd(1, 2, 3)
    assert (cls.n_fields, cls.n_sequence_fields, cls.n_unnamed_fields) == (2, 2, 0)
    assert type(copy.deepcopy(made[0])) is type(pickle.loads(pickle.dumps(made[0]))) is cls
    for arguments, words in {
        (pair[:1],): r"torch.return_types.max\(\) takes a 2-sequence \(1-sequence given\)",
        ((*pair, 1),): r"torch.return_types.max\(\) takes a 2-sequence \(3-sequence given\)",
        (5,): "constructor requires a sequence",
    }.items():
        with pytest.raises(TypeError, match=words):
            cls(*arguments)

    def doubled(x):
        found = torch.max(x, 0)
        return cls((found.values * 2, found.indices)), type(found)(*found)

    x = torch.tensor([[1.0, 5.0], [3.0, 2.0]])
    a, b = torch.compile(doubled, backend="eager", fullgraph=True)(x)
    assert type(a) is type(b) is cls and a.values.tolist() == [6, 10] and b.indices.tolist() == [1, 0]


@pytest.mark.parametrize("shape", [(1,), (2,), (2, 2), (0,)])
def test_what_fills_is_one_value(shape):
    x, value = torch.zeros(2), torch.ones(shape)
    words = f"fill_ only supports 0-dimension value tensor but got tensor with {len(shape)} dimensions."
    filled = lambda x, value: x.clone().fill_(value)  # noqa: E731
    for call in (
        lambda: x.fill_(value),
        lambda: torch.fill(x, value),
        lambda: torch.ops.aten.fill.Tensor_out(x, value, out=torch.zeros(2)),
        lambda: x.to("meta").fill_(value.to("meta")),
        lambda: torch.vmap(filled, in_dims=(0, None))(torch.zeros(3, 2), value),
        lambda: torch.compile(filled, backend="eager")(x, value),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    assert x.tolist() == [0, 0]


def test_each_example_is_filled_with_its_value():
    x, value = torch.zeros(2, 3), torch.tensor([1.0, 2.0])
    for fn in (lambda x, v: x.clone().fill_(v), torch.fill):
        assert torch.vmap(fn)(x, value).tolist() == [[1, 1, 1], [2, 2, 2]]
        grad = torch.func.grad(lambda v: (torch.vmap(fn)(x, v) * torch.arange(6.0).view(2, 3)).sum())(value)
        assert grad.tolist() == [3, 12]
    assert torch.vmap(torch.fill, in_dims=(None, 0))(x, value).tolist() == [[[v] * 3] * 2 for v in (1, 2)]


def test_strides_that_are_no_whole_elements():
    with pytest.raises(ValueError, match="not a multiple of the element byte size"):
        torch.from_numpy(np.zeros(3, dtype=[("a", "i1"), ("b", "<f4")])["b"])


@pytest.mark.parametrize("fn", [lambda a, b: a // b, lambda a, b: a % b, lambda a, b: torch.fmod(a, b)])
def test_integers_divided_by_zero(fn):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        fn(torch.tensor([1, 2]), torch.tensor([1, 0]))


def test_view_takes_sizes_in_any_form():
    x = torch.arange(4.0)
    for y in (x.view([2, 2]), x.view((2, 2)), x.view(2, 2), x.view(size=[2, 2]), x.view(torch.Size([2, 2]))):
        assert y.tolist() == [[0, 1], [2, 3]]
    assert x.view(torch.int32).shape == x.view(dtype=torch.int32).shape == x.shape


def test_products_of_many_matrices():
    """The order is found in the time of the products, and its depth is no recursion's."""
    from flambeau.ops.linear_algebra.chains import _cuts, _cuts_of_symbols, _product

    sizes = [3, 7, 2, 9, 9, 1, 4, 6, 2]
    found = _cuts(sizes, 8)
    assert all(found[ij] == k for ij, k in _cuts_of_symbols(sizes, 8).items())
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
    assert torch.equal(torch.linalg.multi_dot([turn] * 301), turn)
    each = np.broadcast_to(np.arange(1201)[:, None], (1201, 1201))  # cut behind the first matrix: as deep as may be
    assert torch.equal(_product([turn] * 1201, each), turn)
    assert torch.equal(torch.chain_matmul(turn, turn, turn), -turn)
