"""NumPy's ``errstate``, entered and left where no collection can run.

NumPy keeps its error settings in a context variable. Until CPython 3.12 the cyclic collector may run Python (a finaliser, a callback) in the middle
of a change of the map of such variables; if that Python enters ``errstate`` itself, as any computation of ours may, the map is freed under the
change, and the process ends.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

from .. import _C

__all__ = ["errstate"]

if sys.version_info >= (3, 12):  # the collector runs between instructions alone
    errstate = np.errstate
else:

    class errstate(np.errstate):
        """``np.errstate``."""

        def __enter__(self):
            return _C.without_collector(super().__enter__)

        def __exit__(self, *error):
            return _C.without_collector(functools.partial(super().__exit__, *error))
