"""One rank of tools/distributed_suite.py: runs tests of PyTorch's ``distributed_test.py`` one after the other in one process.

``python distributed_suite_rank.py IMPL SOURCE STANDINS OUTCOMES TEST ...``. IMPL: ``flambeau`` (which ``import torch`` then means) or ``torch``.
Of the test's helpers (``common_distributed``) this file has its own short versions, and SOURCE is read where it lies.
"""

import ast
import contextlib
import functools
import importlib
import importlib.util
import io
import os
import sys
import time
import traceback
import types
import unittest
from pathlib import Path

impl, source, standins, outcomes, *tests = sys.argv[1:]
if impl == "flambeau":
    from flambeau.compat import hook

    hook.install()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

SKIPPED = 86


class Absent:
    """A name that the implementation lacks: the tests that use it fail."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AssertionError(f"there is no {self._name}")

    def __call__(self, *args, **kwargs):
        raise AssertionError(f"there is no {self._name}")


def taken(module, name=None):
    """A module, or a name of it, or an Absent."""
    try:
        found = importlib.import_module(module)
        return found if name is None else getattr(found, name)
    except (ImportError, AttributeError):
        if name is not None:
            with contextlib.suppress(ImportError):
                return importlib.import_module(f"{module}.{name}")
        return Absent(f"{module}.{name}" if name else module)


class Lenient(ast.NodeTransformer):
    """Imports from torch name by name."""

    def visit_FunctionDef(self, node):  # noqa: N802
        return node

    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_ImportFrom(self, node):  # noqa: N802
        if not (node.module or "").startswith("torch"):
            return node
        lines = [f"{a.asname or a.name} = _taken({node.module!r}, {a.name!r})" for a in node.names]
        return ast.parse("\n".join(lines)).body

    def visit_Import(self, node):  # noqa: N802
        if not any(a.name.startswith("torch") and a.asname for a in node.names):
            return node
        return ast.parse("\n".join(f"{a.asname} = _taken({a.name!r})" for a in node.names)).body


# ---- helpers of the tests ------------------------------------------------------------------------------------


def leaves(why):
    def decorated(function):
        @functools.wraps(function)
        def skipped(*args, **kwargs):
            raise unittest.SkipTest(why)

        return skipped

    return decorated


def unchanged(function):
    return function


def debug_levels(levels):
    def decorated(function):
        @functools.wraps(function)
        def every(*args, **kwargs):
            before = os.environ.get("TORCH_DISTRIBUTED_DEBUG")
            try:
                for level in levels:
                    os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
                    dist.set_debug_level_from_env()
                    function(*args, **kwargs)
                    dist.barrier()
            finally:
                os.environ.pop("TORCH_DISTRIBUTED_DEBUG")
                if before is not None:
                    os.environ["TORCH_DISTRIBUTED_DEBUG"] = before
                dist.set_debug_level_from_env()

        return every

    return decorated


@contextlib.contextmanager
def captured():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        yield out, err


def error_logged(model, text):
    found = model._get_ddp_logging_data()
    assert {"iteration", "has_error", "error"} <= found.keys()
    assert text.partition("\nException raised from ")[0] in found["error"], found["error"]


def sparse_sums(rank, ranks, num_inputs=1):
    """Sparse tensors of each rank, and their sums."""

    def made(rank, ranks, sparse, dense):
        indices = torch.cat([torch.arange(rank + 1).reshape(1, -1), *[torch.zeros(1, rank + 1)] * (sparse - 1)])
        return torch.sparse_coo_tensor(indices, torch.ones([rank + 1] + [2] * dense), [ranks] * sparse + [2] * dense)

    rows = []
    for sparse, dense in ((1, 0), (2, 0), (3, 0), (1, 1), (1, 2), (1, 3)):
        n = ranks * num_inputs
        total = functools.reduce(torch.add, [made(r, n, sparse, dense) for r in range(n)])
        rows.append(([made(rank * num_inputs + i, n, sparse, dense) for i in range(num_inputs)], [total] * num_inputs))
    return rows


class Features:
    skip_collective = {
        "allgather_coalesced": {"nccl", "mpi", "ucc", "xccl"},
        "reduce": set(),
        "sendrecv anysource": {"nccl"},
        "cpu barrier": {"nccl"},
    }
    backend_feature = {name: {"nccl", "gloo", "ucc"} for name in ("gpu", "cuda", "ddp", "subgroup")} | {"plugin": set()}


SKIPS = {
    name: types.SimpleNamespace(exit_code=SKIPPED, message=name)
    for name in ("backend_unavailable", "generic", "no_cuda")
}


def helpers():
    module = types.ModuleType("torch.testing._internal.common_distributed")
    size = int(os.environ["WORLD_SIZE"])
    module.__dict__.update(
        captured_output=captured,
        cleanup_temp_dir=lambda: None,
        DistTestCases=Features,
        init_multigpu_helper=lambda world_size, backend: {i: [] for i in range(world_size)},
        initialize_temp_directories=lambda *args: None,
        MultiProcessTestCase=unittest.TestCase,
        nccl_skip_if_lt_x_gpu=lambda backend, x: unchanged if backend != "nccl" else leaves("GPUs"),
        require_n_gpus_for_nccl_backend=lambda n, backend: unchanged if backend != "nccl" else leaves("GPUs"),
        requires_nccl_version=lambda version, why: leaves(why),
        simple_sparse_reduce_tests=sparse_sums,
        skip_if_lt_x_gpu=lambda x, allow_cpu=False: unchanged if allow_cpu else leaves("GPUs"),
        skip_if_no_gpu=leaves("GPUs"),
        skip_if_odd_worldsize=leaves("an odd number of ranks") if size % 2 else unchanged,
        skip_if_rocm_multiprocess=unchanged,
        skip_if_small_worldsize=leaves("less than 8 ranks") if size < 8 else unchanged,
        TEST_SKIPS=SKIPS,
        verify_ddp_error_logged=error_logged,
        with_dist_debug_levels=debug_levels,
        with_nccl_blocking_wait=unchanged,
    )
    return module


def package(name):
    module = types.ModuleType(name)
    module.__path__ = []
    return module


def load():
    """The module of the tests."""
    if impl == "flambeau":
        for name in ("torch.testing._internal", "torch.testing._internal.distributed"):
            sys.modules[name] = package(name)
        sys.path.insert(0, standins)
        common = importlib.import_module("common_utils")
        sys.modules["torch.testing._internal.common_utils"] = common
    sys.modules["torch.testing._internal.common_distributed"] = helpers()
    module = types.ModuleType("torch.testing._internal.distributed.distributed_test")
    module.__file__, module._taken = source, taken
    sys.modules[module.__name__] = module
    tree = ast.fix_missing_locations(Lenient().visit(ast.parse(Path(source).read_text(), source)))
    exec(compile(tree, source, "exec"), module.__dict__)
    return module


# ---- the tests -----------------------------------------------------------------------------------------------


def rows(module):
    from torch.testing._internal.common_utils import TestCase

    class Rows(TestCase, module.DistributedTest._DistTestBase):
        rank = int(os.environ["RANK"])
        world_size = os.environ["WORLD_SIZE"]
        skip_return_code_checks: list = []

        @property
        def init_method(self):
            return f"file://{self.file_name}"

        def assertGreaterAlmostEqual(self, first, second, places=None, msg=None, delta=None):  # noqa: N802
            self.assertGreaterEqual(first, second - (delta or 10 ** -(places or 7)), msg)

        def runTest(self):  # noqa: N802
            """For instances without a test."""

    return Rows


def told(line):
    with open(outcomes, "a") as file:
        file.write(line + "\n")


def outcome(Rows, name, number, seconds):  # noqa: N803
    case = Rows("runTest")
    case.file_name = f"{os.environ['SUITE_TEMP']}/meet-{number}"
    folder = f"{os.environ['SUITE_TEMP']}/{number}"
    for part in ("barrier", "test_dir", "init_dir"):
        os.makedirs(f"{folder}/{part}", exist_ok=True)
    os.environ["TEMP_DIR"] = folder
    import datetime

    dist.init_process_group(
        "gloo",
        f"file://{case.file_name}",
        datetime.timedelta(seconds=seconds),
        world_size=int(Rows.world_size),
        rank=Rows.rank,
    )
    torch.manual_seed(1234)
    case.setUp()
    result, stop = "pass", False
    try:
        case_method = getattr(case, name)
        if getattr(case_method, "__unittest_skip__", False):
            raise unittest.SkipTest(case_method.__unittest_skip_why__)
        case_method()
    except unittest.SkipTest as why:
        result = f"skip {why}"
    except SystemExit as end:
        result = "skip" if end.code else f"fail it exits with {end.code}"
    except BaseException as error:
        traceback.print_exc()
        result, stop = f"fail {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", True
    return result, stop


def main():
    Rows = rows(load())  # noqa: N806
    if tests == ["--list"]:
        print("\n".join(sorted(name for name in dir(Rows) if name.startswith("test_"))))
        return
    seconds = float(os.environ["SUITE_LIMIT"])
    for number, name in enumerate(tests):
        told(f"begin {name}")
        begin = time.perf_counter()
        result, stop = outcome(Rows, name, number, seconds)
        told(f"end {name} {time.perf_counter() - begin:.1f} {result}"[:400])
        if stop:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(7)
        if dist.is_initialized():
            dist.barrier()
            dist.destroy_process_group()


if __name__ == "__main__":
    main()
