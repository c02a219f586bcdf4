"""Stores: one table of behaviour for all of them, and what each has alone."""

import datetime
import threading

import pytest

import flambeau.distributed as dist


def tcp(tmp_path):
    return dist.TCPStore("127.0.0.1", 0, 1, True)


KINDS = {
    "hash": lambda tmp_path: dist.HashStore(),
    "file": lambda tmp_path: dist.FileStore(str(tmp_path / "store"), 1),
    "tcp": tcp,
    "prefix": lambda tmp_path: dist.PrefixStore("a", dist.PrefixStore("b", tcp(tmp_path))),
}


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return KINDS[request.param](tmp_path)


def test_values(store):
    store.set("key", "text")
    assert store.get("key") == b"text"
    store.set("key", b"\x00\n")
    assert store.get("key") == b"\x00\n"
    store.append("key", "more")
    assert store.get("key") == b"\x00\nmore"
    store.multi_set(["x", "y"], ["1", "2"])
    assert store.multi_get(["y", "x"]) == [b"2", b"1"]
    assert store.check(["x", "y"]) and not store.check(["x", "z"])
    assert store.delete_key("x") and not store.delete_key("x")
    assert {"key", "y"} <= set(store.list_keys())
    assert store.num_keys() >= 2


def test_numbers(store):
    assert store.add("n", 5) == 5
    assert store.add("n", -7) == -2
    assert store.get("n") == b"-2"


def test_compare_set(store):
    assert store.compare_set("k", "expected", "new") == b"expected"  # no key, one expected
    assert not store.check(["k"])
    assert store.compare_set("k", "", "first") == b"first"
    assert store.compare_set("k", "other", "second") == b"first"
    assert store.compare_set("k", "first", "second") == b"second"


def test_queue(store):
    store.queue_push("q", "1")
    store.queue_push("q", "2")
    assert store.queue_len("q") == 2
    assert store.queue_pop("q") == b"1"
    assert store.queue_pop("q") == b"2"
    with pytest.raises(dist.QueueEmptyError):
        store.queue_pop("q", block=False)


def test_a_key_that_never_comes(store):
    store.set_timeout(datetime.timedelta(milliseconds=50))
    with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms, keys: /.*gone"):
        store.get("gone")
    with pytest.raises(dist.DistStoreError):
        store.wait(["gone"], datetime.timedelta(milliseconds=10))
    store.set_timeout(datetime.timedelta(seconds=30))
    store.set("here", "1")
    assert store.get("here") == b"1"


def test_waiting_for_another(store):
    other = store.clone()
    found = []
    reader = threading.Thread(target=lambda: found.append(other.get("late")))
    reader.start()
    store.set("late", "value")
    reader.join(20)
    assert found == [b"value"]


def test_file_is_gone_with_its_last_user(tmp_path):
    path = tmp_path / "store"
    one, two = (dist.FileStore(str(path), 2) for _ in range(2))
    one.set("k", "v")
    assert two.get("k") == b"v"
    del one
    assert path.exists()
    del two
    assert not path.exists()


def test_nobody_listens():
    with pytest.raises(dist.DistNetworkError, match="timed out"):
        dist.TCPStore("127.0.0.1", 9, timeout=datetime.timedelta(milliseconds=100))


def test_a_port_that_is_taken():
    store = tcp(None)
    with pytest.raises(dist.DistNetworkError, match="failed to listen"):
        dist.TCPStore("127.0.0.1", store.port, 1, True)


def test_workers_that_do_not_come():
    with pytest.raises(dist.DistStoreError, match="1/2 clients joined"):
        dist.TCPStore("127.0.0.1", 0, 2, True, timeout=datetime.timedelta(milliseconds=100))
