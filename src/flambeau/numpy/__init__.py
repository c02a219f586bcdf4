"""NumPy on tensors: NumPy's promotion, defaults and results, PyTorch's derivatives and kernels.

A file an area (:mod:`ufuncs`, :mod:`reductions`, :mod:`manipulation`, :mod:`creation`, :mod:`linear`, :mod:`writes`), each entering
its functions in :mod:`table`. Captured NumPy code uses them through :mod:`flambeau.dynamo.numpy.numpy_bridge`; what isn't
in the table, or raises TypeError, runs in NumPy after a graph break. ``import flambeau._numpy as np`` runs NumPy code
eagerly on tensors (:mod:`ndarrays`).
"""

import numpy as np

from ..dynamo.numpy import numpy_bridge as _bridge
from . import creation, linear, manipulation, of_data, reductions, table, ufuncs, writes  # noqa: F401
from . import drawing as _drawing  # noqa: F401
from . import fallbacks as _fallbacks  # noqa: F401  # takes what the areas have left
from . import in_python as _in_python
from . import index_tricks as _index_tricks  # noqa: F401
from . import opaque as _opaque
from . import rewriting as _rewriting  # noqa: F401
from . import scipy_functions as _scipy_functions  # noqa: F401
from .integer_overflow import overflow_of_integers


def _fill_bridge():
    for np_callable, fn in table.FUNCTIONS:
        _bridge.register(np_callable, fn)
    for name, fn in table.METHODS.items():
        _bridge.register_method(name, fn)
    for name, fn in table.ATTRIBUTES.items():
        _bridge.register_attribute(name, fn)
    for name, fn in table.OPERATORS.items():
        _bridge.register_operator(name, fn)
    _bridge.register_operator(overflow_of_integers.__name__, overflow_of_integers)
    for f in (np.apply_along_axis, np.apply_over_axes, np.piecewise, np.fromiter, np.require):
        _bridge.in_python[f] = getattr(_in_python, f.__name__)
    _bridge.in_python[np.asarray_chkfinite] = _opaque.opaque("flambeau.numpy.checks", "all_finite")


_fill_bridge()


def __getattr__(name):
    from .ndarrays import attribute

    value = attribute(name)
    globals()[name] = value
    return value
