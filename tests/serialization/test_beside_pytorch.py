"""What PyTorch saves is loaded here and what is saved here is loaded by PyTorch: every kind of tensor, module, optimizer and schedule."""

import importlib
import inspect
import io
import warnings

import pytest
from tensor_kinds import KINDS, facts, leaf_facts

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]
torch = pytest.importorskip("torch")
import flambeau  # noqa: E402


def _moved(obj, source, target, weights_only=True, **kw):
    file = io.BytesIO()
    source.save(obj, file, **kw)
    file.seek(0)
    return target.load(file, weights_only=weights_only)


WITHOUT_STORAGE_CLASS = "uint16 uint32 uint64 float8_e4m3fn float8_e5m2".split()


@pytest.mark.parametrize("zipped", [True, False], ids=["zip", "stream"])
@pytest.mark.parametrize(
    "source, target", [(torch, flambeau), (flambeau, torch)], ids=["there to here", "here to there"]
)
def test_tensors(source, target, zipped):
    for name, make in KINDS.items():
        x = make(source)
        # PyTorch can't read what it writes itself of these in the old format.
        if target is torch and not zipped and str(getattr(x, "dtype", "")).rpartition(".")[2] in WITHOUT_STORAGE_CLASS:
            continue
        found = facts(_moved(x, source, target, _use_new_zipfile_serialization=zipped), target)
        assert found == leaf_facts(facts(x, source)), name


def _values(state):
    """State dicts of either library as plain values."""
    if isinstance(state, dict):
        return {k: _values(v) for k, v in state.items()}
    if isinstance(state, (list, tuple)) and not hasattr(state, "tolist"):
        return [_values(v) for v in state]
    return (str(state.dtype), tuple(state.shape), state.tolist()) if hasattr(state, "tolist") else state


MODULES = {
    "Linear": (3, 2),
    "Bilinear": (2, 3, 4),
    "LazyLinear": (3,),
    **{f"Conv{d}d": (2, 4, 3) for d in (1, 2, 3)},
    **{f"ConvTranspose{d}d": (2, 4, 3) for d in (1, 2, 3)},
    **{f"BatchNorm{d}d": (3,) for d in (1, 2, 3)},
    **{f"InstanceNorm{d}d": (3, 1e-5, 0.1, True, True) for d in (1, 2, 3)},
    "SyncBatchNorm": (3,),
    "GroupNorm": (2, 4),
    "LayerNorm": ((3, 4),),
    "RMSNorm": (4,),
    "Embedding": (5, 3),
    "EmbeddingBag": (5, 3),
    "RNN": (3, 4, 2),
    "LSTM": (3, 4, 2),
    "GRU": (3, 4, 1),
    "RNNCell": (3, 4),
    "LSTMCell": (3, 4),
    "GRUCell": (3, 4),
    "PReLU": (2,),
    "MultiheadAttention": (4, 2),
    "TransformerEncoderLayer": (4, 2, 8),
    "TransformerDecoderLayer": (4, 2, 8),
    "Transformer": (4, 2, 1, 1, 8),
    "AdaptiveLogSoftmaxWithLoss": (8, 20, [5, 10]),
    "CosineSimilarity": (),
    "PairwiseDistance": (),
    "CrossEntropyLoss": (),
    "BCEWithLogitsLoss": (),
    "NLLLoss": (),
    "GaussianNLLLoss": (),
    "MultiMarginLoss": (),
    "Dropout": (0.5,),
    "AlphaDropout": (0.5,),
    "MaxPool2d": (2,),
    "AvgPool2d": (2,),
    "LPPool2d": (2, 2),
    "FractionalMaxPool2d": (2, 3),
    "AdaptiveAvgPool2d": (2,),
    "MaxUnpool2d": (2,),
    "Unfold": (2,),
    "Fold": ((4, 4), 2),
    "PixelShuffle": (2,),
    "ChannelShuffle": (2,),
    "Upsample": (None, 2),
    "ZeroPad2d": (1,),
    "ReflectionPad1d": (1,),
    "ReplicationPad3d": (1,),
    "CircularPad2d": (1,),
    "ConstantPad1d": (1, 2.0),
    "Flatten": (),
    "Unflatten": (1, (2, 2)),
    "Identity": (),
    "LocalResponseNorm": (2,),
    "Softmax": (1,),
    "Threshold": (0.1, 2),
    "Hardtanh": (),
    **{f"{kind}Pool{d}d": (2,) for kind in ("Max", "Avg") for d in (1, 3)},
    **{f"Adaptive{kind}Pool{d}d": (2,) for kind in ("Avg", "Max") for d in (1, 2, 3) if (kind, d) != ("Avg", 2)},
    **{f"MaxUnpool{d}d": (2,) for d in (1, 3)},
    **{f"LPPool{d}d": (2, 2) for d in (1, 3)},
    "FractionalMaxPool3d": (2, 3),
    "PixelUnshuffle": (2,),
    "CrossMapLRN2d": (2,),
    **{f"ReflectionPad{d}d": (1,) for d in (2, 3)},
    **{f"ReplicationPad{d}d": (1,) for d in (1, 2)},
    **{f"CircularPad{d}d": (1,) for d in (1, 3)},
    **{f"ZeroPad{d}d": (1,) for d in (1, 3)},
    **{f"ConstantPad{d}d": (1, 2.0) for d in (2, 3)},
    **{f"Upsampling{kind}2d": (None, 2) for kind in ("Nearest", "Bilinear")},
    **{f"LazyConv{d}d": (2, 3) for d in (1, 2, 3)},
    **{f"LazyConvTranspose{d}d": (2, 3) for d in (1, 2, 3)},
    **{f"LazyBatchNorm{d}d": () for d in (1, 2, 3)},
    **{f"LazyInstanceNorm{d}d": (1e-5, 0.1, True, True) for d in (1, 2, 3)},
    "LinearCrossEntropyLoss": (4, 3),
    "RNNBase": ("GRU", 3, 4),
    "RNNCellBase": (3, 4, True, 2),
    **{
        name: ()
        for name in "ReLU GELU SiLU Mish ELU CELU SELU GLU Hardshrink Hardsigmoid Hardswish LeakyReLU LogSigmoid LogSoftmax ReLU6 RReLU Sigmoid "
        "Softmin Softplus Softshrink Softsign Tanh Tanhshrink Softmax2d L1Loss MSELoss KLDivLoss HuberLoss SmoothL1Loss CTCLoss PoissonNLLLoss "
        "HingeEmbeddingLoss MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss SoftMarginLoss CosineEmbeddingLoss TripletMarginLoss "
        "TripletMarginWithDistanceLoss BCELoss Dropout1d Dropout2d Dropout3d FeatureAlphaDropout".split()
    },
}


