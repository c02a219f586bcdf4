"""``flambeau run``, the import hook and the shim: what a program sees."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.children import Parent

import flambeau

SOURCE = Path(flambeau.__file__).parents[1]  # of the flambeau that is tested: installed, or a checkout


def run(*arguments, cwd, check=True, python=sys.executable):
    env = {**os.environ, "PYTHONPATH": str(SOURCE), "XDG_CACHE_HOME": str(cwd / "cache")}
    done = subprocess.run([python, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=100)
    if check:
        assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def parent():
    with Parent(PYTHONPATH=str(SOURCE)) as parent:
        yield parent


@pytest.fixture
def command(parent, tmp_path):
    """``flambeau ARGUMENTS`` in the folder of the test."""
    return lambda *given: parent.run(
        "-m", "flambeau.cli", *given, cwd=tmp_path, folder=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache")
    )


def script(folder, text, name="program.py"):
    (folder / name).write_text(textwrap.dedent(text))
    return name


def test_a_program_is_run_as_python_would(tmp_path):
    name = script(
        tmp_path,
        """
        import importlib.metadata, importlib.util, subprocess, sys
        import multiprocessing
        import torch, torch.nn.functional as F
        from torch import nn

        def child(n, queue):
            import torch
            queue.put((torch.ones(n).sum().item(), torch.__version__))

        if __name__ == "__main__":
            import flambeau, flambeau.nn.functional
            assert torch is flambeau and F is flambeau.nn.functional
            assert sys.argv == ["program.py", "-x", "--missing"], sys.argv
            assert sys.modules["__main__"].child is child and __file__ == "program.py"
            assert importlib.util.find_spec("torch") is not None
            assert importlib.metadata.version("torch") == torch.__version__ and torch.__version__ >= (2, 13)
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=child, args=(3, queue))
            process.start()
            print(queue.get(timeout=60)[0])
            process.join()
            print(subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True).stdout)
        """,
    )
    out = run("-m", "flambeau.cli", "run", name, "-x", "--missing", cwd=tmp_path).stdout
    assert out.startswith("3.0\n2.13.0+flambeau")


def test_module_and_traceback(tmp_path, command):
    script(tmp_path, "import sys, torch\nprint(sys.argv[1:], __name__)\ntorch.ones(2)[5]\n")
    done = command("run", "-m", "program", "a")
    assert done.returncode == 1 and done.stdout == "['a'] __main__\n" and "IndexError" in done.stderr
    done = command("run", "program.py", "a")
    first = done.stderr.splitlines()[1]
    assert done.returncode == 1 and first == '  File "program.py", line 3, in <module>'
    script(tmp_path, "import sys\nsys.exit(7)\n")
    assert command("run", "program.py").returncode == 7
    done = command("run", "absent.py")
    assert done.returncode == 2 and "can't open file" in done.stderr


@pytest.mark.parametrize(
    "options, said",
    [
        ((), "a script is required, or -m and a module"),
        (("--missing",), "a script is required, or -m and a module"),
        (("-m",), "-m needs the name of a module"),
    ],
)
def test_without_a_program(command, options, said):
    done = command("run", *options)
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == f"flambeau run: error: {said}"


def test_missing_names_are_listed_with_their_place(tmp_path, command):
    script(
        tmp_path,
        """
        import torch
        hasattr(torch, "no_such_function")
        hasattr(torch.ones(2), "no_such_method")
        try:
            import torch.no_such_module
        except ImportError:
            pass
        import importlib
        try:
            importlib.import_module("torch.nn.no_such_module")
        except ImportError:
            pass
        torch.einsum("i,i", torch.ones(2), torch.ones(2))
        from torch.nn import NoSuchLayer
        """,
    )
    done = command("run", "--missing", "program.py")
    rows = {line.split()[0]: line.split()[-1] for line in done.stderr.splitlines() if line.startswith("  torch.")}
    assert rows == {
        "torch.no_such_function": "program.py:3",
        "torch.Tensor.no_such_method": "program.py:4",
        "torch.no_such_module": "program.py:6",
        "torch.nn.no_such_module": "program.py:11",
        "torch.nn.NoSuchLayer": "program.py:15",
    }


def test_a_missing_name_says_what_is_near():
    import flambeau

    with pytest.raises(AttributeError, match="module 'torch' has no attribute 'softmx'.*'softmax'"):
        _ = flambeau.softmx


def test_shim(tmp_path):
    """Installed in an environment of its own, refused outside of one and beside PyTorch, removed without a trace."""
    run("-m", "venv", "--without-pip", "env", cwd=tmp_path)
    python = str(tmp_path / "env" / "bin" / "python")
    packages = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    import numpy

    (packages / "requirements.pth").write_text(f"{Path(numpy.__file__).parents[1]}\n")
    fl = ["-m", "flambeau.cli", "shim"]
    try:
        import importlib.metadata

        importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        pytest.skip("PyTorch is installed beside NumPy: the shim is refused, as it should be")
    assert "not installed" in run(*fl, "status", cwd=tmp_path, python=python).stdout
    run(*fl, "install", cwd=tmp_path, python=python)
    assert "import torch is flambeau" in run(*fl, "status", cwd=tmp_path, python=python).stdout
    code = (
        "import torch, torch.nn, flambeau, importlib.metadata as m; print(torch is flambeau, m.version('torch') == torch.__version__)\n"
        "import functorch, functorch.compile; print(functorch is torch.functorch, functorch.vmap is torch.vmap)"
    )
    assert run("-c", code, cwd=tmp_path, python=python).stdout == "True True\nTrue True\n"
    run(*fl, "install", cwd=tmp_path, python=python)
    run(*fl, "remove", cwd=tmp_path, python=python)
    assert not [*packages.glob("torch*"), *packages.glob("functorch*")]
    (packages / "torch-2.13.0.dist-info").mkdir()
    (packages / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    done = run(*fl, "install", cwd=tmp_path, python=python, check=False)
    assert done.returncode == 2 and "PyTorch is installed in" in done.stderr


def test_the_shim_needs_a_virtual_environment(monkeypatch, capsys):
    from flambeau.cli import main

    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert main(["shim", "install"]) == 2 and "virtual environment only" in capsys.readouterr().err
