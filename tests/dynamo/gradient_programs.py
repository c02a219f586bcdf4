"""Programs about gradients: of any order, hooks of every sort, Functions of one's own, transforms; they run plainly and compiled by ``C``."""

import flambeau as torch
from flambeau import nn
from flambeau.utils.checkpoint import checkpoint as checkpoint_of


def X():
    return torch.tensor([0.5, 1.5, -0.7], requires_grad=True)


PROGRAMS = {}


def p(f):
    PROGRAMS[f.__name__] = f
    return f


def L(v):
    if isinstance(v, torch.Tensor):
        return [round(float(q), 4) for q in v.detach().reshape(-1)] + ([] if not v.requires_grad else ["g"])
    if isinstance(v, (list, tuple)):
        return [L(q) for q in v]
    return v


def filled_linear():
    m = nn.Linear(3, 2)
    with torch.no_grad():
        m.weight.fill_(0.3)
        m.bias.fill_(0.1)
    return m


@p
def double(C):
    x = X()
    y = C(lambda x: (x**3).sum())(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h


@p
def triple(C):
    x = X()
    y = C(lambda x: (x**4).sin().sum())(x)
    for _ in range(3):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y


@p
def double_inside(C):
    def f(x):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return (g**2).sum()

    x = X()
    l = C(f)(x)
    l.backward()
    return l, x.grad


@p
def double_inside2(C):
    def f(x):
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g, h

    x = X()
    return C(f)(x)


@p
def penalty(C):
    m = nn.Linear(3, 1)
    with torch.no_grad():
        m.weight.fill_(0.3)
        m.bias.fill_(0.1)

    def f(x):
        y = m(x).tanh().sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return y + (g.norm() - 1) ** 2

    x = X()
    l = C(f)(x)
    l.backward()
    return l, x.grad, m.weight.grad


@p
def across_break(C):
    def f(x):
        y = x * x
        torch._dynamo.graph_break()
        return (y * x).sum()

    x = X()
    y = C(f)(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h


@p
def tensor_hook_out(C):
    x = X()
    y = C(lambda x: x * x)(x)
    log = []
    y.register_hook(lambda g: log.append(L(g)) or g * 2)
    y.sum().backward()
    return x.grad, log


@p
def tensor_hook_in(C):
    def f(x):
        y = x * x
        y.register_hook(lambda g: g * 3)
        return y.sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def tensor_hook_input_inside(C):
    def f(x):
        x.register_hook(lambda g: g * 3)
        return (x * x).sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def hook_on_input_before(C):
    x = X()
    x.register_hook(lambda g: g * 5)
    C(lambda x: (x * x).sum())(x).backward()
    return x.grad


@p
def hook_between(C):
    log = []
    g = C(lambda x: x * 2)
    h = C(lambda y: y.sin().sum())
    x = X()
    y = g(x)
    y.register_hook(lambda q: log.append(L(q)))
    h(y).backward()
    return x.grad, log


@p
def post_acc_hook(C):
    log = []
    x = X()
    x.register_post_accumulate_grad_hook(lambda t: log.append(L(t.grad)))
    f = C(lambda x: (x * x).sum())
    f(x).backward()
    f(x).backward()
    return x.grad, log


@p
def module_full_backward(C):
    m = nn.Linear(3, 2)
    log = []
    with torch.no_grad():
        m.weight.fill_(0.3)
        m.bias.fill_(0.1)
    m.register_full_backward_hook(lambda m, gi, go: log.append((L(gi), L(go))))
    x = X()
    C(lambda x: m(x).sum())(x).backward()
    return x.grad, log


@p
def module_full_backward_replace(C):
    m = filled_linear()
    m.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))
    x = X()
    C(lambda x: m(x).sum())(x).backward()
    return x.grad


@p
def module_full_backward_pre(C):
    m = filled_linear()
    m.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    x = X()
    C(lambda x: m(x).sum())(x).backward()
    return x.grad


