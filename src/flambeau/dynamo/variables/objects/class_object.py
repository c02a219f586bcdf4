"""Classes, the making of their objects, and super()."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable

from flambeau.fx.proxy import ProxyableClassMeta

from ...bytecode.versions import PY313
from ...exc import UserRaises, unsupported
from ...graph import tensor_queries
from ...guards.source import ConstSource
from ...rules import trace_rules
from ...rules.reflect import MRO, dict_of, flags_of, is_stdlib, module_of, mro_of, name_of, qualname_of, type_item
from ...tracing import world
from ...tracing.world import ABSENT
from ...tracing.wrapping import CLASS_WRAPPERS
from ..base import KnownVariable, MethodOf, Variable
from ..containers.sequences import TupleVariable
from ..exceptions.exception import make_exception
from ..functions.binding import bind
from ..functions.python_functions import UserFunctionVariable, UserMethodVariable
from ..iterators.container_iterators import ElementsVariable
from ..iterators.protocol import checked_iterator
from ..modules.module import ModuleSetattr, ModuleVariable, is_library
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .builtin_subclass import DerivedVariable, builtin_base, is_named_tuple, new_derived
from .instance import ObjectVariable
from .namespaces import ClassDict

__all__ = ["ClassVariable", "SuperVariable", "construct"]
OPERATIONS = (
    "__eq__",
    "__ne__",
    "__hash__",
    "__getattribute__",
    "__getattr__",
    "__or__",
    "__ror__",
    "__repr__",
    "__lt__",
    "__gt__",
)
MAKES_PLAINLY = (type.__dict__["__call__"], ProxyableClassMeta.__dict__["__call__"])
"""What metaclasses do that make objects as ``type`` does; there is no Proxy among the arguments of captured code."""
ABSTRACT = 1 << 20  # Py_TPFLAGS_IS_ABSTRACT


class ClassVariable(KnownVariable):
    def __repr__(self):
        return f"class {name_of(self.value)}"

    def is_plain(self, tx) -> bool:
        """Whether the interpreter's own operations on the class run nothing of a program's."""
        meta = type(self.value)
        return meta is type or all(
            type(f) is not types.FunctionType or is_stdlib(f)
            for f in (world.class_attr(tx, meta, n) for n in OPERATIONS)
        )

    def truth(self, tx):
        if issubclass(self.value, enum.Enum):
            return True
        said = self.of_metaclass(tx, "__bool__")
        if said is None:
            said = self.of_metaclass(tx, "__len__")
            return True if said is None else bool(said.as_constant())
        if type(said.as_constant()) is not bool:
            unsupported("metaclass", f"bool of {self!r}", "Its metaclass answers something else.")
        return said.as_constant()

    def getattr(self, tx, name):
        cls, meta = self.value, type(self.value)
        if name == "__class__":
            return ClassVariable(meta, ConstSource(meta, qualname_of(meta)))
        if name == "__dict__":
            return self.own_dict(tx)
        if issubclass(cls, enum.Enum) and name in cls._member_map_:
            return ConstantVariable(cls._member_map_[name])  # the class refuses to have its members replaced
        if not flags_of(cls) & world.IMMUTABLE and id(cls) not in tx.output.objects.made_classes:
            tx.output.guard(ConstSource(cls, qualname_of(cls)), "TYPE_MATCH", meta)  # it may be given another metaclass
        hook = world.class_attr(tx, meta, "__getattribute__")
        if hook in world.LOOKUP:
            return self.own_getattr(tx, name)
        if type(hook) is not types.FunctionType:
            unsupported("getattribute", f"reading {name} of {self!r}", f"{name_of(meta)} looks attributes up in C.")
        read = tx.wrap_function(hook)
        return world.fallback(tx, self, meta, name, lambda: read.call(tx, [self, ConstantVariable(name)], {}))

    def own_dict(self, tx):
        if any(cls is self.value for cls, _ in tx.output.side_effects.class_writes):
            unsupported("class-dict", f"reading __dict__ of {self!r}, which was written to")
        return ClassDict(self.value)

    def own_getattr(self, tx, name):
        """type.__getattribute__"""
        cls, meta = self.value, type(self.value)
        source = self.source or ConstSource(cls, qualname_of(cls))
        above = world.class_attr(tx, meta, name)
        if above is not ABSENT and type(above) is not types.FunctionType and world.is_data_descriptor(tx, above):
            if type(above) is property:
                return tx.wrap_function(above.fget).call(tx, [self], {})
            get = world.class_attr(tx, type(above), "__get__")
            if type(get) is types.FunctionType:
                return world.call_get(tx, get, above, self, meta)
            return self.of_interpreter(tx, name, source)
        written = tx.output.side_effects.on_class(cls, name)
        if written is not None:
            return written
        a = world.class_attr(tx, cls, name)
        if a is not ABSENT:
            return self.found(tx, name, a, source)
        if above is not ABSENT:
            return self.of_interpreter(tx, name, source) if meta is type else world.bind(tx, self, meta, name, above)
        return world.missing(tx, self, meta, name)

    def of_interpreter(self, tx, name, source):
        """An attribute that ``type`` itself keeps."""
        return world.dynamic(tx, self, self.value, source, name)

    def found(self, tx, name, a, source):
        """What an attribute of the class becomes when it is read from the class."""
        if trace_rules.is_a(a, staticmethod):
            return tx.wrap_function(a.__func__)
        if trace_rules.is_a(a, classmethod):
            if trace_rules.is_torch_callable(a.__func__):
                return tx.wrap_known(getattr(self.value, name))
            return UserMethodVariable(tx.wrap_known(a.__func__), self)
        if trace_rules.is_a(a, types.FunctionType):
            return tx.wrap_function(a)
        if trace_rules.is_a(a, (property, *world.C_DESCRIPTORS)):
            return tx.wrap_known(a)
        get = world.class_attr(tx, type(a), "__get__")
        if type(get) is types.FunctionType:
            return tx.wrap_function(get).call(tx, [tx.wrap_known(a), ConstantVariable(None), self], {})
        if (
            get is not ABSENT
            and not trace_rules.is_a(a, type)
            and not trace_rules.is_compiled(a)
            and not trace_rules.is_disabled(a)
        ):
            return world.dynamic(tx, self, self.value, source, name)
        return tx.wrap_known(a)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def of_metaclass(self, tx, name, *args):
        """A special method that the metaclass defines in Python, called; None when it has none."""
        f = world.class_attr(tx, type(self.value), name)
        return tx.wrap_function(f).call(tx, [self, *args], {}) if type(f) is types.FunctionType else None

    def iter(self, tx):
        if issubclass(self.value, enum.Enum):  # which it refuses to have changed
            return ElementsVariable([ConstantVariable(m) for m in self.value], cls=types.GeneratorType)
        found = self.of_metaclass(tx, "__iter__")
        return super().iter(tx) if found is None else checked_iterator(tx, found)

    def getitem(self, tx, key):
        if issubclass(self.value, enum.Enum) and key.can_constant():
            try:
                return ConstantVariable(self.value[key.as_constant()])
            except KeyError as e:
                tx.raise_user(e)
        found = self.of_metaclass(tx, "__getitem__", key)
        if found is not None:
            return found
        f = world.class_attr(tx, self.value, "__class_getitem__")
        if isinstance(f, classmethod) and type(f.__func__) is types.FunctionType:
            return tx.wrap_function(f.__func__).call(tx, [self, key], {})
        return super().getitem(tx, key)

    def contains(self, tx, key):
        if issubclass(self.value, enum.Enum) and key.is_constant():
            try:
                return ConstantVariable(key.as_constant() in self.value)
            except TypeError as e:
                tx.raise_user(e)
        found = self.of_metaclass(tx, "__contains__", key)
        return super().contains(tx, key) if found is None else ConstantVariable(tx.truth(found))

    def length(self, tx):
        if issubclass(self.value, enum.Enum):
            return len(self.value)
        found = self.of_metaclass(tx, "__len__")
        return super().length(tx) if found is None else found.as_constant()

    def setattr(self, tx, name, value):
        """Plain values in the place of plain values: nothing that the interpreter, or a lookup, treats in a way of its own."""
        cls, meta, value = self.value, type(self.value), value.unwrap()
        written = tx.output.side_effects.on_class(cls, name)
        if (
            flags_of(cls) & world.IMMUTABLE
            or not tensor_queries.is_user_class(cls)
            or (name.startswith("__") and name.endswith("__"))
            or world.class_attr(tx, meta, "__setattr__") is not type.__setattr__
            or world.class_attr(tx, meta, name) is not ABSENT
            or (written is None and not is_plain(tx, type(world.class_attr(tx, cls, name))))
            or not is_plain(tx, value.python_type())
        ):
            unsupported("class-setattr", f"setting {name} of {self!r}", "A class is changed while tracing.")
        tx.output.side_effects.store_on_class(cls, name, value)

    def call(self, tx, args, kwargs):
        return construct(tx, self, args, kwargs)


def is_plain(tx, cls: type) -> bool:
    """Whether objects of the class are found in another class as they are, without a descriptor's methods."""
    return all(world.class_attr(tx, cls, n) is ABSENT for n in ("__get__", "__set__", "__delete__", "__set_name__"))


