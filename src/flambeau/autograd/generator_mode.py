"""Generator functions under a grad mode: the steps of the generator run under it, the code between them doesn't. Capture traces this file."""

from __future__ import annotations

import functools
from collections.abc import Callable

__all__ = ["generator_under"]


def generator_under(make: Callable, fn: Callable) -> Callable:
    """The generator function ``fn`` with each step in a new block that ``make()`` gives."""

    @functools.wraps(fn)
    def generator(*args, **kwargs):
        gen = fn(*args, **kwargs)
        try:
            with make():
                response = gen.send(None)
            while True:
                try:
                    request = yield response
                except GeneratorExit:
                    with make():
                        gen.close()
                    raise
                except BaseException as e:
                    with make():
                        response = gen.throw(e)
                else:
                    with make():
                        response = gen.send(request)
        except StopIteration as stop:
            return stop.value

    return generator
