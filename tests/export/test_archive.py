"""Exported programs in files: what is read back is the program; what is no such file, or damaged, or more than a graph, is refused."""

import dataclasses
import io
import json
import subprocess
import sys
import zipfile

import pytest
from exported_programs import PROGRAMS, Stateful, same

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export, load, register_dataclass, save


def again(ep):
    f = io.BytesIO()
    save(ep, f)
    f.seek(0)
    return load(f)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    make, example, spec, others = PROGRAMS[name]
    torch.manual_seed(0)
    program = make()
    ep = export(program, example(), dynamic_shapes=spec)
    back = again(ep)
    assert str(back.graph_signature) == str(ep.graph_signature)
    assert str(back.range_constraints) == str(ep.range_constraints)
    run = again(back).module()
    for args in (example(), *others()):
        assert same(program(*args), run(*args))


def test_what_a_file_keeps():
    m = Stateful()
    m.l.bias.requires_grad_(False)
    ep = export(m, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b", max=9)},))
    f = io.BytesIO()
    save(ep, f, extra_files={"notes.txt": "hello"})
    f.seek(0)
    extra = {"notes.txt": ""}
    back = load(f, extra_files=extra)
    assert extra == {"notes.txt": "hello"} and list(back.state_dict) == list(ep.state_dict)
    assert isinstance(back.state_dict["l.weight"], nn.Parameter) and not back.state_dict["l.bias"].requires_grad
    assert back.example_inputs[0][0].shape == (5, 4)
    with pytest.raises(AssertionError, match="s0 = 10"):
        back.module()(torch.ones(10, 4))


def test_layouts_and_dtypes_of_weights():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            for k, d in enumerate((torch.bfloat16, torch.bool, torch.int64, torch.complex64, torch.float64)):
                self.register_buffer(f"b{k}", torch.tensor([[1, 0, 1], [0, 1, 0]]).to(d).t())
            self.register_buffer("piece", torch.arange(12.0).reshape(3, 4)[:, ::2])

        def forward(self, x):
            return [b + x for b in self.buffers()]

    m = M()
    back = again(export(m, (torch.tensor(1),)))
    assert all(map(torch.equal, m(torch.tensor(1)), back.module()(torch.tensor(1))))
    assert back.state_dict["b0"].stride() == (1, 3)


def test_another_process(tmp_path):
    m = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
    save(export(m, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b")},)), tmp_path / "p.pt2")
    script = f"""
import flambeau as torch
ep = torch.export.load({str(tmp_path / "p.pt2")!r})
print(ep.module()(torch.ones(3, 4)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(m(torch.ones(3, 4)).tolist())


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


def test_dataclasses():
    register_dataclass(Pair, serialized_type_name="tests.Pair")
    back = again(export(lambda p: Pair(p.b, p.a + 1), (Pair(torch.zeros(2), torch.ones(2)),)))
    out = back.module()(Pair(torch.zeros(2), torch.ones(2)))
    assert type(out) is Pair and out.a.tolist() == [1, 1]
    with pytest.raises(AssertionError, match="Only dataclasses"):
        register_dataclass(int)


def rewrite(ep, change) -> io.BytesIO:
    """The file of ``ep`` with its ``model.json`` changed."""
    f, out = io.BytesIO(), io.BytesIO()
    save(ep, f)
    with zipfile.ZipFile(f) as a, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as b:
        for name in a.namelist():
            data = a.read(name)
            if name == "model.json":
                rows = json.loads(data)
                change(rows)
                data = json.dumps(rows).encode()
            b.writestr(name, data)
    out.seek(0)
    return out


def put(*path, value):
    def change(rows):
        for p in path[:-1]:
            rows = rows[p]
        rows[path[-1]] = value

    return change


EVIL = "__import__('os').system('false')"
FORGED = [
    put("symbols", 0, 1, value=f"s0 if {EVIL} else s0"),
    put("symbols", 0, 2, value=EVIL),
    put("graph", "nodes", 0, 4, value=f"x=({EVIL})"),
    put("graph", "nodes", 0, 1, value=f"*x=({EVIL})"),
    put("graph", "nodes", 1, 0, value="call_method"),
    put("graph", "nodes", 1, 1, value=["op", "aten", "no_such_operator", "default"]),
    put("graph", "nodes", 1, 1, value=["fn", "eval"]),
    put("graph", "nodes", 1, 1, value="forward"),
    put("checks", "guards", value=[[["Rel", EVIL, ["s", 0]], None]]),
    put("checks", "guards", value=[[["Float", EVIL, 1.0], None]]),
    put("checks", "guards", value=[[["Apply", EVIL, ["s", 0], 1], None]]),
    put("checks", "bindings", 0, 1, value=[0, EVIL, 0, 1, 0]),
    put("checks", "bindings", 0, 1, value=[0, "size", EVIL, 1, 0]),
    put("checks", "ranges", 0, 1, value=EVIL),
    put("checks", "inputs", 0, value=["tensor", "float32", [["+", EVIL, []], 4]]),
    put("in_spec", value=["object", None, [], []]),
    put("in_spec", value=["dataclass", "os.system", [], []]),
    put("signature", "inputs", value=[]),
    put("graph", value={}),
]


@pytest.mark.parametrize("row", range(len(FORGED)))
def test_files_that_hold_more_than_a_graph_are_refused(row):
    ep = export(lambda x: x * 2 + 1, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b")},))
    assert load(rewrite(ep, lambda rows: None)).module()(torch.ones(2, 4)).shape == (2, 4)
    with pytest.raises(RuntimeError, match="can't be read"):
        load(rewrite(ep, FORGED[row])).module()


def test_files_that_are_damaged_are_refused(tmp_path):
    m = nn.Linear(4, 3)
    path = tmp_path / "p.pt2"
    save(export(m, (torch.ones(5, 4),)), path)
    data = path.read_bytes()
    for cut in (0, 10, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(RuntimeError, match="damaged|is no"):
            load(path)
    for at in range(40, len(data) - 30, 29):
        changed = bytearray(data)
        changed[at] ^= 0xFF
        path.write_bytes(changed)
        try:
            found = load(path)
        except RuntimeError:
            continue
        assert torch.equal(found.state_dict["weight"], m.weight)  # a byte that nothing depends on
    torch.save({}, path)
    with pytest.raises(RuntimeError, match="is no"):
        load(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


def test_what_cannot_be_saved():
    with pytest.raises(TypeError, match="ExportedProgram"):
        save(3, io.BytesIO())
    ep = export(lambda d: d[(1, 2)] + 1, ({(1, 2): torch.ones(2)},))
    with pytest.raises(TypeError, match="keys"):
        save(ep, io.BytesIO())
