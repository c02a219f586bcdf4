"""Index algebra: canonical forms, and agreement with integer arithmetic on random expressions."""

import random

from flambeau.inductor.index import Var, constant, floordiv, linear, mod, variable


def evaluate(ix, env):
    total = ix.const
    for atom, c in ix.terms:
        if isinstance(atom, Var):
            total += c * env[atom]
        else:
            inner = evaluate(atom[1], env)
            total += c * (inner // atom[2] if atom[0] == "div" else inner % atom[2])
    return total


def test_split_and_merge_cancel():
    i, j = Var(0, 6), Var(1, 4)
    flat = linear([variable(i), variable(j)], (4, 1))
    assert floordiv(flat, 4) == variable(i)
    assert mod(flat, 4) == variable(j)
    k = variable(Var(2, 24))
    assert floordiv(k, 4) * 4 + mod(k, 4) == k
    assert floordiv(k, 24) == constant(0) and mod(k, 24) == k


def test_random_expressions():
    rng = random.Random(0)
    for _ in range(300):
        variables = [Var(n, rng.choice([1, 2, 3, 4, 6, 8])) for n in range(3)]
        parts = [(variable(v), (lambda v: lambda env: env[v])(v)) for v in variables if v.extent > 1] or [
            (constant(1), lambda env: 1)
        ]
        for _ in range(5):
            (a, fa), (b, fb) = rng.choice(parts), rng.choice(parts)
            k = rng.choice([1, 2, 3, 4, 8])
            kind = rng.choice(["add", "mul", "div", "mod"])
            parts.append(
                {
                    "add": lambda: (a + b, lambda env, fa=fa, fb=fb: fa(env) + fb(env)),
                    "mul": lambda: (a * k, lambda env, fa=fa, k=k: fa(env) * k),
                    "div": lambda: (floordiv(a, k), lambda env, fa=fa, k=k: fa(env) // k),
                    "mod": lambda: (mod(a, k), lambda env, fa=fa, k=k: fa(env) % k),
                }[kind]()
            )
        env = {v: rng.randrange(v.extent) for v in variables}
        for ix, f in parts:
            assert evaluate(ix, env) == f(env)
            lo, hi = ix.bounds()
            assert lo <= f(env) <= hi
