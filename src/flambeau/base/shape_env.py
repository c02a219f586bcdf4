"""The shape environment of a trace: its symbols, what is known about them, and what was assumed.

A *backed* symbol (``s0``) stands for a number of the inputs and has an example value, its hint: a question about it that the known facts
don't answer is answered by the hint and becomes a guard, with the user's line. An *unbacked* symbol (``u0``) stands for what depends on
data; such a question is an error that names the expression, the line, and the check that would answer it."""

from __future__ import annotations

import contextlib
import math
from typing import Any

from . import expr as E
from . import relations as R
from .expr import INF, Expr, Symbol
from .logs import artifact
from .public import public_in
from .records import slotted
from .relations import FloatSymbol, Rel, as_symbol
from .shape_settings import config
from .symint import SymBool, SymFloat, SymInt
from .user_line import UserLine, user_line

__all__ = ["LARGEST", "Assert", "ConstraintViolationError", "Guard", "GuardOnDataDependentSymNode", "ShapeEnv"]


_LOG = artifact("sym_shapes", "")
# No size is greater: each is a floating-point number exactly, a few of them add up to what fits into 64 bits.
LARGEST = (1 << 53) - 1


class GuardOnDataDependentSymNode(RuntimeError):
    """A decision was needed that depends on data. ``cond``: the expression."""

    def __init__(self, cond, *args):
        super().__init__(*args)
        self.cond = cond


class ConstraintViolationError(RuntimeError):
    """What was marked dynamic transposed out to be needed as a constant (or in a narrower range)."""


@slotted(frozen=False)
class Guard:
    """``relation`` was assumed because the program at ``line`` asked."""

    relation: Any
    line: UserLine | None
    specializes: bool = False


@slotted(frozen=False)
class Assert:
    """``relation``, on unbacked symbols, has to be checked when the program runs."""

    relation: Any
    message: str
    line: UserLine | None


class Origin:
    """Where a symbol comes from: ``sources`` that all have its value; ``dynamic``: the user said so (``mark_dynamic``), with ``lo``, ``hi``.
    ``is_number``: it is an integer of the program, which may be 0 and 1 even where sizes are made of it."""

    __slots__ = ("dynamic", "hi", "is_number", "lo", "sources")

    def __init__(self, sources=(), is_number: bool = False):
        self.sources = list(sources)
        self.is_number = is_number
        self.dynamic = ""  # "", "strict" (an error when it becomes constant), "maybe"
        self.lo = self.hi = None


