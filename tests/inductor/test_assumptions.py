"""Graphs of symbolic sizes whose examples meet others by chance: as many rows as columns. What is compiled for one size serves the others, forward
and backward, or is compiled again."""

import pytest

import flambeau as torch
from flambeau.aot import aot_autograd
from flambeau.base.symint import SymInt
from flambeau.examples.gpt import GPT, GPTConfig
from flambeau.inductor import assumptions
from flambeau.inductor.compile import compile_graph

WEIGHT = torch.arange(64.0 * 64).reshape(64, 64).cos() / 8


def many_products(x):
    total = x
    for k in range(6):
        total = total + x[:, k : k + 1] @ WEIGHT[k : k + 1]
    return total


def columns_and_rows(x):
    return x.sum(0) + x.sum(1).mean() + (x.T @ x).sum(0)


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "grad"])
@pytest.mark.parametrize("program", [many_products, columns_and_rows])
def test_sizes_that_meet(program, grad):
    torch._dynamo.reset()
    compiled = torch.compile(program, fullgraph=True)
    # The second size is the first one's symbol, and the number of columns.
    for n in (32, 64, 40, 96, 64):
        x, y = (torch.arange(n * 64.0).reshape(n, 64).sin().requires_grad_(grad) for _ in range(2))
        got, expected = compiled(x), program(y)
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        if grad:
            got.square().sum().backward()
            expected.square().sum().backward()
            torch.testing.assert_close(x.grad, y.grad, atol=1e-2, rtol=1e-3)


def test_rows_as_many_as_columns():
    """Eight texts of 64 letters have 512 rows, and a layer of the network has 512 columns."""
    torch.manual_seed(0)
    model = GPT(GPTConfig(vocab_size=32, block_size=64, n_layer=1, n_embd=128))
    compiled = torch.compile(model)
    for n in (4, 8, 12, 4, 16):
        text = torch.randint(0, 32, (n, 64))
        got, expected = compiled(text, text)[1], model(text, text)[1]
        torch.testing.assert_close(got, expected)
        got.backward()


def test_a_pass_that_assumes_a_size(monkeypatch):
    """What a pass asks of sizes holds for the sizes that it was asked for: others are compiled again, once for each answer."""
    from flambeau.inductor import compile as passes

    compiled, decompose_graph = [], passes.decompose_graph

    def asking(gm):
        n = next(n for node in gm.graph.nodes for n in getattr(node.meta["val"], "shape", ()) if isinstance(n, SymInt))
        compiled.append(bool(n == 8))
        return decompose_graph(gm)

    monkeypatch.setattr(passes, "decompose_graph", asking)
    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=compile_graph, bw_compiler=compile_graph)
    f = torch.compile(lambda x: (x * 2).sin().exp(), backend=backend, dynamic=True)
    for n in (8, 5, 7, 8, 9):
        x = torch.linspace(0, 1, n, requires_grad=True)
        y = f(x)
        y.sum().backward()
        torch.testing.assert_close(y, (x * 2).sin().exp())
        torch.testing.assert_close(x.grad, 2 * (x * 2).cos() * (x * 2).sin().exp())
    # Forward and backward, each for both answers.
    assert sorted(compiled) == [False, False, True, True]


def test_symbols_that_no_input_tells():
    """Where the inputs don't tell a symbol of a relation, the operators run as they are."""
    torch._dynamo.reset()
    seen = []

    def backend(gm, example_inputs):
        env = next(n.env for x in example_inputs for n in x.shape if isinstance(n, SymInt))
        relation = (env.create_unbacked_symint() == 3).node.expr
        seen.append(assumptions.Assuming(gm, None, [relation], env, None))
        return seen[0]

    x = torch.arange(6.0)
    f = torch.compile(lambda x: x * 2, backend=aot_autograd(fw_compiler=backend), dynamic=True)
    assert f(x).tolist() == (x * 2).tolist() and f(x[:4]).tolist() == [0, 2, 4, 6]
    assert seen[0].made[0][0] == []
