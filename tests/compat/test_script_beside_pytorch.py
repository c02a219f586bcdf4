"""TorchScript archives beside PyTorch: what it writes today runs here, and what is written here runs there."""

import io
import warnings

import pytest

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch.jit is deprecated there
    import script_archives

    MADE = script_archives.modules()
from test_script_archives import check, loaded  # noqa: E402

import flambeau  # noqa: E402


def _there(value):
    """A value of PyTorch's for one that was loaded here."""
    if isinstance(value, flambeau.Tensor):
        return torch.from_numpy(value.numpy().copy())
    if isinstance(value, flambeau.dtype):
        return getattr(torch, value.name)
    if isinstance(value, tuple | list):
        return type(value)(map(_there, value))
    return {k: _there(v) for k, v in value.items()} if isinstance(value, dict) else value


def test_the_table_is_the_files():
    from test_script_archives import NAMES

    assert sorted(MADE) == NAMES


@pytest.mark.parametrize("name", MADE)
def test_written_there(name):
    module, calls = MADE[name]
    extra = {"calls": ""}
    data = script_archives.archive(module, calls)
    here = flambeau.jit.load(io.BytesIO(data), _extra_files=extra)
    check(here, flambeau.load(io.BytesIO(extra["calls"]), weights_only=False))
    there = torch.jit.load(io.BytesIO(data))
    assert list(here.state_dict()) == list(there.state_dict()) and repr(here) == repr(there)
    assert [n for n, _ in here.named_modules()] == [n for n, _ in there.named_modules()]
    assert [n for n, _ in here.named_parameters()] == [n for n, _ in there.named_parameters()]
    assert here.forward.schema == str(there.forward.schema) and here.original_name == there.original_name
    if "CONSTANTS" not in there.code:
        assert here.code.splitlines()[:2] == there.code.splitlines()[:2]


@pytest.mark.parametrize("name", MADE)
def test_written_here(name):
    # PyTorch gives members of enumerations only where their class was scripted in the process: so not the files of archives/.
    extra = {"calls": ""}
    module = flambeau.jit.load(io.BytesIO(script_archives.archive(*MADE[name])), _extra_files=extra)
    calls = flambeau.load(io.BytesIO(extra["calls"]), weights_only=False)
    file = io.BytesIO()
    flambeau.jit.save(module, file, _extra_files={"a": "text"})
    file.seek(0)
    extra = {"a": ""}
    there = torch.jit.load(file, _extra_files=extra)
    assert extra == {"a": b"text"} and list(there.state_dict()) == list(module.state_dict())
    for method, args, expected in calls:
        torch.manual_seed(1)
        with torch.no_grad():
            found = script_archives.plain(getattr(there, method)(*_there(args)))
        assert _close(found, _there(expected)), method


def _close(a, b) -> bool:
    if isinstance(b, torch.Tensor):
        return a.dtype is b.dtype and torch.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(b, tuple | list):
        return type(a) is type(b) and len(a) == len(b) and all(map(_close, a, b))
    if isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[k], b[k]) for k in b)
    return a == b or a != a and b != b


def test_trained_here_and_run_there():
    module, calls = loaded("conv_training")
    (_, (x,), _) = calls[0]
    optimizer = flambeau.optim.Adam(module.parameters(), lr=0.01)
    for _ in range(3):
        optimizer.zero_grad()
        module(x).square().mean().backward()
        optimizer.step()
    module.eval()
    file = io.BytesIO()
    module.save(file)
    file.seek(0)
    found = torch.jit.load(file)(_there(x))
    assert not found.isnan().any() and _close(found.detach(), _there(module(x).detach()))
