"""Quantising by tracing: a model is traced, its layers are fused and observed (:func:`prepare_fx`), and replaced by ones on codes
(:func:`convert_fx`). Where floats become codes and codes floats follows from the graph: no stubs are needed."""

from __future__ import annotations

import copy

from flambeau import fx, nn
from flambeau.core.quantized import per_channel_affine_float_qparams

from .observer import PlaceholderObserver
from .qconfig_mapping import QConfigMapping
from .quantization_mappings import get_default_qat_module_mappings
from .quantize import swap_module
from .traced_conversion import Converting
from .traced_fusion import fuse_traced
from .traced_operations import Kind, is_relu, kind_of

__all__ = ["convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def _refuse(function: str, **settings) -> None:
    for name, value in settings.items():
        if value is not None:
            raise NotImplementedError(
                f"{function}({name}=...) is not built: QConfigMapping says what is quantised; the eager flow (prepare(), convert()) takes "
                "classes of the program's"
            )


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m, module_qualified_name):
        return type(m).__module__.startswith("flambeau.ao.nn.") or super().is_leaf_module(m, module_qualified_name)


def _traced(model) -> fx.GraphModule:
    model = copy.deepcopy(model)
    made = fx.GraphModule(model, _Tracer().trace(model))
    made.train(model.training)
    return made


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """``model``, traced, with convolution, batch norm and ReLU (linear and ReLU) fused for evaluation."""
    _refuse("fuse_fx", fuse_custom_config=fuse_custom_config, backend_config=backend_config)
    return fuse_traced(_traced(model), is_qat=False)


# ---- observers ---------------------------------------------------------------------------------------------------------------


def _is_dynamic(qconfig) -> bool:
    made = qconfig.activation()
    return isinstance(made, PlaceholderObserver) and made.is_dynamic


class _Observing:
    """Puts observers into a graph: in front of what is quantised, and behind it."""

    def __init__(self, gm, mapping):
        self.gm, self.mapping = gm, mapping
        self.modules = dict(gm.named_modules())
        self.made = 0
        self.codes: set = set()  # the nodes whose values are codes after conversion

    def qconfig(self, node):
        if node.op == "call_module":
            module = self.modules[node.target]
            first = module[0] if isinstance(module, nn.Sequential) and len(module) else module
            return self.mapping.of(node.target, type(first))
        return self.mapping.of(None, node.target)

    def behind(self, node, qconfig, name=None):
        """The observer of a node's value, which everything else that reads the value reads: a new one, or that of this name."""
        if name is None:
            name = f"activation_post_process_{self.made}"
            self.made += 1
            self.gm.add_module(name, qconfig.activation())
        with self.gm.graph.inserting_after(node):
            observer = self.gm.graph.call_module(name, (node,))
        node.replace_all_uses_with(observer, delete_user_cb=lambda user: user is not observer)
        self.codes.add(observer)
        return observer

    def joined(self, node):
        """The name of the one observer of all parts of a concatenation, whose codes are joined as they are; None where a part has no observer of
        its own."""
        observers = list(dict.fromkeys(node.args[0]))
        if any(n.op != "call_module" or not n.target.startswith("activation_post_process_") for n in observers):
            return None
        for other in observers[1:]:
            other.target = observers[0].target
        return observers[0].target

    def run(self):
        gm, modules = self.gm, self.modules
        for node in list(gm.graph.nodes):
            kind = kind_of(node, modules)
            if kind is Kind.FLOAT:
                continue
            if kind is Kind.CODES:
                if node.all_input_nodes[0] in self.codes:
                    self.codes.add(node)
                continue
            qconfig = self.qconfig(node)
            if qconfig is None:
                continue
            if node.op == "call_module" and type(modules[node.target]) in (nn.Embedding, nn.EmbeddingBag):
                # Indices in, floats out: nothing is observed, and only a configuration for such weights counts.
                if getattr(qconfig.weight(), "qscheme", None) is per_channel_affine_float_qparams:
                    modules[node.target].qconfig = qconfig
                continue
            if node.op == "call_module":
                modules[node.target].qconfig = qconfig
            if _is_dynamic(qconfig):
                continue
            for read in dict.fromkeys(node.all_input_nodes):
                if read not in self.codes:
                    self.behind(read, qconfig)
            if kind is Kind.CAT and (name := self.joined(node)):
                self.behind(node, qconfig, name)
                continue
            last = node
            following = next(iter(node.users)) if len(node.users) == 1 else None
            if kind is Kind.ARITHMETIC and following is not None and is_relu(following, modules):
                last = following
            self.behind(last, qconfig)
        gm.delete_all_unused_submodules()
        gm.recompile()
        return gm


def _prepare(gm, qconfig_mapping, is_qat):
    mapping = QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) else qconfig_mapping
    fuse_traced(gm, is_qat)
    _Observing(gm, mapping).run()
    if is_qat:
        replaced = get_default_qat_module_mappings()
        for name, module in list(gm.named_modules()):
            if name and (made := swap_module(module, replaced, {})) is not module:
                made.train(module.training)
                gm.set_submodule(name, made)
    return gm


def prepare_fx(
    model, qconfig_mapping, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None
):
    """A traced copy of ``model`` (in evaluation mode) with observers: run it on some data, then call :func:`convert_fx`.

    ``qconfig_mapping``: a :class:`QConfigMapping`, or the older dict. ``example_inputs``: a tuple of arguments; the trace needs none of their
    values. NotImplementedError for the other settings."""
    _refuse(
        "prepare_fx",
        prepare_custom_config=prepare_custom_config,
        _equalization_config=_equalization_config,
        backend_config=backend_config,
    )
    return _prepare(_traced(model), qconfig_mapping, is_qat=False)


def prepare_qat_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None):
    """As :func:`prepare_fx`, for a model in training mode, with layers and results rounded as codes would be: train it, then convert it.

    AssertionError for a model in evaluation mode."""
    _refuse("prepare_qat_fx", prepare_custom_config=prepare_custom_config, backend_config=backend_config)
    if not model.training:
        raise AssertionError("prepare_qat_fx only works on models in train mode")
    return _prepare(_traced(model), qconfig_mapping, is_qat=True)


def convert_fx(
    graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None, keep_original_weights=False
):  # fmt: skip
    """The model on codes of an observed one (:func:`prepare_fx`, :func:`prepare_qat_fx`): layers, sums, products and concatenations compute with
    8-bit integers, what keeps the scale of its input (pooling, ReLU, views) runs on codes, the rest on floats. The argument stays as it is."""
    _refuse(
        "convert_fx",
        convert_custom_config=convert_custom_config,
        qconfig_mapping=qconfig_mapping,
        backend_config=backend_config,
    )
    return Converting(copy.deepcopy(graph_module)).run()


def convert_to_reference_fx(graph_module, *args, **kwargs):
    """NotImplementedError: reference modules are for other compilers."""
    raise NotImplementedError("convert_to_reference_fx: reference modules are not built; use convert_fx")
