"""A graph with the attributes it refers to, callable: the graph is printed as Python and that text is compiled.

Every GraphModule has a class of its own, whose ``forward`` is the generated function; its source is in linecache, so
tracebacks and pdb show it. Parameters, buffers and submodules are ordinary attributes here: ``nn`` is a higher level,
and a GraphModule needs none of it."""

from __future__ import annotations

import copy
import itertools
import linecache
import weakref
from typing import Any

from ..base import pytree
from .graph import Graph

__all__ = ["GraphModule"]

_counter = itertools.count()


def compile_source(src: str, globals: dict[str, Any], name: str, executable: str | None = None) -> tuple[Any, str]:
    """Execute generated source that defines ``name``; returns the function and the file name that linecache knows it
    by.
    """
    filename = f"<flambeau_generated_{next(_counter)}>"
    linecache.cache[filename] = (len(src), None, src.splitlines(True), filename)
    scope = dict(globals)
    exec(compile(executable or src, filename, "exec"), scope)
    return scope[name], filename


class GraphModule:
    """``GraphModule(root, graph)``: ``root`` is a module or a dict from qualified names to values; only what the graph
    uses is copied.
    """

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
        self.__dict__.update(training=True, meta={}, _class_name=class_name)
        type(self).__name__ = class_name
        if hasattr(root, "training") and isinstance(root.training, bool):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                if isinstance(root, dict):
                    if node.target not in root:
                        raise RuntimeError(
                            f"Node {node} referenced target {node.target} but that target was not provided in `root`!"
                        )
                    _assign(self, node.target, root[node.target])
                else:
                    _copy_attr(root, self, node.target)
        self.graph = graph

    # -- graph and code -------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    def recompile(self) -> None:
        """To be called after the graph was edited. The text is printed and compiled when it is first needed."""
        type(self).forward = _Lazy()

    def _compile(self) -> None:
        code = self._graph.python_code("self")
        forward, filename = compile_source(code.src, code.globals, "forward", code.executable)
        old = self.__dict__.get("_filename")
        if old is not None:
            linecache.cache.pop(old, None)
        weakref.finalize(self, linecache.cache.pop, filename, None)
        self.__dict__.update(_code=code.src, _filename=filename)
        specs = self._graph.specs
        type(self).forward = forward if specs is None else _with_structure(forward, *specs)

    @property
    def code(self) -> str:
        if isinstance(type(self).__dict__["forward"], _Lazy):
            self._compile()
        return self._code

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ):
        """The code with shapes and the user's source lines as comments; printed unless ``print_output`` is False."""
        src = self._graph.python_code("self", verbose=True).src
        body = "\n".join("    " + line if line else "" for line in src.splitlines() if not line.startswith("import "))
        text = f"class {self._class_name}(torch.nn.Module):\n{body.strip(chr(10))}\n"
        if print_output:
            print(text)
        return text

    def __repr__(self) -> str:
        return f"{self._class_name}()\n\n\n\n{self.code}"

    def print_tabular(self) -> None:
        self._graph.print_tabular()

    # -- attributes, as far as users of a captured module ask for them ---------------------------------------------

    def _leaves(self, prefix: str = "", owner: Any = None):
        for name, value in vars(owner if owner is not None else self).items():
            if name in _OWN:
                continue
            if isinstance(value, Container):
                yield from self._leaves(f"{prefix}{name}.", value)
            else:
                yield prefix + name, value

    def _submodules(self):
        for name, value in self._leaves():
            if callable(value) and hasattr(value, "named_parameters"):
                yield name, value

    def named_modules(self, memo=None, prefix: str = "", remove_duplicate: bool = True):
        yield prefix, self
        for name, value in self._submodules():
            yield from value.named_modules(prefix=f"{prefix}.{name}" if prefix else name)

    def modules(self):
        for _, m in self.named_modules():
            yield m

    def named_children(self):
        yield from self._submodules()

    def children(self):
        for _, m in self._submodules():
            yield m

    def _tensors(self, parameters: bool):
        seen: set[int] = set()
        inner = "named_parameters" if parameters else "named_buffers"
        for name, value in self._leaves():
            if callable(value) and hasattr(value, inner):
                found = ((f"{name}.{k}", v) for k, v in getattr(value, inner)())
            elif hasattr(value, "requires_grad") and hasattr(value, "dtype"):
                found = [(name, value)] if _is_parameter(value) == parameters else []
            else:
                found = []
            for k, v in found:
                if id(v) not in seen:
                    seen.add(id(v))
                    yield k, v

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        for k, v in self._tensors(True):
            yield f"{prefix}.{k}" if prefix else k, v

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        for k, v in self._tensors(False):
            yield f"{prefix}.{k}" if prefix else k, v

    def parameters(self, recurse: bool = True):
        for _, p in self.named_parameters():
            yield p

    def buffers(self, recurse: bool = True):
        for _, b in self.named_buffers():
            yield b

    def state_dict(self) -> dict[str, Any]:
        return {**dict(self.named_parameters()), **dict(self.named_buffers())}

    def get_submodule(self, target: str):
        return _get(self, target) if target else self

    get_parameter = get_buffer = get_submodule

    def add_submodule(self, target: str, m: Any) -> bool:
        _assign(self, target, m)
        return True

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        _assign(self, name, tensor)

    def register_parameter(self, name: str, param: Any) -> None:
        _assign(self, name, param)

    def register_module(self, name: str, module: Any) -> None:
        _assign(self, name, module)

    add_module = register_module

    def delete_all_unused_submodules(self) -> None:
        """Drop attributes that no node refers to."""
        used = {n.target for n in self._graph.nodes if n.op in ("get_attr", "call_module")}
        for name, _ in list(self._leaves()):
            if not any(u == name or u.startswith(name + ".") for u in used):
                owner, _, last = name.rpartition(".")
                delattr(_get(self, owner) if owner else self, last)

    def train(self, mode: bool = True):
        self.training = mode
        for _, m in self._submodules():
            m.train(mode)
        return self

    def eval(self):
        return self.train(False)

    # -- copies ---------------------------------------------------------------------------------------------------

    def _rebuild_args(self):
        state = {k: v for k, v in self.__dict__.items() if k not in _OWN}
        return self._graph, self._class_name, self.training, state

    def __copy__(self):
        out = _rebuild_module(copy.deepcopy(self._graph), *self._rebuild_args()[1:])
        out.meta.update(self.meta)
        return out

    def __deepcopy__(self, memo):
        graph, name, training, state = self._rebuild_args()
        out = _rebuild_module(copy.deepcopy(graph), name, training, copy.deepcopy(state, memo))
        out.meta.update(self.meta)
        memo[id(self)] = out
        return out

    def __reduce__(self):
        return _rebuild_module, self._rebuild_args()


