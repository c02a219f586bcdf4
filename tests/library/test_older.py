"""``torch._custom_ops``: operators in parts, by the older interface."""

import pytest

import flambeau as torch
from flambeau import _custom_ops as custom_ops

NAME = "test_older::foo"


@pytest.fixture
def made():
    @custom_ops.custom_op(NAME)
    def foo(x: torch.Tensor, n: int) -> torch.Tensor:
        raise NotImplementedError

    yield torch.ops.test_older.foo
    custom_ops._destroy(NAME)


def implement():
    @custom_ops.impl(NAME)
    def kernel(x, n):
        return x.sin() * n


def test_parts(made):
    implement()
    x = torch.tensor([1.0, 2.0])
    assert torch.equal(made(x, 3), x.sin() * 3)
    with pytest.raises(RuntimeError, match="already has an implementation for this device"):
        implement()
    x.requires_grad_()
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        made(x, 3)

    @custom_ops.impl_save_for_backward(NAME)
    def save(inputs, output):
        return inputs.x, inputs.n

    @custom_ops.impl_backward(NAME)
    def backward(ctx, saved, grad):
        x, n = saved
        return {"x": grad * x.cos() * n}

    made(x, 3).sum().backward()
    assert torch.allclose(x.grad, x.detach().cos() * 3)

    @custom_ops.impl_abstract(NAME)
    def shape(x, n):
        return torch.empty_like(x)

    assert made(torch.empty(2, device="meta"), 3).shape == (2,)


@pytest.mark.parametrize(
    "result, message",
    [
        (lambda g: g, "to be a dict"),
        (lambda g: {"x": g, "n": None}, "non-Tensor-like types"),
        (lambda g: {"x": (g,)}, "either None or a Tensor"),
    ],
)
def test_what_a_backward_returns(made, result, message):
    implement()
    custom_ops.impl_save_for_backward(NAME)(lambda inputs, output: inputs.x)
    custom_ops.impl_backward(NAME)(lambda ctx, saved, grad: result(grad))
    y = made(torch.ones(2, requires_grad=True), 1)
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


@pytest.mark.parametrize(
    "name, schema, error, message",
    [
        ("test_older::a.b", "(Tensor x) -> Tensor", ValueError, "overload"),
        ("aten::foo", "(Tensor x) -> Tensor", ValueError, "reserved namespace"),
        ("test_older::a", "(Tensor(a!) x) -> Tensor", ValueError, "only supports functional"),
        ("test_older::a", "(Tensor x) -> ()", ValueError, "only supports functional"),
        ("test_older::a", "(Tensor self) -> Tensor", ValueError, "self"),
        ("test_older::a", "(", AssertionError, "Invalid function schema"),
    ],
)
def test_refused(name, schema, error, message):
    with pytest.raises(error, match=message):
        custom_ops.custom_op(name, schema)


def test_library_first():
    lib = torch.library.Library("test_older_lib", "FRAGMENT")
    try:

        @torch.library.define(lib, "twice(Tensor x) -> Tensor")
        def twice(x):
            return x * 2

        assert torch.equal(torch.ops.test_older_lib.twice(torch.ones(2)), torch.full((2,), 2.0))
    finally:
        lib._destroy()
    delattr(torch.ops, "test_older_lib")


def test_aliasing_is_checked_unless_switched_off():
    @torch.library.custom_op("test_older::same", mutates_args=())
    def same(x: torch.Tensor) -> torch.Tensor:
        return x

    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        same(torch.ones(2))
    with torch._functorch.config.patch(check_custom_op_aliasing=False):
        assert same(torch.ones(2)).tolist() == [1, 1]
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert has("test_older::same", "CPU") and not has("test_older::same", "Autograd")
