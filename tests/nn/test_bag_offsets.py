"""Offsets of ``embedding_bag`` that PyTorch refuses are refused in its words, in graphs too, where no result depends on them."""

import pytest

import flambeau as torch

aten = torch.ops.aten
BEGINS = r"offsets\[0\] has to be 0, .* However, got {}$"
ENDS = r"offsets\[-1\] can not be greater than input's length {} but got offsets\[-1\] of {}$"

# (offsets, indices, include_last_offset) -> what PyTorch 2.13 raises
WRONG = {
    "the first": ([1, 2], 3, False, BEGINS.format(1)),
    "the first, negative": ([-1, 2], 3, False, BEGINS.format(-1)),
    "the last": ([0, 9], 3, False, ENDS.format(3, 9)),
    "one behind the last index": ([0, 4], 3, False, ENDS.format(3, 4)),
    "of no indices": ([1], 0, False, BEGINS.format(1)),
    "the end of no bag": ([9], 3, True, BEGINS.format(9)),
    "the end of no bag of no indices": ([9], 0, True, BEGINS.format(9)),
    "the end": ([0, 2, 9], 3, True, ENDS.format(3, 9)),
    "the end of one bag": ([0, 9], 3, True, ENDS.format(3, 9)),
    "beyond 32 bits": ([2**32, 2**32], 3, False, BEGINS.format(r"\d+")),
}
RIGHT = [
    ([0], 3, False),
    ([0, 3], 3, False),
    ([0, 2, 2], 3, False),
    ([0], 0, False),
    ([0, 0], 0, True),
    ([0, 2, 3], 3, True),
]


def bags(offsets, total, last, mode, gradient, which=0):
    def f(weight, indices, at):
        return aten.embedding_bag.padding_idx(weight, indices, at, False, mode, False, None, last, None)[which] * 1

    weight = torch.arange(10.0).view(5, 2).requires_grad_(gradient)
    return f, (weight, torch.arange(total), torch.tensor(offsets))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_refused(name, gradient):
    *case, text = WRONG[name]
    for mode in (0, 2):
        f, arguments = bags(*case, mode, gradient)
        with pytest.raises(RuntimeError, match=text):
            f(*arguments)
        # An index that is checked as well may be what is told.
        with pytest.raises(RuntimeError, match=f"{text}|out of bounds"):
            torch.compile(f)(*arguments)


@pytest.mark.parametrize("name", ["of no indices", "the end of no bag", "the end"])
def test_refused_whichever_result_is_used(name):
    *case, text = WRONG[name]
    for which in (1, 2, 3):
        f, arguments = bags(*case, 0, True, which)
        with pytest.raises(RuntimeError, match=text):
            torch.compile(f)(*arguments)


def test_refused_where_sizes_vary():
    f, (weight, *_) = bags([0], 3, False, 0, True)
    compiled = torch.compile(f, dynamic=True)
    for total in (4, 6, 9):
        right = torch.tensor([0, 2, total])
        assert torch.equal(compiled(weight, torch.arange(total) % 5, right), f(weight, torch.arange(total) % 5, right))
        with pytest.raises(RuntimeError, match="offsets.*of 10"):
            compiled(weight, torch.arange(total) % 5, torch.tensor([0, 2, 10]))
        with pytest.raises(RuntimeError, match=BEGINS.format(2)):
            compiled(weight, torch.arange(total) % 5, torch.tensor([2, 2, 3]))


@pytest.mark.parametrize("case", RIGHT)
def test_taken(case):
    for mode in (0, 1, 2):
        for gradient in (False, True):
            f, arguments = bags(*case, mode, gradient)
            assert torch.equal(torch.compile(f)(*arguments), f(*arguments))


def test_refused_under_vmap():
    weight, indices = torch.ones(5, 2), torch.zeros(2, 3, dtype=torch.int64)

    def each(i, o):
        return torch.nn.functional.embedding_bag(i, weight, o)

    with pytest.raises(RuntimeError, match="offsets"):
        torch.vmap(each)(indices, torch.tensor([[0, 2], [1, 2]]))
    assert torch.vmap(each)(indices, torch.tensor([[0, 2], [0, 1]])).shape == (2, 2, 2)
