"""Objects of the classes of C++ that archives hold of quantised layers: their states, their methods, and what isn't one."""

import io
import pickle
import zipfile
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.compat.torchscript import packed
from flambeau.ops.affine.packed import CellParams, ConvPackedParams, LinearPackedParams

FOLDER = Path(__file__).parent / "archives"
NAME = "__torch__.torch.classes."
LINEAR, CONV, CONV3D, TABLE, CELL = (
    NAME + n
    for n in (
        "quantized.LinearPackedParamsBase",
        "quantized.Conv2dPackedParamsBase",
        "quantized.Conv3dPackedParamsBase",
        "quantized.EmbeddingPackedParamsBase",
        "rnn.CellParamsBase",
    )
)
WEIGHT = torch.quantize_per_tensor(torch.randn(4, 2, 3, 3), 0.1, 0, torch.qint8)
MATRIX = torch.quantize_per_tensor(torch.randn(4, 3), 0.1, 0, torch.qint8)
BIAS = torch.randn(4)
CONFIG = [2, 2, 1, 1, 0, 1, 3, 0, 0, 1, 0]  # strides (2, 1), paddings (1, 0), dilations (1, 3)


def filled(name, state):
    made = packed.new(packed.CLASSES[name])
    packed.fill(name, made, state)
    return made


def short(values):
    return torch.tensor(values, dtype=torch.int16)


CONVOLUTIONS = {
    "1": (WEIGHT, BIAS, *([short([k]) for k in CONFIG[i : i + 2]] for i in (1, 3, 5)), short([1])),
    "2": ("2", [short(CONFIG), WEIGHT], [BIAS]),
    "3": (3, CONFIG, [None, WEIGHT, BIAS]),
}


@pytest.mark.parametrize("version", CONVOLUTIONS)
def test_versions_of_convolutions(version):
    p = filled(CONV, CONVOLUTIONS[version])
    assert p.weight is WEIGHT and p.bias is BIAS
    assert (p.stride, p.padding, p.dilation, p.output_padding) == ([2, 1], [1, 0], [1, 3], [0, 0])
    assert (p.groups, p.transpose) == (1, False)
    name, (config, weight), (bias,) = packed.CLASSES[CONV].state(p)
    assert (name, config.tolist(), config.dtype) == ("2", CONFIG, torch.int16) and weight is WEIGHT and bias is BIAS


def test_without_bias():
    assert filled(CONV, ("2", [short(CONFIG), WEIGHT], [])).bias is None
    assert filled(LINEAR, (MATRIX, None)).bias is None


@pytest.mark.parametrize("n", [1, 2, 3])
def test_classes_of_convolutions(n):
    weight = torch.quantize_per_channel(
        torch.randn(4, 2, *[3] * n), torch.full((4,), 0.1), torch.zeros(4), 0, torch.qint8
    )
    prepack, conv = (getattr(torch.ops.quantized, f"conv{n}d{end}") for end in ("_prepack", ""))
    made = prepack(weight, BIAS, [2] * n, [1] * n, [1] * n, 1)
    name = packed.class_of(made)
    assert name == (CONV3D if n == 3 else CONV)
    again = filled(name, packed.CLASSES[name].state(made))
    assert again.weight.dim() == max(n, 2) + 2
    x = torch.quantize_per_tensor(torch.randn(1, 2, *[6] * n), 0.05, 60, torch.quint8)
    found, expected = conv(x, again, 0.2, 3), conv(x, made, 0.2, 3)
    assert torch.equal(found.int_repr(), expected.int_repr()) and found.shape == expected.shape
    compiled = torch.compile(lambda x: conv(x, again, 0.2, 3), fullgraph=True, backend="eager")
    assert torch.equal(compiled(x).int_repr(), expected.int_repr())
    stride, unpack = (getattr(torch.ops.quantized, f"conv{n}d_{end}") for end in ("stride", "unpack"))
    assert stride(again) == [2] * n and unpack(again)[0].shape == weight.shape


@pytest.mark.parametrize("dtype", [torch.quint8, torch.quint4x2])
def test_tables(dtype):
    weight = torch.quantize_per_channel(torch.randn(5, 4), torch.full((5,), 0.2), torch.full((5,), 3.0), 0, dtype)
    state = packed.CLASSES[TABLE].state(torch.ops.quantized.embedding_bag_prepack(weight))
    assert state[0] == 1 and state[3] == [4 if dtype is torch.quint4x2 else 8]
    again = filled(TABLE, state)
    assert torch.equal(torch.ops.quantized.embedding_bag_unpack(again).dequantize(), weight.dequantize())
    assert packed.CLASSES[TABLE].methods["bit_rate"].get(again) == state[3][0]


