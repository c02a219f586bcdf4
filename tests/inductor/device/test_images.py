"""Kernels as a device loads them: once for a device, and as assembly of its architecture that is kept on disk."""

import types

import pytest
from tests.cuda.kernels import kernels_of, program_of

import flambeau as torch
from flambeau.base import accelerator
from flambeau.base.device import as_device
from flambeau.inductor.codegen.targets import NVIDIA, SIMULATED
from flambeau.inductor.device import images
from flambeau.inductor.machine import nvptx

A = torch.ops.aten


def text_of(op, *args, target=SIMULATED):
    (kernel,) = kernels_of(program_of(op, op.full(*args)), target)
    return kernel.text


class Driver(types.SimpleNamespace):
    """NVIDIA's, as far as images ask: ``loaded`` lists what it was given."""

    def current_device(self):
        return 0

    def name(self):
        return "nvidia"

    def properties(self, index):
        return {"major": self.majors[index], "minor": 0}

    def load(self, index, image, name):
        self.loaded.append((index, image, name))
        return len(self.loaded)


@pytest.fixture
def nvidia(monkeypatch, tmp_path):
    driver = Driver(majors=(8, 9), loaded=[])
    monkeypatch.setattr(accelerator, "needed", lambda: driver)
    monkeypatch.setattr(images, "_loaded", {})
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    return driver


def test_a_kernel_is_loaded_once_for_a_device():
    text = text_of(A.neg.default, torch.ones(77))
    first, other = (images.function_of(as_device(f"cuda:{k}"), text) for k in (0, 1))
    assert images.function_of(as_device("cuda:0"), text) is first and other is not first
    assert first.name == other.name and text.count("@KERNEL") == 1  # the name is the text's
    assert images.function_of(as_device("cuda:0"), text_of(A.neg.default, torch.ones(78))).name != first.name


def test_the_target_is_the_drivers(nvidia):
    assert images.target() is NVIDIA
    nvidia.name = lambda: "simulated"
    assert images.target() is SIMULATED


def test_the_image_is_assembly_of_the_devices_architecture(nvidia):
    text = text_of(A.neg.default, torch.ones(77), target=NVIDIA)
    found = [images.function_of(as_device(f"cuda:{k}"), text) for k in (0, 1)]
    assert [f.handle for f in found] == [1, 2]
    for (index, image, name), architecture in zip(nvidia.loaded, ("sm_80", "sm_90")):
        assert image.endswith(b"\0") and f".target {architecture}\n".encode() in image
        assert name == found[index].name and f".visible .entry {name}(".encode() in image


def test_assembly_is_kept_on_disk_by_architecture(nvidia, monkeypatch):
    text, made = text_of(A.neg.default, torch.ones(77), target=NVIDIA), []
    assemble = nvptx.assembly
    monkeypatch.setattr(nvptx, "assembly", lambda *given: made.append(given[1]) or assemble(*given))
    for _ in range(2):
        for index in (0, 1):
            images._loaded.clear()  # as in another process
            images.function_of(as_device(f"cuda:{index}"), text)
    assert made == ["sm_80", "sm_90"]
    assert nvidia.loaded[0] == nvidia.loaded[2] and nvidia.loaded[1] == nvidia.loaded[3]


def test_what_no_device_has_is_neither_loaded_nor_kept(nvidia):
    text = text_of(A.sin.default, torch.ones(77), target=NVIDIA)
    for _ in range(2):
        with pytest.raises(NotImplementedError, match="no device has sinf"):
            images.function_of(as_device("cuda:0"), text)
    assert not nvidia.loaded and not images._loaded
