"""Module: registration, traversal, hooks, saving and loading, printing."""

import collections
import copy
import pickle

import pytest

import flambeau as torch

nn = torch.nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 3)
        self.tail = nn.Sequential(nn.ReLU(), nn.Linear(3, 1, bias=False))
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.tail(self.a(x))


def test_registration_and_names():
    net = Net()
    assert [n for n, _ in net.named_parameters()] == ["a.weight", "a.bias", "tail.1.weight"]
    assert [n for n, _ in net.named_buffers()] == ["steps", "scratch"]
    assert [n for n, _ in net.named_modules()] == ["", "a", "tail", "tail.0", "tail.1"]
    assert list(net.state_dict()) == ["steps", "a.weight", "a.bias", "tail.1.weight"]
    assert isinstance(net.a.weight, nn.Parameter) and net.a.weight.requires_grad
    assert net.get_submodule("tail.1") is net.tail[1] and net.get_parameter("a.bias") is net.a.bias
    net.a = None
    assert [n for n, _ in net.named_parameters()] == ["tail.1.weight"]
    del net.tail
    assert not hasattr(net, "tail")


def test_shared_parameters_are_listed_once():
    a = nn.Linear(2, 2)
    m = nn.ModuleList([a, a])
    assert len(list(m.parameters())) == 2
    assert len(list(m.named_parameters(remove_duplicate=False))) == 4


def test_assignment_moves_a_name_between_registries():
    m = nn.Module()
    m.x = 3
    m.x = nn.Parameter(torch.zeros(2))
    assert "x" in m._parameters and "x" not in m.__dict__
    m.x = None
    assert m.x is None and list(m.parameters()) == []
    m.y = nn.Buffer(torch.ones(1), persistent=False)
    assert "y" in m._buffers and "y" not in m.state_dict()


ERRORS = [
    (
        lambda: setattr(nn.Linear(2, 3), "weight", torch.zeros(2)),
        TypeError,
        "as parameter 'weight' (torch.nn.Parameter or None",
    ),
    (lambda: nn.Linear(2, 3).register_parameter("a.b", None), KeyError, "parameter name can"),
    (lambda: nn.Linear(2, 3).register_buffer("weight", None), KeyError, "attribute 'weight' already exists"),
    (lambda: nn.Linear(2, 3).foo, AttributeError, "'Linear' object has no attribute 'foo'"),
    (lambda: nn.Module()(1), NotImplementedError, 'Module [Module] is missing the required "forward" function'),
    (lambda: nn.Sequential(3), TypeError, "int is not a Module subclass"),
    (lambda: nn.ModuleList([])[0], IndexError, "index 0 is out of range"),
    (lambda: nn.Dropout(3), ValueError, "dropout probability has to be between 0 and 1, but got 3"),
    (lambda: nn.Linear(2, 3).to(torch.int32), TypeError, "only accepts floating point or complex dtypes"),
    (lambda: nn.Linear(2, 3)(torch.zeros(4)), RuntimeError, "mat1 and mat2 shapes cannot be multiplied (1x4 and 2x3)"),
    (
        lambda: nn.Linear(2, 3)(torch.zeros(5, 4)),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (5x4 and 2x3)",
    ),
]


@pytest.mark.parametrize("call, error, text", ERRORS, ids=lambda v: v if isinstance(v, str) else "")
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_load_state_dict_lists_what_does_not_fit():
    with pytest.raises(RuntimeError) as caught:
        nn.Linear(2, 3).load_state_dict({"weight": torch.zeros(2, 2), "foo": torch.zeros(1)})
    assert str(caught.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "foo". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the shape in current model is "
        "torch.Size([3, 2])."
    )
    keys = nn.Linear(2, 3).load_state_dict({"foo": torch.zeros(1)}, strict=False)
    assert keys.missing_keys == ["weight", "bias"] and keys.unexpected_keys == ["foo"]


