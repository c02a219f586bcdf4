"""``torch.utils.flop_counter``: floating-point operations of the matrix products in a block, by module and operator.

Nothing here knows operators by name. A contraction costs two operations for each combination of its letters; an explicit composite what
the operators it consists of cost; an in-place or ``out=`` operator what the functional one does; others nothing, unless the definition says
otherwise with ``op.override("flops", fn)``.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections import defaultdict

from .. import _C
from ..base.errors import DataDependentOutputException
from ..base.pytree import tree_flatten, tree_map
from ..core import keys as K
from ..core import modes
from ..core.contractions import check
from ..core.dispatch import excluding
from ..core.modes import TorchDispatchMode
from ..core.operator import FACETS, OpOverload, Packet
from ..core.tensor import meta_tensor
from ..fake.meta import meta_of
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "flops", "register_flop_formula"]


def _build(op: OpOverload):
    kind = op.kind
    if kind == "contraction":
        return lambda *tensors: 2 * math.prod(check(op, tensors).values())
    if kind == "composite":
        return functools.partial(_of_parts, op)
    if kind in ("inplace", "out"):
        functional = op.definition.functional
        return lambda *args: functional.facet("flops")(*args[: len(functional._schema.arguments)])
    return lambda *args: 0


FACETS["flops"] = _build


class _Sum(TorchDispatchMode):
    sees_parts = True

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.total += flops(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))


def _of_parts(op: OpOverload, *args) -> int:
    """Run the composite on tensors without data and add up."""
    lowered = tree_map(lambda x: meta_tensor(meta_of(x)) if isinstance(x, _C.TensorBase) else x, list(args))
    with modes.disabled("dispatch"), excluding(K.AUTOGRAD | K.TRANSFORM | K.FUNCTIONALIZE), _Sum() as counter:
        try:
            op.definition.fn(*lowered)
        except DataDependentOutputException:
            return 0  # reads values: not a matrix product
    return counter.total


_counts: dict[tuple, int] = {}  # (operator, version, shapes and other arguments) -> operations


def flops(op: OpOverload, args, kwargs) -> int:
    """Floating-point operations of one call."""
    values = op.full(*args, **kwargs)
    shapes = tuple(
        (tuple(x._shape), x._dtype) if isinstance(x, _C.TensorBase) else x for x in tree_flatten(list(values))[0]
    )
    key = (op, op.version, shapes)
    try:
        found = _counts.get(key)
    except TypeError:  # an unhashable argument
        return op.facet("flops")(*values)
    if found is None:
        if len(_counts) >= 4096:
            _counts.clear()
        found = _counts[key] = op.facet("flops")(*values)
    return found


def register_flop_formula(targets, get_raw=False):
    """Decorator: the count of operators without a rule. ``fn(*args, out_shape=None, **kwargs)`` gets shapes in place of tensors
    (the tensors themselves with ``get_raw``)."""

    def wrap(fn):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            for op in [getattr(target, o) for o in target.overloads()] if isinstance(target, Packet) else [target]:
                op.override("flops", lambda *args: fn(*(args if get_raw else tree_map(_shape, list(args)))))
        return fn

    return wrap


def _shape(x):
    return x._shape if isinstance(x, _C.TensorBase) else x


class FlopCounterMode(TorchDispatchMode):
    """Counts while on. ``depth``: how deep modules are listed by :meth:`get_table`; ``display``: print the table at the end;
    ``custom_mapping``: operator (or packet) -> formula on shapes, with ``out_shape``; one with a true attribute ``_get_raw`` is given the tensors,
    with ``out_val``."""

    sees_parts = True

    def __init__(self, mods=None, depth: int = 2, display: bool = True, custom_mapping=None):
        super().__init__()
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict] = defaultdict(lambda: defaultdict(int))
        self.custom_mapping = custom_mapping or {}
        self._tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict]:
        """Module name ("Global" for all) -> operator packet -> operations."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text, modules down to ``depth``, with their share of the total."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = []
        for name in sorted(self.flop_counts, key=lambda n: (n != "Global", n)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            here = sum(self.flop_counts[name].values())
            rows.append((" " * level + name, _human(here), _share(here, total)))
            rows += [
                (" " * level + f" - {op}", _human(n), _share(n, total)) for op, n in self.flop_counts[name].items()
            ]
        header = ("Module", "FLOP", "% Total")
        widths = [max(map(len, column)) for column in zip(header, *rows)]
        line = lambda r: f"{r[0]:<{widths[0]}}  {r[1]:>{widths[1]}}  {r[2]:>{widths[2]}}"  # noqa: E731
        return "\n".join([line(header), "  ".join("-" * w for w in widths), *map(line, rows)])

    def __enter__(self):
        self.flop_counts.clear()
        modes = _C.tls("dispatch_modes")
        try:
            self._tracker.__enter__()
            return super().__enter__()
        except BaseException:
            # An interrupt: nothing would leave the block.
            if _C.tls("dispatch_modes") > modes:
                super().__exit__(None, None, None)
            self._tracker.__exit__(None, None, None)
            raise

    def __exit__(self, *exc):
        try:
            super().__exit__(*exc)
        finally:
            self._tracker.__exit__(*exc)
        if self.display:
            print(self.get_table())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        packet = func.overloadpacket
        formula = self.custom_mapping.get(func) or self.custom_mapping.get(packet)
        if formula is None:
            count = flops(func, args, kwargs)
        else:
            count = (
                formula(*args, **kwargs, out_val=out)
                if getattr(formula, "_get_raw", False)
                else formula(*tree_map(_shape, list(args)), **tree_map(_shape, kwargs), out_shape=_shape(out))
            )
        if count:
            for name in self._tracker.parents:
                self.flop_counts[name][packet] += count
        return out


def _human(n: int) -> str:
    for unit, size in (("T", 1e12), ("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if n >= size:
            return f"{n / size:.3f}{unit}"
    return str(n)


def _share(n: int, total: int) -> str:
    return f"{n / total:.2%}" if total else "0%"
