"""torch.export: a program as one graph that stands by itself.

``export`` (tracing.py) gives an :class:`ExportedProgram` (exported_program.py): a functional graph, a signature (graph_signature.py), the
sizes that may vary (dynamic_shapes.py for what the user says, constraints.py for the symbols and the checks of a call), and the nesting of
arguments and results (structure.py). ``save`` and ``load`` (archive.py) write and read it; nothing of a file is executed but the operators of
its graph. package.py makes one file with machine code of it (``torch._inductor.aoti_compile_and_package``).
"""

from ..base.packages import keep_exports
from .archive import load, save
from .decompositions import CustomDecompTable, default_decompositions
from .dynamic_shapes import AdditionalInputs, Constraint, Dim, ShapesCollection, dims
from .exported_program import ExportedProgram
from .graph_signature import ExportBackwardSignature, ExportGraphSignature
from .module_calls import ModuleCallEntry, ModuleCallSignature
from .structure import register_dataclass
from .tracing import draft_export, export
from .unflatten import FlatArgsAdapter, UnflattenedModule, unflatten

__all__ = [
    "AdditionalInputs",
    "Constraint",
    "CustomDecompTable",
    "Dim",
    "ExportBackwardSignature",
    "ExportGraphSignature",
    "ExportedProgram",
    "FlatArgsAdapter",
    "ModuleCallEntry",
    "ModuleCallSignature",
    "ShapesCollection",
    "UnflattenedModule",
    "default_decompositions",
    "dims",
    "draft_export",
    "export",
    "load",
    "register_dataclass",
    "save",
    "unflatten",
]

keep_exports(__name__)
