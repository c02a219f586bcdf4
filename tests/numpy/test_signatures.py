"""Calls over NumPy's whole signature table agree with plain ones, see signatures.py."""

import numpy as np
import pytest
from agree import difference, is_defined
from signatures import function, program


def run(seeds, backend):
    wrong = []
    for seed in seeds:
        text, args = program(seed)
        f = function(text)
        if is_defined(f, args) and (how := difference(f, args, backend, calls=1)):
            about = [(a.dtype.str, a.shape, a.strides, a.flags.writeable) for a in args if isinstance(a, np.ndarray)]
            wrong.append(f"{seed}: {text}of {about}: {how}"[:700])
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(2))
def test_some(part):
    run(range(200 * part, 200 * part + 200), ("aot_eager", "inductor")[part])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("part", range(20))
def test_many(part, backend):
    run(range(10_000 + 1000 * part, 11_000 + 1000 * part), backend)
