"""Calls of the library that are captured whole (``fullgraph=True``), on all backends, and do what they do plainly: hooks, numbers made into
tensors, texts of functions, logs that are written behind the graph."""

import collections
import copy
import itertools
import operator
import warnings

import pytest
from programs import agree, attempt

import flambeau as torch
from flambeau import compiler

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def leaf(n=3):
    return torch.arange(1.0, n + 1).requires_grad_()


class Base:
    pass


class Derived(Base):
    pass


def helper():
    pass


@program
def hooks_on_inputs_run_in_their_order(C, torch):
    seen = []

    def f(x, k):
        first = x.register_hook(lambda g: g * 2)
        y = x * k
        second = x.register_hook(lambda g: seen.append(k) or g + 1)
        return y.sum(), first, second

    g, out = C(f, fullgraph=True), []
    for k in (2.0, 3.0):
        x = leaf()
        y, first, second = g(x, k)
        y.backward()
        out.append(x.grad.clone())
        first.remove()
        x.grad = None
        (x * k).sum().backward()
        out += [x.grad, first == second, type(first).__name__]
    return out, seen


@program
def hooks_on_inputs_with_a_history(C, torch):
    def f(x):
        x.register_hook(lambda g: g * 5)
        return (x * 2).sum()

    x = leaf()
    C(f, fullgraph=True)(x * 3).backward()
    return x.grad


@program
def hooks_that_are_removed_while_tracing(C, torch):
    def f(x):
        h = x.register_hook(lambda g: g * 5)
        keep = x.register_hook(lambda g: g * 7)
        h.remove()
        h.remove()
        return (x * 2).sum(), h, keep

    x = leaf()
    y, h, keep = C(f, fullgraph=True)(x)
    y.backward()
    h.remove()
    keep.remove()
    return x.grad


@program
def hooks_behind_the_gradient_of_a_leaf(C, torch):
    done = []

    def f(x):
        x.register_post_accumulate_grad_hook(lambda p: done.append(p.grad.sum().item()))
        return (x * 2).sum()

    x = leaf()
    C(f, fullgraph=True)(x).backward()
    return x.grad, done


@program
def hooks_whose_handle_is_kept(C, torch):
    holder, places = torch.nn.Module(), {}
    holder.handle = None

    def f(x):
        holder.handle = x.register_hook(lambda g: -g)
        places["h"] = [holder.handle]
        return (x * 2).sum()

    x = leaf()
    C(f, fullgraph=True)(x).backward()
    holder.handle.remove()
    return x.grad, places["h"][0] is holder.handle


@program
def hooks_on_what_is_written_to(C, torch):
    def f(x):
        x.register_hook(lambda g: g * 5)
        x.mul_(2)
        return x.sum()

    x = leaf()
    C(f)(x * 1).backward()
    return x.grad


@program
def hooks_before_a_backward_pass(C, torch):
    def f(x):
        x.register_hook(lambda g: g * 5)
        (x * x).sum().backward()
        return x * 2

    x = leaf()
    return C(f)(x), x.grad


@program
def hooks_that_close_over_what_was_computed(C, torch):
    def f(x):
        y = x * 3
        x.register_hook(lambda g: g + y.detach())
        return y.sum()

    x = leaf()
    C(f, fullgraph=True)(x).backward()
    return x.grad


@program
def hooks_of_tensors_without_a_gradient(C, torch):
    return [attempt(C(lambda x: (x.register_hook(lambda g: g), x * 2)[1]), torch.ones(2))]


def _numbers(make, *args):
    def prog(C, torch):
        f = C(make, fullgraph=True)
        found = [f(*args), f(*args)]
        return found, [t.requires_grad for t in found]

    return prog


