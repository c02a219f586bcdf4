"""Pointwise operators compiled in every dtype that eager takes."""

import pytest

import flambeau as torch

DTYPES = "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()
OF_TRUTH_VALUES = ["sgn", "sign", "isnan", "isinf", "isfinite", "heaviside", "nn.functional.hardshrink"]
DEFAULT = {"Scalar": 1, "int": 1, "SymInt": 1, "float": 1.0, "bool": False}


def _operators():
    """The pointwise overloads of torch's and torch.special's names."""
    aten = torch.ops.aten
    for name in sorted({*dir(torch), *(f"special_{n}" for n in dir(torch.special))}):
        packet = getattr(aten, name, None)
        for overload in getattr(packet, "overloads", list)():
            op = getattr(packet, overload)
            if op.kind == "pointwise" and 1 <= sum(a.is_tensor for a in op._schema.arguments) <= 3:
                yield op


def _agrees(f, tensors):
    try:
        want = f(*tensors)
    except (RuntimeError, TypeError):
        return  # the operator has no such dtype
    torch.compiler.reset()
    got = torch.compile(f)(*tensors)
    assert got.dtype is want.dtype
    tolerance = 1e-2 if want.dtype in (torch.float16, torch.bfloat16) else 1e-5
    wide = torch.complex128
    torch.testing.assert_close(got.to(wide), want.to(wide), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("name", OF_TRUTH_VALUES)
def test_truth_values(name):
    f = torch
    for part in name.split("."):
        f = getattr(f, part)
    a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    _agrees(f, (a, b) if name == "heaviside" else (a,))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of values outside of a function's domain
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operator(dtype):
    numbers = torch.tensor([1, 0, 1, 1, 1] if dtype == "bool" else [1, 2, 3, 1, 2]).to(getattr(torch, dtype))
    for op in _operators():
        given = []
        for a in op._schema.arguments:
            if not a.is_tensor and a.has_default:
                break
            given.append(numbers if a.is_tensor else DEFAULT.get(a.type, 1))
        numbers_of = [x for x in given if isinstance(x, torch.Tensor)]

        def f(*tensors, op=op, given=given):
            left = iter(tensors)
            return op(*[next(left) if isinstance(x, torch.Tensor) else x for x in given])

        _agrees(f, numbers_of)


@pytest.mark.parametrize("made", ["full", "scalar_tensor", "computed"])
@pytest.mark.parametrize(
    "kinds", [("float32", "float64"), ("float16", "float32"), ("bfloat16", "float64")], ids="-".join
)
def test_constants_are_rounded_to_their_dtype(made, kinds):
    """A wider type goes on from what the element is, not from the number that it was made of."""
    kind, wide = (getattr(torch, k) for k in kinds)

    def f(x):
        if made == "full":
            c = torch.full((), 0.05, dtype=kind)
        elif made == "scalar_tensor":
            c = torch.scalar_tensor(0.05, dtype=kind)
        else:
            c = torch.scalar_tensor(0.05, dtype=kind) * 120
        return x.to(wide) * c.to(wide) - c.to(wide)

    x = torch.arange(7)
    torch.compiler.reset()
    assert torch.equal(torch.compile(f)(x), f(x))
