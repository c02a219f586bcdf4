"""A CUDA device in ten minutes: is it there, does each part of the driver work, values of all samples beside the CPU's, then times.

    FLAMBEAU_CUDA=nvidia python benchmarks/cuda.py [--out table.md] [--json found.json] [--only REGEX] [--seconds 540] [--torch-python PATH]
    FLAMBEAU_CUDA=nvidia python benchmarks/cuda.py --parts cpu --seconds 210 --torch-python PATH [--out cpu.md]

The first command keeps within its 540 seconds, so it fits where a command may take ten minutes; both fit where a machine is lent for fifteen.
Each part is a process of its own with a limit of time: a part that fails, hangs or ends the process says so in the report, and the others go on.
The report is written anew after each part, so that a visit which is cut short leaves what was found. It begins with what was to be reached, and
whether it was.

Parts: ``build`` (the native parts, where this Python has none), ``device`` (driver, memory, streams, events, a kernel, a recorded graph, a compiled
step, one line each), ``times`` (fused kernels as a share of the bandwidth of the driver's own copies, a launch from C, a small launch from Python, a
product), ``steps`` (training steps, eager and compiled, of GPT and a residual network too), with ``--torch-python`` the same programs in PyTorch,
and ``values`` (each row of the sample table on the device and on the CPU, in chunks). ``cpu``, asked for by its name: steps of networks.py
on this machine's processors, at 1, 2, 4, 8 and 16 threads beside PyTorch.
A kernel that fails to compile is an error here. On the simulated device (``FLAMBEAU_CUDA=simulated``) only values mean something.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAMS = {
    # name: (setup, program, bytes that the program must move, None where that isn't asked)
    "add": ("a, b = randn(N), randn(N)", "a + b", "12 * N"),
    "fused pointwise": ("f = compiled(lambda a: (a.sin() * 2 + 1).relu()); a = randn(N)", "f(a)", "8 * N"),
    "softmax": ("a = randn(N // 1024, 1024)", "torch.softmax(a, 1)", "8 * N"),
    "layer norm": (
        "f = compiled(lambda a: torch.nn.functional.layer_norm(a, (1024,))); a = randn(N // 1024, 1024)",
        "f(a)",
        "8 * N",
    ),
    "sum": ("a = randn(N)", "a.sum()", "4 * N"),
    "small launch": ("a = randn(16)", "a + 1", None),
    "product": ("a, b = randn(M, M), randn(M, M)", "a @ b", None),
}
STEPS = {
    # name: (model, inputs), for B examples
    "MLP": ("Sequential(Linear(784, 512), GELU(), Linear(512, 10))", "randn(B, 784)"),
    "convolutions": (
        "Sequential(Conv2d(3, 16, 3), BatchNorm2d(16), ReLU(), Flatten(), Linear(14400, 10))",
        "randn(B // 4, 3, 32, 32)",
    ),
    "transformer": (
        "Sequential(TransformerEncoderLayer(128, 4, 256, 0.0, batch_first=True), Flatten(), Linear(8192, 10))",
        "randn(B // 4, 64, 128)",
    ),
}
NETWORK = "benchmarks/networks.py: "  # models with inputs and targets of their own
STEPS = {f"{NETWORK}{name}": ("", "") for name in ("GPT 4x256, 8x128 tokens", "PreActResNet18, 8x3x32x32")} | STEPS
THREADS = (1, 2, 4, 8, 16)
CHUNK = 60  # rows of the sample table to a process


# ---- what a process of its own does: it prints lines of JSON -------------------------------------------------------------------------------------


def told(**found) -> None:
    print(json.dumps(found), flush=True)


def _checks():
    """(name, function) of each thing that a device must do."""
    import numpy as np

    import flambeau as torch

    def memory():
        x = torch.arange(1000.0).cuda()
        y = torch.empty(1000, device="cuda")
        y.copy_(x)
        y[10:20].zero_()
        assert y.cpu().sum().item() == sum(range(1000)) - sum(range(10, 20))
        return f"{torch.cuda.memory_allocated()} bytes allocated, {torch.cuda.mem_get_info()} free and in all"

    def kernel():
        assert (torch.arange(1000.0).cuda() + 1).sum().item() == 500500

    def block():
        x = torch.linspace(-3, 3, 8000).reshape(4, 2000)
        np.testing.assert_allclose(torch.softmax(x.cuda(), 1).cpu().numpy(), torch.softmax(x, 1).numpy(), rtol=1e-5)

    def streams():
        side, begin, end = torch.cuda.Stream(), *(torch.cuda.Event(enable_timing=True) for _ in range(2))
        x = torch.ones(1000, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            begin.record()
            y = x * 2
            end.record()
        torch.cuda.current_stream().wait_stream(side)
        assert y.sum().item() == 2000
        return f"{begin.elapsed_time(end):.3f} ms between two events"

    def recorded():
        x, graph = torch.zeros(10, device="cuda"), torch.cuda.CUDAGraph()
        (x + 1).sum().item()  # it is compiled before
        with torch.cuda.graph(graph):
            y = x + 1
        x.fill_(5)
        graph.replay()
        torch.cuda.synchronize()
        assert y.tolist() == [6] * 10

    def draws():
        torch.manual_seed(0)
        x = torch.randn(100000, device="cuda")
        assert abs(x.mean().item()) < 0.02 and abs(x.std().item() - 1) < 0.02

    def index_error():
        try:
            torch.nn.functional.embedding(torch.tensor([5]).cuda(), torch.ones(2, 2).cuda())
        except IndexError:
            return
        raise AssertionError("no error")

    def out_of_memory():
        try:
            torch.empty(1 << 50, device="cuda")
        except torch.OutOfMemoryError as e:
            return str(e)
        raise AssertionError("no error")

    def compiled():
        model, found = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 1)), []
        start = {k: v.clone() for k, v in model.state_dict().items()}
        for device in ("cpu", "cuda"):
            model.load_state_dict(start)
            model.to(device)
            step = torch.compile(lambda x: model(x).square().mean())  # noqa: B023
            loss = step(torch.linspace(-1, 1, 80).reshape(10, 8).to(device))
            loss.backward()
            found.append([loss.item(), *(p.grad.cpu().sum().item() for p in model.parameters())])
            model.zero_grad()
        np.testing.assert_allclose(*found, rtol=1e-4)

    own = (memory, kernel, block, streams, recorded, draws, index_error, out_of_memory, compiled)
    return [(f.__name__.replace("_", " "), f) for f in own]


def device() -> None:
    import flambeau as torch

    told(what="name", said=torch.cuda.get_device_name(), device=str(torch.cuda.get_device_properties()))
    for name, check in _checks():
        begin = time.perf_counter()
        try:
            said = check()
            torch.cuda.synchronize()
            told(what=name, right=True, said=said or "", seconds=time.perf_counter() - begin)
        except Exception as e:
            told(what=name, right=False, said=f"{type(e).__name__}: {e}")


def values(names: list[str]) -> None:
    """Rows of the sample table, on both devices."""
    import numpy as np

    import flambeau as torch
    from flambeau.base.device import as_device
    from flambeau.core.device_memory import upload
    from flambeau.testing.samples import load, operator, to_tensors

    rows, place = load(), lambda a: upload(torch.from_numpy(a), as_device("cuda"))
    for name in names:
        row, op = rows[name], operator(name)
        run = op if row.through is None else lambda *a, **k: row.through(op, *a, **k)  # noqa: B023
        told(begun=name)
        for call in row.calls:
            try:
                expected = run(*to_tensors(call.args), **to_tensors(call.kwargs))
                found = run(*to_tensors(call.args, place), **to_tensors(call.kwargs, place))
                pairs = zip(*(x if isinstance(x, (tuple, list)) else [x] for x in (found, expected)))
                for a, b in pairs:
                    if isinstance(b, torch.Tensor):
                        a, b = (t.cpu().resolve_conj().resolve_neg().numpy() for t in (a, b))
                        np.testing.assert_allclose(a, b, rtol=max(row.rtol, 1e-5), atol=max(row.rtol, 1e-5))
                told(right=name)
            except Exception as e:
                first = next((line for line in str(e).splitlines() if line.strip()), "")
                told(wrong=name, said=f"{type(e).__name__} {first.strip()}")


def _chain(torch):
    """A compiled function of twenty kernels, each after the other, and what it is called with."""

    def chain(x):
        for _ in range(20):
            x = x - x.sum(0, keepdim=True) * 0.01
        return x

    return torch.compile(chain), torch.ones(3, 4, device="cuda")


def _launch_from_c(torch) -> float:
    """Seconds of the host for a launch, of a graph's twenty that C gives to the device; the least of thirty."""
    from flambeau.inductor.device import launches

    f, x = _chain(torch)
    f(x)
    seen, run = [], launches.Launches.run
    launches.Launches.run = lambda own, held, numbers: (
        seen.append((own, dict(held), numbers)) or run(own, held, numbers)
    )
    f(x)
    launches.Launches.run = run
    own, held, numbers = seen[-1]
    given = [held.get(n, (None, 0)) for n in own.names]
    plan, found = own._plan(numbers.wide), []
    for _ in range(30):
        memories, offsets = [m for m, _ in given], [at for _, at in given]
        torch.cuda.synchronize()
        begin = time.perf_counter()
        plan.run(memories, offsets, numbers.packed)
        found.append((time.perf_counter() - begin) / len(own.steps))
    return min(found)


