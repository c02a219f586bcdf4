"""Knobs of the compiler. Assign to change; :func:`patch` for a block. Names that PyTorch programs set are kept.

``key()`` gives what enters the cache keys.
"""

from __future__ import annotations

import contextlib
import os

__all__ = ["key", "patch", "trace"]

reduction_piece = 4096
"""Elements of a piece of a reduction that is done in two steps."""

fusion = True
"""Put several nodes into one kernel."""

force_disable_caches = os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") == "1"
"""Neither read nor write the cache on disk."""

fallback_random = False
fx_graph_cache = True
debug = False
max_autotune = False
cpp_wrapper = False
compile_threads = 2


class trace:
    """What a debug run writes (TORCH_COMPILE_DEBUG=1)."""

    enabled = os.environ.get("TORCH_COMPILE_DEBUG") == "1"
    debug_dir = None
    debug_log = True
    info_log = False
    fx_graph = True
    fx_graph_transformed = True
    ir_pre_fusion = True
    ir_post_fusion = True
    output_code = True
    graph_diagram = os.environ.get("INDUCTOR_POST_FUSION_SVG") == "1"
    compile_profile = False
    upload_tar = None


def key() -> str:
    """The settings that change generated code."""
    return f"piece={reduction_piece} fusion={fusion}"


@contextlib.contextmanager
def patch(settings=None, **more):
    """Settings (a dict, or a name and keyword arguments) for the duration of a block; ``trace.x`` as "trace.x"."""
    settings = {**(settings or {}), **more}
    old = []
    for name, value in settings.items():
        owner, attribute = (trace, name[6:]) if name.startswith("trace.") else (None, name)
        if owner is None:
            if attribute not in globals():
                raise AttributeError(f"inductor.config has no setting {name}")
            old.append((None, attribute, globals()[attribute]))
            globals()[attribute] = value
        else:
            old.append((owner, attribute, getattr(owner, attribute)))
            setattr(owner, attribute, value)
    try:
        yield
    finally:
        for owner, attribute, value in reversed(old):
            if owner is None:
                globals()[attribute] = value
            else:
                setattr(owner, attribute, value)
