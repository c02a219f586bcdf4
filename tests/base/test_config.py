import io
import json
import os
import re
import subprocess
import sys
import unittest.mock

import pytest

from flambeau.base import logs
from flambeau.base.config import Config, Knob


def make(**env):
    return Config(
        "torch.x.config",
        {
            "limit": Knob(8, "a limit", ("X_LIMIT",), type=int),
            "fast": Knob(False, "speed", in_key=True),
            "trace.enabled": Knob(False, "traces"),
        },
        {"old_limit": "limit"},
    )


def test_defaults_aliases_and_unknown_names():
    c = make()
    assert (c.limit, c.old_limit, c.trace.enabled) == (8, 8, False)
    c.old_limit = 3
    assert c.limit == 3
    with pytest.raises(AttributeError, match="torch.x.config.limt does not exist"):
        c.limt = 1
    with pytest.raises(TypeError, match="must be int"):
        c.limit = "three"


def test_patch_restores_also_after_an_error():
    c = make()
    with pytest.raises(KeyError), c.patch({"trace.enabled": True}, limit=1):
        assert c.trace.enabled and c.limit == 1
        raise KeyError
    assert not c.trace.enabled and c.limit == 8

    @c.patch("limit", 2)
    def inside():
        return c.limit

    assert inside() == 2 and c.limit == 8


def test_patch_of_a_class_of_tests():
    c = make()
    seen = []

    @c.patch(limit=2)
    class Tests(unittest.TestCase):
        def test_inside(self):
            seen.append(c.limit)

    assert Tests.__name__ == "Tests" and c.limit == 8
    assert unittest.TextTestRunner(io.StringIO()).run(unittest.TestSuite([Tests("test_inside")])).wasSuccessful()
    assert seen == [2] and c.limit == 8
    with pytest.raises(TypeError, match="the class int"):
        c.patch(limit=2)(int)


def test_mock_patches_and_restores():
    c = make()
    c.limit = 4
    with unittest.mock.patch.object(c, "limit", 1):
        assert c.limit == 1
    assert c.limit == 4
    del c.limit
    with pytest.raises(AttributeError, match="limit was deleted"):
        c.limit  # noqa: B018
    assert c.key() == make().key() and not c.changed()


def test_settings_without_meaning_have_one_value_each():
    asked = []

    def accepted():
        asked.append(1)
        return {"limit": 3, "speed": None, "trace.deep": False, "other.kinds": ["a"]}

    c = Config(
        "torch.x.config", {"limit": Knob(8, "a limit"), "trace.enabled": Knob(False, "traces")}, accepted=accepted
    )
    assert (c.limit, c.trace.enabled, asked) == (8, False, [])
    assert (c.speed, c.trace.deep, c.other.kinds) == (None, False, ["a"])
    c.speed = None
    c.trace.deep = False
    with pytest.raises(NotImplementedError, match="torch.x.config.trace.deep = True is not built: only False is"):
        c.trace.deep = True
    with (
        pytest.raises(NotImplementedError, match=r"torch.x.config.other.kinds = \[\] is not built"),
        c.patch({"other.kinds": []}),
    ):
        pass
    with pytest.raises(AttributeError, match="torch.x.config.other.kind does not exist"):
        c.other.kind  # noqa: B018
    assert "other.kinds" in c and "other.kind" not in c and not c.changed()
    assert sorted(c.names()) == ["limit", "other.kinds", "speed", "trace.deep", "trace.enabled"]
    assert [c.built(n) for n in ("limit", "trace.enabled", "speed", "trace.deep", "other.kinds", "no")] == [
        True,
        True,
    ] + [False] * 4


def test_only_the_default_may_be_built():
    c = Config("torch.x.config", {"validate": Knob(False, "checks", only=True)})
    c.validate = False
    with pytest.raises(NotImplementedError, match="torch.x.config.validate = True is not built: only False is"):
        c.validate = True
    assert c.validate is False


def test_environment_and_key(monkeypatch):
    monkeypatch.setenv("X_LIMIT", "5")
    c = make()
    assert c.limit == 5 and c.help("trace.enabled") == "traces"
    before = c.key()
    c.limit = 6
    assert c.key() == before
    c.fast = True
    assert c.key() != before
    monkeypatch.setenv("X_LIMIT", "many")
    with pytest.raises(ValueError, match="X_LIMIT"):
        make()


def test_unknown_log_artifact_lists_the_known_ones():
    with pytest.raises(ValueError, match="graph_breaks"):
        logs.set_logs(grahp_breaks=True)


