"""From a public call (``torch.sum(x, 0)``, ``x.view(2, -1)``) to an operator overload: the generated bindings.

A :class:`Binder` knows the signatures of all overloads of a name, in order of declaration. The first that the arguments fit is taken;
the choice is remembered by the types of the arguments. Arguments are brought into schema types (ints to lists, names to devices) by a function
that is generated once for each schema.
"""

from __future__ import annotations

import functools
import numbers

import numpy as np

from .. import _C
from ..base import dtypes
from ..base.device import Device, as_device, current_device
from ..base.dtypes import DType
from ..base.errors import AllocationError
from ..base.memory_format import MemoryFormat
from ..base.symint import SymBool, SymFloat, SymInt, sym_float
from .declare import EXPOSED
from .generator import Generator, is_engine
from .named_results import named_return_type, return_type
from .operator import OpOverload, _safe, namespace
from .out_rules import PRIVATE

__all__ = ["Binder", "current_device", "function"]

_TensorBase = _C.TensorBase
_NUMBER = (int, float, complex, np.generic)
_SCALAR = (*_NUMBER, SymInt, SymFloat, SymBool)
_PY_DTYPES = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}

LATER: set[str] = set()  # names of operators that are declared when first asked for (ops/__init__.py)
_made: dict[str, list] = {}  # operator name -> the binders and functions made for it


def as_dtype(x, function: str = ""):
    """A DType from a DType or Python's float, int, bool, complex. TypeError, naming ``function``, for other objects."""
    if isinstance(x, DType) or x is None:
        return x
    if x in _PY_DTYPES:
        return getattr(dtypes, _PY_DTYPES[x] if x is not bool else "bool_")
    where = f"{function}(): " if function else ""
    raise TypeError(f"{where}argument 'dtype' must be torch.dtype, not {type(x).__name__}")


def _is_int(x):
    """Whether ``x`` may stand for an int. ValueError for an int that 64 bits don't hold."""
    if isinstance(x, (int, np.integer)):
        if not -(1 << 63) <= x < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        return not isinstance(x, bool)
    return isinstance(x, _TensorBase) and x._dtype.category == 1 and all(n == 1 for n in x._shape)


def _may_be_number(t):
    """Whether a tensor may stand for a number somewhere: one without dimensions, or one integer."""
    return t._ndim == 0 or _is_int(t)


