"""Every layer beside PyTorch: same seed, same parameters, same outputs, same gradients."""

import importlib
import warnings

import numpy as np
import pytest

pytestmark = pytest.mark.parity
torch = pytest.importorskip("torch")
import flambeau  # noqa: E402

# name, constructor arguments, inputs: shapes of float inputs, or ("int", shape, high), ("bool", shape), ("prob", shape), ("sign", shape).
F2, F3, F4, F5 = (3, 4), (2, 4, 7), (2, 4, 6, 7), (2, 4, 5, 6, 7)
CASES = [
    *[
        (n, {}, [F2])
        for n in "CELU SELU ELU GELU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU ReLU ReLU6 RReLU Sigmoid SiLU".split()
    ],
    *[(n, {}, [F2]) for n in "Softplus Softshrink Softsign Tanh Tanhshrink Identity".split()],
    ("CELU", {"alpha": 0.7}, [F2]),
    ("PReLU", {"num_parameters": 4}, [F4]),
    ("GLU", {}, [F2]),
    ("GLU", {"dim": 1}, [F3]),
    ("Threshold", {"threshold": 0.1, "value": 20.0}, [F2]),
    ("Softmin", {"dim": 1}, [F2]),
    ("Softmax2d", {}, [F4]),
    ("LogSoftmax", {"dim": 1}, [F2]),
    *[
        (f"MaxPool{n}d", kw, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for kw in (
            {"kernel_size": 2},
            {"kernel_size": 3, "stride": 2, "padding": 1},
            {"kernel_size": 2, "stride": 2, "ceil_mode": True},
            {"kernel_size": 2, "dilation": 2},
        )
    ],
    *[
        (f"AvgPool{n}d", kw, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for kw in (
            {"kernel_size": 2},
            {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
            {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
        )
    ],
    ("MaxPool2d", {"kernel_size": 2, "return_indices": True}, [F4]),
    ("AvgPool2d", {"kernel_size": 2, "divisor_override": 3}, [F4]),
    *[(f"AdaptiveAvgPool{n}d", {"output_size": o}, [s]) for n, s in ((1, F3), (2, F4), (3, F5)) for o in (1, 3)],
    *[
        (f"AdaptiveMaxPool{n}d", {"output_size": o, "return_indices": r}, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for o, r in ((1, False), (3, True))
    ],
    ("AdaptiveAvgPool2d", {"output_size": (None, 3)}, [F4]),
    *[(f"LPPool{n}d", {"norm_type": 2, "kernel_size": 2}, [s]) for n, s in ((1, F3), (2, F4), (3, F5))],
    ("FractionalMaxPool2d", {"kernel_size": 2, "output_size": 3, "return_indices": True}, [F4]),
    ("FractionalMaxPool3d", {"kernel_size": 2, "output_ratio": 0.5}, [F5]),
    *[
        (f"{k}Pad{n}d", {"padding": 2, **({"value": 1.5} if k == "Constant" else {})}, [s])
        for k in ("Constant", "Zero", "Reflection", "Replication", "Circular")
        for n, s in ((1, F3), (2, F4), (3, F5))
    ],
    *[
        (f"Conv{n}d", {"in_channels": 4, "out_channels": 6, "kernel_size": 3, **kw}, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for kw in ({}, {"stride": 2, "padding": 1, "groups": 2}, {"padding": 1, "padding_mode": "reflect"})
    ],
    (
        "Conv2d",
        {"in_channels": 4, "out_channels": 2, "kernel_size": (2, 3), "padding": "same", "padding_mode": "circular"},
        [F4],
    ),
    *[
        (f"ConvTranspose{n}d", {"in_channels": 4, "out_channels": 6, "kernel_size": 3, **kw}, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for kw in ({}, {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2})
    ],
    ("BatchNorm1d", {"num_features": 4}, [F2]),
    ("BatchNorm2d", {"num_features": 4}, [F4]),
    ("BatchNorm3d", {"num_features": 4, "momentum": None}, [F5]),
    ("SyncBatchNorm", {"num_features": 4}, [F4]),
    *[
        (f"InstanceNorm{n}d", {"num_features": 4, **kw}, [s])
        for n, s in ((1, F3), (2, F4), (3, F5))
        for kw in ({}, {"affine": True, "track_running_stats": True})
    ],
    ("InstanceNorm2d", {"num_features": 4}, [(4, 5, 6)]),
    ("LayerNorm", {"normalized_shape": 4}, [F2]),
    ("GroupNorm", {"num_groups": 2, "num_channels": 4}, [F4]),
    ("RMSNorm", {"normalized_shape": 4}, [F2]),
    ("LocalResponseNorm", {"size": 2}, [F3]),
    ("LocalResponseNorm", {"size": 3}, [F4]),
    ("Linear", {"in_features": 4, "out_features": 5}, [F2]),
    ("Bilinear", {"in1_features": 4, "in2_features": 3, "out_features": 2}, [(3, 4), (3, 3)]),
    ("Embedding", {"num_embeddings": 10, "embedding_dim": 3, "padding_idx": 1}, [("int", (2, 5), 10)]),
    ("Embedding", {"num_embeddings": 10, "embedding_dim": 3, "max_norm": 1.0}, [("int", (2, 5), 10)]),
    *[
        ("EmbeddingBag", {"num_embeddings": 10, "embedding_dim": 3, "mode": m, "padding_idx": p}, [("int", (3, 5), 10)])
        for m in ("sum", "mean", "max")
        for p in (None, 2)
    ],
    ("Fold", {"output_size": (4, 5), "kernel_size": 2, "padding": 1, "stride": 2}, [(2, 12, 9)]),
    ("Unfold", {"kernel_size": 2, "dilation": 2, "padding": 1, "stride": 2}, [F4]),
    ("PixelShuffle", {"upscale_factor": 2}, [F4]),
    ("PixelUnshuffle", {"downscale_factor": 2}, [(2, 3, 4, 6)]),
    ("ChannelShuffle", {"groups": 2}, [F4]),
    ("Flatten", {}, [F4]),
    *[
        ("Upsample", {"mode": m, **kw}, [s])
        for m, s in (
            ("nearest", F3),
            ("nearest", F4),
            ("nearest-exact", F4),
            ("nearest", F5),
            ("linear", F3),
            ("bilinear", F4),
            ("bicubic", F4),
            ("trilinear", F5),
        )
        for kw in ({"scale_factor": 2}, {"size": 5}, {"scale_factor": 0.6})
    ],
    *[
        ("Upsample", {"mode": m, "align_corners": True, "scale_factor": 1.7}, [s])
        for m, s in (("linear", F3), ("bilinear", F4), ("bicubic", F4), ("trilinear", F5))
    ],
    ("Dropout", {}, [F2]),
    ("Dropout1d", {}, [F3]),
    ("Dropout2d", {}, [F4]),
    ("Dropout3d", {}, [F5]),
    ("AlphaDropout", {}, [F2]),
    ("FeatureAlphaDropout", {}, [F4]),
    *[
        (n, {"input_size": 4, "hidden_size": 3, **kw}, [(5, 2, 4)])
        for n in ("RNN", "LSTM", "GRU")
        for kw in ({}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True})
    ],
    ("RNN", {"input_size": 4, "hidden_size": 3, "nonlinearity": "relu"}, [(5, 4)]),
    ("LSTM", {"input_size": 4, "hidden_size": 3, "proj_size": 2, "num_layers": 2, "bidirectional": True}, [(5, 2, 4)]),
    *[(f"{n}Cell", {"input_size": 4, "hidden_size": 3}, [(2, 4)]) for n in ("RNN", "LSTM", "GRU")],
    ("MultiheadAttention", {"embed_dim": 8, "num_heads": 2}, [(3, 2, 8), (5, 2, 8), (5, 2, 8)]),
    (
        "MultiheadAttention",
        {"embed_dim": 8, "num_heads": 2, "kdim": 4, "vdim": 6, "batch_first": True},
        [(2, 3, 8), (2, 5, 4), (2, 5, 6)],
    ),
    (
        "MultiheadAttention",
        {"embed_dim": 8, "num_heads": 2, "add_bias_kv": True, "add_zero_attn": True},
        [(3, 2, 8)] * 3,
    ),
    ("TransformerEncoderLayer", {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "dropout": 0.0}, [(3, 2, 8)]),
    (
        "TransformerEncoderLayer",
        {
            "d_model": 8,
            "nhead": 2,
            "dim_feedforward": 16,
            "dropout": 0.0,
            "norm_first": True,
            "activation": "gelu",
            "batch_first": True,
        },
        [(3, 2, 8)],
    ),
    (
        "TransformerDecoderLayer",
        {"d_model": 8, "nhead": 2, "dim_feedforward": 16, "dropout": 0.0},
        [(3, 2, 8), (5, 2, 8)],
    ),
    (
        "Transformer",
        {
            "d_model": 8,
            "nhead": 2,
            "num_encoder_layers": 1,
            "num_decoder_layers": 2,
            "dim_feedforward": 16,
            "dropout": 0.0,
        },
        [(3, 2, 8), (5, 2, 8)],
    ),
    *[
        (n, {"reduction": r}, [F2, F2])
        for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
        for r in ("mean", "none")
    ],
    ("CrossEntropyLoss", {"label_smoothing": 0.1}, [F2, ("int", (3,), 4)]),
    ("CrossEntropyLoss", {}, [F4, ("int", (2, 6, 7), 4)]),
    ("NLLLoss", {}, [F2, ("int", (3,), 4)]),
    ("NLLLoss", {}, [F4, ("int", (2, 6, 7), 4)]),
    ("BCELoss", {}, [("prob", F2), ("prob", F2)]),
    ("BCEWithLogitsLoss", {}, [F2, ("prob", F2)]),
    *[("KLDivLoss", {"reduction": r}, [F2, ("prob", F2)]) for r in ("mean", "batchmean", "sum", "none")],
    ("KLDivLoss", {"log_target": True, "reduction": "sum"}, [F2, F2]),
    ("PoissonNLLLoss", {"full": True}, [F2, ("prob", F2)]),
    ("PoissonNLLLoss", {"log_input": False}, [("prob", F2), ("prob", F2)]),
    ("GaussianNLLLoss", {"full": True}, [F2, F2, ("prob", F2)]),
    ("HingeEmbeddingLoss", {}, [F2, ("sign", F2)]),
    ("CosineEmbeddingLoss", {"margin": 0.2}, [F2, F2, ("sign", (3,))]),
    ("MarginRankingLoss", {"margin": 0.3}, [(5,), (5,), ("sign", (5,))]),
    ("SoftMarginLoss", {}, [F2, ("sign", F2)]),
    ("MultiLabelMarginLoss", {}, [F2, ("labels", F2)]),
    ("MultiLabelSoftMarginLoss", {}, [F2, ("prob", F2)]),
    *[("MultiMarginLoss", {"p": p}, [F2, ("int", (3,), 4)]) for p in (1, 2)],
    ("TripletMarginLoss", {"swap": True}, [F2, F2, F2]),
    ("TripletMarginWithDistanceLoss", {}, [F2, F2, F2]),
    ("PairwiseDistance", {}, [F2, F2]),
    ("CosineSimilarity", {}, [F2, F2]),
    (
        "CTCLoss",
        {"reduction": "sum"},
        [("logp", (6, 3, 5)), ("positive", (3, 2), 5), ("lengths", [6, 5, 6]), ("lengths", [2, 1, 2])],
    ),
    ("CTCLoss", {}, [("logp", (6, 3, 5)), ("positive", (3, 2), 5), ("lengths", [6, 5, 6]), ("lengths", [2, 1, 2])]),
    (
        "AdaptiveLogSoftmaxWithLoss",
        {"in_features": 8, "n_classes": 12, "cutoffs": [4, 8], "div_value": 2.0},
        [(3, 8), ("int", (3,), 12)],
    ),
    *[
        (f"Lazy{n}", kw, [s])
        for n, kw, s in (
            ("Linear", {"out_features": 3}, F2),
            ("Conv2d", {"out_channels": 3, "kernel_size": 2}, F4),
            ("ConvTranspose1d", {"out_channels": 3, "kernel_size": 2}, F3),
            ("BatchNorm2d", {}, F4),
            ("InstanceNorm1d", {}, F3),
        )
    ],
]


def _inputs(specs):
    rng = np.random.default_rng(3)
    out = []
    for s in specs:
        kind = s[0] if isinstance(s[0], str) else "float"
        shape = s[1] if kind != "float" else s
        if kind == "float":
            a = rng.standard_normal(shape).astype(np.float32)
        elif kind == "int":
            a = rng.integers(0, s[2], shape)
        elif kind == "positive":
            a = rng.integers(1, s[2], shape)
        elif kind == "lengths":
            a = np.array(shape)
        elif kind == "prob":
            a = rng.uniform(0.1, 0.9, shape).astype(np.float32)
        elif kind == "sign":
            a = np.sign(rng.standard_normal(shape)).astype(np.float32)
        elif kind == "labels":
            a = np.array([[0, 2, -1, 1], [3, -1, 0, 0], [1, 0, 3, -1]])
        elif kind == "logp":
            a = rng.standard_normal(shape).astype(np.float32)
            a = a - np.log(np.exp(a).sum(-1, keepdims=True))
        out.append((a, kind == "float" or (kind == "prob" and s is specs[0])))
    return out


def _flat(x):
    return [y for v in x for y in _flat(v)] if isinstance(x, (tuple, list)) else [] if x is None else [x]


def _run(lib, name, kwargs, inputs):
    """Parameters, outputs and gradients, as arrays."""
    nn = importlib.import_module(f"{lib.__name__}.nn")
    lib.manual_seed(0)
    module = getattr(nn, name)(**kwargs)
    tensors = [lib.tensor(a) for a, _ in inputs]
    for t, (_, differentiable) in zip(tensors, inputs):
        t.requires_grad_(differentiable)
    out = _flat(module(*tensors))
    total = sum((o * (k + 1)).sum() for k, o in enumerate(out) if o.is_floating_point() and o.requires_grad)
    if not isinstance(total, int):
        (total * 1.0).backward()
    result = {"repr": repr(module)}
    result |= {f"output {k}": o.detach().numpy() for k, o in enumerate(out)}
    result |= {f"grad of input {k}": t.grad.numpy() for k, t in enumerate(tensors) if t.grad is not None}
    result |= {f"parameter {k}": p.detach().numpy() for k, p in module.named_parameters()}
    result |= {f"grad of {k}": p.grad.numpy() for k, p in module.named_parameters() if p.grad is not None}
    result |= {f"buffer {k}": b.numpy() for k, b in module.named_buffers()}
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[0]}-{'-'.join(f'{k}={v}' for k, v in c[1].items())}")
def test_layer(case):
    name, kwargs, specs = case
    inputs = _inputs(specs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, got = _run(torch, name, kwargs, inputs), _run(flambeau, name, kwargs, inputs)
    assert list(got) == list(expected)
    for key, value in expected.items():
        if key != "repr":
            assert got[key].shape == value.shape and got[key].dtype == value.dtype, key
            np.testing.assert_allclose(got[key], value, rtol=2e-4, atol=3e-5, err_msg=key)


def _lengths(lib, nn):
    rnn = nn.utils.rnn
    lib.manual_seed(1)
    parts = [lib.randn(n, 3) for n in (2, 5, 3)]
    return rnn, parts


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences(kind, bidirectional):
    results = []
    for lib in (torch, flambeau):
        nn = importlib.import_module(f"{lib.__name__}.nn")
        importlib.import_module(f"{lib.__name__}.nn.utils.rnn")
        rnn, parts = _lengths(lib, nn)
        net = getattr(nn, kind)(3, 4, 2, bidirectional=bidirectional)
        packed = rnn.pack_sequence(parts, enforce_sorted=False)
        out, state = net(packed)
        padded, lengths = rnn.pad_packed_sequence(out, batch_first=True, padding_value=-1.0, total_length=6)
        (padded.sum() + sum(s.sum() for s in _flat(state))).backward()
        states = [s.detach().numpy() for s in _flat(state)]
        results.append(
            [
                packed.data.numpy(),
                packed.batch_sizes.numpy(),
                padded.detach().numpy(),
                lengths.numpy(),
                *states,
                *(p.grad.numpy() for p in net.parameters()),
            ]
        )
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-5)


FUNCTIONS = {
    "grid_sample": lambda F, x: [
        F.grid_sample(x[0], x[1].tanh() * 1.2, mode=m, padding_mode=p, align_corners=a)
        for m in ("bilinear", "nearest", "bicubic")
        for p in ("zeros", "border", "reflection")
        for a in (True, False)
    ],
    "affine_grid": lambda F, x: [F.affine_grid(x[2], (2, 3, 4, 5), align_corners=a) for a in (True, False)],
    "antialias": lambda F, x: [
        F.interpolate(x[0], size=(3, 4), mode=m, antialias=True) for m in ("bilinear", "bicubic")
    ],
    "area": lambda F, x: [F.interpolate(x[0], size=(3, 4), mode="area")],
    "unpool": lambda F, x: [F.max_unpool2d(*F.max_pool2d(x[0], 2, return_indices=True), 2, output_size=x[0].shape)],
    # Through log_softmax: PyTorch's derivative in the log-probabilities themselves has a term that the softmax takes away.
    "ctc": lambda F, x: [
        F.ctc_loss(
            x[0].reshape(6, 6, 7)[:, :2].log_softmax(-1),
            x[1].new_ones(2, 3).long() * t,
            (6, 5),
            (3, 2),
            zero_infinity=z,
        )
        for t in (1, 4)
        for z in (True, False)
    ],
    "pdist": lambda F, x: [F.pdist(x[0].reshape(6, -1)), F.pdist(x[0].reshape(6, -1), p=1)],
    "normalize": lambda F, x: [F.normalize(x[0], dim=1), F.normalize(x[0], p=1, dim=-1)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name):
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((2, 3, 6, 7), (2, 4, 5, 2), (2, 2, 3))]
    results = []
    for lib in (torch, flambeau):
        F = importlib.import_module(f"{lib.__name__}.nn.functional")
        x = [lib.tensor(a, requires_grad=True) for a in arrays]
        out = FUNCTIONS[name](F, x)
        sum((o * o).sum() for o in out).backward()
        results.append([o.detach().numpy() for o in out] + [t.grad.numpy() for t in x if t.grad is not None])
    assert len(results[0]) == len(results[1])
    for a, b in zip(*results):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=2e-4)
