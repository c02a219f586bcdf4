"""Tracing for these tests: a function to an ATen-level graph, with nothing of proxy/ or aot/ involved."""

import flambeau as torch
from flambeau import _C, fx
from flambeau.core import keys
from flambeau.core.definition import TensorMeta
from flambeau.core.dispatch import excluding
from flambeau.core.modes import TorchDispatchMode
from flambeau.core.tensor import Tensor


def _make(meta):
    if isinstance(meta, TensorMeta):
        return _C.without_data(Tensor, meta.shape, meta.strides, meta.dtype, meta.device, meta.offset, None)
    return type(meta)(map(_make, meta)) if isinstance(meta, (tuple, list)) else meta


class _Mode(TorchDispatchMode):
    def __init__(self, graph):
        super().__init__()
        self.graph, self.nodes, self.keep = graph, {}, []

    def _node(self, x):
        if isinstance(x, _C.TensorBase):
            return self.nodes[id(x)]
        return [self._node(y) for y in x] if isinstance(x, (tuple, list)) else x

    def _know(self, tensor, node):
        node.meta["val"] = tensor
        self.keep.append(tensor)
        if isinstance(tensor, (tuple, list)):
            import operator

            for i, t in enumerate(tensor):
                if isinstance(t, _C.TensorBase):
                    self._know(t, self.graph.call_function(operator.getitem, (node, i)))
        else:
            self.nodes[id(tensor)] = node

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = _make(func.facet("meta")(*func.full(*args, **kwargs)))
        self._know(
            out,
            self.graph.call_function(
                func, tuple(self._node(a) for a in args), {k: self._node(v) for k, v in kwargs.items()}
            ),
        )
        return out


def trace(fn, *args):
    """The graph module of ``fn`` for tensors ``args``."""
    graph = fx.Graph()
    mode = _Mode(graph)
    inputs = []
    for i, a in enumerate(args):
        t = _C.without_data(Tensor, tuple(a.shape), tuple(a.stride()), a.dtype, a.device, 0, None)
        mode._know(t, graph.placeholder(f"arg{i}"))
        inputs.append(t)
    with excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM), mode:
        out = fn(*inputs)
    out = out if isinstance(out, (tuple, list)) else (out,)
    graph.output(tuple(mode._node(o) for o in out))
    return fx.GraphModule(torch.nn.Module() if hasattr(torch, "nn") else {}, graph)
