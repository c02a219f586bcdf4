"""Runs jobs of one library and prints their numbers: ``python harness.py LIBRARY [JOB ...]``, under ``flambeau run`` or on PyTorch.

A job is a public function of ``jobs/LIBRARY.py``; it returns {what: tensor or number}. Tensors are told by a few numbers (:func:`summary`).
What a job does by :func:`both` runs plain and under ``torch.compile``; on PyTorch only the plain part runs, it is the one that is recorded.
"""

import importlib.util
import json
import math
import sys
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).parent


def on_flambeau() -> bool:
    import torch

    return "flambeau" in torch.__version__


def summary(value) -> list[float]:
    """Size, mean, deviation, norm and a few elements of a tensor; a number alone."""
    if isinstance(value, bool | int | float):
        return [float(value)]
    if isinstance(value, list | tuple):
        return [x for v in value for x in summary(v)]
    flat = value.detach().double().reshape(-1)
    n = flat.numel()
    if n == 0:
        return [0.0]
    ends = flat.tolist() if n <= 8 else flat[:4].tolist() + flat[-4:].tolist()
    mean = flat.mean()
    return [float(n), mean.item(), (flat - mean).pow(2).mean().sqrt().item(), flat.pow(2).sum().sqrt().item(), *ends]


def gradients(model) -> dict:
    """The norm of each parameter's gradient (few of them) and of all together."""
    norms = [p.grad.double().pow(2).sum().item() for p in model.parameters() if p.grad is not None]
    return {"count": float(len(norms)), "total": math.sqrt(sum(norms)), "first": [math.sqrt(x) for x in norms[:4]]}


def steps(model, loss_of, count=3, optimizer=None) -> dict:
    """The losses of some steps of training, and the gradients after them."""
    import torch

    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "gradients": gradients(model)["total"]}


def _pass(model, call, inputs) -> dict:
    for p in model.parameters():
        p.grad = None
    out = call(*inputs) if isinstance(inputs, tuple | list) else call(**inputs)
    for name in ("loss", "logits", "last_hidden_state", "sample"):
        if getattr(out, name, None) is not None and not hasattr(out, "shape"):
            out = getattr(out, name)
            break
    out = out[0] if isinstance(out, tuple | list) else out
    loss = out if out.dim() == 0 else out.float().pow(2).mean()
    loss.backward()
    found = {"out": summary(out), **{f"gradients {k}": v for k, v in gradients(model).items()}}
    asked = [
        x
        for x in (inputs if isinstance(inputs, tuple | list) else inputs.values())
        if getattr(x, "is_leaf", False) and x.requires_grad
    ]
    for k, x in enumerate(asked):
        found[f"input gradient {k}"] = summary(x.grad)
        x.grad = None
    return found


def both(model, inputs, rtol=2e-3, **options) -> dict:
    """Forward and backward of a model, plain; on flambeau compiled too, and AssertionError where the two differ."""
    import torch

    plain = _pass(model, model, inputs)
    if on_flambeau():
        compiled = _pass(model, torch.compile(model, **options), inputs)
        problem = difference(plain, compiled, rtol)
        assert problem is None, f"compiled differs from plain: {problem}"
    return plain


def difference(expected: dict, got: dict, rtol: float = 2e-3, atol: float = 2e-5) -> str | None:
    """The first place where two results of a job differ, in words."""
    if sorted(expected) != sorted(got):
        return f"keys {sorted(expected)} and {sorted(got)}"
    for key, want in expected.items():
        a, b = _flat(want), _flat(got[key])
        if len(a) != len(b):
            return f"{key}: {len(a)} numbers and {len(b)}"
        scale = max((abs(x) for x in a if math.isfinite(x)), default=0.0) if len(a) < 4 else abs(a[3])
        for x, y in zip(a, b):
            same = x == y or (math.isnan(x) and math.isnan(y))
            if not same and not abs(x - y) <= atol + rtol * abs(x) + 1e-4 * min(scale, 10.0):
                return f"{key}: {x!r} and {y!r}\n  {a}\n  {b}"
    return None


def _flat(value) -> list[float]:
    return [x for v in value for x in _flat(v)] if isinstance(value, list | tuple) else [float(value)]


def jobs(library: str) -> dict:
    """{name: function} of one library's file."""
    spec = importlib.util.spec_from_file_location(f"jobs_{library}", HERE / "jobs" / f"{library}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {k: v for k, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__ and k[0] != "_"}


def run(library: str, names: list[str]) -> dict:
    """{job: {"result": numbers} or {"error": traceback}}."""
    import torch

    if (
        not on_flambeau()
    ):  # torchvision's native part may be built for another PyTorch: its Python part needs this operator's name
        native = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            native.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    out = {}
    for name, job in jobs(library).items():
        if names and name not in names:
            continue
        torch.manual_seed(0)
        try:
            found = {k: v if isinstance(v, list) else summary(v) for k, v in job().items()}
            out[name] = {"result": found}
        except Exception:
            out[name] = {"error": traceback.format_exc()}
        print(name, "error" if "error" in out[name] else "ran", file=sys.stderr, flush=True)
    return out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE))
    print("\nRESULTS " + json.dumps(run(sys.argv[1], sys.argv[2:])))
