"""Attention by the streaming kernel beside whole matrices in float64: masks, shared heads, rows that see nothing, derivatives of both orders."""

import numpy as np
import pytest
from rows import level

import flambeau as torch
from flambeau.base import blas
from flambeau.testing import guard_pages

F = torch.nn.functional
CASES = [
    # batch, heads, heads of keys, queries, keys, width, causal, mask
    (2, 3, 3, 70, 70, 32, True, None),
    (2, 3, 3, 40, 90, 16, True, None),
    (1, 2, 2, 90, 33, 8, True, None),
    (1, 4, 2, 5, 600, 64, False, None),  # several blocks of keys
    (1, 2, 1, 600, 530, 24, True, None),
    (2, 4, 1, 65, 40, 24, False, "float"),
    (2, 2, 2, 33, 40, 8, False, "bool"),
    (2, 2, 2, 3, 4, 5, False, "none"),
    (1, 2, 2, 1, 700, 64, False, None),  # one more token
    (1, 1, 1, 1, 1, 1, True, None),
    (1, 2, 1, 33, 253, 13, False, None),  # a block of keys and a tile more
    (2, 1, 1, 64, 12, 40, True, None),
    (1, 2, 2, 520, 491, 3, True, None),
    (1, 2, 2, 3, 45, 20, False, "float"),  # few rows, and keys and widths that are no whole vectors
    (1, 2, 1, 8, 23, 129, True, None),
    (2, 2, 2, 2, 531, 71, False, "bool"),
]


def _mask(kind, batch, queries, keys, rng):
    if kind == "float":
        return rng.normal(size=(queries, keys))
    if kind == "bool":
        return rng.random((batch, 1, queries, keys)) > 0.4
    return np.zeros((queries, keys), bool) if kind == "none" else None


