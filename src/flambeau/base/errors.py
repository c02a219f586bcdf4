"""Exceptions that several levels raise. Three families never mix: the user's error (built-in types, PyTorch's words), a graph break
(dynamo), and a fault of flambeau's own (InternalError)."""

from .public import public_in


class InternalError(RuntimeError):
    """A broken invariant inside flambeau; the message names it."""


class UnsupportedOperatorException(NotImplementedError):
    """An operator that fake tensors can't be given to."""


class MissingFacet(UnsupportedOperatorException):
    """An operator lacks what a subsystem needs of it; names operator, kind and facet."""

    def __init__(self, who: str, op, facet: str):
        super().__init__(f"{who} requires operator {op.name()} (kind {op.kind}) to define {facet}")


class DataDependentOutputException(RuntimeError):
    """A value or shape is needed that a tensor without data doesn't have."""


class DynamicOutputShapeException(DataDependentOutputException):
    """The shape of a result depends on values that a tensor without data doesn't have."""


class AllocationError(RuntimeError, MemoryError):
    """A tensor doesn't fit into memory, or its size into 64 bits. PyTorch's is a RuntimeError, Python's a MemoryError: this is both."""


@public_in("")
class OutOfMemoryError(RuntimeError):
    """The memory of a device is used up. ``torch.OutOfMemoryError``."""


@public_in("_C", "_LinAlgError")
class LinAlgError(RuntimeError):
    """A matrix that an algorithm can't take: singular, not positive-definite, not converging. ``torch.linalg.LinAlgError``."""


class Uncaptured(NotImplementedError):
    """A trace met an operator or a tensor that exists only in eager mode; capture breaks the graph there."""


class OutOfBounds(IndexError, RuntimeError):
    """An index outside of its dimension. PyTorch raises the one or the other by operator: this is both. ``index``: the first such one."""

    def __init__(self, text: str, index: int | None = None):
        super().__init__(text)
        self.index = index

    def __reduce__(self):
        return type(self), (*self.args, self.index)


class ShapeMismatch(RuntimeError, ValueError):
    """Values that don't fit where they are to be written: PyTorch's RuntimeError, NumPy's ValueError for captured arrays."""


class NotFunctional(RuntimeError):
    """A write that can't be told as a value. Operator by operator it does what the program does."""


class SharedArguments(NotFunctional):
    """An operator without a functional form writes to an argument and is given its memory a second time."""
