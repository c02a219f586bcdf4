"""Graphs on disk: found again for the same captured graph and inputs, never for others, and made again when damaged."""

import operator
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import fx
from flambeau.aot import aot_module_simplified, api, cache, default_partition, min_cut_rematerialization_partition, nop
from flambeau.base.shape_env import ShapeEnv
from flambeau.fake import FakeTensorMode


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FLAMBEAU_AOT_CACHE", raising=False)
    return tmp_path


def entries(directory) -> list[Path]:
    return [p for p in directory.rglob("*") if p.is_file() and p.name != "swept"]


def graph(build):
    """A captured graph of two inputs."""
    g = fx.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    g.output(tuple(build(g, a, b)))
    return fx.GraphModule({}, g)


def multiply(scale=2.0):
    def build(g, a, b):
        m = g.call_function(operator.mul, (a, b))
        return [g.call_function(torch.sin, (g.call_function(operator.mul, (m, scale)),))]

    return graph(build)


def writes_and_views(g, a, b):
    g.call_method("add_", (b, 1))
    total = g.call_method("sum", (g.call_function(torch.sin, (a,)),))
    return [total, g.call_method("t", (b,)), b, g.call_function(operator.getitem, (b, (0, slice(None, 2, None))))]


def inputs(grad=True, n=3):
    torch.manual_seed(0)
    return [torch.randn(2, n).requires_grad_(grad), torch.randn(2, n)]


def compile_(gm, args, partition=min_cut_rematerialization_partition):
    return aot_module_simplified(gm, args, fw_compiler=nop, partition_fn=partition)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("make", [multiply, lambda: graph(writes_and_views)])
def test_second_compilation_does_not_trace(make, grad, monkeypatch, directory):
    def results(compiled):
        args = inputs(grad)
        out = compiled(*args)
        if grad:
            out[0].sum().backward()
        return [o.detach() for o in out] + [x.detach() for x in args] + ([args[0].grad] if grad else []), out, args

    first, _, _ = results(compile_(make(), inputs(grad)))
    assert len(entries(directory)) == 1

    def no_trace(*args, **kwargs):
        raise AssertionError("traced again")

    monkeypatch.setattr(api, "trace", no_trace)
    second, out, args = results(compile_(make(), inputs(grad)))
    assert all(torch.equal(x, y) for x, y in zip(first, second, strict=True))
    if len(out) > 1:
        assert out[2] is args[1]
        out[1].zero_()
        assert not args[1].any().item()


@pytest.mark.parametrize(
    "other",
    [
        lambda: (multiply(3.0), inputs()),
        lambda: (multiply(2), inputs()),
        lambda: (multiply(), inputs(n=4)),
        lambda: (multiply(), inputs(grad=False)),
        lambda: (multiply(), [inputs()[0].double().detach().requires_grad_(True), inputs()[1]]),
        lambda: (multiply(), [inputs()[0], torch.ones(3, 2).t()]),
        lambda: (multiply(), inputs(), default_partition),
    ],
)
def test_other_programs_have_other_entries(other, directory):
    compile_(multiply(), inputs())
    compile_(*other())
    assert len(entries(directory)) == 2


def helper(x):
    return x * 2


@pytest.mark.parametrize(
    "gm",
    [
        lambda: graph(lambda g, a, b: [g.call_function(helper, (a,)), b]),
        lambda: graph(lambda g, a, b: [g.call_function(lambda x: x + 1, (a,)), b]),
        lambda: graph(lambda g, a, b: [g.call_function(operator.mul, (a, torch.ones(3)))]),
    ],
)
def test_what_flambeau_does_not_own_is_not_kept(gm, directory):
    compile_(gm(), inputs())
    assert not entries(directory)


def test_damaged_entry_is_made_again(directory, caplog):
    compile_(multiply(), inputs())
    (path,) = entries(directory)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + b"\0" * 9)
    args = inputs()
    assert torch.equal(compile_(multiply(), args)(*args)[0], multiply()(*args)[0])
    assert path.read_bytes() == whole
    path.write_bytes(b"")
    compile_(multiply(), inputs())
    assert path.read_bytes() == whole


