"""Forks while other threads import: the child can import the same modules."""

import os
import subprocess
import sys

import pytest

WORLD = """
import os, signal, sys, threading, time
signal.alarm(60)
import flambeau
from flambeau.base import forks

def child():
    signal.alarm(20)  # the parent's isn't the child's
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
        held.set(); time.sleep(0.4)
held = threading.Event()
threads = [threading.Thread(target=holds), threading.Thread(target=lambda: (time.sleep(0.1), __import__("slow")))]
for t in threads:
    t.start()
held.wait()
assert forked() == 0
""",
    "needs the lock that the fork takes": """
import builtins
builtins.lock = forks.held_while_forking
t = threading.Thread(target=lambda: __import__("slow"))
t.start(); time.sleep(0.05)
assert forked() == 0
""",
    "makes no headway": """
import builtins
builtins.stuck = threading.Event()
forks.PATIENCE = 0.1
t = threading.Thread(target=lambda: __import__("slow"))
t.start(); time.sleep(0.05)
os.environ["CHILD"] = "1"
assert forked() == 0
stuck.set()
""",
}

SLOW = """
import builtins, os, time
time.sleep(0.5)
if hasattr(builtins, "lock"):
    with builtins.lock:
        time.sleep(0.1)
if hasattr(builtins, "stuck") and "CHILD" not in os.environ:
    builtins.stuck.wait(10)
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
