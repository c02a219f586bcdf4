"""What capture costs: a compiled call of two operations, the guards of a GPT with 101 parameters, capture for each instruction interpreted.

``python benchmarks/capture.py``; microseconds of this thread's CPU time, the least of many short rounds (other processes disturb it less). What has
a counterpart in PyTorch (calls, optimizer steps, first calls) is in cases.py."""

from __future__ import annotations

import time

import flambeau as torch
from flambeau import _frame
from flambeau.dynamo.executor import RootFrame

nn = torch.nn


def least(call, number: int, rounds: int = 20) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(number):
            call()
        best = min(best, time.thread_time() - start)
    return best / number * 1e6


class Block(nn.Module):
    def __init__(self, d: int):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.heads = 4

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (
            y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(self.ln1(x)).split(c, dim=2)
        )
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.down(nn.functional.gelu(self.up(self.ln2(x))))


class GPT(nn.Module):
    def __init__(self, n: int = 8, d: int = 32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(50, d), nn.Embedding(16, d)
        self.blocks = nn.ModuleList([Block(d) for _ in range(n)])
        self.ln, self.head = nn.LayerNorm(d), nn.Linear(d, 50, bias=False)

    def forward(self, i):
        x = self.tok(i) + self.pos(torch.arange(i.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x))


def two(x, y):
    return torch.relu(x + y)


def main() -> None:
    x, y = torch.randn(8, 8), torch.randn(8, 8)
    fast = torch.compile(two)
    fast(x, y)
    print(f"compiled call of two operations on 8x8   {least(lambda: fast(x, y), 5000):8.2f} us")

    executed: list[int] = []
    run = RootFrame.run

    def counted(self):
        run(self)
        executed.append(self.output.executed)

    RootFrame.run = counted
    model, i = GPT(), torch.zeros(2, 8, dtype=torch.int64)
    warm = torch.compile(GPT(1), backend="eager")
    warm(i)  # imports, shape rules
    del warm
    compiled = torch.compile(model, backend="eager")
    start = time.thread_time()
    compiled(i)
    first = time.thread_time() - start
    RootFrame.run = run
    (cache,) = _frame.caches(GPT.forward.__code__).values()
    tree = cache.entries[0][0]
    assert tree.check(GPT.forward, (model, i))
    print(
        f"guards of a GPT with {len(list(model.parameters()))} parameters        {least(lambda: tree.check(GPT.forward, (model, i)), 500):8.2f} us"
    )
    print(f"capture for each of {executed[-1]} instructions     {first / executed[-1] * 1e6:8.2f} us")


if __name__ == "__main__":
    main()
