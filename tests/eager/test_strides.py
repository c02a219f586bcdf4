"""Elementwise operators on operands whose elements lie apart, again and again: the first call is NumPy's, later ones are call plans that call NumPy's inner
loops themselves, and some of those (seen in 2.4 with AVX-512) are wrong for certain distances."""

import pytest

import flambeau as torch

UNARY = """abs neg sign exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan tanh sinh cosh asinh atan floor ceil trunc round
frac isnan isinf isfinite signbit logical_not relu sigmoid erf positive bitwise_not deg2rad""".split()
BINARY = """add sub mul div maximum minimum fmax fmin pow atan2 hypot copysign fmod remainder floor_divide eq lt logical_and logical_xor bitwise_and
logaddexp nextafter true_divide""".split()
STEPS = [2, 3, 4, 5, 6, 8, 12, 16]
DTYPES = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8, torch.bool]


def apart(shape, step, dtype, seed):
    """A tensor of three dimensions in another order than memory's, whose last elements are ``step`` apart where the last dimension is short."""
    a, b, c = shape
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randint(1, 100, (a, c, b, step), generator=generator)
    whole = (
        whole > 50 if dtype is torch.bool else (whole.to(dtype) / 10 if dtype.is_floating_point else whole.to(dtype))
    )
    return whole[..., :2].transpose(1, 2)


def agree(name, fn, *operands):
    copies = [x.contiguous() for x in operands]
    try:
        want = fn(*copies)
    except (RuntimeError, NotImplementedError, TypeError):
        return 0  # not for this dtype
    for call in range(4):
        got = fn(*operands)
        torch.testing.assert_close(
            got.contiguous(), want, rtol=1e-5, atol=1e-6, equal_nan=True, msg=lambda m: f"{name}, call {call}: {m}"
        )
        assert all(torch.equal(x, y) for x, y in zip(operands, copies)), name
    return 1


# Every distance for float32, whose loops in NumPy were wrong; two of them for each other dtype.
OFTEN = [(step, dtype) for step in STEPS for dtype in DTYPES if dtype is torch.float32 or step in (2, 5)]
SELDOM = [
    pytest.param(step, dtype, marks=pytest.mark.slow)
    for step in STEPS
    for dtype in DTYPES
    if (step, dtype) not in OFTEN
]


@pytest.mark.parametrize("step, dtype", OFTEN + SELDOM)
def test_elements_apart(step, dtype):
    met = 0
    for shape in ((2, 17, 6), (1, 33, 1)):
        x, y = apart(shape, step, dtype, 0), apart(shape, step, dtype, 1)
        cases = [(name, getattr(torch, name), (x,)) for name in UNARY]
        for name in BINARY:
            f = getattr(torch, name)
            cases += [
                (name, f, (x, y)),
                (name, f, (x, y[..., :1])),
                (name, f, (x.contiguous(), y)),
                (name, f, (x, y[:, :1])),
            ]
        met += sum(agree((name, shape), fn, *operands) for name, fn, operands in cases)
    assert met > 100


@pytest.mark.parametrize("step", [2, 3, 4, 5, 8])
def test_written_apart(step):
    for name in "neg_ abs_ exp_ sqrt_ relu_ sigmoid_ floor_ reciprocal_ square_".split():
        for call in range(4):
            x = apart((2, 17, 6), step, torch.float32, call)
            want = getattr(x.contiguous(), name)()
            assert torch.equal(getattr(x, name)(), want) and torch.equal(x, want), (name, call)
            y = apart((2, 17, 6), step, torch.float32, call)[..., 0]
            want = getattr(y.contiguous(), name)()
            assert torch.equal(getattr(y, name)(), want), (name, call, "a column")


def test_gradients_of_rotated_halves():
    """Rotary embeddings: the gradient was wrong from the second step on."""
    x = torch.randn(2, 17, 6, 4, requires_grad=True)
    weights = torch.randn(2, 6, 17, 4)

    def gradient():
        z = x.transpose(1, 2)
        return torch.autograd.grad((torch.cat([-z[..., 2:], z[..., :2]], -1) * weights).sum(), x)[0]

    want = torch.cat([weights[..., 2:], -weights[..., :2]], -1).transpose(1, 2)
    for _ in range(4):
        assert torch.equal(gradient(), want)
