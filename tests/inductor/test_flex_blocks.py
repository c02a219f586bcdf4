"""Compiled flex_attention by blocks beside whole matrices: symbolic lengths, masks, learned tensors; what it computes and what it keeps in memory."""

import numpy as np
import pytest
from flambeau._dynamo.testing import CompileCounter

import flambeau as torch
from flambeau.aot import attention_loops
from flambeau.nn.attention import flex_blocks
from flambeau.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention

SIZES = [
    # batch, heads, heads of keys, queries, keys, width
    (2, 4, 2, 300, 530, 16),
    (1, 3, 3, 40, 257, 5),
    (2, 2, 1, 513, 33, 8),
]
BIAS = torch.tensor(np.random.default_rng(3).normal(size=(4, 600)), dtype=torch.float64, requires_grad=True)
DOCUMENTS = torch.arange(600) // 90
MODS = {
    "none": None,
    "a slope": lambda s, b, h, i, j: s + (i - j) * 0.01 * (h + 1) - b * 0.1,
    "capped": lambda s, b, h, i, j: torch.tanh(s / 3) * 3,
    "a learned bias by distance": lambda s, b, h, i, j: s + BIAS[h, (i - j).abs()].to(s.dtype),
    "a learned bias by key": lambda s, b, h, i, j: s * BIAS[0, j].to(s.dtype),
    "not of the scores": lambda s, b, h, i, j: (s * 0).detach() + (i - j) * 0.1,
}
MASKS = {
    "none": None,
    "causal": lambda b, h, i, j: i >= j,
    "a window": lambda b, h, i, j: (i - j).abs() < 20,
    "by heads and images": lambda b, h, i, j: (i + h * 90 >= j) & (j >= b * 50),
    "documents": lambda b, h, i, j: DOCUMENTS[i] == DOCUMENTS[j],
    "nothing for some": lambda b, h, i, j: (i % 17 > 8) & (j > i),
    "all": lambda b, h, i, j: b.new_ones((), dtype=torch.bool),
}


@pytest.fixture
def always(monkeypatch):
    """Blocks whatever the lengths are."""
    monkeypatch.setattr(flex_blocks, "LEAST", 0)


@pytest.fixture
def turns(monkeypatch):
    """(image, block of rows, blocks of keys) of each loop that ran."""
    found, pairs = [], attention_loops._pairs

    def noted(*given):
        found.append(list(pairs(*given)))
        return iter(found[-1])

    monkeypatch.setattr(attention_loops, "_pairs", noted)
    return found


def operands(size, dtype=torch.float64):
    rng = np.random.default_rng(1)
    b, h, held, t, s, e = size
    return [torch.tensor(rng.normal(size=n), dtype=dtype) for n in ((b, h, t, e), (b, held, s, e), (b, held, s, e))]


def attention(mod, mask):
    def f(q, k, v):
        held = None if mask is None else create_block_mask(mask, None, None, q.shape[2], k.shape[2])
        return flex_attention(q, k, v, mod, held, enable_gqa=True, return_lse=True)

    return f


def results(f, inputs):
    """The result, the logarithms, and the gradients of the inputs and of the bias."""
    inputs = [x.detach().requires_grad_() for x in inputs]
    out, lse = f(*inputs)
    loss = (out.double() * torch.arange(out.numel()).view(out.shape).cos()).sum() + (lse.double().exp() * 0.1).sum()
    grads = torch.autograd.grad(loss, [*inputs, BIAS], allow_unused=True, materialize_grads=True)
    return [x.detach() for x in (out, lse, *grads)]


def off(got, want) -> float:
    """How far apart at most, in parts of the greatest element; what isn't finite has to be the same."""
    worst = 0.0
    for x, y in zip(got, want, strict=True):
        x, y = x.double().numpy(), y.double().numpy()
        kept = np.isfinite(y)
        np.testing.assert_array_equal(x[~kept], y[~kept])
        worst = max(worst, np.abs(x[kept] - y[kept]).max() / max(np.abs(y[kept]).max(), 1e-30))
    return worst


PAIRS = [
    ("none", "documents"),
    ("a slope", "none"),
    ("a slope", "nothing for some"),
    ("capped", "by heads and images"),
    ("a learned bias by distance", "causal"),
    ("a learned bias by key", "a window"),
    ("not of the scores", "all"),
]