def test_cells():
    linear = filled(LINEAR, (MATRIX, BIAS))
    cell = filled(CELL, ("quantized_dynamic", [BIAS, BIAS], [], [1], [linear, linear]))
    assert isinstance(cell, CellParams) and cell.reduce_range and cell.input is linear
    half = filled(LINEAR, (MATRIX.dequantize(), BIAS))
    cell = filled(CELL, ("quantized_fp16", [], [], [], [half, half]))
    assert packed.CLASSES[CELL].state(cell) == ("quantized_fp16", [], [], [], [half, half])
    with pytest.raises(NotImplementedError, match="cells of the kind 'quantized' aren't built"):
        filled(CELL, ("quantized", [BIAS] * 8, [0.1] * 2, [0] * 2, []))


BROKEN = {
    "no tuple": (LINEAR, [MATRIX, BIAS]),
    "no weight": (LINEAR, (None, None)),
    "a weight of no rank": (LINEAR, (WEIGHT, BIAS)),
    "a bias of codes": (LINEAR, (MATRIX, MATRIX)),
    "an unknown version": (CONV, ("4", [short(CONFIG), WEIGHT], [])),
    "a short configuration": (CONV, ("2", [short(CONFIG[:-1]), WEIGHT], [])),
    "no stride": (CONV, ("2", [short([2, 0, *CONFIG[2:]]), WEIGHT], [])),
    "a configuration of floats": (CONV, ("2", [torch.ones(11), WEIGHT], [])),
    "text in the configuration": (CONV, (3, [*CONFIG[:-1], "0"], [None, WEIGHT, BIAS])),
    "a weight of floats": (CONV, ("2", [short(CONFIG), WEIGHT.dequantize()], [])),
    "other dimensions": (CONV3D, (3, [3, *[1] * 3, *[0] * 3, *[1] * 3, *[0] * 3, 1, 0], [None, WEIGHT, BIAS])),
    "a table quantised as a whole": (TABLE, (1, [torch.quantize_per_tensor(torch.ones(2, 2), 1.0, 0, torch.quint8)], [], [8])),
    "a cell of numbers": (CELL, ("quantized_dynamic", [BIAS, BIAS], [], [1], [1, 2])),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_states_that_are_none(case):
    with pytest.raises(RuntimeError, match="the state of an object of .* is none that PyTorch writes"):
        filled(*BROKEN[case])


def constants(change):
    """The archive ``codes_frozen`` with the pickle of its constants changed."""
    with zipfile.ZipFile(FOLDER / "codes_frozen.pt") as source:
        held = {n: source.read(n) for n in source.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for n, data in held.items():
            target.writestr(n, change(data) if n.endswith("/constants.pkl") else data)
    return io.BytesIO(out.getvalue())


def one(text: bytes):
    """A pickle of a tuple of one object of a class of C++, with what follows its making."""
    made = pickle.GLOBAL + b"__torch__.torch.classes.quantized\nLinearPackedParamsBase\n" + pickle.EMPTY_TUPLE
    return pickle.PROTO + b"\x02" + made + pickle.NEWOBJ + text + pickle.TUPLE1 + pickle.STOP


def test_objects_without_a_state():
    with pytest.raises(RuntimeError, match="LinearPackedParamsBase has no state"):
        torch.jit.load(constants(lambda data: one(b"")))


def test_objects_of_other_classes():
    with pytest.raises(NotImplementedError, match="xnnpack.LinearOpContext, a class of C\\+\\+ that flambeau doesn't"):
        torch.jit.load(
            constants(lambda data: data.replace(b"quantized\nLinearPackedParamsBase", b"xnnpack\nLinearOpContext"))
        )


def test_methods_and_attributes():
    module = torch.jit.load(FOLDER / "codes_scripted.pt")
    weight, bias = module.conv._weight_bias()
    assert weight.dtype is torch.qint8 and bias.shape == (4,)
    assert isinstance(module.conv._packed_params, ConvPackedParams)
    assert isinstance(module.fc._packed_params._packed_params, LinearPackedParams)
    module.conv.set_weight_bias(weight, torch.zeros(4))
    assert not module.conv._weight_bias()[1].any()


def test_other_names_of_the_object():
    """Programs may call ``self`` otherwise."""
    with zipfile.ZipFile(FOLDER / "codes_scripted.pt") as source:
        held = {n: source.read(n) for n in source.namelist()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as target:
        for n, data in held.items():
            target.writestr(n, data.replace(b"self", b"it") if n.endswith(".py") else data)
    module = torch.jit.load(io.BytesIO(out.getvalue()))
    x = torch.randn(1, 1, 6, 6)
    assert torch.equal(module(x), torch.jit.load(FOLDER / "codes_scripted.pt")(x))
    assert " it, Tensor x" in module.forward.schema


def test_halves_are_rounded_once():
    weight = torch.tensor([[1e6, 1.0001]])
    made = torch.ops.quantized.linear_prepack_fp16(weight, None)
    assert torch.ops.quantized.linear_unpack_fp16(made)[0].tolist() == [[65504.0, 1.0]]
    x = torch.tensor([[-1.0, 2.0]])
    assert torch.ops.quantized.linear_dynamic_fp16(x, made).tolist() == [[-65502.0]]
    assert torch.ops.quantized.linear_relu_dynamic_fp16(x, made).tolist() == [[0.0]]
