"""From values to variables: which class stands for a value that existed before the call, and what is guarded about it."""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import inspect
import operator
import random
import threading
import types
import weakref

import numpy as np

from flambeau import _C
from flambeau.autograd import grad_mode
from flambeau.base import shape_env
from flambeau.base.device import META
from flambeau.base.symint import NUMBERS
from flambeau.core.tensor import strided
from flambeau.fx import GraphModule
from flambeau.modules.parameter import is_lazy

from . import comptime, numpy_bridge, pure, subclasses, tensors, trace_rules, world
from . import control_flow as control_flow  # its handlers
from . import pytrees as pytrees
from .active import current
from .autocast import AutocastVariable, is_autocast
from .autograd_functions import AutogradFunctionVariable
from .config import config
from .exc import unsupported
from .graph_inputs import number_input
from .library_classes import has_state, is_traced
from .reflect import (
    ABSENT,
    by_identity,
    flags_of,
    is_among,
    is_below,
    module_of,
    mro_of,
    name_of,
    qualname_of,
    type_item,
)
from .source import AttrSource, ConstSource, GetAttrSource, ItemSource, Source
from .subgraphs import of_wrapper
from .variables import numpy_random
from .variables.base import HeldVariable, Lazy, Variable
from .variables.builtin import PURE, PURE_MODULES, BuiltinVariable
from .variables.callables import CachedFunctionVariable
from .variables.classes import ClassVariable
from .variables.constant import OTHERS, PLAIN, ConstantVariable, is_constant_value
from .variables.contexts import (
    ContextExit,
    EnteredGradModeVariable,
    ModeMaker,
    ModeWrapped,
    NullContextVariable,
    of_switch,
)
from .variables.deques import DequeVariable
from .variables.derived import BASES, builtin_base, is_named_tuple, of_object
from .variables.dicts import DictVariable
from .variables.exceptions import ExceptionVariable
from .variables.existing_iterators import ExistingIteratorVariable
from .variables.functional_call import functional_call
from .variables.functions import (
    ForbiddenVariable,
    PartialVariable,
    SkippedFunctionVariable,
    UserFunctionVariable,
    UserMethodVariable,
)
from .variables.getters import of_getter
from .variables.handlers import HANDLERS
from .variables.lists import ListVariable, RangeVariable, SliceVariable, TupleVariable
from .variables.mapping_views import of_mapping
from .variables.modules import ModuleVariable
from .variables.namespaces import PythonModuleVariable, TorchObjectVariable
from .variables.numpy_functions import of_numpy
from .variables.objects import ObjectVariable, SlotMethod
from .variables.operators import OPERATORS
from .variables.optimizers import OptimizerVariable
from .variables.random_state import DRAWS, ExistingRandomVariable
from .variables.sets import SetVariable
from .variables.symbolic import CheckVariable, SymbolicVariable, wrap_number
from .variables.tensor import SparseTensorVariable, as_ndarray
from .variables.thread_locals import ThreadLocalVariable
from .variables.torch_functions import TorchClassVariable, TorchFunctionVariable, special
from .variables.values import (
    PureFunctionVariable,
    ValueClassVariable,
    known_value,
    of_value,
)
from .variables.warning_blocks import CatchWarningsVariable as CatchWarningsVariable  # its handlers
from .variables.weak_references import WeakReferenceVariable

__all__ = ["global_of_dict", "global_of_frame", "wrap"]

special("functional_call")(functional_call)
vars(world.variables).update(
    ClassVariable=ClassVariable,
    SlotMethod=SlotMethod,
    TupleVariable=TupleVariable,
    UserMethodVariable=UserMethodVariable,
)
FLB_FUNCTION = 8
OWN = PLAIN | OTHERS
FAKE_OR_WRAPPED = 2 | 4


