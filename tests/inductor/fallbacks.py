"""Which operators of the sample table a compiled graph runs by their eager kernel: ``python tests/inductor/fallbacks.py`` writes fallbacks.txt."""

import logging
from pathlib import Path

import numpy as np

import flambeau as torch
from flambeau.inductor import compile as passes
from flambeau.inductor.ir.nodes import ExternCall
from flambeau.inductor.settings import config
from flambeau.testing.samples import load, operator

DATA = ("capture_dynamic_output_shape_ops", "capture_scalar_outputs")  # results whose sizes depend on data are captured
TABLE = Path(__file__).with_name("fallbacks.txt")


def arranged(x, tensors):
    """``x`` with arrays (floating ones in float32) replaced by where they are in ``tensors``."""
    if isinstance(x, np.ndarray):
        tensors.append(torch.from_numpy(np.array(x.astype(np.float32) if x.dtype == np.float64 else x)))
        return ("tensor", len(tensors) - 1)
    return type(x)(arranged(y, tensors) for y in x) if isinstance(x, (list, tuple)) else x


def filled(x, tensors):
    if isinstance(x, tuple) and len(x) == 2 and x[0] == "tensor":
        return tensors[x[1]]
    return type(x)(filled(y, tensors) for y in x) if isinstance(x, (list, tuple)) else x


def called(row) -> set[str]:
    """Operators that graphs of the row's samples call from Python."""
    found, original = set(), passes.compile_program

    def look(*args, **kwargs):
        graph, made = original(*args, **kwargs)
        found.update(
            s.name
            for s in graph.info.steps
            if isinstance(s, ExternCall) and s.what == "call" and s.data.call is not None
        )
        return graph, made

    passes.compile_program = look
    disabled, config.force_disable_caches = config.force_disable_caches, True
    kept = {name: getattr(torch._dynamo.config, name) for name in DATA}
    for name in DATA:
        setattr(torch._dynamo.config, name, True)
    try:
        for sample in row.calls[:3]:
            tensors: list = []
            args = [arranged(a, tensors) for a in sample.args]
            kwargs = {k: arranged(v, tensors) for k, v in sample.kwargs.items()}
            torch.compiler.reset()
            try:  # without the caches: a graph that is recalled is not looked at
                torch.compile(lambda *t: row.op(*filled(args, t), **{k: filled(v, t) for k, v in kwargs.items()}))(
                    *tensors
                )  # noqa: B023
            except (RuntimeError, TypeError, NotImplementedError):
                continue  # a sample in float64 only
    finally:
        passes.compile_program, config.force_disable_caches = original, disabled
        for name, value in kept.items():
            setattr(torch._dynamo.config, name, value)
    return found


def written() -> str:
    lines = []
    for name, row in load().items():
        try:
            operator(name)
        except AttributeError:
            continue
        if names := called(row):
            lines.append(f"{name}: {' '.join(sorted(names))}")
    return "\n".join(sorted(lines)) + "\n"


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    TABLE.write_text(written())
