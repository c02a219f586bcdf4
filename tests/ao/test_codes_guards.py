"""What captured code takes for granted of quantised tensors, their sizes, writes to them, errors, and whole models."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
import flambeau.ao.nn.quantized.functional as QF
import flambeau.ao.quantization as quant
from flambeau import nn
from flambeau.ao.quantization import quantize_fx
from flambeau.ops.affine import tracing
from flambeau.ops.affine.traced import OPERATORS

from .test_codes_in_graphs import (  # fmt: skip
    BACKENDS,
    BIAS,
    COLUMNS,
    FLOATS,
    IMAGE,
    KERNEL,
    LINEAR,
    NIBBLES,
    ROWS,
    TABLE,
    WEIGHT,
    WIDE,
    X,
    drawn,
    told,
    whole,
)

Q = whole(3, 4)
ops = torch.ops.quantized


class Counting:
    """A backend that counts graphs."""

    def __init__(self):
        self.graphs = 0

    def __call__(self, graph, examples):
        self.graphs += 1
        return graph.forward


def use(q):
    return q.dequantize() * q.q_scale() + q.q_zero_point(), q.relu()


def by_rows(scales, axis=0):
    return torch.quantize_per_channel(X[:3, :3], torch.tensor(scales), torch.tensor([0, 1, 2]), axis, torch.qint8)


NIBBLES4 = torch.quantize_per_tensor(X, 0.3, 7, torch.quint4x2)
# {name: (function, the arguments of each call, graphs)}. Numbers that vary are symbols from the second graph on.
CALLS = {
    "scales": (use, [(whole(3, 4, scale=s),) for s in (0.1, 0.2, 0.3, 0.4)], 2),
    "zero points": (use, [(whole(3, 4, zero_point=z),) for z in (5, 6, 7, 8)], 2),
    "dtypes": (use, [(whole(3, 4, scale=0.1, zero_point=3, dtype=d),) for d in (torch.quint8, torch.qint8, torch.qint32)], 3),
    "schemes": (lambda q: q.dequantize(), [(Q,), (ROWS,), (COLUMNS,), (FLOATS,), (NIBBLES,), (NIBBLES4,), (WIDE,)], 7),
    "quantised or not": (lambda x: x.clone(), [(Q,), (X,), (Q,)], 2),
    "sizes": (use, [(whole(n, 4),) for n in (3, 4, 5, 6)], 2),
    "strides": (lambda q: q.reshape(-1).relu(), [(whole(4, 4),), (whole(4, 4).t(),)], 2),
    "channels": (lambda q: q.dequantize(), [(by_rows([0.1, 0.2, 0.3]),), (by_rows([0.2, 0.3, 0.4]),)], 1),
    "axes": (lambda q: q.dequantize(), [(by_rows([0.1, 0.2, 0.3], a),) for a in (0, 1)], 2),
    "linear": (lambda q: QF.linear(q, WEIGHT, BIAS, 0.1, 60), [(whole(n, 4),) for n in (3, 4, 5, 6)], 2),
    "conv": (lambda q: QF.conv2d(q, KERNEL, None, 1, 1, 1, 2, scale=0.1, zero_point=60), [(whole(n, 4, 8, 8),) for n in (3, 4, 5)], 2),
    "scales of results": (lambda q, s, z: ops.linear(q, LINEAR, s, z), [(Q, 0.1, 3), (Q, 0.2, 4), (Q, 0.3, 5)], 2),
    "scales made": (lambda x, s, z: torch.quantize_per_tensor(x, s, z, torch.quint8), [(X, 0.1, 3), (X, 0.2, 4), (X, 0.3, 5)], 2),
    "one or two": (lambda a, b: (a is b, a.dequantize() + b.dequantize()), [(Q, Q), (Q, whole(3, 4))], 2),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_what_differs_is_guarded(name):
    f, calls, graphs = CALLS[name]
    torch.compiler.reset()
    backend = Counting()
    compiled = torch.compile(f, fullgraph=True, backend=backend)
    for args in calls:
        assert told(compiled(*args)) == told(f(*args))
    assert backend.graphs == graphs


@pytest.mark.parametrize("how", ["dynamic", "marked"])
def test_sizes_may_be_symbols_at_once(how):
    torch.compiler.reset()
    backend = Counting()
    compiled = torch.compile(use, fullgraph=True, backend=backend, dynamic=True if how == "dynamic" else None)
    for n in (3, 5, 7):
        q = whole(n, 4)
        if how == "marked":
            torch._dynamo.mark_dynamic(q, 0)
        assert told(compiled(q)) == told(use(q))
    assert backend.graphs == 1


def through_view(q):
    v = q.view(-1)
    v.fill_(0.5)
    return q.dequantize(), v


WRITES = {
    "copy_": lambda q: (q.copy_(torch.ones(3, 4)), q.dequantize()),
    "relu_": lambda q: torch.relu_(q),
    "view": through_view,
    "another scale": lambda q: (q.copy_(whole(3, 4, scale=0.5).fill_(1.0)), q.q_scale()),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRITES)
def test_writes_reach_the_callers_tensor(name, backend):
    f, a, b = WRITES[name], Q.clone(), Q.clone()
    torch.compiler.reset()
    assert told(torch.compile(f, backend=backend)(a)) == told(f(b))
    assert told(a) == told(b)


def test_results_are_the_objects_that_they_are():
    assert torch.compile(lambda q: q, fullgraph=True)(Q) is Q
    q = Q.clone()
    assert torch.compile(torch.relu_, fullgraph=True)(q) is q
    view = torch.compile(lambda q: q.view(-1), fullgraph=True)(q)
    view.fill_(0.0)
    assert not q.dequantize().any()


def test_lists_of_them_are_arguments():
    compiled = torch.compile(lambda qs: torch.cat(qs), fullgraph=True)
    for scales in ((0.1, 0.2), (0.3, 0.3), (0.4, 0.5)):
        qs = [whole(3, 4, scale=s) for s in scales]
        assert told(compiled(qs)) == told(torch.cat(qs))
        assert told(compiled((*qs, qs[0]))) == told(torch.cat((*qs, qs[0])))


def test_layouts_are_those_of_eager_code():
    """Sums and products are laid out as the first operand, as PyTorch's."""
    last = IMAGE.contiguous(memory_format=torch.channels_last)
    for a, b in ((IMAGE, last), (last, IMAGE), (last, last)):
        for f in (ops.add, ops.mul):
            made = f(a, b, 0.1, 50)
            assert made.stride() == a.stride()
            assert told(torch.compile(lambda a, b, f=f: f(a, b, 0.1, 50), fullgraph=True)(a, b)) == told(made)