MAKERS: dict[type, Callable] = {}
"""Classes of libraries that captured code makes objects of in a way of its own: (tx, args, kwargs) -> variable, or None."""


def member_of(tx, var: ClassVariable, args, kwargs) -> Variable | None:
    """The member of an enumeration that has the value. None for other calls, which make a class, and where the metaclass is the program's."""
    cls = var.value
    if len(args) != 1 or kwargs or not args[0].can_constant():
        return None
    if world.class_attr(tx, type(cls), "__call__") is not type_item(enum.EnumMeta, "__call__"):
        return None
    value = args[0].as_constant()
    known = next((m for m in dict_of(cls)["_member_map_"].values() if m is value or m._value_ == value), None)
    if known is not None:
        return tx.wrap_known(known)
    missing = world.class_attr(tx, cls, "_missing_")
    if not isinstance(missing, classmethod):
        return None
    if module_of(missing.__func__) == "enum":  # makes a combination of flags, or none
        try:
            return tx.wrap_known(cls(value))
        # TypeError of an enumeration without members, from CPython 3.12 on.
        except (ValueError, TypeError) as e:
            tx.raise_user(e)
    try:
        found = tx.wrap_function(missing.__func__).call(tx, [var, *args], {})
    except UserRaises as e:  # the metaclass gives it a context
        unsupported(
            "construct", f"{qualname_of(cls)}({value!r})", f"Its _missing_ raises {name_of(type(e.exception))}."
        )
    if found.is_constant() and type(found.as_constant()) is cls:
        return found
    unsupported("construct", f"{qualname_of(cls)}({value!r})", "Its _missing_ gives no member.")


