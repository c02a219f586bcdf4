"""Programs as texts about numerical methods have them, compiled as they are: values, types, errors and what is written into arguments."""

import pytest
from texts import PROGRAMS

from flambeau.testing.loops import check


@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_program(f, arguments):
    check(f, *arguments(), native=None)
