"""The message at the limit of variants: why, with the user's names, and what to do."""

import pytest

import flambeau as torch
from flambeau.base.user_line import UserLine
from flambeau.dynamo.guards.advice import advice
from flambeau.dynamo.guards.source import LocalSource
from flambeau.dynamo.guards.tree import Failure


def scaled(x, text):
    return x * int(text)


def grown(x):
    return x + 1


def keyed(x, table):
    return x + len(table)


@pytest.mark.parametrize(
    "f, make, options, told",
    [
        (scaled, lambda i: (torch.ones(2), "1" * (i + 1)), {}, "text has another value at each call"),
        (grown, lambda i: (torch.ones(i + 1),), {"dynamic": False}, "x is of another shape"),
        (keyed, lambda i: (torch.ones(2), {k: k for k in range(i)}), {}, "table"),
    ],
)
def test_the_limit_says_why_and_what_to_do(f, make, options, told, caplog):
    torch._dynamo.reset()
    compiled = torch.compile(f, backend="eager", **options)
    for i in range(12):
        compiled(*make(i))
    assert "recompile_limit" in caplog.text
    (why,) = [line for line in caplog.text.splitlines() if line.startswith("   why:")]
    assert told in why and "captured code is for one" in why or "mark_dynamic" in why
    assert "___stack" not in why


def test_values_at_a_graph_break_are_named_by_its_line():
    root = LocalSource("___stack1", 1)
    failed = Failure("", "EQUALS_MATCH", root.name, root)
    assert advice(failed, 15).startswith("the value that the graph break in line 15 gave has")
    failed = Failure("", "SIZES", root.name, root, UserLine("p.py", 46, "f", "t = str(y)"))
    told = advice(failed, 46)
    assert told.startswith("the code in line 46 asks which number the value that the graph break in line 46 gave is")
    assert advice(Failure("no captured variant"))


def test_dynamic_is_a_bool():
    for wrong in ("yes", 1, [], 2.5):
        with pytest.raises(AssertionError, match="Expected dynamic to be a bool"):
            torch.compile(grown, dynamic=wrong)
