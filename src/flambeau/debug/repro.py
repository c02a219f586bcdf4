"""Scripts that reproduce a failure of a compiler, and their minifier.

TORCHDYNAMO_REPRO_AFTER names the stage: ``dynamo`` (captured graphs, any backend) or ``aot`` (ATen graphs, forward and backward).
TORCHDYNAMO_REPRO_LEVEL says what is written, and when:

| level | |
| --- | --- |
| 1 | ``repro.py`` when compiling fails |
| 2 | ``minifier_launcher.py`` when compiling fails; running it writes the small ``repro.py`` beside it |
| 3 | ``minifier_launcher.py`` always, before compiling: for crashes of the process |
| 4 | as 2, and when a result differs from plain code by more than ``config.repro_tolerance``, which is also raised as AccuracyError |

Both scripts end with the failure itself, so their exit status is 1 as long as the defect is there.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import re
import sys

import flambeau as torch
from flambeau.base import pytree
from flambeau.compiler.backends import registered_name
from flambeau.dynamo.config import config
from flambeau.fx import GraphModule
from flambeau.inductor import debug as inductor_debug
from flambeau.proxy import make_fx

from . import scripts
from .compare import AccuracyError, clone_inputs, difference, reference, run_plainly
from .minify import minify

__all__ = ["run_minifier", "run_repro", "watch"]

log = logging.getLogger("flambeau.debug")


# ---- in the program that fails -------------------------------------------------------------------------------------------


def watch(compiler_fn, stage: str, gm: GraphModule, inputs, **kwargs):
    """``compiler_fn(gm, inputs)``, with a script left behind when it fails (see the levels above)."""
    level = config.repro_level
    if level not in (1, 2, 3, 4):
        raise ValueError(f"TORCHDYNAMO_REPRO_LEVEL is 1, 2, 3 or 4, not {level}")
    options = {"stage": stage, "backend": _backend_name(compiler_fn) if stage == "dynamo" else "inductor"}
    if level == 3:
        _launcher(gm, inputs, "written before compiling (level 3)", check="crash", **options)
    try:
        compiled = compiler_fn(gm, inputs, **kwargs)
    except Exception as e:
        if level == 1:
            path = _path("repro.py")
            scripts.write(path, gm, inputs, "run_repro", _headline(e), check="crash", **options)
            e.add_note(f"A script that fails in the same way was written to {path}.")
        elif level != 3:
            e.add_note(_told(_launcher(gm, inputs, _headline(e), check="crash", **options)))
        raise
    return _accuracy_checked(compiled, gm, options) if level == 4 else compiled


def _accuracy_checked(compiled, gm, options):
    @functools.wraps(compiled)
    def run(*args):
        kept = clone_inputs(args)
        out = compiled(*args)
        text = _differs(gm, kept, lambda copies: out)
        if text is not None:
            path = _launcher(gm, kept, f"accuracy: {text}", check="accuracy", **options)
            error = AccuracyError(
                f"accuracy: compiled code differs from plain code in a graph after {options['stage']}: {text}"
            )
            error.add_note(_told(path))
            raise error
        return out

    return run


def _told(path: str) -> str:
    return f"A minifier script was written to {path}. Run it to find the smallest part of the graph that still fails."


def _headline(e: BaseException) -> str:
    return f"{type(e).__name__}: {e}"


def _path(name: str) -> str:
    return os.path.join(inductor_debug.directory(), "minifier", name)


def _launcher(gm, inputs, comment: str, **options) -> str:
    path = scripts.write(_path("minifier_launcher.py"), gm, inputs, "run_minifier", comment, **options)
    log.warning("%s", _told(path))
    return path


def _backend_name(fn) -> str:
    """A name by which a script finds the backend again: a registered one, or ``module:qualified.name``."""
    while isinstance(fn, functools.partial):  # options, or another tool around it
        fn = fn.args[0] if fn.args else fn.func
    return registered_name(fn) or f"{getattr(fn, '__module__', '')}:{getattr(fn, '__qualname__', repr(fn))}"


def _differs(gm, inputs, run) -> str | None:
    """How ``run(copies)`` differs from the graph run plainly, on the same inputs and the same random numbers."""
    state = torch.random.get_rng_state()
    out = run(clone_inputs(inputs))
    after = torch.random.get_rng_state()
    torch.random.set_rng_state(state)
    want, _ = run_plainly(gm, inputs)
    torch.random.set_rng_state(state)
    judge = reference(gm, inputs)
    torch.random.set_rng_state(after)
    return difference(pytree.tree_flatten(out)[0], want, judge, config.repro_tolerance)


# ---- in the scripts ------------------------------------------------------------------------------------------------------


def _resolve(backend: str):
    """The compiler that ``backend`` names, see _backend_name."""
    module, _, name = backend.rpartition(":")
    if not module:
        return torch._dynamo.lookup_backend(backend)
    if module == "__main__" or "<" in name:
        raise ValueError(
            f"the backend {backend} can't be imported from here: give the script one that can, by editing backend="
        )
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _graph(module, args, stage: str) -> GraphModule:
    """The graph that the compiler of this stage gets for the script's module."""
    if stage == "aot":
        return make_fx(module.forward, tracing_mode="fake", _allow_non_fake_inputs=True)(*args)
    captured = []

    def record(gm, inputs):
        captured.append(gm)
        return gm.forward

    torch.compile(module, backend=record, fullgraph=True)(*clone_inputs(args))
    return captured[0]


