"""What becomes of each documented NumPy function in captured code:
``python -m flambeau.testing.numpy_cover docs/reference/numpy.md`` writes it into the
document, below its prose."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import flambeau.numpy  # noqa: F401  # fills the tables in

from ..dynamo.numpy import numpy_bridge
from ..dynamo.variables.numpy import methods as _methods  # noqa: F401  # they fill ATTRIBUTES in
from ..dynamo.variables.numpy import places as _places  # noqa: F401
from ..dynamo.variables.numpy.ndarray import ATTRIBUTES, METHODS_IN_PYTHON
from ..dynamo.variables.numpy.traced import TRACED
from ..loops.random_numbers.streams import classes
from ..numpy import byte_arrays, of_data
from ..numpy.graph_calls import FUNCTIONS_BY_MODULE
from ..numpy.opaque import DIFFERENTIABLE, differentiable

__all__ = ["REASONS", "START", "is_called", "status", "table"]

START = "# NumPy functions in captured code"

MODULES = (np, np.linalg, np.fft, np.random)
KERNEL = "kernel"
CALLED = "called"
DERIVED = "called, with a derivative"
CONSTANT = "constant"
OF_DATA = "kernel where symbols may stand for sizes that depend on data"
REASONS = {
    "the dtype of the result depends on values": "real_if_close roots",
    "it gives a view whose size depends on values: who writes into it writes into the argument": "trim_zeros",
    "it gives an array of Python objects": "frompyfunc",
    "it is about memory that a graph has of its own, or of other programs": "from_dlpack frombuffer may_share_memory nested_iters shares_memory",
    "it returns a matrix, or NumPy warns of its name": "asmatrix bmat row_stack",
    "text, files, dates and settings": (
        "array2string array_repr array_str busday_offset datetime_as_string fromfile fromregex fromstring genfromtxt get_include get_printoptions "
        "getbufsize geterr geterrcall info load loadtxt printoptions save savetxt savez savez_compressed set_printoptions setbufsize seterr "
        "seterrcall show_config show_runtime test"
    ),
}
"""Why functions of NumPy's own module are left to plain code."""
RANDOM = "the state itself, bytes, or a name that NumPy warns of"


def functions(module) -> Iterator[tuple[str, object]]:
    """Documented functions of a module, by name."""
    for name in sorted(getattr(module, "__all__", None) or dir(module)):
        f = getattr(module, name)
        if not name.startswith("_") and callable(f) and not isinstance(f, (type, types.ModuleType)):
            yield name, f


def is_called(impl) -> bool:
    """Whether an implementation calls NumPy."""
    return impl.__module__ in ("flambeau.numpy.opaque", "flambeau.numpy.rewriting") and not hasattr(impl, "__wrapped__")


def status(module, name: str, f) -> tuple[str, str]:
    """(what becomes of it, why where it is left to plain code)"""
    if f in numpy_bridge.DESCRIPTIONS or f in numpy_bridge.ATTRIBUTE_OF:
        return CONSTANT, ""
    if f in TRACED:
        return KERNEL, ""
    impl = numpy_bridge.lookup(f)
    if impl is None:
        if module is np.random:
            return (CALLED, "") if drawn(f) else ("plain", RANDOM)
        return "plain", next((why for why, names in REASONS.items() if name in names.split()), "")
    if is_called(impl):
        return (DERIVED if differentiable(module.__name__, name) else CALLED), ""
    return (OF_DATA if impl.__module__ == of_data.__name__ else KERNEL), ""


def drawn(f) -> bool:
    """Whether a function of np.random is captured."""
    if id(f) in numpy_bridge.makers or id(f) in numpy_bridge.of_the_global:
        return True
    return (type(getattr(f, "__self__", None)), getattr(f, "__name__", None)) in numpy_bridge.draws


def derived(module: str) -> list[str]:
    """The functions of a module that have a derivative."""
    return [name[len(module) + 1 :] for name in DIFFERENTIABLE if name.startswith(f"{module}.")]


