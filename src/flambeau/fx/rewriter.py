"""A Tracer that reads the source of what it traces: ``assert`` becomes a node, and so does the type of an annotated assignment."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from typing import Any

from ..modules.module import Module
from .annotate import annotate
from .graph import Graph
from .tracer import Tracer, _assert

__all__ = ["AST_Rewriter", "RewritingTracer"]

_ASSERT, _ANNOTATE, _OUTER = "__fx_assert__", "__fx_annotate__", "__fx_outer__"


class AST_Rewriter(ast.NodeTransformer):
    """``rewrite(fn)`` is ``fn`` with ``assert test, message`` as ``torch._assert(test, message)`` and ``x: T = value`` as
    ``x = annotate(value, T)``."""

    def rewrite(self, fn: types.FunctionType) -> types.FunctionType:
        """OSError for a function whose source can't be found."""
        source = inspect.getsource(fn)
        if source[:1].isspace():
            source = f"if True:\n{source}"  # as it stands: lines of strings aren't moved
        (definition,) = ast.parse(source).body
        definition = definition.body[0] if isinstance(definition, ast.If) else definition
        if not isinstance(definition, ast.FunctionDef):
            raise TypeError(f"{fn!r} is no function with a statement of its own")
        definition.decorator_list = []
        # What it closes over are arguments of a function around it, so that it closes over them again.
        free = [ast.arg(name) for name in (*fn.__code__.co_freevars, _ASSERT, _ANNOTATE)]
        empty = ast.arguments(posonlyargs=[], args=free, kwonlyargs=[], kw_defaults=[], defaults=[])
        outer = ast.FunctionDef(_OUTER, empty, [self.visit(definition)], [], type_params=[])  # type: ignore[call-arg]
        made: dict[str, Any] = {}
        exec(compile(ast.fix_missing_locations(ast.Module([outer], [])), fn.__code__.co_filename, "exec"), made)
        code = next(
            c for c in made[_OUTER].__code__.co_consts if isinstance(c, types.CodeType) and c.co_name == fn.__name__
        )
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
        cells |= {_ASSERT: types.CellType(_assert), _ANNOTATE: types.CellType(annotate)}
        new = types.FunctionType(
            code, fn.__globals__, fn.__name__, fn.__defaults__, tuple(cells[name] for name in code.co_freevars)
        )
        functools.update_wrapper(new, fn)
        del new.__wrapped__  # type: ignore[attr-defined]
        new.__kwdefaults__ = fn.__kwdefaults__
        return new

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        call = ast.Call(ast.Name(_ASSERT, ast.Load()), [node.test, node.msg or ast.Constant("")], [])
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return node
        call = ast.Call(ast.Name(_ANNOTATE, ast.Load()), [node.value, node.annotation], [])
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """A :class:`Tracer` of functions, or of modules with the ``forward`` of each of their submodules, rewritten by :class:`AST_Rewriter`."""

    def trace(self, root: Any, concrete_args: dict[str, Any] | tuple | None = None) -> Graph:
        return super().trace(_rewritten(root), concrete_args)


def _rewritten(root: Any) -> Any:
    if not isinstance(root, Module):
        return AST_Rewriter().rewrite(root)
    cls = type(root)
    if f"{cls.__module__}.".startswith("flambeau."):
        return root
    forward = AST_Rewriter().rewrite(cls.forward)
    new = object.__new__(type(cls.__name__, (cls,), {"forward": forward, "__module__": cls.__module__}))
    new.__dict__.update(root.__dict__, _modules={k: _rewritten(m) for k, m in root._modules.items()})
    return new
