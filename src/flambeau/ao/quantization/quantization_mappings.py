"""Which module takes the place of which: in conversion, in dynamic quantisation, in training."""

from __future__ import annotations

from flambeau import nn
from flambeau.ao.nn import intrinsic as nni
from flambeau.ao.nn import qat as nnqat
from flambeau.ao.nn import quantized as nnq
from flambeau.ao.nn.intrinsic import qat as nniqat
from flambeau.ao.nn.intrinsic import quantized as nniq
from flambeau.ao.nn.quantized import dynamic as nnqd
from flambeau.nn.modules.linear import NonDynamicallyQuantizableLinear

from .stubs import DeQuantStub, QuantStub

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_dynamic_quant_module_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_static_quant_module_class",
    "no_observer_set",
]

DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: dict = {
    QuantStub: nnq.Quantize,
    DeQuantStub: nnq.DeQuantize,
    NonDynamicallyQuantizableLinear: nnq.Linear,
    nnq.FloatFunctional: nnq.QFunctional,
    **{
        getattr(nn, name): getattr(nnq, name)
        for name in "BatchNorm2d BatchNorm3d Dropout Conv1d Conv2d Conv3d ELU GroupNorm Hardswish InstanceNorm1d InstanceNorm2d InstanceNorm3d "
        "ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding EmbeddingBag LayerNorm LeakyReLU Linear ReLU6 Sigmoid Softmax".split()
    },
    **{
        getattr(nni, name): getattr(nniq, name)
        for name in "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d LinearReLU".split()
    },
    nnqat.Linear: nnq.Linear,
    nnqat.Conv2d: nnq.Conv2d,
    nnqat.Conv3d: nnq.Conv3d,
    nniqat.LinearReLU: nniq.LinearReLU,
    nniqat.ConvReLU2d: nniq.ConvReLU2d,
    nniqat.ConvReLU3d: nniq.ConvReLU3d,
    **{getattr(nniqat, f"ConvBn{n}d"): getattr(nnq, f"Conv{n}d") for n in (1, 2, 3)},
    **{getattr(nniqat, f"ConvBnReLU{n}d"): getattr(nniq, f"ConvReLU{n}d") for n in (1, 2, 3)},
}

DEFAULT_QAT_MODULE_MAPPINGS: dict = {
    nn.Conv2d: nnqat.Conv2d,
    nn.Conv3d: nnqat.Conv3d,
    nn.Linear: nnqat.Linear,
    NonDynamicallyQuantizableLinear: nnqat.Linear,
    nni.LinearReLU: nniqat.LinearReLU,
    nni.ConvReLU2d: nniqat.ConvReLU2d,
    nni.ConvReLU3d: nniqat.ConvReLU3d,
    **{
        getattr(nni, f"{kind}{n}d"): getattr(nniqat, f"{kind}{n}d")
        for n in (1, 2, 3)
        for kind in ("ConvBn", "ConvBnReLU")
    },
}

DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: dict = {
    nn.Linear: nnqd.Linear,
    NonDynamicallyQuantizableLinear: nnqd.Linear,
    nn.LSTM: nnqd.LSTM,
    nn.GRU: nnqd.GRU,
    nni.LinearReLU: nnqd.LinearReLU,
    nn.Embedding: nnq.Embedding,
    nn.EmbeddingBag: nnq.EmbeddingBag,
}


def get_default_static_quant_module_mappings():
    """{class of a prepared model: class of the converted one}, a copy."""
    return dict(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_default_qat_module_mappings():
    """{class of a model: class with fake quantisation}, a copy."""
    return dict(DEFAULT_QAT_MODULE_MAPPINGS)


def get_default_dynamic_quant_module_mappings():
    """{class of a model: class that quantises its input at each call}, a copy."""
    return dict(DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS)


def get_default_qconfig_propagation_list():
    """The classes whose modules get the configuration of those they are in."""
    return {
        *DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, *DEFAULT_QAT_MODULE_MAPPINGS, *DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    }  # fmt: skip


def get_static_quant_module_class(float_module_class, additional_static_quant_mapping=None, is_reference=False):
    """The class that takes the place of ``float_module_class``. AssertionError where there is none."""
    found = {**DEFAULT_STATIC_QUANT_MODULE_MAPPINGS, **(additional_static_quant_mapping or {})}.get(float_module_class)
    if found is None or is_reference:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return found


def no_observer_set():
    """Classes whose outputs need no observer, since they are quantised as their input is."""
    return {nnq.Quantize, nnq.DeQuantize, nnq.Dropout}
