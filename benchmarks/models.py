"""Kernels and training steps of convolutional networks, more cases for harness.py: imported by cases.py.

Products and convolutions are measured alone, eager; networks by whole training steps, eager and compiled.
"""

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


def _lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 10),
    ), torch.randn(64, 1, 28, 28)


def _residual(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.n1, self.c1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, stride, 1, bias=False)
            self.n2, self.c2 = nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.short = nn.Conv2d(i, o, 1, stride, bias=False) if stride != 1 or i != o else None

        def forward(self, x):
            y = torch.relu(self.n1(x))
            rest = x if self.short is None else self.short(y)
            return self.c2(torch.relu(self.n2(self.c1(y)))) + rest

    layers, i = [nn.Conv2d(3, 64, 3, 1, 1, bias=False)], 64
    for o, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(i, o, stride))
        i = o
    return nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10)), torch.randn(8, 3, 32, 32)


def _step(torch, make, compiled):
    torch.manual_seed(0)
    model, x = make(torch)
    target = torch.randint(0, 10, (x.shape[0],))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    run = torch.compile(model) if compiled else model

    def step():
        torch.nn.functional.cross_entropy(run(x), target).backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    return step


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
    for name, make in (("LeNet, batch 64", _lenet), ("PreActResNet18, 8x3x32x32", _residual)):
        for compiled in (False, True):
            title = f"{name}, training step, {'compiled' if compiled else 'eager'}"
            case(title)(lambda torch, make=make, compiled=compiled: _step(torch, make, compiled))
    case("softmax at ten sizes, one compilation")(_ten_sizes)