ASKING = {
    "input": lambda x, b: ops._linear_dynamic(x, WEIGHT, BIAS, True, False),
    "bias": lambda x, b: ops._linear_dynamic(x.detach(), WEIGHT, b, True, False),
    "scale": lambda x, b: torch.quantize_per_tensor(x, b[0], torch.tensor(3), torch.quint8).dequantize(),
    "scales": lambda x, b: torch.quantize_per_channel(x, b[:4], torch.arange(4), 1, torch.quint8).dequantize(),
    "weights": lambda x, b: ops.embedding_bag_byte(TABLE, torch.arange(5), torch.tensor([0, 2]), per_sample_weights=b),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ASKING)
def test_results_have_no_history(name, backend):
    x, b = X.clone().requires_grad_(), (BIAS.abs() + 0.1).requires_grad_()
    torch.compiler.reset()
    got = torch.compile(ASKING[name], fullgraph=True, backend=backend)(x, b)
    assert not got.requires_grad and told(got) == told(ASKING[name](x, b))


ERRORS = {
    "no operator": (lambda q: q + q, Q),
    "zero point": (lambda x: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8), X),
    "zero point of data": (lambda x, z: torch.quantize_per_tensor(x, torch.tensor(0.1), z, torch.quint8), X, torch.tensor(300)),
    "sizes": (lambda q: QF.linear(q, WEIGHT), whole(3, 5)),
    "scheme": (lambda q: q.q_scale(), ROWS),
    "index": (lambda i: ops.embedding_byte(TABLE, i), torch.tensor([11])),
    "dtype": (lambda x: torch.quantize_per_tensor(x.double(), 0.1, 3, torch.quint8), X),
    "dtypes": (lambda a, b: torch.cat([a, b]), Q, WIDE),
    "view of channels": (lambda q: q.t(), ROWS),
    "view of nibbles": (lambda q: q.t(), NIBBLES),
    "bilinear": (lambda q: nn.functional.interpolate(q, size=(5, 5), mode="bilinear"), IMAGE),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_those_of_eager_code(name, backend):
    f, *args = ERRORS[name]
    with pytest.raises(Exception) as wanted:
        f(*args)
    torch.compiler.reset()
    with pytest.raises(type(wanted.value)) as got:
        torch.compile(f, backend=backend)(*args)
    assert str(got.value) == str(wanted.value)


