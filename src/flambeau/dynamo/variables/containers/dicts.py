"""Dicts. A dict that existed before the call is read key by key: only what was looked at is guarded."""

from __future__ import annotations

import collections
import types
from collections.abc import Iterator

from ...exc import UserRaises, unsupported
from ...guards.source import GetAttrSource, KeySource
from ...guards.tree import same_key
from ...rules.reflect import has_item, hashed_by_program, name_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from ..base import Lazy, Variable, contents_of, hashable_key, method_of
from ..functions.python_functions import UserFunctionVariable
from ..iterators.container_iterators import KeyedIteratorVariable
from ..iterators.protocol import each, fast_sequence
from ..values.constant import ConstantVariable
from .lists import ListVariable
from .sequences import TupleVariable
from .set_history import Elements, SetHistory
from .sets import SetVariable, elements_of

__all__ = ["DictVariable", "each_pair", "is_mapping", "pairs_of"]

_DELETED = object()


def keys_of(d: dict) -> tuple:
    """Past what its class overrides."""
    return tuple((collections.OrderedDict if isinstance(d, collections.OrderedDict) else dict).__iter__(d))


class KeysInOrder:
    """Guard: these are the keys of an OrderedDict."""

    def __init__(self, keys: tuple):
        self.keys = keys

    def __call__(self, d) -> bool:
        keys = keys_of(d)
        return len(keys) == len(self.keys) and all(map(same_key, keys, self.keys))

    def __repr__(self):
        return f"keys {self.keys!r} in this order"


