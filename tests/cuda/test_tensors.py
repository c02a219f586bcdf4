"""Tensors of the simulated device: where they are made, what they print, how they move, and PyTorch's errors."""

import copy
import io
import pickle

import numpy as np
import pytest

import flambeau as torch


def test_makers():
    device = torch.device("cuda", 0)
    made = [
        torch.zeros(2, device="cuda"),
        torch.tensor([1, 2], device="cuda"),
        torch.empty(3, device=0),
        torch.ones(2).to("cuda"),
        torch.ones(2).cuda(),
        torch.ones(2, device="cuda").new_zeros(3),
        torch.zeros_like(torch.ones(2, device="cuda")),
        torch.as_tensor(np.ones(2), device="cuda"),
        torch.arange(3, device=torch.device("cuda")),
    ]
    with torch.device("cuda"):
        made += [torch.ones(2), torch.tensor(1.0), torch.randn(2), torch.nn.Linear(2, 2).weight]
        assert torch.get_default_device() == device
    assert all(t.device == device and t.is_cuda and not t.is_cpu and t.get_device() == 0 for t in made)
    assert torch.ones(2).device.type == "cpu" and torch.ones(2, device="cuda").cpu().device.type == "cpu"


def test_default_device():
    torch.set_default_device("cuda:1")
    try:
        assert str(torch.ones(2).device) == "cuda:1"
    finally:
        torch.set_default_device(None)


def test_moving_gives_the_same_tensor_where_nothing_changes():
    x = torch.ones(2, device="cuda")
    assert x.to("cuda") is x and x.cuda() is x and x.to(torch.device("cuda")) is x and x.to("cuda:1") is not x
    assert x.to(torch.float64).device == x.device and x.to("cpu", torch.int32).tolist() == [1, 1]
    assert x.to(torch.ones(1, dtype=torch.int64)).device.type == "cpu"


@pytest.mark.parametrize(
    "t, text",
    [
        (lambda: torch.tensor([1.0, 2.0], device="cuda"), "tensor([1., 2.], device='cuda:0')"),
        (lambda: torch.zeros(0, 2, device="cuda"), "tensor([], device='cuda:0', size=(0, 2))"),
        (
            lambda: torch.tensor([1], dtype=torch.int32, device="cuda"),
            "tensor([1], device='cuda:0', dtype=torch.int32)",
        ),
        (
            lambda: torch.ones(1, device="cuda", requires_grad=True) * 2,
            "tensor([2.], device='cuda:0', grad_fn=<MulBackward0>)",
        ),
        (lambda: torch.device("cuda"), "device(type='cuda')"),
    ],
)
def test_text(t, text):
    assert repr(t()) == text


ERRORS = [
    (lambda: torch.ones(2, device="cuda") + torch.ones(2), RuntimeError, "cuda:0 and cpu"),
    (lambda: torch.ones(2, 2) @ torch.ones(2, 2, device="cuda"), RuntimeError, "on the same device"),
    (lambda: torch.ones(2, device="cuda") + torch.ones(2, device="cuda:1"), RuntimeError, "cuda:0 and cuda:1"),
    (lambda: torch.cat([torch.ones(2, device="cuda"), torch.ones(2)]), RuntimeError, "on the same device"),
    (lambda: torch.ones(2, device="cuda").add_(torch.ones(2)), RuntimeError, "on the same device"),
    (lambda: torch.nn.Linear(2, 2)(torch.ones(1, 2, device="cuda")), RuntimeError, "on the same device"),
    (lambda: torch.ones(2, device="cuda").numpy(), TypeError, "can't convert cuda:0 device type tensor to numpy"),
    (lambda: np.asarray(torch.ones(2, device="cuda")), TypeError, "Use Tensor.cpu()"),
    (lambda: torch.ones(2, device="cuda:7"), RuntimeError, "invalid device ordinal"),
    (lambda: torch.empty(1 << 50, device="cuda"), torch.cuda.OutOfMemoryError, "CUDA out of memory"),
    (lambda: torch.ones(2, device="cuda").copy_(torch.ones(2, device="meta")), NotImplementedError, "no data"),
    (lambda: torch.ones(2).__cuda_array_interface__, AttributeError, "non-CUDA tensor"),
]


