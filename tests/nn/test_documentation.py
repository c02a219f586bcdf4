"""Examples in the documentation of layers and functions run, and show what they show."""

import doctest
import inspect

import pytest

import flambeau as torch

PLACES = {"torch.nn": torch.nn, "torch.nn.functional": torch.nn.functional}
DOCUMENTED = {
    f"{place}.{name}": value.__doc__
    for place, module in PLACES.items()
    for name, value in ((n, getattr(module, n)) for n in dir(module) if not n.startswith("_"))
    if callable(value) and ">>>" in (value.__doc__ or "")
}


def test_the_most_used_have_examples():
    assert len(DOCUMENTED) > 95
    wanted = "Linear Conv2d LayerNorm BatchNorm2d Embedding LSTM MultiheadAttention CrossEntropyLoss Sequential Dropout"
    assert {f"torch.nn.{name}" for name in wanted.split()} <= set(DOCUMENTED)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_example(name):
    torch.manual_seed(0)
    example = doctest.DocTestParser().get_doctest(inspect.cleandoc(DOCUMENTED[name]), {"torch": torch}, name, None, 0)
    said: list[str] = []
    doctest.DocTestRunner().run(example, out=said.append)
    assert example.examples and not said, "".join(said)
