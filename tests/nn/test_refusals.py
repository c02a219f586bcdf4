"""What layers and functions refuse, in PyTorch's words, and what must not be refused."""

import pytest

import flambeau as fl
from flambeau import nn
from flambeau.nn import functional as F

REFUSED = {
    "mean of integers": (lambda: F.avg_pool2d(fl.ones(1, 1, 4, 4, dtype=fl.int32), 2), "not implemented for 'Int'"),
    "adaptive mean of integers": (
        lambda: F.adaptive_avg_pool2d(fl.ones(1, 4, 4, dtype=fl.int64), 2),
        "not implemented for",
    ),
    "adaptive maximum of integers": (
        lambda: F.adaptive_max_pool2d(fl.ones(1, 4, 4, dtype=fl.uint8), 2),
        "not implemented for",
    ),
    "maximum of truths": (lambda: F.max_pool2d(fl.ones(1, 4, 4, dtype=fl.bool), 2), "not implemented for"),
    "no stride": (lambda: F.avg_pool2d(fl.ones(1, 4, 4), 2, stride=0), "stride should not be zero"),
    "an index outside": (
        lambda: F.embedding_bag(fl.tensor([[-1, 1]]), fl.ones(3, 2)),
        "Expected idx >= 0 && idx < num_embeddings",
    ),
    "padding outside": (
        lambda: F.embedding_bag(fl.tensor([[0, 1]]), fl.ones(3, 2), padding_idx=3),
        "padding_idx must be within",
    ),
    "ranks of attention": (
        lambda: nn.MultiheadAttention(4, 2)(fl.ones(2, 2, 4), fl.ones(2, 4), fl.ones(2, 2, 4)),
        "found 2-D and 3-D",
    ),
    "sum of lazy parameters": (lambda: nn.LazyLinear(2).weight + 1, "uninitialized parameter"),
    "a window that reaches nothing": (
        lambda: fl.istft(fl.ones(3, 4, dtype=fl.complex64), 4, window=fl.zeros(4)),
        "window overlap add min",
    ),
    "attention of vectors": (
        lambda: F.scaled_dot_product_attention(fl.ones(3), fl.ones(3), fl.ones(3)),
        "at least 2 dimensional",
    ),
    "sparse gradients of maxima": (
        lambda: nn.EmbeddingBag(5, 3, mode="max", sparse=True)(fl.tensor([0]), fl.tensor([0])),
        "does not support sparse weights",
    ),
    "frequencies of maxima": (
        lambda: nn.EmbeddingBag(5, 3, mode="max", scale_grad_by_freq=True)(fl.tensor([0]), fl.tensor([0])),
        "does not support scaling",
    ),
    "channels to shuffle": (
        lambda: F.pixel_shuffle(fl.ones(1, 5, 2, 2), 2),
        "'channel' dimension .* is not divisible by 4",
    ),
    "sizes of unflatten": (lambda: fl.ones(6).unflatten(0, (4, -1)), "don't multiply up to the size of dim 0"),
    "no sizes of unflatten": (lambda: fl.ones(6).unflatten(0, ()), "must be non-empty"),
    "channels of instance norm": (lambda: nn.InstanceNorm2d(3, affine=True)(fl.ones(2, 4, 3, 3)), "size at dim=1 to"),
    "nothing to pack": (
        lambda: nn.utils.rnn.pack_padded_sequence(fl.ones(0, 0), fl.tensor([], dtype=fl.int64)),
        "empty tensor",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, text = REFUSED[case]
    with pytest.raises((RuntimeError, AssertionError, ValueError), match=text):
        call()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_modules(n):
    x = fl.arange(4**n).reshape([1, 1] + [4] * n).double()
    pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)
    unpool = getattr(nn, f"MaxUnpool{n}d")(2)
    out, places = pool(x)
    assert unpool(out, places).sum() == out.sum() and unpool(out, places, output_size=x.shape).shape == x.shape


def test_bags_of_nothing_have_a_gradient():
    for mode in ("sum", "mean", "max"):
        bag = nn.EmbeddingBag(3, 2, mode=mode)
        bag(fl.tensor([], dtype=fl.int64), fl.tensor([0, 0])).sum().backward()
        assert bag.weight.grad.tolist() == [[0.0, 0.0]] * 3


def test_parametrizations_say_what_is_wrong():
    class Cut(nn.Module):
        def forward(self, x):
            return x[:-1]

    class Truths(nn.Module):
        def forward(self, x):
            return x.bool()

    for part, text in ((Cut(), "may not change the shape"), (Truths(), "may not change the dtype")):
        with pytest.raises(ValueError, match=text):
            nn.utils.parametrize.register_parametrization(nn.Linear(2, 2), "weight", part)


def test_a_copy_into_a_meta_parameter_warns():
    layer = nn.Linear(2, 2, device="meta")
    with pytest.warns(UserWarning, match="which is a no-op"):
        layer.load_state_dict(nn.Linear(2, 2).state_dict())


@pytest.mark.parametrize("sizes", [5, "ab", (2, 2.5), (("b", 2),)])
def test_sizes_of_unflatten_are_numbers(sizes):
    with pytest.raises(TypeError, match="unflattened_size must be"):
        nn.Unflatten(1, sizes)
