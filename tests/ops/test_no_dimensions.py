"""Tensors without dimensions and without elements: operators that order, choose or take by index, called and compiled."""

import pytest

import flambeau as torch
from flambeau.utils import _pytree as pytree

ALONE = "median nanmedian msort argsort unique aminmax std_mean var_mean max min argmax nonzero"
ALONG = "median nanmedian mode max min sort cummax cummin logcumsumexp cumsum flip logsumexp argmax"
CALLS = {name: (name, ()) for name in ALONE.split()}
CALLS |= {f"{name} along 0": (name, (0,)) for name in ALONG.split()}
CALLS |= {"topk": ("topk", (1,)), "kthvalue": ("kthvalue", (1,)), "quantile": ("quantile", (0.5,))}


def outcome(f, x):
    try:
        return f(x)
    except RuntimeError as e:
        return str(type(e).__name__)


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("call", CALLS)
def test_compiled(call):
    name, args = CALLS[call]

    def f(x):
        return getattr(torch, name)(x, *args)

    for x in (torch.tensor(2.5), torch.tensor(3), torch.tensor(float("nan"))):
        torch.compiler.reset()
        want, found = outcome(f, x), outcome(torch.compile(f), x)
        assert type(want) is type(found)
        pairs = zip(pytree.tree_leaves(want), pytree.tree_leaves(found), strict=True)
        assert all(isinstance(a, str) or (a.dtype is b.dtype and a.equal(b) or a.isnan().all()) for a, b in pairs)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.int64])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_index_of_nothing_has_any_dtype(dtype, compiled):
    calls = (
        lambda x, i: x.gather(0, i),
        lambda x, i: x.scatter(0, i, 1.0),
        lambda x, i: x.scatter_add(0, i, x[:0]),
        lambda x, i: x.scatter_reduce(0, i, x[:0], "sum"),
    )
    x, i = torch.arange(3.0), torch.zeros(0, dtype=dtype)
    for n, f in enumerate(calls):
        torch.compiler.reset()
        run = torch.compile(f) if compiled else f
        assert run(x, i).tolist() == ([] if n == 0 else [0.0, 1.0, 2.0])
    with pytest.raises(RuntimeError, match="int64|embedding"):
        torch.arange(3.0).gather(0, torch.zeros(1, dtype=torch.uint8))


def test_points_between_complex_ends():
    start, end = torch.tensor(1 + 1j), torch.tensor(2.0)
    assert torch.linspace(start, end, 3).tolist() == [1 + 1j, 1.5 + 0.5j, 2]
    assert torch.linspace(1.0, torch.tensor(2j), 2, dtype=torch.complex128).tolist() == [1, 2j]
    torch.testing.assert_close(torch.logspace(start, 2.0, 3)[2], torch.tensor(100 + 0j))
    for make in (torch.linspace, torch.logspace):
        with pytest.raises(RuntimeError, match="can't be safely cast"):
            make(start, end, 3, dtype=torch.float32)


# A scalar is indexed as a vector of one element: other places are errors, also where nothing else reads the index.
AT_A_PLACE = {
    "gather": lambda x, i: x.gather(0, i),
    "index_select": lambda x, i: x.index_select(0, i),
    "index_add": lambda x, i: x.index_add(0, i, x + 1),
    "scatter": lambda x, i: x.scatter(0, i, 5.0),
    "scatter src": lambda x, i: x.scatter(0, i, torch.full(i.shape, 5.0)),
    "scatter_add": lambda x, i: x.scatter_add(0, i, torch.full(i.shape, 5.0)),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.tensor(5.0)),
    "index_fill": lambda x, i: x.index_fill(0, i, 5.0),
}
PLACED = {"gather": 2.0, "index_select": 2.0, "index_add": 5.0, "scatter_add": 7.0}


@pytest.mark.parametrize("compiled", [False, True, "mapped", "mapped and compiled"])
@pytest.mark.parametrize("name", AT_A_PLACE)
def test_places_of_a_scalar(name, compiled):
    f, x = AT_A_PLACE[name], torch.tensor(2.0)
    if "mapped" in str(compiled):
        f, x = torch.vmap(f), torch.tensor([2.0, 2.0])
    torch.compiler.reset()
    f = torch.compile(f) if compiled in (True, "mapped and compiled") else f
    for shape in ((), (1,)):
        place = torch.zeros((*x.shape, *shape), dtype=torch.int64)
        assert set(f(x, place).flatten().tolist()) == {PLACED.get(name, 5.0)}
        place[(-1,) * place.ndim] = 1
        with pytest.raises((IndexError, RuntimeError), match="out of bounds|out of range"):
            f(x, place)


@pytest.mark.parametrize("places", [[], [0, 0]])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_scalar_has_one_place(places, compiled):
    f = lambda x, i: x.index_select(0, i)  # noqa: E731
    with pytest.raises(RuntimeError, match=f"Index to scalar can have only 1 value, got {len(places)}"):
        (torch.compile(f) if compiled else f)(torch.tensor(2.0), torch.tensor(places, dtype=torch.int64))