def wrap(tx, value, source: Source) -> Variable:
    """The variable for ``value``, guarded at ``source``."""
    cls = type(value)
    if type(cls) is not type or cls not in OWN:  # the interpreter's classes have no hooks and are no symbolic numbers
        if type(type_item(cls, "__getattribute__")) is types.FunctionType:
            return _remembered(tx, value, source, _hooked)
        if trace_rules.is_a(value, NUMBERS):
            return SymbolicVariable(value)
        if trace_rules.is_a(value, tuple) and any(isinstance(v, NUMBERS) for v in value):
            return TupleVariable([wrap_number(v) for v in value], cls=type(value))
    known = type(source) is ConstSource and source.value is value
    if is_constant_value(value):
        if type(value) is tuple:
            if (
                not known
                and all(type(v) in (int, float) for v in value)
                and tx.output.seen.numbers(tx.output.path(source), value)
            ):
                return _tuple(tx, value, source)
            if not known:
                tx.output.guard(source, "EQUALS_MATCH", value)
            elements = [wrap(tx, v, ConstSource(v, "const")) for v in value]
            return TupleVariable(elements, None if known else source)  # with a source: it is the caller's object
        if type(value) is frozenset:
            if not known:
                tx.output.guard(source, "EQUALS_MATCH", value)
            if known:
                return SetVariable([ConstantVariable(v) for v in value], cls=frozenset)
            memo = tx.output.by_id.get(id(value))
            if memo is None:
                memo = SetVariable([ConstantVariable(v) for v in value], source, cls=frozenset)
                tx.output.by_id[id(value)] = memo
                tx.output.keep.append(value)
                tx.output.mutable_sources.append(source)
            elif memo.source is not source:
                tx.output.guards.same_as(source, memo.source)
            return memo
        if not known and type(value) in (int, float) and type(source) is not ConstSource:
            number = number_input(tx.output, value, source)
            if number is not None:
                return number
        if not known:
            identity = (
                value is None
                or isinstance(value, (bool, enum.Enum, types.CodeType))
                or name_of(type(value)) in ("DType", "dtype")
            )
            tx.output.guard(source, "ID_MATCH" if identity else "EQUALS_MATCH", value)
        return ConstantVariable(value, source)
    if known and trace_rules.is_a(value, tuple) and all(is_constant_value(v) for v in value):
        return TupleVariable([ConstantVariable(v) for v in value], cls=type(value))  # a shape, a named tuple of numbers
    return _remembered(tx, value, source, _wrap)


def _remembered(tx, value, source: Source, make) -> Variable:
    """One variable for one object, however it is reached."""
    stood_for = tx.output.stood_for.get(id(value))
    if stood_for is not None:
        return stood_for
    known = type(source) is ConstSource and source.value is value
    memo = tx.output.by_id.get(id(value))
    if memo is not None:
        if memo.source is not None and memo.source is not source:
            tx.output.guards.same_as(source, memo.source)
        return memo
    v = make(tx, value, source)
    if v.mutable or trace_rules.is_a(value, (_C.TensorBase, np.ndarray)):
        table = value if type(value) is dict else world.instance_dict(value) if isinstance(v, ObjectVariable) else None
        if table is not None:
            tx.side_effects.meet(v, table)
        tx.output.by_id[id(value)] = v
        tx.output.keep.append(value)
        if not known and v.mutable:
            tx.output.mutable_sources.append(source)
    return v


def _guard(tx, source, kind, payload) -> None:
    if type(source) is ConstSource and (kind == "ID_MATCH" or flags_of(payload) & world.IMMUTABLE):
        return  # it is what it is; only objects of Python classes can be given another class
    tx.output.guard(source, kind, payload)


def _hooked(tx, value, source: Source) -> Variable:
    """An object whose class has a ``__getattribute__`` written in Python: looking at it in any way would run that."""
    cls = type(value)
    if issubclass(cls, (_C.TensorBase, np.ndarray, type, BaseException)):
        return _wrap(tx, value, source)
    _guard(tx, source, "TYPE_MATCH", cls)
    base = builtin_base(cls)
    if trace_rules.is_nn_module_class(cls):
        return ModuleVariable(value, cls, source)
    return ObjectVariable(value, cls, source) if base is None else of_object(tx, value, base, source)