def _timed(call, synchronize, many: int) -> tuple[float, float]:
    """Seconds of the first call, and of a later one (the median of five)."""
    begin = time.perf_counter()
    call()
    synchronize()
    first, found = time.perf_counter() - begin, []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(many):
            call()
        synchronize()
        found.append((time.perf_counter() - begin) / many)
    return first, sorted(found)[2]


def times(library: str, size: int) -> None:
    torch = __import__(library)
    randn = lambda *s: torch.randn(*s, device="cuda")  # noqa: E731
    a, b = randn(size), randn(size)
    told(program="copies", seconds=_timed(lambda: a.copy_(b), torch.cuda.synchronize, 10)[1])
    if library == "flambeau":
        try:
            told(program="launch from C", seconds=_launch_from_c(torch))
        except Exception as e:
            told(program="launch from C", said=f"{type(e).__name__}: {e}")
    for name, (setup, program, _) in PROGRAMS.items():
        here = {"torch": torch, "N": size, "M": min(4096, int(size**0.5)), "randn": randn, "compiled": torch.compile}
        try:
            exec(setup, here)
            code = compile(program, name, "eval")
            first, later = _timed(lambda: eval(code, here), torch.cuda.synchronize, 200 if "small" in name else 10)  # noqa: B023
            told(program=name, first=first, seconds=later)
        except Exception as e:
            told(program=name, said=f"{type(e).__name__}: {e}")


