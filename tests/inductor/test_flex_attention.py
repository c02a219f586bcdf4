"""flex_attention beside whole matrices in float64: users' functions, masks, shared heads, gradients; compiled, no matrix of scores is in memory forward or backward."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.inductor import debug
from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention
from flambeau.testing import guard_pages

SIZES = [
    # batch, heads, heads of keys, queries, keys, width
    (1, 4, 4, 300, 300, 16),
    (2, 3, 3, 257, 300, 24),
    (1, 1, 1, 512, 96, 8),  # one matrix: its rows go in lanes
    (1, 4, 2, 97, 530, 5),
    (2, 2, 1, 130, 66, 3),
    (1, 2, 2, 70, 69, 7),
]
MODS = {
    "none": (None, None),
    "a slope": (lambda s, b, h, i, j: s + (i - j) * 0.01 * (h + 1), None),
    "capped": (lambda s, b, h, i, j: torch.tanh(s / 3) * 3 - b * 0.1, lambda b, h, i, j: i >= j),
    "a window": (None, lambda b, h, i, j: (i - j).abs() < 20),
}


def attend(size, mod):
    score_mod, mask_mod = MODS[mod]
    mask = None if mask_mod is None else create_block_mask(mask_mod, None, None, size[3], size[4])
    return lambda q, k, v: flex_attention(q, k, v, score_mod, mask, enable_gqa=size[1] != size[2])


def operands(size, dtype, seed=0):
    rng = np.random.default_rng(seed)
    b, h, held, t, s, e = size
    shapes = ((b, h, t, e), (b, held, s, e), (b, held, s, e), (b, h, t, e))
    return [torch.tensor(rng.normal(size=n), dtype=dtype) for n in shapes]


def results(f, operands):
    """The output and the gradients of query, key and value."""
    *inputs, g = operands
    inputs = [x.detach().requires_grad_() for x in inputs]
    out = f(*inputs)
    return out.detach(), *torch.autograd.grad(out, inputs, g)


def off(got, want) -> float:
    """How far from `want` at most, in parts of its greatest element."""
    return max(float((x.double() - y).abs().max() / y.abs().max()) for x, y in zip(got, want))


def check(size, mod, dtype):
    f, args = attend(size, mod), operands(size, dtype)
    torch._dynamo.reset()
    got = results(torch.compile(f, fullgraph=True), args)
    want = results(f, [x.double() for x in args])
    bound = {torch.float16: 2**-10, torch.bfloat16: 2**-7}.get(dtype, 256 * torch.finfo(dtype).eps)
    assert all(x.dtype is dtype for x in got) and off(got, want) < bound, off(got, want)
    return got


@pytest.mark.parametrize("mod", MODS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_beside_whole_matrices(size, mod):
    for dtype in (torch.float32, torch.float64):
        check(size, mod, dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_numbers_are_rounded_once(dtype):
    check(SIZES[0], "a slope", dtype)


@pytest.mark.parametrize("size", SIZES[1:4], ids=str)
def test_the_number_of_threads_changes_no_bit(size):
    f, args, before = torch.compile(attend(size, "capped")), operands(size, torch.float32), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(results(f, args))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other))


def sources(f, args) -> list[str]:
    seen: list[str] = []
    torch._dynamo.reset()
    debug.listeners.append(seen.append)
    try:
        results(torch.compile(f), args)
    finally:
        debug.listeners.pop()
    return seen


@pytest.mark.parametrize("mod", MODS)
def test_forward_and_backward_are_one_launch_each(mod):
    for source in sources(attend(SIZES[0], mod), operands(SIZES[0], torch.float32)):
        assert source.count("through each of these") == 1 and "arena of 0 bytes" in source, source[:2000]


def test_rows_that_see_nothing():
    """Zeros, -inf, and no gradient, as PyTorch has it."""
    q, k, v = (x.requires_grad_() for x in operands((1, 2, 2, 128, 128, 8), torch.float64)[:3])
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i != 5), None, None, 128, 128)

    def f(q, k, v):
        return flex_attention(q, k, v, block_mask=mask, return_lse=True)

    for run in (f, torch.compile(f)):
        out, lse = run(q, k, v)
        assert (out[:, :, 5] == 0).all() and torch.isneginf(lse[:, :, 5]).all() and torch.isfinite(lse[:, :, 6:]).all()
        grads = torch.autograd.grad(out.sum() + lse[:, :, 6:].sum(), (q, k, v))
        assert (grads[0][:, :, 5] == 0).all() and all(torch.isfinite(x).all() for x in grads)


def test_what_is_no_number_stays_in_its_rows():
    q, k, v, g = operands((1, 2, 2, 128, 128, 8), torch.float32)
    q[0, 0, 7, 1] = torch.nan
    v[0, 1, 9, 2] = torch.inf
    f = attend((1, 2, 2, 128, 128, 8), "a slope")
    for x, y in zip(results(torch.compile(f), (q, k, v, g)), results(f, (q, k, v, g))):
        torch.testing.assert_close(x, y, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_second_derivative():
    q, k, v = (x.requires_grad_() for x in operands((1, 2, 2, 66, 66, 4), torch.float64)[:3])
    f = attend((1, 2, 2, 66, 66, 4), "capped")

    def whole(q, k, v):
        i = torch.arange(66)
        s = torch.tanh(q @ k.transpose(-2, -1) / 6) * 3
        return s.masked_fill(i[:, None] < i, -torch.inf).softmax(-1) @ v

    found = []
    for run in (f, whole):
        first = torch.autograd.grad(run(q, k, v).square().sum(), (q, k, v), create_graph=True)
        found.append(torch.autograd.grad(sum((x**3).sum() for x in first), (q, k, v)))
    for x, y in zip(*found):
        torch.testing.assert_close(x, y, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dynamic", [False, True])
def test_second_derivative_by_blocks(dynamic):
    size = (1, 4, 2, 516, 520, 4)  # as many pairs as blocks are worth
    slope = torch.rand(4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 516, 520)

    def f(q, k, v):
        def change(s, b, h, i, j):
            return s + slope[h] * (i - j) * 0.01

        return flex_attention(q, k, v, change, mask, enable_gqa=True)

    q, k, v, g = operands(size, torch.float64)
    found = []
    for run in (torch.compile(f, fullgraph=True, dynamic=dynamic), f):
        inputs = [x.detach().requires_grad_() for x in (q, k, v)] + [slope]
        out = run(*inputs[:3])
        first = torch.autograd.grad(out, inputs, g.clone().requires_grad_(), create_graph=True)
        found.append([*first, *torch.autograd.grad(sum(x.sin().sum() for x in first), inputs)])
    for x, y in zip(*found, strict=True):
        torch.testing.assert_close(x, y, rtol=1e-9, atol=1e-9)


def sweep(every: int = 1) -> None:
    for i, size in enumerate(SIZES):
        for j, mod in enumerate(MODS):
            if (i + j) % every == 0:
                check(size, mod, torch.float32)


@pytest.mark.parametrize(("cpu", "products"), [("avx2", "own"), level("avx2", ""), ("", "library")])
def test_other_kinds_of_cpu(cpu, products):
    guard_pages.run_alone(__file__, "sweep(3)", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS=products)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
@pytest.mark.parametrize("allocator", ["guarded", "guarded_below"])
def test_nothing_outside_is_touched(allocator):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_ALLOCATOR=allocator)
