"""``torch.utils._debug_mode.DebugMode``: a record of the operators that run, with shapes, as text."""

from __future__ import annotations

import contextlib
import os
import traceback
from dataclasses import dataclass, field
from typing import Any

from .. import _C
from ..base import pytree
from ..core.modes import TorchDispatchMode, TorchFunctionMode
from ..core.operator import OpOverload
from ..core.tensor import Tensor
from ..modules.hooks import AroundForward

__all__ = ["Call", "DebugMode"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
# Tensors by dtype, as PyTorch abbreviates them.
ABBREVIATIONS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8",
}  # fmt: skip


@dataclass
class Call:
    """One recorded call: ``op`` is an operator, a function of the API or the name of a module; arguments and results are their texts."""

    op: Any
    args: str
    depth: int
    output: str | None = None
    original: tuple[tuple, dict] | None = None
    stack: list[traceback.FrameSummary] = field(default_factory=list)

    @property
    def name(self) -> str:
        if isinstance(self.op, str):
            return self.op
        if isinstance(self.op, OpOverload):
            return self.op.name()
        text = getattr(self.op, "__name__", repr(self.op))
        ours = isinstance(self.op, _C.Function) or (getattr(self.op, "__module__", None) or "").startswith("flambeau")
        return f"torch.{text}" if ours else text

    def __str__(self) -> str:
        out = f"{self.name}({self.args})" if not isinstance(self.op, str) else self.op
        return out if self.output is None else f"{out}  ->  {self.output}"

    __repr__ = __str__


class DebugMode(TorchDispatchMode):
    """While on, operators are recorded (:attr:`operators`, a list of :class:`Call`) and :meth:`debug_string` shows them.

    ``record_torchfunction``: also the functions of the API, their operators indented below them. ``record_nn_module``: also calls of modules.
    ``record_output``: with what they return. ``record_ids``: tensors by number (``$0``). ``store_original_args``: the arguments themselves
    are kept (``call.original``). ``record_stack_trace``: with the program's stack (``call.stack``). ``record_tensor_attributes``: names of
    attributes of tensors that are shown. ``record_realtensor`` and ``record_faketensor`` say which tensors make a call worth recording."""

    def __init__(
        self,
        *,
        record_torchfunction: bool = False,
        record_faketensor: bool = False,
        record_realtensor: bool = True,
        record_tensor_attributes: list[str] | None = None,
        record_nn_module: bool = False,
        store_original_args: bool = False,
        record_stack_trace: bool = False,
        record_output: bool = True,
        record_ids: bool = False,
        record_profiler_context: bool = True,
        record_localtensor: bool = True,
    ):
        super().__init__()
        self.functions, self.fakes, self.reals = record_torchfunction, record_faketensor, record_realtensor
        self.attributes, self.modules, self.keep = record_tensor_attributes or [], record_nn_module, store_original_args
        self.stacks, self.outputs, self.ids = record_stack_trace, record_output, record_ids
        self.operators: list[Call] = []
        self.path: list[tuple] = []  # the modules that run, with their names
        self.depth = 0
        self.numbers: dict[int, tuple[int, Tensor]] = {}
        self.entered: list[contextlib.ExitStack] = []

    @property
    def logs(self) -> list[Call]:
        return self.operators

    def reset(self) -> None:
        """Forget what was recorded."""
        self.operators, self.depth, self.path = [], 0, []
        self.numbers.clear()

    def __enter__(self):
        self.reset()
        stack = contextlib.ExitStack()
        if self.functions:
            stack.enter_context(_Functions(self))
        if self.modules:
            stack.enter_context(AroundForward(self._module_begins, self._module_ends))
        self.entered.append(stack)
        return super().__enter__()

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.entered.pop().close()

    # -- what is recorded --

    def shown(self, x: Any) -> str:
        if isinstance(x, Tensor):
            dtype = str(x.dtype).removeprefix("torch.")
            number = f"${self.numbers.setdefault(id(x), (len(self.numbers), x))[0]}" if self.ids else ""
            more = "".join(f", {a}={getattr(x, a)}" for a in self.attributes if hasattr(x, a))
            return f"t{number}: {ABBREVIATIONS.get(dtype, dtype)}{[int(n) for n in x.shape]}{more}"
        if isinstance(x, (list, tuple)):
            inner = ", ".join(map(self.shown, x))
            return f"[{inner}]" if isinstance(x, list) else f"({inner}{',' if len(x) == 1 else ''})"
        if isinstance(x, dict):
            return "{" + ", ".join(f"{k!r}: {self.shown(v)}" for k, v in x.items()) + "}"
        return str(x)

    def _record(self, op, args, kwargs) -> Call | None:
        tensors = [x for x in pytree.tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
        fake = any(type(t).__name__ == "FakeTensor" for t in tensors)
        if (fake and not self.fakes) or (tensors and not fake and not self.reals):
            return None
        text = ", ".join([*map(self.shown, args), *(f"{k}={self.shown(v)}" for k, v in kwargs.items())])
        call = Call(op, text, self.depth, original=(args, kwargs) if self.keep else None)
        if self.stacks:
            call.stack = traceback.extract_stack()
            while call.stack and call.stack[-1].filename.startswith(PACKAGE):
                call.stack.pop()
        self.operators.append(call)
        return call

    def _run(self, op, args, kwargs):
        call = self._record(op, args, kwargs)
        self.depth += 1
        try:
            out = op(*args, **kwargs)
        finally:
            self.depth -= 1
        if call is not None and self.outputs:
            call.output = self.shown(out)
        return out

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return self._run(func, args, kwargs or {})

    def _module_begins(self, module, args) -> None:
        parts = self.path[-1][0].named_children() if self.path else ()
        place = next((f"{self.path[-1][1]}.{name}" for name, part in parts if part is module), type(module).__name__)
        self.operators.append(Call(f"[nn.Mod] {place}", "", self.depth))
        self.path.append((module, place))
        self.depth += 1

    def _module_ends(self, module, args, out) -> None:
        self.path.pop()
        self.depth -= 1

    def debug_string(self, *, show_stack_trace: bool = False) -> str:
        """A line for each call, indented by depth."""
        lines, last = [], None
        for call in self.operators:
            indent = "  " * (call.depth + (1 if self.functions else 2))
            if show_stack_trace and call.stack and call.stack[-1].lineno != last:
                frame = call.stack[-1]
                last = frame.lineno
                lines.append(f"{indent}# File: {frame.filename}:{frame.lineno} in {frame.name}, code: {frame.line}")
            lines.append(f"{indent}{call}")
        return "\n".join(lines)


class _Functions(TorchFunctionMode):
    """Records the functions of the API."""

    def __init__(self, mode: DebugMode):
        super().__init__()
        self.mode = mode

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ in ("__get__", "__set__"):
            return func(*args, **(kwargs or {}))
        return self.mode._run(func, args, kwargs or {})
