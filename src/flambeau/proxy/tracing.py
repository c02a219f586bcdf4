"""ProxyTorchDispatchMode: a dispatch mode that records every operator it sees as a node.

Tensors are tracked by identity: the same tensor is the same node; a tensor the trace hasn't seen is a constant of the
graph (get_attr). An operator that writes an argument makes that argument mean the new node from then on.
``node.meta["val"]`` is a FakeTensor like the result (or a list of them), ``node.meta["stack"]`` the user's line when
asked for."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

from .. import _C
from ..autograd.grad_mode import _set_grad_enabled
from ..base.shape_checks import check
from ..base.symbolic_queries import sizes_of
from ..base.symint import NUMBERS, is_symbolic
from ..base.user_line import user_line
from ..core import modes
from ..core.higher_order import tensors_in
from ..core.keys import PYTHON
from ..core.operator import decomposed, namespace
from ..fake import FakeTensor, FakeTensorMode
from ..fake.constants import LIMIT
from ..fake.meta import meta_of
from ..fx import Graph, Node
from ..fx.node import has_side_effect
from ..fx.traceback import copy_meta, has_preserved_node_meta
from .lines import ForwardLines
from .sizes import SizeNodes
from .tape import NotesOfTape, OffTape

__all__ = ["ASSERT_SCALAR", "ProxyTorchDispatchMode", "current_proxy_mode", "user_line"]

ASSERT_SCALAR = namespace("aten")._assert_scalar.default
has_side_effect(_set_grad_enabled)


class ProxyTorchDispatchMode(modes.TorchDispatchMode):
    """``graph`` receives the nodes; ``fake_mode`` makes ``meta["val"]``. ``decompositions`` maps operators to
    functions that are traced in their place. ``pre_dispatch``: composites are nodes, and so are switches of grad mode
    between operators. ``keeps``: which composites are nodes where they neither write nor give back what they are given; ``switches``: those of
    grad mode are nodes. ``keeps_numbers``: a number read out of a traced tensor is a constant of the graph, not an error."""

    sees_parts = True

    records = True  # what runs under it is traced

    def __init__(
        self,
        graph: Graph,
        fake_mode: FakeTensorMode,
        decompositions: dict[Any, Callable] | None = None,
        record_stack: bool = False,
        pre_dispatch: bool = False,
        keeps_numbers: bool = False,
        keeps: Callable[[Any], bool] | None = None,
        switches: bool = False,
    ):
        super().__init__()
        self.keeps, self.switches = keeps, switches or pre_dispatch
        self.sees_composites = pre_dispatch or keeps is not None
        self.keeps_numbers = keeps_numbers
        self._grad_mode = _C.tls("grad_enabled")  # what it is at the last node
        self.graph = graph
        self.fake_mode = fake_mode
        self.decompositions = decompositions or {}
        self.record_stack = record_stack
        # Computes the results. Where the fake mode is known to be next, its rule is called without another dispatch.
        self.execute: Callable = _call
        self.tape: NotesOfTape | None = None
        self.off_tape: OffTape | None = None  # noted of each call, by passes that retrace a graph
        self.stack: Any = None  # recorded in place of the user's line, by passes that retrace a graph
        self.lines = ForwardLines()
        self.constants: dict[str, Any] = {}
        self.inputs: list[Node] = []  # placeholders, in the order in which they were made
        self.written: dict[int, Any] = {}  # storages that some recorded operator wrote, by id
        self.written_under_grad: set[int] = set()  # the ids of those that one wrote in grad mode
        self.reshaped: dict[int, Any] = {}  # tensors whose own sizes were changed, by id
        self._nodes: dict[int, Node] = {}
        self._memory: dict[int, dict[tuple, Node]] = {}  # storage -> place in it -> node
        self._alive: list[Any] = []  # tracked tensors are kept, so that an id stays theirs
        self._fixed: dict[int, Any] = {}  # tensors with data that are the same at each run, by id
        self.sizes = SizeNodes(graph)
        env = fake_mode.shape_env
        self._checked = len(env.asserts) if env is not None else 0  # checks of the environment that are in the graph

    # -- tracking -------------------------------------------------------------------------------------------------

    def track(self, tensor: Any, node: Node) -> None:
        """From now on ``tensor`` means ``node``."""
        if id(tensor) not in self._nodes:
            self._alive.append(tensor)
        self._nodes[id(tensor)] = node
        self._memory.setdefault(id(tensor._storage), {})[_place(tensor)] = node
        if self.tape is not None:
            self.tape.made(tensor, node)

    def node_of(self, tensor: Any) -> Node | None:
        return self._nodes.get(id(tensor))

    def placeholder(self, name: str, tensor: Any) -> Node:
        """A new input of the graph meaning ``tensor``."""
        node = self.graph.create_node("placeholder", name, name=name)
        node.meta["val"] = self.snapshot(tensor)
        self.inputs.append(node)
        if isinstance(tensor, _C.TensorBase):
            self.track(tensor, node)
            if is_symbolic(tensor._shape) or is_symbolic(tensor._strides):
                self.sizes.bind_tensor(tensor, node)
        elif is_symbolic(tensor):
            self.sizes.bind_number(tensor, node)
        return node

    def becoming(self, tensor: Any, view: Any) -> None:
        self.argument(tensor)
        # The tensor itself still has the place that it leaves: others may lie there.
        self._nodes[id(tensor)] = self._nodes[id(view)]
        self.reshaped[id(tensor)] = tensor

    def snapshot(self, value: Any) -> Any:
        """What ``meta["val"]`` keeps of a value: fake tensors without history; numbers as they are."""
        if isinstance(value, _C.TensorBase):
            return FakeTensor(self.fake_mode, meta_of(value))
        if isinstance(value, (list, tuple)):
            return type(value)(self.snapshot(v) for v in value)
        return value

    def constant(self, tensor: Any) -> Node:
        """The node of a tensor that no recorded operator made: the same memory under another object (autograd keeps
        results that way), or a constant of the graph."""
        known = self._memory.get(id(tensor._storage))
        if known is not None:
            node = known.get(_place(tensor))
            if node is None:
                raise RuntimeError(
                    f"tracing met a tensor of shape {list(tensor.shape)} that shares memory with a traced one but was "
                    "not made by an operator; make it with operators"
                )
            self.track(tensor, node)
            return node
        if isinstance(tensor, FakeTensor):
            raise RuntimeError(
                f"tracing met a FakeTensor of shape {list(tensor.shape)} that it did not make; without data it can't "
                "be a constant of the graph. Make it inside the traced function, or pass it as an argument."
            )
        name = f"_tensor_constant{len(self.constants)}"
        self.constants[name] = tensor
        node = self.graph.create_node("get_attr", name, name=name)
        copy_meta(node)
        node.meta["val"] = self.snapshot(tensor)
        self._alive.append(tensor)
        self._nodes[id(tensor)] = node
        return node

    def argument(self, a: Any) -> Any:
        """The node argument for a value given to an operator."""
        if isinstance(a, _C.TensorBase):
            return self._nodes.get(id(a)) or self.constant(a)
        if isinstance(a, (list, tuple)):
            return type(a)(map(self.argument, a)) if type(a) in (list, tuple) else tuple(map(self.argument, a))
        return self.sizes.node_of(a) if isinstance(a, NUMBERS) else a

    def insert_checks(self) -> None:
        """What was assumed of numbers that depend on data is checked from here on."""
        env = self.fake_mode.shape_env
        while env is not None and self._checked < len(env.asserts):
            a = env.asserts[self._checked]
            self._checked += 1
            condition = self.sizes.condition(a.relation, env)
            node = self.graph.create_node("call_function", ASSERT_SCALAR, (condition, a.message))
            node.meta["val"] = None

    def insert_check(self, condition, message: str) -> None:
        """A check of a number that depends on data: in the graph here, whatever is known of the number already."""
        self.insert_checks()
        check(condition, message)
        before = self._checked
        self.insert_checks()
        if self._checked == before:
            node = self.graph.create_node("call_function", ASSERT_SCALAR, (self.argument(condition), message))
            node.meta["val"] = None

    def insert_grad_mode(self) -> None:
        """The switch of grad mode since the last node, as a node."""
        now = _C.tls("grad_enabled")
        if self.switches and now != self._grad_mode:
            self._grad_mode = now
            copy_meta(self.graph.create_node("call_function", _set_grad_enabled, (bool(now),)))

    # -- recording ------------------------------------------------------------------------------------------------

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(not issubclass(t, FakeTensor) for t in types) and self._holds_strangers(args, kwargs):
            return NotImplemented  # the subclass says what it is made of, and that is traced
        if (
            func is _LIFT_FRESH
        ):  # its argument is a constant of the trace, and what is made of it a new tensor at each call
            func = _LIFT_FRESH_COPY
        replacement = self.decompositions.get(func)
        if replacement is None and self.decompositions:
            replacement = self.decompositions.get(func.overloadpacket)
        if replacement is not None:
            with self:
                out = replacement(*args, **kwargs)
            if out is not NotImplemented:
                return out
        if func._schema.returns and all(r.type == "SymInt" for r in func._schema.returns):
            return self.execute(func, args, kwargs)  # a size: a node when it is used
        self.insert_grad_mode()
        fixed = self._is_constant(args, kwargs)
        if func is _ITEM and args[0]._has_data and not (fixed or self.keeps_numbers):
            self._refuse_number(func)
        if self.fake_mode.shape_env is not None:
            self.insert_checks()
        node_args = tuple(map(self.argument, args))
        node_kwargs = {k: self.argument(v) for k, v in kwargs.items()}
        if self.keeps is not None and decomposed(func):
            out, computes = self._computed(func, args, kwargs)
            if not computes:
                with self:
                    return func.definition.fn(*func.full(*args, **kwargs))
        else:
            out = self.execute(func, args, kwargs)
        if not _holds_tensors(out) and func._schema.returns and not isinstance(out, NUMBERS):
            if self.keeps_numbers or fixed:
                return out
            self._refuse_number(func)
        node = self.graph.create_node("call_function", func, node_args, node_kwargs)
        stack = user_line() if self.record_stack else self.stack or self.lines.of_backward()
        if stack is not None:
            node.meta["stack"] = stack
        if self.off_tape is not None:
            node.meta["off_tape"] = self.off_tape
        elif self.tape is not None:
            self.tape.note(node, args, kwargs)
        if has_preserved_node_meta():
            copy_meta(node)
            node.meta.setdefault("original_aten", func)
        if _is_mutable(func):
            self._write(func, args, kwargs, node, out, fixed)
        elif (fixed and "draws" not in func.effects) or func is _LIFT_FRESH_COPY:
            made = out if isinstance(out, (list, tuple)) else [out]
            self._fixed.update((id(t), t) for t in made if isinstance(t, _C.TensorBase) and _is_small(t))
        self.track_result(out, node)
        return out

    def _computed(self, func, args, kwargs) -> tuple[Any, bool]:
        """The result of a composite, and whether it may be a node of a functional graph: what it is given isn't written, nor a part of the result."""
        if not self.keeps(func) or func._schema.is_mutable:
            return None, False
        own = {id(t._storage) for t in tensors_in((args, kwargs))}
        with _Watching(self.execute) as watching:
            out = func.definition.fn(*func.full(*args, **kwargs))
        return out, own.isdisjoint(watching.written) and own.isdisjoint(id(t._storage) for t in tensors_in(out))

    def _holds_strangers(self, args, kwargs) -> bool:
        """Whether an argument is of a subclass that takes operators over, and neither fake nor made by the trace."""
        return any(
            t._keys & PYTHON and not isinstance(t, FakeTensor) and id(t) not in self._nodes
            for t in tensors_in((args, kwargs))
        )

    def _is_constant(self, args, kwargs) -> bool:
        """Whether all tensors of a call are constants of the trace, so that numbers read out of them are the same at each run; as in PyTorch."""
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, _C.TensorBase)]
        return bool(tensors) and all(id(t) in self._fixed or getattr(t, "constant", None) is not None for t in tensors)

    def _refuse_number(self, func):
        raise RuntimeError(
            f"It appears that you're trying to get value out of a tracing tensor with {func} - erroring out! It's "
            "likely that this is caused by data-dependent control flow or similar: the trace would keep one number "
            "for all inputs."
        )

    def track_result(self, out: Any, node: Node) -> None:
        if isinstance(out, _C.TensorBase):
            node.meta["val"] = self.snapshot(out)
            self.track(out, node)
            if is_symbolic(out._shape):
                self.sizes.bind_tensor(out, node, unbacked_only=True)
        elif isinstance(out, (list, tuple)):
            node.meta["val"] = self.snapshot(out)
            for i, o in enumerate(out):
                inner = isinstance(o, (list, tuple)) and _holds_tensors(o)
                if inner or (isinstance(o, _C.TensorBase) and self._nodes.get(id(o)) is not node):
                    item = self.graph.create_node("call_function", operator.getitem, (node, i))
                    copy_meta(item)
                    self.track_result(o, item)
        else:
            node.meta["val"] = out
            if isinstance(out, NUMBERS):
                self.sizes.bind_number(out, node)

    def _write(self, func, args, kwargs, node: Node, out: Any, fixed: bool) -> None:
        """Note the writes of the call. ``fixed``: its inputs are the same at each run."""
        fixed = fixed and "draws" not in func.effects
        values = func.full(*args, **kwargs)
        for argument, value in zip(func._schema.arguments, values):
            if argument.is_write:
                for t in value if isinstance(value, (list, tuple)) else (value,):
                    if isinstance(t, _C.TensorBase):
                        self.written[id(t._storage)] = t._storage
                        if not fixed:
                            for k in [k for k, known in self._fixed.items() if known._storage is t._storage]:
                                del self._fixed[k]
                        if _C.tls("grad_enabled"):
                            self.written_under_grad.add(id(t._storage))