def test_rules_are_loaded_by_the_operators_that_need_them():
    assert {name for name in OPERATORS if name.startswith("aten::")} == tracing._MAKERS
    code = "import sys, flambeau as t; t.compile(lambda x: x + 1, backend='eager')(t.ones(2)); print('flambeau.ops.affine.traced' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_what_has_no_rule_is_named():
    with pytest.raises(torch._dynamo.exc.Unsupported, match="add of quantised tensors"):
        torch.compile(lambda q: q + q, fullgraph=True)(Q)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.quant, self.dequant, self.sum = (
            quant.QuantStub(),
            quant.DeQuantStub(),
            torch.ao.nn.quantized.FloatFunctional(),
        )
        self.first, self.norm, self.relu = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
        self.second, self.again = nn.Conv2d(4, 8, 3, groups=2), nn.ReLU(inplace=True)
        self.act, self.pool, self.mean, self.last = nn.Hardswish(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Linear(32, 10)  # fmt: skip

    def forward(self, x):
        x = self.relu(self.norm(self.first(self.quant(x))))
        x = self.pool(self.sum.add(x, x))
        x = self.mean(self.act(self.again(self.second(x))))
        return self.dequant(self.last(torch.flatten(x, 1)))


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu, self.last = nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Linear(4 * 36, 10)

    def forward(self, x):
        y = self.relu(self.conv(x))
        y = nn.functional.max_pool2d(y + y, 2)
        return self.last(torch.flatten(torch.cat([y, y], 1)[:, :4], 1))


def converted(how, x):
    if how == "dynamic":
        return quant.quantize_dynamic(
            nn.Sequential(nn.Flatten(), nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, 3)), {nn.Linear}
        )
    if how == "traced":
        ready = quantize_fx.prepare_fx(Traced().eval(), quant.get_default_qconfig_mapping(), (x,))
        ready(x)
        return quantize_fx.convert_fx(ready)
    net = quant.fuse_modules(Network().eval(), [["first", "norm", "relu"], ["second", "again"]])
    net.qconfig = quant.default_qconfig if how == "whole" else quant.get_default_qconfig("x86")
    ready = quant.prepare(net)
    ready(x)
    return quant.convert(ready)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("how", ["whole", "channels", "traced", "dynamic"])
def test_models_of_the_flows_are_one_graph(how, backend):
    x = drawn(4, 1, 12, 12)
    model = converted(how, x)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    for given in (x, x * 2, x[:3]):
        assert told(compiled(given)) == told(model(given))
    assert torch._dynamo.explain(model)(x).graph_break_count == 0


def test_another_scale_of_a_layer_is_another_result():
    """Of one that was calibrated again after it was compiled."""
    x = drawn(4, 1, 12, 12)
    model = converted("whole", x)
    compiled = torch.compile(model, fullgraph=True)
    compiled(x)
    with torch.no_grad():
        model.quant.scale.mul_(2)
        model.last.scale *= 2
        model.first.zero_point += 1
    assert told(compiled(x)) == told(model(x))


def test_a_scale_that_is_asked_for_is_no_constant():
    f = torch.compile(lambda q: q.q_scale(), fullgraph=True)
    assert [f(whole(2, 2, scale=s)) for s in (0.1, 0.25, 0.5)] == [0.1, 0.25, 0.5]
    np.testing.assert_equal(f(whole(2, 2, scale=1e-30)), 1e-30)
