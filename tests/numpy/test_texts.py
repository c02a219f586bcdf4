"""Programs as texts about numerical methods have them, compiled as they are: values, types, errors and what is written into arguments."""

import pytest
import texts
import texts_of_algorithms

from flambeau.testing.loops import check

PROGRAMS = [*texts.PROGRAMS, *texts_of_algorithms.PROGRAMS]


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_program(f, arguments):
    check(f, *arguments(), native=None)
