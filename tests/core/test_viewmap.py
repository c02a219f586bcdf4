"""View handlers agree with NumPy and with each other on random chains of steps."""

import operator
import random

import numpy as np
import pytest

import flambeau as torch
from flambeau.core.viewmap import Strided, ViewRecorder, source_index


class Ints:
    add, mul, floordiv, mod = operator.add, operator.mul, operator.floordiv, operator.mod


def random_step(rng, v):
    """(name, args) of a step that is possible on ``v``."""
    kinds = ["permute", "unsqueeze", "slice", "reshape", "diagonal", "unfold", "expand"] if v.ndim else ["unsqueeze"]
    kind = rng.choice(kinds)
    if kind == "permute":
        return "permute", (tuple(rng.sample(range(v.ndim), v.ndim)),)
    if kind == "unsqueeze":
        return "unsqueeze", (rng.randrange(v.ndim + 1),)
    if kind == "slice":
        d = rng.randrange(v.ndim)
        start = rng.randrange(v.shape[d])
        step = rng.choice([1, 2])
        return "slice", (d, start, (v.shape[d] - start + step - 1) // step, step)
    if kind == "reshape":
        n = v.numel()
        shape = rng.choice([(n,), (n, 1), (1, n)] + [(a, n // a) for a in range(2, n) if n % a == 0])
        return "reshape", (shape,)
    if kind == "diagonal":
        if v.ndim < 2:
            return "unsqueeze", (0,)
        d1, d2 = rng.sample(range(v.ndim), 2)
        return "diagonal", (d1, d2, 0)
    if kind == "unfold":
        d = rng.randrange(v.ndim)
        size = rng.randint(1, v.shape[d])
        return "unfold", (d, size, rng.choice([1, 2]))
    if 1 in v.shape:
        return "expand", (tuple(3 if n == 1 else n for n in v.shape),)
    return "expand", ((2, *v.shape),)


@pytest.mark.parametrize("seed", range(60))
def test_steps_agree(seed):
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    n = int(np.prod(shape))
    memory = np.arange(n)
    strided, recorder = Strided(shape, torch.empty(shape).stride()), ViewRecorder(shape)
    for _ in range(rng.randint(1, 4)):
        name, args = random_step(rng, strided)
        try:
            strided = getattr(strided, name)(*args)
        except RuntimeError:  # a reshape that needs a copy
            continue
        recorder = getattr(recorder, name)(*args)
    assert strided.shape == recorder.shape
    dense = np.arange(n).reshape(shape)
    for index in np.ndindex(strided.shape):
        at = strided.offset + sum(i * s for i, s in zip(index, strided.strides))
        assert memory[at] == dense[source_index(recorder.steps, index, Ints)], (seed, recorder.steps)


@pytest.mark.parametrize(
    "shape,strides,new,expected",
    [
        ((2, 3), (3, 1), (6,), (1,)),
        ((2, 3), (1, 2), (6,), None),
        ((2, 3, 4), (12, 4, 1), (6, 4), (4, 1)),
        ((4, 1, 2), (2, 9, 1), (8,), (1,)),
        ((0, 3), (3, 1), (3, 0), (1, 1)),
        ((), (), (1, 1), (1, 1)),
        ((3,), (2,), (3, 1), (2, 2)),
    ],
)
def test_view_strides(shape, strides, new, expected):
    from flambeau.base.shapes import view_strides

    assert view_strides(shape, strides, new) == expected
