"""Results whose sizes depend on data, and numbers read out of tensors: native steps of a compiled graph that size themselves, beside eager; no Python between kernels."""

import warnings

import numpy as np
import pytest
from rows import thinned

import flambeau as torch
from flambeau.testing import guard_pages

FLOATS = [torch.float32, torch.float64, torch.bfloat16, torch.float16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def same(got, want):
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, torch.Tensor):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert 0 in want.shape or all(n == 1 or a == b for n, a, b in zip(want.shape, got.stride(), want.stride()))
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
    else:
        assert got == want and type(got) is type(want)


def outcome(fn, *args):
    try:
        return fn(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args])
    except Exception as e:  # its type and text are what is compared
        return type(e).__name__, str(e)


def numbers(shape, dtype, seed=0):
    a = np.random.default_rng(seed).integers(-3, 4, shape)
    if dtype in FLOATS and a.size > 9:
        a = a.astype(float)
        a.reshape(-1)[:3] = np.nan, -0.0, np.inf
    return torch.tensor(abs(a) if dtype is torch.uint8 else a).to(dtype)


def written(x, where, what):
    y = x.clone()
    y[where] = what
    return y


ANY = {
    "nonzero": lambda x: torch.nonzero(x),
    "nonzero and more": lambda x: torch.nonzero(x > 0) * 2 + 1,
    "nonzero as_tuple": lambda x: torch.nonzero(x, as_tuple=True),
    "argwhere": lambda x: torch.argwhere(x == 1),
    "where": lambda x: torch.where(x > 0),
    "nonzero_static": lambda x: torch.nonzero_static(x > 0, size=7, fill_value=-5),
    "masked_select": lambda x: torch.masked_select(x, x > 0),
    "masked_select, broadcast": lambda x: torch.masked_select(x, (x > 0).any(0)),
    "mask": lambda x: x[x > 0],
    "mask and more": lambda x: x[x > 0] + x[x > 0].sum(),
    "no place": lambda x: x[x > 100],
    "each place": lambda x: x[x == x],
    "mask of the first dimension": lambda x: x[(x > 0).flatten(1).any(1)],
    "mask of the last dimension": lambda x: x[..., (x > 0).flatten(0, -2).any(0)],
    "a mask of bytes": lambda x: x[(x > 0).to(torch.uint8)],
    "put under a mask of bytes": lambda x: written(x, (x > 0).to(torch.uint8), 2),
    "running sum of a selection": lambda x: x[x > 0].cumsum(0),
    "put one": lambda x: written(x, x > 0, 3),
    "put what was there": lambda x: written(x, x > 0, (x[x > 0] + 1).to(x.dtype)),
    "put nothing": lambda x: written(x, x > 100, x[x > 100]),
    "put rows": lambda x: written(x, (x > 0).flatten(1).any(1), (x[(x > 0).flatten(1).any(1)] + 1).to(x.dtype)),
    "put a row": lambda x: written(x, (x > 0).flatten(1).any(1), x[0]),
    "add": lambda x: x.index_put((x > 0,), x[x > 0], accumulate=True),
    "unique": lambda x: torch.unique(x),
    "unique, all of it": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
    "unique, counts": lambda x: torch.unique(x, return_counts=True),
    "unique of a long range": lambda x: torch.unique((x * 1e4).long() ** 3, return_inverse=True, return_counts=True),
    "unique rows": lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True),
    "unique columns": lambda x: torch.unique(x, dim=-1, return_inverse=True, return_counts=True),
    "consecutive": lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
    "consecutive of a sum": lambda x: torch.unique_consecutive(x + x, return_counts=True)[1] * 2,
    "consecutive rows": lambda x: torch.unique_consecutive(x, dim=0, return_counts=True),
    "unique of a selection": lambda x: torch.unique(x[x > 0], return_counts=True),
    "nonzero of a selection": lambda x: torch.nonzero(x[x > 0] > 1),
    "item": lambda x: x * x.flatten()[-1].item(),
}
NUMBERS = {
    "bincount": lambda x: torch.bincount(x.abs().flatten()),
    "bincount, at least": lambda x: torch.bincount(x.abs().flatten(), minlength=11),
    "bincount, weights": lambda x: torch.bincount(x.abs().flatten(), x.flatten() * 0.5),
    "repeat_interleave": lambda x: x.repeat_interleave(torch.arange(x.shape[0]), 0),
    "repeat_interleave of places": lambda x: torch.repeat_interleave(x.abs().flatten().to(torch.int32)),
    "repeat_interleave, told": lambda x: torch.repeat_interleave(torch.arange(4), output_size=6),
    "a size": lambda x: torch.ones(x.flatten()[-1].abs().item(), 2) * 2,
    "a product of sizes": lambda x: torch.ones(x.abs().sum().item(), 3).flatten() + x.flatten()[0].item(),
    "a truth value": lambda x: x * (x > 0).any().item(),
}
POINTS = {
    "histogram": lambda x: torch.histogram(x.nan_to_num(0, 4, -4), 5),
    "histogram, range": lambda x: torch.histogram(x, 7, range=(-2.0, 3.5), weight=x.nan_to_num(0, 1, 1)),
    "histogram, edges": lambda x: torch.histogram(x, torch.tensor([-2, -0.5, 1, 3]).to(x.dtype)),
    "histogram of one number": lambda x: torch.histogram(x * 0 + 2, 3) if x.numel() < 3 else torch.histogram(x[:0], 3),
}
SHAPES = [(5, 7), (3, 4, 2), (40, 3)]


