"""torch.overrides' lists: what takes part in ``__torch_function__``, with which parameters, under which name."""

import inspect
import pickle

import pytest

import flambeau as torch
from flambeau import overrides


class Like:
    """No tensor; takes every function it is given to."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return overrides.get_testing_overrides()[func](*args, **(kwargs or {}))


class Sub(torch.Tensor):
    __torch_function__ = Like.__torch_function__


TABLE = overrides.get_testing_overrides()


@pytest.mark.parametrize("space", overrides.get_overridable_functions(), ids=lambda s: s.__name__)
def test_every_listed_function_hands_its_call_over(space):
    wrong = []
    for f in overrides.get_overridable_functions()[space]:
        kinds = inspect.signature(TABLE[f]).parameters.values()
        make = (lambda: torch.ones(2).as_subclass(Sub)) if overrides.is_tensor_method_or_property(f) else Like
        args = [make() for p in kinds if p.default is p.empty and p.kind <= p.POSITIONAL_OR_KEYWORD]
        args += [make() for p in kinds if p.kind is p.VAR_POSITIONAL]
        given = {p.name: True for p in kinds if p.default is p.empty and p.kind is p.KEYWORD_ONLY}
        try:
            found = f(*args, **given)
        except Exception as error:  # reported below, with all others
            found = error
        if found is not None and not (isinstance(found, int) and found == -1) and found is not True:
            wrong.append((overrides.resolve_name(f), found))
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    "f, module, name, path",
    [
        (torch.add, "torch", "add", "torch.add"),
        (torch.Tensor.add, "torch", "add", "torch.Tensor.add"),
        (torch.relu, "torch", "relu", "torch.relu"),
        (torch.mm, "torch", "mm", "torch.mm"),
        (torch.linalg.svd, "torch._C._linalg", "linalg_svd", "torch.linalg.svd"),
        (torch.fft.fft, "torch._C._fft", "fft_fft", "torch.fft.fft"),
        (torch.special.erf, "torch._C._special", "special_erf", "torch.special.erf"),
        (torch.nn.functional.gelu, "torch._C._nn", "gelu", "torch.nn.functional.gelu"),
        (torch.nn.functional.selu, "torch.nn.functional", "selu", "torch.nn.functional.selu"),
        (torch.nn.functional.conv1d, "torch", "conv1d", "torch.nn.functional.conv1d"),
        (torch.Tensor.grad.__get__, None, "__get__", "torch.Tensor.grad.__get__"),
    ],
)
def test_names(f, module, name, path):
    assert (getattr(f, "__module__", None), f.__name__, overrides.resolve_name(f)) == (module, name, path)
    if module is not None:
        assert pickle.loads(pickle.dumps(f)) is f


def test_operators_are_named_as_they_print():
    assert overrides.resolve_name(torch.ops.aten.add.Tensor) == "aten.add.Tensor"
    assert overrides.resolve_name(len) is None


def test_methods_in_python_are_handed_over():
    seen = []

    class Sub(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return overrides.redispatch_function(func, types, args, kwargs)

    x = torch.ones(2, 2).as_subclass(Sub)
    for use, func in (
        (lambda: x.dim(), torch.Tensor.dim),
        (lambda: x.is_contiguous(), torch.Tensor.is_contiguous),
        (lambda: len(x), torch.Tensor.__len__),
        (lambda: x.layout, torch.Tensor.layout.__get__),
        (lambda: x.H, torch.Tensor.H.__get__),
        (lambda: torch.greater(x, 1), torch.greater),
    ):
        seen.clear()
        use()
        assert seen[0] == func
    assert torch.greater is not torch.gt and torch.Tensor.H.__qualname__ == "TensorBase.H"


def test_class_methods_as_handlers_of_modes():
    class Mode(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported"), Mode():
        torch.ones(2) + 1


def test_the_default_dispatch_runs_below_autograd():
    class Sub(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = torch.Tensor._make_subclass(Sub, torch.ones(2, requires_grad=True), True)
    assert torch.equal(x.neg().detach().as_subclass(torch.Tensor), -torch.ones(2))


class Calls(overrides.TorchFunctionMode):
    """Keeps the outermost call, with words for its tensors."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        words = ["T" if isinstance(a, torch.Tensor) else a for a in args]
        self.seen = (func, words, {k: "T" if isinstance(v, torch.Tensor) else v for k, v in (kwargs or {}).items()})
        return func(*args, **(kwargs or {}))


