"""Quantising models: observers are put in (:func:`prepare`), data is run through, modules are replaced (:func:`convert`).

The flow is PyTorch's eager one: a model says itself where floats become codes (QuantStub) and codes floats (DeQuantStub).
"""

from __future__ import annotations

import copy

import flambeau as torch
from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.ao.nn import quantized as nnq

from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase, PerChannelMinMaxObserver
from .qconfig import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper

__all__ = [
    "add_quant_dequant",
    "convert",
    "default_eval_fn",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]


def get_default_custom_config_dict():
    """{what: {class: class}} of modules with observers of their own: none here."""
    return {"float_to_observed_custom_module_class": {}, "observed_to_quantized_custom_module_class": {}}


def is_activation_post_process(module) -> bool:
    """Whether a module is an observer or a fake quantisation."""
    return isinstance(module, ObserverBase | FakeQuantizeBase)


def default_eval_fn(model, calib_data):
    """Run ``model`` on the first element of each pair of ``calib_data``."""
    for data, _ in calib_data:
        model(data)


# ---- configuration ---------------------------------------------------------------------------------------------------------


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Give every module a ``qconfig``: its own, that of its name or class in ``qconfig_dict``, else that of the module it is in."""
    _propagate(
        module, qconfig_dict or {}, None, "", (prepare_custom_config_dict or {}).get("non_traceable_module_name", ())
    )


_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def _propagate(module, by_name, inherited, prefix, left_out):
    found = by_name.get(type(module), by_name.get(prefix, getattr(module, "qconfig", inherited)))
    if found is not None and type(module) in _TRANSPOSED and isinstance(found.weight(), PerChannelMinMaxObserver):
        raise AssertionError(f"Per channel weight observer is not supported yet for {type(module).__name__}.")
    module.qconfig = found
    for name, child in module.named_children():
        path = f"{prefix}.{name}" if prefix else name
        if path not in left_out and not is_activation_post_process(child):
            _propagate(child, by_name, found, path, left_out)


# ---- observers -------------------------------------------------------------------------------------------------------------


def prepare(model, inplace=False, allow_list=None, observer_non_leaf_module_list=None, prepare_custom_config_dict=None):
    """``model`` with an observer behind each module that conversion replaces (``allow_list``: of these classes alone). A copy unless ``inplace``.

    UserWarning where no module has a ``qconfig``."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if all(getattr(m, "qconfig", None) is None for m in model.modules()):
        import warnings

        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or by assigning the "
            "`.qconfig` attribute directly on submodules",
            stacklevel=2,
        )
    allowed = get_default_qconfig_propagation_list() if allow_list is None else set(allow_list)
    _observe(model, allowed, set(observer_non_leaf_module_list or ()))
    return model


def _observe(module, allowed, whole):
    for child in module.children():
        if isinstance(child, DeQuantStub) or type(child) in no_observer_set() or is_activation_post_process(child):
            continue
        wanted = getattr(child, "qconfig", None) is not None
        if isinstance(child, nni._FusedModule):
            # What is fused is observed as one.
            if wanted:
                _attach(child)
        elif isinstance(child, nnq.FloatFunctional):
            if wanted:
                child.activation_post_process = child.qconfig.activation()
        elif wanted and (type(child) in allowed or type(child) in whole):
            _attach(child)
            if type(child) not in allowed:
                _observe(child, allowed, whole)
        else:
            _observe(child, allowed, whole)


def _attach(module):
    made = module.qconfig.activation()
    if isinstance(made, nn.Identity) or hasattr(module, "activation_post_process"):
        return
    module.add_module("activation_post_process", made)
    module.register_forward_hook(_observer_forward_hook, prepend=True)


def _observer_forward_hook(self, input, output):
    return self.activation_post_process(output)


