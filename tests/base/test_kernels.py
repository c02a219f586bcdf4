"""Native kernels are called by the names of their numbers, and refuse whatever their declaration doesn't have."""

import numpy as np
import pytest

from flambeau.base import kernels
from flambeau.base.kernels import ELEMENTS, Element, element

A = np.arange(6.0)
GIVEN = {"dim": 0, "product": False, "element": Element.F64}


class Size:
    """A number that only the call knows."""

    __sym__ = True


def test_a_call():
    out = np.empty(6)
    assert kernels.scan([A], [out], **GIVEN) is None
    assert np.array_equal(out, np.cumsum(A))


def test_an_array_that_is_not_aligned_is_written_through():
    out = np.frombuffer(bytearray(49), np.uint8)[1:].view(np.float64)
    assert not out.flags.aligned
    kernels.scan([A], [out], **GIVEN)
    assert np.array_equal(out, np.cumsum(A))


@pytest.mark.parametrize(
    "changes, error, text",
    [
        ({"dim": None}, TypeError, "dim must be an integer"),
        ({"dim": 0.5}, TypeError, "dim must be an integer"),
        ({"dim": "0"}, TypeError, "dim must be an integer"),
        ({"dim": Size()}, TypeError, "integer"),
        ({"dim": 2**80}, OverflowError, "int too"),
        ({"product": Size()}, TypeError, "product must be known"),
        ({"element": 99}, ValueError, "no member of ELEMENT"),
        ({"element": -1}, ValueError, "no member of ELEMENT"),
        ({"axis": 0}, TypeError, "no number axis"),
    ],
)
def test_numbers_that_are_refused(changes, error, text):
    with pytest.raises(error, match=text):
        kernels.scan([A], [np.empty(6)], **(GIVEN | changes))


@pytest.mark.parametrize("name", GIVEN)
def test_each_number_is_asked_for(name):
    rest = {k: v for k, v in GIVEN.items() if k != name}
    with pytest.raises(TypeError, match=f"{name} is missing"):
        kernels.scan([A], [np.empty(6)], **rest)
    with pytest.raises(TypeError, match=f"{name} is missing"):
        kernels.scan.pack(**rest)


@pytest.mark.parametrize(
    "operands, results, error",
    [
        ([], [A], TypeError),
        ([A], [], TypeError),
        ([None], [A], TypeError),
        ([A, A], [A], TypeError),
        ([A], [A, None], TypeError),
        ([3], [A], ValueError),
        ([A.astype(">f8")], [A], ValueError),
        (A, [A], TypeError),
        (None, [A], TypeError),
    ],
)
def test_views_that_are_refused(operands, results, error):
    with pytest.raises(error):
        kernels.scan(operands, results, **GIVEN)


def test_packing_keeps_what_only_the_call_knows():
    n = Size()
    assert kernels.scan.pack(dim=n, product=True, element=Element.I64) == (n, 1, Element.I64)
    window = {"kernel": (2, n), "stride": (3, 4), "padding": (0, 1)}
    assert kernels.max_pool.pack(**window, f64=True, last=False) == (2, n, 3, 4, 0, 1, 1, 0)
    with pytest.raises(ValueError, match="kernel has 3 numbers, 2 are expected"):
        kernels.max_pool.pack(**(window | {"kernel": (1, 2, 3)}), f64=True, last=False)


def test_names():
    with pytest.raises(AttributeError, match="scam"):
        kernels.scam  # noqa: B018
    assert kernels.find("scam") is None and kernels.find("scan") is kernels.scan
    assert repr(kernels.scan) == "<native kernel scan>"
    assert element(np.dtype("f4")) is ELEMENTS["float32"] and element(np.dtype("U3")) is None
