"""Tensors and ndarrays: nodes of the graph, with a fake tensor that tells shape and dtype."""

from __future__ import annotations

import functools
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau import _C
from flambeau.base.dtypes import may_overflow
from flambeau.base.shapes import Size
from flambeau.core.subscript import BYTES_MASK
from flambeau.core.tensor import strided
from flambeau.modules.parameter import is_lazy

from ....base.records import slotted
from ...config import config
from ...exc import SkipFrame, unsupported
from ...graph import tensor_queries
from ...guards.source import GetAttrSource
from ...higher_order.opaque import call_value
from ...numpy import numpy_bridge
from ...numpy.views import made_of_argument
from ...rules import trace_rules
from ...rules.constants import is_constant_value
from ...rules.reflect import module_of, name_of, qualname_of
from ...tracing import world
from ...tracing.current_frame import current
from ...tracing.wrapping import WRAPPERS
from ..base import MethodOf, Variable
from ..containers.dicts import DictVariable
from ..containers.lists import ListVariable, Result, TupleVariable
from ..iterators.container_iterators import ArrayIteratorVariable, NumpyIteratorVariable
from ..values.constant import ConstantVariable
from ..values.symbolic import arithmetic, number_of
from . import gradient_hooks
from .backward import backward, has_history, is_end, is_freed, with_freed_history
from .storage_facts import is_shared, storage_offset

__all__ = ["NumpyNdarrayVariable", "TensorVariable", "wrap_result"]

# What gives symbols where data-dependent numbers, or sizes, may be captured.
GIVES_NUMBERS = frozenset({"item", "tolist", "__int__", "__float__", "__index__"})
GIVES_SIZES = frozenset({"nonzero", "unique", "masked_select"})

# Attributes that depend on more than metadata, or whose use changes autograd state: the graph breaks.
NOT_TRACED_ATTRS = frozenset(
    {
        "__dict__",
        "grad_fn",
        "_version",
        "_cdata",
        # What this package keeps in a tensor: a fake one has other contents.
        *(
            "_array",
            "_flags",
            "_grad",
            "_has_data",
            "_is_leaf",
            "_is_python_dispatch",
            "_keys",
            "_offset",
            "_payload",
            "_writes",
        ),
        "_backward_hooks",
        "data_ptr",
        "_storage",
        "is_leaf",
        "_autograd",
        "_grad_fn",
        "_base",
        "retains_grad",
        # Which result of its node it is, and its part of a dual number.
        "output_nr",
        "_output_nr",
        "_forward",
    }
)
VALUE, SHAPE, TEXT = (f"The {what} depends on tensor data." for what in ("value", "shape of the result", "text"))
RESIZED = "It changes the size of this very tensor."
NOT_TRACED_METHODS = {
    "register_hook": "Hooks belong to the tensor of one call.",
    "register_post_accumulate_grad_hook": "Hooks belong to the tensor of one call.",
    "retain_grad": "It changes how autograd treats this very tensor.",
    "_is_view": "It is a fact about the tensor of one call.",
    "item": VALUE,
    "tolist": VALUE,
    "__bool__": VALUE,
    "__int__": VALUE,
    "__float__": VALUE,
    "data_ptr": "The address depends on the call.",
    "storage": "The storage belongs to the tensor of one call.",
    "untyped_storage": "The storage belongs to the tensor of one call.",
    "__deepcopy__": "A copy of this very tensor, with its attributes.",
    "share_memory_": "It changes where the memory lives.",
    "resize_": RESIZED,
    "resize_as_": RESIZED,
    "set_": "It gives this very tensor other memory.",
    "nonzero": SHAPE,
    "unique": SHAPE,
    "masked_select": SHAPE,
    "__format__": TEXT,
    "__repr__": TEXT,
    "__str__": TEXT,
    "to_sparse": "Sparse tensors are not captured.",
}


@slotted
class TensorKey:
    """A tensor made while tracing, as a key of a dict or set."""

    node: Any


