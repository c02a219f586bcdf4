"""Values of loops that are written by hand: loads inside and outside of a region, comparisons that know nan, choices, errors."""

import pytest

import flambeau as torch
from flambeau.base.device import as_device
from flambeau.base.enums import Out
from flambeau.base.result_spec import ResultSpec
from flambeau.core.messages import About
from flambeau.inductor.device import compile as device_compile
from flambeau.inductor.device.elements import Elements
from flambeau.inductor.ir.nodes import BufferKind, Region, dense_strides
from flambeau.inductor.ir.values import short
from flambeau.inductor.lowering import interface
from flambeau.inductor.lowering.lowering import Lowering
from flambeau.inductor.passes.decompose import _without_data, tensor_meta

NAN = float("nan")
A = torch.tensor([1.0, NAN, 2.0, NAN, -0.0, 0.0])
B = torch.tensor([2.0, 1.0, NAN, NAN, 0.0, -0.0])


def run(element, *tensors, shape=None, dtype=torch.bool):
    """The tensor of ``element(elements, regions, coords)``, made on the device."""
    moved = [t.cuda() for t in tensors]
    shape, device = shape or tuple(tensors[0].shape), as_device("cuda")
    lowering = Lowering(None, on_device=device_compile.launched)
    regions = [interface.placeholder(lowering, _without_data(tensor_meta(t))).region for t in moved]
    e = Elements(lowering)
    strides = dense_strides(shape)
    made = e.result(ResultSpec(shape, strides, dtype, device), lambda c: element(e, regions, c))
    buffer = lowering.new_buffer(shape, strides, short(dtype), BufferKind.OUTPUT)
    lowering.fill(buffer, made)
    lowering.outputs = [(Out.SLOT, Region(buffer.name, shape, strides, 0), dtype)]
    groups = device_compile._grouped(lowering, {buffer.name})
    return device_compile._assembled(lowering, groups, {buffer.name}, device)(*moved)[0].cpu()


def compared(op):
    return run(lambda e, r, c: op(e, e.at(r[0], c), e.at(r[1], c)), A, B).tolist()


def test_nan_is_the_greatest():
    assert compared(lambda e, a, b: e.less(a, b)) == [True, False, True, False, False, False]
    assert compared(lambda e, a, b: e.less(b, a)) == [False, True, False, False, False, False]


def test_logic():
    assert compared(lambda e, a, b: e.both(e.is_nan(a), e.is_nan(b))) == [False, False, False, True, False, False]
    assert compared(lambda e, a, b: e.either(e.is_nan(a), e.is_nan(b))) == [False, True, True, True, False, False]
    assert compared(lambda e, a, b: e.flip(e.is_nan(a))) == [True, False, True, False, True, True]


def test_integers_and_truth_values():
    def looked(e, r, c):
        v = e.at(r[0], c)
        assert e.is_nan(v) is None
        return e.less(v, e.at(r[1], c))

    assert run(looked, torch.tensor([1, 2, 3]), torch.tensor([2, 2, 2])).tolist() == [True, False, False]
    # NOTE: a truth value as a number; of one bit, True would be -1.
    assert run(lambda e, r, c: e.less(e.ordered(e.at(r[0], c)), e.ordered(e.at(r[1], c))), A > 1, B > 1).tolist() == [
        True, False, False, False, False, False,
    ]  # fmt: skip


def test_numbers_take_the_type_of_the_value_beside_them():
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert run(lambda e, r, c: e.make("add", 10, e.at(r[0], c)), x, dtype=torch.int32).tolist() == [11, 12, 13]
    y = torch.tensor([0.5, -0.5])
    clipped = run(lambda e, r, c: e.choose(e.compare("lt", e.at(r[0], c), 0), 0, e.at(r[0], c)), y, dtype=torch.float32)
    assert clipped.tolist() == [0.5, 0.0]


def test_half_precision_is_computed_wider():
    x = torch.full((3,), 300.0, dtype=torch.float16)
    square = run(lambda e, r, c: e.make("mul", e.at(r[0], c), e.at(r[0], c)), x, dtype=torch.float32)
    assert square.tolist() == [90000.0] * 3  # more than float16 has


@pytest.mark.parametrize("otherwise", [0, 7])
def test_elements_outside_of_the_region(otherwise):
    x = torch.arange(1.0, 7).reshape(2, 3)
    found = run(lambda e, r, c: e.within(r[0], [c[0] - 1, c[1] - 2], otherwise), x, shape=(4, 6), dtype=torch.float32)
    expected = torch.full((4, 6), float(otherwise))
    expected[1:3, 2:5] = x
    assert torch.equal(found, expected)


def test_a_place_that_was_loaded():
    x, index = torch.arange(5.0) * 10, torch.tensor([4, 0, 3])
    found = run(lambda e, r, c: e.at(r[0], [e.at(r[1], c)]), x, index, shape=(3,), dtype=torch.float32)
    assert found.tolist() == [40, 0, 30]


def test_what_is_refused_is_an_error():
    def element(e, r, c):
        v, tag = e.at(r[0], c), e.lowering.message("no negative numbers", About.CONDITION)
        return e.refused(e.compare("lt", v, 0), tag, v)

    x = torch.tensor([1.0, 2.0])
    assert torch.equal(run(element, x, dtype=torch.float32), x)
    with pytest.raises(RuntimeError, match="no negative numbers"):
        run(element, -x, dtype=torch.float32)
