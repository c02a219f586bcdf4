"""TorchScript archives that PyTorch wrote, with what their modules give: ``python tests/compat/script_archives.py tests/compat/archives`` makes them anew.

Run it with an interpreter that has PyTorch (2.13). Each file is an archive of ``torch.jit.save`` with an extra file ``calls``: a list of (method, arguments,
result), written by ``torch.save``. Records are compressed and the tables of source lines are left out, so that the files are small.
"""

# ruff: noqa: UP006, UP031, UP035, UP045
# TorchScript reads the types of `typing`.
import copy
import enum
import io
import math
import sys
import warnings
import zipfile
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import quantised_archives
import torch
from torch import Tensor, nn

F = nn.functional


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        )
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        x = self.net(x)
        x = F.adaptive_avg_pool2d(x, (1, 1))
        return self.head(torch.flatten(x, 1))


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: Tensor
    y: int


@torch.jit.script
class Counter:
    def __init__(self, n: int):
        self.n = n
        self.items: List[Tensor] = []

    def add(self, t: Tensor) -> int:
        self.items.append(t)
        self.n += 1
        return self.n


@torch.jit.interface
class Adds(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class AddsOne(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 1


class AddsTwo(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + 2


def scaled(x: Tensor, k: float) -> Tensor:
    return x * k


class Language(nn.Module):
    """What the language has: loops, branches, containers, classes, enumerations, interfaces."""

    sub: Adds
    names: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.sub = AddsOne()
        self.names = {"é": 1, 'q"\n': 2}
        self.register_buffer("shift", torch.ones(2), persistent=False)
        self.color = Color.BLUE
        self.point = Point(torch.ones(1), 3)
        self.empty = torch.jit.Attribute([], List[Tensor])
        self.missing = torch.jit.Attribute(None, Optional[int])
        self.parts = nn.ModuleDict({"a b": nn.Linear(2, 2), "relu": nn.ReLU()})

    def forward(self, x: Tensor, mode: str = "a", s: Optional[int] = None):
        y = x.masked_fill(x > 3, float("-inf"))
        z = x * 2
        i = 0
        while i < 5 and bool(x.sum() > 0):
            i += 1
            if i == 3:
                break
            if i == 2:
                continue
            x = x + i
        for k, v in self.names.items():
            x = x + v + len(k)
        for j, t in enumerate([x, z]):
            z = z + j * t
        for a, b in zip([1, 2], [3, 4]):
            z = z + a * b
        counter = Counter(3)
        q = counter.add(x)
        counter.n = 7
        p = Point(x, counter.n)
        if self.color == Color.RED:
            x = x + 1
        text = "é%s" % mode + f"{q} {x.shape} {0.1} {2.0}"
        assert i >= 0
        if s is None:
            s = 3
        x = x[:, None, ..., ::2].clone()
        x[0] = 1.0
        x[x > 3] = 2
        with torch.no_grad():
            w = x * 2
        w2 = torch.jit.wait(torch.jit.fork(scaled, w, 2.0))
        o = torch.zeros(2, 3, dtype=torch.float64, device=torch.device("cpu"))
        o2 = torch.tensor([1.0, 2.0], dtype=x.dtype)
        doubled = [u * 2 for u in [1, 2, 3]]
        m = max(doubled) + min(1, 2) + abs(-3) + int(2.5) + len(doubled) + 7 // 2 + 7 % 3 + s**2
        triple = (1, "a", x)
        n = triple[0] + doubled[-1] + doubled[1:][0]
        held: Dict[str, Tensor] = {}
        held["k"] = x
        total = z.sum()
        if "k" in held:
            total = total + held["k"].sum() + held.get("k", x).mean()
        del held["k"]
        truth = not (n > 3) or i == 2
        anything: Any = x
        if isinstance(anything, Tensor):
            total = total + anything.sum()
        number: int | str = 3
        if isinstance(number, int):
            total = total + number
        for _name, part in self.parts.items():
            o2 = part(o2.float())
        e = torch.einsum("ij,jk->ik", o, o.t())
        r = o.to(torch.int64).type_as(e).to("cpu").float().contiguous(memory_format=torch.contiguous_format)
        u = torch.stack([r, r], dim=0).permute(0, 2, 1).reshape(-1, 2).sum(dim=0, keepdim=True)
        h, wide = o.shape[0], o.size(1)
        g = F.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2.0, mode="nearest")
        return (
            p,
            {"m": m},
            w2,
            self.sub(total),
            math.pi,
            truth,
            1 + 2j,
            s,
            h,
            wide,
            text,
            o.dtype,
            o.device,
            g,
            u,
            self.color,
            y,
        )

    @torch.jit.export
    def early(self, x: Tensor, n: int) -> Tensor:
        if n > 3:
            return x
        for i in range(n):
            if i > 2:
                return x * 2
        return x * 3

    @torch.jit.export
    def strings(self, s: str) -> List[str]:
        out = [
            s.upper(),
            s.strip(),
            s.replace("a", "b"),
            "-".join(s.split(" ")),
            s[0],
            s[1:3],
            str(len(s)),
            str(s.find("a")),
        ]
        out.append(f"{3} and {[1.5, 2.0]}")
        out.append("yes" if s.startswith("a") else "no")
        return sorted(out)

    @torch.jit.export
    def containers(self, n: int) -> Tuple[List[int], Dict[int, List[int]], List[Tuple[int, int]]]:
        xs = [i * i for i in range(n)]
        xs.insert(1, 7)
        xs.extend([3, 4])
        xs.reverse()
        del xs[0]
        last = xs.pop()
        xs += [last] * 2
        d: Dict[int, List[int]] = {}
        for x in xs:
            if x not in d:
                d[x] = torch.jit.annotate(List[int], [])
            d[x].append(x + 1)
        xs.sort()
        return xs, d, list(zip(xs, xs[1:]))

    @torch.jit.export
    def numbers(self, a: int, b: float) -> Tuple[float, int, float, float, int, int, float, bool]:
        return a / 3, a // 3, b**2, math.sqrt(b), math.floor(b), -a % 4, round(b), math.isinf(b)


class Attention(nn.Module):
    def __init__(self, d=8, heads=2):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads

    def forward(self, x: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        B, T, D = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, D // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.rnn = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x: Tensor):
        y, h = self.rnn(x)
        return y, h


class Voice(nn.Module):
    """A detector of speech in the manner of silero-vad: state in buffers, reset by a method, windows, an LSTM cell and a refusal."""

    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTMCell(9, 4), nn.Conv1d(4, 1, 1)
        self.register_buffer("window", torch.hann_window(16))
        self._state = torch.zeros(0)
        self.rate = 0

    @torch.jit.export
    def reset(self, rate: int = 16000) -> None:
        self._state = torch.zeros(0)
        self.rate = rate

    def forward(self, x: Tensor, rate: int) -> Tensor:
        if x.dim() == 1:
            x = x.unsqueeze(0)
        if x.dim() > 2:
            raise ValueError(f"Too many dimensions for input audio chunk {x.dim()}")
        if rate not in [8000, 16000]:
            raise ValueError("Supported sampling rates: " + ", ".join([str(r) for r in [8000, 16000]]))
        if self.rate != rate or self._state.numel() == 0:
            self.reset(rate)
            self._state = torch.zeros(2, x.size(0), 4)
        spectrum = torch.stft(x, 16, hop_length=8, window=self.window, center=True, return_complex=True).abs()
        h, c = self._state[0], self._state[1]
        outs: List[Tensor] = []
        for frame in spectrum.unbind(-1):
            h, c = self.cell(frame, (h, c))
            outs.append(h)
        self._state = torch.stack([h, c])
        return torch.sigmoid(self.out(F.relu(torch.stack(outs, -1)))).mean(2)


class Detector(nn.Module):
    """Boxes in the manner of torchvision's detectors: a list of dicts, sorting, a loop of suppression."""

    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(3, 5, 1)

    def forward(
        self, images: List[Tensor], targets: Optional[List[Dict[str, Tensor]]] = None
    ) -> Tuple[Dict[str, Tensor], List[Dict[str, Tensor]]]:
        losses: Dict[str, Tensor] = {}
        found: List[Dict[str, Tensor]] = []
        for image in images:
            y = self.head(image[None])[0].flatten(1).t()
            boxes, scores = y[:, :4], y[:, 4].sigmoid()
            keep, order = [-1], torch.argsort(scores, descending=True)
            for i in range(order.size(0)):
                if len(keep) < 4 and float(scores[order[i]]) > 0.3:
                    keep.append(int(order[i]))
            index = torch.tensor(keep[1:], dtype=torch.int64)
            found.append(
                {"boxes": boxes[index].clamp(min=0), "scores": scores[index], "labels": torch.ones_like(index)}
            )
        if self.training and targets is not None:
            losses["boxes"] = F.smooth_l1_loss(found[0]["boxes"], targets[0]["boxes"])
        return losses, found


class Upsampling(nn.Module):
    def forward(self, x: Tensor, size: List[int]) -> Tensor:
        x = F.interpolate(x, size=size, mode="bilinear", align_corners=False)
        x = F.pad(x, [1, 1, 1, 1], mode="reflect")
        return F.grid_sample(
            x, F.affine_grid(torch.eye(2, 3)[None], [1, 1, 4, 4], align_corners=False), align_corners=False
        )


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True)
        return out


class State(nn.Module):
    """A module with its own state."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.ready = False

    @torch.jit.export
    def __getstate__(self):
        return self.weight * 2, self.training

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, bool]):
        self.weight = state[0] / 2
        self.training = state[1]
        self.ready = True

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight if self.ready else x


class Kinds(nn.Module):
    """Dtypes, layouts and memory formats, which are numbers in the code."""

    def forward(self, x: Tensor, to: torch.dtype):
        a = x.to(torch.float64).to(to)
        b = torch.arange(3, dtype=torch.int32, device=x.device)
        c = torch.full((2, 2), 3, dtype=torch.int64).sum(dtype=torch.float32)
        d = torch.ones_like(x, dtype=torch.bool) & (x > 0) | torch.zeros_like(x, dtype=torch.bool)
        e = x[None, None].contiguous(memory_format=torch.channels_last) if x.dim() == 2 else x
        f = torch.rand(2, 2, dtype=torch.float64).clone(memory_format=torch.preserve_format) * 0
        g = torch.empty(2, 0, dtype=x.dtype).size()
        h = x.dtype == torch.float32 and not x.is_floating_point() or x.is_cuda
        return a, b, c, d, e.is_contiguous(memory_format=torch.channels_last), f, g, h, torch.result_type(x, 1), x.dtype


class Pooled(nn.Module):
    """A number of one of two kinds, and results that are written into an argument."""

    def forward(self, x: Tensor) -> Tensor:
        y = F.lp_pool1d(x, 2.0, 2)
        return torch.div(y, y.abs().max(), out=torch.empty_like(y))


def sizes(x, y):
    n = x.shape[0] * 2
    z = torch.cat([x, x]).view(n, -1)
    m = y.size(1) // 2
    return z[:, :m] + torch.arange(m) + y.new_zeros(x.shape[0] * 2, m), z.flatten().unfold(0, x.shape[1], 2)


def branch(x: Tensor, n: int, flag: bool = True) -> Tensor:
    if n > 2 and flag:
        return x * n
    elif n == 2:
        x = x.relu()
    return -x


def modules():
    """{name: (module or function of TorchScript, its calls)}; a call is (method, arguments)."""
    torch.manual_seed(0)
    x, seq, image = torch.randn(2, 4), torch.randn(2, 5, 8), torch.randn(2, 3, 8, 8)
    one = torch.randn(4, 3)
    script, trace = torch.jit.script, torch.jit.trace
    conv = Conv().eval()
    mlp = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.5), nn.Linear(8, 3)).eval()
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).train()
    encoder.dropout.p = encoder.dropout1.p = encoder.dropout2.p = encoder.self_attn.dropout = 0.0
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    language = script(Language())
    detector = Detector().eval()
    shapes = [torch.randn(3, 4), torch.randn(6, 3), torch.randn(5, 6)]
    audio = torch.randn(1, 64)
    with torch.no_grad():
        return {
            "conv_scripted": (script(conv), [("forward", (image,))]),
            "conv_traced": (trace(conv, image), [("forward", (image[:1],))]),
            "conv_frozen": (torch.jit.freeze(script(conv)), [("forward", (image,))]),
            "conv_training": (script(Conv().train()), [("forward", (image,))]),
            "mlp_for_inference": (torch.jit.optimize_for_inference(trace(mlp, x)), [("forward", (x,))]),
            "mlp_scripted": (script(mlp), [("forward", (x,))]),
            "attention": (script(Attention()), [("forward", (seq,)), ("forward", (seq, torch.ones(5, 5).tril()))]),
            "attention_traced": (trace(Attention(), seq), [("forward", (torch.randn(3, 7, 8),))]),
            "encoder_traced": (trace(encoder, seq), [("forward", (torch.randn(3, 4, 8),))]),
            "encoder_fused": (
                script(copy.deepcopy(encoder).eval()),
                [("forward", (seq,)), ("forward", (seq, torch.ones(5, 5).triu(1).bool()))],
            ),
            "encoder_scripted": (script(encoder), [("forward", (seq,))]),
            "lstm": (script(Recurrent(nn.LSTM)), [("forward", (torch.randn(2, 5, 3),))]),
            "gru_traced": (trace(Recurrent(nn.GRU), torch.randn(2, 5, 3)), [("forward", (torch.randn(3, 4, 3),))]),
            "language": (
                language,
                [
                    ("forward", (x,)),
                    ("forward", (x, "b", 2)),
                    ("early", (x, 5)),
                    ("early", (x, 4)),
                    ("early", (x, 2)),
                    ("strings", ("a cat ",)),
                    ("containers", (5,)),
                    ("numbers", (7, 2.5)),
                ],
            ),
            "voice": (
                script(Voice()),
                [
                    ("forward", (audio, 16000)),
                    ("forward", (audio * 2, 16000)),
                    ("reset", ()),
                    ("forward", (audio, 8000)),
                ],
            ),
            "detector": (script(detector), [("forward", ([torch.randn(3, 4, 4), torch.randn(3, 5, 5)],))]),
            "upsampling": (script(Upsampling()), [("forward", (torch.randn(1, 2, 4, 4), [6, 7]))]),
            "state": (script(State()), [("forward", (torch.randn(2),))]),
            "kinds": (script(Kinds()), [("forward", (x, torch.int64)), ("forward", (x.double(), torch.float16))]),
            "function": (
                script(branch),
                [("forward", (x, 3, True)), ("forward", (x, 2, True)), ("forward", (x, 3, False))],
            ),
            "sizes": (
                trace(sizes, tuple(shapes[:2])),
                [("forward", (shapes[0], shapes[1])), ("forward", (torch.randn(2, 6), torch.randn(1, 7)))],
            ),
            "tied": (script(tied), [("forward", (x,))]),
            "embedding": (
                script(nn.Sequential(nn.Embedding(10, 4, padding_idx=0), nn.Linear(4, 2))),
                [("forward", (torch.tensor([[1, 0], [3, 9]]),))],
            ),
            "dict_traced": (
                trace(lambda d: {"y": d["x"] + 1}, ({"x": x},), strict=False),
                [("forward", ({"x": x * 2},))],
            ),
            "deconv": (
                trace(nn.Sequential(nn.ConvTranspose2d(3, 2, 3, stride=2), nn.InstanceNorm2d(2), nn.Softplus()), image),
                [("forward", (image,))],
            ),
            "norms": (
                trace(nn.Sequential(nn.utils.weight_norm(nn.Linear(3, 4)), nn.GroupNorm(2, 4), nn.PReLU()), one),
                [("forward", (one,))],
            ),
            "loss": (script(nn.CrossEntropyLoss(label_smoothing=0.1)), [("forward", (x, torch.tensor([1, 3])))]),
            "pooled": (script(Pooled()), [("forward", (torch.randn(2, 3, 6),))]),
            "packed": (script(Packed()), [("forward", (torch.randn(3, 5, 3), torch.tensor([5, 2, 3])))]),
            **quantised_archives.modules(),
        }


def plain(value):
    """A result as files hold it: named tuples as tuples, members by name, devices as text."""
    if isinstance(value, tuple | list):
        return type(value)(map(plain, value)) if not hasattr(value, "_fields") else tuple(map(plain, value))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, torch.device):
        return str(value)
    return value.name if isinstance(value, enum.Enum) else value


def copied(value):
    """Arguments, which a call may write to."""
    if isinstance(value, Tensor):
        return value.clone()
    if isinstance(value, tuple | list):
        return type(value)(map(copied, value))
    return {k: copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def archive(module, calls) -> bytes:
    """The archive that PyTorch writes, and what the calls give."""
    file = io.BytesIO()
    torch.jit.save(module, file)
    again = torch.jit.load(io.BytesIO(file.getvalue()))
    done = []
    for method, args in calls:
        torch.manual_seed(1)
        with torch.no_grad():
            done.append((method, copied(args), copied(plain(getattr(again, method)(*copied(args))))))
    held = io.BytesIO()
    torch.save(done, held)
    file = io.BytesIO()
    torch.jit.save(module, file, _extra_files={"calls": held.getvalue()})
    return file.getvalue()


def small(data: bytes) -> bytes:
    """The archive compressed and without the tables of source lines."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            if not name.endswith(".debug_pkl"):
                target.writestr(zipfile.ZipInfo(name), source.read(name), zipfile.ZIP_DEFLATED)
    return out.getvalue()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, (module, calls) in modules().items():
        with open(f"{sys.argv[1]}/{name}.pt", "wb") as f:
            f.write(small(archive(module, calls)))
