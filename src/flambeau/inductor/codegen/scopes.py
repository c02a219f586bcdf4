"""Where a kernel's code goes: a scope is a place of the text in which some loop variables have values.

Scopes are open one within the other, from the kernel's entry inwards. What is computed is appended to the innermost scope that binds a variable
it depends on, and is remembered there, so that it is computed once and outside of every loop that it doesn't depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...base.expr import Var
from ..assembly.builder import Builder
from ..assembly.code import Names
from ..assembly.instructions import Instruction, Operand

__all__ = ["Lanes", "Scope", "Scopes"]


class Scope:
    """``code``: appends to the scope, one lane at a time. ``vars``: the variables that it binds; ``names``: their values. ``cache``: what has been
    computed there."""

    __slots__ = ("code", "vars", "cache", "names")

    def __init__(self, names: Names, variables: Iterable = (), out: list[Instruction] | None = None):
        self.code = Builder(names, 1, [] if out is None else out)
        self.vars = set(variables)
        self.cache: dict = {}
        self.names: dict = {}


class Scopes:
    """The open scopes of a kernel. ``once``: the one that is entered for each parallel iteration; ``outer``: the variables that it binds."""

    def __init__(self, names: Names, outer: tuple[Var, ...]):
        self.names, self.outer = names, outer
        self.entry = self.once = Scope(names)
        self.open = [self.entry]

    @property
    def here(self) -> Scope:
        """The innermost scope."""
        return self.open[-1]

    def of(self, variables: set) -> Scope:
        """The innermost scope that binds one of these variables."""
        for scope in reversed(self.open):
            if scope.vars & variables:
                return scope
        return self.entry

    def level(self, scope: Scope) -> int:
        return self.open.index(scope)

    def variable(self, v) -> Operand | int:
        """The value of a loop variable."""
        if getattr(v, "extent", None) == 1:
            return 0
        for scope in reversed(self.open):
            if v in scope.names:
                return scope.names[v]
        raise AssertionError(f"loop variable {v} is not bound here")

    def builder(self, lanes: int) -> Builder:
        """Appends to the innermost scope."""
        return Builder(self.names, lanes, self.here.code.out)

    def inside(self, scope: Scope, write: Callable[[], None]) -> None:
        """``write()`` with one more scope open."""
        self.open.append(scope)
        write()
        self.open.pop()

    def apart(self, scope: Scope, write: Callable[[], None], names: dict | None = None) -> None:
        """``write()`` into ``scope``, with a fresh memory that holds the outer variables: nothing computed there is known later."""
        fresh = Scope(self.names, self.outer, scope.code.out)
        for s in self.open:
            fresh.names.update(s.names)
        fresh.names.update(names or {})
        once, self.once = self.once, fresh
        self.inside(fresh, write)
        self.once = once


class Lanes:
    """How the code that is being written is vectorised: ``count`` values of ``variable`` at once. ``mask``: the lanes that count, None where
    all do; ``last``: then the variable in each lane, no lane beyond the end."""

    __slots__ = ("variable", "count", "mask", "last")

    def __init__(self, variable: Var | None):
        self.variable, self.count = variable, 1
        self.mask: Operand | None = None
        self.last: Operand | None = None

    @property
    def along(self) -> Var:
        """The variable, where the kernel has one."""
        assert self.variable is not None, "a kernel without a vector variable"
        return self.variable

    def vary(self, variables) -> bool:
        """Whether what depends on these variables differs between lanes."""
        return self.count > 1 and self.variable in variables

    def limit(self, here: Operand, end: Operand | int, b: Builder) -> None:
        """From here on only lanes below ``end`` count. Loads of the others give 1, which no operation minds."""
        self.mask = b.cmp("slt", here, b.splat(end))
        self.last = b.intrinsic("smin", here, b.splat(b.op("sub", end, 1)))

    def all(self) -> None:
        """From here on all lanes count."""
        self.mask = self.last = None
