"""Indices of 32 bits where sizes allow, and the kernel for larger sizes."""

import re

import pytest
from tests.cuda.kernels import kernels_of, program_of

import flambeau as torch
from flambeau.base.expr_walks import evaluate
from flambeau.base.relations import as_symbol
from flambeau.inductor.codegen.targets import NVIDIA
from flambeau.inductor.codegen.threads import MOST_NARROW, widened
from flambeau.inductor.device import launches, single
from flambeau.inductor.machine import nvptx

A = torch.ops.aten
IMAGE = torch.linspace(0, 1, 384).reshape(2, 3, 8, 8)

# With symbols for sizes, these divide numbers of threads.
CALLS = [
    (A.add.Tensor, (torch.ones(30, 1, 50), torch.ones(40, 1))),
    (A.cat.default, ([torch.ones(3, 4), torch.ones(3, 5)], 1)),
    (A.flip.default, (IMAGE, [1, 2])),
    (A.mm.default, (torch.ones(30, 40), torch.ones(40, 50))),
    (A.convolution.default, (IMAGE, torch.ones(4, 3, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)),
    (A.avg_pool2d.default, (IMAGE, [2, 2], [2, 2], [0, 0], False, True, None)),
]
NAMES = [str(op) for op, _ in CALLS]
WIDE_DIVISION = re.compile(r"\b(?:div|rem)\.[su]64")


def instructions(text):
    made = nvptx.assembly(text, "sm_90")
    lines = [line for line in made.splitlines() if line.startswith("\t") and not line.strip().startswith((".", "//"))]
    return len(lines), len(WIDE_DIVISION.findall(made))


@pytest.mark.parametrize("op, args", CALLS, ids=NAMES)
def test_divisions_have_32_bits(op, args):
    """Fewer instructions, and none that divides numbers of 64 bits, which devices do by a hundred others."""
    found = [
        (instructions(k.text), instructions(widened(k.text)))
        for k in kernels_of(program_of(op, op.full(*args), True), NVIDIA)
    ]
    assert all(own[1] == 0 and own[0] <= wide[0] for own, wide in found)
    assert any(wide[1] > 0 and own[0] < wide[0] for own, wide in found)


@pytest.mark.parametrize("n, narrow", [(MOST_NARROW, True), (MOST_NARROW + 1, False)])
def test_sizes_that_are_known_choose_the_text(n, narrow):
    x = torch.empty(1).expand(n)
    for op, args in ((A.neg.default, (x,)), (A.sum.default, (x,))):
        (kernel, *_) = kernels_of(program_of(op, op.full(*args)), NVIDIA)
        assert ("%narrow" in kernel.text) == narrow or op is A.sum.default
        assert (widened(kernel.text) != kernel.text) == ("%narrow" in kernel.text)


def test_sizes_that_a_call_brings_choose_the_kernel():
    single._exact.clear()
    single._general.clear()
    x = torch.ones(5, 3).cuda()
    x + x[:, :1]
    ((kernel,),) = [v for what, v in single._general.items() if what[0] is A.add.Tensor]
    (part,) = kernel.graph.parts
    rows, columns = kernel.sizes.tensors[0][0]
    env = dict.fromkeys(kernel.graph.bound, 1)
    for r, c, wide in (
        (1 << 16, 1 << 15, True),
        ((1 << 16) - 1, 1 << 15, False),
        (MOST_NARROW, 1, False),
        (1 << 31, 1, True),
        (1 << 40, 1, True),
    ):
        env.update({as_symbol(rows): r, as_symbol(columns): c})
        assert evaluate(rows, env) == r and part.numbers(env).wide == wide


@pytest.mark.parametrize("op, args", CALLS, ids=NAMES)
def test_both_kernels_give_the_same(op, args, monkeypatch):
    move = lambda x: [move(y) for y in x] if isinstance(x, list) else x.cuda() if isinstance(x, torch.Tensor) else x  # noqa: E731
    moved, expected = [move(x) for x in args], op(*args)
    for most in (MOST_NARROW, 2):
        monkeypatch.setattr(launches, "MOST_NARROW", most)
        single._exact.clear()
        single._general.clear()
        torch.testing.assert_close(op(*moved).cpu(), expected)
        found = [*single._exact.values(), *(k for kernels in single._general.values() for k in kernels)]
        parts = [p for k in found if isinstance(k, single._Kernel) for p in k.graph.parts]
        assert any(set(p._plans) == {most == 2} for p in parts if isinstance(p, launches.Launches))
    single._exact.clear()
    single._general.clear()