def check(fn, x, python_calls):
    torch.compiler.reset()
    want = outcome(fn, x)
    same(outcome(torch.compile(fn, fullgraph=True), x), want)
    assert not python_calls


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("name, dtype", thinned(ANY, [*FLOATS, *INTS, torch.bool], torch.float32), ids=str)
def test_sizes_depend_on_data(name, dtype, python_calls):
    for k, shape in enumerate(SHAPES):
        check(ANY[name], numbers(shape, dtype, k), python_calls)
    check(ANY[name], numbers((4, 6), dtype).t(), python_calls)


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["a mask of bytes", "put under a mask of bytes"])
def test_masks_of_bytes_are_told_of(name, backend):
    """Plain and compiled code warn at the same line, once each; the warning may be an error."""
    fn, x = ANY[name], numbers((5, 7), torch.float32)
    globals().pop("__warningregistry__", None)
    torch.compiler.reset()
    g = fn if backend is None else torch.compile(fn, backend=backend)
    with pytest.raises(UserWarning, match="indexing with dtype torch.uint8"):
        g(x)
    line = (fn if name == "a mask of bytes" else written).__code__.co_firstlineno + 2 * (name != "a mask of bytes")
    torch.compiler.reset()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        for _ in range(2):
            g(x)
    assert [(w.filename, w.lineno) for w in told] == [(__file__, line)]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_integers_become_sizes(name, dtype, python_calls):
    for k, shape in enumerate(SHAPES):
        check(NUMBERS[name], numbers(shape, dtype, k), python_calls)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("name", POINTS)
def test_histograms(name, dtype, python_calls):
    for k, shape in enumerate(SHAPES):
        check(POINTS[name], numbers(shape, dtype, k).nan_to_num(0.5, 2, -2), python_calls)


@pytest.mark.parametrize(
    "name", ["nonzero", "mask", "put what was there", "unique, all of it", "unique rows", "consecutive"]
)
def test_empty(name):
    for shape in [(0,), (0, 3), (3, 0)]:
        x = torch.zeros(shape)
        torch.compiler.reset()
        same(outcome(torch.compile(ANY[name], fullgraph=True), x), outcome(ANY[name], x))


def test_sizes_change_from_call_to_call():
    fn = torch.compile(lambda x: (x[x > 0] * 2, torch.unique(x), torch.nonzero(x)), dynamic=True, fullgraph=True)
    for n in (4, 9, 1, 0, 300):
        x = numbers((n, 3), torch.float32, n)
        same(fn(x), [x[x > 0] * 2, torch.unique(x), torch.nonzero(x)])


def test_gradients():
    def loss(x):
        return (x[x > 0] ** 2).sum() + torch.masked_select(x, x < 0).exp().sum()

    a, b = (numbers((6, 5), torch.int64).float().requires_grad_() for _ in range(2))
    torch.compile(loss, fullgraph=True)(a).backward()
    loss(b).backward()
    torch.testing.assert_close(a.grad, b.grad)


