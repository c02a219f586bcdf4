"""docs/reference/facets.md is what the declarations say."""

from collections import Counter
from pathlib import Path

from flambeau.testing import facets
from flambeau.testing.samples import every_operator


def test_the_kept_table_is_current():
    kept = Path(__file__).parents[2] / "docs/reference/facets.md"
    assert kept.read_text(encoding="utf-8") == facets.table(), (
        "run: python -m flambeau.testing.facets docs/reference/facets.md"
    )


def test_nothing_is_without_values_or_shape():
    for op in every_operator():
        for name in ("eager", "meta"):
            assert facets.facet(op, name) != "missing", f"{op} has no {name}"


def test_five_operators_of_each_kind():
    count = Counter(op.kind for op in every_operator())
    for kind in ("pointwise", "reduction", "view", "index", "contraction", "factory", "random", "composite", "extern"):
        least = 4 if kind == "contraction" else 5  # what einsum-like operators PyTorch has beside conjugating ones
        assert count[kind] >= least, f"{count[kind]} operators of kind {kind}"