def _is_asked(name: str, requires_grad) -> bool:
    """Whether a function that makes tensors is asked for a leaf. TypeError for what is no truth value."""
    if requires_grad is not None and not isinstance(requires_grad, (bool, np.bool_)):
        raise TypeError(f"{name}(): argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    return bool(requires_grad)


def _is_number(x):
    """Whether ``x`` may stand for a number. A tensor with a history doesn't: its gradient would be lost."""
    return isinstance(x, _SCALAR) or (isinstance(x, _TensorBase) and x._ndim == 0 and not x.requires_grad)


def _item(x):
    return x.item() if isinstance(x, (np.generic, _TensorBase)) else x


def _ints(x):
    values = map(_item, x)
    return [v if type(v) is int or isinstance(v, SymInt) else int(v) for v in values]


def _known_ints(x):
    return [int(_item(v)) for v in x]


class Signature:
    """One overload as a callable taking what users write."""

    def __init__(self, op: OpOverload, numbers_as_tensors: bool):
        self.op = op
        self.args = op._schema.arguments
        self.positional = [a for a in self.args if not a.kwarg_only]
        self.by_name = {a.name: a for a in self.args}
        self.tensors_take_numbers = numbers_as_tensors
        base = op.definition.functional if op.kind == "inplace" else op
        self.first_is_tensor = base.takes_numbers == "after"
        self.is_factory = "device" in self.by_name and not any(
            a.is_tensor and not a.optional and not a.is_out for a in self.args
        )
        name = op._schema.name.rpartition("::")[2]
        # What makes a tensor of its own takes requires_grad, which the operator doesn't know.
        self.makes = self.is_factory or "device" in self.by_name and (name.endswith("_like") or name.startswith("new_"))
        first = next((i for i, a in enumerate(self.positional) if a.is_list and a.type in ("int", "SymInt")), None)
        # Sizes may come as separate ints, x.view(2, 3), where a list of ints without a fixed length is all that a method takes by place.
        self.varargs = (
            first
            if first is not None
            and self.positional[first].size is None
            and first == len(self.positional) - 1
            and all(a.type == "Tensor" for a in self.positional[:first])
            else None
        )
        self._call = None

    def accepts(self, a, x) -> bool:
        if x is None:
            return a.optional or (a.has_default and (a.default_value is None or a.default_value == []))
        if a.is_list:
            if a.type == "Tensor":
                return isinstance(x, (list, tuple)) and all(
                    isinstance(v, _TensorBase) or (v is None and a.elements_optional) for v in x
                )
            if isinstance(x, (list, tuple)):
                if a.type in ("int", "SymInt"):
                    return self._are_ints(a, x)
                return a.type not in ("float", "Scalar") or all(_is_number(v) or isinstance(v, SymInt) for v in x)
            return a.size is not None and (_is_int(x) or isinstance(x, SymInt) or (a.type == "float" and _is_number(x)))
        t = a.type
        if t == "Tensor":
            return isinstance(x, _TensorBase) or (
                self.tensors_take_numbers
                and isinstance(x, _SCALAR)
                and not (self.first_is_tensor and a is self.args[0])
            )
        if t == "Scalar" or t == "number":
            return _is_number(x)
        if t in ("int", "SymInt"):
            return _is_int(x) or isinstance(x, SymInt)
        if t == "float":
            return not isinstance(x, (complex, np.complexfloating)) and (isinstance(x, numbers.Real) or _is_number(x))
        if t == "bool":
            return isinstance(x, (bool, np.bool_, SymBool))
        if t == "str":
            return isinstance(x, str)
        if t == "ScalarType":
            return isinstance(x, DType) or (isinstance(x, type) and x in _PY_DTYPES)
        if t == "Device":
            return isinstance(x, (str, int, Device))
        if t == "MemoryFormat":
            return isinstance(x, MemoryFormat)
        if t == "Generator":
            return isinstance(x, Generator) or is_engine(x)
        return True

    def _are_ints(self, a, x) -> bool:
        for k, v in enumerate(x):
            # Only the first size may not be a bool, as in PyTorch.
            if k and isinstance(v, bool):
                continue
            try:
                if not _is_int(v) and not isinstance(v, SymInt):
                    return False
            except ValueError as e:
                raise TypeError(
                    f"{self.op._opname}(): argument '{_shown(a)}' failed to unpack the object at pos {k + 1} with error \"{e}\""
                ) from None
        return True

    def arrange(self, args, kwargs):
        """kwargs with ``input`` renamed and varargs packed; None when the names don't fit."""
        if self.varargs is not None and len(args) > self.varargs and not isinstance(args[self.varargs], (list, tuple)):
            args = (*args[: self.varargs], list(args[self.varargs :]))
        return args, kwargs

    def match(self, args, kwargs) -> bool:
        args, kwargs = self.arrange(args, kwargs)
        if len(args) > len(self.positional):
            return False
        for a, x in zip(self.positional, args):
            if not self.accepts(a, x):
                return False
        given = {a.name for a in self.positional[: len(args)]}
        for name, x in kwargs.items():
            a = self.by_name.get(name)
            if a is None:
                if name == "requires_grad" and self.makes:
                    continue
                if name == "out" and x is None:
                    continue
                return False
            if name in given or not self.accepts(a, x):
                return False
            given.add(name)
        if any(a.name not in given and not a.has_default for a in self.args):
            return False
        return not self.tensors_take_numbers or any(isinstance(x, _TensorBase) for x in (*args, *kwargs.values()))

    def reads_tensors(self, args, kwargs) -> bool:
        """Whether a 0-d tensor among arguments that fit stands for a number."""
        args, kwargs = self.arrange(args, kwargs)
        given = [*zip(self.positional, args), *((self.by_name.get(name), x) for name, x in kwargs.items())]
        return any(
            a is not None and a.type != "Tensor" and isinstance(v, _TensorBase)
            for a, x in given
            for v in (x if isinstance(x, (list, tuple)) else (x,))
        )

    @property
    def call(self):
        if self._call is None:
            self._call = self._generate()
        return self._call

    def _generate(self):
        env = {
            "_op": self.op,
            "_ints": _ints,
            "_known_ints": _known_ints,
            "_item": _item,
            "_dtype": as_dtype,
            "_device": as_device,
            "_current": current_device,
            "_T": _TensorBase,
            "_np": np.generic,
            "_tuple": (list, tuple),
            "_SymInt": SymInt,
            "_sym_float": sym_float,
        }
        params, body, star, actual = [], [], False, []
        for a in self.args:
            name = _safe(a.name)
            if a.kwarg_only and not star:
                params.append("*")
                star = True
            if a.has_default:
                env[f"_d_{name}"] = a.default_value
                params.append(f"{name}=_d_{name}")
            else:
                params.append(name)
            actual.append(f"{name}={name}" if a.kwarg_only else name)
            body += self._conversion(a, name)
        call = f"_op({', '.join(actual)})"
        if self.makes:
            params += ([] if star else ["*"]) + ["requires_grad=False"]
            body.append(f"_r = {call}")
            env["_flag"] = functools.partial(_is_asked, self.op._opname)
            body.append("return _r if requires_grad is False or not _flag(requires_grad) else _r.requires_grad_()")
        elif return_type(self.op) is not None:
            env["_named"] = return_type(self.op)
            body.append(f"_r = {call}")
            # NOTE: what a mode or a proxy returns instead of the tuple is left as it is.
            body.append("return _named(*_r) if _r.__class__ is tuple else _r")
        elif any(r.is_list for r in self.op._schema.returns):
            body.append(f"_r = {call}")
            body.append("return tuple(_r) if _r.__class__ is list else _r")
        else:
            body.append(f"return {call}")
        exec(f"def call({', '.join(params)}):\n    " + "\n    ".join(body), env)
        return env["call"]

    def _conversion(self, a, name: str) -> list[str]:
        """The lines that make of what is given for an argument what the operator takes."""
        lines: list[str] = []
        if a.is_list and a.type in ("int", "SymInt"):
            if a.has_default and a.default_value == [] and not a.optional:  # None stands for the default
                lines.append(f"if {name} is None: {name} = []")
            lines.append(f"if {name}.__class__ is int: {name} = [{name}]")
            lines.append(
                f"elif {name} is not None and {name}.__class__ is not list: "
                f"{name} = list({name}) if isinstance({name}, _tuple) else [{name}]"
            )
            # NOTE: the elements may be NumPy integers, zero-dimensional tensors or bools; all must become ints before the dispatcher sees them.
            # What is an int in the schema, as dimensions are, decides on what is computed: a number that varies becomes a constant.
            others, ints = ("_np, _T, bool, _SymInt", "_known_ints") if a.type == "int" else ("_np, _T, bool", "_ints")
            lines.append(
                f"if {name} is not None and any(isinstance(v, ({others})) for v in {name}): {name} = {ints}({name})"
            )
        elif a.is_list and a.type == "Tensor":
            lines.append(f"if {name}.__class__ is tuple: {name} = list({name})")
        elif a.type in ("Scalar", "int", "SymInt", "float", "bool"):
            if a.name == "pin_memory":  # False asks for nothing: it is not what a mode should see
                lines.append(f"if {name} is False: {name} = None")
            lines.append(f"if isinstance({name}, (_np, _T)): {name} = _item({name})")
            # That of a factory is how many elements it makes, which may vary.
            if a.type == "int" and not self.is_factory:
                lines.append(f"elif {name}.__class__ is _SymInt: {name} = int({name})")
            if a.type == "float":
                lines.append(f"if {name}.__class__ is int: {name} = float({name})")
                lines.append(f"elif {name}.__class__ is _SymInt: {name} = _sym_float({name})")
        elif a.type == "ScalarType":
            lines.append(f"if {name}.__class__ is type: {name} = _dtype({name})")
        elif a.type == "Device":
            lines.append(
                f"{name} = _device({name}) if {name} is not None else " + ("_current()" if self.is_factory else "None")
            )
        elif a.type == "Tensor" and self.tensors_take_numbers:
            lines.append(f"if isinstance({name}, _np): {name} = {name}.item()")
        return lines

    def __str__(self):
        parts, star = [], False
        for a in self.args:
            if a.kwarg_only and not star:
                star = True
                parts.append("*")
            parts.append(str(a).replace(" self", " input", 1) if a.name == "self" else str(a))
        return f"({', '.join(parts)})"


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def _type_key(x):
    """What of an argument selects the overload. KeyError for a class of the user's: the table would keep it alive."""
    cls = type(x)
    if cls is list or cls is tuple:
        # Of each element: one of another kind is an error that the others' overload mustn't hide.
        return cls, frozenset(map(_type_key, x))
    if isinstance(x, _TensorBase):
        return (_TensorBase, x._ndim == 0, x._dtype.category, x.requires_grad) if _may_be_number(x) else _TensorBase
    if cls.__flags__ & _HEAP_TYPE and not f"{cls.__module__}.".startswith("flambeau."):
        raise KeyError(cls)
    return cls


_OF_NUMBERS = frozenset("add sub mul div subtract multiply divide true_divide floor_divide".split())


def _first_made_a_tensor(name: str, args: tuple, kwargs: dict) -> tuple | None:
    """What a function that takes numbers alone (``torch.add(1, 2)``) is called with then; None for another call."""
    given = (*args, *kwargs.values())
    if name not in _OF_NUMBERS or len(args) < 2 or not isinstance(args[0], _SCALAR) or any(map(_is_tensor, given)):
        return None
    number, aten = args[0], namespace("aten")
    if isinstance(number, (SymInt, SymFloat, SymBool)):
        dtype = dtypes.int64 if isinstance(number, SymInt) else dtypes.get_default_dtype()
        return (aten.scalar_tensor.default(number, dtype=dtype), *args[1:]), kwargs
    made = _C.from_array(np.asarray(number))
    if made._dtype.is_floating_point and not isinstance(number, np.generic):
        made = made.to(dtypes.get_default_dtype())
    return (aten.lift_fresh.default(made), *args[1:]), kwargs


def _is_tensor(x) -> bool:
    return isinstance(x, _TensorBase)


# NumPy's words for arguments, which PyTorch takes where its own are meant.
_NUMPY_WORDS = {"axis": "dim", "keepdims": "keepdim", "x": "self", "a": "self", "x1": "self", "x2": "other"}


class Binder:
    """Callable: picks the overload of ``ns::name`` and calls it. TypeError in PyTorch's words when none fits."""

    def __init__(
        self, name: str, ns: str = "aten", public: str | None = None, method: bool = False, writes: bool = True
    ):
        self.name, self.ns, self.__name__, self.method = name, ns, public or name, method
        self.writes = writes  # whether out= is taken
        self._signatures = None
        self._chosen: dict = {}
        _made.setdefault(name, []).append(self)

    @property
    def packet(self):
        return namespace(self.ns)._packet(self.name)

    @property
    def signatures(self) -> list[Signature]:
        if self._signatures is None:
            ops = [op for op in self.packet._overloads.values() if op.kind != "out"]
            self._signatures = [Signature(op, takes_numbers(op)) for op in ops]
        return self._signatures

    def __call__(self, *args, **kwargs):
        if kwargs:
            self._translate(kwargs)
        if kwargs.get("out") is not None:
            return self._with_out(args, kwargs)
        try:
            key = (*map(_type_key, args), *kwargs, *map(_type_key, kwargs.values()))
        except KeyError:
            sig = self._choose(args, kwargs)
        else:
            sig = self._chosen.get(key)
            if sig is None:
                try:
                    sig = self._choose(args, kwargs)
                except TypeError:
                    from .old_orders import reordered

                    old = reordered(self.name, args, kwargs) or _first_made_a_tensor(self.name, args, kwargs)
                    if old is None:
                        raise
                    return self(*old[0], **old[1])
                self._chosen[key] = sig
        kwargs.pop("out", None)
        args, kwargs = sig.arrange(args, kwargs)
        return sig.call(*args, **kwargs)

    def _translate(self, kwargs: dict) -> None:
        """``input`` is ``self``; NumPy's words are ours unless an overload knows them."""
        if "input" in kwargs:
            kwargs["self"] = kwargs.pop("input")
        for word in _NUMPY_WORDS.keys() & kwargs.keys():
            if not any(a.name == word for sig in self.signatures for a in sig.args):
                kwargs[_NUMPY_WORDS[word]] = kwargs.pop(word)

    def overloads(self, written: bool = False) -> tuple:
        """The operators in order of declaration. ``written``: in place of each the one that writes its result into ``out``, its last argument;
        None where :meth:`_with_out` has more to do than to call that."""
        return tuple(self._written(s) if written else s.op for s in self.signatures)

    def _written(self, sig: Signature) -> OpOverload | None:
        named = return_type(sig.op) is not None
        if (
            not self.writes
            or sig.makes
            or named
            or "out_copied" in sig.op.tags
            or not getattr(sig.op, "has_out", False)
        ):
            return None
        op = self._out_of(sig)
        *args, last = [a.name for a in op._schema.arguments]
        return op if last == "out" and args == [a.name for a in sig.args] else None

    def _out_of(self, sig: Signature) -> OpOverload:
        return getattr(self.packet, "out" if sig.op is self.signatures[0].op else f"{sig.op._overloadname}_out")

    def resolve(self, args, kwargs) -> OpOverload:
        """The overload that these arguments select."""
        kwargs = dict(kwargs)
        self._translate(kwargs)
        return self._choose(args, kwargs).op

    def _choose(self, args, kwargs, signatures=None) -> Signature:
        candidates = signatures or self.signatures
        if any(isinstance(a, _TensorBase) and _may_be_number(a) for a in (*args, *kwargs.values())):
            # Such a tensor is a tensor before it is a number: reading it would break graphs being traced.
            for sig in candidates:
                if sig.match(args, kwargs) and not sig.reads_tensors(args, kwargs):
                    return sig
        for sig in candidates:
            if sig.match(args, kwargs):
                return sig
        raise TypeError(self._error(args, kwargs, candidates))

    def _with_out(self, args, kwargs):
        out = kwargs.pop("out")
        sig = self._choose(args, kwargs)
        if not self.writes:
            raise TypeError(f"{self.name}() got an unexpected keyword argument 'out'")
        for t in out if isinstance(out, (tuple, list)) else (out,):
            if not isinstance(t, _TensorBase):
                raise TypeError(f"{self.name}(): argument 'out' must be Tensor, not {type(t).__name__}")
        if "out_copied" in sig.op.tags:
            packed, kwargs = sig.arrange(args, kwargs)
            return _copied(self.name, sig.call(*packed, **kwargs), out)
        if not getattr(sig.op, "has_out", False):
            raise TypeError(f"{self.name}() got an unexpected keyword argument 'out'")
        op = self._out_of(sig)
        outs = [a.name for a in op._schema.arguments if a.is_out]
        values = out if isinstance(out, (tuple, list)) else (out,)
        if len(values) != len(outs):
            raise TypeError(f"{self.name}(): argument 'out' must be a tuple of {len(outs)} Tensors")
        args, kwargs = sig.arrange(args, kwargs)
        wanted = sig.makes and _is_asked(self.name, kwargs.pop("requires_grad", False))
        full = sig.op.full(*args, **kwargs)
        pos = [v for a, v in zip(sig.args, full) if not a.kwarg_only]
        kw = {
            a.name: as_device(v) if a.type == "Device" and v is not None else v
            for a, v in zip(sig.args, full)
            if a.kwarg_only
        }
        pos = [
            list(v)
            if a.is_list and isinstance(v, (int, tuple)) and not isinstance(v, int)
            else [v]
            if a.is_list and isinstance(v, int)
            else v
            for a, v in zip(sig.positional, pos)
        ]
        result = op(*pos, **kw, **dict(zip(outs, values)))
        if wanted:
            return result.requires_grad_()
        named = return_type(sig.op)
        if named is None or result.__class__ is not tuple:
            return result
        return named_return_type(f"{named.__name__}_out", named._fields)(*result)

    def _fault(self, sig, args, kwargs) -> str | None:
        """What isn't right with a call of the only signature; None where that can't be told of one argument."""
        packed, _ = sig.arrange(args, kwargs)
        # A method's tensor isn't counted.
        own = int(self.method)
        if len(packed) > len(sig.positional):
            n = len(sig.positional) - own
            return f" takes {n} positional argument{'s' * (n != 1)} but {len(packed) - own} were given"
        for i, (a, x) in enumerate(zip(sig.positional, packed)):
            if sig.accepts(a, x):
                continue
            if a.is_list and a.type == "Tensor" and isinstance(x, (list, tuple)):
                k, v = next((k, v) for k, v in enumerate(x) if not isinstance(v, _TensorBase))
                return f": expected Tensor as element {k} in argument {i}, but got {type(v).__name__}"
            return f": argument '{_shown(a)}' (position {i + 1 - own}) must be {_wanted(a)}, {_unlike(a, args[i])}"
        for k, x in kwargs.items():
            a = sig.by_name.get(k)
            if a is None:
                return f" got an unexpected keyword argument '{k}'"
            if not sig.accepts(a, x):
                return f": argument '{k}' must be {_wanted(a)}, {_unlike(a, x)}"
        missing = [f'"{_shown(a)}"' for a in sig.args[len(packed) :] if not a.has_default and a.name not in kwargs]
        if missing:
            return (
                f" missing {len(missing)} required positional argument{'s' * (len(missing) != 1)}: {', '.join(missing)}"
            )
        return None

    def _error(self, args, kwargs, signatures) -> str:
        fault = self._fault(signatures[0], args, kwargs) if len(signatures) == 1 else None
        if fault is not None:
            return f"{self.name}(){fault}"
        got = ", ".join([_describe(x) for x in args] + [f"{k}={_describe(x)}" for k, x in kwargs.items()])
        return (
            f"{self.name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            + "\n".join(f" * {sig}" for sig in signatures)
        )


def _copied(name: str, results, out):
    """``results`` copied into the tensors of ``out``: the out= form of operators that return lists, or write to an argument as well."""
    aten = namespace("aten")
    if not isinstance(out, (list, tuple)) or len(out) != len(results):
        raise TypeError(f"{name}(): argument 'out' must be a tuple of {len(results)} Tensors")
    for target, result in zip(out, results):
        aten.copy_.default(target.resize_(result._shape), result)
    return out


def takes_numbers(op: OpOverload) -> bool:
    """Whether numbers may stand for tensors among the arguments."""
    base = op.definition.functional if op.kind == "inplace" else op
    pointwise = base.kind == "pointwise" or base.takes_numbers == "always"
    return pointwise and base.takes_numbers and sum(a.is_tensor for a in op._schema.arguments) > 1


def _shown(a):
    return "input" if a.name == "self" else a.name


def _unlike(a, x) -> str:
    """What isn't right with ``x`` for argument ``a``: its type, or that of the first element that isn't an int."""
    if a.is_list and a.type in ("int", "SymInt") and isinstance(x, (list, tuple)):
        for k, v in enumerate(x):
            if not _is_int(v) and not isinstance(v, SymInt):
                return f"but found element of type {type(v).__name__} at pos {k}"
    return f"not {type(x).__name__}"


def _describe(x):
    if isinstance(x, (list, tuple)):
        inner = ", ".join(_describe(v) for v in x[:4]) + (", ..." if len(x) > 4 else "")
        return f"{type(x).__name__} of ({inner})" if not isinstance(x, _C.TensorBase) else "Tensor"
    return type(x).__name__


def _wanted(a):
    base = {
        "Scalar": "Number",
        "ScalarType": "torch.dtype",
        "SymInt": "int",
        "Device": "torch.device",
        "MemoryFormat": "torch.memory_format",
    }.get(a.type, a.type)
    return f"tuple of {base}s" if a.is_list else base


@functools.cache
def function(opname: str) -> _C.Function:
    """The function of that name over the overloads of ``aten::opname``: the one object that is public, which overrides are told apart by."""
    return new_function(opname)


def new_function(opname: str, public: str | None = None, method: bool = False) -> _C.Function:
    """A function (or method) of its own over the overloads of ``aten::opname``."""
    binder = Binder(opname, "aten", public, method, writes=not method and opname not in PRIVATE)
    made = (_C.Method if method else _C.Function)(public or opname, binder, binder.overloads)
    _made[opname].append(made)
    return made


def packet_call(packet, shown=None) -> _C.Function:
    """What calling a packet (``torch.ops.aten.add``) does: the overload. Overrides are handed the packet, or what is ``shown``."""
    name = packet.__name__
    binder = Binder(name, packet._ns)
    made = _C.Function(name, binder, binder.overloads, packet if shown is None else shown)
    _made[name].append(made)
    return made


def forget(op: OpOverload) -> None:
    """``op`` was redefined: choose overloads of its name anew."""
    for made in _made.get(op._opname, ()):
        if isinstance(made, Binder):
            made._signatures = None
            made._chosen.clear()
        else:
            made.forget()


def functions(place: str) -> dict[str, _C.Function]:
    """All functions exposed in ``place`` ("function", "method", "nn", ...), by public name."""
    packets = namespace("aten")._packets
    return {
        name: function(name)
        if place == "function" and name == opname
        else new_function(opname, name, place == "method")
        for name, opname in EXPOSED[place].items()
        if opname in LATER
        or opname in packets
        or opname.removesuffix("_") in packets  # in-place ones are derived when asked for
    }


_C.set_handlers(device=as_device, dtype=DType, format=MemoryFormat, allocation=AllocationError)
