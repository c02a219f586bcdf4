"""What tensors and devices are asked, and tensors made from numbers and lists."""

from __future__ import annotations

from collections.abc import Callable

from ....base.device import Device
from ...root import public
from .. import values
from .table import prim, row

_make, _take = public("tensor"), public("as_tensor")


def _data(name: str) -> Callable:
    return lambda x: getattr(x, name)


def tensor_of(data, dtype=None, device=None, requires_grad=False):
    return _make(data, dtype=values.dtype_of(dtype), device=device, requires_grad=requires_grad)


def _as_tensor(data, dtype=None, device=None):
    return _take(data, dtype=values.dtype_of(dtype), device=device)


row("len", len, "Tensor -> int")
_HOW = {"dtype": "Optional[int]", "device": "Optional[Device]"}
for _from in ("number", "List[t]"):
    row("tensor", tensor_of, f"{_from} -> Tensor", **_HOW, requires_grad="bool")
    row("as_tensor", _as_tensor, f"{_from} -> Tensor", **_HOW)
row("as_tensor", _as_tensor, "Tensor -> Tensor", **_HOW)
row("_list_to_tensor", tensor_of, "List[int] -> Tensor")
row("device", Device, "str -> Device", "str, int -> Device", "Device -> Device")
for _name in ("dtype", "layout"):
    prim(_name, lambda x, _name=_name: values.code_of(getattr(x, _name)), "Tensor -> int")
prim("device", _data("device"), "Tensor -> Device")
prim("shape", lambda x: list(x.size()), "Tensor -> List[int]")
for _name in (
    "requires_grad is_cuda is_cpu is_sparse is_sparse_csr is_quantized is_meta is_mkldnn is_nested is_mps is_xpu is_xla is_vulkan is_ipu is_mtia "
    "is_maia"
).split():
    prim(_name, lambda x, _name=_name: bool(getattr(x, _name, False)), "Tensor -> bool")
prim("ndim", lambda x: x.dim(), "Tensor -> int")
prim("itemsize", _data("itemsize"), "Tensor -> int")
prim("nbytes", _data("nbytes"), "Tensor -> int")
prim("data", _data("data"), "Tensor -> Tensor")
prim("grad", _data("grad"), "Tensor -> Optional[Tensor]")
prim("type", _data("type"), "Device -> str")
prim("index", _data("index"), "Device -> Optional[int]")
prim("name", lambda x: None, "Tensor -> Optional[str]")
prim("NumToTensor", tensor_of, "number -> Tensor")
prim("tolist", lambda x, *_: x.tolist(), "Tensor, int, int -> Any", "Tensor -> Any")
