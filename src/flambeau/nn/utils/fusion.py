"""Folding batch normalisation into the layer before it, for inference."""

from __future__ import annotations

import copy

from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]

zeros_like, ones_like = function("zeros_like"), function("ones_like")


def _fold(weight, bias, mean, var, eps, gamma, beta, shape):
    bias = zeros_like(mean) if bias is None else bias
    gamma = ones_like(mean) if gamma is None else gamma
    beta = zeros_like(mean) if beta is None else beta
    scale = gamma * (var + eps).rsqrt()
    return weight * scale.reshape(shape), (bias - mean) * scale + beta


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of a convolution that does what convolution and batch norm did in eval mode."""
    shape = [1, -1] if transpose else [-1, 1]
    weight, bias = _fold(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape + [1] * (conv_w.dim() - 2))
    return Parameter(weight.detach(), conv_w.requires_grad), Parameter(bias.detach(), conv_w.requires_grad)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """(weight, bias) of a linear layer that does what layer and batch norm did in eval mode."""
    weight, bias = _fold(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])
    return Parameter(weight.detach(), linear_w.requires_grad), Parameter(bias.detach(), linear_w.requires_grad)


def _fuse(layer, bn, fuse, *more):
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("BatchNorm needs running statistics")
    out = copy.deepcopy(layer)
    out.weight, out.bias = fuse(
        out.weight, out.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, *more
    )
    return out


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """A convolution that does what ``conv`` and ``bn`` do, in evaluation mode."""
    return _fuse(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """A linear layer that does what ``linear`` and the batch norm after it do in eval mode. AssertionError unless both are in eval mode."""
    return _fuse(linear, bn, fuse_linear_bn_weights)
