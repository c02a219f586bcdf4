"""The frame being captured: where it breaks, suspends or returns, captured code is written."""

from __future__ import annotations

import types

from ..bytecode import resume
from ..bytecode.codegen import STACK_ARGUMENT
from ..exc import BreakReason, RestartAnalysis, SkipForGood, SkipFrame, TraceAgain, Unsupported
from ..graph import tensor_queries
from ..graph.glances import only_glances
from ..graph.plain_frames import plain_at_break, plain_frame
from ..higher_order import recursion
from ..higher_order.element_loops import is_element_loop
from ..variables.base import Variable
from ..variables.iterators.generators import closes_with, generator_closes
from . import builder, trace_logs
from .current_frame import active_frames
from .generator_rebuilding import grad_blocks
from .inline_frame import Inlining

__all__ = ["RootFrame"]


class RootFrame(Inlining):
    """The captured frame. ``break_at``: the visit count of the root instruction to stop in front of, from an earlier attempt."""

    def __init__(
        self,
        output,
        func: types.FunctionType,
        locals,
        cells,
        break_at: int | None,
        reason: BreakReason | None,
        fullgraph: bool,
    ):
        traced = output.resumes.traced.get(func.__code__)
        super().__init__(output, traced or func.__code__, func.__globals__, locals, cells)
        self.suspends = traced is not None
        self.func = func
        self.break_at, self.reason, self.fullgraph = break_at, reason, fullgraph
        self.visits = 0
        self.instructions: list | None = None
        self.needs_eval = False
        self.recursive_calls = 0  # that were inlined
        self.executed_before = 0  # instructions in front of the first of them
        self.recurses = False  # by way of itself
        self.unrolled = False  # elements of an iterator that existed before were taken one by one

    def load_global(self, name: str) -> Variable:
        return builder.global_of_frame(self, name)

    def run(self):
        active_frames().append(self)
        before, self.output.tx = self.output.tx, self
        try:
            if self.break_at is None and not self.suspends:
                recursion.try_native(self)
            while True:
                if self.visits == self.break_at:
                    self.inst = self.insts[self.ip]
                    self.plain = plain_at_break(self)
                    if self.plain is None:
                        resume.emit_break(self, self.inst)
                    return
                self.visits += 1
                if self.suspends and self.insts[self.ip].name in resume.SUSPENSIONS:
                    self.inst = self.insts[self.ip]
                    resume.emit_suspension(self, self.inst)
                    return
                if self.insts[self.ip].name == "RETURN_VALUE":
                    self.inst = self.insts[self.ip]
                    if self.output.recorder.watched:
                        trace_logs.before_instruction(self)
                    self.emit_return()
                    return
                self.step()
                if self.output.references.generator_dropped:
                    generator_closes()
        except Unsupported as e:
            if not e.reason.user_stack:
                e.reason.user_stack = self.user_stack()
            if e.reason.id == "finalizer":  # a frame that is continued elsewhere keeps what it was given
                raise SkipFrame(e.reason.reason) from e
            if e.reason.id == "recursion" and self.recurses:
                raise SkipForGood(e.reason.reason) from e
            if not self.fullgraph and not self.suspends and is_element_loop(self):
                if not self.output.resumes.short_loops:
                    self.output.resumes.short_loops = True
                    raise TraceAgain("short loops over arrays become native too") from e
                raise SkipForGood(f"a loop over elements of arrays breaks at each turn: {e.reason.reason}") from e
            if self.unrolled and self.break_at is None:
                # The loop goes on after the break, so what is left of it has another length each time: one iteration is captured.
                raise RestartAnalysis(None, e.reason, e) from e
            if self.break_at is not None and self.visits >= self.break_at:
                raise SkipFrame(f"the state at the graph break cannot be rebuilt: {e.reason.reason}") from e
            raise RestartAnalysis(self.visits - 1, e.reason, e) from e
        finally:
            active_frames().pop()
            self.output.tx = before

    def release(self) -> None:
        """Let go of the values of this call: what the trace keeps is in cycles, and a generator or an object with ``__del__`` would live on."""
        self.stack.clear()
        self.locals.clear()
        self.cells.clear()
        self.output.release()

    def emit_return(self) -> None:
        if only_glances(self):
            raise SkipForGood("it only looks at arrays, or changes a few of their elements: NumPy is faster")
        self.plain = plain_frame(self)
        if self.plain is not None:
            return
        value = self.stack[-1]
        kept = {n: v for n, v in self.locals.items() if closes_with(v, self) and not n.startswith(STACK_ARGUMENT)}
        self.instructions = self.output.emission.emit(
            self, [value], kept, lambda cg: cg.emit("RETURN_VALUE"), returning=True
        )

    def base_grad_mode(self) -> bool:
        """The mode in which the with blocks on the stack were entered."""
        blocks = grad_blocks(self.stack)
        return bool(blocks[0].previous) if blocks else tensor_queries.grad_enabled()

    def rebuilt_grad_mode(self) -> bool:
        """The mode when they have been entered again."""
        blocks = grad_blocks(self.stack)
        return blocks[-1].mode if blocks else tensor_queries.grad_enabled()
