"""``Dim`` and the specifications of which sizes vary: ``dynamic_shapes=`` of ``export``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from .. import _C
from ..dynamo.exc import UserError, UserErrorType
from .structure import Structure, children, path_text

__all__ = ["AdditionalInputs", "Constraint", "Dim", "DimHint", "ShapesCollection", "dims", "leaf_specs"]

INT_OO = None  # a range without upper end
MISMATCH = (
    "(expected either a list/tuple of dimensions, or a dict mapping indices to dimensions, where each dimension is an int, a Dim, "
    "Dim.AUTO, Dim.STATIC, or Dim.DYNAMIC)"
)


@dataclasses.dataclass(frozen=True)
class DimHint:
    """``Dim.AUTO``, ``Dim.STATIC``, ``Dim.DYNAMIC``; called with ``min=``, ``max=`` the first and the last take a range."""

    kind: str
    min: int | None = None
    max: int | None = None

    def __call__(self, min: int | None = None, max: int | None = None) -> DimHint:
        if self.kind == "STATIC":
            raise TypeError("Dim.STATIC takes no range")
        if min is not None and (not isinstance(min, int) or min < 0):
            raise AssertionError(f"min must be non-negative, got {min}")
        if max is not None and (not isinstance(max, int) or max < 0 or (min is not None and max < min)):
            raise AssertionError(f"max must be at least min, got min={min}, max={max}")
        return DimHint(self.kind, min, max)

    def __repr__(self):
        parts = [self.kind]
        parts += [f"{n}={v}" for n, v in (("min", self.min), ("max", self.max)) if v is not None]
        return f"DimHint({', '.join(parts)})"


class Dim:
    """A size with a name: equal names are equal sizes. ``min`` (0) and ``max`` (unlimited) are its range; ``2*batch + 1`` is derived from it.
    AssertionError for a name that is no identifier or a range that is empty."""

    AUTO = DimHint("AUTO")
    STATIC = DimHint("STATIC")
    DYNAMIC = DimHint("DYNAMIC")

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None):
        low = 0 if min is None else min
        if max is not None and max < low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, max
        self.root, self.factor, self.offset = self, 1, 0

    @classmethod
    def _derived(cls, root: Dim, factor: int, offset: int) -> Dim:
        out = cls.__new__(cls)
        out.root, out.factor, out.offset = root, factor, offset
        scaled = root.__name__ if factor == 1 else f"{factor}*{root.__name__}"
        out.__name__ = scaled if not offset else f"{scaled} {'+' if offset > 0 else '-'} {abs(offset)}"
        out.min = root.min * factor + offset
        out.max = None if root.max is None else root.max * factor + offset
        if out.min < 0:
            raise AssertionError(
                f"Expected derived min value of {out.__name__} to be >= 0. Please specify an appropriate min value for "
                f"{root.__name__} (currently {root.min})."
            )
        return out

    def _integer(self, other, text: str, what: str) -> int:
        if type(other) is not int or (what.startswith("a positive") and other <= 0):
            shown = other.__name__ if isinstance(other, Dim) else other
            raise NotImplementedError(
                f"Attempted to {text.format(repr(other) if isinstance(other, Dim) else shown, self.__name__)}, where {what} integer was expected. "
                "(Only increasing linear operations with integer coefficients are supported.)"
            )
        return other

    def __add__(self, other) -> Dim:
        k = self._integer(other, "add {} to {}", "an")
        return Dim._derived(self.root, self.factor, self.offset + k)

    __radd__ = __add__

    def __sub__(self, other) -> Dim:
        k = self._integer(other, "subtract {} from {}", "an")
        return Dim._derived(self.root, self.factor, self.offset - k)

    def __rsub__(self, other):
        raise NotImplementedError(
            f"Attempted to negate {self.__name__}. (Only increasing linear operations with integer coefficients are supported.)"
        )

    def __mul__(self, other) -> Dim:
        k = self._integer(other, "multiply {} with {}", "a positive")
        return Dim._derived(self.root, self.factor * k, self.offset * k)

    __rmul__ = __mul__

    def __repr__(self):
        if self.root is not self:
            return self.__name__
        return f"Dim({self.__name__!r}, min={self.min}{'' if self.max is None else f', max={self.max}'})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several :class:`Dim` with one range."""
    return tuple(Dim(n, min=min, max=max) for n in names)


Constraint = Dim | DimHint | int  # what one dimension of a specification may be


