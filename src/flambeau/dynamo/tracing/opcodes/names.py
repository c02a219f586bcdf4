"""Instructions of the stack, of local and global variables, cells, class bodies and imports."""

from __future__ import annotations

import builtins
import sys

from ...bytecode.codegen import STACK_ARGUMENT
from ...bytecode.instructions import Lasti
from ...exc import UserRaises, unsupported
from ...higher_order import native_loops
from ...rules.reflect import name_of
from ...variables.base import Lazy, NullVariable, Variable
from ...variables.containers.sequences import TupleVariable
from ...variables.exceptions.exception import LastiVariable
from ...variables.functions.builtin import BuiltinVariable
from ...variables.functions.cells import CellVariable
from ...variables.iterators.generators import generator_closes, must_be_closed
from ...variables.objects.instance import ObjectVariable
from ...variables.objects.weak_references import check_callbacks, is_weakly_known
from ...variables.tensors.tensor import TensorVariable
from ...variables.values.constant import ConstantVariable
from .. import world

JUST_DROPPED = frozenset((ConstantVariable, TensorVariable, TupleVariable))  # most values: nothing to close
HAVE_VALUES = frozenset((ObjectVariable, Lazy))
HEADER = ("COPY_FREE_VARS", "MAKE_CELL")  # what a frame starts with


class Names:
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
            self._unbound(inst.argval)
        if not inst.argval.startswith(STACK_ARGUMENT):  # those only go back to the stack
            v = self.realize(v)
            self.locals[inst.argval] = v
        self.stack.append(v)

    def _unbound(self, name: str) -> None:
        """The name has no value here; the error says whose it is."""
        said = "where it is not associated with a value"
        if name in self.code.co_freevars:
            text = f"cannot access free variable '{name}' {said} in enclosing scope"
            self.raise_user(NameError(text, name=name))
        self.raise_user(UnboundLocalError(f"cannot access local variable '{name}' {said}"))

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
        # Those are on the stack by then.
        if not inst.argval.startswith(STACK_ARGUMENT):
            if old is None:
                self._unbound(inst.argval)
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
            self._unbound(inst.argval)
        self.stack.append(v)

    def STORE_DEREF(self, inst):
        self.cells[inst.argval].set(self, self.pop())

    def DELETE_DEREF(self, inst):
        cell = self.cells[inst.argval]
        if cell.contents is None:
            self._unbound(inst.argval)
        cell.set(self, None)

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
