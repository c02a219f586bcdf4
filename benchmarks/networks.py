"""Networks that people train, written once for any module that looks like torch: models.py measures their steps.

``NETWORKS[name](torch)`` -> (model, inputs, targets); the loss is the cross-entropy of the model's output;
``DECODERS[name](torch)`` -> (model, keys and values, token). The convolutional ones are the usual
versions for 32x32 images (He et al. 2016, Hu et al. 2018, Simonyan and Zisserman 2015, Tan and Le 2019).
"""

from __future__ import annotations

from typing import Any


def _mlp(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10))
    return model, torch.randn(256, 784), torch.randint(0, 10, (256,))


def _lenet(torch):
    nn = torch.nn
    features = [
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
    ]
    head = [nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*features, *head), torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))


def _attention(torch, width, heads, causal):
    nn, F = torch.nn, torch.nn.functional

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            batch, time, _ = x.shape
            q, k, v = (
                t.view(batch, time, heads, width // heads).transpose(1, 2) for t in self.qkv(x).split(width, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            return self.proj(y.transpose(1, 2).reshape(batch, time, width))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln1, self.attention, self.ln2 = nn.LayerNorm(width), Attention(), nn.LayerNorm(width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.attention(self.ln1(x))
            return x + self.mlp(self.ln2(x))

    return Block


def _trunk(torch, block, layers, width, outputs, mean: bool, **head):
    """Blocks, a norm and a linear head, of the mean over places if ``mean``."""
    nn = torch.nn

    class Trunk(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList(block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outputs, **head)

        def forward(self, x):
            for b in self.blocks:
                x = b(x)
            x = self.norm(x)
            return self.head(x.mean(1) if mean else x)

    return Trunk()


def _gpt(torch, width=256, layers=4, heads=8, batch=8, time=128, vocabulary=256):
    nn = torch.nn
    block = _attention(torch, width, heads, causal=True)

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
            self.trunk = _trunk(torch, block, layers, width, vocabulary, False, bias=False)

        def forward(self, ids):
            return self.trunk(self.tokens(ids) + self.places(torch.arange(ids.shape[1]))).view(-1, vocabulary)

    ids = torch.randint(0, vocabulary, (batch, time))
    return GPT(), ids, torch.randint(0, vocabulary, (batch * time,))


def _vit(torch, width=192, layers=4, heads=3, batch=8, patch=4):
    nn = torch.nn
    block = _attention(torch, width, heads, causal=False)

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches = nn.Conv2d(3, width, patch, patch)
            self.places = nn.Parameter(torch.zeros(1, (32 // patch) ** 2, width))
            self.trunk = _trunk(torch, block, layers, width, 10, True)

        def forward(self, images):
            return self.trunk(self.patches(images).flatten(2).transpose(1, 2) + self.places)

    return ViT(), torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))


def _residual(torch, squeeze: bool):
    nn = torch.nn

    class Block(nn.Module):
        """Norm, relu and convolution twice, beside a shortcut; squeezed: channels weighted by what their means say."""

        def __init__(self, i, o, stride):
            super().__init__()
            self.n1, self.c1 = nn.BatchNorm2d(i), nn.Conv2d(i, o, 3, stride, 1, bias=False)
            self.n2, self.c2 = nn.BatchNorm2d(o), nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.short = nn.Conv2d(i, o, 1, stride, bias=False) if stride != 1 or i != o else None
            if squeeze:
                self.down, self.up = nn.Conv2d(o, o // 16, 1), nn.Conv2d(o // 16, o, 1)

        def forward(self, x):
            y = torch.relu(self.n1(x))
            rest = x if self.short is None else self.short(y)
            y = self.c2(torch.relu(self.n2(self.c1(y))))
            if squeeze:
                w = nn.functional.avg_pool2d(y, y.size(2))
                y = y * torch.sigmoid(self.up(torch.relu(self.down(w))))
            return y + rest

    layers: list[Any] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False)]
    i = 64
    for o, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(i, o, stride))
        i = o
    model = nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(512, 10))
    return model, torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))


def _resnet18(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, i, o, stride):
            super().__init__()
            self.c1, self.n1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
            self.c2, self.n2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
            short = [nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)] if stride != 1 or i != o else []
            self.short = nn.Sequential(*short)

        def forward(self, x):
            y = self.n2(self.c2(torch.relu(self.n1(self.c1(x)))))
            return torch.relu(y + self.short(x))

    layers: list[Any] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    i = 64
    for o, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        layers.append(Block(i, o, stride))
        i = o
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return model, torch.randn(4, 3, 112, 112), torch.randint(0, 10, (4,))


