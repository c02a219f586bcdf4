"""What is refused, and how: arguments that PyTorch refuses, places where results may not be written."""

import pytest

import flambeau as torch

X, I = torch.arange(6.0), torch.tensor([0, 2, 1])
Z = torch.ones(2, dtype=torch.complex64)

REFUSED = {
    **{
        f"a rounded quotient of truth values, {mode}": (
            lambda mode=mode: torch.div(X[:2] > 0, X[:2] > 0, rounding_mode=mode),
            NotImplementedError,
            f"\"div_{mode}_cpu\" not implemented for 'Bool'",
        )
        for mode in ("floor", "trunc")
    },
    **{
        f"a padding that leaves nothing of {shape}, {mode}": (
            lambda shape=shape, pad=pad, mode=mode: torch.nn.functional.pad(torch.ones(shape), pad, mode=mode),
            RuntimeError,
            "is too small. Calculated output",
        )
        for mode in ("reflect", "replicate")
        for shape, pad in (((3, 1), (-1, 0)), ((3, 2, 1), (-1, -1)), ((3, 1, 1), (-1, 0, -1, 0)))
    },
    "integers divided": (lambda: torch.addcdiv(X, I[:1], I[1:2]), RuntimeError, "Integer division with addcdiv"),
    "a place before the first": (
        lambda: X.clone().index_copy_(0, torch.tensor([-1]), X[:1]),
        IndexError,
        "out of bounds for dimension 0",
    ),
    "a number at no place": (lambda: X.index_copy(0, I[:0], X[0]), IndexError, "should have one element"),
    **{
        f"{name} of {what}": (call, error, text)
        for name, f in {
            "index_add": torch.index_add,
            "index_reduce": lambda *args: torch.index_reduce(*args, "prod"),
        }.items()
        for what, call, error, text in (
            ("a number at two places", lambda f=f: f(X, 0, I[:2], X[0]), IndexError, "tensor has no dimensions"),
            ("a dimension that isn't there", lambda f=f: f(X, 1, I[:2], X[0]), IndexError, "Dimension out of range"),
            (
                "a source without the dimension",
                lambda f=f: f(torch.ones(2, 3), 1, I[:2], X[:2]),
                RuntimeError,
                "Indexing dim 1 is out of bounds of the source",
            ),
            ("a place outside", lambda f=f: f(X, 0, torch.tensor([9]), X[:1]), IndexError, "out of bounds"),
        )
    },
    "cut of a dimension that isn't there": (
        lambda: torch.tensor_split(X, (2,), 1),
        IndexError,
        "Dimension out of range",
    ),
    "cut at a fraction": (
        lambda: torch.tensor_split(X, torch.tensor(1.5)),
        RuntimeError,
        "dtype of long, but got Float",
    ),
    "slices without elements": (
        lambda: torch.unique(X[:0].reshape(0, 0, 2), dim=1),
        RuntimeError,
        "more than one, so unique",
    ),
    "complex of integers": (lambda: torch.int64.to_complex(), RuntimeError, "Unknown Complex ScalarType for Long"),
    "too many values of another dtype": (
        lambda: I.clone().__setitem__(I > -1, torch.ones(2)),
        RuntimeError,
        "shape mismatch",
    ),
    "values of another dtype by a mask": (
        lambda: I.clone().__setitem__(I > -1, torch.ones(3)),
        RuntimeError,
        "source and destination dtypes match",
    ),
    "number for a tensor": (lambda: torch.maximum(X, 2.0), TypeError, "must be Tensor, not float"),
    "number first": (lambda: torch.fmod(2.0, X), TypeError, "invalid combination of arguments"),
    "comparison of numbers first": (lambda: torch.eq(2.0, X), TypeError, "invalid combination of arguments"),
    "std below zero": (lambda: X.clone().normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    "endless range": (lambda: torch.arange(0, float("inf")), RuntimeError, "unsupported range"),
    "linspace between vectors": (lambda: torch.linspace(X, X, 3), RuntimeError, "0-dimensional start and end"),
    "points below zero": (lambda: torch.linspace(0, 1, -2), RuntimeError, "number of steps must be non-negative"),
    "flipped scalar": (lambda: X[0].flipud(), RuntimeError, "Input must be >= 1-d"),
    "rotation in one dimension": (
        lambda: X.reshape(2, 3).rot90(1, (1, 1)),
        RuntimeError,
        "rotation dims to be different",
    ),
    "moved twice": (lambda: X.reshape(2, 3).movedim((0, 0), (0, 1)), RuntimeError, "repeated dim in `source`"),
    "narrow beyond": (lambda: X.narrow(0, -9, 0), IndexError, "start out of range"),
    "mask of numbers": (lambda: X.masked_scatter(X, X), RuntimeError, "only supports boolean masks"),
    "condition of numbers": (
        lambda: torch.where(I, X[:3], 0),
        RuntimeError,
        "to be a boolean tensor, but got a tensor with dtype Long",
    ),
    "filled by bytes": (
        lambda: X[:3].masked_fill(I.byte(), 0),
        RuntimeError,
        "only supports boolean masks, but got mask with dtype unsigned char",
    ),
    "filled by bytes, with a tensor": (
        lambda: X[:3].masked_fill(I.byte(), X[0]),
        RuntimeError,
        "only supports boolean masks",
    ),
    "indexed by short integers": (lambda: X[I.short()], IndexError, "must be long, int, byte or bool tensors"),
    "written by short integers": (
        lambda: X.index_put((I.to(torch.int8),), X[:3]),
        IndexError,
        "must be long, int, byte or bool",
    ),
    "gathered by bytes": (
        lambda: X.gather(0, I.byte()),
        RuntimeError,
        "Expected dtype int32/int64 for index",
    ),
    "scattered by bytes": (
        lambda: X.scatter(0, I.byte(), X),
        RuntimeError,
        "Expected dtype int32/int64 for index",
    ),
    "filled by int32": (
        lambda: X.index_fill(0, I.int(), 1.0),
        IndexError,
        "Expected dtype int64 for index",
    ),
    "copied by int32": (
        lambda: X.index_copy(0, I.int(), X[:3]),
        RuntimeError,
        "Expected dtype int64 for index",
    ),
    "number among rows": (
        lambda: torch.searchsorted(torch.zeros(0, 3, 2), 1.0),
        RuntimeError,
        "a scalar only when boundaries tensor dimension is 1",
    ),
    "rows among other rows": (
        lambda: torch.searchsorted(torch.zeros(2, 3), torch.ones(3, 2)),
        RuntimeError,
        "dimensions of boundaries tensor",
    ),
    "nothing to search": (
        lambda: torch.searchsorted(X[0], X),
        RuntimeError,
        "boundaries tensor should have positive dimension",
    ),
    "order of another shape": (
        lambda: torch.searchsorted(X, X, sorter=I),
        RuntimeError,
        "boundary and sorter must have the same size",
    ),
    "order behind the end": (
        lambda: torch.searchsorted(X, X, sorter=torch.arange(6) + 1),
        RuntimeError,
        "sorter index out of range",
    ),
    "order from the end": (
        lambda: torch.searchsorted(X, X, sorter=torch.arange(6) - 1),
        RuntimeError,
        "sorter index out of range",
    ),
    "complex into real": (
        lambda: X.masked_fill(X > 1, 1j),
        RuntimeError,
        "cannot be converted to type float without overflow",
    ),
    "two dtypes": (
        lambda: X.scatter(0, I, torch.ones(3, dtype=torch.float64)),
        RuntimeError,
        "self.dtype to be equal to src.dtype",
    ),
    "values of another dtype": (
        lambda: X.clone().index_put_((I,), I),
        RuntimeError,
        "requires the source and destination dtypes match, got Float for the destination and Long for the source",
    ),
    "put of another dtype": (
        lambda: I.clone().put_(I, X[:3]),
        RuntimeError,
        "self.dtype = Long and source.dtype = Float",
    ),
    "where with a number that float32 can't hold": (
        lambda: torch.where(X > 0, 1e300, X),
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "where with a number that the integers can't hold": (
        lambda: torch.where(I > 0, I, 2**63),
        RuntimeError,
        "value cannot be converted to type int64_t without overflow",
    ),
    **{
        f"{name} of a number that float16 can't hold": (f, RuntimeError, "cannot be converted to type c10::Half")
        for name, f in {
            "clamp": lambda: X.half().clamp(max=1e10),
            "clamp_": lambda: X.half().clamp_(-1e10, 1),
            "hardtanh": lambda: torch.nn.functional.hardtanh(X.half(), -1e10, 1e10),
            "pow": lambda: X.half() ** 1e10,
            "fill_": lambda: X.half().fill_(2**40),
            "masked_fill": lambda: X.half().masked_fill(X > 1, -1e9),
            "masked_fill_": lambda: X.half().masked_fill_(X > 1, 1e9),
            "masked_fill by a tensor": lambda: X.half().masked_fill(X > 1, torch.tensor(-1e9)),
            "masked_fill_ by a tensor": lambda: X.half().masked_fill_(X > 1, torch.tensor(1e9)),
            "hardshrink": lambda: torch.nn.functional.hardshrink(X.half(), 1e5),
            "threshold": lambda: torch.nn.functional.threshold(X.half(), 0, 1e5),
            "new_full": lambda: X.half().new_full((2,), 1e5),
            "compiled clamp": lambda: torch.compile(lambda x: x.clamp(max=1e10))(X.half()),
        }.items()
    },
    **{
        f"{name} of a number that complex64 can't hold": (
            f,
            RuntimeError,
            "cannot be converted to type c10::complex<float>",
        )
        for name, f in {
            "fill_": lambda: Z.clone().fill_(1e300),
            "fill_ with an imaginary part": lambda: Z.clone().fill_(1e300j),
            "an element set": lambda: Z.clone().__setitem__(0, 1e300),
            "elements set by a mask": lambda: Z.clone().__setitem__(Z.real > 0, -1e300),
            "masked_fill": lambda: Z.masked_fill(Z.real > 0, 1e300),
            "full": lambda: torch.full((2,), 1e300, dtype=torch.complex64),
            "addcmul": lambda: torch.addcmul(Z, Z, Z, value=1e300),
            "where": lambda: torch.where(Z.real > 0, Z, 1e300),
        }.items()
    },
    **{
        f"masked_fill of {dtype} by the tensor {value}": (
            lambda dtype=dtype, value=value: torch.zeros(3, dtype=dtype).masked_fill(X[0] > 9, torch.tensor(value)),
            RuntimeError,
            "without overflow",
        )
        for dtype, value in ((torch.uint8, -1.5), (torch.uint8, 300), (torch.int32, 1e20), (torch.int8, float("nan")))
    },
    "softshrink by more than 16 bits hold": (
        lambda: torch.nn.functional.softshrink(X.half(), 1e5),
        RuntimeError,
        r"lambda must be in range \[0, 65504\] for input dtype Half, but found 100000",
    ),
    "softshrink of integers": (
        lambda: torch.nn.functional.softshrink(I, 1),
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    "where with such a number first": (
        lambda: torch.where(I > 0, 300, I.to(torch.int8)),
        RuntimeError,
        "value cannot be converted to type int8_t without overflow",
    ),
    "block_diag of a number": (
        lambda: torch.block_diag(X, 3),
        TypeError,
        "expected Tensor as element 1 in argument 0, but got int",
    ),
    "masked_scatter of another dtype": (
        lambda: I.masked_scatter(I > 0, X),
        RuntimeError,
        "same dtypes but got Long and",
    ),
    "heaviside of two dtypes": (lambda: torch.heaviside(X, X.double()), RuntimeError, "tensors with different dtypes"),
    "lerp of two dtypes": (lambda: torch.lerp(X.double(), X, 0.5), RuntimeError, "expected dtype double for `end`"),
    "fractions into integers": (
        lambda: I.clone().polygamma_(1),
        RuntimeError,
        "can't be cast to the desired output type Long",
    ),
    "dropout of integers in place": (
        lambda: torch.nn.functional.feature_alpha_dropout(I.reshape(1, 3, 1).clone(), 0.5, True, inplace=True),
        RuntimeError,
        "can't be cast to the desired output type Long",
    ),
    "float_power_ into less": (lambda: X.clone().float_power_(2), RuntimeError, "to have dtype double, but got float"),
    "leaky_relu of integers": (
        lambda: torch.nn.functional.leaky_relu(I),
        NotImplementedError,
        "not implemented for 'Long'",
    ),
    "fractions stacked into integers": (
        lambda: torch.hstack([X, X], out=torch.zeros(12, dtype=torch.int64)),
        TypeError,
        "can't be cast to the desired output type Long",
    ),
    "index beyond, as IndexError": (lambda: X.gather(0, I + 9), IndexError, "out of bounds for dimension"),
    "index beyond, as RuntimeError": (lambda: X.gather(0, I + 9), RuntimeError, "out of bounds for dimension"),
    "dilation 0": (
        lambda: torch.nn.functional.conv1d(X.reshape(1, 1, 6), X[:3].reshape(1, 1, 3), dilation=0),
        RuntimeError,
        "dilation",
    ),
    "mean of integers asked for": (lambda: X.mean(dtype=torch.int64), RuntimeError, "could not infer output dtype"),
    "out of another dtype": (
        lambda: torch.gather(X, 0, I, out=torch.zeros(3, dtype=torch.float64)),
        RuntimeError,
        "Expected out tensor",
    ),
    "out that is read": (lambda: torch.take(X, I, out=X[1:4]), RuntimeError, "single memory location"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    before = X.clone()
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()
    torch.testing.assert_close(X, before)


def test_numbers_stay_where_an_overload_has_them():
    assert torch.equal(X.eq(2), torch.tensor([False, False, True, False, False, False]))
    assert torch.equal(torch.remainder(7, torch.tensor([4])), torch.tensor([3]))
    assert torch.equal(torch.clamp_max(X, 2), X.clamp(max=2))
    assert (2 - X)[0] == 2 and (2**X)[3] == 8 and (5 % torch.tensor([3]))[0] == 2


def test_outputs_are_resized_with_a_warning():
    out = torch.zeros(2)
    with pytest.warns(UserWarning, match="An output with one or more elements was resized since it had shape \\[2\\]"):
        assert torch.add(X, 1, out=out) is out
    torch.testing.assert_close(out, X + 1)
    empty = torch.empty(0)
    torch.mm(X.reshape(2, 3), X.reshape(3, 2), out=empty)
    assert empty.shape == (2, 2)


def test_linspace_between_tensors():
    low, high = torch.tensor(1.0), torch.tensor(3.0)
    for made in (torch.linspace(low, high, 5), torch.linspace(low, 3.0, 5), torch.linspace(1.0, high, 5)):
        torch.testing.assert_close(made, torch.linspace(1.0, 3.0, 5))


ASSIGNED = {
    "element": lambda x, v: x.__setitem__(0, v),
    "mask": lambda x, v: x.__setitem__(x > 0, v),
    "slice": lambda x, v: x.__setitem__(slice(0, 1), v),
    "list": lambda x, v: x.__setitem__([0], v),
    "all": lambda x, v: x.__setitem__(..., v),
}


@pytest.mark.parametrize("how", ASSIGNED)
@pytest.mark.parametrize("compiled", [False, True])
def test_numbers_beyond_16_bits_are_infinite_when_assigned(how, compiled):
    """As in PyTorch: a mask's -1e9 in float16. Other dtypes refuse them."""

    def run(x, v):
        ASSIGNED[how](x, v)
        return x[0]

    run = torch.compile(run) if compiled else run
    for dtype, number, want in (
        (torch.float16, -1e9, -float("inf")),
        (torch.float16, 2**40, float("inf")),
        (torch.float16, 65519.0, 65504.0),
        (torch.bfloat16, 1e39, float("inf")),
        (torch.float16, 0.1, 0.0999755859375),
    ):
        assert run(torch.ones(2, dtype=dtype), number).item() == want
    with pytest.raises(RuntimeError, match="without overflow"):
        run(torch.ones(2), 1e39)
