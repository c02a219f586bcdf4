"""How captured code writes to objects that existed before the call, in two steps: what will be written is pushed first (reading old state),
then the writes happen. Each variable says in ``replay`` what is to be written of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Replay"]


class Replay:
    def __init__(self, cg):
        self.cg = cg
        self.writes: list[Callable[[Replay], Any]] = []

    def emit(self) -> None:
        """Write the code of the second step."""
        for write in self.writes:
            write(self)

    # -- the first step: each gives the name of a temporary --
    def keep(self, push: Callable[[], Any]) -> str:
        push()
        t = self.cg.temp()
        self.cg.emit("STORE_FAST", t)
        return t

    def value(self, v) -> str:
        return self.keep(lambda: self.cg(v))

    def target(self, v) -> str:
        """The object that ``v`` stands for."""
        return self.keep(lambda: v.source.load(self.cg))

    # -- the second step --
    def later(self, write: Callable[[Replay], Any]) -> None:
        self.writes.append(write)

    def before_all(self, write: Callable[[Replay], Any]) -> None:
        self.writes.insert(0, write)

    def load(self, *names: str) -> None:
        for n in names:
            self.cg.emit("LOAD_FAST", n)

    def call(self, fn, first, constants, last=()) -> None:
        """Write a call of ``fn`` with temporaries, constants and temporaries, whose result is dropped."""

        def push():
            self.load(*first)
            for c in constants:
                self.cg.load_const(c)
            self.load(*last)

        self.cg.call_function(fn, push, len(first) + len(constants) + len(last))
        self.cg.emit("POP_TOP")

    def method(self, target: str, name: str, *args: str) -> None:
        self.cg.push_callable(lambda: (self.load(target), self.cg.load_attr(name)))
        self.load(*args)
        self.cg.call(len(args))
        self.cg.emit("POP_TOP")

    def store_attr(self, target: str, name: str, value: str) -> None:
        self.load(value, target)
        self.cg.emit("STORE_ATTR", name)

    def store_item(self, target: str, key: str, value: str) -> None:
        self.load(value, target, key)
        self.cg.emit("STORE_SUBSCR")
