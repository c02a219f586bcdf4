"""Exported models on codes: the program has plain tensors only, and gives the bits of the model, loaded, compiled and packed too."""

import functools
import io

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.ao import quantization as quant
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.quantization.quantize_fx import convert_fx, prepare_fx
from flambeau.export import Dim, export
from flambeau.export.graph_signature import InputKind

B = Dim("b", max=64)
randn = torch.randn


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant = quant.QuantStub(), quant.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.again, self.sums, self.pool = nn.Conv2d(4, 4, 1), nnq.FloatFunctional(), nn.AdaptiveAvgPool2d(2)
        self.fc, self.norm = nn.Linear(16, 5), nn.LayerNorm(5)

    def forward(self, x):
        x = self.relu(self.bn(self.conv(self.quant(x))))
        x = self.sums.cat([self.sums.add(x, self.again(x)), x]).chunk(2)[0]
        return self.dequant(self.norm(torch.sigmoid(self.fc(self.pool(x).flatten(1)))))


def layers():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 5)).eval()


def converted(model, example, prepare, qconfig):
    model.qconfig = qconfig
    ready = prepare(model)
    ready(example)
    return quant.convert(ready.eval())


def by_modules(engine):
    net = quant.fuse_modules(Convolutional().eval(), [["conv", "bn", "relu"]])
    return converted(net, randn(4, 1, 8, 8), quant.prepare, quant.get_default_qconfig(engine))


def by_training():
    net = quant.fuse_modules_qat(Convolutional().train(), [["conv", "bn", "relu"]])
    return converted(net, randn(4, 1, 8, 8), quant.prepare_qat, quant.get_default_qat_qconfig("onednn"))


def by_graph(qconfig):
    ready = prepare_fx(layers(), quant.QConfigMapping().set_global(qconfig), (randn(4, 1, 8, 8),))
    ready(randn(4, 1, 8, 8))
    return convert_fx(ready)


def dynamic(model, *kinds):
    return quant.quantize_dynamic(model, set(kinds), dtype=torch.qint8)


class Table(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        table = nn.Sequential(nn.EmbeddingBag(20, 8, mode="sum"))
        self.table = quant.quantize_dynamic(table, {nn.EmbeddingBag}, dtype=dtype)[0]

    def forward(self, i):
        return self.table(i)


class Constant(nn.Module):
    """Quantised tensors that a module holds: a plain attribute, one in a list, a buffer; asked, read and computed with."""

    def __init__(self):
        super().__init__()
        self.whole = torch.quantize_per_tensor(randn(3, 4), 0.1, 30, torch.quint8)
        self.parts = [
            torch.quantize_per_channel(randn(3, 4), torch.tensor([0.1, 0.2, 0.3]), torch.zeros(3), 0, torch.qint8)
        ]
        self.register_buffer("held", torch.quantize_per_tensor(randn(3, 4), 0.2, 3, torch.quint8))

    def forward(self, x):
        q = torch.quantize_per_tensor(x, self.whole.q_scale(), self.held.q_zero_point(), self.whole.dtype)
        q = torch.ops.quantized.add(torch.ops.quantized.add(q, self.whole, 0.1, 40), self.held, 0.3, 50)
        rows = self.parts[0].dequantize() * self.held.dim() + self.whole.shape[1]
        return q.dequantize() + rows, q.t().int_repr(), self.parts[0].q_per_channel_scales()


def images(n):
    return (randn(n, 1, 8, 8),)


# name -> (makes the model, makes an input of so many rows, specification)
MODELS = {
    "static, by channel": (functools.partial(by_modules, "fbgemm"), images, ({0: B},)),
    "static, whole": (functools.partial(by_modules, "qnnpack"), images, ({0: B},)),
    "trained": (by_training, images, ({0: B},)),
    "traced": (functools.partial(by_graph, quant.default_qconfig), images, ({0: B},)),
    "traced, dynamic": (functools.partial(by_graph, quant.default_dynamic_qconfig), images, ({0: B},)),
    "linear": (
        lambda: dynamic(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3)), nn.Linear),
        lambda n: (randn(n, 6),),
        ({0: B},),
    ),
    "lstm": (lambda: dynamic(nn.LSTM(6, 4), nn.LSTM), lambda n: (randn(3, n, 6),), ({1: B}, None)),
    "gru": (
        lambda: dynamic(nn.GRU(6, 4, bidirectional=True), nn.GRU),
        lambda n: (randn(3, n, 6),),
        ({1: B}, None),
    ),
    "rows of bytes": (lambda: Table(torch.quint8), lambda n: (torch.arange(2 * n).reshape(n, 2) % 20,), ({0: B},)),
    "rows of half bytes": (lambda: Table(torch.quint4x2), lambda n: (torch.arange(2 * n).reshape(n, 2) % 20,), ({0: B},)),
    "constants": (Constant, lambda n: (randn(3, 4),), None),
}  # fmt: skip


