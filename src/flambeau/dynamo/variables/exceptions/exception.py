"""Exceptions: made while tracing or existing before, what they say of each other, and what the interpreter keeps of them on the stack.

An exception is an object like any other (attributes, class, pending writes) whose arguments are variables. ``exception`` beside it is a
*stand-in* of the same class, for what only asks which class it is and what its text says.
"""

from __future__ import annotations

import types

from ...exc import UserRaises, unsupported
from ...guards.source import GetAttrSource
from ...rules import trace_rules
from ...rules.reflect import flags_of, mro_of, name_of, qualname_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.world import ABSENT
from ...tracing.wrapping import WRAPPERS, pin
from ..base import Variable
from ..objects.instance import ObjectVariable
from ..values.constant import ConstantVariable
from .tracebacks import Entry, ExceptionTraceback, TracebackVariable, push_traceback

__all__ = [
    "ExcInfoVariable",
    "ExceptionVariable",
    "LastiVariable",
    "builtin_exception",
    "make_exception",
    "name_attribute",
    "variable_of",
]

LINKS = ("__cause__", "__context__", "__suppress_context__", "__traceback__", "args")
OF_ARGUMENTS = (BaseException.__str__, BaseException.__repr__, KeyError.__str__)  # depend on args only
# Those that do more with their arguments than keep them.
SPECIAL = (
    StopIteration, SystemExit, ImportError, OSError, SyntaxError, UnicodeError, AttributeError, NameError, BaseExceptionGroup,
)  # fmt: skip


def builtin_exception(cls: type) -> type:
    """The class of the interpreter that an exception's class is derived from, or is."""
    return next(c for c in mro_of(cls) if flags_of(c) & world.IMMUTABLE and issubclass(c, BaseException))


def stand_in(cls: type, args: list[Variable], kwargs: dict[str, Variable]) -> BaseException | None:
    """A real exception of the class without running the user's code; None when its base has to see values of the graph."""
    base = builtin_exception(cls)
    if all(a.can_constant() for a in [*args, *kwargs.values()]):
        given, named = [a.as_constant() for a in args], {k: v.as_constant() for k, v in kwargs.items()}
    elif issubclass(base, BaseExceptionGroup):
        inner = args[1].realized() if hasattr(args[1], "realized") else []
        if not all(isinstance(v.unwrap(), ExceptionVariable) for v in inner) or not args[0].can_constant():
            return None
        given, named = [args[0].as_constant(), [v.unwrap().exception for v in inner]], {}
    elif not issubclass(base, SPECIAL) or base in (StopIteration, SystemExit):
        given, named = [a.as_constant() if a.can_constant() else None for a in args], {}
    else:
        return None
    made = base.__new__(cls, *given, **(named if cls is base else {}))
    if cls is base:
        base.__init__(made, *given, **named)
    return made


