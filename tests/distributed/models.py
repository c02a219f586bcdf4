"""A small transformer that is trained in several ways, and what one process gets."""

import copy

import flambeau as torch
import flambeau.nn.functional as F
from flambeau import nn

WORDS, WIDTH = 32, 16


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        b, t = x.shape[:2]
        q, k, v = (f(x).view(b, t, -1, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(b, t, -1))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.a, self.n2, self.m = nn.LayerNorm(WIDTH), Attention(), nn.LayerNorm(WIDTH), MLP()

    def forward(self, x):
        x = x + self.a(self.n1(x))
        return x + self.m(self.n2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.layers = nn.Embedding(WORDS, WIDTH), nn.ModuleList([Block() for _ in range(2)])
        self.n, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS)

    def forward(self, i):
        x = self.e(i)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.n(x))


torch.manual_seed(0)
BASE = GPT()
TEXT, NEXT = torch.randint(0, WORDS, (4, 8)), torch.randint(0, WORDS, (4, 8))


def train(model, optimizer, rows=slice(None), steps=3, clip=True):
    """The loss of each step. The third is the first with momentum of two."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(TEXT[rows]).reshape(-1, WORDS), NEXT[rows].reshape(-1))
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def sgd(model):
    return torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def wanted(clip=True, steps=3):
    """(losses, parameters by name) of one process."""
    model = copy.deepcopy(BASE)
    losses = train(model, sgd(model), steps=steps, clip=clip)
    return losses, {name: p.detach() for name, p in model.named_parameters()}


def check(model, parameters):
    """The parameters of ``model``, DTensors or plain, are these."""
    found = {name.replace("_checkpoint_wrapped_module.", ""): p for name, p in model.named_parameters()}
    assert found.keys() == parameters.keys()
    for name, p in found.items():
        whole = p.full_tensor() if hasattr(p, "full_tensor") else p
        torch.testing.assert_close(
            whole.detach(), parameters[name], atol=1e-6, rtol=1e-5, msg=lambda m, n=name: f"{n}: {m}"
        )
