"""What third-party libraries do with PyTorch beyond its documentation: each row is a habit seen in one of them."""

import contextlib
import importlib
import subprocess
import sys
import typing
import warnings

import pytest

import flambeau as torch
from flambeau import nn


def data_writes_are_not_counted():
    """Solvers of differential equations write past the version check."""
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    z = y * y
    y.data[0] = 5
    y.data.add_(1)
    assert y._version == 0 and y.tolist() == [6, 3, 3]
    z.sum().backward()
    assert x.grad.tolist() == [24, 12, 12]


def data_counts_its_own_writes():
    w = torch.ones(3, requires_grad=True)
    d = torch.ones(3).data
    q = w * d
    d.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        q.sum().backward()


def data_is_the_same_memory():
    c = torch.zeros(4)
    view = c.data[1:3]
    view.fill_(1)
    assert c.tolist() == [0, 1, 1, 0] and c.data.untyped_storage().data_ptr() == c.untyped_storage().data_ptr()
    p = nn.Parameter(torch.zeros(2))
    p.data = torch.ones(2)
    assert p.tolist() == [1, 1] and p.requires_grad and p.is_leaf


def numbers_before_tensors():
    """Optimizers from before 1.5 write ``x.add_(-lr, grad)`` and ``x.addcmul_(value, a, b)``."""
    x, y, m = torch.ones(3), torch.arange(3.0), torch.ones(2, 2)
    rows = [
        (lambda: x.add(2, y), [1, 3, 5]),
        (lambda: x.clone().add_(2, y), [1, 3, 5]),
        (lambda: x.sub(2, y), [1, -1, -3]),
        (lambda: torch.add(x, 2, y), [1, 3, 5]),
        (lambda: x.clone().addcmul_(3, y, y), [1, 4, 13]),
        (lambda: x.addcdiv(2, y, x), [1, 3, 5]),
        (lambda: torch.addmm(2, m, 3, m, m), [[8, 8], [8, 8]]),
        (lambda: torch.addmm(2, m, m, m), [[4, 4], [4, 4]]),
        (lambda: torch.baddbmm(1, m[None], 2, m[None], m[None]), [[[5, 5], [5, 5]]]),
    ]
    for call, want in rows:
        with pytest.warns(UserWarning, match="deprecated"):
            assert call().tolist() == want
    with pytest.raises(TypeError):
        x.add(2, 3, y)


def typed_classes():
    assert isinstance(torch.ones(2).long(), torch.LongTensor) and not isinstance(torch.ones(2), torch.LongTensor)
    assert (
        isinstance(torch.ones(2), torch.autograd.Variable)
        and torch.autograd.Variable(torch.ones(1), True).requires_grad
    )
    assert torch.torch is torch and torch.torch.Tensor is torch.Tensor and isinstance(torch.strided, torch.layout)


def devices_that_are_absent():
    x = torch.ones(2)
    assert (x.cuda() if torch.cuda.is_available() else x) is x
    with pytest.raises((RuntimeError, AssertionError), match="CUDA|cuda"):
        x.cuda()
    torch.compiler.cudagraph_mark_step_begin()
    assert torch.get_float32_matmul_precision() in ("highest", "high", "medium")


def buffers_that_become_parameters():
    m = nn.Module()
    m.register_buffer("a", torch.zeros(2))
    del m._buffers["a"]
    m.a = nn.Parameter(torch.ones(2))
    assert list(m.state_dict()) == ["a"] and not dict(m.named_buffers())
    m._parameters["b"] = None
    m.register_buffer("c", None)
    m.c = torch.ones(1)
    assert list(m.state_dict()) == ["a", "c"]


def hooks_of_old():
    m, seen = nn.Linear(2, 2), []
    m._register_load_state_dict_pre_hook(lambda state, prefix, *rest: seen.append((prefix, sorted(state))))
    m._register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append(module is m), with_module=True)
    m.load_state_dict(m.state_dict())
    assert seen == [("", ["bias", "weight"]), True]


