"""The operators (level 2): data only, a file to a family. ``torch.ops.aten.add.Tensor`` is reached from here too.

Adding a pointwise operator is one decorated function in one of these files; see docs/design/architecture.md. The families in ``index.FAMILIES``
are declared when one of their names is first asked for: ``index.py`` is written by ``python -m flambeau.testing.families``.
"""

import importlib as _importlib

from ..core import bindings as _bindings
from ..core.declare import EXPOSED as _EXPOSED
from ..core.operator import Unbuilt as _Unbuilt
from ..core.operator import namespace as _namespace
from . import (  # noqa: F401, I001
    arithmetic,
    comparison,
    data,
    draws,
    elementary,
    factories,
    indexing,
    linear,
    reductions,
    reinterpret,
    scalars,  # noqa: F401  (first: bodies are written in its rows)
    scalars_special,
    shaping,
    sizes,
    views,
)
from . import index as _index

EAGER = frozenset(name for name, value in globals().items() if type(value) is type(_importlib))

_FAMILY_OF = {name: family for family, names in _index.FAMILIES.items() for name in names.split()}


def load_family(family: str) -> None:
    """Declare the operators of a family that is loaded when it is used. Another thread that is doing so is waited for."""
    _importlib.import_module(f"flambeau.ops.{family}")


def _load(name: str) -> bool:
    family = _FAMILY_OF.get(name)
    if family is None:
        return False
    load_family(family)
    return True


def _unbuilt(name: str):
    names = _importlib.import_module("flambeau.ops.aten_names").NAMES
    return _Unbuilt("aten", name) if name in names else None


def _overload(packet: str, name: str):
    return _importlib.import_module("flambeau.ops.aten_names").OVERLOADS.get(f"{packet}.{name}", (None, ()))


def _manual(name: str):
    """(sentences, example) of an operator, None where the manual has none."""
    return _importlib.import_module("flambeau.ops.manual").entry(name)


_aten = _namespace("aten")
_aten._load, _aten._unbuilt, _aten._overload, _aten._manual = _load, _unbuilt, _overload, _manual
_bindings.LATER.update(_FAMILY_OF)
for _place, _names in _index.EXPOSED.items():
    for _entry in _names.split():
        _public, _, _opname = _entry.partition("=")
        _EXPOSED[_place].setdefault(_public, _opname or _public)
        if _public.endswith("_"):
            _bindings.LATER.add(_opname or _public)


def load_library(path) -> None:
    """``torch.ops.load_library``. OSError: operators in native libraries of PyTorch's are not loaded here."""
    raise OSError(f"{path}: flambeau loads no native libraries of operators; define them in Python with torch.library")


def __getattr__(name):
    """``torch.ops.<namespace>``, made if new, as in PyTorch."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _namespace(name)
