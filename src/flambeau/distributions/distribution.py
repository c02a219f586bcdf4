"""Distribution: batches of random variables with events of a shape."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Self

from ..autograd.grad_mode import no_grad
from ..base.shapes import Size
from ..core.tensor import Tensor
from . import constraints
from .constraints import Constraint
from .utils import lazy_property
from .validation import demand_all

__all__ = ["Distribution"]


class Distribution:
    """``sample``, ``rsample`` (with gradients) of shape sample_shape + batch_shape + event_shape; ``log_prob``, ``entropy``, ``mean``, ...

    Arguments are validated unless ``validate_args=False``: ValueError names the parameter and the constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            arg_constraints = {}
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint) or (
                name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            ):
                continue
            value = getattr(self, name)
            demand_all(constraint.check(value), partial(self._violated, name, value, constraint))

    def _violated(self, name: str, value, constraint) -> ValueError:
        return ValueError(
            f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
            f"constraint {constraint!r}, but found invalid values:\n{value}"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Distribution | None = None) -> Self:
        raise NotImplementedError(f"{type(self).__name__} does not define expand")

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _expanded(self, batch_shape, names, event_shape=(), _instance=None, cls=None):
        """A copy with the parameters expanded."""
        out = self._get_checked_instance(cls or type(self), _instance)
        batch_shape = Size(batch_shape)
        for name in names:
            if name in self.__dict__:
                value = self.__dict__[name]
                extra = value.shape[len(self._batch_shape) :] if value.dim() > len(self._batch_shape) else ()
                out.__dict__[name] = value.expand(tuple(batch_shape) + tuple(extra))
        Distribution.__init__(out, batch_shape, event_shape, validate_args=False)
        out._validate_args = self._validate_args
        return out

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Constraint]:
        raise NotImplementedError(f"{type(self).__name__} does not define arg_constraints")

    @property
    def support(self) -> Constraint:
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define mean")

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define rsample")

    def sample_n(self, n: int) -> Tensor:
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define cdf")

    def icdf(self, value: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define enumerate_support")

    def entropy(self) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define entropy")

    def perplexity(self) -> Tensor:
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()) -> Size:
        return Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def _validate_sample(self, value) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        dims = len(self._event_shape)
        if tuple(value.shape[value.dim() - dims :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}."
            )
        for i, j in zip(reversed(value.shape), reversed(tuple(self._batch_shape) + tuple(self._event_shape))):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.size()} vs {self._batch_shape + self._event_shape}."
                )
        try:
            support = self.support
        except NotImplementedError:
            return
        if not constraints.is_dependent(support):
            demand_all(support.check(value), partial(self._outside, value, support))

    def _outside(self, value, support) -> ValueError:
        return ValueError(
            f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of the "
            f"distribution {self!r}, but found invalid values:\n{value}"
        )

    def __repr__(self):
        names = [k for k in self.arg_constraints if k in self.__dict__]
        show = lambda v: v if v.numel() == 1 else v.size()  # noqa: E731
        return f"{type(self).__name__}({', '.join(f'{k}: {show(self.__dict__[k])}' for k in names)})"
