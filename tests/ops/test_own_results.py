"""An operator whose schema names no alias returns tensors of their own, whatever views its body made of them."""

import pytest

import flambeau as torch
from flambeau.testing.checks import flat
from flambeau.testing.samples import load, operator, to_tensors

F = torch.nn.functional


def explicit_composites():
    for name, row in load().items():
        try:
            op = operator(name)
        except AttributeError:
            continue  # samples may be ahead of the operator
        aliases = any(r.alias_info is not None for r in op._schema.returns)
        if op.kind == "composite" and not op.definition.implicit and op.definition.eager is None and not aliases:
            yield pytest.param(row, id=name)


@pytest.mark.parametrize("row", list(explicit_composites()))
def test_results_are_no_views(row):
    opened = row.op.vjp_formulas is None  # its parts are recorded, so a view has a root with a history
    for sample in row.calls[:3]:
        args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
        for a in args:
            if not opened and isinstance(a, torch.Tensor) and a.is_floating_point():
                a.requires_grad_()
        try:
            results = flat(row.op(*args, **kwargs))
        except (RuntimeError, IndexError, NotImplementedError):
            continue  # refused samples are compared with PyTorch elsewhere
        assert not any(isinstance(t, torch.Tensor) and t._is_view() for t in results)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.max_pool3d(x[None], 1),
        lambda x: x.max(1)[0],
        lambda x: x.roll(0, 0),
        lambda x: F.pad(x, (-1, 0)),
        lambda x: F.pixel_shuffle(x, 1),
        lambda x: F.unfold(x, 1),
    ],
)
def test_a_write_to_a_result_keeps_the_gradient(f):
    x = torch.arange(32.0).reshape(1, 2, 4, 4).requires_grad_()
    kept = x.detach().clone()
    y = f(x)
    want = torch.autograd.grad(f(x).mul(3).sum(), x)[0]
    y.mul_(3)
    (got,) = torch.autograd.grad(y.view(-1).sum(), x)
    assert torch.equal(got, want) and torch.equal(x.detach(), kept)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x @ torch.ones(4, 2),
        lambda x: F.linear(x, torch.ones(3, 4), torch.ones(3)),
        lambda x: F.group_norm(x, 1),
        lambda x: x.repeat(2, 1, 1),
        lambda x: F.scaled_dot_product_attention(x, x, x),
    ],
)
def test_products_can_be_detached_in_place(f):
    y = f(torch.ones(2, 3, 4, requires_grad=True))
    assert not y._is_view() and not y.detach_().requires_grad
