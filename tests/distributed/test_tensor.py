"""DTensor: every operator on every placement of its arguments against the plain call, forward and gradient. Ranks are threads."""

import copy
import itertools
import logging

import pytest

import flambeau as torch
import flambeau.distributed as dist
import flambeau.nn.functional as F
from flambeau import nn
from flambeau.distributed import threads
from flambeau.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    full,
    init_device_mesh,
    ones,
    rand,
    randn,
    zeros,
)
from flambeau.distributed.tensor.local_map import local_map

torch.manual_seed(0)
A, B, V = torch.randn(8, 6), torch.randn(6, 4), torch.randn(6)
Q = torch.randn(2, 4, 6, 8)
ROWS, LABELS, PLACES = torch.tensor([[1, 2], [3, 0], [5, 5], [7, 1]]), torch.arange(8) % 6, torch.randint(0, 6, (8, 3))
IMAGES, FILTERS = torch.randn(4, 2, 5, 5), torch.randn(3, 2, 2, 2)

# name: (function, arguments, integer arguments that lie along their first dimension)
CASES = {
    "add": (lambda a: a + a * 2, [A]),
    "broadcast": (lambda a, v: (a * v).exp(), [A, V]),
    "where": (lambda a: torch.where(a > 0, a, 0.1 * a), [A]),
    "clone": (lambda a: a.clone().add_(1).mul_(a), [A]),
    "masked_fill": (lambda a: a.masked_fill(a > 0, 2.0), [A]),
    "mm": (lambda a, b: a @ b, [A, B]),
    "linear": (lambda a, b, c: F.linear(a, b, c), [A, B.t().contiguous(), V[:4].clone()]),
    "bmm": (lambda q: q @ q.transpose(-1, -2), [Q]),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ki", a, b), [A, B]),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q * 2, q.sin(), is_causal=True), [Q]),
    "masked attention": (lambda q: F.scaled_dot_product_attention(q, q, q, torch_mask(q)), [Q]),
    "convolution": (lambda x, w: F.conv2d(x, w), [IMAGES, FILTERS]),
    "sum": (lambda a: a.sum() + a.sum(0).mean(), [A]),
    "mean": (lambda a: a.mean(1, keepdim=True) + a.mean(), [A]),
    "extremes": (lambda a: a.amax(0) + a.max(0)[0] - a.min(), [A]),
    "moments": (lambda a: a.var(0) + a.norm() + a.prod(0), [A]),
    "logsumexp": (lambda a: a.logsumexp(1) + a.logsumexp(0).sum(), [A]),
    "softmax": (lambda a: a.softmax(1) + a.log_softmax(0), [A]),
    "layer_norm": (lambda a, v: F.layer_norm(a, (6,), v, v), [A, V]),
    "group_norm": (lambda x: F.group_norm(x, 2), [IMAGES]),
    "activations": (lambda a: F.gelu(a) * F.silu(a).tanh(), [A]),
    "view": (lambda a: a.view(2, 4, 6).view(8, 2, 3), [A]),
    "transposed": (lambda a: a.t().reshape(-1) + a.reshape(-1), [A]),
    "slice": (lambda a: a[:, 1:3] + a[2:3, :2] + a[1, 0], [A]),
    "split": (lambda a: sum(a.chunk(3, 1)) + a.unbind(1)[0][:, None], [A]),
    "cat": (lambda a: torch.cat([a, a * 2], 1) + torch.stack([a, a], 1).flatten(1), [A]),
    "scans": (lambda a: a.cumsum(0) + a.cumsum(1) + a.sort(1)[0], [A]),
    "moves": (lambda a: a.roll(1, 0).flip(1).tril() + F.pad(a, (1, 1))[:, 1:-1], [A]),
    "embedding": (lambda w, i: F.embedding(i, w), [A], [ROWS]),
    "gather": (lambda a, i: a.gather(1, i), [A], [PLACES]),
    "cross_entropy": (lambda a, i: F.cross_entropy(a, i) + F.nll_loss(a, i, reduction="none").sum(), [A], [LABELS]),
    "resized": (lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), [IMAGES]),
    "composites": (
        lambda a: F.adaptive_max_pool1d(a, 3) + torch.mvlgamma(a.abs() + 3, 2)[:, :3] + F.pdist(a).sum(),
        [A],
    ),
    "no rule": (lambda a: torch.linalg.svdvals(a), [A]),
    "memory": (lambda a: (a * 2).t().as_strided((3, 4), (2, 1), 1) + a.as_strided((4,), (6,), 2), [A]),
}


