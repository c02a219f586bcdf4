"""Operators that call plans make of native kernels (csrc/runtime/kernels.def) and of reads and writes by index: later calls do what the first did, and run
no Python of the package's."""

import sys

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
NAN, INF = float("nan"), float("inf")
X = torch.tensor([[3.0, NAN, -1.0, 3.0], [0.0, -0.0, 2.0, -INF], [5.0, 5.0, NAN, NAN]])
Z = torch.arange(24.0).reshape(2, 3, 4).sin()
N = torch.tensor([[3, 1, 3, -7], [0, 0, 2, 2]])
IMAGE = torch.arange(2 * 4 * 6 * 7.0).reshape(2, 4, 6, 7).sin()
LAST = IMAGE.contiguous(memory_format=torch.channels_last)
MASK = torch.eye(5)
WEIGHT = torch.arange(6 * 2 * 3 * 3.0).reshape(6, 2, 3, 3).cos()
Q, K, V = (torch.arange(2 * 2 * 5 * 8.0).add(k).reshape(2, 2, 5, 8).sin() for k in range(3))
ROW = torch.tensor([[0, 0, 1, 0]])
I = torch.tensor([[0, 2, 1, 0], [2, 2, 0, 1]])
KINDS = [
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
]


def ordered(x):
    """All that looks for places, greatest or least."""
    for dim in (0, -1):
        for keepdim in (False, True):
            yield from (x.argmax(dim, keepdim), x.argmin(dim, keepdim), *x.max(dim, keepdim), *x.min(dim, keepdim))
        yield from (*x.sort(dim), *x.sort(dim, descending=True), *x.topk(2, dim), *x.topk(1, dim, largest=False))
        yield from (x.argsort(dim), *x.cummax(dim), *x.cummin(dim), x.median(dim)[0], x.kthvalue(2, dim)[0])
    yield from (x.argmax(), x.argmin(), x.median(), x.msort())


CASES = {
    "order": lambda: list(ordered(X)),
    "order of a transpose": lambda: list(ordered(X.t())),
    "order of steps": lambda: list(ordered(X[:, ::2])),
    "order of integers": lambda: list(ordered(N)),
    "scans": lambda: [Z.cumsum(1), Z.transpose(0, 2).cumsum(0), N.cumprod(1), N.cumsum(0, dtype=torch.float16), Z.logcumsumexp(2)],
    "search": lambda: [torch.searchsorted(X[1].abs().sort()[0], Z, right=right) for right in (False, True)],
    "convolution": lambda: [
        F.conv2d(IMAGE, WEIGHT, groups=2),
        F.conv2d(LAST, WEIGHT, torch.arange(6.0), stride=(2, 1), padding=1, dilation=(1, 2), groups=2),
        F.conv2d(IMAGE[0], WEIGHT, groups=2),
        F.conv1d(IMAGE[:, :, 0], WEIGHT[:, :, 0], padding=1, groups=2),
        F.conv3d(IMAGE[:, :, None], WEIGHT[:, :, None], padding=(1, 0, 0), groups=2),
        F.conv_transpose2d(IMAGE, WEIGHT[:4], torch.arange(2.0), stride=2, output_padding=1),
    ],
    "pooling": lambda: [
        *F.max_pool2d(IMAGE, 2, return_indices=True),
        F.max_pool2d(LAST, 3, 2, 1),
        F.max_pool2d(IMAGE, 3, 2, 1, ceil_mode=True),
        F.max_pool2d(X[None], 2, 1),
        F.avg_pool2d(IMAGE, 3, 2, 1),
        F.adaptive_avg_pool2d(IMAGE, 2),
    ],
    "attention": lambda: [
        F.scaled_dot_product_attention(Q, K, V),
        F.scaled_dot_product_attention(Q, K, V, is_causal=True),
        F.scaled_dot_product_attention(Q, K, V, attn_mask=MASK, scale=0.5),
        F.scaled_dot_product_attention(*(t.transpose(1, 2).contiguous().transpose(1, 2) for t in (Q, K, V))),
    ],
    "interpolate": lambda: [
        F.interpolate(IMAGE, scale_factor=2.0, mode="bilinear"),
        F.interpolate(LAST, (3, 9), mode="bilinear", align_corners=True),
        F.interpolate(IMAGE, (3, 9)),
        F.interpolate(IMAGE[:, :, 0], 4, mode="linear"),
        F.interpolate(IMAGE, (5, 5), mode="bicubic"),
    ],
    "cross_entropy": lambda: [
        F.cross_entropy(Z[0], torch.tensor([1, 0, 3])),
        F.cross_entropy(Z[0], torch.tensor([1, -100, 3]), weight=torch.arange(4.0), reduction="sum"),
        F.cross_entropy(Z, torch.tensor([[0, 1, 2, 0], [-5, 1, 1, 2]]), ignore_index=-5, reduction="none"),
        F.cross_entropy(Z[0], torch.tensor([1, 0, 3]), label_smoothing=0.1),
        F.cross_entropy(Z[0], Z[1].softmax(1)),
    ],
    "writes by index": lambda: [
        X[:2].scatter_add(1, I.clamp(max=3), Z[0][:2]),
        X.scatter_add(0, I, Z[0]),
        N.scatter_add(1, I, N * 5),
        X.scatter(1, I[:, :2], 2.5),
        X.t().scatter(0, I[:, :3], Z[0][:2]),
        N.scatter(0, ROW, N),
        torch.zeros(4, 4).index_add(0, torch.tensor([3, 3, 0]), X),
        X.slice_scatter(Z[0][:, :2], 1, 1, 4, 2),
    ],
    "flips": lambda: [X.flip(0), X.flip([0, 1]), X.t().flip(1), Z.transpose(0, 2)[::2].flip([0, 2]), N.flip([])],
}  # fmt: skip


