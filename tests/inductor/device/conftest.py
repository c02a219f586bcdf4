"""Every test here has two simulated devices, as those of tests/cuda."""

import pytest
from tests.cuda.conftest import simulated_devices

from flambeau.inductor.device import compile

__all__ = ["simulated_devices"]


@pytest.fixture
def graphs(monkeypatch):
    """The graphs of the device that are compiled."""
    made, original = [], compile.compile_on_device
    monkeypatch.setattr(compile, "compile_on_device", lambda *given: made.append(original(*given)) or made[-1])
    return made
