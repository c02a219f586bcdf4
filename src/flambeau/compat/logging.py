"""``torch._logging`` over ``base.logs`` and Python's logging."""

from __future__ import annotations

import functools
import logging
import warnings

from ..base.public import public_in

__all__ = [
    "DEFAULT_LOGGING",
    "LazyString",
    "dtrace_structured",
    "getArtifactLogger",
    "hide_warnings",
    "set_logs",
    "trace_structured",
    "warning_once",
]

DEFAULT_LOGGING = {"dynamo": logging.INFO, "aot": logging.INFO, "inductor": logging.INFO}


@public_in("_logging._internal")
class LazyString:
    """A string made when it is shown."""

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self):
        return self.func(*self.args, **self.kwargs)


def set_logs(*, all=None, **artifacts) -> None:
    """Levels and artifacts, as in TORCH_LOGS: ``set_logs(graph_breaks=True)``."""
    from ..base import logs

    logs.set_logs(all=all, **artifacts)


def getArtifactLogger(module: str, artifact: str) -> logging.Logger:  # noqa: N802
    """The logger of an artifact ("graph_code", say) below the logger ``module``."""
    return logging.getLogger(f"{module}.__{artifact}")


@functools.lru_cache(None)
def warning_once(logger: logging.Logger, *args, **kwargs) -> None:
    """Warn the first time these words are given to this logger."""
    logger.warning(*args, **kwargs)


def trace_structured(
    name: str, metadata_fn=dict, *, payload_fn=None, suppress_context: bool = False, expect_trace_id: bool = True
) -> None:
    """Events of PyTorch's structured trace; flambeau writes its own (TORCH_TRACE)."""


dtrace_structured = trace_structured


class hide_warnings(warnings.catch_warnings):  # noqa: N801
    """No warnings in the block."""

    def __init__(self, filter_fn=None):
        super().__init__()

    def __enter__(self):
        out = super().__enter__()
        warnings.simplefilter("ignore")
        return out
