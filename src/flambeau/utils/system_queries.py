"""What ``torch.utils.collect_env`` asks the system: programs that are run, and what is read from their output.

A query takes the function that runs a program, so that callers can put another in its place.
"""

from __future__ import annotations

import locale
import platform
import re
import subprocess
import sys
from collections.abc import Callable

__all__ = [
    "get_clang_version",
    "get_cmake_version",
    "get_cpu_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_libc_version",
    "get_nvidia_driver_version",
    "get_os",
    "get_pip_packages",
    "get_platform",
    "get_python_platform",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]

Run = Callable[[str | list[str]], tuple[int, str, str]]

# Packages that a bug report names, as parts of lines of ``pip list``.
PIP_PATTERNS = ("torch", "numpy", "mypy", "flake8", "optree", "onnx", "llvmlite", "flambeau")


def run(command: str | list[str]) -> tuple[int, str, str]:
    """(exit status, output, errors) of a command; a string is run by the shell. The texts have no spaces at their ends."""
    done = subprocess.run(command, capture_output=True, shell=isinstance(command, str), check=False)
    encoding = locale.getpreferredencoding()
    return done.returncode, done.stdout.decode(encoding).strip(), done.stderr.decode(encoding).strip()


def run_and_read_all(run_lambda: Run, command: str | list[str]) -> str | None:
    """The output of a command, None where it failed."""
    status, output, _ = run_lambda(command)
    return output if status == 0 else None


def run_and_parse_first_match(run_lambda: Run, command: str | list[str], regex: str) -> str | None:
    """The first group of the first match in the output of a command, None where there is none."""
    output = run_and_read_all(run_lambda, command)
    found = re.search(regex, output) if output is not None else None
    return found.group(1) if found else None


def run_and_return_first_line(run_lambda: Run, command: str | list[str]) -> str | None:
    """The first line of the output of a command, None where it failed."""
    output = run_and_read_all(run_lambda, command)
    return output.split("\n")[0] if output is not None else None


def get_platform() -> str:
    """The system's short name: "linux"."""
    return "linux" if sys.platform.startswith("linux") else sys.platform


def get_python_platform() -> str:
    """The platform's name as Python has it."""
    return platform.platform()


def get_os(run_lambda: Run) -> str:
    """Name, version and processor of the system."""
    name = run_and_parse_first_match(run_lambda, "cat /etc/*-release", r'PRETTY_NAME="(.*)"')
    return f"{name or get_platform()} ({platform.machine()})"


def get_libc_version() -> str:
    """Name and version of the C library."""
    return "-".join(platform.libc_ver()) if get_platform() == "linux" else "N/A"


def get_gcc_version(run_lambda: Run) -> str | None:
    """What ``gcc --version`` says after its name, None without a gcc."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda: Run) -> str | None:
    """What ``clang --version`` says after its name, None without a clang."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda: Run) -> str | None:
    """What ``cmake --version`` says after its name, None without a cmake."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_cpu_info(run_lambda: Run) -> str:
    """The processor as ``lscpu`` describes it, or the reason why it could not."""
    status, output, errors = run_lambda("lscpu")
    return output if status == 0 else errors


def get_gpu_info(run_lambda: Run) -> str | None:
    """The GPUs that ``nvidia-smi`` lists, None without one."""
    output = run_and_read_all(run_lambda, "nvidia-smi -L")
    return re.sub(r" \(UUID: .+?\)", "", output) if output is not None else None


def get_nvidia_driver_version(run_lambda: Run) -> str | None:
    """The driver's version that ``nvidia-smi`` tells, None without one."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_pip_packages(run_lambda: Run, patterns: set[str] | tuple[str, ...] | None = None) -> tuple[str, str | None]:
    """("pip3", the lines of ``pip list`` that hold one of ``patterns``)."""
    listed = run_and_read_all(run_lambda, [sys.executable, "-mpip", "list", "--format=freeze"])
    if listed is None:
        return "pip3", None
    wanted = PIP_PATTERNS if patterns is None else patterns
    return "pip3", "\n".join(line for line in listed.splitlines() if any(name in line for name in wanted))
