"""Calls that are traced into: the frame of the function called, and when a recursion isn't traced."""

from __future__ import annotations

import inspect
import weakref

from ..bytecode.instructions import shown_name
from ..exc import unsupported
from ..higher_order import comprehensions, recursion
from ..rules import trace_rules
from ..variables.base import Variable
from ..variables.functions.binding import bind
from ..variables.functions.python_functions import FunctionVariable, UserFunctionVariable
from ..variables.iterators.generators import GeneratorVariable
from ..variables.objects.weak_references import check_callbacks
from . import builder, trace_logs
from .executor import Frame
from .generator_frame import GeneratorFrame
from .generator_rebuilding import rebuild_generator

__all__ = ["InlineFrame", "Inlining"]

MAX_INLINE_DEPTH = 120
# A recursion that branches is inlined call by call, and their number may double with each level.
MAX_RECURSIVE_CALLS = 1000
# Instructions within recursive calls: what takes more is a sort, a search or a walk, whose every step would be part of the graph.
MAX_RECURSIVE_STEPS = 50_000
# Recursive calls of a function that has met no tensor, array or varying number: there is nothing to capture in it.
MAX_PLAIN_CALLS = 16


class Inlining(Frame):
    """A frame that inlines what it calls."""

    def inline(self, f: FunctionVariable, args: list[Variable], kwargs: dict[str, Variable]) -> Variable:
        depth, p, recursive = 0, self, False
        while p is not None:
            recursive = recursive or p.code is f.code
            depth, root, p = depth + 1, p, p.parent
        if depth > MAX_INLINE_DEPTH:
            unsupported("inline-depth", f"more than {MAX_INLINE_DEPTH} nested calls", "Deep recursion is not traced.")
        if recursive:
            if not root.recursive_calls:
                root.executed_before = self.output.executed
            root.recursive_calls += 1
            root.recurses |= root.code is f.code
            self.refuse_long_recursion(root, f)
        if isinstance(f, UserFunctionVariable):
            decision = trace_rules.inline_reason(f.fn)
            if not decision.inlined:
                unsupported(
                    "skipped-function",
                    f"call to skipped function {f.name}",
                    f"Not traced: {decision.why}.",
                    "torch._dynamo.allow_in_graph puts it in the graph as it is.",
                )
        code = f.code
        if code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
            unsupported("async", f"call to async function {f.name}", "Coroutines are not traced.")
        locals = bind(self, f, args, kwargs)
        if self.output.recorder.watched:
            trace_logs.called(self, f"inlined call {shown_name(code)}")
        frame = self.frame_of(f, locals)
        if code.co_flags & inspect.CO_GENERATOR:
            return comprehensions.try_generator(self, frame) or GeneratorVariable(frame)
        if not recursive:
            recursion.try_native(frame)
        result = frame.run()
        frame.locals.clear()  # the frame may be in cycles; what it alone held is dropped now
        if self.output.references.calling_references:
            check_callbacks(self, result)
        return result

    def refuse_long_recursion(self, root: Frame, f: FunctionVariable) -> None:
        """Unsupported for a recursion that would take long to trace, or in which nothing can be captured."""
        why = f"{f.name} is inlined call by call."
        if root.recursive_calls > MAX_RECURSIVE_CALLS:
            unsupported("recursion", f"more than {MAX_RECURSIVE_CALLS} recursive calls", why)
        if self.output.executed - root.executed_before > MAX_RECURSIVE_STEPS:
            unsupported("recursion", f"more than {MAX_RECURSIVE_STEPS} instructions in recursive calls", why)
        plain = root.recurses and not root.fullgraph and not self.output.recorder.inputs
        if plain and root.recursive_calls > MAX_PLAIN_CALLS and self.output.recorder.first_call is None:
            unsupported("recursion", "a recursive function that computes nothing with tensors or arrays", why)

    def frame_of(self, f: FunctionVariable, locals: dict[str, Variable]) -> InlineFrame:
        """A frame of ``f``, called from here."""
        cells = dict(zip(f.code.co_freevars, f.closure(self)))
        return InlineFrame(self, f, f.code, f.globals, locals, cells)


class InlineFrame(Inlining, GeneratorFrame):
    def __init__(self, parent: Frame, function: FunctionVariable, code, globals, locals, cells):
        super().__init__(parent.output, code, globals, locals, cells)
        self.parent = parent
        self.function = function
        self.output.references.inlined.append(weakref.ref(self))

    def load_global(self, name: str) -> Variable:
        return builder.global_of_dict(self, self.globals, name)

    def reconstruct_generator(self, cg) -> None:
        """Push a generator that is where this frame is."""
        rebuild_generator(self, cg)
