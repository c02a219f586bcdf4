"""Guards: the tree of assumptions of one captured variant, its text, and its Python mirror.

:class:`GuardBuilder` collects ``(source, check, payload)`` while tracing and yields the native tree (csrc/frame/guards.c). The mirror evaluates
the same program in Python; with ``config.strict_guards`` both run at each call and must agree.
"""

from __future__ import annotations

import builtins
import types
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from flambeau import _C, _frame

from ...base.records import slotted
from ...base.user_line import UserLine
from ..rules import trace_rules
from ..rules.reflect import ABSENT, IMMUTABLE, flags_of, instance_dict, is_a, is_stdlib, qualname_of, type_item
from . import filters
from .sizes import SizeGuard, SizeProgram, holds
from .source import ConstSource, GlobalSource, GlobalsSource, InstanceDictSource, Source, key_text

__all__ = ["ABSENT", "Failure", "Guard", "GuardBuilder", "mirror_check", "tensor_facts"]

ACCESS, CHECK = _frame.ACCESS, _frame.CHECK
ACCESS_NAME = {v: k for k, v in ACCESS.items()}
CHECK_NAME = {v: k for k, v in CHECK.items()}


@slotted
class Guard:
    """One assumption, for people: ``source`` as text, the check's name, and what it compares with."""

    source: str
    kind: str
    payload: Any

    def __str__(self) -> str:
        p = self.payload
        if self.kind == "SIZES":
            return f"SIZES: {self.source}"
        if self.kind == "TENSOR_MATCH":
            return f"{self.kind}: {self.source}, dtype={p[1]}, device={p[2]}, size={list(p[3])}, stride={list(p[4])}, requires_grad={p[5]}"
        if self.kind == "GLOBAL_STATE":
            return f"{self.kind}: {', '.join(f'{name}={value}' for name, value in zip(_frame.STATE, p))}"
        if self.kind == "NDARRAY_MATCH":
            return f"{self.kind}: {self.source}, dtype={p[1]}, shape={list(p[3])}, strides={list(p[4])}"
        if self.kind == "NDARRAY_FEW":
            most = f"at most {p[6]}" if p[6] else "any number of"
            return f"{self.kind}: {self.source}, dtype={p[1]}, sizes of at least {list(p[3])}, {most} elements"
        if self.kind == "CODE_MATCH":
            p = p[0]
        return f"{self.kind}: {self.source} {payload_text(p)[:120]}"


def payload_text(p) -> str:
    """What is compared, without running a program's ``__repr__``."""
    if is_a(p, type):
        return qualname_of(p)
    cls = type(p)
    if is_a(p, _C.TensorBase) or not (flags_of(cls) & IMMUTABLE or is_stdlib(type_item(cls, "__repr__"))):
        return key_text(p)
    return getattr(p, "__qualname__", None) or repr(p)


SAME = ("NO_KEY", "HAS_KEY", "NO_INSTANCE_KEY", "LENGTH", "CODE_MATCH", "EMPTY_DICTS")
FACT_KIND = {True: "ID_MATCH", False: "EQUALS_MATCH"}


@slotted(frozen=False)
class Fact:
    """One thing assumed of a dict or a class: what is found under ``key`` (behind the class ``after`` in the MRO), or ABSENT. ``exact``: that
    very object, not an equal constant."""

    key: str
    value: Any
    exact: bool
    after: type | None = None

    def payload(self, of_type: bool) -> tuple:
        return (self.key, self.value, self.exact, self.after) if of_type else (self.key, self.value, self.exact)

    def guard(self, owner: str, of_type: bool) -> Guard:
        if of_type:
            name = (
                f"{owner}.{self.key}" if self.after is None else f"super({qualname_of(self.after)}, {owner}).{self.key}"
            )
        else:
            name = (
                f"{owner.removesuffix('.__dict__')}.{self.key}"
                if owner.endswith(".__dict__")
                else f"{owner}[{self.key!r}]"
            )
        if self.value is ABSENT:
            return Guard(name, "ABSENT", self.key)
        return Guard(name, FACT_KIND[self.exact], self.value)


