"""``graph`` of functions that ``torch.jit.script`` marked: made of their source when it is asked for."""

import copy

import pytest
import scripted_functions
from test_archived_graphs import check
from test_script_archives import same

import flambeau as torch
from flambeau.compat.script_graphs.scripted import program_of
from flambeau.compat.torchscript.values import code_of

FUNCTIONS = scripted_functions.made(torch)

EARLY = """\
graph(%x : Tensor,
      %n : int):
  %2 : int = prim::Constant[value=2]()
  %3 : bool = aten::gt(%n, %2)
  %_result.2 : Tensor = prim::If(%3)
    block0():
      %_result : Tensor = aten::mul(%x, %n)
      -> (%_result)
    block1():
      %5 : bool = aten::eq(%n, %2)
      %x.2 : Tensor = prim::If(%5)
        block0():
          %x.1 : Tensor = aten::relu(%x)
          -> (%x.1)
        block1():
          -> (%x)
      %_result.1 : Tensor = aten::neg(%x.2)
      -> (%_result.1)
  return (%_result.2)
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_graphs_are_well_formed(name):
    scripted = torch.jit.script(FUNCTIONS[name])
    check(scripted.graph, set())
    assert str(scripted.graph).startswith("graph(%") and scripted.graph.findNode("prim::CallMethod") is None


X = torch.tensor([[1.5, -2.0, 3.0], [0.5, 4.0, -1.0]])
CALLS = {
    "arithmetic": [(X, 7), (X, 4, 0.5)],
    "shapes": [(X.view(3, 2).clone(), X)],
    "early": [(X, 3), (X, 2), (X, 1)],
    "logic": [(a, b, 5) for a in (False, True) for b in (False, True)],
    "loops": [(X, 4), (X, 0), (X, 3, False)],
    "calls": [(X, X + 1)],
    "optional": [(X,), (X, 3)],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_translation_computes_what_the_function_does(name):
    method, program = program_of(FUNCTIONS[name])
    program.compile()
    for args in CALLS[name]:
        given = (*args, *(method.defaults[name] for name, _ in method.takes[len(args) :]))
        there, here = ([copy.deepcopy(a) for a in given] for _ in range(2))
        expected = FUNCTIONS[name](*there)
        same(method.python(*here), tuple(map(plain, expected)) if type(expected) is tuple else expected)


def plain(value):
    """A value as TorchScript has it: sizes are lists, dtypes numbers."""
    return list(value) if isinstance(value, torch.Size) else code_of(value)


def test_returns_in_branches():
    assert str(torch.jit.script(FUNCTIONS["early"]).graph) == EARLY


def test_calls_of_functions():
    scripted = torch.jit.script(FUNCTIONS["calls"])
    (call,) = scripted.graph.findAllNodes("prim::CallFunction")
    assert next(call.inputs()).node().s("name") == "shifted"
    inlined = [n.kind() for n in scripted.inlined_graph.nodes()]
    assert "prim::CallFunction" not in inlined and inlined.count("aten::add") == 1


OUTER = 3


def uses_global(x):
    return x * OUTER


def sorts(x):
    return sorted([x])


def loops_over(x):
    for row in x:
        x = x + row
    return x


def returns_in_loop(x, n: int):
    for i in range(n):
        if i > 2:
            return x
    return -x


def other_arguments(x):
    return torch.nn.functional.relu(x, True, 3)


def number(n: int):
    return n


def takes_number(x, n: int):
    return 2 - number(n)


def turns(x, n: int):
    k = 0
    for _ in range(n):
        k = x - k
    return k


def unlike_the_operator(x, w):
    return torch.nn.functional.embedding(x, w)


REFUSED = {
    unlike_the_operator: "the graph of a call of torch.nn.functional.embedding isn't built",
    takes_number: "the types of the operands aren't known here",
    turns: "k changes its type in a loop",
    uses_global: "OUTER is a value from outside of the function",
    sorts: "the graph of a call of sorted isn't built",
    loops_over: "the graph of a loop over x isn't built",
    returns_in_loop: "the graph of a return in a loop isn't built",
    other_arguments: "relu",
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_is_refused(function):
    scripted = torch.jit.script(function)
    with pytest.raises(NotImplementedError, match=REFUSED[function]) as error:
        str(scripted.graph)
    assert function.__name__ in str(error.value) and "line " in str(error.value)


def test_a_lambda_has_no_graph():
    with pytest.raises(NotImplementedError, match="graph"):
        torch.jit.script(lambda x: x + 1).graph.nodes()
