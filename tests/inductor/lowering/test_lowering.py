"""Long chains of nodes: each would be a call of Python's within another while its text is written."""

import numpy as np

import flambeau as torch


def test_a_sum_by_python_over_many_elements():
    def f(x):
        return sum(x == 0)

    x = np.arange(1050) % 3  # more than Python calls nest
    assert torch.compile(f)(x) == f(x)


def test_a_chain_of_pointwise_operators():
    def f(x):
        for k in range(700):
            x = x * 0.5 + k
        return x

    x = torch.rand(8)
    assert torch.equal(torch.compile(f)(x), f(x))