def _unet(torch, width=32, batch=4, side=64):
    nn = torch.nn

    def twice(i, o):
        half = [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
        return nn.Sequential(*half, nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())

    class UNet(nn.Module):
        """Ronneberger et al. 2015, three levels; the mean of each class map is the output."""

        def __init__(self):
            super().__init__()
            w = width
            self.d1, self.d2, self.d3 = twice(3, w), twice(w, 2 * w), twice(2 * w, 4 * w)
            self.u2, self.u1 = nn.ConvTranspose2d(4 * w, 2 * w, 2, 2), nn.ConvTranspose2d(2 * w, w, 2, 2)
            self.c2, self.c1, self.head = twice(4 * w, 2 * w), twice(2 * w, w), nn.Conv2d(w, 10, 1)
            self.pool = nn.MaxPool2d(2)

        def forward(self, x):
            a = self.d1(x)
            b = self.d2(self.pool(a))
            c = self.d3(self.pool(b))
            b = self.c2(torch.cat([self.u2(c), b], 1))
            return self.head(self.c1(torch.cat([self.u1(b), a], 1))).mean((2, 3))

    return UNet(), torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))


def _bert(torch, width=256, layers=4, heads=8, batch=8, time=128, vocabulary=1024):
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(time, width)
            self.norm = nn.LayerNorm(width)
            layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
            self.layers, self.head = (
                nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                nn.Linear(width, vocabulary),
            )

        def forward(self, ids):
            x = self.norm(self.tokens(ids) + self.places(torch.arange(ids.shape[1])))
            return self.head(self.layers(x)).view(-1, vocabulary)

    ids = torch.randint(0, vocabulary, (batch, time))
    return Encoder(), ids, torch.randint(0, vocabulary, (batch * time,))