# Symbolic lengths take long to compile: the others have them in the slow run.
SYMBOLIC = [("a slope", "none"), ("a learned bias by distance", "causal")]


@pytest.mark.parametrize(
    ("mod", "mask", "dynamic"),
    [
        pytest.param(*pair, dynamic, marks=pytest.mark.slow if dynamic and pair not in SYMBOLIC else ())
        for pair in PAIRS
        for dynamic in (True, False)
    ],
)
def test_beside_whole_matrices(mod, mask, dynamic, always, turns):
    f = attention(MODS[mod], MASKS[mask])
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, dynamic=dynamic)
    for size in SIZES if dynamic else SIZES[::2]:
        got = results(compiled, operands(size))
        # Without a mask whole rows of known lengths go through one launch.
        assert len(turns) == (2 if dynamic or mask != "none" else 0)
        turns.clear()
        assert off(got, results(f, operands(size))) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype, always, turns):
    f = attention(MODS["a learned bias by distance"], MASKS["causal"])
    inputs = operands(SIZES[0], dtype)
    torch._dynamo.reset()
    got = results(torch.compile(f, fullgraph=True), inputs)
    assert len(turns) == 2
    want = results(f, [x.double() for x in inputs])
    assert [x.dtype for x in got] == [dtype, torch.float32, dtype, dtype, dtype, torch.float64]
    assert off(got, want) < (2e-5 if dtype is torch.float32 else 2 * torch.finfo(dtype).eps)


def test_static_lengths_with_a_learned_bias(always, turns):
    """Without a mask whole rows go through one launch, unless a tensor is learned: its gradient would take a matrix."""
    for mod, loops in (("a slope", 0), ("a learned bias by key", 2)):
        f = attention(MODS[mod], None)
        torch._dynamo.reset()
        got = results(torch.compile(f, fullgraph=True, dynamic=False), operands(SIZES[0]))
        assert len(turns) == loops
        assert off(got, results(f, operands(SIZES[0]))) < 1e-12


def test_hidden_blocks_are_left_out(always, turns):
    size = (1, 2, 2, 2048, 2048, 4)
    results(torch.compile(attention(None, MASKS["a window"])), operands(size))
    across = 2048 // attention_loops.KEYS
    assert [sum(len(seen) for *_, seen in loop) for loop in turns] == [3 * across - 2] * 2
    turns.clear()
    results(torch.compile(attention(None, MASKS["causal"])), operands(size))
    assert [sum(len(seen) for *_, seen in loop) for loop in turns] == [across * (across + 1) // 2] * 2


def test_one_graph_for_all_lengths():
    """Masks that were made elsewhere too; short ones, of which whole matrices are small, have another."""
    mask = MASKS["causal"]
    counter = CompileCounter()
    torch._dynamo.reset()

    def f(q, k, v, held):
        return flex_attention(q, k, v, None, held)

    compiled = torch.compile(f, backend=counter, fullgraph=True)
    for n in (600, 700, 1000, 521, 40, 90):
        q, k, v = operands((1, 2, 2, n, n, 8))
        held = create_block_mask(mask, None, None, n, n)
        assert (compiled(q, k, v, held) - f(q, k, v, held)).abs().max() < 1e-12
        assert counter.frame_count == {600: 1, 40: 3, 90: 3}.get(n, 2)


@pytest.mark.parametrize("mod", ["a slope", "a learned bias by distance"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_no_matrix_of_scores_is_held(mod, mask):
    bias = torch.zeros(2, 1500, requires_grad=True)
    change = MODS[mod] if mod == "a slope" else lambda s, b, h, i, j: s + bias[h, (i - j).abs()]
    f = attention(change, MASKS[mask])
    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, dynamic=True)
    for _ in range(2):  # the second time nothing is compiled
        inputs = [x.requires_grad_() for x in operands((1, 2, 2, 1500, 1500, 8), torch.float32)]
        torch.cpu.reset_peak_memory_stats()
        before = torch.cpu.memory_allocated()
        compiled(*inputs)[0].sum().backward()
    # Of one head; whole matrices are five times two.
    assert torch.cpu.max_memory_allocated() - before < 1500 * 1500 * 4
    assert mod == "a slope" or bias.grad.abs().max() > 0


def test_what_stays_on_whole_matrices(always, turns):
    """Draws, which the backward couldn't repeat; learned tensors as large as the scores; floating-point numbers of
    the graph; the largest scores asked for."""
    wide = torch.randn(2, 600, 600, dtype=torch.float64, requires_grad=True)
    cases = (
        lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: s + torch.rand_like(s)),
        lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: s + wide[h, i, j]),
        lambda q, k, v: flex_attention(q, k, v, lambda s, b, h, i, j: s * (q.shape[2] ** -0.5)),
        lambda q, k, v: flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))[0],
    )
    for f in cases:
        torch._dynamo.reset()
        torch.manual_seed(0)
        got = torch.compile(f, fullgraph=True, dynamic=True)(*operands((1, 2, 2, 600, 600, 4)))
        torch.manual_seed(0)
        assert (got - f(*operands((1, 2, 2, 600, 600, 4)))).abs().max() < 1e-12
    assert not turns


