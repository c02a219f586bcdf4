"""Reverse-mode differentiation of eager programs (level 3).

The handler of the AUTOGRAD key (:mod:`.record`) runs the operator below itself and, when an input asks for a gradient, leaves a
:class:`~.node.Node` on the result. :mod:`.engine` runs the nodes backwards. Vector-Jacobian products come from the definition: formulas written
next to it, or the rule of its kind (:mod:`.rules`). They call ATen operators through the dispatcher, so that modes see them and they can be
differentiated again. References: Griewank & Walther, Evaluating Derivatives (2008).
"""

import importlib

from ..base.packages import keep_exports
from . import forward, graph, record, rules, whole  # noqa: F401
from .anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from .engine import backward, grad
from .function import Function, FunctionCtx, NestedIOFunction
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .node import Node

__all__ = [
    "Function",
    "FunctionCtx",
    "GradcheckError",
    "NestedIOFunction",
    "Node",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

keep_exports(__name__, "gradcheck")


def __getattr__(name):
    """What few programs ask for is imported then: the check of gradients, and ``functional`` and ``forward_ad``, which are of a higher level."""
    if name in ("forward_ad", "functional"):
        return importlib.import_module(f"flambeau.autograd.{name}")
    if name in ("GradcheckError", "gradcheck", "gradgradcheck"):
        return getattr(importlib.import_module("flambeau.autograd.gradcheck"), name)
    raise AttributeError(f"module 'torch.autograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
