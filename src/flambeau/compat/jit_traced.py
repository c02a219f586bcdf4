"""What ``torch.jit.trace`` gives: a captured graph over the parameters and buffers of the module, under their names, and without its classes."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from .. import _C, fx
from ..autograd.grad_mode import no_grad
from ..base import pytree
from ..modules.module import Module
from ..proxy import make_fx

__all__ = ["TracedFunction", "TracedModule", "capture", "shape_of", "trace_methods"]


def capture(func: Callable, args: tuple, kwargs: dict, strict: bool) -> fx.GraphModule:
    """``func`` at these arguments as a graph that takes the tensors in them, in the order of the tree."""
    leaves, spec = pytree.tree_flatten((args, kwargs))
    # One that is given twice is two arguments.
    seen: set[int] = set()
    tensors = []
    for x in leaves:
        if isinstance(x, _C.TensorBase):
            tensors.append(x.detach() if id(x) in seen else x)
            seen.add(id(x))

    def flat(*given):
        rest = iter(given)
        a, k = pytree.tree_unflatten([next(rest) if isinstance(x, _C.TensorBase) else x for x in leaves], spec)
        out = func(*a, **k)
        if isinstance(out, dict) and strict:
            raise RuntimeError(
                "Encountering a dict at the output of the tracer might cause the trace to be incorrect, this is only valid if the container "
                "structure does not change based on the module's inputs. Consider using a constant container instead (e.g. for `list`, use a "
                "`tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need this and know the side effects, pass "
                "strict=False to trace() to allow this behavior."
            )
        return out

    with no_grad():
        return make_fx(flat)(*tensors)


def _names(func) -> list[str]:
    """The positional parameters of a function or of a module's forward."""
    try:
        parameters = inspect.signature(func.forward if isinstance(func, Module) else func).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


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


class TracedFunction:
    """A traced function: call it with tensors like those that it was traced with."""

    def __init__(self, func: Callable, graph: fx.GraphModule, examples: tuple):
        self.__name__ = getattr(func, "__name__", type(func).__name__)
        self.__doc__ = func.__doc__
        self._graph_module, self._names, self._examples = graph, _names(func), examples

    def __call__(self, *args, **kwargs):
        return self._graph_module(*_given(args, kwargs, self._names, self._examples))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.__name__

    @property
    def graph(self) -> fx.Graph:
        """The captured graph."""
        return self._graph_module.graph

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
        _, names, examples = found
        return self._forwards[method](self, *_given(args, kwargs, names, examples))

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
    def graph(self) -> fx.Graph:
        """The captured graph of ``forward``."""
        return self._graphs["forward"][0].graph

    @property
    def code(self) -> str:
        """The graph of ``forward`` as Python."""
        return self._graphs["forward"][0].code


def trace_methods(original: Module, inputs: dict[str, tuple[tuple, dict]], strict: bool) -> TracedModule:
    """The module with the graphs of these methods: {name: (args, kwargs)}."""
    out = TracedModule(original)
    homes = {id(t): name for name, t in [*original.named_parameters(remove_duplicate=False), *original.named_buffers()]}
    for method, (args, kwargs) in inputs.items():
        fn = original if method == "forward" else getattr(original, method)
        graph = capture(fn, args, kwargs, strict)
        for node in graph.graph.nodes:
            if node.op == "get_attr":
                value = getattr(graph, node.target, None)
                if id(value) in homes:
                    node.target = homes[id(value)]
                else:  # a constant of the trace
                    out.register_buffer(f"_{method}{node.target}", value, False)
                    node.target = f"_{method}{node.target}"
        out._add(method, fx.GraphModule(out, graph.graph), _names(fn), shape_of(args, kwargs))
    return out
