"""What hooks return in place of a gradient is checked as PyTorch checks it, and so is what is assigned to ``.grad``."""

import pytest

import flambeau as torch

LARGER = {
    "double": (lambda g: g.double(), "has changed the type of value .was torch.FloatTensor got torch.DoubleTensor"),
    "half": (lambda g: g.half(), "has changed the type"),
    "integers": (lambda g: g.int(), "has changed the type"),
    "complex": (lambda g: g + 1j, "has changed the type"),
    "sparse": (lambda g: g.to_sparse(), "has changed the type"),
    "on another device": (lambda g: g.to("meta"), "has changed the type"),
    "broadcast": (lambda g: g.expand(2, 3), "has changed the size of value"),
    "summed": (lambda g: g.sum(), "has changed the size of value"),
    "a row": (lambda g: g.reshape(1, 3), "has changed the size of value"),
    "a number": (lambda g: 3.0, "expected Variable, but hook returned 'float'"),
    "a list": (lambda g: [g], "expected Variable, but hook returned 'list'"),
}


def at_the_leaf(x, hook):
    x.register_hook(hook)
    return x * 2


def at_a_result(x, hook):
    y = x * 2
    y.register_hook(hook)
    return y


def before_a_node(x, hook):
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (hook(grads[0]),))
    return y


def after_a_node(x, hook):
    y = x * 2
    y.grad_fn.register_hook(lambda grads, _: (hook(grads[0]), None))
    return y


def of_a_module(x, hook):
    module = torch.nn.Tanh()
    module.register_full_backward_hook(lambda m, grads, _: (hook(grads[0]),))
    return module(x)


def before_a_module(x, hook):
    module = torch.nn.Tanh()
    module.register_full_backward_pre_hook(lambda m, grads: (hook(grads[0]),))
    return module(x)


def traced(x, hook):
    def f(x):
        y = x * 2
        y.register_hook(hook)
        return y * y

    return torch.compile(f, backend="aot_eager")(x)


PLACES = [at_the_leaf, at_a_result, before_a_node, after_a_node, of_a_module, before_a_module, traced]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("row", LARGER)
def test_another_kind_of_gradient_is_refused(row, place):
    hook, text = LARGER[row]
    x = torch.arange(3.0).requires_grad_()
    y = place(x, hook)
    with pytest.raises((RuntimeError, TypeError), match=text):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("place", PLACES)
def test_a_gradient_of_the_same_kind_is_taken(place):
    x = torch.arange(3.0).requires_grad_()
    place(x, lambda g: g).sum().backward()
    plain, x.grad = x.grad, None
    place(x, lambda g: g * 3).sum().backward()
    torch.testing.assert_close(x.grad, plain * 3)


@pytest.mark.parametrize(
    "returned, text",
    [
        (lambda g: g[0], "expected tuple, but hook returned 'Tensor'"),
        (lambda g: list(g), "expected tuple, but hook returned 'list'"),
        (lambda g: (), "incorrect number of values .got 0"),
        (lambda g: (*g, None), "incorrect number of values"),
    ],
)
@pytest.mark.parametrize("before", [True, False])
def test_hooks_of_nodes_return_tuples(before, returned, text):
    y = torch.arange(3.0).requires_grad_() * 2
    if before:
        y.grad_fn.register_prehook(returned)
    else:
        y.grad_fn.register_hook(lambda grads, _: returned(grads))
    with pytest.raises((TypeError, RuntimeError), match=text):
        y.sum().backward()


def test_none_stays_none():
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    x = torch.ones(3).requires_grad_()
    a, _ = Two.apply(x)
    a.grad_fn.register_prehook(lambda grads: (grads[0], torch.ones(3)))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        a.sum().backward()


def test_a_hook_before_a_node_may_end_the_backward():
    x = torch.ones(3).requires_grad_()
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (None,))
    y.sum().backward()
    assert x.grad is None


ASSIGNED = {
    "itself": (lambda x: x, "can't assign Variable as its own grad"),
    "another dtype": (
        lambda x: torch.ones(3).double(),
        "with dtype 'torch.float64' to a tensor with grad_dtype 'torch.float32'",
    ),
    "another shape": (lambda x: torch.ones(1, 3), "of size '.1, 3.' to a tensor of size '.3.'"),
    "another device": (
        lambda x: torch.ones(3, device="meta"),
        "with device type 'meta' to a tensor with device type 'cpu'",
    ),
    "a number": (lambda x: 1.0, "got grad of type float"),
}


@pytest.mark.parametrize("row", ASSIGNED)
def test_assigned_gradients(row):
    make, text = ASSIGNED[row]
    x = torch.ones(3).requires_grad_()
    with pytest.raises((RuntimeError, TypeError), match=text):
        x.grad = make(x)
    assert x.grad is None


def test_a_functions_gradient_is_of_its_inputs_kind():
    def function(give):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return give(g)

        return F

    for give, text in [
        (lambda g: g + 1j, "got torch.complex64 for an input of torch.float32"),
        (lambda g: g.to("meta"), "expected device cpu but got meta"),
        (lambda g: 3.0, "expected Variable or None .got float."),
    ]:
        for start in (lambda x: x, lambda x: x * 1):
            x = torch.ones(3).requires_grad_()
            with pytest.raises(RuntimeError, match=text):
                function(give).apply(start(x)).sum().backward()
            assert x.grad is None


def test_grad_dtype():
    x = torch.ones(3).requires_grad_()
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float32
    with pytest.raises(RuntimeError, match="must be a torch.dtype or None, but got int"):
        x.grad_dtype = 3
    with pytest.raises(NotImplementedError, match="grad_dtype torch.float64 is not supported"):
        x.grad_dtype = torch.float64
    for use in (lambda y: y.grad_dtype, lambda y: setattr(y, "grad_dtype", torch.float32)):
        with pytest.raises(RuntimeError, match="on leaf tensors"):
            use(x * 2)