def test_second_derivative_of_a_found_graph():
    for _ in range(2):
        args = inputs()
        (out,) = compile_(multiply(), args)(*args)
        (g,) = torch.autograd.grad(out.sum(), [args[0]], create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), [args[0]])
        a, b = (x.detach() for x in args)
        assert torch.allclose(gg, -4 * b * b * (a * b * 2).sin(), atol=1e-6)


def test_sources_are_part_of_the_key(monkeypatch):
    args = inputs()
    key = cache.key_of(multiply(), [0, 1], args, default_partition)
    assert key.name == cache.key_of(multiply(), [0, 1], args, default_partition).name
    monkeypatch.setattr(cache, "fingerprint", lambda: "other sources")
    assert key.name != cache.key_of(multiply(), [0, 1], args, default_partition).name


def symbolic_inputs(n, grad=True):
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    return [mode.from_tensor(t).requires_grad_(t.requires_grad) for t in inputs(grad, n)], env


def halves(g, a, b):
    h = g.call_function(operator.getitem, (a, (slice(None), slice(None, 2, None))))
    size = g.call_function(torch.ops.aten.sym_size.int, (a, 1))
    return [g.call_method("sum", (h,)), g.call_function(operator.mul, (b, size)), g.call_method("t", (b,)), size]


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("make", [multiply, lambda: graph(halves)])
def test_graphs_with_symbolic_sizes(make, grad, monkeypatch, directory):
    def results(n, example):
        fakes, env = symbolic_inputs(example, grad)
        compiled = compile_(make(), fakes)
        args = inputs(grad, n)
        out = compiled(*args)
        if grad:
            out[0].sum().backward()
        values = [o.detach() if isinstance(o, torch.Tensor) else torch.tensor(o) for o in out]
        return values + ([args[0].grad] if grad else []), [repr(g.relation) for g in env.guards]

    first, guards = results(6, 5)
    assert len(entries(directory)) == 1
    monkeypatch.setattr(api, "trace", None)
    for example in (5, 4):
        second, again = results(6, example)
        assert guards == again and all(torch.equal(x, y) for x, y in zip(first, second, strict=True))


def test_an_entry_whose_guards_do_not_hold_is_left(directory):
    """The same captured graph takes another way for another example."""

    def build(g, a, b):
        return [g.call_function(torch.cat, ([a, b], 1)), g.call_method("expand", (a, 2, -1))]

    def sliced(g, a, b):
        return [g.call_function(operator.getitem, (a, (slice(None), slice(None, 4, None))))]

    for make in (build, sliced):
        for example, n in ((6, 7), (3, 3)):
            compiled = compile_(graph(make), symbolic_inputs(example, False)[0])
            args = inputs(False, n)
            for got, want in zip(compiled(*args), graph(make)(*args)):
                assert torch.equal(got, want)


@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_the_default_device_belongs_to_the_key(device):
    """Functions with equal graphs share entries, and the tensors that such a graph makes lie where factories put them."""

    def made():
        def f(x):
            return torch.zeros(2), x + 1

        x = torch.ones(2, device="cpu")
        return torch.compile(f, backend="aot_eager")(x)[0].device.type

    others = {"meta": "cpu", "cpu": "meta"}
    with torch.device(others[device]):
        assert made() == others[device]
    with torch.device(device):
        assert made() == device


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_number_out_of_data_that_was_found_to_be_a_constant(dynamic):
    """The trace that aot_eager makes isn't kept for inductor, which needs the number's symbol."""

    def f(x, i):
        n = i.item()
        torch._check(n == 5)
        return x + n

    for backend in ("aot_eager", "inductor"):
        g = torch.compile(f, backend=backend, fullgraph=True, dynamic=dynamic)
        assert g(torch.ones(11), torch.tensor(5)).tolist() == [6] * 11
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            g(torch.ones(11), torch.tensor(6))
