"""How many of PyTorch's public names exist. ``oracle.py`` wrote the list; the share may only rise."""

import pytest

from .count import NAMES, table

SHARE = 0.92
SETTINGS = {"_inductor.config"}  # knobs of PyTorch's own compiler: those with a meaning here exist


def test_share():
    _, there, every = table()
    assert every == sum(map(len, NAMES.values())) > 3500
    assert there / every >= 0.97, f"{there} of {every} names exist"


def test_share_of_each_module():
    rows, _, _ = table()
    poor = {name: gone for name, (there, every, gone) in rows.items() if every and there / every < SHARE}
    assert set(poor) <= SETTINGS, poor


def test_a_name_without_meaning_refuses_at_the_use():
    import flambeau as torch

    assert torch.cuda.is_available() is False and torch.cuda.device_count() == 0
    with pytest.raises(NotImplementedError, match="torch.cuda.synchronize is not available.*CUDA"):
        torch.cuda.synchronize()
    with pytest.raises(NotImplementedError, match="torch.cuda.Stream"):
        torch.cuda.Stream()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = torch.cuda.nothing
    torch.backends.cudnn.benchmark = True
    assert torch.backends.cudnn.benchmark is True
    torch.backends.cudnn.benchmark = False


def test_typed_tensors():
    import flambeau as torch

    assert isinstance(torch.ones(2).long(), torch.LongTensor) and not isinstance(torch.ones(2), torch.LongTensor)
    assert torch.FloatTensor(2, 3).shape == (2, 3) and torch.LongTensor([1, 2]).dtype is torch.int64


def test_default_device():
    import flambeau as torch

    with torch.device("meta"):
        assert torch.empty(2).device.type == "meta" and torch.ones(2, device="cpu").device.type == "cpu"
    assert torch.empty(2).device.type == "cpu"
    torch.set_default_device("meta")
    try:
        assert torch.zeros(3).device.type == "meta" and torch.get_default_device() == torch.device("meta")
    finally:
        torch.set_default_device(None)
    with pytest.raises(RuntimeError, match="not compiled with CUDA"):
        torch.set_default_device("cuda")