class DictVariable(Variable):
    """``entries``: key → (key variable, value variable). With ``base`` (the dict itself) open, other keys are looked up there."""

    is_container = True
    mutable = True
    asked = False  # whether it is a constant, at the moment

    def __init__(self, entries=None, source=None, cls=dict, base=None, factory=None):
        super().__init__(source)
        self.entries: dict = dict(entries or {})
        self.cls = cls
        self.base, self.real = base, base
        self.looked_at = base is None  # whether its keys were
        self.attributes: dict[str, Variable] = {}  # of an OrderedDict made while tracing
        self.written: dict = {}  # keys written while open
        self.dirty = False
        self.removed = 0  # how often keys were
        self.factory = factory

    def python_type(self):
        return self.cls

    def _key(self, k):
        if not self.looked_at:
            self._look_at_keys()
        return hashable_key(k)

    def _look_at_keys(self) -> None:
        """Looking something up may compare keys: not with those that a program's methods compare."""
        if any(map(hashed_by_program, dict.__iter__(self.real))):  # an OrderedDict's own iterator hashes
            unsupported(
                "dict-key", f"a {name_of(self.cls)} with keys that the program hashes", "Hashing may have effects."
            )
        self.looked_at = True

    def _lookup(self, tx, k):
        """The value variable, or None."""
        hit = self.entries.get(k)
        if hit is not None:
            v = hit[1]
            if v is _DELETED:
                return None
            if isinstance(v, Lazy):
                v = v.real(tx)
                self.entries[k] = (hit[0], v)
            return v
        if self.base is None:
            return None
        if dict.__contains__(self.base, k):
            v = tx.wrap(dict.__getitem__(self.base, k), KeySource(self.source, k))
            self.entries[k] = (tx.wrap_key(k), v)
            return v
        tx.output.guard(self.source, "NO_KEY", k)
        return None

    def _close(self, tx):
        """Everything in it matters: guard all keys."""
        if self.base is None:
            return
        base = self.base
        self._look_at_keys()
        keys = keys_of(base)
        self.base = None
        if isinstance(base, collections.OrderedDict):  # its order is its own
            tx.output.guard(self.source, "CALL", KeysInOrder(keys))
        else:
            tx.output.guard(self.source, "DICT_KEYS", keys)
        old, self.entries = self.entries, {}
        for k in keys:
            # The dict's own key stays, whatever equals it was written or looked up.
            hit = old.pop(k, None)
            self.entries[k] = (
                tx.wrap_key(k),
                hit[1] if hit else Lazy(dict.__getitem__(base, k), KeySource(self.source, k)),
            )
        self.entries.update(old)
        self.entries = {k: e for k, e in self.entries.items() if e[1] is not _DELETED}

    def _touch(self, tx, k, deleted=False):
        tx.side_effects.touch(self)
        if self.base is not None and not deleted:
            self.written[k] = True
        else:
            self._close(tx)
            self.dirty = True

    def items(self, tx):
        self._close(tx)
        return [k for k, _ in self.entries.values()]

    def pairs(self, tx):
        self._close(tx)
        return [(kv, self._lookup(tx, k)) for k, (kv, _) in list(self.entries.items())]

    def iter(self, tx):
        return KeyedIteratorVariable(self.items(tx), self, self, type(iter(self.cls())))

    def rewritten(self):
        if (self.holder or self).source is None:
            return False
        return self.dirty or any(not dict.__contains__(self.real, k) for k in self.written)

    def length(self, tx):
        if self.base is not None and not self.written and not self.dirty:
            tx.output.guard(self.source, "LENGTH", len(self.base))
            return len(self.base)
        self._close(tx)
        return len(self.entries)

    def truth(self, tx):
        return bool(self.length(tx))

    def can_constant(self):
        # What holds itself is none.
        if self.asked or self.base is not None or self.source is not None:
            return False
        self.asked = True
        try:
            return (self.factory is None or self.factory.can_constant()) and all(
                v is not _DELETED and v.can_constant() and kv.can_constant() for kv, v in self.entries.values()
            )
        finally:
            self.asked = False

    def as_constant(self):
        return self.make({k: v.as_constant() for k, (_, v) in self.entries.items()})

    def real_value(self, tx):
        return self.make({k.as_constant(): v.real_value(tx) for k, v in self.pairs(tx)})

    def make(self, contents: dict):
        if self.cls is collections.defaultdict:
            return collections.defaultdict(None if self.factory is None else self.factory.as_constant(), contents)
        return contents if self.cls is dict else self.cls(contents)

    def as_proxy(self):
        return {k.as_constant(): v.as_proxy() for k, v in self.pairs(current())}

    def get_key(self, tx, k):
        """The value under the key ``k`` itself (not a variable), or None."""
        return self._lookup(tx, k)

    def contains(self, tx, key):
        k = self._key(key)
        if self.base is not None and k not in self.entries and dict.__contains__(self.base, k):
            tx.output.guard(self.source, "HAS_KEY", k)
            return ConstantVariable(True)
        return ConstantVariable(self._lookup(tx, k) is not None)

    def getitem(self, tx, key):
        k = self._key(key)
        v = self._lookup(tx, k)
        if v is not None:
            return v
        if self.factory is not None:
            v = self.factory.call(tx, [], {})
            self.setitem(tx, key, v)
            return v
        missing = getattr(self.cls, "__missing__", None)
        if missing is not None and type(missing) is types.FunctionType:
            return UserFunctionVariable(missing).call(tx, [self, key], {})
        tx.raise_missing(key)

    def setitem(self, tx, key, value):
        k = self._key(key)
        self._touch(tx, k)
        old = self.entries.get(k)
        self.entries[k] = (old[0] if old else key, value)

    def delitem(self, tx, key):
        k = self._key(key)
        if self._lookup(tx, k) is None:
            tx.raise_missing(key)
        self._touch(tx, k, deleted=True)
        self.removed += 1
        del self.entries[k]

    def getattr(self, tx, name):
        if name == "__class__":
            return tx.wrap_known(self.cls)
        own = self.attribute(tx, name)
        if own is not None:
            return own
        return method_of(tx, self, name)

    def hasattr(self, tx, name):
        return self.attribute(tx, name) is not None or has_item(self.cls, name)

    def attribute(self, tx, name) -> Variable | None:
        """An attribute of the object itself: of dicts and what is derived from them, OrderedDict and defaultdict have some."""
        if name == "default_factory" and self.cls is collections.defaultdict:
            return self.factory or ConstantVariable(None)
        if self.cls is not collections.OrderedDict:
            return None
        if self.real is not None:
            return world.instance_attr(tx, self.real, self.source, name)
        return self.attributes.get(name)

    def setattr(self, tx, name, value):
        if self.cls is not collections.OrderedDict or self.source is not None or has_item(self.cls, name):
            super().setattr(tx, name, value)
        self.attributes[name] = value

    def call_method(self, tx, name, args, kwargs):
        none = ConstantVariable(None)
        if name == "keys":
            return DictView(self, "keys")
        if name == "values":
            return DictView(self, "values")
        if name == "items":
            return DictView(self, "items")
        if name == "get":
            v = self._lookup(tx, self._key(args[0]))
            return v if v is not None else args[1] if len(args) > 1 else kwargs.get("default", none)
        if name == "__getitem__":
            return self.getitem(tx, args[0])
        if name == "__setitem__":
            self.setitem(tx, *args)
            return none
        if name == "__delitem__":
            self.delitem(tx, *args)
            return none
        if name == "__contains__":
            return self.contains(tx, args[0])
        if name == "__len__":
            return ConstantVariable(self.length(tx))
        if name == "__iter__":
            return self.iter(tx)
        if name == "pop":
            v = self._lookup(tx, self._key(args[0]))
            if v is None:
                if len(args) > 1:
                    return args[1]
                tx.raise_missing(args[0])
            self.delitem(tx, args[0])
            return v
        if name == "setdefault":
            v = self._lookup(tx, self._key(args[0]))
            if v is None:
                v = args[1] if len(args) > 1 else none
                self.setitem(tx, args[0], v)
            return v
        if name == "update":
            self.update(tx, args, kwargs)
            return none
        if name == "clear":
            self._close(tx)
            self._touch(tx, None, deleted=True)
            self.removed += 1
            self.entries.clear()
            return none
        if name == "popitem":
            return self.popitem(tx, *args, *kwargs.values())
        if name == "move_to_end" and self.cls is collections.OrderedDict:
            return self.move_to_end(tx, *args, **kwargs)
        if name == "copy":
            return DictVariable(
                {k: (kv, v) for (kv, v), k in zip(self.pairs(tx), self.entries)}, cls=self.cls, factory=self.factory
            )
        unsupported("dict-method", f"calling {name} of {self!r}", f"dict.{name} is not traced.")

    def update(self, tx, others, named):
        for other in others:
            for k, v in each_pair(tx, other, self.cls is collections.OrderedDict):
                self.setitem(tx, k, v)
        for k, v in named.items():
            self.setitem(tx, ConstantVariable(k), v)

    def popitem(self, tx, last=None):
        """The pair that was put in last; of an OrderedDict with ``last=False`` the first."""
        pairs = self.pairs(tx)
        if not pairs:
            ordered = self.cls is collections.OrderedDict
            tx.raise_user(KeyError("dictionary is empty" if ordered else "popitem(): dictionary is empty"))
        key, v = pairs[-1 if last is None or tx.truth(last) else 0]
        self.delitem(tx, key)
        return tx.make_tuple([key, v])

    def move_to_end(self, tx, key, last=None):
        """Of OrderedDict: what comes behind is put in again, in its order."""
        k = self._key(key)
        if self._lookup(tx, k) is None:
            tx.raise_missing(key)
        pairs = self.pairs(tx)
        at_end = last is None or tx.truth(last)
        for kv, v in pairs:
            if (self._key(kv) == k) is at_end:
                self.delitem(tx, kv)
                self.setitem(tx, kv, v)
        return ConstantVariable(None)

    def reconstruct(self, cg):
        if self.cls is collections.defaultdict:

            def push():
                cg(self.factory or ConstantVariable(None))
                self._push_plain(cg)

            cg.call_function(collections.defaultdict, push, 2)
        elif self.cls is dict:
            self._push_plain(cg)
        else:
            cg.call_function(self.cls, lambda: self._push_plain(cg), 1)
            for name, v in self.attributes.items():
                cg.emit("COPY", 1)
                cg(v)
                cg.emit("SWAP", 2)
                cg.emit("STORE_ATTR", name)

    def _push_plain(self, cg):
        for kv, v in self.entries.values():
            cg(kv)
            cg(v)
        cg.emit("BUILD_MAP", len(self.entries))

    def replay(self, replay):
        target = replay.target(self)
        if self.dirty:
            new = replay.keep(lambda: self._push_plain(replay.cg))
            replay.later(lambda r: r.method(target, "clear"))
            replay.later(lambda r: r.method(target, "update", new))
            return
        for k in self.written:
            key, value = map(replay.value, self.entries[k])
            replay.later(lambda r, key=key, value=value: r.store_item(target, key, value))