def equal(a, b) -> bool:
    return not isinstance(a, _C.TensorBase) and a == b  # tensors compare elementwise; they are the same or not


class GuardBuilder:
    """Collects what one variant assumes. ``add`` takes any check of a source; what is found under a name in a dict (``fact``) or on a class
    (``class_fact``) is kept together, so that one comparison of versions answers for all of it."""

    def __init__(self):
        self.nodes: list[list] = []  # [parent, access, key, [(check, payload)]]
        self.sources: list[Source] = []
        self.index: dict[Any, int] = {}
        self.known: dict[int, int] = {}  # node by the id of a source that was asked for, which ``asked`` keeps
        self.asked: list[Source] = []
        self.facts: dict[int, dict[Any, Fact]] = {}  # by node
        self.of_type: set[int] = set()  # nodes whose facts are of a class
        self.classes: dict[int, dict[Any, Fact]] = {}  # those facts, by the id of the class
        self.size_guards: list[SizeGuard] = []  # of the SIZES check
        self.on_classes: dict[
            tuple, Any
        ] = {}  # what classes hold, by id and name: what was asked once is a fact or can't change
        self.classes_asked: list[type] = []  # keeps them, so that an id is one class
        self.tables: dict[
            int, InstanceDictSource
        ] = {}  # sources of instances' dicts, by the id of the instance's source

    def node(self, source: Source) -> int:
        i = self.known.get(id(source))
        if i is not None:
            return i
        base = source.base
        parent = -1
        if base is not None:
            parent = self.known.get(id(base))
            if parent is None:
                parent = self.node(base)
        key = (parent, source.step())
        i = self.index.get(key)
        if i is None:
            i = self.index[key] = len(self.nodes)
            self.nodes.append([parent, ACCESS[source.access], source.key_value(), []])
            self.sources.append(source)
        self.known[id(source)] = i
        self.asked.append(source)
        return i

    def _checks(self, node: int) -> list[tuple[int, Any]]:
        """(number of the kind, what is checked) of all checks of a node."""
        return self.nodes[node][3]

    def checked(self, source: Source, kind: str) -> list:
        """What the checks of this kind ask of a source."""
        return [payload for number, payload in self._checks(self.node(source)) if number == CHECK[kind]]

    def fact(self, table: Source, key: str, value: Any, exact: bool = True) -> None:
        """The dict at ``table`` holds ``value`` under ``key``, or nothing (ABSENT)."""
        i = self.known.get(id(table))
        if i is None:
            i = self.node(table)
        facts = self.facts.get(i)
        if facts is None:
            facts = self.facts[i] = {}
        known = facts.get(key)
        if known is None or (exact and not known.exact):
            facts[key] = Fact(key, value, exact)

    def class_fact(self, cls: type, key: str, value: Any, after: type | None = None) -> Fact:
        """The MRO of ``cls`` holds ``value`` under ``key``, or nothing (ABSENT)."""
        return self.class_facts(cls).setdefault((key, after), Fact(key, value, True, after))

    def class_facts(self, cls: type) -> dict[Any, Fact]:
        """What is known of this class, by name and class behind which it was looked for."""
        facts = self.classes.get(id(cls))
        if facts is None:
            i = self.node(ConstSource(cls, qualname_of(cls)))
            self.of_type.add(i)
            facts = self.classes[id(cls)] = self.facts.setdefault(i, {})
        return facts

    def add(self, source: Source, kind: str, payload: Any = None) -> None:
        access = source.access
        key = source.key_value() if access == "key" else None
        # A fact is not looked at again while the dict has not changed, so it must not be about something that changes in itself.
        if access == "key" and type(key) is str and kind in ("ID_MATCH", "EQUALS_MATCH") and type(payload) is not set:
            self.fact(source.base, key, payload, kind == "ID_MATCH")
            return
        if kind == "NO_KEY" and type(payload) is str:
            self.fact(source, payload, ABSENT)
            return
        if kind == "NO_INSTANCE_KEY":
            self.fact(InstanceDictSource(source), payload, ABSENT)
            return
        checks = self._checks(self.node(source))
        c = (CHECK[kind], payload)
        if not checks:
            checks.append(c)
            return
        for k, p in checks:
            if k == c[0] and (p is payload or (type(p) is type(payload) and kind in SAME and equal(p, payload))):
                return
        checks.append(c)

    def not_aliased(self, sources: list[Source]) -> None:
        idx = sorted({self.node(s) for s in sources})
        if len(idx) > 1:
            self._checks(idx[-1]).append((CHECK["NO_TENSOR_ALIASING"], tuple(idx)))

    def no_overlap(self, sources: list[Source]) -> None:
        """The graph writes to one of these: their memory must be apart, as it was when the graph was made."""
        idx = sorted({self.node(s) for s in sources})
        if len(idx) > 1:
            self._checks(idx[-1]).append((CHECK["NO_MEMORY_OVERLAP"], tuple(idx)))

    def same_as(self, source: Source, other: Source) -> None:
        a, b = self.node(source), self.node(other)
        if a == b:
            return
        if a < b:
            a, b = b, a
        self._checks(a).append((CHECK["DUPLICATE_INPUT"], b))

    def sizes(self, env) -> None:
        """What the trace assumed about the symbols of ``env``, behind the last value it reads."""
        program = SizeProgram(env, self.node)
        if program.operands:
            at = max(o[0] for o in program.operands)
            self._checks(at).append((CHECK["SIZES"], program.payload))
            self.size_guards = program.relations

    def spec(self) -> list[tuple]:
        out = []
        for i, (parent, access, key, checks) in enumerate(self.nodes):
            facts = self.facts.get(i)
            if facts:
                of_type = i in self.of_type
                payload = tuple(f.payload(of_type) for f in facts.values())
                checks = [*checks, (CHECK["TYPE_FACTS" if of_type else "DICT_FACTS"], payload)]
            out.append((parent, access, key, tuple(checks)))
        return out

    def guards(self) -> list[Guard]:
        out = []
        for i, (source, node) in enumerate(zip(self.sources, self.nodes)):
            name = source.name
            out += [Guard(name, CHECK_NAME[k], p) for k, p in node[3] if CHECK_NAME[k] != "SIZES"]
            out += [f.guard(name, i in self.of_type) for f in self.facts.get(i, {}).values()]
        return out + [Guard(g.text, "SIZES", None) for g in self.size_guards]

    def filtered(self, keep) -> None:
        """Drop the guards that the program does without (see guard_filters)."""
        rows, places, classes = [], [], []
        for i, (source, (parent, _, _, checks)) in enumerate(zip(self.sources, self.nodes)):
            cls = next(
                (p for k, p in checks if CHECK_NAME[k] == "TYPE_MATCH" and trace_rules.is_nn_module_class(p)), None
            )
            if i in self.of_type and trace_rules.is_nn_module_class(source.key_value()):
                cls = source.key_value()
            classes.append(cls or (classes[parent] if parent >= 0 else None))
            for c in checks:
                rows.append((source, Guard(source.name, CHECK_NAME[c[0]], c[1]), classes[i]))
                places.append((checks, c))
            facts = self.facts.get(i, {})
            for key, fact in facts.items():
                rows.append((source, fact.guard(source.name, i in self.of_type), classes[i]))
                places.append((facts, key))
        for kept, (table, key) in zip(filters.apply(keep, rows), places):
            if kept:
                continue
            if isinstance(table, dict):
                del table[key]
            else:
                table[:] = [c for c in table if c is not key]

    def build(self):
        spec = self.spec()
        return _frame.GuardTree(spec, Mirror(spec, self.sources, self.size_guards))