WRONG = {
    "too few values": (lambda x: written(x, x > 0, torch.ones(3)), (5, 7)),
    "too few rows": (lambda x: written(x, x[:, 0] == x[:, 0], torch.ones(4, 7)), (5, 7)),
    "negative numbers": (lambda x: torch.bincount(x.flatten().long()), (5, 7)),
    "negative repeats": (lambda x: torch.repeat_interleave(x.flatten().long()), (5, 7)),
    "another length": (lambda x: torch.repeat_interleave(x.abs().flatten().long(), output_size=4), (5, 7)),
    "a mask of another shape": (lambda x: x[x[:3] > 0], (5, 7)),
    "two dimensions": (lambda x: torch.bincount(x.long().abs()), (5, 7)),
    "repeats of floating-point numbers": (lambda x: torch.repeat_interleave(x.flatten()), (5, 7)),
    "a negative size": (lambda x: torch.ones(x.abs().sum().long().neg().item()), (5, 7)),
    "a range without numbers": (lambda x: torch.histogram(x * float("nan"), 3), (5, 7)),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    fn, shape = WRONG[name]
    x = numbers(shape, torch.int64).float()
    torch.compiler.reset()
    got, want = outcome(torch.compile(fn, fullgraph=True), x), outcome(fn, x)
    assert isinstance(want, tuple) and isinstance(want[0], str), want
    assert got[0] == want[0] and got[1].split("\n")[0][:45] == want[1].split("\n")[0][:45]


def test_an_error_ends_the_graph_before_sizes_are_used():
    def fn(x, n):
        k = n.item()
        torch._check(k >= 0)
        y = torch.ones(k) * 3
        torch._check(k <= x.shape[0], lambda: "too many")
        return x.narrow(0, 0, k) * 2 + y

    compiled = torch.compile(fn, fullgraph=True)
    x = torch.arange(10)
    same(compiled(x, torch.tensor(4)), fn(x, torch.tensor(4)))
    for k in (11, 1 << 40, -1):
        with pytest.raises(RuntimeError):
            compiled(x, torch.tensor(k))


def guarded() -> None:
    """Each result by memory between pages that can't be touched."""
    from flambeau.base import kernels
    from flambeau.base.kernels import Element

    for place in (guard_pages.GuardPages(False), guard_pages.GuardPages(True)):
        for n, m in [(1, 1), (7, 3), (64, 5), (1000, 1)]:
            a = np.random.default_rng(n).integers(0, 3, (n, m))
            truth = place(a == 1)
            count = place(np.zeros((), np.int64))
            kernels.count([truth], [count])
            out = place(np.zeros((int(count), 2), np.int64))
            kernels.nonzero([truth], [out], fill=0)
            assert (out == np.argwhere(a == 1)).all()
            for kind, dtype in (
                (Element.F32, np.float32),
                (Element.F64, np.float64),
                (Element.I64, np.int64),
                (Element.I32, np.int32),
                (Element.I16, np.int16),
                (Element.U8, np.uint8),
            ):
                rows = place(a.astype(dtype))
                order, begins, inverse = (place(np.zeros(k, np.int64)) for k in (n, n + 1, n))
                kernels.order_rows([rows], [order], element=kind)
                kernels.runs([rows, order], [begins, inverse, count], wanted=True, element=kind)
                found, where, many = np.unique(a, axis=0, return_inverse=True, return_counts=True)
                k = int(count)
                assert (a[order[begins[:k]]] == found).all() and (np.diff(begins[: k + 1]) == many).all()
                assert (inverse == where.reshape(-1)).all()
                flat, found = place(a.reshape(-1).astype(dtype)), place(np.zeros(a.size, dtype))
                counts, places = place(np.zeros(a.size, np.int64)), place(np.zeros(a.size, np.int64))
                kernels.distinct([flat], [found, counts, places, count], wanted=True, element=kind)
                want = np.unique(a, return_inverse=True, return_counts=True)
                k = int(count)
                assert (found[:k] == want[0]).all() and (counts[:k] == want[2]).all()
                assert (places == want[1].reshape(-1)).all()
            line = place(a.reshape(-1))
            kernels.bincount_size([line], [count], least=2)
            counts = place(np.zeros(int(count), np.int64))
            kernels.bincount([line], [counts])
            assert (counts == np.bincount(a.reshape(-1), minlength=2)).all()
            kernels.repeat_size([line], [count])
            out = place(np.zeros(int(count), np.int64))
            kernels.repeat([line], [out])
            assert (out == np.repeat(np.arange(a.size), a.reshape(-1))).all()
            x, edges = place(a.reshape(-1).astype(np.float32)), place(np.zeros(6, np.float32))
            sums = place(np.zeros(5))
            kernels.edges([x], [edges], f64=False, given=False, low=0.0, high=0.0)
            kernels.cells([x, edges], [sums], f64=False, equal=True)
            again = place(np.zeros(5))
            kernels.cells([x, edges], [again], f64=False, equal=False)
            assert (sums == again).all()
            assert sums.sum() == a.size


@pytest.mark.skipif(not guard_pages.available, reason="mprotect through ctypes is Linux's here")
def test_kernels_stay_in_their_arrays():
    guard_pages.run_alone(__file__, "guarded()")


@pytest.mark.parametrize("bins", [1, 4, torch.tensor([-1.0, 0.0, 3.0])])
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_of_histograms(bins, weighted):
    x = torch.linspace(-1.5, 2.5, 37).sin()

    def f(x):
        return torch.histogram(x, bins, weight=x.abs() if weighted else None, density=True)

    for found, wanted in zip(torch.compile(f, fullgraph=True)(x), f(x), strict=True):
        torch.testing.assert_close(found, wanted)
