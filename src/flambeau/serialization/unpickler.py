"""Reading pickles of checkpoints: the restricted unpickler (``weights_only``) and the one for trusted files.

The restricted one knows the opcodes that PyTorch writes and no others; a global is taken only from the table of safe ones and those that the program
added. It never imports anything.
"""

from __future__ import annotations

import collections
import copyreg
import pickle
import struct

from ..core.rebuild import _rebuild_from_type_v2, set_state
from ..core.tensor import Tensor
from ..modules.parameter import Parameter, _rebuild_parameter_with_state
from .names import MAKERS, SAFE, find, known
from .rebuild import StorageType
from .safe import safe_names

__all__ = ["Restricted", "Trusted", "Unpickler", "load"]

_KEY = 10_000  # elements of a tuple that is a key: to hash one recurses and visits an element as often as it is named
_DEEP = 500

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


def _check_key(key) -> None:
    """UnpicklingError for a key that would take long to hash, or more of the stack than there is."""
    todo, seen, depth = [key], 0, {id(key): 1}
    while todo:
        this = todo.pop()
        if isinstance(this, tuple | frozenset):
            seen += len(this) + 1
            if seen > _KEY or depth[id(this)] > _DEEP:
                raise _refuse("a key of a dict or an element of a set is nested too deeply or too large")
            for part in this:
                depth[id(part)] = depth[id(this)] + 1
                todo.append(part)


def _check_keys(items) -> None:
    for item in items:
        _check_key(item)


def _check_state(cls: type, state) -> None:
    """UnpicklingError for a state that sets more than attributes of the program's: nothing that tensors are made of, no method."""
    if getattr(cls, "__setstate__", Tensor.__setstate__) is not Tensor.__setstate__:
        return  # the class is allowed, and knows what it takes
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    for names in (attributes, slots):
        if names is not None and not (type(names) is dict and all(type(n) is str for n in names)):
            raise _refuse(f"state of a {cls.__name__} must be a dict of names, got {type(names).__name__}")
    for name in attributes or ():
        if name.startswith("__") or issubclass(cls, Tensor) and hasattr(Tensor, name):
            raise _refuse(f"state of a {cls.__name__} sets {name}, which isn't an attribute of the program's")
    for name in slots or ():
        if name not in copyreg._slotnames(cls):
            raise _refuse(f"state of a {cls.__name__} sets {name}, which isn't a slot of the class")


def _check_maker(args) -> None:
    """Arguments of _rebuild_from_type_v2: the function that it calls, and the class."""
    if len(args) != 4 or not any(args[0] is f for f in MAKERS.values()) or args[0] is _rebuild_from_type_v2:
        raise _refuse("_rebuild_from_type_v2 of something that makes no tensor")
    if not (isinstance(args[1], type) and issubclass(args[1], Tensor)):
        raise _refuse("_rebuild_from_type_v2 of a class that is no Tensor")
    _check_state(args[1], args[3])


def _bytearray(*args) -> bytearray:
    """As pickles make one: of bytes, or of text in latin1; never of a number of zeros."""
    if args and not isinstance(args[0], bytes | str):
        raise _refuse("bytearray of something that isn't bytes")
    return bytearray(*args)


