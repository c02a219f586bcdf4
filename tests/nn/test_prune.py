"""Pruning beside PyTorch: masks, stacked methods, permanence, errors."""

import importlib

import numpy as np
import pytest

import flambeau


def _facts(lib):
    prune = importlib.import_module(f"{lib.__name__}.nn.utils.prune")
    nn, out = lib.nn, []
    lib.manual_seed(0)
    m = nn.Linear(6, 4)
    prune.random_unstructured(m, "weight", 0.3)
    out.append(m.weight)
    prune.l1_unstructured(m, "bias", 1)
    out.append(m.bias)
    prune.ln_structured(m, "weight", 0.5, 2, 0)
    out.append(m.weight)
    prune.random_structured(m, "weight", 1, 1)
    out += [m.weight, m(lib.ones(2, 6))]
    assert prune.is_pruned(m) and sorted(m.state_dict()) == ["bias_mask", "bias_orig", "weight_mask", "weight_orig"]
    prune.remove(m, "weight")
    assert sorted(dict(m.named_parameters())) == ["bias_orig", "weight"]
    n = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2))
    prune.global_unstructured([(n[0], "weight"), (n[1], "weight")], prune.L1Unstructured, amount=0.4)
    n(lib.ones(1, 3)).sum().backward()
    out += [n[0].weight, n[1].weight, n[0].weight_orig.grad]
    prune.custom_from_mask(n[0], "bias", lib.tensor([1.0, 0.0, 1.0]))
    out.append(n[0].bias)
    errors = []
    for call in (
        lambda: prune.l1_unstructured(m, "weight", 1.5),
        lambda: prune.l1_unstructured(m, "weight", 100),
        lambda: prune.l1_unstructured(m, "weight", "half"),
        lambda: prune.remove(m, "weight"),
        lambda: prune.ln_structured(m, "weight", 1, 2, 5),
        lambda: prune.global_unstructured([(m, "weight")], prune.LnStructured, amount=1, n=2),
    ):
        with pytest.raises((ValueError, TypeError, IndexError)) as caught:
            call()
        errors.append(type(caught.value).__name__)
    assert list(dict(m.named_parameters())) == ["bias_orig", "weight"]  # a refused method leaves the module as it was
    return [t.detach().numpy() for t in out], errors


def test_pruning_zeroes_the_smallest():
    (weights, _) = _facts(flambeau)
    assert (weights[1] == 0).sum() == 1 and (weights[2] == 0).all(1).sum() == 2
    assert sum((w == 0).sum() for w in weights[5:7]) == 6


@pytest.mark.parity
def test_beside_pytorch():
    torch = pytest.importorskip("torch")
    (expected, errors), (got, here) = _facts(torch), _facts(flambeau)
    assert errors == here
    for a, b in zip(expected, got):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
