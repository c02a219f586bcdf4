"""``torch._C``'s guards on dispatch keys: blocks in which calls of this thread pass layers by, or meet them."""

from __future__ import annotations

from collections.abc import Iterable

from .. import _C
from ..core import keys as K

__all__ = [
    "_AutoDispatchBelowAutograd",
    "_DisableFuncTorch",
    "_DisableTorchDispatch",
    "_ExcludeDispatchKeyGuard",
    "_IncludeDispatchKeyGuard",
]

# PyTorch's keys by the beginning of their names. Recording views and writes (ADInplaceOrView) is a part of the layer AUTOGRAD.
_LAYERS = (
    ("Autograd", K.AUTOGRAD),
    ("ADInplaceOrView", 0),
    ("Functionalize", K.FUNCTIONALIZE),
    ("FuncTorch", K.TRANSFORM),
    ("Python", K.PYTHON),
)


def _mask(keys: str | Iterable[str]) -> int:
    mask = 0
    for name in (keys,) if isinstance(keys, str) else keys:
        found = next((layer for prefix, layer in _LAYERS if name.startswith(prefix)), None)
        if found is None:
            raise NotImplementedError(f"flambeau has no layer for the dispatch key {name}")
        mask |= found
    return mask


class _ExcludeDispatchKeyGuard(_C.Guard):
    """No call in the block has these keys. NotImplementedError for a key that no layer stands for."""

    def __init__(self, keys):
        super().__init__(exclude=_mask(keys))


class _IncludeDispatchKeyGuard(_C.Guard):
    """Every call in the block has these keys. NotImplementedError for a key that no layer stands for."""

    def __init__(self, keys):
        super().__init__(include=_mask(keys))


class _AutoDispatchBelowAutograd(_C.Guard):
    """No call in the block is recorded for a backward."""

    def __init__(self):
        super().__init__(exclude=K.AUTOGRAD)


class _DisableTorchDispatch(_C.Guard):
    """No call in the block reaches a dispatch mode or a subclass's ``__torch_dispatch__``."""

    def __init__(self):
        super().__init__(exclude=K.PYTHON)


class _DisableFuncTorch(_C.Guard):
    """No call in the block reaches a function transform."""

    def __init__(self):
        super().__init__(exclude=K.TRANSFORM)
