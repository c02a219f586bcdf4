"""``torch.autocast`` in captured code, and around it.

The library's autocast is a function mode with settings. While a block is traced it is on for real, so that fake tensors get the dtypes of the run;
in the graph it is two nodes, ``_enter_autocast`` and ``_exit_autocast``, which switch it on where the graph runs, or is traced once more. A block
that is on when the function is called is guarded, and the graph begins with it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from flambeau import _C

from ..rules.reflect import module_of, mro_of, name_of
from ..tracing import world
from ..tracing.wrapping import WRAPPERS, pin
from ..variables.contexts.managers import ContextManagerVariable
from ..variables.values.constant import ConstantVariable

__all__ = ["AutocastVariable", "Block", "is_autocast", "library", "restoring"]

MODULE = "flambeau.amp.autocast_mode"


def library():
    """The library's module, which is above this package; None when nobody has imported it."""
    return sys.modules.get(MODULE)


def is_autocast(cls: type) -> bool:
    return any(name_of(c) == "autocast" and module_of(c) == MODULE for c in mro_of(cls))


class Block:
    """A block that is on while tracing."""

    def __init__(self, tx, settings: tuple):
        self.settings = settings
        self.node = tx.output.recorder.create_node(tx, "call_function", library()._enter_autocast, settings, {})
        self.node.meta["val"], self.node.meta["effects"] = None, frozenset(["state"])
        self.entered = library()._enter_autocast(*settings)

    def end(self, graph) -> None:
        """The node with which it ends."""
        node = graph.call_function(library()._exit_autocast, (self.node,))
        node.meta["val"], node.meta["effects"] = None, frozenset(["state"])

    def __exit__(self, *exc):
        library()._exit_autocast(self.entered)


def begin(tx, settings: tuple) -> Block:
    block = Block(tx, settings)
    tx.output.blocks.regions.append(block)
    return block


def blocks(output) -> list[Block]:
    return [r for r in output.blocks.regions if isinstance(r, Block)]


class AutocastVariable(ContextManagerVariable):
    enters_again = True

    def __init__(self, value, source=None):
        super().__init__()
        self.source, self.value = source, value
        self.entered: list[Block] = []

    def python_type(self):
        return type(self.value)

    @property
    def settings(self) -> tuple:
        v = self.value
        return v.device, v.fast_dtype, v._enabled, v.cache_enabled

    def enter(self, tx):
        self.entered.append(begin(tx, self.settings))
        return self

    def exit(self, tx):
        block = self.entered.pop()
        tx.output.blocks.regions.remove(block)
        block.end(tx.output.recorder.graph)
        block.__exit__()

    def reconstruct(self, cg):
        if self.source is not None:
            self.source.load(cg)
            return
        plain = next(c for c in mro_of(type(self.value)) if name_of(c) == "autocast")
        cg.call_function(plain, lambda: [cg.load_const(a) for a in self.settings], 4)


def asked(tx, fn: Callable, args: list) -> ConstantVariable:
    """What a function tells of the settings."""
    values = [a.as_constant() for a in args]
    value = fn(*values)
    if not blocks(tx.output):
        world.library_state(tx, fn, tuple(values), {}, value)
    return tx.wrap_known(value)


def restoring(fn: Callable) -> Callable:
    """Runs a graph with blocks: an error in it leaves them."""

    def run(*args):
        with _C.Guard(replace="function_modes", value=_C.stack("function_modes")):
            return fn(*args)

    return run


@WRAPPERS.row("autocast")
def _(tx, value, source):
    if not is_autocast(type(value)):
        return None
    pin(tx, source, "ID_MATCH", value)
    return AutocastVariable(value, source)
