"""Entries on disk: private, whole, ours; and object code is looked at before LLVM sees it."""

import os
import stat

import pytest

from flambeau.base import disk
from flambeau.inductor.machine import cache


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
    for path in (folder, folder / "entries" / "ab", folder / "entries" / NAME):
        assert not os.stat(path).st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def test_what_others_can_write_is_not_used(folder, caplog):
    disk.write_entry(NAME, b"content")
    os.chmod(folder / "entries" / NAME, 0o666)
    assert disk.read_entry(NAME) is None and "not used" in caplog.text
    os.chmod(folder / "entries" / NAME, 0o600)
    os.chmod(folder / "entries" / "ab", 0o777)
    assert disk.read_entry(NAME) is None
    disk.write_entry(os.path.join("ab", "other"), b"x")
    assert sorted(os.listdir(folder / "entries" / "ab")) == ["kab"]


def test_damage_and_another_name_are_noticed(folder, caplog):
    disk.write_entry(NAME, b"content")
    disk.write_entry(os.path.join("ab", "kcd"), b"other")
    os.replace(folder / "entries" / "ab" / "kcd", folder / "entries" / NAME)
    assert disk.read_entry(NAME) is None and "damaged" in caplog.text


def test_a_file_of_holes_is_damaged(folder, caplog):
    disk.write_entry(NAME, b"content")
    os.truncate(folder / "entries" / NAME, 1 << 40)
    assert disk.read_entry(NAME) is None and "damaged" in caplog.text


def test_what_would_not_be_read_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(disk, "_MOST", 40)
    disk.write_entry(NAME, b"12345678")
    assert disk.read_entry(NAME) == b"12345678"
    disk.write_entry(os.path.join("ab", "kcd"), b"123456789")
    assert os.listdir(folder / "entries" / "ab") == ["kab"]


def test_a_failed_write_leaves_nothing(folder, monkeypatch):
    def full(*args, **kw):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    disk.write_entry(NAME, b"content")
    assert os.listdir(folder / "entries" / "ab") == []


@pytest.mark.parametrize(
    "data", [b"", b"garbage" * 50, b"\x7fELF" + bytes(200), b"\x7fELF\x02\x01\x01" + bytes(300)], ids=range(4)
)
def test_what_is_no_object_is_not_loaded(folder, data, caplog):
    disk.write_entry(NAME, data)
    assert cache.read("kab") is None


OTHER = 12345  # another user


def _give(path):
    os.chown(path, OTHER, OTHER, follow_symlinks=False)


