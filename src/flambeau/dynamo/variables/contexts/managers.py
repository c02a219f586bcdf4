"""Context managers: the grad-mode switches of the library, and those written by users."""

from __future__ import annotations

import contextlib
import inspect
import types

from flambeau.autograd import grad_mode

from ...exc import UserRaises, unsupported
from ...graph import tensor_queries
from ...guards.source import AttrSource, GetAttrSource
from ...guards.tree import type_item
from ...rules.reflect import is_among, is_below, name_of
from ...tracing import world
from ...tracing.wrapping import WRAPPERS, pin
from ..base import MethodOf, Variable
from ..values.constant import ConstantVariable

__all__ = ["ContextExit", "GradModeVariable", "NullContextVariable"]


class ContextManagerVariable(Variable):
    enters_again = False  # after a graph break, what reconstruct() makes is entered

    def enter(self, tx) -> Variable:
        raise NotImplementedError(type(self).__name__)

    def exit(self, tx) -> None:
        raise NotImplementedError(type(self).__name__)

    def call_method(self, tx, name, args, kwargs):
        if name == "__enter__":
            return self.enter(tx)
        if name == "__exit__":
            self.exit(tx)
            return ConstantVariable(None)
        return super().call_method(tx, name, args, kwargs)


class GradModeVariable(ContextManagerVariable):
    """no_grad, enable_grad, set_grad_enabled: node(s) in the graph, and the mode while tracing."""

    enters_again = True
    initial: bool | None = None  # of a set_grad_enabled made while tracing: the mode before

    def __init__(self, cls, mode: bool, call_args=(), entered=False):
        super().__init__()
        self.cls, self.mode, self.call_args = cls, mode, tuple(call_args)
        self.previous: bool | None = None

    def __repr__(self):
        return f"a block of set_grad_enabled({self.mode})"

    def python_type(self):
        return self.cls

    def enter(self, tx):
        self.previous = tensor_queries.grad_enabled()
        tx.output.set_grad_mode(tx, self.mode)
        return ConstantVariable(None)

    def exit(self, tx):
        if self.previous is None:
            unsupported("grad-mode", "leaving a grad mode that was not entered while tracing")
        tx.output.set_grad_mode(tx, self.previous)

    def call(self, tx, args, kwargs):
        """Used as a decorator while tracing: a function run under the mode. ``set_grad_enabled`` set it when it was made."""
        if self.previous is not None:
            self.exit(tx)
            self.previous = None
        return ModeWrapped(self, args[0])

    def reconstruct(self, cg):
        if self.initial is not None:
            cg.call_function(made_when, lambda: (cg.load_const(self.mode), cg.load_const(self.initial)), 2)
            return
        cg.call_function(self.cls, lambda: [cg.load_const(a) for a in self.call_args], len(self.call_args))


def made_when(mode: bool, initial: bool) -> grad_mode.set_grad_enabled:
    """``set_grad_enabled(mode)`` as it was made when the mode was ``initial``, which leaving it sets. The mode stays as it is now."""
    now = tensor_queries.grad_enabled()
    tensor_queries.set_grad_enabled(initial)
    made = grad_mode.set_grad_enabled(mode)
    tensor_queries.set_grad_enabled(now)
    return made


class InferenceModeVariable(GradModeVariable):
    """``inference_mode``: no gradients in the graph, and what is made inside leaves captured code as inference tensors."""

    before = False

    def __repr__(self):
        return "a block of inference_mode"

    def enter(self, tx):
        self.before = tensor_queries.inference_enabled()
        if self.before and not self.call_args[0]:
            unsupported("inference-mode", "inference_mode(False) inside of inference mode")
        super().enter(tx)
        tx.output.blocks.regions.append(self)
        tensor_queries.set_inference(self.call_args[0])
        return ConstantVariable(None)

    def exit(self, tx):
        tx.output.blocks.regions.remove(self)
        self.__exit__()
        super().exit(tx)

    def __exit__(self, *exc):
        """The trace ends, or the block."""
        tensor_queries.set_inference(self.before)


def of_switch(switch) -> GradModeVariable:
    """The variable of a grad mode that existed before, as it is entered."""
    if isinstance(switch, grad_mode.inference_mode):
        return InferenceModeVariable(type(switch), not switch.mode, (switch.mode,))
    mode = bool(switch.sets_grad)
    return GradModeVariable(type(switch), mode, (mode,) if isinstance(switch, grad_mode.set_grad_enabled) else ())


class ModeMaker(Variable):
    """``switch.clone``: a function that a mode decorates enters a new one at each call."""

    def __init__(self, switch, source=None):
        super().__init__(source)
        self.switch = switch

    def python_type(self):
        return types.MethodType

    def call(self, tx, args, kwargs):
        return of_switch(self.switch)


