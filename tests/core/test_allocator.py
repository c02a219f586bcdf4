"""The caching allocator behind arrays."""

import contextvars
import ctypes
import mmap
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C

MB = 1 << 20


@pytest.fixture(autouse=True)
def _start_empty():
    _C.use_allocator()
    torch.cpu.empty_cache()
    yield
    torch.cpu.empty_cache()


def test_a_freed_block_serves_the_next_request_of_its_size():
    a = np.empty(3 * MB, np.uint8)
    before = torch.cpu.memory_stats()
    place = a.ctypes.data // 4096
    del a
    b = np.empty(3 * MB + 100, np.uint8)
    after = torch.cpu.memory_stats()
    assert b.ctypes.data // 4096 == place
    assert after["hits"] == before["hits"] + 1 and after["misses"] == before["misses"]


def test_no_array_begins_a_few_lines_after_another_modulo_a_page():
    """Loads of one would wait for stores to the other, whose addresses look the same."""
    held = [np.empty(n, np.uint8) for n in (1 << 15, 100_000, MB, 5 * MB) * 5]
    starts = [a.ctypes.data % 4096 for a in held]
    assert len(set(starts)) == 8 and all(start % 64 == 0 for start in starts)
    assert {(a - b) % 4096 for a in starts for b in starts} <= {512 * k for k in range(8)}
    for k, a in enumerate(held):
        a[:] = k
    assert all((a == k).all() for k, a in enumerate(held))


def test_memory_in_use_is_never_given_away():
    kept = [torch.full((1 << k,), float(k)) for k in range(12, 22)]
    view = kept[5][100:200]
    del kept[5]
    for _ in range(20):
        [torch.zeros(1 << k) for k in range(12, 22)]
    assert all((t == t[0]).all() and t[0] != 0 for t in [*kept, view])


def test_zeros_are_zero_in_used_memory():
    for n in (100, 5000, 40_000, 300_000, 3 * MB, 70 * MB):
        a = np.empty(n, np.uint8)
        a[:] = 255
        del a
        assert not np.zeros(n, np.uint8).any()


@pytest.mark.parametrize("start", [10, 8_000, 40_000, 500_000])
@pytest.mark.parametrize("end", [20, 9_000, 41_000, 600_000, 3_000_000])
def test_resize_keeps_the_content(start, end):
    a = np.arange(start, dtype=np.int32)
    a.resize(end, refcheck=False)
    n = min(start, end)
    assert (a[:n] == np.arange(n)).all() and not a[n:].any()


def test_counters():
    before = torch.cpu.memory_allocated()
    a = torch.empty(8 * MB)
    torch.cpu.reset_peak_memory_stats()
    held = torch.cpu.memory_allocated() - before
    assert 32 * MB <= held <= 37 * MB
    del a
    assert torch.cpu.memory_allocated() == before
    assert torch.cpu.max_memory_allocated() >= before + held
    assert torch.cpu.memory_reserved() >= before + held
    torch.cpu.empty_cache()
    assert torch.cpu.memory_stats()["kept"] == 0


def test_the_limit_holds_and_zero_keeps_nothing():
    old = torch.cpu.set_memory_cache_limit(4 * MB)
    try:
        for n in (1, 2, 3, 5):
            np.empty(n * MB, np.uint8)
            assert torch.cpu.memory_stats()["kept"] <= 4 * MB
        torch.cpu.set_memory_cache_limit(0)
        np.empty(MB, np.uint8)
        assert torch.cpu.memory_stats()["kept"] == 0
    finally:
        torch.cpu.set_memory_cache_limit(old)


def test_compiler_reset_returns_the_memory():
    torch.empty(4 * MB)
    torch.compiler.reset()
    assert torch.cpu.memory_stats()["kept"] == 0


def test_requests_beyond_memory_are_memory_errors():
    with pytest.raises(MemoryError):
        np.empty(1 << 60, np.uint8)
    with pytest.raises(MemoryError):
        np.empty(1 << 46, np.uint8)


