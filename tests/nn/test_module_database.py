"""Every layer of PyTorch's own database of modules beside PyTorch: state, printing, results, strides, gradients, buffers, errors."""

import numpy as np
import pytest

import flambeau

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]  # PyTorch's, of its kernels
torch = pytest.importorskip("torch")
modules = pytest.importorskip("torch.testing._internal.common_modules")

# docs/reference/differences.md: the derivative of what was given
APART = {"nn.CTCLoss": {"gradients"}}


class LeftOut(Exception):
    """A sample whose arguments have no counterpart."""


def encoder_layer(theirs):
    """flambeau's of PyTorch's layer: same arguments, same state."""
    attention = theirs.self_attn
    made = flambeau.nn.TransformerEncoderLayer(
        attention.embed_dim, attention.num_heads, theirs.linear1.out_features, theirs.dropout.p, ours(theirs.activation),
        theirs.norm1.eps, attention.batch_first, theirs.norm_first, theirs.linear1.bias is not None,
    )  # fmt: skip
    made.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    return made.train(theirs.training)


def ours(x):
    """``x`` with flambeau's tensors, dtypes, classes and functions for PyTorch's."""
    if isinstance(x, torch.Tensor):
        if x.layout != torch.strided or x.is_nested:
            raise LeftOut
        t = flambeau.empty_strided(tuple(x.shape), x.stride(), dtype=ours(x.dtype))
        t.copy_(flambeau.from_numpy(x.detach().numpy().copy()))
        return (flambeau.nn.Parameter(t) if isinstance(x, torch.nn.Parameter) else t).requires_grad_(x.requires_grad)
    if isinstance(x, torch.dtype):
        return getattr(flambeau, str(x).removeprefix("torch."))
    if type(x) in (list, tuple):
        return type(x)(map(ours, x))
    if type(x) is dict:
        return {k: ours(v) for k, v in x.items()}
    if isinstance(x, torch.nn.LinearCrossEntropyOptions):
        return flambeau.nn.LinearCrossEntropyOptions(x.allow_retain_graph, x.batch_chunk_size, x.chunking_method)
    if isinstance(x, torch.nn.TransformerEncoderLayer):
        return encoder_layer(x)
    if isinstance(x, torch.nn.Module | torch.device | torch.nn.utils.rnn.PackedSequence):
        raise LeftOut
    if callable(x):
        return getattr(flambeau.nn.functional, x.__name__, None) or getattr(flambeau.nn, x.__name__)
    return x


def copied(x):
    """Leaves of their own, so that samples don't share what a forward writes."""
    if isinstance(x, torch.Tensor) and not isinstance(x, torch.nn.Parameter):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if type(x) in (list, tuple):
        return type(x)(map(copied, x))
    return {k: copied(v) for k, v in x.items()} if type(x) is dict else x


def tensors(x):
    if isinstance(x, torch.Tensor | flambeau.Tensor):
        return [x]
    x = x.values() if isinstance(x, dict) else x if isinstance(x, list | tuple) else ()
    return [t for y in x for t in tensors(y)]


def assert_same(theirs, found, what, layout=True):
    assert (theirs is None) == (found is None), what
    if theirs is None:
        return
    about = [(tuple(t.shape), str(t.dtype).split(".")[-1], t.requires_grad) for t in (theirs, found)]
    assert about[0] == about[1], (what, about)
    np.testing.assert_allclose(found.detach().numpy(), theirs.detach().numpy(), 1e-3, 2e-4, err_msg=what)
    strides = [[s for s, n in zip(t.stride(), t.shape, strict=True) if n != 1] for t in (theirs, found)]
    assert not layout or theirs.numel() == 0 or strides[0] == strides[1], (what, strides)


def outcome(cls, sample, convert):
    """The exception of making and calling the layer, None without one."""
    try:
        layer = cls(*convert(sample.constructor_input.args), **convert(sample.constructor_input.kwargs))
        if sample.forward_input is not None:
            layer(*convert(sample.forward_input.args), **convert(sample.forward_input.kwargs))
    except LeftOut:
        raise
    except Exception as e:
        return e