def test_state_dict_round_trip():
    torch.manual_seed(1)
    a, b = Net(), Net()
    weight = b.a.weight
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b.a.weight is weight and torch.equal(a.a.weight, b.a.weight)
    for clone in (copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert all(
            torch.equal(p, q) and p is not q and q.requires_grad for p, q in zip(a.parameters(), clone.parameters())
        )


def test_train_eval_apply_requires_grad_and_dtype():
    net = Net()
    assert not net.eval().tail[0].training and net.train().tail[1].training
    seen = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "ReLU", "Linear", "Sequential", "Net"]
    weight = net.a.weight
    assert net.double().a.weight is weight and weight.dtype is torch.float64 and net.steps.dtype is torch.float64
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_zero_grad():
    net = Net()
    net(torch.ones(1, 2)).sum().backward()
    assert net.a.bias.grad is not None
    net.zero_grad(set_to_none=False)
    assert float(net.tail[1].weight.grad.abs().sum()) == 0
    net.zero_grad()
    assert net.a.bias.grad is None


def test_forward_hooks():
    m, log = nn.Linear(2, 2), []
    x = torch.ones(1, 2)
    plain = m(x)
    handles = [
        m.register_forward_pre_hook(lambda module, args: log.append("pre") or (args[0] * 2,)),
        m.register_forward_hook(lambda module, args, out: log.append("post") or out - module.bias),
        m.register_forward_pre_hook(lambda module, args, kwargs: log.append("kwargs"), with_kwargs=True, prepend=True),
    ]
    assert torch.allclose(m(x), (plain - m.bias) * 2)
    assert log == ["kwargs", "pre", "post"]
    for h in handles:
        h.remove()
    assert torch.equal(m(x), plain) and len(log) == 3


def test_global_forward_hook():
    log = []
    handle = nn.modules.module.register_module_forward_pre_hook(lambda m, args: log.append(type(m).__name__))
    net = Net()
    net(torch.ones(1, 2))
    handle.remove()
    net(torch.ones(1, 2))
    assert log == ["Net", "Linear", "Sequential", "ReLU", "Linear"]


def test_full_backward_hook_sees_both_sides():
    m, log = nn.Linear(2, 3), []
    m.register_full_backward_hook(
        lambda module, grad_in, grad_out: log.append((grad_in, grad_out)) or (grad_in[0] * 10,)
    )
    x = torch.ones(4, 2, requires_grad=True)
    m(x).sum().backward()
    ((grad_in, grad_out),) = log
    assert torch.equal(grad_out[0], torch.ones(4, 3))
    assert torch.allclose(x.grad, grad_in[0] * 10)


def test_full_backward_hook_sees_no_second_derivative():
    loss, x, seen = nn.MSELoss(), torch.rand(1, requires_grad=True), []
    loss.register_full_backward_hook(lambda *args: seen.append(args))
    out = loss(x, torch.rand(1))
    (g,) = torch.autograd.grad(out, x, create_graph=True)
    assert len(seen) == 1
    torch.autograd.grad(g, x)
    assert len(seen) == 1
    torch.autograd.grad(out, x)
    assert len(seen) == 2


def test_repr():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1))
    assert repr(m) == (
        "Sequential(\n  (0): Linear(in_features=8, out_features=16, bias=True)\n  (1): GELU(approximate='none')\n"
        "  (2): Dropout(p=0.1, inplace=False)\n)"
    )
    layers = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU()])
    assert (
        repr(layers) == "ModuleList(\n  (0-1): 2 x Linear(in_features=2, out_features=2, bias=True)\n  (2): ReLU()\n)"
    )


def test_containers():
    s = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    s.append(nn.Tanh()).insert(1, nn.Sigmoid())
    assert [type(m).__name__ for m in s] == ["Linear", "Sigmoid", "ReLU", "Tanh"] and len(s[1:3]) == 2
    del s[0]
    assert list(s._modules) == ["0", "1", "2"]
    d = nn.ModuleDict({"a": nn.Linear(1, 2)})
    d["b"] = nn.ReLU()
    assert list(d.keys()) == ["a", "b"] and "a" in d
    p = nn.ParameterList([torch.zeros(2, 3)])
    assert (
        len(list(p.parameters())) == 1
        and repr(p) == "ParameterList(  (0): Parameter containing: [torch.float32 of size 2x3])"
    )


