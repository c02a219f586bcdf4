"""Forks while other threads import: the child can import the same modules."""

import os
import subprocess
import sys

import pytest

WORLD = """
import os, signal, sys, threading, time
signal.alarm(90)
import builtins
import flambeau
from flambeau.base import forks

# Set when the fork is called, and when the module begins to be imported in this process.
builtins.forking, builtins.begun, builtins.parent = threading.Event(), threading.Event(), os.getpid()
sys.addaudithook(lambda event, args: forking.set() if event == "os.fork" else None)

def child():
    signal.alarm(60)  # the parent's isn't the child's
    import slow
    os._exit(0 if slow.value == 3 else 5)

def forked():
    pid = os.fork()
    if pid == 0:
        child()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

PROGRAMS = {
    "begins while the fork waits for its turn": """
def holds():
    with forks.held_while_forking:
        held.set(); begun.wait()
held = threading.Event()
threads = [threading.Thread(target=holds), threading.Thread(target=lambda: (forking.wait(), __import__("slow")))]
for t in threads:
    t.start()
held.wait()
assert forked() == 0
""",
    "needs the lock that the fork takes": """
builtins.lock = forks.held_while_forking
t = threading.Thread(target=lambda: __import__("slow"))
t.start(); begun.wait()
assert forked() == 0
""",
    "makes no headway": """
builtins.stuck = threading.Event()
forks.PATIENCE = 0.1
t = threading.Thread(target=lambda: __import__("slow"))
t.start(); begun.wait()
assert forked() == 0
stuck.set()
""",
}

SLOW = """
import builtins, os, time
builtins.begun.set()
# Long enough for a fork that doesn't wait.
time.sleep(0.5)
if hasattr(builtins, "lock"):
    with builtins.lock:
        time.sleep(0.1)
if hasattr(builtins, "stuck") and os.getpid() == builtins.parent:
    builtins.stuck.wait()
value = 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_import_of_another_thread(name, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    text = WORLD + PROGRAMS[name] + "print('fine')"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True, env=env, timeout=100
    )
    assert done.stdout == "fine\n", done.stderr[-3000:]
