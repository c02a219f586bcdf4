"""Compiled packages: another process loads and calls them without capture; what isn't for this machine, or damaged, is refused."""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile

import pytest
from exported_programs import PROGRAMS, Stateful, same
from flambeau._inductor import aoti_compile_and_package, aoti_load_package

import flambeau as torch
from flambeau import nn
from flambeau.export import Dim, export
from flambeau.inductor import metrics
from flambeau.inductor.machine import cache, llvm


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    make, example, spec, others = PROGRAMS[name]
    torch.manual_seed(0)
    program = make()
    f = io.BytesIO()
    aoti_compile_and_package(export(program, example(), dynamic_shapes=spec), package_path=f)
    f.seek(0)
    run = aoti_load_package(f)
    for args in (example(), *others()):
        assert same(program(*args), run(*args))


def test_another_process(tmp_path):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2))
    path = str(tmp_path / "m.pt2")
    ep = export(m, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b", max=64)},))
    assert aoti_compile_and_package(ep, package_path=path) == path
    script = f"""
import flambeau as torch
from flambeau.inductor import metrics
run = torch._inductor.aoti_load_package({path!r})
print([run(torch.ones(n, 4)).tolist() for n in (1, 3, 64)])
assert metrics.compiled_kernels == 0
try:
    run(torch.ones(65, 4))
except AssertionError as e:
    print(e)
"""
    env = {**os.environ, "FLAMBEAU_CACHE_DIR": str(tmp_path / "empty")}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    for n, got in zip((1, 3, 64), json.loads(first)):
        assert torch.allclose(torch.tensor(got), m(torch.ones(n, 4)), atol=1e-5)
    assert "<= 64" in second and "65" in second


def test_buffers_and_written_inputs():
    m = Stateful()
    args = (torch.ones(5, 4), {"a": torch.ones(5, 3)})
    ep = export(m, args, {"k": 3}, dynamic_shapes={"x": {0: Dim("b")}, "y": {"a": {0: Dim("b")}}, "k": None})
    f = io.BytesIO()
    aoti_compile_and_package(ep, package_path=f)
    f.seek(0)
    run = aoti_load_package(f)
    x = torch.randn(7, 4)
    for _ in range(2):
        out, want = run(x, {"a": torch.ones(7, 3)}, k=3), m(x, {"a": torch.ones(7, 3)}, k=3)
        assert same(want, out) and out["x"] is x
    assert run._tensors["count"].tolist() == [2, 2, 2] and not out["z"].requires_grad
    assert set(run.get_constant_fqns()) == {"l.weight", "l.bias", "count", "scale", "c"}
    run.load_constants({"l.bias": torch.zeros(3)}, check_full_update=False)
    m.l.bias.data.zero_()
    assert same(m(x, {"a": torch.ones(7, 3)}, k=3), run(x, {"a": torch.ones(7, 3)}, k=3))
    for bad in ({"l.bias": torch.zeros(3)}, {"nothing": torch.zeros(3)}):
        with pytest.raises(RuntimeError, match="names"):
            run.load_constants(bad)
    with pytest.raises(RuntimeError, match="l.bias"):
        run.load_constants({"l.bias": torch.zeros(4)}, check_full_update=False)
    f = io.BytesIO()
    ep = export(lambda x, y: (x.add_(y), x * 2)[1], (torch.ones(3), torch.ones(3)))
    aoti_compile_and_package(ep, package_path=f)
    f.seek(0)
    run, x = aoti_load_package(f), torch.zeros(3)
    assert run(x, torch.ones(3)).tolist() == [2, 2, 2] and x.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="shares its memory"):
        run(x, x)


def test_strides_of_inputs():
    f = io.BytesIO()
    aoti_compile_and_package(
        export(lambda x: x * 2 + 1, (torch.ones(5, 4),), dynamic_shapes=({0: Dim("b")},)), package_path=f
    )
    f.seek(0)
    run, x = aoti_load_package(f), torch.randn(4, 7).t()
    assert torch.equal(run(x), x * 2 + 1)


def test_lazily_conjugated_and_negated_inputs():
    m = nn.Linear(4, 3)
    f = io.BytesIO()
    aoti_compile_and_package(export(m, (torch.randn(5, 4),)), package_path=f)
    f.seek(0)
    run = aoti_load_package(f)
    z = torch.complex(torch.randn(5, 4), torch.randn(5, 4))
    for x in (z.conj().imag, torch._neg_view(z.real)):
        assert x.is_neg() and torch.allclose(run(x), m(x))