def compare(info, sample, training, compiled):
    cls = getattr(flambeau.nn, info.module_cls.__name__)
    made, call = sample.constructor_input, sample.forward_input
    torch.manual_seed(1)
    theirs = info.module_cls(*copied(made.args), **copied(made.kwargs)).train(training)
    flambeau.manual_seed(1)
    layer = cls(*ours(made.args), **ours(made.kwargs)).train(training)
    assert repr(theirs) == repr(layer)
    if "Lazy" not in info.name:
        assert list(theirs.state_dict()) == list(layer.state_dict())
        layer.load_state_dict({k: ours(v) for k, v in theirs.state_dict().items()})
    args, kwargs = copied(call.args), copied(call.kwargs)
    inputs = ours(args), ours(kwargs)
    torch.manual_seed(2)
    called = flambeau.compile(layer) if compiled else layer
    try:
        want = tensors(theirs(*args, **kwargs))
    except Exception as e:  # some samples are refused
        with pytest.raises(type(e)):
            called(*inputs[0], **inputs[1])
        return
    flambeau.manual_seed(2)
    found = tensors(called(*inputs[0], **inputs[1]))
    assert len(want) == len(found)
    for n, pair in enumerate(zip(want, found, strict=True)):
        assert_same(*pair, f"result {n}")
    for (name, buffer), other in zip(theirs.named_buffers(), layer.buffers(), strict=True):
        assert_same(buffer, other, name)
    cotangents = [torch.randn_like(t) for t in want if t.requires_grad]
    if not cotangents or "gradients" in APART.get(info.name, ()):
        return
    leaves = [t for t in tensors(args) + tensors(kwargs) if t.requires_grad], list(theirs.parameters())
    own = [t for t in tensors(inputs[0]) + tensors(inputs[1]) if t.requires_grad], list(layer.parameters())
    results = [[t for t in ts if t.requires_grad] for ts in (want, found)]
    want = torch.autograd.grad(results[0], leaves[0] + leaves[1], cotangents, allow_unused=True)
    found = flambeau.autograd.grad(results[1], own[0] + own[1], ours(cotangents), allow_unused=True)
    for n, pair in enumerate(zip(want, found, strict=True)):
        assert_same(*pair, f"gradient {n}", layout=not compiled)


def check(info, compiled=False, most=None, part=0, parts=1):
    """Of every ``parts`` samples the one at ``part``, at most ``most`` of them."""
    ran = 0
    for training in (True, False):
        torch.manual_seed(0)
        samples = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=True, training=training
        )
        for n, sample in enumerate([s for s in samples if s.forward_input is not None][part::parts][:most]):
            if compiled and n % 20 == 0:
                flambeau.compiler.reset()
            try:
                compare(info, sample, training, compiled)
                ran += 1
            except LeftOut:
                continue
    assert ran, "no sample was run"


DATABASE = pytest.mark.parametrize("info", modules.module_db, ids=lambda info: info.name)


@DATABASE
def test_layers(info):
    check(info, most=12)


# Every sample: ``pytest -m slow tests/nn/test_module_database.py`` takes some ten minutes, LinearCrossEntropyLoss with its 1714 samples four of them.
PARTS = {
    "nn.LinearCrossEntropyLoss": 32
}  # so many that a compiled one takes less than 20 seconds, beside other work too


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    "info, part",
    [(info, part) for info in modules.module_db for part in range(PARTS.get(info.name, 1))],
    ids=lambda x: x if isinstance(x, int) else x.name,
)
def test_all_samples(info, part, compiled):
    check(info, compiled, part=part, parts=PARTS.get(info.name, 1))


@DATABASE
def test_errors(info):
    if info.module_error_inputs_func is None:
        return
    for error in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    ):
        sample = error.module_error_input
        try:
            found = outcome(getattr(flambeau.nn, info.module_cls.__name__), sample, ours)
        except LeftOut:
            continue
        want = outcome(info.module_cls, sample, lambda x: x)
        assert isinstance(found, type(want)), (want, found)