def _nets(lib):
    nn = importlib.import_module(f"{lib.__name__}.nn")
    utils, parametrizations = (
        importlib.import_module(f"{lib.__name__}.nn.utils{m}") for m in ("", ".parametrizations")
    )
    prune = importlib.import_module(f"{lib.__name__}.nn.utils.prune")
    yield "Sequential", nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.ReLU()))
    yield "ModuleList", nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
    yield "ModuleDict", nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.PReLU()})
    yield (
        "TransformerEncoder",
        nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2, enable_nested_tensor=False),
    )
    yield "TransformerDecoder", nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)
    yield "ParameterList", nn.ParameterList([nn.Parameter(lib.ones(2)), nn.Parameter(lib.zeros(3))])
    yield "ParameterDict", nn.ParameterDict({"a": nn.Parameter(lib.ones(2))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "weight_norm", utils.weight_norm(nn.Linear(3, 2))
        yield "weight_norm of all", utils.weight_norm(nn.Linear(3, 2), dim=None)
        yield "weight_norm of Conv", utils.weight_norm(nn.Conv1d(2, 3, 2), dim=1)
        yield "spectral_norm", utils.spectral_norm(nn.Linear(3, 2))
        yield "spectral_norm of Conv", utils.spectral_norm(nn.ConvTranspose2d(2, 3, 2))
    yield "parametrized weight_norm", parametrizations.weight_norm(nn.Linear(3, 2))
    yield "parametrized spectral_norm", parametrizations.spectral_norm(nn.Linear(3, 2))
    yield "orthogonal", parametrizations.orthogonal(nn.Linear(3, 3))
    yield "pruned", prune.l1_unstructured(nn.Linear(3, 2), "weight", 0.5)


def _module(lib, name):
    if name in MODULES:
        return getattr(lib.nn, name)(*MODULES[name])
    return dict(_nets(lib))[name]


ALL_MODULES = [*MODULES, *(name for name, _ in _nets(torch))]


# Container and NLLLoss2d are old names of others; DataParallel without devices is what it is given.
NOT_MODULES = {"Module", "Container", "NLLLoss2d", "DataParallel"}


def test_the_tables_have_every_public_class():
    def public(module, base):
        found = {n: v for n, v in vars(module).items() if inspect.isclass(v) and issubclass(v, base) and v is not base}
        return {n for n in found if not n.startswith("_")}

    assert public(torch.nn, torch.nn.Module) - {type(_module(torch, n)).__name__ for n in ALL_MODULES} <= NOT_MODULES
    assert public(torch.optim, torch.optim.Optimizer) == {name for name, _ in OPTIMIZERS}
    schedulers = {name.split()[0] for name in SCHEDULERS}
    assert public(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler) <= schedulers


@pytest.mark.parametrize("name", ALL_MODULES)
def test_state_dicts_of_modules(name):
    if "Lazy" in name:
        return _lazy(name)
    for source, target in ((torch, flambeau), (flambeau, torch)):
        source.manual_seed(0)
        module, other = _module(source, name), _module(target, name)
        assert list(module.state_dict()) == list(other.state_dict())
        other.load_state_dict(_moved(module.state_dict(), source, target))
        assert _values(other.state_dict()) == _values(module.state_dict())
        assert getattr(other.state_dict(), "_metadata", None) == getattr(module.state_dict(), "_metadata", None)
        assert {n: p.requires_grad for n, p in other.named_parameters()} == {
            n: p.requires_grad for n, p in module.named_parameters()
        }


def _lazy(name):
    for source, target in ((torch, flambeau), (flambeau, torch)):
        module = _module(source, name)
        module(source.ones(2, 4, *[5] * int(name[-2] if name.endswith("d") else 0)))
        other = _module(target, name)
        other.load_state_dict(_moved(module.state_dict(), source, target))
        assert _values(other.state_dict()) == _values(module.state_dict())


# PyTorch's whole modules have the attributes of its implementation; of these, parts differ by design.
@pytest.mark.parametrize("name", [n for n in ALL_MODULES if n not in ("orthogonal", "pruned") and "norm" not in n])
def test_whole_modules(name):
    for source, target in ((torch, flambeau), (flambeau, torch)):
        # A lazy module holds hooks, which are functions of the library that made it.
        if "Lazy" in name and target is torch:
            continue
        source.manual_seed(0)
        module = _module(source, name)
        file = io.BytesIO()
        source.save(module, file)
        file.seek(0)
        other = target.load(file, weights_only=False)
        assert type(other).__name__ == type(module).__name__
        if "Lazy" not in name:
            assert _values(other.state_dict()) == _values(module.state_dict())
        assert repr(other) == repr(module)


OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True}),
    ("AdamW", {}),
    ("Adamax", {}),
    ("NAdam", {}),
    ("RAdam", {}),
    ("Adadelta", {}),
    ("Adagrad", {}),
    ("Adafactor", {}),
    ("ASGD", {}),
    ("RMSprop", {"centered": True, "momentum": 0.5}),
    ("Rprop", {}),
    ("SparseAdam", {}),
    ("LBFGS", {}),
    ("Muon", {}),
]


