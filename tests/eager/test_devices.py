"""A device that is asked for is never ignored, at the first call of an operator and at later ones."""

import pytest

import flambeau as torch

FACTORIES = [
    lambda d: torch.ones(2, 3, device=d),
    lambda d: torch.full((2, 3), 1.5, device=d),
    lambda d: torch.arange(4, device=d),
    lambda d: torch.randn(2, 3, device=d),
    lambda d: torch.ones(2, 3).to(d),
    lambda d: torch.zeros_like(torch.ones(2), device=d),
    lambda d: torch.tensor([1.0, 2.0], device=d),
]


@pytest.mark.parametrize("make", FACTORIES)
def test_meta_has_no_data_and_cuda_is_refused(make):
    for _ in range(3):
        t = make("meta")
        assert t.device.type == "meta" and t._array is None
        with pytest.raises((AssertionError, RuntimeError), match="(?i)cuda"):
            make("cuda")
        assert make("cpu").device.type == "cpu"


def test_operators_on_meta_give_meta():
    a, b = torch.empty(4, 5, device="meta"), torch.empty(5, 3, device="meta")
    for _ in range(2):
        out = torch.softmax(a @ b, -1).sum(0)
        assert out.device.type == "meta" and out.shape == (3,)
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        b @ a @ a
