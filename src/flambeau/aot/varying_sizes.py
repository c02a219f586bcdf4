"""``aot_function(dynamic=True)``: sizes of the arguments are symbols, and one compilation serves all sizes that its trace assumed nothing else of."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..base import relations as R
from ..base.expr import Symbol
from ..base.shape_env import ShapeEnv
from ..base.symint import SymInt
from ..fake import FakeTensorMode

__all__ = ["VaryingSizes"]


class VaryingSizes:
    """``examples``: arguments like ``inputs`` whose sizes are symbols; 0 and 1 are constants."""

    def __init__(self, inputs: list[Any]):
        self.env = ShapeEnv()
        mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.env)
        self.examples = [mode.from_tensor(x) if isinstance(x, _C.TensorBase) else x for x in inputs]

    def fit(self, inputs: list[Any]) -> bool:
        """Whether what was compiled for the examples holds for these inputs, which are like them but for their sizes."""
        values: dict[Any, int] = {}
        derived = []
        for example, x in zip(self.examples, inputs):
            for want, got in zip(_numbers(example), _numbers(x)):
                e = want.expr if isinstance(want, SymInt) else want
                symbol = _symbol(e)
                if symbol is not None:
                    if got < 2 or not symbol.lo <= got <= symbol.hi or values.setdefault(symbol, got) != got:
                        return False
                else:
                    derived.append((e, got))
        if any(R.evaluate(e, values) != got for e, got in derived):
            return False
        return all(R.evaluate(g.relation, values) for g in self.env.result() if _known(g.relation, values))


def _known(relation, values: dict) -> bool:
    """Whether it speaks of sizes of inputs alone: what depends on data is checked by the graph."""
    return all(s in values for s in R.symbols(relation))


def _symbol(e) -> Symbol | None:
    if isinstance(e, int) or len(e.terms) != 1 or e.const:
        return None
    atom, factor = e.terms[0]
    return atom if factor == 1 and isinstance(atom, Symbol) else None


def _numbers(x: Any) -> tuple:
    return (*x._shape, *x._strides) if isinstance(x, _C.TensorBase) else ()
