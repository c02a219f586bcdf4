"""The kernel of `multilabel_margin_loss` and its gradient, beside loops over labels, the same from the first call on."""

import itertools

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def plainly(x, t, ct):
    """The mean margin of each row, and the gradient of their sum by ``ct``."""
    made, slopes = np.zeros(len(x), x.dtype), np.zeros_like(x)
    c = x.shape[1]
    for r in range(len(x)):
        labels = list(itertools.takewhile(lambda k: k >= 0, t[r].tolist()))
        for k, i in itertools.product(labels, sorted(set(range(c)) - set(labels))):
            z = x[r, i] - x[r, k] + 1
            made[r] += 0 if z < 0 else z / c
            if z >= 0:
                slopes[r, i] += ct[r] / c
                slopes[r, k] -= ct[r] / c
    return made, slopes


def targets(rng, rows, classes):
    t = rng.integers(0, classes, (rows, classes))
    for r in range(rows):
        t[r, rng.integers(0, classes + 1) :] = -1
    return t


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("rows,classes", [(1, 1), (3, 4), (5, 17), (4, 70), (2, 300), (0, 3)])
def test_beside_loops(rows, classes, dtype):
    rng = np.random.default_rng(rows + classes)
    a, t, ct = rng.standard_normal((rows, classes)), targets(rng, rows, classes), rng.standard_normal(rows)
    a, ct = a.astype(dtype), ct.astype(dtype)
    loss, slopes = plainly(a.astype("float64"), t, ct.astype("float64"))
    rough = {"float32": 1e-5, "float64": 1e-13, "float16": 0.02}[dtype]
    for turned in (False, True):
        x, target = torch.from_numpy(a), torch.from_numpy(t)
        if turned:
            x, target = (v.t().contiguous().t() for v in (x, target))
        made = [F.multilabel_margin_loss(x, target, reduction="none") for _ in range(4)]
        np.testing.assert_allclose(made[0].numpy(), loss, rtol=rough, atol=rough)
        for _ in range(3):
            leaf = x.detach().clone().requires_grad_()
            made.append(F.multilabel_margin_loss(leaf, target, reduction="none"))
            made[-1].backward(torch.from_numpy(ct))
            np.testing.assert_allclose(leaf.grad.numpy(), slopes, rtol=rough, atol=rough * 8)
        assert all(torch.equal(m, made[0]) for m in made)
        mean = F.multilabel_margin_loss(x, target)
        np.testing.assert_allclose(mean.numpy(), loss.mean() if rows else np.nan, rtol=rough, atol=rough)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite(value, dtype):
    """As the operators of which it is made have it, which wide elements still run."""
    for place, labels in itertools.product(range(5), ([0, 2, -1, -1, -1], [4, -1, 0, 0, 0], [-1] * 5, [0, 1, 2, 3, 4])):
        a = np.arange(5).astype(dtype)
        a[place] = value
        with np.errstate(invalid="ignore"):
            loss, slopes = plainly(a[None], np.array([labels]), np.ones(1))
        for _ in range(3):
            x = torch.from_numpy(a).requires_grad_()
            made = F.multilabel_margin_loss(x, torch.tensor(labels), reduction="sum")
            made.backward()
            np.testing.assert_allclose(made.item(), loss[0], rtol=1e-6)
            np.testing.assert_allclose(x.grad.numpy(), slopes[0], rtol=1e-6)


@pytest.mark.parametrize("bad", [-2, 4, 2**40])
def test_labels_that_are_no_class_are_told(bad):
    x = torch.ones(3, 4)
    for place in range(4):
        t = torch.full((3, 4), -1)
        t[1, place] = bad
        for _ in range(3):
            for leaf in (x, x.clone().requires_grad_()):
                with pytest.raises(RuntimeError, match="out of bounds"):
                    F.multilabel_margin_loss(leaf, t)


def test_derivatives_of_all_kinds():
    x = torch.randn(3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    t = torch.tensor([[1, 3, -1, 0, 0], [0, -1, 2, 1, 1], [4, 4, 2, -1, -1]])

    def fn(x):
        return F.multilabel_margin_loss(x, t, reduction="none")

    leaf = x.clone().requires_grad_()
    assert torch.autograd.gradcheck(fn, (leaf,)) and torch.autograd.gradgradcheck(fn, (leaf,))
    direction = torch.ones_like(x) / 3 + x
    value, along = torch.func.jvp(fn, (x,), (direction,))
    torch.testing.assert_close(along, torch.func.jacrev(fn)(x).flatten(1) @ direction.flatten())
    several = torch.stack([x, 2 * x])
    torch.testing.assert_close(torch.func.vmap(fn)(several), torch.stack([fn(x), fn(2 * x)]))
    compiled = torch.compile(lambda x: torch.autograd.grad(fn(x).sum(), x)[0])
    torch.testing.assert_close(compiled(leaf), torch.func.grad(lambda x: fn(x).sum())(x))
    assert value.shape == (3,)
