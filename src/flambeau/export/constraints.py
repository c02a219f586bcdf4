"""The symbols of an export: made from the specification, checked against what the program asked, checked again at every call."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any

from .. import _C
from ..base import expr as E
from ..base import relations as R
from ..base.compiling import is_compiling
from ..base.expr import INF, Expr, Symbol
from ..base.shape_env import LARGEST, ConstraintViolationError, ShapeEnv
from ..base.symint import NUMBERS, SymInt
from ..core.tensor import Tensor
from ..dynamo.exc import UserError, UserErrorType
from ..fx.graph_module import compile_source
from .dynamic_shapes import Dim, user_error

__all__ = ["Checks", "Symbols", "ValueRanges"]


@dataclasses.dataclass(frozen=True)
class ValueRanges:
    """``lower`` to ``upper``, both included; an upper end of ``inf`` is none."""

    lower: Any
    upper: Any

    def __repr__(self):
        return f"VR[{self.lower}, {'int_oo' if self.upper == INF else self.upper}]"

    def __contains__(self, n) -> bool:
        return self.lower <= n <= self.upper


@dataclasses.dataclass
class Root:
    """A named dimension. ``first``: the source that gave its value."""

    dim: Dim
    symbol: Symbol
    first: str


def violates_promise(text: str) -> UserError:
    return user_error(UserErrorType.CONSTRAINT_VIOLATION, text)


class Symbols:
    """Makes the sizes of the inputs in ``env``, an environment without 0/1 specialisation or duck shapes."""

    def __init__(self, env: ShapeEnv, violation: Callable[[str], Exception] = violates_promise):
        """``violation``: the error of a program, or an example, that needs less of a size than the specification promises."""
        self.env, self.violation = env, violation
        self.roots: dict[str, Root] = {}
        self.named: list[tuple[Dim, str]] = []  # every use
        self.hints: dict[Symbol, tuple[Any, str]] = {}  # symbols of Dim.AUTO and Dim.DYNAMIC
        self.derived: dict[Any, tuple[int, Any]] = {}  # expression -> range

    def size(self, n: int, spec: Any, source: str) -> Any:
        """The size of a dimension with the example ``n``: an int or a SymInt."""
        if isinstance(spec, int):
            if spec != n:
                raise ConstraintViolationError(
                    f"Static shape constraint of {spec} does not match input size of {n}, for {source}"
                )
            return n
        if isinstance(spec, Dim):
            return self._named(n, spec, source)
        lo, hi = spec.min, spec.max
        if lo is not None and n < lo or hi is not None and n > hi:
            raise ConstraintViolationError(
                f"{n} not in range [{lo or 0}, {'int_oo' if hi is None else hi}] for {source}"
            )
        if n in (0, 1):
            if spec.kind == "DYNAMIC":
                raise ValueError(
                    "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:\n"
                    f"- Received user-specified dim hint Dim.DYNAMIC(min={lo}, max={hi}), but export 0/1 specialized due to hint of {n} "
                    f"for dimension {source}. Give an example of at least 2."
                )
            return n
        size = self.env.create_size(n, source, duck=False, lo=lo, hi=hi)
        (symbol,) = size.expr.symbols()
        self.env.size_like.add(symbol)
        self.hints[symbol] = (spec, source)
        return size

    def number(self, n: int, spec: Any, source: str) -> Any:
        """An int among the inputs."""
        lo, hi = spec.min, spec.max
        number = self.env.create_int(n, source, lo=-INF if lo is None else lo, hi=INF if hi is None else hi)
        (symbol,) = number.expr.symbols()
        self.hints[symbol] = (spec, source)
        return number

    def _named(self, n: int, dim: Dim, source: str) -> Any:
        root = dim.root
        known = self.roots.get(root.__name__)
        if known is not None and (known.dim.min, known.dim.max) != (root.min, root.max):
            raise user_error(
                UserErrorType.INVALID_INPUT,
                f"Found different definitions {known.dim!r} and {root!r} for the same symbolic dimension {root!r}!",
            )
        if not dim.min <= n <= (INF if dim.max is None else dim.max):
            raise ConstraintViolationError(
                f"{n} not in range [{dim.min}, {'int_oo' if dim.max is None else dim.max}] of {dim.__name__} for {source}"
            )
        value, rest = divmod(n - dim.offset, dim.factor)
        if rest or value < 0:
            raise self.violation(
                f"Expected input {source} to be of the form {dim.__name__}, where {root.__name__} is an integer, but got {n}"
            )
        if known is None:
            if value in (0, 1) and (root is dim or self.env.specialize_zero_one):
                raise self._violated(
                    [root.__name__],
                    [
                        f"You marked {root.__name__} as dynamic but your code specialized it to be a constant ({value}), the size of the example "
                        f"{source}. Give an example of at least 2."
                    ],
                    [f"{root.__name__} = {value}"],
                )
            made = self.env.create_size(value, source if root is dim else None, duck=False, lo=root.min, hi=root.max)
            (symbol,) = made.expr.symbols()
            self.env.size_like.add(symbol)
            known = self.roots[root.__name__] = Root(root, symbol, source)
        elif self.env.hints[known.symbol] != value:
            have = self.env.hints[known.symbol]
            if dim is root:
                text = f"{source} = {n} is not equal to {known.first} = {have}"
            else:
                text = f"Expected input {source} to be equal to {dim.__name__}, where {root.__name__} = {have}, but got {n}"
            raise self.violation(text)
        e = E.of(known.symbol) * dim.factor + dim.offset
        if dim.root is dim:
            origin = self.env.origins[known.symbol]
            if source not in origin.sources:
                origin.sources.append(source)
        else:
            self.env.learn(R.compare("le", e, LARGEST))
            self.env.same_value(e, source)
            self.derived[e] = (dim.min, INF if dim.max is None else dim.max)
        self.named.append((dim, source))
        return SymInt(e, self.env)

    def _violated(self, names: list[str], texts: list[str], fixes: list[str]) -> Exception:
        fix = "\nSuggested fixes:\n" + "\n".join(f"  {f}" for f in fixes) if fixes else ""
        problems = "".join(f"\n  - {t}" for t in texts)
        return self.violation(f"Constraints violated ({', '.join(names)})!{problems}{fix}")

    # -- after the trace -----------------------------------------------------------------------------------------------
    def check(self) -> None:
        """The error of a program that needs less of a size than the specification promises."""
        env = self.env
        by_symbol = {r.symbol: r for r in self.roots.values()}
        names: dict[str, None] = {}
        problems: list[str] = []
        fixes: list[str] = []

        def report(who: list[str], text: str, fix: str | None = None) -> None:
            names.update(dict.fromkeys(who))
            problems.append(text)
            if fix is not None and fix not in fixes:
                fixes.append(fix)

        for s in {**by_symbol, **self.hints}:
            value = env.replacements.get(s)
            value = s.lo if value is None and s.lo == s.hi else value
            spec, where = self.hints.get(s, (None, None))
            who = by_symbol[s].dim.__name__ if spec is None else where
            if isinstance(value, int) and not (spec is not None and spec.kind == "AUTO"):
                line = next((g.line for g in env.guards if s in R.symbols(g.relation) and g.specializes), None)
                report(
                    [who],
                    f"You marked {who} as dynamic but your code specialized it to be a constant ({value}). If you're using mark_dynamic, "
                    "either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
                    f"{_asked(line)}",
                    None if spec is not None else f"{who} = {value}",
                )
        for g in env.guards:
            symbols = R.symbols(g.relation) if not isinstance(g.relation, bool) else ()
            roots = [by_symbol[s] for s in symbols if s in by_symbol]
            others = [s for s in symbols if s not in by_symbol]
            if not roots or any(s in self.hints or not self._is_size(s) for s in others):
                continue
            if any(isinstance(env.replacements.get(s), int) for s in symbols):
                continue  # of a Dim.AUTO or Dim.DYNAMIC too: it is what the program makes of it, checked at each call
            who = sorted({r.dim.__name__ for r in roots})
            other = self._equal(g.relation, by_symbol)
            if other is not None:
                a, b = other
                report(
                    [b],
                    f"The values of {b} = {by_symbol_source(self, b)} and {a} = {by_symbol_source(self, a)} must always be equal."
                    f"{_asked(g.line)}",
                    f"{b} = {a}",
                )
                continue
            if len(symbols) == len(roots) == 1 and self._only_small(g.relation, roots[0]):
                continue  # excludes 0 or 1 alone: checked at each call
            fix = self._range_fix(roots[0]) if len(symbols) == 1 else None
            report(
                who,
                f"Not all values of {', '.join(f'{r.dim.__name__} = {r.first}' for r in roots)} in the specified range satisfy the generated "
                f"guard {self.text(g.relation)}.{_asked(g.line)}",
                fix,
            )
        if problems:
            raise self._violated(list(names), problems, fixes)
        self._check_bounds()

    def _check_bounds(self) -> None:
        """ValueError for a bound of the user's that the program's own assumptions exclude."""
        conflicts = [
            f"- Received user-specified {'min' if low else 'max'} bound of {bound} on {where}, but the program assumes "
            f"{s.lo} <= {where} <= {'int_oo' if s.hi >= LARGEST else s.hi}.{_asked(self._line(s))}"
            for s, (spec, where) in self.hints.items()
            for low, bound in ((True, spec.min), (False, spec.max))
            if bound is not None
            and not isinstance(self.env.replacements.get(s), int)
            and (s.lo > max(bound, 2) if low else s.hi < bound)
        ]
        if conflicts:
            raise ValueError(
                "Found the following conflicts between user-specified ranges and inferred ranges from model tracing:\n"
                + "\n".join(conflicts)
            )

    def _is_size(self, s) -> bool:
        """Whether it is the size of an input that the specification leaves alone."""
        origin = self.env.origins.get(s)
        return origin is not None and any(".size()[" in str(source) for source in origin.sources)

    def _line(self, s) -> str | None:
        """Where the program asked about a symbol for the first time."""
        return next((g.line for g in self.env.guards if s in R.symbols(g.relation)), None)

    @staticmethod
    def _equal(r, by_symbol) -> tuple[str, str] | None:
        """The names of two dimensions that a guard makes equal."""
        if type(r) is not R.Rel or r.args[0] != "==" or r.args[1].const or len(r.args[1].terms) != 2:
            return None
        (a, x), (b, y) = r.args[1].terms
        if a in by_symbol and b in by_symbol and x == -y and abs(x) == 1:
            return by_symbol[a].dim.__name__, by_symbol[b].dim.__name__
        return None

    @staticmethod
    def _only_small(r, root: Root) -> bool:
        """Whether a guard on one dimension holds for all its values from 2 on."""
        lo, hi = max(2, root.dim.min), INF if root.dim.max is None else root.dim.max
        if lo > hi:
            return False
        fresh = Symbol(root.symbol.name, lo, hi)
        return R.substitute(r, {root.symbol: E.of(fresh)}) is True

    def _range_fix(self, root: Root) -> str | None:
        s, d = root.symbol, root.dim
        if s.divisor > 1:
            return f"_{d.__name__} = Dim('_{d.__name__}'); {d.__name__} = {s.divisor}*_{d.__name__}"
        parts = [f"min={s.lo}"] if s.lo > max(d.min, 2) else []
        parts += [f"max={s.hi}"] if s.hi < LARGEST // 1024 and (d.max is None or s.hi < d.max) else []
        return f"{d.__name__} = Dim({d.__name__!r}, {', '.join(parts)})" if parts else None

    def text(self, relation) -> str:
        """A relation with the inputs in the place of symbols."""
        return _with_sources(relation, {s: str(o.sources[0]) for s, o in self.env.origins.items() if o.sources})

    def ranges(self) -> dict[Any, ValueRanges]:
        """symbol (or derived expression) -> its range, of those that are left."""
        env, out = self.env, {}
        roots = {r.symbol: r.dim for r in self.roots.values()}
        for s in env.origins:
            if isinstance(s, Symbol) and s not in env.replacements and s.lo != s.hi:
                dim = roots.get(s)
                lo = max(s.lo, 0) if dim is not None else s.lo
                out[s] = ValueRanges(lo, INF if s.hi >= LARGEST // 1024 else s.hi)
        for s in env.size_like:
            if s not in env.hints and s not in env.replacements:
                out[s] = ValueRanges(s.lo, INF if s.hi >= LARGEST else s.hi)
        for e, (lo, hi) in self.derived.items():
            if isinstance(env.simplify(e), Expr):
                out[e] = ValueRanges(lo, hi)
        return out


def by_symbol_source(symbols: Symbols, name: str) -> str:
    return symbols.roots[name].first


def _asked(line: str | None) -> str:
    return f" Asked at: {line}" if line else ""


def _with_sources(relation, names: dict) -> str:
    """The text of a relation with the names of inputs in the place of symbols."""
    text = repr(relation)
    for s in R.symbols(relation):
        if s in names:
            text = re.sub(rf"\b{re.escape(s.name)}\b", names[s].replace("\\", r"\\"), text)
    return text


@dataclasses.dataclass
class Checks:
    """What every call of an exported program is held to. ``inputs``: for each leaf ("tensor", dtype, sizes), ("number", symbol) or
    ("constant", value); ``names``: their names; ``guards``: (relation, the user's line); ``bindings``: symbol -> (leaf, what, dimension,
    factor, offset), where a size is ``factor * symbol + offset``; ``ranges``: symbol -> ValueRanges."""

    inputs: list[tuple]
    names: list[str]
    guards: list[tuple[Any, str | None]]
    bindings: dict[Any, tuple]
    ranges: dict[Any, ValueRanges]

    @staticmethod
    def of(leaves: list[Any], fakes: list[Any], names: list[str], env: ShapeEnv, ranges: dict) -> Checks:
        """``fakes``: the leaves as they were traced."""
        inputs: list[tuple] = []
        bindings: dict[Any, tuple] = {}

        def bind(e, *where):
            if isinstance(e, R.FloatSymbol):
                bindings.setdefault(e, (*where, 1, 0))
            elif (told := E.in_one_symbol(e)) is not None:
                s, *form = told
                if s not in bindings or (form == [1, 0] and bindings[s][3:] != (1, 0)):
                    bindings[s] = (*where, *form)

        for k, (leaf, fake) in enumerate(zip(leaves, fakes)):
            if isinstance(fake, _C.TensorBase):
                sizes = tuple(n.expr if isinstance(n, SymInt) else n for n in fake._shape)
                inputs.append(("tensor", fake.dtype, sizes))
                for d, e in enumerate(sizes):
                    bind(e, k, "size", d)
                for d, n in enumerate(fake._strides):
                    if isinstance(n, SymInt):
                        bind(n.expr, k, "stride", d)
            elif isinstance(fake, NUMBERS):
                inputs.append(("number", fake.expr))
                bind(fake.expr, k, "value", 0)
            else:
                inputs.append(("constant", leaf))
        guards = [(g.relation, g.line and str(g.line)) for g in env.guards if not isinstance(g.relation, bool)]
        known = {s: r for s, r in ranges.items() if isinstance(s, Symbol) and s in bindings}
        return Checks(inputs, names, guards, bindings, known)

    def function(self) -> Callable[..., None]:
        """``check(*leaves)``: AssertionError with the input, the symbol, the value and the user's line where something doesn't hold. It is
        ordinary Python, which capture traces like the user's."""
        kinds = {f"dtype_{k}": want[1] for k, want in enumerate(self.inputs) if want[0] == "tensor"}
        check, _ = compile_source(self.source(), {**_SCOPE, **kinds}, "check")
        return check

    def source(self) -> str:
        """The text of :meth:`function`."""
        args = [f"arg_{k}" for k in range(len(self.inputs))]
        lines = [f"def check({', '.join(args)}):"]

        def unless(condition: str, text: str, values: str, why: str) -> None:
            lines.append(f"    if not ({condition}):\n        fail({text!r}, {values}, {why!r})")

        for k, (a, name, want) in enumerate(zip(args, self.names, self.inputs)):
            if want[0] == "tensor":
                lines.append(f"    if not isinstance({a}, Tensor):\n        wrong({name!r}, 'a tensor', {a})")
                unless(f"{a}.dtype == dtype_{k}", f"{name}.dtype == {want[1]}", f"{{'it': {a}.dtype}}", "")
                unless(f"{a}.dim() == {len(want[2])}", f"{name}.dim() == {len(want[2])}", f"{{'it': {a}.dim()}}", "")
            elif want[0] == "number":
                lines.append(
                    f"    if not isinstance({a}, (int, float)) or isinstance({a}, bool):\n        wrong({name!r}, 'a number', {a})"
                )
            elif want[1] is None:
                unless(f"{a} is None", f"{name} == None", f"{{{name!r}: {a}}}", "")
            else:
                unless(f"same({a}, {want[1]!r})", f"{name} == {want[1]!r}", f"{{{name!r}: {a}}}", "")
        for s, (k, what, d, factor, offset) in self.bindings.items():
            read = args[k] if what == "value" else f"{args[k]}.{what}({d})"
            if factor == 1 and not offset:
                lines.append(f"    {s.name} = {read}")
                continue
            lines.append(f"    {s.name} = ({read} - {offset}) // {factor}")
            unless(
                f"{s.name} * {factor} + {offset} == {read} and {s.name} >= 0",
                f"{self._source(k, what, d)} == {E.of(s) * factor + offset!r} for an integer {s.name}",
                f"{{'it': {read}}}",
                "",
            )
        for s, r in self.ranges.items():
            source = self._source(*self.bindings[s][:3])
            for sign, bound in ((">=", r.lower), ("<=", r.upper)):
                if abs(bound) != INF and not (sign == ">=" and bound <= 0 and self.bindings[s][1] == "size"):
                    unless(
                        f"{s.name} {sign} {bound}",
                        f"{source} {sign} {bound}",
                        f"{{{s.name!r}: {s.name}}}",
                        "the range of the exported program",
                    )
        for k, (a, want) in enumerate(zip(args, self.inputs)):
            for d, e in enumerate(want[2]) if want[0] == "tensor" else ():
                own = [s for s in R.symbols(e) if self.bindings.get(s) == (k, "size", d, 1, 0)]
                if own and e == E.of(own[0]):
                    continue
                name = self._source(k, "size", d)
                values = ", ".join(f"{t!r}: {t}" for t in self._names_in(e))
                unless(
                    f"{a}.size({d}) == {e!r}",
                    f"{name} == {self._text(e)}",
                    f"{{{values}{', ' if values else ''}{name!r}: {a}.size({d})}}",
                    "",
                )
        for relation, line in self.guards:
            if all(s in self.bindings for s in R.symbols(relation)):
                values = ", ".join(f"{t!r}: {t}" for t in self._names_in(relation))
                unless(repr(relation), self._text(relation), f"{{{values}}}", f"asked at {line}" if line else "")
        return "\n".join([*lines, "    return None", ""])

    @staticmethod
    def _names_in(e) -> list[str]:
        return sorted(s.name for s in R.symbols(e))

    def _source(self, k: int, what: str, d: int) -> str:
        return self.names[k] if what == "value" else f"{self.names[k]}.{what}()[{d}]"

    def _text(self, e) -> str:
        return _with_sources(e, {s: self._source(*b[:3]) for s, b in self.bindings.items() if b[3:] == (1, 0)})


def fail(text: str, values: dict, why: str):
    """A constraint that a call violates."""
    if is_compiling():  # captured code knows no values
        raise AssertionError(f"Guard failed: {text}")
    given = ", ".join(f"{n} = {v}" for n, v in values.items())
    parts = "; ".join(p for p in (given, why) if p)
    raise AssertionError(f"Guard failed: {text} ({parts})" if parts else f"Guard failed: {text}")


def wrong(name: str, kind: str, value):
    raise TypeError(f"{name} must be {kind}, got {type(value).__name__}")


def same_constant(a, b) -> bool:
    """Whether two numbers, strings or objects are the same value of the same type; NaN is itself, 0.0 isn't -0.0."""
    if type(a) is not type(b):
        return False
    return repr(a) == repr(b) if isinstance(a, (float, complex)) else a is b or bool(a == b)


_SCOPE = {
    "Tensor": Tensor,
    "fail": fail,
    "same": same_constant,
    "wrong": wrong,
    "inf": math.inf,
    "nan": math.nan,
    **{
        n: getattr(math, n)
        for n in ("sqrt", "cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "exp", "log", "log2")
    },
}
