"""From a call that no captured variant fits to a new variant: the function the native side calls on a miss."""

from __future__ import annotations

import inspect
import itertools
import json
import logging
import sys
import time
import traceback
import types
import warnings
import weakref
from collections.abc import Callable

from flambeau import _C, _frame
from flambeau.base import debug_folder, logs, upper_levels
from flambeau.base.collector import collecting_later
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.core.keys import AUTOGRAD
from flambeau.fx.tracer import is_fx_tracing

from ..fx.targets import tags_of
from . import utils
from .attempts import compiling, traced
from .bytecode.codegen import assemble, flat_argument_names
from .bytecode.direct import direct_call
from .bytecode.instructions import shown_as, shown_name
from .bytecode.suspension import begin
from .capture_events import LOG_GUARDS, Event, failed_guard, log_variant, metrics
from .config import config
from .exc import (
    BackendCompilerFailed,
    BreakReason,
    FailOnRecompileLimitHit,
    InternalTorchDynamoError,
    RecompileError,
    SkipForGood,
    SkipFrame,
    TorchDynamoException,
    TorchRuntimeError,
    Unsupported,
)
from .graph import plain_frames
from .guards.advice import advice
from .guards.dynamic import Seen
from .resumes import Resumes
from .rules import trace_rules
from .rules.reflect import name_of
from .stances import around_compilation, note_sizes
from .stances import current as current_stance
from .utils import counters, record_compile
from .wrapped_backends import wrapped

__all__ = ["Compiler", "is_compiling", "reset_caches"]

log = logging.getLogger("flambeau._dynamo")
LOG_BREAKS, LOG_RECOMPILES = logs.artifact("graph_breaks", ""), logs.artifact("recompiles", "")
LOG_DYNAMO = logs.artifact("dynamo", "")
LOG_START, LOG_METRICS = logs.artifact("compile_start", ""), logs.artifact("compile_metrics", "")


def is_compiling() -> bool:
    """Whether this thread is inside of a capture or a call of a backend."""
    return _C.tls("compilations") > 0


_codes: dict[int, weakref.ref] = {}  # by identity: equal code objects have caches of their own
_numbers: dict[int, int] = {}  # by identity too: in the order in which code was first seen, for events
_count = itertools.count()


def _inside_a_kernel() -> bool:
    """Whether a handler (a signal's, a finaliser) runs in the middle of an operator: gradients are asked for and none are recorded. What would
    be compiled for that serves no other call."""
    return bool(_C.tls("grad_enabled")) and bool(_C.tls("excluded") & AUTOGRAD)


def remember_code(code: types.CodeType) -> None:
    key = id(code)
    if key not in _codes:
        _numbers[key] = next(_count)
        _codes[key] = weakref.ref(code, lambda _: (_codes.pop(key, None), _numbers.pop(key, None)))


def reset_caches() -> None:
    """Forget every captured variant."""
    for ref in list(_codes.values()):
        code = ref()
        if code is not None:
            _frame.forget(code)


class NothingCaptured(SkipFrame):
    """The frame has no tensor operation: running it plainly is all there is to do, under ``fullgraph`` too."""

    def __init__(self, executed: int):
        super().__init__("no tensor operation was captured")
        self.executed = executed


# So many instructions of a trace in vain count as one more try.
WORTH_ONE = 1_000


def stack_depth() -> int:
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    return depth


