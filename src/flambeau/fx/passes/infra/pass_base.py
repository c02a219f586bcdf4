"""A pass as an object with conditions before and after it."""

from __future__ import annotations

import abc
from typing import NamedTuple

from ...graph_module import GraphModule

__all__ = ["PassBase", "PassResult"]


class PassResult(NamedTuple):
    """What a pass gives back: the module, and whether it changed."""

    graph_module: GraphModule
    modified: bool


class PassBase(abc.ABC):
    """Subclasses define :meth:`call`; :meth:`requires` and :meth:`ensures` may raise."""

    def __call__(self, graph_module: GraphModule) -> PassResult | None:
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module: GraphModule) -> PassResult | None:
        """The pass itself. None counts as a module that was edited in place."""

    def requires(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Called before the pass."""

    def ensures(self, graph_module: GraphModule) -> None:  # noqa: B027
        """Called after the pass."""
