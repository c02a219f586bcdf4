"""Every optimizer over its options, beside PyTorch: steps, states and groups; and checkpoints from one to the other."""

import itertools

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]  # PyTorch's, of its kernels
torch = pytest.importorskip("torch")

HOW = dict(maximize=[False, True], foreach=[None, True, False])
DECAY = dict(weight_decay=[0, 0.1])
DECOUPLED = dict(decoupled_weight_decay=[False, True])
BETAS = dict(betas=[(0.9, 0.999), (0.5, 0.8)])
OPTIONS = {
    "SGD": dict(momentum=[0, 0.9], dampening=[0, 0.3], nesterov=[False, True], fused=[None, True]) | DECAY | HOW,
    "Adam": dict(amsgrad=[False, True], fused=[None, True]) | DECOUPLED | BETAS | DECAY | HOW,
    "AdamW": dict(amsgrad=[False, True], fused=[None, True]) | DECAY | HOW,
    "Adamax": dict(eps=[1e-8, 1e-3]) | BETAS | DECAY | HOW,
    "NAdam": dict(momentum_decay=[4e-3, 0.1]) | DECOUPLED | DECAY | HOW,
    "RAdam": DECOUPLED | BETAS | DECAY | HOW,
    "ASGD": dict(t0=[0, 2, 1e6], lambd=[1e-4, 0.1]) | DECAY | HOW,
    "RMSprop": dict(momentum=[0, 0.5], centered=[False, True], alpha=[0.99, 0.5]) | DECAY | HOW,
    "Adadelta": dict(rho=[0.9, 0.5]) | DECAY | HOW,
    "Adagrad": dict(lr_decay=[0, 0.1], initial_accumulator_value=[0, 0.3], fused=[None, True]) | DECAY | HOW,
    "Rprop": dict(etas=[(0.5, 1.2), (0.3, 2.0)], step_sizes=[(1e-6, 50), (1e-3, 0.05)]) | HOW,
    "Adafactor": dict(eps=[(None, 1e-3), (1e-3, 1e-2)], d=[1.0, 2.0], beta2_decay=[-0.8, -0.3]) | DECAY | HOW,
    "Muon": dict(nesterov=[True, False], momentum=[0.95, 0.5], adjust_lr_fn=[None, "match_rms_adamw"]) | DECAY,
    "SparseAdam": dict(maximize=[False, True]) | BETAS,
}
# By dtype, of parameters and states of size one. ASGD's rate is kept in float32; Muon iterates in bfloat16.
BOUNDS = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12}
LOOSE = {("ASGD", "float64"): 1e-5, ("NAdam", "float64"): 1e-6, ("Muon", "float64"): 1e-6, ("RMSprop", "float32"): 1e-4}
STEPS = 7  # RAdam is certain from the sixth on


def numbers(lib, x):
    if not isinstance(x, lib.Tensor):
        return x
    return np.asarray((x.to_dense() if x.is_sparse else x).detach())


class Run:
    """An optimizer of one library over two groups, with gradients that all libraries get alike."""

    def __init__(self, lib, name, options, kind, rate):
        self.lib, rng, self.sparse = lib, np.random.default_rng(0), name == "SparseAdam"
        shapes = [(3, 4), (5, 2)] + ([] if name == "Muon" else [(4,), ()])
        self.values = [rng.standard_normal(shape) for shape in shapes]
        if kind == "complex64":
            self.values = [v + 1j * rng.standard_normal(v.shape) for v in self.values]
        self.dtype = getattr(lib, kind)
        self.params = [lib.nn.Parameter(lib.tensor(v).to(self.dtype)) for v in self.values]
        lr = lib.tensor(0.05, dtype=lib.float64) if rate == "tensor" else 0.05
        groups = [{"params": self.params[:1]}, {"params": self.params[1:], "lr": lr}]
        self.optimizer = getattr(lib.optim, name)(groups, lr=0.1, **options)

    def step(self, k):
        for i, p in enumerate(self.params):
            grad = self.lib.tensor(np.asarray(self.values[i] * (0.3 + 0.2 * k) - 0.2)).to(self.dtype)
            p.grad = None if (i, k) == (1, 1) else grad.to_sparse() if self.sparse else grad
        self.optimizer.step()

    def found(self):
        found = {f"parameter {i}": numbers(self.lib, p) for i, p in enumerate(self.params)}
        for i, p in enumerate(self.params):
            found |= {f"{key} of {i}": numbers(self.lib, v) for key, v in self.optimizer.state[p].items()}
        return found


def outcome(lib, name, options, kind, rate):
    try:
        run = Run(lib, name, options, kind, rate)
        for k in range(STEPS):
            run.step(k)
    except (RuntimeError, ValueError, TypeError) as e:
        return e
    return run.found(), repr(run.optimizer), [list(g) for g in run.optimizer.param_groups]


def same(ours, theirs, bound, what):
    assert list(ours) == list(theirs), what
    for key, value in theirs.items():
        assert type(value) is type(ours[key]) and getattr(value, "dtype", 0) == getattr(ours[key], "dtype", 0), (
            what,
            key,
        )
        np.testing.assert_allclose(ours[key], value, rtol=bound, atol=bound, err_msg=f"{what} {key}")


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("name", OPTIONS)
def test_steps(name, kind):
    for values in itertools.product(*OPTIONS[name].values()):
        options = dict(zip(OPTIONS[name], values))
        for rate in ("number", "tensor"):
            what = (name, options, kind, rate)
            theirs, ours = outcome(torch, *what), outcome(flambeau, *what)
            if isinstance(theirs, Exception):
                assert type(ours) is type(theirs) and str(ours)[:60] == str(theirs)[:60], (what, theirs, ours)
                continue
            assert not isinstance(ours, Exception), (what, ours)
            same(ours[0], theirs[0], LOOSE.get((name, kind), BOUNDS[kind]), what)
            assert ours[1:] == theirs[1:], what


# ---- checkpoints, from one library to the other ----------------------------------------------------------------------------


def converted(x, lib):
    """A state dict with the tensors of ``lib``."""
    if isinstance(x, (torch.Tensor, flambeau.Tensor)):
        return lib.tensor(np.asarray(x.detach()))
    if isinstance(x, dict):
        return {k: converted(v, lib) for k, v in x.items()}
    return type(x)(converted(v, lib) for v in x) if isinstance(x, (list, tuple)) else x


@pytest.mark.parametrize("libs", [(torch, flambeau), (flambeau, torch)], ids=["from PyTorch", "to PyTorch"])
@pytest.mark.parametrize("name", OPTIONS)
def test_checkpoints(name, libs):
    """Half of the steps in one library, the rest in the other."""
    for extra in ({}, {"momentum": 0.9} if name == "SGD" else {}, {"amsgrad": True} if name == "Adam" else {}):
        whole = Run(torch, name, extra, "float32", "number")
        first, second = (Run(lib, name, extra, "float32", "number") for lib in libs)
        for k in range(STEPS):
            whole.step(k)
            if k == 3:
                second.optimizer.load_state_dict(converted(first.optimizer.state_dict(), libs[1]))
                with libs[1].no_grad():
                    for p, q in zip(second.params, first.params):
                        p.copy_(converted(q, libs[1]))
            (first if k < 3 else second).step(k)
        same(second.found(), whole.found(), 1e-4, name)
