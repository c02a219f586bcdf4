"""What optimizers refuse, and in which words, and everything around a step: groups, hooks, copies, state dicts of old releases; beside PyTorch."""

import copy
import inspect
import pickle
import re
import warnings

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]  # PyTorch's, of its kernels
torch = pytest.importorskip("torch")

NAMES = "SGD Adam AdamW Adamax NAdam RAdam ASGD RMSprop Adadelta Adagrad Rprop Adafactor Muon SparseAdam LBFGS".split()


def shown(x):
    """What a call gave, in words that both libraries share."""
    if isinstance(x, (torch.Tensor, flambeau.Tensor)):
        x = (x.to_dense() if x.is_sparse else x).detach()
        x = x.float() if "bfloat16" in str(x.dtype) else x
        return f"{tuple(x.shape)} {str(x.dtype).rpartition('.')[2]} {np.asarray(x).round(5).tolist()}"
    if isinstance(x, dict):
        return {shown(k): shown(v) for k, v in x.items()}
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    return f"{x:.7g}" if isinstance(x, float) else str(x).replace("flambeau.", "torch.")


def told(call, lib):
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            result = shown(call(lib))
        except Exception as e:
            result = f"{type(e).__name__}: {e}".split("\n")[0].replace("flambeau.", "torch.")
    # Which way round Python compares, where hooks lie, what a parameter's class is called, on which devices a fused step runs: not a promise.
    result = (
        re.sub(r"TypeError: '[<>]=?' not supported.*", "TypeError of a comparison", result)
        if isinstance(result, str)
        else result
    )
    for pattern, words in ((r"<function .*?> must", "the hook must"), (r"torch\.FloatTensor", "Parameter"), (r"\[('\w+',? ?)+\]", "devices"),
                           (r"parameter\.Parameter", "Parameter"), (r"`tensor.item\(\)`.*", "item")):  # fmt: skip
        result = re.sub(pattern, words, result) if isinstance(result, str) else result
    return result, [w.category for w in warned if "invariant checks" not in str(w.message)]


def parameter(lib, shape=(2, 2), kind="float32"):
    p = lib.nn.Parameter(lib.ones(shape, dtype=getattr(lib, kind)))
    p.grad = lib.full(shape, 0.5, dtype=getattr(lib, kind))
    return p


def made(lib, name, given=None, **options):
    return getattr(lib.optim, name)([parameter(lib)] if given is None else given, **options)


def closure(lib, name):
    return (lambda: lib.tensor(1.5)) if name == "LBFGS" else None


def stepped(lib, name, given=None, **options):
    o = made(lib, name, given, **options)
    o.step(closure(lib, name))
    return o


BAD = [-1, -0.5, 0, 1.5, 2, float("nan"), "x", None, (0.9, 1.0), (-0.1, 0.9), (1.0, 0.9), (0.5,), (0.5, 0.6, 0.7), (2, 3), True, float("inf")]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_bad_options(name):
    signature = inspect.signature(getattr(torch.optim, name)).parameters
    assert list(signature) == list(inspect.signature(getattr(flambeau.optim, name)).parameters)
    for option in list(signature)[1:]:
        for value in BAD:
            call = lambda lib: made(lib, name, **{option: value}) and "made"  # noqa: B023, E731
            assert told(call, flambeau) == told(call, torch), (option, value)
        for value in (0.1, [0.1, 0.2]):
            call = lambda lib: made(lib, name, **{option: lib.tensor(value)}) and "made"  # noqa: B023, E731
            assert told(call, flambeau) == told(call, torch), (option, value)


def sparse(lib, name, **options):
    p = parameter(lib)
    p.grad = lib.eye(2).to_sparse()
    return stepped(lib, name, [p], **options).state_dict()["param_groups"], p


def of_kind(lib, name, kind, **options):
    p = parameter(lib, kind=kind)
    kept = stepped(lib, name, [p], **options).state[p]
    return p, {k: v for k, v in kept.items() if k != "t"}  # LBFGS's last step size is a number here


def added(lib, name):
    o = made(lib, name)
    o.add_param_group({"params": parameter(lib, (3, 3)), "lr": 0.5, "initial_accumulator_value": 0.7})
    o.step(closure(lib, name))
    return repr(o), o.state_dict()


def loaded(lib, name, change):
    saved = copy.deepcopy(stepped(lib, name).state_dict())
    change(lib, saved)
    o = made(lib, name)
    o.load_state_dict(saved)
    p = o.param_groups[0]["params"][0]
    p.grad = lib.ones(2, 2)
    before = repr(o)
    o.step(closure(lib, name))
    return before, p


LATER = (
    "maximize foreach capturable differentiable fused amsgrad nesterov centered momentum decoupled_weight_decay".split()
)


def aged(lib, saved):
    """As an old release wrote it: without options that came later, and with counts as numbers."""
    for group in saved["param_groups"]:
        for name in LATER:
            group.pop(name, None)
    for state in saved["state"].values():
        state.update({k: float(state[k]) for k in ("step", "eta", "mu", "mu_product") if k in state})


def copied(lib, name, copy_of):
    first = stepped(lib, name)
    o = copy_of(first)
    p = o.param_groups[0]["params"][0]
    p.grad = lib.ones(2, 2)
    o.step(closure(lib, name))
    return p, first.param_groups[0]["params"], next(iter(o.state), p) is p


