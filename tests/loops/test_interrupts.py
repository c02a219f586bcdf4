"""A signal ends a native loop: what its handler raises comes out, soon, whatever the loop is doing."""

import os
import signal
import threading

import numpy as np
import pytest

import flambeau as torch


def innermost(a, n):
    s = 0
    for i in range(n):
        s = (s * 31 + i) % 1000003
    a[0] = s


def conditional(a, n):
    k = 0
    while k < n:
        k += 1
        a[0] = k


def elements(a, n):
    for _ in range(n):
        a += 1.0


def nested(a, n):
    t = 0.0
    for _ in range(n):
        for j in range(3):
            t += a[j]
    a[0] = t


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


@pytest.mark.parametrize("fn", [innermost, conditional, elements, nested])
def test_signal(fn):
    compiled = torch.compile(fn)
    a, b = np.ones(1000), np.ones(1000)
    compiled(a, 999), fn(b, 999)
    compiled(a, 1000), fn(b, 1000)  # the number of turns is a symbol now: nothing is left to compile
    assert np.array_equal(a, b)
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        with pytest.raises(Stop):
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
            compiled(a, 10**13)  # would take hours
    finally:
        signal.signal(signal.SIGUSR1, before)
    compiled(a, 10)  # and it goes on as before
