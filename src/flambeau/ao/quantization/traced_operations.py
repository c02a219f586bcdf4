"""What is known of the calls in a traced model: which compute on codes, and whose codes their results have."""

from __future__ import annotations

import enum
import operator

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace
from flambeau.nn import functional as F

from .quantization_mappings import get_default_qconfig_propagation_list
from .stubs import DeQuantStub, QuantStub

__all__ = ["Kind", "arithmetic", "is_relu", "kind_of"]

quantized = namespace("quantized")


class Kind(enum.Enum):
    """How a call of a traced model is quantised."""

    LAYER = enum.auto()  # a module that another one takes the place of
    ARITHMETIC = enum.auto()  # a sum, a product, with the ReLU behind it
    CAT = enum.auto()
    CODES = enum.auto()  # the same call on codes: it keeps their scale, or has one of its own
    FLOAT = enum.auto()


_LAYERS = get_default_qconfig_propagation_list() - {QuantStub, DeQuantStub, nn.Sigmoid}
_ON_CODES = {
    *(getattr(nn, f"{kind}{n}d") for kind in ("AvgPool", "AdaptiveAvgPool") for n in (2, 3)),
    nn.Dropout, nn.Flatten, nn.Hardsigmoid, nn.Hardtanh, nn.Identity, nn.MaxPool2d, nn.ReLU, nn.Sigmoid, nn.Tanh,
    F.adaptive_avg_pool2d, F.avg_pool2d, F.hardsigmoid, F.max_pool2d, F.relu,
    operator.getitem, torch.flatten, torch.permute, torch.relu, torch.reshape,
    torch.sigmoid, torch.squeeze, torch.tanh, torch.transpose, torch.unsqueeze,
    "contiguous", "flatten", "permute", "relu", "reshape", "sigmoid", "squeeze", "t", "tanh", "transpose", "unsqueeze", "view",
}  # fmt: skip
_SUMS = {operator.add, operator.iadd, torch.add, "add", "add_"}
_PRODUCTS = {operator.mul, operator.imul, torch.mul, "mul", "mul_"}
_RELUS = {nn.ReLU, F.relu, torch.relu, "relu", "relu_"}


def _called(node, modules):
    """The class, the function or the name of the method that a node calls."""
    return type(modules[node.target]) if node.op == "call_module" else node.target


def is_relu(node, modules) -> bool:
    """Whether a node is a ReLU of one tensor."""
    return node.op.startswith("call_") and _called(node, modules) in _RELUS and len(node.all_input_nodes) == 1


def kind_of(node, modules) -> Kind:
    """The kind of a node of the graph of a module whose parts are ``modules``."""
    if not node.op.startswith("call_"):
        return Kind.FLOAT
    called, inputs = _called(node, modules), node.all_input_nodes
    if node.op == "call_module" and called in _LAYERS:
        return Kind.LAYER
    if called in _ON_CODES and len(inputs) == 1:
        return Kind.CODES
    # Numbers scale a result that nobody observed: they are computed in floats.
    if called in _SUMS | _PRODUCTS and len(node.args) == 2 and all(a in inputs for a in node.args) and not node.kwargs:
        return Kind.ARITHMETIC
    if called in (torch.cat, torch.concat) and isinstance(node.args[0], list | tuple):
        return Kind.CAT
    return Kind.FLOAT


def arithmetic(node, relu: bool):
    """The function of codes, ``(a, b, scale, zero_point)``, of a sum or a product."""
    name = ("add" if node.target in _SUMS else "mul") + ("_relu" if relu else "")
    return getattr(quantized, name).default
