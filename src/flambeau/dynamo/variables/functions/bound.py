"""Methods bound to an object that existed before the call, and callables written in C."""

from __future__ import annotations

import random
import types
import weakref

import numpy as np

from flambeau import _C
from flambeau.autograd import grad_mode

from ...guards.source import ConstSource, GetAttrSource
from ...modes.autocast import is_autocast
from ...rules import pure, trace_rules
from ...rules.library_classes import has_state
from ...rules.reflect import flags_of, is_among, module_of, mro_of, qualname_of, type_item
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, exactly, pin
from ..base import HeldVariable
from ..containers.lists import ListVariable
from ..contexts.managers import ContextExit, EnteredGradModeVariable, ModeMaker
from ..numpy.random_generators import of_method
from ..numpy.routines import of_numpy
from ..objects.builtin_subclass import BASES
from ..objects.instance import SlotMethod
from ..operators import OPERATORS
from ..tensors.torch_functions import TorchFunctionVariable
from ..values.constant import ConstantVariable
from ..values.python_random import DRAWS
from ..values.stdlib_values import PureFunctionVariable
from .builtin import PURE, PURE_MODULES, BuiltinVariable
from .handlers import HANDLERS
from .python_functions import UserFunctionVariable, UserMethodVariable
from .skipped_functions import SkippedFunctionVariable

OF_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, types.MethodWrapperType)


@WRAPPERS.row("callable of C")
def _(tx, value, source):
    if not callable(value) or not is_among(type(value), OF_C):
        return None
    made_anew(tx, value, source)
    return c_callable(tx, value, source)


@exactly(types.MethodType)
def _(tx, value, source):
    if type(value.__self__) is random.Random and value.__name__ in DRAWS:
        return of_its_owner(tx, value, source)
    if (drawn := of_method(tx, value, source)) is not None:
        return drawn
    if getattr(value, "__name__", None) == "__exit__" and (
        module_of(type(value.__self__)) == "flambeau.compiler.regions" or is_autocast(type(value.__self__))
    ):
        pin(tx, source, "TYPE_MATCH", types.MethodType)
        return left_plainly(value, source)
    if not trace_rules.is_a(value.__self__, _C.TensorBase) and (
        trace_rules.is_allowed(value) or trace_rules.is_torch_callable(value)
    ):
        pin(tx, GetAttrSource(source, "__func__"), "ID_MATCH", value.__func__)
        pin(tx, GetAttrSource(source, "__self__"), "ID_MATCH", value.__self__)
        if value.__name__ == "clone" and isinstance(value.__self__, grad_mode._Switch):
            return ModeMaker(value.__self__, source)
        if not trace_rules.is_allowed(value) and has_state(value.__self__):
            return of_library_object(value, source)
        return TorchFunctionVariable(value, source)
    pin(tx, source, "TYPE_MATCH", types.MethodType)
    fn = tx.wrap(value.__func__, GetAttrSource(source, "__func__"))
    owner = tx.wrap(value.__self__, GetAttrSource(source, "__self__"))
    return UserMethodVariable(fn, owner, source)


def left_plainly(value, source):
    return SkippedFunctionVariable(
        value, "region", "a region is left that was entered before", "It is left by plain code.", source=source
    )


def of_library_object(value, source):
    cls = type(value.__self__)
    return SkippedFunctionVariable(
        value,
        "library-object",
        f"call to {value.__name__} of a {module_of(cls)}.{qualname_of(cls)}",
        "The object may have state of its own.",
        source=source,
    )


@exactly(types.BuiltinFunctionType)
def _(tx, value, source):
    owner = getattr(value, "__self__", None)
    if isinstance(owner, grad_mode.inference_mode) and value.__name__ == "__exit__":
        pin(tx, GetAttrSource(source, "__self__"), "TYPE_MATCH", type(owner))
        return left_plainly(value, source)
    if isinstance(owner, grad_mode._Switch) and value.__name__ == "__exit__":
        left = entered_grad_mode(tx, value, source)
        if left is not None:
            return left
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        if trace_rules.is_a(owner, _C.TensorBase):
            return of_its_owner(tx, value, source)
        if trace_rules.is_torch_callable(value):
            return of_library_object(value, source) if has_state(owner) else TorchFunctionVariable(value, source)
        if type(owner) is random.Random and value.__name__ in DRAWS:
            return of_its_owner(tx, value, source)
        if type(source) is not ConstSource and trace_rules.is_a(owner, BASES):
            return of_its_owner(tx, value, source)
    made_anew(tx, value, source)
    return c_callable(tx, value, source)