def torch_mask(q):
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    return distribute_tensor(mask, q.device_mesh) if isinstance(q, DTensor) else mask


def weights(y):
    return torch.arange(y.numel()).view(y.shape).float().div(y.numel())


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_operators(name, ranks):
    fn, args, *indices = CASES[name]
    indices = indices[0] if indices else []
    plain = [a.clone().requires_grad_() for a in args]
    y = fn(*plain, *indices)
    (y * weights(y)).sum().backward()

    def run(rank):
        mesh = init_device_mesh("cpu", (ranks,))
        placed = [distribute_tensor(i, mesh, [Shard(0)]) for i in indices]
        for choice in itertools.product(*([Replicate(), *map(Shard, range(a.dim()))] for a in args)):
            given = [nn.Parameter(distribute_tensor(a, mesh, [p])) for a, p in zip(args, choice)]
            z = fn(*given, *placed)
            assert isinstance(z, DTensor) and z.shape == y.shape
            torch.testing.assert_close(z.full_tensor(), y.detach(), atol=1e-5, rtol=1e-5)
            (z * distribute_tensor(weights(y), mesh)).sum().full_tensor().backward()
            for got, want in zip(given, plain):
                torch.testing.assert_close(got.grad.full_tensor(), want.grad, atol=1e-4, rtol=1e-4)

    threads.spawn(run, ranks)


# Where the parts stay where they are: (function, placements of the arguments, placement of the result). No collective may run.
STAYS = {
    "mm rows": (lambda a, b: a @ b, [A, B], [Shard(0), Replicate()], Shard(0)),
    "mm columns": (lambda a, b: a @ b, [A, B], [Replicate(), Shard(1)], Shard(1)),
    "mm inner": (lambda a, b: a @ b, [A, B], [Shard(1), Shard(0)], Partial()),
    "sum of summands": (lambda a, b: (a @ b).sum(0) * 2, [A, B], [Shard(1), Shard(0)], Partial()),
    "mean": (lambda a: a.mean(), [A], [Shard(0)], Partial()),
    "softmax": (lambda a: a.softmax(1), [A], [Shard(0)], Shard(0)),
    "norm": (lambda a: F.layer_norm(a, (6,)), [A], [Shard(0)], Shard(0)),
    "attention": (lambda q: F.scaled_dot_product_attention(q, q, q), [Q], [Shard(1)], Shard(1)),
    "heads": (lambda a: a.view(8, 2, 3).transpose(0, 1), [A], [Shard(1)], Shard(0)),
    "embedding": (lambda w, i: F.embedding(i, w), [A, ROWS], [Replicate(), Shard(0)], Shard(0)),
    "embedding rows": (lambda w, i: F.embedding(i, w), [A, ROWS], [Shard(0), Replicate()], Partial()),
    "embedding columns": (lambda w, i: F.embedding(i, w), [A, ROWS], [Shard(1), Replicate()], Shard(2)),
    "zeros_like": (lambda a: torch.zeros_like(a), [A], [Shard(1)], Shard(1)),
}


@pytest.mark.parametrize("name", STAYS)
def test_nothing_is_moved(name, monkeypatch):
    fn, args, placements, wanted = STAYS[name]

    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        given = [distribute_tensor(a, mesh, [p]) for a, p in zip(args, placements)]
        submit = dist.group.WORLD.submit

        def refuse(*args):
            raise AssertionError("a collective ran")

        dist.group.WORLD.submit = refuse
        try:
            out = fn(*given)
        finally:
            dist.group.WORLD.submit = submit
        assert out.placements == (wanted,)
        torch.testing.assert_close(out.full_tensor(), fn(*args))

    threads.spawn(run, 2)


@pytest.mark.parametrize("shape", [(2, 2), (4,)])
@pytest.mark.parametrize("size", [(8, 4), (5, 3), (2, 1)])
def test_redistribute_between_all_placements(shape, size):
    x = torch.randn(size)
    kinds = [Replicate(), Shard(0), Shard(1)]

    def run(rank):
        mesh = init_device_mesh("cpu", shape)
        for before in itertools.product([*kinds, Partial(), Partial("max")], repeat=len(shape)):
            scale = 1
            for i, p in enumerate(before):
                scale *= mesh.size(i) if p.is_partial("sum") else 1
            whole = distribute_tensor(x, mesh, [Replicate() if p.is_partial() else p for p in before])
            t = DTensor.from_local(whole.to_local(), mesh, before, shape=x.shape)
            for after in itertools.product(kinds, repeat=len(shape)):
                moved = t.redistribute(placements=after)
                assert moved.placements == after
                torch.testing.assert_close(moved.full_tensor(), x * scale)

    threads.spawn(run, 4)


