"""The graph of a function that ``torch.jit.script`` marked: its source is translated into an archive's language, and that is typed."""

from __future__ import annotations

import ast
import functools
import types

from ..torchscript import lowering
from ..torchscript.declared import Method
from ..torchscript.nodes import Refused
from ..torchscript.program import Program
from ..torchscript.types import ANY, NONE, Type, join
from .archived import of_method
from .blocks import Graph
from .source_statements import translated

__all__ = ["of_function", "program_of"]

_PATH = "code/__torch__.py"
_VERSION = 10  # of today's archives: nothing is upgraded


def of_function(function: types.FunctionType, inline: bool = False) -> Graph:
    """The graph of a Python function; ``inline``: with what the functions that it calls do. NotImplementedError for a construct that isn't
    translated, with its line, and for a function without source."""
    try:
        method, program = program_of(function)
        return of_method(method, program, inline)
    except Refused as error:
        raise NotImplementedError(f"torch.jit.script({function.__name__}).graph, line {error.line}: {error}") from None
    except RuntimeError as error:
        raise NotImplementedError(f"torch.jit.script({function.__name__}).graph: {error}") from None
    except OSError:
        raise NotImplementedError(f"torch.jit.script({function.__name__}).graph: the function has no source") from None


def program_of(function: types.FunctionType) -> tuple[Method, Program]:
    """The program that a function and those that it calls are in an archive's language. Refused for a construct that isn't translated."""
    texts: dict[str, str] = {}
    waiting = {function.__name__: function}
    while waiting:
        name, fn = waiting.popitem()
        texts[name], called = translated(fn)
        for other, found in called.items():
            if other not in texts:
                waiting[other] = found
    data = "\n".join(texts.values()).encode()
    program = Program(function.__name__, lambda path: data if path == _PATH else None, _VERSION)
    methods = [program.function(ast.Pass(), f"__torch__.{name}") for name in texts]
    for method in [m for _ in methods for m in methods if m.gives == ANY]:
        method.gives = _given(method, program)
    return methods[0], program


def _given(method: Method, program: Program) -> Type:
    """The type that a function without an annotation returns, as far as the types are known of what it calls."""
    typing = lowering.opened(method, program)
    typing.block(method.node.body)
    return functools.reduce(join, typing.returns) if typing.returns else NONE
