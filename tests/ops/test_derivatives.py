"""Every differentiable operator over its samples against central differences: backward, forward mode, batches of cotangents and of tangents, the second
order; in float64, and in complex128 where the operator takes complex numbers.

    pytest -m slow tests/ops/test_derivatives.py

runs all samples with whole Jacobians and the second order in complex numbers; the quick part is one random projection of each Jacobian, of two samples each
(float64's backward and second order, whole, are in test_samples.py)."""

import numpy as np
import pytest

from flambeau.autograd import gradcheck, gradgradcheck
from flambeau.testing import checks
from flambeau.testing.samples import Call, load, operator

_FORWARD = {"check_forward_ad": True, "check_backward_ad": False}
_OVER = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
SECOND = ("second", "forward over reverse")
FACETS = {
    "backward": lambda f, x, fast: gradcheck(f, x, fast_mode=fast, check_batched_grad=True),
    "forward": lambda f, x, fast: gradcheck(f, x, fast_mode=fast, check_batched_forward_grad=True, **_FORWARD),
    "second": lambda f, x, fast: gradgradcheck(f, x, fast_mode=fast),
    "forward over reverse": lambda f, x, fast: gradgradcheck(f, x, fast_mode=fast, check_undefined_grad=False, **_OVER),
}

# What doesn't hold, and why: a row that is mended, or lost, changes this table. (operator, dtype, facet).
NOT_HELD: dict = {}

# Samples that complex numbers have no sense in: conventions at a kink, infinities, numbers that must be real.
REAL = {
    "nan_to_num": "samples with infinities",
    "_nan_to_num": "samples with infinities",
    "_fft_r2c": "of real numbers",
}


def complexes(x, rng):
    """Floating arrays with an imaginary part."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        return np.asarray(x + 1j * rng.uniform(0.1, 0.6, x.shape))
    if isinstance(x, (list, tuple)):
        return type(x)(complexes(y, rng) for y in x)
    return x


def rows():
    for name, row in load().items():
        try:
            operator(name)
        except AttributeError:
            continue
        if row.grad != () and row.values:
            yield pytest.param(row, id=name)


def cases(row, dtype, facet, quick):
    """(sample, function, inputs) of a row, made anew for each facet."""
    rng = np.random.default_rng(1)
    for sample in row.calls[: 2 if quick else None]:
        if dtype == "complex128":
            sample = Call(
                tuple(complexes(a, rng) for a in sample.args),
                {k: complexes(v, rng) for k, v in sample.kwargs.items()},
                sample.grad,
            )
            try:
                found = checks.differentiable(row, sample)
            except (RuntimeError, NotImplementedError, TypeError, ValueError):
                continue  # refused
        else:
            found = checks.differentiable(row, sample)
        if found is None or sum(x.numel() for x in found[1]) > (14 if facet in SECOND else 40):
            continue
        if any(o.requires_grad for o in found[0](*found[1])):
            yield sample, *found


def holds(row, dtype, facet, quick):
    if (facet in SECOND and not row.second) or (dtype == "complex128" and row.name in REAL):
        return
    why = NOT_HELD.get((row.name, dtype, facet))
    for sample, fn, inputs in cases(row, dtype, facet, quick):
        try:
            FACETS[facet](fn, inputs, quick)
        except Exception as e:
            if why is None:
                raise AssertionError(f"{row.name}{sample} {dtype} {facet}: {type(e).__name__}: {e}") from e
            return
    assert why is None, f"{row.name} {dtype} {facet} holds now: take it out of NOT_HELD ({why})"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", list(rows()))
def test_of_two_samples(row):
    for dtype, facet in (("float64", "backward"), ("float64", "forward"), ("complex128", "backward"), ("complex128", "forward")):  # fmt: skip
        holds(row, dtype, facet, True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("facet", FACETS)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("row", list(rows()))
def test_of_all_samples(row, dtype, facet):
    holds(row, dtype, facet, False)