def of_its_owner(tx, value, source):
    """A bound method as its owner's variable has it; the builtin class's where the owner's class overrides it (``super().append``)."""
    name, cls = value.__name__, type(value.__self__)
    pin(tx, source, "TYPE_MATCH", type(value))
    pin(tx, GetAttrSource(source, "__name__"), "EQUALS_MATCH", name)
    owner = tx.wrap(value.__self__, GetAttrSource(source, "__self__"))
    builtin = next((c for c in mro_of(cls) if flags_of(c) & world.IMMUTABLE and name in vars(c)), None)
    if cls is random.Random or builtin is None or type_item(cls, name) is vars(builtin)[name]:
        return owner.getattr(tx, name)
    return SlotMethod(owner, name, vars(builtin)[name])


def made_anew(tx, value, source) -> None:
    """Guards a callable of C's. A method that is bound to something is another object at each read."""
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        pin(tx, source, "ID_MATCH", value)
        return
    pin(tx, source, "TYPE_MATCH", type(value))
    pin(tx, GetAttrSource(source, "__self__"), "ID_MATCH", owner)
    pin(tx, GetAttrSource(source, "__name__"), "EQUALS_MATCH", value.__name__)


def entered_grad_mode(tx, value, source):
    """The bound ``__exit__`` of a grad mode that is on."""
    owner = GetAttrSource(source, "__self__")
    pin(tx, source, "TYPE_MATCH", type(value))
    pin(tx, owner, "TYPE_MATCH", type(value.__self__))
    mode = tx.wrap(value.__self__.restores_grad, GetAttrSource(owner, "restores_grad")).as_constant()
    return None if mode is None else ContextExit(EnteredGradModeVariable(mode), source)


class SameSubclasses:
    """Guard: a class has the subclasses that it had at capture."""

    def __init__(self, cls: type):
        self.known = [weakref.ref(c) for c in type.__subclasses__(cls)]

    def __call__(self, cls) -> bool:
        return type.__subclasses__(cls) == [r() for r in self.known]

    def __repr__(self):
        return f"the subclasses {[r() for r in self.known]}"


class SubclassesVariable(HeldVariable):
    """``cls.__subclasses__``, bound: the list is that of the capture, which is guarded."""

    def call(self, tx, args, kwargs):
        cls = self.value.__self__
        if args or kwargs:
            tx.raise_user(TypeError("type.__subclasses__() takes no arguments"))
        tx.output.guard(ConstSource(cls, qualname_of(cls)), "CALL", SameSubclasses(cls))
        return ListVariable([tx.wrap_known(c) for c in type.__subclasses__(cls)])


class SlotWriter(BuiltinVariable):
    """``cls.slot.__set__`` of a slot: writes it in the instance, as the records of the library do."""

    def call(self, tx, args, kwargs):
        slot = self.value.__self__
        target = args[0].unwrap() if len(args) == 2 and not kwargs else None
        name = slot.__name__
        if not hasattr(target, "store") or world.class_attr(tx, target.python_type(), name) is not slot:
            return super().call(tx, args, kwargs)
        target.store(tx, name, args[1])
        return ConstantVariable(None)


def c_callable(tx, value, source):
    if type(value) is types.MethodWrapperType and type(value.__self__) is types.MemberDescriptorType:
        if value.__name__ == "__set__":
            return SlotWriter(value, source)
    if value.__name__ == "__subclasses__" and isinstance(getattr(value, "__self__", None), type):
        return SubclassesVariable(value, source)
    if type(value) is types.MethodWrapperType and isinstance(value.__self__, types.GetSetDescriptorType):
        return tx.subclasses.AttributeFunction(value)
    if (
        trace_rules.is_a(value, np.ufunc)
        or isinstance(getattr(value, "__self__", None), np.ufunc)
        or module_of(value).split(".")[0] == "numpy"
    ):
        return of_numpy(value, source)
    try:
        handled = value in HANDLERS or value in PURE or value in OPERATORS
    except TypeError:
        handled = False
    module = module_of(value)
    if (
        handled
        or module in PURE_MODULES
        or module == "builtins"
        or isinstance(getattr(value, "__objclass__", None), type)
    ):
        return BuiltinVariable(value, source)
    if trace_rules.is_torch_callable(value):
        return TorchFunctionVariable(value, source)
    twin = pure.in_python(value)
    name = f"{module or module_of(type(getattr(value, '__self__', value)))}.{getattr(value, '__qualname__', value)}"
    skipped = SkippedFunctionVariable(
        value,
        "c-function",
        f"call to C function {name}",
        "Functions of C extensions cannot be traced.",
        "torch._dynamo.allow_in_graph, or torch.library.custom_op, puts it in the graph.",
        source,
    )
    otherwise = skipped if twin is None else UserFunctionVariable(twin, ConstSource(twin, twin.__qualname__))
    return otherwise if pure.how(value) is None else PureFunctionVariable(value, otherwise, source)
