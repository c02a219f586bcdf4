"""What a native graph is made of, as data: it can be bound to code in this process, and written to a file for another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _runtime
from ...base import blas, kernels, lapack, ufuncs
from ...base.enums import Library
from ...base.errors import AllocationError
from ...base.records import made_by, replace, slotted
from ...base.relations import evaluate
from ...core.messages import Message
from .records import CallStep, GemmStep, KernelStep, NativeStep, RowsStep, TableStep

__all__ = ["LaunchPlan"]


@slotted(frozen=False)
class LaunchPlan:
    """The arguments of ``_runtime.Graph`` with tables of records (records.py) in which no kernel has an address yet.
    ``dtypes``: of the tensors among the inputs. ``messages``: what errors of kernels are about. ``checks``: (place of a number that depends
    on data, its symbol, a relation that the program checks, the words when it doesn't hold). ``together``:
    (the first, how many) of steps that run side by side."""

    inputs: int
    values: list[int]
    stages: list
    slots: list[Any]
    steps: list[Any]
    outputs: list[Any]
    arena: int
    messages: list[Message]
    dtypes: list[Any]
    small: bool
    checks: list[tuple[int, Any, Any, str]] = made_by(list)
    together: list[tuple[int, int]] = made_by(list)

    def bind(self, addresses: dict[str, int], info: Any) -> Any:
        """The native graph; ``addresses`` of the kernels by name."""

        def bound(s):
            if isinstance(s, (KernelStep, TableStep)):
                return replace(s, address=addresses[s.name])
            if isinstance(s, GemmStep):
                return replace(s, address=blas.gemm_address(s.type))
            if isinstance(s, RowsStep):
                return replace(s, steps=list(map(bound, s.steps)))
            if isinstance(s, NativeStep):
                self._prepare(s)
                planes = s.planes
                return s if planes is None else replace(s, planes=replace(planes, steps=list(map(bound, planes.steps))))
            return s

        return _runtime.Graph(
            self.inputs,
            self.values,
            self.stages,
            self.slots,
            list(map(bound, self.steps)),
            self.outputs,
            self.arena,
            self._on_error,
            self._on_mismatch,
            info,
            self.small,
            self.together,
        )

    def _prepare(self, step: NativeStep) -> None:
        """Look for the library of a kernel, which recalling a graph has not done."""
        kernel = kernels.find(step.kernel)
        if kernel is None or kernel.library == Library.NONE:
            return
        blas.share_threads()
        given = kernels.named(kernel, [self.values[at] for at in step.numbers])
        if kernel.library == Library.LAPACK:
            lapack.ready(given["element"])
        elif kernel.library == Library.UFUNC:
            ufuncs.ready(given["slot"])

    def _on_error(self, code, value, size):
        if code == -2:  # a number at place ``size`` is out of its range
            for place, symbol, relation, message in self.checks:
                if place == size and not evaluate(relation, {symbol: value}):
                    raise RuntimeError(message)
            return
        if code < 0:
            raise AllocationError("a compiled graph got no memory for intermediate results")
        raise self.messages[code - 1].error(value, size)

    def _on_mismatch(self, k, tensor, shape, strides):
        """The input in the layout the kernels read (strides in bytes): other strides are copied, anything else is a caller's error."""
        dtype = self.dtypes[k]
        array = getattr(tensor, "_array", None)
        if array is None:
            raise TypeError(f"compiled graph: input {k} must be a tensor with data, got {type(tensor).__name__}")
        if tuple(array.shape) != shape or array.dtype != dtype:
            raise RuntimeError(
                f"compiled graph: input {k} has shape {list(array.shape)} and dtype {array.dtype}, it was compiled for shape "
                f"{list(shape)} and dtype {dtype}"
            )
        size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) // dtype.itemsize
        made = np.ndarray(shape, dtype, np.empty(max(size, 1), dtype), 0, strides)
        made[...] = array
        return made

    def body_graphs(self) -> list[Any]:
        """The native graphs that are arguments of calls."""
        found: list[Any] = []
        for s in self.steps:
            if isinstance(s, CallStep):
                _walk(s.call.template, lambda x: found.append(x) if isinstance(x, _runtime.Graph) else None)
        return found


def _walk(tree: Any, see: Callable) -> None:
    if isinstance(tree, (list, tuple)):
        for x in tree:
            _walk(x, see)
    elif isinstance(tree, dict):
        for x in tree.values():
            _walk(x, see)
    else:
        see(tree)
