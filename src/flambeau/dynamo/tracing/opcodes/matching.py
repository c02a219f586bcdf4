"""Instructions of the ``match`` statement."""

from __future__ import annotations

from ...exc import UserRaises, unsupported
from ...rules.reflect import flags_of, is_a, name_of
from ...variables.containers.dicts import DictVariable
from ...variables.containers.sequences import TupleVariable
from ...variables.functions.handlers import HANDLERS
from ...variables.values.constant import ConstantVariable

SEQUENCE_FLAG, MAPPING_FLAG, MATCH_SELF_FLAG = 1 << 5, 1 << 6, 1 << 22  # Py_TPFLAGS_*


class Matching:
    def GET_LEN(self, inst):
        self.stack.append(ConstantVariable(self.top().length(self)))

    def MATCH_SEQUENCE(self, inst):
        self.stack.append(ConstantVariable(bool(flags_of(self.top().python_type()) & SEQUENCE_FLAG)))

    def MATCH_MAPPING(self, inst):
        self.stack.append(ConstantVariable(bool(flags_of(self.top().python_type()) & MAPPING_FLAG)))

    def MATCH_KEYS(self, inst):
        keys, subject = self.top().items(self), self.top(2)
        if not isinstance(subject, DictVariable):
            unsupported("match", f"matching the keys of {subject!r}")
        found = []
        for i, k in enumerate(keys):
            if k.can_constant() and any(o.can_constant() and o.as_constant() == k.as_constant() for o in keys[:i]):
                self.raise_user(ValueError(f"mapping pattern checks duplicate key ({k.as_constant()!r})"))
            found.append(subject.getitem(self, k) if subject.contains(self, k).value else None)
        self.push(ConstantVariable(None) if any(v is None for v in found) else TupleVariable(found))

    def MATCH_CLASS(self, inst):
        names, cls, subject = self.pop(), self.pop(), self.pop()
        kind = cls.as_constant()
        if not is_a(kind, type):
            self.raise_user(TypeError("called match pattern must be a class"))
        if not HANDLERS[isinstance](self, [subject, cls], {}).value:
            self.push(ConstantVariable(None))
            return
        out, wanted = [], []
        if inst.arg:
            args, itself = (), False
            if cls.hasattr(self, "__match_args__"):
                args = cls.getattr(self, "__match_args__").as_constant()
                if type(args) is not tuple:
                    text = f"{name_of(kind)}.__match_args__ must be a tuple (got {name_of(type(args))})"
                    self.raise_user(TypeError(text))
            else:
                itself = bool(flags_of(kind) & MATCH_SELF_FLAG)
            allowed = 1 if itself else len(args)
            if inst.arg > allowed:
                plural = "s" * (allowed != 1)
                text = f"{name_of(kind)}() accepts {allowed} positional sub-pattern{plural} ({inst.arg} given)"
                self.raise_user(TypeError(text))
            if itself:
                out.append(subject)
            for name in args[: inst.arg]:
                if type(name) is not str:
                    text = f"__match_args__ elements must be strings (got {name_of(type(name))})"
                    self.raise_user(TypeError(text))
            wanted += args[: inst.arg]
        wanted += names.as_constant()
        try:
            for i, name in enumerate(wanted):
                if name in wanted[:i]:
                    self.raise_user(TypeError(f"{name_of(kind)}() got multiple sub-patterns for attribute {name!r}"))
                out.append(subject.getattr(self, name))
        except UserRaises as e:
            if not isinstance(e.exception, AttributeError):
                raise
            self.push(ConstantVariable(None))
            return
        self.push(TupleVariable(out))
