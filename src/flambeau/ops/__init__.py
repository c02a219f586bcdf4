"""The operators (level 2): data only, a file to a family. ``torch.ops.aten.add.Tensor`` is reached from here too.

Adding a pointwise operator is one decorated function in one of these files; see docs/architecture.md.
"""

from ..core.operator import namespace as _namespace
from . import (  # noqa: F401, I001
    activation,
    arithmetic,
    comparison,
    convolution,
    data,
    elementary,
    factories,
    indexing,
    inplace_views,
    layers,
    linear,
    loss,
    losses,
    network,
    order_statistics,
    pooling,
    recurrent,
    reductions,
    resampling,
    scalars,  # noqa: F401  (first: bodies are written in its rows)
    scalars_special,
    scan_sort,
    scattering,
    searching,
    selection,
    shaping,
    sizes,
    special,
    statistics,
    strided,
    views,
)


def load_library(path) -> None:
    """``torch.ops.load_library``. OSError: operators in native libraries of PyTorch's are not loaded here."""
    raise OSError(f"{path}: flambeau loads no native libraries of operators; define them in Python with torch.library")


def __getattr__(name):
    """``torch.ops.<namespace>``, made if new, as in PyTorch."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _namespace(name)
