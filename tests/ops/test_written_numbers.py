"""Numbers beside integers, truth values and 16-bit floats: what a dtype can't hold is refused at every call, compiled or not, and the rest
is the number without its fraction. Expected values are PyTorch 2.13's."""

import math

import pytest

import flambeau as torch

F = torch.nn.functional
MASK = [True, False, True]
INDEX = [0, 2]


def _ints(dtype):
    return torch.tensor([0, 1, 3]).to(dtype)


REFUSED = [  # function of (x, number), dtype, numbers
    (lambda x, v: F.pad(x, (1, 1), value=v), "uint8", (-1, -255, 256, 2**40, -0.5, 255.5, math.nan, math.inf)),
    (lambda x, v: F.pad(x, (1, 1), value=v), "int8", (128, -129, 127.5)),
    (lambda x, v: F.pad(x, (1, 1), value=v), "float16", (65505, -70000.0, 1e39)),
    (lambda x, v: torch.nn.utils.rnn.pad_sequence([x, x[:1]], padding_value=v), "uint8", (-1, 256)),
    (lambda x, v: x.scatter(0, torch.tensor(INDEX), v), "float16", (65505, 70000, 2**40)),
    (lambda x, v: x.scatter(0, torch.tensor(INDEX), v), "int8", (128, 300, 127.5)),
    (lambda x, v: x.masked_fill(torch.tensor(MASK), v), "int8", (128, -129, math.nan)),
    (lambda x, v: torch.full_like(x, v), "bfloat16", (1e39,)),
    (lambda x, v: x.index_add(0, torch.tensor([0, 1, 2]), x, alpha=v), "int8", (128, 256.5, math.nan)),
    (lambda x, v: x.index_add(0, torch.tensor([0, 1, 2]), x, alpha=v), "float16", (70000, 1e39)),
    (lambda x, v: torch.addmv(x, x[None].expand(3, 3), x, alpha=v), "uint8", (256, -0.5, 1e39)),
    (lambda x, v: torch.addr(x[None].expand(3, 3), x, x, beta=v), "int32", (2**31, 0.5, math.nan)),
    (lambda x, v: torch.add(x, x, alpha=v), "int32", (0.5, 1e39)),
    (lambda x, v: torch.addcmul(x, x, x, value=v), "int8", (256,)),
    (lambda x, v: torch.linspace(v, v, 3, dtype=x.dtype), "uint8", (256, -0.5, 1e39)),
    (lambda x, v: torch.linspace(v, v, 3, dtype=x.dtype), "float16", (65535, 1e5)),
    (lambda x, v: torch.where(x > 1, x, v), "uint8", (1e39, 256)),
    (lambda x, v: F.elu(x, v), "float32", (1e39,)),
    (lambda x, v: F.celu(x, v), "float32", (1e39,)),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refused_at_every_call(k):
    fn, dtype, numbers = REFUSED[k]
    x = _ints(getattr(torch, dtype))
    for v in numbers:
        for _ in range(3):  # of the third call there is a call plan
            with pytest.raises(RuntimeError, match="without overflow|floating point number"):
                fn(x, v)


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_refused_in_compiled_code(k):
    """The number an argument, which is a symbol in the graph, or a constant."""
    fn, dtype, numbers = REFUSED[k]
    x, compiled = _ints(getattr(torch, dtype)), torch.compile(fn)
    compiled(x, 1), compiled(x, 2)
    for v in numbers:
        with pytest.raises(RuntimeError, match="without overflow|floating point number"):
            compiled(x, v)
        with pytest.raises(RuntimeError, match="without overflow|floating point number"):
            torch.compile(lambda x, v=v: fn(x, v))(x)


TAKEN = [
    (lambda x, v: F.pad(x, (1, 0), value=v), "uint8", 255, [255, 0, 1, 3]),
    (lambda x, v: F.pad(x, (1, 0), value=v), "int8", -0.5, [0, 0, 1, 3]),
    (lambda x, v: F.pad(x, (1, 0), value=v), "float16", math.inf, [math.inf, 0, 1, 3]),
    (lambda x, v: F.pad(x, (-1, 0), value=v), "uint8", 300, [1, 3]),
    (lambda x, v: F.threshold(x, v, 1), "int32", -0.5, [1, 1, 3]),
    (lambda x, v: x.index_add(0, torch.tensor([0, 1, 2]), x, alpha=v), "int8", 0.5, [0, 1, 3]),
    (lambda x, v: x.index_add(0, torch.tensor([0, 1, 2]), x, alpha=v), "bool", -1, [False, True, True]),
    (lambda x, v: torch.add(x, x, alpha=v), "bool", -1, [False, True, True]),
    (lambda x, v: torch.addmv(x, x[None].expand(3, 3), x, alpha=v), "int8", 0.5, [0, 1, 3]),
    (lambda x, v: torch.searchsorted(x, v), "int32", 0.5, 1),
    (lambda x, v: torch.bucketize(v, x), "uint8", 1.5, 2),
    (lambda x, v: torch.searchsorted(x, v), "uint8", -1, 3),
    (lambda x, v: torch.linspace(v, v, 3, dtype=x.dtype), "int8", 1.5, [1, 1, 1]),
    (lambda x, v: x.masked_fill(torch.tensor(MASK), v), "uint8", -1, [255, 1, 255]),
    (lambda x, v: torch.full_like(x, v), "bfloat16", 2**63, [2.0**63] * 3),
    (lambda x, v: x.scatter(0, torch.tensor(INDEX), v), "bfloat16", 2**63, [2.0**63, 1.0, 2.0**63]),
    (lambda x, v: torch.full_like(x, v), "float32", 1 + 0j, [1.0, 1.0, 1.0]),
]


@pytest.mark.parametrize("k", range(len(TAKEN)))
def test_taken(k):
    fn, dtype, v, expected = TAKEN[k]
    x = _ints(getattr(torch, dtype))
    compiled = torch.compile(fn)
    calls = [fn, fn, fn, torch.compile(lambda x, _: fn(x, v)), compiled]
    for call in calls:
        assert call(x, v).tolist() == expected
    if v.__class__ is not complex and abs(v) < 2**63:
        compiled(x, 1)
        assert compiled(x, v).tolist() == expected


COMPARISONS = {  # of a number that is rounded to 1 with 1 and 2
    "eq": [True, False],
    "ne": [False, True],
    "lt": [False, False],
    "le": [True, False],
    "gt": [False, True],
    "ge": [True, True],
    "isin": [True, False],
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("of", [None, "float32", "float64"])
def test_comparisons_round_numbers_to_narrow_elements(name, dtype, of):
    """A number, or a tensor without dimensions that has no part in the promotion; the third call has a call plan."""
    x, expected, fn = torch.tensor([1.0, 2.0]).to(getattr(torch, dtype)), COMPARISONS[name], getattr(torch, name)
    number = 1.0001 if of is None else torch.tensor(1.0001, dtype=getattr(torch, of))
    compiled = [torch.compile(fn, backend=b, dynamic=d) for b in ("aot_eager", "inductor") for d in (False, True)]
    for call in (fn, fn, fn, *compiled, torch.compile(lambda x, _: fn(x, number))):
        assert call(x, number).tolist() == expected
    if name != "isin":
        assert fn(x, number, out=torch.empty(2, dtype=torch.bool)).tolist() == expected
        assert getattr(x.clone(), name + "_")(number).tolist() == expected
        if of is not None:
            mirrored = {"lt": torch.gt, "le": torch.ge, "gt": torch.lt, "ge": torch.le}.get(name, fn)
            assert mirrored(number, x).tolist() == expected


def test_comparisons_of_large_numbers_with_narrow_elements():
    half = torch.tensor([math.inf, 2048.0], dtype=torch.half)
    for call in (lambda fn, *args: fn(*args), lambda fn, *args: torch.compile(fn)(*args)):
        assert call(torch.eq, half, 1e30).tolist() == [True, False]
        assert call(torch.ge, half, 2049).tolist() == [True, True]
        # Of two tensors without dimensions the wider dtype is that of both.
        assert call(torch.eq, half[1], torch.tensor(2049.0)).tolist() is False


def test_hardshrink_rounds_its_bound():
    x = torch.tensor([1.0, 2.0], dtype=torch.half)
    for call in (F.hardshrink, torch.compile(F.hardshrink)):
        assert call(x, 0.99999).tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    "elements, among, expected",
    [
        (torch.tensor([16777217, 1]), torch.tensor(16777216.0), [True, False]),
        (torch.tensor([1.0]), torch.tensor(1 + 1e-9, dtype=torch.float64), [True]),
        (torch.tensor([1.0]), torch.tensor([1 + 1e-9], dtype=torch.float64), [False]),
        (torch.tensor([44, 1], dtype=torch.int8), torch.tensor(300), [True, False]),
    ],
)
def test_isin_compares_in_the_common_dtype(elements, among, expected):
    for call in (torch.isin, torch.compile(torch.isin)):
        assert call(elements, among).tolist() == expected


@pytest.mark.parametrize("fn", [lambda x: x // 256, lambda x: x % 256, lambda x: torch.fmod(x, -256)])
def test_a_divisor_that_wraps_to_zero_is_zero(fn):
    x = _ints(torch.uint8)
    for call in (fn, torch.compile(fn)):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            call(x)


@pytest.mark.parametrize(
    "dtype, of, taken, refused",
    [
        ("int8", "int64", (127, -128), (128, -129)),
        ("uint8", "int64", (255, -255), (256, -256)),
        ("uint8", "float32", (255.0, 0.5), (255.5, -0.5, math.nan, math.inf)),
        ("int64", "float32", (-(2.0**63), 2.0**62), (2.0**63, math.nan)),
        ("float16", "float32", (65504.0, math.inf, math.nan), (65505.0, -1e30)),
        ("float16", "int32", (65504,), (65505, -70000)),
        ("float32", "float64", (1e38, -math.inf), (1e39,)),
        ("bool", "int64", (7,), ()),
    ],
)
def test_masked_fill_by_a_tensor(dtype, of, taken, refused):
    """Compiled, in place, and with values or examples mapped by vmap: the value has to fit."""
    x, mask = _ints(getattr(torch, dtype)), torch.tensor(MASK)
    calls = [
        lambda v: x.masked_fill(mask, v),
        lambda v: torch.vmap(lambda y: y.masked_fill(mask, v))(x[None])[0],
        lambda v: torch.vmap(lambda w: x.masked_fill(mask, w))(v[None])[0],
        torch.compile(lambda v: x.masked_fill(mask, v), fullgraph=True),
        torch.compile(lambda v: x.clone().masked_fill_(mask, v), fullgraph=True),
        torch.compile(lambda v: torch.vmap(lambda w: x.masked_fill(mask, w))(v[None])[0], fullgraph=True),
    ]
    for call in calls:
        for v in taken:
            torch.testing.assert_close(
                call(torch.tensor(v, dtype=getattr(torch, of))), x.masked_fill(mask, v), equal_nan=True
            )
        for v in refused:
            with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
                call(torch.tensor(v, dtype=getattr(torch, of)))


def test_masked_fill_by_a_tensor_has_both_gradients():
    v = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x, v: x.masked_fill(torch.tensor(MASK), v), fullgraph=True)(x, v).sum().backward()
    assert x.grad.tolist() == [0, 1, 0] and v.grad.item() == 2 and v.grad.dtype is torch.float64


def test_masked_fill_takes_no_vector():
    for call in (lambda x, v: x.masked_fill(x > 1, v), torch.compile(lambda x, v: x.masked_fill(x > 1, v))):
        with pytest.raises(RuntimeError, match="0-dimensional value tensor"):
            call(torch.ones(3), torch.ones(1))
