"""A graph whose function takes and returns nested containers: the graph itself works on their leaves."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..base import pytree
from .codegen import CodeGen
from .proxy import Proxy

__all__ = ["_PyTreeCodeGen", "_PyTreeInfo", "register_pytree_flatten_spec", "tree_flatten_spec"]


class _PyTreeInfo(NamedTuple):
    """``orig_args``: the parameters' names; ``in_spec``: the structure of (args, kwargs) or of args; ``out_spec``: of the result, None: as it is."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


def tree_flatten_spec(tree: Any, spec: Any) -> list[Any]:
    """The leaves of ``tree``. TypeError when its structure isn't ``spec``."""
    leaves, found = pytree.tree_flatten(tree)
    if found == spec:
        return leaves
    if any(isinstance(x, Proxy) for x in leaves):
        return list(_by_spec(tree, spec))
    raise TypeError(f"the graph takes arguments of the structure {spec}, got {found}")


# class -> function of an object and its spec that gives the parts: for objects that are Proxies
_parts: dict[type, Callable[[Any, Any], list[Any]]] = {}


def register_pytree_flatten_spec(cls: type, flatten_fn_spec: Callable[[Any, Any], list[Any]], *_unused: Any) -> None:
    """``flatten_fn_spec(value, spec)`` gives the parts of what stands for an object of the class while it is traced."""
    _parts[cls] = flatten_fn_spec


def _by_spec(tree: Any, spec: Any) -> Iterator[Any]:
    """The leaves as the structure says, of a tree of which parts are Proxies."""
    if spec.is_leaf():
        yield tree
        return
    if spec.type in _parts:
        parts = _parts[spec.type](tree, spec)
    else:
        parts = [tree[entry] for entry in spec.entries()]
    for part, inner in zip(parts, spec.children()):
        yield from _by_spec(part, inner)


class _PyTreeCodeGen(CodeGen):
    """Flattens the arguments by ``pytree_info.in_spec`` and builds the result by its ``out_spec``."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def _with_kwargs(self) -> bool:
        return self.kwarg_names() is not None

    def kwarg_names(self) -> list[str] | None:
        """The names of keyword arguments where the structure is one of (args, kwargs), else None."""
        args = pytree.tree_unflatten(list(range(self.pytree_info.in_spec.num_leaves)), self.pytree_info.in_spec)
        whole = type(args) is tuple and len(args) == 2 and type(args[0]) in (tuple, list) and type(args[1]) is dict
        return list(args[1]) if whole else None

    def process_inputs(self, *inputs: Any) -> Any:
        return tree_flatten_spec(self._packed(inputs), self.pytree_info.in_spec)

    def _packed(self, inputs: Sequence[Any]) -> Any:
        names = self.kwarg_names()
        if names is None:
            return inputs
        n = len(inputs) - len(names)
        return (tuple(inputs[:n]), dict(zip(names, inputs[n:])))

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return outputs
        leaves = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        return pytree.tree_unflatten(list(leaves), self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        names = [n for n in self.pytree_info.orig_args if n != "self"]
        head = super().gen_fn_def(list(names), maybe_return_annotation)
        leaves = [v.partition(":")[0].partition("=")[0].strip() for v in free_vars if v != "self"]
        if not leaves:
            return head
        kwargs = self.kwarg_names()
        if kwargs is None:
            packed = f"({', '.join(names)}{',' if len(names) == 1 else ''})"
        else:
            plain = names[: len(names) - len(kwargs)]
            given = ", ".join(f"{k!r}: {n}" for k, n in zip(kwargs, names[len(plain) :]))
            packed = f"(({', '.join(plain)}{',' if len(plain) == 1 else ''}), {{{given}}})"
        return f"{head}\n    {', '.join(leaves)}, = fx_pytree.tree_flatten_spec({packed}, self._in_spec)"

    def generate_output(self, output_args: Any, **_ignored) -> str:
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def additional_globals(self) -> list[tuple[str, Any]]:
        return [("pytree", pytree), ("fx_pytree", sys.modules[__name__])]