def _stepped(lib, name, options, steps=2):
    weight = lib.nn.Parameter(lib.arange(6.0).reshape(2, 3) / 6)
    biases = [] if name == "Muon" else [lib.nn.Parameter(lib.ones(2))]
    optimizer = getattr(lib.optim, name)([weight, *biases], **options)

    def closure():
        optimizer.zero_grad()
        loss = (weight * weight).sum() + sum((b * b).sum() for b in biases)
        loss.backward()
        if name == "SparseAdam":
            for p in (weight, *biases):
                p.grad = p.grad.to_sparse()
        return loss

    for _ in range(steps):
        optimizer.step(closure)
    return optimizer, closure, [weight, *biases]


@pytest.mark.parametrize("name, options", OPTIMIZERS, ids=lambda x: str(x))
def test_optimizers(name, options):
    for source, target in ((torch, flambeau), (flambeau, torch)):
        optimizer, closure, parameters = _stepped(source, name, options)
        other, other_closure, others = _stepped(target, name, options)
        state = optimizer.state_dict()
        fresh = getattr(target.optim, name)(others, **options)
        fresh.load_state_dict(_moved(state, source, target))
        assert _values(fresh.state_dict()) == _values(state)
        assert _values(other.state_dict()).keys() == _values(state).keys()
        assert {k: list(v) if isinstance(v, dict) else v for k, v in other.state_dict()["state"].items()} == {
            k: list(v) if isinstance(v, dict) else v for k, v in state["state"].items()
        }
        assert [list(g) for g in other.state_dict()["param_groups"]] == [list(g) for g in state["param_groups"]]