def hooked(lib, name):
    log, o = [], made(lib, name)
    o.register_step_pre_hook(lambda o, args, kwargs: log.append(("pre", len(args), sorted(kwargs))))
    o.register_step_post_hook(lambda o, args, kwargs: log.append(("post", len(args), sorted(kwargs))))
    o.register_state_dict_pre_hook(lambda o: log.append("saving"))
    o.register_state_dict_post_hook(lambda o, saved: log.append("saved"))
    o.register_load_state_dict_pre_hook(lambda o, saved: log.append("loading"))
    o.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    o.step(closure(lib, name))
    o.load_state_dict(o.state_dict())
    o.step(closure=closure(lib, name))
    return log


def badly_hooked(lib, name):
    o = made(lib, name)
    o.register_step_pre_hook(lambda o, args, kwargs: 3)
    o.step(closure(lib, name))


def emptied(lib, name, to_none):
    o = made(lib, name)
    o.zero_grad(to_none)
    return o.param_groups[0]["params"][0].grad


CALLS = {
    "no parameters": lambda lib, name: made(lib, name, []),
    "a tensor": lambda lib, name: made(lib, name, parameter(lib)),
    "a number": lambda lib, name: made(lib, name, 3),
    "numbers": lambda lib, name: made(lib, name, [3]),
    "a set": lambda lib, name: made(lib, name, [{"params": {parameter(lib)}}]),
    "a group and a parameter": lambda lib, name: made(lib, name, [{"params": [parameter(lib)]}, parameter(lib)]),
    "a group without parameters": lambda lib, name: made(lib, name, [{"lr": 0.1}]),
    "an empty group": lambda lib, name: repr(made(lib, name, [{"params": []}])),
    "no leaf": lambda lib, name: made(lib, name, [parameter(lib) * 2]),
    "no gradient": lambda lib, name: repr(made(lib, name, [lib.ones(2, 2)])),
    "integers": lambda lib, name: repr(made(lib, name, [lib.ones(2, 2, dtype=lib.int64)])),
    "names": lambda lib, name: repr(made(lib, name, [("a", parameter(lib))])),
    "unknown option": lambda lib, name: made(lib, name, bogus=1),
    "defaults": lambda lib, name: made(lib, name).defaults,
    "a closure": lambda lib, name: made(lib, name).step(lambda: lib.tensor(3.5)),
    "a closure by name": lambda lib, name: made(lib, name).step(closure=lambda: lib.tensor(3.5)),
    "another group": added,
    "what is no group": lambda lib, name: made(lib, name).add_param_group([parameter(lib)]),
    "complex": lambda lib, name: of_kind(lib, name, "complex64"),
    "half": lambda lib, name: of_kind(lib, name, "bfloat16"),
    "double": lambda lib, name: of_kind(lib, name, "float64"),
    "sparse": sparse,
    "sparse, by lists": lambda lib, name: sparse(lib, name, foreach=True),
    "sparse, with decay": lambda lib, name: sparse(lib, name, weight_decay=0.1),
    "sparse, upwards": lambda lib, name: sparse(lib, name, maximize=True),
    "fused and sparse": lambda lib, name: sparse(lib, name, fused=True),
    "fused and complex": lambda lib, name: of_kind(lib, name, "complex64", fused=True),
    "fused and by lists": lambda lib, name: made(lib, name, fused=True, foreach=True),
    "fused and recorded": lambda lib, name: made(lib, name, fused=True, differentiable=True),
    "a group is fused": lambda lib, name: repr(stepped(lib, name, [{"params": [parameter(lib)], "fused": True}])),
    "hooks": hooked,
    "a bad hook": badly_hooked,
    "pickled": lambda lib, name: copied(lib, name, lambda o: pickle.loads(pickle.dumps(o))),
    "copied": lambda lib, name: copied(lib, name, copy.deepcopy),
    "gradients away": lambda lib, name: emptied(lib, name, True),
    "gradients zero": lambda lib, name: emptied(lib, name, False),
    "loaded": lambda lib, name: loaded(lib, name, lambda lib, saved: None),
    "loaded, of an old release": lambda lib, name: loaded(lib, name, aged),
    "loaded, with more states": lambda lib, name: loaded(lib, name, lambda lib, s: s["state"].update({"x": [1], 7: {"a": 1}})),
    "loaded, with more groups": lambda lib, name: loaded(lib, name, lambda lib, s: s["param_groups"].append(s["param_groups"][0])),
    "loaded, with more parameters": lambda lib, name: loaded(lib, name, lambda lib, s: s["param_groups"][0]["params"].append(1)),
    "loaded, without states": lambda lib, name: loaded(lib, name, lambda lib, s: s.pop("state")),
}  # fmt: skip
# SparseAdam takes sparse gradients only.
BY_IDENTITY = "LBFGS's state is keyed by identities"
OTHERWISE = {
    ("loaded, of an old release", "Adafactor"): "there are no old state dicts, which are taken here",
    ("loaded, without states", "LBFGS"): BY_IDENTITY,
    ("copied", "LBFGS"): BY_IDENTITY,
    ("another group", "LBFGS"): BY_IDENTITY,
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_calls(name, what):
    if (what, name) in OTHERWISE:
        pytest.skip(f"differs on purpose: {OTHERWISE[what, name]}")
    call = lambda lib: CALLS[what](lib, name)  # noqa: E731
    assert told(call, flambeau) == told(call, torch)