def whole(q, k, v, mask, causal=False, dropout=0.0):
    """Matrices of scores, by flambeau's own operators."""
    if q.ndim == k.ndim == 4 and q.shape[1] > k.shape[1] > 1:
        k, v = (torch.repeat_interleave(x, q.shape[1] // k.shape[1], 1) for x in (k, v))
    s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if causal:
        mask = torch.ones(s.shape[-2:], dtype=torch.bool).tril()
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf) if mask.dtype is torch.bool else s + mask
    return F.dropout(torch.nan_to_num(s.softmax(-1)), dropout) @ v


def _tensors(case, dtype, rng):
    b, h, held, t, s, e, causal, kind = case
    arrays = [rng.normal(size=n) for n in ((b, t, h, e), (b, s, held, e), (b, s, held, e))]
    mask = _mask(kind, b, t, s, rng)
    tensors = [torch.tensor(a, dtype=dtype).transpose(1, 2).requires_grad_() for a in arrays]
    return tensors, None if mask is None else torch.tensor(mask, dtype=torch.bool if mask.dtype == bool else dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_beside_whole_matrices(case, dtype):
    *_, causal, kind = case
    tensors, mask = _tensors(case, dtype, np.random.default_rng(0))
    wide, wide_mask = _tensors(case, torch.float64, np.random.default_rng(0))
    got = F.scaled_dot_product_attention(*tensors, mask, is_causal=causal, enable_gqa=True)
    want = whole(*wide, wide_mask, causal)
    b, h, t, e = got.shape
    assert got.stride() == (t * h * e, e, h * e, 1)
    tolerance = dict(rtol=1e-5, atol=2e-5) if dtype is torch.float32 else dict(rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(got.double(), want, **tolerance)
    if kind == "none":
        assert (got == 0).all()
        return  # rows that see nothing have no derivative in the other way
    g = torch.randn(got.shape, dtype=torch.float64)
    for x, y in zip(torch.autograd.grad(got, tensors, g.to(dtype)), torch.autograd.grad(want, wide, g)):
        torch.testing.assert_close(x.double(), y, **(tolerance | dict(atol=tolerance["atol"] * 20)))


# batch, heads, heads of keys, queries, keys, width, the shape of a mask that has a gradient, dropout
TRAINED = [
    (2, 4, 2, 70, 90, 24, (70, 90), 0.0),
    (2, 4, 2, 70, 90, 24, (2, 1, 1, 90), 0.3),
    (3, 2, 2, 40, 300, 16, (1, 2, 40, 300), 0.0),
    (2, 3, 3, 65, 33, 8, (2, 3, 65, 33), 0.5),
    (2, 2, 1, 5, 600, 32, (2, 5, 1), 0.1),
    (1, 2, 2, 1, 700, 64, (2, 1, 700), 0.2),
    (2, 2, 2, 530, 70, 12, None, 0.25),
    (1, 4, 2, 64, 64, 16, "causal", 0.4),
]


def _trained(case, dtype):
    """The output, the cotangents of q, k, v and the mask; by the kernel and by whole matrices, with the same draws."""
    *sizes, shape, dropout = case
    rng, causal = np.random.default_rng(0), shape == "causal"
    (q, k, v), _ = _tensors((*sizes, causal, None), dtype, rng)
    mask = None
    if shape and not causal:
        mask = torch.tensor(rng.normal(size=shape), dtype=dtype, requires_grad=True)
    g = torch.tensor(rng.normal(size=tuple(q.shape)), dtype=dtype)
    results = []
    for run in (
        lambda: F.scaled_dot_product_attention(q, k, v, mask, dropout, causal, enable_gqa=True),
        lambda: whole(q, k, v, mask, causal, dropout),
    ):
        torch.manual_seed(5)
        out = run()
        results.append((out, torch.autograd.grad(out, [x for x in (q, k, v, mask) if x is not None], g)))
    return results


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", TRAINED, ids=str)
def test_dropout_and_masks_with_gradients(case, dtype):
    (got, of_inputs), _ = _trained(case, dtype)
    _, (want, wanted) = _trained(case, torch.float64)
    tolerance = dict(rtol=1e-5, atol=4e-5) if dtype is torch.float32 else dict(rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(got.double(), want, **tolerance)
    assert type(got.grad_fn).__name__.startswith("StreamedAttention"), got.grad_fn
    for x, y in zip(of_inputs, wanted):
        assert x.shape == y.shape
        torch.testing.assert_close(x.double(), y, **(tolerance | dict(atol=tolerance["atol"] * 40)))


@pytest.mark.parametrize("case", TRAINED[1:4], ids=str)
def test_dropout_and_masks_compiled(case):
    *sizes, shape, dropout = case
    (q, k, v), _ = _tensors((*sizes, False, None), torch.float32, np.random.default_rng(0))
    mask = torch.randn(shape, requires_grad=True)

    def step(q, k, v, mask):
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout, enable_gqa=True)
        return out, *torch.autograd.grad(out.square().sum(), (q, k, v, mask))

    results = []
    for run in (step, torch.compile(step, fullgraph=True)):
        torch.manual_seed(3)
        results.append(run(q, k, v, mask))
    for x, y in zip(*results):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=2e-4)


def test_second_derivative_with_dropout_and_a_mask():
    (q, k, v), _ = _tensors((2, 2, 1, 4, 5, 3, False, None), torch.float64, np.random.default_rng(1))
    mask = torch.randn(2, 1, 5, dtype=torch.float64, requires_grad=True)
    inputs = (q, k, v, mask)

    def by(run, **how):
        torch.manual_seed(1)
        out = run(q, k, v, mask, **how)
        first = torch.autograd.grad(out.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum((x**3).sum() for x in first), inputs)

    got = by(F.scaled_dot_product_attention, dropout_p=0.3, enable_gqa=True)
    for x, y in zip(got, by(whole, dropout=0.3)):
        torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-8)


OTHER_SHAPES = [  # of query, key and value; shapes of masks
    ((7, 4), (9, 4), (9, 4), [(7, 9), (1, 9)]),
    ((7, 4), (9, 4), (9, 6), [(7, 1)]),
    ((2, 7, 4), (2, 9, 4), (2, 9, 3), [(7, 9), (2, 7, 9), (2, 1, 9)]),
    ((2, 3, 7, 4), (1, 1, 9, 4), (1, 1, 9, 4), [(3, 7, 9), (2, 3, 7, 9)]),
    ((2, 1, 7, 4), (2, 3, 9, 4), (2, 3, 9, 4), [(1, 1, 7, 9)]),
    ((7, 4), (2, 3, 9, 4), (2, 3, 9, 8), [(2, 1, 7, 9)]),
    ((2, 2, 3, 7, 4), (2, 1, 1, 9, 4), (3, 9, 4), [(7, 9), (2, 1, 1, 7, 9), (1, 2, 3, 1, 9), (2, 2, 3, 7, 9)]),
    ((2, 3, 70, 4), (2, 3, 300, 4), (2, 3, 300, 12), [(70, 300), (2, 1, 70, 300)]),
]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("shapes", OTHER_SHAPES, ids=str)
def test_other_shapes_go_by_the_same_kernel(shapes, dropout):
    *shapes, masks = shapes
    rng = np.random.default_rng(0)
    sides = [torch.tensor(rng.normal(size=n), requires_grad=True) for n in shapes]
    given = [None, "causal"]
    for n in masks:
        given += [torch.tensor(rng.normal(size=n), requires_grad=True), torch.tensor(rng.random(n) > 0.3)]
    for mask in given:
        causal = isinstance(mask, str)
        mask = None if causal else mask
        inputs = [*sides, *([mask] if mask is not None and mask.requires_grad else [])]
        results = []
        for run in (
            lambda: F.scaled_dot_product_attention(*sides, mask, dropout, causal),
            lambda: whole(*sides, mask, causal, dropout),
        ):
            torch.manual_seed(5)
            out = run()
            results.append((out, *torch.autograd.grad(out, inputs, torch.ones_like(out))))
        assert results[0][0].stride() == results[1][0].stride()
        for got, want in zip(*results):
            torch.testing.assert_close(got, torch.nan_to_num(want), rtol=1e-9, atol=1e-9)


def test_masks_of_truth_values_by_every_stride():
    q, k, v = (torch.randn(2, 3, n, 8) for n in (70, 300, 300))
    masks = [torch.rand(*n) > 0.3 for n in ((70, 300), (1, 300), (70, 1), (2, 1, 1, 300), (3, 70, 1), (2, 3, 70, 300))]
    masks += [(torch.rand(300, 70) > 0.3).t(), (torch.rand(2, 70, 3, 600) > 0.3).transpose(1, 2)[..., ::2]]
    for mask in masks:
        for rows in (70, 5, 1):  # transposed, few rows
            part = mask[..., :rows, :] if mask.shape[-2] > 1 else mask
            got = F.scaled_dot_product_attention(q[:, :, :rows], k, v, part)
            torch.testing.assert_close(got, whole(q[:, :, :rows], k, v, part), rtol=1e-5, atol=1e-5)


def test_three_dimensions_and_threads():
    q, k, v, mask = torch.randn(4, 70, 16), torch.randn(4, 90, 16), torch.randn(4, 90, 16), torch.randn(4, 70, 90)
    mask.requires_grad_()
    got = F.scaled_dot_product_attention(q, k, v, mask)
    torch.testing.assert_close(got, whole(q[None], k[None], v[None], mask)[0], rtol=1e-5, atol=1e-5)
    threads, results = torch.get_num_threads(), []
    for n in (1, 3):
        torch.set_num_threads(n)
        torch.manual_seed(0)
        out = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=0.2)
        results.append((out, *torch.autograd.grad(out.sum(), mask)))
    torch.set_num_threads(threads)
    assert all(torch.equal(x, y) for x, y in zip(*results))


