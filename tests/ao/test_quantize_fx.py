"""Quantisation by tracing: what becomes codes, which rules choose it, and beside the floats and PyTorch's flow."""

import numpy as np
import pytest

import flambeau
from flambeau.ao.quantization import (
    QConfigMapping,
    default_dynamic_qconfig,
    default_qat_qconfig,
    default_qconfig,
)
from flambeau.ao.quantization.quantize_fx import (
    convert_fx,
    convert_to_reference_fx,
    fuse_fx,
    prepare_fx,
    prepare_qat_fx,
)

X = np.random.default_rng(0).standard_normal((4, 3, 8, 8)).astype(np.float32)
ALL = QConfigMapping().set_global(default_qconfig)


def models(torch):
    """{name: model} of flambeau or of PyTorch: inputs (N, 3, 8, 8)."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.other = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.Conv2d(6, 6, 1)
            self.fc = nn.Linear(6 * 16, 5)

        def forward(self, x):
            x = F.relu(self.bn(self.conv(x)))
            x = F.relu(self.other(x) + x)
            x = F.max_pool2d(x, 2)
            return self.fc(x.flatten(1))

    class Joined(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 4, 3, padding=1)

        def forward(self, x):
            a, b = self.a(x), self.b(x)
            return torch.sigmoid(torch.cat([a, b], 1)), a * b

    class Partly(nn.Module):
        """An operator between two layers that codes don't have."""

        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x):
            return self.b(torch.exp(-self.a(x).abs())) * 2

    return {
        "block": Block,
        "joined": Joined,
        "partly": Partly,
        "chain": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 4)),
        "two uses": lambda: (lambda m: nn.Sequential(m, m))(nn.Conv2d(3, 3, 1)),
        "norms": lambda: nn.Sequential(nn.Conv2d(3, 4, 1), nn.GroupNorm(2, 4), nn.Hardswish(), nn.ELU()),
    }


def made(name, torch=flambeau):
    torch.manual_seed(0)
    return models(torch)[name]().eval()


def flat(y):
    return [v.detach().numpy() for v in (y if isinstance(y, tuple) else (y,))]


def converted(model, x, mapping=ALL):
    observed = prepare_fx(model, mapping, (x,))
    observed(x)
    return convert_fx(observed)


@pytest.mark.parametrize("name", models(flambeau))
def test_beside_floats(name):
    model, x = made(name), flambeau.from_numpy(X)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    int8 = converted(model, x)
    assert any("Quantized" in m._get_name() for m in int8.modules())
    assert not any("observer" in type(m).__module__ or hasattr(m, "qconfig") for m in int8.modules())
    for got, want in zip(flat(int8(x)), flat(model(x)), strict=True):
        assert np.abs(got - want).max() < 0.06 * max(1, np.abs(want).max())
    # The model that was given is as it was.
    assert all(flambeau.equal(v, before[k]) for k, v in model.state_dict().items())


def called(gm):
    return [getattr(n.target, "__name__", str(n.target)) for n in gm.graph.nodes if n.op.startswith("call_")]


def test_codes_flow_from_layer_to_layer():
    int8 = converted(made("block"), flambeau.from_numpy(X))
    names = called(int8)
    assert names.count("quantize_per_tensor") == 1 and names.count("dequantize") == 1
    assert names[0] == "quantize_per_tensor" and names[-1] == "dequantize"
    assert [type(int8.get_submodule(n)).__name__ for n in ("conv", "other", "fc")] == ["ConvReLU2d", "Conv2d", "Linear"]
    assert any("add_relu" in n for n in names) and "relu" not in names


def test_parts_that_are_joined_share_an_observer():
    observed = prepare_fx(made("joined"), ALL, (flambeau.from_numpy(X),))
    watched = [n.target for n in observed.graph.nodes if str(n.target).startswith("activation_post_process")]
    assert len(watched) == 5 and len(set(watched)) == 3


