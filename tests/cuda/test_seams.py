"""What docs/design/devices.md says under "To add a device" is true of the devices that there are: how many places, and that operators know none."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "flambeau"
DOCUMENT = (ROOT / "docs" / "design" / "devices.md").read_text()


def entries():
    table = re.search(
        r"typedef struct \{\n    const char \*name;(.*?)\} FlbDriver;",
        (ROOT / "csrc/device/driver.h").read_text(),
        re.DOTALL,
    )
    return re.findall(r"\(\*(\w+)\)", table[1])


def test_each_driver_has_every_entry():
    names = entries()
    assert f"a table of {len(names)} functions" in DOCUMENT
    for driver in ("simulated.c", "nvidia.c"):
        text = (ROOT / "csrc" / "device" / driver).read_text()
        given = re.findall(r"\.(\w+) = \w+[,}]", text[text.index("static const FlbDriver driver") :])
        assert sorted(given) == sorted(names), driver


def test_the_places_of_the_list_exist():
    section = DOCUMENT[DOCUMENT.index("## To add a device") :]
    places = re.findall(r"`((?:csrc|base|inductor)/[\w/]+\.(?:py|c|h))`", section)
    assert len(set(places)) >= 5
    for place in places:
        assert (ROOT / place if place.startswith("csrc/") else SOURCE / place).exists(), place


def test_how_many_modules_know_the_name():
    """Outside of torch.cuda's own, of names and answers (compat/), and of what only other devices' names stand in."""
    naming = re.compile(r"[\"']cuda[\"':.]")
    found = [p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py") if naming.search(p.read_text())]
    own = [p for p in found if not p.startswith(("compat/", "testing/"))]
    assert not [
        p
        for p in own
        if p.startswith(("ops/", "inductor/codegen/", "inductor/lowering/", "inductor/scheduling/", "nn/"))
    ], own
    (stated,) = re.findall(r"(\d+) modules outside of `compat/` have it", DOCUMENT)
    assert len(own) == int(stated), sorted(own)
