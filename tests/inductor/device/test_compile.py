"""From a program to the steps of its graph: what is fused, what is called from Python, what is freed when, and copies as graphs."""

import pytest
from tests.cuda.kernels import graph_of

import flambeau as torch
from flambeau.base.device import as_device
from flambeau.inductor.device.compile import compile_copy
from flambeau.inductor.device.graph import CallStep
from flambeau.inductor.device.launches import LaunchStep
from flambeau.inductor.passes.decompose import tensor_meta

A = torch.ops.aten
X = torch.linspace(-2, 2, 12).reshape(3, 4)
SQUARE = X[:, :3] + 3 * torch.eye(3)


def kinds(graph):
    return [type(s) for s in graph.steps]


def test_elementwise_operators_and_a_product_are_one_kernel(graphs):
    f = lambda x: ((x @ x.t() + 1).sigmoid() * 2).sum(1)  # noqa: E731
    torch.testing.assert_close(torch.compile(f)(X.cuda()).cpu(), f(X))
    (graph,) = graphs
    assert kinds(graph) == [LaunchStep] * len(graph.steps) and 1 <= len(graph.steps) <= 2 and not graph.info.called


def test_what_has_no_kernel_is_called_between_kernels(graphs):
    f = lambda x: torch.linalg.inv(x * 2) + 1  # noqa: E731
    torch.testing.assert_close(torch.compile(f)(SQUARE.cuda()).cpu(), f(SQUARE))
    (graph,) = graphs
    found = kinds(graph)
    assert found[0] is found[-1] is LaunchStep and CallStep in found
    assert "aten::linalg_inv_ex" in graph.info.called
    assert any("lapack is a kernel of the CPU's" in reason for reason in graph.info.reasons)


def test_the_source_tells_steps_in_order_and_each_kernel_once(graphs):
    torch.compile(lambda x: torch.linalg.inv(x * 2) * 2)(SQUARE.cuda())
    (graph,) = graphs
    told = [line.split()[1] for line in graph.info.source.splitlines() if line.startswith(("; launch", "; call"))]
    assert told == ["launch" if k is LaunchStep else "call" for k in kinds(graph)]
    names = {s.name for s in graph.steps if isinstance(s, LaunchStep)}
    assert all(graph.info.source.count(f"define void @{name}(") == 1 for name in names)
    assert "@KERNEL" not in graph.info.source


def test_memory_is_let_go_after_its_last_reader(graphs):
    f = lambda x: torch.linalg.inv(torch.linalg.inv(x * 2)) * 2  # noqa: E731
    torch.compile(f)(SQUARE.cuda())
    (graph,) = graphs
    gone = [name for s in graph.steps for name in s.last]
    assert gone and len(gone) == len(set(gone))
    wanted = {o.what for o in graph.outputs} | {p.name for p in graph.inputs}
    assert not wanted & set(gone)
    for k, s in enumerate(graph.steps):
        later = {
            n
            for t in graph.steps[k + 1 :]
            for n in (t.buffers if isinstance(t, LaunchStep) else [v[0] for v in t.views])
        }
        assert not later & set(s.last)


def test_constants_lie_on_the_device(graphs):
    table = torch.tensor([3.0, 1, 2, 5])
    f = torch.compile(lambda x: x * torch.tensor([3.0, 1, 2, 5], device=x.device))
    before = torch.cuda.memory_allocated()
    for x in (X, X + 1):
        torch.testing.assert_close(f(x.cuda()).cpu(), x * table)
    assert torch.cuda.memory_allocated() - before <= 512  # nothing but constants


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool])
@pytest.mark.parametrize(
    "source", [X, X[1], X.t().contiguous().t(), torch.tensor(2), X > 0], ids=lambda t: str(tuple(t.shape))
)
def test_a_copy_spreads_and_converts(source, dtype):
    target = torch.zeros(3, 4, dtype=dtype)
    whole = torch.zeros(4, 6, dtype=dtype).cuda()
    to, given = whole.t()[1:4], source.cuda()  # the rows are far from each other
    graph = compile_copy(tensor_meta(to), tensor_meta(given), as_device("cuda"))
    assert graph(to, given) == []
    torch.testing.assert_close(to.cpu(), target.copy_(source))
    assert whole.cpu()[:, [0, 4, 5]].count_nonzero() == 0


def test_values_of_every_width_go_from_warp_to_warp():
    """The maximum of a row of 1500, whose greatest element each warp may hold."""
    for dtype in (torch.bool, torch.int8, torch.float16, torch.int32, torch.float32, torch.int64, torch.float64):
        x = torch.zeros(8, 1500, dtype=dtype)
        for row in range(8):
            x[row, 30 * row * row] = 1
        (found,) = graph_of(A.amax.default, x, [1])(x.cuda())
        assert torch.equal(found.cpu(), torch.ones(8, dtype=dtype)), dtype
        _, place = graph_of(A.max.dim, x, 1)(x.cuda())
        assert place.tolist() == [30 * row * row for row in range(8)], dtype