def gradient(f, *args):
    def call():
        given = [a.detach().requires_grad_() for a in args]
        out = f(*given)
        return list(torch.autograd.grad((out * torch.arange(float(out.numel())).reshape(out.shape).cos()).sum(), given))

    return call


GRADIENTS = {
    "convolution": gradient(lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2), IMAGE, WEIGHT),
    "transposed convolution": gradient(lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGE, WEIGHT[:4]),
    "max_pool2d": gradient(lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE),
    "avg_pool2d": gradient(lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE),
    "interpolate": gradient(lambda x: F.interpolate(x, (9, 3), mode="bilinear"), IMAGE),
    "attention": gradient(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), Q, K, V),
    "cross_entropy": gradient(lambda x: F.cross_entropy(x, torch.tensor([1, -100, 3])), Z[0]),
    "cumsum": gradient(lambda x: x.cumsum(1), Z),
    "sort": gradient(lambda x: x.sort(1, descending=True)[0], Z),
    "topk": gradient(lambda x: x.topk(2)[0], Z),
    "max": gradient(lambda x: x.max(1)[0], Z),
    "scatter_add": gradient(lambda x, s: x.scatter_add(0, I, s), Z[0], Z[1]),
    "embedding": gradient(lambda w: F.embedding(I, w), Z[0]),
    "flip": gradient(lambda x: x.flip([0, 2]), Z),
    "slices": gradient(lambda x: x[1:, ::2] + x[0, 1], Z[0]),
    "diagonal": gradient(lambda x: x.diagonal(1, 1, 2), Z),
    "unfold": gradient(lambda x: x.unfold(2, 3, 1), Z),
}


def facts(results):
    return [(t.dtype, tuple(t.shape), t.stride(), t.double().numpy().copy()) for t in results]


def agree(a, b) -> bool:
    return a[:3] == b[:3] and np.allclose(a[3], b[3], rtol=1e-5, atol=1e-6, equal_nan=True)


def python_of(f) -> set:
    """Files of the package with kernels or bodies of operators that run in ``f()``."""
    seen = set()
    sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_filename))
    try:
        f()
    finally:
        sys.setprofile(None)
    return {name for name in seen if "/flambeau/eager/" in name or "/flambeau/ops/" in name}


@pytest.mark.parametrize(
    "f", [*CASES.values(), *GRADIENTS.values()], ids=[*CASES, *(f"{n}, gradient" for n in GRADIENTS)]
)
def test_later_calls_do_what_the_first_did_without_python(f):
    from flambeau import _C

    _C.forget_call_plans()
    first = facts(f())
    for _ in range(4):
        for a, b in zip(first, facts(f()), strict=True):
            assert agree(a, b), (a, b)
    assert not python_of(f)


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_places_in_every_dtype(dtype):
    from flambeau import _C

    values = np.array([[3, 1, 3, 0, 1], [0, 5, 5, 2, 4]])
    x = torch.from_numpy(values).to(dtype)
    if dtype.is_floating_point:
        x[1, 3] = NAN
    seen = x.double().numpy()
    _C.forget_call_plans()
    for _ in range(4):
        assert np.array_equal(x.argmax(1).numpy(), np.argmax(seen, 1))
        assert np.array_equal(x.argmin(0).numpy(), np.argmin(seen, 0))
        assert x.argmax().item() == np.argmax(seen)
    limits = torch.tensor([np.iinfo(np.int64).max, np.iinfo(np.int64).min, np.iinfo(np.int64).max])
    for _ in range(3):
        assert (limits.argmax().item(), limits.argmin().item()) == (0, 1)


def test_an_index_out_of_bounds_is_an_error_and_writes_nothing():
    x, source = torch.zeros(3, 4), torch.ones(2, 4)
    for call in (
        lambda index: x.scatter_add_(0, index, source),
        lambda index: x.scatter_(0, index, source),
        lambda index: x.scatter_add(0, index, source),
        lambda index: torch.ops.aten.max_pool2d_with_indices_backward(
            source[None, :, 2:], torch.zeros(1, 2, 4), [1, 2], [1, 2], [0, 0], [1, 1], False, index[None, :, 2:]
        ),
    ):
        for _ in range(3):
            call(I)
        before = x.clone()
        for bad in (9, -9):
            with pytest.raises((IndexError, RuntimeError)):
                call(torch.where(I == 1, bad, I))
        assert torch.equal(x, before)


def test_a_call_that_takes_long_lets_other_threads_run_and_keeps_its_arguments():
    """A template that works for milliseconds gives up the interpreter's lock: what it reads may be replaced meanwhile."""
    import threading

    x = torch.arange(60_000.0).mul(0.37).sin().reshape(2, 30_000)
    want = x.sort(1)[0]
    stop = threading.Event()

    def replace(memory=x.data):
        while not stop.is_set():
            x.data = memory.clone()

    other = threading.Thread(target=replace)
    other.start()
    try:
        assert all(torch.equal(x.sort(1)[0], want) for _ in range(20))
    finally:
        stop.set()
        other.join()
