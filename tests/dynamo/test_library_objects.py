"""Objects of the library in captured functions. Programs that make and meet them are in ``user_programs/library_objects.txt``."""

import pytest

import flambeau as torch
from flambeau.compiler import compile
from flambeau.dynamo.rules.library_classes import IMMUTABLE


def whole(m, s):
    d = torch.distributions.Normal(m, s)
    return d.log_prob(m + 1), d.rsample()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_distributions_are_captured_whole_and_checked(backend):
    """The check of the parameters is in the graph; where it fails the frame runs plainly, with the generator where it was."""
    f = compile(whole, backend=backend, fullgraph=True)
    m, s = torch.zeros(2), torch.ones(2)
    torch.manual_seed(0)
    got = f(m, s)
    torch.manual_seed(0)
    for a, b in zip(got, whole(m, s)):
        assert torch.equal(a, b)
    torch.manual_seed(1)
    with pytest.raises(ValueError, match="Expected parameter scale"):
        f(m, -s)
    after = torch.rand(2)
    torch.manual_seed(1)
    assert torch.equal(after, torch.rand(2))


@pytest.mark.parametrize("row", [f"{module}.{name}" for module, names in IMMUTABLE.items() for name in names.split()])
def test_classes_of_the_list_exist(row):
    module, _, name = row.rpartition(".")
    assert isinstance(getattr(__import__(module, fromlist=[name]), name), type)
