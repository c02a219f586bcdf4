"""Assembly for NVIDIA's devices: LLVM's NVPTX makes it of a kernel's text, without a device or NVIDIA's software."""

from __future__ import annotations

import functools
import re

from ...base.forks import held_while_forking as _lock

__all__ = ["ARCHITECTURES", "assembly", "refused"]

ARCHITECTURES = ("sm_80", "sm_90", "sm_100", "sm_120")

# LLVM ends the process at an intrinsic that the device has no pattern for, so what isn't known to be one is refused before.
_INTRINSICS = re.compile(
    r"@llvm\.(?!nvvm\.|fma\.|fabs\.|sqrt\.|floor\.|ceil\.|trunc\.|rint\.|roundeven\.|nearbyint\.|copysign\.|minnum\.|maxnum\.|minimum\.|maximum\."
    r"|[su](?:min|max)\.|abs\.|ct(?:lz|tz|pop)\.|bswap\.|fsh[lr]\.|bitreverse\.|is\.fpclass\.|[su](?:add|sub|mul)\.(?:sat|with\.overflow)\.|ldexp\.)"
    r"([\w.]+)"
)


@functools.cache
def _binding():
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


@functools.cache
def _machine(architecture: str):
    llvm = _binding()
    return llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu=architecture, opt=3)


def refused(text: str) -> list[str]:
    """Functions that a kernel calls and that no device has: of the C library, and LLVM's without a pattern."""
    declared = re.findall(r"^declare [^@]*@(\w+)\(", text, re.MULTILINE)
    return [*declared, *(f"llvm.{name}" for name in dict.fromkeys(_INTRINSICS.findall(text)))]


def assembly(text: str, architecture: str) -> str:
    """PTX of a module. NotImplementedError for a call of what no device has, RuntimeError with LLVM's message for a text that is wrong."""
    missing = refused(text)
    if missing:
        raise NotImplementedError(f"no device has {', '.join(missing)}")
    llvm = _binding()
    with _lock:
        module = llvm.parse_assembly(text)
        machine = _machine(architecture)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        made = machine.emit_assembly(module)
    if ".extern" in made:
        raise NotImplementedError("no device has " + ", ".join(re.findall(r"\.extern .*?(\w+)\s*[(;]", made)))
    return made
