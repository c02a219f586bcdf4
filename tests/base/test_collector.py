"""Automatic collections are put off while something is captured, and only then."""

import gc
import subprocess
import sys
import weakref

import pytest

import flambeau as torch
from flambeau.base import collector
from flambeau.base.collector import collecting_later


def test_off_inside_and_on_again():
    seen = []

    @collecting_later
    def f():
        seen.append(gc.isenabled())
        return g()

    @collecting_later
    def g():
        seen.append(gc.isenabled())
        return 3

    assert f() == 3 and seen == [False, False] and gc.isenabled()


def test_on_again_after_an_error():
    @collecting_later
    def f():
        raise KeyError("k")

    with pytest.raises(KeyError):
        f()
    assert gc.isenabled()


def test_on_again_where_the_end_is_interrupted(monkeypatch):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(collector, "_not_asking", 0)
    monkeypatch.setattr(gc, "get_freeze_count", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collecting_later(lambda: 1)()
    assert gc.isenabled()


def test_who_turned_it_off_finds_it_off():
    gc.disable()
    try:
        assert collecting_later(gc.isenabled)() is False
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_backends_run_with_it_off_and_the_program_with_it_on():
    seen = []

    def backend(gm, inputs):
        seen.append(gc.isenabled())
        return gm.forward

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert seen == [False] and gc.isenabled()


def test_a_child_of_a_fork_turns_on_what_threads_it_lacks_turned_off():
    gc.disable()
    try:
        collector._putting_off.add(-1)
        collector._in_child()
        assert gc.isenabled() and not collector._putting_off
    finally:
        gc.enable()


def test_what_is_frozen_is_counted_seldom(monkeypatch):
    """Counting walks over all of it."""
    counted, frozen = [], 3

    def count():
        counted.append(1)
        return frozen

    monkeypatch.setattr(gc, "get_freeze_count", count)
    monkeypatch.setattr(collector, "_not_asking", 0)
    run = collecting_later(lambda: None)
    for _ in range(collector._ASKED_AGAIN_AFTER + 1):
        run()
    assert len(counted) == 1
    frozen = 0
    run()
    run()
    assert len(counted) == 3


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_made_is_old_at_the_end_and_garbage_is_found(frozen, monkeypatch):
    class Cycle:
        def __init__(self):
            self.me = self

    gone = []

    @collecting_later
    def make():
        c = Cycle()
        weakref.finalize(c, gone.append, 1)
        return [[] for _ in range(20_000)]

    monkeypatch.setattr(collector, "_not_asking", 0)
    gc.collect()
    if frozen:
        gc.freeze()
    try:
        before = gc.get_freeze_count()
        kept = make()
        assert gc.get_freeze_count() == before
        assert before or gc.get_count()[0] < 10_000  # CPython 3.12 has objects frozen from the beginning
        gc.collect()
        assert gone == [1] and len(kept) == 20_000
    finally:
        gc.unfreeze()


COLLECTIONS_IN_ERRSTATE = """
import contextvars, gc
import numpy as np
from flambeau.base.quiet import errstate
variables = [contextvars.ContextVar(str(i)) for i in range(64)]
for v in variables: v.set(1)
def computes(phase, info):
    if phase == "start":
        for v in variables[:8]: v.set(object())
        with np.errstate(all="ignore"): np.float64(1) / np.float64(0)
gc.callbacks.append(computes)
gc.set_threshold(1, 1, 1)
before = np.geterr()
for _ in range(5000):
    with errstate(over="ignore", divide="raise"):
        assert np.geterr()["divide"] == "raise" and gc.isenabled()
assert np.geterr() == before
try:
    with errstate(all="ignore"): raise ValueError("left")
except ValueError: pass
assert np.geterr() == before and gc.isenabled()
"""


def test_collections_that_compute_around_errstate():
    """They end the process with NumPy's own until CPython 3.12."""
    subprocess.run([sys.executable, "-c", COLLECTIONS_IN_ERRSTATE], check=True, timeout=120)
