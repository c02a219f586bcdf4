"""``torch.cuda``: real where there is a device (cuda_device.py), else the answers of ``devices.py``."""

import importlib
import sys

from ..base import accelerator
from ..base.nearest import Absent
from . import namespaces

_NAMES = [name for name in namespaces.parse("cuda") if name]
__all__ = [name for name in _NAMES if not name.startswith("_")]  # noqa: PLE0604
__path__: list = []


def __getattr__(name):
    if accelerator.driver() is not None:
        for module in ("cuda_device", "cuda_graphs"):
            found = importlib.import_module(f"flambeau.compat.{module}")
            if name in found.__all__ or (module == "cuda_device" and hasattr(found, name)):
                return getattr(found, name)
    try:
        return namespaces.lookup("cuda", name)
    except AttributeError:
        here = sys.modules[__name__]
        raise AttributeError(Absent.of_module(here, "torch.cuda", name), name=name, obj=here) from None


def __dir__():
    return sorted({*globals(), *_NAMES})
