"""make_fx: trace a function of tensors down to operators and return the graph as a module.

The function runs once under a :class:`ProxyTorchDispatchMode`, on the tensors given (``tracing_mode="real"``) or on
fake ones, in ``"symbolic"`` with symbols for the sizes of the tensors and for the ints among the arguments: what the
program asked about them is in ``shape_env.guards`` of the module."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import _C
from ..base import pytree
from ..base.shape_env import ShapeEnv
from ..base.shapes import Size
from ..base.symint import NUMBERS
from ..core import modes
from ..fake import FakeTensor, FakeTensorMode
from ..fx import Graph, GraphModule
from .tracing import ProxyTorchDispatchMode

__all__ = ["disable_proxy_modes_tracing", "get_isolated_graphmodule", "make_fx"]

_MODES = ("real", "fake", "symbolic")


def make_fx(
    f: Callable,
    decomposition_table: dict[Any, Callable] | None = None,
    tracing_mode: str = "real",
    *,
    record_stack_traces: bool = False,
    pre_dispatch: bool = False,
    _allow_non_fake_inputs: bool = False,
    _error_on_data_dependent_ops: bool = True,
    **unsupported,
) -> Callable[..., GraphModule]:
    """``make_fx(f)(*args)`` is a GraphModule computing ``f`` with operators only.

    Tensors among ``args`` (in any nesting) become inputs; everything else is a constant of the trace. The module is
    called with the same structure of arguments and returns the structure that ``f`` returned. ``pre_dispatch``: composites
    (``matmul``) are one node each, and switches of grad mode are nodes. In the modes
    "fake" and "symbolic" a tensor that ``f`` reads from outside is an AssertionError, unless
    ``_allow_non_fake_inputs``. Without ``_error_on_data_dependent_ops`` a number that is read out of a tensor (``item``)
    is kept as a constant of the graph; else it is a RuntimeError."""
    if tracing_mode not in _MODES:
        raise ValueError(f"make_fx: tracing_mode must be one of {_MODES}, got {tracing_mode!r}")
    off = {k: v for k, v in unsupported.items() if v}
    if off:
        raise NotImplementedError(f"make_fx: {', '.join(off)} is not implemented")

    @functools.wraps(f)
    def wrapped(*args) -> GraphModule:
        options = {
            "pre_dispatch": pre_dispatch,
            "keeps_numbers": not _error_on_data_dependent_ops,
            "allow_real": _allow_non_fake_inputs or tracing_mode == "real",
        }
        with modes.without(ProxyTorchDispatchMode):
            return trace(f, args, decomposition_table, tracing_mode, record_stack_traces, **options)

    return wrapped


def disable_proxy_modes_tracing():
    """Context manager: nothing that runs in it is traced. Other modes stay."""
    return modes.without(ProxyTorchDispatchMode)


def get_isolated_graphmodule(
    func: Callable, args: tuple, kwargs: dict, tracing_mode: str = "real", decomposition_table: dict | None = None
) -> GraphModule:
    """``func(*args, **kwargs)`` traced by itself: a trace that is running sees nothing of it. The module takes the leaves of the arguments."""
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def flat(*leaves):
        args, kwargs = pytree.tree_unflatten(list(leaves), spec)
        return func(*args, **kwargs)

    return make_fx(flat, decomposition_table, tracing_mode)(*leaves)


def find_fake_mode(values) -> FakeTensorMode | None:
    """The mode of the first FakeTensor among ``values``, or the active one."""
    for v in values:
        if isinstance(v, FakeTensor):
            return v.fake_mode
    return next((m for m in reversed(modes.dispatch_stack()) if isinstance(m, FakeTensorMode)), None)


def trace(
    f,
    args: tuple,
    decomposition_table=None,
    tracing_mode: str = "fake",
    record_stack: bool = False,
    *,
    allow_real: bool = True,
    **options,
) -> GraphModule:
    """Trace ``f(*args)`` once. ``options``: of :class:`ProxyTorchDispatchMode`."""
    leaves, spec = pytree.tree_flatten(args)
    env = ShapeEnv() if tracing_mode == "symbolic" else None
    # Sizes of arguments are numbers in a "fake" trace; those that depend on data need symbols there too.
    sizes = ShapeEnv() if tracing_mode == "fake" else env
    fake_mode = find_fake_mode(leaves) or FakeTensorMode(
        allow_non_fake_inputs=allow_real, shape_env=sizes, static_shapes=env is None
    )
    names = _input_names(f, args, leaves)
    if tracing_mode != "real":
        made: dict[int, Any] = {}

        def fake(i, t):
            if isinstance(t, _C.TensorBase) and not isinstance(t, FakeTensor):
                if id(t) not in made:
                    made[id(t)] = (
                        fake_mode.from_tensor(t, source=_source(names[i])) if env else fake_mode.from_tensor(t)
                    )
                return made[id(t)]
            return env.create_int(t, names[i]) if env is not None and type(t) is int and t not in (0, 1) else t

        leaves = [fake(i, t) for i, t in enumerate(leaves)]
    graph = Graph()
    mode = ProxyTorchDispatchMode(graph, fake_mode, decomposition_table, record_stack, **options)
    for name, leaf in zip(names, leaves):
        mode.placeholder(name, leaf)
    inputs = pytree.tree_unflatten(leaves, spec)
    if tracing_mode != "real":
        with fake_mode, mode:
            out = f(*inputs)
    else:
        with mode:
            out = f(*inputs)
    gm = finish(mode, out, getattr(f, "__name__", "GraphModule"), spec)
    if fake_mode.shape_env is not None:
        gm.shape_env = fake_mode.shape_env
    return gm


def _source(name: str):
    return lambda part: f"{name}.{part[0]}({part[1]})"


def _input_names(f, args: tuple, leaves: list) -> list[str]:
    """``x_1`` for a parameter ``x`` that is a leaf itself, ``arg3_1`` for the rest."""
    names = [f"arg{i}_1" for i in range(len(leaves))]
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return names
    i = 0
    for p, a in zip(parameters, args):
        n = len(pytree.tree_leaves(a))
        if p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY, p.VAR_KEYWORD):
            break
        if n == 1 and leaves[i : i + 1] and not isinstance(a, (tuple, list, dict)):
            names[i] = f"{p.name}_1"
        i += n
    return names


def finish(mode: ProxyTorchDispatchMode, out: Any, name: str, in_spec=None) -> GraphModule:
    """Add the output, drop numbers that nothing uses and build the module."""
    leaves, spec = pytree.tree_flatten(out)
    mode.insert_checks()
    mode.insert_grad_mode()
    nodes = [mode.argument(o) for o in leaves]
    graph = mode.graph
    plain = _is_plain(out)
    graph.output(pytree.tree_unflatten(nodes, spec) if plain else nodes)
    nested = in_spec is not None and in_spec.num_nodes - in_spec.num_leaves > 1
    if nested or not plain:
        graph.specs = (in_spec, None if plain else spec)
    graph.eliminate_dead_code(_stays)
    return GraphModule(mode.constants, graph, name if name.isidentifier() else "GraphModule")


def _stays(node) -> bool:
    """Whether a node is kept although nothing uses it: operators on tensors are, as in PyTorch; sizes and arithmetic on them aren't."""
    return node.is_impure() or node.op == "call_function" and not isinstance(node.meta.get("val"), NUMBERS)


def _is_plain(out: Any) -> bool:
    """Whether the graph's output can hold the value's structure itself."""
    if type(out) in (tuple, list, Size):
        return all(map(_is_plain, out))
    if type(out) is dict:
        return all(map(_is_plain, out.values()))
    return isinstance(out, (_C.TensorBase, *NUMBERS, int, float, bool, str, complex, type(None)))
