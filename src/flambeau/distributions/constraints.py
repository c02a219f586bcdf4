"""Where values of distributions and their parameters lie: objects whose ``check(value)`` gives a boolean tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.bindings import function
from ..core.tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
]
__all__ += [
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
]
__all__ += [
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
]
__all__ += [
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]

_stack = function("stack")
_cat, _eigvalsh = function("cat"), function("linalg_eigvalsh")


class Constraint:
    """``is_discrete``: whole numbers; ``event_dim``: dimensions that are checked together."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define check")

    def __repr__(self):
        return type(self).__name__.lstrip("_") + "()"


class _Made(Constraint):
    """Told by a name and one function."""

    _name: str
    _check: Callable[[Tensor], Tensor]

    def check(self, value: Tensor) -> Tensor:
        return self._check(value)

    def __repr__(self):
        return self._name


def _made(name: str, check, *, discrete: bool = False, event_dim: int = 0):
    """A constraint of a class of its own, which can be derived from and pickled: what is registered for one isn't found for another."""
    facts = {"_name": f"{name}()", "_check": staticmethod(check), "is_discrete": discrete, "event_dim": event_dim}
    cls = globals()[f"_{name}"] = type(f"_{name}", (_Made,), {**facts, "__module__": __name__})
    return cls()


class _Dependent(Constraint):
    """Depends on other parameters: can't be checked alone. Called with options it makes another of its kind."""

    def __init__(self, *, is_discrete: bool = NotImplemented, event_dim: int = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    is_discrete = property(lambda self: self._told("is_discrete"))
    event_dim = property(lambda self: self._told("event_dim"))

    def _told(self, name):
        value = getattr(self, f"_{name}")
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return type(self)(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property of a distribution that is a constraint depending on its parameters."""

    def __init__(
        self,
        fn: Callable[[Any], Constraint] | None = None,
        *,
        is_discrete: bool = NotImplemented,
        event_dim: int = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        _Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn):
        return type(self)(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: object) -> bool:
    """Whether a constraint depends on other parameters of its distribution."""
    return isinstance(constraint, _Dependent)


class _IndependentConstraint(Constraint):
    """A constraint whose last ``reinterpreted_batch_ndims`` dimensions must all hold."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims
        self.is_discrete = base_constraint.is_discrete
        self.event_dim = base_constraint.event_dim + reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        out = self.base_constraint.check(value)
        if out.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(
                f"Expected value.dim() >= {self.base_constraint.event_dim + self.reinterpreted_batch_ndims} but got {value.dim()}"
            )
        return out.reshape(*out.shape[: out.dim() - self.reinterpreted_batch_ndims], -1).all(-1)

    def __repr__(self):
        return f"{super().__repr__()[:-2]}({self.base_constraint}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What components of a mixture, the last dimension of their batch, ask of a value: each of them, of every one."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint
        self.is_discrete, self.event_dim = base_constraint.is_discrete, base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)).all(-1)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Interval(Constraint):
    """Numbers from ``lower_bound`` to ``upper_bound``, both included."""

    def __init__(self, lower_bound: Tensor | float, upper_bound: Tensor | float) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)

    def __repr__(self):
        return f"{super().__repr__()[:-2]}(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _HalfOpenInterval(_Interval):
    """Numbers from ``lower_bound`` to before ``upper_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Whole numbers from ``lower_bound`` to ``upper_bound``, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _GreaterThan(Constraint):
    """Numbers greater than ``lower_bound``."""

    def __init__(self, lower_bound: Tensor | float) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound

    def __repr__(self):
        return f"{super().__repr__()[:-2]}(lower_bound={self.lower_bound})"


class _GreaterThanEq(_GreaterThan):
    """Numbers from ``lower_bound`` on."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class _IntegerGreaterThan(_GreaterThanEq):
    """Whole numbers from ``lower_bound`` on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class _LessThan(Constraint):
    """Numbers less than ``upper_bound``."""

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound

    def __repr__(self):
        return f"{super().__repr__()[:-2]}(upper_bound={self.upper_bound})"


class _IntegerLessThan(_LessThan):
    """Whole numbers up to ``upper_bound``, which is included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _Multinomial(Constraint):
    """Whole numbers that sum to at most ``upper_bound``."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound: Tensor | float) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Cat(Constraint):
    """Constraints of consecutive parts along ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        parts, start = [], 0
        for c, n in zip(self.cseq, self.lengths):
            parts.append(c.check(value.narrow(self.dim, start, n)))
            start += n
        return _cat(parts, self.dim)


class _Stack(Constraint):
    """Constraints of slices along ``dim``."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = property(lambda self: self._event_dim())

    def _event_dim(self) -> int:
        of_parts = max(c.event_dim for c in self.cseq)
        # The dimension that they are stacked along counts where it lies within an event.
        return of_parts + (self.dim + of_parts < 0)

    def check(self, value: Tensor) -> Tensor:
        return _stack([c.check(v) for v, c in zip(value.unbind(self.dim), self.cseq)], self.dim)


# The names that programs use.
dependent_property = _DependentProperty
independent = _IndependentConstraint
interval = _Interval
half_open_interval = _HalfOpenInterval
integer_interval = _IntegerInterval
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
cat = _Cat
stack = _Stack


def _square(v):
    return v.new_full(v.shape[:-2], v.shape[-2] == v.shape[-1]).bool()


def _symmetric(v):
    return _square(v) & ((v - v.transpose(-2, -1)).abs() < 1e-6).all(-2).all(-1)


def _lower(v):
    return (v.tril() == v).reshape(*v.shape[:-2], -1).all(-1)


def _positive_definite(v):
    return _symmetric(v) & (_eigvalsh(v) > 0).all(-1)


dependent = _Dependent()
boolean = _made("Boolean", lambda v: (v == 0) | (v == 1), discrete=True)
one_hot = _made("OneHot", lambda v: ((v == 0) | (v == 1)).all(-1) & (v.sum(-1) == 1), discrete=True, event_dim=1)
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
real = _made("Real", lambda v: v == v)
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _made("Simplex", lambda v: (v >= 0).all(-1) & ((v.sum(-1) - 1).abs() < 1e-6), event_dim=1)
lower_triangular = _made("LowerTriangular", _lower, event_dim=2)
lower_cholesky = _made("LowerCholesky", lambda v: _lower(v) & (v.diagonal(dim1=-2, dim2=-1) > 0).all(-1), event_dim=2)
corr_cholesky = _made(
    "CorrCholesky",
    lambda v: lower_cholesky.check(v) & ((v * v).sum(-1) - 1).abs().lt(1e-5 * v.shape[-1] * 10).all(-1),
    event_dim=2,
)
square = _made("Square", _square, event_dim=2)
symmetric = _made("Symmetric", _symmetric, event_dim=2)
positive_definite = _made("PositiveDefinite", _positive_definite, event_dim=2)
positive_semidefinite = _made(
    "PositiveSemidefinite", lambda v: _symmetric(v) & (_eigvalsh(v) >= 0).all(-1), event_dim=2
)
