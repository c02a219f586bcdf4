"""Which object a global of a checkpoint is, both ways: PyTorch's paths outside, flambeau's inside.

``torch.x.y`` in a file is ``flambeau.x.y`` here. The objects of the first table have another home than their public path.
"""

from __future__ import annotations

import collections
import importlib

from ..base import dtypes
from ..base.device import Device
from ..base.dtypes import DType
from ..base.shapes import Size
from ..core.tensor import Tensor
from ..modules.parameter import Parameter
from . import rebuild
from .rebuild import STORAGES

__all__ = ["SAFE", "StorageType", "find", "global_name"]


class StorageType:
    """What a storage class of a checkpoint stands for; ``dtype`` None for an untyped one."""

    def __init__(self, name: str, dtype: DType | None):
        self.name, self.dtype = name, dtype


_STORAGES = {name: StorageType(name, dtype) for name, dtype in STORAGES.items()}
_UNTYPED = StorageType("UntypedStorage", None)

SAFE: dict[str, object] = {
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "collections.defaultdict": collections.defaultdict,
    "torch.Size": Size,
    "torch.Tensor": Tensor,
    "torch.device": Device,
    "torch.nn.parameter.Parameter": Parameter,
    "torch.storage.UntypedStorage": _UNTYPED,
    "torch.UntypedStorage": _UNTYPED,
    "torch.serialization._get_layout": rebuild._get_layout,
    "torch._tensor._rebuild_from_type_v2": rebuild._rebuild_from_type_v2,
    "builtins.complex": complex,
    "_codecs.encode": lambda text, encoding: _encode(text, encoding),
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    **{f"torch.{name}": kind for name, kind in _STORAGES.items()},
    **{f"torch.{d.name}": d for d in dtypes.ALL},
    **{
        f"torch._utils.{name}": getattr(rebuild, name)
        for name in (
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_sparse_tensor",
            "_rebuild_parameter_with_state",
            "_rebuild_meta_tensor_no_storage",
            "_rebuild_device_tensor_from_numpy",
        )
    },
}


def _encode(text, encoding):
    """``_codecs.encode`` as pickles of bytes in protocol 2 use it, and nothing more."""
    if not isinstance(text, str) or encoding != "latin1":
        raise RuntimeError("invalid checkpoint: _codecs.encode is for latin1 text only")
    return text.encode("latin1")


_PY2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_OWN: dict[int, str] = {}
for _name, _value in SAFE.items():
    if _name.startswith(("torch", "collections")):
        _OWN.setdefault(id(_value), _name)


def find(module: str, name: str):
    """The object that a trusted checkpoint means by ``module.name``."""
    module = _PY2.get(module, module)
    known = SAFE.get(f"{module}.{name}")
    if known is not None:
        return known
    if module == "torch" or module.startswith("torch."):
        module = "flambeau" + module[5:]
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def global_name(obj) -> tuple[str, str] | None:
    """(module, name) under which ``obj`` goes into a file, when that isn't where it lives."""
    known = _OWN.get(id(obj))
    if known is not None:
        return tuple(known.rpartition(".")[::2])
    if isinstance(obj, DType):
        return ("torch", obj.name)
    module = getattr(obj, "__module__", None)
    if isinstance(module, str) and (module == "flambeau" or module.startswith("flambeau.")):
        return ("torch" + module[8:], obj.__qualname__)
    return None