def test_what_is_no_number_reaches_the_rows_that_see_it():
    rng = np.random.default_rng(3)
    q, k, v = (torch.from_numpy(rng.normal(size=(1, 2, 70, 8)).astype("f")) for _ in range(3))
    q[0, 0, 5, 2], k[0, 1, 9, 0], v[0, 0, 60, 3] = torch.nan, torch.nan, torch.inf
    got = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(got[0, 0], (q[0, 0] @ k[0, 0].T / 8**0.5).softmax(-1) @ v[0, 0], equal_nan=True)
    assert torch.isnan(got[0, 1]).all() and torch.isnan(got[0, 0, 5]).all() and torch.isinf(got[0, 0, :5, 3]).all()
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.isfinite(causal[0, 1, :9]).all() and torch.isnan(causal[0, 1, 9:]).all()
    few = F.scaled_dot_product_attention(q[:, :, 4:7], k, v)
    torch.testing.assert_close(few, got[:, :, 4:7], equal_nan=True)


def test_rows_that_see_nothing_have_no_gradient():
    q, k, v = (torch.randn(1, 2, 4, 8, requires_grad=True) for _ in range(3))
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[2] = False
    F.scaled_dot_product_attention(q, k, v, mask).sum().backward()
    assert (q.grad[:, :, 2] == 0).all() and torch.isfinite(k.grad).all() and torch.isfinite(v.grad).all()


@pytest.mark.parametrize("causal, kind, held", [(True, None, 2), (False, "float", 1)])
def test_second_derivative(causal, kind, held):
    tensors, mask = _tensors((1, 2, held, 4, 5, 3, causal, kind), torch.float64, np.random.default_rng(1))

    def by(fn):
        out = fn(*tensors)
        first = torch.autograd.grad(out.square().sum(), tensors, create_graph=True)
        return torch.autograd.grad(sum((x**3).sum() for x in first), tensors)

    got = by(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=True))
    want = by(lambda q, k, v: whole(q, k, v, mask, causal))
    for x, y in zip(got, want):
        torch.testing.assert_close(x, y, rtol=1e-7, atol=1e-8)


