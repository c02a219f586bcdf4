"""Operators on values that are known while tracing: computed for real."""

from __future__ import annotations

import enum

import numpy as np

from ....base.quiet import errstate
from ...exc import UserRaises, unsupported
from ...rules.reflect import is_a
from ...tracing import world
from ..objects.class_object import ClassVariable
from ..values.stdlib_values import ValueVariable

__all__ = ["fold"]


def fold(tx, fn, args, kwargs=None):
    """What ``fn`` gives for values that are known while tracing."""
    for a in (*args, *(kwargs or {}).values()):
        if a.is_constant() and isinstance(a.as_constant(), enum.Enum):
            world.folded(tx, a.as_constant())
        elif type(a) is ValueVariable:
            return a.folded(tx, fn, args, kwargs or {})
        elif isinstance(a, ClassVariable) and not a.is_plain(tx):
            unsupported("metaclass", f"{fn.__name__} of {a!r}", "Its metaclass may have its own way to do that.")
    known, named = [a.as_constant() for a in args], {k: v.as_constant() for k, v in (kwargs or {}).items()}
    try:
        if not any(is_a(x, np.generic) for x in known):
            return tx.wrap_made(fn(*known, **named))
        with errstate(all="raise"):  # NumPy warns at each call
            return tx.wrap_made(fn(*known, **named))
    except UserRaises:
        raise
    except FloatingPointError as e:
        unsupported("numpy", f"{fn.__name__} of NumPy's scalars", f"NumPy warns: {e}.")
    except Exception as e:  # a mistake of the user's: happens for real in the plain frame
        tx.raise_user(e)
