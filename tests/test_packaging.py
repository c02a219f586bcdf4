"""What is installed: the base dependencies, the files beside the sources, and the commands that build wheels."""

import fnmatch
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BASE = {"numpy", "scipy", "llvmlite", "ml_dtypes", "optree", "bytecode"}


def test_the_base_installation_is_six_packages():
    assert {re.match(r"[\w-]+", r).group() for r in PROJECT["project"]["dependencies"]} == BASE


def test_files_beside_the_sources_are_installed():
    """Every file of the package that isn't Python is named by package-data (what is built is added by the build)."""
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["flambeau"]
    package = ROOT / "src/flambeau"
    files = [
        str(p.relative_to(package))
        for p in package.rglob("*")
        if p.is_file() and p.suffix not in (".py", ".pyc", ".so")
    ]
    assert len(files) > 20
    assert [n for n in files if not any(fnmatch.fnmatch(n, p.replace("**/", "*")) for p in patterns)] == []


def test_python_versions_agree():
    """pyproject.toml, the workflows and the command for wheels name the same versions of Python."""
    classifiers = PROJECT["project"]["classifiers"]
    versions = [c.rpartition(" ")[2] for c in classifiers if re.search(r":: 3\.\d+$", c)]
    assert PROJECT["project"]["requires-python"] == ">=3.11,<3.14" and versions == ["3.11", "3.12", "3.13"]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == [f"cp{v.replace('.', '')}-*" for v in versions]
    assert f"for version in {' '.join(versions)}" in (ROOT / "tools/wheels.sh").read_text()
    assert str(versions).replace("'", '"') in (ROOT / ".github/workflows/ci.yml").read_text()


def test_free_threaded_builds_are_refused():
    """By setup.py, in front of everything else, and by the headers."""
    code = (
        "import sysconfig; old = sysconfig.get_config_var; "
        "sysconfig.get_config_var = lambda name: 1 if name == 'Py_GIL_DISABLED' else old(name); "
        "import runpy; runpy.run_path('setup.py')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "free-threaded build of CPython" in done.stderr
    assert "#ifdef Py_GIL_DISABLED\n#error" in (ROOT / "csrc/frame/interpreter.h").read_text()


def test_the_shell_commands_are_well_formed():
    for script in (".ci/run", "tools/wheels.sh"):
        done = subprocess.run(["bash", "-n", str(ROOT / script)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
