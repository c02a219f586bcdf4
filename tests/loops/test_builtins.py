"""Functions and methods of Python's, and some of NumPy's, that are code of a native loop's own: values, types and errors."""

import cmath
import linecache
import math

import numpy as np
import pytest

from flambeau.testing.loops import check

X = np.random.default_rng(0).random(60)
GROUPS = {
    "integers": ["math.gcd(i, 12)", "math.lcm(i, 8)", "math.isqrt(i * i + i)", "math.comb(i % 20, 3)", "math.perm(i % 9, 3)",
                 "math.factorial(i % 15)", "i.bit_length()", "(i - 30).bit_count()"],
    "division": ["divmod(i, 7)[1]", "divmod(-i, 7)[0]", "divmod(x[i], 0.3)[0]", "pow(i, 3)", "pow(3, i, 17)", "pow(-i, 3, -5)", "pow(x[i], 2)", "+x[i]"],
    "floats": ["math.pow(x[i], 2.5)", "math.fmod(-x[i] * 7, 2.0)", "math.radians(x[i])", "math.degrees(i)", "math.atanh(x[i] * 0.5)",
               "math.acosh(x[i] + 1)", "math.isclose(x[i], 0.5, rel_tol=0.1)", "math.isclose(i, 3.0, abs_tol=1.0)", "float(i / 4).is_integer()"],
    "complex": ["abs(cmath.exp(1j * x[i]))", "cmath.sqrt(-x[i]).imag", "cmath.log(1j * x[i] + 1).real", "cmath.phase(x[i] - 1j)",
                "cmath.rect(x[i], 2.0).real", "cmath.polar(x[i] + 2j)[1]", "cmath.polar(-x[i])[0]", "cmath.cosh(1j * x[i]).real"],
    "items": ["max((x[i], 0.5))", "min([x[i], 0.5, 0.2])", "sum((i, 2, True))", "all((x[i] > 0.1, i > 3))", "any([x[i] > 0.9, i == 3])",
              "[1, 2, 3][i % 3]", "(1.0, 2.0)[i % 2 - 2]", "((0, 1), (2, 3), (4, 5))[i % 3][1]", "i in {1, 5, 7}", "math.prod(x[:3])",
              "math.prod(k + 1 for k in range(i % 6))"],
    "numbers": ["round(x[i], 2)", "round(x[i] * 1000, -1)", "x[i].item()", "x[i].is_integer()", "np.isclose(x[i], 0.5, atol=0.1)"],
    "arrays": ["(x[:i] > 0.5).nonzero()[0].size", "np.where(x[:i] > 0.5)[0].sum()", "np.isclose(x[: i + 1], 0.5, 0.1).sum()",
               "np.cross(np.array([x[i], 1.0, 2.0]), np.array([1.0, 0.0, x[i]]))[1]", "np.cross(x[:3], x[i : i + 3])[2]",
               "np.polyval(x[:4], x[i])", "np.polyval([1, 2, 3], i)", "np.polyval(x[:3], 1j * x[i]).imag",
               "np.concatenate(([np.inf], x[:i]))[i]", "np.hstack((x[:i], [1.0, 2.0]))[-2]"],
}  # fmt: skip
ERRORS = ["math.factorial(3 - i)", "math.isqrt(5 - i)", "math.comb(4, 3 - i)", "divmod(3, 5 - i)[0]", "pow(3, 2, 5 - i)", "math.fmod(1.0, 5.0 - i)",
          "math.pow(5.0 - i, 0.5)", "cmath.log(5 - i).real", "cmath.exp(i * 100).real", "(1, 2, 3)[i]", "math.factorial(i)",
          "math.atanh(i)", "math.isclose(i, 2.0, rel_tol=3.0 - i)", "pow(i + 2, 2 * i, 10**15)", "np.cross(x[:3], x[: i // 20 + 3])[0]"]  # fmt: skip


def _loop(expressions: list[str]):
    """A function with a loop that computes the expressions."""
    lines = [f"        out[i, {k}] = {text}" for k, text in enumerate(expressions)]
    text = "\n".join(
        [
            "def loop(x):",
            f"    out = np.zeros((len(x) - 3, {len(lines)}))",
            "    for i in range(len(out)):",
            *lines,
            "    return out",
        ]
    )
    name = f"<loop {expressions[0]}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope = {"np": np, "math": math, "cmath": cmath}
    exec(compile(text, name, "exec"), scope)
    return scope["loop"]


@pytest.mark.parametrize("group", GROUPS)
def test_agrees(group):
    check(_loop(GROUPS[group]), X)


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_pythons(expression):
    check(_loop([expression]), X)


def backwards(table, steps):
    """A condition whose first half leads into the loop by a jump."""
    i, j = len(table) - 1, len(table[0]) - 1
    while i > 0 or j > 0:
        steps[i, j] += 1
        if i > 0 and (j == 0 or table[i - 1, j] < table[i, j - 1]):
            i -= 1
        else:
            j -= 1


def test_a_while_loop_that_a_jump_leads_into_is_native():
    check(backwards, np.random.default_rng(1).random((6, 7)), np.zeros((6, 7)))
