"""The program of one archive: what it names is compiled, once each, into a space of its own."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable

from ..script_classes import Error
from . import calls, lowering, modules
from .declared import Method
from .names import Names, refusal
from .nodes import Refused
from .types import Type

__all__ = ["Program"]

_COUNT = itertools.count()


class Program(Names):
    """``read(path)`` gives the bytes of a file of the archive, None where there is none; ``version`` is the archive's."""

    def __init__(self, name: str, read: Callable[[str], bytes | None], version: int):
        super().__init__(f"{name}#{next(_COUNT)}", read)
        self.version = version
        self.kept: dict[str, bytes] = {}
        self.space: dict = {"__builtins__": {}, "__name__": "__torch__"}
        self._held: dict[int, str] = {}

    def hold(self, value, name: str) -> str:
        """The global name of a value that code uses."""
        found = self._held.get(id(value))
        if found is None:
            found = f"_ts_{''.join(c if c.isalnum() else '_' for c in name)}_{len(self._held)}"
            self._held[id(value)] = found
            self.space[found] = value
        return found

    def raw(self, name: str) -> str:
        """The attribute of the classes that is the method itself, without a look at its arguments."""
        return f"_ts_{name}"

    def name_of(self, method: Method) -> str:
        """The global name of a function of the archive."""
        return f"_ts_function_{method.qualified.replace('.', '_')}"

    def tester(self, kinds: tuple[Type, ...]) -> Callable:
        """What tells whether a value is of one of these types."""
        return lambda value: any(calls.holds(self, value, kind) for kind in kinds)

    def raising(self, method: Method) -> Callable:
        """What ``ops.prim.RaiseException`` does in this method."""
        head = (
            "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript, serialized code (most recent call last):\n"
            f'  File "{method.path}", in {method.name}\n'
        )

        def fail(message: str, kind: str | None = None):
            raise Error(f"{head}{kind or 'RuntimeError'}: {message}")

        return fail

    def missing(self, method: Method, space: str, name: str) -> Callable:
        """In the place of an operator that only PyTorch has."""
        text = f"{space}::{name} is an operator of PyTorch's that flambeau doesn't have ({method.where()} of a TorchScript archive)"

        def fail(*args, **kwargs):
            raise NotImplementedError(text)

        return fail

    def compile(self) -> None:
        """Compile what has been named and isn't yet, and what that names."""
        while self.waiting:
            method = self.waiting.pop()
            try:
                node = lowering.lower(method, self)
                code = compile(
                    ast.fix_missing_locations(ast.Module([node], [])),
                    self.shown_path(method.path),
                    "exec",
                    dont_inherit=True,
                )
            except Refused as error:
                raise refusal(method.where(), error) from None
            except (RecursionError, ValueError, SyntaxError, MemoryError) as error:
                raise RuntimeError(f"torch.jit.load: {method.where()}: the code can't be compiled ({error})") from None
            made: dict = {}
            exec(code, self.space, made)
            method.python = made[method.name]
            if method.owner is None:
                self.space[self.name_of(method)] = method.python
            else:
                modules.add_method(self, method)

    def keep(self, files: dict[str, bytes]) -> None:
        """Hold the files that a program of the same classes is written with."""
        self.kept = files