def annotations_are_evaluated():
    """Configuration libraries ask a module class for its hints."""
    assert "training" in typing.get_type_hints(nn.Linear) and "training" in typing.get_type_hints(nn.Module)
    assert typing.get_type_hints(nn.Parameter) == {}


def optimizers_hooks():
    o, log = torch.optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1), []
    o.register_state_dict_pre_hook(lambda o: log.append("saving"))
    o.register_state_dict_post_hook(lambda o, d: {**d, "more": 1})
    handle = o.register_load_state_dict_pre_hook(lambda o, d: log.append(sorted(d)))
    o.register_load_state_dict_post_hook(lambda o: log.append("loaded"))
    d = o.state_dict()
    o.load_state_dict(d)
    handle.remove()
    o.load_state_dict(d)
    assert sorted(d) == ["more", "param_groups", "state"]
    assert log == ["saving", ["more", "param_groups", "state"], "loaded", "loaded"]


def warnings_filters():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="torch")
        warnings.filterwarnings("ignore", message=".*deprecated.*")
        assert torch.ones(1).add(1, torch.ones(1)).item() == 2


def swapped_tensors():
    a, b = torch.ones(2), nn.Parameter(torch.zeros(3))
    torch.utils.swap_tensors(a, b)
    assert isinstance(a, nn.Parameter) and a.shape == (3,) and a.requires_grad and b.tolist() == [1, 1]


def function_overrides_on_user_classes():
    class Meters:
        def __init__(self, value):
            self.value = value

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls(func(*[a.value if isinstance(a, cls) else a for a in args], **(kwargs or {})))

    assert torch.add(Meters(torch.ones(2)), 1).value.tolist() == [2, 2]
    assert torch.nn.functional.relu(Meters(-torch.ones(1))).value.item() == 0


HABITS = [v for v in list(globals().values()) if getattr(v, "__module__", None) == __name__ and callable(v)]


@pytest.mark.parametrize("habit", HABITS, ids=lambda h: h.__name__)
def test_habit(habit):
    habit()


PATHS = """
distributions.normal:Normal distributions.categorical:Categorical distributions.utils:_standard_normal distributions.multivariate_normal:MultivariateNormal
optim.nadam:NAdam optim.optimizer:_use_grad_for_differentiable nn.modules.flatten:Flatten nn.modules.upsampling:Upsample nn.parameter:Parameter
nn.modules.module:Module nn.utils.weight_norm:weight_norm fx._symbolic_trace:Tracer fx._compatibility:compatibility functional:einsum
serialization:DEFAULT_PROTOCOL quasirandom:SobolEngine nn.grad:conv2d_input ao.quantization:ObserverBase utils.data.datapipes.iter:IterableWrapper
utils.data._utils.collate:np_str_obj_array_pattern fx.passes.split_module:split_module signal.windows.windows:hann masked._ops:sum
fx.experimental.symbolic_shapes:free_unbacked_symbols _subclasses.fake_tensor:is_fake nn.utils:clip_grads_with_norm_ autograd.variable:Variable
""".split()


@pytest.mark.parametrize("path", PATHS)
def test_paths(path):
    module, name = path.split(":")
    found = importlib.import_module(f"flambeau.{module}")
    assert hasattr(found, name)
    by_attribute = torch
    for part in module.split("."):
        by_attribute = getattr(by_attribute, part)
    assert by_attribute is found


@pytest.mark.parametrize(
    "where, name, words",
    [
        ("flambeau", "tensr", ["torch", "tensr", "tensor"]),
        ("flambeau.nn", "Liner", ["torch.nn", "Liner", "Linear"]),
        ("flambeau.nn.functional", "rleu", ["torch.nn.functional", "rleu", "relu"]),
        ("flambeau.optim", "Adm", ["torch.optim", "Adm", "Adam"]),
        ("flambeau.utils.data", "DataLoder", ["torch.utils.data", "DataLoder", "DataLoader"]),
        ("flambeau.linalg", "slove", ["linalg", "slove", "solve"]),
        ("flambeau.distributions", "Nrmal", ["torch.distributions", "Nrmal", "Normal"]),
        ("flambeau.cuda", "is_avalable", ["cuda", "is_avalable", "is_available"]),
    ],
)
def test_a_missing_name_names_the_nearest(where, name, words):
    with pytest.raises(AttributeError) as e:
        getattr(importlib.import_module(where), name)
    assert all(word in str(e.value) for word in words), str(e.value)


