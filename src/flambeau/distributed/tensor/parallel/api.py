"""``parallelize_module``: a plan that says which style each part of a module has."""

from __future__ import annotations

import fnmatch
import warnings

from ....modules.module import Module
from ...device_mesh import DeviceMesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def _matches(module: Module, pattern: str) -> list[Module]:
    """The submodules that a path means, in which parts may have ``*`` and ``?``."""
    found = [module]
    for part in pattern.split("."):
        found = [child for m in found for name, child in m.named_children() if fnmatch.fnmatchcase(name, part)]
    return found


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None, parallelize_plan=None, *, src_data_rank: int | None = 0
) -> Module:
    """Apply a style to a module, or styles to the submodules that the paths of a dictionary mean (``"layers.*.attention.wq"``). ``device_mesh``
    has one dimension. ValueError for a mesh with more; a path that means nothing warns."""
    if device_mesh is None:
        raise RuntimeError("parallelize_module needs a device_mesh")
    if device_mesh.ndim != 1:
        raise ValueError(
            f"parallelize_module: the mesh must have one dimension (take one with mesh['tp']), got {device_mesh.ndim}"
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided, so this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        found = _matches(module, path) if path else [module]
        if not found:
            warnings.warn(f"Parallelize plan key '{path}' could not be resolved: no submodule matches.", stacklevel=2)
        for part in found:
            parallelize_module(part, device_mesh, style, src_data_rank=src_data_rank)
    return module