@slotted
class Failure:
    """A guard that didn't hold, as ``text``: the name of its check, the ``place`` that was looked at and a source on the way there, the ``line`` of
    the program that made a guard on sizes."""

    text: str
    kind: str | None = None
    place: str = ""
    source: Source | None = None
    line: UserLine | None = None

    def __str__(self) -> str:
        return self.text


class Mirror:
    """The Python mirror as a callable ``(func, flat_args) -> bool``."""

    def __init__(self, spec, sources, size_guards=()):
        self.spec, self.sources, self.size_guards = spec, sources, size_guards

    def __call__(self, func, args) -> bool:
        return mirror_check(self.spec, func, args)

    def describe(self, node: int, check: int, fact: int = -1) -> Failure:
        """The failure of this check; check -1: the value doesn't exist. ``fact``: which of the facts it checks."""
        source = self.sources[node]
        if check < 0:
            return Failure(f"{source.name} does not exist", None, source.name, source)
        number, payload = self.spec[node][3][check]
        kind = CHECK_NAME[number]
        if kind == "SIZES":
            if fact < 0:
                return Failure("SIZES: a number has another type", kind)
            g = self.size_guards[fact]
            return Failure(f"SIZES: {g.text}", kind, g.place, g.source, g.line)
        if fact >= 0:
            told = Fact(*payload[fact]).guard(source.name, kind == "TYPE_FACTS")
            at = GlobalSource(payload[fact][0]) if isinstance(source, GlobalsSource) else source
            return Failure(f"{told.source}: {told}", told.kind, told.source, at)
        return Failure(f"{source.name}: {Guard(source.name, kind, payload)}", kind, source.name, source)


