"""Random orders: shuffles and permutations, as NumPy makes them."""

from __future__ import annotations

from ....inductor.assembly import instructions as llvm
from ....inductor.assembly.instructions import integer
from ... import arrays
from ...emitter import I64, Emitter
from ...values import ArrayView, Declined, Expression, Known, Scalar, Stream
from .bits import MASKED, integer_fields
from .distributions import integer_of

__all__ = ["permutation", "shuffle"]


def shuffle(e: Emitter, s: Stream, x) -> Known:
    """NumPy's, of an array along its first dimension: each element from the last on changes places with one of those up to it."""
    if not isinstance(x, ArrayView) or x.ndim == 0:
        raise Declined("a shuffle of something that isn't an array")
    e.function("flb_masked", MASKED)
    last = e.sub(x.sizes[0], 1)
    for (k,) in e.loop((e.larger(last, 0),)):
        i = e.op("sub", last, k)
        j = e.call(llvm.I64, "@flb_masked", *integer_fields(e, s), i)
        for rest in e.loop(x.sizes[1:]):
            first, second = (arrays.load(e, x, (at, *rest)).v for at in (i, j))
            for at, v in ((i, second), (j, first)):
                e.store(arrays.address(e, x, (at, *rest)), x.dtype, v, x.origins)
    return Known(None)


def permutation(e: Emitter, s: Stream, x, place: str) -> ArrayView:
    """NumPy's: the numbers below ``x``, or the elements of an array along its first dimension, shuffled."""
    if isinstance(x, Scalar):
        n = e.larger(integer_of(e, x).v, 0)
        x = Expression(I64, (n,), lambda indices: Scalar(I64, False, integer(indices[0])))
    elif not isinstance(x, ArrayView) or x.ndim == 0:
        raise Declined("a permutation of something that is neither an integer nor an array")
    out = arrays.temporary(e, x.dtype, x.sizes, place)
    arrays.fill(e, out, arrays.as_expression(e, x))
    shuffle(e, s, out)
    return out
