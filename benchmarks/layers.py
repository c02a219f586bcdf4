"""Products and convolutions alone, eager, and one compilation for ten sizes: more cases for harness.py, imported by cases.py."""

from __future__ import annotations

# images, channels, side, outputs, kernel, stride, groups
LAYERS = {
    "3x3, 64 channels of 32x32": (8, 64, 32, 64, 3, 1, 1),
    "3x3, 256 channels of 8x8": (8, 256, 8, 256, 3, 1, 1),
    "3x3 with stride 2, 64 to 128 channels": (8, 64, 32, 128, 3, 2, 1),
    "3x3 depthwise, 96 channels of 32x32": (8, 96, 32, 96, 3, 1, 96),
}
PRODUCTS = [(128, 128, 128), (1024, 128, 384), (1024, 256, 1024), (32, 1024, 1024)]


def _layer(torch, n, c, side, o, k, stride, groups, backward):
    aten = torch.ops.aten
    how = ([stride, stride], [k // 2, k // 2], [1, 1], False, [0, 0], groups)
    x, w = torch.randn(n, c, side, side), torch.randn(o, c // groups, k, k)
    if not backward:
        return lambda: aten.convolution.default(x, w, None, *how)
    g = torch.randn(*aten.convolution.default(x, w, None, *how).shape)
    return lambda: aten.convolution_backward.default(g, x, w, None, *how, [True, True, False])


def _ten_sizes(torch):
    """One function compiled for all sizes, called at ten of them."""
    f = torch.compile(lambda x: x.softmax(-1), dynamic=True)
    inputs = [torch.randn(n, n) for n in range(100, 200, 10)]

    def run():
        for x in inputs:
            f(x)

    run()
    return run


def register(case) -> None:
    """``case(name)(make)`` for each case here."""
    for name, layer in LAYERS.items():
        for backward in (False, True):
            title = f"convolution {name}{', backward' if backward else ''}"
            case(title)(lambda torch, layer=layer, backward=backward: _layer(torch, *layer, backward))
    for m, k, n in PRODUCTS:

        def product(torch, m=m, k=k, n=n):
            a, b = torch.randn(m, k), torch.randn(k, n)
            return lambda: a @ b

        case(f"matrix product {m}x{k}x{n}")(product)
    case("softmax at ten sizes, one compilation")(_ten_sizes)
