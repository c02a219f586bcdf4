"""Which sizes and numbers of a call are symbols: what the user marked, and what was seen to vary.

Everything is constant the first time. A size, an int or a float that has another value when a frame is captured again is a symbol from then
on (``automatic_dynamic_shapes``). ``dynamic=True`` makes all sizes and integers symbols at once, ``dynamic=False`` none but the marked ones."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

from flambeau import _C
from flambeau.base.relations import as_symbol
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.base.symint import SymInt

from ..config import config
from ..rules.reflect import name_of
from .source import Source

__all__ = [
    "Seen", "SizeSource", "given_sizes", "mark_dynamic", "mark_static", "mark_unbacked", "maybe_mark_dynamic", "take_marks",
]  # fmt: skip

DYNAMIC, WEAK, STATIC, UNBACKED = (
    "_dynamo_dynamic_indices",
    "_dynamo_weak_dynamic_indices",
    "_dynamo_static_indices",
    "_dynamo_unbacked_indices",
)
RANGE = "_dynamo_dynamic_range"
HINTS, SPECIALIZE, SHAPE_IDS, STRICT = (
    "_dynamo_hint_overrides",
    "_specialize_on",
    "_dynamo_shape_ids",
    "_dynamo_strict_unbacked_indices",
)
GIVEN = "_dynamo_given_sizes"


class SizeSource:
    """A size or stride of a tensor, or (``what`` "value") a number itself."""

    __slots__ = ("base", "what", "dim")

    def __init__(self, base: Source, what: str, dim: int = 0):
        self.base, self.what, self.dim = base, what, dim

    @property
    def name(self) -> str:
        return self.base.name if self.what == "value" else f"{self.base.name}.{self.what}()[{self.dim}]"

    def __repr__(self):
        return self.name


class Seen:
    """What the values at the sources of one frame were when it was captured, and which of them vary."""

    def __init__(self):
        self.shapes: dict[str, tuple] = {}
        self.dims: dict[str, set[int]] = {}
        self.values: dict[str, Any] = {}
        self.varying: set[str] = set()
        self.known_integers: set[str] = set()
        """NumPy's integers that have to be known for the frame to be captured."""

    def tensor(self, name: str, shape: tuple) -> set[int]:
        """Dimensions of the tensor at ``name`` that vary."""
        before = self.shapes.get(name)
        if before is not None and len(before) == len(shape):
            changed = {d for d, (a, b) in enumerate(zip(before, shape)) if a != b}
            if changed:
                self.dims.setdefault(name, set()).update(changed)
        elif before is not None:
            self.dims.pop(name, None)
        self.shapes[name] = shape
        return self.dims.get(name, set())

    def number(self, name: str, value: Any) -> bool:
        """Whether the number at ``name`` varies: it does where a tensor was before, too."""
        before = self.values.get(name)
        if type(before) is type(value) and before != value and before == before:
            self.varying.add(name)
        elif before is None and name in self.shapes:
            self.varying.add(name)
        self.values[name] = value
        return name in self.varying

    def numbers(self, name: str, value: tuple) -> bool:
        """Whether the tuple of numbers at ``name`` varies: then its items are looked at one by one."""
        before = self.values.get(name)
        if type(before) is tuple and len(before) == len(value) and before != value:
            self.varying.add(name)
            for i, x in enumerate(before):
                self.values.setdefault(f"{name}[{i}]", x)
        self.values[name] = value
        return name in self.varying


def setting(dynamic: bool | None) -> bool | None:
    """``dynamic`` of a compile() under the settings: True, False, or None (what varies)."""
    env = os.environ.get("TORCHDYNAMO_DYNAMIC_SHAPES")
    if dynamic is None and env is not None:
        dynamic = env != "0"
    if dynamic is None and config.dynamic_shapes is not None:
        dynamic = config.dynamic_shapes
    if dynamic is None and not config.assume_static_by_default:
        dynamic = True
    if dynamic is None and not config.automatic_dynamic_shapes:
        dynamic = False
    return dynamic