def _wrap(tx, value, source: Source) -> Variable:
    if trace_rules.substitutes and (traced := trace_rules.substitutes.get(value)) is not None:
        _guard(tx, source, "ID_MATCH", value)
        return UserFunctionVariable(traced, ConstSource(traced, traced.__qualname__))
    if (why := trace_rules.forbidden.get(value)) is not None:
        _guard(tx, source, "ID_MATCH", value)
        return ForbiddenVariable(value, why, source)
    if trace_rules.is_a(value, _C.TensorBase):
        return _tensor(tx, value, source)
    if trace_rules.is_a(value, np.ndarray):
        return _ndarray(tx, value, source)
    cls = type(value)
    maker = BY_TYPE.get(cls) if type(cls) is type else None
    if maker is not None:
        return maker(tx, value, source)
    if (drawn := numpy_random.of_function(tx, value, source)) is not None:
        return drawn
    if trace_rules.is_a(value, type):
        _guard(tx, source, "ID_MATCH", value)
        return _class(value, source)
    if trace_rules.is_a(value, tuple) and (f"{module_of(cls)}.".startswith("flambeau.") or is_named_tuple(tx, cls)):
        return _tuple(tx, value, source)
    if trace_rules.is_a(value, (comptime.Comptime, comptime.ComptimeFunction)):
        _guard(
            tx,
            source,
            "ID_MATCH" if value is comptime.comptime else "TYPE_MATCH",
            value if value is comptime.comptime else cls,
        )
        return comptime.ComptimeVariable(value, source)
    if trace_rules.is_compiled(value):
        _guard(tx, source, "ID_MATCH", value)
        fn = trace_rules.unwrap_compiled(value)
        return UserFunctionVariable(fn, ConstSource(fn, fn.__qualname__))
    if trace_rules.is_disabled(value):
        _guard(tx, source, "ID_MATCH", value)
        return _disabled(value, source)
    if trace_rules.is_nn_module_class(cls):
        _guard(tx, source, "TYPE_MATCH", cls)
        if isinstance(value, GraphModule):
            value.real_recompile()  # its class has a function for ``forward`` only then
        return ModuleVariable(value, cls, source)
    if trace_rules.is_a(value, BaseException):
        _guard(tx, source, "TYPE_MATCH", cls)
        return ExceptionVariable(value, source)
    if is_iterator(cls) and world.instance_dict(value) is None:
        _guard(tx, source, "TYPE_MATCH", cls)
        return ExistingIteratorVariable(value, source)
    if trace_rules.is_a(value, np.ufunc) or (
        module_of(cls) == "numpy" and callable(value) and type_item(cls, "__hash__") is not None
    ):
        _guard(tx, source, "ID_MATCH", value)
        return of_numpy(value, source)
    if is_autocast(cls):
        _guard(tx, source, "ID_MATCH", value)
        return AutocastVariable(value, source)
    if trace_rules.is_torch_callable(value):
        _guard(tx, source, "ID_MATCH", value)
        return _torch_function(value, source)
    if issubclass(cls, str) and str(module_of(cls)).startswith("flambeau."):
        _guard(tx, source, "ID_MATCH", value)
        return of_object(tx, value, str, source)
    if str(module_of(cls)).startswith("flambeau.") and not trace_rules.is_nn_module_class(cls) and not is_traced(cls):
        _guard(tx, source, "ID_MATCH", value)
        return TorchObjectVariable(value, source)
    if cls is functools._lru_cache_wrapper and type(value.__wrapped__) is types.FunctionType:
        _guard(tx, source, "ID_MATCH", value)
        return CachedFunctionVariable(value, source)
    if cls is types.MappingProxyType:
        return of_mapping(tx, value, source)
    if known_value(value):
        return of_value(tx, value, source)
    if is_among(cls, (weakref.ref, weakref.KeyedRef)):
        _guard(tx, source, "TYPE_MATCH", cls)
        return WeakReferenceVariable(value, source)
    if callable(value) and is_among(
        cls,
        (
            types.BuiltinFunctionType,
            types.MethodDescriptorType,
            types.WrapperDescriptorType,
            types.MethodWrapperType,
        ),
    ):
        _made_anew(tx, value, source)
        return _c_callable(tx, value, source)
    if is_among(cls, (operator.attrgetter, operator.itemgetter, operator.methodcaller)):
        _guard(tx, source, "ID_MATCH", value)
        return of_getter(tx, value, source)
    if is_below(cls, contextlib.nullcontext):  # isinstance() would ask for __class__
        _guard(tx, source, "TYPE_MATCH", cls)
        return NullContextVariable(
            contextlib.nullcontext, wrap(tx, value.enter_result, AttrSource(source, "enter_result"))
        )
    if is_below(cls, threading.local):
        _guard(tx, source, "TYPE_MATCH", cls)
        return ThreadLocalVariable(tx, value, source)
    if cls is random.Random:
        _guard(tx, source, "TYPE_MATCH", cls)
        return ExistingRandomVariable(value, cls, source)
    base = builtin_base(cls)
    if base is not None:
        _guard(tx, source, "TYPE_MATCH", cls)
        return of_object(tx, value, base, source)
    if world.instance_dict(value) is not None or type_item(cls, "__slots__") is not ABSENT:
        _guard(tx, source, "TYPE_MATCH", cls)
        make = OptimizerVariable if trace_rules.is_optimizer_class(cls) else ObjectVariable
        return make(value, cls, source)
    if callable(value):
        _guard(tx, source, "ID_MATCH", value)
        return SkippedFunctionVariable(
            value,
            "c-callable",
            f"call to {module_of(cls)}.{qualname_of(cls)} object",
            "It is implemented in C.",
            source=source,
        )
    _guard(tx, source, "TYPE_MATCH", cls)
    return OpaqueVariable(value, source)


