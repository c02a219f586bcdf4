"""Entries on disk: private, whole, ours; and object code is looked at before LLVM sees it."""

import os
import stat

import pytest

from flambeau.base import disk
from flambeau.inductor import cache


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


NAME = os.path.join("ab", "kab")


def test_an_entry_comes_back(folder):
    assert disk.read_entry(NAME) is None
    disk.write_entry(NAME, b"content")
    assert disk.read_entry(NAME) == b"content"


def test_folders_are_private_whatever_the_umask(folder):
    before = os.umask(0)
    try:
        disk.write_entry(NAME, b"content")
    finally:
        os.umask(before)
    for path in (folder, folder / "ab", folder / NAME):
        assert not os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_what_others_can_write_is_not_used(folder, caplog):
    disk.write_entry(NAME, b"content")
    os.chmod(folder / NAME, 0o666)
    assert disk.read_entry(NAME) is None and "not used" in caplog.text
    os.chmod(folder / NAME, 0o600)
    os.chmod(folder / "ab", 0o777)
    assert disk.read_entry(NAME) is None
    disk.write_entry(os.path.join("ab", "other"), b"x")
    assert sorted(os.listdir(folder / "ab")) == ["kab"]


def test_damage_and_another_name_are_noticed(folder, caplog):
    disk.write_entry(NAME, b"content")
    disk.write_entry(os.path.join("ab", "kcd"), b"other")
    os.replace(folder / "ab" / "kcd", folder / NAME)
    assert disk.read_entry(NAME) is None and "damaged" in caplog.text


def test_a_failed_write_leaves_nothing(folder, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    disk.write_entry(NAME, b"content")
    assert os.listdir(folder / "ab") == []


@pytest.mark.parametrize(
    "data", [b"", b"garbage" * 50, b"\x7fELF" + bytes(200), b"\x7fELF\x02\x01\x01" + bytes(300)], ids=range(4)
)
def test_what_is_no_object_is_not_loaded(folder, data, caplog):
    disk.write_entry(NAME, data)
    assert cache.read("kab") is None