@p
def module_fwd_hooks(C):
    m = filled_linear()
    m.register_forward_hook(lambda m, i, o: o * 2)
    m.register_forward_pre_hook(lambda m, i: (i[0] + 1,))
    x = X()
    y = C(m)(x)
    y.sum().backward()
    return y, x.grad


@p
def retain_grad_out(C):
    x = X()
    y = C(lambda x: x * x)(x)
    y.retain_grad()
    y.sum().backward()
    return y.grad, x.grad


@p
def retain_grad_in(C):
    def f(x):
        y = x * x
        y.retain_grad()
        return y, (y * 2).sum()

    x = X()
    y, l = C(f)(x)
    l.backward()
    return y.grad, x.grad


@p
def grad_inside(C):
    def f(x):
        return torch.autograd.grad((x**3).sum(), x)[0]

    return C(f)(X())


@p
def grad_inside_detached(C):
    def f(x):
        x = x.detach().requires_grad_()
        y = (x**3).sum()
        return torch.autograd.grad(y, x)[0]

    return C(f)(X())


@p
def grad_allow_unused(C):
    def f(x, y):
        return torch.autograd.grad((x**3).sum(), [x, y], allow_unused=True)

    return C(f)(X(), X())


@p
def grad_outputs(C):
    def f(x):
        return torch.autograd.grad(x**3, x, grad_outputs=torch.ones(3) * 2)[0]

    return C(f)(X())


@p
def backward_inside(C):
    def f(x):
        l = (x**3).sum()
        l.backward()
        return l

    x = X()
    l = C(f)(x)
    return l, x.grad


@p
def backward_inside_twice(C):
    def f(x):
        l = (x**3).sum()
        l.backward(retain_graph=True)
        l.backward()
        return l

    x = X()
    l = C(f)(x)
    return l, x.grad


@p
def zero_grad_inside(C):
    def f(x):
        x.grad = None
        (x**3).sum().backward()
        return x.grad * 1

    x = X()
    f = C(f)
    f(x)
    return f(x), x.grad


