"""Calls of the functions in ``torch._dynamo.config.reorderable_logging_functions``: they return nothing that the program reads, so captured
code makes them behind the graph, in their order, with the tensors that they were given and texts of tensors."""

from __future__ import annotations

import types

from ...exc import SkipFrame, unsupported
from ..base import Variable
from ..values.constant import ConstantVariable

__all__ = ["CallBehind", "DeferredText", "call_later"]

_FORMATS = {None: "{}", str: "{!s}", repr: "{!r}", ascii: "{!a}"}


def call_later(tx, fn: Variable, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
    """A call that captured code makes behind the graph; its result is None to the program. Breaks the graph for other arguments than tensors,
    constants and texts of them."""
    given = [v.unwrap() for v in (*args, *kwargs.values())]
    for v in given:
        if not (v.is_tensor or v.can_constant() or isinstance(v, DeferredText)):
            unsupported(
                "reordered-log",
                f"a reorderable logging function is given {v!r}",
                "Only tensors, constants and texts of them are as they were when the call is made behind the graph.",
            )
    if isinstance(getattr(fn, "value", None), types.FunctionType):
        tx.root.needs_eval = True  # what it calls is captured, as it is behind a break
    tx.side_effects.add_call(CallBehind(fn, args, kwargs))
    return ConstantVariable(None)


def tensors_in(v: Variable) -> list[Variable]:
    v = v.unwrap()
    return [t for p in v.values for t in tensors_in(p)] if isinstance(v, DeferredText) else [v] if v.is_tensor else []


class CallBehind(Variable):
    """A call that captured code makes behind the graph."""

    def __init__(self, fn: Variable, args: list[Variable], kwargs: dict[str, Variable]):
        super().__init__()
        self.fn, self.args, self.kwargs = fn, list(args), dict(kwargs)
        tensors = [t for v in (*args, *kwargs.values()) for t in tensors_in(v)]
        self.read = [(t, t.val._writes) for t in tensors]

    def reconstruct(self, cg):
        if any(t.val._writes != writes for t, writes in self.read):
            raise SkipFrame("a tensor is written to behind a call of a reorderable logging function that is given it")
        cg.push_callable(lambda: cg(self.fn))
        cg.all(self.args)
        cg.all(self.kwargs.values())
        cg.call(len(self.args) + len(self.kwargs), tuple(self.kwargs))

    def replay(self, replay):
        replay.value(self)


class DeferredText(Variable):
    """A text that tells of tensors: ``template.format(*values)``, which captured code makes behind the graph."""

    def __init__(self, template: str, values: list[Variable]):
        super().__init__()
        self.template, self.values = template, values

    @classmethod
    def of(cls, v: Variable, conversion, spec: str) -> DeferredText:
        """The text of one replacement field."""
        form = _FORMATS[conversion]
        return cls(form[:-1] + (f":{spec}" if spec else "") + "}", [v])

    @classmethod
    def joined(cls, parts: list[Variable]) -> DeferredText:
        """Texts, one behind the other."""
        template, values = "", []
        for p in parts:
            if isinstance(p, DeferredText):
                template += p.template
                values += p.values
            else:
                template += p.as_constant().replace("{", "{{").replace("}", "}}")
        return cls(template, values)

    def python_type(self):
        return str

    def reconstruct(self, cg):
        cg.push_callable(lambda: (cg.load_const(self.template), cg.load_attr("format")))
        cg.all(self.values)
        cg.call(len(self.values))
