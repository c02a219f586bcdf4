"""torch.compile and torch.compiler: what users call to have code captured and compiled.

``compile`` turns a function or module into a native callable (:mod:`wrap`) that captures through
:mod:`flambeau.dynamo` and hands graphs to a backend (:mod:`backends`). :mod:`dynamo_api` is the namespace ``torch._dynamo``.
"""

from flambeau.base import logs as _logs
from flambeau.base.compiling import is_exporting as _is_exporting
from flambeau.dynamo.config import config as config
from flambeau.dynamo.convert import is_compiling as _is_compiling
from flambeau.dynamo.guards.filters import keep_portable_guards_unsafe as keep_portable_guards_unsafe
from flambeau.dynamo.guards.filters import keep_tensor_guards_unsafe as keep_tensor_guards_unsafe
from flambeau.dynamo.guards.filters import skip_all_guards_unsafe as skip_all_guards_unsafe
from flambeau.dynamo.guards.filters import skip_guard_on_all_nn_modules_unsafe as skip_guard_on_all_nn_modules_unsafe
from flambeau.dynamo.guards.filters import skip_guard_on_globals_unsafe as skip_guard_on_globals_unsafe
from flambeau.dynamo.guards.filters import (
    skip_guard_on_inbuilt_nn_modules_unsafe as skip_guard_on_inbuilt_nn_modules_unsafe,
)

from .backends import get_default_backend as get_default_backend
from .backends import list_backends as list_backends
from .backends import register_backend as register_backend
from .backends import set_default_backend as set_default_backend
from .controls import allow_in_graph as allow_in_graph
from .controls import assume_constant_result as assume_constant_result
from .controls import disable as disable
from .controls import disallow_in_graph as disallow_in_graph
from .controls import enable_path as enable_path
from .controls import graph_break as graph_break
from .controls import reset as reset
from .controls import run as run
from .controls import set_stance as set_stance
from .explain import explain as explain
from .numpy_wrap import wrap_numpy as wrap_numpy
from .regions import allowed as allowed
from .regions import disable_module as disable_module
from .regions import disable_path as disable_path
from .regions import disallowed as disallowed
from .regions import dynamo_ops_for as dynamo_ops_for
from .regions import enable_module as enable_module
from .regions import nested_compile_region as nested_compile_region
from .regions import nonstrict_trace as nonstrict_trace
from .regions import substitute_in_graph as substitute_in_graph
from .wrap import OptimizedModule as OptimizedModule
from .wrap import compile as compile


def is_compiling() -> bool:
    """Whether the caller is being traced, or runs inside something that is. In captured code this is the constant True."""
    return _is_compiling()


is_dynamo_compiling = is_compiling


def report(f, *, calls: int = 7):
    """``report(f)(*args)`` compiles and runs ``f`` and returns a ``Report``: graphs, breaks, guards, recompilations, kernels with their
    source lines and what they achieve beside the machine. ``str()`` of it is a summary, ``save(path)`` writes one self-contained HTML file. See
    ``flambeau.compiler.reports.collect.report``.

    >>> import flambeau as torch
    >>> made = torch.compiler.report(lambda x: x.exp() + 1, calls=1)(torch.ones(8))
    >>> [launch.note.label for p in made.programs for launch in p.launches]
    ['exp, add']
    """
    from .reports.collect import report  # loaded when it is asked for: most programs never do

    return report(f, calls=calls)


is_exporting = _is_exporting


_logs.check_environment()