class ShapesCollection:
    """Specifications by tensor: ``shapes[x] = {0: batch}``; :meth:`dynamic_shapes` gives them in the structure of the inputs."""

    def __init__(self):
        self._shapes: dict[int, tuple[Any, Any]] = {}

    def __setitem__(self, t, shape) -> None:
        if not isinstance(t, _C.TensorBase) and not isinstance(t, int):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-int type {type(t).__name__}")
        held = self._shapes.get(id(t))
        if held is not None and held[1] != shape:
            raise AssertionError(f"Shapes assigned to tensor do not match: expected {held[1]}, got {shape}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t):
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self):
        return len(self._shapes)

    def dynamic_shapes(self, m: Callable, args: tuple, kwargs: dict | None = None):
        """The specification for ``export(m, args, kwargs)``. ValueError when a tensor with a shape isn't among the inputs."""
        found: set[int] = set()

        def at(x):
            if id(x) in self._shapes:
                found.add(id(x))
                return self._shapes[id(x)][1]
            inner = children(x)
            if inner is None:
                return None
            specs = [at(v) for _, v in inner]
            return dict(zip((k for k, _ in inner), specs)) if isinstance(x, Mapping) else specs

        out = {k: at(v) for k, v in _by_name(m, args, kwargs or {}).items()}
        missing = [t for k, (t, _) in self._shapes.items() if k not in found]
        if missing:
            raise ValueError(f"{len(missing)} tensors with shapes were not found among the inputs")
        return out


class AdditionalInputs:
    """Further example inputs: what differs between them is dynamic (``Dim.DYNAMIC``)."""

    def __init__(self):
        self._examples: list[tuple[tuple, dict]] = []

    def add(self, args: tuple, kwargs: dict | None = None) -> None:
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, kwargs or {}))

    def dynamic_shapes(self, m: Callable, args: tuple, kwargs: dict | None = None):
        """The specification that lets all of the examples through. ValueError when their structures differ."""
        calls = [_by_name(m, a, k) for a, k in [(args, kwargs or {}), *self._examples]]
        return {name: self._spec([c[name] for c in calls]) for name in calls[0]}

    def _spec(self, values: list):
        first = values[0]
        inner = [children(v) for v in values]
        if inner[0] is not None:
            if any(i is None or [k for k, _ in i] != [k for k, _ in inner[0]] for i in inner):
                raise ValueError("The additional inputs must have the structure of the example inputs")
            specs = [self._spec([v for _, v in column]) for column in zip(*inner)]
            return dict(zip((k for k, _ in inner[0]), specs)) if isinstance(first, Mapping) else specs
        if isinstance(first, _C.TensorBase):
            if any(not isinstance(v, _C.TensorBase) or v.ndim != first.ndim for v in values):
                raise ValueError("The additional inputs must have the ranks of the example inputs")
            return tuple(
                Dim.DYNAMIC if len({v.shape[d] for v in values}) > 1 else Dim.STATIC for d in range(first.ndim)
            )
        return Dim.DYNAMIC if isinstance(first, int) and len(set(values)) > 1 else None

    def verify(self, ep) -> None:
        """Run the exported program on each of them."""
        for args, kwargs in self._examples:
            ep.module()(*args, **kwargs)


# -- specifications of the leaves ------------------------------------------------------------------------------------


def user_error(kind: UserErrorType, text: str) -> UserError:
    return UserError(
        kind,
        f"{text}\n\nThe error above occurred when calling torch.export.export.",
    )


def _invalid(text: str) -> UserError:
    return user_error(UserErrorType.INVALID_INPUT, text)


