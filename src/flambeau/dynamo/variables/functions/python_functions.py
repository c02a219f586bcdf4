"""Functions: user functions (inlined), closures made while tracing, bound methods, partials, and functions that break the graph."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types

from flambeau.base import pytree

from ...bytecode.versions import PY312
from ...exc import ForbiddenCall, unsupported
from ...guards.source import CallSource, ConstSource, GetAttrSource, ItemSource, KeySource
from ...rules import trace_rules
from ...rules.reflect import ABSENT, has_item, module_of, qualname_of, type_item
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import FUNCTION_WRAPPERS, WRAPPERS, exactly, pin
from ..base import HeldVariable, Lazy, MethodOf, Variable
from ..contexts.managers import GeneratorContextVariable
from ..values.constant import ConstantVariable

__all__ = [
    "CellVariable",
    "ForbiddenVariable",
    "FunctionVariable",
    "NestedFunctionVariable",
    "PartialVariable",
    "SkippedFunctionVariable",
    "UserFunctionVariable",
    "UserMethodVariable",
    "bind",
]


DISPATCH = functools.singledispatch(lambda a: a).dispatch.__code__
CONTEXT_HELPER = contextlib.contextmanager(lambda: None).__code__


class CellVariable(Variable):
    """A closure cell. ``root_name``: it is a cell of the traced frame itself, reachable there by name."""

    mutable = True

    def __init__(self, contents: Variable | None = None, source=None, root_name=None):
        super().__init__(source)
        self.contents = contents
        self.root_name = root_name
        self.dirty = False
        self.escapes = False
        self.filled_by: Variable | None = None  # the class whose methods have it, which puts itself there

    def get(self, tx) -> Variable | None:
        v = self.contents
        if isinstance(v, Lazy):
            v = self.contents = v.real(tx)
        return v

    def set(self, tx, value: Variable | None) -> None:
        self.contents = value
        self.dirty = True
        tx.side_effects.touch(self)

    def reconstruct(self, cg):
        if self.root_name is not None:
            cg.load_closure(self.root_name)
        elif self.filled_by is not None:
            cg(self.filled_by)
            cg.emit("POP_TOP")
            if id(self) in cg.temps:  # else it is only counted
                cg.emit("LOAD_FAST", cg.temps[id(self)])
        elif self.contents is None:
            cg.call_function(types.CellType, None, 0)
        else:
            cg.call_function(types.CellType, lambda: cg(self.contents), 1)

    def replay(self, replay):
        cg = replay.cg
        if self.contents is None:
            if self.root_name is not None:
                replay.later(lambda r: cg.delete_closure(self.root_name))
            return
        t = replay.value(self.contents)
        if self.root_name is not None:
            replay.later(lambda r: (r.load(t), cg.store_local(self.root_name)))
        else:
            target = replay.target(self)
            replay.later(lambda r: r.store_attr(target, "cell_contents", t))


class FunctionVariable(Variable):
    """What inlining needs: code, globals, defaults, closure."""

    def python_type(self):
        return types.FunctionType

    def distinct_from(self, other):
        return other.is_constant()

    def call(self, tx, args, kwargs):
        return tx.inline(self, args, kwargs)

    def call_method(self, tx, name, args, kwargs):
        if name == "__get__" and args and not kwargs:
            owner = args[0].unwrap()
            return self if owner.is_constant() and owner.as_constant() is None else UserMethodVariable(self, owner)
        return super().call_method(tx, name, args, kwargs)


class UserFunctionVariable(FunctionVariable):
    def __init__(self, fn: types.FunctionType, source=None):
        super().__init__(source)
        self.fn = self.value = fn

    def names(self) -> tuple[str, str]:
        return self.fn.__name__, self.fn.__qualname__

    def __repr__(self):
        return f"function {self.fn.__qualname__}"

    def call(self, tx, args, kwargs):
        if getattr(self.fn, "_dynamo_marked_constant", False):
            given = [a.real_value(tx) for a in args], {k: v.real_value(tx) for k, v in kwargs.items()}
            examples = {id(t) for t in tx.output.recorder.examples.values()}
            result = self.fn(*given[0], **given[1])
            # An input is a constant as well when the function returns it.
            return tx.wrap_known(pytree.tree_map(lambda x: x.detach() if id(x) in examples else x, result))
        if self.fn.__code__ is CONTEXT_HELPER and isinstance(getattr(self.fn, "__wrapped__", None), types.FunctionType):
            inner = self.getattr(tx, "__wrapped__")
            made = inner.call(tx, args, kwargs)
            if not hasattr(made, "throw"):
                unsupported("context-manager", f"contextlib.contextmanager of what returns {made!r}")
            return GeneratorContextVariable(made, self, args, kwargs)
        if self.fn.__code__ is DISPATCH and len(args) == 1 and args[0].can_constant():
            return self.dispatched(tx, args[0].as_constant())
        if trace_rules.REGION in self.fn.__dict__:
            if self.fn.__dict__[trace_rules.REGION] == "maker":
                return tx.regions.NestedRegionVariable(self.fn, args[0]) if args else self
            return tx.regions.call_region(tx, super().call, args, kwargs)
        return super().call(tx, args, kwargs)

    def dispatched(self, tx, cls: type) -> Variable:
        """What functools.singledispatch has for a class: looked up for real, and again by the guard."""
        if self.source is not None and type(self.source) is not ConstSource:
            tx.output.guard(self.source, "ID_MATCH", self.fn)
        return tx.wrap(self.fn(cls), CallSource(ConstSource(cls, qualname_of(cls)), self.fn, "dispatch"))

    code = property(lambda self: self.fn.__code__)
    globals = property(lambda self: self.fn.__globals__)
    name = property(lambda self: self.fn.__qualname__)

    def as_proxy(self):
        return self.fn

    def reconstruct(self, cg):
        cg.load_const(self.fn)

    def place(self):
        return self.source if self.source is not None else ConstSource(self.fn, self.fn.__qualname__)

    def defaults(self, tx) -> list[Variable]:
        d = self.fn.__defaults__
        base = GetAttrSource(self.place(), "__defaults__")
        if d is None:
            tx.output.guard(base, "ID_MATCH", None)
            return []
        tx.output.guard(base, "LENGTH", len(d))
        return [Lazy(v, ItemSource(base, i)) for i, v in enumerate(d)]

    def kwdefaults(self, tx) -> dict[str, Variable]:
        d = self.fn.__kwdefaults__
        base = GetAttrSource(self.place(), "__kwdefaults__")
        if d is None:
            tx.output.guard(base, "ID_MATCH", None)
            return {}
        known = tx.output.objects.by_id.get(id(d))
        if known is not None:  # it may have been written to
            return {k.as_constant(): v for k, v in known.unwrap().pairs(tx)}
        tx.output.guard(base, "DICT_KEYS", tuple(d))
        return {k: Lazy(v, KeySource(base, k)) for k, v in d.items()}

    def closure(self, tx) -> list[CellVariable]:
        out = []
        for i, cell in enumerate(self.fn.__closure__ or ()):
            source = (
                None if type(self.place()) is ConstSource else ItemSource(GetAttrSource(self.source, "__closure__"), i)
            )
            out.append(tx.output.objects.cell(cell, source))
        return out

    def getattr(self, tx, name):
        if name == "__get__":
            return MethodOf(self, name)
        return world.attribute(tx, self, self.fn, types.FunctionType, self.place(), name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


def fixed(v: Variable | None) -> bool:
    """Whether the value is the same at every call and nobody can write to it."""
    return v is not None and not v.unwrap().mutable and v.unwrap().can_constant()


class FunctionDict(Variable):
    """``function.__dict__`` of a function made while tracing: what was set on it."""

    mutable = True
    OWN = (
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__type_params__",
    )  # have places of their own

    def __init__(self, function: NestedFunctionVariable):
        super().__init__()
        self.function = function

    def python_type(self):
        return dict

    def reconstruct(self, cg):
        cg(self.function)
        cg.load_attr("__dict__")

    def contents(self, tx) -> Variable:
        return tx.make_dict({k: v for k, v in self.function.attributes.items() if k not in self.OWN})

    def pairs(self, tx):
        return self.contents(tx).pairs(tx)

    def call_method(self, tx, name, args, kwargs):
        if name == "update" and len(args) == 1 and not kwargs and hasattr(args[0].unwrap(), "pairs"):
            for k, v in args[0].unwrap().pairs(tx):
                self.function.setattr(tx, k.as_constant(), v)
            return ConstantVariable(None)
        if name in ("get", "items", "keys", "values", "copy", "__contains__", "__getitem__", "__len__"):
            return self.contents(tx).call_method(tx, name, args, kwargs)
        unsupported("getattr", f"{name} of the __dict__ of {self.function!r}")

    def getattr(self, tx, name):
        return MethodOf(self, name)


class NestedFunctionVariable(FunctionVariable):
    """A function made by MAKE_FUNCTION while tracing."""

    def __init__(self, code, globals, name):
        super().__init__()
        self.code, self.globals, self.name = code, globals, name
        self._defaults: list[Variable] = []
        self._kwdefaults: dict[str, Variable] = {}
        self._kwdict: Variable | None = None  # ``__kwdefaults__``, where somebody has asked for it or set it
        self._closure: list[CellVariable] = []
        self.attributes: dict[str, Variable] = {}
        self._plain: types.FunctionType | None = None
        self.kept_by: tuple[Variable, str] | None = None  # the class that it refers to and is in, under this name
        self.node = None  # of the graph that made it, when its closure holds values of the graph

    def __repr__(self):
        return f"function {self.name}"

    def names(self) -> tuple[str, str]:
        """``__name__`` and ``__qualname__``."""
        given = {
            k: self.attributes[f"__{k}__"].as_constant() for k in ("name", "qualname") if f"__{k}__" in self.attributes
        }
        return given.get("name", self.code.co_name), given.get("qualname", self.name)

    def set_part(self, tx, flag: int, value: Variable) -> None:
        """``flag``: as MAKE_FUNCTION's and SET_FUNCTION_ATTRIBUTE's arguments name the parts of a function."""
        if flag == 1:
            self._defaults = value.items(tx)
        elif flag == 2:
            self._kwdefaults = {k.as_constant(): v for k, v in value.pairs(tx)}
        elif flag == 4:
            given = value.items(tx)  # names and annotations by turns
            self.attributes["__annotations__"] = tx.make_dict(
                {k.as_constant(): v for k, v in zip(given[::2], given[1::2])}
            )
        else:
            self._closure = value.elements

    def defaults(self, tx):
        return self._defaults

    def kwdefaults(self, tx):
        if self._kwdict is None:
            return self._kwdefaults
        return {k.as_constant(): v for k, v in self._kwdict.unwrap().pairs(tx)}

    def closure(self, tx):
        return self._closure

    def getattr(self, tx, name):
        if name in self.attributes:
            return self.attributes[name]
        if name in ("__name__", "__qualname__"):
            return ConstantVariable(self.code.co_name if name == "__name__" else self.name)
        if name == "__module__":
            return tx.wrap_known(self.globals.get("__name__"))
        if name == "__doc__":
            cells = tuple(types.CellType() for _ in self.code.co_freevars)
            return ConstantVariable(types.FunctionType(self.code, {}, closure=cells or None).__doc__)
        if name == "__annotations__":
            self.attributes[name] = tx.make_dict({})
            return self.attributes[name]
        if name == "__type_params__" and PY312:
            return tx.wrap_known(())  # functions with some aren't made while tracing
        if name == "__dict__":
            return FunctionDict(self)
        if name == "__get__":
            return MethodOf(self, name)
        if name == "__defaults__":
            return tx.make_tuple(self._defaults) if self._defaults else ConstantVariable(None)
        if name == "__kwdefaults__":
            if self._kwdict is None and self._kwdefaults:
                self._kwdict = tx.make_dict(self._kwdefaults)
            return ConstantVariable(None) if self._kwdict is None else self._kwdict
        if name == "__code__":
            return tx.wrap_known(self.code)
        unsupported("getattr", f"reading {name} of {self!r}")

    def hasattr(self, tx, name):
        return name in self.attributes or has_item(types.FunctionType, name)

    def setattr(self, tx, name, value):
        given = value.unwrap()
        none = given.is_constant() and given.as_constant() is None
        if name == "__defaults__" and (none or given.python_type() is tuple):
            self._defaults = [] if none else list(given.items(tx))
        elif name == "__kwdefaults__" and (none or given.python_type() is dict):
            self._kwdict, self._kwdefaults = None if none else value, {}
        elif name in NestedFunctionVariable.PARTS:
            unsupported("setattr", f"writing {name} of {self!r}", "It says what a call of the function does.")
        else:
            self.attributes[name] = value

    PARTS = (
        *("__defaults__", "__kwdefaults__", "__code__", "__closure__", "__globals__", "__builtins__"),
        *("__class__", "__dict__", "__call__", "__get__"),
    )

    def plain(self) -> types.FunctionType:
        """The real function, when nothing of it depends on the call."""
        if self._plain is not None:
            return self._plain
        if self._kwdict is not None or not all(
            map(fixed, [*(c.contents for c in self._closure), *self._defaults, *self._kwdefaults.values()])
        ):
            unsupported("closure", f"{self!r} closes over values of the graph and is passed into it")
        closure = tuple(types.CellType(c.contents.unwrap().as_constant()) for c in self._closure) or None
        f = types.FunctionType(
            self.code, self.globals, self.code.co_name, tuple(d.as_constant() for d in self._defaults) or None, closure
        )
        f.__kwdefaults__ = {k: v.as_constant() for k, v in self._kwdefaults.items()} or None
        self._plain = f
        return f

    def as_proxy(self):
        if not self._closure or all(map(fixed, (c.contents for c in self._closure))):
            return self.plain()
        tx = current()
        return tx.function_node(tx, self)

    def reconstruct(self, cg):
        if self.kept_by is None:
            self.make(cg)
            return
        cls, name = self.kept_by
        cg.call_function(type_item, lambda: (cg(cls), cg.load_const(name)), 2)

    def make(self, cg):
        flags = 0
        if self._defaults:
            cg.all(self._defaults)
            cg.emit("BUILD_TUPLE", len(self._defaults))
            flags |= 1
        if self._kwdefaults and self._kwdict is None:
            for k, v in self._kwdefaults.items():
                cg.load_const(k)
                cg(v)
            cg.emit("BUILD_MAP", len(self._kwdefaults))
            flags |= 2
        if self._closure:
            for c in self._closure:
                c.escapes = True
                cg(c)
            cg.emit("BUILD_TUPLE", len(self._closure))
            flags |= 8
        cg.load_const(self.code)
        if self.globals is cg.globals:
            cg.emit("MAKE_FUNCTION", flags)
        else:
            if flags not in (0, 8):
                unsupported("closure", f"{self!r} has defaults and other globals than the frame that returns it")
            t = cg.temp()
            cg.emit("STORE_FAST", t)
            if flags == 8:
                c = cg.temp()
                cg.emit("STORE_FAST", c)

            def push():
                cg.emit("LOAD_FAST", t)
                cg.load_const(self.globals)
                cg.load_const(self.code.co_name)
                cg.load_const(None)
                cg.emit("LOAD_FAST", c) if flags == 8 else cg.load_const(None)

            cg.call_function(types.FunctionType, push, 5)
        kwdefaults = {} if self._kwdict is None else {"__kwdefaults__": self._kwdict}
        for k, v in {**kwdefaults, **self.attributes}.items():
            cg(v)
            cg.emit("COPY", 2)
            cg.emit("STORE_ATTR", k)


class UserMethodVariable(Variable):
    def __init__(self, fn: Variable, owner: Variable, source=None):
        super().__init__(source)
        self.fn, self.owner = fn, owner

    def __repr__(self):
        return f"{self.fn!r}, bound to {self.owner!r}"

    def python_type(self):
        return types.MethodType

    def call(self, tx, args, kwargs):
        return self.fn.call(tx, [self.owner, *args], kwargs)

    def getattr(self, tx, name):
        if name == "__func__":
            return self.fn
        if name == "__self__":
            return self.owner
        if name == "__class__":
            return tx.wrap_known(types.MethodType)
        if name == "__get__" and sys.version_info >= (3, 13):
            unsupported("getattr", "__get__ of a bound method", "It is the method itself since CPython 3.13.")
        if name == "__call__":
            return MethodOf(self, name)
        if name not in ("__doc__", "__get__") and type_item(types.MethodType, name) is not ABSENT:
            unsupported("getattr", f"{name} of {self!r}", "It is the method's, not its function's.")
        return self.fn.getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        return self.call(tx, args, kwargs) if name == "__call__" else super().call_method(tx, name, args, kwargs)

    def reconstruct(self, cg):
        cg.call_function(types.MethodType, lambda: cg.all([self.fn, self.owner]), 2)


def callee(fn: Variable) -> set:
    """The objects that a call of the variable may be named by: the function, and for a method the bound one too."""
    if not isinstance(fn, UserMethodVariable):
        value = getattr(fn, "value", None)
        return {value} if callable(value) else set()
    function, owner = getattr(fn.fn, "value", None), getattr(fn.owner, "value", None)
    return {function, types.MethodType(function, owner)} if callable(function) and owner is not None else {function}


def merges(p: functools.partial) -> bool:
    return functools.partial(p).func is not p


def stays_inside(p: functools.partial) -> bool:
    return not merges(p)


class PartialVariable(Variable):
    def __init__(self, fn: Variable, args: list[Variable], kwargs: dict[str, Variable], source=None):
        super().__init__(source)
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.attributes: dict[str, Variable] = {}  # of one made while tracing
        self._keywords: Variable | None = None  # ``keywords``, where somebody has asked for it
        self.value: functools.partial | None = None  # the one that existed before

    def python_type(self):
        return functools.partial

    def is_merged(self, tx) -> bool:
        """Whether a partial of this one is one of its function: where it has no attributes of its own. Asked of functools, as to look at
        the attributes would make a dict of them."""
        if self.value is not None:
            merged = merges(self.value)
            if self.source is not None:
                tx.output.guard(self.source, "CALL", merges if merged else stays_inside)
            return merged
        return self.source is None and not self.attributes

    def setattr(self, tx, name, value):
        if self.source is not None or hasattr(functools.partial, name):
            super().setattr(tx, name, value)
        self.attributes[name] = value

    def call(self, tx, args, kwargs):
        real = [a.real(tx) if isinstance(a, Lazy) else a for a in self.args]
        kw = {k: v.real(tx) if isinstance(v, Lazy) else v for k, v in self.keywords(tx).items()}
        return self.fn.call(tx, [*real, *args], {**kw, **kwargs})

    def keywords(self, tx) -> dict[str, Variable]:
        known = self._keywords
        if known is None and self.value is not None:
            known = tx.output.objects.by_id.get(id(self.value.keywords))
        return self.kwargs if known is None else {k.as_constant(): v for k, v in known.unwrap().pairs(tx)}

    def getattr(self, tx, name):
        if name == "func":
            return self.fn
        if name == "args":
            return tx.make_tuple(self.args)
        if name == "keywords":
            if self._keywords is None and self.value is not None and self.source is not None:
                self._keywords = tx.wrap(self.value.keywords, GetAttrSource(self.source, name))
            elif self._keywords is None:
                self._keywords = tx.make_dict(self.kwargs)
            return self._keywords
        if name in self.attributes:
            return self.attributes[name]
        return super().getattr(tx, name)

    def hasattr(self, tx, name):
        if hasattr(functools.partial(int), name) or name in self.attributes:
            return True  # of every partial; no attribute of the class can be deleted
        if self.source is None:
            return False
        return super().hasattr(tx, name)

    def as_proxy(self):
        return functools.partial(
            self.fn.as_proxy(), *[a.as_proxy() for a in self.args], **{k: v.as_proxy() for k, v in self.kwargs.items()}
        )

    def reconstruct(self, cg):
        keywords = self.kwargs if self._keywords is None else self.keywords(current())

        def push():
            cg(self.fn)
            cg.all(self.args)
            cg.all(keywords.values())

        cg.push_callable(lambda: cg.load_const(functools.partial))
        push()
        cg.call(1 + len(self.args) + len(keywords), tuple(keywords))
        for k, v in self.attributes.items():
            cg.emit("COPY", 1)
            cg(v)
            cg.emit("SWAP", 2)
            cg.emit("STORE_ATTR", k)


class SkippedFunctionVariable(HeldVariable):
    """A callable that runs as ordinary Python: calling it breaks the graph."""

    def __init__(self, value, id: str, reason: str, why: str, hint: str = "", source=None):
        super().__init__(value, source)
        self.break_info = (id, reason, why, hint)

    def __repr__(self):
        return f"function {getattr(self.value, '__qualname__', self.value)!s}"

    def call(self, tx, args, kwargs):
        if self.break_info[0] == "disabled":
            original = getattr(self.value, "_torchdynamo_orig_callable", None)
            if tx.output.blocks.dispatch_handlers and type(original) is types.FunctionType:
                return tx.wrap_function(original).call(tx, args, kwargs)
            if tx.root.break_at is None:
                trace_rules.warn_disabled(self.value)
        unsupported(*self.break_info)

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


class ForbiddenVariable(SkippedFunctionVariable):
    """What must not be called in captured code: that is an error, not a graph break."""

    def __init__(self, value, why: str, source=None):
        super().__init__(value, "forbidden", f"call of {getattr(value, '__qualname__', value)}", why, source=source)

    def call(self, tx, args, kwargs):
        raise ForbiddenCall(f"Attempt to trace forbidden callable {self.value!r}: {self.break_info[2]}")


def bind(tx, f: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]) -> dict[str, Variable]:
    """Arguments to the locals of ``f``'s frame, as CPython binds them. A call that doesn't fit is the user's TypeError."""
    code = f.code
    given, kwargs = list(kwargs), dict(kwargs)
    n, k = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames
    out: dict[str, Variable] = {}

    def wrong():
        """Let CPython word it: the call fails before anything of the function runs."""
        cells = tuple(types.CellType() for _ in code.co_freevars) or None
        stub = types.FunctionType(code, {}, code.co_name, (None,) * len(f.defaults(tx)) or None, cells)
        stub.__kwdefaults__ = dict.fromkeys(f.kwdefaults(tx))
        stub.__qualname__ = f.names()[1]
        try:
            stub(*[None] * len(args), **dict.fromkeys(given))
        except TypeError as e:
            tx.raise_user(e.with_traceback(None))

    for name, v in zip(names[:n], args):
        out[name] = v
    rest = args[n:]
    if rest and not code.co_flags & inspect.CO_VARARGS:
        wrong()
    for name in names[code.co_posonlyargcount : n + k]:
        if name in kwargs:
            if name in out:
                wrong()
            out[name] = kwargs.pop(name)
    if any(name not in out for name in names[:n]):
        defaults = f.defaults(tx)
        for name, d in zip(names[n - len(defaults) : n], defaults):
            out.setdefault(name, d)
    if any(name not in out for name in names[n : n + k]):
        for name, d in f.kwdefaults(tx).items():
            out.setdefault(name, d)
    if any(name not in out for name in names[: n + k]):
        wrong()
    i = n + k
    if code.co_flags & inspect.CO_VARARGS:
        out[names[i]] = tx.make_tuple(rest)
        i += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        out[names[i]] = tx.make_dict(kwargs)
    elif kwargs:
        wrong()
    return out