def _vgg11(torch):
    nn = torch.nn
    layers: list[Any] = []
    i = 3
    for o in (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"):
        if o == "M":
            layers.append(nn.MaxPool2d(2, 2))
        else:
            layers += [nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU()]
            i = o
    return (
        nn.Sequential(*layers, nn.Flatten(), nn.Linear(512, 10)),
        torch.randn(16, 3, 32, 32),
        torch.randint(0, 10, (16,)),
    )


def _efficientnet(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        """Expansion, depthwise convolution, squeeze and excitation, projection."""

        def __init__(self, i, o, kernel, stride, expansion):
            super().__init__()
            width = expansion * i
            self.same = stride == 1 and i == o
            self.expand = expansion != 1
            self.c1, self.n1 = nn.Conv2d(i, width, 1, bias=False), nn.BatchNorm2d(width)
            self.c2 = nn.Conv2d(width, width, kernel, stride, kernel // 2, groups=width, bias=False)
            self.n2 = nn.BatchNorm2d(width)
            self.down, self.up = nn.Conv2d(width, i // 4, 1), nn.Conv2d(i // 4, width, 1)
            self.c3, self.n3 = nn.Conv2d(width, o, 1, bias=False), nn.BatchNorm2d(o)

        def forward(self, x):
            y = F.silu(self.n1(self.c1(x))) if self.expand else x
            y = F.silu(self.n2(self.c2(y)))
            w = F.adaptive_avg_pool2d(y, (1, 1))
            y = y * torch.sigmoid(self.up(F.silu(self.down(w))))
            y = self.n3(self.c3(y))
            return y + x if self.same else y

    plan = [
        (1, 16, 1, 3, 1),
        (6, 24, 2, 3, 2),
        (6, 40, 2, 5, 2),
        (6, 80, 3, 3, 2),
        (6, 112, 3, 5, 1),
        (6, 192, 4, 5, 2),
        (6, 320, 1, 3, 1),
    ]
    layers: list[Any] = [nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU()]
    i = 32
    for expansion, o, count, kernel, stride in plan:
        for k in range(count):
            layers.append(Block(i, o, kernel, stride if k == 0 else 1, expansion))
            i = o
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(320, 10)]
    return nn.Sequential(*layers), torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))


def _lstm(torch, vocabulary=256, width=256, time=64, batch=16):
    nn = torch.nn

    class LanguageModel(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.lstm = nn.Embedding(vocabulary, width), nn.LSTM(width, width, 1, batch_first=True)
            self.head = nn.Linear(width, vocabulary)

        def forward(self, ids):
            return self.head(self.lstm(self.tokens(ids))[0]).view(-1, vocabulary)

    return LanguageModel(), torch.randint(0, vocabulary, (batch, time)), torch.randint(0, vocabulary, (batch * time,))


def _mixer(torch, width=192, layers=4, batch=8, patch=4):
    nn = torch.nn
    places = (32 // patch) ** 2

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.across = nn.Sequential(nn.Linear(places, 2 * places), nn.GELU(), nn.Linear(2 * places, places))
            self.along = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            x = x + self.across(self.n1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.along(self.n2(x))

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.patches, self.blocks = (
                nn.Conv2d(3, width, patch, patch),
                nn.Sequential(*(Block() for _ in range(layers))),
            )
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

        def forward(self, images):
            return self.head(self.norm(self.blocks(self.patches(images).flatten(2).transpose(1, 2))).mean(1))

    return Mixer(), torch.randn(batch, 3, 32, 32), torch.randint(0, 10, (batch,))


def _whisper(torch, width=192, layers=3, heads=3, batch=4, time=256, mels=80):
    nn = torch.nn
    block = _attention(torch, width, heads, causal=False)

    class Encoder(nn.Module):
        """Radford et al. 2022: two convolutions over the spectrogram, the second halves the time; then a transformer. Its mean is classified."""

        def __init__(self):
            super().__init__()
            self.c1, self.c2 = nn.Conv1d(mels, width, 3, padding=1), nn.Conv1d(width, width, 3, stride=2, padding=1)
            self.places = nn.Parameter(torch.zeros(1, time // 2, width))
            self.trunk = _trunk(torch, block, layers, width, 10, True)

        def forward(self, x):
            gelu = nn.functional.gelu
            return self.trunk(gelu(self.c2(gelu(self.c1(x)))).transpose(1, 2) + self.places)

    return Encoder(), torch.randn(batch, mels, time), torch.randint(0, 10, (batch,))


def _diffusion(torch, width=32, batch=4, side=32):
    nn = torch.nn

    class Block(nn.Module):
        """Group norm, silu and convolution twice, with the time's embedding between (Ho et al. 2020)."""

        def __init__(self, i, o, time):
            super().__init__()
            self.n1, self.c1 = nn.GroupNorm(8, i), nn.Conv2d(i, o, 3, padding=1)
            self.n2, self.c2 = nn.GroupNorm(8, o), nn.Conv2d(o, o, 3, padding=1)
            self.time, self.short = nn.Linear(time, o), nn.Conv2d(i, o, 1)

        def forward(self, x, t):
            silu = nn.functional.silu
            y = self.c1(silu(self.n1(x))) + self.time(t)[:, :, None, None]
            return self.c2(silu(self.n2(y))) + self.short(x)

    class UNet(nn.Module):
        """One image and its step of time; the mean of each channel of the noise is the output."""

        def __init__(self):
            super().__init__()
            w = width
            self.time = nn.Sequential(nn.Linear(w, 4 * w), nn.SiLU(), nn.Linear(4 * w, 4 * w))
            self.first = nn.Conv2d(3, w, 3, padding=1)
            self.b1, self.b2, self.b3 = Block(w, w, 4 * w), Block(w, 2 * w, 4 * w), Block(2 * w, 2 * w, 4 * w)
            self.d1, self.d2 = nn.Conv2d(w, w, 3, 2, 1), nn.Conv2d(2 * w, 2 * w, 3, 2, 1)
            self.qkv, self.proj = nn.Conv2d(2 * w, 6 * w, 1), nn.Conv2d(2 * w, 2 * w, 1)
            self.u2, self.u1 = Block(4 * w, w, 4 * w), Block(2 * w, w, 4 * w)
            self.last = nn.Conv2d(w, 10, 3, padding=1)
            self.frequencies = torch.exp(torch.arange(w // 2) * (-9.2 / (w // 2)))
            self.steps = torch.arange(batch) * 10.0

        def forward(self, x):
            F = nn.functional
            angles = self.steps[:, None] * self.frequencies[None]
            t = self.time(torch.cat([angles.sin(), angles.cos()], 1))
            a = self.b1(self.first(x), t)
            b = self.b2(self.d1(a), t)
            c = self.b3(self.d2(b), t)
            n, w, h, v = c.shape
            q, k, y = (z.reshape(n, 1, w, h * v).transpose(2, 3) for z in self.qkv(c).chunk(3, 1))
            c = c + self.proj(F.scaled_dot_product_attention(q, k, y).transpose(2, 3).reshape(n, w, h, v))
            b = self.u2(torch.cat([F.interpolate(c, scale_factor=2.0), b], 1), t)
            a = self.u1(torch.cat([F.interpolate(b, scale_factor=2.0), a], 1), t)
            return self.last(F.silu(a)).mean((2, 3))

    return UNet(), torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))


def _decoder(torch, width=256, layers=4, heads=8, past=128, vocabulary=256):
    """A GPT that makes one more token beside a cache of ``past`` keys and values a layer; the largest score is the output."""
    nn, F = torch.nn, torch.nn.functional

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, keys, values):
            q, k, v = (
                t.view(1, 1, heads, width // heads).transpose(1, 2) for t in self.qkv(self.n1(x)).split(width, 2)
            )
            k, v = torch.cat([keys, k], 2), torch.cat([values, v], 2)
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 1, width)
            x = x + self.proj(y)
            return x + self.down(F.gelu(self.up(self.n2(x))))

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.blocks = nn.Embedding(vocabulary, width), nn.ModuleList(Layer() for _ in range(layers))
            self.head = nn.Linear(width, vocabulary)

        def forward(self, cache, token):
            x = self.tokens(token)
            for i, block in enumerate(self.blocks):
                x = block(x, cache[i, 0], cache[i, 1])
            return self.head(x)[0, -1].max(0)

    return Decoder(), torch.randn(layers, 2, 1, heads, past, width // heads), torch.zeros(1, 1, dtype=torch.int64)


NETWORKS = {
    "MLP 784-1024-512-10, batch 256": _mlp,
    "GPT 4x256, 8x128 tokens": _gpt,
    "ViT 4x192, 8x64 tokens": _vit,
    "LeNet, batch 64": _lenet,
    "PreActResNet18, 8x3x32x32": lambda torch: _residual(torch, False),
    "SENet18, 8x3x32x32": lambda torch: _residual(torch, True),
    "ResNet-18, 4x3x112x112": _resnet18,
    "U-Net, 4x3x64x64": _unet,
    "BERT encoder 4x256, 8x128 tokens": _bert,
    "VGG11, batch 16": _vgg11,
    "EfficientNet-B0 (CIFAR), 8x3x32x32": _efficientnet,
    "MLP-Mixer 4x192, 8x64 patches": _mixer,
    "LSTM language model, 16x64 tokens": _lstm,
    "Whisper encoder 3x192, 4x256 frames": _whisper,
    "diffusion U-Net, 4x3x32x32": _diffusion,
}


DECODERS = {"GPT 4x256, one more token beside 128": _decoder}


def training_step(torch, model, x, target, compiled: bool):
    """A call that makes one step of SGD and returns the loss. The first one compiles."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    run = torch.compile(model) if compiled else model

    def step():
        loss = torch.nn.functional.cross_entropy(run(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def decoding_step(torch, model, cache, token, compiled: bool):
    """A call that makes one token and returns its score."""
    run = torch.compile(model) if compiled else model

    def step():
        with torch.no_grad():
            return run(cache, token)[0]

    return step


def state(model, x, target) -> dict:
    """Weights, buffers and data as NumPy arrays by name, for ``from_arrays``."""
    arrays = {f"model.{name}": value.numpy() for name, value in model.state_dict().items()}
    return {**arrays, "x": x.numpy(), "target": target.numpy()}


def from_arrays(torch, make, arrays: dict) -> tuple:
    """(model, input, target) of a network with the weights and data of ``state``, so that modules that look like torch may be compared."""
    model, _, _ = make(torch)
    tensors = {key: torch.from_numpy(value.copy()) for key, value in arrays.items()}
    model.load_state_dict({key[6:]: value for key, value in tensors.items() if key.startswith("model.")})
    return model, tensors["x"], tensors["target"]


def with_state(torch, name: str, arrays: dict, compiled: bool):
    """The step of network ``name`` from given weights on given data."""
    model, x, target = from_arrays(torch, {**NETWORKS, **DECODERS}[name], arrays)
    return (decoding_step if name in DECODERS else training_step)(torch, model, x, target, compiled)
