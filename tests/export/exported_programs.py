"""Programs with the sizes they vary in: what the tests of export, of archives and of packages run over."""

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim

B, C = Dim("b"), Dim("c")
randn = torch.randn


class Stateful(nn.Module):
    """A parameter, a buffer that is written, one that isn't kept, and a plain tensor."""

    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scale", torch.ones(3) * 2, persistent=False)
        self.c = torch.arange(3.0)

    def forward(self, x, y=None, *, k=2):
        self.count.add_(1)
        z = self.l(x) * self.scale + self.c + k
        if y is not None:
            z = z + y["a"]
        return {"z": z, "x": x, "n": x.shape[0]}


def first(x, k):
    n = k.item()
    torch._check(n >= 0)
    torch._check(n <= x.shape[0])
    return x[:n] * 2


def tied():
    m = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
    m[2].weight = m[0].weight
    return m


def convolutional():
    body = (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5))
    return nn.Sequential(*body).eval()


def attention_inputs(n, s):
    x = randn(n, s, 16)
    return x, x.clone(), x.clone()


# name -> (makes the module or function, makes an example, specification, makes further arguments)
PROGRAMS = {
    "mlp": (
        lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)),
        lambda: (randn(5, 4),),
        ({0: B},),
        lambda: [(randn(n, 4),) for n in (1, 2, 9)],
    ),
    "softmax": (
        lambda: lambda x: torch.softmax(x, -1).sum(0),
        lambda: (randn(5, 4),),
        ({0: B, 1: C},),
        lambda: [(randn(n, 7),) for n in (1, 3)],
    ),
    "cat": (
        lambda: lambda x, y: torch.cat([x, y * 2], 0),
        lambda: (randn(5, 4), randn(3, 4)),
        ({0: B}, {0: C}),
        lambda: [(randn(n, 4), randn(2, 4)) for n in (1, 9)],
    ),
    "nonzero": (lambda: lambda x: x.relu().nonzero(), lambda: (randn(5, 4),), ({0: B},), lambda: [(randn(9, 4),)]),
    "mask": (lambda: lambda x: x[x > 0] + 1, lambda: (randn(5, 4),), ({0: B},), lambda: [(randn(9, 4),)]),
    "item": (
        lambda: first,
        lambda: (randn(5, 4), torch.tensor(3)),
        ({0: Dim("b", min=4)}, None),
        lambda: [(randn(n, 4), torch.tensor(2)) for n in (4, 9)],
    ),
    "cond": (
        lambda: lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
        lambda: (randn(5, 4),),
        ({0: B},),
        lambda: [(torch.ones(2, 4),), (-torch.ones(9, 4),)],
    ),
    "view and unflatten": (
        lambda: lambda x: x.view(-1).unflatten(0, (x.shape[0], 2, 2)).transpose(0, 1),
        lambda: (randn(5, 4),),
        ({0: B},),
        lambda: [(randn(n, 4),) for n in (1, 9)],
    ),
    "convolutions": (
        convolutional,
        lambda: (randn(2, 3, 8, 8),),
        ({0: B},),
        lambda: [(randn(n, 3, 8, 8),) for n in (1, 3)],
    ),
    "convolution, all sizes": (
        lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1)),
        lambda: (randn(2, 3, 8, 8),),
        ({0: B, 2: Dim("h", min=4), 3: Dim("w", min=4)},),
        lambda: [(randn(n, 3, 9, 7),) for n in (1, 3)],
    ),
    "encoder": (
        lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval(),
        lambda: (randn(2, 5, 16),),
        ({0: B, 1: C},),
        lambda: [(randn(n, 7, 16),) for n in (1, 3)],
    ),
    "attention": (
        lambda: nn.MultiheadAttention(16, 2, batch_first=True).eval(),
        lambda: attention_inputs(2, 5),
        ({0: B, 1: C},) * 3,
        lambda: [attention_inputs(3, 7)],
    ),
    "embedding": (
        lambda: nn.Embedding(10, 4),
        lambda: (torch.tensor([1, 2, 3]),),
        ({0: B},),
        lambda: [(torch.tensor([1]),)],
    ),
    "int argument": (
        lambda: lambda x, k: x * k + k,
        lambda: (randn(5, 4), 3),
        ({0: B}, Dim.DYNAMIC),
        lambda: [(randn(2, 4), 7)],
    ),
    "sizes among the results": (
        lambda: lambda x: (x.sum(), x.shape[0] * 2 + 1, [x.shape, None, "a"]),
        lambda: (randn(5, 4),),
        ({0: B},),
        lambda: [(randn(2, 4),)],
    ),
    "tied parameters": (tied, lambda: (randn(5, 4),), ({0: B},), lambda: [(randn(2, 4),)]),
    "variadic": (
        lambda: lambda x, *ys: x + sum(ys),
        lambda: (randn(5, 4), randn(5, 4), randn(5, 4)),
        ({0: B}, ({0: B}, {0: B})),
        lambda: [(randn(2, 4), randn(2, 4), randn(2, 4))],
    ),
    "derived": (
        lambda: lambda x, y: x + y[::2],
        lambda: (randn(6, 4), randn(12, 4)),
        ({0: B}, {0: 2 * B}),
        lambda: [(randn(3, 4), randn(6, 4))],
    ),
    "factories of symbolic sizes": (
        lambda: lambda x: x.new_zeros(x.shape[0], x.shape[0] * 2) + torch.arange(x.shape[0] * 2),
        lambda: (randn(5, 4),),
        ({0: B},),
        lambda: [(randn(2, 4),)],
    ),
    "static": (lambda: lambda x: x.reshape(4, 5) * 2, lambda: (randn(5, 4),), None, lambda: [(randn(5, 4),)]),
}


def same(a, b) -> bool:
    if isinstance(a, torch.Tensor):
        return a.shape == b.shape and a.dtype is b.dtype and torch.allclose(a, b, atol=1e-5, equal_nan=True)
    if isinstance(a, (tuple, list)):
        return isinstance(b, (tuple, list)) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(v, b[k]) for k, v in a.items())
    return type(a) is type(b) and a == b
