"""Functions at the top level that newer names have replaced, against those."""

import pytest

import flambeau as torch


def test_convolution_of_sequences():
    x, weight, bias = torch.randn(5, 2, 3), torch.randn(2, 3, 4), torch.randn(4)
    want = torch.nn.functional.conv1d(x.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=1).permute(2, 0, 1)
    assert torch.equal(torch.conv_tbc(x, weight, bias, 1), want)
    with pytest.raises(RuntimeError, match="must have 3 dimensions"):
        torch.conv_tbc(x[0], weight, bias)


def test_norms_except_for_a_dimension():
    v = torch.randn(2, 3, 4)
    for dim, rest in ((0, (1, 2)), (1, (0, 2)), (2, (0, 1))):
        assert torch.equal(torch.norm_except_dim(v, 2, dim), v.norm(2, rest, keepdim=True))
    assert torch.equal(torch.norm_except_dim(v, 1, -1), v.norm(1))


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"])
def test_draws_in_place(name):
    x = torch.ones(2, 8, 3)
    torch.manual_seed(1)
    want = getattr(torch, name)(x, 0.5, True)
    torch.manual_seed(1)
    assert getattr(torch, name + "_")(x, 0.5, True) is x and torch.equal(x, want)


def test_other_names():
    x = torch.tensor([-3.0, 3.0], requires_grad=True).clone()
    assert torch.rrelu_(x).tolist() == pytest.approx([-3 * (1 / 8 + 1 / 3) / 2, 3.0])
    assert torch.detach_(x) is x and not x.requires_grad
    y = torch.arange(8.0).reshape(1, 4, 1, 2)
    assert torch.equal(torch.native_channel_shuffle(y, 2), torch.channel_shuffle(y, 2))
    weight = torch.full((3, 2), 3.0)
    assert torch.embedding_renorm_(weight, torch.tensor([2]), 1.0, 2.0) is weight
    assert weight[:2].eq(3).all() and abs(weight[2].norm().item() - 1) < 1e-5


def test_variable_functions():
    assert torch._VF.unique_dim(torch.tensor([[2, 2], [1, 1]]), 0)[0].tolist() == [[1, 1], [2, 2]]
    from flambeau import _VF

    x, h, w = torch.ones(1, 2), torch.zeros(1, 3), torch.ones(9, 2)
    assert _VF.gru_cell(x, h, w, torch.ones(9, 3)).shape == (1, 3)
    with pytest.raises(AttributeError, match="no_such"):
        _VF.no_such  # noqa: B018
    absent = ["unique_dim", "silu", "sparse_mask", "linalg_eig", "one_hot"]
    assert not [name for name in absent if hasattr(torch, name)]
    assert torch.constant_pad_nd(torch.ones(1), (1, 0)).tolist() == [0, 1]
    with pytest.raises(NotImplementedError, match="_unique"):
        torch._unique(torch.ones(2, requires_grad=True))[0].sum().backward()
