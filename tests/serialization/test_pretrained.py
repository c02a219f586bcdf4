"""State dicts that PyTorch wrote, for networks of the shapes of ResNet, BERT and GPT-2: they load and give PyTorch's outputs."""

import io
import sys
from pathlib import Path

import pytest

import flambeau

sys.path.insert(0, str(Path(__file__).parent))
import pretrained  # noqa: E402


def check(name: str, file) -> None:
    saved = flambeau.load(file)
    net = pretrained.NETWORKS[name](flambeau).eval()
    assert str(net.load_state_dict(saved["state"])) == "<All keys matched successfully>"
    if name == "gpt2":
        assert saved["state"]["lm_head.weight"]._storage is saved["state"]["wte.weight"]._storage, (
            "tied weights stay tied"
        )
    with flambeau.no_grad():
        for call in (net, flambeau.compile(net)):
            flambeau.testing.assert_close(call(*saved["inputs"]), saved["output"], rtol=1e-4, atol=1e-5)
    missing = dict(saved["state"])
    missing["other"] = missing.pop(next(iter(missing)))
    with pytest.raises(RuntimeError, match="Missing key.*\n.*Unexpected key"):
        net.load_state_dict(missing)


@pytest.mark.parametrize("name", pretrained.NETWORKS)
def test_recorded(name):
    check(name, pretrained.HERE / "recorded" / f"{name}.pt")
    check(name, str(pretrained.HERE / "recorded" / f"{name}.pt"))


@pytest.mark.parity
@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}], ids=["zip", "legacy"])
@pytest.mark.parametrize("name", pretrained.NETWORKS)
def test_written_by_pytorch(name, options):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(pretrained.example(torch, name), file, **options)
    file.seek(0)
    check(name, file)


@pytest.mark.parity
@pytest.mark.parametrize("name", pretrained.NETWORKS)
def test_pytorch_reads_ours(name):
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    flambeau.save(pretrained.example(flambeau, name), file)
    file.seek(0)
    saved = torch.load(file)
    net = pretrained.NETWORKS[name](torch).eval()
    net.load_state_dict(saved["state"])
    torch.testing.assert_close(net(*saved["inputs"]), saved["output"], rtol=1e-4, atol=1e-5)
