"""``config.strict_calls``: every call of a compiled function also runs plainly, on copies, and the two are compared: results (identity with what
was there before too), raised errors, prints, changes to whatever the call can reach, random numbers drawn, and gradients. StrictCallError names
the first difference. For tests: a call costs more than twice a plain one.

A call that can't be made twice (it takes an iterator that has begun, say) is made once; ``counts`` says how many, and why.
"""

from __future__ import annotations

import collections
import contextlib
import contextvars
import io
import sys
import threading
import warnings
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import _C, _frame

from .reach import CannotTell, World, describe, library_state

__all__ = ["StrictCallError", "call", "counts"]

ASK, RUN, PLAINLY = 0, 1, 2
counts: collections.Counter = collections.Counter()


class StrictCallError(AssertionError):
    """Compiled and plain code did something different."""


class watching:
    def __init__(self, how: int):
        self.how = how

    def __enter__(self):
        self.old = _frame.set_watching(self.how)

    def __exit__(self, *exc):
        _frame.set_watching(self.old)


def call(compiled, /, *args, **kwargs):
    """``compiled(*args, **kwargs)``, compared with the plain function."""
    try:
        why = unable()
        if why:
            raise CannotTell(why)
        world = World(*args, *kwargs.values(), compiled.fn)
        world.copies()
        if "is_compiling" in world.names:
            raise CannotTell("it asks whether it is compiled")
    except CannotTell as e:
        counts[str(e)] += 1
        with watching(RUN):
            return compiled(*args, **kwargs)
    counts["compared"] += 1
    before, hooked = world.remember(), has_hooks(world)
    try:
        with world.taken_aside(), watching(PLAINLY):
            versions = [t._writes for t in world.tensors]
            plain = Outcome(world, lambda: contextvars.copy_context().run(compiled.fn, *args, **kwargs))
            unwritten = [not hooked and differentiable(t) and t._writes == v for t, v in zip(world.tensors, versions)]
            plain.differentiate(unwritten)
            plain.forget()
    finally:
        world.restore(before)
    tee = Tee(sys.stdout)
    with watching(RUN):
        with contextlib.redirect_stdout(tee):
            real = Outcome(world, lambda: compiled(*args, **kwargs), quiet=False)
    real.printed = tee.text.getvalue()
    after = world.remember()
    real.differentiate(unwritten)
    world.restore(after)
    where = None if of_compiler(real.error) else plain.differs(real)
    result, error = real.result, real.error
    real.forget()
    if where is not None:
        raise StrictCallError(f"{compiled.fn.__qualname__}: plain and compiled differ in {where}")
    if error is not None:
        try:
            raise error
        finally:
            del error
    return result


def of_compiler(error) -> bool:
    """Whether capture or a setting of it refused the call."""
    return type(error).__module__ in (
        "flambeau.dynamo.exc",
        "flambeau.base.shape_env",
        "flambeau.base.errors",
    ) or "set_stance" in str(error)


def unable() -> str | None:
    if threading.active_count() > 1:
        return "several threads"
    if any(_C.tls(k) for k in ("dispatch_modes", "function_modes", "transforms", "saved_hooks")):
        return "a mode or transform is active"
    return None


class Tee(io.TextIOBase):
    def __init__(self, to):
        self.to, self.text = to, io.StringIO()

    def write(self, s):
        self.text.write(s)
        return self.to.write(s)

    def flush(self):
        self.to.flush()


