"""explain, bench, info and cache: what they print, their exit statuses, and what they refuse; the report behind explain."""

import json
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.cli import main

SOURCE = Path(torch.__file__).parents[1]  # of the flambeau that is tested: installed, or a checkout

SCRIPT = """
import flambeau as torch


def scores(x, w):
    y = x @ w
    return torch.softmax(y + 1, -1)


def broken(x, w):
    y = x.exp()
    if y.sum().item() > 0:
        y = y * 2
    return y


example_inputs = (torch.ones(8, 16), torch.ones(16, 4))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_explain(script, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["explain", f"{script}:scores", "--html", str(page), "--calls", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (
        data["graphs"] == 1
        and data["breaks"] == []
        and {x["kind"] for x in data["launches"]} & {"product", "rows", "kernel"}
    )
    text = page.read_text()
    assert "y = x @ w" in text and "What to change" in text and "for i in parallel" in text and "<svg" in text
    assert "http://" not in text and "https://" not in text and "src=" not in text  # nothing is loaded


def test_explain_tells_breaks_and_guards_when_asked(script, capsys):
    assert main(["explain", f"{script}:broken", "--calls", "1"]) == 0
    out = capsys.readouterr().out
    assert ".item() of a tensor asks for its elements" in out and f"{script}:12" in out and "guards of" not in out
    assert main(["explain", f"{script}:scores", "--calls", "1", "--guards"]) == 0
    out = capsys.readouterr().out
    assert "guards of scores" in out and re.search(r"\d ms +[\d.]+ MB  \w+: .*script.py:\d+", out), out


def test_explain_knows_the_lines_of_what_was_compiled_before(script, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    other = tmp_path / "other.py"
    other.write_text("# a line more\n" + SCRIPT)
    for path, line in ((script, 7), (script, 7), (str(other), 8)):
        assert main(["explain", f"{path}:scores", "--calls", "1"]) == 0
        assert f"{os.path.basename(path)}:{line}" in capsys.readouterr().out


def test_bench(script, capsys):
    assert main(["bench", f"{script}:scores", "--pairs", "3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pairs"] == 3 and data["quartiles"][0] <= data["quartiles"][1]
    assert data["speed_up"] == data["plain_seconds"] / data["compiled_seconds"]  # what is shown agrees


@pytest.mark.parametrize("command", ["bench --pairs 2", "explain --calls 1"])
def test_json_is_all_that_is_printed(command, script, tmp_path):
    """What the program prints, from Python or below it, goes to standard error."""
    prints = (
        'import os\nprint("at import")\n'
        + SCRIPT
        + '\n\ndef loud(*args):\n    os.write(1, b"raw")\n    print("in it")\n    return scores(*args)\n'
    )
    Path(script).write_text(prints)
    done = subprocess.run(
        [sys.executable, "-m", "flambeau.cli", *command.split(), "--json", f"{script}:loud"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and json.loads(done.stdout)["function"] == "loud", done.stderr
    assert all(text in done.stderr for text in ("at import", "raw", "in it"))


def test_info(capsys):
    assert main(["info", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["threads"] >= 1 and data["packages"]["numpy"][0].isdigit() and data["cache"]
    assert main(["info"]) == 0 and "processor:" in capsys.readouterr().out


def test_cache(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    from flambeau.base import disk

    disk.write_entry("test/one", b"content")
    assert main(["cache", "size", "--json"]) == 0 and json.loads(capsys.readouterr().out)["entries"] == 1
    (tmp_path / "cache" / "entries" / "swept").write_bytes(b"1")  # when the cache was last swept: no entry
    disk.link_entry("test/other", "test/one")  # another name of one
    assert main(["cache", "verify"]) == 0
    (path,) = (tmp_path / "cache").rglob("one")
    path.write_bytes(b"damaged")
    capsys.readouterr()
    assert main(["cache", "verify", "--json"]) == 1 and json.loads(capsys.readouterr().out)["damaged"] == [str(path)]
    assert main(["cache", "clear"]) == 0 and not path.exists()


REFUSED = [
    (["explain", "nothing"], "expected script.py:function"),
    (["explain", "/no/such.py:f"], "no such file: /no/such.py"),
    (["bench", "{script}:absent"], "has no function 'absent'; it has: broken, scores"),
    (["explain", "{script}:example_inputs"], "is a tuple, not a function"),
    (
        ["explain", "{script}:scores", "--calls", "1", "--html", "/no/such/folder/x.html"],
        "No such file or directory: /no/such",
    ),
]


@pytest.mark.parametrize("arguments, text", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refuses(arguments, text, script, capsys):
    assert main([a.replace("{script}", script) for a in arguments]) == 2
    assert text in capsys.readouterr().err


# A program's text, what the last line on stderr is, the exit status: the traceback begins in the program.
FAULTY = [
    ("def f(", "SyntaxError", 1),
    ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'", 1),
    ("def f(x): return x.nope()\nexample_inputs = (1,)", "AttributeError: 'int' object has no attribute 'nope'", 1),
    ("def f(x): return x", "give the arguments as a tuple `example_inputs` in the script", 2),
    ("def f(x): return x\nexample_inputs = 5", "is a int, not a tuple of arguments", 2),
]


@pytest.mark.parametrize("command", ["explain", "bench"])
@pytest.mark.parametrize("text, last, status", FAULTY, ids=[row[1][:20] for row in FAULTY])
def test_a_faulty_program(command, text, last, status, tmp_path, capsys):
    path = tmp_path / "faulty.py"
    path.write_text(text)
    assert main([command, f"{path}:f"]) == status
    told = capsys.readouterr().err
    assert last in told.splitlines()[-1] and "flambeau/" not in told and len(told.splitlines()) <= 6


# What is wrong with the machine -> (command, exit status, what is told). {folder}: an empty one, {python}: this interpreter
COMMAND = "{python} -m flambeau.cli"
MACHINES = {
    "stdout is full, a buffer before it": (f"unset PYTHONUNBUFFERED; {COMMAND} info > /dev/full", 2,
                                           "flambeau info: error: No space left on device"),
    "help, stdout is full": (f"unset PYTHONUNBUFFERED; {COMMAND} --help > /dev/full", 2, "the output can't be written: No space left on device"),
    "stdout is full, every write goes there": (f"PYTHONUNBUFFERED=1 {COMMAND} info > /dev/full", 2,
                                               "flambeau info: error: No space left on device"),
    "the version, stdout is full": (f"PYTHONUNBUFFERED=1 {COMMAND} --version > /dev/full", 2, "the output can't be written"),
    "nobody reads": (f"set -o pipefail; {COMMAND} info | true", 141, ""),
    "no output": (f"{COMMAND} info >&- 2>&-", 0, ""),
    "a full disk": (f"{COMMAND} explain s.py:scores --calls 1 --html /dev/full >/dev/null", 2, "error: No space left on device"),
    "torch.save": ("{python} -c 'import flambeau as t; t.save(t.ones(9), \"/dev/full\")'", 1, "OSError: [Errno 28] No space left on device"),
    "the cache is a file": ("touch c; FLAMBEAU_CACHE_DIR=$PWD/c {python} s.py && FLAMBEAU_CACHE_DIR=$PWD/c " + COMMAND + " cache", 2,
                            "Not a directory"),
    "the cache can't be made": ("FLAMBEAU_CACHE_DIR=/proc/none {python} s.py", 0, "/proc/none can't be written (No such file or directory)"),
    "no room for the cache": ("ulimit -f 0; {python} s.py", 0, "can't be written (File too large)"),
    "one core": ("taskset -c 0 {python} s.py", 0, ""),
    "little memory": ("export OMP_NUM_THREADS=2 OPENBLAS_NUM_THREADS=2; ulimit -v 1500000; {python} s.py", 0, ""),
    "no terminal and nothing open": ("{python} s.py <&- >&- 2>&-", 0, ""),
    "no file": (f"{COMMAND} run none.py", 2, "can't open file"),
    "no module": (f"{COMMAND} run -m none", 1, "No module named none"),
}  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_a_poor_machine(name, script, tmp_path):
    command, status, told = MACHINES[name]
    (tmp_path / "s.py").write_text(SCRIPT + "\ntorch.compile(scores)(*example_inputs)\n")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(
        ["bash", "-c", command.replace("{python}", f"'{sys.executable}'")],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert (told in done.stderr.splitlines()[-1]) if told else not done.stderr, done.stderr
    assert done.stderr.count("can't be written") <= 1


def test_an_interrupted_bench_tells_what_it_has(script, monkeypatch, capsys):
    from flambeau import commands

    times = iter(range(1000))

    def clock():
        now = next(times)
        if now == 8:
            raise KeyboardInterrupt
        return float(now)

    monkeypatch.setattr(commands, "time", types.SimpleNamespace(perf_counter=clock))
    assert main(["bench", f"{script}:scores", "--pairs", "50"]) == 130
    told = capsys.readouterr()
    assert "medians of 1 pairs" in told.out and told.err == "interrupted: 1 of 50 pairs were timed\n"


def test_interrupted_before_there_is_a_result(script, monkeypatch, capsys):
    monkeypatch.setattr("flambeau.commands._target", lambda text: (_ for _ in ()).throw(KeyboardInterrupt))
    assert main(["bench", f"{script}:scores"]) == 130 and capsys.readouterr().err == "interrupted\n"


def test_the_package_runs_as_a_module(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "flambeau", "--version"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr and re.fullmatch(r"flambeau \d+\.\d+\.\d+\n", done.stdout)


def test_help_needs_nothing_of_the_package():
    """`--help` of every command answers before the package could be loaded."""
    commands = ["", "bench", "cache", "demo", "explain", "info", "launch", "plan", "run", "shim"]
    code = (
        "import sys\nfrom flambeau_command import main\n"
        f"for command in {commands}:\n"
        "    try:\n        main([*command.split(), '--help'])\n"
        "    except SystemExit as leaving:\n        assert leaving.code == 0, command\n"
        "assert not {'flambeau', 'numpy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.count("usage: flambeau") == len(commands), done.stderr


def test_recompilations_are_at_their_function():
    def f(x, k):
        return x * k

    made = torch.compiler.report(lambda x: [f(x, k) for k in (2, 3)][0], calls=1)(torch.ones(4))
    assert "what the compiler did" in made.html() and made.compiled > 0


BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_in_a_browser(width, tmp_path):
    made = torch.compiler.report(lambda x, w: torch.softmax(x @ w, -1), calls=1)(torch.ones(8, 16), torch.ones(16, 4))
    page = made.save(tmp_path / "report.html")
    script = "<script>document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide'</script></html>"
    page.write_text(page.read_text().replace("</html>", script))
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    done = subprocess.run(
        [BROWSER, *flags, f"--window-size={width},900", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=90, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "<title>fits</title>" in done.stdout and 'class="graph"' in done.stdout


def test_collect_env_tells_what_info_prints(capsys):
    from flambeau.utils import collect_env

    facts = collect_env.environment()
    assert collect_env.get_pretty_env_info() == collect_env.as_text(facts)
    info = collect_env.get_env_info()
    assert info.torch_version == torch.__version__ and "numpy==" in info.pip_packages


def test_collect_env_asks_the_system():
    from flambeau.utils import collect_env

    assert collect_env.run("echo hi; echo oh >&2; exit 3") == (3, "hi", "oh")
    assert collect_env.run(["echo", "a b"]) == (0, "a b", "")
    assert collect_env.run_and_read_all(collect_env.run, "false") is None
    assert collect_env.run_and_parse_first_match(collect_env.run, "echo hi 3", r"hi (\d)") == "3"
    assert collect_env.run_and_return_first_line(collect_env.run, "printf '1\\n2'") == "1"

    # A query asks nothing but the function that it is handed.
    def answer(command):
        said = {"lscpu": "CPU(s): 2", "gcc --version": "gcc (Debian) 12.2.0", "nvidia-smi -L": "GPU 0: H (UUID: GPU-1)"}
        return (0, said[str(command)], "") if str(command) in said else (127, "", "not found")

    assert collect_env.get_cpu_info(answer) == "CPU(s): 2"
    assert collect_env.get_gcc_version(answer) == "(Debian) 12.2.0"
    assert collect_env.get_gpu_info(answer) == "GPU 0: H"
    assert collect_env.get_nvidia_driver_version(answer) is None
    assert collect_env.get_clang_version(answer) is collect_env.get_cmake_version(answer) is None
    assert collect_env.get_pip_packages(answer) == ("pip3", None)
    assert collect_env.get_cpu_info(lambda command: (1, "", "no lscpu")) == "no lscpu"
