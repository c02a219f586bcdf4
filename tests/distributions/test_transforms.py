"""Transforms: what is missing is named; equality."""

import pytest

import flambeau as torch
from flambeau.distributions import transforms


def test_what_a_transform_lacks_is_named():
    class Mine(transforms.Transform):
        domain = codomain = torch.distributions.constraints.real
        bijective = True

    mine = Mine()
    for name, call in {
        "_call": lambda: mine(torch.ones(2)),
        "_inverse": lambda: mine.inv(torch.ones(2)),
        "sign": lambda: mine.sign,
        "log_abs_det_jacobian": lambda: mine.log_abs_det_jacobian(torch.ones(2), torch.ones(2)),
    }.items():
        with pytest.raises(NotImplementedError, match=f"Mine.{name} is not implemented"):
            call()


def test_transforms_without_parameters_are_equal():
    assert transforms.ExpTransform() == transforms.ExpTransform() != transforms.TanhTransform()
    assert transforms.SoftmaxTransform() == transforms.SoftmaxTransform() != transforms.AbsTransform()