class ExceptionVariable(ObjectVariable):
    """``raised``: the entries that its traceback got while tracing, the first one first."""

    def __init__(self, exception: BaseException, source=None, args: list[Variable] | None = None):
        super().__init__(exception if source is not None else None, type(exception), source)
        self.exception = exception
        self.raised: list[Entry] = []
        self.traceback: Variable | None = None  # in front of which those are, when one was given
        self.notes: Variable | None = None
        self.given = args
        self.named: dict[str, Variable] = {}

    def __repr__(self):
        return f"exception {self.exception!r}"

    def truth(self, tx):
        if any(self.class_attr(tx, name) is not ABSENT for name in ("__bool__", "__len__")):
            return super().truth(tx)
        return True

    # -- its arguments --
    def arguments(self) -> list[Variable]:
        if self.given is None:
            tx = current()
            if self.source is not None:  # guarded, one by one
                self.given = tx.wrap(self.exception.args, GetAttrSource(self.source, "args")).items(tx)
            else:
                self.given = [tx.wrap_known(a) for a in self.exception.args]
        return self.given

    def faithful(self) -> bool:
        """Whether the stand-in has the very arguments."""
        return all(a.can_constant() for a in self.arguments())

    def at_its_real(self, name: str) -> BaseException:
        """The exception itself or its stand-in, for what only depends on its class and arguments."""
        if self.source is not None and getattr(self.cls, name) not in OF_ARGUMENTS:
            unsupported(
                "exception", f"{name} of a {name_of(self.cls)} that existed before", "It asks for more than args."
            )
        of_arguments = getattr(self.cls, name) in OF_ARGUMENTS
        if not self.faithful() or not (of_arguments or self.written.keys() <= {*LINKS, "name", "obj"}):
            unsupported("exception", f"{name} of {name_of(self.cls)} with values of the graph or changed attributes")
        return self.exception

    # -- attributes --
    def pending(self, name):
        if self.source is not None:
            if name == "__traceback__" and (self.raised or self.traceback is not None):
                return self.current_traceback()
            return super().pending(name)
        if name in self.written:
            return super().pending(name)
        if name in LINKS or (name in ("value", "name", "obj", "code", "exceptions", "message")):
            return self.link(name)
        found = world.type_item(self.cls, name)
        if isinstance(found, world.C_DESCRIPTORS) and found.__objclass__ in mro_of(builtin_exception(self.cls)):
            return current().wrap_known(getattr(self.at_its_real(name), name))
        return None

    def link(self, name):
        if name == "args":
            return current().make_tuple(self.arguments())
        if name == "__suppress_context__":
            return ConstantVariable("__cause__" in self.written)
        if name == "__traceback__":
            return self.current_traceback()
        if name in ("__cause__", "__context__"):
            return ConstantVariable(None)
        found = world.type_item(self.cls, name)
        if not isinstance(found, world.C_DESCRIPTORS):
            return None
        args = self.arguments()
        if name == "exceptions":
            return current().make_tuple(args[1].items(current()))
        if name == "message":
            return args[0]
        if name in ("value", "code") and not self.faithful():
            return args[0]
        if name in self.named:
            return self.named[name]
        return current().wrap_known(getattr(self.exception, name, None))

    def current_traceback(self) -> Variable:
        if self.raised:
            return TracebackVariable(self, len(self.raised))
        if self.traceback is not None:
            return self.traceback
        if self.source is not None:
            return ExceptionTraceback(self.exception.__traceback__, GetAttrSource(self.source, "__traceback__"))
        return ConstantVariable(None)

    def getattr(self, tx, name):
        if name in LINKS and type_is_plain(self.cls, name):
            found = self.pending(name)
            if found is not None and found is not world.DELETED:
                if name == "__context__" and found.is_constant():
                    tx.handles_nothing_outside()
                return found
            if self.source is not None:
                return tx.wrap(getattr(self.exception, name), GetAttrSource(self.source, name))
        return super().getattr(tx, name)

    def plain_setattr(self, tx, name, value):
        if name == "__traceback__":
            self.set_traceback(tx, value)
        elif name in LINKS:
            if name == "args":
                if self.source is not None:
                    unsupported("exception", "args of an exception that existed before are set")
                self.given = value.items(tx)
                self.exception.args = tuple(a.as_constant() if a.can_constant() else None for a in self.given)
            else:
                self.keep(tx, name, value)
            if name == "__cause__":
                self.keep(tx, "__suppress_context__", ConstantVariable(True))
        elif isinstance(self.class_attr(tx, name), world.C_DESCRIPTORS) and name not in ("__dict__", "__class__"):
            self.keep(tx, name, value)
        else:
            super().plain_setattr(tx, name, value)

    def keep(self, tx, name, value) -> None:
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        self.written[name] = value

    def set_traceback(self, tx, value: Variable) -> None:
        if value.python_type() not in (types.TracebackType, type(None)):
            tx.raise_user(TypeError("__traceback__ must be a traceback or None"))
        tx.side_effects.remember(self)
        tx.side_effects.touch(self)
        self.raised, self.traceback = [], value

    def add_entry(self, tx, entry: Entry) -> None:
        """It passes through a frame."""
        tx.side_effects.remember(self)
        self.raised.append(entry)

    def context(self, tx) -> Variable | None:
        if self.source is None or "__context__" in self.written:
            return self.written.get("__context__")
        return tx.realize(tx.wrap(self.exception.__context__, GetAttrSource(self.source, "__context__")))

    def set_context(self, tx, outer: Variable | None) -> None:
        """It is raised while ``outer`` is handled. Like the interpreter: no exception becomes part of its own context."""
        if outer is None or outer is self or not isinstance(outer, ExceptionVariable):
            return
        o, seen = outer, {id(outer)}  # the program may have made a cycle
        while isinstance(inner := o.context(tx), ExceptionVariable):
            if inner is self:
                o.keep(tx, "__context__", ConstantVariable(None))
                break
            if id(inner) in seen:
                break
            seen.add(id(inner))
            o = inner
        self.keep(tx, "__context__", outer)

    # -- methods that the class inherits from the interpreter's --
    def is_builtin(self, method) -> bool:
        owner = getattr(method, "__objclass__", None)
        return owner is not None and owner is not object and owner in mro_of(builtin_exception(self.cls))

    def builtin_method(self, tx, name, args, kwargs):
        if name == "__init__":
            self.init(tx, args, kwargs)
            return ConstantVariable(None)
        if name == "with_traceback" and len(args) == 1:
            self.set_traceback(tx, args[0])
            return self
        if name == "add_note" and len(args) == 1:
            if not isinstance(note := args[0].as_constant(), str):
                tx.raise_user(TypeError(f"note must be a str, not {name_of(type(note))!r}"))
            try:
                notes = self.getattr(tx, "__notes__")
            except world.UserRaises:
                notes = tx.make_list([])
                self.setattr(tx, "__notes__", notes)
            if not issubclass(notes.python_type(), list):
                tx.raise_user(TypeError("Cannot add note: __notes__ is not a list"))
            notes.call_method(tx, "append", args, {})
            return ConstantVariable(None)
        if name in ("__str__", "__repr__") and not args:
            real = self.at_its_real(name)
            return ConstantVariable(getattr(builtin_exception(self.cls), name)(real))
        if name == "__setattr__":
            self.plain_setattr(tx, args[0].as_constant(), args[1])
            return ConstantVariable(None)
        if name == "__getattribute__":
            return self.generic_getattr(tx, args[0].as_constant())
        unsupported("exception", f"calling {name} of {self!r}")

    def init(self, tx, args, kwargs) -> None:
        """The interpreter's own ``__init__``."""
        if self.source is not None:
            unsupported("exception", "__init__ of an exception that existed before the call")
        if kwargs and not all(v.can_constant() for v in kwargs.values()):
            unsupported("exception", f"{name_of(self.cls)} with keyword arguments that are values of the graph")
        made = stand_in(self.cls, args, {})
        if made is None:
            unsupported("raise", f"constructing {name_of(self.cls)} with values of the graph")
        try:
            builtin_exception(self.cls).__init__(made, *made.args, **{k: v.as_constant() for k, v in kwargs.items()})
        except TypeError as e:
            tx.raise_user(e)
        self.exception, self.given, self.named = made, list(args), dict(kwargs)
        tx.side_effects.touch(self)

    def text(self, tx, name: str) -> Variable:
        """``str`` or ``repr``."""
        if world.is_defined(self.class_attr(tx, name)):
            return self.call_special(tx, name)
        return self.builtin_method(tx, name, [], {})

    # -- captured code --
    def reconstruct(self, cg):
        if self.value is not None:
            cg.load_const(self.value)
            return
        base = builtin_exception(self.cls)
        args = self.arguments()
        if self.cls is base:
            cg.push_callable(lambda: cg.load_const(base))
            cg.all(args)
            cg.all(self.named.values())
            cg.call(len(args) + len(self.named), tuple(self.named))
        else:
            cg.call_function(base.__new__, lambda: (cg.load_const(self.cls), cg.all(args)), 1 + len(args))
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        if self.cls is not base and (issubclass(base, SPECIAL) or self.named):
            cg.push_callable(lambda: cg.load_const(base.__init__))
            cg.emit("LOAD_FAST", t)
            cg.all(args)
            cg.all(self.named.values())
            cg.call(1 + len(args) + len(self.named), tuple(self.named))
            cg.emit("POP_TOP")
        self.push_attributes(cg, t)
        if self.raised and "__context__" not in self.written:
            cg.outer_exception()
            cg.emit("LOAD_FAST", t)
            cg.emit("STORE_ATTR", "__context__")
        if self.raised or self.traceback is not None:
            self.push_tracebacks(cg, None)
            cg.emit("LOAD_FAST", t)
            cg.emit("STORE_ATTR", "__traceback__")
        cg.emit("LOAD_FAST", t)

    def push_tracebacks(self, cg, before) -> None:
        """Push its traceback; ``before()`` pushes the one that it came with."""
        if self.traceback is not None:
            before = lambda: cg(self.traceback)  # noqa: E731
        push_traceback(cg, self.raised, before or (lambda: cg.load_const(None)))

    def replay(self, replay):
        if self.raised or self.traceback is not None:
            cg, target = replay.cg, replay.target(self)
            tb = replay.keep(
                lambda: self.push_tracebacks(cg, lambda: (replay.load(target), cg.load_attr("__traceback__")))
            )
            replay.later(lambda r: r.store_attr(target, "__traceback__", tb))
        super().replay(replay)


