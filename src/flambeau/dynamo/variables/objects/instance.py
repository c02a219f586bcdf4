"""Objects of user classes."""

from __future__ import annotations

import copyreg
import operator
import sys
import types

from ...bytecode.versions import PY313
from ...exc import UserRaises, unsupported
from ...guards.source import ConstSource, InstanceDictSource
from ...guards.tree import type_item
from ...rules import trace_rules
from ...rules.reflect import dict_of, error_name_of, name_of, qualname_of
from ...tracing import world
from ...tracing.world import ABSENT
from ...tracing.wrapping import WRAPPERS, pin
from ..base import Variable
from ..iterators.container_iterators import SequenceIteratorVariable
from ..iterators.protocol import checked_iterator
from ..values.constant import ConstantVariable
from .namespaces import InstanceDict

__all__ = ["ObjectVariable", "SlotMethod"]


class ObjectVariable(Variable):
    """An instance of a Python class. Reads go to pending writes, then to the instance and its class, through :mod:`...tracing.world`.

    ``value`` is the real object, or None for one made while tracing (then ``cls`` and the pending writes are all there is). ``written`` is the
    one record of what the traced code changed: attributes, slots, ``__dict__`` and the registries of a module are views of it."""

    mutable = True

    def __init__(self, value, cls: type, source=None):
        super().__init__(source)
        self.value, self.cls = value, cls
        if value is not None and source is None:
            self.source = ConstSource(value, f"const<{name_of(cls)}>")
        self.written: dict[str, Variable | None] = {}  # None: deleted
        self.reinserted: set[str] = set()  # deleted, then written again: at the end of the dict

    def python_type(self):
        return self.cls

    def is_made_object(self):
        return self.value is None

    def real_value(self, tx):
        if self.value is None:
            unsupported("not-constant", f"{self!r}, which is made while tracing, given to a function of constants")
        return self.value

    def class_attr(self, tx, name):
        return world.class_attr(tx, self.cls, name)

    def pending(self, name):
        return world.DELETED if name in self.written and self.written[name] is None else self.written.get(name)

    def getattr(self, tx, name):
        if name not in ("__class__", "__dict__") or isinstance(
            self.class_attr(tx, "__getattribute__"), types.FunctionType
        ):
            return self.generic_getattr(tx, name)
        if name == "__class__" and type_item(self.cls, name) is object.__dict__["__class__"]:
            return tx.make_class(self.cls)
        if name == "__dict__":
            return self.instance_dict(tx)
        return self.generic_getattr(tx, name)

    def generic_getattr(self, tx, name):
        return world.attribute(tx, self, self.value, self.cls, self.source, name, self.pending)

    def own_getattr(self, tx, name):
        """object.__getattribute__"""
        if name == "__class__" and type_item(self.cls, name) is object.__dict__["__class__"]:
            return tx.make_class(self.cls)
        if name == "__dict__":
            return self.instance_dict(tx)
        return world.attribute(tx, self, self.value, self.cls, self.source, name, self.pending, hooks=False)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def has_dict(self) -> bool:
        """Whether objects of the class have attributes other than those of ``__slots__``."""
        return type_item(self.cls, "__dict__") is not ABSENT

    def instance_dict(self, tx):
        if world.instance_dict(self.value) is None if self.value is not None else not self.has_dict():
            tx.raise_user(AttributeError(f"{error_name_of(self.cls)!r} object has no attribute '__dict__'"))
        return InstanceDict(self)

    def setattr(self, tx, name, value):
        hook = self.class_attr(tx, "__setattr__")
        if type(hook) is types.FunctionType:
            tx.wrap_function(hook).call(tx, [self, ConstantVariable(name), value], {})
            return
        if not own_slot(hook, "__setattr__"):
            unsupported("setattr", f"setting {name} of {self!r}", f"__setattr__ of its class is {hook!r}.")
        self.plain_setattr(tx, name, value)

    def plain_setattr(self, tx, name, value):
        """object.__setattr__"""
        if name in ("__class__", "__dict__"):
            unsupported("setattr", f"setting {name} of {self!r}")
        a = self.class_attr(tx, name)
        if in_c_struct(a):
            unsupported("setattr", f"setting {name} of {self!r}", "It is kept by a class of the interpreter.")
        if world.is_property(tx, a, "__set__"):
            setter = property.fset.__get__(a)
            if setter is None:
                tx.raise_user(AttributeError(f"property {name!r} of {qualname_of(self.cls)!r} object has no setter"))
            tx.wrap_function(setter).call(tx, [self, value], {})
            return
        if a is not ABSENT and not trace_rules.is_a(a, types.FunctionType):
            put = world.class_attr(tx, type(a), "__set__")
            if type(put) is types.FunctionType:
                tx.wrap_function(put).call(tx, [tx.wrap_known(a), self, value], {})
                return
            if put is not ABSENT and not trace_rules.is_a(a, types.MemberDescriptorType):
                unsupported(
                    "descriptor",
                    f"setting {name} of {self!r}",
                    f"{name} is a data descriptor of type {name_of(type(a))}.",
                )
        self.store(tx, name, value)

    def store(self, tx, name, value: Variable | None) -> None:
        """The attribute in the instance itself, past every hook. None deletes it."""
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        before = None
        if self.value is None and value is not None and not self.has_dict():
            if not isinstance(type_item(self.cls, name), types.MemberDescriptorType):
                self.refuse_attribute(tx, name)
        if self.value is not None and not isinstance(type_item(self.cls, name), types.MemberDescriptorType):
            d = world.instance_dict(self.value)
            if d is None:
                self.refuse_attribute(tx, name)
            before = name in d
            if before and name not in self.written and hasattr(type(d[name]), "__del__"):
                unsupported(
                    "finalizer",
                    f"setting {name} of {self!r}",
                    "What was there has __del__, which runs when it is dropped.",
                )
            tx.output.guard(InstanceDictSource(self.source), "HAS_KEY" if before else "NO_KEY", name)
        if value is None and before is False:
            self.written.pop(name, None)
        else:
            if name in self.written and self.written[name] is None:
                del self.written[name]
                self.reinserted.add(name)
            if value is None:
                self.reinserted.discard(name)
            self.written[name] = value

    def refuse_attribute(self, tx, name):
        more = " and no __dict__ for setting new attributes" if PY313 and not self.has_dict() else ""
        tx.raise_user(AttributeError(f"{error_name_of(self.cls)!r} object has no attribute {name!r}{more}"))

    def delattr(self, tx, name):
        hook = self.class_attr(tx, "__delattr__")
        if type(hook) is types.FunctionType:
            tx.wrap_function(hook).call(tx, [self, ConstantVariable(name)], {})
            return
        if not own_slot(hook, "__delattr__"):
            unsupported("delattr", f"deleting {name} of {self!r}", f"__delattr__ of its class is {hook!r}.")
        self.plain_delattr(tx, name)

    def plain_delattr(self, tx, name):
        a = self.class_attr(tx, name)
        if name in ("__class__", "__dict__") or in_c_struct(a):
            unsupported("delattr", f"deleting {name} of {self!r}", "It is kept by a class of the interpreter.")
        if world.is_property(tx, a, "__delete__"):
            deleter = property.fdel.__get__(a)
            if deleter is None:
                tx.raise_user(AttributeError(f"property {name!r} of {qualname_of(self.cls)!r} object has no deleter"))
            tx.wrap_function(deleter).call(tx, [self], {})
            return
        if a is not ABSENT and not trace_rules.is_a(a, types.FunctionType | types.MemberDescriptorType):
            drop = world.class_attr(tx, type(a), "__delete__")
            if type(drop) is types.FunctionType:
                tx.wrap_function(drop).call(tx, [tx.wrap_known(a), self], {})
                return
            if drop is not ABSENT:
                unsupported("descriptor", f"deleting {name} of {self!r}", f"{name} is a {name_of(type(a))}.")
        if name not in self.written or self.written[name] is None:
            found = None
            if self.value is not None and name not in self.written:
                found = (
                    self.getattr(tx, name)
                    if trace_rules.is_a(a, types.MemberDescriptorType)
                    else world.instance_attr(tx, self.value, self.source, name)
                )
            if found is None:
                if trace_rules.is_a(a, types.MemberDescriptorType):
                    tx.raise_user(AttributeError(name))
                self.refuse_attribute(tx, name)
        if self.value is None:
            del self.written[name]
            tx.side_effects.touch(self)
        else:
            self.store(tx, name, None)

    def special(self, tx, name):
        """A special method found on the class only, as the interpreter does; None when absent."""
        a = self.class_attr(tx, name)
        return None if a is ABSENT or a is None else world.bind(tx, self, self.cls, name, a)

    def call_special(self, tx, name, *args):
        f = self.special(tx, name)
        if f is None:
            unsupported("special-method", f"{name_of(self.cls)} has no {name}")
        return f.call(tx, list(args), {})

    def call(self, tx, args, kwargs):
        f = self.special(tx, "__call__")
        if f is None:
            tx.raise_user(TypeError(f"{error_name_of(self.cls)!r} object is not callable"))
        return f.call(tx, args, kwargs)

    def getitem(self, tx, key):
        return self.call_special(tx, "__getitem__", key)

    def setitem(self, tx, key, value):
        self.call_special(tx, "__setitem__", key, value)

    def delitem(self, tx, key):
        self.call_special(tx, "__delitem__", key)

    def contains(self, tx, key):
        if self.class_attr(tx, "__contains__") is None:
            tx.raise_user(TypeError(f"{error_name_of(self.cls)!r} object is not a container"))
        if self.class_attr(tx, "__contains__") is not ABSENT:
            return ConstantVariable(tx.truth(self.call_special(tx, "__contains__", key)))
        return super().contains(tx, key)

    def iter(self, tx):
        found = self.class_attr(tx, "__iter__")
        if found is ABSENT and self.class_attr(tx, "__getitem__") is not ABSENT:
            return SequenceIteratorVariable(self)
        if found is ABSENT or found is None:
            tx.raise_user(TypeError(f"{error_name_of(self.cls)!r} object is not iterable"))
        return checked_iterator(tx, self.call_special(tx, "__iter__"))

    def pull(self, tx):
        if self.special(tx, "__next__") is None:
            return super().pull(tx)
        return self.call_special(tx, "__next__")

    def expected_length(self, tx):
        if self.special(tx, "__len__") is not None:
            try:
                self.length(tx)
                return
            except UserRaises as e:
                if not isinstance(e.exception, TypeError):
                    raise
        hint = self.special(tx, "__length_hint__")
        if hint is None:
            return
        try:
            n = hint.call(tx, [], {})
        except UserRaises as e:
            if not isinstance(e.exception, TypeError):
                raise
            return
        if n.is_constant() and n.as_constant() is NotImplemented:
            return
        if not issubclass(n.python_type(), int):
            tx.raise_user(TypeError(f"__length_hint__ must be an integer, not {n.python_type_name()}"))
        if n.as_constant() < 0:
            tx.raise_user(ValueError("__length_hint__() should return >= 0"))

    def length(self, tx):
        try:
            n = operator.index(self.call_special(tx, "__len__").as_constant())
        except TypeError as e:
            tx.raise_user(e)
        if n < 0:
            tx.raise_user(ValueError("__len__() should return >= 0"))
        if n > sys.maxsize:
            tx.raise_user(OverflowError("cannot fit 'int' into an index-sized integer"))
        return n

    def truth(self, tx):
        if self.class_attr(tx, "__bool__") is not ABSENT:
            answer = self.call_special(tx, "__bool__").as_constant()
            if type(answer) is not bool:
                tx.raise_user(TypeError(f"__bool__ should return bool, returned {name_of(type(answer))}"))
            return answer
        if self.class_attr(tx, "__len__") is not ABSENT:
            return bool(self.length(tx))
        return True

    def reconstruct(self, cg):
        """Made while tracing: a bare object of the class, then its attributes."""
        if self.value is not None:
            cg.load_const(self.value)
            return
        cg.call_function(
            self.cls.__new__
            if trace_rules.is_plain_mode(self.cls) or self.cls is types.SimpleNamespace
            else object.__new__,
            lambda: cg.load_const(self.cls),
            1,
        )
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        self.push_attributes(cg, t)
        cg.emit("LOAD_FAST", t)

    def push_attributes(self, cg, t: str) -> None:
        for k, v in self.written.items():
            if v is None:
                continue

            in_dict = self.passes_by(k)

            def push(k=k, v=v, in_dict=in_dict):
                if in_dict:
                    cg.call_function(world.instance_dict, lambda: cg.emit("LOAD_FAST", t), 1)
                else:
                    cg.emit("LOAD_FAST", t)
                cg.load_const(k)
                cg(v)

            cg.call_function(dict.__setitem__ if in_dict else object.__setattr__, push, 3)
            cg.emit("POP_TOP")

    def passes_by(self, name: str) -> bool:
        """Whether the class has a property or the like of this name, which what is in the instance itself passes by."""
        found = type_item(self.cls, name)
        return not isinstance(found, world.C_DESCRIPTORS) and hasattr(type(found), "__set__")

    def replay(self, replay):
        target = replay.target(self)
        for name, value in self.written.items():
            self.replay_attribute(replay, target, name, value)

    def replay_attribute(self, replay, target: str, name: str, value: Variable | None) -> None:
        """The hooks were traced already, so they don't run again: only changes of the instance itself are replayed."""
        hooked = any(type_item(self.cls, n) is not dict_of(object)[n] for n in ("__setattr__", "__delattr__"))
        in_dict = self.passes_by(name)
        if in_dict:
            cg = replay.cg
            table = replay.keep(lambda: cg.call_function(world.instance_dict, lambda: replay.load(target), 1))
        if value is None and isinstance(type_item(self.cls, name), types.MemberDescriptorType):
            # The slot may have been empty before the call.
            replay.later(lambda r: r.call(object.__setattr__, [target], [name, None]))
        if value is None or name in self.reinserted:
            if in_dict:
                replay.later(lambda r: r.call(dict.pop, [table], [name, None]))
            else:
                replay.later(lambda r: r.call(object.__delattr__ if hooked else delattr, [target], [name]))
        if value is None:
            return
        t = replay.value(value)
        if in_dict:
            replay.later(lambda r: r.call(dict.__setitem__, [table], [name], [t]))
        elif hooked:
            replay.later(lambda r: r.call(object.__setattr__, [target], [name], [t]))
        else:
            replay.later(lambda r: r.store_attr(target, name, t))