_OWN = frozenset({"training", "meta", "_class_name", "_graph", "_code", "_filename"})


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


class Container:
    """Holds attributes with dotted names: ``a.b`` is attribute ``b`` of a Container ``a``."""

    def __repr__(self) -> str:
        return f"Container({', '.join(vars(self))})"


def _rebuild_module(graph: Graph, name: str, training: bool, state: dict[str, Any]) -> GraphModule:
    out = GraphModule({}, Graph(), name)
    out.__dict__.update(state)
    out.training = training
    out.graph = graph
    return out


def _is_parameter(t: Any) -> bool:
    return bool(getattr(t, "_is_param", False)) or any(c.__name__ == "Parameter" for c in type(t).__mro__)


def _get(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part)
    return root


def _copy_attr(source: Any, to: Any, path: str) -> None:
    parts = path.split(".")
    obj = source
    for p in parts:
        if not hasattr(obj, p):
            raise RuntimeError(f"{type(source).__name__} has no attribute {path!r}, which the graph refers to")
        obj = getattr(obj, p)
    _assign(to, path, obj)


def _assign(to: Any, path: str, value: Any) -> None:
    *prefix, last = path.split(".")
    for p in prefix:
        inner = getattr(to, p, None)
        if inner is None:
            inner = Container()
            setattr(to, p, inner)
        to = inner
    if not (prefix and getattr(to, last, None) is value):
        setattr(to, last, value)