class _Missing(Exception):
    pass


def tensor_facts(t) -> tuple:
    """Payload of TENSOR_MATCH for this tensor."""
    return (type(t), t._dtype, t._device, tuple(t._shape), tuple(t._strides), t._requires_grad, t._keys, t._inference)


def ndarray_facts(a: np.ndarray) -> tuple:
    return (type(a), a.dtype, None, a.shape, a.strides, a.flags.writeable, 0, False)


def few_facts(a: np.ndarray, least: tuple[int, ...], most: int) -> tuple:
    """Of arrays like ``a``, with sizes of at least ``least`` and at most ``most`` elements (0: any number)."""
    return (type(a), a.dtype, None, least, (0,) * a.ndim, False, most, False)


def _value(access: str, parent, key, func, args):
    if access == "arg":
        return args[key]
    if access == "func":
        return func
    if access == "globals":
        return func.__globals__
    if access == "const":
        return key
    if access == "closure_cell":
        return func.__closure__[key]
    if access == "cell":
        return parent.cell_contents
    if access == "global":
        g = func.__globals__
        return g[key] if key in g else vars(builtins)[key]
    if access == "attr":
        return object.__getattribute__(parent, key)
    if access == "getattr":
        return getattr(parent, key)
    if access == "item":
        if isinstance(parent, tuple):
            return tuple.__getitem__(parent, key)
        return list.__getitem__(parent, key) if isinstance(parent, list) else parent[key]
    if access == "key":
        # Not [], which asks __missing__: a Counter has everything, a defaultdict makes it.
        found = dict.get(parent, key, ABSENT) if isinstance(parent, dict) else ABSENT
        if found is ABSENT:
            raise _Missing
        return found
    if access == "instance_dict":
        d = instance_dict(parent)
        if d is None:
            raise _Missing
        return d
    if access == "type_lookup":
        found = type_item(parent, key)
        if found is ABSENT:
            raise _Missing
        return found
    if access == "type":
        return type(parent)
    return key(parent)


def overlapping(arrays: list[np.ndarray]) -> bool:
    """Whether the memory ranges of two of them meet."""
    end = 0
    for lo, hi in sorted(byte_bounds(a) for a in arrays if a.size):
        if lo < end:
            return True
        end = hi
    return False


