"""Dual numbers, linearisation, decompositions."""

import pytest

import flambeau as torch

fw = torch.autograd.forward_ad


def _tangent(fn, *pairs):
    with fw.dual_level():
        out = fn(*(fw.make_dual(x, t) for x, t in pairs))
        return fw.unpack_dual(out).tangent


def test_tangents_follow_functions_methods_and_operators():
    x, t = torch.rand(3, 2), torch.rand(3, 2)
    torch.testing.assert_close(_tangent(lambda d: (d * d).T.sum(0), (x, t)), (2 * x * t).T.sum(0))
    torch.testing.assert_close(
        _tangent(lambda d: torch.nn.functional.softmax(d, 1), (x, t)),
        torch.func.jvp(lambda x: x.softmax(1), (x,), (t,))[1],
    )
    torch.testing.assert_close(
        _tangent(lambda d: d.max(1).values, (x, t)), t.gather(1, x.argmax(1, keepdim=True))[:, 0]
    )


def test_operators_by_name_push_tangents():
    x, t = torch.rand(3), torch.rand(3)
    torch.testing.assert_close(_tangent(lambda d: torch.ops.aten.mul.Tensor(d, 3), (x, t)), 3 * t)
    torch.testing.assert_close(_tangent(lambda d: torch.ops.aten.sin(d), (x, t)), x.cos() * t)


def test_a_function_says_its_own_tangents():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * x * k, x.round()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(inputs[0])
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g, h):
            return None, None

        @staticmethod
        def jvp(ctx, t, k):
            assert k is None
            return 2 * ctx.saved_tensors[0] * t * ctx.k, t * 7

    class Quiet(torch.autograd.Function):  # without jvp
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, g):
            return g * 4

    x, t = torch.rand(3), torch.rand(3)
    torch.testing.assert_close(_tangent(lambda d: Made.apply(d, 3)[0], (x, t)), 6 * x * t)
    torch.testing.assert_close(_tangent(lambda d: Made.apply(d * 1, 3)[1] * 2, (x, t)), 14 * t)
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        _tangent(Quiet.apply, (x, t))


def test_a_batch_of_tangents():
    """Examples that share memory, an expanded primal here, don't share derivatives."""
    x, t = torch.rand(6), torch.rand(2, 6)
    push = lambda f: torch.vmap(lambda t: torch.func.jvp(f, (x,), (t,))[1])(t)  # noqa: E731
    torch.testing.assert_close(push(lambda x: x.as_strided((2, 2), (3, 1), 1)), t.as_strided((2, 2, 2), (6, 3, 1), 1))
    torch.testing.assert_close(push(lambda x: x[2:].as_strided((3,), (1,), 1)), t[:, 1:4] * torch.tensor([0.0, 1, 1]))
    filled = push(lambda x: torch.ops.aten.fill.Tensor(torch.zeros(2, 3), x.sum()))
    torch.testing.assert_close(filled, t.sum(1)[:, None, None].expand(2, 2, 3))


def test_in_place_calls_give_their_target_a_tangent():
    x, t = torch.rand(3), torch.ones(3)

    def fn(d):
        out = torch.zeros(3)
        out[1:] = d[1:] * 2
        out.mul_(d)
        return out

    torch.testing.assert_close(_tangent(fn, (x, t)), torch.tensor([0.0, 4 * x[1], 4 * x[2]]))


def test_forward_over_reverse_and_back():
    x, t = torch.rand(3, requires_grad=True), torch.rand(3)
    with fw.dual_level():
        out = fw.unpack_dual((fw.make_dual(x, t) ** 3).sum())
        (g,) = torch.autograd.grad(out.tangent, x)
    torch.testing.assert_close(g, 6 * x.detach() * t)


