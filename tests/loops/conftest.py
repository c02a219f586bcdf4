import json
import sys
from pathlib import Path

import pytest

from flambeau.loops import operator
from flambeau.testing.assembly import verified

sys.path.insert(0, str(Path(__file__).parent))  # classics.py


@pytest.fixture(autouse=True, scope="session")
def _verified():
    with verified():
        yield


@pytest.fixture
def texts(monkeypatch):
    """The kernels that are made."""
    made, known = [], operator.program

    def program(*args):
        made.append(json.loads(text := known(*args))["text"])
        return text

    monkeypatch.setattr(operator, "program", program)
    return made