def test_a_compiled_call_in_a_fresh_thread_and_context_uses_it():
    fn = torch.compile(lambda x: torch.exp(x) + 1)
    x = torch.zeros(MB)
    names = []

    def work():
        y = fn(x)
        names.append(np._core.multiarray.get_handler_name(y.numpy()))
        x.exp()
        x.exp()
        names.append(np._core.multiarray.get_handler_name(x.exp().numpy()))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    contextvars.Context().run(work)
    assert names == ["flambeau"] * 4


def test_threads_allocate_and_free_side_by_side():
    errors = []

    def work(seed):
        _C.use_allocator()
        rng = np.random.default_rng(seed)
        held = []
        for _ in range(400):
            n = int(rng.integers(1, 200_000))
            held.append((np.full(n, seed, np.int32), n))
            if len(held) > 8:
                a, n = held.pop(int(rng.integers(8)))
                if len(a) != n or not (a == seed).all():
                    errors.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors


def test_a_step_in_steady_state_takes_no_page_faults():
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 256))
    x = torch.randn(512, 256)
    fn = torch.compile(lambda x: model(x).square().mean())

    def step():
        model.zero_grad()
        fn(x).backward()

    for _ in range(4):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        step()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 200


def test_switched_off_by_the_environment_and_a_users_handler_stays():
    code = (
        "import numpy as np, flambeau as torch;"
        "print(np._core.multiarray.get_handler_name(torch.empty(100000).numpy()), torch.cpu.memory_allocated())"
    )
    for env, want in (({"FLAMBEAU_ALLOCATOR": "system"}, "default_allocator 0"), ({}, "flambeau")):
        out = subprocess.run(
            [sys.executable, "-c", code], env={**__import__("os").environ, **env}, capture_output=True, text=True
        )
        assert out.stdout.startswith(want), out


def test_memory_of_the_moment_is_shared_by_native_kernels_of_different_sizes():
    """What a convolution needs while it runs comes from one block for all, and a second pass asks for none."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # how many run at once decides how many blocks there are
    try:
        _check_shared()
    finally:
        torch.set_num_threads(threads)


def _check_shared():
    layers = []
    for side in (24, 28, 34, 40, 48, 56):
        x, w = torch.randn(2, 32, side, side), torch.randn(32, 32, 3, 3, requires_grad=True)
        layers.append((x, w, torch.ones(2, 32, side, side)))

    def kept_after(some):
        torch.cpu.empty_cache()
        for x, w, g in some:
            torch.autograd.grad(torch.nn.functional.conv2d(x, w, padding=1), w, g)
        return torch.cpu.memory_stats()["kept"]

    apart = [kept_after([layer]) for layer in layers]
    together = kept_after(layers)
    # The results' blocks stay, one of each size; they take less than half of what one layer needs.
    assert max(apart) <= together < 0.75 * sum(apart)
    before = torch.cpu.memory_stats()["misses"]
    for x, w, g in layers:
        torch.autograd.grad(torch.nn.functional.conv2d(x, w, padding=1), w, g)
    assert torch.cpu.memory_stats()["misses"] == before


def test_a_larger_block_serves_parts_and_is_whole_again():
    whole = np.empty(14 * MB, np.uint8)
    del whole
    before = torch.cpu.memory_stats()
    parts = [np.full(2 * MB, k, np.uint8) for k in range(4)]
    assert [(p.min(), p.max()) for p in parts] == [(k, k) for k in range(4)]
    del parts[1], parts[1]  # neighbours
    middle = np.full(4 * MB, 9, np.uint8)
    assert [(p.min(), p.max()) for p in (*parts, middle)] == [(0, 0), (3, 3), (9, 9)]
    del parts, middle
    whole = np.empty(14 * MB, np.uint8)
    assert torch.cpu.memory_stats()["misses"] == before["misses"]
    del whole
    assert torch.cpu.memory_stats()["kept"] == before["kept"]


def test_what_is_free_beside_memory_in_use_goes_back_and_comes_again():
    whole = np.empty(16 * MB, np.uint8)
    del whole
    held = np.full(3 * MB, 7, np.uint8)
    torch.cpu.empty_cache()
    assert torch.cpu.memory_stats()["kept"] == 0
    assert (held == 7).all()
    del held
    kept = torch.cpu.memory_stats()["kept"]
    assert 3 * MB <= kept < 8 * MB
    again = np.full(16 * MB, 5, np.uint8)  # what is kept, and new pages beside it
    assert torch.cpu.memory_stats()["kept"] < 8 * MB
    assert again.min() == again.max() == 5
    del again
    torch.cpu.empty_cache()
    zeros = np.zeros(16 * MB, np.uint8)  # where old headers were, too
    assert not zeros.any()


def _run(program):
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


HELD = """
import os, flambeau as torch
layer = torch.nn.Linear(256, 256)
x = torch.randn(256, 256)
f = torch.compile(lambda x: torch.relu(layer(x)))
def step(k):
    f(x * k).sum().backward()