T = torch.tensor
for _name, (_make, *_args) in {
    "elements": (lambda x: T([x[0], x[1]]) * 2, torch.ones(3)),
    "elements_with_a_gradient": (lambda x: T([x[0], x[1]]) * 2, torch.ones(3).requires_grad_()),
    "mixed_with_constants": (lambda x: T([[x[0], 1], [True, 2.5]]), torch.ones(3)),
    "of_float64": (lambda x: T([x[0], 1]), torch.ones(3, dtype=torch.float64)),
    "to_a_dtype": (lambda x: T((x[0], x[1]), dtype=torch.float64), torch.arange(3)),
    "sizes": (lambda x: T([x.sum(), x.size(0)]), torch.arange(3)),
    "of_more_dimensions": (lambda x: T([x, x]), torch.ones(1, 1, 1)),
    "as_tensor": (lambda x: torch.as_tensor([x[0], x[1]]), torch.ones(3)),
    "items": (lambda x: T([x.item(), 2]), torch.tensor([7])),
    "an_item": (lambda x: T(x.item()), torch.tensor([1.5])),
    "truth_of_items": (lambda x: T([x.item() > 0, False]), torch.tensor([7])),
    "old_types": (lambda x: torch.FloatTensor([x[0], x[1]]) + torch.LongTensor([1, 2]), torch.ones(3)),
    "old_type_of_sizes": (lambda x: torch.DoubleTensor(x.shape).shape, torch.ones(3)),
    "rows_of_arrays": (lambda a: T([a, a + 1], dtype=torch.float32), torch.ones(2, 3).numpy()),
    "elements_of_arrays": (lambda a: T([a[0], a[1]]), torch.ones(3).numpy()),
}.items():
    PROGRAMS[f"numbers_{_name}"] = (
        _numbers(_make, *_args) if _name != "old_type_of_sizes" else (lambda C, torch, f=_make: C(f)(torch.ones(3)))
    )


@program
def texts_of_functions_and_classes(C, torch):
    def f(x):
        return x + len(str(helper)), repr(helper), f"{Base} {Base!r:>60}", f"{Derived}", str(Base)

    g = C(f, fullgraph=True)
    out = [g(torch.ones(1))]
    before, Base.__qualname__ = Base.__qualname__, "Other"
    try:
        out.append(g(torch.ones(1)))
    finally:
        Base.__qualname__ = before
    return out


@program
def subclasses_of_a_class(C, torch):
    class Top:
        pass

    class Below(Top):
        pass

    def f(x):
        return x + len(Top.__subclasses__()), [c.__name__ for c in Top.__subclasses__()]

    g = C(f, fullgraph=True)
    out = [g(torch.ones(1)), Below.__name__]
    another = type("Another", (Top,), {})
    out.append(g(torch.ones(1)))
    return out, another.__name__


@program
def functions_of_the_graph_that_return_nothing(C, torch):
    modes = []

    @compiler.allow_in_graph
    def note():
        modes.append(torch.is_grad_enabled())

    def f(x):
        note()
        with torch.no_grad():
            note()
        return x + 1

    g = C(f, fullgraph=True)
    out = [g(torch.ones(2)) for _ in range(2)]
    return out, modes[-2:]


@program
def gradients_of_what_was_made(C, torch):
    return C(lambda x: (x + 1, (x * 2).grad, torch.ones(2).grad), fullgraph=True)(torch.ones(2))


@program
def sizes_marked_static_while_tracing(C, torch):
    def f(x):
        torch._dynamo.mark_static(x, 0)
        torch._dynamo.comptime.comptime.assert_static(x.size(0))
        return x + x.size(0)

    g = C(f, fullgraph=True, dynamic=True)
    return g(torch.ones(3, 2)), g(torch.ones(4, 2))


@program
def whether_classes_override(C, torch):
    asked = torch._C._is_torch_function_enabled

    def f(x):
        with torch._C.DisableTorchFunctionSubclass():
            with torch._C.DisableTorchFunctionSubclass():
                y = x + 1
            inside = asked(), torch._C._is_torch_function_all_disabled()
        return y, inside, asked(), torch._C._is_any_autocast_enabled()

    g = C(f, fullgraph=True)
    out = [g(torch.ones(1))]
    with torch._C.DisableTorchFunction(), torch.autocast("cpu"):
        out.append(C(lambda x: (x + 1, asked(), torch._C._is_any_autocast_enabled()))(torch.ones(1)))
    return out