@pytest.fixture
def package(tmp_path):
    path = str(tmp_path / "m.pt2")
    return aoti_compile_and_package(export(nn.Linear(4, 3), (torch.ones(5, 4),)), package_path=path)


def rewrite(path, change):
    """The package with its members changed."""
    with zipfile.ZipFile(path) as z:
        members = {n: z.read(n) for n in z.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as z:
        for n, data in members.items():
            z.writestr(n, data)


def manifest(**changes):
    def change(members):
        rows = json.loads(members["manifest.json"])
        rows.update({k: v(rows[k]) if callable(v) else v for k, v in changes.items()})
        members["manifest.json"] = json.dumps(rows).encode()

    return change


def damage(name):
    def change(members):
        found = next(n for n in members if n.startswith(name))
        members[found] = members[found][:-1] + bytes([members[found][-1] ^ 1])

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (manifest(features=lambda f: [*f, "sse9"]), "lacks sse9"),
        (manifest(machine="vax"), "machine 'vax'"),
        (manifest(version="0.0.0"), "version '0.0.0'"),
        (manifest(digests={}), "damaged"),
        (lambda m: m.update(version=b"9"), "version 9 of the format"),
        (lambda m: m.update(archive_format=b"something"), "is no"),
        (lambda m: m.pop("manifest.json"), "damaged"),
        (lambda m: m.pop("program.json"), "damaged"),
        (damage("weights"), "weights.safetensors isn't what was written"),
        (damage("program"), "program.json isn't what was written"),
    ],
)
def test_packages_that_are_refused(package, change, words):
    aoti_load_package(package)
    rewrite(package, change)
    with pytest.raises(RuntimeError, match=words):
        aoti_load_package(package)


def test_object_code_is_looked_at_before_it_is_linked(tmp_path):
    path = str(tmp_path / "m.pt2")
    aoti_compile_and_package(export(lambda x: x.sin() + 1, (torch.ones(5, 4),)), package_path=path)

    def change(members):
        name = next(n for n in members if n.startswith("kernels/"))
        members[name] = b"no object"
        manifest(digests=lambda d: {**d, name: hashlib.sha256(b"no object").hexdigest()})(members)

    rewrite(path, change)
    with pytest.raises(RuntimeError, match="no object code"):
        aoti_load_package(path)


def test_files_that_others_can_change_are_refused(package):
    os.chmod(package, 0o666)
    with pytest.raises(PermissionError, match="everybody may write"):
        aoti_load_package(package)
    os.chmod(package, 0o644)
    if os.geteuid() == 0:  # only the administrator can give a file away
        os.chown(package, 12345, -1)
        with pytest.raises(PermissionError, match="another user"):
            aoti_load_package(package)
        with open(package, "rb") as file, pytest.raises(PermissionError, match="another user"):
            aoti_load_package(file)


def test_a_folder_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        aoti_load_package(str(tmp_path))


def test_open_files_and_pipes_are_looked_at_too(package, tmp_path):
    with open(package, "rb") as file:
        data = io.BytesIO(file.read())
    assert callable(aoti_load_package(data)), "what is in memory is the caller's"
    os.chmod(package, 0o666)
    with open(package, "rb") as file, pytest.raises(PermissionError, match="everybody may write"):
        aoti_load_package(file)
    os.mkfifo(tmp_path / "pipe.pt2", 0o600)
    with pytest.raises(PermissionError, match="it is no file"):
        aoti_load_package(tmp_path / "pipe.pt2")


def test_truncated_files(package):
    with open(package, "rb") as f:
        data = f.read()
    for n in (0, 20, len(data) // 2, len(data) - 3):
        with pytest.raises(RuntimeError, match="damaged|is no"):
            aoti_load_package(io.BytesIO(data[:n]))


def test_arguments():
    ep = export(lambda x: x + 1, (torch.ones(3),))
    with pytest.raises(RuntimeError, match=r"\.pt2"):
        aoti_compile_and_package(ep, package_path="a.zip")
    with pytest.raises(TypeError, match="ExportedProgram"):
        aoti_compile_and_package(lambda x: x)
    before = metrics.compiled_kernels
    run = aoti_load_package(aoti_compile_and_package(ep))
    assert run(torch.ones(3)).tolist() == [2, 2, 2] and metrics.compiled_kernels >= before
    assert llvm.host()[0] == run.get_metadata()["cpu"] and cache.directory()
