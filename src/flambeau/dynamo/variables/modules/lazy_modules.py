"""Lazy layers in captured code: they get their parameters while the frame is traced, which then begins anew with the layer that they have become.

Parameters are made outside of graphs, and the graph's inputs have to be there when it is captured. So a lazy layer is initialised by its first
capture, with tensors that have the shapes of its arguments and no values."""

from __future__ import annotations

from ...exc import TorchDynamoException, TraceAgain, unsupported
from ...graph import tensor_queries
from ...rules.reflect import name_of
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable

__all__ = ["initialise"]


def initialise(tx, module, args: list[Variable], kwargs: dict[str, Variable]) -> None:
    """Gives the layer ``module`` its parameters; TraceAgain when it has them."""
    given = [stand_in(tx, v) for v in args], {k: stand_in(tx, v) for k, v in kwargs.items()}
    try:
        module.value._infer_parameters(module.value, *given)
    except TorchDynamoException:
        raise
    except Exception as e:  # of the layer's own code, which says it again when the call runs plainly
        unsupported(
            "lazy-module", f"initialising {module!r} raised {name_of(type(e))}: {e}", "Its parameters aren't made."
        )
    raise TraceAgain(f"{module!r} has its parameters now")


def stand_in(tx, v: Variable):
    """What a layer is initialised with: a fake tensor for a tensor."""
    v = tx.realize(v)
    if v.is_tensor:
        val = getattr(v, "val", None)
        return val if tensor_queries.is_tensor(val) else v.as_proxy()
    if isinstance(v, ListVariable | TupleVariable):
        parts = [stand_in(tx, e) for e in v.items(tx)]
        cls = v.python_type()
        return cls(parts) if cls in (list, tuple) else cls(*parts) if hasattr(cls, "_fields") else tuple(parts)
    if type(v) is DictVariable:
        return {k.as_constant(): stand_in(tx, x) for k, x in v.pairs(tx)}
    return v.as_constant() if v.can_constant() else v.real_value(tx)
