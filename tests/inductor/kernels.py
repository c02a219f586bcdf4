"""One scalar operation as a kernel over arrays, for any number of lanes."""

import itertools

import numpy as np

import flambeau  # noqa: F401  (fills the scalar table)
from flambeau import _runtime
from flambeau.inductor.assembly.builder import Builder
from flambeau.inductor.assembly.code import Code, Names
from flambeau.inductor.assembly.dtypes import stored_type
from flambeau.inductor.assembly.instructions import I64, PTR, VOID, Function, Operand, integer, label
from flambeau.inductor.assembly.verification import verify
from flambeau.inductor.codegen.scalar_ops import emit_scalar
from flambeau.inductor.machine import llvm

NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "bool": np.bool_,
}
ARGS, END = Operand("%args", PTR), Operand("%end", I64)
_count = itertools.count()


def _loop(name, names, body, lanes):
    """A function that runs ``body`` once for each number ``%p`` in its range; ``%i`` is that many times ``lanes``."""
    code = Code(names, [])
    code.label(label("entry"))
    code.out += names.entry
    slot = code.named("%slot", "alloca", PTR, flags="i64")
    code.write(0, slot)
    each, done = label("body"), label("exit")
    code.jump(each)
    code.label(each)
    p = code.read(I64, slot)
    code.named("%i", "mul", I64, p, integer(lanes))
    code.out += body
    after = code.op("add", p, 1)
    code.write(after, slot)
    code.branch(code.cmp("slt", after, END), each, done)
    code.label(done)
    code.do("ret", flags="void")
    return Function(name, VOID, (ARGS, Operand("%begin", I64), END), code.out)


def elementwise(op, types, out, lanes):
    """A function of arrays (lengths divisible by ``lanes``) computing ``op`` on operands of ``types`` with result type ``out``."""
    names, body = Names(), []
    b, one = Builder(names, lanes, body), Builder(names, 1, body)
    compute = types[-1]
    memory, args = [], []
    i = Operand("%i", I64)
    for k in range(len(types) + 1):
        memory.append(one.read(PTR, one.place(PTR, ARGS, k)))
    for p, t in zip(memory, types):
        args.append(b.load(t, one.place(stored_type(t), p, i)))
    b.store(out, emit_scalar(b, op, compute, args), one.place(stored_type(out), memory[-1], i))
    name = f"test_{op}_{next(_count)}"
    function = _loop(name, names, body, lanes)
    verify(function)
    text = "\n".join([*names.declares.values(), *function.lines()])
    address = llvm.load_object(llvm.compile_text(text), [name])[name]

    def call(*arrays):
        o = np.empty(arrays[0].shape, NUMPY[out])
        _runtime.launch(address, [*arrays, o], arrays[0].size // lanes)
        return o

    return call


def padded(values, dtype, multiple=32):
    with np.errstate(all="ignore"):
        a = np.asarray(values).astype(dtype)
    return np.concatenate([a, np.ones(-len(a) % multiple, dtype)])
