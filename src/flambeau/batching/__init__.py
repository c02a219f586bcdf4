"""vmap: running a program written for one example on a whole batch (level 3).

Inside a vmapped function each mapped tensor is a :class:`~.levels.BatchedTensor`: it shows the shape of one example
and carries the whole batch, its batch dimension in front. The handler of the TRANSFORM key (:mod:`.handler`) takes
the batch out of the arguments, runs the rule of the operator's kind (one a kind: :mod:`.rules`, :mod:`.views`,
:mod:`.index`, :mod:`.contraction`, :mod:`.draws`) and wraps the result. Rules are written in ATen operators, so that
autograd, modes and the compiler below see nothing special. ``op.override("batch", fn)`` replaces a rule: ``fn(b,
*arguments)`` gets mapped tensors with the batch in dimension 0 and returns results with the batch in dimension 0;
``b`` is a :class:`~.handler.Call`.

Enter at :func:`flambeau.func.vmap`. Reference: Bradbury et al., JAX (2018); Zou & He et al., functorch (2021).
"""

from . import contraction, draws, functions, index, rules, views  # noqa: F401
from .handler import Call, Unbatched
from .levels import BatchedTensor, Level, below, conceal, current, expose, innermost, level, movedim, value_at, wrap

__all__ = [
    "BatchedTensor",
    "Call",
    "Level",
    "Unbatched",
    "below",
    "conceal",
    "current",
    "expose",
    "innermost",
    "level",
    "movedim",
    "value_at",
    "wrap",
]