X, P, CLASSES = torch.rand(2, 3), torch.rand(2, 3), torch.tensor([0, 2])
LEGACY = {"size_average": None, "reduce": None, "reduction": "mean"}
# What PyTorch 2.13 hands to overrides.
SPELLED = [
    ("relu", (X,), {}, ["T"], {"inplace": False}),
    ("relu", (X, False), {}, ["T"], {"inplace": False}),
    ("celu", (X,), {"alpha": 2.0}, ["T"], {"alpha": 2.0, "inplace": False}),
    ("mish", (X,), {}, ["T"], {"inplace": False}),
    ("softmax", (X, 1), {}, ["T"], {"dim": 1, "_stacklevel": 3, "dtype": None}),
    ("softsign", (X,), {}, ["T"], {}),
    ("layer_norm", (X, (3,)), {}, ["T", (3,)], {"weight": None, "bias": None, "eps": 1e-5}),
    ("batch_norm", (X, None, None), {"training": True}, ["T", None, None],
     {"weight": None, "bias": None, "training": True, "momentum": 0.1, "eps": 1e-5}),
    ("nll_loss", (X, CLASSES), {"reduction": "sum"}, ["T", "T"],
     {"weight": None, "size_average": None, "ignore_index": -100, "reduce": None, "reduction": "sum"}),
    ("kl_div", (X, P), {"reduction": "sum"}, ["T", "T"], {**LEGACY, "reduction": "sum", "log_target": False}),
    ("huber_loss", (X, P), {"weight": P}, ["T", "T"], {"reduction": "mean", "delta": 1.0, "weight": "T"}),
    ("pad", (X, (1, 1)), {}, ["T", (1, 1)], {"mode": "constant", "value": None}),
]  # fmt: skip


@pytest.mark.parametrize("name, args, kwargs, spelled, by_name", SPELLED, ids=lambda v: v if isinstance(v, str) else "")
def test_overrides_are_handed_what_pytorch_hands_them(name, args, kwargs, spelled, by_name):
    f = getattr(torch.nn.functional, name)
    with Calls() as mode:
        f(*args, **kwargs)
    assert mode.seen == (f, spelled, by_name)


def test_a_call_that_does_not_fit_is_refused_by_the_function():
    with Calls(), pytest.raises(TypeError, match="relu6|unexpected"):
        torch.nn.functional.relu6(X, frobnicate=1)


def test_weights_of_losses():
    a, b, w = torch.tensor([0.0, 0, 1]), torch.tensor([0.5, 3, 4]), torch.tensor([1.0, 2, 3])
    F = torch.nn.functional
    assert F.huber_loss(a, b, reduction="none", weight=w).tolist() == [0.125, 5.0, 7.5]
    assert F.huber_loss(a, b, weight=w).item() == pytest.approx(12.625 / 3)
    assert F.mse_loss(a, b, weight=w).item() == pytest.approx(45.25 / 6)
    rows, ones = torch.tensor([1.0, 2.0, 5.0]), torch.zeros(3)
    weights = torch.tensor([1.0, 2.0, 3.0])
    assert F.l1_loss(rows, ones, weight=weights).item() == pytest.approx(20 / 6)
    assert F.l1_loss(rows, ones, reduction="sum", weight=weights).item() == 20
    assert F.l1_loss(rows, ones, reduction="none", weight=weights).tolist() == [1, 4, 15]
    with pytest.raises(ValueError, match="must have the same size"):
        F.l1_loss(rows, ones, weight=torch.ones(2))
    with pytest.raises(ValueError, match="same size"):
        F.huber_loss(a, b, weight=w[:2])


def test_functions_that_nothing_overrides_have_names():
    """Function modes see them."""
    named = {torch.zeros: "zeros", torch.tensor: "tensor", torch.arange: "arange", torch.randn_like: "randn_like"}
    seen = []

    class Watch(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    assert {overrides.resolve_name(f) for f in named} == {f"torch.{n}" for n in named.values()}
    with Watch():
        torch.eye(2)
        torch.ones(1).new_zeros(2)
    assert seen == ["torch.eye", "torch.ones", "torch.Tensor.new_zeros"]
