"""vmap's arguments: structures of in_dims and out_dims, chunks, and PyTorch's error messages."""

import re

import pytest

import flambeau as torch
from flambeau.func import vmap

x = torch.arange(12.0).view(3, 4)


def test_structures():
    out = vmap(
        lambda d, pair: {"a": d["u"] + pair[0], "b": [pair[1]]},
        in_dims=({"u": 0, "v": None}, (1, None)),
        out_dims={"a": 1, "b": [0]},
    )({"u": x, "v": 2}, (x.t(), torch.ones(2)))
    assert torch.equal(out["a"], (x + x).t()) and out["b"][0].shape == (3, 2)
    a, b = vmap(lambda t: (t, t.sum()), out_dims=(1, 0))(x)
    assert torch.equal(a, x.t()) and torch.equal(b, x.sum(1))
    assert torch.equal(vmap(lambda t: t, in_dims=-1)(x), x.t())
    assert torch.equal(vmap(lambda t: t.outer(t), out_dims=-1)(x), torch.stack([r.outer(r) for r in x], -1))
    assert torch.equal(vmap(lambda pair: pair[0] + pair[1])((x, x)), 2 * x)
    assert torch.equal(vmap(lambda t: (t,), out_dims=1)(x)[0], x.t())
    assert torch.equal(vmap(lambda t: t, out_dims=(1,))(x), x.t())
    assert vmap(lambda t: (t, 3), out_dims=(0, None))(x)[1] == 3
    assert vmap(lambda t, k: t * k, in_dims=(0, None))(x, 2.0).shape == (3, 4)
    assert torch.equal(vmap(lambda t, k=1: t * k)(x, k=3), x * 3)
    same = vmap(lambda t: t)(x)
    assert same is not x and same.data_ptr() == x.data_ptr()
    assert vmap(lambda t: torch.ones(2))(x).shape == (3, 2)
    assert torch.equal(torch.vmap(torch.sum)(x), x.sum(1)) and torch.func.vmap is torch.vmap


def test_chunks():
    calls = []

    def fn(t):
        calls.append(1)
        return t * 2, t.sum()

    a, b = vmap(fn, out_dims=(1, 0), chunk_size=2)(x)
    assert torch.equal(a, (2 * x).t()) and torch.equal(b, x.sum(1)) and len(calls) == 2
    assert torch.equal(vmap(lambda t: t, chunk_size=100)(x), x)


def _written(row, i):
    row = row.clone()
    row[i] = row[0]
    row[None, i] += 1
    return row


@pytest.mark.parametrize(
    "fn",
    [
        lambda row, i: row[i],
        lambda row, i: row[..., i, None],
        lambda row, i: row.view(2, 2)[i % 2, 0],
        lambda row, i: row.view(2, 2)[i % 2, [0, 1]],
        lambda row, i: x[:, i],
        _written,
    ],
)
def test_a_number_that_is_mapped_is_an_index(fn):
    i = torch.tensor([2, 0, 3])
    assert torch.equal(vmap(fn)(x, i), torch.stack([fn(row, k) for row, k in zip(x, i)]))


def test_empty_batch():
    assert vmap(lambda t: t * 2)(torch.ones(0, 4)).shape == (0, 4)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: vmap(torch.sin)(), ValueError, "got no inputs. Maybe you forgot to add inputs"),
        (
            lambda: vmap(torch.sin, in_dims=[0])(x),
            ValueError,
            "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            "<class 'list'>",
        ),
        (
            lambda: vmap(torch.add, in_dims=(0,))(x, x),
            ValueError,
            "in_dims is not compatible with the structure of `inputs`",
        ),
        (
            lambda: vmap(torch.sin, in_dims=(1.0,))(x),
            ValueError,
            "Got in_dim=1.0 for an input but in_dim must be either an integer dimension or None",
        ),
        (
            lambda: vmap(torch.mul, in_dims=(0, 0))(x, 3),
            ValueError,
            "Got in_dim=0 for an input but the input is of type <class 'int'>. We cannot vmap over "
            "non-Tensor arguments",
        ),
        (
            lambda: vmap(torch.sin, in_dims=2)(x),
            ValueError,
            "Got in_dim=2 for some input, but that input is a Tensor of dimensionality 2 so expected in_dim to "
            "satisfy -2 <= in_dim < 2",
        ),
        (lambda: vmap(torch.sin, in_dims=(None,))(x), ValueError, "Expected at least one Tensor to vmap over"),
        (
            lambda: vmap(torch.add)(x, x.t()),
            ValueError,
            "Expected all tensors to have the same size in the mapped dimension, got sizes [3, 4] for the mapped "
            "dimension",
        ),
        (
            lambda: vmap(lambda t: 3)(x),
            ValueError,
            "must only return Tensors, got type <class 'int'>. Did you mean to set out_dims= to None for output?",
        ),
        (
            lambda: vmap(lambda t: t, out_dims=None)(x),
            ValueError,
            "can not return a BatchedTensor when out_dim is None",
        ),
        (
            lambda: vmap(lambda t: (t, t), out_dims=(0, 0, 0))(x),
            ValueError,
            "out_dims is not compatible with the structure of `outputs`",
        ),
        (
            lambda: vmap(lambda t: t, out_dims="a")(x),
            ValueError,
            "`out_dims` must be an int, None or a python collection of ints",
        ),
        (
            lambda: vmap(lambda t: t, out_dims=3)(x),
            IndexError,
            "Dimension out of range (expected to be in range of [-2, 1], but got 3)",
        ),
        (
            lambda: vmap(torch.sin, randomness="some"),
            RuntimeError,
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got some",
        ),
        (lambda: vmap(torch.sin, chunk_size=0), ValueError, "chunk_size should be None or greater than 0. (got 0)"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_levels_end_with_errors():
    with pytest.raises(RuntimeError):
        vmap(lambda t: t.view(7))(x)
    assert torch.equal(x + 1, torch.arange(1.0, 13).view(3, 4)) and torch.rand(2).shape == (2,)


@pytest.mark.parametrize(
    ("method", "args", "shape"),
    (
        ("unsqueeze_", (0,), (2, 1, 1, 3)),
        ("unsqueeze_", (-1,), (2, 1, 3, 1)),
        ("squeeze_", (), (2, 3)),
        ("t_", (), (2, 3, 1)),
        ("transpose_", (0, 1), (2, 3, 1)),
    ),
)
def test_in_place_views_of_examples_are_the_batch_s(method, args, shape):
    """The caller's tensor gets the sizes too."""
    batch = torch.arange(6.0).view(2, 1, 3)
    out = vmap(lambda t: getattr(t, method)(*args))(batch)
    assert out.shape == batch.shape == shape and torch.equal(out, batch)
    nested = torch.arange(6.0).view(1, 2, 1, 3)
    vmap(vmap(lambda t: getattr(t, method)(*args)))(nested)
    assert nested.shape == (1, *shape)