DEEP = os.path.join("aot", "ab", "aab")
STEPS = {
    "the cache's folder": lambda folder: folder,
    "the entries' folder": lambda folder: folder / "entries",
    "the outer folder": lambda folder: folder / "entries" / "aot",
    "the inner folder": lambda folder: folder / "entries" / "aot" / "ab",
    "the entry": lambda folder: folder / "entries" / DEEP,
}
CHANGES = {
    "everybody's": lambda path: os.chmod(path, 0o777),
    "a group's": lambda path: os.chmod(path, 0o770),
    "another user's": _give,
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("change", CHANGES)
def test_each_step_is_ours(folder, step, change, caplog):
    if change == "another user's" and os.geteuid() != 0:
        pytest.skip("only the administrator can give files away")
    disk.write_entry(DEEP, b"content")
    assert disk.read_entry(DEEP) == b"content"
    CHANGES[change](STEPS[step](folder))
    assert disk.read_entry(DEEP) is None
    if step != "the entry":  # that one is made again
        before = sorted(os.listdir(STEPS[step](folder)))
        disk.write_entry(os.path.join("aot", "ab", "other"), b"x")
        assert sorted(os.listdir(STEPS[step](folder))) == before
        assert not disk.link_entry(os.path.join("aot", "ab", "link"), DEEP)


PLANTED = {
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "a socket": lambda path: os.mknod(path, 0o600 | stat.S_IFSOCK),
    "a link to an entry elsewhere": lambda path: os.symlink(_entry_elsewhere(path), path),
    "a link to a device": lambda path: os.symlink("/dev/zero", path),
    "a link to nothing": lambda path: os.symlink("nowhere", path),
    "a link to itself": lambda path: os.symlink(path.name, path),
}


def _entry_elsewhere(path):
    """A sound entry outside of the cache."""
    elsewhere = path.parents[3] / path.name
    body = b"content"
    elsewhere.write_bytes(disk._digest(path.name, body) + body)
    return elsewhere


@pytest.mark.parametrize("kind", PLANTED)
@pytest.mark.timeout(20)
def test_what_is_no_file_is_passed_by(folder, kind, monkeypatch):
    monkeypatch.chdir(folder.parent)
    disk.write_entry(NAME, b"content")
    path = folder / "entries" / NAME
    os.unlink(path)
    PLANTED[kind](path)
    assert disk.read_entry(NAME) is None and disk.read_entry(disk.linked_entry(NAME)) is None
    disk.write_entry(NAME, b"new")
    assert disk.read_entry(NAME) == (None if kind == "a folder" else b"new")


FOLDERS = {
    "a folder elsewhere": lambda path, elsewhere: os.symlink(elsewhere, path),
    "a pipe": lambda path, elsewhere: os.mkfifo(path),
    "a file": lambda path, elsewhere: path.write_bytes(b""),
}


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("at", ["entries", "entries/ab"])
def test_folders_are_folders(folder, kind, at, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "ab").mkdir(parents=True, mode=0o700)
    for place in (elsewhere, elsewhere / "ab"):
        (place / "kab").write_bytes(disk._digest("kab", b"theirs") + b"theirs")
    path = folder / at
    path.parent.mkdir(parents=True, mode=0o700)
    FOLDERS[kind](path, elsewhere)
    assert disk.read_entry(NAME) is None
    disk.write_entry(NAME, b"content")
    assert disk.read_entry(NAME) is None and sorted(os.listdir(elsewhere)) == ["ab", "kab"]


TARGETS = ["../../../elsewhere/kab", "/etc/hostname", "../..", "..", "../../outside", "../ab/../../../x"]


@pytest.mark.parametrize("target", TARGETS)
def test_links_stay_inside(folder, target):
    disk.write_entry(NAME, b"content")
    link = folder / "entries" / "ab" / "link"
    os.symlink(target, link)
    assert disk.linked_entry(os.path.join("ab", "link")) == os.path.join("ab", "link")


def test_links_stay_inside_and_are_ours(folder):
    disk.write_entry(NAME, b"content")
    link = os.path.join("cd", "link")
    assert disk.link_entry(link, NAME) and disk.linked_entry(link) == NAME
    assert disk.read_entry(disk.linked_entry(link)) == b"content"
    assert disk.link_entry(link, os.path.join("ab", "other")) and disk.linked_entry(link) == os.path.join("ab", "other")
    if os.geteuid() == 0:
        _give(folder / "entries" / link)
        assert disk.linked_entry(link) == link


@pytest.mark.parametrize("name", ["", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "./a", "a/."])
def test_names_stay_inside(folder, name):
    for use in (disk.read_entry, disk.linked_entry, lambda n: disk.write_entry(n, b"x")):
        with pytest.raises(ValueError, match="no name of a cache entry"):
            use(name)


PLACES = [
    ({"FLAMBEAU_CACHE_DIR": "/x/y"}, "/x/y"),
    ({"FLAMBEAU_CACHE_DIR": "~/c", "HOME": "/home/me"}, "/home/me/c"),
    ({"FLAMBEAU_CACHE_DIR": "~", "HOME": "/home/me"}, "/home/me"),
    ({"FLAMBEAU_CACHE_DIR": "/x/y/"}, "/x/y"),
    ({"TORCHINDUCTOR_CACHE_DIR": "/t"}, "/t"),
    ({"FLAMBEAU_CACHE_DIR": "", "TORCHINDUCTOR_CACHE_DIR": "/t"}, "/t"),
    ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/flambeau"),
    ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/flambeau"),
    ({"XDG_CACHE_HOME": "~/c", "HOME": "/home/me"}, "/home/me/.cache/flambeau"),
    ({"HOME": "/home/me"}, "/home/me/.cache/flambeau"),
]


@pytest.mark.parametrize("environment, place", PLACES)
def test_where_the_cache_lies(environment, place, monkeypatch):
    for name in ("FLAMBEAU_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert disk.root() == place


HOMELESS = ["~/.cache", "~", "~/a/b", "~nobody-of-that-name/x"]


@pytest.mark.parametrize("path", HOMELESS)
def test_without_a_home_no_folder_is_called_tilde(path, monkeypatch, tmp_path):
    monkeypatch.setattr(os.path, "expanduser", lambda p: p)  # as where the user isn't known
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", path)
    monkeypatch.chdir(tmp_path)
    where = disk.root()
    assert os.path.isabs(where) and "~" not in where and f"flambeau-{os.geteuid()}" in where


def test_relative_names_are_of_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", "cache")
    disk.write_entry(NAME, b"content")
    assert (tmp_path / "cache" / "entries" / NAME).exists() and disk.read_entry(NAME) == b"content"


def _aged(path, days):
    import time

    then = time.time() - days * 86400
    os.utime(path, (then, then), follow_symlinks=False)


def test_sweeping(folder):
    for n, days in (("a", 100), ("b", 50), ("c", 30), ("d", 10), ("e", 0)):
        disk.write_entry(os.path.join("ab", n), b"x" * 100_000)
        _aged(folder / "entries" / "ab" / n, days)
    disk.link_entry(os.path.join("ab", "link"), os.path.join("ab", "a"))
    _aged(folder / "entries" / "ab" / "link", 90)
    (folder / "mine").write_bytes(b"the user's")
    _aged(folder / "mine", 1000)
    left = lambda: sorted(os.listdir(folder / "entries" / "ab"))  # noqa: E731
    assert disk.sweep(1 << 30, 60) == 2 and left() == ["b", "c", "d", "e"]
    assert disk.sweep(250_000, 60) == 2 and left() == ["d", "e"]
    assert disk.sweep(0, 0) == 1 and left() == ["e"], "what is young may be in use"
    assert (folder / "mine").exists() and disk.sweep(0, 0) == 0


def test_what_is_read_is_in_use(folder):
    disk.write_entry(NAME, b"content")
    path = folder / "entries" / NAME
    _aged(path, 59)
    assert disk.read_entry(NAME) == b"content"
    assert disk.sweep(1 << 30, 1) == 0 and path.exists()


def test_a_writer_sweeps_once_a_day(folder, monkeypatch):
    monkeypatch.setattr(disk, "_look", [0.0])
    monkeypatch.setenv("FLAMBEAU_CACHE_DAYS", "5")
    disk.write_entry(NAME, b"content")
    _aged(folder / "entries" / NAME, 10)
    other = os.path.join("ab", "other")
    disk.write_entry(other, b"x")
    assert (folder / "entries" / NAME).exists(), "this process has looked"
    monkeypatch.setattr(disk, "_look", [0.0])
    disk.write_entry(other, b"x")
    assert (folder / "entries" / NAME).exists(), "somebody has swept today"
    _aged(folder / "entries" / "swept", 2)
    monkeypatch.setattr(disk, "_look", [0.0])
    disk.write_entry(other, b"x")
    assert not (folder / "entries" / NAME).exists() and disk.read_entry(other) == b"x"


INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon\nflags\t\t: fpu avx2\n\n"
ARM = "processor\t: 0\nBogoMIPS\t: 1.0\nFeatures\t: fp asimd{}\nCPU implementer\t: 0x41\nCPU part\t: {}\n\n"
PROCESSORS = {
    "Intel": INTEL,
    "Intel with AVX-512": INTEL.replace("avx2", "avx2 avx512f"),
    "another model": INTEL.replace("Xeon", "Core"),
    "ARM": ARM.format("", "0xd0c"),
    "ARM with SVE": ARM.format(" sve", "0xd0c"),
    "another ARM": ARM.format("", "0xd40"),
    "ARM of two kinds": ARM.format("", "0xd0c") + ARM.format("", "0xd40"),
    "no features": "processor\t: 0\nhart\t: 0\n\n",
    "nothing": None,
}


def _keys(monkeypatch, text, level):
    import builtins
    import io

    real = builtins.open

    def fake(path, *args, **kw):
        if path != "/proc/cpuinfo":
            return real(path, *args, **kw)
        if text is None:
            raise FileNotFoundError(path)
        return io.StringIO(text)

    monkeypatch.setattr(builtins, "open", fake)
    monkeypatch.setenv("FLAMBEAU_CPU", level)
    monkeypatch.setattr(cache, "_seed", None)
    cache.processor.description.cache_clear()
    return cache.machine()


def test_processors_have_caches_of_their_own(monkeypatch):
    try:
        with monkeypatch.context() as patch:
            keys = {
                (name, level): _keys(patch, PROCESSORS[name], level)
                for name in PROCESSORS
                for level in ("", "avx2", "default")
            }
    finally:
        cache.processor.description.cache_clear()
    same = {("nothing", level) for level in ("", "avx2", "default")}  # LLVM's words, as where there are no features
    assert len(set(keys.values())) == len(keys) - len(same)
    assert all(keys["nothing", level] == keys["no features", level] for _, level in same)
