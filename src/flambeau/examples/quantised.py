"""A tensor subclass that holds weights as 8-bit integers with a scale a row: a quarter of the memory, in eager and compiled code."""

import flambeau as torch
from flambeau import nn
from flambeau.utils._pytree import tree_map


class Int8(torch.Tensor):
    """Looks like a float32 matrix. ``steps`` are int8, ``scale`` is float32 of shape (rows, 1)."""

    steps: torch.Tensor
    scale: torch.Tensor

    @staticmethod
    def __new__(cls, steps, scale):
        return torch.Tensor._make_wrapper_subclass(cls, steps.shape, dtype=scale.dtype)

    def __init__(self, steps, scale):
        self.steps, self.scale = steps, scale

    @classmethod
    def of(cls, weight: torch.Tensor) -> "Int8":
        """The nearest of 255 steps for each element."""
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().to(torch.int8), scale)

    def full(self) -> torch.Tensor:
        return self.steps.to(self.scale.dtype) * self.scale

    def __tensor_flatten__(self):
        return ["steps", "scale"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Int8(parts["steps"], parts["scale"])

    def __repr__(self):
        return f"Int8({list(self.shape)})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            return cls(args[0].steps, args[0].scale)
        if func is torch.ops.aten.t.default:
            return args[0].full().t()
        args, kwargs = tree_map(lambda t: t.full() if isinstance(t, cls) else t, (args, kwargs or {}))
        return func(*args, **kwargs)


def quantise(model: nn.Module) -> nn.Module:
    """Replace the weights of all Linear layers."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight = nn.Parameter(Int8.of(module.weight.detach()), requires_grad=False)
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 64)).requires_grad_(False)
    x = torch.randn(8, 256)
    exact = model(x)
    before = sum(p.numel() * p.element_size() for p in model.parameters())
    quantise(model)
    after = sum(
        p.steps.numel() + p.scale.numel() * 4 if isinstance(p, Int8) else p.numel() * 4 for p in model.parameters()
    )
    error = ((model(x) - exact).norm() / exact.norm()).item()
    print(f"{before:,} bytes before, {after:,} after; relative error {error:.4f}")
    compiled = torch.compile(model)(x)
    print(f"compiled and eager differ by {(compiled - model(x)).abs().max().item():.1e}")
