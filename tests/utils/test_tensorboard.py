"""torch.utils.tensorboard: what each call writes, read back from the event files."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch

pytest.importorskip("tensorboard", reason="the extra tensorboard is not installed")

from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # noqa: E402
from tensorboard.compat.proto.event_pb2 import Event  # noqa: E402
from tensorboard.compat.proto.graph_pb2 import GraphDef  # noqa: E402
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData  # noqa: E402

from flambeau.utils.tensorboard import SummaryWriter  # noqa: E402


def events(folder):
    return [
        Event.FromString(raw) for path in sorted(folder.glob("events*")) for raw in RawEventFileLoader(str(path)).Load()
    ]


def values(folder):
    """{tag: (step, value)} of one folder."""
    return {v.tag: (e.step, v) for e in events(folder) for v in e.summary.value}


def numbers(value):
    t = value.tensor
    return [*t.float_val, *t.double_val, *t.int_val, *t.int64_val, *t.bool_val, *t.scomplex_val, *t.uint32_val]


SCALARS = np.arange(6.0)
# (call, its arguments, tag, what of the value, expected)
CALLS = [
    ("add_scalar", ("a", 1.5), "a", lambda v: v.simple_value, 1.5),
    ("add_scalar", ("a", torch.tensor([[2.5]])), "a", lambda v: v.simple_value, 2.5),
    ("add_scalar", ("a", torch.tensor(70000.0, dtype=torch.bfloat16)), "a", lambda v: v.simple_value, 70144.0),
    ("add_tensor", ("t", torch.arange(4).reshape(2, 2)), "t", numbers, [0, 1, 2, 3]),
    ("add_tensor", ("t", torch.tensor([1 + 2j])), "t", numbers, [1, 2]),
    ("add_tensor", ("t", torch.tensor([True, False])), "t", numbers, [1, 0]),
    ("add_histogram", ("h", torch.tensor([1.0, 2.0, 2.0]), 0, [0, 1.5, 3, 9]), "h", lambda v: list(v.histo.bucket), [0, 1, 2]),
    ("add_histogram", ("h", torch.tensor([1.0, 2.0, 2.0]), 0, [0, 1.5, 3, 9]), "h", lambda v: list(v.histo.bucket_limit), [0, 1.5, 3]),
    ("add_histogram", ("h", np.arange(8), 0, 8, None, 3), "h", lambda v: list(v.histo.bucket), [0, 2, 2, 2, 2]),
    ("add_histogram", ("h", torch.randn(100)), "h", lambda v: sum(v.histo.bucket), 100),
    ("add_histogram_raw", ("h", 0, 1, 4, 2, 3, [0.5, 1], [1, 3]), "h", lambda v: list(v.histo.bucket), [1, 3]),
    ("add_image", ("i", torch.zeros(1, 4, 5)), "i", lambda v: (v.image.height, v.image.width, v.image.colorspace), (4, 5, 3)),
    ("add_images", ("i", torch.zeros(11, 3, 4, 5)), "i", lambda v: (v.image.height, v.image.width), (8, 40)),
    ("add_image_with_boxes", ("i", torch.zeros(3, 30, 40), torch.tensor([[2, 2, 20, 20]]), 0, None, 1, "CHW", ["x"]), "i", lambda v: v.image.width, 40),
    ("add_video", ("v", torch.rand(3, 2, 3, 8, 8)), "v", lambda v: (v.image.height, v.image.width), (8, 32)),
    ("add_audio", ("s", torch.zeros(1, 50), 0, 8000), "s", lambda v: (v.audio.length_frames, v.audio.sample_rate), (50, 8000)),
    ("add_text", ("x", "hé"), "x/text_summary", lambda v: v.tensor.string_val[0].decode(), "hé"),
    ("add_pr_curve", ("p", torch.tensor([0, 1, 1]), torch.tensor([0.2, 0.4, 0.9]), 0, 3), "p", lambda v: numbers(v)[:6], [2, 1, 0, 1, 0, 0]),
    ("add_pr_curve_raw", ("p", [1], [2], [3], [4], [0.5], [0.25], 0, 1), "p", numbers, [1, 2, 3, 4, 0.5, 0.25]),
    ("add_custom_scalars", ({"c": {"t": ["Margin", ["a", "b", "c"]]}},), "custom_scalars__config__", lambda v: b"\n\x01c" in v.tensor.string_val[0], True),
    ("add_mesh", ("m", torch.ones(1, 4, 3)), "m_VERTEX", lambda v: [d.size for d in v.tensor.tensor_shape.dim], [1, 4, 3]),
]  # fmt: skip


@pytest.mark.parametrize(
    "call, arguments, tag, what, expected", CALLS, ids=[f"{i}-{c[0]}" for i, c in enumerate(CALLS)]
)
def test_calls(call, arguments, tag, what, expected, tmp_path):
    with SummaryWriter(tmp_path) as writer:
        getattr(writer, call)(*arguments)
    assert what(values(tmp_path)[tag][1]) == expected


REFUSED = [
    ("add_scalar", ("a", torch.ones(2)), AssertionError, "one element"),
    ("add_scalar", ("a", torch.ones((), device="meta")), ValueError, "no values"),
    ("add_scalar", ("a", "text"), ValueError, "could not convert"),
    ("add_histogram", ("h", torch.ones(0)), ValueError, "no element"),
    ("add_histogram", ("h", [1, 2]), NotImplementedError, "Got <class 'list'>"),
    ("add_image", ("i", torch.zeros(2, 2)), AssertionError, "doesn't fit an image"),
    ("add_audio", ("s", torch.zeros(2, 50)), AssertionError, "one dimension"),
    ("add_custom_scalars_marginchart", (["a"],), AssertionError, "3 tags"),
    ("add_embedding", (torch.ones(2, 2), ["a"]), AssertionError, "#labels should equal"),
    ("add_hparams", ([], {}), TypeError, "should be dictionary"),
    ("add_hparams", ({"a": []}, {}), ValueError, "'a' is a list"),
    ("add_onnx_graph", ("f",), NotImplementedError, "reads no ONNX"),
]


@pytest.mark.parametrize("call, arguments, kind, text", REFUSED, ids=[f"{i}-{c[0]}" for i, c in enumerate(REFUSED)])
def test_refuses(call, arguments, kind, text, tmp_path):
    with SummaryWriter(tmp_path) as writer, pytest.raises(kind, match=text):
        getattr(writer, call)(*arguments)


def test_a_run_from_purging_to_going_on_after_close(tmp_path):
    writer = SummaryWriter(str(tmp_path), purge_step=3)
    writer.add_scalars("m/x", {"one": 1, "two": 2}, 4)
    writer.add_hparams({"lr": 0.5, "name": "n", "none": None}, {"acc": 1.0}, {"name": ["n", "m"]}, "run", 5)
    writer.close()
    writer.add_scalar("again", 1, 9)
    writer.close()
    assert [e.step for e in events(tmp_path) if e.session_log.status] == [3]
    assert values(tmp_path)["again"][0] == 9 and values(tmp_path / "m_x_two")["m/x"][1].simple_value == 2
    run = values(tmp_path / "run")
    start = HParamsPluginData.FromString(run["_hparams_/session_start_info"][1].metadata.plugin_data.content)
    assert dict(start.session_start_info.hparams)["lr"].number_value == 0.5 and run["acc"][0] == 5


def test_graph(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout()))
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, torch.ones(2, 3))
    (graph,) = [GraphDef.FromString(e.graph_def) for e in events(tmp_path) if e.graph_def]
    nodes = {n.name: n for n in graph.node}
    relu = nodes["Sequential/Sequential[1]/ReLU[0]/relu"]
    assert relu.op == "aten::relu" and list(relu.input) == ["Sequential/Linear[0]/addmm"]
    assert all(source in nodes for n in graph.node for source in n.input)
    assert list(nodes["output/output.1"].input) == [relu.name] and model.training and model[1][1].training


def test_embedding_files(tmp_path, capsys):
    with SummaryWriter(tmp_path) as writer:
        for _ in range(2):
            writer.add_embedding(
                torch.arange(6.0).reshape(3, 2),
                [["a", 1], ["b", 2], ["c", 3]],
                torch.rand(3, 3, 4, 5),
                2,
                "x/y",
                ["n", "v"],
            )
    folder = tmp_path / "00002" / "x%2fy"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n4.0\t5.0\n"
    assert (folder / "metadata.tsv").read_text().startswith("n\tv\na\t1\n")
    assert (tmp_path / "projector_config.pbtxt").read_text().count("tensor_name") == 2
    assert "dir exists" in capsys.readouterr().out


def test_figure(tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="the extra demo is not installed")
    with SummaryWriter(tmp_path) as writer:
        writer.add_figure("f", pyplot.figure(figsize=(1, 2), dpi=50))
    found = values(tmp_path)["f"][1].image
    assert (found.height, found.width) == (100, 50) and not pyplot.get_fignums()


def test_without_the_package():
    code = "import sys; sys.modules['tensorboard'] = None\nimport flambeau.utils.tensorboard"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: torch.utils.tensorboard needs the package 'tensorboard', which is not installed: "
        "pip install 'flambeau[tensorboard]'"
    )
