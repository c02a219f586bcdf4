"""docs/design/adding.md: each place exists and has its example, and lists that say "only these files" are complete."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECTIONS = dict(
    part.split("\n", 1) for part in (ROOT / "docs/design/adding.md").read_text().split("\n## ")[1:]
)  # title -> text
PLACES = [
    pytest.param(place, example, id=f"{title}: {place}")
    for title, text in SECTIONS.items()
    for place, example in re.findall(r"^\| `([\w/.]+)` \|.*\| `(.*)` \|$", text, re.MULTILINE)
]
ONLY = r"Only these files:\s+`(.*)` in ((?:`[\w/]+`(?:, )?)+)"
MOST = {"A lowering": 2, "A native kernel": 5, "A scalar operation": 3, "A backend": 1}
CAPTURE = (ROOT / "docs/design/capture.md").read_text()
# The numbered places of capture.md, of which tests/dynamo/test_places.py shows that they are enough.
MOST_OF_CAPTURE = {"a Variable": 3, "an instruction": 3, "a version of CPython": 3}


@pytest.mark.parametrize("place, example", PLACES)
def test_places_have_their_examples(place, example):
    assert example in (ROOT / place).read_text()


@pytest.mark.parametrize("title", [title for title, text in SECTIONS.items() if "Only these files" in text])
def test_lists_are_complete(title):
    pattern, folders = re.search(ONLY, SECTIONS[title]).groups()
    files = [
        file
        for folder in re.findall(r"`(.*?)`", folders)
        for file in (ROOT / folder).rglob("*")
        if file.suffix in (".py", ".c", ".h", ".def")
    ]
    found = {file.relative_to(ROOT).as_posix() for file in files if re.search(pattern, file.read_text())}
    listed = set(re.findall(r"^\| `([\w/.]+)` \|", SECTIONS[title], re.MULTILINE))
    assert found and found <= listed, found - listed


@pytest.mark.parametrize("title", MOST)
def test_lists_are_short(title):
    assert len(re.findall(r"^\| `", SECTIONS[title], re.MULTILINE)) <= MOST[title]


@pytest.mark.parametrize("title", MOST_OF_CAPTURE)
def test_lists_of_capture_are_short_and_their_files_exist(title):
    places = re.findall(r"^\d+\. .*$", CAPTURE.split(f"### To add {title}\n")[1].split("\n### ")[0], re.MULTILINE)
    assert 0 < len(places) <= MOST_OF_CAPTURE[title]
    for place in places:
        file = re.search(r"`([\w/]+(?:\.\w+)?)`", place)[1].replace("3xx", "3*")
        assert list(ROOT.glob(file)) or list((ROOT / "src/flambeau/dynamo").glob(file)), place