def table() -> str:
    """The document from its first table on."""
    out = [
        START,
        "",
        f"Written by `python -m flambeau.testing.numpy_cover docs/reference/numpy.md` with NumPy {'.'.join(np.__version__.split('.')[:2])}.",
        "*Kernel*: operators of the graph, fused and differentiable (what an operator has no rule for, half precision for example, is called).",
        "*Called*: one node of the graph that calls NumPy; its result's shapes are known from those of the arguments. *Constant*: it follows from",
        "shapes and dtypes. Symbols stand for sizes that depend on data under `fullgraph=True` or",
        "`torch._dynamo.config.capture_dynamic_output_shape_ops`; without, these functions are plain.",
        "Everything else runs as plain NumPy between two graphs; `torch._dynamo.explain` names the line and the reason. Ufuncs'",
        "`reduce`, `accumulate`, `outer`, `reduceat` and `at` are kernels or called. So are `np.mgrid`, `ogrid`, `r_`, `c_`, `s_`,",
        "`index_exp`, `ndindex`, `ndenumerate` and `nditer` (without buffers, of 1,000 elements at most).",
        "",
    ]
    for module in MODULES:
        groups: dict[tuple[str, str], list[str]] = {}
        for name, f in functions(module):
            groups.setdefault(status(module, name, f), []).append(name)
        total = sum(map(len, groups.values()))
        captured = sum(len(names) for (what, _), names in groups.items() if what != "plain")
        out += [
            f"## {module.__name__}",
            "",
            f"{captured} of {total} functions are captured.",
            "",
            "| | functions |",
            "| --- | --- |",
        ]
        for (what, why), names in sorted(groups.items()):
            out.append(f"| {what}{': ' + why if why else ''} | {' '.join(names)} |")
        out.append("")
    out += [
        "Each is a node that calls NumPy's generator: the numbers are NumPy's, draws stay in their order, and run once. The same for",
        "generators that are arguments, globals or made inside (`default_rng`, `RandomState`, `Generator` around a new bit generator):",
        "",
        *(f"- {cls.__name__}: {' '.join(sorted(n for c, n in numpy_bridge.draws if c is cls))}" for cls in classes()),
        "",
        "## Polynomials",
        "",
        *(f"- {m}: {names}" for m, names in sorted(FUNCTIONS_BY_MODULE.items()) if m.startswith("numpy.polynomial.")),
        "",
        "## SciPy",
        "",
        "Called, once the program has imported the module; with a derivative where marked by a star:",
        "",
    ]
    for module, names in sorted(FUNCTIONS_BY_MODULE.items()):
        if module.startswith("scipy."):
            marked = [f"{n}*" if differentiable(module, n) else n for n in sorted({*names.split(), *derived(module)})]
            out.append(f"- {module}: {' '.join(marked)}{', and all ufuncs' if module == 'scipy.special' else ''}")
    out.append("")
    methods = [n for n in dir(np.ndarray) if not n.startswith("_")]
    described = {"shape", "ndim", "size", "itemsize", "nbytes", "dtype", *ATTRIBUTES, *METHODS_IN_PYTHON}
    known = [n for n in methods if n in numpy_bridge.methods or n in numpy_bridge.attributes or n in described]
    out += [
        *_of_bytes(),
        "## Methods and attributes of ndarray",
        "",
        f"{len(known)} of {len(methods)} are captured: {' '.join(known)}.",
        "",
        f"Plain: {' '.join(n for n in methods if n not in known)}.",
        "",
    ]
    return "\n".join(out)


def _of_bytes() -> list[str]:
    return [
        "## Text, dates and records",
        "",
        "Arrays of text (`S`, `U`), dates (`M`, `m`) and records (structured dtypes without objects) are captured as bytes, of a dtype that is",
        "guarded. Basic subscripts and fields are views; fields of numbers are read and written like other arrays, unless records are packed so",
        "that their elements aren't aligned. Called, where dtype and shape of the result follow from those of the arguments:",
        "",
        *(f"- {module}: {' '.join(sorted(names.split()))}" for module, names in byte_arrays.FUNCTIONS.items()),
        f"- methods: {byte_arrays.METHODS}",
        f"- operators: {byte_arrays.OPERATORS}",
        "",
        "Plain: text as wide as it turns out to be (`replace`, `multiply`, `center` and the like), results that are objects (`split`, `tolist`),",
        "masks, single words and dates as Python's, writes into text and dates, several fields at once, `np.recarray`, `StringDType`.",
        "",
    ]


if __name__ == "__main__":
    document = Path(sys.argv[1])
    prose, _, _ = document.read_text().partition(START)
    document.write_text(prose + table())
