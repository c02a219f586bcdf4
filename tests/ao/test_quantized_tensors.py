"""Quantised tensors: codes by NumPy's arithmetic, operators by class, refusals, copies and files; beside PyTorch where it is installed."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch

RANGES = {torch.quint8: (0, 255), torch.qint8: (-128, 127), torch.qint32: (-(2**31), 2**31 - 1)}
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def whole(x=X, scale=0.1, zero_point=3, dtype=torch.quint8):
    return torch.quantize_per_tensor(torch.tensor(x), scale, zero_point, dtype)


def by_channel():
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 1, 2])
    return torch.quantize_per_channel(torch.tensor(X), scales, zeros, 0, torch.qint8)


@pytest.mark.parametrize("dtype", RANGES, ids=str)
def test_codes_are_those_of_the_formula(dtype):
    x = np.concatenate([X.ravel(), [-1e9, 1e9, 0, 0.05, 0.15]]).astype(np.float32)
    q = whole(x, dtype=dtype)
    low, high = RANGES[dtype]
    wanted = np.clip(np.rint(np.float32(3) + x * (np.float32(1) / np.float32(0.1))).astype(np.float64), low, high)
    np.testing.assert_array_equal(q.int_repr().numpy(), wanted)
    np.testing.assert_array_equal(q.dequantize().numpy(), (wanted - 3).astype(np.float32) * np.float32(0.1))
    assert (q.q_scale(), q.q_zero_point(), q.qscheme()) == (0.1, 3, torch.per_tensor_affine)
    assert q.is_quantized and q.dtype is dtype and q.element_size() == dtype.itemsize


def test_channels_have_their_own():
    q = by_channel()
    for row, scale, zero in zip(range(3), (0.1, 0.2, 0.3), (0, 1, 2)):
        codes = np.clip(np.rint(X[row] / np.float32(scale)) + zero, -128, 127)
        np.testing.assert_array_equal(q.int_repr()[row].numpy(), codes)
    assert q.q_per_channel_axis() == 0 and q.qscheme() is torch.per_channel_affine
    assert q.q_per_channel_scales().dtype is torch.float64 and q.q_per_channel_zero_points().tolist() == [0, 1, 2]


VIEWS = {
    "transpose": lambda q: q.t(),
    "reshape": lambda q: q.reshape(2, 6),
    "select": lambda q: q[1],
    "slice": lambda q: q[:, 1:3],
    "unsqueeze": lambda q: q.unsqueeze(0),
    "expand": lambda q: q.unsqueeze(0).expand(2, 3, 4),
    "flatten": torch.flatten,
}
MOVED = {
    "clone": torch.clone,
    "contiguous": lambda q: q.t().contiguous(),
    "index_select": lambda q: q.index_select(0, torch.tensor([2, 0])),
    "cat": lambda q: torch.cat([q, q]),
    "stack": lambda q: torch.stack([q, q]),
    "flip": lambda q: q.flip(0),
    "max": torch.max,
    "sort": lambda q: q.sort()[0],
    "topk": lambda q: q.topk(2)[0],
    "max_pool": lambda q: torch.nn.functional.max_pool2d(q[None, None], 2),
    "nearest": lambda q: torch.nn.functional.interpolate(q[None, None], scale_factor=2),
}


@pytest.mark.parametrize("name", [*VIEWS, *MOVED])
def test_moving_elements_moves_codes(name):
    f, q = {**VIEWS, **MOVED}[name], whole()
    made = f(q)
    np.testing.assert_array_equal(made.dequantize().numpy(), f(q.dequantize()).numpy())
    assert made.q_scale() == q.q_scale() and made.dtype is q.dtype and made.stride() == f(q.int_repr().float()).stride()


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_its_codes(name):
    q = whole()
    VIEWS[name](q).fill_(1.0)
    assert (q.dequantize() == 1.0).any()


COMPUTED = {
    "relu": torch.relu,
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "hardtanh": lambda x: torch.nn.functional.hardtanh(x, -0.3, 0.3),
    "leaky_relu": torch.nn.functional.leaky_relu,
    "mean": torch.mean,
    "avg_pool2d": lambda x: torch.nn.functional.avg_pool2d(x[None, None], 2),
    "adaptive_avg_pool2d": lambda x: torch.nn.functional.adaptive_avg_pool2d(x[None, None], 1),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_values_are_computed_and_quantised_again(name):
    q, f = whole(), COMPUTED[name]
    wanted = torch.quantize_per_tensor(f(q.dequantize()), q.q_scale(), q.q_zero_point(), q.dtype)
    assert torch.equal(f(q), wanted)


@pytest.mark.parametrize("n", [2, 3])
def test_adaptive_averages_are_rounded_once(n):
    """Not in each dimension: PyTorch's codes."""
    f = getattr(torch.nn.functional, f"adaptive_avg_pool{n}d")
    x = np.random.default_rng(0).standard_normal((2, 4, *[8] * n)).astype(np.float32)
    q = whole(x, scale=0.05, zero_point=20)
    wanted = torch.quantize_per_tensor(f(q.dequantize(), (3, 5, 2)[:n]), 0.05, 20, torch.quint8)
    assert torch.equal(f(q, (3, 5, 2)[:n]), wanted)


