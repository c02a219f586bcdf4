"""Functions of the library that ask about the program's state, or about types and sizes alone: answered while tracing."""

from __future__ import annotations

from flambeau.base.compiling import is_exporting

from ...graph import tensor_queries
from ...guards.source import GetAttrSource
from ...modes.autocast import asked
from ...rules.reflect import module_of
from ..numpy.ndarray import NumpyNdarrayVariable
from ..values.constant import ConstantVariable
from .tensor import TensorVariable
from .torch_functions import special


@special("is_compiling", "is_dynamo_compiling", "_is_compiling")
def _(tx, var, args, kwargs):
    return ConstantVariable(True)


@special("is_exporting")
def _(tx, var, args, kwargs):
    return ConstantVariable(is_exporting())  # what is captured for an export is not kept


@special(
    "is_autocast_enabled",
    "is_any_autocast_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_cache_enabled",
    "get_autocast_dtype",
    "get_autocast_cpu_dtype",
)
def _(tx, var, args, kwargs):
    return asked(tx, var.value, [*args, *kwargs.values()])


@special("is_scripting", "is_tracing")
def _(tx, var, args, kwargs):
    return ConstantVariable(False)


@special("is_grad_enabled", "is_inference_mode_enabled", "get_default_device")
def _(tx, var, args, kwargs):
    """State that blocks of the traced code change: as it is here. As it was before the call it is guarded."""
    return None if args or kwargs else ConstantVariable(var.value())


@special("saved_tensors", "needs_input_grad")
def of_context(tx, var, args, kwargs):
    """Of the context of a backward that is captured itself: read from it by captured code as well."""
    owner = args[0]
    if module_of(var.value) != "flambeau.autograd.function" or getattr(owner, "value", None) is None:
        return None
    name = var.value.__name__
    return tx.wrap(getattr(owner.value, name), GetAttrSource(owner.source, name))


@special("promote_types", "can_cast", "broadcast_shapes")
def _(tx, var, args, kwargs):
    """What follows from dtypes and sizes alone."""
    if not all(v.can_constant() for v in (*args, *kwargs.values())):
        return None
    try:
        found = var.value(*[v.as_constant() for v in args], **{k: v.as_constant() for k, v in kwargs.items()})
    except (RuntimeError, TypeError, ValueError) as e:
        tx.raise_user(e)
    return tx.wrap_known(found)


@special("is_tensor")
def _(tx, var, args, kwargs):
    return ConstantVariable(isinstance(args[0], TensorVariable) and not isinstance(args[0], NumpyNdarrayVariable))


@special("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")
def _(tx, var, args, kwargs):
    # The library's own functions are captured as those of plain tensors are: what they call asks again.
    if kwargs or tx.globals.get("__name__", "").split(".")[0] == "flambeau":
        return ConstantVariable(False)
    asked = args[0].items(tx) if var.value.__name__ == "has_torch_function" else args
    kinds = {v.unwrap().python_type() for v in asked} - {tensor_queries.Tensor}
    overridden = any(map(tensor_queries.overrides_function, kinds))
    return ConstantVariable(
        (overridden or bool(tx.output.blocks.function_modes)) and not tx.output.blocks.function_disabled
    )
