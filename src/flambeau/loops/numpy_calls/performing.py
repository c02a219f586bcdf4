"""The call, as Python makes it when the kernel asks for it."""

from __future__ import annotations

import numpy as np

from ...base.quiet import errstate
from .. import containers
from ..containers import descriptions
from .description import ArgumentKind, CallDescription

__all__ = ["perform", "results_of"]

_ARGUMENT = {
    ArgumentKind.ARRAY: lambda a: a,
    ArgumentKind.NUMPY_NUMBER: lambda a: a[()],
    ArgumentKind.PYTHON_NUMBER: lambda a: a.item(),
}
"""What an argument is of the array that stands for it."""


def results_of(call: str, given) -> tuple:
    """The results of the call that the text says, for these arrays."""
    what = CallDescription.parsed(call)
    rest = iter(given)
    args = [value if kind is ArgumentKind.LITERAL else _ARGUMENT[kind](next(rest)) for kind, value in what.arguments]
    made = what.function(*args, **what.options)
    made = tuple(made) if isinstance(made, tuple) else (made,)
    if len(made) != what.results:
        raise RuntimeError(f"{call} gave {len(made)} results")
    return made


def perform(call: str, given: tuple[np.ndarray, ...]) -> int:
    """What the kernel calls: the results go into the last of the arrays. The floating-point flags that NumPy would have told of."""
    if descriptions.is_call(call):
        return containers.made(call, given)
    count, raised = CallDescription.parsed(call).results, 0

    def note(kind: str, flag: int) -> None:
        nonlocal raised
        raised |= flag

    with errstate(all="call", call=note):
        made = results_of(call, given)
    for out, result in zip(given[-count:], made):
        result = np.asarray(result)
        if result.shape != out.shape or result.dtype != out.dtype:
            raise RuntimeError(f"{call} gave {result.dtype}{list(result.shape)}, not {out.dtype}{list(out.shape)}")
        out[...] = result
    return raised
