"""Functions that other workers ask for, run in the pool of this one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..futures import Future
from .functions import Unfinished, is_async

if TYPE_CHECKING:
    from ._agent import Agent

__all__ = ["answer", "execute", "finished"]


def execute(agent: Agent, call: tuple, context, done: Callable[[Any, BaseException | None], None]) -> None:
    """Run ``call`` (function, args, kwargs) and tell ``done`` its value or what it raised. Of a function marked by ``async_execution`` when its
    Future is complete."""
    function, args, kwargs = call
    try:
        with agent.contexts.entered(context):
            value = function(*args, **kwargs)
            if isinstance(value, Unfinished):
                value = value.future
            elif not is_async(function):
                done(value, None)
                return
        if not isinstance(value, Future):
            raise RuntimeError(
                "Functions decorated with @rpc.async_function must return a torch.futures.Future object, but got "
                f"{type(value).__module__}.{type(value).__qualname__}"
            )
    except BaseException as error:
        done(None, error)
        return
    work = agent.work
    with work.lock:
        work.active += 1
    value._inner.add_done_callback(lambda inner: work.run_here(finished, (inner, done)))


def finished(inner, done) -> None:
    """Tell ``done`` what a future has."""
    error = inner.exception()
    done(None if error is not None else inner.result(), error)


def answer(agent: Agent, source: int, number: int, call: tuple, context) -> None:
    """Run a call and send its value, or what it raised."""

    def done(value, error) -> None:
        if error is None:
            agent.reply(source, number, value, context)
        else:
            agent.fail(source, number, error)

    execute(agent, call, context, done)
