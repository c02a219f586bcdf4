"""aot_export_module and aot_export_joint_simple: graphs with parameters and buffers as arguments."""

import pytest
from flambeau._functorch.aot_autograd import aot_export_joint_simple, aot_export_module

import flambeau as torch

TABLE = torch.ones(2) * 3


class Counting(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.register_buffer("count", torch.ones(2))

    def forward(self, x, y):
        self.count.add_(1)
        x.mul_(2)
        return self.linear(x).sum() + self.count.sum(), y + TABLE


def test_parameters_buffers_and_writes_are_arguments_and_results():
    model, x, y = Counting(), torch.ones(3, 2), torch.ones(2)
    gm, signature = aot_export_module(model, [x.clone(), y], trace_joint=False)
    assert [n.name for n in gm.graph.nodes if n.op == "placeholder"] == [f"arg{k}_1" for k in range(5)]
    assert signature.inputs_to_parameters == {"arg0_1": "linear.weight", "arg1_1": "linear.bias"}
    assert signature.inputs_to_buffers == {"arg2_1": "count"} and signature.user_inputs == ["arg3_1", "arg4_1"]
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    assert list(signature.user_inputs_to_mutate.values()) == ["arg3_1"] and len(signature.user_outputs) == 2
    count, written, total, shifted = gm(model.linear.weight, model.linear.bias, torch.ones(2), x, y)
    want = model(x, y)
    assert torch.equal(count, torch.full((2,), 2.0)) and torch.equal(written, x)
    assert torch.allclose(total, model.linear(x).sum() + 4) and torch.equal(shifted, want[1])


def test_what_is_refused():
    def writes(x, y):
        x.mul_(2)
        return (x + y,)

    one, other = torch.ones(2), torch.zeros(2)
    with pytest.raises(RuntimeError, match="duplicated inputs that are mutated"):
        aot_export_joint_simple(writes, [one, one], trace_joint=False)
    with pytest.raises(RuntimeError, match="does not support input mutations"):
        aot_export_joint_simple(writes, [one, other], trace_joint=False)
    with pytest.raises(NotImplementedError, match="trace_joint"):
        aot_export_module(Counting(), [torch.ones(1, 2), other], trace_joint=True)


def test_functions():
    gm = aot_export_joint_simple(lambda x, y: (x.sin() * y,), [torch.ones(2), torch.ones(2)], trace_joint=False)
    x, y = torch.randn(2), torch.randn(2)
    assert torch.equal(gm(x, y)[0], x.sin() * y)


def test_tables_of_decompositions():
    from flambeau._inductor.decomposition import decompositions, select_decomp_table
    from flambeau.functorch.compile import aot_function

    assert decompositions.keys() <= select_decomp_table().keys()
    f = aot_function(lambda x: (x + 1).view(-1), lambda gm, args: gm, decompositions=decompositions)
    assert torch.equal(f(torch.ones(2, 2)), torch.full((4,), 2.0))


@pytest.mark.parametrize("name", ["absolute", "arccos", "negative", "fix"])
def test_the_operators_other_names_in_place(name):
    x = torch.tensor([-0.5, 0.25], requires_grad=True)
    y = x.clone()
    assert getattr(torch.ops.aten, f"{name}_").default(y) is y
    assert torch.equal(y, getattr(torch, name)(x)) and y.grad_fn is not None
