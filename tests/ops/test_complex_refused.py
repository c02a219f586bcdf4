"""What has no meaning for complex numbers refuses them: an order, rounding, functions that nobody continues; by the body of the operator, or its row."""

import pytest

import flambeau as torch

F = torch.nn.functional
Z = torch.tensor([[1 + 2j, 3 - 1j, 0.5j], [2.0, -1j, 4 + 4j]], dtype=torch.complex128)
CALLS = {
    "max": lambda z: z.max(), "max.dim": lambda z: z.max(1), "min": torch.min, "amax": lambda z: z.amax(1), "argmax": torch.argmax, "aminmax": torch.aminmax,
    "maximum": lambda z: torch.maximum(z, z), "fmin": lambda z: torch.fmin(z, z), "lt": lambda z: z < z, "ge": lambda z: z >= 1, "clamp": lambda z: z.clamp(0, 1),
    "clamp_": lambda z: z.clone().clamp_(0, 1), "sort": torch.sort, "argsort": torch.argsort, "topk": lambda z: z.topk(1), "kthvalue": lambda z: z.kthvalue(1),
    "median": torch.median, "median.dim": lambda z: z.median(1), "nanmedian": torch.nanmedian, "mode": torch.mode, "cummax": lambda z: z.cummax(0), "cummin": lambda z: z.cummin(0),
    "sign": torch.sign, "floor": torch.floor, "round": torch.round, "trunc": torch.trunc, "remainder": lambda z: z % 2, "floor_divide": lambda z: z // 2,
    "fmod": lambda z: torch.fmod(z, 2), "heaviside": lambda z: torch.heaviside(z, z), "signbit": torch.signbit, "atan2": lambda z: torch.atan2(z, z),
    "erf": torch.erf, "erfinv": torch.erfinv, "digamma": torch.digamma, "lgamma": torch.lgamma, "i0": torch.i0, "xlogy": lambda z: torch.xlogy(z, z),
    "logit": torch.logit, "nansum": torch.nansum, "deg2rad": torch.deg2rad, "isposinf": torch.isposinf, "relu": torch.relu, "gelu": F.gelu, "elu": F.elu,
    "softplus": F.softplus, "hardshrink": F.hardshrink, "threshold": lambda z: F.threshold(z, 0, 0), "softmax": lambda z: z.softmax(1),
    "log_softmax": lambda z: z.log_softmax(1), "layer_norm": lambda z: F.layer_norm(z, (3,)), "mse_loss": lambda z: F.mse_loss(z, z),
    "smooth_l1_loss": lambda z: F.smooth_l1_loss(z, z), "bce": lambda z: F.binary_cross_entropy_with_logits(z, z), "nll_loss": lambda z: F.nll_loss(z, torch.tensor([0, 1])),
    "max_pool1d": lambda z: F.max_pool1d(z, 2), "avg_pool1d": lambda z: F.avg_pool1d(z, 2), "upsample": lambda z: F.interpolate(z[None], scale_factor=2),
    "searchsorted": lambda z: torch.searchsorted(z[0], z[0]), "histc": torch.histc, "cdist": lambda z: torch.cdist(z, z), "bitwise_not": lambda z: ~z,
    "rfft": torch.fft.rfft,
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_refused(name):
    with pytest.raises((RuntimeError, TypeError)):
        CALLS[name](Z)
    with pytest.raises((RuntimeError, TypeError)):  # with a gradient asked for, too
        CALLS[name](Z.clone().requires_grad_())


@pytest.mark.parametrize("name", ["max", "sort", "lt", "erf", "layer_norm", "cummax"])
def test_refused_without_data(name):
    with pytest.raises((RuntimeError, TypeError)):
        CALLS[name](torch.empty(2, 3, dtype=torch.complex64, device="meta"))
    with pytest.raises((RuntimeError, TypeError)):
        torch.compile(CALLS[name])(Z)


def test_what_has_a_meaning_is_taken():
    for fn in (torch.abs, torch.sgn, torch.exp, torch.tanh, torch.sigmoid, torch.sqrt, torch.isnan, torch.logical_not, torch.angle, F.silu, torch.isinf,
               torch.isfinite, torch.reciprocal, torch.square, torch.prod, torch.mean, lambda z: z == z, lambda z: torch.lerp(z, z, 0.5),
               lambda z: torch.where(z.real > 0, z, 0), lambda z: z.masked_fill(z.imag > 0, 1), lambda z: torch.isclose(z, z), torch.var,
               lambda z: torch.nan_to_num(z), lambda z: z**2, lambda z: torch.addcdiv(z, z, z), lambda z: torch.logaddexp(z, z)):  # fmt: skip
        fn(Z)
