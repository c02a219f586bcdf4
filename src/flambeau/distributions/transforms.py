"""Invertible maps with the logarithm of their Jacobian's determinant, for distributions; ``biject_to`` and ``transform_to`` by constraint."""

from __future__ import annotations

import functools
import math
import operator
import weakref
from collections.abc import Sequence
from typing import Any

from ..base.dtypes import finfo
from ..base.shapes import Size, broadcast_shapes
from ..core.bindings import function
from ..core.tensor import Tensor
from ..nn import functional as F
from . import constraints
from .constraints import Constraint
from .distribution import Distribution
from .utils import sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = ["AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform"]
__all__ += ["CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform"]
__all__ += ["PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform"]
__all__ += [
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
    "Transform",
    "identity_transform",
]

_cat, _stack, _zeros, _eye, _cholesky = (function(n) for n in ("cat", "stack", "zeros", "eye", "linalg_cholesky"))
_scalar_tensor = function("scalar_tensor")


class Transform:
    """``y = t(x)``, ``x = t.inv(y)``, ``t.log_abs_det_jacobian(x, y)``. ``cache_size=1`` remembers the last pair, so that the inverse is exact."""

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint
    # A weak reference to the inverse; an inverse holds its transform here.
    _inv: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv, self._cached = cache_size, None, (None, None)

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = _Inverse(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Tensor | int:
        raise NotImplementedError(
            f"{type(self).__name__}.sign is not implemented: the transform isn't known to be monotone"
        )

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x):
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__}._call is not implemented")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__}._inverse is not implemented")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}.log_abs_det_jacobian is not implemented")

    def __repr__(self):
        return type(self).__name__ + "()"

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape


class _Inverse(Transform):
    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)
    sign = property(lambda self: self._inv.sign)
    inv = property(lambda self: self._inv)

    def __getstate__(self):
        return self.__dict__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _Inverse) and self._inv == other._inv

    __hash__ = object.__hash__

    def __repr__(self):
        return f"_InverseTransform({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """One after another; events have as many dimensions as the widest part needs."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        found, dims = self.parts[0].domain, self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return constraints.independent(found, dims - found.event_dim) if dims > found.event_dim else found

    @property
    def codomain(self) -> Constraint:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        found, dims = self.parts[-1].codomain, self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return constraints.independent(found, dims - found.event_dim) if dims > found.event_dim else found

    bijective = property(lambda self: all(p.bijective for p in self.parts))
    sign = property(lambda self: functools.reduce(operator.mul, (p.sign for p in self.parts), 1))

    @property
    def inv(self) -> Transform:
        inverse = None if self._inv is None else self._inv()
        if inverse is None:
            inverse = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv = weakref.ref(inverse)
            inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return x.new_zeros(x.shape)
        xs = [x]
        for part in self.parts[:-1]:
            xs.append(part(xs[-1]))
        xs.append(y)
        terms, dims = [], self.domain.event_dim
        for part, a, b in zip(self.parts, xs[:-1], xs[1:]):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(a, b), dims - part.domain.event_dim))
            dims += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return functools.reduce(lambda s, p: p.forward_shape(s), self.parts, shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return functools.reduce(lambda s, p: p.inverse_shape(s), reversed(self.parts), shape)

    def __repr__(self):
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class IndependentTransform(Transform):
    """The last batch dimensions as event dimensions: their log-determinants are summed."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )
    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of ``in_shape`` as events of ``out_shape``. ValueError when their sizes differ."""

    bijective = True

    def __init__(self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = tuple(in_shape), tuple(out_shape)
        if math.prod(self.in_shape) != math.prod(self.out_shape):
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x):
        return x.reshape(tuple(x.shape[: x.dim() - len(self.in_shape)]) + self.out_shape)

    def _inverse(self, y):
        return y.reshape(tuple(y.shape[: y.dim() - len(self.out_shape)]) + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self._replaced(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _replaced(shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != old:
            raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {old}")
        return tuple(shape[:cut]) + new


class _Alone(Transform):
    """A transform without parameters: all of its class are equal."""

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = object.__hash__


def _monotone(name, codomain, call, inverse, jacobian, doc, domain=constraints.real, sign=1):
    """A transform of single numbers without parameters."""
    return type(
        name,
        (_Alone,),
        {
            "domain": domain,
            "codomain": codomain,
            "bijective": True,
            "sign": sign,
            "_call": lambda self, x: call(x),
            "_inverse": lambda self, y: inverse(y),
            "log_abs_det_jacobian": lambda self, x, y: jacobian(x, y),
            "__doc__": doc,
            "__module__": __name__,
        },
    )


def _sigmoid(x):
    info = finfo(x.dtype)
    return x.sigmoid().clamp(min=info.tiny, max=1.0 - info.eps)


def _logit(y):
    info = finfo(y.dtype)
    y = y.clamp(min=info.tiny, max=1.0 - info.eps)
    return y.log() - (-y).log1p()


ExpTransform = _monotone(
    "ExpTransform", constraints.positive, lambda x: x.exp(), lambda y: y.log(), lambda x, y: x, "exp(x)."
)
SigmoidTransform = _monotone(
    "SigmoidTransform",
    constraints.unit_interval,
    _sigmoid,
    _logit,
    lambda x, y: -F.softplus(-x) - F.softplus(x),
    "1 / (1 + exp(-x)).",
)
SoftplusTransform = _monotone(
    "SoftplusTransform", constraints.positive, F.softplus, lambda y: (-y).expm1().neg().log() + y, lambda x, y: -F.softplus(-x),
    "log(1 + exp(x)).",
)  # fmt: skip
TanhTransform = _monotone(
    "TanhTransform", constraints.interval(-1.0, 1.0), lambda x: x.tanh(), lambda y: y.atanh(),
    lambda x, y: 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x)), "tanh(x).",
)  # fmt: skip


class AbsTransform(_Alone):
    """|x|: not one-to-one."""

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class PowerTransform(Transform):
    """x ** exponent of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else _scalar_tensor(float(exponent))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)

    sign = property(lambda self: self.exponent.sign())

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool((self.exponent == other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return _broadcast(shape, self.exponent)

    inverse_shape = forward_shape


def _broadcast(shape, *values):
    return Size(broadcast_shapes(tuple(shape), *(tuple(getattr(v, "shape", ())) for v in values)))


def _of_vectors(shape):
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return shape


class AffineTransform(Transform):
    """loc + scale * x, for events of ``event_dim`` dimensions."""

    bijective = True

    def __init__(self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    def _space(self):
        return constraints.real if self._event_dim == 0 else constraints.independent(constraints.real, self._event_dim)

    domain = codomain = property(_space)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other):
        same = lambda a, b: bool((a == b).all()) if isinstance(a == b, Tensor) else a == b  # noqa: E731
        return isinstance(other, AffineTransform) and same(self.loc, other.loc) and same(self.scale, other.scale)

    __hash__ = object.__hash__

    @property
    def sign(self) -> Tensor | int:
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        shape = x.shape
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log()
        else:
            result = x.new_full(x.shape, math.log(abs(self.scale)))
        if self.event_dim:
            result = result.expand(shape) if result.dim() < len(shape) or result.shape != shape else result
            result = sum_rightmost(result, self.event_dim)
            shape = shape[: len(shape) - self.event_dim]
        return result.expand(shape)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return _broadcast(shape, self.loc, self.scale)

    inverse_shape = forward_shape


class SoftmaxTransform(_Alone):
    """exp(x) normalised: onto the simplex, not one-to-one."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        p = (x - x.max(-1, True)[0]).exp()
        return p / p.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return _of_vectors(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(_Alone):
    """n numbers to n + 1 parts of a stick."""

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    @staticmethod
    def _left(x):
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x):
        z = _sigmoid(x - self._left(x).log())
        rest = (1 - z).cumprod(-1)
        return F.pad(z, [0, 1], value=1) * F.pad(rest, [1, 0], value=1)

    def _inverse(self, y):
        cut = y[..., :-1]
        left = y.shape[-1] - cut.new_ones(cut.shape[-1]).cumsum(-1)
        rest = (1 - cut.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return cut.log() - rest.log() + left.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._left(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape[:-1]) + (_of_vectors(shape)[-1] + 1,)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(shape[:-1]) + (_of_vectors(shape)[-1] - 1,)


class LowerCholeskyTransform(_Alone):
    """A matrix's lower triangle, its diagonal made positive by exp."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Alone):
    """L L^T of a LowerCholeskyTransform."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        lower = LowerCholeskyTransform()(x)
        return lower @ lower.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(_cholesky(y))


class CorrCholeskyTransform(_Alone):
    """n(n - 1)/2 numbers to the Cholesky factor of an n by n correlation matrix."""

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    @staticmethod
    def _size(count: int) -> int:
        n = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != count:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return n

    def _call(self, x):
        x = x.tanh()
        eps = finfo(x.dtype).eps
        x = x.clamp(min=-1 + eps, max=1 - eps)
        r = vec_to_tril_matrix(x, diag=-1)
        root = (1 - r * r).sqrt().cumprod(-1)
        r = r + _eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * F.pad(root[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        rest = (1 - (y * y).cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        rest = F.pad(rest[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(rest, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Tensor | None = None) -> Tensor:
        inner = 0.5 * tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2).log().sum(-1)
        return inner - 2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        n = self._size(shape[-1])
        return tuple(shape[:-1]) + (n, n)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return tuple(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


class CatTransform(Transform):
    """Transforms of consecutive parts along ``dim``, of ``lengths``."""

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.dim = dim

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self
            if self._cache_size == cache_size
            else CatTransform(self.transforms, self.dim, self.lengths, cache_size)
        )

    def _parts(self, x):
        at = 0
        for t, n in zip(self.transforms, self.lengths):
            yield t, x.narrow(self.dim, at, n)
            at += n

    def _call(self, x):
        return _cat([t(part) for t, part in self._parts(x)], self.dim)

    def _inverse(self, y):
        return _cat([t.inv(part) for t, part in self._parts(y)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for (t, a), (_, b) in zip(self._parts(x), self._parts(y)):
            terms.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return _cat(terms, dim) if dim < 0 else sum(terms)


class StackTransform(Transform):
    """A transform for each slice along ``dim``."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))
    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _call(self, x):
        return _stack([t(p) for t, p in zip(self.transforms, x.unbind(self.dim))], self.dim)

    def _inverse(self, y):
        return _stack([t.inv(p) for t, p in zip(self.transforms, y.unbind(self.dim))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim))
        return _stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], self.dim)


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1

    def __init__(self, distribution: Distribution, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return (
            self if self._cache_size == cache_size else CumulativeDistributionTransform(self.distribution, cache_size)
        )

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


identity_transform = ComposeTransform([])