class OpaqueVariable(HeldVariable):
    """An object that is only passed around. Which one it is, is guarded where that is asked."""

    def __repr__(self):
        return f"OpaqueVariable({name_of(type(self.value))})"

    def pinned(self, tx):
        if self.source is not None:
            _guard(tx, self.source, "ID_MATCH", self.value)

    def key_object(self):
        if self.source is None or not by_identity(self.value):
            unsupported("dict-key", f"{self!r} as a dict key is not traced")
        self.pinned(current())
        return self.value

    def getattr(self, tx, name):
        self.pinned(tx)
        if name == "state" and isinstance(self.value, np.random.BitGenerator):
            unsupported("numpy-random", "the state of a bit generator", "Draws of the graph come before it is read.")
        try:
            value = getattr(self.value, name, None)
        except Exception as e:  # a property's name since 3.13 is asked of its getter, which may be the program's object
            unsupported("attribute", f"{name_of(type(self.value))}.{name}, which raises {name_of(type(e))}: {e}")
        if callable(value):
            if type(value) is types.MethodWrapperType and type(self.value) is types.GetSetDescriptorType:
                return _c_callable(tx, value, None)
            return SkippedFunctionVariable(
                value, "c-method", f"call to {name_of(type(self.value))}.{name}", "It is implemented in C."
            )
        return world.library_attr(tx, self, self.value, self.source, name)


def is_iterator(cls: type) -> bool:
    """Whether it has the methods of an iterator, as the abstract class would say."""
    return not any(type_item(cls, n) is x for x in (ABSENT, None) for n in ("__iter__", "__next__"))


