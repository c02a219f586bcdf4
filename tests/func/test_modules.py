"""functional_call and stack_module_state."""

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.func import functional_call, grad, stack_module_state, vmap


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, scale=1.0):
        self.count = self.count + 1
        return self.b(self.a(x)) * scale


def test_functional_call():
    m, x = nn.Linear(3, 2), torch.randn(4, 3)
    w, b = torch.randn(2, 3), torch.randn(2)
    before = m.weight
    assert torch.allclose(functional_call(m, {"weight": w, "bias": b}, (x,)), x @ w.t() + b)
    assert torch.allclose(functional_call(m, ({"weight": w}, {"bias": b}), x), x @ w.t() + b)
    assert m.weight is before
    assert torch.allclose(functional_call(m, {"weight": w}, x), x @ w.t() + m.bias)
    g = grad(lambda p: functional_call(m, p, (x,)).sum())(dict(m.named_parameters()))
    assert torch.allclose(g["weight"], x.sum(0).expand(2, 3)) and m.weight.grad is None
    per_example = vmap(grad(lambda p, a: functional_call(m, p, (a,)).sum()), (None, 0))(dict(m.named_parameters()), x)
    assert torch.allclose(per_example["weight"], x[:, None].expand(4, 2, 3))


def test_tied_and_buffers():
    m, x, w = Tied(), torch.randn(2), torch.eye(2)
    zeros = {"a.bias": torch.zeros(2), "b.bias": torch.zeros(2)}
    assert torch.allclose(functional_call(m, {"a.weight": w, **zeros}, x, {"scale": 2.0}), 2 * x)
    assert not torch.allclose(functional_call(m, {"a.weight": w, **zeros}, x, tie_weights=False), x)
    assert m.count.item() == 2
    functional_call(m, {"count": torch.tensor([7.0])}, x)
    assert m.count.item() == 2
    with pytest.raises(ValueError, match="functional_call got multiple values for keys"):
        functional_call(m, {"a.weight": w, "b.weight": w.clone()}, x)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(m, [{"a.weight": w}, {"a.weight": w}], x)
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        functional_call(m, 3, x)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Tied:\n\tUnexpected key\(s\): 'zzz'"):
        functional_call(m, {"zzz": w}, x, strict=True)


def test_ensemble():
    models, x = [nn.Linear(3, 2) for _ in range(4)], torch.randn(5, 3)
    params, buffers = stack_module_state(models)
    assert (
        params["weight"].shape == (4, 2, 3)
        and params["weight"].requires_grad
        and params["weight"].is_leaf
        and buffers == {}
    )
    out = (
        vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(params, buffers)
        if buffers
        else vmap(lambda p: functional_call(models[0], p, (x,)))(params)
    )
    assert torch.allclose(out, torch.stack([m(x) for m in models]), atol=1e-6)
    out.sum().backward()
    assert torch.allclose(params["bias"].grad, torch.full((4, 2), 5.0))
    with pytest.raises(RuntimeError, match="at least one model, got 0"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([nn.Linear(1, 1), Tied()])
    models[0].eval()
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state(models)
