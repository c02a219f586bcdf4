"""Objects that existed before the call, each with one variable however it is reached."""

from __future__ import annotations

import itertools
import types
from typing import Any

from ..config import config
from ..guards.source import CellSource, ConstSource, Source
from ..rules import trace_rules
from ..variables.base import Lazy, Variable
from ..variables.functions.cells import CellVariable


class KnownObjects:
    """The objects that existed before the call, with the variables that stand for them."""

    def __init__(self):
        self.by_id: dict[int, Variable] = {}
        self.keep: list[Any] = []
        """The objects themselves, while they are known by id."""
        self.mutable_sources: list[Source] = []
        self.cells: dict[int, CellVariable] = {}
        self.literals: dict[int, Variable] = {}
        """Tuples and frozensets among the constants of codes, by id: each is one object."""
        self.made_classes: dict[int, Variable] = {}
        """Made while tracing, by the ids of their stand-ins."""
        self.enumerations: dict[int, Variable] = {}
        """Those made while tracing, by their ids: captured code makes them anew, and has its own members."""
        self.stood_for: dict[int, Variable] = {}
        """By what stands for it in a stand-in."""
        self._constants: dict[str, dict[int, Any]] = {}
        """By label, the objects that go by it, in the order in which they were met."""
        self._by_name: dict[str, Any] = {}
        """The objects of the first ``_named`` variables, by the names of their sources."""
        self._named = 0

    def cell(self, cell: types.CellType, source: Source | None) -> CellVariable:
        v = self.cells.get(id(cell))
        if v is None:
            source = source or ConstSource(cell, "cell")
            try:
                contents = Lazy(cell.cell_contents, CellSource(source))
            except ValueError:
                contents = None
            v = self.cells[id(cell)] = CellVariable(contents, source)
            self.keep.append(cell)
        return v

    def path(self, source: Source) -> str:
        """A name for what is found at ``source``: no other source of this trace has it, and the next trace finds the same there. Objects that
        captured code holds on to may share a label (cells do), so they are counted."""
        root = source.root
        if not isinstance(root, ConstSource):
            return source.name
        known = self._constants.setdefault(root.label, {})
        known.setdefault(id(root.value), root.value)
        return f"object {list(known).index(id(root.value))}: {source.name}"

    def is_static(self, value, source: Source) -> bool:
        """Whether the sizes of a tensor stay constants though they vary."""
        if config.force_parameter_static_shapes and trace_rules.is_parameter_class(type(value)):
            return True
        owner: Any = source
        while owner is not None:
            cls = type(self.object_at(owner))
            if config.force_parameter_static_shapes and trace_rules.is_optimizer_class(cls):
                return True  # gradients and states have the sizes of parameters
            if config.force_nn_module_property_static_shapes and trace_rules.is_nn_module_class(cls):
                return True
            owner = owner.base
        return False

    def owner(self, source: Source) -> Any:
        """The object whose attribute is at ``source``, as far as it was looked at."""
        base = source.base
        return None if base is None else self.object_at(base.base or base)

    def object_at(self, source: Source) -> Any:
        for v in itertools.islice(self.by_id.values(), self._named, None):
            if v.source is not None:
                self._by_name.setdefault(v.source.name, getattr(v, "value", None))
        self._named = len(self.by_id)
        return self._by_name.get(source.name)

    def release(self) -> None:
        self.cells, self.literals = {}, {}
        self.by_id.clear()
        self.made_classes.clear()
        self.enumerations.clear()
        self.stood_for.clear()
        self.keep.clear()  # a generator among it is closed when the program drops it
        self._by_name.clear()
