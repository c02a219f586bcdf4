"""Kernels for threads: the same text for the simulated device, in several orders, and for NVIDIA's assembler's input."""

import pytest
from tests.cuda.kernels import kernels_of, program_of

import flambeau as torch
from flambeau.base import accelerator
from flambeau.base.device import as_device
from flambeau.inductor.codegen.targets import NVIDIA, SIMULATED
from flambeau.inductor.device import single
from flambeau.inductor.device.images import function_of
from flambeau.inductor.machine import nvptx
from flambeau.testing.samples import load, operator, to_tensors

A = torch.ops.aten
ROW = torch.linspace(-3, 3, 4000).reshape(2, 2000)

# Of threads that know nothing of each other, of a warp, of several warps, with two results, with indices, with loops.
CALLS = [
    (A.add.Tensor, (ROW, ROW.flip(1))),
    (A._softmax.default, (ROW[:, :60].contiguous(), 1, False)),
    (A._softmax.default, (ROW, 1, False)),
    (A.max.dim, (ROW.double().sin(), 1)),
    (A.argmin.default, (ROW.sin(),)),
    (A.native_layer_norm.default, (ROW, [2000], None, None, 1e-5)),
    (A.sum.dim_IntList, (ROW.reshape(40, 100), [0])),
    (A.any.default, (ROW > 2.99,)),
    (A.embedding.default, (ROW, torch.tensor([1, 0, 1]))),
    (A.index_add.default, (ROW, 0, torch.tensor([1, 0, 1]), torch.ones(3, 2000))),
    (A.mm.default, (ROW[:, :40].contiguous(), ROW[:, 100:140].t())),
]
NAMES = [str(op) for op, _ in CALLS]


@pytest.fixture
def order():
    yield accelerator.driver().order
    accelerator.driver().order(0)


@pytest.mark.parametrize("op, args", CALLS, ids=NAMES)
def test_results_do_not_depend_on_the_order_of_threads(op, args, order):
    moved = [x.cuda() if isinstance(x, torch.Tensor) else x for x in args]
    found = []
    for k in (0, 1, 2, 7):
        order(k)
        out = op(*moved)
        found.append([t.cpu() for t in (out if isinstance(out, tuple) else [out])])
    expected = op(*args)
    for a, b in zip(found[0], expected if isinstance(expected, tuple) else [expected]):
        torch.testing.assert_close(a, b)
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other))


@pytest.mark.parametrize("architecture", nvptx.ARCHITECTURES)
def test_assembly(architecture):
    for op, args in CALLS:
        for kernel in kernels_of(program_of(op, op.full(*args)), NVIDIA):
            made = nvptx.assembly(kernel.text, architecture)
            assert f".target {architecture}" in made and ".visible .entry KERNEL" in made
            assert ("bar.sync" in made) == bool(kernel.shared) and ("shfl.sync.bfly" in made) == kernel.by_rows
            assert ".approx" not in made and ".ftz" not in made


@pytest.mark.slow
def test_assembly_of_every_operator():
    """What is refused calls the C library's functions, which are listed here."""
    texts, missing = {}, {}
    for name, row in load().items():
        try:
            op = operator(name)
        except AttributeError:
            continue  # samples may be ahead of the operator
        if "draws" in op.effects:
            continue
        for call in row.calls:
            args, kwargs = to_tensors(call.args), to_tensors(call.kwargs)
            try:
                kernels = kernels_of(program_of(op, op.full(*args, **kwargs)), NVIDIA)
            except (torch._subclasses.fake_tensor.DataDependentOutputException, RuntimeError):
                continue  # its sizes depend on data
            texts.update((k.text, name) for k in kernels)
    for text, name in texts.items():
        for function in nvptx.refused(text):
            missing.setdefault(function, set()).add(name)
        if not nvptx.refused(text):
            assert ".visible .entry KERNEL" in nvptx.assembly(text, "sm_90")
    assert len(texts) > 1500 and set(missing) <= NOT_ON_DEVICES


