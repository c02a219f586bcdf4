"""Packages of the optional extras, imported where they are first needed."""

from __future__ import annotations

import importlib
from types import ModuleType

__all__ = ["optional"]


def optional(module: str, extra: str, what: str) -> ModuleType:
    """Import ``module``, which the extra ``extra`` installs and ``what`` needs.

    Raises ModuleNotFoundError with the command that installs it. An error inside the package itself is passed on as it is.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        text = f"{what} needs the package '{package}', which is not installed: pip install 'flambeau[{extra}]'"
        raise ModuleNotFoundError(text, name=package) from None
