"""CPU kernels on NumPy, one rule a kind (level 3).

``build(op)`` gives the facet ``eager``: a function of all schema arguments, tensors in and out. The backend handler turns it into the
operator's native ``kernel`` at the first call. Enter at :mod:`.backend`.
"""

import importlib as _importlib

from .. import _C
from ..core.native_facts import PLANNED_KINDS as _PLANNED_KINDS
from . import backend, contraction, factory, index, mutation, plans, pointwise, reduction, shape_checks, view  # noqa: F401


def _compile_plan(op, values, plan):
    """As :func:`often.compile_plan`, which is imported for the first call that comes up often."""
    return _importlib.import_module("flambeau.eager.often").compile_plan(op, values, plan)


_PLANNED_KINDS.add("random")
_C.set_handlers(compile_plan=_compile_plan)
