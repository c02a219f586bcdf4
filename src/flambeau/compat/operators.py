"""``torch.special``, ``torch.linalg``, ``torch.fft``, ``torch.signal``: operators under another name, from their declarations."""

from __future__ import annotations

import importlib
import types

from ..base.errors import LinAlgError
from ..base.nearest import Absent
from ..core.bindings import LATER, function
from ..core.declare import EXPOSED
from ..core.operator import namespace

__all__ = ["fft", "linalg", "signal", "special"]

# Names of torch.special that are operators of the root namespace.
_RENAMED = {
    "special": {},
    "linalg": {},
    "fft": {},
    "signal": {},
}


_SUBMODULES = {"signal": ("windows",)}


def _build(place: str) -> types.ModuleType:
    module = types.ModuleType(f"flambeau.{place}", f"torch.{place}, from the operators' declarations.")
    aten = namespace("aten")

    def operator(name: str) -> str | None:
        for opname in (EXPOSED.get(place, {}).get(name), f"{place}_{name}", _RENAMED[place].get(name)):
            if opname and (opname in LATER or aten._packet(opname) is not None):
                return opname
        return None

    def __getattr__(name):
        if name in _SUBMODULES.get(place, ()):
            return importlib.import_module(f"flambeau.{place}.{name}")
        opname = None if name.startswith("_") else operator(name)
        if opname is None:
            raise AttributeError(Absent.of_module(module, f"torch.{place}", name), name=name, obj=module)
        made = module.__dict__[name] = function(opname)
        made.__module__ = f"torch._C._{place}"
        return made

    prefix = f"{place}_"
    known = {n for n in (*aten._packets, *LATER) if n.startswith(prefix) and not n.endswith("_")}
    names = sorted({*EXPOSED.get(place, {}), *(n.removeprefix(prefix) for n in known), *_RENAMED[place]})
    names = [n for n in names if operator(n) is not None]
    module.__dict__.update(__getattr__=__getattr__, __all__=names, __dir__=lambda: sorted({*module.__dict__, *names}))
    return module


special, linalg, fft, signal = map(_build, ("special", "linalg", "fft", "signal"))
linalg.LinAlgError = LinAlgError
