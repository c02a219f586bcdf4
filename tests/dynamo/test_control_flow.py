"""cond, while_loop, scan, map and associative_scan: plainly, captured by each backend, mapped over, differentiated."""

import pytest
from flambeau._higher_order_ops import associative_scan, cond, map, scan, while_loop
from helpers import Graphs

import flambeau as torch
from flambeau.aot.stacked_loop import while_loop_stack_output
from flambeau.compiler import compile
from flambeau.core.higher_order import HigherOrderOperator
from flambeau.dynamo import exc

tree_leaves = torch.utils._pytree.tree_leaves
W = torch.tensor([2.0, 3.0], requires_grad=True)
ROWS = torch.arange(1.0, 7.0).reshape(3, 2)


class Gate(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return cond(x.sum() > 0, self.a, lambda t: self.b(t).tanh(), (x,))


def branches(x):
    return cond(x.sum() > 0, lambda a: {"y": a * W, "n": 3}, lambda a: {"y": (a - 1) * W * W, "n": 3}, (x,))


def nested_branches(x):
    def inner(a):
        return cond(a.max() > 2, lambda b: b * W, lambda b: b + W, (a,))

    return cond(x.sum() > 0, inner, lambda a: inner(a) * 2, (x,)) + 1


def writes_to_a_copy(x):
    def branch(a):
        a = a.clone()
        a.add_(1)
        return a

    return cond(x.sum() > 0, branch, lambda a: a.sin(), (x,))


def loop(x):
    i, y = while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * 2 + W.detach()), (torch.tensor(0), x.detach()))
    return y + i


def loop_of_known_length(x):
    return while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, (a * W).sin() + a), (torch.tensor(0), x))[1]


def loop_until(x):
    n, y = while_loop(lambda n, a: (a * a).sum() < 100, lambda n, a: (n + 1, a * a + W), (torch.tensor(0), x))
    return y * n


def loop_without_a_turn(x):
    return while_loop(lambda a: a.sum() < -100, lambda a: a * W, (x,))[0] * 3


def loop_in_a_loop(x):
    def body(i, a):
        inner = while_loop(lambda j, b: j > 0, lambda j, b: (j - 1, torch.tanh(b * W)), (i, a))[1]
        return i - 1, inner + a

    return while_loop(lambda i, a: i > 0, body, (torch.tensor(3), x))[1]


def every_turn_in_a_loop(x):
    def body(i, a):
        turns = while_loop_stack_output(lambda b: b.sum() < 50, lambda b: (b * b + a,), (a * 2,))[0]
        return i - 1, torch.tanh(turns.sum(0)) + a

    return while_loop(lambda i, a: i > 0, body, (torch.tensor(2), x))[1]


def every_turn(x):
    return while_loop_stack_output(lambda a: a.sum() < 50, lambda a: (a * a + x,), (x * 2,))[0]


def recurrence(x):
    carry, ys = scan(lambda c, r: (torch.tanh(c * W + r), {"y": c * r}), torch.ones(2), x)
    return carry, ys["y"]


def recurrence_backwards(x):
    return scan(lambda c, r: (c + r[0] * W[0], [c * r[1]]), x[0], (x.t(), x.t() * 2), dim=1, reverse=True)


def mapped(x):
    return map(lambda r, k: (r * k + W, r.sum()), x, 3.0)


def associative(x):
    return associative_scan(lambda a, b: a * b, x, 0), associative_scan(torch.add, x, 1, reverse=True)


def each_its_branch(x):
    return torch.vmap(lambda r: cond(r.sum() > 4, lambda a: a * W, lambda a: a - W, (r,)))(x)


def one_branch_for_all(x):
    return torch.vmap(lambda r: cond(W.sum() > 4, lambda a: a * W, lambda a: a - W, (r,)))(x)


def each_its_loop(x):
    return torch.vmap(lambda r: while_loop(lambda a: a.sum() < 20, lambda a: (a * 2,), (r,))[0])(x.detach())


def each_its_scan(x):
    return torch.vmap(lambda r: scan(lambda c, v: (c + v, c * v), r.sum(), r))(x)