def dimensions(
    value: Any,
    varying: set[int],
    dynamic: bool | None,
    is_static: Callable[[], bool],
    spec: dict[int, dict] | None = None,
) -> dict[int, dict]:
    """Keywords of ``ShapeEnv.create_size`` for the dimensions of a tensor that are symbols. ``is_static()``: what varies stays constant,
    as parameters do. ``spec``: what ``compile(dynamic_shapes=)`` says of the tensor."""
    marks = value.__dict__ if isinstance(value, _C.TensorBase) else {}
    if not marks and not varying and not dynamic and not spec:
        return {}
    static, strict, weak = marks.get(STATIC, ()), marks.get(DYNAMIC, ()), marks.get(WEAK, ())
    unbacked = marks.get(UNBACKED, ())
    ranges, given = marks.get(RANGE, {}), marks.get(GIVEN, {})
    out: dict[int, dict] = {}
    for d in range(len(value.shape)):
        said = spec.get(d) if spec else None
        if d in given:
            out[d] = {"given": given[d]}
            continue
        if d in static or (said is not None and said["kind"] == "static"):
            continue
        lo, hi = ranges.get(d, (None, None))
        n = value.shape[d]
        if (lo is not None and n < lo) or (hi is not None and n > hi):
            raise ConstraintViolationError(
                f"{n} not in range [{lo or 0}, {'int_oo' if hi is None else hi}] that dimension {d} is marked with"
            )
        if d in unbacked:
            out[d] = {"unbacked": True, "lo": lo, "hi": hi, "shape_id": marks.get(SHAPE_IDS, {}).get(d)}
            if d in marks.get(STRICT, ()):
                out[d]["dynamic"] = "strict"
        elif d in strict:
            # A size that was marked doesn't stand for others that happen to be equal.
            how = "maybe" if config.allow_ignore_mark_dynamic else "strict"
            out[d] = {"duck": False, "dynamic": how, "lo": lo, "hi": hi}
        elif said is not None:
            how = "strict" if said["kind"] == "dynamic" else "maybe"
            out[d] = {"duck": False, "dynamic": how, "lo": said["lo"], "hi": said["hi"]}
        elif d in weak:
            out[d] = {"dynamic": "maybe", "lo": lo, "hi": hi}
        elif dynamic is not False and (dynamic or d in varying) and not is_static():
            out[d] = {}
    return out


def after_marks(value: Any, fake: Any) -> None:
    """What marks say beyond the symbols: hints for the compiler, and criteria to specialise on, which are asked now (the answer is a guard)."""
    marks = value.__dict__
    for d, hint in marks.get(HINTS, {}).items():
        size = fake._shape[d]
        if isinstance(size, SymInt):
            size.env.hint_overrides[as_symbol(size.expr)] = hint
    for d, criteria in marks.get(SPECIALIZE, {}).items():
        for holds in criteria:
            size = fake._shape[d]
            if isinstance(size, SymInt) and bool(holds(size)):
                for s in size.expr.symbols():  # asked for by the user: a constant is no violation then
                    size.env.origins[s].dynamic = "maybe"


@contextlib.contextmanager
def given_sizes(makers: list[tuple[Any, dict[int, Callable]]]) -> Iterator[None]:
    """In this block ``size(env, example, source)`` makes the size of dimension d of a tensor, for ``[(tensor, {d: size})]``. Marks of these
    tensors don't count meanwhile."""
    before = {id(t): (t, dict(t.__dict__)) for t, _ in makers}
    try:
        for t, sizes in makers:
            for name in (DYNAMIC, WEAK, STATIC, UNBACKED):
                t.__dict__.pop(name, None)
            t.__dict__.setdefault(GIVEN, {}).update(sizes)
        yield
    finally:
        for t, attributes in before.values():
            t.__dict__.clear()
            t.__dict__.update(attributes)


