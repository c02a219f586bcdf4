"""What the README and the example programs show, run."""

import importlib.util
import re
import runpy
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import reference_pages  # noqa: E402
from tests.children import Parent  # noqa: E402

GUIDE = sorted((ROOT / "docs/guide").glob("*.md"))


@pytest.fixture(scope="module")
def parent():
    with Parent("-W", "error") as parent:
        yield parent


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *GUIDE, ROOT / "docs/design/walkthrough.md"], ids=lambda page: page.stem
)
def test_blocks_run(page, parent, tmp_path):
    """The blocks of a page run in their order, in a process of their own, with warnings as errors."""
    program = [str(ROOT / "tools/code_blocks.py"), "--run", str(page)]
    if page.stem == "README":  # from the beginning, as a reader's own
        command = [sys.executable, "-W", "error", *program]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=110)
    else:
        done = parent.run(*program, cwd=tmp_path, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert page.stem != "README" or "aten.mul.Tensor" in done.stdout


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def _promises():
    """(promise, its cell of tests) of the rows of SECURITY.md."""
    rows = [
        line.strip("| \n").split(" | ")
        for line in (ROOT / "SECURITY.md").read_text().splitlines()
        if line.startswith("| ")
    ]
    return [(row[0], row[-1]) for row in rows if row[0] != "promise" and not row[0].startswith("---")]


# What isn't promised stands in bold and has no test.
@pytest.mark.parametrize(
    "promise, tests", [pytest.param(*row, id=row[0][:40]) for row in _promises() if "**" not in row[0]]
)
def test_promises_of_security_name_their_tests(promise, tests):
    """Names that follow a test are of the same file."""
    named = re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", tests)
    assert named and named[0][0], promise
    path = None
    for file, name in named:
        path = file or path
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.M), f"{path}::{name} is no test"


DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Links to files, from documents and in the text of others. Pages of modules are made when the site is built."""
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    gone = [n for n in links if n and "://" not in n and n != "reference/index.md" and not (page.parent / n).exists()]
    assert gone == []


def test_documents_that_are_named_exist():
    """``docs/...`` in documents, sources and tools."""
    text = (
        (ROOT, "*.md"),
        (ROOT / "docs", "**/*.md"),
        (ROOT / "src", "**/*.py"),
        (ROOT / "tools", "*"),
        (ROOT / "tests", "**/*.py"),
    )
    gone = {
        f"{file.relative_to(ROOT)}: {name}"
        for folder, pattern in text
        for file in folder.glob(pattern)
        if file.is_file()
        for name in re.findall(r"\bdocs/[\w./-]+\.md", file.read_text())
        if not (ROOT / name).exists()
    }
    assert gone == set()


def test_files_that_are_named_exist():
    """Modules and C files that documents, docstrings and comments name, as `loops/text.py`: those in folders of ours. Measurements name what was."""
    ours = [f.relative_to(ROOT).as_posix() for top in ("src", "csrc", "tests") for f in (ROOT / top).rglob("*.[pch]*")]
    # NumPy's own sources are named as well.
    folders = {part for f in ours for part in f.split("/")[1:-1]} - {"numpy"}
    documents = [page for page in DOCUMENTS if "measurements" not in page.parts]
    sources = [ROOT / f for f in ours if f.startswith(("src/flambeau/", "csrc/")) and f.endswith((".py", ".c", ".h"))]
    ends = {f[k:] for f in ours for k in range(len(f)) if k == 0 or f[k - 1] == "/"}
    gone = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in (*documents, *sources)
        for name in re.findall(r"(?<![\w/.])(\w+/[\w/]+\.[pc]y?)\b(?!\()", path.read_text())
        if name.split("/")[0] in folders and name not in ends and not Path(name).stem.isupper()
    ]
    assert not gone, gone


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"- (\S+\.md)", (ROOT / "mkdocs.yml").read_text()))
    written = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert listed - written == {"reference/index.md"} and written <= listed


def test_reference_has_each_module():
    pages = reference_pages.pages()
    assert len(pages) == len(reference_pages.PAGES) + 1
    shown = {
        "torch": "torch.add(input",
        "tensor": "torch.Tensor.add_(self",
        "nn": "torch.nn.Linear(in_features",
        "linalg": ">>> torch.linalg.inv(",
    }
    assert [title for title, text in shown.items() if text not in pages[f"reference/{title}.md"]] == []


EXAMPLES = {
    "numpy_function": r"first call .* s, result ndarray \(1024,\) float64\ngreatest difference from NumPy \d\.\de-1\d",
    "interpose": r"aten\.mul\.Tensor\(\[3\], \[3\]\)(.|\n)*a LoggingTensor saw: aten\.mul\.Tensor, aten\.sum\.default",
    "gpt": r"step  90  loss [12]\.\d+",
    "digits": r"step 400  loss 0\.(.|\n)*(9\d\.\d|100\.0)% of 500 new pictures",
    "vae": r"step 600  loss 4\d\.\d\n[ .:*#\n]+$",
    "lstm_tagger": r"  run     verb(.|\n)*(9[5-9]\.\d|100\.0)% of the words",
    "physics_informed": r"greatest distance from the sine 0\.00\d\d",
    "remote_layers": r"step 150  loss 0\.0[01]\d\d  layers on worker0, worker0, worker0",
    "pipeline": r"step 200  loss 0\.0[01]\d\d",
    "heat_equation": r"step 40  place 0\.7000 ",
    "kmeans": r"Lloyd: cost (0\.3\d+), as NumPy True\nby gradients: cost \1",
    "logging_mode": r"\[0: Linear\]\n  aten\.t(.|\n)*aten\.addmm\.default\((.|\n)*backward:(.|\n)*aten\.mm\.default\(",
    # 4 images, 16 channels of 32 x 32, sums of 27 products; the images need no gradient.
    "flop_counter": r"convolution\.default +3,538,944\n(.|\n)*convolution_backward\.default +3,538,944\n",
    "quantised": r"657,664 bytes before, 168,448 after; relative error 0\.00\d+\ncompiled and eager differ by (\d\.\de-0[6-9]|0\.0e\+00)",
    "backend": r"l_x_ \* \(?3\.0\)?(.|\n)*tensor\(\[4\., 7\.\]\)",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name, capsys):
    spec = importlib.util.find_spec(f"flambeau.examples.{name}")
    runpy.run_path(spec.origin, run_name="__main__")
    assert re.search(EXAMPLES[name], capsys.readouterr().out)


def test_examples_are_all_run():
    there = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"__init__"}
    assert there == {*EXAMPLES, "gpt2_transformers"}


def test_gpt2_of_transformers_learns():
    """In a process of its own: the import hook stays."""
    if importlib.util.find_spec("transformers") is None:
        pytest.skip("transformers isn't installed")
    command = [sys.executable, str(ROOT / "examples/gpt2_transformers.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    assert re.search(r"step 40  loss 0\.\d+\nafter 0 1 2 3: \[4, 5, 6, 7", done.stdout), done.stdout


def test_dependencies_are_in_the_table_of_licences():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    named = {re.match(r"[\w-]+", requirement).group().lower() for requirement in asked} - {"flambeau"}
    table = (ROOT / "docs/dependencies.md").read_text().lower()
    assert not [name for name in sorted(named) if not re.search(rf"\b{name}\b", table)]


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"\nversion: {project['version']}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {project['version']}\n" in (ROOT / "CHANGELOG.md").read_text()


def test_no_marks_of_conflicts_are_left():
    """Texts aren't compiled, so that nothing else notices what a merge left behind."""
    files = [p for d in ("docs", "tests", "tools", ".ci") for p in (ROOT / d).rglob("*") if p.suffix in (".md", ".txt")]
    left = [str(p) for p in [*files, *ROOT.glob("*.md")] if re.search(r"^(<{7}|>{7}) ", p.read_text(), re.M)]
    assert len(files) > 10 and not left


def test_public_callables_are_documented():
    """Each has a signature, but for those that documented.UNSIGNED gives a reason for, and a docstring."""
    import documented

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # modules under their old names
        have = {(module, name): row for module, names in documented.rows().items() for name, row in names.items()}
    assert len(have) > 2500 and {n for _, n in have} >= set(documented.UNSIGNED)
    assert [place for place, row in have.items() if not all(row)] == []
