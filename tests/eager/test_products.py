"""Products, padding at the edges, writes by index, bags: native roads of eager calls, beside NumPy, and one answer from the first call on."""

import itertools

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def often(fn):
    """What ``fn`` gives; RuntimeError where another call gives something else."""
    made = [fn() for _ in range(4)]
    for other in made[1:]:
        for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (made[0], other)), strict=True):
            same = a.dtype is b.dtype and a.stride() == b.stride() and torch.equal(a.nan_to_num(), b.nan_to_num())
            if not same:
                raise RuntimeError(f"{a} and then {b}")
    return made[0]


def draws(shape, dtype="float64", seed=0):
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(), (15,), (16,), (3, 17), (40, 41), (2, 3, 33), (0, 4), (4, 0)])
def test_products_beside_numpy(shape, dtype):
    a = np.asarray(1 + draws(shape) / 10, dtype)
    eps = np.finfo(dtype).eps * max(a.size, 1) if a.dtype.kind in "fc" else 0
    for x, of in (
        (torch.from_numpy(a), a),
        (torch.from_numpy(a.T.copy()).t() if a.ndim == 2 else torch.from_numpy(a), a),
    ):
        np.testing.assert_allclose(often(lambda x=x: torch.prod(x)).numpy(), np.prod(of), rtol=eps)
        for d, keep in itertools.product(range(a.ndim), (False, True)):
            made = often(lambda x=x, d=d, keep=keep: torch.prod(x, d, keep))
            np.testing.assert_allclose(made.numpy(), np.prod(of, axis=d, keepdims=keep), rtol=eps)
    if dtype == "float32":
        assert often(lambda: torch.prod(torch.from_numpy(a), dtype=torch.float64)).dtype is torch.float64


@pytest.mark.parametrize("name", "bool uint8 int16 float32 float64 float16 bfloat16 complex64 complex128".split())
@pytest.mark.parametrize(
    "shape,padding",
    [((2, 3, 5), (2, 1)), ((3, 5), (4, 0)), ((1, 4, 5, 6), (1, 2, 3, 0)), ((2, 2, 4, 5, 3), (1, 2, 3, 0, 1, 0))],
)
def test_edges_beside_numpy(shape, padding, name):
    x = torch.from_numpy(draws(shape) * 9).to(getattr(torch, name))
    for t in (x, x.transpose(-1, -2).contiguous().transpose(-1, -2)):
        a = t.float().numpy() if name == "bfloat16" else t.numpy()
        pairs = [(0, 0)] * (len(shape) - len(padding) // 2) + list(zip(padding[::2], padding[1::2]))[::-1]
        for mode, how in (("reflect", "reflect"), ("replicate", "edge")):
            made = often(lambda t=t, mode=mode: F.pad(t, padding, mode=mode))
            assert made.is_contiguous() and made.dtype is t.dtype
            got = made.float().numpy() if name == "bfloat16" else made.numpy()
            np.testing.assert_array_equal(got, np.pad(a, pairs, mode=how))


def test_edges_of_images_keep_their_order_and_what_is_wrong_is_told():
    x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert often(lambda: F.pad(x, (1, 1, 1, 1), mode="reflect")).is_contiguous(memory_format=torch.channels_last)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="Padding size should be less than"):
            F.pad(torch.ones(1, 2, 3), (3, 0), mode="reflect")


SHAPES = [((5, 7), (3, 4)), ((4,), (9,)), ((3, 4, 5), (3, 4, 5)), ((6, 1), (4, 1))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16"])
@pytest.mark.parametrize("shape,places", SHAPES)
def test_combined_by_places_beside_numpy(shape, places, dtype):
    rng = np.random.default_rng(1)
    ways = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}
    for d, (way, fn), turned in itertools.product(range(len(shape)), ways.items(), (False, True)):
        index = rng.integers(0, shape[d], [n if e == d else min(n, m) for e, (n, m) in enumerate(zip(places, shape))])
        into, source = np.round(draws(shape) * 4).astype(dtype), np.round(draws(index.shape, seed=2) * 3).astype(dtype)
        wanted, where = into.copy(), list(np.ogrid[tuple(map(slice, index.shape))])
        where[d] = index
        fn.at(wanted, tuple(where), source)
        x, i, y = map(torch.from_numpy, (into, index, source))
        if turned:
            x, i, y = (t.transpose(0, -1).contiguous().transpose(0, -1) for t in (x, i, y))
        np.testing.assert_array_equal(often(lambda: x.scatter_reduce(d, i, y, way)).numpy(), wanted)  # noqa: B023
        assert (often(lambda: x.clone().scatter_reduce_(d, i, y, way)).numpy() == wanted).all()  # noqa: B023
        often(lambda: x.scatter_reduce(d, i, y, way, include_self=False))  # noqa: B023
    if dtype != "int64":
        often(lambda: x.scatter_reduce(d, i, y, "mean"))