@pytest.mark.parametrize(
    "f, scale, zero", [(torch.sigmoid, 1 / 256, 0), (torch.tanh, 1 / 128, 128)], ids=["sigmoid", "tanh"]
)
def test_bounded_functions_have_a_scale_of_their_own(f, scale, zero):
    made = f(whole())
    assert (made.q_scale(), made.q_zero_point()) == (scale, zero)
    np.testing.assert_allclose(made.dequantize().numpy(), f(whole().dequantize()).numpy(), atol=scale / 2 + 1e-6)


def test_comparisons_are_of_values():
    q = whole()
    assert (q > 0).tolist() == (q.dequantize() > 0).tolist()
    assert (q == q).all() and torch.equal(q, q) and not torch.equal(q, whole(scale=0.2))


def test_writes():
    q = whole()
    q.copy_(torch.zeros(3, 4))
    assert not q.dequantize().any()
    other = whole(scale=0.5)
    q.copy_(other)
    assert torch.equal(q, other)
    assert torch.equal(torch.relu_(whole()), torch.relu(whole()))


REFUSED = [
    (lambda: whole() + whole(), NotImplementedError, "aten::add.Tensor.*QuantizedCPU"),
    (lambda: whole().sum(), NotImplementedError, "aten::sum.*QuantizedCPU"),
    (lambda: torch.zeros(3).int_repr(), NotImplementedError, "aten::int_repr.*CPU"),
    (lambda: by_channel().q_scale(), RuntimeError, "kPerTensorAffine"),
    (lambda: whole().q_per_channel_scales(), RuntimeError, "kPerChannelAffine"),
    (lambda: by_channel().t(), RuntimeError, "uniformly quantized"),
    (lambda: whole(zero_point=300), RuntimeError, "zero_point 300 is above upper bound"),
    (lambda: whole(dtype=torch.float32), RuntimeError, "Float"),
    (
        lambda: torch.quantize_per_tensor(torch.zeros(3, dtype=torch.float64), 0.1, 0, torch.qint8),
        RuntimeError,
        "only works on Float",
    ),
    (lambda: whole().numpy(), TypeError, "unsupported ScalarType QUInt8"),
    (lambda: torch.zeros(3, 4).copy_(whole()), RuntimeError, "dequantize"),
    (lambda: torch.zeros(3).qscheme(), RuntimeError, "quantised"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals_name_the_fault(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("make", [whole, by_channel, lambda: whole().t()], ids=["whole", "by channel", "transposed"])
@pytest.mark.parametrize("zipped", [True, False])
def test_copies_pickles_and_files(make, zipped):
    q, file = make(), io.BytesIO()
    torch.save({"q": q}, file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    for again in (copy.copy(q), copy.deepcopy(q), pickle.loads(pickle.dumps(q)), torch.load(file)["q"]):
        assert torch.equal(again, q) and again.stride() == q.stride()


def test_a_file_that_says_nonsense_is_refused():
    q = whole()
    function, args = q.__reduce_ex__(2)
    for wrong in (
        (torch.per_tensor_affine, "0.1", 3),
        (torch.per_tensor_affine, 0.1, 300),
        (torch.per_channel_affine, 0.1, 3),
    ):
        with pytest.raises(RuntimeError, match="invalid checkpoint"):
            function(*args[:4], wrong, *args[5:])


def test_compiled_functions_may_use_them():
    def f(x):
        return torch.quantize_per_tensor(x * 2, 0.1, 3, torch.quint8).dequantize() + 1

    x = torch.tensor(X)
    for backend in ("eager", "aot_eager", "inductor"):
        assert torch.equal(torch.compile(f, backend=backend)(x), f(x))


# (what makes a view of codes of (3, 1, 4), strides of its values)
SHARED_CODES = {
    "expanded": (lambda q: q.expand(3, 5, 4), (20, 4, 1)),
    "expanded in front": (lambda q: q.expand(2, 3, 1, 4), (12, 4, 4, 1)),
    "expanded and transposed": (lambda q: q.expand(3, 5, 4).transpose(0, 1), (12, 4, 1)),
    "transposed": (lambda q: q.transpose(0, 2), (3, 3, 1)),
    "channels last": (lambda q: q.expand(3, 5, 4)[None].contiguous(memory_format=torch.channels_last), (60, 1, 12, 3)),
}


@pytest.mark.parametrize("view", SHARED_CODES)
def test_values_are_dense_in_the_format_of_the_codes(view):
    """As PyTorch 2.13 lays them out, eager and compiled."""
    make, strides = SHARED_CODES[view]

    def f(x):
        return make(torch.quantize_per_tensor(x, 0.1, 3, torch.quint8)).dequantize()

    x = torch.arange(12.0).view(3, 1, 4)
    for run in (f, torch.compile(f, backend="aot_eager", fullgraph=True)):
        found = run(x)
        assert found.stride() == strides
        assert torch.equal(found, make(x))


FAKE = {
    "whole": lambda lib, x: lib.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 20),
    "tensors": lambda lib, x: lib.fake_quantize_per_tensor_affine(x, lib.tensor([0.1]), lib.tensor([3]), 0, 20),
    "channels": lambda lib, x: lib.fake_quantize_per_channel_affine(
        x, lib.tensor([0.1, 0.2, 0.3]), lib.tensor([0, 1, 2], dtype=lib.int32), 0, -8, 7
    ),
}


@pytest.mark.parametrize("name", FAKE)
def test_fake_quantisation_passes_gradients_inside_the_range(name):
    results = []
    for f in (FAKE[name], *(torch.compile(FAKE[name], fullgraph=True, backend=b) for b in ("aot_eager", "inductor"))):
        x = torch.tensor(X, requires_grad=True)
        made = f(torch, x)
        made.backward(torch.ones_like(made) * 2)
        results.append((made.detach(), x.grad))
    for made, grad in results[1:]:
        assert torch.equal(made, results[0][0]) and torch.equal(grad, results[0][1])
    made, grad = results[0]
    assert set(grad.unique().tolist()) <= {0.0, 2.0} and (grad == 0).any()


# ---- beside PyTorch ----------------------------------------------------------------------------------------------------------


def operations(lib):
    """{name: a quantised tensor or plain one} by either library."""
    rng = np.random.default_rng(1)
    draw = lambda *shape: lib.tensor(rng.standard_normal(shape).astype(np.float32))  # noqa: E731
    a, b = (
        lib.quantize_per_tensor(draw(400), 0.03, 100, lib.quint8),
        lib.quantize_per_tensor(draw(400), 0.02, 120, lib.quint8),
    )
    q = lib.ops.quantized
    found = {"add": q.add(a, b, 0.04, 110), "add_relu": q.add_relu(a, b, 0.04, 110), "mul": q.mul(a, b, 0.04, 110)}
    for number in (0.5, -2.0, 3.0):
        found[f"add {number}"], found[f"mul {number}"] = q.add_scalar(a, number), q.mul_scalar(a, number)
    found |= {"hardswish": q.hardswish(a, 0.1, 3), "elu": q.elu(a, 0.1, 30), "celu": q.celu(a, 0.1, 30, 2.0)}
    found["softmax"] = q.softmax(a.reshape(4, 100), 1, 1 / 256, 0)
    for dtype in (lib.qint8, lib.quint8):
        found[f"dynamic {dtype}"] = lib.quantize_per_tensor_dynamic(draw(50), dtype, False)
    found["sigmoid"], found["tanh"], found["mean"] = lib.sigmoid(a), lib.tanh(a), a.mean()
    return found


# PyTorch warns of its own typed storages, and that quantised tensors may leave it.
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:.*quantized tensor creation functions")
@pytest.mark.parity
def test_codes_are_pytorchs():
    theirs = pytest.importorskip("torch")
    wanted = operations(theirs)
    for name, made in operations(torch).items():
        assert (made.q_scale(), made.q_zero_point()) == (wanted[name].q_scale(), wanted[name].q_zero_point()), name
        # The ends of PyTorch's loops, which are not vectors, round ties in another way.
        away = np.abs(made.int_repr().numpy().astype(int) - wanted[name].int_repr().numpy())
        assert away.max() <= 1 and away.mean() < 0.02, name


# PyTorch warns of its own typed storages, and that quantised tensors may leave it.
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated", "ignore:.*quantized tensor creation functions")
@pytest.mark.parity
def test_files_are_pytorchs():
    theirs = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save([whole(), by_channel()], file)
    file.seek(0)
    read = theirs.load(file)
    for mine, other in zip((whole(), by_channel()), read):
        np.testing.assert_array_equal(mine.int_repr().numpy(), other.int_repr().numpy())
    file = io.BytesIO()
    theirs.save(read, file)
    file.seek(0)
    assert all(map(torch.equal, torch.load(file), (whole(), by_channel())))
