"""Quantised tensors in captured code: programs that take, make, use and return them are one graph, and compute the bits of eager code."""

import numpy as np
import pytest

import flambeau as torch
import flambeau.ao.nn.quantized as nnq
import flambeau.ao.nn.quantized.dynamic as nnqd
import flambeau.ao.nn.quantized.functional as QF
import flambeau.nn.functional as F

BACKENDS = ["eager", "aot_eager", "inductor"]
RNG = np.random.default_rng(0)
ops = torch.ops.quantized


def drawn(*shape):
    return torch.tensor(RNG.standard_normal(shape).astype(np.float32))


def whole(*shape, scale=0.05, zero_point=120, dtype=torch.quint8):
    return torch.quantize_per_tensor(drawn(*shape), scale, zero_point, dtype)


def channels(x, axis=0, dtype=torch.qint8, floats=False):
    n = x.shape[axis]
    zeros = torch.arange(n) + 0.5 if floats else torch.arange(n)
    return torch.quantize_per_channel(x, torch.arange(1, n + 1) * 0.02, zeros, axis, dtype)


X, IMAGE = drawn(3, 4), whole(2, 4, 8, 8)
Q, OTHER, SIGNED = whole(3, 4), whole(3, 4, scale=0.07, zero_point=100), whole(3, 4, zero_point=-5, dtype=torch.qint8)
WIDE, NIBBLES = whole(3, 4, scale=1e-6, zero_point=7, dtype=torch.qint32), whole(3, 3, scale=0.3, zero_point=7, dtype=torch.quint4x2)  # fmt: skip
ROWS, COLUMNS, FLOATS = channels(X), channels(X, 1, torch.quint8), channels(X, 0, torch.quint8, floats=True)
WEIGHT, BIAS = channels(drawn(5, 4)), drawn(5)
KERNEL, KERNEL1, KERNEL3 = channels(drawn(6, 2, 3, 3)), channels(drawn(6, 4, 3)), whole(6, 4, 3, 3, 3, scale=0.03, zero_point=2, dtype=torch.qint8)  # fmt: skip
SPREAD = whole(4, 3, 3, 3, scale=0.03, zero_point=2, dtype=torch.qint8)
LINEAR, CONV = ops.linear_prepack(WEIGHT, BIAS), ops.conv2d_prepack(KERNEL, drawn(6), [1, 1], [1, 1], [1, 1], 2)
BYTES = channels(drawn(10, 6), 0, torch.quint8, floats=True)
TABLE, TABLE4 = ops.embedding_bag_prepack(BYTES), ops.embedding_bag_prepack(channels(drawn(10, 6), 0, torch.quint4x2, floats=True))  # fmt: skip
INDICES, OFFSETS, WEIGHTS = torch.tensor([1, 9, 3, 3, 0]), torch.tensor([0, 2, 2]), drawn(5)


def layer(cls):
    made = cls(4, 5)
    made.set_weight_bias(WEIGHT, BIAS)
    made.scale, made.zero_point = 0.1, 60
    return made


