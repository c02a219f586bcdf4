"""A test of a module is found by its name: `test_X.py` for `X.py`, or a row of README.md (of inductor/README.md for the compiler)."""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import flambeau

HERE = Path(__file__).parent
SOURCE = Path(flambeau.__file__).parent
# inductor/test_map.py has these.
ELSEWHERE = ("inductor", "loops")
MODULES = sorted(
    name
    for file in SOURCE.rglob("*.py")
    if (name := file.relative_to(SOURCE).with_suffix("").as_posix()).split("/")[0] not in ELSEWHERE
    and file.stem != "__init__"
)
ROWS = re.findall(r"^\| (`.*`) \| (`.*\.py`) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
LISTED = [name for modules, _ in ROWS for name in re.findall(r"`(.*?)`", modules)]
NAMED = {file.stem.removeprefix("test_") for file in HERE.rglob("test_*.py")}


@pytest.mark.parametrize("package", sorted({name.split("/")[0] for name in MODULES}))
def test_every_module_has_tests(package):
    of = [name for name in MODULES if name.split("/")[0] == package]
    named = [name for name in of if name.rpartition("/")[2].lstrip("_") in NAMED]
    missing = [name for name in of if name not in named and not any(fnmatchcase(name, row) for row in LISTED)]
    assert not missing


def test_every_row_is_of_modules_and_tests_that_exist():
    assert ROWS
    for name in LISTED:
        assert any(fnmatchcase(module, name) for module in MODULES), name
    for _, tests in ROWS:
        for test in re.findall(r"`(.*?)`", tests):
            assert (HERE / test).is_file(), test


@pytest.mark.parametrize("folder", ["tools", "benchmarks"])
def test_every_script_stands_in_its_folders_readme(folder):
    folder = HERE.parent / folder
    listed = re.findall(r"`([\w*/]+(?:\.\w+)?)`", (folder / "README.md").read_text())
    scripts = [file.name for file in folder.iterdir() if file.suffix in (".py", ".sh")]
    assert not [name for name in scripts if not any(fnmatchcase(name, row) for row in listed)]
    assert not [row for row in listed if not list(folder.glob(row)) and not (HERE.parent / row).exists()]
