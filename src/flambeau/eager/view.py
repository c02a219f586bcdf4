"""View kernels: the map on a Strided handler, then one native call that makes the view."""

from __future__ import annotations

from .. import _C
from ..core.operator import OpOverload
from ..core.viewmap import Strided
from .backend import rule


@rule("view")
def view(op: OpOverload):
    map = op.definition.map
    strided = _C.strided

    def run(x, *rest):
        v = map(Strided(x._shape, x._strides, 0), *rest)
        if isinstance(v, Strided):
            return strided(x, v.shape, v.strides, v.offset)
        return [strided(x, w.shape, w.strides, w.offset) for w in v]

    return run
