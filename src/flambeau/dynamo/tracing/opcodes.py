"""Handlers of the normal instructions (:mod:`..bytecode.versions`), by family. A handler returns False when the frame is done."""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import itertools
import operator
import sys

from flambeau.base.symint import sym_not

from ..bytecode.codegen import STACK_ARGUMENT
from ..bytecode.instructions import Lasti
from ..bytecode.versions import NULL_FIRST
from ..config import config
from ..exc import UserRaises, unsupported
from ..higher_order import native_loops
from ..rules import trace_rules
from ..rules.reflect import error_name_of, flags_of, is_a, name_of
from ..variables import operators
from ..variables.base import Lazy, NullVariable, Variable
from ..variables.containers.dicts import DictVariable, each_pair, is_mapping
from ..variables.containers.lists import ListVariable, RangeVariable, SequenceVariable, SliceVariable, TupleVariable
from ..variables.containers.sets import SetVariable
from ..variables.contexts.managers import ContextExit, FunctionModeVariable, NullContextVariable
from ..variables.exceptions import groups
from ..variables.exceptions.exception import ExceptionVariable, ExcInfoVariable, LastiVariable, variable_of
from ..variables.functions import log_calls
from ..variables.functions.builtin import BuiltinVariable
from ..variables.functions.handlers import HANDLERS
from ..variables.functions.python_functions import CellVariable, NestedFunctionVariable, callee
from ..variables.iterators.generators import GeneratorVariable, must_be_closed
from ..variables.iterators.protocol import all_of, is_iterable, pulled
from ..variables.numpy.masked import MaskedVariable, selection
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.instance import ObjectVariable
from ..variables.objects.weak_references import check_callbacks, is_weakly_known
from ..variables.tensors.tensor import TensorVariable
from ..variables.values import text
from ..variables.values.constant import ConstantVariable
from ..variables.values.symbolic import SymbolicVariable, require_element, wrap_number
from . import world

BINARY = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
    "**": operator.pow, "@": operator.matmul, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift,
    ">>": operator.rshift,
    "+=": operator.iadd, "-=": operator.isub, "*=": operator.imul, "/=": operator.itruediv, "//=": operator.ifloordiv,
    "%=": operator.imod, "**=": operator.ipow, "@=": operator.imatmul, "&=": operator.iand, "|=": operator.ior, "^=": operator.ixor,
    "<<=": operator.ilshift, ">>=": operator.irshift,
}  # fmt: skip
BINARY_BY_ARG = [BINARY[symbol] for _, symbol in dis._nb_ops]
COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


SEQUENCE_FLAG, MAPPING_FLAG, MATCH_SELF_FLAG = 1 << 5, 1 << 6, 1 << 22  # Py_TPFLAGS_*


CACHED_PROPERTY = functools.cached_property.__get__.__code__
JUST_DROPPED = frozenset((ConstantVariable, TensorVariable, TupleVariable))  # most values: nothing to close
HAVE_VALUES = frozenset((ObjectVariable, Lazy))
HEADER = ("COPY_FREE_VARS", "MAKE_CELL")  # what a frame starts with


def generator_closes():
    unsupported("generator-close", "a generator is dropped inside try or with", "The interpreter closes it.")


