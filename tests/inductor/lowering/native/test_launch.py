"""KernelCalls that a compiled graph launches between its kernels: beside the eager operators, in all layouts, dtypes and sizes."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.base import blas, kernels
from flambeau.testing import guard_pages

F = torch.nn.functional


def beside_eager(fn, *tensors, tolerance=2e-5, fallbacks=False):
    """Values, strides and gradients of fn, compiled and eager; nothing falls back to Python in the graph."""
    results = []
    before = torch._inductor.metrics.num_fallbacks
    for f in (fn, torch.compile(fn)):
        mine = [t.detach().clone().requires_grad_(t.requires_grad) for t in tensors]
        out = f(*mine)
        asks = [t for t in mine if t.requires_grad]
        grads = torch.autograd.grad(out, asks, torch.cos(out.detach())) if asks else ()
        results.append((out.detach(), *grads))
    assert (torch._inductor.metrics.num_fallbacks > before) == fallbacks
    for want, got in zip(*results):
        assert got.dtype == want.dtype and got.shape == want.shape
        assert all(a == b for n, a, b in zip(got.shape, got.stride(), want.stride()) if n > 1)
        scale = max(1.0, float(want.abs().max())) if want.numel() else 1.0
        assert torch.allclose(got, want, rtol=0, atol=tolerance * scale)


CONVOLUTIONS = [
    ((2, 6, 9, 11), (8, 6, 3, 3), {"padding": 1}),
    ((2, 6, 9, 11), (8, 3, 3, 2), {"padding": (1, 0), "stride": (2, 1), "groups": 2, "dilation": (1, 2)}),
    ((3, 4, 30), (6, 4, 5), {"padding": 2, "stride": 3}),
    ((2, 3, 5, 6, 7), (4, 3, 2, 3, 3), {"padding": 1}),
]


@pytest.mark.parametrize("x, w, how", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions(x, w, how, bias):
    torch.manual_seed(0)
    conv = (F.conv1d, F.conv2d, F.conv3d)[len(x) - 3]
    tensors = [torch.randn(*x, requires_grad=True), torch.randn(*w, requires_grad=True)]
    tensors += [torch.randn(w[0], requires_grad=True)] if bias else []
    beside_eager(lambda *a: conv(*a, **how) * 2, *tensors)


@pytest.mark.parametrize("bias", [False, True])
def test_transposed_convolutions(bias):
    torch.manual_seed(0)
    tensors = [torch.randn(2, 6, 5, 7, requires_grad=True), torch.randn(6, 4, 3, 3, requires_grad=True)]
    tensors += [torch.randn(4, requires_grad=True)] if bias else []
    beside_eager(lambda *a: F.conv_transpose2d(*a, stride=2, padding=1), *tensors)


def test_convolution_of_layouts_and_dtypes():
    torch.manual_seed(0)
    x, w = torch.randn(2, 9, 8, 6), torch.randn(5, 6, 3, 3)
    beside_eager(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w), x, w)
    beside_eager(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w), x.double(), w.double())
    beside_eager(lambda x, w: F.conv2d(x.permute(0, 3, 1, 2), w), x.bfloat16(), w.bfloat16(), tolerance=1e-2)


def test_convolution_of_any_batch():
    torch.manual_seed(0)
    w = torch.randn(8, 6, 3, 3)
    f = torch.compile(lambda x: F.conv2d(x, w, padding=1).relu(), dynamic=True)
    for n in (2, 3, 5):
        x = torch.randn(n, 6, 9, 7 + n)
        assert torch.allclose(f(x), F.conv2d(x, w, padding=1).relu(), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4, 1, 40), (2, 4, 7, 33), (1, 2, 70, 600)], ids=str)
@pytest.mark.parametrize("masked", [None, "bool", "float"])
@pytest.mark.parametrize("width", [8, 64, 72, 100])
def test_attention(shape, masked, width):
    torch.manual_seed(0)
    b, h, t, s = shape
    q, k, v = (torch.randn(b, h, n, width, requires_grad=True) for n in (t, s, s))
    mask = torch.randn(t, s) if masked == "float" else torch.rand(1, t, s) > 0.3 if masked else None
    beside_eager(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), q, k, v)
    transposed = [x.detach().transpose(1, 2).contiguous() for x in (q, k, v)]
    beside_eager(
        lambda *a: F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in a), is_causal=mask is None), *transposed
    )


def test_one_more_token_beside_float64():
    torch.manual_seed(0)
    for heads, held, s, e in ((8, 8, 700, 64), (8, 2, 129, 24), (4, 4, 3, 130)):
        q, k, v = torch.randn(2, heads, 2, e), torch.randn(2, held, s, e), torch.randn(2, held, s, e)
        got = torch.compile(lambda *a: F.scaled_dot_product_attention(*a, enable_gqa=True))(q, k, v)
        k, v = (x.repeat_interleave(heads // held, 1).double() for x in (k, v))
        want = ((q.double() @ k.transpose(2, 3)) / e**0.5).softmax(-1) @ v
        assert float((got - want).abs().max()) < 3e-6


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool", "bfloat16"])
def test_scans(op, dtype):
    torch.manual_seed(0)
    for shape, dim in (((7,), 0), ((5, 9), 1), ((5, 9), 0), ((3, 4, 70), -2), ((2, 130, 3), 1)):
        x = (torch.rand(*shape) * 3 + 0.1).to(getattr(torch, dtype))
        beside_eager(lambda x: getattr(torch, op)(x, dim), x, tolerance=1e-6)
    asks = torch.rand(4, 6, 5, dtype=torch.float64, requires_grad=True)
    beside_eager(lambda x: getattr(torch, op)(x.transpose(0, 2), 1), asks, tolerance=1e-12)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_long_scans_do_not_depend_on_threads(rows):
    x = np.random.default_rng(0).normal(size=(rows, 100_003)).astype("f")
    old, made = torch.get_num_threads(), []
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            made.append(blas.scan(x, 1, False))
    finally:
        torch.set_num_threads(old)
    assert all((made[0] == m).all() for m in made)
    np.testing.assert_allclose(made[0], np.cumsum(x, 1, dtype="d"), rtol=1e-6, atol=1e-5)
    assert np.isnan(blas.scan(np.array([1.0, np.nan, 2.0]), 0, False))[1:].all()


@pytest.mark.parametrize(
    "how", [(2,), (3, 2, 1), (3, 1), ((2, 3), (3, 1), (1, 1)), (2, 2, 0, 1, True), (3, 5, 1)], ids=str
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pooling(how, dtype):
    torch.manual_seed(0)
    for shape in ((2, 3, 11, 14), (5, 9, 300)):
        x = torch.randint(-9, 9, shape).to(getattr(torch, dtype))  # with equal elements
        x.flatten()[::17] = float("nan")
        x.flatten()[3::29] = -float("inf")
        # a function of its own, since the eager operator is compiled for large tensors
        for part in range(2):
            got = torch.compile(lambda x: F.max_pool2d(x, *how, return_indices=True)[part])(x)  # noqa: B023
            want = F.max_pool2d(x, *how, return_indices=True)[part]
            assert torch.equal(got.nan_to_num(77.0), want.nan_to_num(77.0))
        beside_eager(lambda x: F.max_pool2d(x, *how), torch.randn(*shape).to(x.dtype).requires_grad_())
    channels_last = torch.randn(2, 4, 8, 8).to(memory_format=torch.channels_last)
    beside_eager(lambda x: F.max_pool2d(x, *how[:1]), channels_last)


def test_a_bad_place_of_a_maximum():
    aten = torch.ops.aten.max_pool2d_with_indices_backward.default
    f = torch.compile(lambda g, x, i: aten(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, i))
    x, g = torch.randn(1, 1, 4, 4), torch.ones(1, 1, 2, 2)
    for bad in (16, -1):
        with pytest.raises(IndexError, match="out of bounds for dimension with size 16"):
            f(g, x, torch.tensor([[[[0, 1], [2, bad]]]]))


def test_sums_over_a_few_channels():
    x = torch.rand(40, 3, 31, 37)
    for dims in ((0, 2, 3), (0, 3), (2, 3), (0, 1, 3)):
        got = torch.compile(lambda x: (x * 2).sum(dims))(x)  # noqa: B023
        assert torch.allclose(got.double(), (x.double() * 2).sum(dims), rtol=2e-6)


def read_only_inside() -> None:
    """Convolutions and scans over arrays between pages that nobody may touch."""
    rng = np.random.default_rng(0)
    blas.share_threads()

    def guarded(shape, at_end):
        return place[at_end](rng.normal(size=shape).astype("f"))

    place = [guard_pages.GuardPages(at_end) for at_end in (False, True)]
    shapes = [
        ((2, 3, 13, 17), (8, 3, 5, 5), (1, 2)),
        ((1, 6, 30, 31), (9, 6, 3, 3), (2, 1)),
        ((3, 32, 9, 9), (16, 32, 3, 3), (1, 1)),
        ((2, 5, 1, 61), (7, 5, 1, 4), (1, 0)),
        ((2, 9, 8, 8), (9, 1, 3, 3), (2, 1)),
        ((2, 40, 6, 6), (10, 40, 1, 1), (1, 0)),
    ]
    for at_end in (False, True):
        for x, w, (stride, pad) in shapes:
            groups = x[1] // w[1]
            out = [(n + 2 * p - k) // stride + 1 for n, k, p in zip(x[2:], w[2:], (pad if w[2] > 1 else 0, pad))]
            a, b, y, bias = (guarded(s, at_end) for s in (x, w, (x[0], w[0], *out), (w[0],)))
            how = (stride, stride, pad if w[2] > 1 else 0, pad, 1, 1)
            rest = {"stride": (1, *how[:2]), "padding": (0, *how[2:4]), "dilation": (1, *how[4:])}
            rest |= {"groups": groups, "f64": False}
            for way in kernels.Way:
                kernels.convolution([a, b, bias], [y], direction=kernels.Conv.FORWARD, way=way, **rest)
                kernels.convolution([y, b], [a], direction=kernels.Conv.INPUT, way=way, **rest)
                kernels.convolution([y, a], [b], direction=kernels.Conv.WEIGHT, way=way, **rest)
        for shape, dim in (((5, 37), 1), ((3, 11, 67), 1), ((1, 70000), 1)):
            given, made = ([guarded(shape, at_end)] for _ in range(2))
            kernels.scan(given, made, dim=dim, product=False, element=kernels.Element.F32)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("cpu", ["", level("avx2"), "default"])
def test_reads_nothing_outside_its_arrays(cpu):
    guard_pages.run_alone(__file__, "read_only_inside()", **({"FLAMBEAU_CPU": cpu} if cpu else {}))
