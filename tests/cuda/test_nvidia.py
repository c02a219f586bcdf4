"""The driver for NVIDIA's devices (csrc/device/nvidia.c) on a library that has libcuda's functions and keeps a record: how it is called, not what a GPU does."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAKE = Path(__file__).with_name("fake_libcuda.c")

PROGRAM = """
import ctypes, sys
import flambeau as torch
from flambeau import _device
from flambeau.base import accelerator

library = ctypes.CDLL(sys.argv[1])
library.fake_log.restype = ctypes.c_char_p
names = _device.nvidia_functions()
accelerator._addresses = lambda wanted: [ctypes.cast(getattr(library, n), ctypes.c_void_p).value for n in wanted]
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert torch.cuda.is_available()
    assert torch.cuda.get_device_name() == "fake 0" and torch.cuda.get_device_capability() == (9, 0)
assert [str(w.message)[:31] for w in told] == ["torch.cuda on NVIDIA's devices i"[:31]]
assert torch.cuda.mem_get_info() == (1 << 20, 1 << 21)

x = torch.tensor([3.0, 1, 2]).cuda()
assert x.cpu().tolist() == [3, 1, 2] and torch.cuda.memory_allocated() == 12
x[1:].zero_()
assert x.cpu().tolist() == [3, 0, 0]
y = x + 1  # the kernel isn't run
event = torch.cuda.Event(enable_timing=True)
event.record()
stream = torch.cuda.Stream()
stream.wait_event(event)
assert event.elapsed_time(event) == 1.5 and not stream.query() and torch.cuda.current_stream().query()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    z = torch.softmax(torch.empty(4, 2000, device="cuda"), 1)
graph.replay()
graph.reset()
try:
    torch.empty(1 << 30, device="cuda")
except torch.OutOfMemoryError:
    print("out of memory")
try:
    torch.empty(7 * 256, device="cuda").neg_()
except RuntimeError as e:
    print(e)
torch.cuda.empty_cache()
print(library.fake_log().decode())
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("the library is made by a C compiler, and there is none")
    made = tmp_path_factory.mktemp("fake") / "libfake.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", made, FAKE], check=True)
    return made


def run(library, program, lacks="", **more):
    env = {**os.environ, "FLAMBEAU_CUDA": "nvidia", "FAKE_LACKS": lacks, **more}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program, library], env=env, capture_output=True, text=True, timeout=100
    )


def test_how_libcuda_is_called(library):
    found = run(library, PROGRAM)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert (
        lines[0] == "out of memory"
        and lines[1] == "CUDA error: an illegal memory access was encountered (an illegal address)"
    )
    record = lines[2:]
    assert "module of sm_90" in record and "module of another architecture" not in record
    assert "launch 1 1 1 of 256 1 1, 0, 0, first element 3" in record
    launches = [line.split(",")[0] for line in record if line.startswith("launch")]
    assert "launch 4 1 1 of 256 1 1" in launches  # a row a block
    begin = record.index("begin 1")
    assert record.index("replay") > begin and record.index("destroyed") > record.index("replay")
    assert record.index("wait") > record.index("record") and "trim 0" in record


def test_what_is_missing_is_said(tmp_path):
    env = {**os.environ, "FLAMBEAU_CUDA": "nvidia"}
    program = "import sys; sys.modules['cuda'] = None; import flambeau; flambeau.ones(1, device='cuda')"
    found = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100)
    assert "pip install 'flambeau[cuda]'" in found.stderr.splitlines()[-1]


BEGIN = (
    PROGRAM[: PROGRAM.index("import warnings")]
    + """
import warnings
warnings.simplefilter("ignore")
"""
)


def test_a_system_without_memory_pools(library):
    program = """
x = torch.tensor([3.0, 1, 2]).cuda()
assert x.cpu().tolist() == [3, 1, 2] and torch.cuda.memory_allocated() == 0
torch.cuda.reset_peak_memory_stats()
torch.cuda.empty_cache()
del x
print(library.fake_log().decode())
"""
    found = run(library, BEGIN + program, "pool")
    assert found.returncode == 0, found.stderr
    assert (
        found.stdout.split("\n")[0] == "taken"
        and "synchronize\ngiven back" in found.stdout
        and "trim" not in found.stdout
    )


def test_pinned_memory(library):
    """It is let go before it is freed, and copies from it are waited for: the program may write there."""
    program = """
x = torch.ones(3)
x.cuda()
assert "waited" not in library.fake_log().decode()
p = x.pin_memory()
assert p.is_pinned() and p.pin_memory() is p
begin = len(library.fake_log())
y = p.cuda(non_blocking=True)
p.zero_()
assert y.cpu().tolist() == [1, 1, 1]
del p
print(library.fake_log()[begin - 10:].decode())
"""
    found = run(library, BEGIN + program)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines.index("pinned 12") < lines.index("stream waited for") < lines.index("let go")


def test_a_device_that_cannot_be_had(library):
    found = run(library, BEGIN + "torch.ones(3).cuda()", "context")
    assert "CUDA out of memory" in found.stderr.splitlines()[-1]


