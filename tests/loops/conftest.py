import sys
from pathlib import Path

import pytest

from flambeau.testing.assembly import verified

sys.path.insert(0, str(Path(__file__).parent))  # classics.py


@pytest.fixture(autouse=True, scope="session")
def _verified():
    with verified():
        yield
