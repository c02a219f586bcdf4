"""What shape rules ask of sizes and values: checks that symbolic numbers remember, and symbols for what depends on data."""

from __future__ import annotations

import contextlib
import threading

from . import relations as R
from .errors import DataDependentOutputException, DynamicOutputShapeException
from .expr import INF
from .shape_env import ShapeEnv
from .symint import SymBool, SymInt, expression

__all__ = [
    "CHECKS",
    "about_layout",
    "check",
    "check_creatable",
    "check_index",
    "check_is_size",
    "check_not_implemented",
    "check_type",
    "check_value",
    "constrain_as_size",
    "current_env",
    "data_dependent_number",
    "data_dependent_size",
    "shape_rules",
    "without_symbols",
]


class _Active(threading.local):
    env: ShapeEnv | None = None


_active = _Active()


@contextlib.contextmanager
def shape_rules(env: ShapeEnv):
    """Shape rules run: what depends on data gets a symbol of ``env``, sizes among it are taken to be neither 0 nor 1."""
    before, _active.env = _active.env, env
    env.oblivious += 1
    try:
        yield
    finally:
        env.oblivious -= 1
        _active.env = before


_nothing = contextlib.nullcontext()


def without_symbols():
    """Context manager: a shape rule that runs on tensors with data gets no symbol for what depends on it."""
    return _nothing if _active.env is None else _no_symbols()


@contextlib.contextmanager
def _no_symbols():
    before, _active.env = _active.env, None
    try:
        yield
    finally:
        _active.env = before


def about_layout(shape):
    """Context manager: what is asked about ``shape`` decides on a layout, as in shape rules. Sizes that may be 0 or 1 are taken not to be."""
    env = next((n.env for n in shape if type(n) is SymInt), None)
    return _nothing if env is None else shape_rules(env)


def current_env() -> ShapeEnv | None:
    """The environment whose symbols stand for what depends on data, while shape rules run."""
    return _active.env


def data_dependent_size(what: str, hi=INF):
    """A size that only the values of the arguments tell. DataDependentOutputException where no symbol may stand for it."""
    env = _active.env
    if env is None or not env.allow_data_dependent_sizes:
        raise DynamicOutputShapeException(f"{what}: the size of the result depends on the values of the arguments")
    out = env.create_unbacked_symint(size=True)
    if hi is not INF:
        env.learn(R.compare("ge", expression(hi), out.expr))
    return out


def data_dependent_number(what: str, kind: str):
    """The "int", "float" or "bool" that a tensor holds. DataDependentOutputException where no symbol may stand for it."""
    env = _active.env
    if env is None or not env.allow_data_dependent_numbers:
        raise DataDependentOutputException(
            f"{what}: the value of a tensor without data (fake or meta) is needed, and it has none. Likely this is data-dependent control flow."
        )
    return getattr(env, f"create_unbacked_sym{kind}")()


_UNMET = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def check(condition, message=None, error=RuntimeError) -> None:
    """``torch._check``: what is symbolic is remembered as true and checked when the program runs."""
    if type(condition) is SymBool:
        condition.env.expect(condition.expr, str(message() if callable(message) else message or ""))
    elif not condition:
        raise error(str(message() if callable(message) else message or _UNMET))


def check_creatable(n, shape) -> None:
    """A tensor of this shape, with the size ``n``, is made."""
    check(n >= 0, lambda: f"Trying to create tensor with negative dimension {n}: {list(shape)}")


def check_is_size(i, message=None, *, max=None) -> None:
    """``torch._check_is_size``: ``i`` is the size of something (at least 0, at most ``max``)."""
    check(i >= 0, message)
    if max is not None:
        check(i <= max, message)


def check_value(cond, message=None) -> None:
    """``torch._check_value``: ValueError when ``cond`` is false."""
    check(cond, message, ValueError)


def check_index(cond, message=None) -> None:
    """``torch._check_index``: IndexError when ``cond`` is false."""
    check(cond, message, IndexError)


def check_type(cond, message=None) -> None:
    """``torch._check_type``: TypeError when ``cond`` is false."""
    check(cond, message, TypeError)


def check_not_implemented(cond, message=None) -> None:
    """``torch._check_not_implemented``: NotImplementedError when ``cond`` is false."""
    check(cond, message, NotImplementedError)


CHECKS = (check_is_size, check_value, check_index, check_type, check_not_implemented)
constrain_as_size = check_is_size
