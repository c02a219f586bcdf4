"""Calls that the interpreter refuses, a line each in ``wrong_calls.txt``: captured code says the same, and capture does not fail over them."""

from pathlib import Path

import pytest
from iterator_programs import agree

CALLS = (Path(__file__).parent / "wrong_calls.txt").read_text().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_says_the_same(call):
    agree(
        f"try: r = {call}\nexcept Exception as e: r = type(e).__name__, str(e)\nreturn x + 1, r",
        f"/wrong_calls/{CALLS.index(call)}.py",
    )