@pytest.mark.parametrize("run, error, words", ERRORS)
def test_errors(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_a_refused_write_changes_nothing():
    x = torch.ones(2, device="cuda")
    for other in (torch.ones(2), torch.ones(3, device="cuda")):
        with pytest.raises(RuntimeError):
            x.add_(other)
    assert x.tolist() == [1, 1] and x._version == 0


def test_tensors_without_dimensions_and_indices_may_be_on_the_cpu():
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert (x + torch.tensor(1.0)).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert x[torch.tensor([1])].tolist() == [[3, 4, 5]] and x[:, [0, 2]].tolist() == [[0, 2], [3, 5]]
    x[torch.tensor([True, False])] = 0
    assert x.tolist() == [[0, 0, 0], [3, 4, 5]]
    x.copy_(torch.ones(2, 3))
    host = torch.zeros(2, 3)
    host.copy_(x)
    assert host.tolist() == [[1, 1, 1]] * 2


def test_views_share_memory():
    x = torch.zeros(3, 4, device="cuda")
    row, column, flat = x[1], x.t()[2], x.view(-1)
    row.fill_(1)
    column.add_(5)
    flat[0] = 9
    assert x.tolist() == [[9, 0, 5, 0], [1, 1, 6, 1], [0, 0, 5, 0]]
    assert row._base is x and row.data_ptr() == x.data_ptr() + 16 and x._version == 3
    assert row.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    a, b = x[:2], x[1:]
    with pytest.raises(RuntimeError, match="single memory location"):
        a.add_(b)
    wide = x.view(torch.int32)
    wide.zero_()
    assert x.sum().item() == 0


def test_sizes_change_in_place():
    x = torch.arange(4.0, device="cuda")
    x.resize_(2, 3)
    assert x.flatten()[:4].tolist() == [0, 1, 2, 3] and x.shape == (2, 3)
    x.resize_(2)
    x.unsqueeze_(0).t_()
    assert x.tolist() == [[0], [1]]
    out = torch.empty(0, device="cuda")
    torch.add(torch.ones(3, device="cuda"), 1, out=out)
    assert out.tolist() == [2, 2, 2] and out.is_cuda
    x.set_(torch.ones(2, 2, device="cuda"))
    assert x.tolist() == [[1, 1], [1, 1]]
    x.set_(x.untyped_storage(), 1, (2,), (2,))
    assert x.tolist() == [1, 1]


def test_conjugated_views():
    z = torch.tensor([1 + 2j, 3 - 1j], device="cuda")
    c = z.conj()
    assert c.is_conj() and c.tolist() == [1 - 2j, 3 + 1j] and c.data_ptr() == z.data_ptr()
    c.mul_(2)
    assert z.tolist() == [2 + 4j, 6 - 2j] and (c + 1).is_cuda and torch.view_as_real(z)[0].tolist() == [2, 4]


def test_gradients():
    w = torch.arange(6.0, device="cuda").reshape(2, 3).requires_grad_()
    x = torch.ones(3, requires_grad=True)
    (w @ x.cuda()).pow(2).sum().backward()
    assert w.grad.is_cuda and x.grad.device.type == "cpu"
    expected = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = torch.ones(3, requires_grad=True)
    (expected @ y).pow(2).sum().backward()
    assert torch.equal(w.grad.cpu(), expected.grad) and torch.equal(x.grad, y.grad)
    (w[0] * 2).sum().backward()
    assert w.grad[0].tolist() == (expected.grad[0] + 2).tolist()
    v = torch.func.vmap(lambda r: r.sin().sum())(w.detach())
    assert torch.allclose(v.cpu(), expected.detach().sin().sum(1)) and v.is_cuda
    j = torch.func.jacrev(lambda t: t * t)(torch.ones(2, device="cuda"))
    assert j.is_cuda and j.tolist() == [[2, 0], [0, 2]]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        a = torch.ones(2, device="cuda", requires_grad=True)
        b = a.exp()
        b.add_(1)
        b.sum().backward()


def test_copies_and_pickles():
    base = torch.arange(6.0, device="cuda").reshape(2, 3)
    pair = {"a": base[1], "b": base}
    for made in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert made["a"].is_cuda and made["a"].tolist() == [3, 4, 5]
        made["a"].zero_()
        assert base[1].tolist() == [3, 4, 5]
    made = copy.deepcopy(pair)
    made["a"].zero_()
    assert made["b"][1].tolist() == [0, 0, 0]  # what shared memory shares it again


@pytest.mark.parametrize("zipped", [True, False])
def test_files(zipped):
    saved = {"w": torch.arange(3.0, device="cuda:1"), "c": torch.ones(2)}
    file = io.BytesIO()
    torch.save(saved, file, _use_new_zipfile_serialization=zipped)

    def load(where):
        file.seek(0)
        return torch.load(file, map_location=where)

    for where, device in (
        (None, "cuda:1"),
        ("cpu", "cpu"),
        ("cuda:0", "cuda:0"),
        ("cuda", "cuda:0"),
        ({"cuda:1": "cuda:0"}, "cuda:0"),
        (torch.device("cpu"), "cpu"),
        ("meta", "meta"),
    ):
        w = load(where)["w"]
        assert str(w.device) == device
        assert device == "meta" or w.tolist() == [0, 1, 2]
    assert load(lambda storage, place: storage.cuda(0))["w"].tolist() == [0, 1, 2] or not zipped
    with pytest.raises(RuntimeError, match="torch.cuda.device_count"):
        load("cuda:9")


def test_storages():
    x = torch.arange(4, dtype=torch.uint8, device="cuda")
    s = x.untyped_storage()
    assert s.is_cuda and str(s.device) == "cuda:0" and s.nbytes() == 4 and s.tolist() == [0, 1, 2, 3] and s[2] == 2
    s[0] = 9
    s.cpu()[1] = 7
    assert x.tolist() == [9, 1, 2, 3] and s.clone().tolist() == [9, 1, 2, 3]
    s.fill_(5)
    assert x.tolist() == [5] * 4 and s.cpu().device.type == "cpu" and x.storage().tolist() == [5] * 4
    i = x.__cuda_array_interface__
    assert i["data"][0] == x.data_ptr() and i["shape"] == (4,) and i["typestr"] == "|u1"


def test_modules_and_optimizers_follow_the_cpu():
    torch.manual_seed(0)
    plain = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(32, 3)
    )
    x = torch.randn(4, 1, 6, 6)
    moved = copy.deepcopy(plain)
    weight = moved[0].weight
    assert moved.cuda() is moved and moved[0].weight is weight and weight.is_cuda and moved[1].running_mean.is_cuda

    def train(model, x):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
        losses = []
        for _ in range(3):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([0, 1, 2, 0], device=x.device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    np.testing.assert_allclose(train(moved, x.cuda()), train(plain, x), rtol=1e-5)
    assert moved.to("cpu")[0].weight.device.type == "cpu" and moved[0].weight.grad.device.type == "cpu"
    empty = torch.nn.Linear(2, 2, device="meta").to_empty(device="cuda")
    assert empty.weight.is_cuda


def test_draws():
    torch.manual_seed(3)
    a = torch.rand(4, device="cuda")
    host = torch.rand(4)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(4), host)  # the device's draws leave the host's alone
    torch.cuda.manual_seed(3)
    assert torch.equal(torch.rand(4, device="cuda"), a)
    state = torch.cuda.get_rng_state()
    b = torch.randn(4, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.randn(4, device="cuda"), b)
    g = torch.Generator(device="cuda").manual_seed(5)
    c = torch.rand(2, device="cuda", generator=g)
    assert torch.equal(torch.rand(2, generator=torch.Generator().manual_seed(5)), c.cpu())
    torch.manual_seed(4)
    d = torch.nn.functional.dropout(torch.ones(64, device="cuda"))
    torch.manual_seed(4)
    assert torch.equal(torch.nn.functional.dropout(torch.ones(64, device="cuda")), d)
