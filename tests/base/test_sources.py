"""The digest of flambeau's own files."""

import os

from flambeau.base import sources


def test_it_is_another_one_when_a_file_is(monkeypatch, tmp_path):
    folder = tmp_path / "base"
    folder.mkdir()
    file = folder / "sources.py"
    file.write_text("a = 1\n")
    (tmp_path / "notes.txt").write_text("not code")
    monkeypatch.setattr(sources, "__file__", str(file))
    digest = sources.fingerprint.__wrapped__
    first = digest()
    (tmp_path / "notes.txt").write_text("still not code")
    assert digest() == first
    os.utime(file, ns=(1, 1))
    dated = digest()
    (tmp_path / "more.py").write_text("")
    assert len({first, dated, digest()}) == 3


def test_it_is_worked_out_once():
    assert sources.fingerprint() is sources.fingerprint()
