"""``functools.partial``: called by way of its function, and made again with its arguments."""

from __future__ import annotations

import functools

from ...guards.source import GetAttrSource
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from ..base import Lazy, Variable

__all__ = ["PartialVariable"]


def merges(p: functools.partial) -> bool:
    return functools.partial(p).func is not p


def stays_inside(p: functools.partial) -> bool:
    return not merges(p)


class PartialVariable(Variable):
    def __init__(self, fn: Variable, args: list[Variable], kwargs: dict[str, Variable], source=None):
        super().__init__(source)
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.attributes: dict[str, Variable] = {}  # of one made while tracing
        self._keywords: Variable | None = None  # ``keywords``, where somebody has asked for it
        self.value: functools.partial | None = None  # the one that existed before

    def python_type(self):
        return functools.partial

    def is_merged(self, tx) -> bool:
        """Whether a partial of this one is one of its function: where it has no attributes of its own. Asked of functools, as to look at
        the attributes would make a dict of them."""
        if self.value is not None:
            merged = merges(self.value)
            if self.source is not None:
                tx.output.guard(self.source, "CALL", merges if merged else stays_inside)
            return merged
        return self.source is None and not self.attributes

    def setattr(self, tx, name, value):
        if self.source is not None or hasattr(functools.partial, name):
            super().setattr(tx, name, value)
        self.attributes[name] = value

    def call(self, tx, args, kwargs):
        real = [a.real(tx) if isinstance(a, Lazy) else a for a in self.args]
        kw = {k: v.real(tx) if isinstance(v, Lazy) else v for k, v in self.keywords(tx).items()}
        return self.fn.call(tx, [*real, *args], {**kw, **kwargs})

    def keywords(self, tx) -> dict[str, Variable]:
        known = self._keywords
        if known is None and self.value is not None:
            known = tx.output.objects.by_id.get(id(self.value.keywords))
        return self.kwargs if known is None else {k.as_constant(): v for k, v in known.unwrap().pairs(tx)}

    def getattr(self, tx, name):
        if name == "func":
            return self.fn
        if name == "args":
            return tx.make_tuple(self.args)
        if name == "keywords":
            if self._keywords is None and self.value is not None and self.source is not None:
                self._keywords = tx.wrap(self.value.keywords, GetAttrSource(self.source, name))
            elif self._keywords is None:
                self._keywords = tx.make_dict(self.kwargs)
            return self._keywords
        if name in self.attributes:
            return self.attributes[name]
        return super().getattr(tx, name)

    def hasattr(self, tx, name):
        if hasattr(functools.partial(int), name) or name in self.attributes:
            return True  # of every partial; no attribute of the class can be deleted
        if self.source is None:
            return False
        return super().hasattr(tx, name)

    def as_proxy(self):
        return functools.partial(
            self.fn.as_proxy(), *[a.as_proxy() for a in self.args], **{k: v.as_proxy() for k, v in self.kwargs.items()}
        )

    def reconstruct(self, cg):
        keywords = self.kwargs if self._keywords is None else self.keywords(current())

        def push():
            cg(self.fn)
            cg.all(self.args)
            cg.all(keywords.values())

        cg.push_callable(lambda: cg.load_const(functools.partial))
        push()
        cg.call(1 + len(self.args) + len(keywords), tuple(keywords))
        for k, v in self.attributes.items():
            cg.emit("COPY", 1)
            cg(v)
            cg.emit("SWAP", 2)
            cg.emit("STORE_ATTR", k)


@exactly(functools.partial)
def _(tx, value, source):
    pin(tx, source, "TYPE_MATCH", functools.partial)
    fn = tx.wrap(value.func, GetAttrSource(source, "func"))
    args = tx.wrap(value.args, GetAttrSource(source, "args"))
    kwargs = tx.wrap(value.keywords, GetAttrSource(source, "keywords"))
    out = PartialVariable(fn, args.items(tx), {k.as_constant(): v for k, v in kwargs.pairs(tx)}, source)
    out.value = value
    return out
