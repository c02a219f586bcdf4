"""``flambeau plan``: the model of links on numbers worked out by hand, and the command on a small model."""

import json

import pytest

from flambeau.distributed.plan import Link, Step, buckets, predict, sizes
from flambeau.planning import rate
from flambeau_command import main

MB = 1 << 20
STEP = Step(1.0, 2.0, 0.5, 100 * MB, 200 * MB, 10 * MB, 20 * MB, [(40 * MB, 0.5), (30 * MB, 1.0), (30 * MB, 2.0)])


def test_numbers_of_ranks_and_rates():
    assert sizes("2..10") == [2, 4, 8, 10] and sizes("3,5") == [3, 5]
    assert [rate(t) for t in ("10GB/s", "100Gbit/s", "5 MB")] == [10e9, 12.5e9, 5e6]
    for bad in ("fast", "10 furlongs"):
        with pytest.raises(ValueError, match="a rate is like"):
            rate(bad)


def test_collectives_and_buckets():
    link = Link(1e9, 1e-3)
    assert link.gather(1e9, 4) == pytest.approx(0.75 + 2e-3) and link.all_reduce(1e9, 4) == pytest.approx(1.504)
    assert link.gather(1e9, 1) == 0
    assert buckets([(MB // 2, 0.1), (MB // 2, 0.2), (20 * MB, 0.3), (9 * MB, 0.4), (5, 0.5)]) == [
        (MB, 0.2),
        (29 * MB, 0.4),
        (5, 0.5),
    ]


def test_predictions():
    alone, _ = predict(STEP, 1, Link(1e9, 0))
    assert (alone.seconds, alone.moved, alone.efficiency) == (3.5, 0, 1)
    fast, sharded = predict(STEP, 2, Link(1e15, 0))
    assert fast.seconds == pytest.approx(3.5, rel=1e-6) and fast.memory == 510 * MB and fast.moved == 100 * MB
    assert sharded.memory == 250 * MB and sharded.moved == 150 * MB
    assert sharded.seconds == pytest.approx(3.25, rel=1e-6)  # half of the optimizer
    slow, _ = predict(
        STEP, 2, Link(100 * MB, 0)
    )  # reductions of 0.4, 0.3 and 0.3 s: the last one begins with the last gradient
    assert slow.seconds == pytest.approx(1 + 2.3 + 0.5)
    slower, _ = predict(STEP, 2, Link(10 * MB, 0))
    assert slower.seconds == pytest.approx(1 + 0.5 + 10 + 0.5)


def test_command(tmp_path, capsys):
    script = tmp_path / "model.py"
    script.write_text(
        "import flambeau as torch\n"
        "def build():\n"
        "    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)), torch.randn(4, 8)\n"
        "def wrong():\n    return 1\n"
    )
    assert main(["plan", f"{script}:build", "-n", "2,4", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    step = data["step"]
    assert step["parameters"] == 4 * (8 * 16 + 16 + 16 * 4 + 4) == sum(b for b, _ in step["gradients"])
    assert step["state"] >= 2 * step["parameters"] and step["activations"] > 0 and step["backward"] > 0
    assert [(r["ranks"], r["way"]) for r in data["rows"]] == [(2, "ddp"), (2, "fsdp"), (4, "ddp"), (4, "fsdp")]
    assert main(["plan", f"{script}:build", "-n", "2"]) == 0
    assert "memory a rank" in capsys.readouterr().out
    for bad in ([f"{script}:wrong"], [f"{script}:build", "--link", "fast"], [f"{script}:build", "-n", "0..3"]):
        assert main(["plan", *bad]) == 2


@pytest.mark.slow
def test_two_processes_are_measured(tmp_path, capsys):
    script = tmp_path / "model.py"
    script.write_text(
        "import flambeau as torch\ndef build():\n    return torch.nn.Linear(64, 64), torch.randn(8, 64)\n"
    )
    assert main(["plan", f"{script}:build", "-n", "2", "--measure", "--json"]) == 0
    two = json.loads(capsys.readouterr().out)["two"]
    assert two["predicted"] > 0 and two["measured"] > 0 and two["rate"] > 0