FAKE_NVJITLINK = """
from types import SimpleNamespace
from flambeau.inductor.machine import nvjitlink
made = []
nvjitlink._library = lambda: SimpleNamespace(
    create=lambda n, options: made.append(options) or 1, InputType=SimpleNamespace(PTX=1), add_data=lambda handle, kind, data, n, name: None,
    complete=lambda handle: None, get_linked_cubin_size=lambda handle: 8, get_linked_cubin=lambda handle, to: to.__setitem__(slice(8), b"cubin..."),
    destroy=lambda handle: None)
y = torch.ones(3, device="cuda") + 1
assert made[0] == ["-arch=sm_90"], made
print(library.fake_log().decode(), nvjitlink.usable())
"""


@pytest.mark.parametrize("lacks, usable", [("", True), ("cubin", False)])
def test_what_nvjitlink_made_is_loaded_where_the_driver_takes_it(library, lacks, usable, tmp_path):
    found = run(library, BEGIN + FAKE_NVJITLINK, lacks, FLAMBEAU_CACHE_DIR=str(tmp_path))
    assert found.returncode == 0, found.stderr
    assert ("cubin\n" in found.stdout) == usable and ("module of sm_90" in found.stdout) != usable
    assert found.stdout.split()[-1] == str(usable) and "launch" in found.stdout


def test_a_driver_that_takes_no_kernel(library):
    """Operators go through the host, and who asks is told why."""
    program = """
from flambeau.inductor.device import single
x = torch.tensor([1.0, 2]).cuda()
assert (x + 1).cpu().tolist() == [2, 3]
single.strict = True
(x * 2)
"""
    found = run(library, BEGIN + program, "ptx", TORCH_LOGS="perf_hints")
    assert (
        "its kernel for device 'cuda:0' failed to compile: RuntimeError: CUDA error: device kernel image is invalid"
        in found.stderr
    )
    assert "unsupported toolchain" in found.stderr and "KernelFault" in found.stderr.splitlines()[-1]


BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "cuda.py"


def benchmark(tmp_path, setting, *arguments):
    out = tmp_path / "report.md"
    command = [sys.executable, BENCHMARK, "--out", out, "--json", tmp_path / "found.json", *arguments]
    done = subprocess.run(
        command, env={**os.environ, "FLAMBEAU_CUDA": setting}, capture_output=True, text=True, timeout=280
    )
    return done.returncode, out.read_text()


def test_the_command_for_a_visit(tmp_path):
    code, report = benchmark(
        tmp_path,
        "simulated",
        "--parts",
        "device,times,values",
        "--size",
        "1024",
        "--only",
        "^(sigmoid|_linalg_svd|_softmax)$",
    )
    assert "- reached: a launch from C: " in report and "| product |" in report
    assert code == 0 and "WRONG" not in report and "the rest" not in report
    assert report.count(": right") == 9 and ", 0 don't" in report and "\n0 samples" not in report
    assert json.loads((tmp_path / "found.json").read_text())["values"]


def test_a_report_of_a_part_that_ended():
    """What was found stands in it, and what was to be reached is compared."""
    spec = importlib.util.spec_from_file_location("visit", BENCHMARK)
    visit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(visit)
    gpt, residual = (f"{n}, compiled" for n in list(visit.STEPS)[:2])
    found = {
        "size": 1 << 20,
        "device": [{"what": "name", "said": "a device"}, {"ended": "stopped after 5 s"}],
        "times": [
            {"program": "copies", "seconds": 8e-6},
            {"program": "launch from C", "seconds": 5e-6},
            {"program": "add", "first": 0.1, "seconds": 13e-6},
            {"program": "sum", "first": 0.1, "seconds": 8e-6},
            {"program": "product", "said": "RuntimeError: no"},
        ],
        "steps": [
            {"program": gpt, "first": 0.9, "seconds": 1.0},
            {"program": residual, "first": 2.0, "seconds": 1.0},
            {"ended": "ended with -11: x"},
        ],
        "PyTorch's steps": [
            {"program": gpt, "first": 1, "seconds": 0.9},
            {"program": residual, "first": 1, "seconds": 0.5},
        ],
        "cpu": [{"said": "2 threads: stopped after 4 s"}],
    }
    text = visit.report(found)
    assert (
        "the rest: stopped after 5 s" in text
        and "- steps: ended with -11: x" in text
        and "| product | RuntimeError: no |" in text
    )
    assert "- reached: add: 0.92 of the copies' bandwidth" in text and "- NOT REACHED: sum: 0.50" in text
    assert "- NOT REACHED: a launch from C: 5.00" in text and "- reached: benchmarks/networks.py: GPT" in text
    assert (
        "2.00 of PyTorch's time, 1.2 wanted" in text and text.count("first call") == 4 and "2 threads: stopped" in text
    )


def test_a_visit_without_a_driver(tmp_path):
    code, report = benchmark(tmp_path, "nvidia")
    assert code == 1 and "no device was reached" in report and ("cuda-bindings" in report or "NVIDIA driver" in report)