@program
def data_of_another_form(C, torch):
    def f(x, y):
        z = x
        x.data = y
        y.data = torch.zeros([0])
        return x, torch.tensor(x is z)

    def used(x, y):
        y.data = torch.zeros([0])
        return x + y.sum()

    out = []
    for fn, options in ((f, {"fullgraph": True}), (used, {})):
        g = C(fn, **options)
        for _ in range(2):
            a, b = leaf(6), leaf(6)
            found = g(a, b)
            torch.autograd.backward(found[0] if fn is f else found, torch.ones(6))
            out += [found, a.shape, b.shape, a.grad, b.grad]
    return out


@program
def parameters_cast_inside_are_parameters(C, torch):
    def f(m, x):
        m.double()
        asked = [p.requires_grad for p in m.parameters()], m.weight.is_leaf, m.weight.data.requires_grad
        return x * 2, asked, m.weight.T.requires_grad

    def g(m, x):
        m.to(torch.float16).float()
        return x * 2, [(p.requires_grad, p.is_leaf, p.grad_fn) for p in m.parameters()], m(x)

    out = []
    for fn in (f, g):
        m, h = torch.nn.Linear(2, 2), C(fn)
        out += [h(m, torch.ones(2)), h(m, torch.ones(2)), m.weight.dtype, m.weight.requires_grad]
    out[4][2].sum().backward()
    return out, m.weight.grad


@program
def what_follows_from_dtypes_and_sizes(C, torch):
    def f(x, y):
        to = torch.promote_types(x.dtype, y.dtype)
        shape = torch.broadcast_shapes(x.shape, y.shape, (1,))
        return x.to(to).expand(shape), torch.can_cast(x.dtype, torch.int32), torch.can_cast(from_=torch.int8, to=to)

    def refused(x):
        return torch.broadcast_shapes(x.shape, (5,))

    out = [C(f, fullgraph=True)(torch.ones(3), torch.ones(2, 3, dtype=torch.float64))]
    return out, attempt(C(refused), torch.ones(3))[1]


@program
def addresses_and_hashes(C, torch):
    def f(x):
        y = x + 1
        return y, x.data_ptr(), y.data_ptr(), hash(x) == hash(x), hash(x) == hash(y), {hash(x): 1}[id(x)]

    x = torch.ones(3)
    y, of_x, of_y, *rest = C(f, fullgraph=True)(x)
    return of_x == x.data_ptr(), of_y == y.data_ptr(), rest


def huge(C, torch):
    n = 10**400
    fns = [
        lambda x: x * n, lambda x: -n + x, lambda x: x > n, lambda x: torch.clamp(x, max=n), lambda x: x / n, lambda x: x.add(n),
        lambda x: x.add(x, alpha=n), lambda x: x.sub(x, alpha=-n), lambda x: torch.addcdiv(x, x, x, value=n), lambda x: x.pow(n),
        lambda x: torch.where(x > 0, x, n), lambda x: x + 2**64, lambda x: x.long() + 2**63, lambda x: torch.full((2,), 10**30),
        lambda x: x.double() * 10**300, lambda x: torch.lerp(x, x, n),
    ]  # fmt: skip
    # Which of the errors it is: an operator in captured code is known by its name.
    return [(r[1] if (r := attempt(C(f), torch.ones(2)))[0] == "error" else r) for f in fns]


@pytest.mark.filterwarnings("ignore")
def test_integers_beyond_what_kernels_hold():
    """They are what they are in the plain program: floating-point numbers, or its error."""
    agree(lambda C, torch: [str(r) for r in huge(C, torch)])


