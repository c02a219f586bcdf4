"""A tensor that logs what happens to it, as a subclass and as a mode, and the capture of such logs.

Lines read ``$1: f32[2, 3] = torch._ops.aten.mul.Tensor($0, 2)``: a number for each tensor, in order of appearance.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import traceback
import weakref

import flambeau as torch
from flambeau.core.modes import TorchDispatchMode
from flambeau.utils._pytree import tree_flatten, tree_map

__all__ = [
    "LoggingTensor",
    "LoggingTensorMode",
    "LoggingTensorReentrant",
    "LoggingTensorHandler",
    "capture_logs",
    "capture_logs_with_logging_tensor_mode",
    "log_input",
]

_logger = logging.getLogger("LoggingTensor")


class LoggingTensor(torch.Tensor):
    """Holds a tensor in ``elem`` and logs each ATen call."""

    context = contextlib.nullcontext

    @staticmethod
    def __new__(cls, elem, *args, **kwargs):
        r = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
            requires_grad=kwargs.get("requires_grad", False),
        )
        r.elem = elem.detach() if r.requires_grad else elem
        return r

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self, *, tensor_contents=None):
        return f"LoggingTensor({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(e):
            return e.elem if isinstance(e, cls) else e

        def wrap(e):
            return cls(e) if isinstance(e, torch.Tensor) else e

        with cls.context():
            out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
            # A written argument comes back as the wrapper it is.
            written = [a for a, s in zip(args, func._schema.arguments) if s.is_write]
            rs = written[0] if written and isinstance(written[0], cls) else tree_map(wrap, out)
        _logger.info(f"{func.__module__}.{func.__name__}", args, kwargs, rs)
        return rs


class LoggingTensorReentrant(LoggingTensor):
    """Calls inside go through autograd again."""

    context = torch.overrides.enable_reentrant_dispatch


class LoggingTensorMode(TorchDispatchMode):
    """Logs each ATen call made while it is on."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rs = func(*args, **kwargs)
        spelled = kwargs
        names = {a.name for a in func._schema.arguments}
        if "pin_memory" in names and "device" in kwargs:
            # The dispatcher drops arguments that equal their default; PyTorch's logs of factories show this one.
            spelled = {**kwargs, "pin_memory": False}
        _logger.info(f"{func.__module__}.{func.__name__}", args, spelled, rs)
        return rs


class _Names:
    """A number for each tensor (by storage-free identity), kept while the tensor lives."""

    def __init__(self):
        self._numbers: dict[int, tuple] = {}
        self._next = itertools.count()

    def number(self, t) -> int:
        found = self._numbers.get(id(t))
        if found is not None and found[0]() is t:
            return found[1]
        n = next(self._next)
        self._numbers[id(t)] = (weakref.ref(t), n)
        return n


class LoggingTensorHandler(logging.Handler):
    """Formats the calls into ``log_list``."""

    def __init__(
        self, log_list: list, use_shortid_for_all_tensors: bool, with_type: bool, tracebacks_list: list | None
    ):
        super().__init__()
        self.log_list, self.all_tensors, self.with_type, self.tracebacks = (
            log_list,
            use_shortid_for_all_tensors,
            with_type,
            tracebacks_list,
        )
        self._names = _Names()

    def _show(self, a, with_type: bool = False) -> str:
        cls = torch.Tensor if self.all_tensors else LoggingTensor
        if isinstance(a, cls):
            tail = f": {a.dtype.short}[{', '.join(map(str, a.shape))}]" if with_type else ""
            return f"${self._names.number(a)}{tail}"
        if isinstance(a, (list, tuple)):
            inner = ", ".join(self._show(x) for x in a)
            return f"[{inner}]" if isinstance(a, list) else f"({inner})"
        return repr(a)

    def emit(self, record):
        args, kwargs, rs = record.args if len(record.args) == 3 else (record.args, None, ())
        shown = ", ".join([self._show(a) for a in args] + [f"{k}={self._show(v)}" for k, v in (kwargs or {}).items()])
        results = tree_flatten(rs)[0]
        left = ", ".join(self._show(r, self.with_type) for r in results)
        self.log_list.append(f"{left} = {record.msg}({shown})")
        if self.tracebacks is not None:
            self.tracebacks.append(record.traceback)


class _WithTraceback(logging.Filter):
    def filter(self, record):
        record.traceback = [str(f) for f in traceback.extract_stack()]
        return True


def log_input(name: str, var) -> None:
    """Log that ``var`` enters under ``name``."""
    _logger.info("input", (name,), {}, var)  # noqa: PLE1205  (the handler formats the arguments itself)


@contextlib.contextmanager
def capture_logs(is_mode=False, python_tb=False, script_tb=False, cpp_tb=False):
    """The lines logged in the block (and, with a traceback asked for, a second list of stacks)."""
    logger, lines = logging.getLogger("LoggingTensor"), []
    stacks: list | None = [] if python_tb or script_tb or cpp_tb else None
    handler = LoggingTensorHandler(lines, use_shortid_for_all_tensors=is_mode, with_type=True, tracebacks_list=stacks)
    if stacks is not None:
        handler.addFilter(_WithTraceback())
    before, propagate = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield lines if stacks is None else (lines, stacks)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        logger.propagate = propagate


@contextlib.contextmanager
def capture_logs_with_logging_tensor_mode(python_tb=False, script_tb=False, cpp_tb=False):
    with LoggingTensorMode(), capture_logs(True, python_tb, script_tb, cpp_tb) as logs:
        yield logs
