"""The schema language: every registered schema survives printing and parsing."""

import pytest

from flambeau import ops
from flambeau.core.operator import namespaces
from flambeau.core.schema import parse
from flambeau.ops.family_index import FAMILIES

for family in FAMILIES:
    ops.load_family(family)

# In an order that doesn't depend on which operator was asked for first: each worker collects the same tests.
SCHEMAS = sorted(
    (
        op._schema
        for ns in ("aten", "prims")
        if ns in namespaces
        for packet in list(namespaces[ns]._packets.values())
        for op in list(packet._overloads.values())
    ),
    key=lambda schema: (schema.name, schema.overload_name),
)


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda s: f"{s.name}.{s.overload_name}")
def test_round_trip(schema):
    assert parse(str(schema)) == schema


def test_parts():
    s = parse(
        "f.x(Tensor(a!) self, Tensor?[] i, int[2] d=1, *, str mode='none', ScalarType? dtype=None) -> (Tensor(a!), Tensor values)"
    )
    self, i, d, mode, dtype = s.arguments
    assert (
        self.is_write
        and i.is_list
        and i.elements_optional
        and d.size == 2
        and mode.kwarg_only
        and mode.default_value == "none"
    )
    assert (
        dtype.optional
        and dtype.has_default
        and s.is_mutable
        and s.returns[1].name == "values"
        and s.overload_name == "x"
    )


@pytest.mark.parametrize("text", ["f", "f(Tensor)", "f(Tensor x", "f(Tensor x) ->"])
def test_errors_name_the_text(text):
    with pytest.raises(ValueError, match="schema"):
        schema = parse(text)
        assert all(a.name for a in schema.arguments) or pytest.fail(f"{text!r} was read as {schema}")
