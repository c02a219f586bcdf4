"""Interpolation of 8-bit images is PyTorch's to the last bit: values recorded from PyTorch 2.13."""

import pytest

import flambeau as torch

F = torch.nn.functional
X = torch.tensor([[[[0, 255, 7, 200], [13, 90, 250, 1], [128, 64, 31, 99]]]], dtype=torch.uint8)


WANT = {
    ("bilinear", False, False, (2, 3)): [[38, 141, 137], [94, 79, 77]],
    ("bilinear", True, False, (4, 5)): [
        [0, 191, 131, 55, 200],
        [9, 111, 157, 144, 67],
        [51, 74, 129, 141, 34],
        [128, 80, 48, 48, 99],
    ],
    ("bicubic", False, False, (4, 5)): [
        [0, 222, 132, 22, 227],
        [0, 105, 196, 156, 65],
        [54, 46, 148, 161, 14],
        [141, 87, 23, 35, 110],
    ],
    ("bilinear", False, True, (2, 2)): [[99, 123], [84, 86]],
    ("bicubic", False, True, (2, 3)): [[54, 155, 115], [80, 93, 75]],
}


@pytest.mark.parametrize("mode,aligned,antialias,size", list(WANT))
@pytest.mark.parametrize("compiled", [False, True])
def test_values(mode, aligned, antialias, size, compiled):
    def f(x):
        return F.interpolate(x, size, mode=mode, align_corners=aligned, antialias=antialias)

    got = (torch.compile(f) if compiled else f)(X)
    assert got.dtype is torch.uint8
    assert got.tolist()[0][0] == WANT[mode, aligned, antialias, size]


def test_other_integers_are_refused():
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        F.interpolate(X.int(), (2, 2), mode="bilinear")
    with pytest.raises(NotImplementedError, match="not implemented for 'Byte'"):
        F.interpolate(X[0], 2, mode="linear")