class Opcodes:
    # -- no effect while tracing --
    def RESUME(self, inst):
        pass

    CACHE = PRECALL = COPY_FREE_VARS = EXTENDED_ARG = ASYNC_GEN_WRAP = RESUME

    def NOP(self, inst):  # "while True:" is one
        if self.ip in native_loops.loop_starts(self.code):
            native_loops.try_while(self)

    def RETURN_GENERATOR(self, inst):
        self.stack.append(ConstantVariable(None))  # what the first send() would leave, popped next

    # -- stack --
    def POP_TOP(self, inst):
        self._dropped(self.top())
        self.pop()

    def _finalized(self, v):
        if type(v) in HAVE_VALUES and hasattr(type(v.value), "__del__"):
            unsupported(
                "finalizer",
                f"an object of {name_of(type(v.value))}, which has __del__, is dropped",
                "It may be the last reference.",
            )

    def _dropped(self, v):
        if type(v) not in JUST_DROPPED and must_be_closed(v):
            generator_closes()

    def PUSH_NULL(self, inst):
        self.stack.append(NullVariable())

    def SWAP(self, inst):
        s = self.stack
        s[-1], s[-inst.arg] = s[-inst.arg], s[-1]

    def COPY(self, inst):
        self.stack.append(self.stack[-inst.arg])

    def LOAD_CONST(self, inst):
        v = inst.argval
        if type(v) is Lasti:
            self.stack.append(LastiVariable(v.index + self.output.resumes.origins[self.code][1]))
            return
        if type(v) not in (tuple, frozenset):
            self.stack.append(ConstantVariable(v))
            return
        literals = self.output.objects.literals
        if id(v) not in literals:
            literals[id(v)] = self.wrap_known(v)
        self.stack.append(literals[id(v)])

    # -- locals, cells, globals --
    def LOAD_FAST(self, inst):
        v = self.locals.get(inst.argval)
        if v is not None and type(v) is not Lazy:
            self.stack.append(v)
            return
        if v is None:
            cell = self.cells.get(inst.argval)
            if cell is not None:  # the place holds a cell: since 3.13 this is LOAD_CLOSURE too
                self.stack.append(cell)
                return
            self.raise_user(
                UnboundLocalError(
                    f"cannot access local variable '{inst.argval}' where it is not associated with a value"
                )
            )
        if not inst.argval.startswith(STACK_ARGUMENT):  # those only go back to the stack
            v = self.realize(v)
            self.locals[inst.argval] = v
        self.stack.append(v)

    def STORE_FAST(self, inst):
        old = self.locals.get(inst.argval)
        if old is not None:
            self._dropped(old)
            self._finalized(old)
        value = self.stack.pop()
        if isinstance(value, NullVariable | CellVariable):  # what LOAD_FAST_AND_CLEAR put aside comes back
            self.locals.pop(inst.argval, None)
            if isinstance(value, CellVariable):
                self.cells[inst.argval] = value
        else:
            self.locals[inst.argval] = value
        if self.output.references.calling_references:
            del old
            check_callbacks(self)

    def LOAD_FAST_AND_CLEAR(self, inst):
        """Around a comprehension in its function's frame (PEP 709): the variable of the same name outside is put aside."""
        v = self.cells.pop(inst.argval, None)
        if v is None:
            v = self.locals.pop(inst.argval, None)
        self.stack.append(NullVariable() if v is None else v)

    def DELETE_FAST(self, inst):
        old = self.locals.get(inst.argval)
        if old is not None and not inst.argval.startswith(STACK_ARGUMENT):  # those are on the stack by then
            self._dropped(old)
            self._finalized(old)
            if is_weakly_known(old):
                unsupported(
                    "weak-reference", "an object with weak references is dropped", "It may be the last reference."
                )
        del old
        self.locals.pop(inst.argval, None)
        if self.output.references.calling_references:
            check_callbacks(self)

    def MAKE_CELL(self, inst):
        name = inst.argval
        header = self.parent is None and all(i.name in HEADER for i in self.insts[: inst.index])
        self.cells[name] = CellVariable(self.locals.pop(name, None), root_name=name if header else None)

    def LOAD_CLOSURE(self, inst):
        self.stack.append(self.cells[inst.argval])

    def LOAD_DEREF(self, inst):
        v = self.cells[inst.argval].get(self)
        if v is None:
            self.raise_user(
                NameError(
                    f"cannot access free variable '{inst.argval}' where it is not associated with a value in enclosing scope",
                    name=inst.argval,
                )
            )
        self.stack.append(v)

    def STORE_DEREF(self, inst):
        self.cells[inst.argval].set(self, self.pop())

    def DELETE_DEREF(self, inst):
        self.cells[inst.argval].set(self, None)

    def push_callable(self, v: Variable) -> None:
        """What CALL finds with its NULL beside it."""
        if NULL_FIRST:
            self.stack.append(NullVariable())
        self.push(v)
        if not NULL_FIRST:
            self.stack.append(NullVariable())

    def pop_callable(self, args: list[Variable]) -> tuple[Variable, list[Variable]]:
        """What is called, and the arguments with ``self`` where one was pushed beside it."""
        b, a = self.pop(), self.pop()
        if not NULL_FIRST:
            return (a, args) if isinstance(b, NullVariable) else (a, [b, *args])
        return (b, args) if isinstance(a, NullVariable) else (a, [b, *args])

    def LOAD_GLOBAL(self, inst):
        v = self.load_global(inst.argval)
        self.push_callable(v) if inst.arg & 1 else self.push(v)

    def STORE_GLOBAL(self, inst):
        self.side_effects.store_global(self.globals, inst.argval, self.pop())

    def DELETE_GLOBAL(self, inst):
        self.load_global(inst.argval)
        self.side_effects.store_global(self.globals, inst.argval, None)

    # -- class bodies --
    def _namespace(self) -> dict[str, Variable]:
        if self.namespace is None:
            unsupported("opcode", f"missing: {self.inst.name}", "Names are looked up like this in class bodies only.")
        return self.namespace

    def LOAD_NAME(self, inst):
        found = self._namespace().get(inst.argval)
        self.push(self.load_global(inst.argval) if found is None else found)

    def STORE_NAME(self, inst):
        self._namespace()[inst.argval] = self.pop()

    def DELETE_NAME(self, inst):
        if self._namespace().pop(inst.argval, None) is None:
            self.raise_user(NameError(f"name {inst.argval!r} is not defined", name=inst.argval))

    def LOAD_LOCALS(self, inst):
        self._namespace()
        self.stack.append(NullVariable())  # what looks into it knows it

    def LOAD_CLASSDEREF(self, inst):
        found = self._namespace().get(inst.argval)
        self.LOAD_DEREF(inst) if found is None else self.push(found)

    def LOAD_FROM_DICT_OR_DEREF(self, inst):
        self.pop()
        self.LOAD_CLASSDEREF(inst)

    def LOAD_FROM_DICT_OR_GLOBALS(self, inst):
        self.pop()
        self.LOAD_NAME(inst)

    def SETUP_ANNOTATIONS(self, inst):
        self._namespace().setdefault("__annotations__", self.make_dict({}))

    def LOAD_BUILD_CLASS(self, inst):
        self.push(BuiltinVariable(builtins.__build_class__))

    # -- operators --
    def BINARY_OP(self, inst):
        b, a = self.pop(), self.pop()
        fn = BINARY_BY_ARG[inst.arg]
        self.push(a.updated(self, fn, b) if type(a) is MaskedVariable else operators.binary(self, fn, a, b))

    def COMPARE_OP(self, inst):
        b, a = self.pop(), self.pop()
        self.push(operators.binary(self, COMPARE[inst.argval], a, b))

    def UNARY_NEGATIVE(self, inst):
        self.push(operators.unary(self, operator.neg, self.pop()))

    def UNARY_POSITIVE(self, inst):
        self.push(operators.unary(self, operator.pos, self.pop()))

    def UNARY_INVERT(self, inst):
        self.push(operators.unary(self, operator.invert, self.pop()))

    def TO_BOOL(self, inst):
        self.push(ConstantVariable(self.truth(self.pop())))

    def UNARY_NOT(self, inst):
        self.push(ConstantVariable(not self.truth(self.pop())))

    def IS_OP(self, inst):
        b, a = self.pop(), self.pop()
        self.push(ConstantVariable(operators.identical(self, a, b) != bool(inst.arg)))

    def CONTAINS_OP(self, inst):
        container, item = self.pop(), self.pop()
        r = container.contains(self, item)
        if isinstance(r, SymbolicVariable):
            self.push(wrap_number(sym_not(r.number)) if inst.arg else r)
            return
        self.push(ConstantVariable(self.truth(r) != bool(inst.arg)))

    def BINARY_SUBSCR(self, inst):
        key, v = self.pop(), self.pop()
        masked = selection(self, v, key, self.insts[self.ip : self.ip + 5], BINARY_BY_ARG)
        self.push(v.getitem(self, key) if masked is None else masked)

    def STORE_SUBSCR(self, inst):
        key, target, value = self.pop(), self.pop(), self.pop()
        if type(value) is MaskedVariable:
            value.store(self)
        else:
            target.setitem(self, key, value)

    def _slice(self) -> SliceVariable:
        stop, start = self.pop(), self.pop()
        return SliceVariable([start, stop, ConstantVariable(None)])

    def BINARY_SLICE(self, inst):
        key, v = self._slice(), self.pop()
        self.push(v.getitem(self, key))

    def STORE_SLICE(self, inst):
        key, target, value = self._slice(), self.pop(), self.pop()
        target.setitem(self, key, value)

    def DELETE_SUBSCR(self, inst):
        key, target = self.pop(), self.pop()
        target.delitem(self, key)

    # -- attributes --
    def LOAD_ATTR(self, inst):
        self.push(self.attribute(self.pop(), inst.argval))

    def LOAD_METHOD(self, inst):
        self.push_callable(self.attribute(self.pop(), inst.argval))

    def _super_attr(self, inst) -> Variable:
        obj, cls, make = self.pop(), self.pop(), self.pop()
        plain = make.is_constant() and make.as_constant() is super
        return self.attribute(make.call(self, [cls, obj] if plain or inst.arg & 2 else [], {}), inst.argval)

    def LOAD_SUPER_ATTR(self, inst):
        self.push(self._super_attr(inst))

    def LOAD_SUPER_METHOD(self, inst):
        self.push_callable(self._super_attr(inst))

    def STORE_ATTR(self, inst):
        target, value = self.pop(), self.pop()
        target.setattr(self, inst.argval, value)

    def DELETE_ATTR(self, inst):
        self.pop().delattr(self, inst.argval)

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

    def _called(self, n: int) -> Variable:
        """What is called, of which the n-th value from above is it or its NULL."""
        v = self.top(n)
        return self.top(n + 1) if isinstance(v, NullVariable) else v

    def _shown(self, called: Variable) -> str:
        """A function as the interpreter's errors show it."""
        if not called.hasattr(self, "__qualname__"):
            unsupported("call", f"a call of {called!r} with wrong arguments")
        name, module = called.getattr(self, "__qualname__").as_constant(), called.getattr(self, "__module__")
        module = module.as_constant()
        return f"{name}()" if module in (None, "builtins") else f"{module}.{name}()"

    def LIST_APPEND(self, inst):
        v = self.pop()
        self.top(inst.arg).call_method(self, "append", [v], {})

    def SET_ADD(self, inst):
        v = self.pop()
        self.top(inst.arg).call_method(self, "add", [v], {})

    def MAP_ADD(self, inst):
        v, k = self.pop(), self.pop()
        self.top(inst.arg).setitem(self, k, v)

    # -- unpacking and iteration --
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

    def GET_ITER(self, inst):
        v = self.top()
        if native_loops.try_range(self, v) if isinstance(v, RangeVariable) else native_loops.try_arrays(self, v):
            return
        self.push(self.pop().iter(self))

    def FOR_ITER(self, inst):
        v = self.top().next(self)
        if v is None:
            self.pop()
            self.ip = inst.target
        else:
            self.push(v)

    # -- jumps --
    def JUMP_FORWARD(self, inst):
        self.ip = inst.target
        if self.ip in native_loops.loop_starts(self.code):
            native_loops.try_while(self, again=self.ip <= inst.index)

    JUMP_BACKWARD = JUMP_BACKWARD_NO_INTERRUPT = JUMP_FORWARD

    def _jump_if(self, inst, want):
        if want and self._asserts_tensor():
            self.pop()
            self.ip = inst.target
            return
        if self.truth(self.top()) == want:
            self.ip = inst.target
        self.pop()
        if self.ip in native_loops.loop_starts(self.code):
            native_loops.try_while(self, again=self.ip != inst.index + 1)

    def _asserts_tensor(self) -> bool:
        """Whether the jump is an ``assert`` of a tensor and the graph checks it."""
        after = self.insts[self.ip]
        if after.name != "LOAD_ASSERTION_ERROR" or type(self.top()) is not TensorVariable:
            return False
        if not self.output.shapes.data_symbols():
            return False
        text = self.insts[self.ip + 1]
        said = text.argval if text.name == "LOAD_CONST" else None
        require_element(self, self.top(), said if isinstance(said, str) else "assertion error")
        return True

    def POP_JUMP_IF_TRUE(self, inst):
        self._jump_if(inst, True)

    def POP_JUMP_IF_FALSE(self, inst):
        self._jump_if(inst, False)

    def _jump_if_none(self, inst, want):
        v = self.pop()
        if (v.is_constant() and v.as_constant() is None) == want:
            self.ip = inst.target

    def POP_JUMP_IF_NONE(self, inst):
        self._jump_if_none(inst, True)

    def POP_JUMP_IF_NOT_NONE(self, inst):
        self._jump_if_none(inst, False)

    def JUMP_IF_TRUE_OR_POP(self, inst):
        if self.truth(self.top()):
            self.ip = inst.target
        else:
            self.pop()

    def JUMP_IF_FALSE_OR_POP(self, inst):
        if not self.truth(self.top()):
            self.ip = inst.target
        else:
            self.pop()

    # -- calls --
    def KW_NAMES(self, inst):
        names = inst.argval
        self.kw_names = names if isinstance(names, tuple) else self.code.co_consts[inst.arg]

    def CALL(self, inst):
        names, self.kw_names = self.kw_names, ()
        self._call(inst.arg, names)

    def CALL_KW(self, inst):
        self._call(inst.arg, self.pop().as_constant())

    def _call(self, count: int, names: tuple[str, ...]) -> None:
        values = self.popn(count)
        n = len(values) - len(names)
        fn, args = self.pop_callable(values[:n])
        self.call(fn, args, dict(zip(names, values[n:])))

    def call(self, fn: Variable, args: list[Variable], kwargs: dict[str, Variable]) -> None:
        if config.ignore_logging_functions and callee(fn) & config.ignore_logging_functions:
            self.push(ConstantVariable(None))
        elif config.reorderable_logging_functions and callee(fn) & config.reorderable_logging_functions:
            self.push(log_calls.call_later(self, fn, args, kwargs))
        else:
            self.push(fn.call(self, args, kwargs))

    def CALL_FUNCTION_EX(self, inst):
        kwargs: dict[str, Variable] = {}
        if inst.arg & 1:
            given = self.pop()
            if not is_mapping(self, given):
                text = f"argument after ** must be a mapping, not {given.python_type_name()}"
                self.raise_user(TypeError(f"{self._shown(self._called(2))} {text}"))
            for k, v in each_pair(self, given):
                if not issubclass(k.python_type(), str):
                    unsupported(
                        "call", f"a keyword {k!r}", "What is called says whether it takes keywords that aren't strings."
                    )
                kwargs[k.as_constant()] = v
        v = self.pop()
        if not is_iterable(v):
            text = f"argument after * must be an iterable, not {v.python_type_name()}"
            self.raise_user(TypeError(f"{self._shown(self._called(1))} {text}"))
        fn, args = self.pop_callable(all_of(self, v))
        self.call(fn, args, kwargs)

    def MAKE_FUNCTION(self, inst):
        code, flags = self.pop().as_constant(), inst.arg or 0
        f = NestedFunctionVariable(code, self.globals, code.co_qualname)
        for flag in (8, 4, 2, 1):
            if flags & flag:
                f.set_part(self, flag, self.pop())
        self.push(f)

    def SET_FUNCTION_ATTRIBUTE(self, inst):
        f, value = self.pop(), self.pop()
        f.set_part(self, inst.arg, value)
        self.push(f)

    def RETURN_VALUE(self, inst):
        result = self.top()
        for v in self.locals.values():
            if v is not result:
                self._dropped(v)
        self.result = self.pop()
        return False

    def YIELD_VALUE(self, inst):
        self.yielded, self.suspended = self.pop(), True
        self.stack.append(ConstantVariable(None))  # what the consumer sends
        return False

    def GET_YIELD_FROM_ITER(self, inst):
        self.push(self.pop().iter(self))

    def SEND(self, inst):
        sent = self.pop()
        it = self.top()
        try:
            if isinstance(it, GeneratorVariable):
                v = it.resume(self, sent)
            elif sent.is_constant() and sent.as_constant() is None:
                v = it.pull(self)
            else:
                v = it.getattr(self, "send").call(self, [sent], {})
            returned = it.returned() if v is None else None
        except UserRaises as e:
            if not isinstance(e.exception, StopIteration):
                raise
            returned = variable_of(self, e).getattr(self, "value")
        if returned is None:
            self.push(v)
            return
        self.pop()
        self.stack.append(returned)
        self.ip = inst.target

    # -- match --
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

    # -- imports --
    def IMPORT_NAME(self, inst):
        names, level = self.pop().as_constant(), self.pop().as_constant()
        name = inst.argval
        if level == 0 and name not in sys.modules:
            unsupported(
                "import",
                f"import of {name}",
                "The module is not loaded yet: importing it runs its code.",
                "Import it outside.",
            )
        found = __import__(name, self.globals, None, names or (), level)
        at = found.__name__ if level else name if names else name.partition(".")[0]
        if sys.modules.get(at) is found:  # another module may be put into its place
            self.push(world.dict_name(self, sys.modules, at, "sys.modules"))
        else:
            self.push(self.wrap_known(found))

    def IMPORT_FROM(self, inst):
        try:
            self.push(self.top().getattr(self, inst.argval))
        except UserRaises as e:
            if isinstance(e.exception, AttributeError):
                unsupported(
                    "import", f"import of {inst.argval}, which is not there", "The plain import tells the error."
                )
            raise

    # -- with --
    def BEFORE_WITH(self, inst):
        manager = self.pop()
        if isinstance(manager, ObjectVariable) and trace_rules.is_function_mode_class(manager.cls):
            manager = FunctionModeVariable(manager)
        if isinstance(manager, ObjectVariable):
            for name, what in (("__enter__", ""), ("__exit__", " (missed __exit__ method)")):
                found = manager.class_attr(self, name)  # not bound: a descriptor would notice
                if found is None or found is world.ABSENT:
                    text = f"{error_name_of(manager.cls)!r} object does not support the context manager protocol{what}"
                    self.raise_user(TypeError(text))
            self.stack.append(ContextExit(manager))
            self.push(manager.call_special(self, "__enter__"))
            return
        if self.code is CACHED_PROPERTY and not hasattr(manager, "enter"):
            manager = NullContextVariable(contextlib.nullcontext)  # its lock, which CPython 3.12 does without
        if not hasattr(manager, "enter"):
            unsupported("context-manager", f"with {manager!r}", "This context manager is not traced.")
        result = manager.enter(self)
        self.stack.append(ContextExit(manager))
        self.push(result)

    def WITH_EXCEPT_START(self, inst):
        exc, leave = self.top(), self.top(4)
        cls = ClassVariable(type(exc.exception)) if isinstance(exc, ExceptionVariable) else ConstantVariable(None)
        tb = exc.getattr(self, "__traceback__") if isinstance(exc, ExceptionVariable) else ConstantVariable(None)
        self.push(leave.call(self, [cls, exc, tb], {}))

    # -- exceptions --
    def PUSH_EXC_INFO(self, inst):
        v = self.pop()
        self.handling.append(v)
        self.stack.append(ExcInfoVariable(v))
        self.stack.append(v)

    def POP_EXCEPT(self, inst):
        self.pop().handled = False
        self.handling.pop()

    def handled(self) -> Variable | None:
        """The exception that is being handled here, in this frame or in one that called it."""
        f = self
        while f is not None:
            if f.handling:
                return f.handling[-1]
            f = f.parent
        return None

    def CHECK_EXC_MATCH(self, inst):
        want = self.pop().as_constant()
        exc = self.top()
        if not isinstance(exc, ExceptionVariable):
            unsupported("exception", f"matching {exc!r}")
        for c in want if is_a(want, tuple) else (want,):
            if not (is_a(c, type) and issubclass(c, BaseException)):
                self.raise_user(TypeError("catching classes that do not inherit from BaseException is not allowed"))
        self.push(ConstantVariable(isinstance(exc.exception, want)))

    def LOAD_ASSERTION_ERROR(self, inst):
        self.push(ClassVariable(AssertionError))

    def RAISE_VARARGS(self, inst):
        if inst.arg == 0:
            current = self.handled()
            if current is None:
                self.handles_nothing_outside()
                self.raise_user(RuntimeError("No active exception to reraise"))
            self._raise(current, again=True)
        cause = self.pop() if inst.arg == 2 else None
        v = self._made(self.pop(), "exceptions must derive from BaseException")
        if cause is not None:
            if not (cause.is_constant() and cause.as_constant() is None):
                cause = self._made(cause, "exception causes must derive from BaseException")
            v.setattr(self, "__cause__", cause)
        self._raise(v)

    def _made(self, v: Variable, otherwise: str) -> Variable:
        """What ``raise`` takes: an exception, or a class of exceptions, which is called."""
        if isinstance(v, ClassVariable | BuiltinVariable):
            cls = v.as_constant()
            if not (isinstance(cls, type) and issubclass(cls, BaseException)):
                self.raise_user(TypeError(otherwise))
            v = v.call(self, [], {})
        if v.is_constant() or isinstance(v, ObjectVariable) and not isinstance(v, ExceptionVariable):
            self.raise_user(TypeError(otherwise))
        return v

    def _raise(self, v, again: bool = False):
        if not isinstance(v, ExceptionVariable):
            unsupported("raise", f"raise of {v!r}", "The exception is not made while tracing.")
        if not again:
            v.set_context(self, self.handled())
        # No variable of this frame: that would be in a cycle with the traceback, and all values with it.
        raise UserRaises(v.exception, v, again)

    def RERAISE(self, inst):
        self._raise(self.pop(), again=True)

    def END_ASYNC_FOR(self, inst):
        exc = self.top()
        if not isinstance(exc, ExceptionVariable):
            unsupported("exception", f"matching {exc!r}")
        if not isinstance(exc.exception, StopAsyncIteration):
            self._raise(self.pop(), again=True)
        self.popn(2)

    # -- except* --
    def CHECK_EG_MATCH(self, inst):
        types, exc = self.pop(), self.pop()
        rest, match = groups.match(self, exc, types.as_constant())
        self.stack += [rest, match]
        if isinstance(match, ExceptionVariable):  # it is what is handled in the block
            self.handling[-1] = match
            next(v for v in reversed(self.stack) if isinstance(v, ExcInfoVariable)).exc = match

    def PREP_RERAISE_STAR(self, inst):
        raised, original = self.pop(), self.pop()
        self.push(groups.to_raise(self, original, raised.items(self)))