class TensorVariable(Variable):
    is_tensor = True
    is_replaced = False  # a leaf whose data are of another form now: see set_data
    """``node`` in the graph; ``val`` its fake tensor; ``cls`` the Python class of the value."""

    def __init__(self, node, val, source=None, cls=None):
        super().__init__(source)
        self.node, self.val = node, val
        self.cls = cls or tensor_queries.Tensor
        self.written: dict[str, Variable] = {}  # attributes; of graph inputs only

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
        if self.source is None or type(self) is not TensorVariable:
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
        blocks = tx.output.blocks
        if blocks.function_modes and not blocks.function_disabled > 1 and type(self) is TensorVariable:
            asked = tx.subclasses.asked_of_mode(tx, len, [self], {})
            if asked is not None:
                return number_of(tx.output.ask_function_mode(tx, *asked))
        return self.val.shape[0]

    def iter(self, tx):
        return ArrayIteratorVariable(self) if self.val.ndim else super().iter(tx)

    def items(self, tx):
        if not self.val.ndim:
            tx.raise_user(TypeError("iteration over a 0-d tensor"))
        return [self.getitem(tx, ConstantVariable(i)) for i in range(int(self.val.shape[0]))]

    def getattr(self, tx, name):
        if (
            tx.output.blocks.function_modes
            and not tx.output.blocks.function_disabled > 1
            and type(self) is TensorVariable
        ):
            cls_attr = getattr(tensor_queries.Tensor, name, None)
            if cls_attr is not None and not callable(cls_attr) and name != "__class__":
                asked = tx.subclasses.asked_of_mode(tx, lambda t: getattr(t, name), [self], {})
                if asked is not None:
                    return tx.output.ask_function_mode(tx, *asked)
        if name == "is_leaf" and not self.val.requires_grad:
            return ConstantVariable(True)  # whatever made it
        if name == "is_leaf" and self.source is not None and type(self) is TensorVariable:
            if is_end(example := tx.output.recorder.example_of(self)) == is_end(self.val):
                tx.output.guard(self.source, "CALL", is_end if is_end(example) else has_history)
                return ConstantVariable(is_end(example))
        if name == "data_ptr" and type(self) is TensorVariable:
            return TensorMethodVariable(self, name)
        if name in NOT_TRACED_ATTRS:
            unsupported(
                "tensor-attribute",
                f"reading {name} of a tensor",
                "It belongs to the tensor of one call, not to the graph.",
            )
        if name == "grad":
            if name in self.written:
                return self.written[name]
            if self.source is None and not self.val.requires_grad:
                return ConstantVariable(None)  # no backward pass reaches it, and nobody else could have written it
            if self.source is None:
                unsupported(
                    "tensor-attribute",
                    "getattr TensorVariable() grad",
                    "The gradient of an intermediate tensor is not captured.",
                    headline=".grad of a tensor that the function computes is not captured.",
                )
            return tx.wrap(tx.output.recorder.example_of(self)._grad, GetAttrSource(self.source, "grad"))
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
        try:
            value = tx.output.eval_fake(lambda v: getattr(v, name), [self.val])
        except (AttributeError, RuntimeError) as e:  # no such part of a tensor of this type or shape
            tx.raise_user(e)
        if tensor_queries.is_tensor(value):
            read = self.node if name == "data" else self.as_proxy()
            node = tx.output.recorder.create_node(tx, "call_function", getattr, (read, name), {})
            node.meta["val"] = node.meta["example_value"] = value
            return wrap_result(tx, node, value, self)
        if callable(value) and not is_constant_value(value):
            return TensorMethodVariable(self, name)
        return tx.wrap_known(value)

    def keeps_attribute(self, tx, name) -> bool:
        """Whether writing it puts something of the program's own on an input, and does nothing else."""
        return (
            type(self) is TensorVariable
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
        if name == "grad" and self.source is not None and type(self) is TensorVariable:
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
        if tx.output.blocks.function_modes or type(self) is not TensorVariable:
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


def refuse_to_detach(t: TensorVariable) -> None:
    """A tensor of the caller's that has a history loses it for the caller, too: graphs have no operation that does that. A view's is an error."""
    if t.val._is_view():
        unsupported("tensor-method", f"detach_() of {t!r}, a view", "It raises an error.", "Use detach().")
    if t.node.op == "placeholder" and t.val.requires_grad:
        unsupported("tensor-method", f"detach_() of {t!r}", "The caller's tensor loses its history.", "Use detach().")


class TensorMethodVariable(MethodOf):
    def python_type(self):
        return types.MethodType

    def keeps_size(self, args, kwargs) -> bool:
        """Whether a call of ``resize_`` changes nothing."""
        if self.name != "resize_" or kwargs or not all(a.can_constant() for a in args):
            return False
        sizes = [a.as_constant() for a in args]
        size = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
        return not self.owner.val.requires_grad and tuple(size) == tuple(self.owner.val.shape)

    def call(self, tx, args, kwargs):
        if self.name in gradient_hooks.METHODS and type(self.owner) is TensorVariable:
            handle = gradient_hooks.register(tx, self.owner, self.name, args, kwargs)
            if handle is not None:
                return handle
        if self.name == "data_ptr" and type(self.owner) is TensorVariable and not args and not kwargs:
            return AddressVariable(self.owner)
        if self.name == "item" and not args and not kwargs and DroppedNumber.serves(tx, self.owner):
            return DroppedNumber()
        why = NOT_TRACED_METHODS.get(self.name)
        if why is RESIZED and self.keeps_size(args, kwargs):
            return self.owner
        if why and not tx.output.shapes.data_symbols(self.name):
            unsupported(
                "tensor-method",
                f"call_method TensorVariable() {self.name} {args!r} {kwargs!r}",
                why,
                "Compute on the tensor, or move this call out of the function.",
                headline=f".{self.name}() of a tensor "
                + ("asks for its elements." if why in (VALUE, SHAPE, TEXT) else "isn't captured."),
            )
        cls_attr = world.class_attr(tx, self.owner.cls, self.name)
        if world.is_defined(cls_attr) and tensor_queries.is_of_program(self.owner.cls, self.name, cls_attr):
            return world.bind(tx, self.owner, self.owner.cls, self.name, cls_attr).call(tx, args, kwargs)
        if trace_rules.is_disallowed_method(self.name, cls_attr):
            unsupported(
                "disallowed", f"call to disallowed operator Tensor.{self.name}", "disallow_in_graph was called for it."
            )
        if self.name == "detach_":
            refuse_to_detach(self.owner)
        if self.name == "storage_offset":
            return storage_offset(tx, self.owner)
        if self.name == "is_shared":
            return is_shared(tx, self.owner)
        if self.name == "as_subclass" and not kwargs:
            return tx.subclasses.as_subclass(tx, self.owner, args[0].as_constant())
        if self.name == "backward":
            if type(self.owner) is not TensorVariable:
                unsupported("backward", f"backward() of {self.owner!r}", "Gradients go to leaves outside of the graph.")
            return backward(tx, self.owner, args, kwargs)
        if self.name == "numpy" and not isinstance(self.owner, NumpyNdarrayVariable):
            return numpy_of(tx, self.owner)
        if self.name == "requires_grad_" and self.owner.source is not None:
            asked = [a.as_constant() for a in (*args, *kwargs.values()) if a.is_constant()] or [True]
            if asked == [self.owner.val.requires_grad]:
                return self.owner
            unsupported(
                "tensor-method",
                "call_method TensorVariable() requires_grad_",
                "It changes how autograd treats an input.",
                headline=".requires_grad_() of an argument isn't captured.",
            )
        if self.name == "new" and len(args) == 1 and args[0].python_type() is Size:
            args = args[0].items(tx)  # in the graph it is a tuple, which would be the elements
        if self.name == "tolist" and not args and not kwargs and type(self.owner) is TensorVariable:
            return numbers_of(tx, self.owner)
        if self.name in ("__int__", "__float__", "__index__"):
            owner = self.owner
            if owner.val.dtype.name == "bool":
                owner = tx.output.call_in_graph(tx, "call_method", "long", [owner], {})
            number = tx.output.call_in_graph(tx, "call_method", "item", [owner], {})
            return arithmetic(tx, float if self.name == "__float__" else int, [number])
        if (
            self.name == "item"
            and not args
            and self.owner.val.dtype.name == "bool"
            and type(self.owner) is TensorVariable
        ):
            # An integer is known by its symbol alone, whatever has been learned of it; a truth value would be the constant that it was checked to be.
            number = tx.output.call_in_graph(tx, "call_method", "long", [self.owner], {}).call_method(
                tx, "item", [], {}
            )
            return arithmetic(tx, operator.ne, [number, ConstantVariable(0)])
        none_ok = self.name in ("__setitem__",)
        return tx.output.call_in_graph(tx, "call_method", self.name, [self.owner, *args], kwargs, none_ok=none_ok)


class AddressVariable(Variable):
    """``t.data_ptr()``: a number that each call has its own of. Captured code asks for it behind the graph; what depends on it breaks the graph."""

    def __init__(self, tensor: TensorVariable):
        super().__init__()
        self.tensor = tensor

    def __repr__(self):
        return "the .data_ptr() of a tensor"

    def python_type(self):
        return int

    def as_proxy(self):
        unsupported(
            "tensor-method",
            "call_method TensorVariable() data_ptr",
            NOT_TRACED_METHODS["data_ptr"],
            "Compute on the tensor, or move this call out of the function.",
            headline=".data_ptr() of a tensor isn't captured.",
        )

    def reconstruct(self, cg):
        cg.push_callable(lambda: (cg(self.tensor), cg.load_attr("data_ptr")))
        cg.call(0)


class DroppedNumber(Variable):
    """``t.item()`` as a statement, where such numbers are captured: nobody gets to see it, and the graph doesn't read it."""

    @staticmethod
    def serves(tx, tensor: Variable) -> bool:
        if type(tensor) is not TensorVariable or tx.insts[tx.ip].name != "POP_TOP":
            return False
        if not tx.output.shapes.data_symbols("item"):
            return False
        # The number of a tensor of more elements is an error.
        return all(type(n) is int and n == 1 for n in tensor.val._shape)

    def as_proxy(self):
        unsupported("tensor-method", "call_method TensorVariable() item", VALUE)


def numbers_of(tx, t: TensorVariable) -> Variable:
    """``t.tolist()``: a number of the graph for each element."""
    if not t.val.ndim:
        return t.call_method(tx, "item", [], {})
    return ListVariable([numbers_of(tx, row) for row in t.items(tx)])


class GraphCallableVariable(Variable):
    """A function that an operation of the graph returned, for example the second result of vjp."""

    def __init__(self, node, val):
        super().__init__()
        self.node, self.val = node, val

    def python_type(self):
        return type(self.val)

    def truth(self, tx):
        return True

    def as_proxy(self):
        return self.node

    def call(self, tx, args, kwargs):
        return tx.output.call_in_graph(tx, "call_function", call_value, [self, *args], kwargs)


def numpy_of(tx, t: TensorVariable) -> Variable:
    if t.val.requires_grad and tensor_queries.grad_enabled():
        unsupported(
            "numpy",
            "call_method TensorVariable() numpy",
            "The tensor requires grad, so numpy() raises.",
            headline=".numpy() of a tensor that requires grad raises.",
        )
    return NumpyNdarrayVariable(t.node, t.val, scalar=False)


MOST_PARTS = 32
"""Of an index that is captured: each may be a dimension of its own beside those of the array."""


ATTRIBUTES: dict[str, Callable] = {}
"""Attributes of ndarray that are neither tensors nor constants: (tx, array) -> variable."""
METHODS_IN_PYTHON: dict[str, Callable] = {}
"""Methods of ndarray that aren't operations: (tx, array, args, kwargs) -> variable, or None for what NumPy has to say."""


class NumpyNdarrayVariable(TensorVariable):
    """An ndarray; in the graph a tensor over the same memory."""

    def key_object(self):
        unsupported(
            "data-dependent", "a NumPy number or array as a key", "It is hashed by its value, which isn't known."
        )

    def __init__(self, node, val, source=None, scalar=True):
        self.scalar = scalar and source is None and val.ndim == 0
        node.graph.holds_arrays = True
        if node.graph.read_only and not is_read_only(node) and views_read_only(node, val):
            mark_read_only(node)
        super().__init__(node, val, source, numpy_bridge.np_dtype(val).type if self.scalar else np.ndarray)

    def reconstruct(self, cg):
        if not self.node.graph.carries:
            made = made_of_argument(current().output, self.node, self.val, self.scalar, is_read_only(self.node))
            if made is not None:
                cg.call_function(made[1], lambda: cg.load_source(made[0]), 1)
                return

        if self.scalar:
            cg.call_function(numpy_bridge.to_scalar, lambda: cg.graph_output(self.node), 1)
            return

        if is_read_only(self.node):
            current().output.flips.refuse_parts(self.val)
            cg.call_function(numpy_bridge.to_read_only, lambda: cg.graph_output(self.node), 1)
            return

        if self.node.graph.carries:
            cg.call_function(numpy_bridge.to_carried, lambda: cg.graph_output(self.node), 1)
            return

        def arguments():
            cg.graph_output(self.node)
            cg.load_const(numpy_bridge.to_ndarray)

        cg.call_function(_C.ndarray_of, arguments, 2)

    def iter(self, tx):
        return NumpyIteratorVariable(self, self.val.shape[0]) if self.val.ndim else super().iter(tx)

    def getattr(self, tx, name):
        if name == "shape":
            return tx.wrap_known(tuple(self.val.shape))
        if name in ("ndim", "size", "itemsize", "nbytes"):
            n = 1
            for s in self.val.shape:
                n *= s
            item = numpy_bridge.np_dtype(self.val).itemsize
            return tx.wrap_known({"ndim": len(self.val.shape), "size": n, "itemsize": item, "nbytes": n * item}[name])
        if name == "dtype":
            return ConstantVariable(numpy_bridge.np_dtype(self.val))
        if name in ATTRIBUTES and not self.scalar:
            return ATTRIBUTES[name](tx, self)
        numpy_bridge.load()
        impl = numpy_bridge.attributes.get(name)
        if impl is not None:
            return self.call_impl(tx, impl, [self], {}, self)
        if name in numpy_bridge.methods or name in METHODS_IN_PYTHON:
            return NumpyMethodVariable(self, name)
        if name == "resize":
            raise SkipFrame("ndarray.resize() counts who refers to the array")
        unsupported("numpy", f"ndarray.{name}", "This attribute of ndarray has no tensor counterpart registered.")

    def hasattr(self, tx, name):
        return hasattr(self.python_type(), name)

    @staticmethod
    def call_impl(tx, impl, args, kwargs, owner=None):
        r = tx.output.call_in_graph(tx, "call_function", impl, args, kwargs)
        if isinstance(r, TensorVariable) and numpy_bridge.gives_read_only(
            impl, [getattr(a, "val", None) for a in args]
        ):
            mark_read_only(r.node)
        # NumPy returns scalars for results without dimensions, except where the function makes or rearranges arrays; a scalar's methods give scalars.
        gives_array = getattr(impl, "gives_array", False)
        if callable(gives_array):
            gives_array = gives_array(*(a.val for a in args))
        if owner is None and args and getattr(impl, "keeps_scalars", False):
            owner = args[0]
        scalar = not gives_array or getattr(owner, "scalar", False)
        if not scalar and getattr(
            r, "scalar", False
        ):  # np.asarray of a number: the number keeps its value when the array is written
            r = tx.output.call_in_graph(tx, "call_method", "clone", [r], {})
        return as_ndarray(r, scalar)

    def call_method(self, tx, name, args, kwargs):
        return NumpyMethodVariable(self, name).call(tx, args, kwargs)

    def getitem(self, tx, key):
        parts = parts_of(key, self.val.shape)
        whole = any(
            p.is_constant() and p.as_constant() is ... for p in parts
        )  # x[..., 0] is an array even without dimensions
        if any(runs_backwards(p) for p in parts):
            if not self.scalar and all(_is_whole(p) for p in parts):
                axes = tuple(k for k, p in enumerate(parts) if runs_backwards(p))
                return tx.wrap_known(np.flip).call(tx, [self, ConstantVariable(axes)], {})
            unsupported(
                "numpy",
                "a slice with a negative step",
                "It gives a view that runs backwards; tensors have no negative strides.",
            )
        key, first = _element_key(tx, *_numbers_key(tx, key, parts), self.val.ndim)
        out = super().getitem(tx, key)
        if first:
            return as_ndarray(TensorVariable.getitem(out, tx, ConstantVariable(0)))
        if not whole and isinstance(out, TensorVariable) and out.val.ndim == 0:  # NumPy's scalar: a copy, not a view
            out = tx.output.call_in_graph(tx, "call_method", "clone", [out], {})
        return as_ndarray(out, scalar=not whole)

    def cast_number(self, number) -> ConstantVariable:
        """A number as NumPy writes it into an array like this one; the graph breaks where it refuses, or warns."""
        place = np.zeros(1, numpy_bridge.np_dtype(self.val))
        try:
            with np.errstate(all="raise"), warnings.catch_warnings():
                warnings.simplefilter("error")
                place[0] = number
        except (ArithmeticError, TypeError, ValueError, Warning) as e:
            unsupported("numpy", f"{number!r} written into an array of {place.dtype}", f"NumPy raises or warns: {e}.")
        return ConstantVariable(place[0].item())

    def refuse_overflow(self, given: np.dtype, parts: list) -> None:
        """Break where a number of the dtype ``given`` may not fit an element. Where other arrays pick the elements NumPy casts."""
        dtype = numpy_bridge.np_dtype(self.val)
        casts = any(isinstance(p, NumpyNdarrayVariable) and not p.scalar or isinstance(p, ListVariable) for p in parts)
        if not casts and may_overflow(given, dtype):
            unsupported(
                "numpy", f"a number of {given} written into an array of {dtype}", "NumPy raises where it doesn't fit."
            )

    def as_element(self) -> NumpyNdarrayVariable:
        """What is written where it is assigned to an element."""
        return self

    def setitem(self, tx, key, value):
        if self.scalar:
            return tx.raise_user(
                TypeError(f"'numpy.{name_of(self.python_type())}' object does not support item assignment")
            )
        parts = parts_of(key, self.val.shape)
        if isinstance(value, NumpyNdarrayVariable):
            value = value.as_element()
        if isinstance(value, NumpyNdarrayVariable) and value.val.dtype.is_complex and not self.val.dtype.is_complex:
            unsupported(
                "numpy", "a complex value written into a real array", "NumPy warns that it discards the imaginary part."
            )
        if isinstance(value, ListVariable | TupleVariable):
            numbers = all(
                e.is_symbol
                or getattr(e, "scalar", False)
                or (e.is_constant() and isinstance(e.as_constant(), int | float | complex | np.generic))
                for e in map(tx.realize, value.items(tx))
            )
            if not numbers or (len(parts) >= self.val.ndim and all(map(_is_element, parts))):
                unsupported(
                    "numpy", "lists in lists written into an array, or a list into an element", "NumPy says what fits."
                )
            value = tx.wrap_known(np.array).call(
                tx, [value], {"dtype": ConstantVariable(numpy_bridge.np_dtype(self.val))}
            )
        if getattr(value, "scalar", False) and isinstance(value, NumpyNdarrayVariable):
            self.refuse_overflow(numpy_bridge.np_dtype(value.val), parts)
        if value.is_constant() and isinstance(value.as_constant(), (int, float, complex, np.generic)):
            value = self.cast_number(value.as_constant())
        if (
            isinstance(value, NumpyNdarrayVariable)
            and value.val.dtype is not self.val.dtype
            and numpy_bridge.np_dtype(self.val) == np.float16
        ):
            value = value.call_method(tx, "astype", [ConstantVariable(np.dtype(np.float16))], {})
        if isinstance(value, NumpyNdarrayVariable) and value.val._storage is self.val._storage:
            value = tx.output.call_in_graph(
                tx, "call_method", "clone", [value], {}
            )  # read as a whole before it is written
        super().setitem(tx, _element_key(tx, *_numbers_key(tx, key, parts), self.val.ndim)[0], value)


def parts_of(key, shape) -> list:
    """The parts of an index of an array of this shape. A mask has to be of the shape of the dimensions that it stands for."""
    parts = key.elements if hasattr(key, "elements") and key.python_type() is tuple else [key]
    if len(parts) > MOST_PARTS:
        unsupported(
            "numpy", f"an index of {len(parts)} parts", "NumPy's arrays have 64 dimensions at most, on the way as well."
        )
    at = 0
    for part in parts:
        if part.is_constant() and part.as_constant() is ...:
            break
        if part.is_constant() and part.as_constant() in (None, True, False) and type(part.as_constant()) is not int:
            continue
        mask = _mask_shape(part)
        if mask is not None and tuple(mask) != tuple(shape[at : at + len(mask)]):
            unsupported("numpy", f"a mask of shape {tuple(mask)} for {tuple(shape[at:])}", "NumPy raises an error.")
        at += 1 if mask is None else len(mask)
    return parts


def _is_element(part) -> bool:
    """Whether a part of an index is a number."""
    return getattr(part, "scalar", False) or part.is_symbol or (part.is_constant() and type(part.as_constant()) is int)


def _mask_shape(part):
    """The shape of a part of an index that is an array of booleans, or a list of them; None of others."""
    if isinstance(part, TensorVariable):
        return part.val.shape if part.val.dtype.np is np.bool_ or np.dtype(part.val.dtype.np) == np.bool_ else None
    elements = getattr(part, "elements", None)
    if elements and all(e.is_constant() and type(e.as_constant()) is bool for e in elements):
        return (len(elements),)
    return None


def runs_backwards(part) -> bool:
    """Whether a part of a key is a slice with a step below zero."""
    step = part.parts[2] if part.python_type() is slice and len(getattr(part, "parts", ())) == 3 else None
    return step is not None and step.is_constant() and type(step.as_constant()) is int and step.as_constant() < 0


def _is_whole(part) -> bool:
    """Whether a part of a key is ``:`` or ``::-1``."""
    return (
        part.python_type() is slice
        and part.can_constant()
        and part.as_constant() in (slice(None), slice(None, None, -1))
    )


def _numbers_key(tx, key, parts):
    """(key, its parts) with arrays of uint8, which are masks to PyTorch and numbers to NumPy, as int64."""
    parts = [tx.realize(p) for p in parts]
    small = [isinstance(p, TensorVariable) and numpy_bridge.np_dtype(p.val) == np.uint8 for p in parts]
    if not any(small):
        return key, parts
    as_int64 = [ConstantVariable(np.dtype(np.int64))]
    parts = [
        as_ndarray(p).call_method(tx, "astype", as_int64, {}) if is_small else p for p, is_small in zip(parts, small)
    ]
    return (TupleVariable(parts) if hasattr(key, "elements") else parts[0]), parts


def _element_key(tx, key, parts, ndim: int):
    """(key, whether it has a dimension of one element in front): that of an element whose place is data is an index by arrays of one element."""
    parts = [tx.realize(p) for p in parts]
    data = [isinstance(p, TensorVariable) and p.val.ndim == 0 and _is_integer(p.val) for p in parts]
    if not any(data) or len(parts) != ndim or not all(d or _is_int_constant(p) for d, p in zip(data, parts)):
        return key, False
    parts = [TensorVariable.getitem(p, tx, ConstantVariable(None)) if d else p for d, p in zip(data, parts)]
    return TupleVariable(parts), True


def _is_integer(val) -> bool:
    return not (val.dtype.is_floating_point or val.dtype.is_complex) and numpy_bridge.np_dtype(val).kind in "iu"


def _is_int_constant(v) -> bool:
    return v.is_constant() and type(v.as_constant()) is int


def mark_read_only(node) -> None:
    """NumPy doesn't let anybody write into this array, nor into views of it."""
    node.meta["read_only"] = node.graph.read_only = True


def is_read_only(node) -> bool:
    return node.meta.get("read_only", False)


def views_read_only(node, val) -> bool:
    """Whether an array is a view of one that is only read."""
    inputs = [
        m
        for n in node.all_input_nodes
        for m in (n, *(n.all_input_nodes if type(n.meta["val"]) in (tuple, list) else ()))
    ]
    return any(
        is_read_only(n) and tensor_queries.is_tensor(n.meta["val"]) and n.meta["val"]._storage is val._storage
        for n in inputs
    )


def as_ndarray(v: Variable, scalar=True) -> Variable:
    if isinstance(v, TensorVariable) and not isinstance(v, NumpyNdarrayVariable):
        return NumpyNdarrayVariable(v.node, v.val, scalar=scalar)
    if hasattr(v, "elements"):
        v.elements = [as_ndarray(e, scalar) for e in v.elements]
    return v


class NumpyMethodVariable(MethodOf):
    def call(self, tx, args, kwargs):
        numpy_bridge.load()
        in_python = METHODS_IN_PYTHON.get(self.name)
        made = None if in_python is None else in_python(tx, self.owner, args, kwargs)
        if made is not None:
            return made
        impl = numpy_bridge.methods.get(self.name)
        if impl is None:
            unsupported(
                "numpy",
                f"ndarray.{self.name}()",
                "This method of ndarray has no tensor counterpart registered.",
                "The piece runs in NumPy.",
            )
        return NumpyNdarrayVariable.call_impl(tx, impl, [self.owner, *args], kwargs, self.owner)


class Opaque:
    """A variable on its way through a function of the library, which only passes it on."""

    def __init__(self, variable: Variable):
        self.variable = variable


class UncapturedTensorVariable(Variable):
    """A sparse tensor that existed before: what uses it breaks the graph and runs as ordinary Python."""

    def __init__(self, kind, source):
        super().__init__(source)
        self.kind = kind

    def __repr__(self):
        return f"a {self.kind} tensor"


def wrap_result(tx, node, value, *inputs) -> Variable:
    """The variable for a node's value. In-place operations return their own input."""
    if isinstance(value, Opaque):
        return value.variable

    if tensor_queries.is_tensor(value):
        for v in inputs:
            for item in v.elements if isinstance(v, TupleVariable) else (v,):  # out=(a, b)
                if isinstance(item, TensorVariable) and item.val is value:
                    return item
        return TensorVariable(node, value, cls=tensor_queries.class_of_result(value))

    def element(key, v) -> Variable:
        if v is None or is_constant_value(v):
            return ConstantVariable(v)
        if isinstance(v, Opaque):
            return v.variable
        n = tx.output.recorder.create_node(tx, "call_function", operator.getitem, (node, key), {})
        n.meta["val"] = n.meta["example_value"] = v
        return wrap_result(tx, n, v, *inputs)

    if isinstance(value, (tuple, list)):
        if is_constant_value(tuple(value)):
            return tx.wrap_known(value)
        if type(value) in (list, tuple) and all(map(tensor_queries.is_tensor, value)):
            return Result.of(node, value, lambda: [element(i, v) for i, v in enumerate(value)])
        elements = [element(i, v) for i, v in enumerate(value)]
        return ListVariable(elements) if isinstance(value, list) else TupleVariable(elements, cls=type(value))
    if isinstance(value, types.FunctionType | functools.partial):
        return GraphCallableVariable(node, value)
    if type(value) is dict and all(isinstance(k, str | int) for k in value):
        return DictVariable({k: (ConstantVariable(k), element(k, v)) for k, v in value.items()})
    unsupported(
        "graph-result",
        f"an operation in the graph returned {name_of(type(value))}",
        "Only tensors, and lists and tuples of them, come out of the graph.",
    )


FLB_FUNCTION = 8
FAKE_OR_WRAPPED = 2 | 4


@WRAPPERS.row("tensor")
def _(tx, value, source):
    return tensor_argument(tx, value, source) if trace_rules.is_a(value, _C.TensorBase) else None


@WRAPPERS.row("ndarray")
def _(tx, value, source):
    return ndarray_argument(tx, value, source) if trace_rules.is_a(value, np.ndarray) else None


def tensor_argument(tx, value, source):
    cls = type(value)
    if is_lazy(value):
        unsupported("lazy-parameter", f"a {name_of(cls)}", "Its shape is not known before the first call.")
    if tensor_queries.is_subclass(cls) and (
        tensor_queries.overrides_function(cls) or tensor_queries.overrides_dispatch(cls)
    ):
        return tx.subclasses.of_argument(tx, value, source)
    if cls is not tensor_queries.Tensor and not trace_rules.is_parameter_class(cls):
        if value._keys & FAKE_OR_WRAPPED or value._flags & FLB_FUNCTION or name_of(cls) == "FakeTensor":
            unsupported(
                "tensor-subclass",
                f"a tensor of class {module_of(cls)}.{qualname_of(cls)}",
                "Tensor subclasses that override operations run as ordinary Python.",
            )
    elif value._keys & FAKE_OR_WRAPPED:
        unsupported(
            "wrapped-tensor",
            "a tensor that belongs to a function transform or a dispatch mode",
            "The call runs as ordinary Python under it.",
        )
    if not value._has_data and value.is_quantized:
        return tx.subclasses.of_quantised(tx, value, source)
    if not value._has_data and value.layout is not strided:
        return UncapturedTensorVariable(value.layout, source)
    if value.is_conj() or value.is_neg():
        unsupported(
            "conjugated-view",
            "a tensor whose elements are the conjugates or negatives of its memory",
            "Graphs are given plain memory: call resolve_conj() or resolve_neg() before.",
        )
    return tx.output.add_input(value, source, ndarray=False)


OTHER_ARRAYS: list[Callable] = []
"""Rules for arrays whose elements tensors don't have: the variable, or None."""


def ndarray_argument(tx, value, source):
    if not config.trace_numpy or type(value) not in (np.ndarray, numpy_bridge.Carried):
        unsupported(
            "numpy",
            f"a NumPy array of class {name_of(type(value))}",
            "Only plain ndarrays are captured (and only with config.trace_numpy).",
        )
    for rule in OTHER_ARRAYS:
        found = rule(tx, value, source)
        if found is not None:
            return found
    if value.dtype.kind not in "biufc" or not value.dtype.isnative or any(s < 0 for s in value.strides):
        unsupported(
            "numpy",
            f"an ndarray of dtype {value.dtype}, strides {value.strides}",
            "A view that runs backwards; tensors have no negative strides."
            if any(s < 0 for s in value.strides)
            else "Tensors have no counterpart of it.",
        )
    if any(s % value.itemsize for s in value.strides):
        unsupported(
            "numpy", "an ndarray whose strides are no multiples of its item size", "Tensors have no counterpart of it."
        )
    try:
        return as_ndarray(tx.output.add_input(value, source, ndarray=True))
    except TypeError as e:
        unsupported("numpy", f"an ndarray of dtype {value.dtype}: {e}", "Tensors have no counterpart of it.")
