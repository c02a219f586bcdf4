"""Memory formats: what makes them, what keeps them, what refuses them; plain, captured and compiled."""

import copy
import pickle

import pytest

import flambeau as torch
from flambeau.fake import FakeTensorMode

F = torch.nn.functional
LAST, LAST_3D = torch.channels_last, torch.channels_last_3d


def image(*shape):
    format = {4: LAST, 5: LAST_3D}[len(shape)]
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape).contiguous(memory_format=format)


def last(n, c, *rest):
    """Strides of (N, C, ...) with the channels innermost."""
    out, step = [], c
    for size in reversed(rest):
        out.append(step)
        step *= size
    return (step, 1, *reversed(out))


def test_formats_are_objects():
    assert repr(LAST) == "torch.channels_last" and isinstance(LAST, torch.memory_format)
    assert pickle.loads(pickle.dumps(LAST_3D)) is LAST_3D and copy.deepcopy(LAST) is LAST
    assert "MemoryFormat memory_format=contiguous_format" in str(torch.ops.aten.contiguous.default._schema)


MAKERS = {
    "contiguous": lambda x: x.contiguous(memory_format=LAST),
    "to": lambda x: x.to(memory_format=LAST),
    "to dtype": lambda x: x.to(torch.float64, memory_format=LAST),
    "clone": lambda x: x.clone(memory_format=LAST),
    "double": lambda x: x.double(memory_format=LAST),
    "empty": lambda x: torch.empty(x.shape, memory_format=LAST),
    "empty_like": lambda x: torch.empty_like(x, memory_format=LAST),
    "zeros_like": lambda x: torch.zeros_like(x, memory_format=LAST),
    "rand_like": lambda x: torch.rand_like(x, memory_format=LAST),
    "resize_": lambda x: torch.ones(1).resize_(2, 3, 4, 5, memory_format=LAST),
    "resize_as_": lambda x: torch.ones(1).resize_as_(image(2, 3, 4, 5), memory_format=torch.preserve_format),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers(name):
    made = MAKERS[name](torch.ones(2, 3, 4, 5))
    assert made.stride() == last(2, 3, 4, 5) and made.is_contiguous(memory_format=LAST) and not made.is_contiguous()


def test_what_has_a_format_already_is_not_copied():
    x = image(2, 3, 4, 5)
    assert x.contiguous(memory_format=LAST) is x and x.to(memory_format=LAST) is x
    assert x.to(memory_format=torch.preserve_format) is x
    assert x.contiguous().stride() == (60, 20, 5, 1)
    thin = torch.ones(2, 1, 4, 4)  # is in both orders, and looks row-major
    assert thin.contiguous(memory_format=LAST) is thin
    assert thin.to(memory_format=LAST).stride() == (16, 1, 4, 1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: torch.ones(2, 3).contiguous(memory_format=LAST),
        lambda: torch.ones(2, 3).to(memory_format=LAST),
        lambda: torch.ones(2, 3).clone(memory_format=LAST),
        lambda: torch.empty(2, 3, memory_format=LAST),
        lambda: torch.empty_like(torch.ones(2, 3, 4, 5, 6), memory_format=LAST),
        lambda: torch.nn.Conv3d(1, 1, 1).to(memory_format=LAST),
    ],
)
def test_wrong_rank(refused):
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        refused()


def test_other_refusals():
    assert not torch.ones(2, 3).is_contiguous(memory_format=LAST)
    with pytest.raises(RuntimeError, match="required rank 5 tensor to use channels_last_3d format"):
        torch.ones(2, 3, 4, 5).clone(memory_format=LAST_3D)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        torch.ones(2, 3).t().contiguous(memory_format=torch.preserve_format)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        torch.empty(2, memory_format=torch.preserve_format)
    with pytest.raises(TypeError, match="must be torch.memory_format, not str"):
        torch.ones(2).clone(memory_format="channels_last")
    with pytest.raises(TypeError, match="must be torch.memory_format, not str"):
        torch.ones(2).is_contiguous(memory_format="channels_last")


KEEPERS = {
    "add": lambda x: x + 1,
    "with a bias": lambda x: torch.ones(4, 1, 1) * x,
    "relu": F.relu,
    "clone": lambda x: x.clone(),
    "to": lambda x: x.double(),
    "like": torch.zeros_like,
    "compare": lambda x: x > 3,
    "conv2d": lambda x: F.conv2d(x, torch.ones(6, 4, 3, 3), torch.ones(6)),
    "conv2d by its weight": lambda x: F.conv2d(x.contiguous(), torch.ones(6, 4, 3, 3).to(memory_format=LAST)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, torch.ones(4, 3, 3, 3), stride=2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(4), torch.ones(4), torch.ones(4), torch.ones(4), True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(5, 5)),
    "pad": lambda x: F.pad(x, (1, 1, 2, 2)),
    "reflect": lambda x: F.pad(x, (1, 1, 2, 2), mode="reflect"),
    "cat": lambda x: torch.cat([x, x + 1], 1),
    "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
    "a part": lambda x: F.max_pool2d(x[:, :, ::2], 2),
}


def check(fn, x, strides):
    """``strides`` are those of plain, repeated, fake, captured and compiled calls."""
    for _ in range(3):
        want = fn(x)
        assert want.stride() == strides
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert fn(mode.from_tensor(x)).stride() == strides
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        got = torch.compile(fn, backend=backend)(x)
        assert got.stride() == strides, backend
        assert torch.allclose(got.double(), want.double(), atol=1e-4)


@pytest.mark.parametrize("name", KEEPERS)
def test_images_stay_as_they_lie(name):
    x = image(2, 4, 12, 10)
    check(KEEPERS[name], x, last(*KEEPERS[name](x).shape))


