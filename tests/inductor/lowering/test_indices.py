"""Index arithmetic of kernels: chains of views of views, flipped and reshaped, read the elements that eager reads."""

import random

import pytest

import flambeau as torch
from flambeau.inductor import metrics


def flipped_reshape(x):
    """Its index is (4 - i) // 5 and (4 - i) % 5, of numbers below zero."""
    return x.reshape(-1).flip(0) * 2


def _chain(rng, x):
    """(source text, function) of a few random steps from a 3-d tensor."""
    steps = []
    shape = tuple(x.shape)
    for _ in range(rng.randint(2, 5)):
        kind = rng.choice(["flip", "reshape", "permute", "roll", "slice"])
        n = len(shape)
        if kind == "flip":
            steps.append(f".flip({rng.sample(range(n), rng.randint(1, n))})")
        elif kind == "reshape":
            total = 1
            for s in shape:
                total *= s
            a = rng.choice([d for d in range(1, total + 1) if total % d == 0])
            shape = rng.choice([(a, total // a), (total,), (total // a, 1, a)])
            steps.append(f".reshape({shape})")
        elif kind == "permute":
            order = rng.sample(range(n), n)
            shape = tuple(shape[d] for d in order)
            steps.append(f".permute({order})")
        elif kind == "roll":
            steps.append(f".roll({rng.randint(-7, 7)}, {rng.randrange(n)})")
        elif shape[0] > 2:
            shape = (shape[0] - 1, *shape[1:])
            steps.append("[1:]")
    text = f"lambda x: x{''.join(steps)} * 2"
    return text, eval(text)


def test_negative_parts_of_an_index():
    for x in (torch.randn(4, 5).t().contiguous().t(), torch.randn(7, 3, 5).permute(2, 0, 1)):
        assert torch.equal(torch.compile(flipped_reshape)(x), flipped_reshape(x))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dynamic", [False, True])
def test_random_chains(seed, dynamic):
    rng = random.Random(seed)
    for _ in range(3):
        x = torch.randn(rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9)).permute(rng.sample(range(3), 3))
        text, f = _chain(rng, x)
        got, want = torch.compile(f, dynamic=dynamic)(x), f(x)
        assert torch.equal(got, want), (text, tuple(x.shape), x.stride())


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("value", [3.0, torch.tensor(2.0)], ids=["number", "tensor"])
def test_writes_by_masks_of_another_shape_are_refused(value, dynamic):
    def put(a, mask):
        a[mask] = value
        return a

    compiled = torch.compile(put, dynamic=dynamic)
    mask = torch.tensor([True, False, True])
    assert compiled(torch.zeros(3), mask).tolist() == [value, 0, value]
    a = torch.zeros(5)
    with pytest.raises(
        IndexError, match=r"The shape of the mask \[3\] at index 0 does not match the shape of the indexed tensor \[5\]"
    ):
        compiled(a, mask)
    assert a.tolist() == [0] * 5


@pytest.mark.parametrize(
    "error,f",
    [
        (IndexError, lambda x, i: x[i]),
        (IndexError, lambda x, i: x[:, i]),
        (IndexError, lambda x, i: x.clone().index_put_((i,), torch.tensor(1.0))),
        (IndexError, lambda x, i: x.index_put((i,), torch.tensor(1.0), accumulate=True)),
        (RuntimeError, lambda x, i: x.index_add(0, i, torch.ones(2, 4))),
        (RuntimeError, lambda x, i: x.index_select(0, i)),
        (RuntimeError, lambda x, i: x.gather(0, i[:, None])),
        (RuntimeError, lambda x, i: x.take(i)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_an_index_of_fractions_is_refused(error, f, dtype):
    x, i = torch.randn(3, 4), torch.tensor([0, 1]).to(dtype)
    with pytest.raises(error, match="ndex|ndices"):
        f(x, i)
    with pytest.raises(error, match="ndex|ndices"):
        torch.compile(f)(x, i)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "read", [lambda t, i: t[i], lambda t, i: t.take(i), lambda t, i: t.index_select(0, i.flatten())]
)
def test_a_table_is_computed_once(read, dynamic):
    """Where many more elements are read than it has, and they cost something; a read of as few is one kernel with what it reads."""

    def costly(x, i):
        return read((255.0 * x / x[-1] + 3).to(torch.uint8), i)

    def cheap(x, i):
        return read(x * 2, i)

    x = torch.arange(1, 51, dtype=torch.float64)
    for f, n, kernels in ((costly, 300, 2), (costly, 20, 1), (cheap, 300, 1)):
        torch._dynamo.reset()
        i = torch.randint(0, 50, (n, 2))
        metrics.reset()
        assert torch.equal(torch.compile(f, dynamic=dynamic)(x, i), f(x, i))
        assert dynamic or metrics.generated_kernel_count == kernels  # a graph for all sizes may be kept from other ones
    with pytest.raises((IndexError, RuntimeError)):
        torch.compile(costly)(x, torch.full((300, 2), 50))
