"""A CUDA device in ten minutes: values of all samples beside the CPU's, then times.

    FLAMBEAU_CUDA=nvidia python benchmarks/cuda.py [--out table.md] [--only REGEX] [--torch-python /path/to/python]

Values: each row of the sample table runs on the device and on the CPU, and must agree as compiled kernels do. Times: fused kernels as a share of
the device's memory bandwidth (that of the driver's own copies), the launch of a small kernel, a product. With ``--torch-python`` the same programs
run in PyTorch. On the simulated device (``FLAMBEAU_CUDA=simulated``) only the values mean something: its times are the CPU's.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import time

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
WORKER = """
import json, statistics, sys, time
import {library} as torch
size, programs = json.loads(sys.argv[1])
names = dict(torch=torch, N=size, M=min(4096, int(size**0.5)), randn=lambda *s: torch.randn(*s, device="cuda"), compiled=torch.compile)
out = {{}}
for name, (setup, program, _) in programs.items():
    here = dict(names)
    exec(setup, here)
    code = compile(program, name, "eval")
    begin = time.perf_counter(); eval(code, here); torch.cuda.synchronize(); first = time.perf_counter() - begin
    many = 200 if "small" in name else 10
    found = []
    for _ in range(5):
        begin = time.perf_counter()
        for _ in range(many):
            eval(code, here)
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) / many)
    out[name] = [first, statistics.median(found)]
print(json.dumps(out))
"""


def values(only: str) -> list[str]:
    """Lines about the rows whose values differ from the CPU's."""
    import numpy as np

    import flambeau as torch
    from flambeau.base.device import as_device
    from flambeau.core.device_memory import upload
    from flambeau.testing.samples import load, operator, to_tensors

    device, lines, right = as_device("cuda"), [], 0
    for name, row in load().items():
        try:
            op = operator(name)
        except AttributeError:
            continue  # samples may be ahead of the operator
        if not row.values or not re.search(only, name):
            continue
        for call in row.calls:
            place = lambda a: upload(torch.from_numpy(a), device)  # noqa: E731
            try:
                expected = op(*to_tensors(call.args), **to_tensors(call.kwargs))
                found = op(*to_tensors(call.args, place), **to_tensors(call.kwargs, place))
                pairs = zip(*(x if isinstance(x, (tuple, list)) else [x] for x in (found, expected)))
                for a, b in pairs:
                    if isinstance(b, torch.Tensor):
                        a, b = (t.cpu().resolve_conj().resolve_neg().numpy() for t in (a, b))
                        np.testing.assert_allclose(a, b, rtol=max(row.rtol, 1e-5), atol=max(row.rtol, 1e-5))
                right += 1
            except Exception as e:
                lines.append(f"- {name}: {type(e).__name__} {str(e).strip().splitlines()[0] if str(e) else ''}")
    return [f"{right} samples agree with the CPU, {len(lines)} don't", *lines]


def times(python: str, library: str, size: int) -> dict[str, list[float]]:
    """Program -> seconds of the first call, and of a later one."""
    argument = json.dumps([size, PROGRAMS])
    found = subprocess.run(
        [python, "-c", WORKER.format(library=library), argument], capture_output=True, text=True, check=True
    )
    return json.loads(found.stdout.splitlines()[-1])


def bandwidth(size: int) -> float:
    """Bytes a second that the driver's copies read and write."""
    import flambeau as torch

    a, b = (torch.zeros(size, device="cuda") for _ in range(2))
    found = []
    for _ in range(5):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(10):
            a.copy_(b)
        torch.cuda.synchronize()
        found.append((time.perf_counter() - begin) / 10)
    return 8 * size / statistics.median(found)


def table(python: str, torch_python: str | None, size: int) -> list[str]:
    own = times(python, "flambeau", size)
    other = times(torch_python, "torch", size) if torch_python else {}
    most = bandwidth(size)
    lines = [
        f"copies: {most / 1e9:,.0f} GB/s",
        "",
        "| program | first call, s | a call, µs | of the copies' bandwidth | PyTorch, µs |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (first, later) in own.items():
        moved = PROGRAMS[name][2]
        share = f"{eval(moved, {'N': size}) / later / most:.2f}" if moved else ""
        beside = f"{other[name][1] * 1e6:,.1f}" if name in other else ""
        lines.append(f"| {name} | {first:.2f} | {later * 1e6:,.1f} | {share} | {beside} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="a file for the table")
    parser.add_argument("--only", default="", help="rows of the sample table whose names match; '^$' for none")
    parser.add_argument("--size", type=int, default=1 << 26, help="elements of large tensors")
    parser.add_argument("--torch-python", help="a Python that has PyTorch with CUDA")
    options = parser.parse_args()
    import flambeau as torch

    if not torch.cuda.is_available():
        parser.error("there is no device: set FLAMBEAU_CUDA=nvidia, or =simulated for the values alone")
    lines = [f"# {torch.cuda.get_device_name()}", "", *values(options.only), ""]
    lines += table(sys.executable, options.torch_python, options.size)
    text = "\n".join(lines)
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