def _attempt(gm, args, stage: str, backend: str, check: str) -> tuple[str | None, BaseException | None]:
    """(what is wrong, the exception) of compiling and running the graph once; (None, None) when nothing is."""
    try:
        if stage == "aot":
            compile_graph = importlib.import_module("flambeau.inductor").compile_graph
            compiled = compile_graph(gm, args)
        else:
            compiled = _resolve(backend)(gm, clone_inputs(args))
        if check == "accuracy":
            text = _differs(gm, args, lambda copies: compiled(*copies))
            return text, AccuracyError(f"accuracy: {text}") if text else None
        compiled(*clone_inputs(args))
    except Exception as e:
        return _signature(e), e
    return None, None


def _signature(e: BaseException) -> str:
    """What stays the same of an error while the graph shrinks: its type and first line without numbers and names of nodes."""
    return f"{type(e).__name__}: {re.sub(r'[0-9]+', 'N', str(e).splitlines()[0] if str(e) else '')}"


def run_repro(module, args, *, path: str, stage: str, backend: str, check: str) -> None:
    """Compile and run the module of a script as its program did; the failure is raised, exit status 0 says that it is gone."""
    wrong, error = _attempt(_graph(module, args, stage), args, stage, backend, check)
    if error is not None:
        raise error
    print(f"{os.path.basename(path)}: nothing fails any more")


def run_minifier(module, args, *, path: str, stage: str, backend: str, check: str) -> None:
    """Write ``repro.py`` beside the script: the smallest part of its graph that still fails in the same way."""
    gm = _graph(module, args, stage)
    wrong, error = _attempt(gm, args, stage, backend, check)
    if error is None:
        print(f"{os.path.basename(path)}: nothing fails, so there is nothing to make smaller")
        return

    def fails(candidate, inputs) -> bool:
        found, _ = _attempt(candidate, inputs, stage, backend, check)
        return found is not None and (check == "accuracy" or found == wrong)

    small, inputs = minify(gm, args, fails, lambda text: print(text, file=sys.stderr))
    target = os.path.join(os.path.dirname(os.path.abspath(path)), "repro.py")
    options = {"stage": stage, "backend": backend, "check": check}
    scripts.write(target, small, inputs, "run_repro", f"Made smaller from {path}\n{_headline(error)}", **options)
    print(f"written: {target}")