def variable_of(tx, e: UserRaises) -> ExceptionVariable:
    """The exception that tracing itself raises, as the interpreter would make it here."""
    if e.variable is None:
        e.variable = ExceptionVariable(e.exception)
        e.variable.set_context(tx, tx.handled())
        if isinstance(e.exception, NameError) and e.exception.name is not None:
            e.variable.named["name"] = ConstantVariable(e.exception.name)
    return e.variable


def name_attribute(tx, e: UserRaises, v: Variable, name: str) -> None:
    """An AttributeError that says neither name nor object is told both, as the interpreter does where an attribute is read."""
    variable, known = variable_of(tx, e), e.exception
    if (
        known.name is None
        and known.obj is None
        and not variable.named
        and not variable.written.keys() & {"name", "obj"}
    ):
        variable.keep(tx, "name", ConstantVariable(name))
        variable.keep(tx, "obj", v)


def type_is_plain(cls: type, name: str) -> bool:
    return isinstance(world.type_item(cls, name), types.GetSetDescriptorType | types.MemberDescriptorType)


class ExcInfoVariable(Variable):
    """The place on the stack where PUSH_EXC_INFO keeps what was handled before ``exc``."""

    def __init__(self, exc: Variable):
        super().__init__()
        self.exc = exc
        self.handled = True  # until POP_EXCEPT, which takes a copy

    def reconstruct(self, cg):
        """Make ``exc`` the exception that is being handled."""
        if not self.handled:
            cg.load_const(None)
            return
        depth = cg.depth
        cg(self.exc)
        cg.emit("COPY", 1)
        cg.emit("STORE_FAST", cg.exc_temp(depth))
        cg.emit("PUSH_EXC_INFO")
        cg.emit("POP_TOP")


