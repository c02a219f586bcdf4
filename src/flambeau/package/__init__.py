"""``torch.package``: objects together with the Python modules that they need, in one file; see exporter.py and importer.py.

Modules are packed as source and loaded apart from those of the process. Opening a package runs its code: open those you trust.
"""

from .exporter import EmptyMatchError, PackageExporter, PackagingError
from .globs import GlobGroup
from .importer import PackageImporter
from .names import is_from_package

__all__ = ["EmptyMatchError", "GlobGroup", "PackageExporter", "PackageImporter", "PackagingError", "is_from_package"]
