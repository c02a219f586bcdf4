"""out= of functions that choose by flags, draw, or return lists: what they return without it, written into what is given."""

import pytest

import flambeau as torch
from flambeau.core.bindings import Binder

X = torch.arange(6.0).reshape(2, 3)
S = X[:, :2] @ X[:, :2].T + 3 * torch.eye(2)
CALLS = {
    "where": lambda **k: torch.where(X > 2, X, -X, **k),
    "nonzero": lambda **k: torch.nonzero(X, **k),
    "randn": lambda **k: torch.randn(2, 3, **k),
    "randint": lambda **k: torch.randint(9, (4,), **k),
    "normal": lambda **k: torch.normal(X, 2.0, **k),
    "normal of numbers": lambda **k: torch.normal(0.5, 2.0, (3,), **k),
    "norm": lambda **k: torch.norm(X, "nuc", **k),
    "eye": lambda **k: torch.eye(3, requires_grad=False, **k),
    "split_with_sizes_copy": lambda **k: torch.split_with_sizes_copy(X, [1, 2], 1, **k),
    "unbind_copy": lambda **k: torch.unbind_copy(X, **k),
    "conjugated": lambda **k: torch.fft.ihfft(X, **k),
    "native_batch_norm": lambda **k: torch.native_batch_norm(X, None, None, None, None, True, 0.1, 1e-5, **k),
}


@pytest.mark.parametrize("name", CALLS)
def test_out(name):
    torch.manual_seed(0)
    want = CALLS[name]()
    several = isinstance(want, (list, tuple))
    targets = [torch.empty(0, dtype=w.dtype) for w in (want if several else [want])]
    torch.manual_seed(0)
    CALLS[name](out=tuple(targets) if several else targets[0])
    for got, w in zip(targets, want if several else [want]):
        assert torch.equal(got, w)


RESIZED = {
    "add": lambda **k: torch.add(X.t(), X.t(), **k),
    "cholesky": lambda **k: torch.linalg.cholesky(S, **k),
    "inv": lambda **k: torch.linalg.inv(S, **k),
    "fft": lambda **k: torch.fft.fft(S, dim=0, **k),
    "kron": lambda **k: torch.kron(S.t(), S.t(), **k),
}
RESIZED_STRIDES = {"add": (1, 3), "cholesky": (1, 2), "inv": (1, 2), "fft": (2, 1), "kron": (4, 1)}  # PyTorch's


@pytest.mark.parametrize("name", RESIZED)
def test_what_is_resized_has_the_order_of_the_result(name):
    want = RESIZED[name]()
    for room in (torch.empty(0, dtype=want.dtype), torch.empty(50, dtype=want.dtype).resize_(0)):
        out = RESIZED[name](out=room)
        assert out is room and torch.equal(out, want)
        assert out.stride() == RESIZED_STRIDES[name]


def test_errors():
    with pytest.raises(TypeError, match="tuple of 2"):
        torch.unbind_copy(X, out=(torch.empty(0),))
    with pytest.raises(RuntimeError, match="out tensor to have scalar type Long"):
        torch.nonzero(X, out=torch.empty(0))


WANT_THEIR_OWN = {
    "amax": lambda **k: torch.amax(X, 0, **k),
    "abs": lambda **k: torch.abs(X, **k),
    "where": lambda **k: torch.where(X > 2, X, -X, **k),
    "matmul": lambda **k: torch.matmul(X, X.T, **k),
    "addmm": lambda **k: torch.addmm(S, S, S, **k),
    "softmax": lambda **k: torch.softmax(X, 0, **k),
    "inverse": lambda **k: torch.linalg.inv(S, **k),
    "triu": lambda **k: torch.triu(X, **k),
    "view_copy": lambda **k: torch.view_copy(X, [6], **k),
    "tensordot": lambda **k: torch.tensordot(X, X.T, 1, **k),
    "quantile": lambda **k: torch.quantile(X, 0.5, **k),
    "zeros": lambda **k: torch.zeros(2, dtype=torch.float32, **k),
}


@pytest.mark.parametrize("name", WANT_THEIR_OWN)
def test_the_dtype_of_the_result_is_wanted(name):
    out = torch.full((1,), 7.0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="dtype"):
        WANT_THEIR_OWN[name](out=out)
    assert out.tolist() == [7.0]


CAST = {
    "sin": lambda **k: torch.sin(X, **k),
    "add": lambda **k: torch.add(X, X, **k),
    "mean": lambda **k: torch.mean(X, 0, **k),
    "max of two": lambda **k: torch.max(X, -X, **k),
    "std": lambda **k: torch.std(X, 0, **k),
    "cat": lambda **k: torch.cat([X, X], **k),
    "kron": lambda **k: torch.kron(X, X, **k),
}


