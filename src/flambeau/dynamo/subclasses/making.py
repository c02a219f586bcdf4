"""Where tensors of users' classes come from: arguments, constructors, and what functions return."""

from __future__ import annotations

import types

from flambeau import _C
from flambeau.core.definition import TensorMeta
from flambeau.core.operator import namespace
from flambeau.fake import FakeTensor

from ..config import config
from ..exc import unsupported
from ..graph import tensor_queries
from ..guards.tree import tensor_facts
from ..rules.reflect import qualname_of
from ..tracing import world
from ..variables.base import Variable
from ..variables.containers.graph_sequences import Result
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import SequenceVariable, TupleVariable
from ..variables.numpy.ndarray import NumpyNdarrayVariable
from ..variables.objects.class_object import ClassVariable
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.tensor_subclass import SubclassVariable
from ..variables.tensors.torch_functions import special

__all__ = ["as_class", "as_subclass", "like_facts", "make", "of_argument"]


def of_argument(tx, value, source) -> Variable:
    """The variable of a tensor of a user's class that existed before the call."""
    cls = type(value)
    if cls in config.nontraceable_tensor_subclasses:
        unsupported("tensor-subclass", f"a {qualname_of(cls)}", "It is one of config.nontraceable_tensor_subclasses.")
    dispatches = tensor_queries.overrides_dispatch(cls)
    if not dispatches:
        plain = tx.output.add_input(value, source, ndarray=False)
        tx.output.has_subclasses = True
        return SubclassVariable(plain.node, plain.val, source, cls, value)
    if value._has_data:
        unsupported("tensor-subclass", f"a {qualname_of(cls)} with __torch_dispatch__ and data of its own")
    tx.output.guard(source, "TENSOR_MATCH", tensor_facts(value))
    val = like(tx, value)
    if not value._requires_grad:
        return SubclassVariable(None, val, source, cls, value)
    stand_ins = tx.output.stand_ins
    val = _C.alias(val, stand_ins.of(cls, False)).requires_grad_()
    made = SubclassVariable(None, val, source, cls, value)
    stand_ins.inputs.append(made)
    stand_ins.keep(val, made)
    return made


def like(tx, t) -> FakeTensor:
    return like_facts(tx, (tuple(t._shape), tuple(t._strides), t._offset, t._dtype, t._device))


def like_facts(tx, facts: tuple) -> FakeTensor:
    shape, strides, offset, dtype, device = facts
    return FakeTensor(tx.output.fake_mode, TensorMeta(shape, strides, dtype, device, offset))


def as_class(tx, v: Variable, cls: type) -> Variable:
    """What a function returned, with plain tensors made ``cls``."""
    if isinstance(v, TensorVariable) and not isinstance(v, NumpyNdarrayVariable):
        if issubclass(v.python_type(), cls):
            return v
        return SubclassVariable(v.as_proxy(), v.val, None, cls)
    if type(v) in (ListVariable, TupleVariable) or isinstance(v, Result):
        made = [as_class(tx, e, cls) for e in v.items(tx)]
        return ListVariable(made) if isinstance(v, ListVariable) else TupleVariable(made, cls=v.cls)
    return v


def make(tx, var: ClassVariable, args, kwargs) -> Variable:
    """An object of a tensor subclass: ``cls(...)``."""
    cls = var.value
    new = world.class_attr(tx, cls, "__new__")
    new = new.__func__ if isinstance(new, staticmethod) else new
    if type(new) is not types.FunctionType:
        unsupported("construct", f"constructing {qualname_of(cls)}")
    out = tx.wrap_function(new).call(tx, [var, *args], kwargs)
    init = world.class_attr(tx, cls, "__init__")
    if (
        isinstance(out, TensorVariable)
        and issubclass(out.python_type(), cls)
        and tensor_queries.is_of_program(cls, "__init__", init)
    ):
        world.bind(tx, out, cls, "__init__", init).call(tx, args, kwargs)
    return out


@special("__new__")
def _(tx, var, args, kwargs):
    """``torch.Tensor.__new__(cls, data)``"""
    if var.value is not tensor_queries.Tensor.__new__:
        return None
    cls = args[0].as_constant()
    if len(args) != 2 or kwargs or not isinstance(args[1], TensorVariable):
        unsupported("construct", f"constructing {qualname_of(cls)} of something that isn't a tensor")
    return detached(tx, cls, args[1])


@special("_make_subclass")
def _(tx, var, args, kwargs):
    names = dict(zip(("cls", "data", "require_grad"), args)) | kwargs
    if "require_grad" in names and names["require_grad"].as_constant():
        unsupported("leaf", "_make_subclass(require_grad=True)", "The leaf must be made outside of the graph.")
    return detached(tx, names["cls"].as_constant(), names["data"])


def detached(tx, cls: type, data: TensorVariable) -> Variable:
    if isinstance(data, SubclassVariable):
        data = data.plain()
    plain = tx.output.call_in_graph(tx, "call_method", "detach", [data], {}) if data.val.requires_grad else data
    return plain if cls is tensor_queries.Tensor else SubclassVariable(plain.node, plain.val, None, cls)


@special("_make_wrapper_subclass")
def _(tx, var, args, kwargs):
    names = (
        "cls",
        "size",
        "strides",
        "storage_offset",
        "memory_format",
        "dtype",
        "layout",
        "device",
        "pin_memory",
        "requires_grad",
    )
    given = dict(zip(names, args)) | kwargs
    if "requires_grad" in given and given["requires_grad"].as_constant():
        unsupported("leaf", "_make_wrapper_subclass(requires_grad=True)", "The leaf must be made outside of the graph.")
    values = {k: sizes(v) if k in ("size", "strides") else v.as_constant() for k, v in given.items()}
    cls = values.pop("cls")
    made = tensor_queries.Tensor._make_wrapper_subclass(cls, **values)
    return SubclassVariable(None, like(tx, made), None, cls)


def sizes(v: Variable):
    """A wrapper says its sizes itself, when it is made anew behind the graph as well: here they are constants of the variant."""
    return tuple(e.as_constant() for e in v.realized()) if isinstance(v, SequenceVariable) else v.as_constant()


@special("as_subclass")
def _(tx, var, args, kwargs):
    return as_subclass(tx, args[0], args[1].as_constant())


def as_subclass(tx, v: TensorVariable, cls: type) -> Variable:
    plain = v.plain() if isinstance(v, SubclassVariable) else v
    if cls is tensor_queries.Tensor:
        out = TensorVariable(plain.node, plain.val)
        if plain.node.op != "placeholder":
            return out
        return tx.output.call_in_graph(
            tx, "call_function", namespace("aten").alias.default, [out], {}
        )  # not the object itself
    if not tensor_queries.is_subclass(cls):
        unsupported("tensor-method", f"as_subclass({qualname_of(cls)})")
    return SubclassVariable(plain.node, plain.val, None, cls)