class Outcome:
    """One run: what came out, and what the world looks like after it."""

    def __init__(self, world: World, run, quiet: bool = True):
        self.world, self.error, self.result = world, None, None
        out = io.StringIO()
        try:
            if quiet:
                with contextlib.redirect_stdout(out), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.result = run()
            else:
                self.result = run()
        except Exception as e:
            self.error = e
        self.printed = out.getvalue()
        self.state = world.describe(self.error if self.error is not None else self.result)
        self.library = library_state()
        self.gradients: Any = None

    def forget(self) -> None:
        self.result = self.error = None

    def differentiate(self, wanted: list[bool]) -> None:
        """Gradients of the results by those of the world's tensors that are ``wanted``."""
        outs = [t for t in World(self.result, strict=False).tensors if differentiable(t)] if self.error is None else []
        ins = [t for t, w in zip(self.world.tensors, wanted) if w]
        if not outs or not ins or not _C.tls("grad_enabled"):
            return
        try:
            with warnings.catch_warnings(), torch._C.DisableTorchFunction(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                seeds = [torch.linspace(0.5, 1.5, o.numel(), dtype=o.dtype).reshape(o.shape) for o in outs]
                found = torch.autograd.grad(outs, ins, seeds, retain_graph=True, allow_unused=True)
                # Plain and compiled may say None or zeros where nothing flows.
                found = [torch.zeros_like(i) if g is None else g for g, i in zip(found, ins)]
            self.gradients = [describe([g], {}) for g in found]
        except RuntimeError as e:
            self.gradients = ("error", type(e).__name__)

    def differs(self, real: Outcome) -> str | None:
        if self.printed != real.printed:
            return f"what is printed: {self.printed!r}, {real.printed!r}"
        names = [
            "the result",
            *(f"argument {i}" for i in range(len(self.world.roots))),
            *(f"an object ({type(o).__name__})" for o in self.world.objects),
        ]
        for name, a, b in zip(names, self.state, real.state):
            if (where := difference(a, b)) is not None:
                return f"{name}: {where}"
        random_names = (
            "random numbers drawn",
            "random's state",
            "numpy.random's state",
            "grad mode",
            "the default dtype",
        )
        for name, a, b in zip(random_names, self.library, real.library):
            if (where := difference(freeze(a), freeze(b))) is not None:
                return f"{name}: {where}"
        where = difference(self.gradients, real.gradients)
        return f"a gradient: {where}" if where is not None else None


def has_hooks(world: World) -> bool:
    """Whether a backward run is seen by code of the user's."""
    modules = sys.modules.get("flambeau.modules.hooks")
    if modules is not None and modules.global_backward:
        return True
    for x in world.objects:
        if isinstance(x, _C.TensorBase):
            if getattr(x._autograd, "hooks", None):
                return True
        elif isinstance(x, torch.nn.Module) and (x._backward_hooks or x._backward_pre_hooks):
            return True
    return False


def freeze(x):
    return x.numpy() if isinstance(x, _C.TensorBase) else x


def differentiable(t) -> bool:
    return bool(t._requires_grad) and t._has_data and t._dtype.is_floating_point and not t._flags & 4


def difference(a, b) -> str | None:
    """None, or the two parts that differ. Floating values may differ by a few roundings."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{a.dtype}{a.shape}, {b.dtype}{b.shape}"
        if a.dtype.kind not in "biu":
            kind = np.complex128 if a.dtype.kind == "c" else np.float64
            if a.dtype.kind in "fcV":
                tolerance = {2: 2e-2, 4: 2e-4, 8: 2e-4 if a.dtype.kind == "c" else 1e-7}.get(
                    a.dtype.itemsize, 1e-1 if a.dtype.itemsize == 1 else 1e-7
                )
                same = np.allclose(a.astype(kind), b.astype(kind), rtol=tolerance, atol=tolerance / 10, equal_nan=True)
                return None if same else f"{a!r}, {b!r}"
        return None if np.array_equal(a, b) else f"{a!r}, {b!r}"
    if type(a) is not type(b):
        return f"{a!r}, {b!r}"
    if isinstance(a, (list, tuple)):
        if len(a) != len(b):
            return f"{a!r}, {b!r}"
        return next((d for x, y in zip(a, b) if (d := difference(x, y)) is not None), None)
    try:
        return None if a is b or a == b else f"{a!r}, {b!r}"
    except Exception:  # the user's equality
        return None
