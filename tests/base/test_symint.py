"""Symbolic numbers: arithmetic gives what Python gives for the example values, and what was asked is remembered."""

import operator

import pytest

from flambeau.base.shape_checks import check
from flambeau.base.shape_env import ConstraintViolationError, GuardOnDataDependentSymNode, ShapeEnv
from flambeau.base.symbolic_queries import guard_or_false, guard_or_true, guard_size_oblivious, statically_known_true
from flambeau.base.symint import SymInt, sym_ite, sym_max, sym_min, sym_not, sym_sum

BINARY = ["add", "sub", "mul", "floordiv", "mod", "truediv", "lt", "le", "gt", "ge", "eq", "ne"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("other", [3, 2.5, "size", "int", "float"])
def test_operators_agree_with_python(name, other):
    env = ShapeEnv()
    values = {"size": env.create_size(7), "int": env.create_int(-4), "float": env.create_float(1.5)}
    hints = {"size": 7, "int": -4, "float": 1.5}
    a, op = env.create_size(12), getattr(operator, name)
    for x, y, want in (
        (a, values.get(other, other), op(12, hints.get(other, other))),
        (values.get(other, other), a, op(hints.get(other, other), 12)),
    ):
        got = op(x, y)
        hint = got if isinstance(got, (int, float)) else got.hint
        assert hint == want and type(hint) is type(want)


def test_sizes_are_ducks_and_zero_and_one_are_constants():
    env = ShapeEnv()
    a, b = env.create_size(5), env.create_size(5)
    assert a.expr is b.expr and statically_known_true(a == b) and not env.guards
    assert env.create_size(1) == 1 and type(env.create_size(0)) is int
    assert type(env.create_size(1)) is int and (a - b) == 0 and type(a - b) is int


def test_a_branch_is_a_guard_once_and_narrows_the_range():
    env = ShapeEnv()
    a = env.create_size(20)
    assert a > 10 and a > 10 and a > 5 and not a < 8
    assert [str(g.relation) for g in env.guards] == ["s0 >= 11"]
    assert "test_symint.py" in env.guards[0].line.file


def test_equalities_replace_symbols():
    env = ShapeEnv()
    a, b, c = env.create_size(6, duck=False), env.create_size(6, duck=False), env.create_size(12)
    assert a == b and a + b == c
    assert str(b) == "s0" and str(c) == "2*s0" and len(env.guards) == 2
    assert int(a) == 6 and str(c) == "12"


def test_divisibility_is_remembered():
    env = ShapeEnv()
    a = env.create_size(24)
    assert a % 8 == 0 and a % 4 == 0 and (a * 3) % 8 == 0 and (a // 8) * 8 == a
    assert len(env.guards) == 1


def test_helpers_make_no_guards():
    env = ShapeEnv()
    a, b = env.create_size(5), env.create_size(7)
    for got, want in (
        (sym_max(a, b), 7),
        (sym_min(a, 6), 5),
        (sym_ite(a < b, a, b), 5),
        (sym_not(a < b), False),
        (sym_sum([a, b, 1]), 13),
    ):
        assert got.hint == want
    assert not env.guards and not statically_known_true(a < b)


def test_unbacked():
    env = ShapeEnv()
    u = env.create_unbacked_symint(size=True)
    assert u >= 0 and not guard_or_false(u == 7) and guard_or_true(u == 7) and not guard_size_oblivious(u == 1)
    with pytest.raises(GuardOnDataDependentSymNode, match=r"u0 == 3(.|\n)*torch._check\(u0 == 3\)"):
        bool(u == 3)
    with pytest.raises(GuardOnDataDependentSymNode):
        int(u)
    env.expect((u >= 3).expr, "too few")
    assert u > 2 and not u < 2 and env.asserts[0].message == "too few" and not env.guards
    with pytest.raises(RuntimeError, match="never"):
        check(u < 2, "never")


def test_strides_follow_from_sizes():
    env = ShapeEnv()
    sizes, strides = env.create_shape((4, 6, 8), (48, 8, 1), lambda d: {} if d != 1 else None)
    assert [str(n) for n in sizes] == ["s0", "6", "s1"] and [str(n) for n in strides] == ["6*s1", "s1", "1"]


def test_constraints():
    env = ShapeEnv()
    a = env.create_size(8, "x.size(0)", duck=False, dynamic="strict")
    assert a > 3
    env.check_constraints()
    int(a)
    with pytest.raises(ConstraintViolationError, match=r"x.size\(0\) as dynamic but.*constant \(8\)(.|\n)*test_symint"):
        env.check_constraints()
    b = env.create_size(9, "y.size(0)", duck=False, dynamic="strict", lo=2, hi=100)
    assert b < 50
    with pytest.raises(ConstraintViolationError, match="2 <= s1 <= 100"):
        env.check_constraints()


def test_a_symbol_has_no_hash_and_no_pickle_of_its_own():
    a = ShapeEnv().create_size(5)
    assert isinstance(a, SymInt) and not isinstance(a, int)
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)
