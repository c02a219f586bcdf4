"""A graph with the attributes it refers to, callable: the graph is printed as Python and that text is compiled.

A GraphModule is a Module whose class is its own: ``forward`` is the generated function. Its source is in linecache, so tracebacks and pdb show
it. Parameters, buffers (any other tensor) and submodules are the Module's; dotted names are made of empty Modules."""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import linecache
import os
import weakref
from typing import Any

from ..base import pytree
from ..core.tensor import Tensor
from ..modules.module import Module
from ..modules.parameter import Parameter
from .graph import Graph

__all__ = ["GraphModule"]

_counter = itertools.count()


def compile_source(
    src: str, globals: dict[str, Any], name: str, executable: str | None = None, origin: str = ""
) -> tuple[Any, str]:
    """Execute generated source that defines ``name``; returns the function and the file name that linecache knows it
    by. ``origin``: what it was made from.
    """
    filename = f"<flambeau_generated_{next(_counter)}>{f' from {origin}' if origin else ''}"
    linecache.cache[filename] = (len(src), None, src.splitlines(True), filename)
    scope = dict(globals)
    exec(compile(executable or src, filename, "exec"), scope)
    return scope[name], filename


class GraphModule(Module):
    """``GraphModule(root, graph)``: ``root`` is a module or a dict from qualified names to values; only what the graph
    uses is copied.
    """

    # A GraphFacts, where a compiler is told more than the nodes say.
    facts: Any = None

    def __new__(cls, *args, **kwargs):
        # A class of its own for each instance; `forward` is set on it.
        base = next(c for c in cls.__mro__ if "_generated" not in c.__dict__)
        own = type(
            base.__name__,
            (base,),
            {"_generated": True, "__module__": base.__module__, "__qualname__": base.__qualname__},
        )
        return object.__new__(own)

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.meta: dict[str, Any] = {}
        self._class_name = type(self).__name__ = class_name
        if isinstance(getattr(root, "training", None), bool):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if not isinstance(root, dict):
                    _copy_attr(root, self, node.target)
                elif node.target in root:
                    _assign(self, node.target, root[node.target])
                else:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not provided in `root`!"
                    )
        self.graph = graph
        tracer = graph._tracer_cls
        self._tracer_cls = tracer if tracer is not None and "<locals>" not in tracer.__qualname__ else None

    # -- graph and code -------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> None:
        """To be called after the graph was edited. The text is printed and compiled when it is first needed."""
        type(self).forward = _Lazy()

    def _compile(self) -> None:
        code = self._graph.python_code("self")
        info = getattr(self._graph._codegen, "pytree_info", None)
        if info is not None:
            self.__dict__.update(_in_spec=info.in_spec, _out_spec=info.out_spec)
        forward, filename = compile_source(code.src, code.globals, "forward", code.executable, self._graph.traced_from)
        old = self.__dict__.get("_filename")
        if old is not None:
            linecache.cache.pop(old, None)
        weakref.finalize(self, linecache.cache.pop, filename, None)
        self.__dict__.update(_code=code.src, _filename=filename)
        specs = self._graph.specs
        type(self).forward = forward if specs is None else _with_structure(forward, *specs)

    def real_recompile(self) -> None:
        """Compile now what :meth:`recompile` put off."""
        if isinstance(type(self).__dict__["forward"], _Lazy):
            self._compile()

    @property
    def code(self) -> str:
        self.real_recompile()
        return self._code

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ):
        """The code with shapes and the user's source lines as comments; printed unless ``print_output`` is False."""
        text = _readable(self, self._class_name)
        if print_output:
            print(text)
        return text

    def __repr__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self.code, hint])

    def print_tabular(self) -> None:
        self._graph.print_tabular()

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module to ``folder`` as a package whose class ``module_name`` takes no arguments: the code in ``module.py``, children and
        tensors pickled beside it. ValueError where the code names an object that can't be imported."""
        # Imported when it is asked for: paths, which parse addresses as well, take six milliseconds.
        importlib.import_module("flambeau.fx.folder").write_folder(self, folder, module_name)

    # -- submodules -------------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put ``m`` at the dotted name ``target``. False when something on the way is no Module."""
        *prefix, last = target.split(".")
        owner: Any = self
        for part in prefix:
            inner = getattr(owner, part, None)
            if inner is None:
                inner = Module()
                setattr(owner, part, inner)
            if not isinstance(inner, Module):
                return False
            owner = inner
        owner.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take the submodule at ``target`` away. False when there is none."""
        *prefix, last = target.split(".")
        owner: Any = self
        for part in prefix:
            owner = getattr(owner, part, None)
        if not isinstance(getattr(owner, last, None), Module):
            return False
        delattr(owner, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Drop submodules that no node refers to."""
        used: set[str] = set()
        for node in self._graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    with contextlib.suppress(AttributeError):
                        used.update(
                            f"{node.target}.{name}" for name, _ in self.get_submodule(node.target).named_modules()
                        )
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- copies ---------------------------------------------------------------------------------------------------

    def _body(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in _GENERATED}

    def __copy__(self):
        cls = _unowned_class(self)
        out = cls.__new__(cls)
        GraphModule.__init__(out, self, copy.deepcopy(self._graph), self._class_name)
        out.meta.update(self.meta)
        return out

    def _replicate_for_data_parallel(self):
        """A copy that shares what it refers to."""
        return copy.copy(self)

    def __deepcopy__(self, memo):
        """What the graph refers to is copied, and the hooks that saving and loading call; as in PyTorch."""
        cls = _unowned_class(self)
        out = memo[id(self)] = cls.__new__(cls)
        body = copy.deepcopy(self._body(), memo)
        GraphModule.__init__(out, _CodeOnlyModule(body), copy.deepcopy(self._graph), self._class_name)
        out.__dict__.update({name: body[name] for name in _COPIED_HOOKS if name in body}, meta=body["meta"])
        return out

    def __reduce__(self):
        return _rebuild_module, (_unowned_class(self), self._graph, self._body())