SCHEDULERS = {
    "LambdaLR": lambda m, o: m.LambdaLR(o, lambda e: 0.9**e),
    "MultiplicativeLR": lambda m, o: m.MultiplicativeLR(o, lambda e: 0.9),
    "StepLR": lambda m, o: m.StepLR(o, 2),
    "MultiStepLR": lambda m, o: m.MultiStepLR(o, [1, 3]),
    "ConstantLR": lambda m, o: m.ConstantLR(o),
    "LinearLR": lambda m, o: m.LinearLR(o),
    "ExponentialLR": lambda m, o: m.ExponentialLR(o, 0.9),
    "PolynomialLR": lambda m, o: m.PolynomialLR(o, 4),
    "CosineAnnealingLR": lambda m, o: m.CosineAnnealingLR(o, 5),
    "CosineAnnealingWarmRestarts": lambda m, o: m.CosineAnnealingWarmRestarts(o, 2),
    "CyclicLR": lambda m, o: m.CyclicLR(o, 0.1, 0.5, 2),
    "CyclicLR with a function": lambda m, o: m.CyclicLR(o, 0.1, 0.5, 2, mode="exp_range", gamma=0.9),
    "OneCycleLR": lambda m, o: m.OneCycleLR(o, 0.5, total_steps=20),
    "ReduceLROnPlateau": lambda m, o: m.ReduceLROnPlateau(o, patience=1),
    "SequentialLR": lambda m, o: m.SequentialLR(o, [m.LinearLR(o, 0.1, 1.0, 3), m.CosineAnnealingLR(o, 20)], [3]),
    "SequentialLR of three": lambda m, o: m.SequentialLR(
        o, [m.ConstantLR(o), m.StepLR(o, 2), m.ExponentialLR(o, 0.9)], [2, 4]
    ),
    "ChainedScheduler": lambda m, o: m.ChainedScheduler([m.ConstantLR(o), m.ExponentialLR(o, 0.9)]),
    "SWALR": lambda m, o: importlib.import_module(f"{m.__name__.split('.')[0]}.optim.swa_utils").SWALR(o, 0.05),
}


def _scheduled(lib, name, steps):
    optimizer = lib.optim.SGD([lib.nn.Parameter(lib.ones(2))], 0.1, momentum=0.9)
    scheduler = SCHEDULERS[name](importlib.import_module(f"{lib.__name__}.optim.lr_scheduler"), optimizer)
    for k in range(steps):
        optimizer.step()
        scheduler.step(*([1.0 + k] if "Plateau" in name else []))
    return scheduler, optimizer


def _same_scheduler(state):
    return {k: _same_scheduler(v) if isinstance(v, dict) else v for k, v in state.items() if not inspect.isfunction(v)}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_schedulers(name, steps):
    for source, target in ((torch, flambeau), (flambeau, torch)):
        scheduler, optimizer = _scheduled(source, name, steps)
        other, other_optimizer = _scheduled(target, name, steps)
        assert _close(_values(other.state_dict()), _values(scheduler.state_dict()))
        fresh, fresh_optimizer = _scheduled(target, name, 0)
        fresh.load_state_dict(_moved(scheduler.state_dict(), source, target))
        fresh_optimizer.load_state_dict(_moved(optimizer.state_dict(), source, target))
        for k in range(4):
            for o, s in ((optimizer, scheduler), (fresh_optimizer, fresh)):
                o.step()
                s.step(*([3.0 + k] if "Plateau" in name else []))
            assert fresh_optimizer.param_groups[0]["lr"] == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)


def _close(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_close, a, b))
    return a == pytest.approx(b, rel=1e-12) if isinstance(a, float) else a == b


WITH_PARTS = {
    "floating-point zero points": lambda: torch.quantize_per_channel(
        torch.rand(2, 2), torch.full((2,), 0.1), torch.full((2,), 0.5), 0, torch.quint8
    ),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.zeros(3)]),
}


@pytest.mark.parametrize("name", WITH_PARTS)
@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.filterwarnings("ignore:.*(prototype|deprecated)")
def test_tensors_of_parts_go_there_and_back(name, weights_only):
    made = WITH_PARTS[name]()
    there = _moved(made, torch, flambeau, weights_only=weights_only)
    assert repr(there) == repr(made)
    back = _moved(there, flambeau, torch, weights_only=weights_only)
    assert repr(back) == repr(made)


REFUSED = {
    "complex32": lambda: torch.ones(2, dtype=torch.complex32),
    "float8_e8m0fnu": lambda: torch.ones(2).to(torch.float8_e8m0fnu),
    "float8_e4m3fnuz": lambda: torch.ones(2).to(torch.float8_e4m3fnuz),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_is_not_built_is_named(name, weights_only):
    file = io.BytesIO()
    torch.save(REFUSED[name](), file)
    file.seek(0)
    with pytest.raises(NotImplementedError, match="not built in flambeau"):
        flambeau.load(file, weights_only=weights_only)
