"""Names of ``torch.export.unflatten``, which would give an exported program its submodules back."""

from __future__ import annotations

__all__ = ["FlatArgsAdapter", "UnflattenedModule", "unflatten"]

_WHY = "torch.export.unflatten is not built: exported graphs don't record which submodule a node came from; ExportedProgram.module() runs the program"


class FlatArgsAdapter:
    """Adapts the leaves of the arguments; derived by programs that call ``unflatten``."""


class UnflattenedModule:
    """NotImplementedError: programs stay flat here."""

    def __init__(self, export_module, flat_args_adapter=None):
        raise NotImplementedError(_WHY)


def unflatten(module, flat_args_adapter=None):
    """Not built: NotImplementedError."""
    raise NotImplementedError(_WHY)
