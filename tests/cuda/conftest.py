"""Every test here has two simulated devices, whose kernels compile and only read what was written; the process has none before and after."""

import pytest

from flambeau.base import accelerator
from flambeau.inductor.device import single


@pytest.fixture(autouse=True)
def simulated_devices(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CUDA", "simulated:2")
    accelerator.driver.cache_clear()
    accelerator.driver().watch_unwritten(1)
    monkeypatch.setattr(single, "strict", True)
    yield
    accelerator.driver().watch_unwritten(0)
    accelerator.driver().late(0)
    accelerator.driver().set_device(0)
    accelerator.driver.cache_clear()


@pytest.fixture
def late():
    """Work of the device begins when somebody waits for it."""
    accelerator.driver().late(1)