@WRAPPERS.row("substituted")
def _(tx, value, source):
    traced = trace_rules.substitutes.get(value) if trace_rules.substitutes else None
    if traced is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    return UserFunctionVariable(traced, ConstSource(traced, traced.__qualname__))


@WRAPPERS.row("forbidden")
def _(tx, value, source):
    why = trace_rules.forbidden.get(value)
    if why is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    return ForbiddenVariable(value, why, source)


@WRAPPERS.row("compiled function")
def _(tx, value, source):
    if not trace_rules.is_compiled(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    fn = trace_rules.unwrap_compiled(value)
    return UserFunctionVariable(fn, ConstSource(fn, fn.__qualname__))


@WRAPPERS.row("disabled function")
def _(tx, value, source):
    if not trace_rules.is_disabled(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return disabled(value, source)


@WRAPPERS.row("other callable")
def _(tx, value, source):
    if not callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    cls = type(value)
    return SkippedFunctionVariable(
        value,
        "c-callable",
        f"call to {module_of(cls)}.{qualname_of(cls)} object",
        "It is implemented in C.",
        source=source,
    )


@FUNCTION_WRAPPERS.row("disallowed")
def _(tx, value, source):
    if not trace_rules.is_disallowed(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return SkippedFunctionVariable(
        value,
        "disallowed",
        f"call to disallowed function {value.__qualname__}",
        "disallow_in_graph was called for it.",
        source=source,
    )


@FUNCTION_WRAPPERS.row("disabled")
def _(tx, value, source):
    if not getattr(value, "_torchdynamo_disable", False) or trace_rules.inline_reason(value)[0] != "skip":
        return None
    pin(tx, source, "ID_MATCH", value)
    return disabled(value, source)


@FUNCTION_WRAPPERS.row("skipped")
def _(tx, value, source):
    what, why = trace_rules.inline_reason(value)
    if what != "skip":
        return None
    pin(tx, source, "ID_MATCH", value)
    return skipped(value, why, source)


@FUNCTION_WRAPPERS.row("traced")
def _(tx, value, source):
    tx.output.guard(source, "CODE_MATCH", (value.__code__, value.__globals__))
    return UserFunctionVariable(value, source)


def skipped(value, why: str, source) -> SkippedFunctionVariable:
    return SkippedFunctionVariable(
        value,
        "skipped-function",
        f"call to skipped function {module_of(value)}.{value.__qualname__}",
        f"Not traced: {why}.",
        "torch._dynamo.allow_in_graph puts it in the graph as it is.",
        source,
    )


def disabled(value, source):
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


@exactly(functools.partial)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", functools.partial)
    fn = tx.wrap(value.func, GetAttrSource(source, "func"))
    args = tx.wrap(value.args, GetAttrSource(source, "args"))
    kwargs = tx.wrap(value.keywords, GetAttrSource(source, "keywords"))
    out = PartialVariable(fn, args.items(tx), {k.as_constant(): v for k, v in kwargs.pairs(tx)}, source)
    out.value = value
    return out


exactly(types.FunctionType)(FUNCTION_WRAPPERS)
