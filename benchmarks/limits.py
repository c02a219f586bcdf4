"""How near kernels come to what the machine can do: ``python limits.py [--rounds N] [--rows TEXT] [--out FILE] [--into DOCUMENT]``,
one thread, processor time.

Matrix products as a share of the peak, which is measured by a loop of multiply-adds on registers; kernels that only move memory as a multiple of
the time that ``memcpy`` takes to read and write as many bytes, and of the best copy's: ``memcpy`` or our own, which stores past the cache. A limit is
measured in alternation with what is compared with it; the least times count.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from functools import partial
from time import process_time

os.environ["OMP_NUM_THREADS"] = "1"

import llvmlite.binding as llvm  # noqa: E402
import numpy as np  # noqa: E402
import report  # noqa: E402

import flambeau as torch  # noqa: E402

PRODUCTS = [
    (128, 128, 128), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048),
    (1024, 256, 256), (1024, 1024, 256), (1024, 256, 1024), (1024, 768, 3072), (4096, 128, 128),
    (64, 1024, 1024), (16, 4096, 1024),
]  # fmt: skip
CHAINS, TURNS = 24, 1_000_000  # multiply-adds that don't wait for each other hide the latency of two units


def peak_loop():
    """(a function that runs TURNS turns of the loop, floating-point operations of a call)."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    lanes = 16 if features.get("avx512f") else 8 if features.get("avx2") else 4
    v, fma = f"<{lanes} x float>", f"llvm.fma.v{lanes}f32"
    each = range(CHAINS)
    body = [
        f"declare {v} @{fma}({v}, {v}, {v})",
        f"define void @run({v}* %p) {{",
        "entry:",
        f"  %x = load {v}, {v}* %p",
        "  br label %loop",
        "loop:",
    ]
    body += ["  %i = phi i64 [0, %entry], [%j, %loop]"]
    body += [f"  %s{c} = phi {v} [%x, %entry], [%t{c}, %loop]" for c in each]
    body += [f"  %t{c} = call {v} @{fma}({v} %x, {v} %x, {v} %s{c})" for c in each]
    body += [
        "  %j = add i64 %i, 1",
        f"  %more = icmp ult i64 %j, {TURNS}",
        "  br i1 %more, label %loop, label %end",
        "end:",
    ]
    for c in each:
        body += [f"  %q{c} = getelementptr {v}, {v}* %p, i64 {c}", f"  store {v} %t{c}, {v}* %q{c}"]
    body += ["  ret void", "}"]
    text = "\n".join(body)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    room = np.zeros(CHAINS * lanes + 16, np.float32)
    address = room.ctypes.data + 63 & ~63
    fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.get_function_address("run"))

    def run(keep=(engine, room)):
        fn(address)

    return run, 2 * lanes * CHAINS * TURNS


def moves():
    """name: (function of tensors, its tensors); all that it does is to move its operands' bytes."""
    n = 4096
    big, half, flat = torch.randn(n, n), torch.randn(n // 2, n), torch.randn(n * n)
    rows = torch.randperm(n)
    deep = torch.randn(64, 64, 64, 64)
    return {
        "copy": (torch.clone, [big]),
        "relu": (torch.relu, [big]),
        "addition of a number": (lambda x: x + 1.0, [big]),
        "addition": (torch.add, [big, big.clone()]),
        "multiply-add of three": (lambda x, y, z: x * y + z, [half, half.clone(), half.clone()]),
        "to float64": (lambda x: x.to(torch.float64), [half]),
        "to bfloat16": (lambda x: x.to(torch.bfloat16), [big]),
        "transposition and copy": (lambda x: x.t().contiguous(), [big]),
        "permutation of four dimensions": (lambda x: x.permute(0, 2, 1, 3).contiguous(), [deep]),
        "channels last": (lambda x: x.permute(0, 2, 3, 1).contiguous(), [deep]),
        "concatenation of rows": (lambda x, y: torch.cat([x, y]), [half, half.clone()]),
        "concatenation of columns": (lambda x, y: torch.cat([x, y], 1), [half, half.clone()]),
        "rows by index": (lambda x, i: x[i], [big, rows]),
        "roll": (lambda x: torch.roll(x, 5, 1), [big]),
        "flip": (lambda x: x.flip(1), [big]),
        "padding": (lambda x: torch.nn.functional.pad(x, (1, 1, 1, 1)), [big]),
        "choice": (torch.where, [big > 0, big, big.clone()]),
        "sum of all": (torch.sum, [flat]),
        "sum of rows": (lambda x: x.sum(1), [big]),
        "sum of columns": (lambda x: x.sum(0), [big]),
    }


def least(rounds: int, *calls) -> list[float]:
    """Seconds of processor time of each, asked in turn."""
    best = [float("inf")] * len(calls)
    for call in calls:
        call()
        call()
    for _ in range(rounds):
        for i, call in enumerate(calls):
            begin = process_time()
            call()
            best[i] = min(best[i], process_time() - begin)
    return best


def repeated(call, times: int):
    def run():
        for _ in range(times):
            call()

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", default="", help="only rows whose name has this in it")
    report.add_options(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    loop, operations = peak_loop()
    peaks, lines = [], []
    for m, n, k in PRODUCTS:
        if options.rows not in f"{m}x{n}x{k}":
            continue
        a, b, w = torch.randn(m, k), torch.randn(k, n), torch.randn(n, k)
        times = max(1, int(2e9 / (2 * m * n * k)))
        plain, linear = partial(torch.mm, a, b), partial(torch.nn.functional.linear, a, w)
        calls = least(options.rounds, loop, repeated(plain, times), repeated(linear, times))
        peak = operations / calls[0] / 1e9
        rates = [2e-9 * m * n * k * times / seconds for seconds in calls[1:]]
        peaks.append(peak)
        lines.append(
            f"| {m}x{n}x{k} | {rates[0]:.0f} | {rates[0] / peak:.2f} | {rates[1]:.0f} | {rates[1] / peak:.2f} |"
        )
    if lines:
        lines = [
            f"Peak: {max(peaks):.0f} GFLOP/s (multiply-adds on registers, float32).",
            "",
            "| rows x columns x sum | A B, GFLOP/s | of the peak | A W^T, GFLOP/s | of the peak |",
            "| --- | --- | --- | --- | --- |",
            *lines,
            "",
        ]
    lines += [
        "| kernel | GB/s | time / memcpy, eager | compiled | compiled / best copy |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, (fn, tensors) in moves().items():
        if options.rows not in name:
            continue
        out = fn(*tensors)
        moved = sum(t.numel() * t.element_size() for t in [*tensors, out])
        source = torch.ones(moved // 8)  # written: memory that never was is one page of zeros, in the cache
        target = np.zeros_like(source.numpy())
        compiled, copy = torch.compile(fn), torch.compile(torch.clone)
        calls = partial(np.copyto, target, source.numpy()), partial(copy, source), partial(fn, *tensors)
        move, stream, eager, fast = least(options.rounds, *calls, partial(compiled, *tensors))
        ratios = f"{eager / move:.2f} | {fast / move:.2f} | {fast / min(move, stream):.2f}"
        lines.append(f"| {name} | {moved / fast / 1e9:.1f} | {ratios} |")
        print(lines[-1], file=sys.stderr)
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
