"""Programs written for PyTorch: the import hook (``install``), the command ``flambeau run``, and names that only rename or that mean nothing here.

``aliases.py`` is the table of moved and private module paths, ``absent.py`` the table of names without meaning on this system. Nothing below
this package knows it.
"""

__all__ = ["install", "uninstall"]


def __getattr__(name):
    if name in __all__:
        from . import hook

        return getattr(hook, name)
    raise AttributeError(f"module 'flambeau.compat' has no attribute {name!r}")