def test_parameter():
    data = torch.zeros(3)
    p = nn.Parameter(data)
    assert isinstance(p, torch.Tensor) and p.is_leaf and type(p + 1) is torch.Tensor
    data.fill_(1)
    assert float(p.sum()) == 3
    assert repr(nn.Parameter(torch.zeros(1))).startswith("Parameter containing:\ntensor([0.], requires_grad=True)")
    assert not isinstance(data, nn.Parameter)


def _count_calls(module, *_):
    module.calls = getattr(module, "calls", 0) + 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))], ids=["deepcopy", "pickle"])
def test_handles_of_copies_remove_the_hooks_of_copies(copied):
    module = nn.Linear(2, 2)
    module.handle = module.register_forward_hook(_count_calls)
    module.other = module.register_forward_pre_hook(_count_calls, with_kwargs=True)
    module.other.remove()
    made = copied(module)
    made(torch.ones(2))
    made.handle.remove()
    made(torch.ones(2))
    assert made.calls == 1 and not hasattr(module, "calls")
    assert made.register_forward_hook(_count_calls).id > made.handle.id
    module(torch.ones(2))
    assert module.calls == 1


@pytest.mark.parametrize("kind", [nn.BatchNorm1d, nn.InstanceNorm1d])
def test_state_dicts_before_num_batches_tracked(kind):
    state = kind(2, track_running_stats=True).state_dict()
    del state["num_batches_tracked"]
    assert state._metadata[""]["version"] == 2
    module = kind(2, track_running_stats=True)
    with pytest.raises(RuntimeError, match="num_batches_tracked"):
        module.load_state_dict(state)
    state._metadata[""]["version"] = 1
    module.load_state_dict(state)
    module.load_state_dict(dict(state))
    assert module.num_batches_tracked == 0


@pytest.mark.parametrize("first,second", [("", "full_"), ("full_", "")])
def test_backward_hooks_of_both_names(first, second):
    module = nn.Linear(2, 2)
    register = lambda kind: getattr(module, f"register_{kind}backward_hook")(lambda *args: None)  # noqa: E731
    register(first), register(first)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        register(second)


def _of_keys(**more):
    return nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(2), "n": 3, **more})


# what is done, what it gives (keys of a dict, or the value), the keys afterwards
PARAMETER_DICTS = {
    "or": (lambda d: d | nn.ParameterDict({"q": torch.ones(1), "b": torch.ones(3)}), ["a", "b", "n", "q"], "abn"),
    "or of a dict": (lambda d: d | {"q": 1}, ["a", "b", "n", "q"], "abn"),
    "or after a dict": (lambda d: {"q": 1} | d, ["q", "a", "b", "n"], "abn"),
    "or in place": (lambda d: d.__ior__({"q": torch.ones(1)}), ["a", "b", "n", "q"], "abnq"),
    "pop": (lambda d: d.pop("n"), 3, "ab"),
    "popitem": (lambda d: d.popitem(), ("n", 3), "ab"),
    "clear": (lambda d: d.clear(), None, ""),
    "copy": (lambda d: d.copy(), ["a", "b", "n"], "abn"),
    "parameters of a copy": (lambda d: d.copy()["b"] is d["b"], True, "abn"),
    "setdefault of a key": (lambda d: d.setdefault("n", 1), 3, "abn"),
    "setdefault": (lambda d: d.setdefault("y"), None, "abny"),
    "fromkeys": (lambda d: d.fromkeys(["u", "v"], torch.ones(1)), ["u", "v"], "abn"),
    "reversed": (lambda d: list(reversed(d)), ["n", "b", "a"], "abn"),
    "update of pairs": (lambda d: d.update([("r", torch.ones(1)), ("c", 1)]), None, "abnrc"),
    "update of an OrderedDict": (lambda d: d.update(collections.OrderedDict(r=1, c=1)), None, "abnrc"),
    "update of a dict": (lambda d: d.update({"r": 1, "c": 1}), None, "abncr"),
}


