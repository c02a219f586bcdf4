"""The module that a public class says it is from is PyTorch's, and has the class: pickles, reprs and documents agree. ``oracle.py`` wrote the list."""

import importlib
import inspect
import json
from pathlib import Path

import pytest

HOMES = {k: v.split() for k, v in json.loads(Path(__file__).with_name("homes_2_13.json").read_text()).items()}
# Public name -> why its class is from another module here.
OTHERS = {
    "Future": "PyTorch's is one of TorchScript's; ours is that of torch.futures",
    "ScriptFunction": "PyTorch's path of it can't be imported",
    "PyTreeSpec": "optree's own, where PyTorch has one of its own",
    "Container": "another name of Module here",
    "tqdm": "tqdm's own",
    "FlexKernelOptions": "a dict here",
}


def _class(where: str, name: str):
    try:
        module = importlib.import_module(f"flambeau.{where}" if where != "torch" else "flambeau")
        value = getattr(module, name)
    except (ImportError, AttributeError):
        return None  # test_names.py counts what is missing
    return value if inspect.isclass(value) else None


@pytest.mark.parametrize("home", HOMES)
def test_classes_of_a_module(home):
    wrong = []
    for place in HOMES[home]:
        where, name = place.split(":")
        cls = _class(where, name)
        if cls is None or name in OTHERS:
            continue
        if cls.__module__.removeprefix("torch").removeprefix("flambeau").removeprefix(".") != home:
            wrong.append(f"{place} is from {cls.__module__}")
    assert not wrong, f"flambeau.{home}: {wrong}"


@pytest.mark.parametrize("home", HOMES)
def test_classes_are_where_they_say(home):
    """A pickle finds the class again: only of classes that a statement of this package defines."""
    for place in HOMES[home]:
        cls = _class(*place.split(":"))
        if cls is None or cls.__module__.partition(".")[0] != "flambeau" or place.startswith("return_types"):
            continue
        found = importlib.import_module(cls.__module__)
        for part in cls.__qualname__.split("."):
            found = getattr(found, part, None)
        assert found is cls, f"{place}: {cls.__module__}.{cls.__qualname__} is {found}"


def test_rows_of_the_tables_lead_somewhere():
    from flambeau.compat.namespaces import SECTIONS, make, parse

    broken = []
    for section in list(SECTIONS):
        for name in [n for n in parse(section) if n not in ("", "*")]:
            try:
                make(section, name)
            except (AttributeError, ImportError) as error:
                broken.append(f"{section}.{name}: {error}")
    assert not broken