# {name: (function, arguments)}
PROGRAMS = {
    # made
    "quint8": (lambda x: torch.quantize_per_tensor(x, 0.1, 3, torch.quint8), X),
    "qint8": (lambda x: torch.quantize_per_tensor(x, 0.1, 3, torch.qint8), X),
    "qint32": (lambda x: torch.quantize_per_tensor(x, 1e-6, 3, torch.qint32), X),
    "quint4x2": (lambda x: torch.quantize_per_tensor(x, 0.3, 7, torch.quint4x2), X),
    "nan": (lambda x: torch.quantize_per_tensor(x * float("nan"), 0.3, 7, torch.quint8), X),
    "inf": (lambda x: torch.quantize_per_tensor(x * float("inf"), 0.3, 7, torch.qint32), X),
    "an overload": (lambda x: torch.ops.aten.quantize_per_tensor.default(x, 0.1, 3, torch.quint8), X),
    "scale a tensor": (lambda x, s, z: torch.quantize_per_tensor(x, s, z, torch.quint8), X, torch.tensor(0.1), torch.tensor(3)),
    "scale of data": (lambda x, s, z: torch.quantize_per_tensor(x, float(s), int(z), torch.quint8), X, torch.tensor([0.1]), torch.tensor([3])),
    "a list": (lambda x: torch.quantize_per_tensor([x, x * 2], torch.tensor([0.1, 0.2]), torch.tensor([1, 2]), torch.quint8), X),
    "dynamic": (lambda x: torch.quantize_per_tensor_dynamic(x, torch.qint8, True), X),
    "per channel": (lambda x, s, z: torch.quantize_per_channel(x, s, z, 1, torch.qint8), X, torch.tensor([0.1, 0.2, 0.3, 0.0]), torch.tensor([0, 1, 2, 3])),
    "per channel, floats": (lambda x, s, z: torch.quantize_per_channel(x, s, z, 0, torch.quint8), X, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2])),
    "per channel, 4 bits": (lambda x, s, z: torch.quantize_per_channel(x, s, z, -2, torch.quint4x2), X, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 1, 2])),
    "of codes": (lambda x: torch._make_per_tensor_quantized_tensor(x, 0.5, 3), torch.arange(6).to(torch.uint8)),
    "again": (lambda q: torch.quantize_per_tensor(q.dequantize(), 0.2, 10, torch.qint8), Q),
    # read
    **{f"read {q.dtype} {q.qscheme()}": (lambda q: (q.dequantize(), q.int_repr(), q.clone()), q)
       for q in (Q, SIGNED, WIDE, NIBBLES, ROWS, COLUMNS, FLOATS)},
    "asked": (lambda q: (q.q_scale(), q.q_zero_point(), q.dtype, q.shape, q.dim(), q.qscheme(), q.is_quantized, q.size(0), q.numel(), len(q), q.stride(), q.device, q.element_size(), q.is_contiguous(), q.requires_grad), Q),
    "a tensor": (lambda q: (isinstance(q, torch.Tensor), type(q) is torch.Tensor, torch.is_tensor(q), q.is_floating_point()), Q),
    "channels asked": (lambda q: (q.q_per_channel_scales(), q.q_per_channel_zero_points(), q.q_per_channel_axis(), q.qscheme()), COLUMNS),
    "scale used": (lambda q: q.dequantize() * q.q_scale() + q.q_zero_point(), Q),
    "in a dict": (lambda q: {"a": q.relu(), "b": [q, q.clone()]}, Q),
    # views
    "view": (lambda q: q.view(4, 3), Q), "t": (lambda q: q.t().relu(), Q), "T": (lambda q: q.T, Q), "permute": (lambda q: q.permute(0, 2, 3, 1), IMAGE),
    "flatten": (lambda q: torch.flatten(q, 1), IMAGE), "index": (lambda q: (q[1], q[:, 1:3], q[torch.tensor([0, 2])]), Q),
    "pieces": (lambda q: (*q.chunk(2, 1), *torch.split(q, 2, 1), *q.unbind(0)), Q), "expand": (lambda q: q.unsqueeze(0).expand(2, 3, 4), Q),
    "contiguous": (lambda q: q.t().contiguous(), Q), "detach": (lambda q: q.detach(), Q), "unfold": (lambda q: q.unfold(2, 2, 2), IMAGE),
    # moved, computed, bounded, compared
    "sorted": (lambda q: (*q.sort(-1), *q.topk(2), *q.max(1), q.max(), q.amin(1)), Q), "flip": (lambda q: (q.flip(0), q.repeat(2, 1)), Q),
    "gather": (lambda q: (q.gather(1, torch.tensor([[0], [1], [2]])), q.index_select(0, torch.tensor([2, 0]))), Q),
    "cat": (lambda a, b: (torch.cat([a, a]), torch.cat([a, b], 1), torch.stack([a, a])), Q, OTHER),
    "relu": (lambda q: (torch.relu(q), F.relu(q), F.relu6(q), F.hardtanh(q, -1, 0.5), q.clamp(-1, 1), F.leaky_relu(q, 0.1)), SIGNED),
    "relu in place": (lambda q: (F.relu(q.clone(), True), F.hardtanh(q.clone(), -1, 1, inplace=True), q.clone().relu_()), Q),
    "means": (lambda q: (q.mean([2, 3]), F.avg_pool2d(q, 2), F.adaptive_avg_pool2d(q, (3, 3)), F.adaptive_avg_pool2d(q, 1)), IMAGE),
    "max_pool": (lambda q: (F.max_pool2d(q, 2), QF.max_pool1d(q[0], 2)), IMAGE), "gelu": (lambda q: (F.gelu(q), q.std(1)), Q),
    "interpolate": (lambda q: (F.interpolate(q, scale_factor=2), F.pixel_shuffle(q, 2), F.channel_shuffle(q, 2)), IMAGE),
    "pad": (lambda q: [F.pad(q, [1, 1, 1, 1], mode=m) for m in ("constant", "reflect", "replicate", "circular")] + [F.pad(q, [1, 1], value=0.7)], IMAGE),
    "bounded": (lambda q: (q.sigmoid(), q.tanh(), F.hardsigmoid(q)), SIGNED), "compared": (lambda q: (q == q, q < 0.3, q.masked_fill(q > 0.3, 0.1)), Q),
    "written": (lambda q, x: (q.clone().fill_(0.4), q.clone().copy_(x)), Q, X), "dropout": (lambda q: F.dropout(q, 0.5, False), Q),
    # torch.ops.quantized
    "add": (lambda a, b: (ops.add(a, b, 0.1, 50), ops.add_relu(a, b, 0.1, 50)), Q, OTHER), "mul": (lambda a, b: (ops.mul(a, b, 0.1, 50), ops.mul_relu(a, b, 0.1, 50)), Q, OTHER),
    "matmul": (lambda a, b: ops.matmul(a, b.t(), 0.1, 50), Q, OTHER), "ops.cat": (lambda a, b: ops.cat([a, b], 0, 0.1, 50), Q, OTHER),
    "scalars": (lambda a: [*(ops.add_scalar(a, b) for b in (0.5, -50, 50)), *(ops.mul_scalar(a, b) for b in (2, -2.5, 0))], Q),
    "activations": (lambda a: (ops.hardswish(a, 0.1, 50), ops.sigmoid(a, 1 / 256, 0), ops.softmax(a, -1, 1 / 256, 0), ops.elu(a, 0.1, 50), ops.celu(a, 0.1, 50), ops.leaky_relu(a, 0.1, False, 0.1, 50), ops.relu6(a)), Q),
    "norms": (lambda a: (ops.layer_norm(a, [8], None, None, 1e-5, 0.02, 128), ops.group_norm(a, 2, None, None, 1e-5, 0.02, 128), ops.instance_norm(a, None, None, 1e-5, 0.02, 128)), IMAGE),
    "batch_norm": (nnq.BatchNorm2d(4).eval(), IMAGE),
    # layers
    "linear": (lambda a, w: (QF.linear(a, w, BIAS, 0.1, 60), QF.linear(a, w)), Q, WEIGHT), "linear qint8": (lambda a: QF.linear(a, WEIGHT, BIAS, 0.1, -6), SIGNED),
    "packed linear": (lambda a: (ops.linear(a, LINEAR, 0.1, 60), ops.linear_relu(a, LINEAR, 0.1, 60)), Q),
    "packed inside": (lambda a, w, b: ops.linear(a, ops.linear_prepack(w, b), 0.1, 60), Q, WEIGHT, BIAS),
    "Linear": (layer(nnq.Linear), Q), "dynamic Linear": (layer(nnqd.Linear), X), "dynamic linear": (lambda x: (ops.linear_dynamic(x, LINEAR, True), ops.linear_relu_dynamic(x, LINEAR)), X),
    "conv1d": (lambda a: QF.conv1d(a, KERNEL1, None, scale=0.1, zero_point=60), whole(2, 4, 9)),
    "conv2d": (lambda a: (ops.conv2d(a, CONV, 0.1, 60), ops.conv2d_relu(a, CONV, 0.1, 60), QF.conv2d(a, KERNEL, None, 2, 1, 1, 2, scale=0.1, zero_point=60)), IMAGE),
    "conv3d": (lambda a: QF.conv3d(a, KERNEL3, None, 2, 1, scale=0.1, zero_point=60), whole(2, 4, 5, 5, 5)),
    "conv_transpose2d": (lambda a: ops._convolution_transpose(a, SPREAD, None, [2, 2], [1, 1], [1, 1], [1, 1], 1, 0.1, 60), IMAGE),
    "dynamic conv2d": (lambda x: ops.conv2d_dynamic(x, CONV), drawn(2, 4, 8, 8)),
    "embedding": (lambda i: (ops.embedding_byte(TABLE, i), ops.embedding_4bit(TABLE4, i)), INDICES), "Embedding": (nnq.Embedding(10, 6, _weight=BYTES), INDICES),
    "bags": (lambda i, o, w: (ops.embedding_bag_byte(TABLE, i, o), ops.embedding_bag_4bit(TABLE4, i, o, per_sample_weights=w, include_last_offset=True)), INDICES, OFFSETS, WEIGHTS),
    "bags of rows": (lambda i: ops.embedding_bag_byte(TABLE, i[:4].reshape(2, 2)), INDICES),
    **{f"bytes {n}": (lambda x, i, o, n=n: (w := getattr(ops, f"embedding_bag_{n}_prepack")(x), getattr(ops, f"embedding_bag_{n}_unpack")(w), getattr(ops, f"embedding_bag_{n}_rowwise_offsets")(w, i, o)), drawn(10, 8), INDICES, OFFSETS)
       for n in ("byte", "4bit", "2bit")},
}  # fmt: skip


def told(x):
    """All that a result is, in terms that are compared by ==."""
    if not isinstance(x, torch.Tensor):
        return [*map(told, x.values() if isinstance(x, dict) else x)] if isinstance(x, (dict, list, tuple)) else x
    if not x.is_quantized:
        return x.dtype, tuple(x.shape), x.stride(), x.numpy().tobytes()
    if x.qscheme() is torch.per_tensor_affine:
        read = x.q_scale(), x.q_zero_point()
    else:
        read = *map(told, (x.q_per_channel_scales(), x.q_per_channel_zero_points())), x.q_per_channel_axis()
    return x.dtype, x.qscheme(), read, x.stride(), told(x.int_repr())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_computes_the_bits_of_eager_code(name, backend):
    f, *args = PROGRAMS[name]
    torch.compiler.reset()
    assert told(torch.compile(f, fullgraph=True, backend=backend)(*args)) == told(f(*args))
