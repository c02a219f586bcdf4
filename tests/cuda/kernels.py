"""Kernels for threads of operators on samples, in the form of each target."""

from flambeau import _C
from flambeau.base.device import as_device
from flambeau.core import keys
from flambeau.core.dispatch import excluding
from flambeau.inductor.codegen.kernel import Kernel
from flambeau.inductor.device import compile as device_compile
from flambeau.inductor.passes.decompose import OpProgram, _Recording, _without_data, tensor_meta


def program_of(op, full):
    """A program of one call, whose tensors lie on the device."""
    program = OpProgram()
    recording = _Recording(program)

    def enter(x):
        if isinstance(x, _C.TensorBase):
            moved = _C.without_data(type(x), tuple(x.shape), tuple(x.stride()), x.dtype, as_device("cuda"), 0, None)
            duplicate = _without_data(tensor_meta(moved))
            return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))
        return type(x)(map(enter, x)) if isinstance(x, (list, tuple)) else x

    with excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM):
        out = recording.__torch_dispatch__(op, (), [enter(x) for x in full], {}, positional=True)
    program.outputs = [recording.reference(x) for x in (out if isinstance(out, (tuple, list)) else [out])]
    program.count()
    return program


def kernels_of(program, target) -> list[Kernel]:
    """Its kernels, with their text for a target."""
    lowering, groups = device_compile.lowered(program)
    outputs = device_compile.wanted(lowering)
    steps = device_compile.threads_of(lowering, groups, outputs, target)
    return [s for s in steps if isinstance(s, Kernel)]


def graph_of(op, *args, **kwargs):
    """The graph of one call on the device, for tensors of these shapes."""
    return device_compile.compile_on_device(program_of(op, op.full(*args, **kwargs)), as_device("cuda"))