def test_compiled_and_mapped():
    q, k, v = (torch.randn(3, 2, 4, 9, 8) for _ in range(3))
    mask = torch.randn(3, 9, 9)

    def f(q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, mask)

    want = torch.stack([f(*x) for x in zip(q, k, v, mask)])
    torch.testing.assert_close(torch.vmap(f)(q, k, v, mask), want)
    torch.testing.assert_close(torch.vmap(f, in_dims=(0, None, None, None))(q, k[0], v[0], mask[0])[0], want[0])
    torch.testing.assert_close(torch.compile(f)(q[0], k[0], v[0], mask[0]), want[0])
    grad = torch.func.grad(lambda q: f(q, k[0], v[0], mask[0]).square().sum())
    torch.testing.assert_close(torch.compile(grad)(q[0]), grad(q[0]))


def test_empty_and_refused():
    empty = F.scaled_dot_product_attention(torch.zeros(2, 2, 0, 4), torch.zeros(2, 2, 3, 4), torch.zeros(2, 2, 3, 4))
    assert empty.shape == (2, 2, 0, 4)
    nothing = F.scaled_dot_product_attention(torch.ones(1, 2, 3, 4), torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 0, 4))
    assert (nothing == 0).all()
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    q = torch.zeros(1, 2, 3, 4)
    with pytest.raises(RuntimeError, match="dropout"):
        flash(q, q, q, 0.5)
    with pytest.raises(RuntimeError, match="same head size"):
        flash(q, q, q[..., :2])
    with pytest.raises(RuntimeError, match="4 dims"):
        flash(q[0], q[0], q[0])
    with pytest.raises(ValueError, match="bits"):
        x = np.zeros((1, 1, 2, 9), "f")
        blas.attention(x, x, x, None, False, 1.0, kept=np.zeros((1, 1, 2, 2), np.uint8))
    with pytest.raises(ValueError, match="key"):
        blas.attention(
            np.zeros((1, 1, 2, 4), "f"), np.zeros((2, 1, 2, 4), "f"), np.zeros((1, 1, 2, 4), "f"), None, False, 1.0
        )


def sweep() -> None:
    """All cases once more, for a CPU with fewer features."""
    for dtype in (torch.float32, torch.float64):
        for case in CASES:
            test_beside_whole_matrices(case, dtype)
        for case in TRAINED:
            test_dropout_and_masks_with_gradients(case, dtype)
    test_what_is_no_number_reaches_the_rows_that_see_it()


@pytest.mark.parametrize("cpu", [level("avx2"), "default"])
def test_other_cpus(cpu):
    guard_pages.run_alone(__file__, "sweep()", FLAMBEAU_CPU=cpu, FLAMBEAU_PRODUCTS="own")


def read_only_inside() -> None:
    rng = np.random.default_rng(0)
    for at_end in (False, True):
        guarded = guard_pages.GuardPages(at_end)
        for t, s, e, causal in ((7, 9, 5, False), (33, 33, 16, True), (70, 550, 8, False)):
            q, k, v, mask = (
                guarded(rng.normal(size=n).astype("f"))
                for n in ((1, 2, t, e), (1, 1, s, e), (1, 1, s, e), (1, 2, t, s))
            )
            blas.attention(q, k, v, None, causal, 0.3)
            out, lse = blas.attention(q, k, v, None if causal else mask, causal, 0.3)
            out, g = (guarded(x) for x in (out, q))
            blas.attention(q, k, v, None if causal else mask, causal, 0.3, g, out, guarded(lse))
            truths = guarded(rng.random((1, 2, t, s)) > 0.3)
            by_truths = blas.attention(q, k, v, truths, causal, 0.3)
            blas.attention(q, k, v, truths, causal, 0.3, g, *map(guarded, by_truths))
            kept = guarded(rng.integers(0, 256, (1, 2, t, (s + 7) // 8), np.uint8))
            out, lse = blas.attention(q, k, v, mask, causal, 0.3, kept=kept, boost=1.4)
            parts = (guarded(x) for x in (g, out, lse))
            blas.attention(q, k, v, mask, causal, 0.3, *parts, kept=kept, boost=1.4, of_mask=(2, t, 1))


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_reads_nothing_outside_its_arrays():
    guard_pages.run_alone(__file__, "read_only_inside()")
