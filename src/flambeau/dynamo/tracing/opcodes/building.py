"""Instructions that make containers and strings, and that take containers apart."""

from __future__ import annotations

import itertools

from ...variables.base import Variable
from ...variables.containers.dicts import DictVariable, each_pair, is_mapping
from ...variables.containers.lists import ListVariable
from ...variables.containers.sequences import SequenceVariable, TupleVariable
from ...variables.containers.sets import SetVariable
from ...variables.containers.slices import SliceVariable
from ...variables.functions import log_calls
from ...variables.iterators.protocol import all_of, is_iterable, pulled
from ...variables.values import text
from ...variables.values.constant import ConstantVariable


class Building:
    # -- building --
    def BUILD_TUPLE(self, inst):
        self.push(TupleVariable(self.popn(inst.arg)))

    def BUILD_LIST(self, inst):
        self.push(ListVariable(self.popn(inst.arg)))

    def BUILD_SET(self, inst):
        self.push(SetVariable(self.popn(inst.arg)))

    def BUILD_SLICE(self, inst):
        parts = self.popn(inst.arg)
        self.push(SliceVariable(parts if len(parts) == 3 else [*parts, ConstantVariable(None)]))

    def BUILD_MAP(self, inst):
        flat = self.popn(2 * inst.arg)
        d = DictVariable()
        for k, v in zip(flat[::2], flat[1::2]):
            d.setitem(self, k, v)
        self.push(d)

    def BUILD_CONST_KEY_MAP(self, inst):
        keys = self.pop().as_constant()
        values = self.popn(inst.arg)
        d = DictVariable()
        for k, v in zip(keys, values):
            d.setitem(self, self.wrap_known(k), v)
        self.push(d)

    def BUILD_STRING(self, inst):
        parts = [p.unwrap() for p in self.popn(inst.arg)]
        if any(isinstance(p, log_calls.DeferredText) for p in parts):
            self.push(log_calls.DeferredText.joined(parts))
        else:
            self.push(ConstantVariable("".join(p.as_constant() for p in parts)))

    def FORMAT_VALUE(self, inst):
        spec = self.pop().as_constant() if inst.arg & 4 else ""
        self._format((None, str, repr, ascii)[inst.arg & 3], spec)

    def CONVERT_VALUE(self, inst):
        self._format((None, str, repr, ascii)[inst.arg])

    def FORMAT_SIMPLE(self, inst):
        self._format(None)

    def FORMAT_WITH_SPEC(self, inst):
        self._format(None, self.pop().as_constant())

    def _format(self, conversion, spec: str = "") -> None:
        self.push(text.formatted(self, self.pop(), conversion, spec))

    def LIST_TO_TUPLE(self, inst):
        self.push(TupleVariable(self.pop().items(self)))

    def LIST_EXTEND(self, inst):
        v = self.pop()
        if not is_iterable(v):
            self.raise_user(TypeError(f"Value after * must be an iterable, not {v.python_type_name()}"))
        self.top(inst.arg).call_method(self, "extend", [v], {})

    def SET_UPDATE(self, inst):
        v = self.pop()
        self.top(inst.arg).call_method(self, "update", [v], {})

    def DICT_UPDATE(self, inst):
        v = self.pop()
        if not is_mapping(self, v):
            self.raise_user(TypeError(f"{v.python_type_name()!r} object is not a mapping"))
        self.top(inst.arg).call_method(self, "update", [v], {})

    def DICT_MERGE(self, inst):
        v, target = self.pop(), self.top(inst.arg)
        called = self._called(inst.arg + 2)
        if not is_mapping(self, v):
            text = f"argument after ** must be a mapping, not {v.python_type_name()}"
            self.raise_user(TypeError(f"{self._shown(called)} {text}"))
        for k, x in each_pair(self, v):
            if target.contains(self, k).value:
                if not issubclass(k.python_type(), str):
                    self.raise_user(TypeError("keywords must be strings"))
                text = f"got multiple values for keyword argument {k.as_constant()!r}"
                self.raise_user(TypeError(f"{self._shown(called)} {text}"))
            target.setitem(self, k, x)

    def LIST_APPEND(self, inst):
        v = self.pop()
        self.top(inst.arg).call_method(self, "append", [v], {})

    def SET_ADD(self, inst):
        v = self.pop()
        self.top(inst.arg).call_method(self, "add", [v], {})

    def MAP_ADD(self, inst):
        v, k = self.pop(), self.pop()
        self.top(inst.arg).setitem(self, k, v)

    # -- unpacking --
    def UNPACK_SEQUENCE(self, inst):
        v, n = self.pop(), inst.arg
        if isinstance(v, SequenceVariable) and v.python_type() in (list, tuple):
            items = v.items(self)
        else:  # one more than it needs tells that there are too many
            items = [*itertools.islice(pulled(self, self._unpacked(v)), n + 1)]
        if len(items) < n:
            self.raise_user(ValueError(f"not enough values to unpack (expected {n}, got {len(items)})"))
        if len(items) > n:
            self.raise_user(ValueError(f"too many values to unpack (expected {n})"))
        self.stack.extend(reversed(items))

    def _unpacked(self, v: Variable) -> Variable:
        if not is_iterable(v):
            self.raise_user(TypeError(f"cannot unpack non-iterable {v.python_type_name()} object"))
        return v.iter(self)

    def UNPACK_EX(self, inst):
        before, after = inst.arg & 0xFF, inst.arg >> 8
        it = self._unpacked(self.pop())
        items = [*itertools.islice(pulled(self, it), before)]
        if len(items) == before:
            items += all_of(self, it)  # which asks the iterator for its iterator
        if len(items) < before + after:
            text = f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
            self.raise_user(ValueError(text))
        rest = items[before : len(items) - after]
        out = [*items[:before], ListVariable(rest), *items[len(items) - after :]]
        self.stack.extend(reversed(out))
