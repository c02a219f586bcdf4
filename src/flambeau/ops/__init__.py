"""The operators (level 2): data only, a file to a family. ``torch.ops.aten.add.Tensor`` is reached from here too.

Adding a pointwise operator is one decorated function in a file of one of the folders; see docs/design/architecture.md. A family in
``family_index.FAMILIES`` is declared when one of its names is first asked for. ``python -m flambeau.testing.families`` writes that index.
"""

import importlib as _importlib

from ..core import bindings as _bindings
from ..core.declare import EXPOSED as _EXPOSED
from ..core.operator import Unbuilt as _Unbuilt
from ..core.operator import namespace as _namespace
from . import family_index as _index
from . import out_forms, scalars, scalars_special  # noqa: F401
from .creation import factories
from .indexing import gather_scatter, reads_by_tensors, writes_by_tensors
from .linear_algebra import products
from .pointwise import arithmetic, comparison, elementary
from .random import draws
from .reductions import basic
from .shapes import copying, joining, rearranging, reinterpret, sizes, views

# The families that nearly every program needs, by their names below this package.
EAGER = frozenset(
    module.__name__.removeprefix(f"{__name__}.")
    for module in (
        *(arithmetic, comparison, elementary, factories, reads_by_tensors, writes_by_tensors, gather_scatter),
        *(products, draws, basic, copying, joining, rearranging, reinterpret, sizes, views),
    )
)

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


def _load_quantized(name: str) -> bool:
    """Declare the operators of ``torch.ops.quantized``."""
    for family in ("arithmetic", "layers", "packed", "embeddings", "byte_rows", "sums"):
        load_family(f"affine.{family}")
    return True


_namespace("quantized")._load = _load_quantized


def load_library(path) -> None:
    """``torch.ops.load_library``. OSError: operators in native libraries of PyTorch's are not loaded here."""
    raise OSError(f"{path}: flambeau loads no native libraries of operators; define them in Python with torch.library")


def __getattr__(name):
    """``torch.ops.<namespace>``, made if new, as in PyTorch."""
    if name.startswith("__"):
        raise AttributeError(name)
    # Kept, so that tools can take it away again: delattr(torch.ops, "mine").
    space = globals()[name] = _namespace(name)
    return space
