"""Fusing layers that follow one another into one module, so that they are quantised as one: convolution, batch norm, ReLU; linear, ReLU."""

from __future__ import annotations

import copy

from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_known_modules",
    "fuse_linear_bn",
    "fuse_modules",
    "fuse_modules_qat",
]

_DIMENSIONS = {nn.Conv1d: "1d", nn.Conv2d: "2d", nn.Conv3d: "3d"}
_NORMS = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}


def _check_modes(is_qat, *modules) -> None:
    if len({m.training for m in modules}) != 1:
        raise AssertionError(f"{[type(m).__name__ for m in modules]} must be in the same mode (train or eval).")
    if is_qat != modules[0].training:
        wanted, call = ("train", "fuse_modules_qat") if is_qat else ("eval", "fuse_modules")
        raise AssertionError(f"{call} takes modules in {wanted} mode; call model.{wanted}() first")


def fuse_conv_bn(is_qat, conv, bn):
    """A convolution and its batch norm: one convolution, or for training (``is_qat``) ``ConvBn2d`` and its like."""
    _check_modes(is_qat, conv, bn)
    if not isinstance(bn, _NORMS[type(conv)]) or bn.num_features != conv.out_channels:
        raise AssertionError(f"Output channel of {type(conv).__name__} must match num_features of {type(bn).__name__}")
    if is_qat:
        return getattr(nni, f"ConvBn{_DIMENSIONS[type(conv)]}")(conv, bn)
    return fuse_conv_bn_eval(conv, bn)


def fuse_conv_bn_relu(is_qat, conv, bn, relu):
    """As :func:`fuse_conv_bn`, with the ReLU behind."""
    kind = _DIMENSIONS[type(conv)]
    if is_qat:
        _check_modes(is_qat, conv, bn, relu)
        return getattr(nni, f"ConvBnReLU{kind}")(conv, bn, relu)
    return getattr(nni, f"ConvReLU{kind}")(fuse_conv_bn(False, conv, bn), relu)


def fuse_linear_bn(is_qat, linear, bn):
    """A linear layer and its batch norm, in evaluation. NotImplementedError for training."""
    if is_qat:
        raise NotImplementedError("fuse_linear_bn: linear layers with batch norm are fused in evaluation only")
    _check_modes(is_qat, linear, bn)
    return fuse_linear_bn_eval(linear, bn)


def _pair(name):
    return lambda is_qat, a, b: getattr(nni, name)(a, b)


_FUSERS: dict[tuple, object] = {
    (nn.Linear, nn.ReLU): _pair("LinearReLU"),
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn,
    (nn.BatchNorm2d, nn.ReLU): _pair("BNReLU2d"),
    (nn.BatchNorm3d, nn.ReLU): _pair("BNReLU3d"),
}
for _conv, _kind in _DIMENSIONS.items():
    _FUSERS[_conv, _NORMS[_conv]] = fuse_conv_bn
    _FUSERS[_conv, _NORMS[_conv], nn.ReLU] = fuse_conv_bn_relu
    _FUSERS[_conv, nn.ReLU] = _pair(f"ConvReLU{_kind}")


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """The modules that take the places of ``mod_list``: the fused one, then identities. NotImplementedError for types that aren't fused."""
    types = tuple(type(m) for m in mod_list)
    fuser = {**_FUSERS, **(additional_fuser_method_mapping or {})}.get(types)
    if fuser is None:
        raise NotImplementedError(f"Cannot fuse modules: {[t.__name__ for t in types]}")
    fused = fuser(is_qat, *mod_list)
    # Hooks before the first module and behind the last one stay.
    for hooks, take in (
        (mod_list[0]._forward_pre_hooks, fused.register_forward_pre_hook),
        (mod_list[-1]._forward_hooks, fused.register_forward_hook),
    ):
        for hook in list(hooks.values()):
            take(hook)
        hooks.clear()
    rest = [nn.Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = mod_list[0].training
    return [fused, *rest]


def _fuse(model, modules_to_fuse, is_qat, inplace, fuser_func, custom):
    model = model if inplace else copy.deepcopy(model)
    groups = modules_to_fuse if modules_to_fuse and not isinstance(modules_to_fuse[0], str) else [modules_to_fuse]
    more = (custom or {}).get("additional_fuser_method_mapping", {})
    for names in groups:
        for name, fused in zip(names, fuser_func([model.get_submodule(n) for n in names], is_qat, more)):
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, fused)
    return model


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """``model`` with lists of modules fused, in evaluation mode: ``[["conv", "bn", "relu"], ["fc", "act"]]``, names as of ``get_submodule``.

    The first of each list becomes the fused module, the others identities. A copy unless ``inplace``."""
    return _fuse(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None
):
    """As :func:`fuse_modules`, for a model in training mode."""
    return _fuse(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