def construct(tx, var: ClassVariable, args, kwargs):
    """An instance of a user class, made while tracing."""
    cls = var.value
    # By identity: a metaclass of the program may have a __hash__.
    make = next((m for c, m in MAKERS.items() if c is cls), None)
    if make is not None and (made := make(tx, args, kwargs)) is not None:
        return made
    if issubclass(cls, enum.Enum) and (member := member_of(tx, var, args, kwargs)) is not None:
        return member
    if issubclass(cls, tuple) and is_named_tuple(tx, cls):
        f = UserFunctionVariable(cls.__new__)
        bound = bind(tx, f, [var, *args], kwargs)
        return TupleVariable([tx.realize(bound[n]) for n in cls._fields], cls=cls)
    if issubclass(cls, BaseException) and type(cls) is type:
        return make_exception(tx, cls, args, kwargs)
    meta = type(cls)
    if world.class_attr(tx, meta, "__call__") not in MAKES_PLAINLY or world.class_attr(tx, meta, "__new__") is ABSENT:
        unsupported("construct", f"constructing {qualname_of(cls)}", "Its metaclass has its own way to make objects.")
    if flags_of(cls) & ABSTRACT:
        tx.raise_user(abstract(cls))
    new = world.class_attr(tx, cls, "__new__")
    new = new.__func__ if isinstance(new, staticmethod) else new
    base = builtin_base(cls)
    if (
        issubclass(cls, tensor_queries.Tensor)
        and tensor_queries.is_user_class(cls)
        and not trace_rules.is_parameter_class(cls)
    ):
        return tx.subclasses.make(tx, var, args, kwargs)
    if issubclass(cls, tensor_queries.Tensor) or issubclass(cls, BaseException):
        base, new = None, None
    if base is not None or type(new) is types.FunctionType:
        if type(new) not in (types.FunctionType, types.BuiltinFunctionType):
            unsupported("construct", f"constructing {qualname_of(cls)}", f"Its __new__ is a {name_of(type(new))}.")
        made = (
            tx.wrap_function(new).call(tx, [var, *args], kwargs)
            if type(new) is types.FunctionType
            else new_derived(tx, base, cls, args, kwargs)
        )
        if isinstance(made, ObjectVariable) and issubclass(made.cls, cls):
            if not run_init(tx, made, args, kwargs) and isinstance(made, DerivedVariable):
                made.init(tx, args, kwargs)
        return made
    if cls is types.SimpleNamespace and not args:
        obj = ObjectVariable(None, cls)
        for k, v in kwargs.items():
            obj.store(tx, k, v)
        return obj
    if not (new is object.__new__ or trace_rules.is_plain_mode(cls)):
        unsupported(
            "construct",
            f"constructing {module_of(cls)}.{qualname_of(cls)}",
            "Its construction is not plain Python (metaclass, __new__ or C base).",
        )
    if world.class_attr(tx, cls, "__del__") is not ABSENT:
        unsupported(
            "finalizer", f"constructing {qualname_of(cls)}, which has __del__", "When it runs is part of the program."
        )
    obj = (ModuleVariable if trace_rules.is_nn_module_class(cls) else ObjectVariable)(None, cls)
    if not run_init(tx, obj, args, kwargs) and (args or kwargs):
        tx.raise_user(TypeError(f"{name_of(cls)}() takes no arguments"))
    return obj


