"""Functions that the traced code makes (``def``, ``lambda``): they are traced into, and made again in captured code that needs them."""

from __future__ import annotations

import enum
import types

from ...bytecode.versions import PY312
from ...exc import unsupported
from ...rules.reflect import has_item, type_item
from ...tracing.current_frame import current
from ..base import MethodOf, Variable
from ..values.constant import ConstantVariable
from .cells import CellVariable
from .python_functions import FunctionVariable

__all__ = ["NestedFunctionVariable", "Part", "fixed"]


def fixed(v: Variable | None) -> bool:
    """Whether the value is the same at every call and nobody can write to it."""
    return v is not None and not v.unwrap().mutable and v.unwrap().can_constant()


class Part(enum.IntEnum):
    """The parts of a function: bits, as the arguments of MAKE_FUNCTION and SET_FUNCTION_ATTRIBUTE name them."""

    DEFAULTS = 1
    KWDEFAULTS = 2
    ANNOTATIONS = 4
    CLOSURE = 8


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

    def set_part(self, tx, flag: Part, value: Variable) -> None:
        if flag == Part.DEFAULTS:
            self._defaults = value.items(tx)
        elif flag == Part.KWDEFAULTS:
            self._kwdefaults = {k.as_constant(): v for k, v in value.pairs(tx)}
        elif flag == Part.ANNOTATIONS:
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
            flags |= Part.DEFAULTS
        if self._kwdefaults and self._kwdict is None:
            for k, v in self._kwdefaults.items():
                cg.load_const(k)
                cg(v)
            cg.emit("BUILD_MAP", len(self._kwdefaults))
            flags |= Part.KWDEFAULTS
        if self._closure:
            for c in self._closure:
                c.escapes = True
                cg(c)
            cg.emit("BUILD_TUPLE", len(self._closure))
            flags |= Part.CLOSURE
        cg.load_const(self.code)
        if self.globals is cg.globals:
            cg.emit("MAKE_FUNCTION", flags)
        else:
            if flags & ~Part.CLOSURE:
                unsupported("closure", f"{self!r} has defaults and other globals than the frame that returns it")
            t = cg.temp()
            cg.emit("STORE_FAST", t)
            if flags:
                c = cg.temp()
                cg.emit("STORE_FAST", c)

            def push():
                cg.emit("LOAD_FAST", t)
                cg.load_const(self.globals)
                cg.load_const(self.code.co_name)
                cg.load_const(None)
                cg.emit("LOAD_FAST", c) if flags else cg.load_const(None)

            cg.call_function(types.FunctionType, push, 5)
        kwdefaults = {} if self._kwdict is None else {"__kwdefaults__": self._kwdict}
        for k, v in {**kwdefaults, **self.attributes}.items():
            cg(v)
            cg.emit("COPY", 2)
            cg.emit("STORE_ATTR", k)