class Compiler(_frame.Context):
    """One compile() configuration: native caches are kept for each code object and Compiler. It is owned by the callables made with it."""

    def __init__(
        self,
        backend: Callable,
        name: str = "",
        fullgraph: bool = False,
        dynamic: bool | None = None,
        shapes: dict[str, dict] | None = None,
    ):
        self.backend, self.name = backend, name or getattr(backend, "__name__", type(backend).__name__)
        self.fullgraph, self.dynamic = fullgraph, dynamic
        self.recompile_limit: int | None = None  # instead of the setting
        self.guard_filter: Callable | None = None  # see guard_filters
        self.options: dict = {}  # of compile(options=): those for native loops are read here
        self.shapes = shapes or {}  # by source: what compile(dynamic_shapes=) says of dimensions
        self.listeners: list[Callable[[Event], None]] = []
        self.top_codes: weakref.WeakSet[types.CodeType] = weakref.WeakSet()

    def call_backend(self, gm, examples):
        with compiling(), _C.Guard(clear="saved_hooks"):  # hooks are for what a call saves, not for the tape of a trace
            compiled = wrapped(current_stance().backend or self.backend)(gm, examples)
        if any("collective" in tags_of(n.target) for n in gm.graph.nodes):
            return upper_levels.ask("order of collectives")(gm, compiled)
        return compiled

    @property
    def compiler(self) -> Compiler:
        return self

    def register_code(self, code: types.CodeType, resumes: Resumes) -> None:
        """``code`` is a resume function: its frames are captured like the one it continues."""
        remember_code(code)
        self.top_codes.add(code)
        cache = _frame.cache_for(code, self)
        cache.__dict__["resumes"] = weakref.ref(resumes)
        cache.once = code in resumes.once

    def suspendable(self, func: types.FunctionType, args: tuple, cache):
        """The generator or coroutine of a call, whose code is captured piece by piece; None when it runs plainly."""
        code = func.__code__
        remember_code(code)
        if code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            cache.skip = True
            return None
        if config.disable or current_stance().name != "default":
            return None
        if code not in self.top_codes:
            if trace_rules.skip_frame_reason(func) is not None:
                cache.skip = True
                return None
            if not trace_rules.frame_has_tensors(func, args):
                self._again_later(cache)
                return None
        return begin(self, Resumes.of(cache), func, args)

    def miss(self, func: types.FunctionType, args: tuple, cache) -> bool:
        """No lock is held: threads capture side by side, and two that capture the same call add a variant each."""
        code = func.__code__
        remember_code(code)
        top = code in self.top_codes
        stance = current_stance()
        if config.disable or stance.name == "force_eager" or _inside_a_kernel():
            return False
        if is_fx_tracing():
            if config.error_on_nested_fx_trace:
                raise RuntimeError(
                    "Detected that you are using FX to symbolically trace a dynamo-optimized function. This is not supported at the moment."
                )
            return False
        if stance.name == "fail_on_recompile" and top:
            raise RuntimeError(
                f"detected a recompile of {shown_name(code)} under set_stance('fail_on_recompile'): {failed_guard(cache, func, args)}"
            )
        if stance.first_call_plainly and top and not cache.entries and not cache.__dict__.get("ran_plainly"):
            cache.__dict__["ran_plainly"] = True
            note_sizes(cache.__dict__.setdefault("seen", Seen()), flat_argument_names(code), args)
            return False
        if stance.name != "default" and not stance.first_call_plainly:
            return False
        if not top:
            why = trace_rules.skip_frame_reason(func)
            if why is not None:
                if trace_rules.runs_whole(code):
                    _frame.mark_code(code, _frame.SKIP_RECURSIVE)
                cache.skip = True
                return False
            if not trace_rules.frame_has_tensors(func, args):
                return self._again_later(cache)
        variants = cache.__dict__.get("dropped", 0) if cache.once else len(cache.entries)
        if variants >= self.limit:
            self._limit(func, args, cache)
            return False
        if stack_depth() >= cache.__dict__.get("no_room", sys.maxsize):
            return False
        event = Event(code)
        logs.compilation.id = (_numbers[id(code)], len(cache.entries))
        try:
            with around_compilation(*logs.compilation.id):
                added = self._capture(func, args, cache, event, top)
        except SkipFrame as e:
            added = self._skipped(code, cache, event, top, e)
        except ConstraintViolationError:
            raise
        except (Unsupported, BackendCompilerFailed, TorchRuntimeError):
            if config.suppress_errors and not self.fullgraph:
                log.warning("frame %s runs plainly after an error", shown_name(code), exc_info=True)
                cache.skip = True
                return False
            raise
        except TorchDynamoException:
            raise
        except Exception as e:  # a defect of ours must not take the user's program down
            added = self._defect(code, cache, event, e)
        finally:
            logs.compilation.id = None
        for listener in self.listeners:
            listener(event)
        return added

    def _skipped(self, code, cache, event: Event, top: bool, e: SkipFrame) -> bool:
        """The frame runs plainly. It is an error where the program asks for one graph."""
        event.skipped = str(e)
        counters["frames"]["skipped"] += 1
        LOG_DYNAMO("frame %s (%s:%d) runs plainly: %s", shown_name(code), code.co_filename, code.co_firstlineno, e)
        if self.fullgraph and top and not isinstance(e, NothingCaptured):
            where = traceback.FrameSummary(code.co_filename, code.co_firstlineno, shown_name(code), lookup_line=False)
            raise Unsupported(event.break_reason or BreakReason("skipped-frame", str(e), [where])) from e
        if isinstance(e, SkipForGood):
            cache.skip = True
            return False
        # Eight short traces in vain count as much as some long ones.
        return self._again_later(cache, 1 + e.executed // WORTH_ONE)

    def _defect(self, code, cache, event: Event, e: Exception) -> bool:
        """Capture itself failed: the frame runs plainly, with a warning."""
        what, where = f"{name_of(type(e))}: {e}", f"{shown_name(code)} ({code.co_filename}:{code.co_firstlineno})"
        if isinstance(e, RecursionError) and not self.fullgraph:
            # The program recurses, in its frames below or in what would be traced: run plainly it says so itself.
            cache.__dict__["no_room"] = stack_depth()
            event.skipped = f"no room on the stack to capture it: {e}"
            LOG_DYNAMO("frame %s runs plainly: %s", shown_name(code), event.skipped)
        elif self.fullgraph or config.strict_capture:
            raise InternalTorchDynamoError(f"{what}, while capturing {where}") from e
        else:
            cache.skip = True
            event.skipped = f"internal error: {what}"
            counters["frames"]["internal_error"] += 1
            warnings.warn(
                f"capturing {where} failed inside the compiler with {what}; it runs plainly",
                RuntimeWarning,
                stacklevel=3,
            )
        return False

    @property
    def limit(self) -> int:
        """How many variants of one frame are kept."""
        return config.cache_size_limit if self.recompile_limit is None else self.recompile_limit

    def _again_later(self, cache, worth: int = 1) -> bool:
        """Nothing to capture this time; other arguments may differ, but not for ever. A trace in vain may count more than once."""
        attempts = cache.__dict__["attempts"] = cache.__dict__.get("attempts", 0) + worth
        if attempts >= config.cache_size_limit:
            cache.skip = True
        return False

    def _limit(self, func, args, cache) -> None:
        code = func.__code__
        if utils.recompile_records:  # a profiler wants to hear of every failing guard, so the frame keeps asking
            self._recompiling(code, func, args, cache)
        else:
            cache.skip = True
        failed = failed_guard(cache, func, args)
        text = (
            f"torch._dynamo hit config.recompile_limit ({self.limit})\n"
            f"   function: '{shown_name(code)}' ({code.co_filename}:{code.co_firstlineno})\n"
            f"   last reason: {failed}\n"
            f"   why:         {advice(failed, shown_as(code).line)}\n"
            "TORCH_LOGS=recompiles tells each reason."
        )
        counters["frames"]["recompile_limit"] += 1
        if config.fail_on_recompile_limit_hit or self.fullgraph:
            raise FailOnRecompileLimitHit(BreakReason("recompile-limit", text))
        text += " It runs as ordinary Python from now on."
        if not cache.__dict__.get("warned"):
            cache.__dict__["warned"] = True
            log.warning(text)

    @collecting_later
    def _capture(self, func, args, cache, event: Event, top: bool) -> bool:
        shown = _C.event_begin(4, f"compile {shown_name(func.__code__)}")  # a range in profiles
        try:
            return self._capture_frame(func, args, cache, event, top)
        finally:
            _C.event_end(shown)

    def _capture_frame(self, func, args, cache, event: Event, top: bool) -> bool:
        code = func.__code__
        start = time.perf_counter()
        counters["frames"]["total"] += 1
        LOG_DYNAMO("start tracing %s (%s:%d)", shown_name(code), code.co_filename, code.co_firstlineno)
        LOG_START("%s:%d %s", code.co_filename, code.co_firstlineno, shown_name(code))
        if cache.entries:
            counters["recompiles"]["total"] += 1
            self._recompiling(code, func, args, cache)
        output, tx, reason = traced(self, func, args, cache, event)
        if reason is not None:
            counters["graph_break"][reason.reason] += 1
            LOG_BREAKS("Graph break in %s: %s", shown_name(code), reason.describe())
        module, compile_seconds = output.emission.graph_module, output.emission.compile_seconds
        empty = module is None and reason is None and not output.recorder.inputs
        if empty and not (config.capture_empty_graphs or tx.suspends):
            raise NothingCaptured(output.executed)
        cache.__dict__["seen"] = output.shapes.seen
        plain = getattr(tx, "plain", None)
        tree = output.finish_guards() if plain is None else plain_frames.guards_of(plain, output, args)
        if plain is None:
            final = getattr(tx, "final_code", None) or assemble(
                code, tx.instructions, code.co_name, code.co_firstlineno
            )
            direct = None if tx.needs_eval else direct_call(final)
        else:
            final, direct = plain.code, plain.direct
        event.graph, event.break_reason, event.guards, event.seconds = (
            module,
            reason,
            output.guards.guards() if self.listeners or LOG_GUARDS.on or debug_folder.enabled() else [],
            compile_seconds,
        )
        # Captured code has the frame's globals in it. Other functions of the same code have variants of their own.
        cache.add(tree, final, tx.needs_eval, direct, func.__globals__)
        if cache.once:
            cache.__dict__["dropped"] = cache.__dict__.get("dropped", 0) + 1
        counters["frames"]["ok"] += 1
        log_variant(code, final, event)
        if module is not None:
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += sum(n.op.startswith("call") for n in module.graph.nodes)
        seconds = time.perf_counter() - start - compile_seconds
        record_compile(shown_name(code), seconds, compile_seconds)
        LOG_DYNAMO(
            "captured %s in %.1f ms, compiled in %.1f ms", shown_name(code), seconds * 1e3, compile_seconds * 1e3
        )
        if LOG_METRICS.on:
            LOG_METRICS("%s", json.dumps(metrics(self, code, event, seconds)))
        return True

    def _recompiling(self, code, func, args, cache) -> None:
        if not (LOG_RECOMPILES.on or utils.recompile_records or config.error_on_recompile):
            return
        why = failed_guard(cache, func, args)
        where = f"{shown_name(code)} in {code.co_filename}:{code.co_firstlineno}"
        LOG_RECOMPILES("Recompiling function %s\n    triggered by the failing guard: %s", where, why)
        for record in utils.recompile_records:
            record.append((shown_name(code), f"{code.co_filename}:{code.co_firstlineno}", str(why)))
        if config.error_on_recompile:
            raise RecompileError(f"Recompiling function {where}\n    triggered by the failing guard: {why}")