# --- marks -----------------------------------------------------------------------------------------------------------
def _mark(t: Any, index: Any, name: str, **kwargs) -> None:
    if isinstance(index, (list, tuple)):
        for i in index:
            _mark(t, i, name, **kwargs)
        return
    if not isinstance(t, _C.TensorBase):
        raise TypeError(f"only tensors have dimensions to mark, not {name_of(type(t))}")
    if not -t.ndim <= index < t.ndim:
        raise IndexError(f"dimension {index} is out of range for a tensor of {t.ndim} dimensions")
    d = index % t.ndim
    t.__dict__.setdefault(name, set()).add(d)
    lo, hi = kwargs.get("min"), kwargs.get("max")
    if lo is not None or hi is not None:
        t.__dict__.setdefault(RANGE, {})[d] = (lo, hi)


def _more(t, index, hint_override, specialize_on) -> None:
    """Remember a hint and criteria for dimension ``index`` (or for several)."""
    if hint_override is None and specialize_on is None:
        return
    if hint_override is not None and (type(hint_override) is not int or hint_override < 0):
        raise TypeError(f"hint_override must be a size, got {hint_override!r}")
    if specialize_on is not None and not all(map(callable, specialize_on)):
        raise TypeError("specialize_on takes functions of the size")
    for i in index if isinstance(index, (list, tuple)) else (index,):
        d = i % t.ndim
        if hint_override is not None:
            t.__dict__.setdefault(HINTS, {})[d] = hint_override
        if specialize_on is not None:
            t.__dict__.setdefault(SPECIALIZE, {})[d] = list(specialize_on)


def take_marks(t, inner) -> None:
    """What is marked of the sizes of ``t`` holds of ``inner``, a tensor inside of it that has them."""
    for name in (DYNAMIC, WEAK, STATIC, UNBACKED, RANGE, HINTS, SPECIALIZE, SHAPE_IDS, STRICT):
        if name in t.__dict__:
            inner.__dict__[name] = t.__dict__[name]


def mark_dynamic(t, index, *, hint_override=None, min=None, max=None, specialize_on=None):
    """The size of dimension ``index`` (or of several) is a symbol when ``t`` is an argument of a compiled function. ConstraintViolationError
    at capture when the program makes it a constant, or needs it in a narrower range than ``min`` to ``max``. ``hint_override``: the size that
    the compiler optimises for. ``specialize_on``: functions of the size; what they answer is guarded and known to the compiler, so sizes for
    which they differ are compiled on their own."""
    _mark(t, index, DYNAMIC, min=min, max=max)
    _more(t, index, hint_override, specialize_on)


def maybe_mark_dynamic(t, index, *, min=None, max=None):
    """Like :func:`mark_dynamic`, but the program may make it a constant."""
    _mark(t, index, WEAK, min=min, max=max)


def mark_static(t, index=None):
    """The size of dimension ``index`` (of all when None) is a constant of what is captured, whatever varies. Of a class: so are the integers
    among the attributes of its instances."""
    if isinstance(t, type):
        t._dynamo_marked_static = True
        return
    _mark(t, list(range(t.ndim)) if index is None else index, STATIC)


def mark_unbacked(t, index, hint_override=None, strict=False, specialize_on=None, shape_id=None, min=None, max=None):
    """The size of dimension ``index`` is a symbol without an example value: a decision about it is an error (``torch._check`` helps).
    ``shape_id``: sizes with the same id are one symbol, which is guarded. ``strict``: it may not be made a constant by a check either.
    ``hint_override``: the size that the compiler optimises for."""
    if specialize_on:
        raise NotImplementedError("mark_unbacked: specialize_on would decide on the size; mark_dynamic has it")
    _mark(t, index, UNBACKED, min=min, max=max)
    if strict:
        _mark(t, index, STRICT)
    for i in index if isinstance(index, (list, tuple)) else (index,):
        if shape_id is not None:
            t.__dict__.setdefault(SHAPE_IDS, {})[i % t.ndim] = shape_id
    _more(t, index, hint_override, None)
