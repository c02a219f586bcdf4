"""``torch.utils.collect_env``: versions, processor, threads, libraries and settings, for bug reports. ``flambeau info`` prints it."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any, NamedTuple

import numpy as np

from .. import _runtime
from ..base import disk
from ..version import __version__, flambeau
from .system_queries import (
    get_clang_version,
    get_cmake_version,
    get_cpu_info,
    get_gcc_version,
    get_gpu_info,
    get_libc_version,
    get_nvidia_driver_version,
    get_os,
    get_pip_packages,
    get_platform,
    get_python_platform,
    run,
    run_and_parse_first_match,
    run_and_read_all,
    run_and_return_first_line,
)

__all__ = [
    "SystemEnv",
    "as_text",
    "environment",
    "get_clang_version",
    "get_cmake_version",
    "get_cpu_info",
    "get_env_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_libc_version",
    "get_nvidia_driver_version",
    "get_os",
    "get_pip_packages",
    "get_platform",
    "get_pretty_env_info",
    "get_python_platform",
    "main",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
    "run_and_return_first_line",
]

# Settings in the environment that change what a program does.
SETTINGS = (
    "FLAMBEAU_",
    "TORCH_",
    "TORCHINDUCTOR_",
    "OMP_",
    "OPENBLAS_",
    "MKL_",
)
PACKAGES = ("numpy", "scipy", "llvmlite", "ml_dtypes", "optree", "bytecode")


class SystemEnv(NamedTuple):
    """What ``get_env_info`` tells, under PyTorch's names; what there is only with other devices is left out."""

    torch_version: str
    python_version: str
    python_platform: str
    cpu_info: str
    is_cuda_available: str
    pip_packages: str


def environment() -> dict[str, Any]:
    """The facts by name; packages and settings are dicts of their own."""
    return {
        "flambeau": flambeau,
        "torch interface": __version__,
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": _runtime.get_num_threads(),
        "packages": {n: _version(n) for n in PACKAGES},
        "blas": _blas(np),
        "cache": disk.root() + (f" (nothing is kept there: {trouble})" if (trouble := disk.trouble()) else ""),
        "settings": {k: v for k, v in sorted(os.environ.items()) if k.startswith(SETTINGS)},
    }


def as_text(facts: dict[str, Any]) -> str:
    """A line a fact."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, dict):
            value = ", ".join(f"{k} {v}" for k, v in value.items()) or "none"
        lines.append(f"{name + ':':<17}{value}")
    return "\n".join(lines)


def get_pretty_env_info() -> str:
    """The environment as text."""
    return as_text(environment())


def get_env_info() -> SystemEnv:
    """The environment as a named tuple."""
    facts = environment()
    packages = "\n".join(f"{name}=={version}" for name, version in facts["packages"].items())
    return SystemEnv(__version__, facts["python"], facts["system"], facts["processor"], "False", packages)


def main() -> None:
    """Print the environment."""
    print(get_pretty_env_info())


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as file:
            return next(
                (line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine()
            )
    except OSError:
        return platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "is missing"


def _blas(np: Any) -> str:
    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


if __name__ == "__main__":
    main()