def test_levels():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(x, x)
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="Nested"):
            fw.enter_dual_level()
        with pytest.raises(ValueError, match="floating point"):
            fw.make_dual(torch.ones(2, dtype=torch.int64), x)
        with pytest.raises(RuntimeError, match="different size"):
            fw.make_dual(x, torch.ones(3))
        dual = fw.make_dual(x, x)
        assert fw.unpack_dual(dual).tangent is x and fw.unpack_dual(x).tangent is None
    assert fw.unpack_dual(dual).tangent is None


def test_linearize():
    x, t = torch.rand(3), torch.rand(3)
    out, push = torch.func.linearize(lambda x: x.exp() * 2, x)
    torch.testing.assert_close(out, x.exp() * 2)
    torch.testing.assert_close(push(t), 2 * x.exp() * t)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        push(torch.rand(4))


def test_decompositions():
    from flambeau._decomp import core_aten_decompositions, get_decompositions, register_decomposition

    aten = torch.ops.aten
    found = get_decompositions([aten.addmm, aten.native_layer_norm, aten.mm])
    assert aten.addmm.default in found and aten.mm.default not in found
    a, b, c = torch.rand(2, 2), torch.rand(2, 3), torch.rand(3, 2)
    torch.testing.assert_close(found[aten.addmm.default](a, b, c), torch.addmm(a, b, c))
    assert aten.native_layer_norm.default in core_aten_decompositions()
    registry = {}

    @register_decomposition(aten.mm, registry)
    def mm(a, b):
        return (a[:, :, None] * b[None]).sum(1)

    assert registry[aten.mm.default] is mm
    with pytest.raises(RuntimeError, match="duplicate"):
        register_decomposition(aten.mm, registry)(mm)


def test_assert_close():
    close = torch.testing.assert_close
    close(torch.ones(2), torch.ones(2) + 1e-7)
    close({"a": [1.0, torch.ones(1)]}, {"a": [1.0, torch.ones(1)]})
    close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
    with pytest.raises(
        AssertionError, match=r"Mismatched elements: 1 / 3 \(33.3%\)\nGreatest absolute difference: 1.0 at index \(2,\)"
    ):
        close(torch.tensor([1.0, 2, 4]), torch.tensor([1.0, 2, 3]))
    with pytest.raises(AssertionError, match="'dtype' do not match"):
        close(torch.ones(1), torch.ones(1, dtype=torch.float64))
    with pytest.raises(AssertionError, match="Scalars are not close"):
        close(1.0, 1.1)
    with pytest.raises(AssertionError, match=r"item \['a'\]\[1\]"):
        close({"a": [1, 2]}, {"a": [1, 3]})
    with pytest.raises(AssertionError, match="mine: Tensor-likes"):
        close(torch.zeros(2), torch.ones(2), msg=lambda text: "mine: " + text)
    with pytest.raises(ValueError, match="'rtol' and 'atol'"):
        close(1.0, 1.0, rtol=1)
    with pytest.raises(TypeError, match="No comparison pair"):
        close(torch.ones(1), "one")


def test_make_tensor():
    make = torch.testing.make_tensor
    x = make((4, 5), dtype=torch.float32, low=-1, high=1, noncontiguous=True, requires_grad=True)
    assert x.shape == (4, 5) and not x.is_contiguous() and x.requires_grad and x.abs().max().item() <= 1
    assert make(100, dtype=torch.uint8).max().item() < 10 and make(3, dtype=torch.complex64).is_complex()
    assert not (make(1000, dtype=torch.int64, exclude_zero=True) == 0).any().item()
    with pytest.raises(ValueError, match="must be less than"):
        make(2, dtype=torch.int64, low=3, high=3)
    with pytest.raises(ValueError, match="requires_grad"):
        make(2, dtype=torch.int64, requires_grad=True)


def test_results_that_are_not_differentiable_have_zeros():
    x = torch.rand(3, 2)
    out, tangent = torch.func.jvp(lambda x: torch.max(x, 1), (x,), (torch.ones(3, 2),))
    assert (
        tangent.values.tolist() == [1, 1, 1]
        and tangent.indices.tolist() == [0, 0, 0]
        and tangent.indices.dtype is torch.int64
    )


