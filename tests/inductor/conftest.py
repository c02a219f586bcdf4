import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory):
    os.environ["FLAMBEAU_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
