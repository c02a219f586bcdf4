"""View kernels: the map on a Strided handler, then one native call that makes the view."""

from __future__ import annotations

from .. import _C
from ..core.operator import OpOverload
from ..core.viewmap import Strided
from .backend import rule


@rule("view")
def view(op: OpOverload):
    map = op.definition.map
    strided, note = _C.strided, _C.note_view
    # A write to the view that records a gradient must reach the base, so the way back is kept (detach has none).
    tracked = op.tracks_views

    def run(x, *rest):
        v = map(Strided(x._shape, x._strides, 0), *rest)
        if isinstance(v, Strided):
            out = strided(x, v.shape, v.strides, v.offset)
            if tracked:
                note(out, x, op, rest)
            return out
        outs = [strided(x, w.shape, w.strides, w.offset) for w in v]
        if tracked:
            for k, out in enumerate(outs):
                note(out, x, op, rest, k)
        return outs

    return run
