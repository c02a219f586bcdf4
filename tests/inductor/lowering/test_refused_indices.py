"""Writes and reads by index whose sizes don't fit: compiled code raises where eager code does, and touches no memory before."""

import itertools

import pytest

import flambeau as torch

aten = torch.ops.aten


def outcome(fn, *args):
    try:
        return fn(*(a.clone() if isinstance(a, torch.Tensor) else a for a in args))
    except (RuntimeError, IndexError) as error:
        return error


def assign(x, mask, value):
    x[mask] = value
    return x


def add(x, mask, value):
    return x.index_put((mask,), value, accumulate=True)


def assign_part(x, mask, value):
    x[mask, :2] = value
    return x


def assign_selected(x, mask, value):
    x[mask] = value[value > -1]
    return x


MASKS = (
    [True, False, True],
    [False, False, False],
    [False, True, False],
    [[True, False, True, False]] * 3,
)
VALUES = ((3,), (2,), (4,), (5,), (2, 3), (2, 4), (2, 1), (3, 4), (1, 4), (0,), (4, 0), ())


@pytest.mark.filterwarnings("ignore:an eager kernel")
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("fn", [assign, add, assign_part, assign_selected])
def test_values_under_a_mask(fn, dynamic):
    with torch._dynamo.config.patch(recompile_limit=100):
        compiled = torch.compile(fn, dynamic=dynamic)
        for mask, shape in itertools.product(MASKS, VALUES):
            given = (
                10 * torch.arange(12.0).reshape(3, 4),
                torch.tensor(mask),
                torch.arange(float(torch.Size(shape).numel())).reshape(shape),
            )
            eager, got = outcome(fn, *given), outcome(compiled, *given)
            what = f"{mask} {shape}: {eager!r}, compiled {got!r}"
            if isinstance(eager, Exception):
                assert isinstance(got, Exception), what
            else:
                assert torch.equal(eager, got), what


ZERO, PLACES = torch.tensor([[[3]]]), torch.tensor([[0, 2, 1], [3, 1, 0]])
REFUSED = {
    "scatter into nothing": lambda x: torch.zeros(1, 1, 0).scatter(2, ZERO, x[:1, None, :1]),
    "sum into nothing": lambda x: torch.zeros(1, 1, 0).scatter_add(2, ZERO, x[:1, None, :1]),
    "read of nothing": lambda x: torch.gather(x[:, :0], 1, PLACES[:1, :1]),
    "read of what may be nothing": lambda x: torch.gather(x[x < 0], 0, PLACES[0]),
    "index of what may be nothing": lambda x: x[x < 0][PLACES],
    "write into what may be nothing": lambda x: assign(x[x < 0], PLACES[0], x[0, :3]),
    "unpool into nothing": lambda x: aten.max_unpool2d.default(x[None, :2, :3, None], PLACES[None, ..., None], [0, 4]),
    "gradient of a slice": lambda x: aten.slice_backward.default(x[0, :3], [5], 0, 0, 2, 1),
    "gradient of a far slice": lambda x: aten.slice_backward.default(x, [3, 2], 1, 0, 4, 2**40),
    "gradient of a diagonal": lambda x: aten.diagonal_backward.default(x[0, :3], [3, 3], 7, 0, 1),
    "gradient of windows": lambda x: aten.unfold_backward.default(x, [0], 0, 4, 1),
    "gradient of a pool": lambda x: aten.max_pool2d_with_indices_backward.default(
        x[None, None, :1, :2], x[None, None, :, :0], [2, 2], [2, 2], [0, 0], [1, 1], False, torch.tensor([[[[5, 7]]]])
    ),
    "sums of another rank": lambda x: torch.zeros(4).scatter_reduce(0, PLACES, x[:2, :3], "sum"),
    "too many indices": lambda x: aten.index.Tensor(x.reshape(-1), [PLACES, PLACES]),
    "too many indices of a write": lambda x: aten.index_put.default(x.reshape(-1), [None, PLACES], x[0, 0]),
    "gradient of an embedding": lambda x: aten.embedding_dense_backward.default(x, torch.tensor([0, 1]), 4, -1, False),
    "edges of another rank": lambda x: aten.replication_pad2d.default(x[0], [1, 1, 1, 1]),
    "probabilities of another shape": lambda x: aten.bernoulli.Tensor(x[0], torch.full((3,), 0.5)),
    "no deviation": lambda x: aten.normal.float_float(0.0, float("nan"), [3]) + x[0, :3],
}


@pytest.mark.filterwarnings("ignore:an eager kernel")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    x = torch.arange(12.0).reshape(3, 4)
    eager = outcome(REFUSED[name], x)
    assert isinstance(eager, Exception), eager
    got = outcome(torch.compile(REFUSED[name]), x)
    assert isinstance(got, Exception), got


def test_one_element_of_several_sizes():
    # The second size isn't served by the plan of the first.
    x, place = torch.arange(12.0), torch.tensor(1)
    assert [torch.gather(x[:n], 0, place).shape for n in (2, 3, 4, 2)] == [()] * 4
    assert torch.scatter(x, 0, torch.tensor(2), torch.tensor([7.0])).tolist()[2] == 7


def test_broadcast_parameters():
    for fn in (
        lambda: torch.binomial(torch.tensor(3.0), torch.rand(1, 3)),
        lambda: torch._standard_gamma_grad(torch.ones(4, 1), torch.ones(4)),
    ):
        assert torch.compile(fn)().shape == fn().shape


@pytest.mark.parametrize("most", [2**63 - 1, 2**63 - 2, 2**62, 2**45])
@pytest.mark.parametrize("weights", [False, True])
def test_counts_that_no_memory_holds_are_refused(most, weights):
    # NumPy writes beside an array of no counts for the largest number.
    x = torch.tensor([most, 0])
    w = torch.ones(2) if weights else None
    for f in (torch.bincount, torch.compile(lambda a, b: torch.bincount(a, b))):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed|can't allocate memory"):
            f(x, w)
