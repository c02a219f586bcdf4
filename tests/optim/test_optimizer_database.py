"""Every optimizer of PyTorch's own database with every input that it lists, beside PyTorch: parameters, state and errors; called and compiled."""

import warnings

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]  # PyTorch's, of its kernels
torch = pytest.importorskip("torch")
optimizers = pytest.importorskip("torch.testing._internal.common_optimizers")

STEPS = 6
SHAPES = [(3, 4), (5, 2), (2, 2)]  # matrices: what every optimizer of the database takes


def ours(x, made=None):
    """``x`` with flambeau's tensors and dtypes for PyTorch's; a tensor that is there twice is one tensor."""
    made = {} if made is None else made
    if isinstance(x, torch.Tensor):
        if x.is_sparse:
            return flambeau.ones(tuple(x.shape)).to_sparse()
        if id(x) not in made:
            t = flambeau.from_numpy(x.detach().numpy().copy())
            is_parameter = isinstance(x, torch.nn.Parameter)
            made[id(x)] = flambeau.nn.Parameter(t) if is_parameter else t.requires_grad_(x.requires_grad)
        return made[id(x)]
    if isinstance(x, torch.dtype):
        return getattr(flambeau, str(x).removeprefix("torch."))
    if type(x) in (list, tuple):
        return type(x)(ours(y, made) for y in x)
    if type(x) is dict:
        return {k: ours(v, made) for k, v in x.items()}
    return x


def fresh(x):
    """Tensors of their own: a learning rate that is a tensor may be written."""
    if isinstance(x, torch.Tensor):
        return x.detach().clone()
    return {k: fresh(v) for k, v in x.items()} if type(x) is dict else x


def run(lib, name, kwargs, kind, sparse, compiled):
    rng = np.random.default_rng(0)
    values = [rng.standard_normal(shape) for shape in SHAPES]
    if kind == "complex64":
        values = [v + 1j * rng.standard_normal(v.shape) for v in values]
    dtype = getattr(lib, kind)
    parameters = [lib.nn.Parameter(lib.tensor(v).to(dtype)) for v in values]
    targets = [lib.tensor(np.roll(v, 1)).to(dtype) for v in values]
    optimizer = getattr(lib.optim, name)(parameters, **kwargs)

    def closure():
        loss = sum((p - t).abs().pow(2).sum() for p, t in zip(parameters, targets))
        for p, g in zip(parameters, lib.autograd.grad(loss, parameters)):
            p.grad = g.to_sparse() if sparse else g
        return loss

    step = optimizer.step if name == "LBFGS" else lambda: (closure(), optimizer.step())
    if compiled:
        update = lib.compile(optimizer.step)
        step = lambda: (closure(), update())  # noqa: E731
    for _ in range(STEPS):
        step(closure) if name == "LBFGS" else step()
    found = {f"parameter {n}": p.detach() for n, p in enumerate(parameters)}
    for n, p in enumerate(parameters):
        found |= {f"{key} of {n}": v for key, v in optimizer.state[p].items()}
    groups = [{k: v for k, v in g.items() if k != "params"} for g in optimizer.param_groups]
    return found, groups


def number(x):
    return x.to_dense().detach().numpy() if hasattr(x, "to_dense") else x


def assert_same(want, found, groups, kind):
    assert list(want) == list(found)
    tolerance = (1e-6, 1e-8) if kind in ("float64", "complex128") else (2e-3, 2e-5)
    for key, value in want.items():
        if isinstance(value, (torch.Tensor, int, float)):
            np.testing.assert_allclose(number(found[key]), number(value), *tolerance, err_msg=key)
            kinds = [str(getattr(x, "dtype", "")).split(".")[-1] for x in (value, found[key])]
            # LBFGS notes its last step size as what the rate is.
            assert kinds[0] == kinds[1] or key.startswith("t of"), (key, kinds)
    names = [[sorted(g) for g in gs] for gs in groups]
    assert names[0] == names[1]


def variants(info, compiled):
    """(kwargs, dtype, sparse) of an entry."""
    for given in info.optim_inputs_func(device="cpu"):
        flags = [{}, {"foreach": True}] if "foreach" in info.supported_impls else [{}]
        flags += [{"fused": True}] if "cpu" in info.supports_fused_on else []
        for flag in flags[:1] if compiled else flags:
            for kind in ("float32",) if compiled else ("float32", "float64", "complex64"):
                if kind == "complex64" and (not info.supports_complex or "fused" in flag):
                    continue
                if info.only_supports_sparse_grads:
                    yield {**given.kwargs, **flag}, kind, True
                    continue
                yield {**given.kwargs, **flag}, kind, False
                if info.supports_sparse and not given.kwargs.get("weight_decay") and not given.kwargs.get("maximize"):
                    yield {**given.kwargs, **flag}, kind, True


# The decisions of a line search depend on the last bits; Muon iterates on a matrix in bfloat16.
EXACT = {("LBFGS", "float32"): "float64", ("LBFGS", "complex64"): "complex128", ("Muon", "float64"): "float32"}


def check(info, compiled):
    ran = 0
    for kwargs, kind, sparse in variants(info, compiled):
        kind = EXACT.get((info.name, kind), kind)
        what = f"{info.name} {kwargs} {kind} {'sparse' if sparse else 'dense'}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = run(torch, info.name, fresh(kwargs), kind, sparse, False)
            except Exception as refused:
                with pytest.raises(type(refused)):
                    run(flambeau, info.name, ours(kwargs), kind, sparse, compiled)
                continue
            try:
                found = run(flambeau, info.name, ours(fresh(kwargs)), kind, sparse, compiled)
                assert_same(want[0], found[0], (want[1], found[1]), kind)
            except Exception as e:
                raise AssertionError(what) from e
        ran += 1
    assert ran


DATABASE = pytest.mark.parametrize("info", optimizers.optim_db, ids=lambda info: info.name)


@DATABASE
def test_optimizers(info):
    check(info, False)


@pytest.mark.slow
@DATABASE
def test_optimizers_compiled(info):
    flambeau.compiler.reset()
    check(info, info.name != "LBFGS")


@DATABASE
def test_errors(info):
    for error in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
        given = error.optimizer_error_input
        outcomes = []
        for lib, convert in ((torch, lambda x: x), (flambeau, ours)):
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                try:
                    parameters = convert(given.params)
                    if parameters is None:
                        parameters = [lib.nn.Parameter(lib.ones(2, 2))]
                    optimizer = getattr(lib.optim, info.name)(parameters, **convert(given.kwargs))
                    if error.error_on == optimizers.OptimizerErrorEnum.STEP_ERROR:
                        for group in optimizer.param_groups:
                            for p in group["params"]:
                                p.grad = lib.ones_like(p)
                        optimizer.step()
                    outcomes.append(None)
                except Exception as e:
                    outcomes.append(e)
        kinds = [e if e is None else type(e).__name__ for e in outcomes]
        assert kinds[0] == kinds[1], (given.desc, outcomes)