def test_volumes_stay_as_they_lie():
    x = image(2, 4, 4, 6, 8)
    for fn in (
        lambda x: x * 2,
        lambda x: F.conv3d(x, torch.ones(2, 4, 3, 3, 3)),
        lambda x: F.max_pool3d(x, 2),
        lambda x: F.interpolate(x, scale_factor=2),
    ):
        check(fn, x, last(*fn(x).shape))


ROW_MAJOR = {
    "softmax": lambda x: F.softmax(x, 1),
    "layer_norm": lambda x: F.layer_norm(x, x.shape[1:]),
    "instance_norm": lambda x: F.instance_norm(x),
    "mixed cat": lambda x: torch.cat([x, x.contiguous()], 1),
    "circular": lambda x: F.pad(x, (1, 1, 1, 1), mode="circular"),
    "sum": lambda x: x.sum(1, keepdim=True),
    "gather": lambda x: x.gather(1, torch.zeros(x.shape, dtype=torch.int64)),
    "repeat": lambda x: x.repeat(1, 2, 1, 1),
}


@pytest.mark.parametrize("name", ROW_MAJOR)
def test_what_is_row_major_always(name):
    x = image(2, 4, 12, 10)
    n, c, h, w = ROW_MAJOR[name](x).shape
    check(ROW_MAJOR[name], x, (c * h * w, h * w, w, 1))


def test_a_network_in_channels_last():
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(4, 2, 3),
    ).to(memory_format=LAST)
    weights = [p for p in net.parameters() if p.ndim == 4]
    assert all(p.is_contiguous(memory_format=LAST) for p in weights)
    x = torch.randn(2, 3, 12, 12)
    for fn in (net, torch.compile(net)):
        net.zero_grad()
        out = fn(x)
        assert out.stride() == last(2, 2, 3, 3)
        out.sum().backward()
        assert all(p.grad.stride() == p.stride() for p in weights)


def test_deepcopy_keeps_strides_and_shares_what_is_shared():
    x = image(2, 3, 4, 5)
    part = x[:, :, ::2]
    a, b = copy.deepcopy([x, part])
    assert a.stride() == x.stride() and b.stride() == part.stride() and torch.equal(b, part)
    a.zero_()
    assert not b.any()


# Strides of dimensions of size 1 and of tensors without elements: as PyTorch 2.13 gives them.
ODD = [
    (lambda: torch.ones(1, 4)[:, ::4].clone(), (4, 4)),
    (lambda: torch.ones(1, 4)[:, ::4] + 1, (1, 1)),
    (lambda: torch.ones(5, 1, 4)[:, :, :1].clone(), (1, 1, 1)),
    (lambda: torch.ones(2, 3, 4, 5).permute(3, 2, 1, 0)[:1].clone(), (1, 1, 4, 12)),
    (lambda: torch.ones(0, 4).t() + 1, (1, 4)),
    (lambda: torch.ones(2, 0, 4)[:, :, ::2].clone(), (4, 4, 2)),
    (lambda: torch.ones(2, 0, 4)[:, :, ::2] + 1, (2, 2, 1)),
    (lambda: torch.ones(2, 0, 4)[:, :, ::2].permute(2, 1, 0) + 1, (1, 2, 0)),
    (lambda: torch.ones(20, 5).t()[:1].abs(), (1, 1)),
    (lambda: torch.ones(3, 1, 5).expand(3, 0, 5), (5, 0, 1)),
]


@pytest.mark.parametrize("k", range(len(ODD)))
def test_strides_that_no_element_depends_on(k):
    make, strides = ODD[k]
    for _ in range(3):
        assert make().stride() == strides


MATRICES = {
    "inv": (lambda a, b: torch.linalg.inv(a), (16, 1, 4)),
    "cholesky": (lambda a, b: torch.linalg.cholesky(a), (16, 1, 4)),
    "qr": (lambda a, b: torch.linalg.qr(b)[0], (12, 1, 4)),
    "solve": (lambda a, b: torch.linalg.solve(a, b), (12, 1, 4)),
    "solve from the right": (lambda a, b: torch.linalg.solve(a, b.mT, left=False), (12, 4, 1)),
    "svd": (lambda a, b: torch.linalg.svd(b, full_matrices=False)[0], (12, 1, 4)),
    "eigh": (lambda a, b: torch.linalg.eigh(a)[1], (16, 1, 4)),
    "lu_factor": (lambda a, b: torch.linalg.lu_factor(a)[0], (16, 1, 4)),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_as_lapack_leaves_them(name):
    fn, strides = MATRICES[name]
    a = torch.eye(4).expand(2, 4, 4) * 2 + 0.1
    b = torch.randn(2, 4, 3)
    assert fn(a, b).stride() == strides
    assert torch.compile(fn)(a, b).stride() == strides


@pytest.mark.parametrize("last", [True, False])
def test_one_volume_is_pooled_in_its_format(last):
    format = torch.channels_last_3d if last else torch.contiguous_format
    x = torch.randn(1, 3, 4, 4, 4).contiguous(memory_format=format)[0]
    want, places = torch.nn.functional.max_pool3d(x.contiguous(), 2, return_indices=True)
    for pool in (torch.nn.functional.max_pool3d, torch.compile(torch.nn.functional.max_pool3d)):
        got, at = pool(x, 2, return_indices=True)
        assert torch.equal(got, want) and torch.equal(at, places) and torch.equal(pool(x, 2), want)
        for t in (got, at, pool(x, 2)):
            assert t.stride() == ((1, 12, 6, 3) if last else (8, 4, 2, 1))