def _readable(gm: GraphModule, name: str) -> str:
    """The class as text, the graphs among its children as classes within."""
    src = gm._graph.python_code("self", verbose=True).src.lstrip("\n")
    text = _indented(f"class {name}(torch.nn.Module):\n{src}")
    inner = [""] + [_readable(child, key) for key, child in gm.named_children() if isinstance(child, GraphModule)]
    return text + _indented("\n".join(inner))


def _indented(text: str) -> str:
    """All lines but the first four spaces to the right."""
    return text.replace("\n", "\n    ")


# What is made again from the graph, and the graph itself.
_GENERATED = frozenset({"_graph", "_code", "_filename"})
_COPIED_HOOKS = ("_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks")


def _unowned_class(gm: GraphModule) -> type:
    """The class that ``gm``'s own was made from."""
    return next(c for c in type(gm).__mro__ if "_generated" not in c.__dict__)


def _with_structure(flat, in_spec, out_spec):
    """``forward`` for a graph whose inputs and outputs are the leaves of nested containers."""

    def forward(self, *args):
        leaves, spec = pytree.tree_flatten(args)
        if in_spec is not None and spec != in_spec:
            raise TypeError(f"the graph takes arguments of the structure {in_spec}, got {spec}")
        out = flat(self, *leaves)
        return out if out_spec is None else pytree.tree_unflatten(list(out), out_spec)

    return forward


class _Lazy:
    """``forward`` before it is printed: many graphs are only passed on from one pass to the next."""

    def __get__(self, module, owner=None):
        if module is None:
            return self
        module._compile()
        return module.forward


class _CodeOnlyModule(Module):
    """A Module whose state is the given dictionary: what libraries copy attributes from."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


def _rebuild_module(cls: type, graph: Graph, body: dict[str, Any]) -> GraphModule:
    out = cls.__new__(cls)  # type: ignore[call-overload]
    out.__dict__.update(body)
    type(out).__name__ = body["_class_name"]
    out.graph = graph
    return out


def _copy_attr(source: Any, to: Module, path: str) -> None:
    """Put what ``source`` has at ``path`` at the same path of ``to``."""
    obj = source
    for p in path.split("."):
        if not hasattr(obj, p):
            raise RuntimeError(f"{type(source).__name__} has no attribute {path!r}, which the graph refers to")
        obj = getattr(obj, p)
    _assign(to, path, obj)


def _assign(to: Any, path: str, value: Any) -> None:
    *prefix, last = path.split(".")
    for p in prefix:
        inner = getattr(to, p, None)
        if inner is None:
            inner = Module()
            setattr(to, p, inner)
        to = inner
    if getattr(to, last, None) is value:
        return  # put here by a node before this one, or part of a submodule that is
    if isinstance(value, Tensor) and not isinstance(value, Parameter) and isinstance(to, Module):
        to.register_buffer(last, value)
    else:
        setattr(to, last, value)