class EnteredGradModeVariable(ContextManagerVariable):
    """A grad mode that was entered before the call; ``previous``: the mode to go back to."""

    def __init__(self, previous: bool):
        super().__init__()
        self.previous = previous

    def exit(self, tx):
        tx.output.set_grad_mode(tx, self.previous)


class ModeWrapped(Variable):
    """A function under a grad mode: what no_grad makes as a decorator."""

    def __init__(self, mode, fn, source=None):
        super().__init__(source)
        self.mode, self.fn = mode, fn

    def reconstruct(self, cg):
        cg.call_function(
            self.mode.cls, lambda: [cg.load_const(a) for a in self.mode.call_args], len(self.mode.call_args)
        )
        t = cg.temp()
        cg.emit("STORE_FAST", t)
        cg.push_callable(lambda: cg.emit("LOAD_FAST", t))
        cg(self.fn)
        cg.call(1)

    def call(self, tx, args, kwargs):
        m = type(self.mode)(self.mode.cls, self.mode.mode, self.mode.call_args)
        m.enter(tx)
        try:
            out = self.fn.call(tx, args, kwargs)
        except UserRaises:
            m.exit(tx)
            raise
        m.exit(tx)
        return out


class NullContextVariable(ContextManagerVariable):
    """A context manager with no effect on captured code (contextlib.nullcontext, profiler ranges)."""

    enters_again = True

    def __init__(self, factory, result: Variable | None = None, args=()):
        super().__init__()
        self.factory, self.args = factory, list(args)
        self.result = ConstantVariable(None) if result is None else result

    def getattr(self, tx, name):
        if name == "enter_result" and self.factory is contextlib.nullcontext:
            return self.result
        return super().getattr(tx, name)

    def enter(self, tx):
        return self.result

    def exit(self, tx):
        pass

    def reconstruct(self, cg):
        cg.call_function(self.factory, lambda: cg.all(self.args), len(self.args))


class GeneratorContextVariable(ContextManagerVariable):
    """The context manager that contextlib.contextmanager makes of a generator function."""

    def __init__(self, generator: Variable, function: Variable, args, kwargs):
        super().__init__()
        self.generator = generator
        self.made_of: tuple | None = (function, list(args), dict(kwargs))  # until it is entered

    def python_type(self):
        return contextlib._GeneratorContextManager

    def getattr(self, tx, name):
        if name == "gen":
            return self.generator
        if name in ("__enter__", "__exit__", "_recreate_cm"):
            return MethodOf(self, name)
        return super().getattr(tx, name)

    def delattr(self, tx, name):
        """``__enter__`` drops what it was made of."""

    def call(self, tx, args, kwargs):
        """As a decorator: the function runs in a new one at each call."""
        return tx.wrap_function(contextlib.ContextDecorator.__call__).call(tx, [self, *args], kwargs)

    def enter(self, tx):
        self.made_of = None
        v = self.generator.next(tx)
        if v is None:
            tx.raise_user(RuntimeError("generator didn't yield"))
        return v

    def call_method(self, tx, name, args, kwargs):
        if name == "_recreate_cm":
            if self.made_of is None:
                unsupported("context-manager", "a context manager that was entered already, as a decorator")
            function, *given = self.made_of
            return function.call(tx, *given)
        if name == "__exit__" and not (args[0].is_constant() and args[0].as_constant() is None):
            return self.throw(tx, args[1])
        return super().call_method(tx, name, args, kwargs)

    def exit(self, tx):
        if self.generator.next(tx) is not None:
            tx.raise_user(RuntimeError("generator didn't stop"))

    def throw(self, tx, exc):
        """What contextlib does with an exception in the block: True when the generator ends, so the exception is swallowed."""
        if isinstance(exc.exception, (StopIteration, RuntimeError)):
            unsupported(
                "context-manager", f"a {name_of(type(exc.exception))} in the block of a generator's context manager"
            )
        before = list(exc.raised), exc.traceback
        try:
            self.generator.throw(tx, exc)
        except UserRaises as e:
            if e.variable is exc or e.exception is exc.exception:
                exc.raised, exc.traceback = before  # contextlib puts it back
                return ConstantVariable(False)
            if isinstance(e.exception, StopIteration):
                return ConstantVariable(True)
            raise
        tx.raise_user(RuntimeError("generator didn't stop after throw()"))

    def reconstruct(self, cg):
        if self.made_of is None:
            cg.call_function(manager_of, lambda: cg(self.generator), 1)
            return
        function, args, kwargs = self.made_of

        def push():
            cg(self.generator)
            cg.load_const(tuple(kwargs))
            cg.all([function, *args, *kwargs.values()])

        cg.call_function(manager_of, push, 3 + len(args) + len(kwargs))


