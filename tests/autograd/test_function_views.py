"""Results of custom Functions that are views, and views made with recording off, when they or their bases are written."""

import pytest

import flambeau as torch
from flambeau.autograd import Function


def function(forward):
    """``apply`` of a Function whose backward, ten times the sum of what comes, isn't the derivative of ``forward``."""

    class Custom(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.shape = x.shape
            return forward(x)

        @staticmethod
        def backward(ctx, *grads):
            return torch.full(ctx.shape, 10.0) * sum(g.sum() for g in grads)

    return Custom.apply


def first(results):
    return results[0] if isinstance(results, tuple) else results


RESULTS = {
    "view": lambda x: x.view_as(x),
    "row": lambda x: x[0],
    "turned": lambda x: x.t(),
    "itself": lambda x: x,
    "several": lambda x: (x[0], x[1]),
    "view beside a new tensor": lambda x: (x[0], x.clone()),
    "itself beside a new tensor": lambda x: (x, x.clone()),
    "unbind": lambda x: tuple(x.unbind()),
}


def root(leaf):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    return x if leaf else x * 1


@pytest.mark.parametrize("leaf", [False, True])
@pytest.mark.parametrize("forward", [*RESULTS.values(), lambda x: x.clone()[0]], ids=[*RESULTS, "row of a new tensor"])
@pytest.mark.parametrize(
    "write",
    [lambda y: y.mul_(3), lambda y: y.view(-1).copy_(torch.zeros(y.numel())), lambda y: y.t_(), lambda y: y.zero_()],
)
def test_a_view_that_a_function_gave_is_not_written(write, forward, leaf):
    y = first(function(forward)(root(leaf)))
    if not y.is_contiguous():
        y = y.t()
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace.*created inside a custom Function"):
        write(y)


@pytest.mark.parametrize("forward", RESULTS.values(), ids=RESULTS)
def test_a_view_that_a_function_gave_is_not_used_once_its_base_is_written(forward):
    x = root(False)
    y = first(function(forward)(x))
    below = y[:1]
    x.mul_(3)
    x.sum().backward()
    assert y.requires_grad and not y.detach().requires_grad
    for use in (lambda: y.sum(), lambda: below * 2, lambda: y.grad_fn):
        with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
            use()
    assert "grad_fn=<Invalid>" in repr(y)


@pytest.mark.parametrize("forward", RESULTS.values(), ids=RESULTS)
def test_a_view_that_a_function_gave_has_the_functions_backward(forward):
    x = root(False)
    x.retain_grad()
    y = first(function(forward)(x))
    assert y._is_view() and y._base is x
    with pytest.raises(RuntimeError, match="Can't detach views in-place"):
        y.detach_()
    y.sum().backward()
    assert x.grad.tolist() == [[10.0 * y.numel()] * 2] * 2


def test_new_tensors_that_a_function_gave_are_written():
    for forward in (lambda x: x.clone(), lambda x: (x.clone(), x.sin())):
        x = root(False)
        x.retain_grad()
        first(function(forward)(x)).mul_(3).sum().backward()
        assert x.grad.tolist() == [[120.0] * 2] * 2


def test_the_view_of_an_argument_that_the_function_wrote_is_a_result_of_its_own():
    class Doubled(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2), x[0]

        @staticmethod
        def backward(ctx, whole, row):
            return 10 * whole + 100 * row.sum()

    for number, expected in enumerate(([[10.0] * 2] * 2, [[200.0] * 2] * 2)):
        x = torch.ones(2, 2, requires_grad=True)
        Doubled.apply(x * 1)[number].sum().backward()
        assert x.grad.tolist() == expected
    whole, row = Doubled.apply(torch.ones(2, 2, requires_grad=True) * 1)
    whole.mul_(3)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        row.sum()


@pytest.mark.parametrize("mode, words", [(torch.no_grad, "no_grad"), (torch.inference_mode, "inference")])
def test_a_view_made_with_recording_off_is_not_used_once_its_base_is_written(mode, words):
    x = root(False)
    with mode():
        view = x[0]
    assert not (view * 2).requires_grad
    x.mul_(3)
    with pytest.raises(RuntimeError, match=f"created in {words} mode and its base or another view of its base"):
        view.sum()
    assert "grad_fn=<Invalid>" in repr(view)
    with torch.no_grad():
        assert view.sum().item() == 9