@pytest.mark.parametrize("name", PROGRAMS)
def test_whole_calls(name):
    agree(PROGRAMS[name])


# -- functions that log, behind the graph --
def log_of_tensors(C, torch):
    def f(x):
        print("begin")
        y = x + 1
        print(y.sum(), f"y={y!r} {x.shape} {{}} {y.sum():.3f}", 3)
        print(f"{y.sum()} of {x.sum():.2f} {y!s:>30}", end="!")
        return y * 2

    g = C(f, fullgraph=True)
    return g(torch.ones(2)), g(torch.zeros(2))


def log_behind_a_break(C, torch):
    def f(x):
        print(x + 1)
        torch._dynamo.graph_break()
        print("then", x.sum())
        return x

    return C(f)(torch.ones(2))


def log_of_what_is_written_to(C, torch):
    def f(x):
        y = x + 1
        print(y)
        y.add_(5)
        print(y, sep="|")
        return y

    return C(f)(torch.ones(2))


def log_of_other_things(C, torch):
    def f(x):
        print([x, 1], {"a": x.shape})
        return x * 2

    return C(f)(torch.ones(2))


@pytest.mark.parametrize("prog", [log_of_tensors, log_behind_a_break, log_of_what_is_written_to, log_of_other_things])
def test_reorderable_logging_functions(prog):
    with torch._dynamo.config.patch(reorderable_logging_functions={print, warnings.warn}):
        agree(prog)


def test_own_logging_functions_see_tensors_and_texts():
    said = []

    def note(text, *tensors):
        said.append((text, *(t.tolist() for t in tensors)))

    def f(x):
        note(f"{x + 1}", x * 2)
        return x

    with torch._dynamo.config.patch(reorderable_logging_functions={note}):
        torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert said == [("tensor([2., 2.])", [2.0, 2.0])]


def test_decisions_about_data_are_the_users_errors():
    with pytest.raises(torch._dynamo.exc.UserError, match="Could not guard on data-dependent expression"):
        torch.compile(lambda x: torch.ones(2) if x.item() == 3 else x, fullgraph=True)(torch.tensor([3]))


def test_kernels_are_not_given_addresses_of_what_is_traced():
    with torch.library._scoped_library("flb_addresses", "FRAGMENT") as lib:
        torch.library.define("flb_addresses::kernel", "(Tensor x) -> Tensor", lib=lib)
        torch.library.impl(
            "flb_addresses::kernel", "CompositeImplicitAutograd", lambda x: x.clone() if x.data_ptr() else x, lib=lib
        )

        def f(x):
            return torch.ops.flb_addresses.kernel(x * 1)

        assert f(torch.ones(2)).tolist() == [1, 1]
        for trace in (
            lambda: torch.fx.experimental.proxy_tensor.make_fx(f, tracing_mode="fake")(torch.ones(2)),
            lambda: torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2)),
        ):
            with pytest.raises(RuntimeError, match="Cannot access data pointer"):
                trace()
    mode = torch._subclasses.FakeTensorMode()
    with mode:
        fake = torch.randn(3)
    assert fake.data_ptr() == 0 and copy.copy(fake).shape == fake.shape
    with torch._functorch.config.patch(fake_tensor_allow_unsafe_data_ptr_access=False):
        with pytest.raises(RuntimeError, match="Cannot access data pointer"):
            fake.data_ptr()


def test_backends_find_the_mode_of_the_fake_tensors():
    found = []

    def backend(gm, inputs):
        found.append(torch._dynamo.utils.detect_fake_mode(inputs))
        return gm.forward

    torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert isinstance(found[0], torch._subclasses.FakeTensorMode) and torch._guards.detect_fake_mode() is None


