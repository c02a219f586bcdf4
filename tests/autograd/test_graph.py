"""Nodes, edges and hooks as programs see them; each expectation is PyTorch's."""

import gc
import threading
import warnings
import weakref

import pytest

import flambeau as torch
from flambeau.autograd import Function
from flambeau.autograd.function import once_differentiable
from flambeau.autograd.graph import (
    GradientEdge,
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)


def leaf(*values):
    return torch.tensor(values, requires_grad=True)


def test_nodes_have_names_edges_and_saved_values():
    x = leaf(1.0, 2.0)
    y = x * x
    node = y.grad_fn
    assert type(node).__name__ == "MulBackward0" == node.name() and isinstance(node, Node)
    (acc, nr), _ = node.next_functions
    assert acc.name() == "torch::autograd::AccumulateGrad" and nr == 0 and acc.variable is x
    assert node._saved_self is x and y.exp().grad_fn.next_functions[0][0] is node
    e = y.exp()
    assert e.grad_fn._saved_result is not e and e.grad_fn._saved_result.grad_fn is e.grad_fn
    with pytest.raises(AttributeError, match="_saved_nothing"):
        node._saved_nothing  # noqa: B018
    node.metadata["mine"] = 1
    assert y.grad_fn.metadata == {"mine": 1}
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        node._saved_self  # noqa: B018


@pytest.mark.parametrize(
    "fn, edges",
    [
        (lambda x: x + 1, [True, False]),
        (lambda x: x * torch.ones(2), [True, False]),
        (lambda x: torch.cat([torch.ones(1), x]), [False, True]),
        (lambda x: torch.nn.functional.layer_norm(x, [2]), [True, False, False]),
        (lambda x: x[0], [True]),
        (lambda x: x.gather(0, torch.tensor([0])), [True]),
    ],
)
def test_an_argument_that_has_a_derivative_has_an_edge(fn, edges):
    assert [n is not None for n, _ in fn(leaf(1.0, 2.0)).grad_fn.next_functions] == edges


def test_hooks_of_tensors_and_nodes():
    x = leaf(1.0, 2.0)
    seen = []
    handle = x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = x * x
    y.grad_fn.register_prehook(lambda cts: (cts[0] * 5,))
    y.grad_fn.register_hook(lambda grads, cts: tuple(None if g is None else g * 3 for g in grads))
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and y.retains_grad and not x.retains_grad
    assert seen == [[60.0, 120.0]]
    handle.remove()
    (x * 1).sum().backward()
    assert x.grad.tolist() == [61.0, 121.0]


@pytest.mark.parametrize("hook, error", [(lambda g: "no tensor", TypeError), (lambda g: 1 / 0, ZeroDivisionError)])
def test_what_a_hook_does_wrong_is_its_error(hook, error):
    x = leaf(1.0)
    x.register_hook(hook)
    with pytest.raises(error):
        (x * 2).backward()
    assert (x * 2).requires_grad and x.grad is None


def test_the_gradient_kept_follows_a_write():
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0] and x.grad.tolist() == [6.0, 6.0]


def test_a_kept_gradient_has_memory_of_its_own():
    x, g = leaf(1.0, 2.0), torch.ones(2)
    y = x + 0
    z = y + 0
    y.retain_grad()
    z.retain_grad()
    z.backward(g)
    z.grad.zero_()
    assert g.tolist() == y.grad.tolist() == x.grad.tolist() == [1.0, 1.0]
    y = x * 1
    y.sum().backward(inputs=[y])
    assert y.grad.stride() == (1,)
    y.grad.mul_(2)
    assert y.grad.tolist() == [2.0, 2.0]


def test_hooks_on_several_gradients():
    x, y, seen, first = leaf(1.0, 2.0), leaf(3.0, 4.0), [], []
    handle = register_multi_grad_hook([x, y], lambda gs: seen.append([None if g is None else g.tolist() for g in gs]))
    register_multi_grad_hook([x, y], lambda g: first.append(1), mode="any")
    (x * y).sum().backward()
    (x * 2).sum().backward()
    assert seen == [[[3.0, 4.0], [1.0, 2.0]], [[2.0, 2.0], None]] and len(first) == 2
    handle.remove()
    (x * y).sum().backward()
    assert len(seen) == 2
    with pytest.raises(ValueError, match="mode"):
        register_multi_grad_hook([x], print, mode="some")


