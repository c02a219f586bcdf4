"""Sparse tensors beside the dense computation: layouts, arithmetic, products, gradients, invariants, optimizers, compiled code."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch

LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
I, V = [[0, 1, 1, 3], [2, 0, 2, 1]], [3.0, -4.0, 5.0, 0.5]


def dense(seed=0, size=(4, 6), dtype=torch.float64):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.standard_normal(size) * (rng.random(size) < 0.5), dtype=dtype)


def sparse(layout=torch.sparse_coo, **kw):
    d = dense(**kw)
    return d.to_sparse(layout=layout, blocksize=(2, 2) if "bs" in str(layout) else None)


def repeated():
    """A coordinate tensor that names a place twice, out of order."""
    return torch.sparse_coo_tensor([[2, 0, 2, 1], [1, 0, 1, 2]], [1.0, 2.0, 3.0, 4.0], (3, 4))


def close(a, b):
    a = a.to_dense() if a.layout is not torch.strided else a
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_conversions(layout):
    d = dense()
    s = sparse(layout)
    assert s.layout is layout and s.shape == d.shape and s.dtype is d.dtype
    close(s, d)
    for other in LAYOUTS:
        block = (2, 3) if "bs" in str(other) else None
        close(s.to_sparse(layout=other, blocksize=block), d)
    close(s.t(), d.t())
    close(pickle.loads(pickle.dumps(s)), d)
    close(copy.deepcopy(s), d)
    buffer = io.BytesIO()
    torch.save({"s": s}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)["s"]
    assert loaded.layout is layout
    close(loaded, d)


UNARY = "abs asin asinh atan ceil erf expm1 floor log1p neg relu round sgn sign sin sinh sqrt tan tanh trunc square isnan".split()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, layout):
    d = dense().abs() if name in ("sqrt", "log1p") else dense().clamp(-1, 1)
    s = d.to_sparse(layout=layout, blocksize=(2, 2) if "bs" in str(layout) else None)
    close(getattr(torch, name)(s), getattr(torch, name)(d))


def test_repeated_places_add_up_before_what_is_not_linear():
    s = repeated()
    d = s.to_dense()
    assert d[2, 1] == 4
    for f in (
        torch.square,
        torch.sqrt,
        lambda x: x**2,
        lambda x: x * x,
        torch.sin,
        torch.abs,
        lambda x: x.div(3, rounding_mode="floor"),
    ):
        close(f(s), f(d))
    assert s.coalesce()._nnz() == 3
    assert not s.is_coalesced() and s.coalesce().is_coalesced()
    with pytest.raises(RuntimeError, match="sin_ requires coalesced input"):
        s.sin_()


BINARY = {
    "add": lambda a, b: a + b,
    "alpha": lambda a, b: torch.add(a, b, alpha=3),
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "number": lambda a, b: a * 2 / 4 - b,
    "cat": lambda a, b: torch.cat([a, b], 1),
}


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, layout):
    f = BINARY[name]
    close(f(sparse(layout), sparse(layout, seed=1)), f(dense(), dense(1)))


def test_dense_and_sparse():
    d, s = dense(1), sparse()
    close(d + s, d + dense())
    close(s * d, dense() * d)
    close(d.clone().add_(s), d + dense())
    close(d.clone().sub_(s), d - dense())
    with pytest.raises(RuntimeError, match="Use add\\(dense, sparse\\) instead"):
        s + d
    with pytest.raises(NotImplementedError, match="aten::exp.*SparseCPU"):
        s.exp()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_products(layout):
    s, d, x = sparse(layout), dense(), dense(2, (6, 3))
    close(s @ x, d @ x)
    close(torch.sparse.mm(s, x), d @ x)
    close(s @ x[:, 0], d @ x[:, 0])
    close(torch.mm(x.t(), s.t()), x.t() @ d.t())
    close(torch.addmm(dense(3, (4, 3)), s, x, beta=2, alpha=3), torch.addmm(dense(3, (4, 3)), d, x, beta=2, alpha=3))
    if layout in LAYOUTS[:3]:
        close(torch.sparse.mm(s, s.t()), d @ d.t())
    if layout is torch.sparse_csr:
        m1, m2 = dense(4, (4, 5)), dense(5, (5, 6))
        close(torch.sparse.sampled_addmm(s, m1, m2, beta=2), 2 * d + (m1 @ m2) * (d != 0))
        close(torch.sparse.mm(s, x, "amax"), torch.stack([(r[r != 0, None] * x[r != 0]).amax(0) for r in d]))
    half = torch.sparse.mm(s.to(torch.bfloat16), x.to(torch.bfloat16))
    assert half.dtype is torch.bfloat16


@pytest.mark.parametrize(
    "f",
    [
        lambda s: torch.sparse.sum(s, 0).to_dense() ** 2,
        lambda s: torch.sparse.sum(s) ** 2,
        lambda s: torch.sparse.softmax(s, 1).to_dense() ** 2,
        lambda s: torch.sparse.log_softmax(s, 0).to_dense() ** 2,
        lambda s: torch.sparse.mm(s, s.t()).to_dense() ** 2,
        lambda s: torch.sparse.mm(s, torch.arange(8.0, dtype=torch.float64).reshape(4, 2)) ** 2,
        lambda s: s.coalesce().values() ** 2,
        lambda s: (s * torch.arange(16.0, dtype=torch.float64).reshape(4, 4)).to_dense(),
        lambda s: (s * s).to_dense(),
        lambda s: (s + s * 2).to_dense() ** 2,
        lambda s: s.t().to_dense() ** 2,
        lambda s: s.to_sparse_csr().to_dense() ** 2,
        lambda s: torch.ones(4, 4, dtype=torch.float64) * 3 + s,
        lambda s: (s.to_dense() ** 2).sparse_mask(s.detach().coalesce()).to_dense(),
    ],
)
def test_gradients_of_values(f):
    v = torch.tensor(V, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: f(torch.sparse_coo_tensor(I, v, (4, 4))), (v,))


def test_gradient_of_a_sparse_leaf_has_its_pattern():
    s = torch.sparse_coo_tensor(I, V, (4, 4)).requires_grad_()
    x = torch.ones(4, 2, requires_grad=True)
    torch.sparse.mm(s, x).sum().backward()
    assert s.grad.layout is torch.sparse_coo and s.grad._nnz() == 4
    torch.testing.assert_close(s.grad._values(), torch.full((4,), 2.0))
    torch.testing.assert_close(x.grad, s.detach().to_dense().sum(0)[:, None].expand(4, 2))


@pytest.mark.parametrize(
    "make, error",
    [
        (
            lambda: torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)),
            "size is inconsistent with indices: for dim 0, size is 3 but found index 5",
        ),
        (lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0]), "found negative index -1 for dim 0"),
        (lambda: torch.sparse_coo_tensor([0, 1], [1.0, 2.0]), "indices must be sparse_dim x nnz"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]), "must have same nnz"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 4, 5)), "len\\(size\\) = 3, sparse_dim = 1"),
        (lambda: torch.sparse_csr_tensor([0, 1, 4], [1, 0, 2], [1.0, 2, 3], (2, 3)), "== nnz. is not satisfied"),
        (
            lambda: torch.sparse_csr_tensor([0, 1, 3], [1, 0, 5], [1.0, 2, 3], (2, 3)),
            "col_indices < ncols. is not satisfied",
        ),
        (lambda: torch.sparse_csr_tensor([0, 1, 3], [1, 2, 0], [1.0, 2, 3], (2, 3)), "are sorted and distinct"),
        (lambda: torch.sparse_coo_tensor((2, -1)), "negative dimension"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (-3,)), "negative dimension"),
        (lambda: torch.sparse_coo_tensor([[0], [0]], [1.0], (2**40, 2**40)), "numel: integer multiplication overflow"),
        (lambda: torch.sparse_coo_tensor([[0], [0]], [1.0], (2**30, 2**30)).to_dense(), "can't allocate memory"),
        (lambda: torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (3,), is_coalesced=True), "uncoalesced"),
        (lambda: torch.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2], (2, 3)), "is not satisfied"),
        (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, -1], [1.0, 2], (2, 3)), "is not satisfied"),
        (lambda: torch.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2], (2, 3)), "== 0. is not satisfied"),
        (lambda: torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2], (2**40, 2**40)), "overflow"),
        (lambda: torch.sparse_bsr_tensor([0, 1, 2], [0, 1], torch.ones(2, 2, 2), (5, 5)), "divisible with blocksize"),
        (lambda: repeated().to_sparse(1), "sparse_dim argument !=self.sparse_dim"),
        (lambda: torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0.0, 1.0]), (3, 3)), "dtype Long"),
        (lambda: torch.sparse.mm(repeated(), torch.ones(5, 2)), "cannot be multiplied"),
        (lambda: repeated() + torch.sparse_coo_tensor((3, 5)), "size"),
        (lambda: repeated().index_select(0, torch.tensor([5])), "index"),
        (lambda: repeated().index_select(0, torch.tensor([-9])), "index contains -9"),
        (lambda: repeated().indices(), "Cannot get indices on an uncoalesced tensor"),
        (lambda: torch.ones(2).coalesce(), "coalesce expected sparse coordinate tensor layout but got Strided"),
    ],
)
def test_invalid(make, error):
    with pytest.raises((RuntimeError, IndexError), match=error):
        make()


def test_text():
    assert repr(torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0])) == (
        "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([1., 2.]),\n"
        "       size=(2, 2), nnz=2, layout=torch.sparse_coo)"
    )
    assert "crow_indices=tensor([0, 1, 2]),\n" in repr(torch.eye(2).to_sparse_csr())


def test_in_place():
    s = repeated().coalesce()
    values = s.values()
    s.mul_(2)
    torch.testing.assert_close(values, s.values())  # written in place
    s.add_(s)
    close(s, repeated().to_dense() * 4)
    s.zero_()
    assert s._nnz() == 0 and not s.to_dense().any()


@pytest.mark.parametrize("optimizer", ["SGD", "Adagrad", "SparseAdam"])
def test_optimizers_move_the_named_rows_as_dense_ones_do(optimizer):
    ends = []
    for is_sparse in (True, False):
        e = torch.nn.Embedding(6, 3, sparse=is_sparse, padding_idx=1)
        e.weight.data = torch.linspace(-1, 1, 18).reshape(6, 3)
        name = "Adam" if optimizer == "SparseAdam" and not is_sparse else optimizer
        opt = getattr(torch.optim, name)(e.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            (e(torch.tensor([[0, 1, 2], [3, 3, 0]])) ** 2).sum().backward()
            assert (e.weight.grad.layout is torch.sparse_coo) == is_sparse
            opt.step()
        ends.append(e.weight.detach())
    torch.testing.assert_close(*ends)
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients, please consider SparseAdam"):
        e = torch.nn.Embedding(6, 3, sparse=True)
        e(torch.tensor([1])).sum().backward()
        torch.optim.Adam(e.parameters()).step()


def test_sparse_and_dense_gradients_of_one_leaf():
    want = torch.ones(5, 2)
    want[[1, 2]] = 2.0
    for order in (0, 1):
        e = torch.nn.Embedding(5, 2, sparse=True)
        terms = [lambda: e.weight.sum(), lambda: e(torch.tensor([1, 2])).sum()]
        terms = terms[::-1] if order else terms
        for t in terms:
            t().backward()
        torch.testing.assert_close(e.weight.grad, want)
        e.weight.grad = None
        (terms[0]() + terms[1]()).backward()
        torch.testing.assert_close(e.weight.grad, want)


def test_compiled_code_breaks_around_sparse_tensors():
    s, x = sparse(), dense(2, (6, 3))

    @torch.compile
    def f(s, x):
        y = torch.sparse.mm(s, x * 2) + 1
        return y.to_sparse().to_dense() * 3

    for _ in range(2):
        torch.testing.assert_close(f(s, x), (dense() @ (x * 2) + 1) * 3)
    double = torch.compile(lambda t: t * 2)
    close(double(x), x * 2)  # compiled for dense tensors first
    close(double(s), dense() * 2)

    net = torch.nn.Sequential(torch.nn.Embedding(5, 4, sparse=True), torch.nn.Linear(4, 2))
    torch.compile(net)(torch.tensor([0, 2])).sum().backward()
    assert net[0].weight.grad.layout is torch.sparse_coo


def test_ones_at_the_places_there_are():
    x = torch.eye(3).to_sparse_csr()
    assert torch.ones_like(x).values().tolist() == [1, 1, 1] and torch.ones_like(x).layout is torch.sparse_csr
    with pytest.raises(NotImplementedError, match="fill_"):
        torch.ones_like(torch.eye(3).to_sparse())
    x.requires_grad_()
    y = torch.sparse.sampled_addmm(x, torch.ones(3, 2), torch.ones(2, 3))
    (g,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert g.values().tolist() == [1, 1, 1]


def test_without_batches_or_rows():
    def empty(dtype=torch.int64):
        return torch.sparse_csr_tensor(
            torch.zeros(0, 3, dtype=dtype), torch.zeros(0, 2, dtype=dtype), torch.zeros(0, 2), size=(0, 2, 2)
        )

    assert empty().to_dense().shape == (0, 2, 2)
    assert (empty() * 2).values().shape == (0, 2) and empty().sum().item() == 0
    with pytest.raises(RuntimeError, match="product of batch dimensions to be non-zero"):
        torch.zeros(0, 2, 2).to_sparse_csr()
    assert torch.zeros(0, 3).to_sparse_csr().to_dense().shape == (0, 3)
    assert torch.zeros(2, 0, 3).to_sparse_csr().to_dense().shape == (2, 0, 3)
    assert (torch.zeros(3, 0).to_sparse_csr() @ torch.ones(0, 2)).tolist() == [[0, 0]] * 3


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_gradcheck_of_sparse_arguments(layout):
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    x = getattr(torch.eye(3, dtype=torch.float64), layout)().requires_grad_()
    assert check(lambda s: s.to_dense(), (x,), masked=True)
    assert check(lambda s: s * 2, (x,), masked=True)


PRODUCTS = [(5, 7, 1), (40, 30, 64), (33, 20, 70), (3, 0, 4), (0, 3, 4), (300, 200, 129)]
DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64, torch.float16, torch.bfloat16)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("sizes", PRODUCTS, ids=str)
def test_products_in_every_dtype_and_width(sizes, dtype):
    rows, inner, columns = sizes
    torch.manual_seed(0)
    a = torch.randint(-2, 3, (rows, inner)).to(dtype) * (torch.rand(rows, inner) < 0.3).to(dtype)
    b = torch.randint(-2, 3, (inner, columns)).to(dtype) * (torch.rand(inner, columns) < 0.3).to(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    want = (a.to(wide) @ b.to(wide)).to(dtype)
    for left in (a.to_sparse(), a.to_sparse_csr(), a.to_sparse_csc()):
        assert torch.equal(torch.mm(left, b), want) and torch.equal(torch.mm(left, b.t().contiguous().t()), want)
        assert torch.equal((left @ b.to_sparse_csr()).to_dense(), want)
    assert torch.equal(torch.mm(a, b.to_sparse()), want) and torch.equal(torch.mm(a, b.to_sparse_csr()), want)
    if columns == 1:
        assert torch.equal(torch.mv(a.to_sparse(), b[:, 0]), want[:, 0])


def test_products_dont_depend_on_the_number_of_threads():
    torch.manual_seed(1)
    a, b = torch.randn(400, 300) * (torch.rand(400, 300) < 0.2), torch.randn(300, 100)
    s, before, results = a.to_sparse_csr(), torch.get_num_threads(), []
    try:
        for n in (1, 2, 5):
            torch.set_num_threads(n)
            results.append((torch.mm(s, b), torch.mm(s, b.to_sparse_csr()).values(), torch.mm(s, b)))
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(x, y) for r in results for x, y in zip(results[0], r))


@pytest.mark.parametrize("dtype", (*DTYPES, torch.bool, torch.int8, torch.uint8), ids=str)
@pytest.mark.parametrize("dims, stored, top", [(1, 3, 4), (2, 40, 3), (2, 400, 20), (3, 900, 5000), (1, 300, 2**40)])
def test_coalesce(dims, stored, top, dtype):
    rng = np.random.default_rng(stored)
    places = rng.integers(0, top, (dims, stored)) // (1 + (rng.random(stored) < 0.5) * (top // 3))
    values = torch.tensor(rng.integers(0, 3, (stored, 2))).to(dtype)
    size = (*(top if d == 0 else min(top, 5000) for d in range(dims)), 2)
    got = torch.sparse_coo_tensor(torch.tensor(places), values, size).coalesce()
    where, back = np.unique(places, axis=1, return_inverse=True)
    want = np.zeros((where.shape[1], 2), np.complex128)
    np.add.at(want, back.ravel(), values.to(torch.complex128).numpy())
    assert got.is_coalesced() and torch.equal(got.indices(), torch.tensor(where))
    assert torch.equal(got.values(), torch.tensor(want.real).to(dtype))


@pytest.mark.parametrize(
    "ranges, columns",
    [([0, 1, 2], [0, 9]), ([0, 1, 2], [0, -1]), ([0, 2, 1], [0, 1]), ([0, 1, 7], [0, 1]), ([-5, 1, 2], [0, 1])],
)
def test_kernels_refuse_what_leads_outside(ranges, columns):
    """Tensors that were made by the unsafe operator, whose indices nobody has looked at."""
    bad = torch.ops.aten._sparse_compressed_tensor_unsafe(
        torch.tensor(ranges), torch.tensor(columns), torch.ones(2), [2, 3], layout=torch.sparse_csr
    )
    good = torch.ones(2, 2).to_sparse_csr()
    for product in (
        lambda: bad @ torch.ones(3, 2),
        lambda: bad @ torch.ones(3, 70),
        lambda: bad @ torch.ones(3, 2).to_sparse_csr(),
        lambda: good @ bad,
    ):
        with pytest.raises(IndexError, match="out of bounds"):
            product()
    unsafe = torch.ops.aten._sparse_coo_tensor_with_dims_and_tensors
    for row in (-1, 2, 2**62):
        s = unsafe(2, 0, [2, 2], torch.tensor([[row, 0], [0, 1]]), torch.ones(2), is_coalesced=False)
        with pytest.raises(IndexError, match="out of bounds"):
            s @ torch.ones(2, 2)
        assert s.coalesce()._nnz() == 2


@pytest.mark.parametrize("softmax", [torch.sparse.softmax, torch.sparse.log_softmax])
@pytest.mark.parametrize("shape", [(2, 0), (3, 2)])
def test_gradient_of_softmax_of_nothing(softmax, shape):
    x = torch.zeros(shape, requires_grad=True)
    softmax((x * (x > 0)).to_sparse(), 1).to_dense().sum().backward()
    assert x.grad.tolist() == torch.zeros(shape).tolist()


@pytest.mark.parametrize("name", ["add_", "sub_", "mul_"])
@pytest.mark.parametrize("left, right", [(True, True), (False, True)])
def test_integers_take_no_floating_point_results(name, left, right):
    ints, floats = torch.tensor([[1, 0], [0, 2]]), torch.tensor([[0.5, 0.0], [0.0, 1.5]])
    a, b = (x.to_sparse() if sparse else x for x, sparse in ((ints, left), (floats, right)))
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type Long"):
        getattr(a, name)(b)
    assert torch.equal(a.to_dense() if left else a, ints)


def test_conj():
    x = torch.tensor([[1 + 2j, 0], [0, -3j]])
    assert torch.equal(x.to_sparse().conj().to_dense(), x.conj()) and not x.to_sparse().conj().is_conj()
    with pytest.raises(TypeError, match="Use Tensor.to_dense"):
        x.to_sparse().conj().numpy(force=True)


def test_a_size_alone():
    for x in (torch.sparse_coo_tensor((2, 3)), torch.sparse_coo_tensor(size=(2, 3))):
        assert x.shape == (2, 3) and x._nnz() == 0 and torch.equal(x.to_dense(), torch.zeros(2, 3))
    for given in ({}, {"indices": torch.zeros(1, 0, dtype=torch.int64), "size": (2,)}, {"values": torch.ones(1)}):
        with pytest.raises(TypeError):
            torch.sparse_coo_tensor(**given)