def test_places_outside_are_told():
    x = torch.zeros(3, 4)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="index 7 is out of bounds for dimension 0 with size 3"):
            x.scatter_reduce(0, torch.full((3, 4), 7), torch.ones(3, 4), "amax")
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            x[torch.tensor([0, 3])] = torch.ones(2, 4)
    assert not x.any()


@pytest.mark.parametrize("dtype", ["float32", "int16", "complex128", "bool"])
def test_writes_by_index_beside_numpy(dtype):
    rng = np.random.default_rng(3)
    for shape, places in itertools.product([(4, 3), (5,), (2, 3, 4)], [(3,), (2, 3), (0,), (1,)]):
        a, i = (draws(shape) * 9).astype(dtype), rng.integers(-shape[0], shape[0], places)
        for value in ((), places + shape[1:], shape[1:]):
            v = np.asarray(draws(value, seed=4) * 5, dtype)
            x, wanted = torch.from_numpy(a.copy()), a.copy()
            x[torch.from_numpy(i)] = torch.from_numpy(v)
            wanted[i] = v
            np.testing.assert_array_equal(x.numpy(), wanted)
        if len(shape) > 1:
            j, v = rng.integers(-shape[1], shape[1], places), (draws(places + shape[2:]) * 5).astype(dtype)
            wanted = a.copy()
            wanted[i, j] = v
            at = torch.from_numpy(i), torch.from_numpy(j)
            np.testing.assert_array_equal(torch.from_numpy(a).index_put(at, torch.from_numpy(v)).numpy(), wanted)


def test_a_number_under_a_mask_is_seen_by_history_and_refused_beyond_the_dtype():
    x, mask = torch.ones(3), torch.tensor([True, False, True])
    y = x.clone().requires_grad_() * 2
    y[mask] = 5.0
    assert y.tolist() == [5, 2, 5] and y.grad_fn is not None
    with pytest.raises(RuntimeError, match="without overflow"):
        x[mask] = 1e300
    x[mask] = float("inf")
    assert x.tolist() == [float("inf"), 1, float("inf")]
    view, before = x.expand(2, 3), x._version
    view[0] = torch.ones(3)
    assert x.tolist() == [1, 1, 1] and x._version > before


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_without_gradient_are_those_with_one(dtype, mode):
    table = torch.from_numpy(draws((6, 5))).to(getattr(torch, dtype))
    places = torch.tensor([0, 3, 3, 5, 1, 2, 2])
    for offsets, last, padding in itertools.product(([0], [0, 2, 2, 5], [0, 7]), (False, True), (None, 3)):
        given = {"offsets": torch.tensor(offsets), "mode": mode, "include_last_offset": last, "padding_idx": padding}
        made = often(lambda: F.embedding_bag(places, table, **given))  # noqa: B023
        with_history = F.embedding_bag(places, table.clone().requires_grad_(), **given)
        assert torch.equal(made, with_history) and made.stride() == with_history.stride()
    for offsets, text in (([1], r"offsets\[0\] has to be 0"), ([0, 9], "can not be greater than input's length 7")):
        for _ in range(3):
            for last in (False, True):
                with pytest.raises(RuntimeError, match=text):
                    F.embedding_bag(places, table, torch.tensor(offsets), mode=mode, include_last_offset=last)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bool", "bfloat16"])
def test_the_most_frequent_is_one_answer(dtype):
    for shape in ((7,), (5, 7), (3, 4, 5)):
        x = torch.from_numpy(np.round(draws(shape) * 2)).to(getattr(torch, dtype))
        for t, d in itertools.product((x, x.transpose(0, -1).contiguous().transpose(0, -1)), range(len(shape))):
            values, places = often(lambda: tuple(torch.mode(t, d)))  # noqa: B023
            assert torch.equal(values, t.gather(d, places.unsqueeze(d)).squeeze(d))


def test_triangles_are_one_answer():
    for n, m, offset in ((3, 4, 0), (4, 3, -1), (64, 64, 1)):
        made = often(lambda: torch.tril_indices(n, m, offset))  # noqa: B023
        assert made.tolist() == [list(x) for x in np.tril_indices(n, offset, m)]


ONE_TERM = "uint8 int8 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


# Threads share what is large: in the default run for one dtype of each kind.
LARGE = [
    pytest.param((300, 200), n, marks=() if n in ("int64", "bfloat16", "float32") else pytest.mark.slow)
    for n in ONE_TERM
]


