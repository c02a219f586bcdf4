"""Public functions are pickled and copied as what they are called, as Python's own functions are."""

from __future__ import annotations

import copyreg
import operator
import pickle
import sys

from .. import _C

__all__ = ["named", "public_path"]

_PLACES = (
    "flambeau",
    "flambeau.nn.functional",
    "flambeau.nn.init",
    "flambeau.special",
    "flambeau.linalg",
    "flambeau.fft",
)


def named(place: str, path: str):
    """The function ``path`` ("sin", "Tensor.add") of the module ``place``."""
    __import__(place)
    return operator.attrgetter(path)(sys.modules[place])


def public_path(function: _C.Function) -> tuple[str, str] | None:
    """The public module that has ``function``, and its name there ("sin", "Tensor.add"); None when no public module has it."""
    name = function.__name__
    for place in _PLACES:
        module = sys.modules.get(place)
        short = name.removeprefix(place.rpartition(".")[2] + "_")  # torch.linalg.svd is called linalg_svd
        for path in (name, f"Tensor.{name}", short):
            owner = getattr(module, "Tensor", None) if "." in path else module
            if getattr(owner, path.rpartition(".")[2], None) is function:
                return place, path
    return None


def _reduced(function: _C.Function):
    """PicklingError for a function that no public module has under its name."""
    found = public_path(function)
    if found is None:
        raise pickle.PicklingError(
            f"can't pickle the function {function.__name__}: no public module of flambeau has it"
        )
    return named, found


for _kind in (_C.Function, _C.Method):
    copyreg.pickle(_kind, _reduced)
