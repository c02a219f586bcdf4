"""How a fused kernel is laid out for threads, and that both targets are written the same kernel."""

import pytest
from tests.cuda.kernels import kernels_of, program_of

import flambeau as torch
from flambeau.inductor.codegen.targets import NVIDIA, SIMULATED
from flambeau.inductor.codegen.threads import BLOCK, SHORT, blocks_of

A = torch.ops.aten


def kernels(op, *args, target=SIMULATED):
    return kernels_of(program_of(op, op.full(*args)), target)


def rows(n, length):
    return torch.ones(n, length)


def total(x, dim=1, target=SIMULATED):
    (kernel,) = kernels(A.sum.dim_IntList, x, [dim], target=target)
    return kernel


# (tensor, dimension) -> threads of a block, whether it makes a row, bytes of shared memory, blocks
SUMS = [
    (rows(70, SHORT), 1, (BLOCK, False, 0, 1)),
    (rows(70, SHORT + 1), 1, (32, True, 0, 70)),
    (rows(3, 256), 1, (32, True, 0, 3)),
    (rows(3, 257), 1, (128, True, 4 * 8, 3)),
    (rows(3, 1024), 1, (128, True, 4 * 8, 3)),
    (rows(3, 1025), 1, (BLOCK, True, 8 * 8, 3)),
    (rows(500, 600), 0, (BLOCK, False, 0, 3)),  # neighbouring threads read neighbouring elements
]


@pytest.mark.parametrize("x, dim, expected", SUMS, ids=[f"{tuple(x.shape)}-{d}" for x, d, _ in SUMS])
def test_schedule_of_a_sum(x, dim, expected):
    k = total(x, dim)
    assert (k.threads, k.by_rows, k.shared, blocks_of(k)) == expected


@pytest.mark.parametrize("n, blocks", [(1, 1), (256, 1), (257, 2), (5000, 20)])
def test_threads_of_elements(n, blocks):
    (k,) = kernels(A.neg.default, torch.ones(n))
    assert (k.threads, k.by_rows, k.shared, k.total, blocks_of(k)) == (BLOCK, False, 0, n, blocks)
    assert f"icmp slt i64 %narrow12, {n}" in k.text  # threads behind the last element do nothing


def test_a_row_of_a_block_asks_for_no_end():
    k = total(rows(3, 2000))
    entry = k.text.split("each:")[0]
    assert entry.rstrip().endswith("br label %each") and "icmp" not in entry


@pytest.mark.parametrize("length, warps", [(40, 1), (300, 4), (2000, 8)])
def test_a_row_is_combined_by_halves_then_in_the_order_of_warps(length, warps):
    text = total(rows(3, length), target=NVIDIA).text
    shuffles = [line for line in text.splitlines() if "shfl.sync" in line]
    assert [line.rsplit("i32 ", 2)[1].rstrip(", ") for line in shuffles] == ["16", "8", "4", "2", "1"]
    assert text.count("@llvm.nvvm.barrier0()") == (warps > 1)
    read = [line for line in text.partition("barrier0")[2].splitlines() if "KERNEL.shared" in line]
    assert [int(line.rsplit(" ", 1)[1]) for line in read] == ([8 * w for w in range(warps)] if warps > 1 else [])


def test_two_words_are_exchanged_of_a_wide_value_and_its_place():
    (k,) = kernels(A.argmax.default, torch.ones(3000, dtype=torch.float64), target=NVIDIA)[-1:]
    assert k.by_rows and k.text.count("shfl.sync.bfly.i32(") == 5 * 4  # halves of a value and of a place
    assert k.shared == 8 * (k.threads // 32) * 2


WORDS = {
    torch.bool: 1,
    torch.int8: 1,
    torch.float16: 1,
    torch.int32: 1,
    torch.float32: 1,
    torch.int64: 2,
    torch.float64: 2,
}


@pytest.mark.parametrize("dtype", WORDS, ids=str)
def test_words_that_are_exchanged(dtype):
    (k,) = kernels(A.amax.default, torch.zeros(8, 1500, dtype=dtype), [1], target=NVIDIA)
    assert k.by_rows and k.text.count("shfl.sync.bfly.i32(") == 5 * WORDS[dtype]


@pytest.mark.parametrize(
    "op, args",
    [(A._softmax.default, (rows(3, 2000), 1, False)), (A.add.Tensor, (rows(2, 3), 1)), (A.mm.default, (rows(4, 9), rows(9, 5)))],
)  # fmt: skip
def test_both_targets_get_the_same_arithmetic(op, args):
    def arithmetic(target):
        words = ("fadd", "fmul", "fsub", "fdiv", "fcmp")
        return [
            [line.split("= ")[1].split(" ")[0] for line in k.text.splitlines() if "= f" in line and any(w in line for w in words)]
            for k in kernels(op, *args, target=target)
        ]  # fmt: skip

    assert arithmetic(NVIDIA) == arithmetic(SIMULATED) != []
