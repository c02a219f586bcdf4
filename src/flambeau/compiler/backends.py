"""Backends by name. A backend is ``backend(gm, example_inputs) -> callable``; aot and inductor are imported when first used."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from flambeau.base import upper_levels
from flambeau.base.loading import is_whole
from flambeau.dynamo.config import config
from flambeau.dynamo.exc import TorchDynamoException

__all__ = [
    "aot_autograd",
    "get_default_backend",
    "list_backends",
    "lookup_backend",
    "register_backend",
    "registered_name",
    "set_default_backend",
    "watched",
]

_backends: dict[str, Callable] = {}
_tags: dict[str, tuple[str, ...]] = {}


class InvalidBackend(TorchDynamoException):
    """No backend of this name."""

    def __init__(self, name: str):
        super().__init__(f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available backends.")


def register_backend(compiler_fn: Callable | None = None, name: str | None = None, tags=()):
    """Make a backend known by name. Usable as ``@register_backend`` and ``@register_backend(name=...)``."""
    if compiler_fn is None:
        return lambda fn: register_backend(fn, name, tags)
    if not callable(compiler_fn):
        raise TypeError(f"register_backend expects a callable, got {type(compiler_fn).__name__}")
    key = name or compiler_fn.__name__
    if _backends.get(key, compiler_fn) is not compiler_fn:
        raise RuntimeError(f"duplicate backend name: {key}")
    _backends[key], _tags[key] = compiler_fn, tuple(tags)
    return compiler_fn


def list_backends(exclude_tags=("debug", "experimental")) -> list[str]:
    """Names of the registered backends, without those tagged with one of ``exclude_tags``."""
    return sorted(n for n in _backends if not set(_tags[n]) & set(exclude_tags or ()))


def lookup_backend(backend: str | Callable) -> Callable:
    """The backend of that name, or the function itself. InvalidBackend for a name that nobody registered."""
    if isinstance(backend, str):
        if backend not in _backends:
            raise InvalidBackend(backend)
        return _backends[backend]
    if not callable(backend):
        raise TypeError(f"backend must be a name or a callable, got {type(backend).__name__}")
    return backend


_default: list[str | Callable] = ["inductor"]


def get_default_backend() -> str | Callable:
    """What ``compile()`` uses unless it is given a backend."""
    return _default[0]


def set_default_backend(backend: str | Callable | None) -> None:
    """``compile()`` uses this backend unless it is given one; None: inductor again."""
    if backend is not None:
        lookup_backend(backend)
    _default[0] = "inductor" if backend is None else backend


def registered_name(backend: Callable) -> str | None:
    """The name under which a backend is known, if any."""
    return next((name for name, fn in _backends.items() if fn is backend), None)


def watched(compiler_fn: Callable, stage: str) -> Callable:
    """``compiler_fn`` under the eyes of the debugging tools that the settings ask for at the time of the call: ``config.repro_after`` and
    ``config.verify``. ``stage``: ``"dynamo"`` for backends, ``"aot"`` for compilers of ATen graphs."""

    @functools.wraps(compiler_fn)
    def compiler(gm, example_inputs, **kwargs):
        fn = compiler_fn
        if config.verify and (stage == "aot" or compiler_fn is not _backends["inductor"]):
            fn = functools.partial(upper_levels.ask("config.verify"), fn)
        if config.repro_after == stage:
            fn = functools.partial(upper_levels.ask("config.repro_after"), fn, stage)
        return fn(gm, example_inputs, **kwargs)

    if hasattr(compiler_fn, "recall"):
        compiler.recall = lambda *key: None if config.verify or config.repro_after else compiler_fn.recall(*key)
    return compiler


def aot_autograd(**compilers) -> Callable:
    """A backend that differentiates ahead of time: ``fw_compiler`` and ``bw_compiler`` get ATen-level graphs (see flambeau.aot)."""
    return importlib.import_module("flambeau.aot").aot_autograd(**compilers)


@register_backend(tags=("debug",))
def eager(gm, example_inputs, **kwargs):
    return gm.forward


@register_backend(tags=("debug",))
def eager_noexcept(gm, example_inputs, **kwargs):
    def run(*args):
        try:
            return gm.forward(*args)
        except Exception as e:
            raise RuntimeError("Unexpected exception when running generated GraphModule") from e

    return run


@register_backend(tags=("debug",))
def aot_eager(gm, example_inputs, **kwargs):
    if not is_whole("flambeau.aot"):
        return gm.forward
    return importlib.import_module("flambeau.aot").aot_eager(gm, example_inputs, **kwargs)


def _of_aot(name: str) -> Callable:
    """A backend for tests and debugging that stands in flambeau.aot, which is loaded when it is first used."""

    def backend(gm, example_inputs, **kwargs):
        if not is_whole("flambeau.aot"):
            return gm.forward
        return getattr(importlib.import_module("flambeau.aot.debug_backends"), name)(gm, example_inputs, **kwargs)

    backend.reads_memory = name != "pre_dispatch_eager"  # as aot_eager
    return register_backend(backend, name, tags=("debug",))


aot_eager_decomp_partition = _of_aot("aot_eager_decomp_partition")
aot_eager_default_partitioner = _of_aot("aot_eager_default_partitioner")
pre_dispatch_eager = _of_aot("pre_dispatch_eager")


@register_backend
def inductor(gm, example_inputs, options=None, mode=None, **kwargs):
    """``options``: settings of ``torch._inductor.config`` for this graph, by dotted name; those that aren't built are passed over. ``cache``: False
    is ``force_disable_caches``. ``mode`` "max-autotune" and "max-autotune-no-cudagraphs": the setting ``max_autotune``;
    "reduce-overhead" and "max-autotune": ``triton.cudagraphs``."""
    if mode is not None and mode.startswith("max-autotune"):
        options = {**(options or {}), "max_autotune": True}
    if mode in ("reduce-overhead", "max-autotune"):
        options = {**(options or {}), "triton.cudagraphs": True}
    if options:
        if options.get("cache") is False:
            options = {**options, "force_disable_caches": True}
        settings = importlib.import_module("flambeau.inductor.settings").config
        named = {k.replace("-", "_"): v for k, v in options.items()}
        with settings.patch({k: v for k, v in named.items() if settings.built(k)}):
            return inductor(gm, example_inputs)
    if not all(map(is_whole, ("flambeau.aot", "flambeau.inductor", "flambeau.inductor.compile"))):
        return gm.forward
    aot = importlib.import_module("flambeau.aot")
    package: Any = importlib.import_module("flambeau.inductor")
    backend = aot.aot_autograd(
        fw_compiler=watched(package.compile_graph, "aot"),
        inference_compiler=watched(package.compile_frozen, "aot") if package.config.freezing else None,
        partition_fn=aot.min_cut_rematerialization_partition,
    )
    return backend(gm, example_inputs)


aot_eager.reads_memory = True  # its graphs are made for plain tensors, not for those of a transform
inductor.hides_operators = True  # its kernels are not calls that a dispatch mode sees
