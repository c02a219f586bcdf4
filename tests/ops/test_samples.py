"""Every operator over its samples: values, shapes, gradients, in-place and out= forms."""

import pytest

from flambeau.testing import checks
from flambeau.testing.samples import every_operator, load, operator

ROWS = {}
for _name, _row in load().items():
    try:
        operator(_name)
    except AttributeError:
        continue  # samples may be ahead of the operator
    ROWS[_name] = _row


def rows(keep=lambda row: True):
    return pytest.mark.parametrize("row", [pytest.param(r, id=n) for n, r in ROWS.items() if keep(r)])


def test_every_operator_has_samples():
    named = {r.op for r in ROWS.values()}
    # Draws and what needs values that no sample has are declared in a table too; nothing is left out silently.
    missing = [str(op) for op in every_operator() if op not in named]
    assert not missing


@rows(lambda r: r.reference is not None and r.values)
def test_values(row):
    checks.check_reference(row)


@rows()
def test_meta(row):
    checks.check_meta(row)


@rows()
def test_fake(row):
    checks.check_fake(row)


@rows(lambda r: r.grad != () and r.values)
def test_gradient(row):
    checks.check_gradient(row)


@rows(lambda r: r.grad != () and r.values and r.second)
def test_second_gradient(row):
    checks.check_second_gradient(row)


@rows(lambda r: r.op.has_inplace and r.values)
def test_inplace(row):
    checks.check_inplace(row)


@rows(lambda r: r.op.has_out and r.values)
def test_out(row):
    checks.check_out(row)