def test_two_dimensions_of_a_mesh():
    w, x = torch.randn(8, 8), torch.randn(4, 8)
    y = torch.nn.functional.gelu(x @ w.t()) @ w

    def run(rank):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        rows = distribute_tensor(x, mesh, [Shard(0), Replicate()])
        up, down = (nn.Parameter(distribute_tensor(w, mesh, [Replicate(), Shard(0)])) for _ in range(2))
        z = F.gelu(rows @ up.t()) @ down
        assert z.placements == (Shard(0), Partial())
        torch.testing.assert_close(z.full_tensor().detach(), y)
        z.sum().backward()
        assert up.grad.placements == (Partial(), Shard(0))
        assert mesh["tp"].get_group() is mesh.get_group("tp")

    threads.spawn(run, 4)


def test_local_tensors_and_their_gradients():
    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = (torch.arange(4.0) + 4 * rank).requires_grad_()
        whole = DTensor.from_local(x, mesh, [Shard(0)])
        assert whole.shape == (8,) and repr(whole).startswith("DTensor(local_tensor=")
        (whole * distribute_tensor(torch.arange(8.0), mesh, [Shard(0)])).full_tensor().sum().backward()
        assert x.grad.tolist() == [4.0 * rank + k for k in range(4)]
        summand = torch.ones(3, requires_grad=True)
        total = DTensor.from_local(summand, mesh, [Partial()])
        assert total.redistribute(placements=[Replicate()]).to_local().tolist() == [2.0] * 3
        (total * 2).redistribute(placements=[Shard(0)]).to_local().sum().backward()
        assert summand.grad.tolist() == [2.0] * 3
        assert copy.deepcopy(nn.Parameter(whole.detach())).placements == (Shard(0),)

    threads.spawn(run, 2)


def test_writes_in_place():
    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        x = distribute_tensor(A, mesh, [Shard(0)])
        assert x.add_(distribute_tensor(V, mesh)) is x
        x[:, 1:3].mul_(2)
        x.view(4, 2, 6)[:, :, 0].zero_()
        want = A + V
        want[:, 1:3] *= 2
        want[:, 0] = 0
        torch.testing.assert_close(x.full_tensor(), want)
        x.copy_(distribute_tensor(A, mesh, [Shard(1)]))
        torch.testing.assert_close(x.full_tensor(), A)
        out = zeros(8, 6, device_mesh=mesh, placements=[Shard(1)])
        torch.add(x, x, out=out)
        torch.testing.assert_close(out.full_tensor(), 2 * A)
        with pytest.raises(RuntimeError, match="had to be copied"):
            x[2:5].add_(1)
        with pytest.raises(RuntimeError, match="plain torch.Tensor"):
            torch.zeros(()).add_(x.sum())
        assert x.t_() is x and x.placements == (Shard(1),)
        torch.testing.assert_close(x.full_tensor(), A.t())
        with pytest.raises(RuntimeError, match="resize"):
            x.resize_(2, 2)

    threads.spawn(run, 2)


def test_plain_tensors_that_all_ranks_have():
    def run(rank):
        x = distribute_tensor(A, init_device_mesh("cpu", (2,)), [Shard(0)])
        torch.testing.assert_close((x + A).full_tensor(), 2 * A)
        assert (x * V).placements == (Shard(0),)
        sizes = distribute_tensor(torch.tensor([2, 5]), x.device_mesh)
        assert [p.shape[0] for p in x.tensor_split(sizes)] == [2, 3, 3]
        up = F.interpolate(distribute_tensor(IMAGES, x.device_mesh, [Shard(0)]), scale_factor=2)
        torch.testing.assert_close(up.full_tensor(), F.interpolate(IMAGES, scale_factor=2))

    threads.spawn(run, 2)


def test_writes_through_views_have_gradients():
    def f(x):
        y = x * 1
        y[:, 1:3].mul_(2)
        y.t()[0].zero_()
        return (y * y).sum()

    want = A.clone().requires_grad_()
    f(want).backward()

    def run(rank):
        for placement in (Replicate(), Shard(0)):
            x = distribute_tensor(A, init_device_mesh("cpu", (2,)), [placement]).requires_grad_()
            f(x).backward()
            torch.testing.assert_close(x.grad.full_tensor(), want.grad)

    threads.spawn(run, 2)


