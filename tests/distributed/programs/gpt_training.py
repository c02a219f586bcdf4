"""A training script as public ones are written: torchrun's environment, DDP around a compiled model or not, gradient accumulation that sets
``require_backward_grad_sync``, a learning rate by hand, checkpoints of rank 0 that it goes on from. ``OUT STEPS [compile]``."""

import math
import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

WORDS, WIDTH, HEADS, LENGTH = 24, 16, 2, 12
out, steps, compiled = sys.argv[1], int(sys.argv[2]), sys.argv[3:] == ["compile"]
path = os.path.join(out, "ckpt.pt")


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (y.view(b, t, HEADS, c // HEADS).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0, is_causal=True)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2, self.attn = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH), nn.Dropout(0.0))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.ModuleDict(
            {"words": nn.Embedding(WORDS, WIDTH), "places": nn.Embedding(LENGTH, WIDTH)}
            | {"blocks": nn.ModuleList(Block() for _ in range(2)), "norm": nn.LayerNorm(WIDTH)}
        )
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.body.words.weight = self.head.weight  # tied

    def forward(self, tokens, targets=None):
        x = self.body.words(tokens) + self.body.places(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.body.blocks:
            x = block(x)
        logits = self.head(self.body.norm(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, WORDS), targets.view(-1), ignore_index=-1)
        return logits, loss


ddp = int(os.environ.get("RANK", -1)) != -1
rank, ranks, accumulation = 0, 1, 4
if ddp:
    init_process_group(backend="gloo")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    assert int(os.environ["LOCAL_RANK"]) == rank and accumulation % ranks == 0
    accumulation //= ranks
master = rank == 0
torch.manual_seed(1337)
model, done = GPT(), 0
optimizer = torch.optim.AdamW(
    [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ],
    lr=1e-2,
    betas=(0.9, 0.95),
)
if os.path.exists(path):
    saved = torch.load(path, map_location="cpu")
    model.load_state_dict({k.removeprefix("_orig_mod."): v for k, v in saved["model"].items()})
    optimizer.load_state_dict(saved["optimizer"])
    done = saved["step"]
raw = model
if compiled:
    model = torch.compile(model)
if ddp:
    model = DDP(model)
scaler = torch.amp.GradScaler("cpu", enabled=False)
data = torch.arange(500) * 7 % WORDS


def batch(step, micro):
    """Microsteps of all ranks together are those of one process."""
    generator = torch.Generator().manual_seed(100 * step + micro * ranks + rank)
    starts = torch.randint(len(data) - LENGTH - 1, (2,), generator=generator)
    rows = torch.stack([data[i : i + LENGTH + 1] for i in starts.tolist()])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


for step in range(done, steps):
    for group in optimizer.param_groups:
        group["lr"] = 1e-2 * 0.5 * (1 + math.cos(math.pi * step / 10))
    total = 0.0
    for micro in range(accumulation):
        if ddp:
            model.require_backward_grad_sync = micro == accumulation - 1
        x, y = batch(step, micro)
        _, loss = model(x, y)
        total += loss.item() / accumulation
        scaler.scale(loss / accumulation).backward()
    scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    if master:
        print(f"step {step}: norm {norm.item():.3f}", flush=True)
if master:
    torch.save(
        {"model": (model.module if ddp else model).state_dict(), "optimizer": optimizer.state_dict(), "step": steps},
        path,
    )
if ddp:
    destroy_process_group()
