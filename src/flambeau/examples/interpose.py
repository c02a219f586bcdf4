"""Watching every operator: a dispatch mode around forward and backward, and a tensor subclass that logs what is done to it."""

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils._pytree import tree_map


class PrintingMode(TorchDispatchMode):
    """Prints the operators that run inside, arguments that have their default value left out."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        shapes = [list(a.shape) if isinstance(a, torch.Tensor) else a for a in args]
        print(f"  {func}({', '.join(map(str, shapes))})")
        return func(*args, **(kwargs or {}))


class LoggingTensor(torch.Tensor):
    """Wraps a tensor; its ``calls`` list the operators that reached it, those of the backward pass too."""

    calls: list[str] = []
    elem: torch.Tensor

    @staticmethod
    def __new__(cls, elem):
        wrapper = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), dtype=elem.dtype, requires_grad=elem.requires_grad
        )
        wrapper.elem = elem.detach()
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))

        def unwrap(x):
            return x.elem if isinstance(x, cls) else x

        def wrap(x):
            return cls(x) if isinstance(x, torch.Tensor) else x

        return tree_map(wrap, func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {})))


if __name__ == "__main__":
    x = torch.randn(3, requires_grad=True)
    print("forward and backward of (x * x).sum():")
    with PrintingMode():
        (x * x).sum().backward()

    y = LoggingTensor(torch.randn(3, requires_grad=True))
    (y * y).sum().backward()
    print("a LoggingTensor saw:", ", ".join(LoggingTensor.calls))
