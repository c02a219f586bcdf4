"""Activations where numbers end, beside what PyTorch gives (2.13, on CPU)."""

import pytest

import flambeau as torch

F = torch.nn.functional
INF, NAN = float("inf"), float("nan")
POINTS = [INF, -INF, NAN, 3e38, -3e38, -4.0, 0.0]
VALUES = {
    "hardswish": (F.hardswish, [INF, NAN, NAN, INF, -0.0, -0.0, 0.0]),
    "hardsigmoid": (F.hardsigmoid, [1, 0, NAN, 1, 0, 0, 0.5]),
    "silu": (F.silu, [INF, NAN, NAN, 3e38, -0.0, -0.071944855, 0.0]),
    "relu6": (F.relu6, [6, 0, NAN, 6, 0, 0, 0]),
    "softplus": (F.softplus, [INF, 0, NAN, 3e38, 0, 0.01814993, 0.6931472]),
}
GRADIENTS = {
    "hardtanh": (F.hardtanh, [0, 0, 1, 0, 0, 0, 1]),
    "relu6": (F.relu6, [0, 0, 1, 0, 0, 0, 0]),
    "hardswish": (F.hardswish, [1, 0, 1, 1, 0, 0, 0.5]),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", VALUES)
def test_values(name, compiled):
    fn, want = VALUES[name]
    fn = torch.compile(fn) if compiled else fn
    for _ in range(3):
        got = fn(torch.tensor(POINTS))
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float32), equal_nan=True)
        assert torch.equal(got.signbit()[4], torch.tensor(want[4]).signbit())


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, compiled):
    fn, want = GRADIENTS[name]
    fn = torch.compile(fn) if compiled else fn
    for _ in range(3):
        x = torch.tensor(POINTS, requires_grad=True)
        got = torch.autograd.grad(fn(x), x, torch.ones(len(POINTS)))[0]
        torch.testing.assert_close(got, torch.tensor(want, dtype=torch.float32))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_nearest_has_a_gradient_of_zero(compiled):
    """grid_sample's grid with mode="nearest": it was no gradient at all."""
    grid = (torch.rand(1, 3, 3, 2) * 2 - 1).requires_grad_()
    image = torch.arange(24.0).reshape(1, 1, 4, 6)
    fn = lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=True)  # noqa: E731
    out = (torch.compile(fn) if compiled else fn)(image, grid)
    assert out.requires_grad and torch.equal(out.detach(), fn(image, grid.detach()))
    assert torch.equal(torch.autograd.grad(out.sum(), grid)[0], torch.zeros(1, 3, 3, 2))
