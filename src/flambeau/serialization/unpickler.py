"""Reading pickles of checkpoints: the restricted unpickler (``weights_only``) and the one for trusted files.

The restricted one knows the opcodes that PyTorch writes and no others; a global is taken only from the table of safe ones and those that the program
added. It never imports anything.
"""

from __future__ import annotations

import pickle

from ..core.tensor import Tensor
from .names import SAFE, StorageType, find
from .safe import safe_names

__all__ = ["Restricted", "Trusted", "Unpickler", "load"]

_ALLOWED = """
PROTO STOP GLOBAL STACK_GLOBAL MARK POP POP_MARK EMPTY_DICT EMPTY_LIST EMPTY_TUPLE EMPTY_SET TUPLE TUPLE1 TUPLE2 TUPLE3 LIST DICT APPEND
APPENDS SETITEM SETITEMS ADDITEMS FROZENSET REDUCE NEWOBJ BUILD BINPERSID NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 INT LONG LONG1 LONG4
BINFLOAT FLOAT BINUNICODE SHORT_BINUNICODE BINUNICODE8 UNICODE SHORT_BINSTRING BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 BINGET
LONG_BINGET GET BINPUT LONG_BINPUT PUT MEMOIZE FRAME DUP
""".split()
_HINT = (
    "Weights only load failed. This file can still be loaded: with `weights_only=False`, which can run any code that the file holds, so only when "
    "you trust its source; or by allowing the names it uses with `torch.serialization.add_safe_globals([...])`.\n"
)


def _refuse(why: str):
    return pickle.UnpicklingError(f"{_HINT}\tWeightsUnpickler error: {why}")


class Restricted(pickle._Unpickler):
    """Opcodes and globals of checkpoints only. UnpicklingError names what it refuses."""

    dispatch = {}
    storage = None

    def load(self):
        """The object. UnpicklingError for what isn't such a pickle; EOFError for one that ends early."""
        try:
            return super().load()
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise _refuse(f"not a pickle of a checkpoint ({type(error).__name__}: {error})") from None

    def persistent_load(self, pid):
        if self.storage is None:
            raise _refuse("a persistent id outside of a checkpoint")
        return self.storage(pid)

    def find_class(self, module, name):
        full = f"{module}.{name}".replace("__builtin__.", "builtins.")
        known = SAFE.get(full)
        if known is None:
            known = safe_names().get(full)
        if known is None:
            raise _refuse(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context manager to "
                "allowlist this global if you trust this class/function."
            )
        return known

    def _allowed(self, fn) -> bool:
        return any(fn is v for v in SAFE.values()) or any(fn is v for v in safe_names().values())

    def load_reduce(self):
        args = self.stack.pop()
        fn = self.stack[-1]
        if not self._allowed(fn) or isinstance(fn, StorageType):
            raise _refuse(f"Trying to call reduce for unrecognized function {fn}")
        self.stack[-1] = fn(*args)

    def load_newobj(self):
        args = self.stack.pop()
        cls = self.stack.pop()
        if not (isinstance(cls, type) and self._allowed(cls)):
            raise _refuse(f"Trying to call __new__ on unrecognized class {cls}")
        self.stack.append(cls.__new__(cls, *args))

    def load_build(self):
        state = self.stack.pop()
        inst = self.stack[-1]
        if isinstance(inst, type) or not any(type(inst) is c for c in (*SAFE.values(), *safe_names().values())):
            raise _refuse(f"Trying to set the state of an instance of unrecognized type {type(inst).__name__}")
        setstate = getattr(inst, "__setstate__", None)
        if setstate is not None and not isinstance(inst, Tensor | dict):
            setstate(state)
        elif isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict) and not isinstance(inst, dict):
            inst.__dict__.update(state[0] or {})
            for key, value in state[1].items():
                setattr(inst, key, value)
        elif isinstance(state, dict):
            inst.__dict__.update(state)
        else:
            raise _refuse(f"state of a {type(inst).__name__} must be a dict, got {type(state).__name__}")


_OWN = {"REDUCE": Restricted.load_reduce, "NEWOBJ": Restricted.load_newobj, "BUILD": Restricted.load_build}


def _refusing(name: str):
    def refuse(self):
        raise _refuse(f"Unsupported operand {name}")

    return refuse


for _name in (
    n for n in dir(pickle) if n.isupper() and isinstance(getattr(pickle, n), bytes) and len(getattr(pickle, n)) == 1
):
    _code = getattr(pickle, _name)[0]
    if _name in _ALLOWED and _code in pickle._Unpickler.dispatch:
        Restricted.dispatch[_code] = _OWN.get(_name, pickle._Unpickler.dispatch[_code])
    elif _code in pickle._Unpickler.dispatch:
        Restricted.dispatch.setdefault(_code, _refusing(_name))


class Trusted(pickle.Unpickler):
    """Any global, PyTorch's paths being flambeau's."""

    storage = None

    def find_class(self, module, name):
        try:
            return find(module, name)
        except (ImportError, AttributeError):
            return super().find_class(module, name)

    def persistent_load(self, pid):
        if self.storage is None:
            raise pickle.UnpicklingError("a persistent id outside of a checkpoint")
        return self.storage(pid)


Unpickler = Restricted


def load(file, *, encoding: str = "ASCII"):
    """Unpickle ``file`` with the restricted unpickler."""
    return Restricted(file, encoding=encoding).load()
