"""``torch.library``: operators defined by programs."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import Tensor
from flambeau.library import Library, custom_op, get_ctx, infer_schema, opcheck, register_fake
from flambeau.testing.cross_ref import CrossRefFakeMode, MetadataMismatchError
from flambeau.testing.schema_check import SchemaCheckMode
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.flop_counter import FlopCounterMode


@custom_op("testlib::scaled_sin", mutates_args=())
def scaled_sin(x: Tensor, k: float = 2.0) -> Tensor:
    return torch.from_numpy(np.sin(x.numpy()) * np.float32(k))


@scaled_sin.register_fake
def _(x, k=2.0):
    return torch.empty_like(x)


scaled_sin.register_autograd(
    lambda ctx, g: (g * ctx.k * ctx.saved_tensors[0].cos(), None),
    setup_context=lambda ctx, inputs, output: (ctx.save_for_backward(inputs[0]), setattr(ctx, "k", inputs[1])),
)


@custom_op("testlib::increment", mutates_args={"x"})
def increment(x: Tensor) -> None:
    x.numpy()[...] += 1


increment.register_fake(lambda x: None)


def test_custom_op_values_gradient_and_compile():
    x = torch.randn(3, requires_grad=True)
    y = scaled_sin(x, 3.0)
    y.sum().backward()
    assert torch.allclose(y, 3 * x.sin()) and torch.allclose(x.grad, 3 * x.cos())
    assert torch.allclose(
        torch.compile(lambda x: scaled_sin(x) + 1, fullgraph=True, backend="aot_eager")(x), 2 * x.sin() + 1
    )
    assert torch.ops.testlib.scaled_sin.default._schema.arguments[1].default_value == 2.0


def test_opcheck():
    assert set(opcheck(scaled_sin, (torch.randn(3, requires_grad=True),)).values()) == {"SUCCESS"}


def test_written_arguments_count_as_written():
    x = torch.zeros(2)
    increment(x)
    assert x.tolist() == [1.0, 1.0] and x._version == 1
    with SchemaCheckMode() as checks:
        increment(x)
    assert [m.arg_name for m in checks.mutated] == ["x"]


def test_vmap_of_a_custom_op():
    scaled_sin.register_vmap(lambda info, in_dims, x, k=2.0: (scaled_sin(x, k), 0))
    assert torch.vmap(scaled_sin)(torch.ones(2, 3)).shape == (2, 3)


@pytest.fixture
def lib():
    made = Library("testreg", "DEF")
    yield made
    made._destroy()


def test_keys(lib):
    lib.define("f(Tensor x, int k=0) -> Tensor")
    op, x = torch.ops.testreg.f.default, torch.ones(2)
    with pytest.raises(NotImplementedError, match="testreg::f"):
        op(x)
    with pytest.raises(NotImplementedError, match="Meta"):
        op(torch.ones(2, device="meta"))
    lib.impl("f", lambda x, k=0: x + k, "CPU")
    lib.impl("f", lambda x, k=0: torch.empty_like(x), "Meta")
    assert op(x, 2).tolist() == [3.0, 3.0] and op(torch.ones(2, device="meta")).shape == (2,)
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        op(x).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already a kernel"):
        lib.impl("f", lambda x, k=0: x, "CPU")
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
        Library("testreg", "DEF")


def test_composites(lib):
    class Record(TorchDispatchMode):
        def __init__(self):
            self.log = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.log.append(str(func))
            return func(*args, **(kwargs or {}))

    for name, key in (("implicit", "CompositeImplicitAutograd"), ("explicit", "CompositeExplicitAutograd")):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.sin() * 2, key)
    x = torch.ones(2, requires_grad=True)
    with Record() as r:
        torch.ops.testreg.implicit(x)
        torch.ops.testreg.explicit(x)
    assert r.log == ["aten.sin.default", "aten.mul.Tensor", "testreg.explicit.default"]
    torch.ops.testreg.implicit(x).sum().backward()
    assert torch.allclose(x.grad, 2 * torch.cos(torch.ones(2)))


def test_autograd_key(lib):
    lib.define("g(Tensor x) -> Tensor")
    lib.impl("g", lambda x: x * 2, "CPU")

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.ops.testreg.g(x)

        @staticmethod
        def backward(ctx, g):
            return g * 5

    lib.impl("g", Doubled.apply, "Autograd")
    x = torch.ones(2, requires_grad=True)
    torch.ops.testreg.g(x).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def test_an_operator_of_aten_can_be_replaced_and_comes_back():
    lib, x = Library("aten", "IMPL"), torch.ones(2)
    lib.impl("add.Tensor", lambda a, b, alpha=1: torch.full_like(a, 42.0), "CPU")
    assert (x + x).tolist() == [42.0, 42.0] and torch.ops.aten.add.Tensor(x, x).tolist() == [42.0, 42.0]
    lib._destroy()
    assert (x + x).tolist() == [2.0, 2.0]


def test_a_handler_survives_a_new_defaulted_argument():
    class Handler(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(cls, (1,))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            def fixed(x):
                return cls()

            return fixed(*args, **(kwargs or {}))

    w = Handler()  # exists before the operator: the fallback covers operators that are registered later
    for schema in ("h(Tensor x) -> Tensor", "h(Tensor x, int k=0) -> Tensor"):
        lib = Library("testbc", "DEF")
        lib.define(schema)
        assert type(torch.ops.testbc.h(w)) is Handler
        lib._destroy()


SIGNATURES = [
    (lambda x, n=1: x, {"x": Tensor, "n": int, "return": Tensor}, (), "(Tensor x, SymInt n=1) -> Tensor"),
    (
        lambda x, y=None: x,
        {"x": list[Tensor], "y": Tensor | None, "return": tuple[Tensor, Tensor]},
        (),
        "(Tensor[] x, Tensor? y=None) -> (Tensor, Tensor)",
    ),
    (lambda x: None, {"x": Tensor, "return": None}, ("x",), "(Tensor(a0!) x) -> ()"),
    (lambda x, *, s="a": x, {"x": Tensor, "s": str, "return": Tensor}, (), '(Tensor x, *, str s="a") -> Tensor'),
]


@pytest.mark.parametrize("k", range(len(SIGNATURES)))
def test_infer_schema(k):
    fn, hints, mutates, schema = SIGNATURES[k]
    fn.__annotations__ = hints
    assert infer_schema(fn, mutates_args=mutates) == schema


def test_infer_schema_refuses():
    def no_annotation(x) -> Tensor:
        return x

    def odd(x: Tensor, y: dict) -> Tensor:
        return x

    with pytest.raises(ValueError, match="Parameter x must have a type annotation"):
        infer_schema(no_annotation, mutates_args=())
    with pytest.raises(ValueError, match="Parameter y has unsupported type"):
        infer_schema(odd, mutates_args=())


def test_schema_check_finds_lies(lib):
    lib.define("writes(Tensor x) -> Tensor")
    lib.impl("writes", lambda x: x.add_(1).clone(), "CompositeExplicitAutograd")
    lib.define("aliases(Tensor x) -> Tensor")
    lib.impl("aliases", lambda x: x.view(2), "CompositeExplicitAutograd")
    for name, message in (
        ("writes", "not defined as mutable but was mutated"),
        ("aliases", "not defined to alias output"),
    ):
        with pytest.raises(RuntimeError, match=message), SchemaCheckMode():
            getattr(torch.ops.testreg, name)(torch.ones(2))


def test_cross_ref_finds_a_wrong_fake_rule(lib):
    lib.define("wrong(Tensor x) -> Tensor")
    lib.impl("wrong", lambda x: x + 1, "CPU")
    register_fake("testreg::wrong", lambda x: torch.empty(7))
    with pytest.raises(MetadataMismatchError, match=r"testreg\.wrong.*shape"), CrossRefFakeMode():
        torch.ops.testreg.wrong(torch.ones(2))


def test_flops_by_module():
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        net(torch.randn(3, 4)).sum().backward()
    counts = counter.get_flop_counts()
    first, second = 2 * 3 * 4 * 8, 2 * 3 * 8 * 2
    assert counter.get_total_flops() == 2 * first + 3 * second  # the first layer's input needs no gradient
    assert sum(counts["Sequential.1"].values()) == 3 * second and "Sequential.0" in counter.get_table()
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.conv2d(torch.ones(1, 2, 5, 5), torch.ones(3, 2, 3, 3))
    assert counter.get_total_flops() == 2 * 3 * 9 * 2 * 9


@pytest.fixture
def rows(lib):
    """An operator whose result has as many rows as its argument elements that aren't 0, between two bounds."""
    lib.define("rows(Tensor x, int low, int? high) -> Tensor")

    def rows(x, low, high):
        return torch.tensor([[i] for i, v in enumerate(x.tolist()) if v], dtype=torch.int64).reshape(-1, 1)

    lib.impl("rows", rows, "CPU")

    @register_fake("testreg::rows")
    def _(x, low, high):
        return x.new_empty([get_ctx().new_dynamic_size(min=low, max=high), 1], dtype=torch.int64)

    return torch.ops.testreg.rows


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_sizes_that_depend_on_data(rows, backend):
    def f(x, low=0, high=None):
        r = rows(x, low, high)
        return r + 1, r.shape[0]

    g = torch.compile(f, backend=backend, fullgraph=True, dynamic=False)
    for x in ([1.0, 0, 2], [1.0] * 3, [0.0] * 3):
        want, got = f(torch.tensor(x)), g(torch.tensor(x))
        assert got[0].equal(want[0]) and got[1] == want[1]
    assert g(torch.tensor([1.0, 0, 2]), 0, 2)[1] == 2
    if backend != "eager":  # whose graphs have no shapes to hold the bounds against
        for low, high in ((3, None), (0, 1)):
            with pytest.raises(RuntimeError, match="assertion failed"):
                g(torch.tensor([1.0, 0, 2]), low, high)
    with pytest.raises(RuntimeError, match="greater than or equal to 0"):
        g(torch.tensor([1.0]), -1)


