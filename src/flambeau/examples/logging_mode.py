"""A mode that logs every operator with the shapes of its arguments and results, forward and backward, indented by module."""

import flambeau as torch
from flambeau import nn
from flambeau.utils._python_dispatch import TorchDispatchMode


def shown(value) -> str:
    """``f32[2, 3]`` for a tensor."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(shown, value))})"
    return repr(value)


class Logging(TorchDispatchMode):
    """Prints calls while it is on; ``count`` is their number."""

    def __init__(self):
        super().__init__()
        self.count = self.depth = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        print(f"{'  ' * self.depth}{func}({', '.join(map(shown, args))}) -> {shown(result)}")
        self.count += 1
        return result

    def watch(self, model: nn.Module) -> None:
        """Print the modules of a model too."""
        for name, module in model.named_children():
            module.register_forward_pre_hook(lambda m, args, name=name: self.enter(f"{name}: {type(m).__name__}"))
            module.register_forward_hook(lambda m, args, result: self.leave())

    def enter(self, text: str) -> None:
        print(f"{'  ' * self.depth}[{text}]")
        self.depth += 1

    def leave(self) -> None:
        self.depth -= 1


if __name__ == "__main__":
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with Logging() as log:
        log.watch(model)
        loss = model(torch.randn(2, 4)).square().mean()
        print("backward:")
        loss.backward()
    print(f"{log.count} operators")