CASES = [
    (branches, ROWS[0]), (branches, -ROWS[0]), (nested_branches, ROWS[0]), (nested_branches, -ROWS[2]), (writes_to_a_copy, ROWS[0]),
    (loop, ROWS[0]), (loop_of_known_length, ROWS[0]), (loop_in_a_loop, ROWS[0]), (every_turn_in_a_loop, ROWS[0]), (loop_until, ROWS[0]), (loop_without_a_turn, ROWS[0]), (every_turn, ROWS[0]),
    (every_turn, 100 * ROWS[0]), (recurrence, ROWS), (recurrence_backwards, ROWS), (mapped, ROWS), (associative, ROWS), (each_its_branch, ROWS),
    (one_branch_for_all, ROWS), (each_its_loop, ROWS), (each_its_scan, ROWS), (Gate(), ROWS[0]), (Gate(), -ROWS[0]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: getattr(c[0], "__name__", "module"))
def test_agrees_with_plain(case):
    fn, x = case
    owners = [W, *getattr(fn, "parameters", lambda: ())()]

    def outcome(f):
        given = x.clone().requires_grad_()
        for o in owners:
            o.grad = None
        out = [t for t in tree_leaves(f(given)) if isinstance(t, torch.Tensor)]
        total = sum((t * t).sum() for t in out if t.requires_grad)
        if isinstance(total, torch.Tensor):
            total.backward()
        return [t.detach() for t in out], [given.grad, *(o.grad for o in owners)]

    want = outcome(fn)
    for backend in ("eager", "aot_eager", "inductor"):
        torch._dynamo.reset()
        got = outcome(compile(fn, backend=backend, fullgraph=True))
        for a, b in zip(want[0], got[0], strict=True):
            assert torch.allclose(a, b, atol=1e-5), backend
        for a, b in zip(want[1], got[1], strict=True):
            # A branch that was not taken gives no gradient plainly, and zeros in one node for both.
            assert (
                torch.allclose(torch.zeros_like(b) if a is None else a, b, atol=1e-5) if b is not None else a is None
            ), backend


@pytest.mark.parametrize("fn", [loop_of_known_length, loop_until, every_turn], ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_second_derivatives_of_loops(fn, backend):
    def second(f):
        x = ROWS[0].clone().requires_grad_()
        (first,) = torch.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    torch._dynamo.reset()
    assert torch.allclose(second(compile(fn, backend=backend, fullgraph=True)), second(fn), rtol=1e-4)


def test_one_node_with_bodies():
    g = Graphs()
    compile(recurrence, backend=g, fullgraph=True)(ROWS)
    (node,) = [n for n in g.gms[0].graph.nodes if isinstance(n.target, HigherOrderOperator)]
    assert node.target.__name__ == "scan" and node.args[0].op == "get_attr"
    assert isinstance(getattr(g.gms[0], node.args[0].target), torch.fx.GraphModule)


def test_both_branches_are_kept_for_later_calls():
    g = Graphs()
    c = compile(branches, backend=g, fullgraph=True)
    for x in (ROWS[0], -ROWS[0]):
        assert torch.allclose(c(x)["y"], branches(x)["y"])
    assert len(g.gms) == 1


def test_side_effects_break_the_graph():
    log = []

    def f(x):
        def yes(a):
            log.append("yes")
            return a + 1

        return cond(x.sum() > 0, yes, lambda a: a - 1, (x,))

    c = compile(f, backend="eager")
    c(ROWS[0]), c(-ROWS[0]), c(ROWS[0])
    assert log == ["yes", "yes"]
    with pytest.raises(exc.Unsupported, match="side effects"):
        compile(f, backend="eager", fullgraph=True)(ROWS[0])


def test_errors_name_the_argument():
    with pytest.raises(RuntimeError, match="Expected pred to be bool or single-element tensor"):
        cond(ROWS, lambda a: a, lambda a: a, (ROWS,))
    with pytest.raises(RuntimeError, match="Expect both branches to be callable"):
        cond(True, 3, lambda a: a, (ROWS,))
    with pytest.raises(RuntimeError, match=r"float32\[3, 2\].*float32\[2\]"):
        compile(lambda x: cond(x.sum() > 0, lambda a: a + 0, lambda a: a[0], (x,)), backend="eager", fullgraph=True)(
            ROWS
        )
    with pytest.raises(RuntimeError, match="one length"):
        scan(lambda c, x: (c, x), ROWS[0], (ROWS, ROWS[:2]))


def test_branches_by_size_are_both_exported():
    def f(x):
        def outer(x):
            return cond(x.shape[0] > 6, lambda x: x + 10, lambda x: x - 10, [x])

        return cond(x.shape[0] > 4, outer, lambda x: x - 3, [x]), torch.scalar_tensor(x.shape[0] > 5)

    exported = [
        torch._dynamo.export(f, aten_graph=aten, pre_dispatch=aten)(torch.ones(5, 2))[0] for aten in (False, True)
    ]
    module = type("M", (torch.nn.Module,), {"forward": lambda self, x: f(x)})()
    shapes = {"x": {0: torch.export.Dim("n")}}
    exported += [
        torch.export.export(module, (torch.ones(5, 2),), dynamic_shapes=shapes, strict=strict).module()
        for strict in (False, True)
    ]
    for gm in exported:
        for n in (3, 5, 6, 8):
            found, said = gm(torch.ones(n, 2))
            assert torch.equal(found, f(torch.ones(n, 2))[0]) and bool(said) == (n > 5)


def test_membership_depends_on_data():
    def f(x, n):
        return n in x, n not in x, 1 in [x[0], x[1]], 5 not in (x[0],), x + 1

    for backend in ("eager", "aot_eager", "inductor"):
        g = compile(f, backend=backend, fullgraph=True)
        for n in (1, 7):
            for x in (torch.tensor([1.0, 2.0]), torch.tensor([5.0, 7.0])):
                assert [str(v) for v in g(x, n)] == [str(v) for v in f(x, n)]
