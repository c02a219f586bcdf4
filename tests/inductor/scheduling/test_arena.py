"""Places in the arena: buffers that live at the same time don't share memory, however many there are."""

import random
import sys
from types import SimpleNamespace

import pytest

from flambeau.inductor.ir.nodes import BufferKind
from flambeau.inductor.scheduling import memory


def program(n: int, seed: int):
    """Buffers of a few sizes, and steps that write one each and read some of the last ones."""
    draw = random.Random(seed)
    buffers = {
        f"b{i}": SimpleNamespace(kind=BufferKind.TEMP, size=draw.choice([1, 16, 17, 40]), width=1, dtype="f32")
        for i in range(n)
    }
    steps = [({f"b{draw.randrange(max(0, i - 5), i)}"} if i else set(), {f"b{i}"}) for i in range(n)]
    return buffers, steps


@pytest.mark.parametrize("n", [30, memory.MOST_BY_SIZE + 100])
def test_what_lives_at_the_same_time_lies_apart(n):
    buffers, steps = program(n, n)
    offsets, total, notes = memory.plan(buffers, steps)
    last = {}
    for i, (reads, writes) in enumerate(steps):
        last |= dict.fromkeys(reads | writes, i)
    bytes_of = {name: b.size * 4 for name, b in buffers.items()}
    for i, name in enumerate(buffers):
        assert offsets[name] % memory.ALIGN == 0 and offsets[name] + bytes_of[name] <= total
        for k in range(max(0, i - 10), i):
            other = f"b{k}"
            apart = (
                offsets[name] >= offsets[other] + bytes_of[other] or offsets[other] >= offsets[name] + bytes_of[name]
            )
            assert apart or last[other] < i
    assert total <= 20 * 192 and notes  # places are taken again


def test_thousands_are_placed_by_steps_that_grow_with_them():
    """Eight times the buffers took 64 times as many lines of Python."""

    def lines(n):
        buffers, steps = program(n, 0)
        count = 0

        def trace(frame, event, arg):
            nonlocal count
            count += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            memory.plan(buffers, steps)
        finally:
            sys.settrace(before)
        return count

    assert lines(4_000) < 10 * lines(1_000)
