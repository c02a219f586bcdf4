"""The class ``contextlib.nullcontext``."""

from __future__ import annotations

import contextlib

from ...tracing.wrapping import CLASS_WRAPPERS
from ..objects.class_object import ClassVariable
from .managers import NullContextVariable


class NullContextClass(ClassVariable):
    def call(self, tx, args, kwargs):
        return NullContextVariable(self.value, args[0] if args else None, args)


@CLASS_WRAPPERS.row("null context")
def _(tx, value, source):
    return NullContextClass(value, source) if value is contextlib.nullcontext else None
