"""Pooling of images whose channels lie last: the winners, places and gradients of row-major ones, bit for bit, and results that lie as the images."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau.nn import functional as F

WINDOWS = [
    (2, 2, 0, False),
    (3, 2, 1, False),
    (3, 1, 1, False),
    ((2, 3), (3, 2), (1, 1), True),
    ((1, 3), (1, 2), (0, 1), False),
]
SHAPES = [(2, 3, 7, 9), (1, 17, 5, 5), (2, 65, 4, 11), (1, 130, 13, 3), (8, 64, 16, 18)]
ODD = [np.nan, -np.inf, np.inf, 1.0, 1.0]  # winners among equal elements, nans and infinities


def images(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    x.ravel()[::7] = np.resize(ODD, x.ravel()[::7].shape)
    rows = torch.tensor(x, dtype=dtype)
    return rows.requires_grad_(), rows.detach().clone().contiguous(memory_format=torch.channels_last).requires_grad_()


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_channels_last_is_row_major(dtype, compiled):
    for shape, (kernel, stride, padding, ceil) in itertools.product(SHAPES, WINDOWS):

        def pool(x, how=(kernel, stride, padding, 1, ceil)):
            return F.max_pool2d(x, *how, return_indices=True)

        rows, last = images(shape, dtype)
        values, places = pool(rows)
        cotangent = torch.tensor(np.random.default_rng(1).standard_normal(tuple(values.shape)), dtype=dtype)
        (wanted,) = torch.autograd.grad(values, rows, cotangent)
        run = torch.compile(pool) if compiled and kernel == 2 else pool
        # The second eager call of a description is the kernel's; a cotangent may lie either way.
        for given in (cotangent, cotangent.contiguous(memory_format=torch.channels_last)):
            got, where = run(last)
            (found,) = torch.autograd.grad(got, last, given)
            np.testing.assert_array_equal(got.detach().numpy(), values.detach().numpy())
            np.testing.assert_array_equal(where.numpy(), places.numpy())
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6, err_msg=str((shape, kernel)))
            assert got.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("dtype,bound", [(torch.float32, 1e-6), (torch.float64, 1e-15)], ids=str)
def test_averages(dtype, bound):
    """Sums over windows and their adjoint, in both orders, beside windows cut out by slices of float64."""
    for shape, (kernel, stride, padding, ceil) in itertools.product([*SHAPES, (2, 300, 4, 7)], WINDOWS):
        rng = np.random.default_rng(2)
        image = rng.standard_normal(shape)

        def pool(x, how=(kernel, stride, padding, ceil)):
            return F.avg_pool2d(x, *how, divisor_override=1)

        rows = torch.tensor(image, dtype=dtype).requires_grad_()
        last = rows.detach().clone().contiguous(memory_format=torch.channels_last).requires_grad_()
        for _ in range(2):  # the second call of a description is the kernel's
            ours, lasts = pool(rows), pool(last)
            cotangent = torch.tensor(np.random.default_rng(3).standard_normal(tuple(ours.shape)), dtype=dtype)
            (back,) = torch.autograd.grad(ours, rows, cotangent)
            (back_last,) = torch.autograd.grad(lasts, last, cotangent.contiguous(memory_format=torch.channels_last))
        (kh, kw), (sh, sw), (ph, pw) = ((v, v) if isinstance(v, int) else v for v in (kernel, stride, padding))
        wanted, adjoint, magnitude = np.zeros(tuple(ours.shape)), np.zeros(shape), np.zeros(tuple(ours.shape))
        g = cotangent.numpy().astype(np.float64)
        x = rows.detach().numpy().astype(np.float64)
        for i, j in np.ndindex(*wanted.shape[2:]):
            window = np.s_[:, :, max(i * sh - ph, 0) : i * sh - ph + kh, max(j * sw - pw, 0) : j * sw - pw + kw]
            wanted[:, :, i, j], magnitude[:, :, i, j] = x[window].sum((2, 3)), np.abs(x[window]).sum((2, 3))
            adjoint[window] += g[:, :, i, j, None, None]
        assert (np.abs(ours.detach().numpy() - wanted) <= bound * magnitude).all()
        np.testing.assert_allclose(back.numpy(), adjoint, rtol=0, atol=20 * bound)
        np.testing.assert_allclose(lasts.detach().numpy(), ours.detach().numpy(), rtol=0, atol=20 * bound)
        np.testing.assert_array_equal(back_last.numpy(), back.numpy())
        assert lasts.is_contiguous(memory_format=torch.channels_last)


def test_averages_have_derivatives_of_any_order():
    x = torch.randn(2, 3, 6, 5, dtype=torch.float64, requires_grad=True)
    square = lambda x: F.avg_pool2d(x, 3, 2, 1).square()  # noqa: E731
    assert torch.autograd.gradcheck(square, (x,)) and torch.autograd.gradgradcheck(square, (x,))
    each = torch.func.vmap(lambda y: F.avg_pool2d(y, 2))(torch.stack([x.detach(), x.detach() * 2]))
    np.testing.assert_allclose(each[1].numpy(), F.avg_pool2d(x.detach() * 2, 2).numpy())
    _, tangent = torch.func.jvp(lambda y: F.avg_pool2d(y, 2), (x.detach(),), (torch.ones_like(x),))
    np.testing.assert_allclose(tangent.numpy(), 1)


def test_threads_change_nothing():
    _, last = images((3, 70, 33, 35), torch.float32)
    before, made = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            for _ in range(2):
                values = F.max_pool2d(last, 3, 2, 1)
                (found,) = torch.autograd.grad(values, last, torch.ones_like(values))
            made.append((values.detach().numpy(), found.numpy()))
    finally:
        torch.set_num_threads(before)
    for a, b in zip(*made):
        np.testing.assert_array_equal(a, b)


def test_places_outside_are_an_error():
    _, last = images((2, 20, 6, 6), torch.float32)
    values, places = F.max_pool2d(last, 2, return_indices=True)
    places = places.clone()
    places[1, 19, 2, 2] = 36
    for _ in range(2):
        with pytest.raises((IndexError, RuntimeError)):
            torch.ops.aten.max_pool2d_with_indices_backward(
                torch.ones_like(values), last.detach(), [2, 2], [2, 2], [0, 0], [1, 1], False, places
            )


VOLUMES = [
    (2, None, 0),
    (3, 2, 1),
    ((2, 1, 3), (1, 2, 1), (1, 0, 1)),
    ((4, 1, 1), (3, 1, 1), 0),
    ((1, 3, 2), (2, 1, 1), (0, 1, 1)),
]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype,bound", [(torch.float32, 2e-6), (torch.float64, 4e-15)], ids=str)
def test_averages_of_volumes(dtype, bound, compiled):
    """Beside windows cut out by slices of float64, of volumes of any strides, with or without a batch."""
    for shape, how in itertools.product([(2, 3, 4, 5, 6), (3, 5, 4, 17), (0, 3, 4, 4, 4)], VOLUMES):

        def pool(x, how=how):
            return F.avg_pool3d(x, *how)

        kernel, stride, padding = ((v,) * 3 if isinstance(v, int) else v for v in (how[0], how[1] or how[0], how[2]))
        x = torch.tensor(np.random.default_rng(4).standard_normal(shape), dtype=dtype)
        turned = x.transpose(-1, -2).contiguous().transpose(-1, -2)
        run = torch.compile(pool) if compiled else pool
        for given in (x.requires_grad_(), turned.requires_grad_()):
            for _ in range(2):
                made = run(given)
            cotangent = torch.tensor(np.random.default_rng(5).standard_normal(tuple(made.shape)), dtype=dtype)
            (back,) = torch.autograd.grad(made, given, cotangent)
            wanted, adjoint = np.zeros(tuple(made.shape)), np.zeros(shape)
            for at in np.ndindex(*wanted.shape[-3:]):
                starts = [i * s - p for i, s, p in zip(at, stride, padding)]
                window = (..., *(slice(max(s, 0), s + k) for s, k in zip(starts, kernel)))
                wanted[(..., *at)] = x.detach().double().numpy()[window].sum((-1, -2, -3)) / np.prod(kernel)
                adjoint[window] += cotangent.double().numpy()[(..., *at)][..., None, None, None] / np.prod(kernel)
            np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=0, atol=bound)
            np.testing.assert_allclose(back.numpy(), adjoint, rtol=0, atol=20 * bound)
            assert made.is_contiguous()
