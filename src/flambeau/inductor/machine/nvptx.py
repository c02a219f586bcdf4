"""Assembly for NVIDIA's devices: LLVM's NVPTX makes it of a kernel's text, without a device or NVIDIA's software."""

from __future__ import annotations

import re

from . import llvm

__all__ = ["ARCHITECTURES", "architecture_of", "assembly", "refused"]

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")

# LLVM ends the process at an intrinsic that the device has no pattern for, so what isn't known to be one is refused before.
_INTRINSICS = re.compile(
    r"@llvm\.(?!nvvm\.|fma\.|fabs\.|sqrt\.|floor\.|ceil\.|trunc\.|rint\.|roundeven\.|nearbyint\.|copysign\.|minnum\.|maxnum\.|minimum\.|maximum\."
    r"|[su](?:min|max)\.|abs\.|ct(?:lz|tz|pop)\.|bswap\.|fsh[lr]\.|bitreverse\.|is\.fpclass\.|[su](?:add|sub|mul)\.(?:sat|with\.overflow)\.|ldexp\.)"
    r"([\w.]+)"
)


_KNOWN = (80, 86, 87, 89, 90, 100, 101, 103, 120, 121)  # of compute capability 8.0 and later; LLVM's


def architecture_of(properties: dict) -> str:
    """The newest architecture whose PTX a device runs. NotImplementedError for devices older than sm_80."""
    wanted = 10 * properties["major"] + properties["minor"]
    usable = [n for n in _KNOWN if n <= wanted]
    if not usable:
        raise NotImplementedError(
            f"a device of compute capability {properties['major']}.{properties['minor']}: 8.0 or later is needed"
        )
    return f"sm_{usable[-1]}"


def refused(text: str) -> list[str]:
    """Functions that a kernel calls and that no device has: of the C library, and LLVM's without a pattern."""
    declared = re.findall(r"^declare [^@]*@(\w+)\(", text, re.MULTILINE)
    return [*declared, *(f"llvm.{name}" for name in dict.fromkeys(_INTRINSICS.findall(text)))]


def assembly(text: str, architecture: str) -> str:
    """PTX of a module. NotImplementedError for a call of what no device has, RuntimeError with LLVM's message for a text that is wrong."""
    missing = refused(text)
    if missing:
        raise NotImplementedError(f"no device has {', '.join(missing)}")
    made = llvm.assembly_for(text, "nvptx64-nvidia-cuda", architecture)
    if ".extern" in made:
        raise NotImplementedError("no device has " + ", ".join(re.findall(r"\.extern .*?(\w+)\s*[(;]", made)))
    return made