def test_a_missing_module_names_the_nearest():
    from flambeau.compat.hook import TorchFinder

    with pytest.raises(ModuleNotFoundError, match="torch.optm.*torch.optim"):
        TorchFinder().find_spec("torch.optm")


class _Answers:
    """An object with the protocol that is no tensor."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "answered"


FUNCTIONS_IN_PYTHON = """broadcast_tensors meshgrid where einsum get_device is_complex is_conj is_floating_point is_inference is_neg is_nonzero
is_same_size is_signed numel unravel_index stft tensordot cdist norm split unique block_diag cartesian_prod atleast_1d chain_matmul lu""".split()


@pytest.mark.parametrize("name", FUNCTIONS_IN_PYTHON)
def test_functions_written_in_python_ask_the_arguments(name):
    x = _Answers()
    more = {"einsum": ("ij", x), "where": (x, x, x), "stft": (x, 2), "split": (x, 2), "unravel_index": (x, (2, 2))}
    two = (
        "is_same_size",
        "tensordot",
        "cdist",
        "broadcast_tensors",
        "meshgrid",
        "block_diag",
        "cartesian_prod",
        "chain_matmul",
    )
    args = more.get(name) or ((x, x) if name in two else (x,))
    assert getattr(torch, name)(*args) == "answered"
    if name == "einsum":
        m = torch.fx.symbolic_trace(lambda a, b: torch.einsum("i,i->", [a, b]))
        assert [len(n.args) for n in m.graph.nodes if n.op == "call_function"] == [3]
    if name == "broadcast_tensors":
        for fn in ("normal_", "uniform_", "kaiming_uniform_"):
            assert getattr(nn.init, fn)(x) == "answered"
        assert nn.init.constant_(x, 1.0) == "answered"


def test_hooks_on_what_every_module_and_optimizer_does():
    from flambeau.nn.modules import module
    from flambeau.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    seen = []
    early = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    hooks = [
        module.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)),
        module.register_module_buffer_registration_hook(lambda m, name, b: seen.append(name)),
        module.register_module_module_registration_hook(lambda m, name, c: nn.Identity() if name == "other" else None),
        module.register_module_full_backward_pre_hook(lambda m, grads: seen.append(type(m).__name__)),
        register_optimizer_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("after")),
    ]
    # They go whatever happens: other tests have modules and optimizers too.
    with contextlib.ExitStack() as registered:
        for hook in hooks:
            registered.enter_context(hook)
        norm = nn.BatchNorm1d(2)
        assert seen == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]
        norm.other = nn.Linear(1, 1)
        assert isinstance(norm.other, nn.Identity)
        seen.clear()
        norm(torch.ones(3, 2, requires_grad=True)).sum().backward()
        early.step()
        torch.optim.SGD(norm.parameters(), lr=0.1).step()
        assert seen == ["BatchNorm1d", "before", "after", "before", "after"]
    seen.clear()
    early.step(), nn.Linear(1, 1)
    assert not seen


def test_modules_named_like_functions():
    """Importing them leaves the functions where they were."""
    code = (
        "import flambeau as torch, flambeau._functorch.aot_autograd as module, flambeau._higher_order_ops.cond\n"
        "from flambeau._higher_order_ops import cond\n"
        "from flambeau._higher_order_ops.while_loop import while_loop\n"
        "assert module.aot_module_simplified and callable(cond) and callable(while_loop) and callable(torch.cond)\n"
        "assert torch.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2)).shape == (1, 2)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_the_module_lists_can_be_written():
    names = dir(torch)
    assert all(n.isidentifier() for n in names) and {"nn", "compile", "randn", "Tensor"} <= set(names)
