"""One scalar operation as a kernel over arrays, for any number of lanes."""

import itertools

import numpy as np

import flambeau  # noqa: F401  (fills the scalar table)
from flambeau import _runtime
from flambeau.inductor import llvm
from flambeau.inductor.builder import Builder, Names
from flambeau.inductor.scalar_ops import emit_scalar

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
_count = itertools.count()


def elementwise(op, types, out, lanes):
    """A function of arrays (lengths divisible by ``lanes``) computing ``op`` on operands of ``types`` with result type ``out``."""
    names, body = Names(), []
    b, one = Builder(names, lanes, body), Builder(names, 1, body)
    compute = types[-1]
    args, head = [], []
    for k in range(len(types) + 1):
        slot = names.fresh()
        head += [f"{slot} = getelementptr ptr, ptr %args, i64 {k}", f"%p{k} = load ptr, ptr {slot}"]
    for k, t in enumerate(types):
        at = one.emit(f"getelementptr {one.memory_type(t)}, ptr %p{k}, i64 %i")
        args.append(b.load(t, at))
    result = emit_scalar(b, op, compute, args)
    at = one.emit(f"getelementptr {one.memory_type(out)}, ptr %p{len(types)}, i64 %i")
    b.store(out, result, at)
    name = f"test_{op}_{next(_count)}"
    text = "\n".join(
        [
            *names.declares.values(),
            f"define void @{name}(ptr %args, i64 %begin, i64 %end) {{",
            "entry:",
            *names.entry,
            *head,
            "%slot = alloca i64",
            "store i64 0, ptr %slot",
            "br label %body",
            "body:",
            "%p = load i64, ptr %slot",
            f"%i = mul i64 %p, {lanes}",
            *body,
            "%next = add i64 %p, 1",
            "store i64 %next, ptr %slot",
            "%more = icmp slt i64 %next, %end",
            "br i1 %more, label %body, label %exit",
            "exit:",
            "ret void",
            "}",
        ]
    )
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