NOT_ON_DEVICES = {"llvm.pow.f64", "sin", "sinf", "cos", "cosf", "tan", "tanf", "erfc", "lgamma"}


def launch(text, threads, *tensors, cooperative=False, shared=0):
    driver, device = accelerator.driver(), as_device("cuda")
    function = function_of(device, text)
    memories = [t._storage.device_memory for t in tensors]
    driver.launch(0, function.handle, 1, threads, cooperative, shared, memories, [0] * len(memories), [0])


def test_an_element_outside_of_the_memory_is_an_error():
    (kernel,) = kernels_of(program_of(A.neg.default, (torch.ones(300),)), SIMULATED)
    short, long = (torch.ones(n, device="cuda") for n in (7, 300))
    launch(kernel.text, 256, *(short, long))
    with pytest.raises(RuntimeError, match="an illegal memory access was encountered .*element 7 of argument 0"):
        torch.cuda.synchronize()
    torch.cuda.synchronize()  # told once
    assert torch.equal((long * 0).cpu(), torch.zeros(300))


def test_a_fault_among_threads_that_wait_for_one_another():
    (kernel,) = kernels_of(program_of(A._softmax.default, (ROW, 1, False)), SIMULATED)[-1:]
    given = [torch.ones(n, device="cuda") for n in [10] * len(kernel.args)]
    launch(kernel.text, kernel.threads, *given, cooperative=True, shared=kernel.shared)
    with pytest.raises(RuntimeError, match="an illegal memory access"):
        given[0].cpu()


DIVERGED = """
define void @KERNEL(ptr %args, ptr %here) {
  %n = load i64, ptr %here
  %at = getelementptr i64, ptr %here, i64 6
  %barrier = load ptr, ptr %at
  %c = icmp slt i64 %n, 40
  br i1 %c, label %wait, label %end
wait:
  call void %barrier(ptr %here)
  br label %end
end:
  ret void
}
"""


def test_a_barrier_that_a_part_of_a_block_reaches_is_an_error():
    launch(DIVERGED, 64, cooperative=True)
    with pytest.raises(RuntimeError, match="a barrier that a part of a block reached"):
        torch.cuda.synchronize()
    launch(DIVERGED, 32, cooperative=True)
    torch.cuda.synchronize()


def test_an_index_out_of_range():
    with pytest.raises(IndexError, match="index 2 is out of bounds for dimension with size 2"):
        A.embedding(ROW.cuda(), torch.tensor([0, 2]).cuda())


def test_one_graph_serves_many_shapes():
    """Sizes are symbols: what is known of them is asked at each call."""
    known = single._general
    known.clear()
    single._exact.clear()
    for n in (3, 5, 70):
        x = torch.linspace(-1, 1, n * 2 * n).reshape(n, 2 * n)
        moved = x.cuda()
        for f in (lambda x: x.sin(), lambda x: x.sum(1), lambda x: torch.softmax(x, 1), lambda x: x @ x.t()):
            torch.testing.assert_close(f(moved).cpu(), f(x))
    assert len(single._exact) == 12 and [len(v) for v in known.values()] == [1, 1, 1, 1]
    x = torch.ones(4, 4)  # equal sizes, which were different before
    assert torch.equal((x.cuda() @ x.cuda().t()).cpu(), x @ x.t())


def test_the_default_dtype_is_asked_at_each_call():
    makes = (
        lambda: torch.full((2,), 1.5, device="cuda"),
        lambda: torch.arange(3, device="cuda") / 2,
        lambda: torch.ones(3, dtype=torch.int64, device="cuda") * 1.5,
    )
    assert [f().dtype for f in makes] == [torch.float32] * 3
    torch.set_default_dtype(torch.float64)
    try:
        assert [f().dtype for f in makes] == [torch.float64] * 3
    finally:
        torch.set_default_dtype(torch.float32)
