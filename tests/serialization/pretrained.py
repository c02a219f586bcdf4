"""Small networks of the shapes of ResNet, BERT and GPT-2, and files of theirs that PyTorch wrote: ``python tests/serialization/pretrained.py``
with an interpreter that has PyTorch writes ``recorded/NAME.pt``, each {"state": state dict, "inputs": tensors, "output": tensor}.
"""

from pathlib import Path

HERE = Path(__file__).parent


def resnet(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inp, out, stride):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(inp, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
            self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
            self.downsample = None
            if stride != 1 or inp != out:
                self.downsample = nn.Sequential(nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out))

        def forward(self, x):
            y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
            return F.relu(y + (x if self.downsample is None else self.downsample(x)))

    class ResNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1 = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 8, 1))
            self.layer2 = nn.Sequential(Block(8, 16, 2), Block(16, 16, 1))
            self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 5)

        def forward(self, x):
            x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
            return self.fc(self.avgpool(self.layer2(self.layer1(x))).flatten(1))

    return ResNet()


def bert(torch):
    nn, F = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self, n=16, heads=2):
            super().__init__()
            self.heads = heads
            self.query, self.key, self.value = nn.Linear(n, n), nn.Linear(n, n), nn.Linear(n, n)
            self.dense, self.norm = nn.Linear(n, n), nn.LayerNorm(n, eps=1e-12)
            self.intermediate, self.output = nn.Linear(n, 2 * n), nn.Linear(2 * n, n)
            self.output_norm = nn.LayerNorm(n, eps=1e-12)

        def forward(self, x, mask):
            b, t, n = x.shape
            q, k, v = (f(x).view(b, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, n)
            x = self.norm(x + self.dense(y))
            return self.output_norm(x + self.output(F.gelu(self.intermediate(x))))

    class Bert(nn.Module):
        def __init__(self, n=16):
            super().__init__()
            self.words, self.positions = nn.Embedding(40, n, padding_idx=0), nn.Embedding(12, n)
            self.types, self.norm = nn.Embedding(2, n), nn.LayerNorm(n, eps=1e-12)
            self.register_buffer("position_ids", torch.arange(12).expand(1, -1))
            self.layers, self.pooler = nn.ModuleList([Layer(), Layer()]), nn.Linear(n, n)

        def forward(self, ids, mask):
            x = self.words(ids) + self.positions(self.position_ids[:, : ids.shape[1]])
            x = self.norm(x + self.types(torch.zeros_like(ids)))
            for layer in self.layers:
                x = layer(x, mask[:, None, None, :].bool())
            return torch.tanh(self.pooler(x[:, 0]))

    return Bert()


def gpt2(torch):
    nn, F = torch.nn, torch.nn.functional

    class Conv1D(nn.Module):
        """A linear layer whose weight is (in, out)."""

        def __init__(self, inp, out):
            super().__init__()
            self.weight, self.bias = nn.Parameter(torch.randn(inp, out) * 0.1), nn.Parameter(torch.zeros(out))

        def forward(self, x):
            return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)

    class Block(nn.Module):
        def __init__(self, n=16):
            super().__init__()
            self.ln_1, self.c_attn, self.c_proj = nn.LayerNorm(n), Conv1D(n, 3 * n), Conv1D(n, n)
            self.ln_2, self.c_fc, self.c_out = nn.LayerNorm(n), Conv1D(n, 4 * n), Conv1D(4 * n, n)
            self.register_buffer("bias", torch.tril(torch.ones(8, 8, dtype=torch.bool))[None, None])

        def forward(self, x):
            b, t, n = x.shape
            q, k, v = (y.view(b, t, 2, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(n, -1))
            scores = (q @ k.mT / 8**0.5).masked_fill(~self.bias[..., :t, :t], torch.finfo(q.dtype).min)
            x = x + self.c_proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, n))
            return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))

    class GPT2(nn.Module):
        def __init__(self, n=16):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(40, n), nn.Embedding(8, n)
            self.h, self.ln_f = nn.ModuleList([Block(), Block()]), nn.LayerNorm(n)
            self.lm_head = nn.Linear(n, 40, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, ids):
            x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
            for block in self.h:
                x = block(x)
            return self.lm_head(self.ln_f(x))

    return GPT2()


NETWORKS = {"resnet": resnet, "bert": bert, "gpt2": gpt2}


def example(torch, name: str) -> dict:
    """What is saved of a network: drawn from seed 0, its running statistics moved by one batch."""
    torch.manual_seed(0)
    net = NETWORKS[name](torch)
    if name == "resnet":
        inputs = (torch.randn(2, 3, 32, 32),)
        net(inputs[0])
    else:
        inputs = (torch.randint(1, 40, (2, 6)),)
        if name == "bert":
            inputs += (torch.tensor([[1] * 6, [1, 1, 1, 0, 0, 0]]),)
    net.eval()
    with torch.no_grad():
        return {"state": net.state_dict(), "inputs": inputs, "output": net(*inputs)}


if __name__ == "__main__":
    import torch

    for network in NETWORKS:
        torch.save(example(torch, network), HERE / "recorded" / f"{network}.pt")
