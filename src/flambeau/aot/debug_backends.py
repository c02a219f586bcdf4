"""Backends that show one stage of the compiler alone, for tests and for the search of an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base import upper_levels
from ..proxy.make_fx import make_fx
from .api import aot_module_simplified, nop
from .backends import aot_autograd
from .partitioners import min_cut_rematerialization_partition

__all__ = ["aot_eager_decomp_partition", "aot_eager_default_partitioner", "pre_dispatch_eager"]


def pre_dispatch_eager(gm: Any, example_inputs: list[Any], **_options) -> Callable:
    """A backend that runs the graph as ``make_fx(pre_dispatch=True)`` records it: of operators, before they are differentiated."""
    return make_fx(gm.forward, pre_dispatch=True, tracing_mode="fake", _allow_non_fake_inputs=True)(*example_inputs)


def aot_eager_decomp_partition(gm: Any, example_inputs: list[Any], **_options) -> Callable:
    """As ``aot_eager``, with operators taken apart that ``torch._decomp.core_aten_decompositions`` names."""
    settings = {
        "partition_fn": min_cut_rematerialization_partition,
        "decompositions": upper_levels.ask("core decompositions")(),
    }
    return aot_module_simplified(gm, example_inputs, nop, **settings)


aot_eager_default_partitioner = aot_autograd(fw_compiler=nop)
