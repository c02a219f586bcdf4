"""An exception on its way from another process (or thread)."""

from __future__ import annotations

import sys
import traceback

from ...base.public import public_in

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


@public_in("_utils")
class KeyErrorMessage(str):
    """A KeyError shows the repr of its argument: this str shows its lines."""

    def __repr__(self):
        return str(self)


@public_in("_utils")
class ExceptionWrapper:
    """What is needed to raise an exception again elsewhere, with its traceback as text."""

    def __init__(self, exc_info=None, where: str = "in background"):
        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raise the same type; its message holds the original traceback. RuntimeError when the type can't be made from a message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            exception = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise exception
