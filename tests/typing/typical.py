"""What users write, some 300 lines of it: pyright and mypy find no error here, and it runs. tests/typing/test_typing.py does both."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

import numpy as np

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import Tensor, nn
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.data import DataLoader, Dataset, TensorDataset


# ---- tensors ----------------------------------------------------------------------------------------------------------
def making() -> list[Tensor]:
    a = torch.zeros(2, 3)
    b = torch.ones((2, 3), dtype=torch.float64)
    c = torch.full((2,), 3.5)
    d = torch.arange(0, 10, 2)
    e = torch.linspace(0, 1, steps=5)
    f = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    g = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
    h = torch.randint(0, 10, (3,))
    i = torch.eye(3)
    j = torch.from_numpy(np.ones(3))
    k = torch.empty_like(a)
    m = torch.as_tensor([1, 2, 3], dtype=torch.int64, device="cpu")
    return [a, b, c, d, e, f, g, h, i, j, k, m]


def arithmetic(x: Tensor, y: Tensor) -> Tensor:
    z = x + y * 2 - 1.5 / (y.abs() + 1)
    z = z**2 // 3 % 5
    z = -z @ z.T
    z += 1
    z[0] = 0
    z[:, 1:3] = z[:, :2]
    mask = (z > 0) & ~(z == 1) | (z != z)
    z = torch.where(mask, z, torch.zeros_like(z))
    z = z.clamp(min=0, max=10).clamp_(0, 5)
    return z[mask].sum() + z[..., None].mean() + z[torch.tensor([0, 1])].max()


def shapes(x: Tensor) -> tuple[int, ...]:
    n, c = x.shape
    y = x.view(n, 1, c).expand(n, 2, c).permute(1, 0, 2).contiguous()
    y = y.reshape(-1, c).unsqueeze(0).squeeze(0).flatten()
    y = torch.cat([y, y], dim=0)
    y = torch.stack((y, y), 1).transpose(0, 1)
    first, second = y.chunk(2, dim=0)
    parts = torch.split(first, 4, dim=1)
    size: int = parts[0].size(0) + second.numel() + y.dim() + y.shape[-1]
    return (size, *y.size())


def reductions(x: Tensor) -> float:
    total = x.sum() + x.sum(dim=1).mean() + x.sum(dim=(0, 1), keepdim=True).squeeze()
    values, indices = x.max(dim=1)
    top = torch.topk(x, 2)
    ordered = torch.sort(x, dim=-1, descending=True)
    total = total + values.sum() + indices.sum() + top.values.sum() + ordered.indices.sum()
    total = total + x.std() + x.var(dim=0).sum() + x.norm() + torch.logsumexp(x, dim=1).sum()
    total = total + x.argmax() + x.argmin(dim=0).sum() + x.cumsum(0).sum() + torch.quantile(x, 0.5)
    total = total + torch.max(x) + torch.min(x, dim=0).values.sum() + torch.maximum(x, x).sum()
    everything: bool = bool((x == x).all()) and torch.allclose(x, x)
    return float(total) if everything and math.isfinite(total.item()) else 0.0


def conversions(x: Tensor) -> np.ndarray:
    y = x.to(torch.float64).to("cpu").float().double().detach().clone()
    rows: list[list[float]] = y.tolist()
    count = int(y.numel()) + len(rows) + y.element_size()
    if y.dtype == torch.float64 and y.device.type == "cpu" and y.is_contiguous() and not y.requires_grad:
        count += 1
    array = y.numpy()
    return array + np.asarray(y) * count


def algebra(a: Tensor) -> Tensor:
    u, s, vh = torch.linalg.svd(a)
    q, r = torch.linalg.qr(a)
    x = torch.linalg.solve(a, torch.ones(a.shape[0])) + torch.linalg.inv(a).sum() + torch.linalg.norm(a)
    spectrum = torch.fft.rfft(a).abs().sum() + torch.special.expit(a).sum()
    return (
        u.sum() + s.sum() + vh.sum() + q.sum() + r.sum() + x.sum() + spectrum + torch.einsum("ij,jk->ik", a, a).trace()
    )


# ---- gradients --------------------------------------------------------------------------------------------------------
class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * grad


def gradients() -> Tensor:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    y.backward()
    assert x.grad is not None
    total = x.grad.clone()
    x.grad = None
    (g,) = torch.autograd.grad((x.sin() * x).sum(), [x], create_graph=True)
    total = total + g.detach()
    with torch.no_grad():
        total += x
    with torch.enable_grad():
        total = total + Cube.apply(x).detach()
    hook = x.register_hook(lambda grad: grad * 2)
    hook.remove()
    return total


def transforms() -> Tensor:
    def loss(w: Tensor, x: Tensor) -> Tensor:
        return ((w * x).tanh() ** 2).sum()

    w, xs = torch.randn(3), torch.randn(5, 3)
    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, xs)
    hessian = torch.func.hessian(loss)(w, xs[0])
    jacobian = torch.func.jacrev(lambda t: t.exp())(w)
    return per_sample.sum() + hessian.sum() + jacobian.sum()


# ---- modules ----------------------------------------------------------------------------------------------------------
class Attention(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.tensor(width**-0.5))

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.dropout(self.out(y.transpose(1, 2).reshape(b, t, c)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.gain = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.gain * self.mlp(self.norm2(x))


class Convolutional(nn.Module):
    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=2),
            nn.SiLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.heads = nn.ModuleList([nn.Linear(16, classes) for _ in range(2)])
        nn.init.xavier_uniform_(self.heads[0].weight)

    def forward(self, x: Tensor) -> Tensor:
        h = self.features(x)
        return torch.stack([head(h) for head in self.heads]).mean(0)


class Recurrent(nn.Module):
    def __init__(self, words: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 8)
        self.lstm = nn.LSTM(8, 16, batch_first=True, bidirectional=True)
        self.out = nn.Linear(32, tags)

    def forward(self, x: Tensor) -> Tensor:
        h, _ = self.lstm(self.embedding(x))
        return F.log_softmax(self.out(F.dropout(h, 0.1, training=self.training)), dim=-1)


def losses() -> Tensor:
    logits, labels = torch.randn(4, 3), torch.tensor([0, 2, 1, 1])
    total = F.cross_entropy(logits, labels, label_smoothing=0.1) + nn.CrossEntropyLoss()(logits, labels)
    total = total + F.mse_loss(logits, torch.zeros(4, 3)) + F.l1_loss(logits, torch.zeros(4, 3), reduction="sum")
    total = total + F.binary_cross_entropy_with_logits(logits, torch.ones(4, 3))
    return (
        total
        + F.kl_div(logits.log_softmax(-1), logits.softmax(-1), reduction="batchmean")
        + nn.MSELoss()(logits, logits)
    )


# ---- training ---------------------------------------------------------------------------------------------------------
class Squares(Dataset):
    def __init__(self, n: int) -> None:
        self.x = torch.linspace(-1, 1, n)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index : index + 1], self.x[index : index + 1] ** 2


def train(model: nn.Module, data: DataLoader, epochs: int = 2) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    history: list[float] = []
    for _ in range(epochs):
        for x, y in data:
            optimizer.zero_grad(set_to_none=True)
            loss = F.mse_loss(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            history.append(loss.item())
        schedule.step()
    return history


def fitting() -> list[float]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    history = train(model, DataLoader(Squares(32), batch_size=8, shuffle=True))
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(state)
    model.eval().requires_grad_(False)
    count = sum(p.numel() for p in model.parameters())
    pairs = TensorDataset(torch.ones(4, 1), torch.zeros(4, 1))
    return [*history, float(count), float(len(pairs)), *(p.norm().item() for _, p in model.named_parameters())]


# ---- compiling, modes and subclasses ----------------------------------------------------------------------------------
@torch.compile
def fused(x: Tensor, y: Tensor) -> Tensor:
    return (x.sin() * y.cos()).relu().sum(-1)


@torch.compile(dynamic=True, backend="eager")
def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.sqrt(np.sum((a[:, None] - b[None]) ** 2, axis=-1))


def compiling() -> Tensor:
    step: Callable[[Tensor], Tensor] = torch.compile(lambda x: x * 2 + 1, fullgraph=True)
    model = torch.compile(nn.Linear(4, 2))
    return fused(torch.ones(2, 3), torch.ones(2, 3)).sum() + step(torch.ones(2)).sum() + model(torch.ones(1, 4)).sum()


class Counting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[str, int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = str(func)
        self.calls[name] = self.calls.get(name, 0) + 1
        return func(*args, **(kwargs or {}))


class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[torch.Generator]:
    yield torch.Generator().manual_seed(seed)


def interposing() -> int:
    with Counting() as mode, torch.inference_mode():
        (torch.ones(2) + 1).sum()
    named = torch.ones(2).as_subclass(Named)
    with seeded(1) as generator:
        draws = torch.rand(2, generator=generator)
    assert isinstance(named + draws, Named)
    return sum(mode.calls.values())


def main() -> None:
    x = torch.randn(4, 4)
    print(len(making()), arithmetic(x, x).item(), shapes(x), reductions(x), conversions(x).shape)
    print(algebra(torch.eye(3) + 1).item(), gradients(), transforms().item(), losses().item())
    print(Block(8, 2)(torch.randn(1, 3, 8)).shape, Convolutional()(torch.randn(2, 1, 8, 8)).shape)
    print(Recurrent(5, 3)(torch.tensor([[0, 1, 2]])).shape, fitting()[:2])
    print(compiling().item(), interposing(), distances(np.ones((2, 3)), np.zeros((4, 3))).shape)


if __name__ == "__main__":
    main()
