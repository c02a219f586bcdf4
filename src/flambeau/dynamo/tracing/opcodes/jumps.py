"""Instructions of control flow: iteration, jumps, return and yield."""

from __future__ import annotations

from ...exc import UserRaises
from ...higher_order import native_loops
from ...higher_order.comprehensions import try_comprehension
from ...higher_order.element_loops import leave_data_loop
from ...higher_order.long_loops import break_long_loop, look_at_turns
from ...variables.containers.ranges import RangeVariable
from ...variables.exceptions.exception import variable_of
from ...variables.iterators.generators import GeneratorVariable
from ...variables.tensors.tensor import TensorVariable
from ...variables.values.constant import ConstantVariable
from ...variables.values.symbolic import require_element


class Jumps:
    # -- iteration --
    def GET_ITER(self, inst):
        v = self.top()
        if native_loops.try_range(self, v) if isinstance(v, RangeVariable) else native_loops.try_arrays(self, v):
            return
        self.push(self.pop().iter(self))

    def FOR_ITER(self, inst):
        if try_comprehension(self, inst):
            return
        break_long_loop(self, inst.index)
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
        elif self.ip < inst.index:
            if self.parent is None:
                leave_data_loop(self, self.ip)
            look_at_turns(self, self.ip)

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
            native_loops.try_while(self, again=self.ip <= inst.index)

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

    # -- the ends of a frame --
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
