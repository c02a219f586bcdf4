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
from ..core import quantized
from ..core import rebuild as core
from ..core.tensor import Tensor
from ..modules import parameter
from . import rebuild
from .rebuild import NOT_BUILT, STORAGES, UNTYPED

__all__ = ["SAFE", "find", "global_name", "known"]

# The functions that make tensors.
MAKERS = {
    name: getattr(home, name.rpartition(".")[2])
    for home, names in (
        (core, ("torch._tensor._rebuild_from_type_v2",)),
        (
            core,
            [
                f"torch._utils._rebuild_{n}"
                for n in ("tensor", "tensor_v2", "tensor_v3", "meta_tensor_no_storage", "qtensor")
            ],
        ),
        (parameter, [f"torch._utils._rebuild_{n}" for n in ("parameter", "parameter_with_state")]),
        (rebuild, ["torch.nested._internal.nested_tensor._rebuild_njt"]),
        (
            rebuild,
            [f"torch._utils._rebuild_{n}" for n in ("sparse_tensor", "device_tensor_from_numpy", "nested_tensor")],
        ),
    )
    for name in names
}

SAFE: dict[str, object] = {
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "collections.defaultdict": collections.defaultdict,
    "torch.Size": Size,
    "torch.Tensor": Tensor,
    "torch.device": Device,
    "torch.nn.parameter.Parameter": parameter.Parameter,
    "torch.storage.UntypedStorage": UNTYPED,
    "torch.UntypedStorage": UNTYPED,
    "torch.serialization._get_layout": rebuild._get_layout,
    "builtins.complex": complex,
    "_codecs.encode": lambda text, encoding: _encode(text, encoding),
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    **{f"torch.{name}": kind for name, kind in STORAGES.items()},
    **{f"torch.{d.name}": d for d in (*dtypes.ALL, *quantized.CODES)},
    **{
        f"torch.{name}": getattr(quantized, name)
        for name in ("per_tensor_affine", "per_channel_affine", "per_channel_affine_float_qparams")
    },
    **MAKERS,
}


def _encode(text, encoding):
    """``_codecs.encode`` as pickles of bytes in protocol 2 use it, and nothing more."""
    if not isinstance(text, str) or encoding != "latin1":
        raise RuntimeError("invalid checkpoint: _codecs.encode is for latin1 text only")
    return text.encode("latin1")


# Modules of networks that PyTorch defines in another file: what checkpoints call them.
_HOMES = {
    name: home
    for home, names in {
        "activation": "CELU ELU GLU Hardshrink Hardtanh PReLU RReLU SELU Softmax2d Softmin Softshrink Softsign Tanhshrink Threshold",
        "channelshuffle": "ChannelShuffle",
        "distance": "CosineSimilarity PairwiseDistance",
        "flatten": "Flatten Unflatten",
        "fold": "Fold Unfold",
        "loss": "CTCLoss CosineEmbeddingLoss GaussianNLLLoss HingeEmbeddingLoss KLDivLoss LinearCrossEntropyLoss MarginRankingLoss "
        "MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss PoissonNLLLoss SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
        "normalization": "LocalResponseNorm",
        "pixelshuffle": "PixelShuffle PixelUnshuffle",
        "upsampling": "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
    }.items()
    for name in names.split()
}

_PY2 = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_OWN: dict[int, str] = {}
for _name, _value in SAFE.items():
    if _name.startswith(("torch", "collections")):
        _OWN.setdefault(id(_value), _name)


def known(module: str, name: str):
    """The safe object that checkpoints mean by ``module.name``, else None. NotImplementedError for kinds of tensors that aren't built."""
    full = f"{_PY2.get(module, module)}.{name}"
    if full in NOT_BUILT:
        raise NotImplementedError(f"torch.load: {full}: {NOT_BUILT[full]}")
    if full in rebuild.LATE:
        home, cls = rebuild.LATE[full]
        return getattr(importlib.import_module(home), cls)
    return SAFE.get(full)


def find(module: str, name: str):
    """The object that a trusted checkpoint means by ``module.name``."""
    module = _PY2.get(module, module)
    safe = known(module, name)
    if safe is not None:
        return safe
    if module == "torch" or module.startswith("torch."):
        module = "flambeau" + module[5:]
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def global_name(obj) -> tuple[str, str] | None:
    """(module, name) under which ``obj`` goes into a file, when that isn't where it lives."""
    safe = _OWN.get(id(obj))
    if safe is not None:
        return tuple(safe.rpartition(".")[::2])
    if isinstance(obj, DType):
        return ("torch", obj.name)
    module = getattr(obj, "__module__", None)
    if isinstance(module, str) and module.startswith("flambeau.nn.modules.") and obj.__qualname__ in _HOMES:
        return f"torch.nn.modules.{_HOMES[obj.__qualname__]}", obj.__qualname__
    if isinstance(module, str) and (module == "flambeau" or module.startswith("flambeau.")):
        return ("torch" + module[8:], obj.__qualname__)
    return None
