"""A frame traced until it is whole or ends in a break: each attempt starts again, with what the one before has learned."""

from __future__ import annotations

import copy
import sys
import types
from typing import Any

from flambeau import _C

from .bytecode.codegen import flat_argument_names
from .capture_events import Event
from .config import config
from .exc import (
    BreakReason,
    RestartAnalysis,
    SkipFrame,
    TorchRuntimeError,
    TraceAgain,
    Unsupported,
    UserError,
    UserErrorType,
)
from .graph import glances, tensor_queries
from .graph.output_graph import OutputGraph
from .guards.dynamic import Seen
from .guards.source import CellSource, ClosureCellSource, LocalSource
from .modes.ambient import ActiveModes
from .numpy import numpy_bridge
from .resumes import Resumes
from .rules import trace_rules
from .tracing.root_frame import RootFrame
from .variables.base import Lazy
from .variables.functions.cells import CellVariable

__all__ = ["compiling", "traced"]

MAX_RESTARTS = 20


def compiling() -> _C.Guard:
    """The thread is compiling. The interpreter itself enters and leaves, so no signal's exception comes between."""
    return _C.Guard(push="compilations")


def traced(compiler, func, args, cache, event: Event) -> tuple[OutputGraph, Any, BreakReason | None]:
    """(what the trace recorded, its frame, the break that ends it). After a break it is traced again from the start, up to there."""
    grad = _C.tls("grad_enabled")
    seen = cache.__dict__.setdefault("seen", Seen())  # what the values of the frame were when it was captured
    resumes = Resumes.of(cache)
    break_at: int | None = None
    reason: BreakReason | None = None
    unroll = whole = True
    modes = ActiveModes()
    outer = sys.exc_info()[1]  # what a caller handles
    has_tensors = trace_rules.frame_has_tensors(func, args)
    restarts = 0
    while restarts < MAX_RESTARTS:
        restarts += 1
        output = OutputGraph(compiler, func.__code__, func.__globals__, copy.deepcopy(seen))
        output.resumes = resumes
        output.recorder.root.carries = any(type(a) is numpy_bridge.Carried for a in args)
        output.of_numpy = all(map(glances.is_plain_argument, args))
        output.given = dict(zip(func.__code__.co_varnames, args)) if output.of_numpy else {}
        output.of_few = output.of_numpy and all(map(glances.is_small_argument, args))
        output.unroll = unroll
        output.modes = modes
        output.outer_exception = outer
        tx = root_frame(output, func, args, break_at, reason, compiler.fullgraph)
        output.whole = compiler.fullgraph or whole and not tx.suspends
        if not (compiler.fullgraph or tx.suspends or has_tensors):
            output.most_instructions = min(output.most_instructions, config.max_traced_instructions_without_tensors)
        try:
            with compiling(), modes.off():
                try:
                    modes.enter(tx)
                    tx.run()
                finally:
                    output.blocks.leave_regions()
            return output, tx, reason
        except TraceAgain:
            restarts -= 1  # so often as there are lazy layers
        except (RestartAnalysis, SkipFrame) as e:
            if (output.objects.made_classes or output.objects.enumerations) and not compiler.fullgraph:
                # Behind a break a class and its objects would have to be made in the program's order.
                whole = False
                break_at = reason = None
                continue
            if output.shapes.numpy_integers:
                seen.known_integers |= output.shapes.numpy_integers
                break_at = reason = None
                continue
            if isinstance(e, SkipFrame):
                raise
            event.break_reason = e.reason
            if compiler.fullgraph or output.blocks.breaks_are_errors():
                if e.reason.id == "fake-tensor":
                    raise TorchRuntimeError(e.reason.describe()) from e.error.__context__
                if e.reason.id == "data-dependent-guard":
                    raise UserError(UserErrorType.ANTI_PATTERN, e.reason.describe()) from e.error.__context__
                raise Unsupported(e.reason) from (e.error if config.verbose else None)
            if e.visit is None:
                unroll = False
                continue
            if break_at is not None and e.visit >= break_at:
                raise SkipFrame(f"tracing is not deterministic: {e.reason.reason}") from e
            break_at, reason = e.visit, e.reason
        finally:
            output.blocks.leave_regions()
            tensor_queries.set_grad_enabled(bool(grad))
            tx.release()
    raise SkipFrame("too many restarts")


def root_frame(output: OutputGraph, func: types.FunctionType, args: tuple, break_at, reason, fullgraph) -> RootFrame:
    code = func.__code__
    locals = {n: Lazy(v, LocalSource(n, i)) for i, (n, v) in enumerate(zip(flat_argument_names(code), args))}
    cells = {}
    for i, (name, cell) in enumerate(zip(code.co_freevars, func.__closure__ or ())):
        source = ClosureCellSource(i, name)
        try:
            contents = Lazy(cell.cell_contents, CellSource(source))
        except ValueError:
            contents = None
        c = CellVariable(contents, None, root_name=name)
        output.objects.cells[id(cell)] = c
        output.objects.keep.append(cell)
        cells[name] = c
    return RootFrame(output, func, locals, cells, break_at, reason, fullgraph)