@pytest.mark.parametrize(
    "mapping, kept",
    [
        (QConfigMapping().set_object_type(flambeau.nn.Linear, default_qconfig), {"conv", "other"}),
        (QConfigMapping().set_module_name("other", default_qconfig), {"conv", "fc"}),
        (QConfigMapping().set_global(default_qconfig).set_module_name("fc", None), {"fc"}),
        (QConfigMapping().set_global(default_qconfig).set_module_name_regex("conv|fc", None), {"conv", "fc"}),
        ({"": default_qconfig, "object_type": [(flambeau.nn.Conv2d, None)]}, {"conv", "other"}),
        (QConfigMapping(), {"conv", "other", "fc"}),
    ],
)
def test_rules_choose_what_is_quantised(mapping, kept):
    model, x = made("block"), flambeau.from_numpy(X)
    int8 = converted(model, x, mapping)
    modules = dict(int8.named_modules())
    assert {n for n in ("conv", "other", "fc") if "Quantized" not in modules[n]._get_name()} == kept
    assert (int8(x) - model(x)).abs().max() < 0.1


def test_dynamic():
    x, model = flambeau.from_numpy(X)[0, 0], made("partly")
    int8 = convert_fx(prepare_fx(model, QConfigMapping().set_global(default_dynamic_qconfig), (x,)))
    assert int8.a._get_name() == "DynamicQuantizedLinear" and "quantize_per_tensor" not in called(int8)
    assert (int8(x) - model(x)).abs().max() < 0.05


def test_training():
    x, y = flambeau.from_numpy(X), flambeau.arange(4)
    model = made("block").train()
    observed = prepare_qat_fx(model, QConfigMapping().set_global(default_qat_qconfig), (x,))
    optimizer, losses = flambeau.optim.Adam(observed.parameters(), lr=0.01), []
    for _ in range(8):
        loss = flambeau.nn.functional.cross_entropy(observed(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    observed.eval()
    want = observed(x)
    assert (convert_fx(observed)(x) - want).abs().max() < 0.05 * want.abs().max()
    with pytest.raises(AssertionError, match="train mode"):
        prepare_qat_fx(made("block"), ALL, (x,))


def test_files():
    x = flambeau.from_numpy(X)
    int8, other = converted(made("block"), x), converted(made("block"), 3 * x)
    assert not flambeau.equal(int8(x), other(x))
    other.load_state_dict(int8.state_dict())
    # The scales of sums are numbers of the graph, all others are in the state.
    assert set(int8.state_dict()) >= {
        "activation_post_process_0_scale",
        "conv.weight",
        "conv.scale",
        "fc._packed_params._packed_params",
    }


def test_fusing_alone():
    model, x = made("block"), flambeau.from_numpy(X)
    fused = fuse_fx(model)
    assert type(fused.conv).__name__ == "ConvReLU2d" and "bn" not in dict(fused.named_modules())
    flambeau.testing.assert_close(fused(x), model(x), rtol=1e-4, atol=1e-5)


def test_what_is_not_built_says_so():
    x, model = flambeau.from_numpy(X), made("block")
    with pytest.raises(NotImplementedError, match="backend_config"):
        prepare_fx(model, ALL, (x,), backend_config=1)
    with pytest.raises(NotImplementedError, match="convert_custom_config"):
        convert_fx(prepare_fx(model, ALL, (x,)), convert_custom_config=1)
    with pytest.raises(NotImplementedError, match="reference"):
        convert_to_reference_fx(prepare_fx(model, ALL, (x,)))


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch's, of its own flow
@pytest.mark.parametrize("name", [n for n in models(flambeau) if n != "two uses"])  # PyTorch gives both calls one scale
def test_beside_pytorch(name):
    """Models of the same numbers: results agree up to the rounding of codes, and are as far from the floats."""
    torch = pytest.importorskip("torch")
    from torch.ao.quantization import QConfigMapping as Theirs
    from torch.ao.quantization import default_qconfig as theirs
    from torch.ao.quantization import quantize_fx

    torch.backends.quantized.engine = "fbgemm"
    reference, model, x = made(name, torch), made(name), torch.from_numpy(X)
    model.load_state_dict({k: flambeau.from_numpy(v.numpy()) for k, v in reference.state_dict().items()})
    observed = quantize_fx.prepare_fx(reference, Theirs().set_global(theirs), (x,))
    observed(x)
    want = flat(quantize_fx.convert_fx(observed)(x))
    got = flat(converted(model, flambeau.from_numpy(X))(flambeau.from_numpy(X)))
    for a, b in zip(got, want, strict=True):
        codes = np.abs(a - b) / (np.ptp(b) / 127)
        assert codes.mean() < 0.7 and codes.max() < 5, (codes.mean(), codes.max())