def bits(x):
    return [(t.dtype, tuple(t.shape), t.numpy().tobytes()) for t in torch.utils._pytree.tree_leaves(x)]


@pytest.mark.parametrize("strict", [False, True], ids=["traced", "captured first"])
@pytest.mark.parametrize("name", MODELS)
def test_the_bits_of_the_model(name, strict):
    make, given, spec = MODELS[name]
    torch.manual_seed(0)
    model = make()
    examples = [given(n) for n in ((3, 1, 7) if spec else (3,))]
    spec = spec and spec[:1]
    ep = export(model, examples[0], dynamic_shapes=spec, strict=strict)
    ep.validate()
    constants = {s.target for s in ep.graph_signature.input_specs if s.kind is InputKind.CONSTANT_TENSOR}
    assert constants == set(ep.constants) and not any(
        t.is_quantized for t in (*ep.constants.values(), *ep.state_dict.values())
    )
    if strict:
        with torch.no_grad():
            assert all(bits(ep.module()(*args)) == bits(model(*args)) for args in examples)
        return
    file = io.BytesIO()
    torch.export.save(ep, file)
    file.seek(0)
    programs = {
        "exported": ep.module(),
        "decomposed": ep.run_decompositions().module(),
        "loaded": torch.export.load(file).module(),
        "compiled": torch.compile(ep.module(), fullgraph=True),
    }
    with torch.no_grad():
        for how, run in programs.items():
            for args in examples:
                assert bits(run(*args)) == bits(model(*args)), how


def test_names_of_the_parts():
    model = dynamic(nn.Sequential(nn.Linear(6, 8)), nn.Linear)
    ep = export(model, (randn(2, 6),))
    assert list(ep.constants) == ["0._packed_params._weight.codes", "0._packed_params._bias"]
    run = ep.module()
    assert run.get_submodule("0._packed_params._weight").codes.dtype is torch.int8


def test_packages_and_modules_of_the_program(tmp_path):
    model, args = by_modules("fbgemm"), images(3)
    ep = export(model, args)
    path = torch._inductor.aoti_compile_and_package(ep, package_path=str(tmp_path / "model.pt2"))
    assert bits(torch._inductor.aoti_load_package(path)(*args)) == bits(model(*args))
    assert bits(torch.export.unflatten(ep)(*args)) == bits(model(*args))


def test_a_zero_point_is_checked_by_the_program():
    model = by_modules("qnnpack")
    run = export(model, images(3)).module()
    run.quant.zero_point.fill_(300)
    with pytest.raises(RuntimeError, match="zero_point is out of bounds"):
        run(*images(3))


Q = torch.quantize_per_tensor(torch.ones(3), 0.1, 3, torch.quint8)


def quantised(x):
    return torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)


@pytest.mark.parametrize(
    ("program", "argument", "error", "text"),
    [
        (lambda x: x.dequantize(), Q, torch._dynamo.exc.UserError, r"x is a torch.quint8 tensor.*x.int_repr\(\)"),
        (quantised, torch.ones(3), torch._dynamo.exc.UserError, r"returns a torch.quint8 tensor.*dequantize\(\)"),
        (
            lambda x: quantised(x).exp(),
            torch.ones(3),
            NotImplementedError,
            "exp of quantised tensors: there is no rule",
        ),
        (lambda x: Q.copy_(x).dequantize(), torch.ones(3), RuntimeError, "writes a tensor of shape"),
    ],
)
def test_refused(program, argument, error, text):
    with pytest.raises(error, match=text):
        export(program, (argument,))
