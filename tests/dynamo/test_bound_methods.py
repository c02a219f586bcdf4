"""Bound methods that are values: arguments, items of the stack across a break, attributes. Their owners are inputs of the graph, not constants."""

import functools
import math

from programs import X, agree, attempt

import flambeau as torch


def _pair():
    torch.manual_seed(0)
    return [torch.randn(2, 3, requires_grad=True) for _ in range(2)]


def test_across_a_graph_break():
    def f(x):
        view = (x * 2).view
        torch._dynamo.graph_break()
        return view(-1).sum()

    compiled = torch.compile(f)
    for x in _pair():
        out = compiled(x)
        assert out.requires_grad and torch.equal(out, f(x))
        out.backward()
        assert torch.equal(x.grad, torch.full((2, 3), 2.0))


def test_as_arguments():
    def f(method):
        return method(-1) * 2

    compiled = torch.compile(f)
    for x in _pair():
        for method in (x.view, (x * 3).reshape, x.detach().view):
            out = compiled(method)
            assert torch.equal(out, f(method)) and out.requires_grad == f(method).requires_grad


def test_of_objects_of_the_library():
    def g(x, method):
        return x * method()

    compiled = torch.compile(g)
    for seed in (3, 4):
        generator = torch.Generator().manual_seed(seed)
        assert torch.equal(compiled(torch.ones(2), generator.initial_seed), torch.full((2,), float(seed)))


def test_functions_in_c_are_found_on_classes_as_they_are():
    class K:
        floor, key, total = math.floor, functools.cmp_to_key, sum

    def f(x, k):
        smaller = sorted([2.5, 1.5], key=k.key(lambda a, b: (a > b) - (a < b)))
        return x * k.floor(2.5) + k.total([1, 2]), smaller

    agree(lambda C, torch: [attempt(C(f), X(), K()) for _ in range(2)], ("eager", "inductor"))
