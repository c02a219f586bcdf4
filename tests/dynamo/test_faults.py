"""What may go wrong around capture: user code that takes apart what a guard is reading, hooks of debuggers, signals, no stack, no memory. The
interpreter doesn't crash, and the next call is right."""

import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

import flambeau as torch
from flambeau.compiler import compile

# Each ``f`` reads something through code of the user's; ``hook`` is what that code does when it is asked for the second time.
READS = {
    "a key's __eq__ empties the dict": """
class K:
    def __init__(self, n): self.n = n
    def __hash__(self): return self.n
    def __eq__(self, o):
        run_hook()
        return self.n == o.n
d = {K(1): torch.ones(1), K(2): 3}
def f(x): return x + d[K(1)]
def hook(): d.clear()
""",
    "__getattribute__ empties the object": """
class O:
    def __getattribute__(self, n):
        run_hook()
        return object.__getattribute__(self, n)
o = O()
o.a, o.l = torch.ones(1), [1, [2]]
def f(x): return x + o.a + o.l[1][0]
def hook(): object.__getattribute__(o, "__dict__").clear()
""",
    "__getattr__ deletes its object": """
class P:
    def __getattr__(self, n):
        run_hook()
        return [3, n]
p = P()
p.q = P()
def f(x): return x + p.q.zz[0]
def hook():
    p.__dict__.clear()
    globals().pop("p")
""",
    "a descriptor leaves its class": """
class D:
    def __get__(self, o, t=None):
        run_hook()
        return [3]
    def __set__(self, o, v): pass
class C:
    d, l = D(), [1, [2]]
c = C()
def f(x): return x + c.d[0] + c.l[1][0]
def hook():
    del C.d
    C.l = None
""",
    "an element's __eq__ empties the list": """
class E:
    def __eq__(self, o):
        run_hook()
        return True
    __hash__ = None
l = [E(), [1]]
def f(x): return x + 1, l == [E(), [1]], E() == l[0]
def hook(): l.clear()
""",
    "a module's __getattr__ takes the module down": """
import sys, types
m = sys.modules["a_module"] = types.ModuleType("a_module")
def ask(n):
    run_hook()
    return [n, 5]
m.__getattr__ = ask
def f(x):
    import a_module
    return x + a_module.foo[1]
def hook():
    sys.modules.pop("a_module")
    m.__dict__.clear()
""",
    "__instancecheck__ of a metaclass changes the class": """
class Meta(type):
    def __getattribute__(cls, n):
        run_hook()
        return type.__getattribute__(cls, n)
    def __instancecheck__(cls, o):
        run_hook()
        return True
class M(metaclass=Meta): k = [1, 2]
def f(x): return x + M.k[0], isinstance(3, M)
def hook(): type.__setattr__(M, "k", None)
""",
    "__del__ of a value that is written over": """
class Del:
    def __del__(self): run_hook()
d = {"a": Del(), "b": [1]}
def f(x):
    d["a"] = 1
    return x + d["b"][0]
def hook(): d.clear()
""",
}
WORLD = """
import gc
import flambeau as torch
asked, hook = 0, None
def run_hook():
    global asked
    asked += 1
    if asked >= WHEN and not armed[0]:
        armed[0] = True
        hook()
        gc.collect()
        [bytearray(64) for _ in range(100)]  # what was freed is written over
"""


@pytest.mark.parametrize("when", [1, 2, 3])
@pytest.mark.parametrize("name", READS)
@pytest.mark.filterwarnings("ignore:a guard failed on the very call")
def test_user_code_takes_apart_what_is_read(name, when):
    def outcomes(C):
        scope = {"__name__": "a_world", "WHEN": 10**9, "armed": [False]}
        exec(WORLD + READS[name], scope)
        g, out = C(scope["f"]), []
        for turn in range(4):
            if turn == 1:
                scope["WHEN"] = scope["asked"] + when
            try:
                out.append(repr(g(torch.ones(1))))
            except Exception as e:
                out.append(type(e).__name__)
        return out, scope["armed"]

    (plain, hooked), (captured, also) = outcomes(lambda f: f), outcomes(lambda f: compile(f, backend="eager"))
    assert captured[0] == plain[0]
    assert captured[-1] == plain[-1] or hooked != also  # the hook waits for so many questions, and guards may ask fewer


