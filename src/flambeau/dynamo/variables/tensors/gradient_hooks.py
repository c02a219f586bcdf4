"""``tensor.register_hook`` of a tensor that existed before: captured code registers the hook, behind the graph, on the tensor itself.

That is as early as the plain program's, since nothing in captured code runs a backward pass that reaches a tensor with hooks. The handle that
comes of it is made there too."""

from __future__ import annotations

from flambeau.autograd.handles import RemovableHandle

from ...exc import SkipFrame, unsupported
from ..base import Variable, method_of
from ..values.constant import ConstantVariable

__all__ = ["register"]

METHODS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})


def register(tx, tensor, name: str, args: list[Variable], kwargs: dict[str, Variable]) -> Variable | None:
    """The handle of ``tensor.register_hook(hook)``; None where the graph has to break."""
    output = tx.output
    if len(args) != 1 or kwargs or tensor.source is None or not tensor.val.requires_grad or output.recorder.levels:
        return None
    if name != "register_hook" and tensor.val.grad_fn is not None:
        return None
    handle = HandleVariable(tensor, name, args[0], last_handle(output))
    output.side_effects.add_call(handle)
    return handle


def last_handle(output) -> HandleVariable | None:
    found = [v for v in output.side_effects.modified.values() if isinstance(v, HandleVariable)]
    return found[-1] if found else None


class HandleVariable(Variable):
    """What registering gave. ``before``: the handle of the registration before this one, for hooks run in their order."""

    def __init__(self, tensor, name: str, hook: Variable, before: HandleVariable | None):
        super().__init__()
        self.tensor, self.name, self.hook, self.before = tensor, name, hook, before
        self.writes = tensor.val._writes
        self.removed = False

    def python_type(self):
        return RemovableHandle

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name == "remove":
            return method_of(tx, self, name)
        unsupported("getattr", f"reading {name} of a hook's handle", "It is made behind the graph.")

    def call_method(self, tx, name, args, kwargs):
        if name != "remove" or args or kwargs:
            return super().call_method(tx, name, args, kwargs)
        self.removed = True
        tx.side_effects.oldest_touched = -1
        return ConstantVariable(None)

    def reconstruct(self, cg):
        if self.tensor.val._writes != self.writes:
            raise SkipFrame("a tensor is written to behind the registration of a hook on it")
        if self.before is not None:
            cg(self.before)
            cg.emit("POP_TOP")
        cg.push_callable(lambda: (self.tensor.source.load(cg), cg.load_attr(self.name)))
        cg(self.hook)
        cg.call(1)

    def replay(self, replay):
        handle = replay.value(self)
        if self.removed:
            replay.later(lambda r: r.method(handle, "remove"))
