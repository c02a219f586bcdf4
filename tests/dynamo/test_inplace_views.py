"""Views in place: unsqueeze_, squeeze_, t_, transpose_ and their kin, plainly, under autograd, batched and compiled."""

import pytest
from programs import agree, attempt

import flambeau as torch
from flambeau.testing._internal.logging_tensor import capture_logs_with_logging_tensor_mode

CASES = {
    "unsqueeze": ((2, 3), lambda x: x.unsqueeze_(1), lambda a: a[:, None]),
    "squeeze": ((1, 3, 1), lambda x: x.squeeze_(), lambda a: a.squeeze()),
    "squeeze_dim": ((1, 3, 1), lambda x: x.squeeze_(0), lambda a: a.squeeze(0)),
    "squeeze_dims": ((1, 3, 1), lambda x: x.squeeze_((0, 2)), lambda a: a.squeeze((0, 2))),
    "squeeze_nothing": ((2, 3), lambda x: x.squeeze_(0), lambda a: a),
    "t": ((2, 3), lambda x: x.t_(), lambda a: a.T),
    "transpose": ((2, 3, 4), lambda x: x.transpose_(0, -1), lambda a: a.swapaxes(0, -1)),
    "swapaxes": ((2, 3), lambda x: x.swapaxes_(0, 1), lambda a: a.T),
    "swapdims": ((2, 3), lambda x: x.swapdims_(0, 1), lambda a: a.T),
    "as_strided": ((2, 3), lambda x: x.as_strided_((2, 2), (3, 1), 1), lambda a: a[:, 1:]),
    "twice": ((2, 3), lambda x: x.unsqueeze_(0).transpose_(1, 2), lambda a: a.T[None]),
}  # fmt: skip
names = pytest.mark.parametrize("name", CASES)


def make(shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape).clone()


@names
def test_plain(name):
    shape, change, want = CASES[name]
    x = make(shape)
    a, flat = x.numpy().copy(), x.view(-1)
    assert change(x) is x
    assert x.tolist() == want(a).tolist()
    flat.add_(1)
    assert x.tolist() == want(a + 1).tolist()
    assert x._version >= 1


@names
@pytest.mark.parametrize("view", [False, True])
def test_gradient(name, view):
    """The gradient is that of the same program with the view that isn't in place."""
    shape, change, want = CASES[name]
    grads = []
    for in_place in (True, False):
        b = make(shape).requires_grad_()
        x = b * 2
        y = x[:] if view else x
        if in_place:
            change(y)
            y.mul_(3)
            w = torch.arange(float(y.numel())).reshape(tuple(y.shape))
            ((y * w).sum() + (x * 5).sum() if view else (y * w).sum()).backward()
            grads.append(b.grad.clone())
        else:
            n = make(shape)
            z = want(n.numpy()).astype(int)  # which element each is
            base = torch.zeros(n.numel())
            for k, i in enumerate(z.reshape(-1)):
                base[int(i)] += 6.0 * k
            if view:
                touched = set(z.reshape(-1).tolist())
                base += torch.tensor([30.0 if i in touched else 10.0 for i in range(n.numel())])
            grads.append(base.reshape(shape))
    assert torch.equal(*grads)


@names
def test_leaf(name):
    shape, change, _ = CASES[name]
    x = make(shape).requires_grad_()
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        change(x)
    assert tuple(x.shape) == shape
    with torch.no_grad():
        change(x)


def test_saved():
    x = make((2, 3)).requires_grad_() * 1
    y = x * x
    x.t_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_batched():
    x = make((4, 2, 3))
    out = torch.func.vmap(lambda v: (v * 1).unsqueeze_(0).transpose_(1, 2))(x)
    assert torch.equal(out, x.transpose(1, 2).unsqueeze(1))


def test_modes_see_the_view():
    with capture_logs_with_logging_tensor_mode() as logs:
        make((2, 3)).t_()
    assert any("aten.t" in line for line in logs)


@names
def test_compiled(name):
    shape, change, _ = CASES[name]

    def prog(C, torch):
        argument = C(lambda x: (change(x), x + 1)[1])
        inside = C(lambda x: change(x * 2) + 1)
        returned = C(lambda x: change(x))
        written = C(lambda x: (x.add_(1), change(x), x.mul_(2), x * 3)[3])
        before = C(lambda x: (x[0], change(x)))
        out = []
        for f in (argument, inside, returned, written, before):
            x = make(shape)
            flat = x.view(-1)
            r = attempt(f, x)
            out += [r, x, x.shape, x.stride(), x._version > 0, attempt(f, make(shape))]
            flat.add_(1)
            out += [x, r]
        x = make(shape)
        return [*out, returned(x) is x]

    agree(prog)


@names
def test_compiled_gradient(name):
    shape, change, _ = CASES[name]

    def prog(C, torch):
        out = []
        for f in (C(lambda x: (change(x), x * x)[1]), C(lambda x: change(x * 2) ** 2)):
            b = make(shape).requires_grad_()
            x = b * 3
            y = f(x)
            (y * make(tuple(y.shape))).sum().backward()
            out += [y, x, x.shape, b.grad]
            (x * 2).sum().backward()
            out.append(b.grad)
        b = make(shape).requires_grad_()
        return [*out, attempt(f, b)]

    agree(prog)


WRITES = {
    "imaginary part": lambda y: y.imag.add_(1),
    "a row of it": lambda y: y.imag[0].add_(1),
    "a column of the real part": lambda y: y.real[:, 1].mul_(2),
    "overlapping windows": lambda y: y.unfold(0, 2, 1).select(0, 0).add_(1),
    "a diagonal": lambda y: y.diagonal().add_(1),
    "the whole in another shape": lambda y: y.t().reshape(-1)[:3].add_(1),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_through_a_view_leaves_the_order_of_memory(name):
    def f(x):
        y = x * 1
        WRITES[name](y)
        return y

    x = torch.complex(make((3, 4)), make((3, 4)) + 20).t()
    want, got = f(x), torch.compile(f, backend="aot_eager")(x)
    assert torch.equal(got, want)
    assert got.stride() == want.stride() == (1, 4)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_view_that_a_graph_returns_may_be_written(backend):
    def f(x):
        y = (x * 2).view(-1)
        torch._dynamo.graph_break()
        y[:2].mul_(3)
        return y

    grads = []
    for fn in (f, torch.compile(f, backend=backend)):
        x = make((2, 3)).requires_grad_()
        fn(x).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)
