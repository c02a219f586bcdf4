"""``torch.types``: names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Dict, List, Optional, Tuple, Union  # noqa: UP035, F401  (torch.jit.annotations)

from ..base.device import Device as _Device
from ..base.dtypes import DType
from ..base.shapes import Size
from ..core.tensor import Tensor
from .legacy import TypedStorage, UntypedStorage

Number = Union[builtins.int, builtins.float, builtins.bool]  # noqa: UP007
Device = Union[_Device, str, int, None]  # noqa: UP007
FileLike = Union[str, os.PathLike[str], IO[bytes]]  # noqa: UP007
Storage = Union[TypedStorage, UntypedStorage]  # noqa: UP007
TensorOrTensors = Union[Tensor, Sequence[Tensor]]  # noqa: UP007
_bool, _int, _float, _complex = builtins.bool, builtins.int, builtins.float, builtins.complex
_device = _Device
_dtype, _size = DType, Union[Size, list[int], tuple[int, ...]]  # noqa: UP007
SymInt, SymFloat, SymBool = int, float, bool
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool
PySymType = Union[int, float, bool]  # noqa: UP007
py_sym_types = (int, float, bool)
BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = list

__all__ = [n for n in dir() if not n.startswith("__") and n not in ("annotations", "builtins", "os", "IO", "DType")]
_ = Any
