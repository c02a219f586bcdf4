"""Quantising models: each flow against the float model, the arithmetic of layers on codes against exact sums, files, and PyTorch's numbers."""

import copy
import io
import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as quant
from flambeau.ao.nn import quantized as nnq


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quant.QuantStub(), quant.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()
        self.conv2, self.act, self.add = nn.Conv2d(4, 4, 3, padding=1, groups=2), nn.Hardswish(), nnq.FloatFunctional()
        self.fc = nn.Linear(4 * 36, 5)

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.add.add(x, self.act(self.conv2(x)))
        return self.dequant(self.fc(x.flatten(1)))


def network():
    torch.manual_seed(0)
    net, x = Net(), torch.randn(16, 1, 8, 8)
    for _ in range(3):
        net(x)
    return net, x


CONFIGURATIONS = ["default_qconfig", "default_per_channel_qconfig", "x86", "onednn", "qnnpack", "fbgemm"]


def configuration(name):
    return getattr(quant, name) if name.startswith("default") else quant.get_default_qconfig(name)


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_trained_model_is_quantised(name):
    net, x = network()
    net.eval()
    wanted = net(x)
    fused = quant.fuse_modules(net, [["conv", "bn", "relu"]])
    np.testing.assert_allclose(fused(x).detach().numpy(), wanted.detach().numpy(), atol=1e-5)
    fused.qconfig = configuration(name)
    ready = quant.prepare(fused)
    assert torch.equal(ready(x), fused(x))
    made = quant.convert(ready)
    assert [type(m).__name__ for m in made.children()] == [
        "Quantize", "DeQuantize", "ConvReLU2d", "Identity", "Identity", "Conv2d", "Hardswish", "QFunctional", "Linear",
    ]  # fmt: skip
    spread = float(wanted.std())
    assert float((made(x) - wanted).abs().max()) < 0.1 * spread
    assert type(net.fc) is nn.Linear and not hasattr(net, "qconfig")


def test_the_state_of_a_quantised_model_is_saved_and_loaded():
    net, x = network()
    net.eval()
    net.qconfig = quant.default_qconfig
    ready = quant.prepare(net)
    ready(x)
    made = quant.convert(ready)
    other = copy.deepcopy(made)
    other.fc.scale = 99.0
    file = io.BytesIO()
    torch.save(made.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(x), made(x))
    assert {
        "quant.scale",
        "conv.weight",
        "conv.scale",
        "fc.scale",
        "fc._packed_params._packed_params",
    } <= made.state_dict().keys()


@pytest.mark.parametrize("name", ["default", "onednn", "qnnpack"])
def test_training_with_fake_quantisation(name):
    net, x = network()
    net.train()
    fused = quant.fuse_modules_qat(net, [["conv", "bn", "relu"]])
    fused.qconfig = quant.default_qat_qconfig if name == "default" else quant.get_default_qat_qconfig(name)
    model = quant.prepare_qat(fused)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0]
    model.eval()
    wanted, made = model(x), quant.convert(model)(x)
    assert float((made - wanted).abs().max()) < 0.15 * max(float(wanted.std()), 0.1)
    model.apply(quant.disable_fake_quant)
    assert not torch.equal(model(x), wanted)


@pytest.mark.parametrize("shape", [(5, 6), (2, 3, 6), (6,)])
def test_linear_layers_on_codes_are_exact_sums(shape):
    rng = np.random.default_rng(0)
    x = torch.quantize_per_tensor(torch.tensor(rng.standard_normal(shape).astype(np.float32)), 0.03, 100, torch.quint8)
    weight, bias = rng.standard_normal((7, 6)).astype(np.float32), rng.standard_normal(7).astype(np.float32)
    w = torch.quantize_per_tensor(torch.tensor(weight), 0.02, 3, torch.qint8)
    made = nnq.functional.linear(x, w, torch.tensor(bias), 0.1, 64)
    exact = x.dequantize().double().numpy() @ w.dequantize().double().numpy().T + bias
    np.testing.assert_array_equal(made.int_repr().numpy(), np.clip(np.rint(exact / np.float32(0.1)) + 64, 0, 255))