def add_quant_dequant(module):
    """``module`` with each part that has a ``qconfig`` and no children wrapped in a ``QuantWrapper``."""
    if not any(True for _ in module.children()) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare_qat(model, mapping=None, inplace=False):
    """``model``, in training mode, with layers whose weights and outputs are rounded as codes would be. A copy unless ``inplace``."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    return prepare(model, inplace=True, observer_non_leaf_module_list=set(mapping.values()))


# ---- conversion ------------------------------------------------------------------------------------------------------------


def convert(
    module, mapping=None, inplace=False, remove_qconfig=True, is_reference=False, convert_custom_config_dict=None,
    use_precomputed_fake_quant=False,
):  # fmt: skip
    """``module`` with its prepared parts replaced as ``mapping`` says ({class: class}); observers go. A copy unless ``inplace``."""
    if is_reference:
        raise NotImplementedError("convert(is_reference=True): reference modules are not built; use is_reference=False")
    module = module if inplace else copy.deepcopy(module)
    _convert(module, get_default_static_quant_module_mappings() if mapping is None else mapping)
    if remove_qconfig:
        _forget(module)
    return module


def _convert(module, mapping):
    for name, child in list(module.named_children()):
        if not isinstance(child, nni._FusedModule) and not is_activation_post_process(child):
            _convert(child, mapping)
        module._modules[name] = swap_module(child, mapping, {})


def swap_module(mod, mapping, custom_module_class_mapping, use_precomputed_fake_quant=False):
    """What takes the place of ``mod``: itself where it has no ``qconfig`` or its class isn't in ``mapping``. Hooks of its own come along."""
    made = mapping.get(type(mod))
    if getattr(mod, "qconfig", None) is None or made is None:
        return mod
    new = made.from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            new.register_forward_hook(hook)
    return new


def _forget(module):
    for child in module.children():
        _forget(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if is_activation_post_process(getattr(module, "activation_post_process", None)):
        del module.activation_post_process
    for key, hook in list(module._forward_hooks.items()):
        if hook is _observer_forward_hook:
            del module._forward_hooks[key]


# ---- whole flows -----------------------------------------------------------------------------------------------------------


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """Prepare ``model``, call ``run_fn(model, *run_args)``, convert."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model, run_fn, run_args, inplace=False):
    """Prepare ``model`` for training, call ``run_fn(model, *run_args)``, which trains it, convert."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


# By dtype of the weights: the classes that are replaced unless others are named, and their configuration.
_DYNAMIC = {
    torch.qint8: ((nn.Linear, nn.LSTM, nn.GRU), default_dynamic_qconfig),
    torch.quint8: ((nn.EmbeddingBag, nn.Embedding), float_qparams_weight_only_qconfig),
    torch.quint4x2: ((nn.EmbeddingBag,), float_qparams_weight_only_qconfig_4bit),
}


def quantize_dynamic(model, qconfig_spec=None, dtype=torch.qint8, mapping=None, inplace=False):
    """``model`` with linear and recurrent layers whose weights are int8 and whose inputs are quantised at each call, or with quantised embeddings.

    ``qconfig_spec``: classes or names of the modules, or {class or name: configuration}. ``dtype``: qint8 (by default Linear, LSTM and GRU),
    quint8 (Embedding and EmbeddingBag), quint4x2 (EmbeddingBag); NotImplementedError for float16, ValueError for others. A copy unless
    ``inplace``."""
    if dtype is torch.float16:
        raise NotImplementedError(
            "quantize_dynamic(dtype=torch.float16): weights of 16 bits are not built; use model.to(torch.bfloat16), or qint8"
        )
    if dtype not in _DYNAMIC:
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    classes, configuration = _DYNAMIC[dtype]
    if not isinstance(qconfig_spec, dict):
        qconfig_spec = dict.fromkeys(classes if qconfig_spec is None else qconfig_spec, configuration)
    if any(q is float16_dynamic_qconfig for q in qconfig_spec.values()):
        raise NotImplementedError("quantize_dynamic: weights of 16 bits are not built")
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True)