def is_mapping(tx, v: Variable) -> bool:
    """Whether dict() takes keys from it, and not pairs."""
    # A read-only view has the keys of what it shows, whatever that is.
    if hasattr(v.unwrap(), "shown") or isinstance(contents_of(v), DictVariable):
        return True
    return hasattr(v, "class_attr") and bool(v.hasattr(tx, "keys"))


def unpacked_pair(tx, v: Variable) -> tuple[Variable, Variable]:
    """An OrderedDict takes the two elements of a pair one by one, and looks whether there is another one."""
    it = v.iter(tx)
    pair: list[Variable] = []
    while len(pair) < 3 and (e := it.next(tx)) is not None:
        pair.append(e)
    if len(pair) > 2:
        tx.raise_user(ValueError("too many values to unpack (expected 2)"))
    if len(pair) < 2:
        tx.raise_user(ValueError(f"need more than {len(pair)} value{'s' * (not pair)} to unpack"))
    return pair[0], pair[1]


def each_pair(tx, v: Variable, ordered: bool = False) -> Iterator[tuple[Variable, Variable]]:
    """What dict() makes of it, or OrderedDict(): the pairs of a mapping, or those that it gives, one by one."""
    # The interpreter reads a dict itself while ``__iter__`` is dict's own, which OrderedDict's isn't.
    own = hasattr(v, "class_attr") and v.class_attr(tx, "__iter__") is not dict.__iter__
    shown = v if own else contents_of(v)
    shown = getattr(shown, "shown", shown)  # by a read-only view
    if isinstance(shown, DictVariable):
        yield from shown.pairs(tx)
        return
    if is_mapping(tx, v):
        for k in each(tx, v.getattr(tx, "keys").call(tx, [], {})):
            yield k, v.getitem(tx, k)
        return
    for i, p in enumerate(each(tx, v)):
        if ordered:
            yield unpacked_pair(tx, p)
            continue
        refused = f"cannot convert dictionary update sequence element #{i} to a sequence"
        try:
            pair = fast_sequence(tx, p, refused)
        except UserRaises as e:
            if not isinstance(e.exception, TypeError):
                raise
            tx.raise_user(TypeError(refused))
        if len(pair) != 2:
            text = f"dictionary update sequence element #{i} has length {len(pair)}; 2 is required"
            tx.raise_user(ValueError(text))
        yield pair[0], pair[1]


