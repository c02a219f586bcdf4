"""Which module's call a traced operator belongs to: ``meta["nn_module_stack"]`` of the nodes, and the arguments and results of calls."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .. import _C
from ..base.public import public_in
from ..base.symint import NUMBERS
from ..fx import Node
from ..fx.traceback import preserve_node_meta, set_module_stack
from ..modules import hooks
from ..modules.module import Module
from ..proxy import current_proxy_mode
from .graph_signature import ConstantArgument, SymBoolArgument, SymFloatArgument, SymIntArgument, TensorArgument
from .structure import Structure

__all__ = ["ModuleCallEntry", "ModuleCallSignature", "ModuleCalls", "argument"]


@public_in("export.exported_program")
@dataclasses.dataclass
class ModuleCallSignature:
    """Names of what a call of a module is given and returns, and how they are nested."""

    inputs: list
    outputs: list
    in_spec: Structure
    out_spec: Structure
    forward_arg_names: list[str] | None = None


@public_in("export.exported_program")
@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program. ``signature``: of its call, where it was kept; ``same_as``: the first name of the same module."""

    fqn: str
    signature: ModuleCallSignature | None = None
    same_as: str | None = dataclasses.field(default=None, repr=False)


class _Call:
    """A call of a module that is running. ``key``: its name with the number of the call."""

    def __init__(self, key: str, inputs: Any):
        self.key, self.inputs = key, inputs


class ModuleCalls:
    """Follows the calls of the modules in ``root`` while it is traced. ``preserved``: names of those whose arguments and results are kept."""

    def __init__(self, root: Module, preserved: tuple[str, ...] = ()):
        self.root, self.preserved = root, frozenset(preserved)
        self.names = {id(m): name for name, m in reversed(list(root.named_modules(remove_duplicate=False)))}
        unknown = self.preserved - set(self.names.values())
        if unknown:
            raise ValueError(f"preserve_module_call_signature: the module has no submodule {min(unknown)!r}")
        self.counts: Counter[str] = Counter()
        self.calls: list[_Call | None] = []
        self.stack: dict[str, tuple[str, str]] = {"L__self__": ("", _class_name(root))}
        self.thread = threading.get_ident()
        self.signatures: dict[str, ModuleCallSignature] = {}

    @contextlib.contextmanager
    def followed(self) -> Iterator[None]:
        """Nodes that are traced in this block are given their module stack."""
        around = hooks.AroundForward(self._enter, self._leave, with_kwargs=True, always_call=True)
        with around, preserve_node_meta():
            set_module_stack(self.stack)
            yield

    def _enter(self, module: Module, args: tuple) -> None:
        if threading.get_ident() != self.thread:
            return
        _note_grad_mode()
        name = self.names.get(id(module))
        if not name:  # the root, or a module that isn't one of the program's
            self.calls.append(None)
            return
        count = self.counts[name]
        self.counts[name] += 1
        key = f"{name}@{count}" if count else name
        self.calls.append(_Call(key, _nodes(args) if name in self.preserved else None))
        self.stack = {**self.stack, f"L__self__{key}": (name, _class_name(module))}
        set_module_stack(self.stack)

    def _leave(self, module: Module, args: tuple, kwargs: dict, output: Any) -> None:
        if threading.get_ident() != self.thread:
            return
        _note_grad_mode()
        call = self.calls.pop()
        if call is None:
            return
        self.stack = {k: v for k, v in self.stack.items() if k != f"L__self__{call.key}"}
        set_module_stack(self.stack)
        if call.inputs is not None:
            _, in_spec = Structure.flatten((args, kwargs))
            outputs, out_spec = Structure.flatten(output)
            inputs = [*call.inputs, *_nodes(kwargs)]
            made = list(map(_node, outputs))
            names = _argument_names(module, len(args))
            self.signatures[call.key] = ModuleCallSignature(inputs, made, in_spec, out_spec, names)

    def entries(self) -> list[ModuleCallEntry]:
        """One for each submodule, and for each further call of one whose signature is kept."""
        named = [(name, self.names[id(m)]) for name, m in self.root.named_modules(remove_duplicate=False) if name]
        for s in self.signatures.values():
            s.inputs, s.outputs = list(map(argument, s.inputs)), list(map(argument, s.outputs))
        again = [(key, key) for key in self.signatures if "@" in key]
        return [
            ModuleCallEntry(key, self.signatures.get(key), first if first != key else None)
            for key, first in (*named, *again)
        ]


def _class_name(module: Module) -> str:
    return f"{type(module).__module__}.{type(module).__qualname__}"


def _argument_names(module: Module, count: int) -> list[str]:
    """Names for the positional arguments of a call."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = [p.name for p in inspect.signature(module.forward).parameters.values() if p.kind in kinds]
    return [*named[:count], *(f"args_{k}" for k in range(len(named), count))]


def _nodes(tree: Any) -> list[Any]:
    return list(map(_node, Structure.flatten(tree)[0]))


def _note_grad_mode() -> None:
    """A switch of grad mode belongs to the module that made it, not to the next operator's."""
    mode = current_proxy_mode()
    if mode is not None:
        mode.insert_grad_mode()


def _node(leaf: Any) -> Any:
    mode = current_proxy_mode()
    traced = mode is not None and isinstance(leaf, (_C.TensorBase, *NUMBERS))
    return mode.argument(leaf) if traced else leaf


def argument(node: Any, value: Any = None, constant: Any = None) -> Any:
    """The signature's word for a node or constant. ``value``: what the node stands for, where that isn't noted at it."""
    if not isinstance(node, Node):
        return ConstantArgument("", node)
    value = node.meta.get("val") if value is None else value
    if isinstance(value, NUMBERS):
        kind = {"int": SymIntArgument, "float": SymFloatArgument, "bool": SymBoolArgument}[value.__sym__]
        return kind(node.name)
    return TensorArgument(node.name) if isinstance(value, _C.TensorBase) else ConstantArgument(node.name, constant)
