"""Ways in which programs are written that capture takes whole: plain, captured and compiled code give the same."""

import typing
import warnings

import pytest

import flambeau as torch
from flambeau import fx

X = torch.tensor([1.0, 2.0, 3.0])


def attributes(x, y):
    x.kept, x.number = y * 2, 5
    return x * x.kept + x.number


def lists(x):
    return [n * 2 for n in x.long().tolist()], x.sum().long().tolist() + 1


class Entry(typing.NamedTuple):
    name: str
    value: object


def annotated(x):
    class Local:
        def both(self, entries: typing.List[Entry]) -> typing.Dict[str, Entry]:  # noqa: UP006
            return {e.name: e for e in entries}

    return Local().both([Entry("a", x + 1)])["a"].value


def modes(x):
    with torch.set_grad_enabled(False):
        inner = torch.set_grad_enabled(True)(lambda x: x.sin())
        assert not torch.is_grad_enabled()
        return inner(x), x.cos()


def other_data(x):
    y, x.data = x.data, torch.zeros(2, 3)
    return x + 1, x.shape, y


class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def overridden(x):
    o = torch.overrides
    return x + 1, (o.has_torch_function((x,)), o.has_torch_function_unary(x), o.has_torch_function_variadic(x, 3))


PROGRAMS = {
    "attributes of inputs": (attributes, lambda: (X.clone(), X + 1)),
    "numbers of a tensor": (lists, lambda: (X,)),
    "annotations of classes": (annotated, lambda: (X,)),
    "layouts": (lambda x: (torch.zeros(2, layout=x.layout), x.layout == torch.strided, x.layout is torch.sparse_coo), lambda: (X,)),
    "grad modes as decorators": (modes, lambda: (X,)),
    "new() of a size": (lambda x: (x.new(x[None].size()).shape, x.new(2, 3).shape, x.new((2, 3)), x.new(x.shape[0]).shape), lambda: (X,)),
    "data of another shape": (other_data, lambda: (X.clone(),)),
    "tensors of the class": (lambda x: (torch.Tensor([4, 5]) + x[:2], torch.Tensor(x.shape).shape, torch.Tensor((1, 2))), lambda: (X,)),
    "vmap of a method": (lambda x: torch.vmap(torch.Tensor.sin)(x), lambda: (X,)),
    "overrides of a tensor": (overridden, lambda: (X,)),
    "overrides of a parameter": (overridden, lambda: (torch.nn.Parameter(X),)),
    "overrides of a subclass": (overridden, lambda: (X.as_subclass(Mine),)),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_whole(name, backend):
    fn, args = PROGRAMS[name]
    want, given = fn(*args()), args()
    got = torch.compile(fn, backend=backend, fullgraph=True)(*given)
    flat, other = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    for a, b in zip(flat, other, strict=True):
        torch.testing.assert_close(a, b)
    if name == "attributes of inputs":
        assert torch.equal(given[0].kept, given[1] * 2) and given[0].number == 5


def test_a_compiled_backward_reads_its_context():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        @torch.compile(backend="eager", fullgraph=True)
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * x.sin() if ctx.needs_input_grad[0] else None

    for _ in range(2):
        x = X.clone().requires_grad_()
        Double.apply(x).sum().backward()
        assert torch.equal(x.grad, X.sin())


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_views_of_sizes_that_depend_on_data(backend):
    def fn(t, n):
        a, b = t[0].item(), t[1].item()
        torch._check_is_size(a)
        torch._check_is_size(b)
        return torch.ones(a * b).view(n), torch.ones(a * b).view(-1, 2)

    compiled = torch.compile(fn, backend=backend, fullgraph=True)
    assert [x.shape for x in compiled(torch.tensor([2, 4]), 8)] == [(8,), (4, 2)]
    assert [x.shape for x in compiled(torch.tensor([4, 2]), 8)] == [(8,), (4, 2)]
    with pytest.raises(RuntimeError, match="is invalid for input of size"):
        compiled(torch.tensor([3, 4]), 8)


def test_names_of_a_compiled_module():
    assert {"weight", "_orig_mod", "named_parameters"} <= set(dir(torch.compile(torch.nn.Linear(2, 2))))


def test_compilers_that_change_their_graph_are_found_out():
    def wrong(gm, examples):
        for n in gm.graph.nodes:
            n.target = torch.cos if n.target is torch.sin else n.target
        gm.recompile()
        return gm.forward

    with (
        torch._dynamo.config.patch(verify_correctness=True),
        pytest.raises(RuntimeError, match="differs from plain code"),
    ):
        torch.compile(lambda x: torch.sin(x), backend=wrong)(X)


def test_objects_of_functions():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        torch.autograd.Function()


def test_optimize_as_a_context_manager(monkeypatch):
    counter = torch._dynamo.testing.CompileCounter()
    fn = lambda x: x.sin() + 1  # noqa: E731
    with torch._dynamo.optimize(counter):
        assert torch.equal(fn(X), X.sin() + 1)
    assert counter.frame_count == 1
    fn(X)
    with torch._dynamo.optimize(counter, disable=True):
        fn(X)
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    torch._dynamo.optimize(counter)(lambda x: x + 2)(X)
    assert counter.frame_count == 1


def test_tracing_compiled_functions():
    compiled = torch.compile(lambda x: x.sin() + 1, backend="eager")
    with pytest.raises(RuntimeError, match="Detected that you are using FX"):
        fx.symbolic_trace(compiled)
    with torch._dynamo.config.patch(error_on_nested_fx_trace=False):
        assert torch.equal(fx.symbolic_trace(compiled)(X), X.sin() + 1)


def test_any_number_of_variants():
    counter = torch._dynamo.testing.CompileCounter()
    fn = torch.compile(lambda x, n: x * n, backend=counter, dynamic=False)
    with torch._dynamo.utils.disable_cache_limit(), warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(2, 20):
            fn(X, n)
    assert counter.frame_count == 18
