"""gradcheck and gradgradcheck notice what they are asked to notice: each option beside a function that is wrong in just that way."""

import pytest

import flambeau as torch
from flambeau.autograd import GradcheckError, gradcheck, gradgradcheck


def made(forward, backward, **more):
    """A function whose forward and backward are said apart."""
    members = {
        "forward": staticmethod(lambda ctx, x: (ctx.save_for_backward(x), forward(x))[1]),
        "backward": staticmethod(lambda ctx, *g: backward(ctx.saved_tensors[0], *g)),
    }
    return type("Made", (torch.autograd.Function,), {**members, **more}).apply


class Drifting:
    """A backward that gives another number each time, by a little."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, g):
        self.calls += 1
        return 2 * x * g + 1e-7 * self.calls


def ignoring_batch(x, g):
    # Asks about elements: right for one cotangent, not for a batch of them.
    return 2 * x * (g if g.flatten()[0].item() > -1e300 else g)


WRONG = {
    "a wrong backward": (lambda x: made(lambda x: x * x, lambda x, g: 3 * x * g)(x), {}, "Jacobian mismatch for output 0"),
    "the same, one projection": (lambda x: made(lambda x: x * x, lambda x, g: 3 * x * g)(x), {"fast_mode": True}, "Jacobian mismatch for output 0"),
    "a lost history": (lambda x: x * x.detach(), {}, "Jacobian mismatch"),
    "no history at all": (lambda x: x.detach() * 2, {}, "Numerical gradient for function expected to be zero"),
    "a backward that drifts": (lambda x: made(lambda x: x * x, DRIFT)(x), {}, "Backward is not reentrant"),
    "one that doesn't begin at its cotangent": (lambda x: made(lambda x: x * x, lambda x, g: 2 * x * g + 1e-9)(x), {"nondet_tol": 1.0}, "not multiplied by grad_output"),
    "another dtype": (lambda x: made(lambda x: x * 2, lambda x, g: (2 * g).float())(x), {"check_grad_dtypes": True}, None),
    "a backward that looks at elements": (lambda x: made(lambda x: x * x, ignoring_batch)(x), {"check_batched_grad": True}, "While computing batched gradients"),
}  # fmt: skip
DRIFT = Drifting()


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_noticed(name):
    fn, options, text = WRONG[name]
    x = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64, requires_grad=True)
    if text is None:
        assert gradcheck(lambda x: x * 2, (x,), **options)
        return
    with pytest.raises(GradcheckError, match=text):
        gradcheck(fn, (x,), **options)
    assert gradcheck(fn, (x,), raise_exception=False, **options) is False


def test_forward_mode_is_looked_at():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

        @staticmethod
        def jvp(ctx, t):
            return 5 * t

    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Made.apply, (x,))
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(Made.apply, (x,), check_forward_ad=True)
    with pytest.raises(GradcheckError, match="computed with forward mode mismatch"):
        gradcheck(Made.apply, (x,), check_forward_ad=True, check_backward_ad=False, fast_mode=True)


@pytest.mark.parametrize("options", [
    {}, {"fast_mode": True}, {"check_forward_ad": True}, {"check_batched_grad": True}, {"check_forward_ad": True, "check_batched_forward_grad": True},
    {"check_forward_ad": True, "check_backward_ad": False}, {"check_grad_dtypes": True}, {"check_undefined_grad": False},
])  # fmt: skip
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_what_is_right_passes(options, dtype):
    torch.manual_seed(0)
    x = torch.randn(2, 2, dtype=dtype, requires_grad=True)
    y = torch.randn(2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x, y: (x * y @ x, x.abs().sum(), (x * 2).argmax() if dtype.is_floating_point else y), (x, y), **options)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("options", [{}, {"check_batched_grad": True}, {"fast_mode": True}, {"gen_non_contig_grad_outputs": True}, {"check_fwd_over_rev": True},
                                     {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False}])  # fmt: skip
def test_second_order(dtype, options):
    x = torch.tensor([[0.5, 2.0], [1.5, -1.0]], dtype=dtype, requires_grad=True)
    assert gradgradcheck(lambda x: (x * x @ x).exp(), (x,), **options)
    jvp = staticmethod(lambda ctx, t: t)  # only what the backward lacks is looked for
    once = made(lambda x: x**3, lambda x, g: 3 * x.detach() ** 2 * g, jvp=jvp)
    with pytest.raises(GradcheckError, match="Jacobian .*mismatch"):
        gradgradcheck(lambda x: once(x) * 1, (x,), **options)


def test_what_cannot_be_checked_is_refused():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (x.detach(),))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (torch.ones(2, requires_grad=True),), atol=1, rtol=1)
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(lambda x: x, (x,), check_backward_ad=False)
    with pytest.raises(AssertionError, match="check_batched_forward_grad=True requires check_forward_ad"):
        gradcheck(lambda x: x, (x,), check_batched_forward_grad=True)
    with pytest.raises(AssertionError, match="check_batched_grad=True requires check_rev_over_rev"):
        gradgradcheck(
            lambda x: x,
            (x,),
            check_batched_grad=True,
            check_fwd_over_rev=True,
            check_rev_over_rev=False,
            check_undefined_grad=False,
        )


def test_inputs_are_left_as_they_were():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(ZeroDivisionError):
        gradcheck(lambda x: x / 0 if x[0].item() == 1 else 1 // 0, (x,))
    assert x.tolist() == [1.0, 2.0]