def _tensor(tx, value, source):
    cls = type(value)
    if is_lazy(value):
        unsupported("lazy-parameter", f"a {name_of(cls)}", "Its shape is not known before the first call.")
    if tensors.is_subclass(cls) and (tensors.overrides_function(cls) or tensors.overrides_dispatch(cls)):
        return subclasses.of_argument(tx, value, source)
    if cls is not tensors.Tensor and not trace_rules.is_parameter_class(cls):
        if value._keys & FAKE_OR_WRAPPED or value._flags & FLB_FUNCTION or name_of(cls) == "FakeTensor":
            unsupported(
                "tensor-subclass",
                f"a tensor of class {module_of(cls)}.{qualname_of(cls)}",
                "Tensor subclasses that override operations run as ordinary Python.",
            )
    elif value._keys & FAKE_OR_WRAPPED:
        unsupported(
            "wrapped-tensor",
            "a tensor that belongs to a function transform or a dispatch mode",
            "The call runs as ordinary Python under it.",
        )
    if value._array is None and value.layout is not strided:
        return SparseTensorVariable(value.layout, source)
    if value.is_conj() or value.is_neg():
        unsupported(
            "conjugated-view",
            "a tensor whose elements are the conjugates or negatives of its memory",
            "Graphs are given plain memory: call resolve_conj() or resolve_neg() before.",
        )
    if value._device == META:
        unsupported(
            "meta-tensor",
            "a tensor without data on the meta device",
            "There is nothing to compute: the call runs plainly.",
        )
    return tx.output.add_input(value, source, ndarray=False)


def _ndarray(tx, value, source):
    if not config.trace_numpy or type(value) not in (np.ndarray, numpy_bridge.Carried):
        unsupported(
            "numpy",
            f"a NumPy array of class {name_of(type(value))}",
            "Only plain ndarrays are captured (and only with config.trace_numpy).",
        )
    if value.dtype.kind not in "biufc" or not value.dtype.isnative or any(s < 0 for s in value.strides):
        unsupported(
            "numpy",
            f"an ndarray of dtype {value.dtype}, strides {value.strides}",
            "A view that runs backwards; tensors have no negative strides."
            if any(s < 0 for s in value.strides)
            else "Tensors have no counterpart of it.",
        )
    if any(s % value.itemsize for s in value.strides):
        unsupported(
            "numpy", "an ndarray whose strides are no multiples of its item size", "Tensors have no counterpart of it."
        )
    try:
        return as_ndarray(tx.output.add_input(value, source, ndarray=True))
    except TypeError as e:
        unsupported("numpy", f"an ndarray of dtype {value.dtype}: {e}", "Tensors have no counterpart of it.")


def _tuple(tx, value, source):
    cls = type(value)
    _guard(tx, source, "TYPE_MATCH", cls)
    tx.output.guard(source, "LENGTH", len(value))
    return TupleVariable([Lazy(v, ItemSource(source, i)) for i, v in enumerate(value)], source, cls=cls)


def _list(tx, value, source):
    _guard(tx, source, "TYPE_MATCH", list)
    return ListVariable([], source, open_value=value)


def _deque(tx, value, source):
    _guard(tx, source, "TYPE_MATCH", collections.deque)
    wrap(tx, value.maxlen, GetAttrSource(source, "maxlen"))
    tx.output.guard(source, "LENGTH", len(value))
    elements = [Lazy(v, ItemSource(source, i)) for i, v in enumerate(value)]
    return DequeVariable(elements, source, cls=collections.deque, maxlen=value.maxlen)


def _dict(tx, value, source):
    cls = type(value)
    _guard(tx, source, "TYPE_MATCH", cls)
    factory = None
    if cls is collections.defaultdict:
        factory = wrap(tx, value.default_factory, GetAttrSource(source, "default_factory"))
        if factory.is_constant():
            factory = None
    return DictVariable(source=source, cls=cls, base=value, factory=factory)


def _set(tx, value, source):
    if not all(is_constant_value(v) or type(v) is type for v in value):
        unsupported("set", "a set that holds more than constants and classes")
    snapshot = copy.copy(value)
    if list(snapshot) != list(value):  # what is guarded is the order too
        unsupported("set", "a set whose copy has another order")
    tx.output.guard(source, "TYPE_MATCH", type(value))
    tx.output.guard(source, "EQUALS_MATCH", snapshot)
    elements = [wrap(tx, v, ConstSource(v, "const")) for v in snapshot]
    return SetVariable(elements, source, cls=type(value), order=list(snapshot))


def _frozenset(tx, value, source):
    """One that holds more than constants, classes for instance: what is in it is settled by which object it is."""
    tx.output.guard(source, "ID_MATCH", value)
    return SetVariable([wrap(tx, v, ConstSource(v, "const")) for v in value], source, cls=frozenset, order=list(value))


