"""aot_function(dynamic=True): one compilation for all sizes that the trace assumes nothing else of."""

import pytest

import flambeau as torch
from flambeau.aot.api import aot_function
from flambeau.base.symint import SymInt


def r(*shape, grad=True):
    return torch.randn(*shape).requires_grad_(grad)


# function, arguments of each call, how often it is compiled
CASES = {
    "equal sizes": (lambda x, y: x * y.sum(0), [(r(3), r(4, 3)), (r(5), r(2, 5)), (r(5), r(5, 5))], 1),
    "one is a constant": (lambda x, y: x * y.sum(0), [(r(3), r(4, 3)), (r(1), r(2, 1)), (r(6), r(3, 6))], 2),
    "sizes that were equal": (lambda x: x.sum(1), [(r(3, 3),), (r(4, 4),), (r(5, 2),), (r(7, 3),)], 2),
    "a branch": (lambda x: x * 2 if x.shape[0] > 4 else x * 3, [(r(3),), (r(2),), (r(6),), (r(7),)], 2),
    "what must divide": (lambda x: x.view(-1, 2).sin(), [(r(4),), (r(8),)], 1),
    "other strides": (lambda x: x.sin(), [(r(4, 3).detach().t().requires_grad_(),), (r(5, 2),), (r(7, 3),)], 2),
    "a write": (lambda x: x.add_(1).sum(), [(r(4, 3, grad=False),), (r(5, 2, grad=False),)], 1),
    "another rank": (lambda x: x.sum(), [(r(4),), (r(4, 2),), (r(5),)], 2),
}


@pytest.mark.parametrize("name", CASES)
def test_how_often_it_is_compiled(name):
    fn, calls, count = CASES[name]
    graphs = []
    run = aot_function(
        fn, fw_compiler=lambda gm, ex: graphs.append(ex) or gm, bw_compiler=lambda gm, ex: gm, dynamic=True
    )
    for args in calls:
        ours, plain = ([a.detach().clone().requires_grad_(a.requires_grad) for a in args] for _ in range(2))
        got, want = run(*ours), fn(*plain)
        torch.testing.assert_close((got, *ours), (want, *plain))
        if want.requires_grad:
            got.sum().backward(), want.sum().backward()
            torch.testing.assert_close([a.grad for a in ours], [a.grad for a in plain])
    assert len(graphs) == count
    assert any(isinstance(n, SymInt) for n in graphs[0][0].shape)


def test_sizes_that_depend_on_data():
    run = aot_function(torch.nonzero, fw_compiler=lambda gm, ex: gm, dynamic=True)
    for x in (torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 0, 3, 0])):
        assert torch.equal(run(x), x.nonzero())
