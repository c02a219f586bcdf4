"""With blocks that were entered while tracing and change how what follows is traced."""

from __future__ import annotations

from typing import Any

from ..variables.base import Variable


class EnteredBlocks:
    """Blocks that the trace is inside of."""

    def __init__(self):
        self.regions: list[Any] = []
        """error_on_graph_break, patched settings."""
        self.left_strict = False
        self.function_modes: list[Variable] = []
        """Innermost last."""
        self.function_disabled = 0
        """The depth of regions in which classes don't override functions."""
        self.dispatch_handlers = 0
        """The depth of ``__torch_dispatch__`` handlers. The compiler runs these, not capture: what is disabled for capture is traced there."""
        self.errstates: tuple = ()
        """np.errstate blocks: (kind, what happens) pairs."""

    def breaks_are_errors(self) -> bool:
        """Whether ``error_on_graph_break`` is on where the trace is."""
        found = [r.error for r in self.regions if hasattr(r, "error")]
        return found[-1] if found else self.left_strict

    def leave_regions(self) -> None:
        """The trace ends inside of them. What ends it is an error or a break by the rules that held there."""
        self.left_strict = self.breaks_are_errors()
        while self.regions:
            self.regions.pop().__exit__(None, None, None)
