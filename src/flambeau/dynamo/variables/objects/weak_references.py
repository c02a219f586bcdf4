"""Weak references: those that existed before, and those that are made while tracing."""

from __future__ import annotations

import weakref

from flambeau.base.weak import OwnerReference

from ...exc import unsupported
from ...guards.source import CallSource
from ...rules.reflect import is_among
from ...tracing.current_frame import active_frames, current
from ...tracing.wrapping import WRAPPERS, exactly, pin
from ..base import HeldVariable, Lazy, Variable, hashable_key
from ..containers.sequences import SequenceVariable
from ..functions.handlers import handles
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from .instance import ObjectVariable

__all__ = ["WeakReferenceVariable", "check_callbacks", "is_weakly_known"]


def followed(ref):
    """What a weak reference leads to."""
    return ref()


def refuse_call(tx, args, kwargs) -> None:
    if kwargs:
        tx.raise_user(TypeError("weakref() takes no keyword arguments"))
    if args:
        tx.raise_user(TypeError(f"weakref expected 0 arguments, got {len(args)}"))


def referred(value):
    """The interpreter's own reference to an object: every request for it gives the same object."""
    return weakref.ref(value)


class WeakReferenceVariable(HeldVariable):
    """A weak reference that existed before: whether its object lives, and which it is, is guarded when it is followed."""

    def truth(self, tx):
        return True

    def key_object(self):
        current().output.guard(CallSource(self.source, followed, "weakref"), "ID_MATCH", self.value())
        return self.value

    def reconstruct(self, cg):
        self.source.load(cg)

    def call(self, tx, args, kwargs):
        refuse_call(tx, args, kwargs)
        if tx.side_effects.any() and type(self.value) is not OwnerReference:
            unsupported(
                "weak-reference",
                "a weak reference that is followed after a write",
                "What was written over may have been the last to hold the object.",
            )
        return tx.wrap(self.value(), CallSource(self.source, followed, "weakref"))


class WeakKey:
    """A reference as a key, which it is by what it refers to."""

    def __init__(self, to: Variable):
        self.to = hashable_key(to)

    def __eq__(self, other):
        return type(other) is WeakKey and self.to == other.to

    def __hash__(self):
        return hash(self.to)


class MadeReferenceVariable(Variable):
    """A weak reference made while tracing, to an object that is. It is followed as long as something that is traced holds the object for
    certain; where nothing does, only the interpreter knows whether it lives."""

    def __init__(self, cls: type, to: Variable, callback: Variable | None, key: Variable | None):
        super().__init__()
        self.cls, self.callback, self.key = cls, callback, key
        self.to = weakref.ref(to)
        self.keep: Variable | None = None

    def python_type(self):
        return self.cls

    def truth(self, tx):
        return True

    def target(self, tx) -> Variable:
        to = self.to()
        if to is None or not is_held(to):
            unsupported(
                "weak-reference",
                "a weak reference to what may be gone is followed",
                "Only the interpreter knows when an object is dropped.",
            )
        return to

    def call(self, tx, args, kwargs):
        refuse_call(tx, args, kwargs)
        return self.target(tx)

    def key_object(self):
        """What finds the entries that references of before have made: one of them, where the object existed before."""
        to = self.target(current())
        if not isinstance(to, ObjectVariable) or to.source is None:
            return WeakKey(to)
        if any(getattr(type(to.value), n) is not getattr(object, n) for n in ("__eq__", "__hash__")):
            unsupported(
                "weak-reference",
                "a weak reference as a key, to an object with an equality of its own",
                "References are as equal as what they refer to.",
            )
        current().output.guard(to.source, "ID_MATCH", to.value)
        return weakref.ref(to.value)

    def getattr(self, tx, name):
        if name == "key" and self.key is not None:
            return self.key
        if name == "__callback__":
            return self.callback or ConstantVariable(None)
        return super().getattr(tx, name)

    def reconstruct(self, cg):
        to = self.target(current())
        parts = [to] if self.callback is None else [to, self.callback]
        if self.key is not None:
            parts.append(self.key)
        self.keep = to  # until captured code is written
        cg.call_function(self.cls, lambda: cg.all(parts), len(parts))