@pytest.mark.parametrize("name", CAST)
def test_wider_dtypes_are_written(name):
    out = CAST[name](out=torch.empty(0, dtype=torch.float64))
    assert out.dtype is torch.float64
    torch.testing.assert_close(out, CAST[name]().double())


def test_what_is_computed_in_the_dtype_of_out():
    tenths = torch.full((10,), 0.1)
    wide = lambda: torch.empty(0, dtype=torch.float64)  # noqa: E731
    assert torch.sum(tenths, 0, out=wide()).item() == sum([tenths[0].item()] * 10)
    assert torch.cumsum(tenths, 0, out=wide())[1].item() == 2 * tenths[0].item()
    assert torch.linspace(0, 1, 11, out=wide())[3].item() == 0.3 + 5.551115123125783e-17
    assert torch.full((2,), 0.1, out=wide())[0].item() == 0.1
    assert torch.eye(2, out=torch.empty(0, dtype=torch.int32)).dtype is torch.int32
    assert torch.arange(0, 5, 1.5, out=torch.empty(0, dtype=torch.int64)).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="step must be nonzero"):
        torch.arange(0, 64, 0.5, out=torch.empty(0, dtype=torch.int64))


AT = torch.zeros(3, 2, dtype=torch.int64)
OVERLAPPING = {
    "cumsum": lambda a, out: torch.cumsum(a, 0, out=out),
    "addmm": lambda a, out: torch.addmm(a, torch.ones(3, 2), torch.ones(2, 2), out=out),
    "sin": lambda a, out: torch.sin(a, out=out),
    "cat": lambda a, out: torch.cat([a, a], out=out[:2]),
    "take_along_dim": lambda a, out: torch.take_along_dim(a, AT, 0, out=out),
    "diff": lambda a, out: torch.diff(a, 0, out=out),
    "scatter": lambda a, out: torch.scatter(a, 0, AT, a, reduce="add", out=out),
    "scatter_reduce": lambda a, out: torch.scatter_reduce(a, 0, AT, a, "amax", out=out),
    "special.polygamma": lambda a, out: torch.special.polygamma(0, a, out=out),
    "true_divide": lambda a, out: torch.true_divide(a, a, out=out),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_what_is_read_may_not_be_written_in_part(name):
    room = torch.arange(1.0, 9.0).reshape(4, 2)
    before = room.clone()
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        OVERLAPPING[name](room[:3], room[1:])
    assert torch.equal(room, before)


Y = X + 1
NATIVE = {
    "a tensor": lambda out: torch.add(X, Y, out=out),
    "keywords on both sides": lambda out: torch.add(X, other=Y, out=out, alpha=2),
    "a number": lambda out: torch.mul(X, 2, out=out),
    "a tensor without dimensions": lambda out: torch.mul(X, torch.tensor(2.0), out=out),
    "a reduction": lambda out: torch.sum(X, 0, out=out),
    "a list": lambda out: torch.cat([X, Y], out=out),
    "sizes": lambda out: torch.permute_copy(X, (1, 0), out=out),
    "another namespace": lambda out: torch.linalg.matrix_norm(X, out=out),
    "a matrix product": lambda out: torch.mm(X, Y.t(), out=out),
}


@pytest.mark.parametrize("name", NATIVE)
def test_native_code_chooses_the_overload(name, monkeypatch):
    want = NATIVE[name](None)
    out = torch.empty(0)
    NATIVE[name](out)
    monkeypatch.setattr(Binder, "_with_out", None)
    assert torch.equal(NATIVE[name](out), want)


@pytest.mark.parametrize("call,error", [
    (lambda: torch.add(X, Y, out=torch.empty(0, dtype=torch.int32)), "result type Float can't be cast"),
    (lambda: torch.add(X, Y, out=3), "argument 'out' must be Tensor, not int"),
    (lambda: torch.add(X, "a", out=torch.empty(0)), "add.. received an invalid combination"),
    (lambda: torch.add(X, Y, out=torch.empty(0), beta=2), "add.. received an invalid combination"),
    (lambda: torch.numel(X, out=torch.empty(0)), "unexpected keyword argument 'out'"),
    (lambda: X.add(Y, out=torch.empty(0)), "unexpected keyword argument 'out'"),
])  # fmt: skip
def test_errors_are_those_of_the_general_way(call, error):
    with pytest.raises((TypeError, RuntimeError), match=error):
        call()


# What is refused of out=, by function: "part" of an operand's memory, the "same" memory, another "dtype" that could hold the result.
REFUSED = {
    "part": """torch.outer(v, v); torch.kron(v, v); torch.stack([x, x]); torch.hstack([x, x]); torch.vstack([x, x]); torch.dstack([x, x])
        torch.column_stack([v, v]); torch.nextafter(x, x); torch.index_add(x, 0, i, x); torch.cat([v, v]); torch.add(x, x); torch.take_along_dim(x, k, 0)
        torch.where(x > 0, x, x); torch.gather(x, 0, k); torch.mul(x, x); torch.sum(x, 0); torch.mean(x, 0); torch.amax(x, 1)
        torch.mv(x, v); torch.softmax(x, 0); torch.tril(x); torch.ops.aten.roll(x, [1], [0]); torch.ops.aten.clone(x)""",
    "same": "torch.take_along_dim(x, k, 0); torch.gather(x, 0, k); torch.index_select(x, 0, i)",
    "dtype": """torch.inner(x, x); torch.linalg.matrix_power(x, 3); torch.matrix_power(x, 2); torch.lerp(x, x, x); torch.nn.functional.logsigmoid(x)
        torch.index_add(x, 0, i, x); torch.mm(x, x); torch.gather(x, 0, k); torch.clamp(x, 0, 1); torch.clip(x, 0, 1); torch.fix(x); torch.absolute(x)
        torch.negative(x); torch.chain_matmul(x, x); torch.nuclear_norm(x); torch.bitwise_not(i); torch.ops.aten.silu(x); torch.ops.aten.repeat(x, [2, 2])
        torch.ops.aten.masked_fill(x, x > 0, 1); torch.ops.aten.upsample_nearest1d(x[None], [9])""",
    "none": "torch.nextafter(x, x); torch.diff(x); torch.outer(v, v); torch.stack([x, x]); torch.add(x, x)",
}  # fmt: skip


@pytest.mark.parametrize(
    "how,call", [(h, c.strip()) for h, text in REFUSED.items() for c in text.replace("\n", ";").split(";")]
)
def test_refused(how, call):
    """At each call, whoever makes it: the kernel, and native code once a description has come up often."""
    rooms = torch.rand(64), torch.rand(64)
    x, v = rooms[0][:16].view(4, 4), rooms[1][:4]
    names = {"torch": torch, "x": x, "v": v, "i": torch.arange(4), "k": torch.zeros(4, 4, dtype=torch.int64)}
    want = eval(call, names)
    room = rooms[0] if "x" in call.partition("(")[2] else rooms[1]
    if how in ("dtype", "none"):
        names["out"] = torch.empty(want.shape, dtype=torch.float64)
    else:
        start = 0 if how == "same" else 1
        names["out"] = x if how == "same" else room[start : start + want.numel()].view(want.shape)
    for _ in range(4):
        if how == "none":
            assert torch.equal(eval(f"{call[:-1]}, out=out)", names), want.double())
            continue
        with pytest.raises(RuntimeError, match="dtype" if how == "dtype" else "single memory location"):
            eval(f"{call[:-1]}, out=out)", names)


@pytest.mark.parametrize("name", ["silu", "mish", "glu", "leaky_relu", "hardswish", "hardsigmoid"])
def test_functions_without_out(name):
    with pytest.raises(TypeError, match="out"):
        getattr(torch.nn.functional, name)(X, out=torch.empty(0))


def test_fill_takes_an_element_of_what_it_fills():
    """Of the operators in place only ``fill_`` does, as in PyTorch: it reads the value first."""
    room = torch.arange(1.0, 4.0)
    assert room.fill_(room[1]).tolist() == [2.0, 2.0, 2.0]
    one = torch.ones(1)
    assert one.fill_(one.squeeze()).tolist() == [1.0]
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        one.add_(one.squeeze())


PREDICATES = {
    "gt": lambda x, y: torch.gt(x, 2, out=y),
    "isneginf": lambda x, y: torch.isneginf(x, out=y),
    "logical_and": lambda x, y: torch.logical_and(x, x, out=y),
    "signbit": lambda x, y: torch.signbit(x, out=y),
    "argmax": lambda x, y: torch.argmax(x, 1, out=y),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_what_has_no_gradient_is_written_of_tensors_that_ask_for_one(name):
    dtype = torch.int64 if name == "argmax" else torch.bool
    found = [PREDICATES[name](x, torch.empty(0, dtype=dtype)) for x in (X, X.clone().requires_grad_())]
    assert torch.equal(*found) and not found[1].requires_grad
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.exp(X.clone().requires_grad_(), out=torch.empty(2, 3))
