"""A test of a module is found by its name: `test_X.py` for `X.py`, or a row of README.md."""

import re
from pathlib import Path

import pytest

import flambeau

HERE = Path(__file__).parent
SOURCE = Path(flambeau.__file__).parent
MODULES = sorted(
    file.relative_to(SOURCE).with_suffix("").as_posix()
    for package in ("inductor", "loops")
    for file in (SOURCE / package).rglob("*.py")
    if file.stem != "__init__"
)
ROWS = re.findall(r"^\| (`.*`) \| (`.*`) \|$", (HERE / "README.md").read_text(), re.MULTILINE)
LISTED = [name for modules, _ in ROWS for name in re.findall(r"`(.*?)`", modules)]
NAMED = {
    file.stem.removeprefix("test_") for folder in (HERE, HERE.parent / "loops") for file in folder.rglob("test_*.py")
}


def matches(name: str, module: str) -> bool:
    return Path(module).match(f"{name}") or module.removeprefix("inductor/") == name


@pytest.mark.parametrize("module", MODULES)
def test_every_module_has_tests(module):
    assert module.rpartition("/")[2] in NAMED or any(matches(name, module) for name in LISTED)


def test_every_row_is_of_modules_and_tests_that_exist():
    assert ROWS
    for name in LISTED:
        assert any(matches(name, module) for module in MODULES), name
    for _, tests in ROWS:
        for test in re.findall(r"`(.*?)`", tests):
            assert (HERE / test).is_file(), test
