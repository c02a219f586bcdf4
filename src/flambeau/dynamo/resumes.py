"""The resume functions of a captured function: what goes on behind its graph breaks."""

from __future__ import annotations

import types
import weakref
from typing import Any

from flambeau.base.forks import held_while_forking

__all__ = ["Resumes"]


class Resumes:
    """The resume functions of one captured function. Its cache owns them; captured code refers to them weakly, for a loop that breaks comes
    back to itself."""

    def __init__(self):
        self.codes: dict[Any, types.CodeType] = {}
        # Of a resume function: the code it continues, and how many instructions it has in front of that code's.
        self.origins: dict[types.CodeType, tuple[types.CodeType, int]] = {}
        self.functions: dict[Any, Any] = {}  # those without closure, as callables, by place and globals
        self.once: set[types.CodeType] = set()  # those that go on with an object that never comes again
        self.traced: dict[
            types.CodeType, types.CodeType
        ] = {}  # of a generator's segment: the code that is traced in its place
        self.short_loops = (
            False  # whether short loops over arrays become native too, since unrolled they break the graph
        )
        self.long_loops: set[tuple[types.CodeType, int]] = set()  # that are captured turn by turn

    @staticmethod
    def of(cache) -> Resumes:
        """Of the function that ``cache`` belongs to, or that the resume function continues which it belongs to."""
        # Captured code knows the functions weakly: of two threads that make this, both keep the one that stays.
        with held_while_forking:
            found = cache.__dict__.get("resumes")
            if isinstance(found, weakref.ref):
                found = found()
            if found is None:
                found = cache.__dict__["resumes"] = Resumes()
            return found