class OfNumPy(torch.autograd.Function):
    """Derivatives in NumPy, which no tape sees; two results, a parameter with a default."""

    @staticmethod
    def forward(x, power=3):
        return torch.tensor(x.numpy() ** power), torch.tensor(power * x.numpy() ** (power - 1))

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.power = inputs
        ctx.save_for_backward(x, output[1])
        ctx.save_for_forward(x, output[1])

    @staticmethod
    def backward(ctx, ct, ct1):
        x, slope = (t.detach().numpy() for t in ctx.saved_tensors)
        p = ctx.power
        return torch.tensor(ct.numpy() * slope + ct1.numpy() * p * (p - 1) * x ** (p - 2)), None

    @staticmethod
    def jvp(ctx, t, _):
        x, slope = ctx.saved_tensors
        p = ctx.power
        return t * slope, p * (p - 1) * t * x ** (p - 2)


@pytest.mark.parametrize("backend", [None, "eager", "aot_eager", "inductor"])
def test_a_functions_own_jvp_is_what_transforms_take(backend):
    x, t = torch.tensor([1.5, 2.0]), torch.tensor([1.0, -2.0])

    def push(x, t):
        return torch.func.jvp(OfNumPy.apply, (x,), (t,))

    out, tangents = (push if backend is None else torch.compile(push, backend=backend))(x, t)
    torch.testing.assert_close(out, (x**3, 3 * x**2))
    torch.testing.assert_close(tangents, (3 * x**2 * t, 6 * x * t))
    torch.testing.assert_close(torch.func.jacfwd(lambda x: OfNumPy.apply(x, 2)[0])(x), torch.diag(2 * x))
    x.requires_grad_()
    (grad,) = torch.autograd.grad(OfNumPy.apply(x)[1].sum(), x)
    torch.testing.assert_close(grad, 6 * x.detach())


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_compiled_functions_on_dual_numbers(backend):
    """Called while a level is open, compiled before; its backward with dual cotangents; a level inside."""
    x, t = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 10.0])
    plain = lambda x: x.sin() * x  # noqa: E731
    fn = torch.compile(plain, backend=backend)
    out = fn(x)
    slope, bend = x.cos() * x + x.sin(), 2 * x.cos() - x.sin() * x
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        torch.testing.assert_close(fw.unpack_dual(fn(dual)).tangent, slope * t)
        (grad,) = torch.autograd.grad(fn(dual).sum(), dual)
        torch.testing.assert_close(fw.unpack_dual(grad).tangent, (bend * t).detach())
        (grad,) = torch.autograd.grad(out, x, fw.make_dual(torch.ones(2), t))
        torch.testing.assert_close(fw.unpack_dual(grad).tangent, (slope * t).detach())

    @torch.compile(backend=backend)
    def inside(x, t):
        with fw.dual_level():
            return fw.unpack_dual(plain(fw.make_dual(x, t))).tangent

    torch.testing.assert_close(inside(x, t), slope * t)


def test_gradients_are_kept_with_their_tangents():
    x, t = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 10.0])
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        for count in (1, 2):
            (dual**3).sum().backward()
            torch.testing.assert_close(fw.unpack_dual(x.grad).tangent, count * (6 * x * t).detach())
    assert fw.unpack_dual(x.grad).tangent is None


def test_what_a_closed_level_left_is_no_tangent():
    x, t = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1.0, 10.0])
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        out = dual.exp()
    with fw.dual_level():
        (grad,) = torch.autograd.grad(out.sum(), x)
        assert fw.unpack_dual(grad).tangent is None and fw.unpack_dual(dual * 2).tangent is None
        assert fw.unpack_dual(fw.make_dual(dual, t) * 2).tangent.tolist() == [2, 20]
