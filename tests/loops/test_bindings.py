"""Arrays that change names in a loop: which one each name is bound to afterwards, what is in it, and that the loop is native."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import same

R = np.random.RandomState(4)


def swapped(a, b, steps):
    for k in range(steps):
        for i in range(1, len(a) - 1):
            b[i] = 0.5 * (a[i - 1] + a[i + 1]) + k
        a, b = b, a
    a[0] = 7.0
    return a, b


def of_three(a, b, c, steps):
    for _ in range(2, 2 + 3 * steps, 3):
        for i in range(len(a)):
            c[i] = a[i] + 2 * b[i]
        a, b, c = b, c, a
    return c, a


def of_four(a, b, c, d, steps):
    for _ in range(steps, 0, -1):
        for i in range(len(a)):
            d[i] = a[i] + 0.5 * b[i] - c[i] * 0.25
        a, b, c, d = b, c, d, a
    b[1] = 3
    return d, a, b


def through_another_name(a, b, steps):
    for _ in range(steps):
        b[:] = a * 0.5 + 1
        old = a
        a = b
        b = old
    return a, old


def one_follows(a, b, steps):
    for _ in range(steps):
        for i in range(len(a)):
            b[i] = a[i] * 0.5 + 1
        a = b
    a[0] = 9
    return a


def over_arrays(a, b, steps):
    for j, (v, w) in enumerate(zip(np.arange(1.0 * steps), np.ones(steps + 3))):
        for i in range(len(a)):
            b[i] = a[i] * 0.5 + v * w + j
        a, b = b, a
    return b


def back_and_forth(a, b, steps):
    for _ in range(steps):
        a, b = b, a
        for i in range(len(a)):
            b[i] = a[i] * 0.5 + 1
        a, b = b, a
        if b[0] > 100:
            b[0] = 1
    return a


def made_inside(a, steps):
    previous, current = a.copy(), np.empty_like(a)
    for k in range(steps):
        current[0] = k
        for i in range(1, len(a)):
            current[i] = min(previous[i], current[i - 1]) + 1
        previous, current = current, previous
    return previous


def known_at_the_end_only(a, b, steps):  # Python, but right
    for k in range(steps):
        for i in range(len(a)):
            b[i] = a[i] * 0.5 + 1
        if k % 3 == 0:
            a, b = b, a
    return a


def left_early(a, b, steps):
    for _ in range(steps):
        for i in range(len(a)):
            b[i] = a[i] * 0.5 + 1
        a, b = b, a
        if a[0] > 1.9:
            break
    return a


PYTHON = (known_at_the_end_only, left_early)  # the loop with the names, its inner ones are native
FUNCTIONS = (
    swapped, of_three, of_four, through_another_name, one_follows, over_arrays, back_and_forth, made_inside, *PYTHON,
)  # fmt: skip


def _places(result, arrays) -> list[int | None]:
    """Which of the arrays each result is."""
    results = result if isinstance(result, tuple) else (result,)
    return [next((k for k, a in enumerate(arrays) if a is r), None) for r in results]


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_names(f):
    count = f.__code__.co_argcount - 1
    torch._dynamo.reset()
    compiled = torch.compile(f)  # the number of steps becomes a symbol, of which only the remainder matters
    for steps in (20, 21, 22, 23, 90, 101):
        ours = [R.rand(9) for _ in range(count)]
        plain = [a.copy() for a in ours]
        got, want = compiled(*ours, steps), f(*plain, steps)
        same(got, want)
        assert _places(got, ours) == _places(want, plain)
        for a, b in zip(ours, plain):
            same(a, b)
    loops = torch._dynamo.explain(f)(*[R.rand(9) for _ in range(count)], 20).loops
    assert any("stays Python" in line for line in loops) == (f in PYTHON)


def test_the_number_of_turns_is_no_constant():
    torch._dynamo.reset()
    compiled = torch.compile(swapped)
    before = counters["stats"]["unique_graphs"]
    for steps in range(20, 60):
        compiled(R.rand(9), R.rand(9), steps)
    assert counters["stats"]["unique_graphs"] - before <= 3  # 20, and then even and odd ones
