"""Transposed convolutions whose result has no elements, and gradients of convolutions called with operands of several dtypes."""

import pytest

import flambeau as torch

F = torch.nn.functional
aten = torch.ops.aten
KINDS = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}

# image, weight, how -> size of the result: PyTorch gives it where oneDNN computes (several images, groups) and refuses it elsewhere
EMPTY = {
    "a line": ((1, 2, 1), (2, 3, 2), {"padding": 1}, (1, 3, 0)),
    "one dimension": ((1, 2, 1, 4), (2, 3, 2, 3), {"padding": (1, 0)}, (1, 3, 0, 6)),
    "both": ((2, 2, 1, 1), (2, 3, 2, 2), {"padding": 1}, (2, 3, 0, 0)),
    "groups": ((1, 4, 1, 3), (4, 2, 2, 2), {"padding": (1, 0), "groups": 2}, (1, 4, 0, 4)),
    "no batch": ((2, 1, 1), (2, 3, 2, 2), {"padding": 1}, (3, 0, 0)),
    "a stride": ((2, 2, 2, 3), (2, 3, 1, 3), {"stride": 3, "padding": (2, 0)}, (2, 3, 0, 9)),
    "a volume": ((2, 2, 1, 2, 3), (2, 3, 2, 2, 2), {"padding": (1, 0, 0)}, (2, 3, 0, 3, 4)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", EMPTY)
def test_results_without_elements(name, dtype):
    image, weight, how, size = EMPTY[name]
    call = KINDS[len(weight) - 2]

    def f(x, w, b):
        return call(x, w, b, **how) * 2

    for run in (f, torch.compile(f)):
        operands = [
            torch.ones(s, dtype=dtype, requires_grad=True)
            for s in (image, weight, size[1:2] if len(size) == len(weight) else size[:1])
        ]
        made = run(*operands)
        assert tuple(made.shape) == size and made.dtype is dtype
        made.sum().backward()
        assert all(torch.equal(t.grad, torch.zeros_like(t)) for t in operands)


@pytest.mark.parametrize("compiled", [False, True])
def test_negative_sizes_are_refused(compiled):
    def f(x, w):
        return F.conv_transpose2d(x, w, padding=2)

    with pytest.raises(RuntimeError, match=r"Calculated output size per channel: \(-2 x 0\). Output size is too small"):
        (torch.compile(f) if compiled else f)(torch.ones(2, 2, 1, 3), torch.ones(2, 3, 2, 2))


f, d, h, i = torch.float32, torch.float64, torch.bfloat16, torch.int64
# dtypes of gradient, image, weight and which results -> what PyTorch 2.13 raises, or the dtypes it gives
MIXED = [
    (d, f, f, (True, True, True), "expected scalar type Float but found Double"),
    (d, f, f, (True, False, False), "expected scalar type Float but found Double"),
    (d, f, f, (False, True, False), "expected scalar type Float but found Double"),
    (d, f, f, (False, False, True), (None, None, d)),
    (f, d, d, (True, True, True), "expected scalar type Double but found Float"),
    (f, d, d, (False, True, False), "expected scalar type Double but found Float"),
    (f, d, d, (False, False, True), (None, None, f)),
    (h, f, f, (True, False, False), "expected scalar type Float but found BFloat16"),
    (h, f, f, (False, False, True), (None, None, h)),
    (f, f, d, (True, True, True), "should be the same"),
    (f, d, f, (True, True, True), "should be the same"),
    (f, f, i, (True, False, False), "should be the same"),
    (f, f, f, (True, True, True), (f, f, f)),
    (h, h, h, (True, True, True), (h, h, h)),
    (d, d, d, (True, False, True), (d, None, d)),
]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("gradient, image, weight, which, expected", MIXED)
def test_gradients_of_several_dtypes(gradient, image, weight, which, expected, compiled):
    def run(ct, x, w):
        return aten.convolution_backward.default(ct, x, w, [3], [1, 1], [0, 0], [1, 1], False, [0, 0], 1, list(which))

    call = torch.compile(run) if compiled else run
    operands = (
        torch.ones(1, 3, 2, 2, dtype=gradient),
        torch.ones(1, 2, 3, 3, dtype=image),
        torch.ones(3, 2, 2, 2, dtype=weight),
    )
    if isinstance(expected, str):
        with pytest.raises(RuntimeError, match=expected):
            call(*operands)
    else:
        assert tuple(t if t is None else t.dtype for t in call(*operands)) == expected
