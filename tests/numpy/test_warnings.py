"""What functions that graphs call warn of is told as NumPy tells it: once, at the program's line, by the program's filters."""

import warnings

import numpy as np
import pytest

import flambeau as torch

V = np.random.default_rng(0).random(7)


def covariance(v):
    return np.cov(v[:1])


def fit(v):
    return np.polyfit(v * 0 + 1, v, 2)


def masked_sum(v):
    return np.add(v, v, where=3.5)


def mean_of_nothing(v):
    return np.nanmean(v * np.nan)


def mean_of_no_elements(v):
    return np.mean(v[:0])


def average_of_no_rows(v):
    return np.average(v[:6].reshape(2, 3)[:0], axis=0)


def median_of_no_elements(v):
    return np.median(v[7:])


def weighted_average_of_nothing(v):
    return np.average(v[:0], weights=v[:0])


def average_of_empty_rows(v):
    return np.average(v[:0].reshape(0, 3), axis=1)


def with_numbers_drawn(v):
    return np.polyfit(v * 0 + np.random.random(), v, 2)


PROGRAMS = [
    covariance,
    fit,
    masked_sum,
    mean_of_nothing,
    mean_of_no_elements,
    average_of_no_rows,
    median_of_no_elements,
]


def told(call, action):
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter(action)
        for _ in range(3):
            call(V.copy())
    return [(w.category, str(w.message), w.filename, w.lineno) for w in heard]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("action", ["always", "default", "ignore"])
@pytest.mark.parametrize("fn", PROGRAMS)
def test_as_numpy_tells_it(fn, action, backend):
    compiled = torch.compile(fn, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(V)
    globals().pop("__warningregistry__", None)
    want = told(fn, action)
    globals().pop("__warningregistry__", None)
    assert told(compiled, action) == want
    assert bool(want) == (action != "ignore")


@pytest.mark.parametrize("fn", PROGRAMS)
def test_as_an_error(fn):
    compiled = torch.compile(fn)
    for call in (fn, compiled, compiled):
        with warnings.catch_warnings(), pytest.raises(Warning):
            warnings.simplefilter("error")
            call(V)


@pytest.mark.parametrize("fn", [weighted_average_of_nothing, average_of_empty_rows])
def test_averages_of_nothing_raise_what_numpy_raises(fn):
    compiled = torch.compile(fn)
    with pytest.raises(ZeroDivisionError) as want:
        fn(V)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as got:
            compiled(V)
        assert str(got.value) == str(want.value)


def test_where_the_graph_has_drawn_it_is_told_of_the_function():
    compiled = torch.compile(with_numbers_drawn, backend="eager")
    np.random.seed(0)
    heard = told(compiled, "always")
    after = np.random.random()
    np.random.seed(0)
    want = told(with_numbers_drawn, "always")
    assert after == np.random.random()  # drawn as often
    assert [h[:3] for h in heard] == [w[:3] for w in want]


def test_a_filter_of_the_program_counts():
    compiled = torch.compile(fit)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=__name__.replace(".", r"\."))
        compiled(V), compiled(V)
    assert not heard
