"""Targets that are truth values: a mask that is told from predictions, as in PyTorch, plainly and compiled."""

import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
@pytest.mark.parametrize(
    "loss, value, slope", [(F.mse_loss, 0.125, 0.5), (F.huber_loss, 0.0625, 0.25), (F.smooth_l1_loss, 0.0625, 0.25)]
)
def test_values_and_gradients(loss, value, slope, backend):
    fn = loss if backend is None else torch.compile(loss, backend=backend)
    x = torch.tensor([1.5, 0.0], requires_grad=True)
    found = fn(x, torch.tensor([True, False]))
    found.backward()
    assert found.item() == value and found.dtype is torch.float32
    assert x.grad.tolist() == [slope, 0.0]
    if loss is not F.huber_loss:  # which has the dtype of its input
        assert fn(torch.tensor([True, False]), x.detach()).item() == value