LAZY = {
    "layers": lambda nn: nn.Sequential(
        nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)
    ),
    "many": lambda nn: nn.Sequential(nn.Flatten(), *(nn.LazyLinear(3) for _ in range(25))),
}


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("kind", LAZY)
def test_lazy_layers_are_initialised_by_their_capture(kind, backend):
    found = []
    for wrap in (lambda m: m, lambda m: torch.compile(m, backend=backend, fullgraph=True)):
        torch.manual_seed(0)
        net = LAZY[kind](torch.nn)
        f = wrap(net)
        y = f(torch.ones(2, 3, 6, 6))
        y.sum().backward()
        found.append([y, *(p.grad for p in net.parameters()), f(torch.ones(2, 3, 6, 6))])
        assert not any("Lazy" in type(m).__name__ for m in net.modules())
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*found, strict=True))


def test_lazy_layers_that_refuse_their_input():
    with pytest.raises(RuntimeError, match="Expected 3D"):
        torch.compile(torch.nn.LazyConv2d(4, 3), backend="eager")(torch.ones(2, 3))


def test_sizes_out_of_data_are_split_into():
    def f(x, i):
        a, b = i.tolist()
        return x.split([a, b]), torch.ones(max(a, 3))

    for backend in ("eager", "aot_eager", "inductor"):
        g = torch.compile(f, backend=backend, fullgraph=True)
        for sizes in ([7, 3], [1, 9], [0, 10]):
            (a, b), ones = g(torch.arange(10.0), torch.tensor(sizes))
            assert [len(a), len(b), len(ones)] == [*sizes, max(sizes[0], 3)] and b.tolist() == list(range(sizes[0], 10))
        with pytest.raises(RuntimeError, match="split_with_sizes expects split_sizes to sum exactly to 10"):
            g(torch.arange(10.0), torch.tensor([7, 4]))


def test_dicts_of_keys_are_made():
    def f(x, y):
        a = dict.fromkeys(["a", "b"], x + 1)
        b = collections.defaultdict.fromkeys(iter(a), x - 2)
        c = collections.OrderedDict.fromkeys(("a", "b"), value=y)
        d, e = dict.fromkeys("ab"), type(c).fromkeys(iterable="ba")
        return [(type(t), list(t.items())) for t in (a, b, c, d, e)], b.default_factory, a["a"] * b["b"] + c["a"]

    got, factory, z = torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2), torch.ones(2) * 3)
    want, _, w = f(torch.ones(2), torch.ones(2) * 3)
    assert str(got) == str(want) and factory is None and torch.equal(z, w)
    for wrong in (lambda x: dict.fromkeys("ab", value=x), lambda x: collections.OrderedDict.fromkeys(x=1)):
        with pytest.raises(TypeError):
            torch.compile(wrong, backend="eager")(torch.ones(2))


def test_a_number_that_nobody_sees_is_not_read():
    def f(x):
        x = x.sum()
        x.item()
        return x * 2

    def wrong(x):
        x.item()
        return x * 2

    graphs = []

    def recorded(gm, inputs):
        graphs.append(gm)
        return gm.forward

    assert torch.compile(f, backend=recorded, fullgraph=True)(torch.ones(3)).item() == 6
    assert [n.target for n in graphs[0].graph.nodes if n.op.startswith("call")] == ["sum", operator.mul]
    with pytest.raises(RuntimeError, match="Tensor with 2 elements"):
        torch.compile(wrong, backend="eager")(torch.ones(2))


def test_pieces_of_sizes_out_of_data_have_gradients():
    def f(x, i):
        a, b = i.tolist()
        return x.split([a, b], dim=-1)

    for backend, dynamic in itertools.product(("eager", "aot_eager", "inductor"), (None, True)):
        g = torch.compile(f, backend=backend, fullgraph=True, dynamic=dynamic)
        for shape, sizes in (((10,), [7, 3]), ((2, 6), [2, 4]), ((2, 3, 2, 6), [5, 1])):
            x = torch.ones(shape, requires_grad=True)
            a, b = g(x, torch.tensor(sizes))
            (a.sum() + b.sum() * 2).backward()
            assert x.grad.reshape(-1, shape[-1])[-1].tolist() == [1.0] * sizes[0] + [2.0] * sizes[1], backend