def test_edges_stand_for_tensors():
    x = leaf(1.0, 2.0)
    y = x.exp()
    edge = get_gradient_edge(y)
    assert isinstance(edge, GradientEdge) and edge.node is y.grad_fn and edge.output_nr == 0
    assert torch.autograd.grad((y * 3).sum(), edge)[0].tolist() == [3.0, 3.0]
    got = torch.autograd.grad(edge, x, grad_outputs=torch.ones(2))[0]
    assert torch.allclose(got, y)
    with pytest.raises(RuntimeError, match="does not require gradients"):
        get_gradient_edge(torch.ones(2))


def test_backward_into_some_inputs():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = x * w
    (y * y).sum().backward(inputs=[x, y])
    assert x.grad.tolist() == [18.0, 64.0] and w.grad is None and y.grad.tolist() == [6.0, 16.0]
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * w).sum().backward(inputs=[])


def test_grad_of_what_is_not_used_and_of_a_batch():
    x, y = leaf(1.0, 2.0), leaf(1.0)
    assert torch.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0]
    with pytest.raises(RuntimeError, match="index 1 appears to not have been used"):
        torch.autograd.grad(x.sum(), [x, y])
    with pytest.raises(ValueError, match="materialize_grads"):
        torch.autograd.grad(x.sum(), [x], allow_unused=False, materialize_grads=True)
    (rows,) = torch.autograd.grad(x * x, x, torch.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_hooks_on_saved_tensors():
    x, packed = leaf(1.0, 2.0), []

    def pack(t):
        packed.append(t)
        return len(packed) - 1

    with saved_tensors_hooks(pack, lambda k: packed[k]):
        y = x * x
        z = y.exp()
    assert len(packed) == 3 and packed[0] is x and packed[2] is not z
    (g,) = torch.autograd.grad(z.sum(), x, create_graph=True)
    assert torch.allclose(g, 2 * x * z)
    (second,) = torch.autograd.grad(g.sum(), x)
    assert torch.allclose(second, (2 + 4 * x * x) * z)
    with saved_tensors_hooks(lambda t: t, lambda t: "no tensor"):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor"):
        y.sum().backward()
    with save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), saved_tensors_hooks(pack, pack):
            pass


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_what_pack_hooks_compute_has_no_history(compiled):
    x, packed = leaf(1.0, 2.0), []

    def pack(t):
        packed.append(((t * t).requires_grad, torch.is_grad_enabled()))
        return t.numpy().copy()

    def f(x):
        return (x.exp() * x).tanh()

    with saved_tensors_hooks(pack, torch.from_numpy):
        y = (torch.compile(f) if compiled else f)(x)
        assert torch.is_grad_enabled()
    assert packed and not any(map(any, packed))
    (g,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(g, torch.autograd.grad(f(x).sum(), x)[0])

    def fails(t):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"), saved_tensors_hooks(fails, fails):
        x.exp()
    assert torch.is_grad_enabled()


def test_versions():
    x = leaf(1.0, 2.0)
    y = x * x
    increment_version(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = x * 1
    with allow_mutation_on_saved_tensors():
        z = y**2
        y.zero_()
        z.sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "fn, spurious",
    [
        (lambda y: y.mul_(y), True),
        (lambda y: y.exp().mul_(2), True),
        (lambda y: y.div(torch.tensor([2.0, 4.0])).mul_(2), False),
        (lambda y: torch.logaddexp(y, y).mul_(2), False),
        (lambda y: (y.topk(1)[0], y.zero_())[0], False),
        (lambda y: torch.zeros(4).index_put((torch.tensor([0, 1]),), y.add_(1)), False),
        (lambda y: (torch.slice_scatter(torch.zeros(4) * y.sum(), y, 0, 0, 2), y.zero_())[0], False),
        (lambda y: y.relu_().add_(1), True),
    ],
)
def test_what_is_saved_is_the_operators_contract(fn, spurious):
    x = leaf(1.0, 2.0)
    out = fn(x * 1).sum()
    if spurious:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.backward()
    else:
        out.backward()


def test_a_custom_backward_may_run_a_backward():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                again = x.detach().requires_grad_()
                (again**3).sum().backward()
            return g * again.grad

    x = leaf(1.0, 2.0)
    Cube.apply(Cube.apply(x)).sum().backward()
    assert x.grad.tolist() == [9.0, 9.0 * 2**8]
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_functions_written_by_users():
    class Two(Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.set_materialize_grads(False)
            ctx.mark_non_differentiable(out := x.sign())
            return x * n, out

        @staticmethod
        def backward(ctx, g, h):
            assert h is None
            return g * 2, None

    class Dirty(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    a, b = Two.apply(x, 2)
    assert (
        not b.requires_grad
        and type(a.grad_fn).__name__ == "TwoBackward"
        and a.grad_fn.needs_input_grad == (True, False)
    )
    a.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    y = x * 1
    z = Dirty.apply(y)
    assert z is y and z.grad_fn.name() == "DirtyBackward"
    with pytest.raises(RuntimeError, match="leaf Variable"):
        Dirty.apply(leaf(1.0))


def test_a_backward_that_is_differentiable_once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    (g,) = torch.autograd.grad((Once.apply(x) ** 2).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiate twice"):
        g.sum().backward()


@pytest.mark.parametrize(
    "grad, match",
    [(lambda g: torch.ones(5), "invalid gradient at index 0"), (lambda g: (g, g, g), "incorrect number of gradients")],
)
def test_bad_results_of_a_custom_backward(grad, match):
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return grad(g)

    with pytest.raises(RuntimeError, match=match):
        F.apply(leaf(1.0, 2.0)).sum().backward()


def test_anomaly_mode_names_the_call():
    x = leaf(1.0, 2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with (
            torch.autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"),
        ):
            y = (x - 1).sqrt() * 0
            y.sum().backward()
    assert any("Traceback of forward call" in str(w.message) and "test_graph.py" in str(w.message) for w in caught)
    assert not torch.autograd.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.autograd.is_anomaly_enabled()
        ((x - 1).sqrt() * 0).sum().backward()


def test_backward_in_several_threads():
    x, found = leaf(1.0, 2.0), []

    def run():
        found.extend(torch.autograd.grad((x * x).sum(), x)[0].tolist() for _ in range(50))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [[2.0, 4.0]] * 200


def freed(*tensors):
    return [weakref.ref(t) for t in tensors]


def test_nothing_waits_for_the_collector():
    class F(Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a, out := a * 2)
            ctx.other = a
            return out

        @staticmethod
        def backward(ctx, g):
            ctx.saved_tensors  # noqa: B018
            return g * 2

    w = torch.ones(3, 3, requires_grad=True)

    def function():
        a = w * 1
        return a, F.apply(a)

    def writes():
        a = w * 1
        a[0] = 5.0
        a[1:].mul_(a[1:].exp())
        return a, a.sum()

    def saved_result():
        a = (w * 1).exp()
        return a, a.softmax(0).sum()

    gc.disable()
    try:
        for make in (function, writes, saved_result):
            for run in (False, True):
                tensors = make()
                if run:
                    tensors[-1].sum().backward()
                refs = freed(*tensors)
                del tensors
                assert [r() for r in refs] == [None] * len(refs), (make.__name__, run)
    finally:
        gc.enable()


def test_a_leaf_lives_as_long_as_its_graph():
    x = leaf(1.0)
    ref = weakref.ref(x)
    y = x * 2
    acc = y.grad_fn.next_functions[0][0]
    del x
    y.backward()
    assert acc.variable.grad.tolist() == [2.0]
    del y, acc
    gc.collect()
    assert ref() is None


class Checkpoint(Function):
    """Activation checkpointing, the re-entrant way: the backward runs the forward again and a backward of its own."""

    @staticmethod
    def forward(ctx, run, *args):
        ctx.run = run
        ctx.save_for_backward(*args)
        return run(*args)

    @staticmethod
    def backward(ctx, *grads):
        args = [t.detach().requires_grad_(t.requires_grad) for t in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.run(*args)
        torch.autograd.backward(out, grads)
        return (None, *(t.grad for t in args))


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_checkpoints_nest(depth):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4) for _ in range(3)]
    x = torch.randn(2, 4, requires_grad=True)

    def forward(x, depth):
        if not depth:
            for layer in layers:
                x = layer(x).tanh()
            return x
        return Checkpoint.apply(lambda t: forward(t, depth - 1), x)

    def gradients(depth):
        for p in (x, *(p for layer in layers for p in layer.parameters())):
            p.grad = None
        forward(x * 2, depth).sum().backward()
        return [p.grad.clone() for p in (x, *(p for layer in layers for p in layer.parameters()))]

    for got, want in zip(gradients(depth), gradients(0), strict=True):
        assert torch.allclose(got, want)


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("zero", [0, 0.0, False])
def test_a_power_of_zero_has_a_gradient_of_zeros(shape, zero):
    for fn in (lambda x: x**zero, lambda x: torch.pow(x, zero), lambda x: (x * 1).pow_(zero)):
        for _ in range(3):
            x = torch.full(shape, 2.0, requires_grad=True)
            fn(x).sum().backward()
            assert x.grad.shape == x.shape and not x.grad.any()


def test_what_a_function_returns_and_saves():
    """The usual case of a Function is recorded by a way of its own: what it can't do has to be noticed."""

    class Keep(Function):
        @staticmethod
        def forward(ctx, x, what):
            y = x * 2
            ctx.save_for_backward(x, y, None)
            return {"new": y, "input": x, "integers": y.long(), "pair": (y, x), "nothing": None}[what]

        @staticmethod
        def backward(ctx, g, *more):
            x, y, none = ctx.saved_tensors
            assert none is None and torch.equal(y, x * 2) and (not y.requires_grad or y.grad_fn is not None)
            return g * 3, None

    for _ in range(3):
        for what in ("new", "input", "pair"):
            x = torch.ones(2, requires_grad=True)
            out = Keep.apply(x, what)
            first = out[0] if what == "pair" else out
            assert (
                first is not x
                and type(first.grad_fn).__name__ == "KeepBackward"
                and first.grad_fn.name() == "KeepBackward"
            )
            first.sum().backward()
            assert x.grad.tolist() == [3.0, 3.0]
        x = torch.ones(2, requires_grad=True)
        assert not Keep.apply(x, "integers").requires_grad and Keep.apply(x, "nothing") is None
        with torch.no_grad():
            assert not Keep.apply(x, "new").requires_grad
        assert x.requires_grad and torch.is_grad_enabled()


@pytest.mark.parametrize("fn", [torch.xlogy, torch.special.xlog1py])
def test_a_logarithm_of_a_number_keeps_its_digits(fn):
    for _ in range(3):
        x = torch.tensor([1.7, 0.0], dtype=torch.float64, requires_grad=True)
        (got,) = torch.autograd.grad(fn(x, 2.0).sum(), x)
        (want,) = torch.autograd.grad(fn(x, torch.tensor(2.0, dtype=torch.float64)).sum(), x)
        assert got.tolist() == want.tolist()


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor=1.0, power=1):
        ctx.factor = factor
        return x**power * factor

    @staticmethod
    def backward(ctx, ct):
        return ct * ctx.factor, *[None] * (len(ctx.needs_input_grad) - 1)


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
def test_keywords_of_a_function_have_gradients(backend):
    calls = [
        lambda x: Scaled.apply(x=x),
        lambda x: Scaled.apply(x, factor=3.0),
        lambda x: Scaled.apply(factor=3.0, x=x),
    ]
    for call, want in zip(calls, (1.0, 3.0, 3.0)):
        x = torch.ones(2, requires_grad=True)
        (call if backend is None else torch.compile(call, backend=backend))(x).sum().backward()
        assert x.grad.tolist() == [want, want]


def test_a_gap_among_the_keywords_of_a_function():
    with pytest.raises(TypeError, match="missing required argument: 'factor'"):
        Scaled.apply(torch.ones(2), power=2)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("mark", "error", "text"),
    [
        (lambda ctx, x: ctx.save_for_backward(x, "s"), TypeError, "argument 1 is of type str"),
        (lambda ctx, x: ctx.save_for_backward([x]), TypeError, "argument 0 is of type list"),
        (lambda ctx, x: ctx.save_for_forward(3), AssertionError, "expects all arguments to be tensors"),
        (lambda ctx, x: ctx.mark_non_differentiable(4), TypeError, "only accepts variable arguments, but got int"),
    ],
)
def test_a_function_keeps_and_marks_tensors_alone(mark, error, text, compiled):
    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            mark(ctx, x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    apply = torch.compile(lambda x: Marked.apply(x), backend="eager") if compiled else Marked.apply
    with pytest.raises(error, match=text):
        apply(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("fn", [lambda a: a.sum() * 1j, lambda a: (a * 1j).sum()])
def test_func_grad_asks_for_a_real_scalar(fn):
    with pytest.raises(RuntimeError, match=r"only for real scalar outputs but got torch\.complex64"):
        torch.func.grad(fn)(torch.ones(2, requires_grad=True))


@pytest.mark.parametrize("looked_at", [False, True])
def test_a_node_that_was_looked_at_gives_the_same_gradient(looked_at):
    """Its name makes it a class of its own; a real factor of complex numbers takes the real part either way."""
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([1j, 2.0])
    y = x * w
    assert not looked_at or "MulBackward0" in repr(y)
    assert torch.autograd.grad(y, x, torch.tensor([1j, 1.0]))[0].tolist() == [1.0, 2.0]


def test_tangents_through_the_size_of_complex_numbers():
    x, t = torch.tensor([3.0, -4.0]), torch.tensor([1.0, 2.0])
    for f in (lambda x: (x * 1j).abs(), lambda x: x.to(torch.complex64).abs(), lambda x: torch.fft.fft(x).abs()):
        found, numeric = torch.func.jvp(f, (x,), (t,))[1], (f(x + t * 1e-2) - f(x - t * 1e-2)) / 2e-2
        torch.testing.assert_close(found, numeric, rtol=1e-3, atol=1e-3)
