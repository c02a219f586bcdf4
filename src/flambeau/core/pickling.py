"""Public functions are pickled and copied as what they are called, as Python's own functions are."""

from __future__ import annotations

import copyreg
import operator
import pickle
import sys

from .. import _C

__all__ = ["named"]

_PLACES = ("flambeau", "flambeau.nn.functional", "flambeau.special", "flambeau.linalg", "flambeau.fft")


def named(place: str, path: str):
    """The function ``path`` ("sin", "Tensor.add") of the module ``place``."""
    __import__(place)
    return operator.attrgetter(path)(sys.modules[place])


def _reduced(function: _C.Function):
    """PicklingError for a function that no public module has under its name."""
    name = function.__name__
    for place in _PLACES:
        module = sys.modules.get(place)
        for path in (name, f"Tensor.{name}"):
            owner = getattr(module, "Tensor", None) if "." in path else module
            if getattr(owner, name, None) is function:
                return named, (place, path)
    raise pickle.PicklingError(f"can't pickle the function {name}: no public module of flambeau has it")


copyreg.pickle(_C.Function, _reduced)
