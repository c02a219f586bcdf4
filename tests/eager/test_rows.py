"""Softmax and layer normalization of small arrays are one kernel: beside float64, and with one answer from the first call on."""

import itertools

import ml_dtypes
import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
SHAPES = [(1,), (5,), (4, 4), (3, 17), (16, 16), (2, 3, 5), (33, 2, 31), (2, 3000), (3000, 3), (70, 70)]


def numbers(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape) * 3


def softmax_of(x, dim):
    e = np.exp(x - x.max(dim, keepdims=True))
    return e / e.sum(dim, keepdims=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_softmax_beside_float64(shape, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    for dim, turned in itertools.product(range(len(shape)), (False, True)):
        x = torch.from_numpy(numbers(shape)).to(getattr(torch, dtype))
        x = x.transpose(0, -1).contiguous().transpose(0, -1) if turned else x
        wanted = softmax_of(x.double().numpy(), dim)
        eps = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype) or np.finfo(kind).eps
        for fn, want in ((torch.softmax, wanted), (torch.log_softmax, np.log(wanted))):
            made = [fn(x, dim) for _ in range(3)]
            assert all(torch.equal(made[0], m) and m.stride() == made[0].stride() for m in made)
            assert made[0].dtype is x.dtype and made[0].is_contiguous()
            np.testing.assert_allclose(made[0].double().numpy(), want, rtol=8 * eps, atol=8 * eps)


BLOCKS = [(2, 3), (3,), (), (1, 1), (0, 3), (3, 0), (0,)]


@pytest.mark.parametrize(
    "kinds", ["float32", "float16", "bfloat16", "complex64", "int64", "bool", "float32 int64", "bool int8"]
)
def test_blocks(kinds):
    """block_diag, one call after the other: matrices of any strides, vectors, numbers, nothing; dtypes are promoted."""
    kinds = [getattr(torch, k) for k in kinds.split()]
    for shapes in itertools.product(BLOCKS, repeat=2):
        given = [torch.tensor(numbers(s, 1)).to(k) for s, k in zip(shapes, itertools.cycle(kinds))]
        for parts in (
            given,
            [t.mT if t.ndim == 2 else t for t in given],
            [t.expand(2, *t.shape)[1] for t in given] * 2,
        ):
            rows = [t.reshape(1, -1) if t.ndim < 2 else t for t in parts]
            wanted = torch.zeros(
                sum(t.shape[0] for t in rows),
                sum(t.shape[1] for t in rows),
                dtype=torch.promote_types(kinds[0], kinds[-1]),
            )
            at = np.array([0, 0])
            for t in rows:
                end = at + t.shape
                wanted[at[0] : end[0], at[1] : end[1]] = t
                at = end
            for _ in range(3):
                made = torch.block_diag(*parts)
                assert made.dtype is wanted.dtype and made.stride() == wanted.stride() and torch.equal(made, wanted)


def test_counted_classes():
    """one_hot that counts the classes itself: the count of the call before has a way of its own."""
    draw = np.random.default_rng(6)
    for most, size in [(3, 4), (3, 70), (3, 70), (9, 70), (9, 70), (3, 4), (3, 4)] * 10:
        x = torch.from_numpy(draw.integers(0, most, (size, 2)))
        x[0, 0] = most
        made = F.one_hot(x)
        assert made.dtype is torch.int64 and np.array_equal(made.numpy(), np.eye(most + 1)[x.numpy()])
        x[1, 0] = -1
        with pytest.raises(RuntimeError, match="non-negative"):
            F.one_hot(x)


def test_blocks_share_no_infinities():
    x = torch.full((1, 2), np.nan)
    for _ in range(3):
        assert torch.block_diag(x, x * np.inf).nan_to_num(1.0).tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize("fn", [torch.softmax, torch.log_softmax])
def test_nan_and_infinities(fn):
    inf, nan = np.inf, np.nan
    x = torch.tensor([[1.0, inf, 2], [1, nan, 2], [-inf, 0, 0], [-inf, -inf, -inf]])
    wanted = [[nan] * 3, [nan] * 3, [0.0, 0.5, 0.5], [nan] * 3]
    if fn is torch.log_softmax:
        wanted = [[nan] * 3, [nan] * 3, [-inf, -np.log(2), -np.log(2)], [nan] * 3]
    for _ in range(3):
        for y in (fn(x, 1), fn(x.t().contiguous(), 0).t()):
            np.testing.assert_allclose(y.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape,count", [((5,), 1), ((4, 4), 1), ((3, 17), 1), ((2, 3, 5), 2), ((7, 70), 1), ((2, 3000), 1)]
)
def test_layer_norm_beside_float64(shape, count, dtype):
    sizes, eps = shape[-count:], np.finfo(dtype).eps
    x, w, b = (numbers(s, k).astype(dtype) for k, s in enumerate((shape, sizes, sizes)))
    wide, axes = x.astype(np.float64), tuple(range(-count, 0))
    mean, scale = wide.mean(axes, keepdims=True), 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
    for weight, bias in itertools.product((None, w), (None, b)):
        args = [None if a is None else torch.from_numpy(a) for a in (weight, bias)]
        made = [torch.native_layer_norm(torch.from_numpy(x), list(sizes), *args, 1e-5) for _ in range(3)]
        assert all(torch.equal(a, c) for m in made for a, c in zip(made[0], m))
        want = (wide - mean) * scale * (1 if weight is None else w) + (0 if bias is None else b)
        for got, wanted in zip(made[0], (want, mean, scale), strict=True):
            assert tuple(got.shape) == wanted.shape
            np.testing.assert_allclose(got.numpy(), wanted, rtol=32 * eps, atol=32 * eps)


def test_what_is_wrong_is_told():
    x = torch.ones(3, 4)
    for _ in range(3):
        with pytest.raises(IndexError, match="Dimension out of range"):
            torch.softmax(x, 2)
        with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
            torch.softmax(x.long(), 1)
        with pytest.raises(RuntimeError, match="expected input with shape"):
            torch.native_layer_norm(x, [3], None, None, 1e-5)
        with pytest.raises(RuntimeError):
            torch.native_layer_norm(x, [4], torch.ones(3), None, 1e-5)
    assert torch.softmax(torch.ones(0, 3), 0).shape == (0, 3) and torch.softmax(torch.tensor(2.0), 0).item() == 1
