"""What the scaler of gradients refuses, and how far its scale grows. Expected words and numbers are PyTorch 2.13's."""

import pytest

import flambeau as torch


def trained(scaler, dtype=torch.float32, backward=True, factor=1.0):
    p = torch.nn.Parameter(torch.ones(2, dtype=dtype))
    optimizer = torch.optim.SGD([p], lr=0.1)
    loss = scaler.scale((p * factor).sum())
    if backward:
        loss.backward()
    scaler.step(optimizer)
    return p


def test_half_gradients_are_refused():
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        trained(torch.amp.GradScaler("cpu"), torch.float16)


def test_a_step_without_gradients_is_refused():
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        trained(scaler, backward=False)
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()


def test_the_scale_stays_finite():
    scaler = torch.amp.GradScaler("cpu", init_scale=3e38, growth_interval=1)
    for _ in range(2):
        trained(scaler, factor=1e-3)
        scaler.update()
    assert scaler.get_scale() == torch.tensor(3e38).item() and scaler._get_growth_tracker() == 0


@pytest.mark.parametrize(
    "scale", [torch.tensor([1.0, 2.0]), torch.tensor(2.0, requires_grad=True)], ids=["two", "recorded"]
)
def test_a_new_scale_is_one_number(scale):
    scaler = torch.amp.GradScaler("cpu")
    trained(scaler)
    with pytest.raises(AssertionError, match="new_scale should be a float or a 1-element"):
        scaler.update(scale)
    scaler.update(torch.tensor(8.0))
    assert scaler.get_scale() == 8.0
