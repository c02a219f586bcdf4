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
