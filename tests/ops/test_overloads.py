"""Overloads of ATen's whose names follow no rule write what the functional ones return; those that aren't built say so."""

import pytest

import flambeau as torch
from flambeau.core.operator import OpOverload, namespace
from flambeau.ops.aten_names import OVERLOADS
from flambeau.testing.checks import flat, to_tensors
from flambeau.testing.samples import load

aten = namespace("aten")
ROWS = load()
WRITING = {name: row for name, row in OVERLOADS.items() if row[0]}
UNBUILT = [name for name, row in OVERLOADS.items() if not row[0]]


def overload(name):
    packet, _, rest = name.partition(".")
    return getattr(getattr(aten, packet), rest)


def sample_of(name):
    packet, base = name.partition(".")[0], WRITING[name][0]
    return ROWS.get(packet if base == "default" else f"{packet}.{base}")


@pytest.mark.parametrize("name", WRITING)
def test_there_is_one(name):
    op, (base, outs) = overload(name), WRITING[name]
    assert isinstance(op, OpOverload) and [a.name for a in op._schema.arguments if a.is_out] == list(outs)
    functional = overload(f"{name.partition('.')[0]}.{base}")
    assert op.definition.functional is functional and len(functional._schema.returns) == len(outs)


@pytest.mark.parametrize("name", [n for n in WRITING if (r := sample_of(n)) is not None and r.values])
def test_it_writes_what_the_functional_one_returns(name):
    row, outs = sample_of(name), WRITING[name][1]
    for sample in row.calls[:2]:
        want = flat(row.op(*to_tensors(sample.args), **to_tensors(sample.kwargs)))
        targets = [torch.empty(0, dtype=t.dtype) for t in want]
        got = overload(name)(*to_tensors(sample.args), **to_tensors(sample.kwargs), **dict(zip(outs, targets)))
        for t, w, g in zip(targets, want, flat(got)):
            assert g is t and t.shape == w.shape
            torch.testing.assert_close(t, w, rtol=1e-6, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("name", UNBUILT)
def test_what_is_not_built_says_so(name):
    with pytest.raises(NotImplementedError, match=f"aten::{name} is an operator of PyTorch's"):
        overload(name)(torch.ones(2))


def test_numbers_and_in_place_names():
    x = torch.tensor([1.0, -2.0])
    i = torch.tensor([5, 6])
    assert aten.bitwise_and_.Scalar(i.clone(), 4).tolist() == [4, 4] and aten.bitwise_or.Scalar_Tensor(
        1, i
    ).tolist() == [5, 7]
    assert aten.bitwise_left_shift_.Tensor_Scalar(i.clone(), 1).tolist() == [10, 12]
    assert aten.pow_.Scalar(x.clone(), 2).tolist() == [1, 4] and aten.pow_.Tensor(
        x.clone(), torch.tensor(3.0)
    ).tolist() == [1, -8]
    assert aten.masked_fill_.Tensor(x.clone(), x > 0, torch.tensor(9.0)).tolist() == [9, -2]
    assert aten.copysign_.Scalar(x.clone(), -1).tolist() == [-1, -2] and aten.floor_divide_.Tensor(
        i.clone(), i
    ).tolist() == [1, 1]
    with pytest.raises(AttributeError, match="no overload name 'nothing'"):
        _ = aten.mm.nothing


@pytest.mark.parity
def test_the_names_are_pytorchs():
    library = pytest.importorskip("torch")
    known = {n.removeprefix("aten::") for n in library._C._dispatch_get_all_op_names() if n.startswith("aten::")}
    for name in OVERLOADS:
        assert name.removesuffix(".default") in known
    for name, (_, outs) in WRITING.items():
        packet, _, rest = name.partition(".")
        theirs = library._C._get_schema(f"aten::{packet}", rest).arguments
        assert [a.name for a in theirs if a.is_out] == list(outs)
        asked = [a.name for a in theirs if not a.is_out]
        assert [a.name for a in overload(name)._schema.arguments if a.name in asked] == asked


LISTS = {
    "split_copy.Tensor_out": (2, 0), "split_with_sizes_copy.out": ([1, 2], 0), "unbind_copy.int_out": (1,), "unsafe_split.Tensor_out": (2, 1),
    "unsafe_split_with_sizes.out": ([3, 0], 0), "_histogramdd_bin_edges.out": ([2, 3, 4],), "_foreach_copy.out": (),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
def test_lists_are_written(name):
    x = torch.arange(9.0).view(3, 3)
    given = [[x, x + 1], [x + 2, x + 3]] if name.startswith("_foreach") else [x, *LISTS[name]]
    op, packet = overload(name), getattr(aten, name.partition(".")[0])
    functional = getattr(packet, "default" if name.endswith(".out") else name.partition(".")[2].removesuffix("_out"))
    want = functional(*given)
    for targets in ([torch.empty(0) for _ in want], [torch.zeros_like(w) for w in want]):
        assert op(*given, out=targets) is None
        assert all(torch.equal(t, w) for t, w in zip(targets, want, strict=True))
    with pytest.raises(RuntimeError, match="got size|the same number of tensors"):
        op(*given, out=[torch.empty(0)] * (len(want) + 1))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double"):
        op(*given, out=[torch.empty(0, dtype=torch.float64) for _ in want])


@pytest.mark.parametrize(
    "name, args", [("rand_like", ()), ("randn_like", ()), ("randint_like", (9,)), ("randint_like", (torch.tensor(9),))]
)
def test_draws_of_a_generator_are_written(name, args):
    packet, x, made = getattr(aten, name), torch.empty(2, 3), []
    op = packet.Tensor_generator_out if args and isinstance(args[0], torch.Tensor) else packet.generator_out
    for run in (
        lambda g: op(x, *args, generator=g, out=torch.empty(2, 3)),
        lambda g: packet(x, *args, generator=g),
    ):
        made.append(run(torch.Generator().manual_seed(3)))
    assert torch.equal(*made)


def test_an_embedding_bag_of_every_index():
    table, at, begins = torch.arange(12.0).view(4, 3), torch.tensor([0, 1, 3]), torch.tensor([0, 2])
    bags = aten.embedding_bag.default(table, at, begins, False, 2)
    assert bags[0].tolist() == [[3, 4, 5], [9, 10, 11]] and bags[2].tolist() == [2, 1]
    assert aten._to_sparse.sparse_dim(table, 1).indices().tolist() == [[0, 1, 2, 3]]
