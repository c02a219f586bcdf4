"""What variables get of the frame that lies above them: other variables, and the operations of packages that build on them."""

from __future__ import annotations

from ..graph.function_nodes import function_node
from ..guards.source import ConstSource
from ..higher_order import nested_regions
from ..rules.reflect import name_of, qualname_of
from ..subclasses import subclass_operations
from ..variables import operators
from ..variables.base import Variable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import TupleVariable
from ..variables.functions.bound import c_callable
from ..variables.functions.python_functions import UserMethodVariable
from ..variables.iterators.consumers import sort
from ..variables.iterators.container_iterators import LIST_ITERATOR, ElementsVariable
from ..variables.iterators.protocol import checked_iterator
from ..variables.objects.class_object import ClassVariable
from ..variables.objects.instance import SlotMethod
from ..variables.objects.namespaces import NamespaceDict
from ..variables.tensors.set_data import set_data
from ..variables.values.constant import ConstantVariable
from ..variables.values.constant_methods import ConstantMethodVariable
from ..variables.values.stdlib_values import made
from . import builder

__all__ = ["MadeForVariables"]


class MadeForVariables:
    """Handed to variables as ``tx``. They import only what lies below them; what builds on them they reach through it."""

    operators = operators
    subclasses = subclass_operations
    regions = nested_regions
    function_node = staticmethod(function_node)
    set_data = staticmethod(set_data)

    def wrap(self, value, source) -> Variable:
        if source is None:
            return self.wrap_known(value)
        return builder.wrap(self, value, source)

    def wrap_known(self, value) -> Variable:
        """A value that is the same at every call as far as guards already made say; what is read from it is guarded."""
        return builder.wrap(self, value, ConstSource(value, f"const<{name_of(type(value))}>"))

    def wrap_made(self, value) -> Variable:
        """What a function returned that was called while tracing: captured code makes its containers anew."""
        return made(self, value)

    def wrap_function(self, fn, source=None) -> Variable:
        return builder.wrap(self, fn, source or ConstSource(fn, getattr(fn, "__qualname__", "fn")))

    def wrap_c_callable(self, value) -> Variable:
        return c_callable(self, value, None)

    def wrap_key(self, key) -> Variable:
        return self.wrap_known(key)

    def make_constant(self, value) -> Variable:
        return ConstantVariable(value)

    def make_constant_method(self, value, name: str) -> Variable:
        return ConstantMethodVariable(value, name)

    def make_class(self, cls: type) -> Variable:
        made = self.output.objects.made_classes.get(id(cls))
        return made or ClassVariable(cls, ConstSource(cls, qualname_of(cls)))

    def make_method(self, fn: Variable, owner: Variable) -> Variable:
        return UserMethodVariable(fn, owner)

    def make_slot_method(self, owner: Variable, name: str, method) -> Variable:
        return SlotMethod(owner, name, method)

    def make_namespace(self, table: dict, label: str) -> Variable:
        return NamespaceDict(table, label)

    def make_iterator(self, elements, over: Variable | None = None, cls: type = LIST_ITERATOR) -> Variable:
        """An iterator over known elements: the own iterator of the container ``over``, or that of a new list."""
        return ElementsVariable(elements, over, cls)

    def checked_iterator(self, it: Variable) -> Variable:
        """What an ``__iter__`` returned, which has to be an iterator."""
        return checked_iterator(self, it)

    def make_tuple(self, elements) -> Variable:
        return TupleVariable(elements)

    def make_list(self, elements) -> Variable:
        return ListVariable(elements)

    def make_dict(self, entries: dict[str, Variable]) -> Variable:
        return DictVariable({k: (ConstantVariable(k), v) for k, v in entries.items()})

    def sort(self, items: list[Variable], kwargs: dict[str, Variable]) -> None:
        sort(self, items, kwargs)
