"""The driver for NVIDIA's devices (csrc/device/nvidia.c) on a library that has libcuda's functions and keeps a record: how it is called, not what a GPU does."""

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


@pytest.mark.skipif(shutil.which("cc") is None, reason="the library is made by a C compiler, and there is none")
def test_how_libcuda_is_called(tmp_path):
    library = tmp_path / "libfake.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, FAKE], check=True)
    env = {**os.environ, "FLAMBEAU_CUDA": "nvidia"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, library], env=env, capture_output=True, text=True, timeout=100
    )
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