def program(x, n):
    y = x * 2
    for i in range(n):
        y = y.sin() + i
    torch._dynamo.graph_break()
    return y * 3


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("hook", [sys.settrace, sys.setprofile, threading.settrace])
def test_under_a_tracer_and_a_profiler(hook, backend):
    x, events = torch.ones(3), []

    def trace(frame, event, arg):
        events.append(event)
        return trace

    want, g, before = program(x, 3), compile(program, backend=backend), sys.gettrace()
    hook(trace)
    try:
        got = [g(x, 3), g(x, 3)]
    finally:
        hook(before if hook is sys.settrace else None)
    assert events or hook is threading.settrace
    assert all(torch.allclose(v, want) for v in [*got, g(x, 3)])


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in CPython 3.12")
def test_under_monitoring():
    x, m, seen = torch.ones(3), sys.monitoring, []
    want, g = program(x, 3), compile(program, backend="eager")
    m.use_tool_id(4, "test")
    try:
        for event in (m.events.LINE, m.events.CALL, m.events.PY_START, m.events.PY_RETURN, m.events.INSTRUCTION):
            m.register_callback(4, event, lambda *a: seen.append(1))
        m.set_events(4, m.events.LINE | m.events.CALL | m.events.PY_START | m.events.PY_RETURN | m.events.INSTRUCTION)
        got = [g(x, 3), g(x, 3)]
    finally:
        m.set_events(4, 0)
        m.free_tool_id(4)
    assert seen and all(torch.allclose(v, want) for v in [*got, g(x, 3)])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("left", range(10, 250, 40))
def test_little_stack_is_left(left):
    x, g = torch.ones(3), compile(program, backend="eager")
    depth, frame, limit = 0, sys._getframe(), sys.getrecursionlimit()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    try:
        sys.setrecursionlimit(depth + left)
        try:
            early = g(x, 3)
        except RecursionError:
            early = None
    finally:
        sys.setrecursionlimit(limit)
    assert early is None or torch.allclose(early, program(x, 3))
    assert torch.allclose(g(x, 3), program(x, 3))


def test_a_program_that_recurses_without_end():
    def f(x):
        return f(x + 1)

    class A:
        pass

    A.__call__ = A()

    def g(x):
        return A()(x)

    counters = torch._dynamo.utils.counters["frames"]
    for fn in (f, g):
        before = counters["total"]
        with pytest.raises(RecursionError):
            compile(fn, backend="eager")(torch.ones(1))
        assert counters["total"] - before < 20  # not once for each frame of the program


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # one may come while a finalizer runs
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_signals_while_compiling(backend):
    x = torch.ones(3)
    want = program(x, 20)

    def interrupt(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    hit = 0
    try:
        for k in range(0, 15, 2):
            torch._dynamo.reset()
            g = compile(program, backend=backend)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.002 * k)
                g(x, 20)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                hit += 1
            assert torch.allclose(g(x, 20), want) and torch.allclose(compile(program, backend=backend)(x, 20), want)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert hit


SHARED = str(pathlib.Path(__file__).parents[1] / "conftest.py")
NO_MEMORY = """
import runpy, sys, warnings, _testcapi
shared = runpy.run_path(sys.argv[4])
import flambeau as torch
warnings.simplefilter("ignore")
def f(x, d):
    y = x * 2
    for v in d["l"]: y = y.sin() + v
    try: y = y + d["k"]
    except KeyError: y = y - 1
    return y * 3
x, d = torch.ones(3), {"l": [1, 2.5]}
want = f(x, d)
shared["remember_compiled_text"]()
torch.compile(f, backend=sys.argv[1])(x, d)
shared["spare_code_objects"]()
refused = 0
for start in range(0, int(sys.argv[2]), int(sys.argv[3])):
    torch._dynamo.reset()
    g = torch.compile(f, backend=sys.argv[1])
    got = None
    try:
        _testcapi.set_nomemory(start, start + 1)
        got = g(x, d)
    except (MemoryError, torch._dynamo.exc.TorchDynamoException):
        refused += 1
    finally:
        _testcapi.remove_mem_hooks()
    assert got is None or torch.allclose(got, want)
    assert torch.allclose(g(x, d), want)
print("refused", refused)
"""


@pytest.mark.parametrize("backend, upto, step", [("eager", 6000, 61), ("inductor", 60_000, 2999)])
def test_no_memory_while_compiling(backend, upto, step):
    pytest.importorskip("_testcapi", reason="this installation of Python comes without its tests")
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", NO_MEMORY, backend, str(upto), str(step), SHARED],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0 and done.stdout.startswith("refused"), done.stdout + done.stderr[-3000:]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_compiler_that_is_being_loaded(backend, monkeypatch):
    """A signal handler may compile while its thread loads the compiler: its graph is interpreted."""
    x = torch.ones(3)
    torch.compile(lambda x: x + 1, backend=backend)(x)
    monkeypatch.setattr(sys.modules["flambeau.aot"].__spec__, "_initializing", True)
    monkeypatch.setattr("flambeau.aot.aot_autograd", None)
    monkeypatch.setattr("flambeau.aot.aot_eager", None)
    assert torch.equal(torch.compile(lambda x: (x * 3).sin(), backend=backend)(x), (x * 3).sin())


def test_a_class_of_c_that_was_never_made_ready():
    buffers = pytest.importorskip("_testbuffer", reason="CPython was installed without its test modules")

    def f(x):
        b = buffers.ndarray([1, 2, 3], (3,), format="i")
        torch._dynamo.graph_break()
        return x + len(b.tolist())

    assert torch.equal(compile(f, backend="eager")(torch.ones(2)), torch.full((2,), 4.0))
