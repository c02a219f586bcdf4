"""``torch.cuda``: devices, streams, events, memory. The simulated device shows what programs get wrong."""

import gc
import os
import signal
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau.base import accelerator
from flambeau.eager import through_host


def test_devices():
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2 and torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1 and str(torch.ones(1, device="cuda").device) == "cuda:1"
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == 0
    torch.cuda.set_device(1)
    assert str(torch.ones(1).cuda().device) == "cuda:1"
    torch.cuda.set_device("cuda:0")
    properties = torch.cuda.get_device_properties(0)
    assert properties.total_memory > 0 and torch.cuda.get_device_name() == properties.name
    assert torch.cuda.get_device_capability() == (properties.major, properties.minor)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(5)


def test_the_order_of_streams(late):
    x = torch.zeros(4, device="cuda")
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        x.fill_(1)
    assert torch.cuda.current_stream() == torch.cuda.default_stream() and not side.query()
    torch.cuda.current_stream().wait_stream(side)
    assert x.tolist() == [1, 1, 1, 1] and side.query()


def test_events(late):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        begin.record()
        x = torch.ones(1 << 10, device="cuda")
        end.record()
    assert not end.query()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) >= 0
    end.wait()
    assert x.sum().item() == 1 << 10
    with pytest.raises(ValueError, match="enable_timing"):
        torch.cuda.Event().elapsed_time(end)


def test_counters():
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.empty(1 << 20, dtype=torch.uint8, device="cuda")
    y = x[:10]
    assert torch.cuda.memory_allocated() == before + (1 << 20)
    del x
    assert torch.cuda.memory_allocated() == before + (1 << 20)
    del y
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before and torch.cuda.max_memory_allocated() >= before + (1 << 20)
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total and torch.cuda.memory_stats()["allocation.all.allocated"] > 0
    assert torch.cuda.memory_stats_as_nested_dict()["reserved_bytes"]["all"]["current"] == torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    assert (
        torch.cuda.memory_reserved() == torch.cuda.memory_allocated()
        and "memory of device 0" in torch.cuda.memory_summary()
    )


def test_fresh_memory_is_nan():
    accelerator.driver().watch_unwritten(0)
    assert torch.empty(8, device="cuda").isnan().all().item()


def program(text):
    environment = {**os.environ, "FLAMBEAU_CUDA": "simulated"}
    return subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60)


def test_the_host_cannot_read_the_devices_memory():
    done = program(
        "import ctypes, flambeau as torch\nx = torch.ones(4, device='cuda')\nprint(x.tolist(), flush=True)\nctypes.string_at(x.data_ptr(), 4)"
    )
    assert "[1.0, 1.0, 1.0, 1.0]" in done.stdout and done.returncode == -signal.SIGSEGV


def test_settings():
    assert program("import flambeau as torch; assert torch.cuda.device_count() == 1").returncode == 0
    environment = {**os.environ, "FLAMBEAU_CUDA": "quantum"}
    text = "import flambeau as torch; torch.ones(2, device='cuda')"
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60)
    assert "FLAMBEAU_CUDA='quantum'" in done.stderr


def test_nothing_is_loaded_where_there_is_no_device():
    environment = {k: v for k, v in os.environ.items() if k != "FLAMBEAU_CUDA"}
    text = (
        "import sys, flambeau as torch\nassert not torch.cuda.is_available() and torch.cuda.device_count() == 0\n"
        "try: torch.ones(2, device='cuda')\nexcept AssertionError as e: print(e)\n"
        "assert 'flambeau._device' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "Torch not compiled with CUDA enabled" in done.stdout


def test_copies_and_zeros_are_the_drivers_work(monkeypatch):
    gone = []
    monkeypatch.setattr(through_host, "observers", [gone.append])
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    y = torch.empty(2, 3, device="cuda")
    gone.clear()
    y.copy_(x)
    x[0].zero_()
    assert not gone and y._version == 1 and x._version == 1
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]] and x.tolist() == [[0, 0, 0], [3, 4, 5]]
    x.t().copy_(y.t())  # in another order: through the host
    x[:, 0].zero_()
    assert x.tolist() == [[0, 1, 2], [0, 4, 5]]
    x[0].copy_(x[1])
    y.copy_(x.to(torch.float64))
    assert x[0].tolist() == [0, 4, 5] and y.tolist() == x.tolist()
    far = torch.empty(2, 3, device="cuda:1")
    far.copy_(x)
    far.untyped_storage().copy_(y.untyped_storage())
    x.zero_()
    assert far.tolist() == y.tolist()
    p = torch.ones(2, device="cuda", requires_grad=True)
    q = p * 1
    q.zero_()
    q.copy_(p.detach() * 3)
    q.sum().backward()
    assert p.grad.tolist() == [0, 0]
