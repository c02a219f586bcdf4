"""``torch.package``: modules packed, left out, mocked and denied; objects loaded apart from the process; packed again."""

import io
import subprocess
import sys
import textwrap

import pytest

import flambeau as torch
from flambeau.package import (
    EmptyMatchError,
    GlobGroup,
    PackageExporter,
    PackageImporter,
    PackagingError,
    is_from_package,
)

FILES = {
    "packed/__init__.py": "",
    "packed/helper.py": "import math\n\ndef double(x):\n    return x * 2\n",
    "packed/optional.py": "try:\n    import nowhere_at_all\nexcept ImportError:\n    nowhere_at_all = None\n",
    "packed/net.py": """
        import numpy as np
        import flambeau as torch
        from . import helper, optional
        from packed.helper import double
        import packed_other.deep as deep

        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(3, 2)

            def forward(self, x):
                return helper.double(self.layer(x)) + double(1)

            def through_mock(self, x):
                return deep.wrapped(x)
    """,
    "packed_other/__init__.py": "",
    "packed_other/deep.py": "def wrapped(x):\n    return x\n",
}
X = torch.ones(4, 3)


@pytest.fixture
def net(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__("packed.net", fromlist=["net"])
    yield module
    for name in [n for n in sys.modules if n.partition(".")[0] in ("packed", "packed_other")]:
        del sys.modules[name]


def packed(*saves, importer=None, **rules):
    """An archive: ``saves`` are called with the exporter."""
    file = io.BytesIO()
    with PackageExporter(file, importer=importer) as exporter:
        for action, names in rules.items():
            getattr(exporter, action)(names)
        for save in saves:
            save(exporter)
    file.seek(0)
    return file


ALL = {"intern": "packed.**", "mock": "packed_other.**", "extern": "numpy"}


def test_an_object_and_its_modules(net, tmp_path):
    model = net.Net()
    file = packed(lambda e: e.save_pickle("model", "m.pkl", model), **ALL)
    importer = PackageImporter(file)
    loaded = importer.load_pickle("model", "m.pkl")
    assert type(loaded) is not net.Net and type(loaded).__module__ == f"{importer.id()}.packed.net"
    assert torch.equal(loaded(X), model(X)) and is_from_package(loaded) and not is_from_package(model)
    assert importer.import_module("packed.net").np is __import__("numpy")
    assert importer.import_module("packed.optional").nowhere_at_all is None
    with pytest.raises(
        NotImplementedError, match="'packed_other.deep.wrapped' was mocked out|mocked out during packaging"
    ):
        loaded.through_mock(X)
    again = packed(lambda e: e.save_pickle("model", "m.pkl", loaded), importer=importer, **ALL)
    assert torch.equal(PackageImporter(again).load_pickle("model", "m.pkl")(X), model(X))


def test_another_process_needs_no_source(net, tmp_path):
    model, path = net.Net(), tmp_path / "alone" / "m.pt"
    path.parent.mkdir()
    path.write_bytes(packed(lambda e: e.save_pickle("model", "m.pkl", model), **ALL).getvalue())
    torch.save(model(X), path.with_name("y.pt"))
    program = (
        "import sys, flambeau as torch; from flambeau.package import PackageImporter; "
        "m = PackageImporter(sys.argv[1]).load_pickle('model', 'm.pkl'); "
        "assert torch.equal(m(torch.ones(4, 3)), torch.load(sys.argv[2])) and 'packed' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, path, path.with_name("y.pt")], check=True, cwd=path.parent)


def test_resources_and_sources(tmp_path):
    (tmp_path / "one.py").write_text("V = 5\n")
    file = packed(
        lambda e: e.save_text("res", "a.txt", "é"),
        lambda e: e.save_binary("res.deep", "b", b"\0"),
        lambda e: e.save_source_string("made.up", "def f():\n    raise KeyError(3)\n"),
        lambda e: e.save_source_file("one", str(tmp_path / "one.py")),
    )
    importer = PackageImporter(file)
    assert importer.load_text("res", "a.txt") == "é" and importer.load_binary("res.deep", "b") == b"\0"
    assert importer.import_module("one").V == 5 and "KeyError" in importer.get_source("made.up")
    assert "res/a.txt" in importer.file_structure() and "res" not in importer.file_structure(include="made*")
    with pytest.raises(KeyError) as error:
        importer.import_module("made.up").f()
    assert "raise KeyError(3)" in str(error.getrepr())
    assert importer.python_version() == ".".join(map(str, sys.version_info[:3]))


def test_what_becomes_of_modules(net):
    file = io.BytesIO()
    with PackageExporter(file) as e:
        e.intern("packed.**")
        e.mock("packed_other.**")
        e.extern("numpy")
        seen = []
        e.register_intern_hook(lambda exporter, name: seen.append(name))
        e.save_pickle("model", "m.pkl", net.Net())
        assert "packed.helper" in e.interned_modules() and set(seen) == set(e.interned_modules())
        assert "packed_other.deep" in e.mocked_modules() and {"numpy", "math"} <= set(e.externed_modules())
        assert (
            e.get_rdeps("packed.helper") == ["packed.net"] and '"packed.net" -> "numpy"' in e.dependency_graph_string()
        )
    file.seek(0)
    with pytest.raises(ImportError, match="needs the external module 'numpy' but that module has been disallowed"):
        PackageImporter(file, lambda name: name != "numpy")


REFUSED = {
    "no rule": ({}, PackagingError, "Module did not match against any action pattern. Extern, mock, or intern it."),
    "denied": ({"intern": "packed.**", "extern": "numpy", "deny": "packed_other.**"}, PackagingError, "denied"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_modules_that_cannot_be_packed(net, name):
    rules, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        packed(lambda e: e.save_pickle("model", "m.pkl", net.Net()), **rules)


def test_errors(net):
    with pytest.raises(EmptyMatchError, match="marked as allow_empty=False"), PackageExporter(io.BytesIO()) as e:
        e.extern("nothing", allow_empty=False)
    importer = PackageImporter(packed(lambda e: e.save_module("packed.helper"), **ALL))
    with pytest.raises(ModuleNotFoundError, match='No module named "packed.net" in self-contained archive'):
        importer.import_module("packed.net")
    with pytest.raises(RuntimeError, match="failed locating file a/b"):
        importer.load_text("a", "b")
    with pytest.raises(PackagingError, match="no source in Python.*\n.*_multiarray_umath"):
        packed(lambda e: e.save_module("numpy._core._multiarray_umath"))
    with pytest.raises(TypeError, match="expects a string input"):
        PackageExporter(io.BytesIO()).save_module(net)


MATCHES = {
    "a.**": ({"a", "a.b", "a.b.c"}, {"ab", "b.a"}),
    "a.*": ({"a.b"}, {"a", "a.b.c"}),
    "**": ({"a", "a.b"}, set()),
    "a*.b": ({"a.b", "ax.b"}, {"a.x.b", "xa.b"}),
    "**.b": ({"b", "a.b"}, {"b.a"}),
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_patterns(pattern):
    yes, no = MATCHES[pattern]
    group = GlobGroup(pattern)
    assert all(map(group.matches, yes)) and not any(map(group.matches, no))
    assert not any(map(GlobGroup(pattern, exclude=yes).matches, yes))
    with pytest.raises(ValueError, match="entire path segment"):
        GlobGroup("a**.b")


def test_damaged_packages_are_refused():
    file = io.BytesIO()
    with PackageExporter(file) as e:
        e.save_text("a", "b.txt", "text " * 20)
    whole, refused = file.getvalue(), 0
    for at in range(0, len(whole), 3):
        for data in (whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :], whole[:at]):
            try:
                assert PackageImporter(io.BytesIO(data)).load_text("a", "b.txt") == "text " * 20
            except RuntimeError as e:
                refused += 1
                assert "damaged" in str(e) or "failed locating file" in str(e)
    assert refused > len(whole) // 3