def run_init(tx, made: Variable, args, kwargs) -> bool:
    """Whether the class of a new object has an ``__init__`` of the program's, which is called then."""
    cls = made.python_type()
    init = world.class_attr(tx, cls, "__init__")
    if not world.is_defined(init):
        return False
    result = world.bind(tx, made, cls, "__init__", init).call(tx, args, kwargs)
    if not (result.is_constant() and result.as_constant() is None):
        tx.raise_user(TypeError(f"__init__() should return None, not '{name_of(result.python_type())}'"))
    return True


def abstract(cls: type) -> TypeError:
    """What the interpreter raises for a class with abstract methods."""
    try:
        object.__new__(cls)
    except TypeError as e:
        return e
    return TypeError(f"Can't instantiate abstract class {name_of(cls)}")


def not_below(cls: type, obj: Variable, owner: type) -> TypeError:
    """What ``super(cls, obj)`` raises, in the words of this interpreter, where ``cls`` isn't in the MRO."""
    if not PY313:
        return TypeError("super(type, obj): obj must be an instance or subtype of type")
    value = getattr(obj, "value", None)
    found = f"type {name_of(value)}" if isinstance(value, type) else f"instance of {name_of(owner)}"
    return TypeError(f"super(type, obj): obj ({found}) is not an instance or subtype of type ({name_of(cls)}).")


class SuperVariable(Variable):
    def __init__(self, cls: type, obj: Variable):
        super().__init__()
        self.cls, self.obj = cls, obj

    def owner(self, tx) -> type:
        """The class whose MRO is searched; an error, as where ``super`` is called, when ``cls`` isn't in it."""
        owner = self.obj.value if isinstance(self.obj, ClassVariable) else self.obj.python_type()
        if self.cls not in mro_of(owner):
            if isinstance(self.obj, ClassVariable) and self.cls in mro_of(type(owner)):
                unsupported("super", f"super() in a method of the metaclass {qualname_of(self.cls)}")
            tx.raise_user(not_below(self.cls, self.obj, owner))
        return owner

    def getattr(self, tx, name):
        of_class = isinstance(self.obj, ClassVariable)
        owner = self.owner(tx)
        # The one attribute that is its own, not the next class's.
        if name == "__class__":
            return tx.wrap_known(super)
        a = world.class_attr(tx, owner, name, after=self.cls)
        if a is ABSENT and name == "__self__":
            return self.obj
        if a is ABSENT and name in ("__thisclass__", "__self_class__"):
            return tx.wrap_known(self.cls if name == "__thisclass__" else owner)
        if a is ABSENT:
            tx.raise_user(AttributeError(f"'super' object has no attribute {name!r}"))
        if of_class:
            if trace_rules.is_a(a, classmethod):
                return UserMethodVariable(tx.wrap_known(a.__func__), self.obj)
            return self.obj.found(tx, name, a, ConstSource(owner, qualname_of(owner)))
        if isinstance(self.obj, TensorVariable) and not trace_rules.is_a(a, property):
            return UserMethodVariable(tx.wrap_known(a.__func__ if trace_rules.is_a(a, staticmethod) else a), self.obj)
        if trace_rules.is_a(a, types.FunctionType):
            if name == "__setattr__" and isinstance(self.obj, ModuleVariable) and is_library(a):
                return ModuleSetattr(self.obj)
            return UserMethodVariable(tx.wrap_function(a), self.obj)
        if type(a) is property:
            return tx.wrap_function(a.fget).call(tx, [self.obj], {})
        if isinstance(self.obj, ObjectVariable):
            get = world.class_attr(tx, type(a), "__get__")
            if type(get) is types.FunctionType:
                return world.call_get(tx, get, a, self.obj, owner)
            return world.bind(tx, self.obj, owner, name, a)
        if trace_rules.is_a(a, world.C_METHODS) and hasattr(self.obj, "call_method"):
            return MethodOf(self.obj, name)
        unsupported("super", f"super().{name} of {self.obj!r}")

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


@CLASS_WRAPPERS.row("without an MRO")
def _(tx, value, source):
    if type_item(value, MRO) is None:
        unsupported("class", "a class before it has an MRO", "Its metaclass is about to say what that is.")


@CLASS_WRAPPERS.row("other class")
def _(tx, value, source):
    return ClassVariable(value, source)
