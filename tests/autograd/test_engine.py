"""The order and the extent of the backward pass."""

import pytest

import flambeau as torch
from flambeau import _C


def test_only_nodes_that_ran_are_released():
    x, w = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = (x * x).sum() + (w * w).sum()
    assert torch.autograd.grad(loss, x)[0].tolist() == [2.0] * 3
    assert torch.autograd.grad(loss, w)[0].tolist() == [2.0] * 3  # this branch has not run yet
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(loss, x)


def test_retain_graph_allows_a_second_pass():
    x = torch.ones(3, requires_grad=True)
    y = (x.exp() * x).sum()
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    assert torch.allclose(x.grad, 2 * first)


def test_grad_of_what_is_no_leaf_warns_unless_it_is_kept():
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor.*retain_grad"):
        assert y.grad is None
    kept = w * 3
    kept.retain_grad()
    assert kept.grad is None and w.grad is None and (w.detach() * 2).grad is None and y._grad is None
    kept.sum().backward()
    assert kept.grad.tolist() == [1, 1, 1]


def test_gradients_of_shared_cotangents_are_not_the_same_memory():
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a + b).sum().backward()
    a.grad.add_(1)
    assert b.grad.tolist() == [1.0, 1.0]
    g = torch.ones(2)
    c = torch.ones(2, requires_grad=True)
    (c * 1).backward(g)
    (c + 0).backward(g)
    assert g.tolist() == [1.0, 1.0]


def test_a_long_chain_needs_no_recursion():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.item() == 1.0
    del y


def test_views_after_a_write_to_their_base():
    x = torch.ones(3, requires_grad=True)
    base = x * 2
    view = base[1:]
    base.mul_(3)
    view.sum().backward()
    assert x.grad.tolist() == [0.0, 6.0, 6.0]
    x.grad = None
    base = x * 2
    base[0].mul_(5)
    base[1:] = base[1:] * 7
    base.sum().backward()
    assert x.grad.tolist() == [10.0, 14.0, 14.0]


def test_a_write_records_into_a_base_that_had_no_history():
    w = torch.ones(2, requires_grad=True)
    out = torch.zeros(3)
    out[1:] = w * 3
    out.sum().backward()
    assert w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "fn",
    [lambda x: torch.heaviside(x, torch.ones(3))],
    ids=["heaviside"],
)
def test_what_has_no_derivative_says_so_in_the_backward(fn):
    x = torch.ones(3, requires_grad=True)
    y = fn(x) + x  # the forward is no error, as in PyTorch
    with pytest.raises(NotImplementedError, match="derivative .* is not implemented"):
        y.sum().backward()
    assert x.grad is None


def test_a_missing_higher_derivative_is_an_error_and_not_zero():
    x = torch.full((2,), 2.5, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(torch.digamma(x).sum(), x, create_graph=True)
    assert first.tolist() == pytest.approx([0.4903577561002348] * 2)
    with pytest.raises(NotImplementedError, match="derivative .* is not implemented"):
        torch.special.zeta(first, 2.0).sum().backward()


def test_a_weights_gradient_is_the_product_itself():
    """It comes as a view of a view of the product; without another owner it isn't copied."""
    layer, x = torch.nn.Linear(512, 256, bias=False), torch.randn(8, 512)
    for _ in range(4):
        layer.zero_grad()
        y = layer(x).sum()
        before = _C.memory_counters(False)
        y.backward()
        after = _C.memory_counters(False)
        made = after["hits"] + after["misses"] - before["hits"] - before["misses"]
    assert made == 1 and not layer.weight.grad._is_view()


@pytest.mark.parametrize("keep", [lambda g: g, lambda g: g.numpy(), lambda g: g[1:], lambda g: g.detach()])
def test_a_product_that_a_hook_keeps_isnt_taken(keep):
    weight, x, kept = torch.randn(256, 512, requires_grad=True), torch.randn(8, 512), []
    for _ in range(4):
        weight.grad = None
        turned = weight.t()
        turned.register_hook(lambda g: kept.append(keep(g)))
        (x @ turned).sum().backward()
        before = torch.as_tensor(kept[-1]).clone()
        weight.grad.add_(1)
        assert torch.equal(torch.as_tensor(kept[-1]), before)


def test_grad_asks_for_inputs():
    x = torch.ones(2, requires_grad=True)
    for outputs in ([], (x * 2).sum()):
        with pytest.raises(RuntimeError, match="`inputs` argument to `grad\\(\\)` cannot be empty"):
            torch.autograd.grad(outputs, [])