class Restricted(pickle._Unpickler):
    """Opcodes and globals of checkpoints only. UnpicklingError names what it refuses."""

    dispatch = {}
    storage = None
    instead: dict = {}  # functions that are called in the place of others

    def load(self):
        """The object. UnpicklingError for what isn't such a pickle; EOFError for one that ends early."""
        try:
            return super().load()
        except struct.error as error:
            raise EOFError(f"Ran out of input: the pickle ends inside an opcode ({error})") from None
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise _refuse(f"not a pickle of a checkpoint ({type(error).__name__}: {error})") from None

    def persistent_load(self, pid):
        if self.storage is None:
            raise _refuse("a persistent id outside of a checkpoint")
        return self.storage(pid)

    def find_class(self, module, name):
        full = f"{module}.{name}".replace("__builtin__.", "builtins.")
        found = known(module, name)
        if found is None:
            found = safe_names().get(full)
        if found is None:
            raise _refuse(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{name}])` or the `torch.serialization.safe_globals([{name}])` context manager to "
                "allowlist this global if you trust this class/function."
            )
        return found

    def _added(self, fn) -> bool:
        return any(fn is v for v in safe_names().values())

    def load_reduce(self):
        args = self.stack.pop()
        fn = self.stack[-1]
        if type(args) is not tuple:
            raise _refuse(f"arguments of a call must be a tuple, got {type(args).__name__}")
        self.stack[-1] = fn(*args) if self._added(fn) else self._called(fn, args)

    def _called(self, fn, args):
        """What a safe global makes of its arguments."""
        if not any(fn is v for v in SAFE.values()) or isinstance(fn, StorageType):
            raise _refuse(f"Trying to call reduce for unrecognized function {type(fn).__name__}")
        if isinstance(fn, type) and issubclass(fn, Tensor):
            raise _refuse(f"{fn.__name__} called: its memory would be anything")
        if fn is bytearray:
            return _bytearray(*args)
        if fn is set or fn is collections.Counter:
            _check_keys(args[0] if args else ())
        elif fn is collections.OrderedDict and args:
            _check_keys(item[0] for item in args[0])
        elif fn is collections.defaultdict and len(args) > 1:
            raise _refuse("a defaultdict with contents")
        elif fn is _rebuild_from_type_v2:
            _check_maker(args)
            args = (self.instead.get(args[0], args[0]), *args[1:])
        elif fn is _rebuild_parameter_with_state and len(args) == 4:
            _check_state(Parameter, args[3])
        return self.instead.get(fn, fn)(*args)

    def load_newobj(self):
        args = self.stack.pop()
        cls = self.stack.pop()
        if not isinstance(cls, type) or cls is Tensor or not (self._added(cls) or cls in _NEW):
            raise _refuse(f"Trying to call __new__ on unrecognized class {getattr(cls, '__name__', cls)}")
        self.stack.append(cls.__new__(cls, *args))

    def load_build(self):
        state = self.stack.pop()
        inst = self.stack[-1]
        cls = type(inst)
        if cls is collections.OrderedDict and type(state) is dict:
            _check_state(cls, state)
            inst.__dict__.update(state)
        elif not isinstance(inst, type) and self._added(cls):
            _check_state(cls, state)
            if hasattr(inst, "__setstate__") and not isinstance(inst, Tensor):
                inst.__setstate__(state)
            else:
                set_state(inst, state)
        else:
            raise _refuse(f"Trying to set the state of an instance of unrecognized type {cls.__name__}")

    def _target(self, *kinds):
        if type(self.stack[-1]) not in kinds:
            raise _refuse(f"elements are put into a {type(self.stack[-1]).__name__}")
        return self.stack[-1]

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        _check_key(key)
        self._target(dict, collections.OrderedDict, collections.Counter, collections.defaultdict)[key] = value

    def load_setitems(self):
        items = self.pop_mark()
        target = self._target(dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
        for key, value in zip(items[::2], items[1::2], strict=True):
            _check_key(key)
            target[key] = value

    def load_append(self):
        value = self.stack.pop()
        self._target(list).append(value)

    def load_appends(self):
        items = self.pop_mark()
        self._target(list).extend(items)

    def load_additems(self):
        items = self.pop_mark()
        _check_keys(items)
        self._target(set).update(items)

    def load_dict(self):
        items = self.pop_mark()
        _check_keys(items[::2])
        self.append(dict(zip(items[::2], items[1::2], strict=True)))

    def load_frozenset(self):
        items = self.pop_mark()
        _check_keys(items)
        self.append(frozenset(items))

    def load_bytearray8(self):
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(size)))  # no memory before there are bytes


_NEW = frozenset((set, collections.Counter, collections.OrderedDict, collections.defaultdict))
_OWN = {
    name: getattr(Restricted, f"load_{name.lower()}")
    for name in "REDUCE NEWOBJ BUILD SETITEM SETITEMS APPEND APPENDS ADDITEMS DICT FROZENSET BYTEARRAY8".split()
}


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
    instead: dict = {}

    def find_class(self, module, name):
        try:
            found = find(module, name)
        except (ImportError, AttributeError):
            return super().find_class(module, name)
        return self.instead.get(found, found) if callable(found) and getattr(found, "__hash__", None) else found

    def persistent_load(self, pid):
        if self.storage is None:
            raise pickle.UnpicklingError("a persistent id outside of a checkpoint")
        return self.storage(pid)


Unpickler = Restricted


def load(file, *, encoding: str = "ASCII"):
    """Unpickle ``file`` with the restricted unpickler."""
    return Restricted(file, encoding=encoding).load()
