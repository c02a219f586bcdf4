"""Calls of NumPy's functions on arrays of all kinds agree with plain ones, see sweep.py."""

import numpy as np
import pytest
from agree import difference
from sweep import programs


def run(seed, count, backend):
    wrong = []
    for k, (name, f, args) in enumerate(programs(seed, count)):
        how = difference(f, args, backend, calls=1)
        if how:
            about = [(a.dtype.str, a.shape, a.strides, a.flags.writeable) for a in args if isinstance(a, np.ndarray)]
            wrong.append(f"{seed}:{k} {name} of {about}: {how}"[:600])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", range(3))
def test_some(seed):
    run(seed, 60, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("seed", range(100, 120))
def test_many(seed, backend):
    run(seed, 250, backend)