def _model(torch, name: str, modules: str, inputs: str, large: bool):
    """(model, input, targets) of a program; small where the device is simulated."""
    if name.startswith(NETWORK):
        import networks

        with torch.device("cuda"):
            if large:
                return networks.NETWORKS[name.removeprefix(NETWORK)](torch)
            if "GPT" in name:
                return networks._gpt(torch, 16, 1, 2, 2, 8, 16)
            model, x, target = networks.NETWORKS[name.removeprefix(NETWORK)](torch)
            return model, x[:1], target[:1]
    x = eval(inputs, {"randn": lambda *s: torch.randn(*s, device="cuda"), "B": 256 if large else 4})
    model = eval(modules, dict(vars(torch.nn))).cuda()
    return model, x, torch.zeros(x.shape[0], dtype=torch.int64, device="cuda")


def steps(library: str, size: int) -> None:
    torch = __import__(library)
    large = size >= 1 << 20
    for name, (modules, inputs) in STEPS.items():
        for way in ("eager", "compiled"):
            try:
                model, x, target = _model(torch, name, modules, inputs, large)
                optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
                loss = lambda: torch.nn.functional.cross_entropy(model(x), target)  # noqa: B023, E731
                loss = torch.compile(loss) if way == "compiled" else loss

                def step(loss=loss, optimizer=optimizer):
                    optimizer.zero_grad()
                    with torch.device("cuda"):
                        loss().backward()
                    optimizer.step()

                first, later = _timed(step, torch.cuda.synchronize, 20 if large else 1)
                told(program=f"{name}, {way}", first=first, seconds=later)
            except Exception as e:
                told(program=f"{name}, {way}", said=f"{type(e).__name__}: {e}")


# ---- the parts, and what they found ----------------------------------------------------------------------------------------------------------------


class Visit:
    """What was found so far, and how long there is. ``write`` is called after each part."""

    def __init__(self, options):
        self.options, self.found, self.end = options, {}, time.monotonic() + options.seconds

    def left(self) -> float:
        return self.end - time.monotonic()

    def part(self, name: str, arguments: list, limit: float, python: str = sys.executable) -> list[dict]:
        """The lines of a part; the last one says how it ended, where it didn't end well."""
        command = [python, os.path.abspath(__file__), "--part", json.dumps(arguments)]
        limit = min(limit, self.left())
        if limit < 5:
            return [{"ended": "no time was left for it"}]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
            out, ended = (
                done.stdout,
                "" if not done.returncode else f"ended with {done.returncode}: {_last(done.stderr)}",
            )
        except subprocess.TimeoutExpired as e:
            out, ended = (e.stdout or b"").decode(), f"stopped after {limit:.0f} s"
        lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        lines += [{"ended": ended}] if ended else []
        self.found.setdefault(name, []).extend(lines)
        self.write()
        return lines

    def write(self) -> None:
        text = report(self.found)
        if self.options.out:
            Path(self.options.out).write_text(text)
        if self.options.json:
            Path(self.options.json).write_text(json.dumps(self.found, indent=1))