@public_in("fx.experimental.symbolic_shapes")
class ShapeEnv:
    """``duck_shape``: equal sizes are one symbol (unless given, what ``use_duck_shape`` of the settings says). ``specialize_zero_one``: sizes 0
    and 1 are constants and others at least 2. ``where``: gives the user's line (a tracer that isn't on Python's stack sets it)."""

    def __init__(self, *, duck_shape: bool | None = None, specialize_zero_one: bool = True, where=None, **_unused):
        self.duck_shape = config.use_duck_shape if duck_shape is None else duck_shape
        self.specialize_zero_one = specialize_zero_one
        self.where = where or user_line
        self.origins: dict[Any, Origin] = {}
        self.hints: dict[Any, Any] = {}
        self.guards: list[Guard] = []
        self.asserts: list[Assert] = []
        self.replacements: dict[Any, Any] = {}
        self.aliases: list[tuple[Any, Any]] = []  # (expression, source that has its value)
        self.output: Any = None  # of the tracer that owns the environment
        self.size_like: set[Symbol] = set()
        self.oblivious = 0  # > 0: sizes that depend on data are taken to be neither 0 nor 1 (shape rules)
        self._facts: dict[Any, bool] = {}
        self._least: list[Expr] = []  # expressions known to be >= 0
        self._duck: dict[int, Symbol] = {}
        self._shape_ids: dict[Any, tuple[SymInt, int]] = {}
        self.hint_overrides: dict[Symbol, int] = {}  # sizes that the compiler is to optimise for
        self._count = {"s": 0, "u": 0, "zf": 0, "zuf": 0}
        self._seen: dict[Any, bool] = {}
        # What was taken for granted of a finished trace (``assuming``); None while a program is traced.
        self.assumed: list[Any] | None = None
        self.allow_data_dependent_sizes = self.allow_data_dependent_numbers = True

    @contextlib.contextmanager
    def data_sizes(self):
        """Sizes that depend on data are symbols in this block whatever the settings say."""
        before, self.allow_data_dependent_sizes = self.allow_data_dependent_sizes, True
        try:
            yield
        finally:
            self.allow_data_dependent_sizes = before

    # -- symbols -------------------------------------------------------------------------------------------------------
    def _name(self, prefix: str) -> str:
        n = self._count[prefix]
        self._count[prefix] += 1
        return f"{prefix}{n}"

    def _log(self, what: str, s, source=None) -> None:
        if _LOG.on:
            lo, hi = (("-int_oo" if x <= -LARGEST else "int_oo" if x >= LARGEST else x) for x in s.bounds())
            example = f" = {self.hints[s]}" if s in self.hints else ""
            place = f" for {_source_name(source)}" if source is not None else ""
            _LOG("%s %s%s%s [%s, %s] %s", what, s, example, place, lo, hi, self.where() or "")

    def reserve(self, name: str) -> None:
        """No symbol made from now on is called ``name``, nor has a lower number."""
        prefix = name.rstrip("0123456789")
        if prefix in self._count and name != prefix:
            self._count[prefix] = max(self._count[prefix], int(name[len(prefix) :]) + 1)

    def create_size(self, hint: int, source=None, *, duck: bool | None = None, dynamic="", lo=None, hi=None):
        """The SymInt of a size (or of a stride) with an example value. An int for 0 and 1 under 0/1 specialisation."""
        if self.specialize_zero_one and hint in (0, 1):
            return hint
        duck = self.duck_shape if duck is None else duck
        s = self._duck.get(hint) if duck else None
        if s is None:
            least = 2 if self.specialize_zero_one else 0
            s = Symbol(self._name("s"), max(least, lo or 0), LARGEST if hi is None else hi)
            self.hints[s] = hint
            self.origins[s] = Origin()
            if duck:
                self._duck[hint] = s
            self._log("create_symbol", s, source)
        self._origin(s, source, dynamic, lo, hi)
        return SymInt(E.of(s), self)

    def create_int(self, hint: int, source=None, *, lo=-INF, hi=INF, dynamic=""):
        """The SymInt of an integer of the program; it may be any of 64 bits."""
        lo, hi = max(lo, -(1 << 63)), min(hi, (1 << 63) - 1)
        s = Symbol(self._name("s"), lo, hi)
        self.hints[s] = hint
        self.origins[s] = Origin(is_number=True)
        self._origin(s, source, dynamic, None, None)
        self._log("create_symbol", s, source)
        return SymInt(E.of(s), self)

    def create_float(self, hint: float, source=None):
        """The SymFloat of a floating-point number of the program."""
        s = FloatSymbol(self._name("zf"))
        self.hints[s] = hint
        self.origins[s] = Origin([source] if source is not None else [])
        return SymFloat(s, self)

    def _origin(self, s, source, dynamic, lo, hi):
        o = self.origins[s]
        if source is not None:
            o.sources.append(source)
        if dynamic == "strict" or (dynamic and not o.dynamic):
            o.dynamic = dynamic
        if lo is not None:
            s.lo = max(s.lo, lo)
            o.lo = lo if o.lo is None else max(o.lo, lo)
        if hi is not None:
            s.hi = min(s.hi, hi)
            o.hi = hi if o.hi is None else min(o.hi, hi)

    def create_unbacked_symint(self, lo=-INF, hi=INF, *, size: bool = False, hint: int | None = None):
        """The SymInt of an integer that depends on data. ``size``: it is the size of a tensor."""
        s = Symbol(self._name("u"), max(lo, 0) if size else lo, hi)
        if size:
            self.size_like.add(s)
        self._log("create_unbacked_symint", s)
        return SymInt(E.of(s), self)

    def create_unbacked_symfloat(self):
        """The SymFloat of a number that depends on data."""
        return SymFloat(FloatSymbol(self._name("zuf")), self)

    def create_unbacked_symbool(self):
        """The SymBool of a truth value that depends on data."""
        return SymBool(Rel("==", E.of(Symbol(self._name("u"), 0, 1)) - 1), self)

    def create_shape(self, shape, strides, dynamic, source=None):
        """(sizes, strides) of an input: ``dynamic(dim)`` gives None for a dimension that stays constant, else keywords of
        :meth:`create_size` (or ``given``, a size or a function of the environment, the example and the source).
        Strides that follow from sizes become their products; others stay what they are unless their neighbour varies."""
        sizes: list = []
        for d, n in enumerate(shape):
            how = dynamic(d)
            if how is None:
                sizes.append(n)
            elif "given" in how:  # made by the caller
                given = how["given"]
                sizes.append(given(self, n, source(("size", d))) if callable(given) else given)
            elif how.get("unbacked"):
                sizes.append(self._unbacked_size(n, source and source(("size", d)), how))
            else:
                sizes.append(self.create_size(n, source and source(("size", d)), **how))
        out: list = [None] * len(shape)
        known: list[tuple[int, Any]] = [(1, 1)]
        for d in sorted(range(len(shape)), key=lambda d: (strides[d], shape[d], -d)):
            k = strides[d]
            found = next((e for h, e in reversed(known) if h == k), None)
            if found is None or k in (0, 1):
                varies = any(isinstance(n, SymInt) for n in sizes)
                found = (
                    k
                    if k in (0, 1) or not varies
                    else self.create_size(k, source and source(("stride", d)), duck=False)
                )
            out[d] = found
            known.append((k * shape[d], found * sizes[d]))
        return tuple(sizes), tuple(out)

    def _unbacked_size(self, n: int, source, how: dict):
        """The size of an input that is treated as one that depends on data. Those with one ``shape_id`` are one symbol."""
        lo, hi, shape_id = how.get("lo"), how.get("hi"), how.get("shape_id")
        size, same = self._shape_ids.get(shape_id, (None, n)) if shape_id is not None else (None, n)
        if same != n:
            raise ConstraintViolationError(
                f"sizes with the shape_id {shape_id!r} must be equal; they are {same} and {n}"
            )
        if size is None:
            size = self.create_unbacked_symint(lo or 0, INF if hi is None else hi, size=True)
            self.origins[as_symbol(size.expr)] = Origin()
            if shape_id is not None:
                self._shape_ids[shape_id] = size, n
        self._origin(as_symbol(size.expr), source, how.get("dynamic", ""), lo, hi)
        return size

    def same_value(self, e, source) -> None:
        """``source`` has the value of the expression too."""
        self.aliases.append((e, source))

    # -- knowledge -----------------------------------------------------------------------------------------------------
    def is_unbacked(self, e) -> bool:
        """Whether some symbol of the expression has no example value."""
        return any(s not in self.hints for s in R.symbols(e))

    def hint(self, e):
        """The value with the example values put in; None when data decides."""
        e = self.simplify(e)
        return None if self.is_unbacked(e) else R.evaluate(e, self.hints)

    def simplify(self, e):
        """The expression with what is known put in."""
        return R.substitute(e, self.replacements) if self.replacements or self._facts else e

    def known(self, r) -> bool | None:
        """The truth value when it follows from ranges and earlier guards, else None."""
        r = self.simplify(r)
        if isinstance(r, bool):
            return r
        found = self._facts.get(r)
        if found is not None:
            return found
        if type(r) is R.Junction:
            parts = [self.known(p) for p in r.args[1:]]
            stop = r.args[0] == "or"
            if stop in parts:
                return stop
            return None if None in parts else not stop
        if type(r) is Rel:
            sign, e = r.args
            if sign == ">=":
                if any(E.nonnegative(e - f) for f in self._least):
                    return True
                if any(E.nonnegative(-e - 1 - f) for f in self._least):
                    return False
            else:
                if any(E.at_least(e - f, 1) or E.at_least(-e - f, 1) for f in self._least):
                    return sign == "!="
        return None

    def learn(self, r) -> None:
        """``r`` holds from now on."""
        if isinstance(r, bool):
            return
        self._facts[r] = True
        self._facts[R.negate(r)] = False
        self._seen.clear()
        if type(r) is R.Junction and r.args[0] == "and":
            for p in r.args[1:]:
                self.learn(p)
        if type(r) is not Rel:
            return
        sign, e = r.args
        s = next(iter(e.symbols())) if len(e.symbols()) == 1 else None
        if sign == "==":
            self._equal(e)
            return
        c = E.coefficient(e, s) if s is not None else None
        if isinstance(c, int) and c and len(e.terms) == 1:
            if sign == ">=":
                if c > 0:
                    s.lo = max(s.lo, -(e.const // c))
                else:
                    s.hi = min(s.hi, e.const // -c)
            else:
                n = -e.const // c
                if s.lo == n:
                    s.lo += 1
                elif s.hi == n:
                    s.hi -= 1
            if s.lo == s.hi:
                self.replacements[s] = s.lo
        elif sign == ">=":
            self._least.append(e)

    def _equal(self, e: Expr) -> None:
        """``e == 0``: write one symbol through the others where that is possible without division."""
        if len(e.terms) == 1 and type(e.terms[0][0]) is E.Mod and e.const == 0:
            num, den = e.terms[0][0].args
            s = R.as_symbol(num)
            if s is not None and isinstance(den, int):
                s.divisor = math.lcm(s.divisor, den)
                return
        candidates = [(a, c) for a, c in e.terms if type(a) is Symbol and abs(c) == 1 and E.coefficient(e, a) == c]
        # An unbacked symbol goes first, then the younger one: what is kept is what was there before.
        candidates.sort(key=lambda t: (t[0] not in self.hints, t[0].key), reverse=True)
        for s, c in candidates:
            value = E.of(s) - e * c if c == 1 else E.of(s) + e
            if s in R.symbols(value):
                continue  # ``s0 == s1*(s0//s1)`` doesn't say what s0 is
            lo, hi = E.bounds(value)
            other = R.as_symbol(value)
            if other is not None:
                other.lo, other.hi = max(other.lo, s.lo), min(other.hi, s.hi)
            elif isinstance(value, Expr) and not (lo >= s.lo and hi <= s.hi):
                self._least += [x for x in self._range_facts(s, value) if isinstance(x, Expr)]
            self.replacements = {k: R.substitute(v, {s: value}) for k, v in self.replacements.items()}
            self.replacements[s] = value
            return

    @staticmethod
    def _range_facts(s: Symbol, value):
        if s.lo != -INF:
            yield value - s.lo
        if s.hi != INF:
            yield s.hi - value

    @contextlib.contextmanager
    def assuming(self):
        """For whoever reads a finished trace, whose guards stand: what is asked and doesn't follow from them is answered as it is for the examples.
        Gives the list of those relations: what is made holds only where they do."""
        before, self.assumed = self.assumed, []
        try:
            yield self.assumed
        finally:
            self.assumed = before

    @contextlib.contextmanager
    def examples(self, values: dict[Any, Any]):
        """Within the block symbols have these example values."""
        before, self.hints = self.hints, {**self.hints, **values}
        try:
            yield
        finally:
            self.hints = before

    # -- questions -----------------------------------------------------------------------------------------------------
    def evaluate_expr(self, expr):
        """The value of an expression of a SymInt or SymBool as a number, remembered as a guard."""
        if isinstance(expr, bool | int | float):
            return expr
        if isinstance(expr, R.Rel | R.Junction | R.Not):
            return self.evaluate(expr)
        return self.specialize(expr)

    def evaluate(self, r) -> bool:
        """The truth value, remembered as a guard when it isn't known."""
        if isinstance(r, bool):
            return r
        seen = self._seen.get(r)
        if seen is not None:
            return seen
        found = self.known(r)
        if found is None:
            asked, r = r, self.simplify(r)
            if self.is_unbacked(r):
                guess = self._guess(r) if self.oblivious else None
                if guess is None and self.oblivious:
                    # A size may be known as the rest of another, as a piece of a split is.
                    guess = self._guess(asked)
                if guess is None:
                    raise self._data_dependent(r)
                return guess
            found = bool(R.evaluate(r, self.hints))
            if self.oblivious and self.size_like and self._guess(r) is found:
                return found  # so it is for all sizes but 0 and 1, of which shape rules don't ask
            fact = r if found else R.negate(r)
            if self.assumed is not None:
                # Not learned: the trace holds for other sizes, too.
                if fact not in self.assumed:
                    self.assumed.append(fact)
                return found
            line = self.where()
            self.guards.append(Guard(fact, line, type(fact) is Rel and fact.args[0] == "=="))
            if _LOG.on:
                _LOG("eval %r [guard added] %s", fact, line or "")
            self.learn(fact)
        self._seen[r] = found
        return found

    def _guess(self, r):
        """The answer when sizes that depend on data are taken to be at least 2; None when that doesn't decide."""
        if type(r) is R.Junction:
            parts = [self._guess(p) if self.known(p) is None else self.known(p) for p in r.args[1:]]
            stop = r.args[0] == "or"
            return stop if stop in parts else None if None in parts else not stop
        if type(r) is not Rel:
            return None
        sizes = {s for s in R.symbols(r) if s in self.size_like or (s not in self.hints and getattr(s, "lo", -1) >= 0)}
        env = {s: E.of(Symbol(s.name, max(s.lo, 2), max(s.hi, 2), s.divisor)) for s in sizes}
        out = r.substitute(env)
        if isinstance(out, bool):
            return out
        # A size that is a part of another (``s0//2``) is taken for one as well.
        sign, e = r.args
        parts = [
            (E.of(Symbol("part", 2)) if type(a) is E.Div else E.substitute(E.of(a), env), c) for a, c in E.terms(e)
        ]
        out = R.relation(sign, sum((a * c for a, c in parts), E.const(e)))
        return out if isinstance(out, bool) else None

    def specialize(self, e):
        """The number; what varies becomes constant, with a guard."""
        e = self.simplify(e)
        if isinstance(e, (int, float)):
            return e
        if self.is_unbacked(e):
            raise self._data_dependent(e, is_number=True)
        value = R.evaluate(e, self.hints)
        if type(e) is Expr:
            self.evaluate(R.compare("eq", e, value))
        elif math.isnan(value):
            self.evaluate(R.float_op("ne", e, e))
        else:
            self.evaluate(R.float_op("eq", e, value))
            if value == 0:
                self.evaluate(R.float_op("eq", R.float_op("sign", e), math.copysign(1.0, value)))
            if isinstance(e, FloatSymbol) and self.assumed is None:
                self.replacements[e] = value
        return value

    def expect(self, r, message: str = "") -> bool:
        """``r`` must hold: a guard for backed symbols, a check at run time for unbacked ones. The truth value; RuntimeError with
        ``message`` when it is known to fail."""
        found = self.known(r)
        if found is None:
            r = self.simplify(r)
            if self.is_unbacked(r):
                self.asserts.append(
                    Assert(r, message or f"Runtime assertion failed for expression {r!r}", self.where())
                )
                if _LOG.on:
                    _LOG("runtime_assert %r %s", r, self.asserts[-1].line or "")
                self.learn(r)
                return True
            found = self.evaluate(r)
        if not found:
            raise RuntimeError(message or f"Expected {r!r} to be True, but got False")
        return True

    def guess(self, r, default: bool) -> bool:
        """The truth value if it is known or has a hint (with a guard), else ``default`` (no guard)."""
        found = self.known(r)
        if found is not None:
            return found
        r = self.simplify(r)
        return default if self.is_unbacked(r) else self.evaluate(r)

    def _data_dependent(self, r, is_number: bool = False):
        line = self.where()
        names = sorted(s.name for s in R.symbols(r) if s not in self.hints)
        if is_number:
            check = f"torch._check({r!r} == <the value the program relies on>)"
            text = f"Could not extract specialized {'integer' if type(r) is Expr else 'number'} from data-dependent expression {r!r}"
        else:
            check = f"torch._check({r!r}), or torch._check({R.negate(r)!r})"
            text = f"Could not guard on data-dependent expression {r!r}"
        return GuardOnDataDependentSymNode(
            r,
            f"{text} ({', '.join(names)} depend{'s' if len(names) == 1 else ''} on the values of a tensor).\n"
            f"  Asked at: {line or 'an unknown line'}\n"
            f"  To fix it, say what is true before this line: {check}.\n"
            "  Or choose without knowing: guard_or_false(expression) of torch.fx.experimental.symbolic_shapes.",
        )

    # -- results -------------------------------------------------------------------------------------------------------
    def check_recorded(self) -> None:
        """AssertionError when a recorded fact doesn't hold for the sizes that were met: a check of this class, for its tests and for bug reports."""
        for g in self.guards:
            known = not isinstance(g.relation, bool) and all(s in self.hints for s in R.symbols(g.relation))
            if known and not R.evaluate(g.relation, self.hints):
                raise AssertionError(f"recorded {g.relation} at {g.line}, which the sizes that were met contradict")

    def result(self) -> list[Guard]:
        """Guards over the symbols of the inputs: the recorded ones with their lines, then what ranges say."""
        if config.check_shape_env_recorded_events:
            self.check_recorded()
        out = [g for g in self.guards if not isinstance(g.relation, bool)]
        for s, o in self.origins.items():
            if not isinstance(s, Symbol) or not o.sources:
                continue
            least = 2 if self.specialize_zero_one and s in self.hints else 0
            if s.name not in self._sizes() or o.is_number:
                least = -INF
            lo = least if o.lo is None else max(least, o.lo)
            if lo != -INF:
                out.append(Guard(Rel(">=", E.of(s) - lo), None))
            if o.hi is not None and o.hi != INF:
                out.append(Guard(Rel(">=", o.hi - E.of(s)), None))
        return out

    def _sizes(self):
        return {s.name for s in self._duck.values()} | {
            s.name for s in self.origins if isinstance(s, Symbol) and s.lo >= 0
        }

    def check_constraints(self) -> None:
        """ConstraintViolationError for symbols marked dynamic that the program made constant or narrower."""
        problems = []
        for s, o in self.origins.items():
            if o.dynamic != "strict":
                continue
            where = ", ".join(map(_source_name, o.sources)) or s.name
            value = self.replacements.get(s)
            guard = next((g for g in self.guards if s in R.symbols(g.relation) and g.specializes), None)
            if isinstance(value, int) or s.lo == s.hi:
                value = value if isinstance(value, int) else s.lo
                problems.append(
                    f"You marked {where} as dynamic but your code specialized it to be a constant ({value}). "
                    f"If you're using mark_dynamic, either remove it or use maybe_mark_dynamic."
                    + (f" The constant comes from {guard.relation!r}, asked at {guard.line}." if guard else "")
                )
            elif (o.lo is not None and s.lo > o.lo) or (o.hi is not None and s.hi < o.hi):
                g = next((g for g in self.guards if s in R.symbols(g.relation)), None)
                problems.append(
                    f"Not all values of {where} in the range {o.lo if o.lo is not None else 0} <= {s.name} <= "
                    f"{o.hi if o.hi is not None else 'inf'} are valid: the program assumes {s.lo} <= {s.name} <= {s.hi}"
                    + (f" ({g.relation!r}, asked at {g.line})" if g else "")
                )
        if problems:
            text = "\n".join(f"  {i}. {p}" for i, p in enumerate(problems, 1))
            raise ConstraintViolationError(f"Constraints violated:\n{text}")


def _source_name(source) -> str:
    name = getattr(source, "name", None)
    return name() if callable(name) else str(name or source)
