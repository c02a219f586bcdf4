"""Tensors of users' classes; see :mod:`...subclasses` for operations on them."""

from __future__ import annotations

from flambeau import _C

from ...exc import unsupported
from ...graph import tensor_queries
from ...rules.reflect import dict_of, mro_of, name_of
from ...tracing import world
from ...tracing.current_frame import current
from ..iterators.protocol import checked_iterator
from ..values.constant import ConstantVariable
from ..values.symbolic import number_of, wrap_number
from .tensor import TensorVariable
from .tensor_methods import TensorMethodVariable

__all__ = ["SubclassVariable"]


class SubclassVariable(TensorVariable):
    """A tensor of a user's class. ``node`` None: it has no data. ``value``: the object that existed before the call."""

    def __init__(self, node, val, source=None, cls=None, value=None):
        super().__init__(node, val, source, cls)
        self.value = value
        self._marker = None

    def as_proxy(self):
        if self.node is None:
            unsupported("tensor-subclass", f"a {name_of(self.cls)}, which has no data, is an argument of an operation")
        return self.node

    def key_object(self):
        if self.value is None:
            unsupported("dict-key", f"{self!r} as a key")
        current().output.guard(self.source, "ID_MATCH", self.value)
        return self.value

    def plain(self) -> TensorVariable:
        """The same data as a plain tensor."""
        if self.node is None:
            unsupported("tensor-subclass", f"the data of a {name_of(self.cls)}, which has none")
        return TensorVariable(self.node, self.val)

    def own_attribute(self, tx, name):
        if name in self.written:
            return self.written[name]
        return None if self.value is None else world.instance_attr(tx, self.value, self.source, name)

    def getattr(self, tx, name):
        if name == "__class__":
            return tx.wrap_known(self.cls)
        owner = next((c for c in mro_of(self.cls) if name in dict_of(c)), None)
        if owner is not None and tensor_queries.is_user_class(owner):
            return world.attribute(tx, self, self.value, self.cls, self.source, name, self.written.get)
        if owner is None:
            found = self.own_attribute(tx, name)
            return found if found is not None else world.missing(tx, self, self.cls, name)
        world.class_attr(tx, self.cls, name)
        if not hasattr(type(dict_of(owner)[name]), "__set__"):  # an object's own attribute hides a method of its class
            found = self.own_attribute(tx, name)
            if found is not None:
                return found
        if name == "grad" and self.node is not None:
            return super().getattr(tx, name)
        if callable(getattr(_C.TensorBase, name, None)) or callable(getattr(tensor_queries.Tensor, name, None)):
            return TensorMethodVariable(self, name)
        if tx.output.blocks.function_disabled or not tensor_queries.overrides_function(self.cls):
            return self.plain_getattr(tx, name)
        if not tx.subclasses.handler_is_user(tx, self.cls, "__torch_function__"):
            found = self.plain_getattr(tx, name)
            return found if name in GRADS else tx.subclasses.as_class(tx, found, self.cls)
        return tx.subclasses.call(
            tx, name, lambda o: getattr(o, name), [self], {}, lambda: self.plain_getattr(tx, name)
        )

    def plain_getattr(self, tx, name):
        """An attribute of the library's class, past ``__torch_function__``."""
        if self.node is not None and not tensor_queries.overrides_dispatch(self.cls):
            return TensorVariable(self.node, self.val).getattr(tx, name)
        if name in OF_AUTOGRAD and self.val.requires_grad:
            unsupported("tensor-subclass", f"{name} of a {name_of(self.cls)} that requires grad")
        value = tx.output.eval_fake(lambda v: getattr(v, name), [self.val])
        if not tensor_queries.is_tensor(value):
            return tx.wrap_known(value)
        return tx.subclasses.call(tx, name, lambda o: getattr(o, name), [self], {}, function=False)

    def special(self, tx, name):
        """The class's own special method, None where it is the library's."""
        found = world.class_attr(tx, self.cls, name)
        if not world.is_defined(found) or not tensor_queries.is_of_program(self.cls, name, found):
            return None
        return world.bind(tx, self, self.cls, name, found)

    def length(self, tx):
        own = self.special(tx, "__len__")
        if own is not None:
            return own.call(tx, [], {}).as_constant()
        if not self.val.ndim or tx.output.blocks.function_disabled or not tensor_queries.overrides_function(self.cls):
            return super().length(tx)
        if not tx.subclasses.handler_is_user(tx, self.cls, "__torch_function__"):
            return super().length(tx)
        length = super().length
        # Not len(), which takes no symbol.
        out = tx.subclasses.call(tx, "__len__", lambda o: o.__len__(), [self], {}, lambda: wrap_number(length(tx)))
        if out.python_type() is not int:
            unsupported("tensor-subclass", f"the length of a {name_of(self.cls)} is no int", "len() refuses it.")
        return number_of(out)

    def iter(self, tx):
        own = self.special(tx, "__iter__")
        return super().iter(tx) if own is None else checked_iterator(tx, own.call(tx, [], {}))

    def items(self, tx):
        if not self.val.ndim:
            return super().items(tx)
        return self.getattr(tx, "unbind").call(tx, [ConstantVariable(0)], {}).items(tx)

    def getitem(self, tx, key):
        own = self.special(tx, "__getitem__")
        return super().getitem(tx, key) if own is None else own.call(tx, [key], {})

    def setitem(self, tx, key, value):
        own = self.special(tx, "__setitem__")
        if own is None:
            super().setitem(tx, key, value)
        else:
            own.call(tx, [key, value], {})

    def contains(self, tx, key):
        own = self.special(tx, "__contains__")
        return super().contains(tx, key) if own is None else own.call(tx, [key], {})

    def truth(self, tx):
        own = self.special(tx, "__bool__")
        return super().truth(tx) if own is None else own.call(tx, [], {}).truth(tx)

    def call(self, tx, args, kwargs):
        own = self.special(tx, "__call__")
        return super().call(tx, args, kwargs) if own is None else own.call(tx, args, kwargs)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def setattr(self, tx, name, value):
        found = world.class_attr(tx, self.cls, name)
        if world.is_defined(world.class_attr(tx, self.cls, "__setattr__")):
            unsupported("tensor-setattr", f"setting {name} of {self!r}", f"{name_of(self.cls)} defines __setattr__.")
        if isinstance(found, property) and found.fset is not None and tensor_queries.is_user_code(found.fset):
            tx.wrap_function(found.fset).call(tx, [self, value], {})
            return
        if found is not world.ABSENT and hasattr(type(found), "__set__"):
            if name == "grad" and self.node is not None:
                return super().setattr(tx, name, value)
            unsupported("tensor-setattr", f"setting {name} of {self!r}", "It belongs to the tensor, not to the graph.")
        self.written[name] = value
        tx.side_effects.touch(self)

    def reconstruct(self, cg):
        if self.node is None and self.val.requires_grad:
            cg.graph_output(self.marker(cg.graph))
        elif self.node is None:
            v = self.val
            facts = (tuple(v._shape), tuple(v._strides), v._offset, v._dtype, v._device)
            cg.call_function(new_wrapper, lambda: [cg.load_const(self.cls), cg.load_const(facts)], 2)
        else:

            def push():
                TensorVariable.reconstruct(self, cg)
                cg.load_const(self.cls)

            cg.call_function(new_subclass, push, 2)
        t = cg.temps[id(self)] = cg.temp()
        cg.emit("STORE_FAST", t)
        for k, v in self.written.items():

            def write(k=k, v=v):
                cg.emit("LOAD_FAST", t)
                cg.load_const(k)
                cg(v)

            cg.call_function(object.__setattr__, write, 3)
            cg.emit("POP_TOP")
        cg.emit("LOAD_FAST", t)

    def marker(self, graph):
        """The node that stands among the graph's outputs for this wrapper and its history."""
        if self._marker is None:
            self._marker = graph.call_function(new_wrapper, ())
            self._marker.meta.update(val=self.val, variable=self)
        return self._marker


def is_marker(node) -> bool:
    return node.target is new_wrapper


GRADS = ("grad", "_base")
OF_AUTOGRAD = ("grad", "grad_fn", "is_leaf", "_version", "output_nr", "_backward_hooks", "retains_grad")


def new_wrapper(cls: type, facts: tuple):
    size, strides, offset, dtype, device = facts
    return tensor_queries.Tensor._make_wrapper_subclass(
        cls, size, strides=strides, storage_offset=offset, dtype=dtype, device=device
    )


def new_subclass(t, cls: type):
    with _C.Guard(function_disabled=1):
        return tensor_queries.Tensor.as_subclass(t, cls)
