"""Programs as users write them, plainly and compiled: files in ``user_programs`` hold functions ``prog(C, torch)`` between lines of dashes. What they
return, print and change is the same with every backend."""

import linecache
import re
from pathlib import Path

import pytest
from programs import agree

FOLDER = Path(__file__).parent / "user_programs"
PROGRAMS = {
    f"{path.stem}-{i}": source
    for path in sorted(FOLDER.glob("*.txt"))
    for i, source in enumerate(re.split(r"^---\n", path.read_text(), flags=re.M))
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.filterwarnings("ignore")
def test_agrees(name):
    source, filename = PROGRAMS[name], f"/user_programs/{name}.py"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope = {"__name__": "user_programs"}
    exec(compile(source, filename, "exec"), scope)
    agree(scope["prog"])