def on_processors(visit: Visit) -> None:
    """benchmarks/models.py at each number of threads that the machine has processors for; a table for each."""
    models, counts = Path(__file__).with_name("models.py"), [n for n in THREADS if n <= (os.cpu_count() or 1)]
    for k, n in enumerate(counts):
        seconds = visit.left() / (len(counts) - k)
        said = f"{n} threads: no time was left"
        if seconds > 20:
            out = Path(tempfile.mkdtemp()) / "found.json"
            peers = ["flambeau compiled"] + (["torch compiled"] if visit.options.torch_python else [])
            command = [
                sys.executable,
                models,
                "--rows",
                "GPT,PreActResNet18",
                "--rounds",
                "2",
                "--threads",
                str(n),
                "--out",
                out,
            ]
            command += [
                "--minutes",
                f"{seconds / 60 * 0.6:.2f}",
                "--limit",
                f"{seconds * 0.4:.0f}",
                "--peers",
                ",".join(peers),
            ]
            command += ["--torch-python", visit.options.torch_python] if visit.options.torch_python else []
            environment = {k: v for k, v in os.environ.items() if k != "FLAMBEAU_CUDA"}
            try:
                done = subprocess.run(
                    list(map(str, command)), capture_output=True, text=True, timeout=seconds, env=environment
                )
                said = f"### {n} threads\n\n{done.stdout.strip()}" + (
                    f"\n{_last(done.stderr)}" if done.returncode else ""
                )
            except subprocess.TimeoutExpired:
                said = f"{n} threads: stopped after {seconds:.0f} s"
        visit.found.setdefault("cpu", []).append({"said": said})
        visit.write()


def build(visit: Visit) -> None:
    """The native parts, where this Python has none."""
    if subprocess.run([sys.executable, "-c", "import flambeau"], capture_output=True).returncode == 0:
        return
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=max(visit.left(), 1))
    visit.found["build"] = [{"said": f"the native parts were built: {done.returncode}", "error": done.stderr[-2000:]}]
    visit.write()