def same_constant(a, b) -> bool:
    """Equality of constants as guards see it: type and value, in containers too; floats by bits, sets in the order of iteration."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (float, complex)) and not isinstance(a, np.generic):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, np.generic):
        return a.tobytes() == b.tobytes()
    if type(a) in (tuple, frozenset, set):
        return len(a) == len(b) and all(map(same_constant, a, b))
    if type(a) is range:
        return (a.start, a.stop, a.step) == (b.start, b.stop, b.step)
    return not isinstance(a, bool) and bool(a == b)


PLAIN = (str, int, float, bytes, tuple, complex, frozenset)


def same_key(a, b) -> bool:
    """Keys of a dict: constants by value, other objects by identity."""
    return a is b or ((type(a) in PLAIN or isinstance(a, np.generic)) and same_constant(a, b))


def fact_holds(found, value, exact=True) -> bool:
    return found is value or (not exact and found is not ABSENT and value is not ABSENT and same_constant(found, value))


def same_dims(found, wanted) -> bool:
    """Sizes or strides as guarded; None stands for a symbol."""
    return len(found) == len(wanted) and all(b is None or a == b for a, b in zip(found, wanted))


def _holds(kind: str, p, v, values) -> bool:
    if kind == "TYPE_MATCH":
        return type(v) is p
    if kind == "ID_MATCH":
        return v is p
    if kind == "EQUALS_MATCH":
        return same_constant(v, p)
    if kind == "TENSOR_MATCH":
        if type(v) is not p[0] or (not v._has_data and v._payload is not None and not v._keys):
            return False  # sparse and conjugated tensors are never given to a graph
        f = tensor_facts(v)
        return f[1] is p[1] and f[2] == p[2] and same_dims(f[3], p[3]) and same_dims(f[4], p[4]) and f[5:] == p[5:]
    if kind == "NDARRAY_MATCH":
        if type(v) is not p[0]:
            return False
        f = ndarray_facts(v)
        strides = v.size == 0 or same_dims(f[4], p[4])  # NumPy's mean nothing for an empty array
        return f[1] == p[1] and same_dims(f[3], p[3]) and strides and f[5:] == p[5:]
    if kind == "NDARRAY_FEW":
        if type(v) is not p[0] or v.dtype != p[1] or v.ndim != len(p[3]):
            return False
        return all(n >= least for n, least in zip(v.shape, p[3])) and (not p[6] or v.size <= p[6])
    if kind == "LENGTH":
        return len(v) == p
    if kind == "DICT_KEYS":
        return isinstance(v, dict) and len(v) == len(p) and all(same_key(a, b) for a, b in zip(dict.keys(v), p))
    if kind in ("HAS_KEY", "NO_KEY"):
        return (p in v) == (kind == "HAS_KEY")
    if kind == "NO_INSTANCE_KEY":
        return p not in getattr(v, "__dict__", ())
    if kind == "GLOBAL_STATE":
        return tuple(_C.tls(name) for name in _frame.STATE) == tuple(p)
    if kind == "NO_TENSOR_ALIASING":
        return len({id(values[i]) for i in p}) == len(p)
    if kind == "NO_MEMORY_OVERLAP":
        arrays = [a for a in (getattr(values[i], "_array", values[i]) for i in p) if isinstance(a, np.ndarray)]
        return not overlapping(arrays)
    if kind == "DICT_FACTS":
        return isinstance(v, dict) and all(fact_holds(dict.get(v, k, ABSENT), want, exact) for k, want, exact in p)
    if kind == "EMPTY_DICTS":
        return isinstance(v, dict) and all(isinstance(dict.get(v, k), dict) and not dict.__len__(v[k]) for k in p)
    if kind == "TYPE_FACTS":
        return isinstance(v, type) and all(fact_holds(type_item(v, k, after), want) for k, want, _, after in p)
    if kind == "CODE_MATCH":
        return type(v) is types.FunctionType and v.__code__ is p[0] and v.__globals__ is p[1]
    if kind == "DUPLICATE_INPUT":
        return v is values[p]
    if kind == "SIZES":
        return holds(p, values)
    return bool(p(v))


def mirror_check(spec, func: types.FunctionType, args: tuple) -> bool:
    values: list[Any] = []
    for parent, access, key, checks in spec:
        try:
            v = _value(ACCESS_NAME[access], values[parent] if parent >= 0 else None, key, func, args)
        except (AttributeError, KeyError, IndexError, ValueError, TypeError, _Missing):
            return False
        values.append(v)
        for kind, payload in checks:
            try:
                if not _holds(CHECK_NAME[kind], payload, v, values):
                    return False
            except (TypeError, AttributeError):
                return False
    return True