def fails(k):
    inner = f(x * k).detach()
    raise ValueError(k)
held, errors = [], []
for k in range(8):
    y = f(x * k).detach()
    held.append((y[3:90], y[3:90].clone(), (a := y.numpy()[5:80]), a.copy(), memoryview(y.numpy()), bytes(y.numpy())))
    try:
        fails(k)
    except ValueError as e:
        errors.append(e)
    del y, a
    step(k)
def look():
    for view, copy, array, same, memory, content in held:
        assert (view == copy).all() and (array == same).all() and bytes(memory) == content
    for e in errors:
        assert (e.__traceback__.tb_next.tb_frame.f_locals["inner"] == f(x * e.args[0])).all()
look()
if (child := os.fork()) == 0:
    layer.weight.data.add_(0)
    [step(k) for k in range(10)]
    look()
    os._exit(0)
[step(k) for k in range(10)]
assert os.waitpid(child, 0)[1] == 0
look()
"""


def test_what_is_resident_is_little_more_than_what_was_in_use():
    """Steps that take and free blocks of many sizes in a mixed order: nearly all that is free can be joined, and is used again."""
    rng = np.random.default_rng(0)
    sizes = [int(40_000 * 1.3 ** rng.integers(16)) for _ in range(300)]
    leaves = [int(k) for k in rng.integers(12, size=300)]

    def step():
        held = []
        for size, k in zip(sizes, leaves):
            held.append(np.empty(size, np.uint8))
            if len(held) > 12:
                del held[k]

    before = torch.cpu.memory_allocated()
    torch.cpu.reset_peak_memory_stats()
    step()
    most = torch.cpu.max_memory_allocated() - before
    assert torch.cpu.memory_reserved() - before < 1.25 * most
    misses = torch.cpu.memory_stats()["misses"]
    step()
    assert torch.cpu.memory_stats()["misses"] == misses


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
def test_views_arrays_tracebacks_and_forked_children_keep_their_memory():
    _run(HELD)


PRESSURE = """
import resource, flambeau as torch
blocks = [torch.ones(5_000_000) for _ in range(20)]
del blocks
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
kept = torch.cpu.memory_stats()["kept"]
resource.setrlimit(resource.RLIMIT_AS, (used + 50_000_000, resource.RLIM_INFINITY))
big = torch.ones(90_000_000)  # larger than any kept block, and than what is left of the limit
print(kept, torch.cpu.memory_stats()["released"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm")
def test_what_is_kept_goes_back_when_the_system_refuses():
    kept, released = map(int, _run(PRESSURE).split())
    assert kept >= 400_000_000 and released >= 350_000_000


def test_locked_pages_come_back_as_zeros():
    """The system doesn't take pages back that the program has locked; fresh memory is zeros all the same."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = torch.ones(1_000_000)  # what is in use keeps the mapping
    old = torch.full((25_000_000,), 7.0)
    start = old.data_ptr() + (8 << 20) & ~(mmap.PAGESIZE - 1)
    if libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(1 << 20)):
        pytest.skip(f"this process may not lock memory: {os.strerror(ctypes.get_errno())}")
    del old
    _C.memory_release()
    fresh = [np.zeros(25_000_000, np.float32) for _ in range(4)]
    (again,) = (a for a in fresh if a.ctypes.data <= start < a.ctypes.data + a.nbytes)
    assert np.count_nonzero(again) == 0 and before.data_ptr() < start
