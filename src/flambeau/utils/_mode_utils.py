"""``torch.utils._mode_utils``."""

from __future__ import annotations

import contextlib

from ..core import keys
from ..core.dispatch import excluding
from ..core.modes import disabled


@contextlib.contextmanager
def no_dispatch():
    """Neither modes nor ``__torch_dispatch__`` of subclasses see calls in the block."""
    with disabled("dispatch"), excluding(keys.PYTHON):
        yield


def all_same_mode(modes) -> bool:
    """Whether the modes, at least one, are all the same one."""
    first, *others = modes
    return all(mode == first for mode in others)
