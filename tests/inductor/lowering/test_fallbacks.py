"""No operator joins those that a compiled graph runs by their eager kernel, and none stays on the list that has a kernel now."""

import fallbacks
import pytest

from flambeau.testing.samples import load, operator

KNOWN = dict(line.split(": ") for line in fallbacks.TABLE.read_text().splitlines())
# Tier 1 of the operators that programs use most: what may still be on the list, and why.
TIER_ONE: dict[str, str] = {}


def test_what_is_left_of_the_first_tier():
    first = "multinomial remainder atan atan2 copysign erfinv bitwise_left_shift bitwise_right_shift cumsum cumprod gather scatter scatter_add"
    first += " nonzero nonzero_static argwhere masked_select bincount repeat_interleave where histc histogram as_strided linalg_pinv"
    first += " scatter_reduce index_add index_put sort topk median unique rand randn randint bernoulli normal uniform repeat_interleave roll flip"
    left = {name for name in KNOWN if name.split(".")[0] in first.split()}
    assert left == set(TIER_ONE)


@pytest.mark.slow
def test_the_table_is_current():
    assert fallbacks.written() == fallbacks.TABLE.read_text()


@pytest.mark.parametrize(
    "name",
    [
        "cummax",
        "scatter_reduce.two",
        "rand",
        "atan2",
        "searchsorted.Tensor",
        "isin.Tensor_Tensor",
        "histc",
        "bernoulli.p",
        "nonzero",
        "masked_select",
        "unique_consecutive",
        "bincount",
        "multinomial",
        "linalg_solve",
        "linalg_svd",
        "special_bessel_j0",
        "cdist",
        "as_strided_copy",
    ],
)
def test_no_python_between_kernels(name):
    load()
    operator(name)
    assert not fallbacks.called(load()[name]) and name not in KNOWN