class SlotMethod(Variable):
    """A C-level method of a user object (object.__setattr__ and the like)."""

    def __init__(self, owner: ObjectVariable, name: str, value):
        super().__init__()
        self.owner, self.name, self.value = owner, name, value

    def reconstruct(self, cg):
        # By the descriptor: ``super()`` finds another one than the object does.
        cg.call_function(self.value.__get__, lambda: cg(self.owner), 1)

    def call(self, tx, args, kwargs):
        o, name = self.owner, self.name
        if hasattr(o, "builtin_method") and o.is_builtin(self.value):
            return o.builtin_method(tx, name, args, kwargs)
        if self.value is object.__setattr__ and args[0].can_constant():
            o.plain_setattr(tx, args[0].as_constant(), args[1])
            return ConstantVariable(None)
        if self.value is object.__delattr__ and args[0].can_constant():
            o.plain_delattr(tx, args[0].as_constant())
            return ConstantVariable(None)
        if self.value is object.__init__:
            if args or kwargs:
                refuse_excess(tx, o.cls, "__init__")
            return ConstantVariable(None)
        lookup = type.__getattribute__ if issubclass(o.python_type(), type) else object.__getattribute__
        if self.value is lookup and args[0].can_constant() and hasattr(o, "own_getattr"):
            return tx.attribute(o, wanted := args[0].as_constant(), lambda: o.own_getattr(tx, wanted))
        if self.value is object.__eq__ or self.value is object.__ne__:
            same = tx.operators.identical(tx, o, args[0])
            if not same:
                return ConstantVariable(NotImplemented)
            return ConstantVariable(self.value is object.__eq__)
        if self.value is object.__init_subclass__:
            return ConstantVariable(None)
        if self.value is object.__reduce_ex__ and type(o) is ObjectVariable:
            return reduced(tx, o, args)
        unsupported("slot-method", f"calling {name} of {o!r}", f"{self.value!r} is implemented in C.")


