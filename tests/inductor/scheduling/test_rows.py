"""Products and the kernels beside them taken through blocks of rows: the same results as apart, whatever the sizes, threads and CPU, and nothing touched outside."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.inductor import debug
from flambeau.inductor.settings import config
from flambeau.testing import guard_pages

F = torch.nn.functional


def linear_relu(x, w, b):
    return torch.relu(F.linear(x, w, b))


def linear_gelu_kept(x, w, b):
    y = F.linear(x, w, b)
    return y, F.gelu(y)


def softmax(x, w, b):
    return F.linear(x, w, b).softmax(-1)


def statistics(x, w, b):
    y = F.linear(x, w, b)
    return y.sum(-1), y.amax(-1), y.square().mean(-1)


def residual(x, w, b):
    y = F.layer_norm(x, (x.shape[1],))
    return x + F.linear(torch.sigmoid(F.linear(y, w, b)), w.t())


def transposed(x, w, b):
    return torch.tanh(x.t().contiguous().t() @ w.t() + b).t()


def rows_scaled(x, w, b):
    return F.linear(x * x.square().mean(-1, keepdim=True).rsqrt(), w, b) * 0.5


FUNCTIONS = [linear_relu, linear_gelu_kept, softmax, statistics, residual, transposed, rows_scaled]
SIZES = [(96, 16, 48), (97, 5, 50), (200, 100, 33), (193, 400, 64), (1000, 96, 100), (257, 32, 1030)]


def compiled(f, *args):
    """(results, the source of the graph)."""
    seen: list[str] = []
    torch._dynamo.reset()
    debug.listeners.append(seen.append)
    try:
        out = torch.compile(f)(*args)
    finally:
        debug.listeners.pop()
    return out if isinstance(out, tuple) else (out,), "\n".join(seen)


def operands(m, k, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((m, k), (n, k), (n,))
    return [torch.from_numpy((rng.normal(size=s) * (0.3 if i else 1)).astype(dtype)) for i, s in enumerate(shapes)]


def check(f, m, k, n, dtype):
    args = operands(m, k, n, dtype)
    got, source = compiled(f, *args)
    assert "through each of these" in source, source[:2000]
    exact = f(*(a.double() for a in args))
    bound = float(np.finfo(dtype).eps) * 8 * (k + n)
    for x, y in zip(got, exact if isinstance(exact, tuple) else (exact,)):
        scale = max(1.0, float(y.abs().max()))
        assert float((x.double() - y).abs().max()) <= bound * scale, (f.__name__, m, k, n)
    return got


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_results(f):
    for i, (m, k, n) in enumerate(SIZES):
        check(f, m, k, n, (np.float32, np.float64)[i % 2])


@pytest.mark.parametrize("f", [linear_gelu_kept, residual], ids=lambda f: f.__name__)
def test_results_do_not_depend_on_the_threads(f):
    args, before = operands(1000, 96, 100, np.float32), torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(compiled(f, *args)[0])
    finally:
        torch.set_num_threads(before)
    for other in found[1:]:
        for x, y in zip(found[0], other):
            assert torch.equal(x, y)


@pytest.mark.parametrize("rows", [96, 97, 145, 191, 256, 300, 1000])
def test_every_number_of_threads_finds_blocks(rows):
    """Blocks are as many for each thread, and cover the rows whatever the steps they are rounded to."""
    args, before = operands(rows, 40, 50, np.float32), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        (wanted,), source = compiled(softmax, *args)
        assert "through each of these" in source
        for threads in (2, 3, 4, 7):
            torch.set_num_threads(threads)
            assert torch.equal(torch.compile(softmax)(*args), wanted), threads
    finally:
        torch.set_num_threads(before)


def test_a_large_right_operand_and_few_rows_stay_apart():
    def f(x, w, b):
        return torch.relu(F.linear(x, w, b))

    for (m, k, n), chained in [((256, 784, 1024), False), ((1024, 256, 1024), True), ((128, 128, 512), True)]:
        args = operands(m, k, n, np.float32)
        (got,), source = compiled(f, *args)
        assert ("through each of these" in source) == chained, (m, k, n)
        assert torch.allclose(got, f(*args), rtol=1e-4, atol=1e-4)


def test_what_is_no_number_goes_where_it_goes_apart():
    x, w, b = operands(200, 100, 33, np.float32)
    x[3, 5], x[100, 7], w[4, 9], b[2] = np.nan, np.inf, -np.inf, np.nan
    for f in FUNCTIONS:
        got, _ = compiled(f, x, w, b)
        with config.patch(epilogue_fusion=False):
            apart, source = compiled(f, x, w, b)
        assert "through each of these" not in source
        for a, c in zip(got, apart):
            np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-4, atol=1e-4)


def test_gradients():
    def step(x, w, b, v):
        h = F.gelu(F.linear(F.layer_norm(x, (x.shape[1],)), w, b))
        return (x + F.linear(h, v)).square().mean()

    args = [a.requires_grad_() for a in (*operands(300, 48, 80, np.float32), operands(48, 80, 1, np.float32)[0])]
    want = torch.autograd.grad(step(*args), args)
    torch._dynamo.reset()
    got = torch.autograd.grad(torch.compile(step)(*args), args)
    for x, y in zip(got, want):
        assert torch.allclose(x, y, rtol=1e-4, atol=1e-7)


def scores(q, k, v):
    return (q @ k.transpose(-2, -1)).softmax(-1) @ v


def biased(q, k, v):
    i = torch.arange(q.shape[-2])
    s = q @ k.transpose(-2, -1) * 0.2 - (i[:, None] - i[None]).abs() * 0.1
    return s.masked_fill(i[:, None] < i[None], float("-inf")).softmax(-1) @ v


def projected(q, k, v):
    y = scores(q, k, v)
    return (y.reshape(-1, y.shape[-1]) @ torch.ones(y.shape[-1], 24, dtype=y.dtype)).relu()


@pytest.mark.parametrize("f", [scores, biased, projected], ids=lambda f: f.__name__)
@pytest.mark.parametrize("heads", [(1, 6), (3, 2), (5, 1)])
def test_batched_products(f, heads):
    rng = np.random.default_rng(1)
    for t, e, dtype in ((48, 16, np.float32), (100, 24, np.float64), (257, 32, np.float32)):
        q, k, v = (torch.from_numpy(rng.normal(size=(*heads, t, e)).astype(dtype)) for _ in range(3))
        (got,), source = compiled(f, q, k, v)
        assert "through each of these" in source
        exact = f(*(x.double() for x in (q, k, v)))
        assert float((got.double() - exact).abs().max()) <= 40 * float(np.finfo(dtype).eps) * float(exact.abs().max())


def test_user_score_and_mask_functions_run_between_the_products():
    from flambeau.nn.attention.flex_attention import create_block_mask, flex_attention

    rng = np.random.default_rng(2)
    q, k, v = (torch.from_numpy(rng.normal(size=(2, 3, 128, 16)).astype("f")) for _ in range(3))
    mask = create_block_mask(lambda b, h, i, j: (i >= j) & (i - j < 40), None, None, 128, 128)

    def f(q, k, v):
        return flex_attention(q, k, v, score_mod=lambda s, b, h, i, j: torch.tanh(s / 3) * 3 - h * 0.1, block_mask=mask)

    (got,), source = compiled(f, q, k, v)
    assert "arena of 0 bytes" in source and source.count("through each of these") == 1  # no matrix of scores
    assert torch.allclose(got, f(q, k, v), rtol=1e-5, atol=1e-5)


def test_buffers_of_a_chain_only_take_no_memory():
    x, w, b = operands(1000, 96, 768, np.float32)
    _, source = compiled(lambda x, w, b: F.linear(F.gelu(F.linear(x, w, b)), w.t()), x, w, b)
    assert "arena of 0 bytes" in source


def test_a_right_operand_made_beside_is_whole_before():
    def f(x, w, b):
        y = torch.relu(x @ x.t())  # both rows and columns of the next product
        return y @ y

    x = operands(128, 40, 3, np.float32)[0] * 0.1
    (got,), _ = compiled(f, x, None, None)
    assert torch.allclose(got, f(x, None, None), rtol=1e-4, atol=1e-5)


def sweep(every: int) -> None:
    for i, f in enumerate(FUNCTIONS):
        for j, (m, k, n) in enumerate(SIZES):
            if (i + j) % every == 0:
                check(f, m, k, n, (np.float32, np.float64)[j % 2])


def guarded() -> None:
    """All operands lie between pages that can't be touched."""
    for at_end in (False, True):
        for m, k, n in SIZES[:4]:
            place = guard_pages.GuardPages(at_end)
            args = [torch.from_numpy(place(a.numpy())) for a in operands(m, k, n, np.float32)]
            for f in (linear_relu, residual):
                _, source = compiled(f, *args)
                assert "through each of these" in source


@pytest.mark.parametrize(("cpu", "products"), [("avx2", "own"), ("default", "own"), level("avx2", ""), ("", "library")])
def test_other_kinds_of_cpu(cpu, products):
    """In a process of its own: the CPU is looked at once."""
    guard_pages.run_alone(__file__, "sweep(5)", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS=products)


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_nothing_outside_is_touched():
    guard_pages.run_alone(__file__, "guarded()")


def test_a_package_keeps_chains(tmp_path):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = torch.nn.Linear(64, 200), torch.nn.Linear(200, 64)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(x)))

    block, x = Block(), torch.randn(300, 64)
    path = str(tmp_path / "block.pt2")
    torch._inductor.aoti_compile_and_package(torch.export.export(block, (x,)), package_path=path)
    assert torch.allclose(torch._inductor.aoti_load_package(path)(x), block(x), rtol=1e-5, atol=1e-6)
