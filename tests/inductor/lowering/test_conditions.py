"""What depends on data inside of a graph: divisors that may be zero, sizes that a call tells."""

import numpy as np
import pytest

import flambeau as torch

INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DIVISIONS = {
    "remainder": lambda a, b: a % b,
    "floor": lambda a, b: a // b,
    "fmod": torch.fmod,
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "of a number": lambda a, b: 7 % b + 7 // b,
    "chosen": lambda a, b: torch.where(b != 0, a // b, a),
    "summed": lambda a, b: (a % b).sum(0),
    "by what is known": lambda a, b: a % torch.full_like(b, 3),
}


@pytest.mark.parametrize("dtype", INTS, ids=str)
@pytest.mark.parametrize("name", DIVISIONS)
def test_divisions_of_integers(name, dtype):
    rng = np.random.default_rng(0)
    a = torch.from_numpy(rng.integers(-100, 100, (37, 11))).to(dtype)
    b = torch.from_numpy(rng.integers(1, 100, (37, 11))).to(dtype)
    if dtype.is_signed:
        b[::3] *= -1
        a[0], b[0] = torch.iinfo(dtype).min, -1
    before = torch._inductor.metrics.num_fallbacks
    for zero in (False, True):
        if zero:
            b[-1, -1] = 0
        results = []
        for fn in (DIVISIONS[name], torch.compile(DIVISIONS[name])):
            try:
                results.append(fn(a, b).tolist())
            except RuntimeError as e:
                results.append(str(e))
        assert results[0] == results[1] and (results[0] == "ZeroDivisionError") == (zero and "known" not in name)
    assert torch._inductor.metrics.num_fallbacks == before


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x.masked_select(x > 2) + 1,
        lambda x: x[x > 2] + 1,
        lambda x: x.nonzero() * 2,
        lambda x: torch.unique(x) + 1,
        lambda x: x.bincount() + 1,
        lambda x: x.repeat_interleave(x) + 1,
    ],
)
def test_sizes_that_data_tell(fn):
    """A composite whose parts make sizes anew isn't opened: masked_select's consumers knew another one."""
    compiled = torch.compile(fn, fullgraph=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        for seed in range(2):
            x = torch.from_numpy(np.random.default_rng(seed).integers(0, 5, 100))
            assert torch.equal(compiled(x), fn(x))
