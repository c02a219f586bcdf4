"""Products of a vector and a matrix that turns ask for one by one, of arrays that the loop doesn't write.

The runtime makes those of several turns at once (csrc/kernels/turn_products.c). It is told where the arrays lie, in which it may read
what later turns want. Where the arrays are written, or Python may write them, it is told nothing, and makes each product alone. Which arrays
the loop writes is known when its text is written to the end, so calls are completed then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..base.records import slotted
from ..inductor.assembly import instructions as llvm
from ..inductor.assembly.instructions import Instruction, Operand, integer
from .arguments import NULL
from .parts import ChangingPart
from .values import ArrayView, Iterator, Size

if TYPE_CHECKING:
    from .emitter import Emitter

__all__ = ["LEAST", "TurnProduct", "are_there", "call", "complete", "of_arrays"]

WORDS = 16  # that the runtime keeps of a product between turns
LEAST = 16  # turns of a block of turns: so many products are made at once
MANY = 1 << 40  # turns, where their number isn't known
_ARRAYS = 4  # the first operand of the call that tells of arrays: three tell of one


@slotted
class TurnProduct:
    """``arrays``: the numbers of the operands that it multiplies."""

    call: Instruction
    arrays: tuple[int, int]


def of_arrays(a: ArrayView, b: ArrayView) -> tuple[int, int] | None:
    """The numbers of the operands of the loop that these are parts of; None where either may be of several, or both are matrices."""
    if a.ndim + b.ndim > 3 or len(a.origins) != 1 or len(b.origins) != 1:
        return None
    (n,), (m,) = a.origins, b.origins
    return (n, m) if isinstance(n, int) and isinstance(m, int) else None


def call(e: Emitter, arrays: tuple[int, int], around: Sequence, numbers: Sequence[Size | Operand]) -> None:
    """Write the call. ``around``: the operand stack; ``numbers``: what the runtime is told of the product."""
    words = e.counters(f"@turn product {len(e.turn_products)}", WORDS)
    unknown = (NULL, NULL, integer(0))
    given = (words, integer(len(e.turn_products)), _turns_left(e, around), *unknown, *unknown, *map(integer, numbers))
    made = e.call(llvm.VOID, Operand("%turn_product", llvm.PTR), *given)
    e.turn_products.append(TurnProduct(made, arrays))


def _turns_left(e: Emitter, around: Sequence) -> Operand:
    """How many turns of the innermost loop there will be at most, this one included."""
    it = next((x for x in reversed(around) if isinstance(x, Iterator)), None)
    if it is None or isinstance(it.parts, ChangingPart):
        return integer(MANY)
    following, stop = (e.get(f"{it.key}.{what}", llvm.I64) for what in ("cur", "stop"))
    return e.op("add", e.op("sdiv", e.op("sub", stop, following), it.step), 1)


def are_there(e: Emitter, written: Collection[int]) -> bool:
    """Whether there are some of arrays that the loop doesn't write."""
    return not e.leaves_to_python and any(not set(product.arrays) & set(written) for product in e.turn_products)


def complete(e: Emitter, shapes: Sequence[int], written: frozenset[int]) -> None:
    """Tell of arrays that stay as they are. ``shapes``: the number of dimensions of each operand; ``written``: those that the loop writes."""
    for product in e.turn_products:
        if e.leaves_to_python or any(n in written or not shapes[n] for n in product.arrays):
            continue
        args = list(product.call.args)
        for k, n in enumerate(product.arrays):
            at = _ARRAYS + 3 * k
            told = (Operand(f"%a{n}", llvm.PTR), Operand(f"%a{n}.n0.p", llvm.PTR), integer(shapes[n]))
            args[at : at + 3] = told
        product.call.args = tuple(args)
