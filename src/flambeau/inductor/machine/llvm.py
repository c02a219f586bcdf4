"""LLVM through llvmlite: assembly text to object code, object code to addresses. The only importer of llvmlite, at the first use.

Objects are position-independent of this process: they refer to nothing but libm, so their bytes can be kept on disk.
"""

import atexit
import functools
import os
import platform
import re

from ... import _runtime
from ...base.foreign import address_of
from ...base.forks import at_rest
from ...base.forks import held_while_forking as _lock
from ..settings import config
from . import blends, divisors, half_floats, vector_hints

__all__ = [
    "SIDE_BY_SIDE",
    "assembly_for",
    "compile_text",
    "disassemble",
    "finish",
    "host",
    "joined",
    "load_object",
    "new_engine",
    "on_threads",
    "start",
]

_keep = []  # engines own the code they load
SIDE_BY_SIDE = ".jammed"
"""In the labels of code of which copies stand side by side, for LLVM to make operations on vectors of."""


@functools.cache
def _binding():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Sums that are taken in their order may be vectorised too: what is summed is computed in vectors, and added one by one. The bits stay.
    llvm.set_option("", "-force-ordered-reductions")
    return llvm


@functools.cache
def _machine():
    llvm = _binding()
    cpu, features = host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=2, codemodel="default", reloc="pic")


@functools.cache
def host() -> tuple[str, str]:
    """(CPU name, features) the code is made for: part of the cache key. FLAMBEAU_CPU=avx2 or =default leaves out what lesser CPUs lack."""
    llvm = _binding()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features()
    if platform.machine() in ("x86_64", "AMD64") and (lesser := _LESSER.get(os.environ.get("FLAMBEAU_CPU", ""))):
        cpu, lacks = lesser
        features.update({name: False for name in features if re.match(lacks, name)})
    return cpu, features.flatten()


def _masks() -> bool:
    """Whether the CPU has registers of masks (AVX-512)."""
    return "+avx512f," in f"{host()[1]},"


def _blended(text: str) -> str:
    """The module's text without masked stores of elements that were read before, where they are slow."""
    return blends.blended(text) if "+avx," in host()[1] and not _masks() else text


def _fused() -> bool:
    """Whether the CPU multiplies and adds with one rounding."""
    return platform.machine() in ("aarch64", "arm64") or "+fma," in f"{host()[1]},"


_LESSER = {  # level -> (LLVM's name of such a CPU, features that it lacks)
    "avx2": ("haswell", r"avx512|avx10|amx|avx.*(vnni|ifma|neconvert)|evex512|vaes|vpclmulqdq|gfni|sha|sm[34]"),
    "default": ("x86-64", r"(?!(cmov|cx8|fxsr|mmx|sse|sse2|64bit|x87)$)"),
}


def compile_text(text: str, optimise: bool = False) -> bytes:
    """Object code of a module in LLVM assembly. ``optimise``: with all of LLVM's passes, for text that isn't vector code already.
    Raises RuntimeError with LLVM's message when the text is wrong."""
    llvm = _binding()
    with _lock:
        divides = optimise and divisors.CALLED in text
        if optimise and _masks():
            text = vector_hints.hinted(text)
        if divides:
            text += divisors.functions(_fused())
        module = llvm.parse_assembly(text if optimise else _blended(text))
        machine = _machine()
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
        module.verify()
        if optimise:
            # Level 3 and vectors of straight-line code take half as long again for code that is no faster, but where copies stand side by side.
            options = llvm.create_pipeline_tuning_options(speed_level=2)
            options.loop_vectorization = options.loop_unrolling = True
            options.slp_vectorization = SIDE_BY_SIDE in text
            builder = llvm.create_pass_builder(machine, options)
            builder.getModulePassManager().run(module, builder)
            if divides:  # what the vectoriser has called
                passes = llvm.create_new_module_pass_manager()
                passes.add_always_inliner_pass()
                passes.add_simplify_cfg_pass()
                passes.run(module, builder)
            made = str(module)  # with the vectors that LLVM has made
            if (chosen := _blended(made)) != made:
                module = llvm.parse_assembly(chosen)
            return machine.emit_object(module)
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
        passes = llvm.create_new_module_pass_manager()
        # The kernels come as explicit vector code in good order: promote the stack slots, fold, share, and nothing else.
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_new_gvn_pass()
        passes.add_simplify_cfg_pass()
        passes.run(module, builder)
        return machine.emit_object(module)