def in_c_struct(descriptor) -> bool:
    """Whether it is a member of a class of the interpreter (which may be read-only), not one of ``__slots__``."""
    return trace_rules.is_a(descriptor, types.MemberDescriptorType) and bool(
        descriptor.__objclass__.__flags__ & world.IMMUTABLE
    )


def own_slot(hook, name: str) -> bool:
    """Whether a class's hook is what the interpreter itself puts there, under that name."""
    return isinstance(hook, types.WrapperDescriptorType) and hook.__name__ == name


def refuse_excess(tx, cls: type, called: str) -> None:
    """``object.__new__`` or ``object.__init__`` is called with more than the class or object: an error, unless only the other of the two is
    overridden."""
    new, init = world.class_attr(tx, cls, "__new__"), world.class_attr(tx, cls, "__init__")
    overrides_new, overrides_init = new is not object.__new__, init is not object.__init__
    what = "type to instantiate" if called == "__new__" else "instance to initialize"
    if overrides_new if called == "__new__" else overrides_init:
        tx.raise_user(TypeError(f"object.{called}() takes exactly one argument (the {what})"))
    if not (overrides_init if called == "__new__" else overrides_new):
        tx.raise_user(TypeError(f"{name_of(cls)}() takes no arguments"))


def reduced(tx, o: ObjectVariable, args) -> Variable:
    """``object.__reduce_ex__`` of protocol 2 and up: how to make the object again."""
    if o.class_attr(tx, "__reduce__") is not object.__dict__["__reduce__"]:
        return o.getattr(tx, "__reduce__").call(tx, [], {})
    state_of = o.class_attr(tx, "__getstate__")
    own = type(state_of) is types.FunctionType
    ways = ("__getnewargs__", "__getnewargs_ex__")
    if len(args) != 1:
        unsupported("reduce", f"__reduce_ex__ of {o!r} with {len(args)} arguments")
    if (
        not args[0].is_constant()
        or type(args[0].as_constant()) is not int
        or args[0].as_constant() < 2
        or any(o.class_attr(tx, n) is not ABSENT for n in ways)
    ):
        unsupported("reduce", f"__reduce_ex__ of {o!r}", "It is made again in a way of its own.")
    if not own and (state_of is not object.__dict__.get("__getstate__", ABSENT) or copyreg._slotnames(o.cls)):
        unsupported("reduce", f"__reduce_ex__ of {o!r}", "Its state is more than its attributes.")
    none = ConstantVariable(None)
    state = o.getattr(tx, "__getstate__").call(tx, [], {}) if own else o.instance_dict(tx)
    if not own and not state.truth(tx):
        state = none
    cls = tx.make_tuple([tx.make_class(o.cls)])
    return tx.make_tuple([tx.wrap_known(copyreg.__newobj__), cls, state, none, none])


def has_attributes(value) -> bool:
    """Whether an object has a dict, or slots, for attributes."""
    return world.instance_dict(value) is not None or type_item(type(value), "__slots__") is not ABSENT


@WRAPPERS.row("object")
def _(tx, value, source):
    if not has_attributes(value):
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return ObjectVariable(value, type(value), source)
