"""Kernels for threads of operators on samples, in the form of each target."""

from flambeau import _C
from flambeau.base.device import as_device
from flambeau.base.shape_checks import shape_rules
from flambeau.base.shape_env import ShapeEnv
from flambeau.core import keys
from flambeau.core.dispatch import excluding
from flambeau.inductor.codegen.kernel import Kernel
from flambeau.inductor.device import compile as device_compile
from flambeau.inductor.device.single import _tensors as tensors_of
from flambeau.inductor.device.symbolic import symbolic_metas
from flambeau.inductor.passes.decompose import OpProgram, _Recording, _without_data, tensor_meta


def program_of(op, full, symbols=False):
    """A program of one call, whose tensors lie on the device, with ``symbols`` for their sizes."""
    program = OpProgram()
    recording = _Recording(program)
    tensors = [_on_device(t) for t in tensors_of(full)]
    env, metas = symbolic_metas(tensors)[:2] if symbols else (ShapeEnv(), [tensor_meta(t) for t in tensors])
    given = iter(metas)

    def enter(x):
        if isinstance(x, _C.TensorBase):
            duplicate = _without_data(next(given))
            return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))
        return type(x)(map(enter, x)) if isinstance(x, (list, tuple)) else x

    with shape_rules(env), excluding(keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM):
        out = recording.__torch_dispatch__(op, (), [enter(x) for x in full], {}, positional=True)
    program.outputs = [recording.reference(x) for x in (out if isinstance(out, (tuple, list)) else [out])]
    program.count()
    return program


def _on_device(t):
    return _C.without_data(type(t), tuple(t.shape), tuple(t.stride()), t.dtype, as_device("cuda"), 0, None)


def kernels_of(program, target) -> list[Kernel]:
    """Its kernels, with their text for a target."""
    lowering, groups = device_compile.lowered(program)
    outputs = device_compile.wanted(lowering)
    steps = device_compile.threads_of(lowering, groups, outputs, target)
    return [s for s in steps if isinstance(s, Kernel)]


def graph_of(op, *args, **kwargs):
    """The graph of one call on the device, for tensors of these shapes."""
    return device_compile.compile_on_device(program_of(op, op.full(*args, **kwargs)), as_device("cuda"))
