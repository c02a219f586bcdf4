"""Passes that fold constants and equal calls, and the order of passes."""

import pytest
from flambeau.fx.experimental import const_fold
from flambeau.fx.experimental.proxy_tensor import make_fx

import flambeau as torch
from flambeau.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from flambeau.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper


class Folds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
        self.b = torch.nn.Parameter(torch.tensor([4.0, 5.0]))
        self.inner = torch.nn.Linear(2, 2)

    def forward(self, x):
        a = self.a * self.b + 1
        return x * a + self.b, self.inner(self.a), x + torch.rand_like(self.a) * 0


def test_constants_are_computed_once():
    model = Folds()
    folded = const_fold.split_const_subgraphs(model)
    targets = [n.target for n in folded.graph.nodes]
    assert folded.const_subgraph_module is not None and "inner" not in targets
    assert torch.rand_like in targets  # drawn at every call
    x = torch.tensor([1.0, 2.0])
    for _ in range(2):
        for want, got in zip(model(x), folded(x)):
            assert torch.allclose(want, got)


def test_nothing_to_fold():
    folded = const_fold.split_const_subgraphs(torch.fx.symbolic_trace(lambda x: x * 2))
    assert folded.const_subgraph_module is None and folded(torch.ones(2)).tolist() == [2, 2]


CASES = {
    "equal calls": (lambda x: x.sin() + x.sin(), 1),
    "numbers of other types": (lambda x: (x + 1) * (x + 1.0), 0),
    "draws": (lambda x: torch.rand_like(x) + torch.rand_like(x), 0),
    "around a write": (lambda x: (x.sin(), x.add_(1), x.sin()), 0),
    "lists": (lambda x: torch.cat([x, x]) + torch.cat([x, x]), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_calls(name):
    fn, fewer = CASES[name]
    gm = make_fx(fn)(torch.ones(3))
    result = CSEPass(banned_ops=get_CSE_banned_ops())(gm)
    assert len(gm.graph.nodes) - len(result.graph_module.graph.nodes) == fewer and result.modified == bool(fewer)
    if "draws" not in name:
        for want, got in zip(gm(torch.ones(3)), result.graph_module(torch.ones(3))):
            assert torch.equal(want, got)


def test_a_pass_that_fails_is_named():
    def breaks(gm):
        raise ValueError("bad")

    manager = PassManager([pass_result_wrapper(lambda gm: gm), pass_result_wrapper(breaks)])
    with pytest.raises(ValueError, match=r"'breaks' pass after the following passes: \['<lambda>'\]: bad"):
        manager(torch.fx.symbolic_trace(lambda x: x))
    with pytest.raises(TypeError, match="one variable"):
        manager.add_checks(lambda gm, more: None)