def _by_name(fn: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments by parameter; those of ``*args`` are one tuple, keyword arguments stand under their own names."""
    from .tracing import parameter_names

    return parameter_names(fn, args, kwargs)


def leaf_specs(named: dict[str, Any], dynamic_shapes) -> list[tuple[str, Any, Any]]:
    """(path, value, specification) of each leaf of the arguments. A specification is None (constant) or, for a tensor, a dict from dimensions
    to ``Dim``, hint or int, for an int a hint. UserError where the two structures differ."""
    if isinstance(dynamic_shapes, (ShapesCollection, AdditionalInputs)):
        raise _invalid(f"call dynamic_shapes() of the {type(dynamic_shapes).__name__} to get a specification")
    if dynamic_shapes is None:
        specs: list[Any] = [None] * len(named)
    elif isinstance(dynamic_shapes, Mapping):
        if list(dynamic_shapes) != list(named) and set(dynamic_shapes) != set(named):
            raise _invalid(
                f"When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names {list(named)} of `inputs`, but here "
                f"they are {list(dynamic_shapes)}. Alternatively, you could also ignore arg names entirely and specify `dynamic_shapes` as a "
                "list/tuple matching `inputs`."
            )
        specs = [dynamic_shapes[k] for k in named]
    elif isinstance(dynamic_shapes, (tuple, list)):
        if len(dynamic_shapes) != len(named):
            raise _invalid(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has "
                f"{len(named)} elements, but `dynamic_shapes` has {len(dynamic_shapes)} elements"
            )
        specs = list(dynamic_shapes)
    else:
        raise _invalid(f"dynamic_shapes must be a dict, list or tuple, got {type(dynamic_shapes).__name__}")
    out: list[tuple[str, Any, Any]] = []
    keys = list(named) if isinstance(dynamic_shapes, Mapping) else range(len(named))
    for name, key, spec in zip(named, keys, specs):
        _walk(name, f"`dynamic_shapes[{key!r}]`", named[name], spec, out)
    return out


def _walk(path: str, where: str, value, spec, out: list) -> None:
    inner = children(value)
    if inner is None:
        out.append((path, value, _leaf(where, value, spec)))
        return
    if spec is None:
        parts: list[Any] = [None] * len(inner)
    elif isinstance(value, Mapping) and isinstance(spec, Mapping):
        if set(spec) != {k for k, _ in inner}:
            raise _invalid(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: "
                f"`inputs{path_text(path)}` has keys {[k for k, _ in inner]}, but {where} has keys {list(spec)}"
            )
        parts = [spec[k] for k, _ in inner]
    elif isinstance(spec, (tuple, list)) and len(spec) == len(inner):
        parts = list(spec)
    else:
        raise _invalid(
            f"Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `{path}` is a {type(value).__name__} of "
            f"{len(inner)} elements, but {where} is {spec!r}"
        )
    for (key, v), s in zip(inner, parts):
        _walk(f"{path}[{key!r}]", f"{where[:-1]}[{key!r}]`", v, s, out)


def _leaf(where: str, value, spec):
    if isinstance(value, _C.TensorBase):
        return _tensor_spec(where, value, spec)
    if spec is None or (isinstance(spec, DimHint) and type(value) is int):
        return spec
    if isinstance(spec, int) and type(value) is int:
        if spec != value:
            raise _invalid(f"{where} is {spec}, but the input is {value}")
        return None
    if isinstance(spec, (tuple, list)) and not spec:
        return None
    raise _invalid(
        f"Cannot associate shape {spec!r} specified at {where} to non-tensor type {type(value).__name__} (expected None"
        + (", or Dim.DYNAMIC or Dim.AUTO)" if type(value) is int else ")")
    )


def _tensor_spec(where: str, t, spec) -> dict[int, Any]:
    """By dimension. None and ``Dim.STATIC`` are the example's size; dimensions that a dict leaves out aren't there."""
    if spec is None:
        return dict(enumerate(t.shape))
    if isinstance(spec, Mapping):
        items = list(spec.items())
        for d, _ in items:
            if type(d) is not int or not -t.ndim <= d < t.ndim:
                raise _invalid(
                    f"Unexpected dimension {d!r} specified at {where} for a tensor of shape {list(t.shape)} (expected an index between 0 and "
                    f"{t.ndim - 1})"
                )
    elif isinstance(spec, (tuple, list)):
        if len(spec) != t.ndim:
            raise _invalid(
                f"Expected dynamic shape spec {spec} specified at {where} to have the same length as the actual tensor shape "
                f"torch.Size({list(t.shape)}) (expected {t.ndim}, but got {len(spec)} instead)"
            )
        items = list(enumerate(spec))
    else:
        raise _invalid(f"Unexpected input tensor shape {spec} specified at {where} {MISMATCH}")
    out = {}
    for d, s in items:
        if s is None or s == Dim.STATIC:
            out[d % t.ndim] = t.shape[d]
            continue
        if not isinstance(s, (Dim, DimHint)) and type(s) is not int:
            raise _invalid(
                f"Unexpected dimension mapped to index {d} in input tensor shape {spec} specified at {where} {MISMATCH}"
            )
        out[d % t.ndim] = s
    return out


__all__ += ["Structure"]
