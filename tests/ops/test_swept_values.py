"""Calls at the border of what is taken, with what PyTorch 2.13 (CPU) gives: found by ``tools/wrong_arguments.py``."""

import math

import pytest

import flambeau as torch

F = torch.nn.functional
T = torch.tensor


def same(fn, *args, want):
    """Eager and compiled calls give ``want`` in its dtype."""
    for call in (fn, torch.compile(fn)):
        got = call(*args)
        assert got.dtype is want.dtype and got.shape == want.shape
        torch.testing.assert_close(got, want, equal_nan=True)


@pytest.mark.parametrize("n", [T([3.0, 3.0]), T([3, 3])])
def test_a_number_says_nothing_of_a_polynomials_dtype(n):
    same(lambda n: torch.special.laguerre_polynomial_l(7, n), n, want=T([-11 / 3, -11 / 3]))


def test_degrees_that_are_numbers():
    same(lambda x: torch.special.laguerre_polynomial_l(x, 3), T([3, 4]), want=T([1.0, 7 / 3]))


@pytest.mark.parametrize("batch", [(1,), (1, 1), (3,)])
def test_one_matrix_serves_batches_of_any_shape(batch):
    a, b = torch.eye(5) * 2, torch.ones(*batch, 5, 1)
    same(torch.linalg.solve, a, b, want=b / 2)
    assert torch.linalg.solve_ex(a, b)[1].shape == ()


def test_trapezoids_count_the_dimension_from_the_front():
    """Here those of ``x``, which has one more: it broadcasts against the samples."""
    same(torch.trapezoid, T([1.0, 2.0, 4.0]), T([[0.0, 3.0], [1.0, 5.0], [2.0, 8.0]])[:, :1], want=T([3.0, 6.0]))


def test_nothing_has_no_variance():
    same(lambda x: x.var(correction=-1), torch.empty(0), want=T(math.nan))
    same(lambda x: x.std(0, correction=-1), torch.empty(0, 2), want=T([math.nan, math.nan]))


@pytest.mark.parametrize("alpha", [math.nan, math.inf])
def test_an_empty_product_is_zero_times_anything(alpha):
    same(
        lambda x, a, b: torch.addmm(x, a, b, alpha=alpha, beta=2),
        torch.ones(2, 3),
        torch.ones(2, 0),
        torch.ones(0, 3),
        want=torch.full((2, 3), 2.0),
    )


def test_weights_of_lerp_without_dimensions_are_promoted():
    x = torch.arange(4.0, dtype=torch.float64)
    same(torch.lerp, x, x + 2, T(0.5), want=x + 1)
    same(torch.lerp, x.float(), x.float() + 2, T(0.5, dtype=torch.float64), want=x.float() + 1)


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss"])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_targets_without_dimensions_take_part_in_promotion(name):
    loss = getattr(F, name)
    same(loss, T([3.0, 1.0]), T(1.0, dtype=torch.float64), want=loss(T([3.0, 1.0]).double(), torch.ones(2).double()))
    same(loss, T([3.0, 1.0]).half(), T(1.0), want=loss(T([3.0, 1.0]), torch.ones(2)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
def test_gradients_have_the_dtype_of_what_they_are_the_gradient_of(dtype):
    leaf = torch.ones(2, requires_grad=True)
    leaf.backward(torch.ones(2, dtype=dtype))
    assert leaf.grad.dtype is torch.float32
    assert torch.autograd.grad(leaf, leaf, torch.ones(2, dtype=dtype))[0].dtype is torch.float32
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cpu but got meta"):
        leaf.backward(torch.ones(2, device="meta"))


def test_meshgrids_by_no_indexing_are_those_of_matrices():
    a, b = torch.meshgrid(torch.arange(2), torch.arange(3), indexing=None)
    assert a.tolist() == [[0, 0, 0], [1, 1, 1]] and b.tolist() == [[0, 1, 2]] * 2


def test_frequencies_of_nothing_and_at_no_distance():
    assert torch.fft.fftfreq(0).shape == (0,)
    torch.testing.assert_close(torch.fft.fftfreq(3, 0), T([math.nan, math.inf, -math.inf]), equal_nan=True)


@pytest.mark.parametrize(
    "fn", [lambda x: x.expand([5, 3, True]), lambda x: x.sum_to_size(5, 3, True), lambda x: x.new_ones((5, 3, True))]
)
def test_sizes_behind_the_first_may_be_bools(fn):
    same(fn, torch.ones(5, 3, 1), want=torch.ones(5, 3, 1))


def along_no_dimension(x):
    return x.any(dim=[]), x.all(dim=()), torch.any(x, dim=[], keepdim=True), torch.func.vmap(lambda r: r.all(dim=[]))(x)


@pytest.mark.parametrize(
    "dtype,truth", [(torch.float64, torch.bool), (torch.uint8, torch.uint8), (torch.complex64, torch.bool)]
)
def test_any_and_all_along_no_dimension_are_of_each_element(dtype, truth):
    x = T([[0, 2], [3, 0]]).to(dtype)
    for call in (along_no_dimension, torch.compile(along_no_dimension, fullgraph=True)):
        for got in call(x):
            assert got.dtype is truth and got.tolist() == [[0, 1], [1, 0]]
    assert T(0.5).any(dim=None).item() is True
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype bool, but got float"):
        torch.any(T([1.0]), dim=[], out=torch.empty(0))


def test_a_complex_number_without_imaginary_part_is_an_integer():
    same(lambda x: torch.constant_pad_nd(x, [1, 2], 3 + 0j), torch.ones(1).int(), want=T([3, 1, 3, 3]).int())
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.constant_pad_nd(torch.ones(1).int(), [1, 2], 3 + 1j)
