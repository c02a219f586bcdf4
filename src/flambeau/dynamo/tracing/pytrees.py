"""Functions on pytrees in captured code: they run for real on the structure, with variables as leaves."""

from __future__ import annotations

import collections
from typing import Any

from flambeau.base import pytree
from flambeau.fx import pytree_codegen

from ..exc import unsupported
from ..rules.reflect import module_of
from ..variables.base import Lazy, Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import TupleVariable
from ..variables.functions.handlers import HANDLERS
from ..variables.tensors.graph_results import Opaque
from ..variables.tensors.torch_functions import special
from ..variables.values.constant import ConstantVariable

__all__ = ["call_pytree"]

FUNCTIONS = (
    "tree_flatten", "tree_unflatten", "tree_leaves", "tree_structure", "tree_map", "tree_map_", "tree_map_only", "tree_any", "tree_all",
    "tree_any_only", "tree_all_only", "tree_map_only_",
)  # fmt: skip
DICTS = (dict, collections.OrderedDict)


def structure_of(tx, v: Variable) -> Any:
    """Containers as they are, everything else a leaf."""
    v = v.real(tx) if isinstance(v, Lazy) else v.unwrap()
    if isinstance(v, ListVariable) and v.cls is list:
        return [structure_of(tx, e) for e in v.items(tx)]
    if isinstance(v, TupleVariable):
        made = [structure_of(tx, e) for e in v.items(tx)]
        return v.cls(*made) if hasattr(v.cls, "_fields") else tuple(made)
    if isinstance(v, DictVariable) and v.cls in DICTS:
        return v.cls((k.as_constant(), structure_of(tx, x)) for k, x in v.pairs(tx))
    value = getattr(v, "value", None)
    if isinstance(value, pytree.TreeSpec):
        return value
    if not v.is_constant() and not pytree.is_leaf_class(v.python_type()):
        unsupported("pytree", f"a {v.python_type_name()} in a pytree", "How it is taken apart is not traced.")
    return Opaque(v)


def variable_of(tx, x: Any) -> Variable:
    if isinstance(x, Opaque):
        return x.variable
    if type(x) is list:
        return ListVariable([variable_of(tx, e) for e in x])
    if isinstance(x, tuple):
        return TupleVariable([variable_of(tx, e) for e in x], cls=type(x))
    if type(x) in DICTS:
        return DictVariable({k: (ConstantVariable(k), variable_of(tx, e)) for k, e in x.items()}, cls=type(x))
    return tx.wrap_known(x)


def call_pytree(tx, fn, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """``fn(*args, **kwargs)`` of :mod:`flambeau.base.pytree`; functions among the arguments are traced."""

    def function(v: Variable, truth: bool):
        def run(*leaves):
            out = v.call(tx, [variable_of(tx, x) for x in leaves], {})
            return bool(tx.truth(out)) if truth else Opaque(out)

        return run

    name = fn.__name__
    given = list(args)
    made: list[Any] = []
    if name.startswith(("tree_map_only", "tree_any_only", "tree_all_only")):
        kinds, then = given[0], given[1]
        del given[:2]
        name = name.replace("_only", "")
        predicate = not name.startswith("tree_map")

        def only(leaf):
            v = variable_of(tx, leaf)
            if kinds.can_constant():
                hit = HANDLERS[isinstance](tx, [v, kinds], {}).value
            else:
                hit = tx.truth(kinds.call(tx, [v], {}))
            if not hit:
                return name == "tree_all" if predicate else leaf
            out = then.call(tx, [v], {})
            return bool(tx.truth(out)) if predicate else Opaque(out)

        made.append(only)
        fn = getattr(pytree, name)
    elif name in ("tree_map", "tree_map_", "tree_any", "tree_all"):
        made.append(function(given.pop(0), truth=name in ("tree_any", "tree_all")))
    made += [structure_of(tx, a) for a in given]
    named = {}
    for k, v in kwargs.items():
        if k == "is_leaf":
            if not (v.is_constant() and v.as_constant() is None):
                named[k] = function(v, truth=True)
        else:
            named[k] = structure_of(tx, v)
    return variable_of(tx, fn(*made, **named))


@special(*FUNCTIONS)
def _(tx, var, args, kwargs):
    return call_pytree(tx, var.value, args, kwargs) if module_of(var.value) == pytree.__name__ else None


@special("tree_flatten_spec")
def _(tx, var, args, kwargs):
    return call_pytree(tx, var.value, args, kwargs) if module_of(var.value) == pytree_codegen.__name__ else None


@special("return_and_correct_aliasing")
def _(tx, var, args, kwargs):
    if module_of(var.value) != "flambeau.utils._python_dispatch":
        return None
    func, given, named, out = (*args, *kwargs.values())
    op = func.value
    if op._schema.is_view:
        return out
    values = op.full(*map(Opaque, given.items(tx)), **{k.as_constant(): Opaque(v) for k, v in named.pairs(tx)})
    written = [v for a, v in zip(op._schema.arguments, values) if a.is_write]
    if not written:
        return out
    if len(op._schema.returns) != 1:
        unsupported("tensor-subclass", f"return_and_correct_aliasing of {op}, which writes to several arguments")
    return variable_of(tx, written[0])