def _slice(tx, value, source):
    _guard(tx, source, "TYPE_MATCH", slice)
    return SliceVariable([wrap(tx, getattr(value, n), GetAttrSource(source, n)) for n in ("start", "stop", "step")])


def _range(tx, value, source):
    tx.output.guard(source, "EQUALS_MATCH", value)
    return RangeVariable(value, source)


def _function(tx, value, source):
    if trace_rules.is_allowed(value):
        _guard(tx, source, "ID_MATCH", value)
        return TorchFunctionVariable(value, source)
    if trace_rules.is_disallowed(value):
        _guard(tx, source, "ID_MATCH", value)
        return SkippedFunctionVariable(
            value,
            "disallowed",
            f"call to disallowed function {value.__qualname__}",
            "disallow_in_graph was called for it.",
            source=source,
        )
    if value is shape_env.check or value in shape_env.CHECKS:
        _guard(tx, source, "ID_MATCH", value)
        return CheckVariable(value, source)
    if trace_rules.is_torch_callable(value):
        _guard(tx, source, "ID_MATCH", value)
        inner = getattr(value, "__wrapped__", None)
        if type(inner) is types.FunctionType and not trace_rules.is_torch_callable(inner):
            return _library_wrapper(tx, value, inner, source)
        return _torch_function(value, source)
    if module_of(value).startswith("scipy.") and config.trace_numpy and numpy_bridge.lookup(value) is not None:
        _guard(tx, source, "ID_MATCH", value)
        return of_numpy(value, source)
    what, why = trace_rules.inline_reason(value)
    if value not in HANDLERS and pure.how(value) is not None:
        _guard(tx, source, "ID_MATCH", value)
        otherwise = UserFunctionVariable(value, source) if what == "inline" else _skipped(value, why, source)
        return PureFunctionVariable(value, otherwise, source)
    if what == "skip":
        _guard(tx, source, "ID_MATCH", value)
        if value in HANDLERS or (module_of(value) == "numpy" or module_of(value).startswith("numpy.")):
            return of_numpy(value, source) if value not in HANDLERS else BuiltinVariable(value, source)
        if getattr(value, "_torchdynamo_disable", False):
            return _disabled(value, source)
        return _skipped(value, why, source)
    tx.output.guard(source, "CODE_MATCH", (value.__code__, value.__globals__))
    return UserFunctionVariable(value, source)


def _skipped(value, why: str, source) -> SkippedFunctionVariable:
    return SkippedFunctionVariable(
        value,
        "skipped-function",
        f"call to skipped function {module_of(value)}.{value.__qualname__}",
        f"Not traced: {why}.",
        "torch._dynamo.allow_in_graph puts it in the graph as it is.",
        source,
    )


def _library_wrapper(tx, value, inner, source):
    """A function of the library made around a user's function."""
    cells = dict(zip(value.__code__.co_freevars, value.__closure__ or ()))
    switch = cells["self"].cell_contents if "self" in cells else None
    if value.__code__.co_filename == inspect.getfile(grad_mode) and isinstance(switch, grad_mode._Switch):
        return ModeWrapped(of_switch(switch), wrap(tx, inner, GetAttrSource(source, "__wrapped__")), source)
    return of_wrapper(value, wrap(tx, inner, GetAttrSource(source, "__wrapped__")), source)


def _disabled(value, source):
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)
    reason = getattr(value, "_torchdynamo_disable_msg", None)
    text = f"call to {name}, on which torch._dynamo.disable was used" + (f": {reason}" if reason else "")
    return SkippedFunctionVariable(
        value,
        "disabled",
        text,
        f"reason: {reason}" if reason else "Disabled functions run as ordinary Python.",
        "Remove the disable.",
        source,
    )


def _left_plainly(value, source):
    return SkippedFunctionVariable(
        value, "region", "a region is left that was entered before", "It is left by plain code.", source=source
    )