@pytest.mark.parametrize("shape, name", [*itertools.product([(1, 1), (3, 5), (64, 65), (0, 4)], ONE_TERM), *LARGE])
def test_products_of_one_term_beside_numpy(shape, name, monkeypatch):
    """A row's outer product, as gradients of weights are: multiplied once and rounded once, without NumPy's slow sums."""
    monkeypatch.setattr(np, "matmul", None)
    dtype, (m, n) = getattr(torch, name), shape
    column, row = (torch.from_numpy(draws(s, seed=len(s)) * 9).to(dtype) for s in ((m, 1), (2, 1, n)))
    single = torch.float32 if name in ("float16", "bfloat16") else dtype
    want = torch.from_numpy(np.multiply(column.to(single).numpy(), row.to(single).numpy())).to(dtype)
    turned = row.transpose(1, 2).contiguous().transpose(1, 2)
    for a, b in itertools.product((column, column.t().contiguous().t()), (row, turned)):
        for made in (
            torch.stack([often(lambda a=a, x=x: a @ x) for x in b]),
            torch.stack([often(lambda a=a, x=x: torch.mm(a, x)) for x in b]),
            often(lambda a=a, b=b: torch.bmm(a.expand(2, m, 1), b)),
        ):
            assert made.dtype is dtype and made.is_contiguous() and torch.equal(made, want)
    if dtype.is_floating_point and m and n:
        added = often(lambda: torch.addmm(torch.ones(m, n, dtype=dtype), column, row[0]))
        torch.testing.assert_close(added, want[0] + 1, rtol=8e-3 if name == "bfloat16" else 1e-3, atol=1e-2)


@pytest.mark.parametrize("name", "float16 bfloat16 float32 float64 complex64".split())
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (3, 5), (70, 65), (300, 250)])
@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_zeros_of_one_term(shape, name, way):
    """As PyTorch: products of several rows and columns keep the sign of a zero, everything else is a sum that begins with 0."""
    dtype, (m, n) = getattr(torch, name), shape
    a, b = (torch.tensor([-0.0, 0.0, 1.0, -1.0, 2.0]).repeat(-(-k // 5))[:k].to(dtype) for k in shape)

    def signs(f, *operands):
        torch.compiler.reset()
        call = torch.compile(f) if way == "compiled" else f
        made = often(lambda: call(*operands))
        return torch.signbit(made.real if dtype.is_complex else made)

    products = a.to(torch.complex64).real[:, None] * b.to(torch.complex64).real
    started = torch.signbit(products + 0.0)
    matrix = torch.signbit(products) if "16" not in name and m > 1 and n > 1 else started
    column, row = a[:, None], b[None]
    assert torch.equal(signs(lambda a, b: a @ b, column, row), matrix)
    assert torch.equal(signs(torch.mm, column, row), matrix)
    assert torch.equal(signs(torch.bmm, column.expand(2, m, 1), row.expand(2, 1, n)), started.expand(2, m, n))
    assert torch.equal(signs(torch.mv, column, b[:1]), started[:, 0])
    if not dtype.is_complex:
        assert torch.equal(signs(torch.addmm, torch.zeros(m, n, dtype=dtype), column, row), started)


@pytest.mark.parametrize("name", ["uint8", "int8", "int16", "int32", "int64", "bfloat16"])
def test_products_of_one_term_compiled(name):
    dtype = getattr(torch, name)
    column, row = (torch.from_numpy(draws(s) * 9).to(dtype) for s in ((300, 1), (1, 260)))
    for a, b in ((column, row), (column[:7], row[:, :3]), (column[:0], row)):
        assert torch.equal(torch.compile(torch.mm)(a, b), a * b)


PLACED = {
    "rows": lambda x: x,
    "columns": lambda x: x.mT.contiguous().mT,
    "apart": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("left", PLACED)
@pytest.mark.parametrize("right", PLACED)
def test_products_of_one_term_are_row_major(left, right, dtype):
    for m, n in ((4, 1), (1, 5), (4, 5), (1, 1)):
        a = PLACED[left](torch.arange(2 * m).reshape(2, m, 1).to(dtype))
        b = PLACED[right](torch.arange(2 * n).reshape(2, 1, n).to(dtype))
        for fn in (torch.bmm, torch.matmul, lambda a, b: torch.baddbmm(a * b * 0, a, b)):
            for _ in range(3):  # a call of a kind that was seen is a plan
                found = fn(a, b)
                assert found.is_contiguous() and torch.equal(found, (a * b).contiguous())
            assert torch.compile(fn)(a, b).stride() == found.stride()