class LastiVariable(ConstantVariable):
    """The place of the instruction number ``index`` that raised, which RERAISE takes tracebacks from."""

    def __init__(self, index: int):
        super().__init__(0)
        self.index = index


def make_exception(tx, cls: type, args, kwargs):
    """``cls(*args)`` of a class of the interpreter, or ``cls.__new__`` and the user's ``__init__``."""
    base = builtin_exception(cls)
    new = world.class_attr(tx, cls, "__new__")
    if new is not base.__new__ and getattr(new, "__func__", new) is not base.__new__:
        unsupported("construct", f"constructing {qualname_of(cls)}", "It is an exception with a __new__ of its own.")
    args = [tx.realize(a) for a in args]
    made = tx.evaluated(stand_in, cls, args, kwargs)
    if made is None:
        unsupported(
            "raise",
            f"constructing {name_of(cls)} with values of the graph",
            "The exception is made by ordinary Python.",
        )
    v = ExceptionVariable(made, args=args)
    if type(made) is not cls:  # BaseExceptionGroup of Exceptions
        cls = type(made)
    if cls is base:
        v.named = dict(kwargs)
        return v
    init = world.class_attr(tx, cls, "__init__")
    if world.is_defined(init):
        world.bind(tx, v, cls, "__init__", init).call(tx, args, kwargs)
    else:
        v.init(tx, args, kwargs)
    return v


@WRAPPERS.row("exception")
def _(tx, value, source):
    if not trace_rules.is_a(value, BaseException):
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    return ExceptionVariable(value, source)
