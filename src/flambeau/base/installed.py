"""Where the interpreter's library and installed packages lie: of a virtual environment, of the interpreter below it, and of the user."""

import os
import site
import sys
import sysconfig

__all__ = ["SITE", "STDLIB"]

STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
"""The folder of the standard library."""


def _site() -> tuple[str, ...]:
    """A package may come from another place than the environment's own: ``--system-site-packages``, ``pip install --user``, or a ``.pth`` file."""
    paths = [sysconfig.get_paths()[k] for k in ("purelib", "platlib")]
    paths += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    paths += [p for p in sys.path if os.path.basename(p) in ("site-packages", "dist-packages")]
    return tuple(p + os.sep for p in dict.fromkeys(paths))


SITE = _site()
"""The folders of installed packages. The standard library's folder may hold one of them, so ask for these first."""
