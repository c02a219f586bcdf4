"""``torch.library``: operators defined by programs.

:class:`Library` defines operators by schema and gives them kernels by dispatch key (:mod:`.registry`); :func:`custom_op` makes one from a
Python function (:mod:`.custom_op`), its schema inferred from the annotations (:mod:`.infer`). Such an operator is an ordinary OpOverload whose
facets were given by the program, so modes, autograd, vmap and the compiler treat it like one of ATen's. :func:`opcheck` tests one.
"""

from . import utils  # noqa: F401
from .checks import OpCheckError, opcheck
from .custom_op import CustomOpDef, custom_op, register_autograd, register_fake, register_kernel, register_vmap
from .fake_context import get_ctx
from .infer import infer_schema
from .registry import Library, define, fallthrough_kernel, impl


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of :func:`register_fake`."""
    return register_fake(qualname, func, lib=lib)


__all__ = [
    "CustomOpDef",
    "Library",
    "OpCheckError",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_vmap",
]
