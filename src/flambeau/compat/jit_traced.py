"""What ``torch.jit.trace`` gives: a captured graph over the parameters and buffers of the module, under their names, and without its classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import _C, fx
from ..amp.state import is_any_autocast_enabled
from ..base import pytree
from ..modules.module import Module
from .jit_capture import capture, parameter_names

if TYPE_CHECKING:
    from .script_graphs import Graph

__all__ = ["TracedFunction", "TracedModule", "shape_of", "trace_graph", "trace_methods"]


def _given(args: tuple, kwargs: dict, names: list[str], examples: tuple) -> list:
    """The tensors of a call, in the order of the tree that was traced: keywords stand where the examples had them."""
    positional, keywords = list(args), dict(kwargs)
    for name in names[len(args) :]:
        if name in keywords and len(positional) < len(examples[0]):
            positional.append(keywords.pop(name))
    for k, name in enumerate(names):
        if k < len(positional) and k >= len(examples[0]) and name in examples[1]:
            keywords[name] = positional[k]
    del positional[len(examples[0]) :]
    keywords = {k: keywords[k] for k in examples[1] if k in keywords}
    return [x for x in pytree.tree_leaves((tuple(positional), keywords)) if isinstance(x, _C.TensorBase)]


def shape_of(args: tuple, kwargs: dict) -> tuple:
    """Which arguments there were: their count and the names of the others, as :func:`_given` asks."""
    return tuple(None for _ in args), dict.fromkeys(kwargs)


class _ByNames(fx.Interpreter):
    """Runs a graph by the names of its operators, which autocast casts; their overloads, which the graph's code calls, are as they are given."""

    def call_function(self, target, args, kwargs):
        return super().call_function(getattr(target, "overloadpacket", target), args, kwargs)


class TracedFunction:
    """A traced function: call it with tensors like those that it was traced with."""

    def __init__(self, func: Callable, graph: fx.GraphModule, examples: tuple):
        self.__name__ = getattr(func, "__name__", type(func).__name__)
        self.__doc__ = func.__doc__
        self._graph_module, self._names, self._examples = graph, parameter_names(func), examples

    def __call__(self, *args, **kwargs):
        given = _given(args, kwargs, self._names, self._examples)
        return _ByNames(self._graph_module).run(*given) if is_any_autocast_enabled() else self._graph_module(*given)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.__name__

    @property
    def graph(self) -> Graph:
        """The captured graph in TorchScript's form."""
        from .script_graphs.traced import of_trace

        return of_trace(self._graph_module.graph, self._graph_module, None)

    inlined_graph = graph

    @property
    def graph_module(self) -> fx.GraphModule:
        """The captured graph, which is what is run."""
        return self._graph_module

    @property
    def code(self) -> str:
        """The graph as Python."""
        return self._graph_module.code


class TracedModule(Module):
    """A traced module: the graph, run over parameters and buffers of its own attributes, which are those of the module that was traced.
    Submodules are such modules without a graph."""

    def __init__(self, original: Module):
        super().__init__()
        self.original_name = type(original).__name__
        self.training = original.training
        for name, p in original._parameters.items():
            self.register_parameter(name, p)
        for name, b in original._buffers.items():
            self.register_buffer(name, b, name not in original._non_persistent_buffers_set)
        for name, m in original._modules.items():
            if m is not None:
                self.add_module(name, TracedModule(m))
        self.__dict__.update(_graphs={}, _forwards={})

    def forward(self, *args, **kwargs):
        return self._run("forward", args, kwargs)

    def _run(self, method: str, args: tuple, kwargs: dict):
        found = self._graphs.get(method)
        if found is None:
            raise RuntimeError(f"{self.original_name}.{method} wasn't traced: the graph of the whole module was")
        graph, names, examples = found
        given = _given(args, kwargs, names, examples)
        if is_any_autocast_enabled():
            return _ByNames(self, graph=graph.graph).run(*given)
        return self._forwards[method](self, *given)

    def _add(self, method: str, graph: fx.GraphModule, names: list[str], examples: tuple) -> None:
        graph.real_recompile()
        self._graphs[method], self._forwards[method] = (graph, names, examples), type(graph).forward

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "_forwards"}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__["_forwards"] = {}
        for method, found in self._graphs.items():
            self._add(method, *found)

    def __getattr__(self, name):
        if name != "_graphs" and name in self.__dict__.get("_graphs", ()):
            return lambda *args, **kwargs: self._run(name, args, kwargs)
        return super().__getattr__(name)

    def __getitem__(self, key):
        return list(self._modules.values())[key] if isinstance(key, int | slice) else self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __bool__(self):
        return True

    @property
    def graph(self) -> Graph:
        """The captured graph of ``forward`` in TorchScript's form: what submodules call stands in it, with the scopes of their names."""
        from .script_graphs.traced import of_trace

        return of_trace(self.graph_module.graph, self, self.original_name)

    inlined_graph = graph

    @property
    def graph_module(self) -> fx.GraphModule:
        """The captured graph of ``forward``, which is what is run. RuntimeError where it wasn't traced."""
        if "forward" not in self._graphs:
            raise RuntimeError(f"{self.original_name}.forward wasn't traced: the graph of the whole module was")
        return self._graphs["forward"][0]

    @property
    def code(self) -> str:
        """The graph of ``forward`` as Python."""
        return self.graph_module.code


def trace_methods(original: Module, inputs: dict[str, tuple[tuple, dict]], strict: bool) -> TracedModule:
    """The module with the graphs of these methods: {name: (args, kwargs)}."""
    out = TracedModule(original)
    homes = {id(t): name for name, t in [*original.named_parameters(remove_duplicate=False), *original.named_buffers()]}
    for method, (args, kwargs) in inputs.items():
        fn = original if method == "forward" else getattr(original, method)
        graph = capture(fn, args, kwargs, strict).graph
        for node in graph.graph.nodes:
            if node.op == "get_attr":
                value = getattr(graph, node.target, None)
                if id(value) in homes:
                    node.target = homes[id(value)]
                else:  # a constant of the trace
                    out.register_buffer(f"_{method}{node.target}", value, False)
                    node.target = f"_{method}{node.target}"
        out._add(method, fx.GraphModule(out, graph.graph), parameter_names(fn), shape_of(args, kwargs))
    return out


def trace_graph(
    f,
    args=(),
    kwargs=None,
    strict: bool = True,
    _force_outplace: bool = False,
    return_inputs: bool = False,
    _return_inputs_states: bool = False,
):
    """``torch.jit._get_trace_graph``: (the graph of ``f(*args, **kwargs)``, the result without history), and with ``return_inputs`` the inputs.
    Parameters and buffers of a module are inputs of the graph, behind the arguments; inputs have numbers for names."""
    from .script_graphs.traced import of_trace

    args, kwargs = args if isinstance(args, tuple) else (args,), kwargs or {}
    found = capture(f, args, kwargs, strict)
    states = {id(t): t for t in f.state_dict(keep_vars=True).values()} if isinstance(f, Module) else {}
    graph = of_trace(found.graph.graph, found.graph, None, tuple(states.values()), named=False)
    return (graph, found.result, args) if return_inputs else (graph, found.result)
