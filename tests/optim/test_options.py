"""What optimizers save of their options and state, and what they refuse, in PyTorch's words (those of its own database of optimizers)."""

import re

import numpy as np
import pytest

import flambeau
from flambeau import optim
from flambeau.nn import Parameter

KEYS = {
    "Adafactor": ["lr", "beta2_decay", "eps", "d", "weight_decay", "foreach", "maximize", "params"],
    "Muon": ["lr", "weight_decay", "momentum", "nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn", "params"],
}  # fmt: skip

two, half = flambeau.tensor([0.1, 0.1]), flambeau.tensor(0.5)
foreach = dict(foreach=True)
BETAS = "betas must be either both floats or both Tensors"
REFUSED = [
    *((name, dict(lr=two), "Tensor lr must be 1-element") for name in ("Adafactor", "Muon", "LBFGS", "Adam", "AdamW", "SparseAdam", "SGD")),
    ("Adafactor", dict(lr=-1), "Learning rate should be >= 0 but is: -1"),
    ("Adafactor", dict(eps=(-1e-30, 1e-3)), "epsilon1 should be >= 0 but is: -1e-30"),
    ("Adafactor", dict(eps=(None, -1.0)), "epsilon2 should be >= 0 but is: -1.0"),
    ("Adafactor", dict(d=0.0), "Clipping threshold d should be >= 1 but is: 0.0"),
    ("Adafactor", dict(beta2_decay=0.8), "beta2_decay should be <= 0 but is: 0.8"),
    ("Adafactor", dict(weight_decay=-0.5), "weight_decay should be >= 0 but is: -0.5"),
    ("Muon", dict(lr=-1), "Learning rate should be >= 0 but is: -1"),
    ("Muon", dict(momentum=-0.5), "momentum should be >= 0 but is: -0.5"),
    ("Muon", dict(weight_decay=-0.5), "weight decay should be >= 0 but is: -0.5"),
    ("Muon", dict(adjust_lr_fn="other"), "Adjust learning rate function other is not supported"),
    ("LBFGS", dict(lr=-1), "Invalid learning rate: -1"),
    *(
        case
        for name in ("Adam", "AdamW")
        for case in (
            (name, dict(lr=half) | foreach, "lr as a Tensor is not supported for capturable=False and foreach=True"),
            (name, dict(betas=(0.9, half)), BETAS),
            (name, dict(betas=(half, 0.9)), BETAS),
            (name, dict(betas=(0, 0.9)), BETAS),
            (name, dict(betas=(half, half)) | foreach, "betas[0] as a Tensor is not supported for capturable=False and foreach=True"),
        )
    ),
]  # fmt: skip


def weight(dtype=flambeau.float32):
    p = Parameter(flambeau.ones(2, 3, dtype=dtype))
    p.grad = flambeau.ones(2, 3, dtype=dtype)
    return p


@pytest.mark.parametrize("name", KEYS)
def test_keys(name):
    o = getattr(optim, name)([weight()])
    o.step()
    saved = o.state_dict()
    assert list(saved["param_groups"][0]) == KEYS[name]
    o.load_state_dict(saved)
    o.step()