def _last(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "nothing was said"


def all_values(visit: Visit, only: str, seconds: float) -> None:
    """All rows by chunks. The row that ends a process or its time is told, and the next process begins behind it."""
    import re

    from flambeau.testing.samples import load, operator

    def known(name):
        try:
            return operator(name)
        except AttributeError:
            return None  # samples may be ahead of the operator

    names = [n for n, row in load().items() if row.values and re.search(only, n) and known(n) is not None]
    end = time.monotonic() + seconds
    while names and time.monotonic() < end:
        lines = visit.part("values", ["values", names[:CHUNK]], min(90, end - time.monotonic()))
        begun = [line["begun"] for line in lines if "begun" in line]
        stopped = "ended" in lines[-1] if lines else True
        if stopped and begun:
            visit.found["values"].append({"wrong": begun[-1], "said": lines[-1]["ended"]})
        if stopped and not begun:
            break  # the process doesn't begin at all
        names = names[len(begun) :]
    if names:
        visit.found.setdefault("values", []).append({"ended": f"{len(names)} rows were not looked at"})
    visit.write()


def report(found: dict) -> str:
    """What was found as Markdown."""
    parts = (_of_device(found), _of_bars(found), _of_values(found.get("values")), _of_times(found), _of_cpu(found))
    return "\n".join(line for part in parts for line in part) + "\n"


def _of_bars(found: dict) -> list[str]:
    """What was to be reached."""
    own = {x["program"]: x for part in ("times", "steps") for x in found.get(part, []) if "seconds" in x}
    other = {x["program"]: x for x in found.get("PyTorch's steps", []) if "seconds" in x}
    size, copies, out = found.get("size", 0), own.get("copies", {}).get("seconds"), []
    for name, (_, _, moved) in PROGRAMS.items():
        if moved and copies and name in own:
            share = eval(moved, {"N": size}) / own[name]["seconds"] / (8 * size / copies)
            out.append((f"{name}: {share:.2f} of the copies' bandwidth, 0.8 wanted", share >= 0.8))
    if "launch from C" in own:
        took = own["launch from C"]["seconds"] * 1e6
        out.append((f"a launch from C: {took:.2f} µs, 4 wanted", took <= 4))
    for name, x in own.items():
        if name.startswith(NETWORK) and name.endswith("compiled"):
            if name in other:
                ratio = x["seconds"] / other[name]["seconds"]
                out.append((f"{name}: {ratio:.2f} of PyTorch's time, 1.2 wanted", ratio <= 1.2))
            out.append((f"{name}: first call {x['first']:.2f} s, 1 wanted", x["first"] <= 1))
    return [*(f"- {'reached' if reached else 'NOT REACHED'}: {text}" for text, reached in out), ""] if out else []


def _of_cpu(found: dict) -> list[str]:
    lines = found.get("cpu", [])
    if not lines:
        return []
    return ["## Processors", "", *(line["said"] for line in lines if "said" in line), ""]


def _of_device(found: dict) -> list[str]:
    lines = found.get("device", [])
    name = next((line["said"] for line in lines if line.get("what") == "name"), "no device was reached")
    out = [f"# {name}", ""]
    for line in lines:
        if "right" in line:
            out.append(
                f"- {line['what']}: {'right' if line['right'] else 'WRONG'}{', ' + line['said'] if line['said'] else ''}"
            )
        elif "ended" in line:
            out.append(f"- the rest: {line['ended']}")
    return [*out, ""]


def _of_values(lines) -> list[str]:
    if lines is None:
        return []
    right, wrong = sum("right" in x for x in lines), [x for x in lines if "wrong" in x]
    out = [f"{right} samples agree with the CPU, {len(wrong)} don't"]
    out += [f"- {x['wrong']}: {x['said']}" for x in wrong] + [f"- {x['ended']}" for x in lines if "ended" in x]
    return [*out, ""]


def _of_times(found: dict) -> list[str]:
    out: list[str] = []
    for part in ("times", "steps"):
        own = [x for x in found.get(part, []) if "program" in x]
        beside = {x["program"]: x for x in found.get(f"PyTorch's {part}", []) if "seconds" in x}
        copies = next((x["seconds"] for x in own if x["program"] == "copies" and "seconds" in x), None)
        size = found.get("size", 0)
        if own:
            out += [
                "| program | first call, s | a call, µs | of the copies' bandwidth | PyTorch, µs |",
                "| --- | --- | --- | --- | --- |",
            ]
        for x in own:
            if "seconds" not in x:
                out.append(f"| {x['program']} | {x['said'].replace('|', '/')} | | | |")
                continue
            moved = PROGRAMS.get(x["program"], ("", "", None))[2]
            share = f"{eval(moved, {'N': size}) / x['seconds'] / (8 * size / copies):.2f}" if moved and copies else ""
            other = beside.get(x["program"])
            other = f"{other['seconds'] * 1e6:,.1f}" if other else ""
            first = f"{x['first']:.2f}" if "first" in x else ""
            out.append(f"| {x['program']} | {first} | {x['seconds'] * 1e6:,.1f} | {share} | {other} |")
        out += [f"- {part}: {x['ended']}" for x in found.get(part, []) if "ended" in x] + [""]
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="a file for the report")
    parser.add_argument("--json", help="a file for all that was found")
    parser.add_argument("--only", default="", help="rows of the sample table whose names match; '^$' for none")
    parser.add_argument("--size", type=int, default=1 << 26, help="elements of large tensors")
    parser.add_argument("--seconds", type=float, default=540, help="how long all of it may take")
    parser.add_argument("--torch-python", help="a Python that has PyTorch with CUDA")
    parser.add_argument("--parts", default="device,times,steps,values", help="which parts run; cpu is one more")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        name, *arguments = json.loads(options.part)
        if "torch" not in arguments:
            from flambeau.inductor.device import single

            single.strict = True
        {"device": device, "values": values, "times": times, "steps": steps}[name](*arguments)
        return 0
    if not os.environ.get("FLAMBEAU_CUDA"):
        parser.error("there is no device: set FLAMBEAU_CUDA=nvidia, or =simulated for the values alone")
    visit = Visit(options)
    visit.found["size"] = options.size
    wanted = options.parts.split(",")
    build(visit)
    if wanted == ["cpu"]:
        on_processors(visit)
        print(report(visit.found))
        return 0
    reached = any("what" in line for line in visit.part("device", ["device"], 120))
    # What only a visit can tell comes first; the rows of the table fill what is left.
    for part in ("times", "steps") if reached else ():
        if part not in wanted:
            continue
        visit.part(part, [part, "flambeau", options.size], 120)
        if options.torch_python:
            visit.part(f"PyTorch's {part}", [part, "torch", options.size], 60, options.torch_python)
    if reached and "values" in wanted:
        all_values(visit, options.only, visit.left())
    if "cpu" in wanted:
        on_processors(visit)
    print(report(visit.found))
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