def _generator(tx, value, source):
    _guard(tx, source, "TYPE_MATCH", type(value))
    return numpy_random.of_generator(tx, value, source) if config.trace_numpy else OpaqueVariable(value, source)


def _method(tx, value, source):
    if type(value.__self__) is random.Random and value.__name__ in DRAWS:
        return _of_its_owner(tx, value, source)
    if (drawn := numpy_random.of_method(tx, value, source)) is not None:
        return drawn
    if getattr(value, "__name__", None) == "__exit__" and (
        module_of(type(value.__self__)) == "flambeau.compiler.regions" or is_autocast(type(value.__self__))
    ):
        _guard(tx, source, "TYPE_MATCH", types.MethodType)
        return _left_plainly(value, source)
    if not trace_rules.is_a(value.__self__, _C.TensorBase) and (
        trace_rules.is_allowed(value) or trace_rules.is_torch_callable(value)
    ):
        _guard(tx, GetAttrSource(source, "__func__"), "ID_MATCH", value.__func__)
        _guard(tx, GetAttrSource(source, "__self__"), "ID_MATCH", value.__self__)
        if value.__name__ == "clone" and isinstance(value.__self__, grad_mode._Switch):
            return ModeMaker(value.__self__, source)
        if not trace_rules.is_allowed(value) and has_state(value.__self__):
            return _of_library_object(value, source)
        return TorchFunctionVariable(value, source)
    _guard(tx, source, "TYPE_MATCH", types.MethodType)
    fn = wrap(tx, value.__func__, GetAttrSource(source, "__func__"))
    owner = wrap(tx, value.__self__, GetAttrSource(source, "__self__"))
    return UserMethodVariable(fn, owner, source)


def _of_library_object(value, source):
    cls = type(value.__self__)
    return SkippedFunctionVariable(
        value,
        "library-object",
        f"call to {value.__name__} of a {module_of(cls)}.{qualname_of(cls)}",
        "The object may have state of its own.",
        source=source,
    )


def _builtin_method(tx, value, source):
    owner = getattr(value, "__self__", None)
    if isinstance(owner, grad_mode.inference_mode) and value.__name__ == "__exit__":
        _guard(tx, GetAttrSource(source, "__self__"), "TYPE_MATCH", type(owner))
        return _left_plainly(value, source)
    if isinstance(owner, grad_mode._Switch) and value.__name__ == "__exit__":
        left = _entered_grad_mode(tx, value, source)
        if left is not None:
            return left
    if owner is not None and not isinstance(owner, (types.ModuleType, type)):
        if trace_rules.is_a(owner, _C.TensorBase):
            return _of_its_owner(tx, value, source)
        if trace_rules.is_torch_callable(value):
            return _of_library_object(value, source) if has_state(owner) else TorchFunctionVariable(value, source)
        if type(owner) is random.Random and value.__name__ in DRAWS:
            return _of_its_owner(tx, value, source)
        if type(source) is not ConstSource and trace_rules.is_a(owner, BASES):
            return _of_its_owner(tx, value, source)
    _made_anew(tx, value, source)
    return _c_callable(tx, value, source)


def _of_its_owner(tx, value, source):
    """A bound method as its owner's variable has it; the builtin class's where the owner's class overrides it (``super().append``)."""
    name, cls = value.__name__, type(value.__self__)
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, GetAttrSource(source, "__name__"), "EQUALS_MATCH", name)
    owner = wrap(tx, value.__self__, GetAttrSource(source, "__self__"))
    builtin = next((c for c in mro_of(cls) if flags_of(c) & world.IMMUTABLE and name in vars(c)), None)
    if cls is random.Random or builtin is None or type_item(cls, name) is vars(builtin)[name]:
        return owner.getattr(tx, name)
    return SlotMethod(owner, name, vars(builtin)[name])


def _made_anew(tx, value, source) -> None:
    """Guards a callable of C's. A method that is bound to something is another object at each read."""
    owner = getattr(value, "__self__", None)
    if owner is None or isinstance(owner, types.ModuleType):
        _guard(tx, source, "ID_MATCH", value)
        return
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, GetAttrSource(source, "__self__"), "ID_MATCH", owner)
    _guard(tx, GetAttrSource(source, "__name__"), "EQUALS_MATCH", value.__name__)


