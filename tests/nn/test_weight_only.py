"""Linear layers with weights of 8 and 4 bits: the kernel beside float64 for each kind of CPU and between guard pages, and what quantize_ makes of models."""

import itertools

import numpy as np
import pytest

import flambeau as torch
from flambeau.ao.quantization import Int4WeightOnlyConfig, Int8WeightOnlyConfig, quantize_
from flambeau.base import weight_only
from flambeau.testing import guard_pages

ROWS, COLUMNS = (1, 3, 4, 7, 9, 70), (1, 5, 33, 64)
DEEP = ((7, 0), (100, 0), (800, 0), (32, 32), (416, 32), (512, 128))  # inputs, weights that share a scale
CONFIGS = [Int8WeightOnlyConfig(), Int4WeightOnlyConfig(32), Int4WeightOnlyConfig(group_size=64)]


def _case(n, k, group, rng):
    """(weight as the kernel takes it, scales, the weights in float64)."""
    if not group:
        weight, scales = rng.integers(-128, 128, (n, k)).astype("i1"), rng.random(n).astype("f")
        return weight, scales, weight * scales[:, None].astype("d")
    numbers, scales = rng.integers(0, 16, (n, k)), rng.normal(size=(k // group, n, 2)).astype("f")
    scale, zero = (np.repeat(scales[..., i].T, group, 1).astype("d") for i in (0, 1))
    return weight_only.pack(numbers), scales, (numbers - 8) * scale + zero


def sweep() -> None:
    """An element is off by at most eps (K + 4) times the sum of its terms' magnitudes."""
    rng = np.random.default_rng(0)
    for m, n, (k, group) in itertools.product(ROWS, COLUMNS, DEEP):
        x = rng.normal(size=(m, k)).astype("f")
        weight, scales, wide = _case(n, k, group, rng)
        got = weight_only.multiply(x, weight, scales, group)
        terms = np.abs(x) @ np.abs(wide.T)
        if group:  # (w - 8) scale and zero are summed apart
            terms += np.abs(x) @ np.abs(np.repeat(scales[..., 1].T, group, 1)).T
        assert (np.abs(got - x @ wide.T) <= 1.2e-7 * (k + 4) * terms).all(), (m, n, k, group)


def stays_inside() -> None:
    rng = np.random.default_rng(0)
    for at_end, m, n, (k, group) in itertools.product((False, True), (1, 5, 13), (3, 37), DEEP):
        guarded = guard_pages.GuardPages(at_end)
        weight, scales, _ = _case(n, k, group, rng)
        x = guarded(rng.normal(size=(m, k)).astype("f"))
        weight_only.multiply(x, guarded(weight), guarded(scales), group)


def both() -> None:
    sweep()
    if guard_pages.available:  # mprotect through ctypes is Linux's here
        stays_inside()


@pytest.mark.parametrize("level", ["", "avx2", "default"])
def test_beside_float64_and_nothing_is_read_outside(level):
    guard_pages.run_alone(__file__, "both()", FLAMBEAU_CPU=level)


def test_threads_change_no_bit():
    rng = np.random.default_rng(1)
    threads = torch.get_num_threads()
    for m, (k, group) in itertools.product((1, 6, 40), DEEP):
        x, (weight, scales, _) = rng.normal(size=(m, k)).astype("f"), _case(300, k, group, rng)
        results = []
        for n in (1, 3):
            torch.set_num_threads(n)
            results.append(weight_only.multiply(x, weight, scales, group))
        torch.set_num_threads(threads)
        assert (results[0] == results[1]).all()


def _model(dtype=torch.float32):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Sequential(nn.Linear(128, 48, bias=False))).to(dtype).eval()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_model(config, dtype):
    model, plain = _model(dtype), _model(dtype)
    quantize_(model, config)
    for small, layer in ((model[0], plain[0]), (model[2][0], plain[2][0])):
        w = layer.weight.detach().float()
        if config == CONFIGS[0]:
            step = w.abs().amax(1, True) / 127
        else:
            groups = w.reshape(len(w), -1, config.group_size)
            step = ((groups.amax(2) - groups.amin(2)) / 15).repeat_interleave(config.group_size, 1)
        rounded = 1e-6 if dtype is torch.float32 else w.abs().amax() * torch.finfo(dtype).eps
        assert ((small.dequantize().float() - w).abs() <= step / 2 + rounded).all()
    for shape in ((64,), (3, 64), (2, 7, 64), (0, 64)):
        x = torch.randn(shape).to(dtype)
        want = x.double()
        for layer in (model[0], model[2][0]):
            w = layer.dequantize().double()
            want = torch.nn.functional.linear(want, w, None if layer.bias is None else layer.bias.double())
            want = torch.nn.functional.gelu(want) if layer is model[0] else want
        tolerance = 1e-5 if dtype is torch.float32 else 16 * torch.finfo(dtype).eps
        for run in (model, torch.compile(model)):
            got = run(x)
            assert got.dtype is dtype and got.shape == (*shape[:-1], 48)
            torch.testing.assert_close(got.double(), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_state_goes_round(config, tmp_path):
    model, other = _model(), torch.nn.Sequential(*_model().children())
    for p in other.parameters():
        torch.nn.init.normal_(p)
    quantize_(model, config)
    quantize_(other, config)
    torch.save(model.state_dict(), tmp_path / "state.pt")
    other.load_state_dict(torch.load(tmp_path / "state.pt"))
    x = torch.randn(5, 64)
    assert torch.equal(model(x), other(x))
    small = sum(t.nbytes for name, t in model.state_dict().items() if not name.endswith("bias"))
    assert small < 4 * (64 * 128 + 128 * 48) * (0.27 if config == CONFIGS[0] else 0.2)
    with pytest.raises(RuntimeError, match="Missing key"):
        _model().load_state_dict(model.state_dict())


def test_what_becomes_small():
    class Own(torch.nn.Linear):
        pass

    layers = torch.nn.ModuleDict({"a": torch.nn.Linear(32, 4), "own": Own(32, 4), "b": torch.nn.Linear(32, 4)})
    seen = []
    layers["a"].register_forward_hook(lambda *args: seen.append(1))
    quantize_(layers, Int8WeightOnlyConfig(), filter_fn=lambda module, name: name == "a")
    assert [isinstance(m, torch.nn.Linear) and not hasattr(m, "weight") for m in layers.values()] == [
        True,
        False,
        False,
    ]
    layers["a"](torch.randn(2, 32))
    assert seen
    layer = torch.nn.Linear(64, 5)
    quantize_(layer, Int4WeightOnlyConfig(group_size=64))
    assert layer.int4_weight.shape == (5, 32) and "group_size=64" in repr(layer)
    same = torch.nn.Linear(64, 5, bias=False)
    torch.nn.init.constant_(same.weight, 0.25)
    quantize_(same, Int4WeightOnlyConfig(group_size=64))
    assert (same.dequantize() == 0.25).all()


def test_under_autocast():
    model = _model()
    quantize_(model, CONFIGS[0])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = model[0](torch.randn(3, 64).bfloat16())
    assert half.dtype is torch.bfloat16


WRONG = [
    (lambda: quantize_(_model(), "int8"), TypeError, "got str"),
    (lambda: Int4WeightOnlyConfig(group_size=48), ValueError, "group_size is one of"),
    (lambda: Int8WeightOnlyConfig(group_size=32), ValueError, "one scale a channel"),
    (lambda: quantize_(torch.nn.Linear(100, 8), Int4WeightOnlyConfig()), ValueError, "the model has 100 inputs"),
    (lambda: quantize_(torch.nn.Linear(8, 8).double(), Int8WeightOnlyConfig()), ValueError, "float64"),
    (lambda: quantize_(_model(), Int8WeightOnlyConfig(), lambda m, name: name == "1"), TypeError, "1 is a GELU"),
    (lambda: _quantised()(torch.randn(3, 32)), RuntimeError, r"expect B.size\(1\) == 32"),
    (
        lambda: _quantised()(torch.randn(3, 64, requires_grad=True)).sum().backward(),
        RuntimeError,
        "derivative for aten::_weight_int8pack",
    ),
    (lambda: _quantised().reset_parameters(), RuntimeError, "has been quantised"),
    (lambda: _int4(group=16), RuntimeError, "expect qGroupSize to be 32, 64, 128 or 256, got 16"),
    (lambda: _int4(weight=torch.zeros(3, 32, dtype=torch.int32)), RuntimeError, "expect B to be uint8"),
    (lambda: _int4(scales=torch.zeros(2, 4, 2)), RuntimeError, r"3d tensor with sizes \[2, 3, 2\]"),
    (lambda: _int4(scales=torch.zeros(2, 3, 2).half()), RuntimeError, "expected scalar type Float but found Half"),
    (lambda: _pack(torch.int64, 32), RuntimeError, "expect weight to be kInt"),
    (lambda: _pack(torch.int32, 33), RuntimeError, "expect K to be dividable by"),
]


def _quantised():
    layer = torch.nn.Linear(64, 8)
    quantize_(layer, Int8WeightOnlyConfig())
    return layer


def _int4(weight=None, group=32, scales=None):
    weight = torch.zeros(3, 32, dtype=torch.uint8) if weight is None else weight
    scales = torch.zeros(2, 3, 2) if scales is None else scales
    torch.ops.aten._weight_int4pack_mm_for_cpu(torch.randn(5, 64), weight, group, scales)


def _pack(dtype, k):
    torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.zeros(16, k, dtype=dtype), 1)


@pytest.mark.parametrize("call, error, text", WRONG, ids=[text for _, _, text in WRONG])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_nothing_is_changed_where_one_layer_does_not_fit():
    model = torch.nn.Sequential(torch.nn.Linear(64, 100), torch.nn.Linear(100, 8))
    with pytest.raises(ValueError, match="1 has 100 inputs"):
        quantize_(model, Int4WeightOnlyConfig(64))
    assert type(model[0]) is torch.nn.Linear
