"""Programs in children of one process that has imported flambeau and compiled once: a start alone takes a second, which most programs aren't about."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

# A child goes on behind the loop: it ends as a program of its own does.
PARENT = """
import json, os, runpy, sys
import flambeau as torch
x = torch.ones(2, 2, requires_grad=True)
torch.compile(lambda x: torch.nn.functional.relu(x @ x).sum())(x).backward()
torch.optim.Adam([x]).step()
del x
torch._dynamo.reset()
for line in sys.stdin:
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
for number, (path, flags) in enumerate(((os.devnull, os.O_RDONLY), (asked["out"], os.O_WRONLY), (asked["err"], os.O_WRONLY))):
    opened = os.open(path, flags | (os.O_CREAT if number else 0))
    os.dup2(opened, number)
    os.close(opened)
os.chdir(asked["cwd"])
os.environ.update(asked["env"])
sys.argv = asked["argv"]
torch.seed()
if sys.argv[0] == "-m":
    sys.argv = sys.argv[1:]
    sys.path[0] = asked["cwd"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Parent:
    """``with Parent("-W", "error") as parent: parent.run("program.py", "--flag", cwd=folder)``: as subprocess.run with captured text answers; or
    ``run("-m", "module", ...)``."""

    def __init__(self, *options, **env):
        command = [sys.executable, *options, "-c", PARENT]
        env = {**os.environ, **env}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.number = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.communicate()

    def run(self, *argv, cwd, folder, **env):
        """``folder`` is where the output is kept."""
        self.number += 1
        out, err = (folder / f"{name}{self.number}" for name in ("out", "err"))
        asked = {"argv": [str(a) for a in argv], "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        status = self.process.stdout.readline()
        assert status, "the parent has ended"
        return SimpleNamespace(returncode=int(status), stdout=out.read_text(), stderr=err.read_text())
