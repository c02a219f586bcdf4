"""Kernels that are generated together: one entry of the cache under many names, each found again alone."""

import numpy as np
import pytest
from tracing import trace

import flambeau as torch
from flambeau.inductor import compile_graph, metrics
from flambeau.inductor.machine import cache, llvm


def many(x):
    """As many kernels as factors: sums of different lengths don't share one."""
    return [x[: 3 + k].sum() * (k + 0.1234) for k in range(40)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    if not llvm.on_threads():
        pytest.skip("this llvmlite, or a setting, has no threads")
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_loaded", {})
    monkeypatch.setattr(cache, "_made", {})
    return tmp_path


def forget():
    cache._loaded.clear()
    cache._made.clear()


def compiled():
    x = torch.arange(60, dtype=torch.float32)
    before = metrics.compiled_kernels
    graph = compile_graph(trace(many, x))
    for k, y in enumerate(graph(x)):
        assert np.allclose(y._array, np.arange(3 + k).sum() * (k + 0.1234))
    return list(graph.info.kernels), metrics.compiled_kernels - before


def test_kernels_share_entries_and_are_found_alone(folder):
    names, count = compiled()
    assert len(names) == count > 12
    entries = [p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()]
    links = {p.name: p for p in folder.rglob("*") if p.is_symlink()}
    assert len(entries) < count and len(links) > count // 2 and set(links) <= set(names)
    forget()
    assert all(cache.is_object(cache.read(n), n) for n in names)
    assert compiled() == (names, 0)

    forget()  # a shared entry is damaged: its kernels are made again, and their names lead to the new one
    path = links[next(iter(links))].resolve()
    lost = [n for n, p in links.items() if p.resolve() == path]
    path.write_bytes(path.read_bytes()[:-1])
    assert compiled() == (names, len(lost))
    forget()
    assert compiled() == (names, 0)


def test_a_file_system_without_links_keeps_each_kernel(folder, monkeypatch):
    monkeypatch.setattr(cache.disk, "link_entry", lambda name, to: False)
    names, count = compiled()
    assert count == len(names) and not any(p.is_symlink() for p in folder.rglob("*"))
    forget()
    assert compiled() == (names, 0)


def test_a_kernel_of_a_batch_is_packaged_alone(folder):
    names, _ = compiled()
    text = "define void @{0}(ptr %p) {{\n  ret void\n}}\n"
    shared = next(n for n in names if cache.disk.linked_entry(cache._entry(n)) != cache._entry(n))
    alone = cache.object_code(shared, text.format(shared))
    assert alone != cache.read(shared) and not any(n.encode() in alone for n in names if n != shared)


def test_modules_are_joined_with_what_they_share_once():
    text = "declare float @llvm.sqrt.f32(float)\ndefine float @{0}(float %x) {{\n  %y = call float @llvm.sqrt.f32(float %x)\n  ret float %y\n}}\n!0 = !{{}}\n"
    code = llvm.compile_text(llvm.joined([text.format("one"), text.format("two")]))
    assert cache.is_object(code, "one") and cache.is_object(code, "two")