@pytest.mark.parametrize("name", PARAMETER_DICTS)
def test_parameter_dicts(name):
    done, wanted, left = PARAMETER_DICTS[name]
    parameters = _of_keys()
    found = done(parameters)
    assert (list(found.keys()) if isinstance(found, nn.ParameterDict | dict) else found) == wanted
    assert "".join(parameters.keys()) == left
    assert list(dict(parameters.named_parameters())) == [k for k in left if isinstance(parameters[k], torch.Tensor)]


@pytest.mark.parametrize(
    "done, error",
    [
        (lambda d: d.update(3), TypeError),
        (lambda d: d | 3, TypeError),
        (lambda d: d.update([("c", 1), ("r",)]), ValueError),
        (lambda d: d.pop("x"), KeyError),
        (lambda d: nn.ParameterDict().popitem(), KeyError),
    ],
)
def test_parameter_dicts_are_as_they_were_after_an_error(done, error):
    parameters = _of_keys()
    with pytest.raises(error):
        done(parameters)
    assert list(parameters) == ["a", "b", "n"]


def test_a_parametrization_moves_to_a_module_without_the_parameter():
    """What wasn't there before becomes a parameter under the parametrization."""

    class Doubled(nn.Module):
        def forward(self, x):
            return 2 * x

    source, target = nn.Linear(3, 4), nn.Linear(3, 4)
    source.register_parameter("extra", nn.Parameter(torch.ones(2)))
    for name in ("weight", "extra"):
        nn.utils.parametrize.register_parametrization(source, name, Doubled())
    nn.utils.parametrize.transfer_parametrizations_and_params(source, target)
    assert torch.equal(target.weight, source.weight) and torch.equal(target.extra, source.extra)
    assert {"parametrizations.weight.original", "parametrizations.extra.original"} <= dict(
        target.named_parameters()
    ).keys()


def test_a_post_hook_of_state_dict_returns_nothing():
    module, other = nn.Linear(1, 1), {"w": 1}
    handle = module.register_state_dict_post_hook(lambda m, state, prefix, metadata: other)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        module.state_dict()
    handle.remove()
    module._register_state_dict_hook(lambda m, state, prefix, metadata: other)
    assert module.state_dict() is other


def test_containers_change_in_place():
    rows, chain = nn.ModuleList([nn.ReLU()]), nn.Sequential(nn.ReLU(), nn.Tanh())
    assert rows.insert(0, nn.Tanh()) is None and chain.insert(0, nn.ELU()) is chain
    same = chain
    chain *= 2
    assert chain is same and len(same) == 6 and same[3] is same[0]
    with pytest.raises(ValueError, match="Non-positive"):
        chain *= 0
    with pytest.raises(AssertionError, match="should be of type"):
        chain.insert(0, 3)


def test_entries_that_are_none_are_no_parameters():
    module = nn.Linear(1, 1, bias=False)
    module.register_buffer("scale", None)
    with pytest.raises(AttributeError, match="not an nn.Parameter"):
        module.get_parameter("bias")
    with pytest.raises(AttributeError, match="not a buffer"):
        module.get_buffer("scale")


def test_padded_sequences_own_their_memory_and_have_the_first_dtype():
    padded = torch.arange(6.0).reshape(3, 2)
    first, second = nn.utils.rnn.unpad_sequence(padded, torch.tensor([3, 1]))
    first.zero_()
    assert padded.sum() == 15 and second.tolist() == [1.0]
    mixed = nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([1.5])])
    assert mixed.dtype == torch.int64 and mixed.tolist() == [[1, 1], [2, 0]]