def _entered_grad_mode(tx, value, source):
    """The bound ``__exit__`` of a grad mode that is on."""
    owner = GetAttrSource(source, "__self__")
    _guard(tx, source, "TYPE_MATCH", type(value))
    _guard(tx, owner, "TYPE_MATCH", type(value.__self__))
    mode = wrap(tx, value.__self__.restores_grad, GetAttrSource(owner, "restores_grad")).as_constant()
    return None if mode is None else ContextExit(EnteredGradModeVariable(mode), source)


def _weak_proxy(tx, value, source):
    unsupported(
        "weak-proxy", "a weakref.proxy", "What it leads to may be gone at any time, which every use of it tells."
    )


def _partial(tx, value, source):
    _guard(tx, source, "TYPE_MATCH", functools.partial)
    fn = wrap(tx, value.func, GetAttrSource(source, "func"))
    args = wrap(tx, value.args, GetAttrSource(source, "args"))
    kwargs = wrap(tx, value.keywords, GetAttrSource(source, "keywords"))
    out = PartialVariable(fn, args.items(tx), {k.as_constant(): v for k, v in kwargs.pairs(tx)}, source)
    out.value = value
    return out


def _module(tx, value, source):
    _guard(tx, source, "ID_MATCH", value)
    return PythonModuleVariable(value, source)


def _class(value, source):
    if (
        is_among(value, HANDLERS)
        or is_among(value, PURE)
        or (module_of(value) == "builtins" and flags_of(value) & world.IMMUTABLE)
    ):
        return BuiltinVariable(value, source)
    if module_of(value) == "numpy" and not issubclass(value, np.ndarray):
        return BuiltinVariable(value, source)
    if type_item(value, "__mro__") is None:
        unsupported("class", "a class before it has an MRO", "Its metaclass is about to say what that is.")
    if module_of(value) == "itertools" or value is functools.partial:
        return BuiltinVariable(value, source)
    if pure.value_class(value) is not None:
        return ValueClassVariable(value, source)
    if value is contextlib.nullcontext:
        return NullContextClass(value, source)
    if module_of(value) == "flambeau" or module_of(value).startswith("flambeau."):
        if not trace_rules.is_nn_module_class(value) and not is_traced(value):
            return TorchClassVariable(value, source)
    if trace_rules.is_autograd_function(value) and not trace_rules.is_allowed(value):
        return AutogradFunctionVariable(value, source)
    return ClassVariable(value, source)


class NullContextClass(ClassVariable):
    def call(self, tx, args, kwargs):
        return NullContextVariable(self.value, args[0] if args else None, args)


def _torch_function(value, source):
    return TorchFunctionVariable(value, source)


def _c_callable(tx, value, source):
    if type(value) is types.MethodWrapperType and isinstance(value.__self__, types.GetSetDescriptorType):
        from .subclasses import AttributeFunction

        return AttributeFunction(value)
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


BY_TYPE = {
    list: _list,
    tuple: _tuple,
    dict: _dict,
    collections.OrderedDict: _dict,
    collections.defaultdict: _dict,
    collections.deque: _deque,
    set: _set,
    frozenset: _frozenset,
    slice: _slice,
    range: _range,
    types.FunctionType: _function,
    types.MethodType: _method,
    types.BuiltinFunctionType: _builtin_method,
    functools.partial: _partial,
    **dict.fromkeys(weakref.ProxyTypes, _weak_proxy),
    types.ModuleType: _module,
    np.random.Generator: _generator,
    np.random.RandomState: _generator,
}


def global_of_frame(tx, name: str) -> Variable:
    """A global of the captured frame."""
    return world.global_name(tx, tx.globals, name, own=True)


def global_of_dict(tx, globals: dict, name: str) -> Variable:
    """A global of an inlined function, which may live in another module."""
    return world.global_name(tx, globals, name, own=globals is tx.root.globals)