# The functions of llvmlite's library that csrc/runtime/emit.c calls, in its order; the passes are those of compile_text.
_FUNCTIONS = (
    *(
        "ContextCreate",
        "ContextDispose",
        "ParseAssembly",
        "DisposeModule",
        "SetTarget",
        "SetDataLayout",
        "VerifyModule",
    ),
    *("CreatePipelineTuningOptions", "DisposePipelineTuningOptions", "CreatePassBuilder", "DisposePassBuilder"),
    *("CreateNewModulePassManager", "DisposeNewModulePassManger"),
    *("module_AddSROAPass", "module_AddInstCombinePass", "module_AddNewGVNPass", "module_AddSimplifyCFGPass"),
    *("RunNewModulePassManager", "TargetMachineEmitToMemory", "GetBufferStart", "GetBufferSize", "DisposeMemoryBuffer"),
    "DisposeString",
)


@functools.cache
def _threads() -> bool:
    """Whether code can be generated on threads; makes them ready."""
    from llvmlite.binding import ffi

    llvm = _binding()
    library = getattr(ffi.lib, "_lib_handle", None)
    if library is None or any(not hasattr(library, f"LLVMPY_{name}") for name in _FUNCTIONS):
        return False  # another version of llvmlite
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = config.compile_threads or cores
    if wanted < 2:
        return False
    cpu, features = host()
    target = llvm.Target.from_default_triple()
    machines = [
        target.create_target_machine(cpu=cpu, features=features, opt=2, codemodel="default", reloc="pic")
        for _ in range(min(wanted, 16))
    ]
    _keep.extend(machines)
    functions = tuple(address_of(getattr(library, f"LLVMPY_{name}")) for name in _FUNCTIONS)
    addresses = tuple(address_of(m._ptr) for m in machines)
    _runtime.emit_configure(functions, addresses, machines[0].triple, str(machines[0].target_data))
    atexit.register(_runtime.emit_drain)
    at_rest.append(_runtime.emit_drain)
    os.register_at_fork(after_in_child=_runtime.emit_forked)
    return True


def on_threads() -> bool:
    """Whether :func:`start` has threads."""
    with _lock:
        return _threads()


def joined(texts) -> str:
    """Several modules as one: what they declare alike is there once. Functions must differ in name."""
    shared, out = {}, []
    for text in texts:
        for line in text.splitlines():
            if line.startswith(("declare ", "!")):
                shared[line] = None
            else:
                out.append(line)
    return "\n".join([*out, *shared, ""])


def start(text: str):
    """Begin to generate the object code of a module on another thread; None when there is none. :func:`finish` gives it."""
    with _lock:  # a fork that has it has waited for the jobs before
        return _runtime.emit_start(_blended(text).encode()) if _threads() else None


def finish(job, text: str) -> bytes:
    """The object code that was begun. Raises RuntimeError with LLVM's message when the text is wrong."""
    data = _runtime.emit_finish(job)
    return compile_text(text) if data is None else data


def disassemble(text: str) -> str:
    """Host assembly of a module (for looking at)."""
    llvm = _binding()
    with _lock:
        module = llvm.parse_assembly(text)
        module.triple = _machine().triple
        return _machine().emit_assembly(module)


@functools.cache
def _foreign(triple: str, cpu: str):
    llvm = _binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)


def assembly_for(text: str, triple: str, cpu: str) -> str:
    """Assembly of a module for another machine than this one, with LLVM's passes but for those that make vectors. RuntimeError with LLVM's message
    when the text is wrong."""
    with _lock:
        llvm, machine = _binding(), _foreign(triple, cpu)
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = options.slp_vectorization = False
        builder = llvm.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return machine.emit_assembly(module)


def new_engine():
    """A linker of its own; it lives as long as the process."""
    llvm = _binding()
    module = llvm.parse_assembly("")
    engine = llvm.create_mcjit_compiler(module, llvm.Target.from_default_triple().create_target_machine(jit=True))
    _keep.append(engine)
    return engine


_engine = functools.cache(new_engine)


@functools.cache
def _add_conversions() -> None:
    """Give the process the conversions of float16 that LLVM's code calls; it may have none."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return
    llvm, engine = _binding(), new_engine()
    engine.add_object_file(llvm.ObjectFileRef.from_data(compile_text(half_floats.TEXT)))
    engine.finalize_object()
    for ours, name in half_floats.FUNCTIONS.items():
        llvm.add_symbol(name, engine.get_function_address(ours))


def load_object(data: bytes, names: list[str], engine=None) -> dict[str, int]:
    """Link object code into the process; the addresses of its functions. Names must be unique in the engine (by default the common one)."""
    llvm = _binding()
    with _lock:
        # Names of what it calls stand in an object as they are.
        if any(name.encode() in data for name in half_floats.FUNCTIONS.values()):
            _add_conversions()
        engine = engine or _engine()
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
        engine.finalize_object()
        return {name: engine.get_function_address(name) for name in names}
