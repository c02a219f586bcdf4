"""Compiled graphs against eager: values, dtypes, strides; and how many kernels come out."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tracing import trace

import flambeau as torch
from flambeau import _runtime
from flambeau.inductor import compile_graph, metrics
from flambeau.inductor.machine import cache
from flambeau.inductor.settings import config

aten = torch.ops.aten


def R(*shape, dtype=None):
    t = torch.from_numpy(np.random.default_rng(abs(hash(shape)) % 1000).normal(size=shape).astype(np.float32))
    return t if dtype is None else t.to(dtype)


def check(fn, *args, tol=2e-5):
    """Compiled and eager agree; returns the compiled graph."""
    graph = compile_graph(trace(fn, *args))
    got, want = graph(*args), fn(*args)
    want = want if isinstance(want, (tuple, list)) else (want,)
    assert len(got) == len(want)
    for g, w in zip(got, want):
        assert g.dtype is w.dtype and tuple(g.shape) == tuple(w.shape)
        assert tuple(g.stride()) == tuple(w.stride()) or 0 in g.shape
        np.testing.assert_allclose(
            np.asarray(g._array, np.float64), np.asarray(w._array, np.float64), rtol=tol, atol=tol
        )
    assert not graph.info.fallbacks
    return graph


IDX = torch.tensor([[1, 2, -3], [4, 0, 9]])
CAUSAL = lambda n: torch.ones(n, n, dtype=torch.bool).tril().logical_not()  # noqa: E731

# name, function, arguments, kernels expected (None: any)
CASES = [
    ("two_ops", lambda x: (x + 1).relu(), (R(8, 8),), 1),
    ("two_results", lambda x: (x.sin() + 1, x.cos() * 2), (R(1000),), 1),
    ("independent", lambda x, y: (x.sin() + 1, y.cos() * 2), (R(1000), R(1000)), 1),
    ("three_reductions", lambda x: (x.sum(), (x * x).sum(), x.max()), (R(100, 77),), 1),
    ("softmax", lambda x: aten._softmax.default(x, -1, False), (R(64, 100),), 1),
    ("softmax_columns", lambda x: aten._softmax.default(x, 0, False), (R(64, 100),), None),
    (
        "gelu_layer_norm",
        lambda x, w, b: aten.native_layer_norm.default(aten.gelu.default(x), [100], w, b, 1e-5),
        (R(4, 64, 100), R(100), R(100)),
        1,
    ),
    (
        "layer_norm_backward",
        lambda g, x, m, r, w, b: aten.native_layer_norm_backward.default(g, x, [100], m, r, w, b, [True] * 3),
        (R(4, 64, 100), R(4, 64, 100), R(4, 64, 1), R(4, 64, 1), R(100), R(100)),
        2,
    ),
    ("gelu_backward", lambda g, x: aten.gelu_backward.default(g, x), (R(64, 100), R(64, 100)), 1),
    ("products", lambda a, b: ((a @ b).relu() @ b).relu() @ b, (R(8, 8), R(8, 8)), 2),
    ("linear", lambda a, w, b: aten.addmm.default(b, a, w.t()).relu(), (R(5, 7), R(3, 7), R(3)), 1),
    ("transposed_left", lambda a, b: a.t() @ b, (R(7, 5), R(7, 3)), 0),
    ("strided_left", lambda a, b: a[:, ::2] @ b, (R(7, 10), R(5, 3)), 1),
    ("bmm", lambda a, b: aten.bmm.default(a, b.transpose(1, 2)), (R(5, 7, 4), R(5, 3, 4)), 0),
    ("empty_products", lambda a, b: (a @ b, b @ a), (R(0, 4), R(4, 0)), None),
    ("matrix_vector", lambda a, v: aten.mv.default(a, v) + 1, (R(50, 70), R(70)), 1),
    ("dot", lambda a, b: aten.dot.default(a, b), (R(5000), R(5000)), None),
    ("column_sum", lambda a: a.sum(0), (R(1000, 70),), 1),
    ("narrow_column_sum", lambda a: a.sum(0), (R(40000, 3),), None),
    ("large_sum", lambda a: (a * 2).sum(), (R(999, 701),), None),
    ("middle_sum", lambda a: a.sum(1), (R(10, 70, 33),), 1),
    ("variance", lambda a: aten.var.correction(a, [1]), (R(5, 600),), 1),
    ("embedding", lambda w, i: aten.embedding.default(w, i) * 2, (R(10, 64), IDX.abs()), 1),
    (
        "embedding_backward",
        lambda g, i: aten.embedding_dense_backward.default(g, i, 10, -1, False),
        (R(2, 3, 64), IDX.abs()),
        2,
    ),
    ("arg_reductions", lambda x: (x.argmax(1), x.argmin(0)), (R(33, 44),), None),
    ("masked", lambda x: x.masked_fill(CAUSAL(8), 0.0), (R(3, 8, 8),), 1),
    (
        "log_softmax_nll",
        lambda x, t: aten.nll_loss_forward.default(aten._log_softmax.default(x, 1, False), t, None, 1, -100),
        (R(32, 50), torch.arange(32)),
        None,
    ),
    (
        "computed_index",
        lambda x: aten.nll_loss_forward.default(
            aten._log_softmax.default(x, 1, False), torch.arange(10) % 3, None, 1, -100
        ),
        (R(10, 3),),
        None,
    ),
    ("index_of_argmax", lambda x: x.gather(1, x.argmax(1, True)) * 2, (R(33, 70),), None),
    ("views", lambda x: (x.t() + 1, x.t().reshape(-1) * 2, x[1:, ::2] - 3, x.view(-1)), (R(8, 6),), None),
    ("merge_heads", lambda x: (x.transpose(1, 2).reshape(2, 5, 12) + 1).sum(-1), (R(2, 3, 5, 4),), 1),
    ("broadcast_sum", lambda x, y: (x[:, :, None] * y[:, None, :]).sum((-2, -1)), (R(64, 16), R(64, 16)), 1),
    ("integers", lambda x: (x + 1, x // 3, x % 5, x * 2.5, x > 2, x.sum(), x.max()), (torch.arange(-20, 20),), 1),
    ("zero_dimensional", lambda x, y: (x * y + 1, x.sum()), (torch.tensor(2.0), R(3)), None),
    ("empty", lambda x: (x + 1, x.sum()), (R(0, 4),), None),
    ("gather", lambda x, i: x.gather(1, i), (R(5, 6), torch.tensor([[1, 2], [3, 4], [0, 0]])), 1),
    (
        "scatter_add",
        lambda x, i, s: x.scatter_add(1, i, s),
        (R(5, 6), torch.tensor([[1, 2], [3, 1], [0, 0]]), R(3, 2)),
        2,
    ),
    ("index_inlined", lambda x: x * torch.arange(6) + torch.arange(5)[:, None], (R(5, 6),), 1),
    ("concatenate", lambda x, y: torch.cat([x, y * 2, x], 1) + 1, (R(3, 4), R(3, 2)), 4),
    ("stack", lambda x, y: torch.stack([x, y]).sum(0), (R(30, 4), R(30, 4)), None),
    ("indexing", lambda x, i: (x[i] + 1, x[:, i], x[i, i]), (R(7, 7), torch.tensor([1, -2, 3])), None),
    (
        "index_put",
        lambda x, i, v: (
            aten.index_put.default(x, [i], v, True),
            aten.index_put.default(x, [None, torch.arange(3)], v[0, :3], False),
        ),
        (R(7, 7), torch.tensor([1, -2, 1]), R(7, 7)[:3]),
        None,
    ),
    ("odd_sizes", lambda x: (x.tanh() * x).exp(), (R(3, 10007),), 1),
    ("nothing_in_another_shape", lambda x: x.flatten()[:0].view(1, 2, 1, 0).mean(-1), (R(3, 4).t(),), None),
    ("nothing_of_parts", lambda x: torch.stack([x, x], -1)[..., 1].flatten()[:0].view(1, 2, 0).sum(-1), (R(4),), None),
    ("transposed_input", lambda x: x.t() * 2 + x.t().sum(1, True), (R(37, 41),), None),
    # Of a square matrix rows and columns have the same extents, and are still two orders of its elements.
    ("rows_and_columns", lambda x: (x.sum(0), x.sum(1)), (R(70, 50),), 2),
    ("rows_and_columns_of_a_square", lambda x: (x.sum(0), x.sum(1)), (R(60, 60),), 2),
    ("rows_and_middle", lambda x: (x.sum(1), x.sum(2)), (R(3, 30, 30),), 2),
    ("one_order", lambda x, y: ((x * y).sum(0), x.sum(0)), (R(60, 60), R(60, 60)), 1),
]


@pytest.mark.parametrize("fn,args,kernels", [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_against_eager(fn, args, kernels):
    graph = check(fn, *args)
    if kernels is not None:
        assert len([s for s in graph.info.steps if hasattr(s, "text")]) == kernels, graph.info.source


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_dtypes(dtype):
    tol = {torch.bfloat16: 1e-2, torch.float16: 2e-3, torch.float64: 1e-12}[dtype]
    check(lambda x: ((x + 1).exp(), aten._softmax.default(x, 1, False), x.sum(0)), R(20, 30).to(dtype), tol=tol)
    graph = compile_graph(trace(lambda x: (x + 1) * 3 - x, R(50).to(dtype)))
    x = R(50).to(dtype)
    np.testing.assert_array_equal(
        graph(x)[0]._array, ((x + 1) * 3 - x)._array
    )  # rounded after each operator, as eager does


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_products(dtype):
    check(lambda a, b: ((a @ b).relu() @ b) + 1, R(8, 8).to(dtype), R(8, 8).to(dtype), tol=2e-2)


def test_bad_index_is_an_error():
    graph = compile_graph(trace(lambda w, i: aten.embedding.default(w, i), R(4, 3), torch.tensor([1, 3])))
    with pytest.raises(IndexError, match="embedding: index 7 is out of bounds for dimension with size 4"):
        graph(R(4, 3), torch.tensor([1, 7]))


def test_inputs_are_checked():
    graph = compile_graph(trace(lambda x: x + 1, R(4, 6)))
    np.testing.assert_array_equal(graph(R(6, 4).t())[0]._array, R(6, 4)._array.T + 1)  # other strides: copied
    with pytest.raises(RuntimeError, match=r"input 0 has shape \[3, 6\]"):
        graph(R(3, 6))
    with pytest.raises(TypeError, match="1 positional tensors, got 2"):
        graph(R(4, 6), R(4, 6))
    with pytest.raises(TypeError, match="must be a tensor"):
        graph(3)


def test_eager_kernel_inside_a_graph():
    """Integer products have no BLAS: the operator itself is called, on intermediate results too."""
    x = torch.arange(16).reshape(4, 4)
    graph = compile_graph(trace(lambda x: ((x + 1).t() @ x) * 2, x))
    np.testing.assert_array_equal(graph(x)[0]._array, (((x + 1).t() @ x) * 2)._array)
    assert graph.info.fallbacks == ["aten::mm: BLAS has no product for torch.int64"]


def test_random_draws_follow_the_eager_stream():
    graph = compile_graph(trace(lambda x: x + aten.rand_like.default(x), R(50)))
    torch.manual_seed(3)
    want = R(50) + torch.rand(50)
    torch.manual_seed(3)
    np.testing.assert_array_equal(graph(R(50))[0]._array, want._array)


def test_arena_is_reused_and_reentrant():
    fn = lambda x: ((((x @ x).relu() @ x).relu() @ x).relu() @ x).relu() @ x  # noqa: E731
    x = R(200, 200) * 0.05
    graph = check(fn, x, tol=1e-4)
    assert graph.arena_size <= 2 * 200 * 200 * 4 + 128 and "reuse" in graph.info.source
    results, want = [], fn(x)._array
    threads = [threading.Thread(target=lambda: [results.append(graph(x)[0]) for _ in range(5)]) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 20
    for r in results:
        np.testing.assert_allclose(r._array, want, rtol=1e-4, atol=1e-4)


def test_outputs_are_independent_of_the_arena():
    graph = compile_graph(trace(lambda x: (x + 1, (x + 1) * 2), R(100)))
    a, b = graph(torch.zeros(100))
    graph(torch.ones(100))
    gc.collect()
    assert float(a._array.max()) == 1.0 and float(b._array.max()) == 2.0


def test_result_does_not_depend_on_threads():
    old = _runtime.get_num_threads()
    x = R(3000, 257)
    graph = compile_graph(trace(lambda x: (x.sum(), x.sum(0), x.exp()), x))
    try:
        outs = []
        for n in (1, 2, 5):
            _runtime.set_num_threads(n)
            outs.append([o._array for o in graph(x)])
        for other in outs[1:]:
            for a, b in zip(outs[0], other):
                np.testing.assert_array_equal(a, b)
    finally:
        _runtime.set_num_threads(old)
    with pytest.raises(RuntimeError, match="positive"):
        _runtime.set_num_threads(0)


def test_blas_runs_on_one_thread_and_products_on_the_pool():
    from flambeau.base import blas

    library = blas._library()
    if library is None:
        pytest.skip("NumPy's BLAS is not the bundled OpenBLAS")
    R(200, 200) @ R(200, 200)
    assert library[0].scipy_openblas_get_num_threads64_() == 1


_LAYOUTS = {
    "plain": lambda x: x,
    "transposed": lambda x: np.ascontiguousarray(np.swapaxes(x, -1, -2)).swapaxes(-1, -2),
    "padded rows": lambda x: np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 3)])[..., : x.shape[-1]],
    "every second": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "one for all": lambda x: np.broadcast_to(x[..., :1, :], x.shape),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("left", _LAYOUTS)
@pytest.mark.parametrize("right", _LAYOUTS)
def test_product_of_the_runtime_in_all_layouts(left, right, dtype):
    from flambeau.base import blas

    blas.share_threads()
    rng = np.random.default_rng(0)
    for shape in ((1, 5, 1), (7, 1, 9), (64, 33, 200), (300, 70, 129), (3, 40, 50, 60), (17, 90, 64, 90)):
        *batch, m, k, n = shape
        a = _LAYOUTS[left](rng.normal(size=(*batch, m, k)).astype(dtype))
        b = _LAYOUTS[right](rng.normal(size=(*batch, k, n)).astype(dtype))
        want = a.astype(np.float64) @ b.astype(np.float64)
        got = (
            torch.from_numpy(a.copy() if left == "backwards" else a),
            torch.from_numpy(b.copy() if right == "backwards" else b),
        )
        got = torch.bmm(*got) if batch else torch.mm(*got)
        scale = np.abs(a).astype(np.float64) @ np.abs(b) + 1
        assert (np.abs(got._array - want) <= scale * np.finfo(dtype).eps * 8).all()
        direct = blas.matmul(a, b)
        assert direct is None or (np.abs(direct - want) <= scale * np.finfo(dtype).eps * 8).all()


def test_product_of_the_runtime_leaves_what_is_not_its_own():
    from flambeau.base import blas

    blas.share_threads()
    for a, b in (
        (np.ones((2, 3), np.int64), np.ones((3, 2), np.int64)),
        (np.ones((0, 3), "f"), np.ones((3, 2), "f")),
        (np.ones((2, 0), "f"), np.ones((0, 2), "f")),
        (np.ones((2, 3), "f"), np.ones((4, 2), "f")),
        (np.ones((2, 3), "f"), np.ones((3, 2), "d")),
        (np.ones((2, 3), ">f4"), np.ones((3, 2), ">f4")),
        (np.ones(3, "f"), np.ones(3, "f")),
    ):
        assert blas.matmul(a, b) is None
    with pytest.raises(TypeError, match="ndarray"):
        blas.matmul(np.ones((2, 2)), [[1.0]])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_pool_survives_fork():
    x = R(2000, 2000)
    graph = compile_graph(trace(lambda x: x.exp().sum(1), x))
    want = graph(x)[0]._array
    pid = os.fork()
    if pid == 0:
        os._exit(0 if np.array_equal(graph(x)[0]._array, want) else 1)
    assert os.waitpid(pid, 0)[1] == 0


def test_sum_is_as_accurate_as_pairwise():
    x = torch.from_numpy(np.random.default_rng(0).random(3_000_000).astype(np.float32))
    got = float(compile_graph(trace(lambda x: x.sum(), x))(x)[0]._array)
    exact = float(x._array.astype(np.float64).sum())
    assert abs(got - exact) / exact < 2e-7


def test_identical_loop_nests_are_one_kernel():
    metrics.reset()
    graph = compile_graph(trace(lambda a, w: ((a @ w).tanh() @ w).tanh() @ w, R(9, 9), R(9, 9)))
    assert metrics.generated_kernel_count == 2 and len(graph.info.kernels) == 1


def test_disk_cache(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    gm = trace(lambda x: x.sin() * 1.2345678, R(11))
    info = compile_graph(gm).info
    (name,) = info.kernels
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert any(p.name == name for p in files)
    (path,) = [p for p in files if p.name == name]
    assert cache.read(name)
    data = bytearray(path.read_bytes())
    data[100] ^= 255
    path.write_bytes(bytes(data))
    with caplog.at_level("WARNING", logger="flambeau.inductor"):
        assert cache.read(name) is None
    assert "damaged" in caplog.text
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\nimport numpy as np, flambeau as torch\nfrom tracing import trace\n"
        "from flambeau.inductor import compile_graph, metrics\n"
        "x = torch.ones(11)\ng = compile_graph(trace(lambda x: x.sin() * 1.2345678, x))\n"
        "assert np.allclose(g(x)[0]._array, np.sin(1) * 1.2345678)\nprint(metrics.compiled_kernels, metrics.cache_hits)"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-c", code, os.path.dirname(__file__)], capture_output=True, text=True, timeout=60
        )
        for _ in range(2)
    ]
    assert [r.stdout.split() for r in runs] == [["1", "0"], ["0", "1"]], runs[0].stderr + runs[1].stderr


def test_without_fusion():
    with config.patch(fusion=False):
        graph = check(lambda x: aten._softmax.default(x, 1, False), R(20, 30))
    assert len(graph.info.steps) == 4


def test_debug_directory(tmp_path, monkeypatch):
    from flambeau.base import debug_folder

    monkeypatch.setattr(debug_folder, "_run", None)
    names = ["graph_diagram", "compile_profile"]
    with config.patch({"trace.enabled": True, "trace.debug_dir": str(tmp_path), **{f"trace.{n}": True for n in names}}):
        compile_graph(trace(lambda a, b: (a @ b).relu().sum(1), R(4, 4), R(4, 4)))
    monkeypatch.setattr(debug_folder, "_run", None)
    found = {p.name for p in tmp_path.rglob("*") if p.is_file()}
    assert found == {
        "fx_graph_readable.py",
        "fx_graph_runnable.py",
        "fx_graph_transformed.py",
        "ir_pre_fusion.txt",
        "ir_post_fusion.txt",
        "output_code.py",
        "debug.log",
        "graph_diagram.svg",
        "compile.prof",
    }
    (script,) = tmp_path.rglob("fx_graph_runnable.py")
    run = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and "[(4,)]" in run.stdout, run.stderr


def test_injected_bug():
    x = R(9)
    with (
        config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "compile_error"}),
        pytest.raises(RuntimeError, match="injected compile error: relu"),
    ):
        compile_graph(trace(lambda x: (x + 1).relu(), x))
    with config.patch({"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}):
        graph = compile_graph(trace(lambda x: x.relu(), x))
    np.testing.assert_allclose(graph(x)[0]._array, x._array + 1, rtol=1e-6)


def test_config_patch():
    with config.patch(reduction_piece=1024), config.patch({"trace.enabled": False}):
        assert config.reduction_piece == 1024
    assert config.reduction_piece == 4096
    with pytest.raises(AttributeError, match="nonsense does not exist"), config.patch(nonsense=1):
        pass