def manager_of(generator, names=(), function=None, *given):
    """The context manager around a generator, as contextlib makes it. What it was made of is there until it is entered."""
    cm = contextlib._GeneratorContextManager.__new__(contextlib._GeneratorContextManager)
    cm.gen = generator
    if function is not None:
        args = given[: len(given) - len(names)]
        function = getattr(function, "__wrapped__", function)
        cm.func, cm.args, cm.kwds = function, args, dict(zip(names, given[len(args) :]))
    return cm


class FunctionModeVariable(ContextManagerVariable):
    """A ``__torch_function__`` mode entered while tracing: its handler is traced at every operation inside."""

    enters_again = True

    def __init__(self, mode: Variable):
        super().__init__()
        self.mode = mode

    def enter(self, tx):
        tx.output.blocks.function_modes.append(self.mode)
        return self.mode

    def exit(self, tx):
        tx.output.blocks.function_modes.remove(self.mode)

    def reconstruct(self, cg):
        cg(self.mode)


def special_method(obj, name: str):
    """What the interpreter calls: found on the class, past the object's own attributes and ``__getattribute__``."""
    found = type_item(type(obj), name)
    return found.__get__(obj, type(obj)) if hasattr(type(found), "__get__") else found


class ContextExit(Variable):
    """What BEFORE_WITH leaves on the stack: the bound ``__exit__``."""

    def __init__(self, manager: Variable, source=None):
        super().__init__(source)
        self.manager = manager
        self.left = False

    def call(self, tx, args, kwargs):
        self.left = True
        return self.manager.call_method(tx, "__exit__", args, kwargs)

    def reconstruct(self, cg):
        """Enter the manager again, for the plain code that goes on inside its block."""
        if self.left:
            cg.load_const(None)
            return
        if hasattr(self.manager, "exit_again"):
            self.manager.exit_again(cg)
            return
        if not getattr(self.manager, "enters_again", False):
            cg.call_function(special_method, lambda: (cg(self.manager), cg.load_const("__exit__")), 2)
            return
        cg(self.manager)
        t = cg.temp()
        cg.emit("COPY", 1)
        cg.emit("STORE_FAST", t)
        cg.load_attr("__exit__")
        cg.push_callable(lambda: (cg.emit("LOAD_FAST", t), cg.load_attr("__enter__")))
        cg.call(0)
        cg.emit("POP_TOP")


def switch_of(fn: types.FunctionType) -> grad_mode._Switch | None:
    """The grad mode that the library's decorator around ``fn`` switches to."""
    cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
    switch = cells["self"].cell_contents if "self" in cells else None
    ours = fn.__code__.co_filename == inspect.getfile(grad_mode) and isinstance(switch, grad_mode._Switch)
    return switch if ours else None


class ExistingGradModeVariable(GradModeVariable):
    """An object of ``no_grad`` and its kin that existed before, and isn't entered. ``restores``: what leaving sets, where that was settled when it
    was made (``set_grad_enabled``)."""

    def __init__(self, value, mode: bool, restores: bool | None, source):
        super().__init__(type(value), mode)
        self.value, self.restores, self.source = value, restores, source

    def getattr(self, tx, name):
        if name == "clone":
            return MethodOf(self, name)
        return world.library_attr(tx, self, self.value, self.source, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "clone" and not args and not kwargs:
            return of_switch(self.value)
        return super().call_method(tx, name, args, kwargs)

    def exit(self, tx):
        if self.previous is not None and self.restores is not None:
            self.previous = self.restores
        super().exit(tx)

    def call(self, tx, args, kwargs):
        unsupported("grad-mode", f"{self!r}, which existed before, used as a decorator")


@WRAPPERS.row("grad mode")
def _(tx, value, source):
    cls = type(value)
    if not is_among(cls, (grad_mode.no_grad, grad_mode.enable_grad, grad_mode.set_grad_enabled)) or value.entered:
        return None
    pin(tx, source, "TYPE_MATCH", cls)

    def known(name: str, found) -> bool:
        return bool(tx.wrap(found, GetAttrSource(source, name)).as_constant())

    known("entered", value.entered)
    mode = known("sets_grad", value.sets_grad)
    restores = known("_initial", value._initial) if cls is grad_mode.set_grad_enabled else None
    return ExistingGradModeVariable(value, mode, restores, source)


@WRAPPERS.row("null context")
def _(tx, value, source):
    # isinstance() would ask for __class__. One whose __init__ is only running has no result yet: it is an object like any other.
    if not is_below(type(value), contextlib.nullcontext) or "enter_result" not in value.__dict__:
        return None
    pin(tx, source, "TYPE_MATCH", type(value))
    result = tx.wrap(value.enter_result, AttrSource(source, "enter_result"))
    return NullContextVariable(contextlib.nullcontext, result, [result])
