"""The networks of benchmarks/networks.py, trained compiled and eager, and by PyTorch where it is installed: from the same weights and data, the losses agree.

A loss is a sum of many products; where sums are made in another order its last bits differ, and each step passes the difference on. Bounds are
parts of the first loss. Measured, beside eager and beside PyTorch: 6e-7 for the small networks, 7e-5 for the whole ones (residual networks with
batch norm over few images; 2e-7 for transformers).
"""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import flambeau as torch

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def _networks():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("networks")
    finally:
        sys.path.remove(str(BENCHMARKS))


networks = _networks()
SMALL = {
    "MLP": networks._mlp,
    "LeNet": networks._lenet,
    "GPT": lambda torch: networks._gpt(torch, width=32, layers=1, heads=2, batch=2, time=16, vocabulary=40),
    "ViT": lambda torch: networks._vit(torch, width=24, layers=1, heads=3, batch=4, patch=8),
    "U-Net": lambda torch: networks._unet(torch, width=8, batch=4, side=16),
    "BERT": lambda torch: networks._bert(torch, width=32, layers=1, heads=2, batch=2, time=16, vocabulary=40),
    "LSTM": lambda torch: networks._lstm(torch, vocabulary=40, width=24, time=10, batch=4),
    "MLP-Mixer": lambda torch: networks._mixer(torch, width=24, layers=1, batch=4, patch=8),
    "Whisper": lambda torch: networks._whisper(torch, width=24, layers=1, heads=3, batch=4, time=32, mels=8),
    "diffusion": lambda torch: networks._diffusion(torch, width=16, batch=4, side=8),
}


def losses(torch, make, arrays, compiled: bool, steps: int, rate: float) -> list[float]:
    """Losses of steps of SGD with momentum."""
    model, x, target = networks.from_arrays(torch, make, arrays)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    run = torch.compile(model) if compiled else model
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(run(x), target)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def check(make, steps: int, rate: float, bound: float, other) -> None:
    torch.manual_seed(0)
    arrays = networks.state(*make(torch))
    ours = losses(torch, make, arrays, True, steps, rate)
    wanted = losses(other, make, arrays, False, steps, rate)
    np.testing.assert_allclose(ours, wanted, rtol=0, atol=bound * wanted[0])
    assert min(ours) < (1 - bound) * ours[0]  # it learns


SMALL_STEPS, WHOLE_STEPS = (10, 0.05, 1e-5), (12, 0.005, 2e-4)  # count, rate, bound


@pytest.mark.parametrize("name", list(SMALL))
def test_small_networks_compiled_beside_eager(name):
    check(SMALL[name], *SMALL_STEPS, torch)


@pytest.mark.parity
@pytest.mark.parametrize("name", list(SMALL))
def test_small_networks_beside_pytorch(name):
    check(SMALL[name], *SMALL_STEPS, pytest.importorskip("torch"))


@pytest.mark.slow
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_whole_networks_compiled_beside_eager(name):
    check(networks.NETWORKS[name], *WHOLE_STEPS, torch)


@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.parametrize("name", list(networks.NETWORKS))
def test_whole_networks_beside_pytorch(name):
    check(networks.NETWORKS[name], *WHOLE_STEPS, pytest.importorskip("torch"))