def test_context_of_a_shape_rule_is_there_only_while_it_runs(rows):
    assert get_ctx() is None
    with pytest.raises(RuntimeError, match="depends on the values"):
        rows(torch.ones(2, device="meta"), 0, None)
    assert get_ctx() is None


def test_a_name_without_a_home_is_one_object():
    assert torch.library.triton_op is torch.library.triton_op
    assert torch.compile(lambda x: (x + 1, torch.library.triton_op.__name__))(torch.ones(1))[1] == "triton_op"


def test_registrations_live_as_long_as_their_library():
    def define():
        library = torch.library.Library("_lives", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        return library

    library = define()
    assert torch.ops._lives.twice(torch.ones(1)).tolist() == [2.0]
    del library
    assert not hasattr(torch.ops._lives, "twice")
    again = define()  # the namespace is free
    assert torch.ops._lives.twice(torch.ones(1)).tolist() == [2.0]
    again._destroy()


REFUSED_LIBRARIES = {
    "a reserved namespace": (lambda: torch.library.Library("prim", "FRAGMENT"), ValueError, "reserved namespace"),
    "another kind": (lambda: torch.library.Library("_lives", "BLA"), ValueError, "Unsupported kind"),
    "another key than the library's": (
        lambda: torch.library.Library("aten", "IMPL", "CPU").impl("sum", torch.sum, "Meta"),
        RuntimeError,
        "inconsistent with the dispatch key",
    ),
}


@pytest.mark.parametrize("name", REFUSED_LIBRARIES)
def test_libraries_that_are_refused(name):
    make, error, words = REFUSED_LIBRARIES[name]
    with pytest.raises(error, match=words):
        make()


def keyword_tensor(x: Tensor, *, y: Tensor) -> Tensor:
    return x + y


def pair(x: Tensor, y: tuple[int, int]) -> Tensor:
    return x


def holes(x: Tensor, y: list[int | None]) -> Tensor:
    return x


REFUSED = [
    (lambda: torch.library.define("testreg::a", "a(Tensor x) -> Tensor"), ValueError, "expected schema to look like"),
    (lambda: torch.library.impl("testreg::a", "nowhere"), RuntimeError, "Expected one of cpu, cuda"),
    (lambda: Library("testreg", "FRAGMENT").define("a(Tensor x) -> thing"), RuntimeError, "unknown type specifier"),
    (lambda: Library("testreg", "FRAGMENT").define("a(int64_t x) -> Tensor"), RuntimeError, "Use `SymInt` or `int`"),
    (lambda: Library("testreg", "FRAGMENT").define("a(double x) -> Tensor"), RuntimeError, "Use `float`"),
    (lambda: Library("testreg", "FRAGMENT").define("a(Tensor x"), RuntimeError, "cannot parse schema"),
    (lambda: infer_schema(pair), ValueError, "unsupported type .*use List"),
    (lambda: infer_schema(holes), ValueError, "unsupported type"),
    (
        lambda: custom_op("testreg::keyword_tensor", mutates_args=())(keyword_tensor),
        NotImplementedError,
        "kwarg-only Tensor args",
    ),
    (
        lambda: custom_op("testreg::w", mutates_args=(), schema="(Tensor(a!) x) -> ()")(lambda x: None),
        ValueError,
        "the op mutates {'x'}",
    ),
    (lambda: opcheck(torch.sin, (torch.ones(2),)), ValueError, "instance of torch._ops.OpOverload"),
    (lambda: opcheck(torch.ops.aten.sin.default, (torch.ones(2),), test_utils="x"), ValueError, "to be subset of"),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_registrations_that_are_refused(k):
    make, error, message = REFUSED[k]
    with pytest.raises(error, match=message):
        make()


def test_an_operator_without_a_kernel_says_what_is_missing(lib):
    lib.define("none(Tensor x) -> Tensor")
    lib.define("factory(int[] n) -> Tensor")
    op = torch.ops.testreg
    with pytest.raises(NotImplementedError, match="from the 'CPU' backend"):
        op.none(torch.ones(2))
    with pytest.raises(NotImplementedError, match="no tensor arguments"):
        op.factory([1])
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel"):
        op.none(torch.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="no fake impl registered for <CustomOpDef"):
        with torch._subclasses.FakeTensorMode():
            unshaped(torch.ones(2))


@custom_op("testlib::unshaped", mutates_args=())
def unshaped(x: Tensor) -> Tensor:
    return x.clone()


def test_gradients_of_arguments_left_to_their_defaults(lib):
    lib.define("scaled(Tensor w, int a=2, int b=5, *, int y=3) -> Tensor")
    lib.impl("scaled", lambda w, a=2, b=5, *, y=3: w * a * b * y, "CPU")
    seen = []

    def setup(ctx, inputs, keyword_only_inputs, output):
        seen.append((inputs[1:], keyword_only_inputs))
        ctx.factor = inputs[1] * inputs[2] * keyword_only_inputs["y"]

    def backward(ctx, grad):
        given = (grad * ctx.factor, None, None)
        return given[: 1 if ctx.factor == 30 else 2]

    torch.library.register_autograd("testreg::scaled", backward, setup_context=setup, lib=lib)
    w = torch.ones(2, requires_grad=True)
    (torch.ops.testreg.scaled(w) + torch.ops.testreg.scaled(w, 7)).sum().backward()
    assert w.grad.tolist() == [135.0, 135.0] and seen == [((2, 5), {"y": 3}), ((7, 5), {"y": 3})]


def test_kernels_for_other_devices_are_known(lib):
    lib.define("elsewhere(Tensor x) -> Tensor")
    lib.impl("elsewhere", lambda x: x, "CUDA")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert has("testreg::elsewhere", "CUDA") and not has("testreg::elsewhere", "CPU")
    assert has("aten::mm", "AutogradCPU")


@custom_op("testlib::halves", mutates_args=())
def halves(x: Tensor, *, factor: float = 2.0) -> tuple[list[Tensor], int]:
    return [x[: len(x) // 2] * factor, x[len(x) // 2 :] * factor], len(x)


halves.register_autograd(
    lambda ctx, parts, count: torch.cat(parts) * ctx.factor,
    setup_context=lambda ctx, inputs, keyword_only_inputs, output: setattr(
        ctx, "factor", keyword_only_inputs["factor"]
    ),
)


@halves.register_vmap
def _(info, in_dims, x, *, factor=2.0):
    assert in_dims == (0,) and info.batch_size == 3
    parts, count = halves(x.movedim(1, 0), factor=factor)
    return (parts, count), ([1, 1], None)


def test_results_with_lists_beside_numbers():
    x = torch.arange(4.0, requires_grad=True)
    (a, b), count = halves(x, factor=3.0)
    (a.sum() + (b * b).sum()).backward()
    assert count == 4 and x.grad.tolist() == [3.0, 3.0, 36.0, 54.0]
    batch = torch.arange(12.0).reshape(3, 4)
    a, b = torch.func.vmap(lambda x: tuple(halves(x, factor=0.5)[0]))(batch)
    assert torch.equal(torch.cat([a, b], 1), batch / 2)


@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
def test_lists_of_tensors_are_lists(lib, backend):
    """What the schema says of torch.ops; torch.split and methods give tuples."""
    lib.define("pieces(Tensor x, int n=2) -> Tensor[]")
    lib.impl("pieces", lambda x, n=2: [x * i for i in range(n)], "CompositeExplicitAutograd")
    torch.library.register_fake("testreg::pieces", lambda x, n=2: [torch.empty_like(x) for _ in range(n)], lib=lib)
    packet = torch.ops.testreg.pieces
    aten = torch.ops.aten

    def f(x):
        lists = aten.split(x, 2), aten.split.Tensor(x, 2), aten.unbind(x), packet(x), packet(x, n=3), packet.default(x)
        return [type(a) is list for a in lists], [type(a) is tuple for a in (torch.split(x, 2), x.unbind())], lists

    run = f if backend is None else torch.compile(f, backend=backend)
    for x in (torch.arange(6.0), torch.arange(6.0, requires_grad=True)):
        of_ops, of_functions, lists = run(x)
        assert all(of_ops) and all(of_functions)
        assert [len(a) for a in lists] == [3, 3, 6, 2, 3, 2] and lists[4][2].tolist() == [0, 2, 4, 6, 8, 10]


def test_results_of_every_kind_compiled():
    @torch.library.custom_op("flambeau_tests::mixed", mutates_args=())
    def mixed(x: torch.Tensor) -> tuple[int, torch.Tensor, list[torch.Tensor], float, torch.Tensor]:
        return 3, x + 1, [x * 2, x * 3], 2.5, x * 4

    mixed.register_fake(lambda x: (3, x.clone(), [x.clone(), x.clone()], 2.5, x.clone()))

    def f(x):
        n, a, b, c, d = mixed(x)
        return a * n + b[0] + b[1] * c, d

    x = torch.arange(3.0)
    for backend in ("eager", "aot_eager", "inductor"):
        for got, want in zip(torch.compile(f, backend=backend)(x), f(x), strict=True):
            assert torch.equal(got, want), backend


def test_a_kernel_runs_without_gradients():
    """So that it may take the elements with NumPy; what it computes has no history of its own."""

    @torch.library.custom_op("flambeau_tests::by_numpy", mutates_args=())
    def by_numpy(x: torch.Tensor) -> torch.Tensor:
        assert not torch.is_grad_enabled()
        return torch.tensor(x.cpu().numpy() * 2)

    out = by_numpy(torch.ones(2, requires_grad=True))
    assert out.tolist() == [2, 2] and out.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        out.sum().backward()


def test_a_custom_operator_itself_is_compiled():
    @torch.library.custom_op("tlib_compiled::added", mutates_args=())
    def added(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    added.register_fake(lambda x, y: torch.empty_like(x))
    x = torch.ones(2)
    assert torch.equal(torch.compile(added, backend="eager", fullgraph=True)(x, x), x + x)


def test_a_kernel_of_the_program_is_given_none_for_a_tensor():
    lib = torch.library.Library("given_none", "DEF")
    lib.define("second(Tensor a, Tensor b) -> Tensor")
    lib.impl("second", lambda a, b: b.clone() if a is None else a, "CPU")
    assert torch.ops.given_none.second.default(None, torch.ones(1)).item() == 1
    with pytest.raises(RuntimeError, match="Expected a proper Tensor but got None"):
        torch.ops.aten.sin.default(None)


class _Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g / 2


def test_opcheck_finds_kernels_that_record_below_autograd():
    lib = Library("opcheck_keys", "FRAGMENT")
    for name, key in (("right", "Autograd"), ("wrong", "CPU")):
        lib.define(f"{name}(Tensor x) -> Tensor")
        lib.impl(name, lambda x: x.clone(), "Meta")
        lib.impl(name, _Halved.apply, key)
    lib.impl("right", lambda x: x.clone(), "CPU")
    x = torch.ones(3, requires_grad=True)
    assert set(opcheck(torch.ops.opcheck_keys.right.default, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(AssertionError, match="does not have an autograd kernel"):
        opcheck(torch.ops.opcheck_keys.wrong.default, (x,))
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert [has(f"opcheck_keys::{n}", "Autograd") for n in ("right", "wrong")] == [True, False]


def test_opcheck_of_aliases():
    lib = Library("opcheck_aliases", "FRAGMENT")
    lib.define("write(Tensor(a!) x, Tensor[] rest) -> Tensor(a!)")
    lib.impl("write", lambda x, rest: x.sin_(), "CPU")
    lib.impl("write", lambda x, rest: x, "Meta")
    lib.define("silent(Tensor x) -> Tensor")
    lib.impl("silent", lambda x: x[:], "CompositeExplicitAutograd")
    ops = torch.ops.opcheck_aliases
    checks = opcheck(ops.write.default, (torch.ones(3), [torch.ones(1)]), raise_exception=False)
    assert set(checks.values()) == {"SUCCESS"}
    checks = opcheck(ops.silent.default, (torch.ones(3),), raise_exception=False)
    assert "not defined to alias output" in str(checks.pop("test_schema")) and set(checks.values()) == {"SUCCESS"}
    with torch._subclasses.FakeTensorMode():
        x = torch.ones(3)
        assert ops.write(x, []) is x


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_kernels_see_the_strides_of_eager_code(backend):
    seen = []
    with torch.library._scoped_library("strides", "FRAGMENT") as lib:
        lib.define("look(Tensor x) -> Tensor")
        lib.impl("look", lambda x: (seen.append(x.stride()), x.clone())[1], "CPU")
        torch.library.register_fake("strides::look", torch.empty_like, lib=lib)

        def f(x, row):
            x = x.t().clone()
            x[0] = row
            look = torch.ops.strides.look
            return look(x.relu()), look(torch.cat([x, x]).t() * 2), look((x * 2).t())

        for fn in (f, torch.compile(f, backend=backend)):
            fn(torch.ones(5, 4), torch.ones(5))
    assert seen[:3] == seen[3:]