def test_trace_file(tmp_path):
    program = """
import flambeau as torch

@torch.compile
def f(x):
    y = x.sin()
    print("break")
    return y * 2

f(torch.ones(3, requires_grad=True)).sum().backward()
f(torch.ones(4))
"""
    env = {**os.environ, "TORCH_TRACE": str(tmp_path), "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run([sys.executable, tmp_path / "program.py"], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = tmp_path.glob("dedicated_log_torch_trace_*.log")
    kinds, texts, files, stacks = [], {}, {}, []
    for line in path.read_text().splitlines():
        if line.startswith("\t"):
            texts[kinds[-1]] += line[1:] + "\n"
        else:
            event = json.loads(line.partition("] ")[2])
            kind = next(iter(event))
            if kind == "str":  # the name of a file, by its number
                files[event[kind][1]] = event[kind][0]
                continue
            if kind == "dynamo_start":
                stacks.append([(files[f["filename"]], f["line"], f["name"]) for f in event[kind]["stack"]])
            kinds.append(event[kind].get("name", kind))
            texts.setdefault(kinds[-1], "")
            assert "frame_id" in event
    assert {"dynamo_output_graph", "dynamo_guards", "dynamo_graph_break_reason", "aot_joint_graph"} <= set(kinds)
    source = str(tmp_path / "program.py")
    assert stacks[0] == [(source, 10, "<module>"), (source, 4, "f")]
    spans = [json.loads(line) for line in texts["chromium_event"].splitlines()]
    assert [s["name"] for s in spans[:3]] == ["compile f", "capture", "backend inductor"] and spans[0]["dur"] > 0
    assert "recompile_reasons" in kinds and "inductor_output_code" in kinds
    assert "print" in texts["dynamo_graph_break_reason"] and "program.py" in texts["dynamo_graph_break_reason"]


LOGGED = {
    "graph_breaks": "call to builtin print|Graph break in f",
    "guards": "TENSOR_MATCH: L\\['x'\\]",
    "recompiles": "Recompiling function f",
    "graph_code": "def forward",
    "graph": "placeholder",
    "graph_sizes": "sin: \\(3, 3\\)",
    "bytecode": "LOAD_METHOD|LOAD_ATTR",
    "aot_graphs": "def forward",
    "aot_joint_graph": "tangents|def forward",
    "output_code": "define ",
    "schedule": "group 0",
    "ir_pre_fusion": "sin",
    "ir_post_fusion": "group 0",
    "inductor": "compiled \\d+ kernels",
    "sym_shapes": "s0",
    "trace_source": "starts_line .*program.py:5 in f\\n    z = x.sin\\(\\) @ y",
    "trace_call": "FX call sin from .*program.py:5 in f\\n    z = x.sin\\(\\) @ y\\n        ~*\\^+\\n",
    "trace_bytecode": "TRACE LOAD_FAST y \\[a Tensor\\]",
    "post_grad_graphs": "aten.sin",
    "caching": "compiled .+",
}


def test_every_artifact_has_something_to_say(tmp_path):
    """Also when the graphs are on disk already."""
    program = """
import flambeau as torch

def f(x, y):
    z = x.sin() @ y
    print("between")
    return torch.softmax(z, -1).sum()

g = torch.compile(f)
for n in (3, 4):
    g(torch.randn(n, 3, requires_grad=True), torch.randn(3, 3)).backward()
"""
    (tmp_path / "program.py").write_text(program)
    env = {**os.environ, "TORCH_LOGS": ",".join(LOGGED), "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run([sys.executable, tmp_path / "program.py"], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        parts = re.split(r"^\[__(\w+)\] ", done.stderr, flags=re.M)
        told = dict.fromkeys(LOGGED, "")
        for name, text in zip(parts[1::2], parts[2::2]):
            told[name] += text
        assert not [name for name, pattern in LOGGED.items() if not re.search(pattern, told[name])]


def test_help_is_the_list_of_artifacts():
    env = {**os.environ, "TORCH_LOGS": "help"}
    done = subprocess.run([sys.executable, "-c", "import flambeau.compiler"], env=env, capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("TORCH_LOGS Info") and not done.stderr
    for name, artifact in logs.ARTIFACTS.items():
        assert re.search(rf"^  {name} +{re.escape(artifact.help)}", done.stdout, flags=re.M) and artifact.help


def test_what_is_not_built_says_so():
    with pytest.raises(ValueError, match="'cudagraphs' of PyTorch isn't built: kernels run on the processor"):
        logs.set_logs(cudagraphs=True)


def test_the_log_of_caching_tells_what_is_recalled(tmp_path):
    (tmp_path / "program.py").write_text(
        "import flambeau as torch\ntorch.compile(lambda x: x.sin() * 2)(torch.ones(3))\n"
    )
    env = {**os.environ, "TORCH_LOGS": "caching", "FLAMBEAU_CACHE_DIR": str(tmp_path / "cache")}
    for said in ("compiled", "recalled"):
        done = subprocess.run([sys.executable, tmp_path / "program.py"], env=env, capture_output=True, text=True)
        assert re.fullmatch(rf"\[__caching\] {said} \w+.*\n", done.stderr)
