"""Tensors: nodes of the graph, with a fake tensor that tells shape and dtype."""

from __future__ import annotations

import operator
import warnings
from typing import Any

from flambeau.core.subscript import BYTES_MASK

from ....base.records import slotted
from ...exc import unsupported
from ...graph import tensor_queries
from ...guards.source import GetAttrSource
from ...rules.constants import is_constant_value
from ...rules.reflect import name_of
from ...tracing import world
from ...tracing.current_frame import current
from ..base import Variable
from ..containers.sequences import TupleVariable
from ..iterators.container_iterators import ArrayIteratorVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import number_of
from .backward import has_history, is_end, is_freed, with_freed_history
from .tensor_methods import TensorMethodVariable
from .untraced import NOT_TRACED_ATTRS

__all__ = ["TensorVariable"]


@slotted
class TensorKey:
    """A tensor made while tracing, as a key of a dict or set."""

    node: Any


class TensorVariable(Variable):
    """``node`` in the graph; ``val`` its fake tensor; ``cls`` the Python class of the value."""

    is_tensor = True
    is_replaced = False  # a leaf whose data are of another form now: see set_data

    def __init__(self, node, val, source=None, cls=None):
        super().__init__(source)
        self.node, self.val = node, val
        self.cls = cls or tensor_queries.Tensor
        self.written: dict[str, Variable] = {}  # attributes; of graph inputs only

    @staticmethod
    def of_result(node, val) -> TensorVariable:
        return TensorVariable(node, val, cls=tensor_queries.class_of_result(val))

    @property
    def is_plain_tensor(self) -> bool:
        """Whether it is neither an array or a number, nor of a tensor subclass that operates in its own way."""
        return type(self) is TensorVariable

    def python_type(self):
        return self.cls

    def as_proxy(self):
        if self.is_replaced:
            unsupported(
                "tensor-setattr", f"using {self!r} behind setting its data", "The form of its gradient has changed."
            )
        return self.node

    def real_value(self, tx):
        return tx.output.recorder.real_value(self.node)

    def key_object(self):
        """What stands for the tensor as a key: tensors are hashed by identity."""
        if self.source is None or not self.is_plain_tensor:
            return TensorKey(self.node)
        output = current().output
        value = output.recorder.example_of(self)
        output.guard(self.source, "ID_MATCH", value)
        return value

    def reconstruct(self, cg):
        output = current().output
        if is_freed(output, self.val):
            ways = [
                i.source
                for i in output.recorder.inputs
                if tensor_queries.is_tensor(i.example) and i.example.requires_grad
            ]

            def push():
                cg.graph_output(output.recorder.detached(self.node))
                for source in ways:
                    cg.load_source(source)

            cg.call_function(with_freed_history, push, 1 + len(ways))
        elif self.val._inference and not output.process.field("inference"):
            cg.call_function(tensor_queries.as_inference, lambda: cg.graph_output(self.node), 1)
        else:
            cg.graph_output(self.node)

    def truth(self, tx):
        return None

    def length(self, tx):
        if not self.val.ndim:
            tx.raise_user(TypeError("len() of a 0-d tensor"))
        shown = self.shown_to_mode(tx, len)
        return self.val.shape[0] if shown is None else number_of(shown)

    def shown_to_mode(self, tx, fn) -> Variable | None:
        """What a ``__torch_function__`` mode makes of ``fn(self)``; None where none is asked."""
        blocks = tx.output.blocks
        if not blocks.function_modes or blocks.function_disabled > 1 or not self.is_plain_tensor:
            return None
        asked = tx.subclasses.asked_of_mode(tx, fn, [self], {})
        return None if asked is None else tx.output.ask_function_mode(tx, *asked)

    def iter(self, tx):
        return ArrayIteratorVariable(self) if self.val.ndim else super().iter(tx)

    def items(self, tx):
        if not self.val.ndim:
            tx.raise_user(TypeError("iteration over a 0-d tensor"))
        return [self.getitem(tx, ConstantVariable(i)) for i in range(int(self.val.shape[0]))]

    def getattr(self, tx, name):
        if tx.output.blocks.function_modes:
            cls_attr = getattr(tensor_queries.Tensor, name, None)
            if cls_attr is not None and not callable(cls_attr) and name != "__class__":
                shown = self.shown_to_mode(tx, lambda t: getattr(t, name))
                if shown is not None:
                    return shown
        if name == "is_leaf" and (known := self.known_leaf(tx)) is not None:
            return ConstantVariable(known)
        if name == "data_ptr" and self.is_plain_tensor:
            return TensorMethodVariable(self, name)
        if name in NOT_TRACED_ATTRS:
            unsupported(
                "tensor-attribute",
                f"reading {name} of a tensor",
                "It belongs to the tensor of one call, not to the graph.",
            )
        if name == "grad":
            return self.gradient(tx)
        if name == "__class__":
            return tx.wrap_known(self.cls)
        cls_attr = world.class_attr(tx, self.cls, name)
        if world.is_defined(cls_attr) and tensor_queries.is_of_program(self.cls, name, cls_attr):
            if isinstance(cls_attr, property):
                unsupported("tensor-subclass", f"attribute {name} of tensor class {name_of(self.cls)}")
            return world.bind(tx, self, self.cls, name, cls_attr)
        if world.class_attr(tx, self.cls, name) is world.ABSENT:
            found = self.own_attribute(tx, name)
            if found is not None:
                return found
            tx.raise_user(AttributeError(f"'{name_of(self.cls)}' object has no attribute '{name}'"))
        return self.library_attribute(tx, name)

    def known_leaf(self, tx) -> bool | None:
        """``is_leaf``, where it is the same at every call that the guards let in."""
        if not self.val.requires_grad:
            return True  # whatever made it
        if self.source is None or not self.is_plain_tensor:
            return None
        leaf = is_end(tx.output.recorder.example_of(self))
        if leaf != is_end(self.val):
            return None
        tx.output.guard(self.source, "CALL", is_end if leaf else has_history)
        return leaf

    def gradient(self, tx) -> Variable:
        """``grad``: that of an input is read from it."""
        if "grad" in self.written:
            return self.written["grad"]
        if self.source is not None:
            return tx.wrap(tx.output.recorder.example_of(self)._grad, GetAttrSource(self.source, "grad"))
        if not self.val.requires_grad:
            return ConstantVariable(None)  # no backward pass reaches it, and nobody else could have written it
        unsupported(
            "tensor-attribute",
            "getattr TensorVariable() grad",
            "The gradient of an intermediate tensor is not captured.",
            headline=".grad of a tensor that the function computes is not captured.",
        )

    def library_attribute(self, tx, name) -> Variable:
        """What the library's class has: read of the fake tensor; where that gives a tensor it is a node."""
        try:
            value = tx.output.eval_fake(lambda v: getattr(v, name), [self.val])
        except (AttributeError, RuntimeError) as e:  # no such part of a tensor of this type or shape
            tx.raise_user(e)
        if tensor_queries.is_tensor(value):
            read = self.node if name == "data" else self.as_proxy()
            node = tx.output.recorder.create_node(tx, "call_function", getattr, (read, name), {})
            node.meta["val"] = node.meta["example_value"] = value
            return self if value is self.val else TensorVariable.of_result(node, value)
        if callable(value) and not is_constant_value(value):
            return TensorMethodVariable(self, name)
        return tx.wrap_known(value)

    def keeps_attribute(self, tx, name) -> bool:
        """Whether writing it puts something of the program's own on an input, and does nothing else."""
        return (
            self.is_plain_tensor
            and self.source is not None
            and self.cls is tensor_queries.Tensor
            and tensor_queries.is_tensor(tx.output.recorder.example_of(self))
            and not name.startswith("_")
            and world.class_attr(tx, self.cls, name) is world.ABSENT
        )

    def own_attribute(self, tx, name) -> Variable | None:
        """What the program put on this very tensor; a result of the graph has nothing of its own."""
        if name in self.written:
            return self.written[name]
        if self.source is None or not tensor_queries.is_tensor(tx.output.recorder.example_of(self)):
            return None
        return world.instance_attr(tx, tx.output.recorder.example_of(self), self.source, name)

    def hasattr(self, tx, name):
        if world.class_attr(tx, self.cls, name) is world.ABSENT:
            return self.own_attribute(tx, name) is not None
        return world.has(tx, lambda: self.getattr(tx, name))

    def setattr(self, tx, name, value):
        if name == "grad" and self.source is not None and self.is_plain_tensor:
            if isinstance(value, TensorVariable) and tuple(value.val.shape) != tuple(self.val.shape):
                unsupported("tensor-setattr", "a gradient of another shape than its tensor", "It raises an error.")
            self.written[name] = value
            tx.side_effects.touch(self)
            return
        if name == "data":
            tx.set_data(tx, self, value)
            return
        if self.keeps_attribute(tx, name):
            self.written[name] = value
            tx.side_effects.touch(self)
            return
        unsupported(
            "tensor-setattr", f"setting {name} of a tensor", "Attributes of tensors are written outside the graph."
        )

    def call_method(self, tx, name, args, kwargs):
        return TensorMethodVariable(self, name).call(tx, args, kwargs)

    def getitem(self, tx, key):
        key = self.without_bytes(tx, key)
        return tx.output.call_in_graph(tx, "call_function", operator.getitem, [self, key], {})

    def without_bytes(self, tx, key: Variable) -> Variable:
        """``key`` with masks of bytes as masks of bool. The program is told of them here, at its own line, and not again when the graph runs."""
        if tx.output.blocks.function_modes or not self.is_plain_tensor:
            return key
        if type(key) is TupleVariable:
            parts = [v.unwrap() for v in key.items(tx)]
            return tx.make_tuple([self.without_bytes(tx, v) for v in parts]) if any(map(_is_bytes, parts)) else key
        if not _is_bytes(key):
            return key
        place = tx.location()
        registry = tx.globals.setdefault("__warningregistry__", {})
        try:
            warnings.warn_explicit(BYTES_MASK, UserWarning, place.filename, place.lineno, registry=registry)
        except UserWarning as e:
            tx.raise_user(e)
        return tx.output.call_in_graph(tx, "call_method", "bool", [key], {})

    def setitem(self, tx, key, value):
        key = self.without_bytes(tx, key)
        tx.output.call_in_graph(tx, "call_function", operator.setitem, [self, key, value], {}, none_ok=True)

    def contains(self, tx, key):
        if not tx.output.shapes.data_symbols("item"):
            unsupported("data-dependent", "membership test in a tensor", "The value depends on tensor data.")
        same = tx.operators.binary(tx, operator.eq, self, key)
        return same.call_method(tx, "any", [], {}).call_method(tx, "item", [], {})

    def replay(self, replay):
        target = replay.target(self)
        for name, value in self.written.items():
            t = replay.value(value)
            replay.later(lambda r, t=t, name=name: r.store_attr(target, name, t))


def _is_bytes(v: Variable) -> bool:
    return type(v) is TensorVariable and v.val.ndim > 0 and v.val.dtype.name == "uint8"
