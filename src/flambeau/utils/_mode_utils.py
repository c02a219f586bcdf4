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
