"""Graphs built by hand: editing keeps the invariants, printing gives Python that runs."""

import copy
import math
import operator
import pickle
import traceback

import pytest

from flambeau import fx


def fma_graph():
    g = fx.Graph()
    a, b = g.placeholder("a"), g.placeholder("b")
    m = g.call_function(operator.mul, (a, b))
    g.output(g.call_function(operator.add, (m, a)))
    return g


def module(g, root=None):
    g.lint()
    return fx.GraphModule(root or {}, g)


def helper(x, *, scale=1):
    return x * scale


class Leaf:
    scale = 3

    def __call__(self, x, k=1):
        return x + k


@pytest.mark.parametrize(
    ("build", "args", "expected"),
    [
        (lambda g, x: g.call_function(operator.neg, (x,)), (2,), -2),
        (lambda g, x: g.call_function(operator.truediv, (1, x)), (2,), 0.5),
        (lambda g, x: g.call_function(operator.pow, (-2, x)), (2,), 4),
        (lambda g, x: g.call_function(operator.getitem, (x, (slice(None, None, None)))), ([1, 2],), [1, 2]),
        (lambda g, x: g.call_function(operator.iadd, (x, 3)), (2,), 5),
        (lambda g, x: g.call_function(math.sqrt, (x,)), (4,), 2.0),
        (lambda g, x: g.call_function(len, (x,)), ([1],), 1),
        (lambda g, x: g.call_function(helper, (x,), {"scale": 5}), (4,), 20),
        (lambda g, x: g.call_function(lambda v: v + 1, (x,)), (4,), 5),
        (lambda g, x: g.call_function(getattr, (x, "real")), (4,), 4),
        (lambda g, x: g.call_function(getattr, (x, "not there", 9)), (4,), 9),
        (lambda g, x: g.call_method("upper", (x,)), ("a",), "A"),
        (
            lambda g, x: g.call_method("format", ("{} {k}", x), {"k": [x, {"z": (x,)}]}),
            ("a",),
            "a ['a', {'z': ('a',)}]",
        ),
        (lambda g, x: g.call_function(max, (x, float("-inf"))), (3.0,), 3.0),
        (lambda g, x: g.call_function(dict, (), {"from": x}), (3.0,), {"from": 3.0}),
    ],
)
def test_printed_code_runs(build, args, expected):
    g = fx.Graph()
    x = g.placeholder("x")
    g.output(build(g, x))
    gm = module(g)
    assert gm(*args) == expected
    assert fx.Interpreter(gm).run(*args) == expected
    code = g.python_code()
    scope = dict(code.globals)
    exec(code.src, scope)
    assert scope["forward"](None, *args) == expected


def test_names_and_users():
    g = fx.Graph()
    a = g.placeholder("arg0_1")
    s = [g.call_function(math.sin, (a,)) for _ in range(3)]
    out = g.output((s[0], [s[1], {"k": s[2]}]))
    assert [n.name for n in g.nodes] == ["arg0_1", "sin", "sin_1", "sin_2", "output"]
    assert list(a.users) == s and out.all_input_nodes == s
    s[0].replace_all_uses_with(s[1])
    assert not s[0].users and list(s[1].users) == [out]
    g.erase_node(s[0])
    assert len(g.nodes) == 4 and s[0] not in a.users
    g.lint()


def test_in_place_change_of_arguments_is_refused():
    g = fx.Graph()
    a = g.placeholder("a")
    n = g.call_function(helper, ([a, 1],), {"scale": 2})
    with pytest.raises(TypeError, match="mutation"):
        n.args[0].append(3)
    with pytest.raises(TypeError, match="mutation"):
        n.kwargs["scale"] = 3
    n.update_kwarg("scale", a)
    n.update_arg(0, 7)
    assert n.args == (7,) and n.all_input_nodes == [a]