def test_sizes_in_the_functions(always, turns):
    """Numbers of the graph that a function computes from lengths, or that depend on data."""

    def f(q, k, v):
        n = (q.detach() > 0).sum().item()
        return flex_attention(
            q, k, v, lambda s, b, h, i, j: torch.where(j * 2 < k.shape[2] - 9, s, s * 0.5) + j * n * 1e-3
        )

    torch._dynamo.reset()
    compiled = torch.compile(f, fullgraph=True, dynamic=True)
    for n in (300, 520):
        inputs = [x.requires_grad_() for x in operands((2, 2, 2, n, n + 3, 6))]
        got, want = (torch.autograd.grad(g(*inputs).square().sum(), inputs) for g in (compiled, f))
        assert off(got, want) < 1e-12
    assert len(turns) == 4


def test_gradient_of_a_gradient(always):
    """Inside a graph it is that of whole matrices; through one the function runs once more, operator by operator."""

    def f(q, k, v):
        return torch.func.grad(lambda q: flex_attention(q, k, v, MODS["capped"]).cos().sum() + (q**3).sum())(q)

    inputs = [x.requires_grad_() for x in operands((1, 2, 2, 40, 50, 4))]
    got, want = (torch.autograd.grad(g(*inputs).sum(), inputs) for g in (torch.compile(f, dynamic=True), f))
    assert off(got, want) < 1e-12

    def attention(q, k, v):
        return flex_attention(q, k, v, MODS["capped"])

    found = []
    for run in (torch.compile(attention, dynamic=True), attention):
        first = torch.autograd.grad(run(*inputs).square().sum(), inputs, create_graph=True)
        found.append(torch.autograd.grad(sum(g.cos().sum() for g in first), inputs))
    assert off(*found) < 1e-12


def test_mapped(always):
    q, k, v = operands((3, 2, 2, 40, 50, 4))

    def f(q):
        return torch.func.vmap(lambda q: flex_attention(q[None], k[:1], v[:1], MODS["a slope"])[0])(q)

    assert (torch.compile(f, dynamic=True)(q) - f(q)).abs().max() < 1e-12


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_other_backends(backend, always):
    f = attention(MODS["a learned bias by distance"], MASKS["by heads and images"])
    torch._dynamo.reset()
    got = results(torch.compile(f, fullgraph=True, dynamic=True, backend=backend), operands(SIZES[0]))
    assert off(got, results(f, operands(SIZES[0]))) < 1e-12


def test_the_number_of_threads_changes_no_bit(always):
    f, inputs, before = (
        torch.compile(attention(MODS["capped"], MASKS["causal"])),
        operands(SIZES[0]),
        torch.get_num_threads(),
    )
    try:
        found = []
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            found.append(results(f, inputs))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(x, y) for other in found[1:] for x, y in zip(found[0], other))


def test_what_is_no_number_stays_in_its_rows(always):
    f = attention(MODS["a slope"], None)
    q, k, v = operands((1, 2, 2, 300, 300, 8))
    q[0, 0, 7, 1] = torch.nan
    v[0, 1, 299, 2] = torch.inf
    assert off(torch.compile(f, dynamic=True)(q, k, v), f(q, k, v)) < 1e-12