def pairs_of(tx, v: Variable) -> list[tuple[Variable, Variable]]:
    """All pairs that dict() makes of it."""
    return [*each_pair(tx, v)]


class DictView(Variable):
    is_container = True

    def __init__(self, owner: DictVariable, what: str):
        super().__init__()
        self.owner, self.what = owner, what
        self.cls = owner.cls  # whose method gave it: dict.keys() of an OrderedDict is a dict's

    @property
    def is_set(self) -> bool:
        """Whether it is compared and combined as a set."""
        return self.what != "values"

    def python_type(self):
        return type(getattr(self.cls, self.what)(self.owner.cls()))

    def items(self, tx):
        if self.what == "keys":
            return self.owner.items(tx)
        if self.what == "values":
            return [v for _, v in self.owner.pairs(tx)]
        return [TupleVariable([k, v]) for k, v in self.owner.pairs(tx)]

    def iter(self, tx):
        cls = type(iter(getattr(self.cls, self.what)(self.owner.cls())))
        return KeyedIteratorVariable(self.items(tx), self, self.owner, cls)

    def rewritten(self):
        return self.owner.rewritten()

    def length(self, tx):
        return self.owner.length(tx)

    def truth(self, tx):
        return bool(self.length(tx))

    def contains(self, tx, key):
        if self.what == "keys":
            return self.owner.contains(tx, key)
        pair = key.unwrap()
        if self.what == "values" or not isinstance(pair, TupleVariable):
            return super().contains(tx, key)
        parts = pair.items(tx)
        if len(parts) != 2 or not self.owner.contains(tx, parts[0]).as_constant():
            return ConstantVariable(False)
        return ConstantVariable(tx.operators.same_or_equal(tx, self.owner.getitem(tx, parts[0]), parts[1]))

    def getattr(self, tx, name):
        return method_of(tx, self, name) if name == "isdisjoint" and self.is_set else super().getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "__iter__":
            return self.iter(tx)
        if name == "isdisjoint" and self.is_set and len(args) == 1:
            other = args[0].unwrap()
            sets = isinstance(other, SetVariable) or (isinstance(other, DictView) and other.is_set)
            one, other = (other, self) if sets and other.length(tx) > self.length(tx) else (self, other)
            return ConstantVariable(not any(one.contains(tx, e).as_constant() for e in elements_of(tx, other)))
        if self.what == "keys" and name.startswith("__"):
            keys = self.items(tx)
            whole = SetHistory(Elements(dict, keys))
            return SetVariable(keys, history=whole).call_method(tx, name, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        if self.owner.holder is not None:
            # Of an object that is derived from a dict, past what its class overrides.
            cg.call_function(getattr(self.owner.python_type(), self.what), lambda: cg(self.owner.holder), 1)
            return
        if self.cls is not self.owner.cls:
            cg.call_function(getattr(self.cls, self.what), lambda: cg(self.owner), 1)
            return

        def load():
            cg(self.owner)
            cg.load_attr(self.what)

        cg.push_callable(load)
        cg.call(0)


def make_list(elements):
    return ListVariable(elements)


@exactly(dict, collections.OrderedDict, collections.defaultdict)
def _(tx, value, source):
    cls = type(value)
    pin(tx, source, "TYPE_MATCH", cls)
    factory = None
    if cls is collections.defaultdict:
        factory = tx.wrap(value.default_factory, GetAttrSource(source, "default_factory"))
        if factory.is_constant():
            factory = None
    return DictVariable(source=source, cls=cls, base=value, factory=factory)
