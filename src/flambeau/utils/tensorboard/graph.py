"""The graph of a model for TensorBoard: the ATen operators of one run, each in the module that called it."""

from __future__ import annotations

import collections

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ... import _C
from ...autograd.grad_mode import no_grad
from ...base.pytree import tree_flatten
from ...core.modes import TorchDispatchMode

__all__ = ["graph"]

# The version of TensorFlow's graphs that TensorBoard is told.
_PRODUCER = 22


def _tensors(tree) -> list:
    return [x for x in tree_flatten(tree)[0] if isinstance(x, _C.TensorBase)]


class _Recorder(TorchDispatchMode):
    """A node for each operator, named by the module that is running. Tensors that were seen are kept, so that no id comes twice."""

    def __init__(self, root: str):
        super().__init__()
        self.nodes: list[NodeDef] = []
        self.scopes = [root]
        self.names: dict[int, str] = {}
        self.kept: list = []
        self.counts: collections.Counter = collections.Counter()

    def unique(self, name: str) -> str:
        self.counts[name] += 1
        n = self.counts[name]
        return name if n == 1 else f"{name}_{n - 1}"

    def add(self, name: str, kind: str, inputs: list[str], results: list, text: str = "") -> None:
        shapes = [TensorShapeProto(dim=[TensorShapeProto.Dim(size=int(n)) for n in t.shape]) for t in results]
        attributes = {"_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes))}
        if text:
            attributes["attr"] = AttrValue(s=text.encode())
        self.nodes.append(NodeDef(name=name, op=kind, input=inputs, attr=attributes))

    def source(self, t) -> str:
        """The node that a tensor comes from; one that nobody made is a constant of the module that is running."""
        if id(t) not in self.names:
            self.declare(t, f"{self.scopes[-1]}/constant", "prim::Constant")
        return self.names[id(t)]

    def declare(self, t, name: str, kind: str) -> None:
        name = self.unique(name)
        self.add(name, kind, [], [t])
        self.made(t, name)

    def made(self, t, name: str) -> None:
        self.names[id(t)] = name
        self.kept.append(t)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        inputs = [self.source(t) for t in _tensors((args, kwargs))]
        out = func(*args, **kwargs)
        numbers = [a for a in args if not isinstance(a, _C.TensorBase) and not _tensors(a)]
        settings = {
            **{str(i): a for i, a in enumerate(numbers)},
            **{k: v for k, v in kwargs.items() if not _tensors(v)},
        }
        kind = func._schema.name
        name = self.unique(f"{self.scopes[-1]}/{kind.rpartition('::')[2]}")
        results = _tensors(out)
        self.add(name, kind, inputs, results, str(settings) if settings else "")
        for t in results:
            self.made(t, name)
        return out


def graph(model, args, verbose: bool = False, use_strict_trace: bool = True) -> tuple[GraphDef, RunMetadata]:
    """(graph, what TensorBoard wants to know of its run) of ``model(*args)``, run once in eval mode without gradients. ``args``: a tensor or a tuple
    of what the model takes. ``verbose`` prints the graph. ``use_strict_trace`` changes nothing: results of any container are recorded."""
    args = args if isinstance(args, tuple | list) else (args,)
    paths = {module: path for path, module in model.named_modules()}
    root = type(model).__name__
    recorder = _Recorder(root)
    for path, t in [*model.named_parameters(), *model.named_buffers()]:
        owner, _, own = path.rpartition(".")
        recorder.declare(t, f"{_scope(model, root, owner)}/{own}", "prim::GetAttr")
    for i, t in enumerate(_tensors(args)):
        recorder.declare(t, f"input/input.{i + 1}", "IO Node")
    modes = {module: module.training for module in paths}
    handles = []
    for module, path in paths.items():
        scope = _scope(model, root, path)
        handles.append(module.register_forward_pre_hook(lambda m, a, scope=scope: recorder.scopes.append(scope)))
        handles.append(module.register_forward_hook(lambda m, a, out: recorder.scopes.pop() and None, always_call=True))
    try:
        model.eval()
        with no_grad(), recorder:
            results = _tensors(model(*args))
    finally:
        for handle in handles:
            handle.remove()
        for module, training in modes.items():
            module.training = training
    for i, t in enumerate(results):
        recorder.add(f"output/output.{i + 1}", "IO Node", [recorder.source(t)], [t])
    made = GraphDef(node=recorder.nodes, versions=VersionDef(producer=_PRODUCER))
    if verbose:
        print("\n".join(f"{n.name}: {n.op}({', '.join(n.input)})" for n in recorder.nodes))
    return made, RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))


def _scope(model, root: str, path: str) -> str:
    """``Net/Sequential[body]/Linear[0]`` of the module at ``body.0``."""
    scope, module = root, model
    for part in path.split(".") if path else ():
        module = module._modules[part]
        scope += f"/{type(module).__name__}[{part}]"
    return scope
