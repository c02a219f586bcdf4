"""Every test here has two simulated devices; the process has none before and after."""

import pytest

from flambeau.base import accelerator


@pytest.fixture(autouse=True)
def simulated_devices(monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CUDA", "simulated:2")
    accelerator.driver.cache_clear()
    yield
    accelerator.driver().set_device(0)
    accelerator.driver.cache_clear()
