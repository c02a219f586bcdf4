"""explain, bench, info and cache: what they print, their exit statuses, and what they refuse; the report behind explain."""

import json
import os
import shutil
import subprocess

import pytest

import flambeau as torch
from flambeau.cli import main

SCRIPT = """
import flambeau as torch


def scores(x, w):
    y = x @ w
    return torch.softmax(y + 1, -1)


def broken(x, w):
    y = x.exp()
    if y.sum().item() > 0:
        y = y * 2
    return y


example_inputs = (torch.ones(8, 16), torch.ones(16, 4))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_explain(script, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert main(["explain", f"{script}:scores", "--html", str(page), "--calls", "1", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (
        data["graphs"] == 1
        and data["breaks"] == []
        and {x["kind"] for x in data["launches"]} & {"product", "rows", "kernel"}
    )
    text = page.read_text()
    assert "y = x @ w" in text and "What to change" in text and "for i in parallel" in text and "<svg" in text
    assert "http://" not in text and "https://" not in text and "src=" not in text  # nothing is loaded


def test_explain_tells_breaks_and_guards_when_asked(script, capsys):
    assert main(["explain", f"{script}:broken", "--calls", "1"]) == 0
    out = capsys.readouterr().out
    assert ".item() of a tensor asks for its elements" in out and f"{script}:12" in out and "guards of" not in out
    assert main(["explain", f"{script}:scores", "--calls", "1", "--guards"]) == 0
    assert "guards of scores" in capsys.readouterr().out


def test_bench(script, capsys):
    assert main(["bench", f"{script}:scores", "--pairs", "3", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["pairs"] == 3 and data["quartiles"][0] <= data["speed_up"] <= data["quartiles"][1]


def test_info(capsys):
    assert main(["info", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["threads"] >= 1 and data["packages"]["numpy"][0].isdigit() and data["cache"]
    assert main(["info"]) == 0 and "processor:" in capsys.readouterr().out


def test_cache(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("FLAMBEAU_CACHE_DIR", str(tmp_path / "cache"))
    torch._dynamo.reset()
    from flambeau.base import disk

    disk.write_entry("test/one", b"content")
    assert main(["cache", "size", "--json"]) == 0 and json.loads(capsys.readouterr().out)["entries"] == 1
    assert main(["cache", "verify"]) == 0
    (path,) = (tmp_path / "cache").rglob("one")
    path.write_bytes(b"damaged")
    capsys.readouterr()
    assert main(["cache", "verify", "--json"]) == 1 and json.loads(capsys.readouterr().out)["damaged"] == [str(path)]
    assert main(["cache", "clear"]) == 0 and not path.exists()


REFUSED = [
    (["explain", "nothing"], "expected script.py:function"),
    (["explain", "/no/such.py:f"], "no such file: /no/such.py"),
    (["bench", "{script}:absent"], "has no function 'absent'; it has: broken, scores"),
]


@pytest.mark.parametrize("arguments, text", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refuses(arguments, text, script, capsys):
    assert main([a.replace("{script}", script) for a in arguments]) == 2
    assert text in capsys.readouterr().err


def test_recompilations_are_at_their_function():
    def f(x, k):
        return x * k

    made = torch.compiler.report(lambda x: [f(x, k) for k in (2, 3)][0], calls=1)(torch.ones(4))
    assert "what the compiler did" in made.html() and made.compiled > 0


BROWSER = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width", [500, 1200])
def test_the_page_in_a_browser(width, tmp_path):
    made = torch.compiler.report(lambda x, w: torch.softmax(x @ w, -1), calls=1)(torch.ones(8, 16), torch.ones(16, 4))
    page = made.save(tmp_path / "report.html")
    script = "<script>document.title = document.documentElement.scrollWidth <= innerWidth ? 'fits' : 'too wide'</script></html>"
    page.write_text(page.read_text().replace("</html>", script))
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    done = subprocess.run(
        [BROWSER, *flags, f"--window-size={width},900", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=90, env={**os.environ, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert "<title>fits</title>" in done.stdout and 'class="graph"' in done.stdout


def test_collect_env_tells_what_info_prints(capsys):
    from flambeau.utils import collect_env

    facts = collect_env.environment()
    assert collect_env.get_pretty_env_info() == collect_env.as_text(facts)
    info = collect_env.get_env_info()
    assert info.torch_version == torch.__version__ and "numpy==" in info.pip_packages
