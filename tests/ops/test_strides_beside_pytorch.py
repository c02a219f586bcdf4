"""Strides of results beside PyTorch's, exactly, over its operator database in ten layouts: tools/layout_sweep.py as a test."""

import importlib.util
import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = pytest.mark.parity

TOOLS = Path(__file__).parents[2] / "tools"
# What differs on purpose (docs/reference/differences.md), or asks of PyTorch what its samples have no room for (rearranged, an index is out of bounds).
APART = {
    "conj_physical", "diagonal_scatter", "select_scatter", "slice_scatter", "nn.functional.conv3d", "nn.functional.conv_transpose3d",
    "nn.functional.layer_norm", "nn.functional.rms_norm", "nn.functional.linear", "roll", "linalg.lstsq", "index_copy", "put", "renorm",
    "tril_indices", "triu_indices", "rot90", "nn.functional.batch_norm",
}  # fmt: skip
FAST = """
abs add addcmul mul clamp clone cat stack empty_like zeros_like full_like where masked_fill flip deg2rad frexp nan_to_num sum mean softmax
sort cumsum gather index_select nn.functional.conv1d nn.functional.conv2d nn.functional.max_pool2d nn.functional.avg_pool2d
nn.functional.adaptive_avg_pool2d nn.functional.group_norm nn.functional.pixel_shuffle nn.functional.hardtanh
nn.functional.prelu linalg.inv linalg.qr linalg.svd linalg.solve cholesky
""".split()


@pytest.fixture(scope="module")
def sweep():
    sys.path.insert(0, str(TOOLS))
    try:
        spec = importlib.util.spec_from_file_location("layout_sweep", TOOLS / "layout_sweep.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(TOOLS))
    module.C.load()
    return module


def check(sweep, name, facets=("eager", "again", "fake"), samples=2):
    entries = [e for e in sweep.C.op_db if sweep.C.label(e) == name]
    assert entries
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about some of the calls
        wrong, cases = sweep.sweep(entries[0], facets, samples)
    assert cases["eager"]
    assert not [w for w in wrong if not w[3].startswith("error")]


@pytest.mark.parametrize("name", FAST)
def test_strides(sweep, name):
    check(sweep, name)


@pytest.mark.slow
def test_all(sweep):
    differ = []
    for entry in sweep.C.op_db:
        name = sweep.C.label(entry)
        if name.split(".")[0] in APART or name in APART or any(sweep.C.re.match(p, name) for p in sweep.C.OUT):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong, _ = sweep.isolated(entry, ("eager", "again", "fake"), 60, 2)
        differ += [(name, *w) for w in wrong if not w[3].startswith(("error", "crash"))]
    assert not differ
