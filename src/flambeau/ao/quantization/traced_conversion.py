"""The graph on codes of an observed one."""

from __future__ import annotations

import flambeau as torch
from flambeau import fx

from .observer import PlaceholderObserver
from .quantization_mappings import get_default_dynamic_quant_module_mappings, get_default_static_quant_module_mappings
from .quantize import is_activation_post_process, swap_module
from .traced_operations import Kind, arithmetic, is_relu, kind_of

__all__ = ["Converting"]


class Converting:
    """Makes the graph on codes of an observed one. Each value is there as floats, as codes, or as both, once it is asked for."""

    def __init__(self, gm):
        self.old, self.modules = gm, dict(gm.named_modules())
        self.graph = fx.Graph()
        self.floats: dict = {}
        self.codes: dict = {}
        self.buffers: dict[str, torch.Tensor] = {}
        self.replaced: set[str] = set()

    def observer_of(self, node):
        """The observer behind a node, or None."""
        for user in node.users:
            if user.op == "call_module" and is_activation_post_process(self.modules[user.target]):
                return user
        return None

    def parameters(self, observer):
        """The nodes of the scale and the zero point that an observer found."""
        name, module = observer.target, self.modules[observer.target]
        nodes = []
        for what, value in zip(("scale", "zero_point"), module.calculate_qparams()):
            self.buffers[f"{name}_{what}"] = value.reshape(())
            nodes.append(self.graph.get_attr(f"{name}_{what}"))
        return nodes

    def numbers(self, observer):
        scale, zero_point = self.modules[observer.target].calculate_qparams()
        return float(scale), int(zero_point)

    def as_floats(self, node):
        if node not in self.floats:
            self.floats[node] = self.graph.call_method("dequantize", (self.codes[node],))
        return self.floats[node]

    def observed(self, node):
        """The value behind an observer: what a layer gave, else quantised here."""
        read = node.args[0]
        if read in self.codes:
            self.codes[node] = self.codes[read]
            return
        module = self.modules[node.target]
        if isinstance(module, PlaceholderObserver):
            self.floats[node] = self.as_floats(read)
            return
        arguments = (self.as_floats(read), *self.parameters(node), module.dtype)
        self.codes[node] = self.graph.call_function(torch.quantize_per_tensor, arguments)

    def layer(self, node):
        module, observer = self.modules[node.target], self.observer_of(node)
        read = node.args[0]
        if getattr(module, "qconfig", None) is None:
            return False
        if observer is None or read not in self.codes:
            made = swap_module(module, get_default_dynamic_quant_module_mappings(), {})
            if made is module:
                return False
            self.floats[node] = self.put(node, made, self.as_floats)
            return True
        module.activation_post_process = self.modules[observer.target]
        made = swap_module(module, get_default_static_quant_module_mappings(), {})
        if made is module:
            return False
        self.codes[node] = self.put(node, made, self.codes.__getitem__)
        return True

    def put(self, node, made, argument):
        """The call of ``made`` in the place of what a node calls: each call of one module has its own scale."""
        name, k = node.target, 0
        while name in self.replaced:
            k += 1
            name = f"{node.target}_{k}"
        self.replaced.add(name)
        self.old.set_submodule(name, made)
        call = self.graph.node_copy(node, argument)
        call.target = name
        return call

    def arithmetic(self, node):
        """A sum or product of codes; the ReLU behind it, which the observer then looks at, is a part of it."""
        observer, last = self.observer_of(node), node
        if observer is None and len(node.users) == 1 and is_relu(following := next(iter(node.users)), self.modules):
            observer, last = self.observer_of(following), following
        if observer is None or any(a not in self.codes for a in node.args):
            return False
        arguments = (*(self.codes[a] for a in node.args), *self.numbers(observer))
        self.codes[last] = self.graph.call_function(arithmetic(node, last is not node), arguments)
        return True

    def cat(self, node):
        observer, parts = self.observer_of(node), node.args[0]
        if observer is None or any(p not in self.codes for p in parts):
            return False
        dim = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim", node.kwargs.get("axis", 0))
        function = torch.ops.quantized.cat
        arguments = ([self.codes[p] for p in parts], dim, *self.numbers(observer))
        self.codes[node] = self.graph.call_function(function, arguments)
        return True

    def on_codes(self, node):
        if node in self.codes:  # a ReLU that is a part of the sum in front
            return True
        if node.all_input_nodes[0] not in self.codes:
            return False
        self.codes[node] = self.graph.node_copy(node, self.codes.__getitem__)
        return True

    def run(self):
        rules = {
            Kind.LAYER: self.layer,
            Kind.ARITHMETIC: self.arithmetic,
            Kind.CAT: self.cat,
            Kind.CODES: self.on_codes,
            Kind.FLOAT: lambda node: False,
        }
        for node in self.old.graph.nodes:
            if node.op == "call_module" and is_activation_post_process(self.modules[node.target]):
                self.observed(node)
            elif not rules[kind_of(node, self.modules)](node):
                self.floats[node] = self.graph.node_copy(node, self.as_floats)
        for name, value in self.buffers.items():
            self.old.register_buffer(name, value)
        self.graph.eliminate_dead_code()
        made = fx.GraphModule(self.old, self.graph)
        made.train(self.old.training)
        for module in made.modules():
            if hasattr(module, "qconfig"):
                del module.qconfig
        return made
