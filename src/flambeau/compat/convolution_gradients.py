"""``torch.nn.grad``: the gradients of convolutions by input and by weight, as functions."""

from __future__ import annotations

from ..core.operator import namespace

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

aten = namespace("aten")


def _gradient(dims: int, which: int):
    def tuple_of(x):
        return [x] * dims if isinstance(x, int) else list(x)

    def run(first, second, grad_output, stride=1, padding=0, dilation=1, groups=1):
        # (input_size, weight, ...) for the input's, (input, weight_size, ...) for the weight's
        input = grad_output.new_empty(1).expand(list(first)) if which == 0 else first
        weight = second if which == 0 else grad_output.new_empty(1).expand(list(second))
        options = (tuple_of(stride), tuple_of(padding), tuple_of(dilation), False, [0] * dims, groups)
        mask = [which == 0, which == 1, False]
        return aten.convolution_backward(grad_output, input, weight, None, *options, mask)[which]

    what = "input" if which == 0 else "weight"
    run.__name__ = run.__qualname__ = f"conv{dims}d_{what}"
    run.__doc__ = f"The gradient of ``conv{dims}d`` by its {what}; the {what} is told by its size."
    return run


conv1d_input, conv2d_input, conv3d_input = (_gradient(n, 0) for n in (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = (_gradient(n, 1) for n in (1, 2, 3))
