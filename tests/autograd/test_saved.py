"""What a node keeps: only what its formula reads."""

import pytest

import flambeau as torch


def test_writes_after_a_copy():
    x = torch.ones(3, 3, requires_grad=True)
    y = x.clone()
    y[:, 1] += 2
    y[y > 1] = 0
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 1.0]] * 3


@pytest.mark.parametrize(
    "fn",
    [
        lambda t: t.sum(),
        lambda t: t.mean(0),
        lambda t: t.sum(1, keepdim=True),
        lambda t: t.view(-1),
        lambda t: t[0],
        lambda t: t[:, 1:],
        lambda t: t.double(),
        lambda t: t.expand(2, 3, 3),
        lambda t: t.gather(1, torch.zeros(3, 1, dtype=torch.long)),
        lambda t: t.index_select(0, torch.tensor([1])),
        lambda t: torch.cat([t, t]),
        lambda t: t.max(1)[0],
        lambda t: t.unsqueeze(0),
        lambda t: torch.zeros(3, 3).copy_(t),
        lambda t: t[torch.tensor([0, 2])],
        lambda t: t + 1,
        lambda t: torch.softmax(t, 0),
    ],
)
def test_an_input_may_be_overwritten_when_only_its_shape_was_needed(fn):
    x = torch.ones(3, 3, requires_grad=True)
    y = x * 1
    out = fn(y)
    with torch.no_grad():
        y.detach().zero_()
    out.sum().backward()
    assert x.grad is not None


def test_an_input_whose_value_was_needed_may_not():
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    out = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_several_results_of_one_node():
    x = torch.arange(6.0, requires_grad=True)
    a, b = torch.chunk(x * 1, 2)
    (g,) = torch.autograd.grad([a, b], [x], [torch.ones(3), 2 * torch.ones(3)])
    assert g.tolist() == [1.0] * 3 + [2.0] * 3


def test_what_a_node_keeps_has_names_and_places():
    """Programs that draw graphs look for these names; hooks of one value alone are set at its place."""
    x = torch.ones(2, requires_grad=True)
    node = x.exp().grad_fn
    assert [n for n in dir(node) if "_saved_" in n] == ["_raw_saved_result", "_saved_result"]
    seen = []
    node._raw_saved_result.register_hooks(lambda t: (seen.append("pack"), t.numpy())[1], lambda a: torch.tensor(a * 3))
    node.apply(torch.ones(2))
    assert seen == ["pack"] and torch.equal(node._saved_result, torch.ones(2).exp() * 3)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        node._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(AttributeError, match="_raw_saved_other"):
        _ = node._raw_saved_other
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after it has been freed"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)


def test_inference_tensors_have_no_version():
    with torch.inference_mode():
        y = torch.ones(2) * 2
        y.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    assert not hasattr(torch.ones(2), "nothing") and torch.ones(2)._version == 0
