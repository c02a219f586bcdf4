"""Which configuration belongs to which part of a traced model: by name, by pattern, by class or function, or for all."""

from __future__ import annotations

import re

from flambeau import nn

from .fake_quantize import default_weight_fake_quant
from .observer import default_weight_observer
from .qconfig import QConfig, get_default_qat_qconfig, get_default_qconfig

__all__ = ["QConfigMapping", "get_default_qat_qconfig_mapping", "get_default_qconfig_mapping"]


class QConfigMapping:
    """Configurations for :func:`~flambeau.ao.quantization.quantize_fx.prepare_fx`; a later rule of one kind counts before an earlier one.

    A module's own name counts before patterns, those before classes and functions, those before what holds for all. None leaves a part in floats."""

    def __init__(self):
        self.global_qconfig = None
        self.object_type_qconfigs: dict = {}
        self.module_name_regex_qconfigs: dict = {}
        self.module_name_qconfigs: dict = {}

    def set_global(self, global_qconfig):
        """The configuration of everything that no other rule names. Gives the mapping."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type, qconfig):
        """That of a class of modules, a function, or a method by its name. Gives the mapping."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex, qconfig):
        """That of modules whose whole name the pattern matches. Gives the mapping."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name, qconfig):
        """That of a module and of those in it. Gives the mapping."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    @classmethod
    def from_dict(cls, qconfig_dict):
        """Of the older form: ``{"": all, "object_type": [(class, configuration)], "module_name": [...], "module_name_regex": [...]}``."""
        made = cls().set_global(qconfig_dict.get("", qconfig_dict.get("global")))
        for kind in ("object_type", "module_name", "module_name_regex"):
            for key, qconfig in qconfig_dict.get(kind, ()):
                getattr(made, f"set_{kind}")(key, qconfig)
        return made

    def of(self, name: str | None, object_type):
        """The configuration of the module ``name`` (None: a function or method) of a class, or of a function."""
        if name is not None:
            parts = name.split(".")
            for k in range(len(parts), 0, -1):
                if (prefix := ".".join(parts[:k])) in self.module_name_qconfigs:
                    return self.module_name_qconfigs[prefix]
            for pattern, qconfig in self.module_name_regex_qconfigs.items():
                if re.fullmatch(pattern, name):
                    return qconfig
        return self.object_type_qconfigs.get(object_type, self.global_qconfig)


def get_default_qconfig_mapping(backend="x86", version=0):
    """:func:`get_default_qconfig` for all; weights of transposed convolutions are quantised as a whole."""
    return _by_tensor_where_transposed(get_default_qconfig(backend, version), default_weight_observer)


def get_default_qat_qconfig_mapping(backend="x86", version=1):
    """:func:`get_default_qat_qconfig` for all; weights of transposed convolutions are quantised as a whole."""
    return _by_tensor_where_transposed(get_default_qat_qconfig(backend, version), default_weight_fake_quant)


def _by_tensor_where_transposed(qconfig, weight):
    made, transposed = QConfigMapping().set_global(qconfig), QConfig(activation=qconfig.activation, weight=weight)
    for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d):
        made.set_object_type(kind, transposed)
    return made
