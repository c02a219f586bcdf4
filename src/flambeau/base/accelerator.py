"""The second device: whether there is one, and the native module that drives it (csrc/device/).

``FLAMBEAU_CUDA=simulated`` gives a process one simulated device, ``simulated:N`` so many; ``nvidia`` NVIDIA's devices, through cuda-bindings
(experimental). Nothing is loaded before a program first names a device.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import warnings

from .errors import OutOfMemoryError
from .foreign import address_of
from .logs import artifact

__all__ = ["count", "current_index", "driver", "has_products", "needed"]

_HINTS = artifact("perf_hints", "fallbacks and other things that cost time")


@functools.cache
def driver():
    """The module that drives the device, None where there is no device. ValueError for a setting that means nothing."""
    setting = os.environ.get("FLAMBEAU_CUDA", "")
    if not setting:
        return None
    kind, _, number = setting.partition(":")
    if not (setting == "nvidia" or (kind == "simulated" and (number or "1").isdigit())):
        raise ValueError(
            f"FLAMBEAU_CUDA={setting!r}: expected 'simulated', 'simulated:N' for N devices, or 'nvidia' for NVIDIA's"
        )
    from .. import _device

    if not _device.name():
        if setting == "nvidia":
            _device.nvidia(_addresses(_device.nvidia_functions()))
            products = _product_addresses(_device.cublas_functions())
            if products:
                _device.cublas(products)
            warnings.warn("torch.cuda on NVIDIA's devices is experimental: it was written without one", stacklevel=2)
        else:
            _device.simulate(int(number or 1))
            atexit.register(_device.finish)  # kernels are code of this process, which would go away under them
    _device.configure(OutOfMemoryError)
    return _device


_CUDA_VERSION = 12000  # whose forms of libcuda's functions csrc/device/nvidia.c calls


def _addresses(names: list[str]) -> list[int]:
    """Where libcuda's functions are. RuntimeError that says what to install where cuda-bindings or the driver is missing."""
    try:
        from cuda.bindings import driver as cuda
    except ImportError:
        raise RuntimeError("FLAMBEAU_CUDA=nvidia needs cuda-bindings: pip install 'flambeau[cuda]'") from None
    found = []
    try:
        for name in names:
            status, address, _ = cuda.cuGetProcAddress(name.encode(), _CUDA_VERSION, 0)
            found.append(int(address) if int(status) == 0 else 0)
    except Exception as e:  # cuda-bindings has errors of its own for a missing libcuda, by version
        raise RuntimeError(
            f"Found no NVIDIA driver on your system. Install one for your GPU from NVIDIA ({type(e).__name__}: {e})"
        ) from None
    return found


def _product_addresses(names: list[str]) -> list[int]:
    """Where cuBLASLt's functions are; none where it isn't installed: then products are kernels."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        library = ctypes.CDLL(load_nvidia_dynamic_lib("cublasLt").abs_path)
        return [address_of(getattr(library, name)) for name in names]
    except Exception as e:  # ImportError, and cuda-pathfinder's own by version; a library of an older form
        _HINTS(
            "products don't go through cuBLASLt, which pip install 'flambeau[cuda]' brings: %s: %s",
            type(e).__name__,
            str(e),
        )
        return []


def count() -> int:
    """How many devices there are."""
    found = driver()
    return 0 if found is None else found.count()


def has_products() -> bool:
    """Whether products are the work of the device's library. Kernels are also made where there is no driver, to be assembled and looked at."""
    found = driver()
    return found is not None and found.products()


def needed():
    """The driver. AssertionError where there is none."""
    found = driver()
    if found is None:
        raise AssertionError("Torch not compiled with CUDA enabled")
    return found


def current_index() -> int:
    """The index of this thread's device."""
    return needed().current_device()
