"""float8: casts, which stop at the greatest number of float8_e4m3fn, arithmetic in float32, products with scales, all of it compiled too."""

import pytest

import flambeau as torch

E4, E5 = torch.float8_e4m3fn, torch.float8_e5m2
NUMBERS = [1e9, -1e9, float("inf"), float("nan"), 448.0, 464.0, 465.0, 500.0, 1e-9, -3.3, 57344.0, 61441.0]
CAST = {
    E4: [448.0, -448.0, 448.0, float("nan"), 448.0, 448.0, 448.0, 448.0, 0.0, -3.25, 448.0, 448.0],
    E5: [float("inf"), float("-inf"), float("inf"), float("nan"), 448.0, 448.0, 448.0, 512.0, 0.0, -3.5, 57344.0, float("inf")],
}  # fmt: skip


def assigned(x, dtype):
    y = torch.empty(x.shape, dtype=dtype)
    y[:] = x
    return y


WAYS = {
    "to": lambda x, dtype: x.to(dtype),
    "from float64": lambda x, dtype: x.double().to(dtype),
    "copy_": lambda x, dtype: torch.empty(x.shape, dtype=dtype).copy_(x),
    "setitem": assigned,
    "compiled": lambda x, dtype: torch.compile(lambda x: (x * 1).to(dtype), fullgraph=True)(x),
    "tensor": lambda x, dtype: torch.tensor(x.tolist(), dtype=dtype),
}


@pytest.mark.parametrize("dtype", CAST, ids=str)
@pytest.mark.parametrize("way", WAYS)
def test_casts(dtype, way):
    got = WAYS[way](torch.tensor(NUMBERS), dtype)
    assert got.dtype is dtype
    assert torch.equal(got.float().nan_to_num(nan=7.5), torch.tensor(CAST[dtype]).nan_to_num(nan=7.5))


@pytest.mark.parametrize("dtype", CAST, ids=str)
def test_arithmetic_is_that_of_float32_rounded(dtype):
    x, y = torch.randn(32, generator=torch.Generator().manual_seed(1)).to(dtype), torch.full((32,), 300.0).to(dtype)
    for f in (torch.add, torch.mul, torch.maximum, torch.dot):
        assert torch.equal(f(x, y).float(), f(x.float(), y.float()).to(dtype).float()), f


MADE_INSIDE = {
    "element": lambda dtype: torch.tensor([1.0, 2.5], dtype=dtype)[1],
    "bytes": lambda dtype: torch.tensor([1.0, 2.5], dtype=dtype).view(torch.uint8),
    "cast": lambda dtype: torch.tensor([1.0, 2.5], dtype=dtype).float() + 1,
    "joined": lambda dtype: torch.cat([torch.tensor([1.0, 2.5], dtype=dtype), torch.zeros(1, dtype=dtype)]),
    "sum": lambda dtype: torch.tensor([1.0, 2.5], dtype=dtype).sum(),
    "equal": lambda dtype: torch.tensor([1.0, 2.5], dtype=dtype) == torch.full((2,), 2.5, dtype=dtype),
}


@pytest.mark.parametrize("dtype", CAST, ids=str)
@pytest.mark.parametrize("program", MADE_INSIDE)
def test_constants_of_a_graph(dtype, program):
    want, got = MADE_INSIDE[program](dtype), torch.compile(MADE_INSIDE[program], fullgraph=True)(dtype)
    assert got.dtype is want.dtype and torch.equal(got.float(), want.float())


def operands():
    g = torch.Generator().manual_seed(2)
    return torch.randn(8, 32, generator=g).to(E4), torch.randn(16, 32, generator=g).to(E5).t()


SCALES = {
    "numbers": (torch.tensor(1.5), torch.tensor([[0.25]])),
    "rows": (torch.arange(1.0, 9.0)[:, None], torch.arange(1.0, 17.0)[None]),
}


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("compiled", [False, True])
def test_products_with_scales(scales, compiled):
    a, b = operands()
    sa, sb = SCALES[scales]
    bias = torch.arange(16.0)

    def run(a, b):
        plain = torch._scaled_mm(a, b, sa, sb, bias=bias, out_dtype=torch.float32)
        half = torch._scaled_mm(a, b, scale_a=sa, scale_b=sb, scale_result=torch.tensor(4.0))
        return plain, half

    plain, half = (torch.compile(run, fullgraph=True) if compiled else run)(a, b)
    want = (a.float() * sa) @ (b.float() * sb)
    assert torch.allclose(plain, want + bias, rtol=1e-5, atol=1e-4)
    assert half.dtype is E4 and torch.allclose(half.float(), (want / 4).to(E4).float(), rtol=0.13)


def test_products_that_are_refused():
    a, b = operands()
    one = torch.tensor(1.0)
    for error, text, run in (
        (RuntimeError, r"cannot be multiplied \(8x32 and 8x32\)", lambda: torch._scaled_mm(a, a, one, one)),
        (RuntimeError, "mat1 must be a matrix", lambda: torch._scaled_mm(a[0], b, one, one)),
        (RuntimeError, "Bias must be size 16 but got 3", lambda: torch._scaled_mm(a, b, one, one, bias=torch.ones(3))),
        (ValueError, "Invalid scaling configuration", lambda: torch._scaled_mm(a.float(), b, one, one)),
        (ValueError, "Invalid scaling configuration", lambda: torch._scaled_mm(a, b, SCALES["rows"][0], one)),
        (ValueError, "Invalid scaling configuration", lambda: torch._scaled_mm(a, b, one.double(), one)),
    ):
        with pytest.raises(error, match=text):
            run()