class Sq(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * 10


@p
def fn_basic(C):
    x = X()
    C(lambda x: Sq.apply(x).sum())(x).backward()
    return x.grad


class Reversed(torch.autograd.Function):
    """Its result is a view of what it is given, and the gradient isn't a view's."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -5 * g


@p
def fn_view(C):
    x = X()
    C(Reversed.apply)(x).sum().backward()
    return x.grad


@p
def fn_view_of_result(C):
    x = X()
    y, z = C(lambda x: (y := x * 2, Reversed.apply(y)))(x)
    (y.sum() + z.sum()).backward()
    return x.grad


@p
def fn_view_of_part(C):
    x = X()
    C(lambda x: Reversed.apply(x[1:]))(x).sum().backward()
    return x.grad


@p
def fn_part_of_view(C):
    x = X()
    y = x * 3
    C(lambda y: Reversed.apply(y)[1:])(y).sum().backward()
    return x.grad


class PartAndWhole(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x[:1], x.view_as(x), x * 2

    @staticmethod
    def backward(ctx, part, whole, twice):
        return whole * 5 + twice * 3


@p
def fn_views(C):
    x = X()
    _, y, z = C(PartAndWhole.apply)(x)
    (y.sum() + z.sum()).backward()
    return x.grad


class TooMany(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g, g


class TooFew(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, g):
        return g


@p
def fn_gradients_miscounted(C):
    x, found = X(), []
    for f in (lambda x: TooMany.apply(x).sum(), lambda x: TooFew.apply(x, 3.0).sum()):
        y = C(f)(x)
        try:
            y.backward()
        except RuntimeError as e:
            found.append(str(e))
    return found


@p
def fn_double(C):
    x = X()
    y = C(lambda x: Sq.apply(x).sum())(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g, h


@p
def fn_double_in(C):
    def f(x):
        y = Sq.apply(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        return g.sum()

    x = X()
    C(f)(x).backward()
    return x.grad


class Setup(torch.autograd.Function):
    @staticmethod
    def forward(x, k):
        return x * k, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, k = inputs
        ctx.k = k
        ctx.save_for_backward(x, output[0])

    @staticmethod
    def backward(ctx, g, h):
        x, o = ctx.saved_tensors
        return g * ctx.k + h + x * o, None


@p
def fn_setup(C):
    def f(x):
        a, b = Setup.apply(x, 3.0)
        return (a * a).sum() + b

    x = X()
    C(f)(x).backward()
    return x.grad


class NonDiff(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        v, i = x.sort()
        ctx.mark_non_differentiable(i)
        ctx.save_for_backward(i)
        return v, i

    @staticmethod
    def backward(ctx, g, gi):
        (i,) = ctx.saved_tensors
        r = torch.zeros_like(g)
        r[i] = g
        return r * 7


@p
def fn_nondiff(C):
    def f(x):
        v, i = NonDiff.apply(x)
        return (v * torch.tensor([1.0, 2.0, 3.0])).sum(), i

    x = X()
    l, i = C(f)(x)
    l.backward()
    return x.grad, i


@p
def fn_nondiff_ret(C):
    x = X()
    v, i = C(lambda x: NonDiff.apply(x))(x)
    return v, i, i.requires_grad, v.requires_grad


class Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * 10


@p
def fn_once(C):
    x = X()
    C(lambda x: Once.apply(x).sum())(x).backward()
    return x.grad


class Inpl(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * 10


@p
def fn_inplace(C):
    def f(x):
        y = x * 1
        z = Inpl.apply(y)
        return (z * y).sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def fn_inplace_input(C):
    def f(y):
        return Inpl.apply(y)

    x = X()
    y = x * 1
    z = C(f)(y)
    (z * y).sum().backward()
    return x.grad, y, z is y


class Mat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, a, b):
        return None if a is None else a * 2, None if b is None else b * 30


@p
def fn_materialize(C):
    def f(x, y):
        a, b = Mat.apply(x, y)
        return a.sum()

    x, y = X(), X()
    C(f)(x, y).backward()
    return x.grad, y.grad


class Filled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2, y * 3

    @staticmethod
    def backward(ctx, a, b):
        return a * 5, b * 7 + 1


@p
def fn_with_one_of_two_results(C):
    """Zeros stand for the missing gradient: both inputs get one, and what only ordinary operators lead to doesn't."""
    found = []
    for f in (Filled.apply, lambda x, y: tuple(r + 1 for r in Filled.apply(x.sin(), y)), lambda x, y: (x * 2, y * 3)):
        for which in (0, 1):
            x, y = X(), X()
            C(lambda x, y, f=f: f(x, y))(x, y)[which].sum().backward()
            found += [x.grad, y.grad]
    return found


class Needs(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y if ctx.needs_input_grad[0] else None, g * x * 5 if ctx.needs_input_grad[1] else None)


@p
def fn_needs(C):
    x = X()
    y = X().detach()
    f = C(lambda x, y: Needs.apply(x, y).sum())
    f(x, y).backward()
    z = X()
    f(z, z).backward()
    return x.grad, y.grad, z.grad


class VM(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g * 10

    @staticmethod
    def vmap(info, in_dims, x):
        return VM.apply(x) + info.batch_size, in_dims[0]


@p
def fn_vmap(C):
    return C(lambda x: torch.vmap(VM.apply)(x.reshape(3, 1)))(X())


@p
def fn_vmap_grad(C):
    def f(x):
        return torch.vmap(lambda q: VM.apply(q))(x.reshape(3, 1)).sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def fn_func_grad(C):
    return C(lambda x: torch.func.grad(lambda q: VM.apply(q).sum())(x))(X().detach())


class Gen(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return x.cos() * g * 10


@p
def fn_genvmap(C):
    return C(lambda x: torch.vmap(torch.func.grad(lambda q: Gen.apply(q).sum()))(x.reshape(3, 1)))(X().detach())


@p
def hessian_f(C):
    return C(lambda x: torch.func.hessian(lambda q: (q**3).sum())(x))(X().detach())


@p
def jacrev_f(C):
    return C(lambda x: torch.func.jacrev(lambda q: q**3)(x))(X().detach())


@p
def jacfwd_f(C):
    return C(lambda x: torch.func.jacfwd(lambda q: q**3)(x))(X().detach())


@p
def functional_hessian(C):
    return torch.autograd.functional.hessian(C(lambda q: (q**3).sum()), X().detach())


@p
def functional_jac(C):
    return torch.autograd.functional.jacobian(C(lambda q: q**3), X().detach())


@p
def func_of_compiled(C):
    return torch.func.grad(C(lambda q: (q**3).sum()))(X().detach())


@p
def vmap_of_compiled(C):
    return torch.vmap(C(lambda q: q**3 + 1))(X().detach())


@p
def detach_in(C):
    def f(x):
        y = x * x
        return (y.detach() * x).sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def nograd_in(C):
    def f(x):
        with torch.no_grad():
            y = x * x
        return (y * x).sum(), y

    x = X()
    l, y = C(f)(x)
    l.backward()
    return x.grad, y


@p
def enable_in_nograd(C):
    def f(x):
        with torch.enable_grad():
            y = (x * x).sum()
        return y

    x = X()
    with torch.no_grad():
        y = C(f)(x)
    y.backward()
    return x.grad


@p
def inplace_saved_err(C):
    def f(x):
        y = x.exp()
        return y

    x = X()
    y = C(f)(x)
    w = y.sum()
    with torch.no_grad():
        y.add_(1)
    try:
        w.backward()
        return x.grad
    except RuntimeError:
        return "err"


@p
def backward_twice(C):
    x = X()
    y = C(lambda x: (x**2).sum())(x)
    y.backward()
    try:
        y.backward()
        return x.grad
    except RuntimeError:
        return "err"


@p
def multi_out_partial(C):
    x = X()
    a, b = C(lambda x: (x**2, x**3))(x)
    a.sum().backward(retain_graph=True)
    b.sum().backward()
    return x.grad


@p
def view_out_inplace(C):
    def f(x):
        y = x * 2
        return y, y[:2]

    x = X()
    y, v = C(f)(x)
    v.mul_(3)
    y.sum().backward()
    return x.grad, y


@p
def input_view_out(C):
    x = X()
    y = x * 1
    v = C(lambda y: y[:2])(y)
    v.mul_(3)
    y.sum().backward()
    return x.grad, y


@p
def input_mutation(C):
    def f(y):
        y.mul_(2)
        return y.sin()

    x = X()
    y = x * 1
    z = C(f)(y)
    (z.sum() + y.sum()).backward()
    return x.grad, y


@p
def hooks_saved(C):
    x = X()
    log = []

    def pack(t):
        log.append("p")
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = C(lambda x: (x.sin() * x).sum())(x)
    y.backward()
    return x.grad, bool(log)


@p
def checkpoint(C):
    def f(x):
        return checkpoint_of(lambda q: q.sin() ** 2, x, use_reentrant=False).sum()

    x = X()
    C(f)(x).backward()
    return x.grad


@p
def dbl_bwd_module(C):
    m = nn.Sequential(nn.Linear(3, 4), nn.Softplus(), nn.Linear(4, 1))
    torch.manual_seed(0)
    with torch.no_grad():
        for k, q in enumerate(m.parameters()):
            q.copy_(torch.linspace(-1, 1, q.numel()).reshape(q.shape) + k * 0.1)
    c = C(m)
    x = X()
    y = c(x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (g**2).sum().backward()
    return [q.grad for q in m.parameters() if q.grad is not None], x.grad


@p
def activation_in_place(C):
    m = filled_linear()
    x = X()
    y = x * 2
    z = C(lambda y: m(nn.functional.relu(y, inplace=True)))(y)
    (z.sum() + y.sum()).backward()
    return x.grad, y


@p
def part_in_place(C):
    def f(y):
        y[0].mul_(3)
        return y * 2

    x = X()
    y = x * 1
    C(f)(y).sum().backward()
    return x.grad, y


@p
def grad_after_in_place(C):
    def f(y, w):
        y.mul_(2)
        return torch.autograd.grad((y * w).sum(), w)

    w = X()
    return C(f)(w * 2, w)
