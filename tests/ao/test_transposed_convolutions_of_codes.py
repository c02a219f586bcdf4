"""Transposed convolutions on codes, dynamic convolutions, and the operators that take packed weights: exact sums, flows, faults, PyTorch's numbers."""

import copy
import io

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.ao import quantization as quant
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn.quantized import dynamic as nnqd

SIZES = {  # stride, padding, output padding, dilation, groups
    "plain": (1, 0, 0, 1, 1),
    "strided": (2, 1, 1, 1, 1),
    "dilated": (1, 0, 0, 2, 1),
    "grouped": (3, 1, 2, 1, 2),
}


def drawn(torch, *shape, seed=0):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def image(torch, n, seed=1):
    return torch.quantize_per_tensor(drawn(torch, 2, 4, *[5] * n, seed=seed), 0.03, 100, torch.quint8)


def transposed(torch, n, name):
    """(the packed weight, the weight, the bias)."""
    stride, padding, out, dilation, groups = SIZES[name]
    weight = torch.quantize_per_tensor(drawn(torch, 4, 3, *[3] * n), 0.02, 0, torch.qint8)
    bias = drawn(torch, 3 * groups, seed=2)
    sizes = [[v] * n for v in (stride, padding, out, dilation)]
    prepack = getattr(torch.ops.quantized, f"conv_transpose{n}d_prepack")
    return prepack(weight, bias, *sizes, groups), weight, bias


def codes(torch, n, name):
    packed, *_ = transposed(torch, n, name)
    run = getattr(torch.ops.quantized, f"conv_transpose{n}d")
    return run(image(torch, n), packed, 0.1, 64).int_repr().numpy()


def floats(n, name, x, weight, bias):
    stride, padding, out, dilation, groups = SIZES[name]
    function = getattr(nn.functional, f"conv_transpose{n}d")
    return function(x.double(), weight.dequantize().double(), bias.double(), stride, padding, out, groups, dilation)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", SIZES)
def test_they_are_exact_sums(n, name):
    made = codes(flambeau, n, name)
    _, weight, bias = transposed(flambeau, n, name)
    plain = floats(n, name, image(flambeau, n).dequantize(), weight, bias).numpy()
    away = np.abs(made - np.clip(np.rint(plain / np.float32(0.1)) + 64, 0, 255))
    # A sum that lies halfway between two codes may be rounded either way.
    assert away.max() <= 1 and away.mean() < 1e-2


def test_each_channel_may_have_its_scale():
    weight = drawn(flambeau, 4, 3, 3, 3)
    q = flambeau.quantize_per_channel(
        weight, flambeau.tensor([0.01, 0.02, 0.03]), flambeau.zeros(3, dtype=flambeau.int64), 1, flambeau.qint8
    )
    layer = nnq.ConvTranspose2d(4, 6, 3, groups=2, bias=False)
    layer.set_weight_bias(q, None)
    layer.scale, layer.zero_point = 0.1, 60
    x = image(flambeau, 2)
    plain = nn.functional.conv_transpose2d(x.dequantize(), q.dequantize(), None, groups=2).numpy()
    assert np.abs(layer(x).int_repr().numpy() - np.clip(np.rint(plain / 0.1) + 60, 0, 255)).max() <= 1


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
def test_dynamic_layers_quantise_what_comes_in(n, kind):
    flambeau.manual_seed(0)
    plain = getattr(nn, f"{kind}{n}d")(4, 6, 3, stride=2)
    plain.qconfig = quant.default_dynamic_qconfig
    made, x = getattr(nnqd, f"{kind}{n}d").from_float(plain), drawn(flambeau, 2, 4, *[7] * n)
    assert repr(made).startswith(f"DynamicQuantized{kind}{n}d(4, 6")
    assert float((made(x, reduce_range=False) - plain(x)).detach().abs().max()) < 0.05
    assert float((made(x) - plain(x)).detach().abs().max()) < 0.1
    with pytest.raises(ValueError, match="Input shape must be"):
        made(x[0])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_models_are_converted_saved_and_loaded(n):
    flambeau.manual_seed(0)
    layer = getattr(nn, f"ConvTranspose{n}d")(4, 6, 3, stride=2, output_padding=1, groups=2)
    model, x = (
        nn.Sequential(quant.QuantStub(), layer, nn.ReLU(), quant.DeQuantStub()).eval(),
        drawn(flambeau, 2, 4, *[5] * n),
    )
    model.qconfig = quant.default_qconfig
    ready = quant.prepare(model)
    wanted = ready(x)
    made = quant.convert(ready)
    assert type(made[1]) is getattr(nnq, f"ConvTranspose{n}d") and "output_padding" in repr(made[1])
    assert float((made(x) - wanted).detach().abs().max()) < 2.5 * made[1].scale
    file, other = io.BytesIO(), copy.deepcopy(made)
    other[1].scale = 9.0
    flambeau.save(made.state_dict(), file)
    file.seek(0)
    other.load_state_dict(flambeau.load(file))
    assert flambeau.equal(other(x), made(x))


