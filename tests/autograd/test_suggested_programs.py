"""Ten programs that failures of PyTorch's own tests suggested; none of its tests has them. The numbers are PyTorch's."""

import io
import pickle

import pytest

import flambeau as torch
from flambeau import nn
from flambeau.autograd import Function
from flambeau.utils.checkpoint import checkpoint


class Relax(Function):
    """Writes its state in place: x becomes x + (y - x) / 2."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y).mul_(0.5)

    @staticmethod
    def backward(ctx, grad):
        return grad / 2, grad / 2


def state_written_row_by_row():
    """A recurrent state whose rows a Function updates."""
    inputs = torch.arange(6.0).reshape(3, 2).requires_grad_()
    state = torch.ones(3, 2, requires_grad=True)
    kept = state.clone()
    for k in range(3):
        Relax.apply(kept[k], inputs[k] * (k + 1))
        Relax.apply(kept[:, k % 2], inputs[:, 1])
    (kept * kept).sum().backward()
    return inputs.grad, state.grad


def gradient_penalty_through_an_activation_in_place():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(torch.linspace(-1, 1 + k, p.numel()).reshape(p.shape))
    x = torch.tensor([[1.0, 2.0], [-1.0, 0.5]], requires_grad=True)
    (g,) = torch.autograd.grad(net(x).pow(2).sum(), x, create_graph=True)
    ((g.norm(dim=1) - 1) ** 2).sum().backward()
    return [p.grad for p in net.parameters()]


def views_written_under_checkpoint():
    x = torch.linspace(0, 1, 6, requires_grad=True)

    def body(x):
        y = (x * 2).view(2, 3)
        y[0].sigmoid_()
        return y.t().reshape(-1).cos()

    def outer(x):
        return checkpoint(body, checkpoint(body, x, use_reentrant=False), use_reentrant=False)

    outer(x).sum().backward()
    return x.grad


def hessian_of_a_product_by_index():
    index = torch.tensor([0, 0, 1, 1])

    def f(x, s):
        return torch.scatter_reduce(x, 0, index, s, "prod").exp().sum()

    x, s = torch.tensor([1.0, 2.0]), torch.tensor([0.5, 2.0, 1.0, 0.0])
    return torch.autograd.functional.hessian(f, (x, s))[1][1]


def directional_derivative_of_a_function_that_writes():
    from flambeau.autograd import forward_ad as fw

    class Scale(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def jvp(ctx, t):
            return t.mul_(3)

    with fw.dual_level():
        x = fw.make_dual(torch.ones(4), torch.arange(4.0))
        y = x.sin()
        Scale.apply(y)
        return fw.unpack_dual(y.cos()).tangent


def loading_into_a_converted_module():
    model = nn.Linear(2, 2)
    kept = model.weight
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        model.double().load_state_dict({"weight": torch.eye(2), "bias": torch.ones(2)})
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    model(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    return kept.detach(), kept.grad


def complex_weights_of_unit_norm():
    layer = nn.Linear(2, 2, bias=False, dtype=torch.complex64)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1 + 1j, 2], [0.5j, -1]]))
    nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=50)
    layer(torch.ones(1, 2, dtype=torch.complex64))
    return torch.linalg.svdvals(layer.weight.detach())


def an_operator_with_defaults_and_a_derivative():
    library = torch.library.Library("suggested", "FRAGMENT")
    try:
        library.define("smooth(Tensor x, float width=0.5, *, int power=2) -> Tensor")
        library.impl("smooth", lambda x, width=0.5, *, power=2: (x / width) ** power, "CompositeExplicitAutograd")

        def setup(ctx, inputs, keyword_only_inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.width, ctx.power = inputs[1], keyword_only_inputs["power"]

        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * ctx.power * (x / ctx.width) ** (ctx.power - 1) / ctx.width

        torch.library.register_autograd("suggested::smooth", backward, setup_context=setup, lib=library)
        x = torch.tensor([1.0, -2.0], requires_grad=True)
        torch.ops.suggested.smooth(x, power=3).sum().backward()
        return x.grad
    finally:
        library._destroy()


def sparse_counts_that_stay_whole():
    counts = torch.tensor([[1, 0], [0, 2]]).to_sparse()
    try:
        counts.add_(torch.tensor([[0.5, 0.0], [0.0, 0.5]]).to_sparse())
        raised = False
    except RuntimeError:
        raised = True
    return counts.to_dense(), torch.tensor(raised)


class Scaled(torch.Tensor):
    """A wrapper with a scale."""

    @staticmethod
    def __new__(cls, data, scale):
        return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

    def __init__(self, data, scale):
        self.inner, self.scale = data, scale

    def __tensor_flatten__(self):
        return ["inner"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, size, stride):
        return Scaled(inner["inner"], scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def unwrap(x):
            return x.inner * x.scale if isinstance(x, Scaled) else x

        return func(*map(unwrap, args), **(kwargs or {}))


def a_wrapper_through_a_file():
    file = io.BytesIO()
    pickle.dump(Scaled(torch.arange(3.0), 2.5), file)
    file.seek(0)
    read = pickle.load(file)
    return read + 1, torch.ones(2).type_as(torch.ones(1, dtype=torch.int16))


PROGRAMS = {
    state_written_row_by_row: [0.2188, 2.8125, 3.0, 10.25, 9.375, 39.3125, 0.2188, 0.5, 0.75, 1.625, 1.5625, 4.5],
    gradient_penalty_through_an_activation_in_place: [
        0.0,
        0.0,
        3505.2117,
        8382.6455,
        10515.6348,
        25147.9375,
        0.0,
        1916.9783,
        5750.9351,
        0.0,
        1933.9758,
        14319.7295,
        1916.9783,
    ],
    views_written_under_checkpoint: [0.0454, 0.0544, 0.5444, 0.5113, -0.2334, -2.6896],
    hessian_of_a_product_by_index: [
        10.8731,
        5.4366,
        0.0,
        0.0,
        5.4366,
        0.6796,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        2.0,
        0.0,
        0.0,
        2.0,
        4.0,
    ],
    directional_derivative_of_a_function_that_writes: [0.0, -0.9381, -1.8762, -2.8142],
    loading_into_a_converted_module: [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    complex_weights_of_unit_norm: [1.0, 0.3452],
    an_operator_with_defaults_and_a_derivative: [24.0, 96.0],
    sparse_counts_that_stay_whole: [1.0, 0.0, 0.0, 2.0, 1.0],
    a_wrapper_through_a_file: [1.0, 3.5, 6.0, 1.0, 1.0],
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    made = program()
    numbers = [v for t in (made if isinstance(made, tuple | list) else [made]) for v in t.detach().reshape(-1).tolist()]
    assert numbers == pytest.approx(PROGRAMS[program], rel=1e-4, abs=1e-4)