@pytest.mark.parametrize(
    "stride, padding, dilation, groups",
    [(1, 0, 1, 1), (2, 1, 1, 1), (1, 1, 2, 2), (1, 1, 1, 8), ((2, 1), (1, 0), (1, 2), 1)],
)
def test_convolutions_on_codes_are_exact_sums(stride, padding, dilation, groups):
    rng = np.random.default_rng(0)
    x = torch.quantize_per_tensor(
        torch.tensor(rng.standard_normal((2, 8, 9, 10)).astype(np.float32)), 0.03, 100, torch.quint8
    )
    weight = torch.tensor(rng.standard_normal((16, 8 // groups, 3, 3)).astype(np.float32))
    w = torch.quantize_per_channel(weight, torch.full((16,), 0.02), torch.zeros(16, dtype=torch.int64), 0, torch.qint8)
    bias = torch.tensor(rng.standard_normal(16).astype(np.float32))
    made = nnq.functional.conv2d(x, w, bias, stride, padding, dilation, groups, scale=0.1, zero_point=80)
    plain = torch.nn.functional.conv2d(
        x.dequantize().double(), w.dequantize().double(), bias.double(), stride, padding, dilation, groups
    )
    wanted = np.clip(np.rint(plain.numpy() / np.float32(0.1)) + 80, 0, 255)
    # A sum that lies halfway between two codes may be rounded either way.
    different = made.int_repr().numpy() != wanted
    assert different.mean() < 1e-3 and np.abs(made.int_repr().numpy() - wanted).max() <= 1


DYNAMIC = {
    "linear": (lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4)), (5, 6)),
    "lstm": (lambda: nn.LSTM(6, 5, 2, bidirectional=True), (7, 3, 6)),
    "gru": (lambda: nn.GRU(6, 5, 2, batch_first=True), (3, 7, 6)),
    "one sequence": (lambda: nn.LSTM(6, 5), (7, 6)),
}


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_sequences_of_different_lengths(kind):
    torch.manual_seed(0)
    holder, x, lengths = nn.ModuleDict({"layer": kind(6, 5, 2, bidirectional=True)}), torch.randn(7, 3, 6), [3, 7, 5]
    made = quant.quantize_dynamic(holder)["layer"]
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    out, state = made(packed)
    wanted, wanted_state = holder["layer"](packed)
    leaves = torch.utils._pytree.tree_leaves
    for a, b in zip(leaves((out.data, state)), leaves((wanted.data, wanted_state)), strict=True):
        assert a.shape == b.shape and (a - b).abs().max() < 0.05
    again, _ = made(out._replace(data=packed.data), state)
    assert (again.data != out.data).any()


@pytest.mark.parametrize("name", DYNAMIC)
def test_dynamic_quantisation(name):
    make, shape = DYNAMIC[name]
    torch.manual_seed(0)
    holder, x = nn.ModuleDict({"layer": make()}), torch.randn(*shape)
    made = quant.quantize_dynamic(holder)["layer"]
    assert "DynamicQuantized" in repr(made)
    wanted, found = holder["layer"](x), made(x)
    for a, b in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(wanted)):
        assert a.shape == b.shape and float((a - b).detach().abs().max()) < 0.05
    again = copy.deepcopy(made)
    again.load_state_dict(made.state_dict())
    assert all(map(torch.equal, torch.utils._pytree.tree_leaves(again(x)), torch.utils._pytree.tree_leaves(found)))


OBSERVERS = {
    "MinMax": lambda lib: lib.MinMaxObserver(),
    "MinMax symmetric": lambda lib: lib.MinMaxObserver(dtype=lib.qint8, qscheme=lib.per_tensor_symmetric),
    "moving": lambda lib: lib.MovingAverageMinMaxObserver(averaging_constant=0.5),
    "channels": lambda lib: lib.PerChannelMinMaxObserver(),
    "channels moving": lambda lib: lib.MovingAveragePerChannelMinMaxObserver(
        0.5, 1, lib.qint8, lib.per_channel_symmetric
    ),
}


class Both:
    """The names of a library and of its module of quantisation."""

    def __init__(self, lib, module):
        self.lib, self.module = lib, module

    def __getattr__(self, name):
        return getattr(self.module, name) if hasattr(self.module, name) else getattr(self.lib, name)


def seen(both, make):
    observer, rng = make(both), np.random.default_rng(0)
    for factor in (1, 2, 3):
        observer(both.lib.tensor((rng.standard_normal((4, 50)) * factor).astype(np.float32)))
    return [t.numpy() for t in observer.calculate_qparams()]


@pytest.mark.parametrize("name", OBSERVERS)
def test_scales_cover_what_was_seen(name):
    scale, zero = seen(Both(torch, quant), OBSERVERS[name])
    assert (scale > 0).all() and zero.dtype.kind == "i"


@pytest.mark.parity
@pytest.mark.parametrize("name", OBSERVERS)
def test_scales_are_pytorchs(name):
    theirs = pytest.importorskip("torch")
    import torch.ao.quantization as module

    for mine, other in zip(seen(Both(torch, quant), OBSERVERS[name]), seen(Both(theirs, module), OBSERVERS[name])):
        np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_a_histogram_leaves_outliers_out():
    observer, whole = quant.HistogramObserver(), quant.MinMaxObserver()
    torch.manual_seed(0)
    x = torch.cat([torch.randn(500_000), torch.tensor([10.0])])
    for o in (observer, whole):
        o(x)

    def error(o):
        scale, zero = (t.item() for t in o.calculate_qparams())
        return float((torch.quantize_per_tensor(x, scale, zero, torch.quint8).dequantize() - x).square().mean())

    assert error(observer) < error(whole)
    observer(torch.linspace(-100, 100, 1000))
    assert observer.min_val == -100 and observer.histogram.sum() == 501_001


def test_faults_are_named():
    with pytest.raises(AssertionError, match="prepare_qat only works on models in training mode"):
        quant.prepare_qat(Net().eval())
    with pytest.raises(NotImplementedError, match="Cannot fuse modules.*Linear.*Linear"):
        quant.fuse_modules(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)).eval(), [["0", "1"]])
    with pytest.raises(ValueError, match="observer instance"):
        quant.QConfig(quant.MinMaxObserver(), quant.default_weight_observer)
    with pytest.raises(NotImplementedError, match="float16"):
        quant.quantize_dynamic(nn.Linear(2, 2), dtype=torch.float16)
    with pytest.warns(UserWarning, match="None of the submodule got qconfig applied"):
        quant.prepare(nn.Linear(2, 2))
    with pytest.raises(RuntimeError, match="last size"):
        nnq.Linear(3, 4)(torch.quantize_per_tensor(torch.zeros(2, 5), 0.1, 0, torch.quint8))


def test_modules_are_found_from_the_root():
    """Without an import of their own, in a fresh process."""
    code = (
        "import flambeau as torch; names = torch.ao.quantization, torch.ao.nn.qat, torch.quantization, torch.nn.quantized, torch.nn.intrinsic; "
        "print(torch.quantization.QConfig is torch.ao.quantization.QConfig, torch.nn.quantized.Linear is torch.ao.nn.quantized.Linear)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["True", "True"]
