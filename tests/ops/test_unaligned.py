"""Tensors over memory that isn't aligned (a field of a packed record, a file read at an odd place) are what aligned ones are, read and written."""

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
N = 12


def at_odd(array):
    """A tensor of the same elements one byte off."""
    memory = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
    memory[...] = array
    assert not memory.flags.aligned
    return torch.from_numpy(memory)


CALLS = {
    "cumsum": lambda x, i: x.cumsum(0),
    "cumsum of integers": lambda x, i: i.cumsum(1),
    "cummax": lambda x, i: x.cummax(0),
    "logcumsumexp": lambda x, i: x.logcumsumexp(0),
    "sort": lambda x, i: x.sort(),
    "topk": lambda x, i: x.topk(2),
    "nonzero": lambda x, i: i.nonzero(),
    "searchsorted": lambda x, i: torch.searchsorted(x[0].cumsum(0), x),
    "histc": lambda x, i: x.histc(5),
    "unique": lambda x, i: i.unique(),
    "product": lambda x, i: x @ x,
    "matrix times vector": lambda x, i: x @ x[0],
    "solve": lambda x, i: torch.linalg.solve(x, x.t()),
    "singular values": lambda x, i: torch.linalg.svdvals(x),
    "fft": lambda x, i: torch.fft.fft(x),
    "irfft": lambda x, i: torch.fft.irfft(torch.view_as_complex(x.reshape(N, -1, 2))),
    "conv2d": lambda x, i: F.conv2d(x[None, None], x[None, None, :3, :3], x[0, :1]),
    "max_pool2d": lambda x, i: F.max_pool2d(x[None, None], 2),
    "attention": lambda x, i: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None]),
    "gather": lambda x, i: x.gather(0, i),
    "index": lambda x, i: x[i[0]],
    "softmax": lambda x, i: x.softmax(1),
    "sparse product": lambda x, i: torch.sparse.mm(x.to_sparse(), x),
    "compiled": lambda x, i: torch.compile(lambda a: a.cumsum(0).sin())(x),
}


@pytest.mark.parametrize("name", CALLS)
def test_read(name):
    rng = np.random.default_rng(0)
    a, i = rng.random((N, N)), rng.integers(0, N, (N, N))
    for kind in (np.float32, np.float64):
        want = CALLS[name](torch.from_numpy(a.astype(kind)), torch.from_numpy(i))
        for _ in range(3):  # call plans come with the second
            got = CALLS[name](at_odd(a.astype(kind)), at_odd(i))
            torch.testing.assert_close(got, want)


@pytest.mark.parametrize("fn", [torch.cumsum, torch.cumprod, torch.logcumsumexp, torch.fft.ifft])
def test_written(fn):
    a = np.random.default_rng(0).random((N, N)).astype(np.complex64 if fn is torch.fft.ifft else np.float64)
    x, out = torch.from_numpy(a), at_odd(np.zeros_like(a))
    for _ in range(3):
        assert fn(x, dim=0, out=out) is out
        torch.testing.assert_close(out, fn(x, dim=0))