class _Watching(modes.TorchDispatchMode):
    """Notes which memory operators write, by id."""

    sees_parts = True

    def __init__(self, execute: Callable):
        super().__init__()
        self.execute = execute
        self.written: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        for argument, value in zip(func._schema.arguments, func.full(*args, **(kwargs or {}))):
            if argument.is_write:
                self.written.update(id(t._storage) for t in tensors_in(value))
        return self.execute(func, args, kwargs or {})


def _is_small(t) -> bool:
    """Whether a constant may be as large."""
    return not is_symbolic(t._shape) and t.numel() <= LIMIT


_ITEM = namespace("aten")._local_scalar_dense.default
_LIFT_FRESH, _LIFT_FRESH_COPY = namespace("aten").lift_fresh.default, namespace("aten").lift_fresh_copy.default


def _call(func, args, kwargs):
    return func(*args, **kwargs)


@functools.cache
def _is_mutable(op) -> bool:
    return op._schema.is_mutable


def _place(t) -> tuple:
    return sizes_of(t._shape), sizes_of(t._strides), *sizes_of((t._offset,)), t.dtype


def _holds_tensors(out: Any) -> bool:
    if isinstance(out, (list, tuple)):
        return not out or any(map(_holds_tensors, out))
    return isinstance(out, _C.TensorBase) or out is None


def current_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost active proxy mode of this thread."""
    return next((m for m in reversed(modes.dispatch_stack()) if isinstance(m, ProxyTorchDispatchMode)), None)