@pytest.mark.parametrize("name, options, text", REFUSED)
def test_refused(name, options, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        getattr(optim, name)([weight()], **options)


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused_at_the_step(name):
    o = getattr(optim, name)([weight(flambeau.complex64)])
    with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
        o.step()


def test_sparse_adam_takes_dense_real_parameters():
    for p, text in (
        (flambeau.ones(3).to_sparse(), "Sparse params at indices [[0, 0]]: SparseAdam requires dense parameter tensors"),
        (flambeau.ones(3, dtype=flambeau.complex64), "Complex params at indices [[0, 0]]: SparseAdam does not support complex"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=re.escape(text)):
            optim.SparseAdam([p])
        with pytest.raises(ValueError, match=re.escape(text)):
            optim.SparseAdam([{"params": [p]}])


def test_lbfgs_keeps_its_coefficients():
    p = Parameter(flambeau.tensor([3.0, -2.0]))
    o = optim.LBFGS([p], lr=0.1, max_iter=4, history_size=5)

    def closure():
        o.zero_grad()
        loss = (p**4).sum()
        loss.backward()
        return loss

    o.step(closure)
    state = o.state_dict()["state"][0]
    assert list(state) == "func_evals n_iter al d t old_dirs old_stps ro H_diag prev_flat_grad prev_loss".split()
    assert len(state["al"]) == 5 and state["al"][4] is None and len(state["old_dirs"]) == 3


def test_muon_rounds_once_for_each_product():
    """b * G + c * G @ G, and the product with X, are rounded to bfloat16 once each."""
    rng = np.random.default_rng(0)
    g = flambeau.tensor(rng.standard_normal((3, 4)), dtype=flambeau.float32)
    p = Parameter(flambeau.zeros(3, 4))
    p.grad = g
    optim.Muon([p], lr=1.0, weight_decay=0.0, momentum=0.0, nesterov=False).step()
    x = g.bfloat16()
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram, wide = (x @ x.T).double(), x.double()
        update = (-4.775 * gram + 2.0315 * (gram @ gram)).bfloat16().double()
        x = (3.4445 * wide + update @ wide).bfloat16()
    assert flambeau.equal(p.detach(), -x.float())


def test_plateau_bounds_groups_that_came_later():
    def after(min_lr):
        optimizer = optim.SGD([Parameter(flambeau.ones(1))], 0.1)
        scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=min_lr)
        optimizer.add_param_group({"params": [Parameter(flambeau.ones(1))], "lr": 0.2})
        scheduler.step(1.0)
        scheduler.step(1.0)
        return [group["lr"] for group in optimizer.param_groups]

    assert after(0.05) == [0.05, 0.05]
    with pytest.raises(RuntimeError, match="number of param groups"):
        after([0.05])


class _Scale:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return self.factor


def test_cyclic_states_keep_the_attributes_of_a_scale_object():
    def made(scale):
        optimizer = optim.SGD([Parameter(flambeau.ones(1))], 0.1, momentum=0.9)
        return optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, 2, scale_fn=scale)

    state = made(_Scale(0.5)).state_dict()
    assert state["_scale_fn_custom"] == {"factor": 0.5}
    other = made(_Scale(2.0))
    other.load_state_dict(state)
    assert other.scale_fn(1) == 0.5
    assert made(lambda x: 0.5).state_dict()["_scale_fn_custom"] is None


LATER = (
    "maximize foreach capturable differentiable fused amsgrad nesterov centered momentum decoupled_weight_decay".split()
)


@pytest.mark.parametrize("name", "SGD Adam AdamW Adamax NAdam RAdam ASGD RMSprop Adadelta Adagrad Rprop".split())
def test_state_dicts_of_old_releases(name):
    """Those without options that came later, and with counts as numbers, go on as new ones do."""

    def went_on(age):
        first, second = ([weight()] for _ in range(2))
        o = getattr(optim, name)(first)
        o.step()
        saved = o.state_dict()
        if age:
            saved["param_groups"] = [
                {k: v for k, v in g.items() if k not in LATER or (name, k) == ("SGD", "momentum")}
                for g in saved["param_groups"]
            ]
            counts = ("step", "eta", "mu", "mu_product")
            saved["state"] = {
                k: {n: v.item() if n in counts else v for n, v in s.items()} for k, s in saved["state"].items()
            }
        o = getattr(optim, name)(second)
        o.load_state_dict(saved)
        o.step()
        assert all(isinstance(v, flambeau.Tensor) for v in o.state[second[0]].values())
        return second[0].detach()

    assert flambeau.equal(went_on(True), went_on(False))


def test_loading_goes_through_what_a_class_defines():
    """Optimizers of users define ``__setstate__`` to complete what old checkpoints lack."""

    class Own(optim.SGD):
        def __setstate__(self, state):
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("extra", 3)

    o = Own([weight()], lr=0.1)
    log = []
    o.register_step_pre_hook(lambda *args: log.append("step"))
    o.load_state_dict(optim.SGD([weight()], lr=0.2).state_dict())
    o.step()
    assert o.param_groups[0]["extra"] == 3 and o.param_groups[0]["lr"] == 0.2 and log == ["step"]


def test_groups_of_adagrad_that_come_later():
    o = optim.Adagrad([weight()], initial_accumulator_value=0.5)
    later = weight()
    o.add_param_group({"params": [later]})
    o.step()
    assert flambeau.equal(o.state[later]["sum"], flambeau.full((2, 3), 1.5))


def test_rprop_scales_steps_in_the_dtype_of_the_parameter():
    p = weight(flambeau.float64)
    o = optim.Rprop([p], lr=0.1)
    for _ in range(3):
        o.step()
    assert o.state[p]["step_size"][0, 0].item() == 0.1 * 1.2 * 1.2


def test_lbfgs_takes_sparse_gradients():
    dense, sparse = weight(), weight()
    sparse.grad = sparse.grad.to_sparse()
    for p in (dense, sparse):
        optim.LBFGS([p], lr=0.5, max_iter=1).step(lambda: 1.0)
    assert flambeau.equal(dense.detach(), sparse.detach())


def test_fused_steps_take_real_parameters():
    o = optim.SGD([weight(flambeau.complex64)], fused=True)
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors"):
        o.step()