def test_inserting():
    g = fma_graph()
    mul = g.find_nodes(op="call_function", target=operator.mul)[0]
    with g.inserting_after(mul):
        first = g.call_function(operator.neg, (mul,))
        second = g.call_function(operator.neg, (first,))
    with g.inserting_before(mul):
        c = g.call_function(operator.pos, (mul.args[0],))
    mul.replace_all_uses_with(second, lambda u: u is not first)
    assert [n.name for n in g.nodes] == ["a", "b", "pos", "mul", "neg", "neg_1", "add", "output"]
    assert c < mul < first < second
    gm = module(g)
    assert gm(2, 3) == 8
    assert g.eliminate_dead_code() and c not in g.nodes
    gm.recompile()
    assert gm(2, 3) == 8


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda g, n: n["mul"].prepend(n["add"]), "used before it has been defined"),
        (lambda g, n: n["mul"].users.clear(), "not among its users"),
        (lambda g, n: setattr(n["mul"], "name", "a"), "redefined name a"),
        (lambda g, n: g.call_function(helper, (n["a"],)), "after the output"),
        (lambda g, n: n["output"].append(n["b"]), "b"),
    ],
)
def test_lint(spoil, message):
    g = fma_graph()
    spoil(g, {n.name: n for n in g.nodes})
    with pytest.raises(RuntimeError, match=message):
        g.lint()


def test_erase_of_a_used_node_is_an_error():
    g = fma_graph()
    with pytest.raises(RuntimeError, match="still had 1 users"):
        g.erase_node(next(n for n in g.nodes if n.name == "mul"))


def test_attributes_and_modules():
    class Root:
        leaf = Leaf()
        blocks = type("Blocks", (), {"0": Leaf()})()

    g = fx.Graph()
    x = g.placeholder("x")
    y = g.call_module("leaf", (x,), {"k": 4})
    y = g.call_module("blocks.0", (y,))
    g.output(g.call_function(operator.mul, (y, g.get_attr("leaf.scale"))))
    gm = module(g, Root())
    assert gm(1) == 18
    assert fx.Interpreter(gm).run(1) == 18
    with pytest.raises(RuntimeError, match="not provided in `root`"):
        fx.GraphModule({}, g)


def test_copies():
    gm = module(fma_graph())
    for other in (copy.deepcopy(gm), copy.copy(gm), pickle.loads(pickle.dumps(gm))):
        assert other(2, 3) == 8 and other.code == gm.code and other.graph is not gm.graph
        other.graph.lint()
    other = copy.deepcopy(gm)
    other.graph.output_node().args = (1,)
    other.recompile()
    assert other(2, 3) == 1 and gm(2, 3) == 8


def test_traceback_shows_generated_code():
    gm = module(fma_graph())
    with pytest.raises(TypeError) as e:
        gm(None, None)
    assert "mul = a * b" in "".join(traceback.format_exception(e.value))
    with pytest.raises(TypeError) as e:
        fx.Interpreter(gm).run(None, None)
    assert "While executing %mul" in e.value.__notes__[0]


def test_values_are_freed_at_last_use():
    gm = module(fma_graph())
    assert "add = mul + a;  mul = a = None" in gm.code


def test_print_readable_and_tabular(capsys):
    gm = module(fma_graph())
    assert "class GraphModule(torch.nn.Module)" in gm.print_readable(print_output=False)
    gm.graph.print_tabular()
    assert "call_function" in capsys.readouterr().out
    assert "call_function[target=operator.mul]" in str(gm.graph)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x, y: x * y + x, (2, 3)),
        (lambda x, y=2: (2 - x) / abs(-y), (2,)),
        (lambda x: x[1:] + [x[0]], ([1, 2, 3],)),
        (lambda x: x.upper().lower(), ("Ab",)),
        (lambda x: {"a": x.real, "b": (x, [x])}, (1,)),
    ],
)
def test_symbolic_trace(f, args):
    gm = fx.symbolic_trace(f)
    gm.graph.lint()
    assert gm(*args) == f(*args)


def test_symbolic_trace_refuses_control_flow():
    with pytest.raises(fx.TraceError, match="control flow"):
        fx.symbolic_trace(lambda x: x if x > 0 else -x)


def test_replace_pattern():
    gm = fx.symbolic_trace(lambda a, b: (a * b + a) * (b * 2 + b))
    matches = fx.replace_pattern(gm, lambda x, y: x * y + x, lambda x, y: x * (y + 1))
    assert len(matches) == 2  # an input of the pattern stands for a number too
    gm.graph.lint()
    assert gm(2, 3) == 72 and "b + 1" in gm.code