class Joined(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, i):
        ctx.save_for_backward(i)
        return torch.cat([b, a])

    @staticmethod
    def backward(ctx, g):
        n, m = ctx.saved_tensors[0].tolist()
        b, a = g.split([m, n])
        return a, b, None


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        n, m = i.tolist()
        a, b = x.split([n, m])
        return torch.cat([b, a]) * (n + 2 * m + x.shape[0] - a.shape[0] * b.shape[0])

    @staticmethod
    def backward(ctx, g):
        return g, None


def of_pieces(x, i):
    n, m = i.tolist()
    a, b = x.split([n, m])
    return Joined.apply(a, b * 2, i)


# What Functions compute out of numbers that depend on data stands in their own parts of the graph.
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [of_pieces, Scaled.apply])
def test_functions_with_numbers_out_of_data(f, backend):
    g = torch.compile(f, backend=backend, fullgraph=True)
    for sizes in ([3, 6], [5, 4]):
        found = []
        for h in (f, g):
            x = torch.arange(9.0).requires_grad_()
            y = h(x, torch.tensor(sizes))
            (y * torch.arange(9.0)).sum().backward()
            found.append((y.tolist(), x.grad.tolist()))
        assert found[0] == found[1]


def twins(i):
    a, b = i.tolist()
    torch._check(a == b)
    return torch.ones(5) * b + a


def sums(i):
    a, b, c = i.tolist()
    torch._check(a + b == c)
    torch._check(c == 10)
    return torch.ones(2) * a - b + c


def selections(i):
    places = i[1:].nonzero()
    torch._check(places.shape[0] == i[0].item())
    return places + 1


# What a check says of numbers out of data makes it true in what is compiled after it: the check itself is of the data.
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "f, good, bad",
    [
        (twins, [3, 3], [3, 4]),
        (sums, [3, 7, 10], [3, 6, 10]),
        (sums, [3, 7, 10], [3, 6, 9]),
        (selections, [2, 3, 0, 1], [2, 3, 0, 0]),
    ],
)
def test_checks_of_numbers_out_of_data_fail(f, good, bad, backend):
    g = torch.compile(f, backend=backend, fullgraph=True)
    assert torch.equal(g(torch.tensor(good)), f(torch.tensor(good)))
    with pytest.raises(RuntimeError):
        g(torch.tensor(bad))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_grad_modes_that_existed_before_are_entered_in_one_graph(backend):
    graphs = []

    def recorded(gm, inputs):
        graphs.append(gm)
        return torch._dynamo.lookup_backend(backend)(gm, inputs)

    def f(x, mode):
        with mode:
            y = x * 2
        return y, x * 3, torch.is_grad_enabled()

    def later(x):
        x = x + 1
        mode = torch.set_grad_enabled(False)
        torch._dynamo.graph_break()
        with mode:
            y = x * 2
        return y, x * 3, torch.is_grad_enabled()

    def facts(fn, *args):
        out = fn(*args)
        return out[0].requires_grad, out[1].requires_grad, out[2], torch.is_grad_enabled()

    g, x = torch.compile(f, backend=recorded, fullgraph=True), torch.ones(2, requires_grad=True)
    for make, count in ((torch.no_grad, 1), (torch.no_grad, 1), (torch.enable_grad, 2), (torch.enable_grad, 2)):
        assert facts(g, x, make()) == facts(f, x, make())
        assert len(graphs) == count
    for _ in range(3):
        for outer in (True, False):
            with torch.set_grad_enabled(outer):
                mode, same = torch.set_grad_enabled(False), torch.set_grad_enabled(True)
                assert facts(g, x, mode) == facts(f, x, mode)
                assert facts(g, x, same) == facts(f, x, same)
    graphs.clear()
    h = torch.compile(later, backend=recorded)
    for _ in range(3):
        assert facts(h, x) == facts(later, x)
    assert len(graphs) == 2
