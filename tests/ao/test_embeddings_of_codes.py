"""Embeddings of 8, 4 and 2 bits: lookups and bags by NumPy, flows, files, faults, and PyTorch's numbers."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau
from flambeau import nn
from flambeau.ao import quantization as quant
from flambeau.ao.nn import quantized as nnq

X = np.random.default_rng(0).standard_normal((7, 12)).astype(np.float32)
INDICES = np.array([0, 3, 3, 6, 2])
LEVELS = {"quint8": 255, "quint4x2": 15}
LOOKUP = {"quint8": "embedding_byte", "quint4x2": "embedding_4bit"}
BAGS = {"quint8": "embedding_bag_byte", "quint4x2": "embedding_bag_4bit"}


def table(dtype, torch=flambeau):
    """``X`` quantised by rows with floats as zero points."""
    x = torch.tensor(X)
    low, high = x.min(1)[0], x.max(1)[0]
    scale = (high - low) / LEVELS[dtype]
    return torch.quantize_per_channel(x, scale, -low / scale, 0, getattr(torch, dtype))


@pytest.mark.parametrize("dtype", LEVELS)
def test_rows_have_floats_as_zero_points(dtype):
    q = table(dtype)
    scale, zero = q.q_per_channel_scales().numpy(), q.q_per_channel_zero_points().numpy()
    codes = np.clip(np.rint(X * (1 / scale)[:, None] + zero[:, None]), 0, LEVELS[dtype]).astype(np.uint8)
    np.testing.assert_array_equal(q.dequantize().numpy(), (codes.astype(np.float32) - zero[:, None]) * scale[:, None])
    flat = codes.reshape(-1)
    wanted = codes if dtype == "quint8" else flat[0::2] | flat[1::2] << 4
    np.testing.assert_array_equal(q.int_repr().numpy(), wanted)
    assert q.qscheme() is flambeau.per_channel_affine_float_qparams and q.shape == X.shape
    assert q.element_size() == 1 and scale.dtype == zero.dtype == np.float32


BAG_CALLS = {
    "offsets": lambda t: {"offsets": t([0, 2, 2])},
    "rows": lambda t: {},
    "last": lambda t: {"offsets": t([0, 2, 5]), "include_last_offset": True},
    "weighted": lambda t: {"offsets": t([0, 2]), "per_sample_weights": t(np.arange(5, dtype=np.float32))},
    "int32": lambda t: {"offsets": t(np.array([0, 4], np.int32))},
    "pruned": lambda t: {
        "offsets": t([0, 2]),
        "pruned_weights": True,
        "compressed_indices_mapping": t(np.array([0, 1, -1, 2, 3, 4, 5], np.int32)),
    },
}


def bags(torch, dtype, name):
    packed = torch.ops.quantized.embedding_bag_prepack(table(dtype, torch))
    indices = torch.tensor(INDICES.reshape(1, 5) if name == "rows" else INDICES)
    made = getattr(torch.ops.quantized, BAGS[dtype])(packed, indices, **BAG_CALLS[name](torch.tensor))
    return made.numpy()


@pytest.mark.parametrize("dtype", LEVELS)
@pytest.mark.parametrize("name", BAG_CALLS)
def test_bags_are_sums_of_rows(dtype, name):
    packed = flambeau.ops.quantized.embedding_bag_prepack(table(dtype))
    lookup = getattr(flambeau.ops.quantized, LOOKUP[dtype])
    rows = lookup(packed, flambeau.tensor(INDICES)).numpy()
    np.testing.assert_allclose(
        rows, table(dtype).dequantize().numpy()[INDICES], atol=2e-3 if dtype != "quint8" else 1e-6
    )
    given = {k: v.numpy() for k, v in BAG_CALLS[name](flambeau.tensor).items() if hasattr(v, "numpy")}
    if "per_sample_weights" in given:
        rows = rows * given["per_sample_weights"][:, None]
    if "compressed_indices_mapping" in given:
        at = given["compressed_indices_mapping"][INDICES]
        rows = lookup(packed, flambeau.tensor(np.maximum(at, 0))).numpy() * (at >= 0)[:, None]
    begins = given.get("offsets", np.array([0]))
    ends = begins[1:] if name == "last" else [*begins[1:], 5]
    wanted = [rows[a:b].sum(0) for a, b in zip(begins, ends)]
    np.testing.assert_allclose(bags(flambeau, dtype, name), wanted, atol=1e-6)


@pytest.mark.parametrize("label, bits", [("byte", 8), ("4bit", 4), ("2bit", 2)])
def test_rows_of_bytes_come_back(label, bits):
    ops = flambeau.ops.quantized
    packed = getattr(ops, f"embedding_bag_{label}_prepack")(flambeau.tensor(X))
    assert packed.dtype is flambeau.uint8 and packed.shape == (7, 12 * bits // 8 + (8 if bits == 8 else 4))
    rows = getattr(ops, f"embedding_bag_{label}_unpack")(packed).numpy()
    step = (X.max(1) - X.min(1)) / ((1 << bits) - 1)
    assert (np.abs(rows - X).max(1) <= 0.51 * step + 2e-3).all()
    made = getattr(ops, f"embedding_bag_{label}_rowwise_offsets")(
        packed, flambeau.tensor(INDICES), flambeau.tensor([0, 2])
    )
    np.testing.assert_allclose(made.numpy(), [rows[INDICES[:2]].sum(0), rows[INDICES[2:]].sum(0)], atol=1e-5)


REFUSED = {
    "float indices": (lambda p: {"indices": flambeau.tensor([0.5])}, "Expect 32 or 64 bit indices, but found Float"),
    "outside": (lambda p: {"indices": flambeau.tensor([1, 8])}, "Index 1 is out of bounds: 8, range 0 to 7"),
    "below": (lambda p: {"indices": flambeau.tensor([-1])}, "Index 0 is out of bounds: -1, range 0 to 7"),
    "no offsets": (lambda p: {"offsets": None}, "offsets to be set for 1D indices"),
    "offsets of rows": (lambda p: {"indices": flambeau.tensor([[1]])}, "offsets to be None for 2D indices"),
    "falling": (lambda p: {"offsets": flambeau.tensor([1, 0])}, "offsets that don't fall"),
    "far": (lambda p: {"offsets": flambeau.tensor([0, 9])}, "offsets that don't fall"),
    "weights": (lambda p: {"per_sample_weights": flambeau.ones(9)}, "Expected 2 per_sample_weights"),
    "not packed": (lambda p: {"weight": table("quint8")}, "Expected a value of type 'EmbeddingPackedParams'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_faults_of_bags_are_named(name):
    packed = flambeau.ops.quantized.embedding_bag_prepack(table("quint8"))
    change, words = REFUSED[name]
    given = {"weight": packed, "indices": flambeau.tensor([1, 2]), "offsets": flambeau.tensor([0]), **change(packed)}
    with pytest.raises(RuntimeError, match=words):
        flambeau.ops.quantized.embedding_bag_byte(**given)


def test_other_faults_are_named():
    ops = flambeau.ops.quantized
    with pytest.raises(RuntimeError, match="quint8 and quint4x2, got torch.float32"):
        ops.embedding_bag_prepack(flambeau.tensor(X))
    with pytest.raises(RuntimeError, match="kPerChannelAffineFloatQParams, got torch.per_tensor_affine"):
        ops.embedding_bag_prepack(flambeau.quantize_per_tensor(flambeau.tensor(X), 0.1, 3, flambeau.quint8))
    with pytest.raises(RuntimeError, match="expected a weight of torch.quint4x2"):
        ops.embedding_4bit(ops.embedding_bag_prepack(table("quint8")), flambeau.tensor([0]))
    with pytest.raises(RuntimeError, match="columns a multiple of 2"):
        ops.embedding_bag_4bit_prepack(flambeau.ones(2, 3))
    with pytest.raises(NotImplementedError, match="search for ranges"):
        ops.embedding_bag_4bit_prepack(flambeau.ones(2, 4), True)
    with pytest.raises(NotImplementedError, match="Supports quint8 and quint4x2"):
        nnq.Embedding(4, 4, dtype=flambeau.qint8)
    with pytest.raises(AssertionError, match="Shape of weight"):
        nnq.Embedding(4, 4, _weight=table("quint8"))
    with pytest.raises(AssertionError, match="float_qparams_weight_only_qconfig"):
        quant.quantize_dynamic(nn.Sequential(nn.Embedding(4, 4)), {nn.Embedding}, dtype=flambeau.qint8)
    with pytest.raises(NotImplementedError, match="QuantizedCPU"):
        table("quint4x2").reshape(12, 7)
    with pytest.raises(RuntimeError, match="_empty_affine_quantized: ScalarType None is not a quantised dtype"):
        flambeau._empty_affine_quantized([2, 3])
    with pytest.raises(RuntimeError, match="zero_point 17 is above upper bound"):
        flambeau.quantize_per_tensor(flambeau.ones(3), 0.1, 17, flambeau.quint4x2)
    assert repr(ops.embedding_bag_prepack(table("quint8"))) == "EmbeddingPackedParams(torch.quint8, (7, 12))"


LAYERS = {
    "embedding": (nn.Embedding, "quint8", {}),
    "bag": (nn.EmbeddingBag, "quint8", {"mode": "sum"}),
    "bag of 4 bits": (nn.EmbeddingBag, "quint4x2", {"mode": "sum"}),
    "embedding of 4 bits": (nn.Embedding, "quint4x2", {}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_quantised_saved_and_loaded(name):
    kind, dtype, settings = LAYERS[name]
    flambeau.manual_seed(0)
    model = nn.Sequential(kind(7, 12, **settings))
    made = quant.quantize_dynamic(model, {kind}, dtype=getattr(flambeau, dtype))
    assert type(made[0]) is getattr(nnq, kind.__name__) and made[0].dtype is getattr(flambeau, dtype)
    indices = flambeau.tensor([[0, 3], [6, 3]])
    wanted = model(indices)
    assert float((made(indices) - wanted).detach().abs().max()) < (0.02 if dtype == "quint8" else 0.4)
    file = io.BytesIO()
    flambeau.save(made.state_dict(), file)
    file.seek(0)
    other = quant.quantize_dynamic(nn.Sequential(kind(7, 12, **settings)), {kind}, dtype=getattr(flambeau, dtype))
    other.load_state_dict(flambeau.load(file))
    for again in (other, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert flambeau.equal(again(indices), made(indices))


@pytest.mark.parametrize("zipped", [True, False])
def test_tables_of_four_bits_are_copied_and_written(zipped):
    q, file = table("quint4x2"), io.BytesIO()
    flambeau.save(q, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    for again in (flambeau.load(file), copy.deepcopy(q), pickle.loads(pickle.dumps(q)), q.clone()):
        assert flambeau.equal(again, q) and again.shape == q.shape and again.stride() == q.stride()
    whole = flambeau.quantize_per_tensor(flambeau.tensor(X), 0.3, 7, flambeau.quint4x2)
    assert float((whole.dequantize() - flambeau.tensor(X).clamp(-2.1, 2.4)).abs().max()) < 0.16


def flows(torch, quant, fx):
    """{flow: results on codes} of either library."""
    nn, rng = torch.nn, np.random.default_rng(2)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.layer = nn.EmbeddingBag(5, 8, mode="sum"), nn.Linear(8, 2)

        def forward(self, indices, offsets):
            return self.layer(self.table(indices, offsets))

    def filled(model):
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32)))
        return model.eval()

    found, bag = {}, (torch.tensor([1, 2, 4]), torch.tensor([0, 1]))
    for name in ("float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit"):
        qconfig = getattr(quant, name)
        mapping = quant.QConfigMapping().set_global(quant.default_qconfig).set_object_type(nn.EmbeddingBag, qconfig)
        ready = fx.prepare_fx(filled(Net()), mapping, bag)
        ready(*bag)
        found[f"fx {name}"] = fx.convert_fx(ready)(*bag)
        dynamic = quant.quantize_dynamic(
            filled(nn.Sequential(nn.EmbeddingBag(5, 8, mode="sum"))), {nn.EmbeddingBag: qconfig}
        )
        found[f"dynamic {name}"] = dynamic[0](*bag)
    model = filled(nn.Sequential(nn.Embedding(5, 8), quant.QuantStub(), nn.Linear(8, 2), quant.DeQuantStub()))
    model.qconfig, model[0].qconfig = quant.default_qconfig, quant.float_qparams_weight_only_qconfig
    ready = quant.prepare(model)
    ready(bag[0])
    found["eager"] = quant.convert(ready)(bag[0])
    return {k: v.detach().numpy() for k, v in found.items()}


def test_flows_replace_the_tables():
    from flambeau.ao.quantization import quantize_fx

    made = flows(flambeau, quant, quantize_fx)
    assert all(np.isfinite(v).all() for v in made.values()) and len(made) == 5


# PyTorch warns of its own typed storages, and that quantised tensors may leave it.
@pytest.mark.filterwarnings(
    "ignore:TypedStorage is deprecated", "ignore:.*quantized tensor creation", "ignore:torch.ao.quantization"
)
@pytest.mark.parity
def test_numbers_are_pytorchs():
    theirs = pytest.importorskip("torch")
    import torch.ao.quantization as module
    import torch.ao.quantization.quantize_fx as traced

    from flambeau.ao.quantization import quantize_fx

    for dtype in LEVELS:
        np.testing.assert_array_equal(table(dtype).int_repr().numpy(), table(dtype, theirs).int_repr().numpy())
        assert repr(table(dtype)) == repr(table(dtype, theirs))
        for name in BAG_CALLS:
            np.testing.assert_allclose(bags(flambeau, dtype, name), bags(theirs, dtype, name), atol=1e-6)
    for label in ("byte", "4bit", "2bit"):
        packed = [
            getattr(t.ops.quantized, f"embedding_bag_{label}_prepack")(t.tensor(X)).numpy() for t in (flambeau, theirs)
        ]
        np.testing.assert_array_equal(*packed)
    made, wanted = flows(flambeau, quant, quantize_fx), flows(theirs, module, traced)
    for name, value in made.items():
        np.testing.assert_allclose(value, wanted[name], atol=1e-6, err_msg=name)
    for ours, other in ((flambeau, theirs), (theirs, flambeau)):
        file = io.BytesIO()
        ours.save([table(dtype, ours) for dtype in LEVELS], file)
        file.seek(0)
        for q, dtype in zip(other.load(file), LEVELS):
            assert other.equal(q, table(dtype, other))
