"""Graph breaks and the errors of the compiler. Three families that never mix: the user's error, a graph break, a defect of ours."""

from __future__ import annotations

import enum
import traceback
import types

from ..base.records import made_by, slotted
from .rules.reflect import name_of

__all__ = [
    "AccuracyError",
    "BackendCompilerFailed",
    "BreakReason",
    "FailOnRecompileLimitHit",
    "ForbiddenCall",
    "InternalTorchDynamoError",
    "RecompileError",
    "RestartAnalysis",
    "TraceAgain",
    "SkipFrame",
    "TorchDynamoException",
    "TorchRuntimeError",
    "Unsupported",
    "UserError",
    "UserErrorType",
    "UserRaises",
    "unsupported",
]


@slotted(frozen=False)
class BreakReason:
    """Why capture stopped. ``id`` is stable, ``reason`` the text, ``user_stack`` innermost last, ``why`` and ``hint`` for the reader.
    ``headline``: the reason in the words of the program, where the text is PyTorch's and names what only capture knows."""

    id: str
    reason: str
    user_stack: list[traceback.FrameSummary] = made_by(list)
    why: str = ""
    hint: str = ""
    graph_break: bool = True
    headline: str = ""

    def in_short(self) -> str:
        """One line for a reader of the program, a sentence."""
        short = self.headline or self.reason.splitlines()[0]
        return short if short.endswith((".", "!", "?")) else f"{short}."

    def describe(self) -> str:
        lines = [self.headline or self.reason, f"  [{self.id}]"]
        if self.why and self.why != self.headline:
            lines.append(f"  Why: {self.why}")
        if self.hint:
            lines.append(f"  Hint: {self.hint}")
        if self.headline and self.headline != self.reason:
            lines.append(f"  In capture's words: {self.reason}")
        if self.user_stack:
            lines.append("\nfrom user code:")
            lines.extend(s.rstrip("\n") for s in traceback.format_list(self.user_stack))
        return "\n".join(lines)


class TorchDynamoException(RuntimeError):
    """Base of everything capture raises."""


class AccuracyError(RuntimeError):
    """Compiled code gave something else than plain code."""


class Unsupported(TorchDynamoException):
    """A construct that cannot be captured. Under ``fullgraph=True`` the user sees it, otherwise it becomes a graph break."""

    def __init__(self, reason: BreakReason):
        super().__init__(reason.reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason.describe()


def tells_without_user_code(e: BaseException) -> bool:
    """Whether its text is made by the interpreter alone."""
    return isinstance(type(e).__str__, types.WrapperDescriptorType) and all(
        type(a) in (str, bytes, int, float, bool, type(None)) for a in e.args
    )


class FailOnRecompileLimitHit(Unsupported):
    """A frame would be compiled more often than ``config.recompile_limit`` says, under ``fullgraph=True`` or
    ``config.fail_on_recompile_limit_hit``."""


class UserRaises(Unsupported):
    """The traced code raises this exception here. Handlers that are traced catch it; otherwise the plain code raises it for real."""

    def __init__(self, exception: BaseException, variable=None, again: bool = False):
        text = name_of(type(exception))
        if tells_without_user_code(exception):
            text += f": {exception}"
        super().__init__(
            BreakReason("user-exception", f"the code raises {text}", [], "The exception is raised by ordinary Python.")
        )
        self.exception = exception
        self.variable = variable
        self.again = again  # raised again by the frame that had caught it


class UserErrorType(enum.Enum):
    """What kind of mistake it was."""

    DYNAMIC_CONTROL_FLOW = "dynamic_control_flow"
    ANTI_PATTERN = "anti_pattern"
    STANDARD_LIBRARY = "standard_library"
    CONSTRAINT_VIOLATION = "constraint_violation"
    DYNAMIC_DIM = "dynamic_dim"
    INVALID_INPUT = "invalid_input"
    INVALID_OUTPUT = "invalid_output"
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = "unsupported_aliased_mutated_dynamic_inputs"


class UserError(Unsupported):
    """A mistake of the user's that no graph break helps with."""

    def __init__(self, error_type: UserErrorType, msg: str, case_name: str | None = None):
        super().__init__(BreakReason("user-error", msg))
        self.error_type, self.message, self.case_name = error_type, msg, case_name

    def __str__(self) -> str:
        return self.message


class TorchRuntimeError(TorchDynamoException):
    """A tensor operation of the user's that fails on the shapes and dtypes it was given (under ``fullgraph=True``)."""


class BackendCompilerFailed(TorchDynamoException):
    """The backend raised. ``inner_exception`` is what it raised."""

    def __init__(self, backend, inner: BaseException):
        name = getattr(backend, "__name__", None) or type(backend).__name__
        super().__init__(f"backend={name!r} raised:\n{name_of(type(inner))}: {inner}")
        self.backend_name = name
        self.inner_exception = inner


class ForbiddenCall(TorchDynamoException, AssertionError):
    """Captured code calls what must not be called there."""


class RecompileError(TorchDynamoException):
    """A frame would be compiled again, and ``config.error_on_recompile`` is on."""


class InternalTorchDynamoError(TorchDynamoException):
    """A defect of capture itself."""


class SkipFrame(TorchDynamoException):
    """The frame is to be run plainly; the message says why. ``executed``: instructions that were interpreted to see that nothing can be captured."""

    executed = 0


class SkipForGood(SkipFrame):
    """As SkipFrame, whatever the arguments of the next call are."""


class RestartAnalysis(TorchDynamoException):
    """Trace the frame again from its start, and break in front of root instruction number ``visit``; None: without unrolling loops over
    iterators that existed before."""

    def __init__(self, visit: int | None, reason: BreakReason, error: Unsupported):
        super().__init__(reason.reason)
        self.visit, self.reason, self.error = visit, reason, error


class TraceAgain(TorchDynamoException):
    """Trace the frame again from its start: what it works on has just been changed for good."""


def unsupported(id: str, reason: str, why: str = "", hint: str = "", headline: str = ""):
    """Stop capturing here: raises :class:`Unsupported`."""
    raise Unsupported(BreakReason(id, reason, [], why, hint, headline=headline))