def test_random_numbers_are_those_of_the_first_rank():
    def run(rank):
        torch.manual_seed(5 + rank)
        mesh = init_device_mesh("cpu", (2,))
        made = randn(6, 4, device_mesh=mesh, placements=[Shard(0)]), rand(5, device_mesh=mesh)
        dropped = F.dropout(ones(4, 4, device_mesh=mesh, placements=[Shard(1)]), 0.5)
        return [t.full_tensor() for t in (*made, dropped)]

    one, two = threads.spawn(run, 2)
    for a, b in zip(one, two):
        assert torch.equal(a, b)
    assert 0 < one[2].sum() < 32 and one[0].std() > 0.3


def test_factories_and_modules():
    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        assert full((3, 2), 7.0, device_mesh=mesh, placements=[Shard(0)]).full_tensor().tolist() == [[7.0] * 2] * 3
        m = nn.Linear(6, 3)

        def cut(name, part, mesh):
            if isinstance(part, nn.Linear):
                part.weight = nn.Parameter(distribute_tensor(part.weight.detach(), mesh, [Shard(0)]))

        want = m(A)
        distribute_module(m, mesh, cut, lambda m, x, mesh: (distribute_tensor(x[0], mesh),), lambda m, y, mesh: y)
        assert m.bias.placements == (Replicate(),)
        torch.manual_seed(rank)  # parameters were those of rank 0
        got = m(A).full_tensor()
        if rank == 0:
            torch.testing.assert_close(got, want)

    threads.spawn(run, 2)


ERRORS = {
    "mixed": (lambda x, mesh: x + (A + dist.get_rank()), RuntimeError, "got mixed torch.Tensor and DTensor"),
    "mixed gradients": (lambda x, mesh: x + A.clone().requires_grad_(), RuntimeError, "got mixed torch.Tensor"),
    "placements": (lambda x, mesh: distribute_tensor(A, mesh, [Shard(0)] * 2), ValueError, "same length"),
    "dimension": (lambda x, mesh: distribute_tensor(A, mesh, [Shard(2)]), IndexError, "2 dimensions"),
    "to summands": (lambda x, mesh: x.redistribute(placements=[Partial()]), RuntimeError, "internal use"),
    "history": (lambda x, mesh: distribute_tensor(A.clone().requires_grad_() * 2, mesh), RuntimeError, "non-leaf"),
    "part": (lambda x, mesh: DTensor.from_local(A, mesh, [Shard(0)], shape=(8, 6)), ValueError, "isn't this rank's"),
    "pickle": (lambda x, mesh: copy.copy(x).__reduce_ex__(2), TypeError, "can't be pickled"),
    "shapes": (lambda x, mesh: x + x.t(), RuntimeError, "must match the size"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    fn, kind, text = ERRORS[name]

    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        with pytest.raises(kind, match=text):
            fn(distribute_tensor(A, mesh, [Shard(0)]), mesh)

    threads.spawn(run, 2)


def test_what_has_no_rule_says_so(caplog):
    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        torch.linalg.svdvals(distribute_tensor(A, mesh, [Shard(0)]))

    logger = logging.getLogger("flambeau")
    torch._logging.set_logs(dtensor=True)
    logger.addHandler(caplog.handler)
    try:
        threads.spawn(run, 2)
    finally:
        logger.removeHandler(caplog.handler)
        torch._logging.set_logs(dtensor=False)
    assert "(no rule)" in caplog.text


def test_functions_on_parts():
    def run(rank):
        mesh = init_device_mesh("cpu", (2,))
        a, b = torch.arange(8.0).reshape(2, 4), torch.arange(12.0).reshape(4, 3)
        given = [distribute_tensor(a, mesh, [Shard(1)]).requires_grad_(), distribute_tensor(b, mesh, [Shard(0)])]
        product = local_map(torch.mm, [Partial()], ([Shard(1)], [Shard(0)]))
        out = product(*given)
        assert out.placements == (Partial(),)
        torch.testing.assert_close(out.full_tensor(), a @ b)
        out.full_tensor().sum().backward()
        torch.testing.assert_close(given[0].grad.full_tensor(), b.sum(1).expand(2, 4))
        whole = distribute_tensor(a, mesh, [Replicate()])
        with pytest.raises(ValueError, match="mismatched placements"):
            product(whole, given[1])
        moved = local_map(torch.mm, [Partial()], ([Shard(1)], [Shard(0)]), redistribute_inputs=True)
        torch.testing.assert_close(moved(whole, given[1]).full_tensor(), a @ b)
        assert torch.equal(product(a, b), a @ b)  # no DTensor: as it is
        with pytest.raises(AssertionError, match="one PlacementType"):
            local_map(lambda x: (x, x), [Replicate()])(whole)

    threads.spawn(run, 2)
