"""``torch.func.functional_call`` while tracing: the module's dicts show other values during the call, and nothing is written."""

from __future__ import annotations

from ...exc import unsupported
from ..base import Variable
from ..containers.dicts import DictVariable
from ..containers.sequences import TupleVariable
from ..tensors.torch_functions import special
from ..values.constant import ConstantVariable
from .module import ModuleVariable

__all__ = ["functional_call"]


def places(tx, module: ModuleVariable, prefix: str, out: dict) -> dict[str, tuple[DictVariable, str, Variable]]:
    """Name -> (dict of the owning module, key, what it holds), for each parameter and buffer."""
    for table in ("_parameters", "_buffers"):
        d = module.registry(tx, table)
        for k, v in d.pairs(tx):
            if not v.is_constant():
                out[prefix + k.as_constant()] = (d, k.as_constant(), v)
    for k, child in module.registry(tx, "_modules").pairs(tx):
        if isinstance(child, ModuleVariable):
            places(tx, child, f"{prefix}{k.as_constant()}.", out)
    return out


@special("functional_call")
def functional_call(tx, var, args, kwargs):
    """The handler of a call; None when it isn't one that is understood."""
    names = ("module", "parameter_and_buffer_dicts", "args", "kwargs", "tie_weights", "strict")
    given = {**dict(zip(names, args)), **kwargs}
    module, dicts = given["module"], given["parameter_and_buffer_dicts"]
    if not isinstance(module, ModuleVariable) or module.value is None:
        return None
    dicts = [dicts] if isinstance(dicts, DictVariable) else dicts.items(tx)
    pairs = [(k.as_constant(), v) for d in dicts for k, v in d.pairs(tx)]
    values = dict(pairs)
    if len(values) < len(pairs):
        tx.raise_user(ValueError("a name appeared in multiple dictionaries; behavior of functional call is ambiguous"))
    at = places(tx, module, "", {})
    if "strict" in given and given["strict"].as_constant() and values.keys() != at.keys():
        unsupported("functional-call", "functional_call(strict=True) with other names than the module's")
    if "tie_weights" not in given or given["tie_weights"].as_constant():
        tied: dict[int, list[str]] = {}
        for name, (_, _, v) in at.items():
            tied.setdefault(id(v), []).append(name)
        for group in tied.values():
            new = {id(values[n]): values[n] for n in group if n in values}
            if len(new) > 1:
                unsupported("functional-call", f"functional_call with several values for {group}, which are tied")
            values.update(dict.fromkeys(group, *new.values()) if new else {})
    positional = given.get("args") or TupleVariable([])
    if positional.is_constant() and positional.as_constant() is None:
        positional = TupleVariable([])
    called = positional.items(tx) if isinstance(positional, TupleVariable) else [positional]
    named = given.get("kwargs") or ConstantVariable(None)
    named = {k.as_constant(): v for k, v in named.pairs(tx)} if isinstance(named, DictVariable) else {}
    before = []
    try:
        for name, v in values.items():
            if name in at:
                d, key, _ = at[name]
                before.append((d, key, d.entries[key]))
                d.entries[key] = (d.entries[key][0], v)
        return module.call(tx, called, named)
    finally:
        for d, key, entry in before:
            d.entries[key] = entry