def is_held(to: Variable, *more: Variable) -> bool:
    """Whether a frame that is traced holds the object, or ``more`` does, itself or by what it holds."""
    seen: set[int] = set()
    todo: list = [*more]
    for frame in active_frames():
        todo += [*frame.locals.values(), *frame.cells.values(), *frame.stack]
    while todo:
        v = todo.pop()
        if isinstance(v, Variable):
            v = v.unwrap()
            if v is to:
                return True
            if id(v) in seen or isinstance(v, ConstantVariable):
                continue
            seen.add(id(v))
            if not isinstance(v, Lazy):
                todo += vars(v).values()
        elif isinstance(v, dict):
            todo += v.values()
        elif isinstance(v, list | tuple):
            todo += v
    return False


def is_weakly_known(v: Variable) -> bool:
    """Whether something may notice that an object which existed before is gone."""
    v = v.unwrap()
    value = v.value if type(v) in (ObjectVariable, Lazy) else None
    return value is not None and weakref.getweakrefcount(value) > 0


def check_callbacks(tx, *result: Variable) -> None:
    """A local is written over, or a traced call has returned: callbacks of weak references to the dropped object would be called."""
    for made in list(tx.output.references.calling_references):
        to = made.to()
        if to is None or not is_held(to, *result):
            unsupported(
                "weak-reference",
                "what a weak reference with a callback leads to is dropped",
                "The interpreter calls the callback there and then.",
            )


def made(tx, cls, to: Variable, callback: Variable | None, key: Variable | None = None) -> Variable | None:
    to = to.unwrap()
    if callback is not None and callback.is_constant():
        callback = None
    source = to.source
    value = (
        tx.output.recorder.example_of(to)
        if source is not None and isinstance(to, TensorVariable)
        else getattr(to, "value", None)
    )
    if source is not None and value is not None and callback is None and key is None:
        try:
            real = cls(value)
        except TypeError as e:
            tx.raise_user(e)
        found = CallSource(source, referred if cls is weakref.ref else cls, "weakref")
        tx.output.guard(found, "TYPE_MATCH", cls)
        return WeakReferenceVariable(real, found)
    if not isinstance(to, ObjectVariable | TensorVariable) or isinstance(to, SequenceVariable):
        return None
    if not getattr(to.python_type(), "__weakrefoffset__", 0):
        tx.raise_user(TypeError(f"cannot create weak reference to '{to.python_type().__name__}' object"))
    tx.output.references.weakly_known.add(to)
    if cls is weakref.ref and callback is None:  # the interpreter makes one and shares it
        found = tx.output.references.weak_references.get(to)
        if found is None:
            found = tx.output.references.weak_references[to] = MadeReferenceVariable(cls, to, None, None)
        return found
    out = MadeReferenceVariable(cls, to, callback, key)
    if callback is not None:
        tx.output.references.calling_references.add(out)
    return out


@handles(weakref.ref)
def _(tx, args, kwargs):
    return made(tx, weakref.ref, args[0], args[1] if len(args) > 1 else None) if not kwargs and args else None


@handles(OwnerReference)
def _(tx, args, kwargs):
    return made(tx, OwnerReference, args[0], None)


@handles(weakref.KeyedRef)
def _(tx, args, kwargs):
    return made(tx, weakref.KeyedRef, *args) if not kwargs and len(args) == 3 else None


@WRAPPERS.row("weak reference")
def _(tx, value, source):
    if not is_among(type(value), (weakref.ref, weakref.KeyedRef)):
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return WeakReferenceVariable(value, source)


@exactly(OwnerReference)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", OwnerReference)
    return WeakReferenceVariable(value, source)


@exactly(*weakref.ProxyTypes)
def _(tx, value, source):
    unsupported(
        "weak-proxy", "a weakref.proxy", "What it leads to may be gone at any time, which every use of it tells."
    )