def test_a_traced_model_has_them():
    from flambeau.ao.quantization.quantize_fx import convert_fx, prepare_fx

    flambeau.manual_seed(0)
    model, x = nn.Sequential(nn.ConvTranspose2d(4, 6, 3, stride=2), nn.ReLU()).eval(), drawn(flambeau, 2, 4, 5, 6)
    ready = prepare_fx(model, quant.get_default_qconfig_mapping("fbgemm"), (x,))
    ready(x)
    made = convert_fx(ready)
    assert type(getattr(made, "0")) is nnq.ConvTranspose2d
    assert float((made(x) - model(x)).detach().abs().max()) < 0.1


def test_packed_weights_come_apart():
    packed, weight, bias = transposed(flambeau, 2, "strided")
    ops = flambeau.ops.quantized
    assert all(map(flambeau.equal, ops.conv_transpose2d_unpack(packed), (weight, bias)))
    found = [getattr(ops, f"conv_transpose2d_{k}")(packed) for k in ("stride", "padding", "output_padding", "dilation")]
    assert list(map(list, found)) == [[2, 2], [1, 1], [1, 1], [1, 1]]
    assert ops.conv_transpose2d_groups(packed) == 1 and ops.conv_transpose2d_transpose(packed) == 1


def packed_calls(torch):
    """{name: codes or floats} of layers with packed weights."""
    ops, found = torch.ops.quantized, {}
    weight = torch.quantize_per_tensor(drawn(torch, 6, 4, 3, 3), 0.02, 0, torch.qint8)
    conv = ops.conv2d_prepack(weight, drawn(torch, 6), [1, 2], [1, 1], [1, 1], 1)
    rows = torch.quantize_per_tensor(drawn(torch, 3, 5), 0.02, 0, torch.qint8)
    linear, x = ops.linear_prepack(rows, drawn(torch, 3)), image(torch, 2)
    for name, p in (("conv2d", conv), ("conv2d_relu", conv), ("linear", linear), ("linear_relu", linear)):
        found[name] = getattr(ops, name)(x, p, 0.1, 64).int_repr()
    for name in ("linear_dynamic", "linear_relu_dynamic"):
        found[name] = getattr(ops, name)(x.dequantize(), linear, False)
    return {k: v.numpy() for k, v in found.items()}


def test_packed_layers_are_the_layers():
    found = packed_calls(flambeau)
    assert (found["conv2d_relu"] == np.maximum(found["conv2d"], 64)).all()
    assert (found["linear_relu"] == np.maximum(found["linear"], 64)).all()
    assert (found["linear_relu_dynamic"] == np.maximum(found["linear_dynamic"], 0)).all()


FAULTS = [
    (lambda: nnq.ConvTranspose2d(4, 6, 3, padding_mode="reflect"), ValueError, 'Only "zeros" padding mode'),
    (lambda: nnq.ConvTranspose2d(4, 6, 3)(image(flambeau, 1)), ValueError, "Input shape must be"),
    (lambda: nnq.ConvTranspose2d(3, 6, 3)(image(flambeau, 2)), RuntimeError, "3 channels and 4 dimensions"),
    (
        lambda: flambeau.ops.quantized.conv_transpose2d_prepack(
            transposed(flambeau, 2, "plain")[1], None, [1], [0, 0], [0, 0], [1, 1], 1
        ),
        RuntimeError,
        "stride should contain 2 elements for 2D convolution",
    ),
    (lambda: flambeau.ops.quantized.conv_transpose2d(image(flambeau, 2), 3, 0.1, 0), RuntimeError, "ConvPackedParams"),
    (
        lambda: flambeau.ops.quantized.linear_prepack(flambeau.ones(2, 2)),
        RuntimeError,
        "expected a quantised weight, got one of torch.float32",
    ),
]


@pytest.mark.parametrize("case", range(len(FAULTS)))
def test_faults_are_named(case):
    call, kind, words = FAULTS[case]
    with pytest.raises(kind, match=words):
        call()


def test_weights_by_input_channel_are_refused():
    model = nn.Sequential(nn.ConvTranspose2d(2, 2, 1))
    model.qconfig = quant.get_default_qconfig("fbgemm")
    with pytest.raises(AssertionError, match="Per channel weight observer is not supported yet for ConvTranspose2d"):
        quant.prepare(model)


# PyTorch warns of its own typed storages, and that quantised tensors may leave it.
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:.*quantized tensor creation")
@pytest.mark.parity
def test_codes_are_pytorchs(monkeypatch):
    theirs = pytest.importorskip("torch")
    # NOTE: the other engine of PyTorch's on this processor pads dilated and transposed convolutions wrongly.
    monkeypatch.setattr(theirs.backends.quantized, "engine", "fbgemm")
    for n in (1, 2, 3):
        for name in SIZES:
            np.testing.assert_array_equal(codes(flambeau, n, name), codes(theirs, n, name), err_msg=f"{n} {name}")
    for (name, made), wanted in zip(packed_calls(flambeau).items(), packed_calls(theirs).values()):
        np.testing.assert_allclose(made, wanted, atol=1e-6, err_msg=name)
