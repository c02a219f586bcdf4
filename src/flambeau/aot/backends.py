"""``aot_autograd(fw_compiler=...)``: a backend for captured graphs made of compilers for ATen graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .api import aot_module_simplified, nop
from .partitioners import min_cut_rematerialization_partition

__all__ = ["aot_autograd", "aot_eager", "make_boxed_compiler", "make_boxed_func"]


class AotAutograd:
    """``backend(gm, example_inputs)``; the keyword arguments are those of :func:`aot_module_simplified`."""

    reads_memory = True

    def __init__(self, **kwargs):
        self.__name__ = "compiler_fn"
        self.kwargs = kwargs

    def __call__(self, gm: Any, example_inputs: list[Any], **_options) -> Callable:
        return aot_module_simplified(gm, example_inputs, **self.kwargs)


def aot_autograd(
    *, fw_compiler: Callable, bw_compiler: Callable | None = None, inference_compiler: Callable | None = None, **kwargs
) -> AotAutograd:
    """A backend that traces captured graphs ahead of time and hands forward and backward graphs to compilers."""
    return AotAutograd(
        fw_compiler=fw_compiler, bw_compiler=bw_compiler, inference_compiler=inference_compiler, **kwargs
    )


aot_eager = aot_autograd(fw_compiler=nop, partition_fn=min_cut_rematerialization_partition)
aot_eager.__name__ = "aot_eager"


def make_boxed_func(f: Callable) -> Callable:
    """``g(list)`` calling ``f(*list)``, marked as taking a list."""

    def g(args):
        return f(*args)

    g._boxed_call = True
    return g


def make_boxed_compiler(compiler: Callable) -> Callable:
    """A compiler whose results take a list."""

    def boxed(gm, example_inputs):
        return make_boxed_func(compiler(gm, example_inputs))

    return boxed
