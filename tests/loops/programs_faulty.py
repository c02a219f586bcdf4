"""Programs that leave loops early, raise, or overflow."""

import math

import numpy as np

G = np.random.default_rng


def ri(*s, lo=0, hi=100, dt=np.int64):
    return G(1).integers(lo, hi, s).astype(dt)


def first_over(a, t):
    s = 0.0
    for i in range(len(a)):
        s += a[i]
        if s > t:
            return (i, s)
    return (-1, s)


def oob(a):
    n = 0
    for i in range(len(a) + 1):
        n += 1
        a[i] = n
    return n


def oob_neg(a, k):
    for i in range(100):
        a[-i] += k
    return a


def zdiv(a):
    out = np.zeros(len(a))
    for i in range(len(a)):
        out[i] = 100 // (int(a[i]) - 5)
        a[i] = -1
    return out


def zdiv_py(n):
    s = 0.0
    for i in range(n):
        s += 1.0 / (i - 70)
    return s


def zmod(a):
    s = 0
    for i in range(len(a)):
        s += 1000 % int(a[i])
        a[i] += 1
    return s


def overflow_exp(a):
    s = 0.0
    for i in range(len(a)):
        a[i] *= 2
        s += math.exp(a[i])
    return s


def domain(a):
    s = 0.0
    for i in range(len(a)):
        s += math.sqrt(a[i])
        a[i] = s
    return s


def bigint(n):
    f = 1
    for i in range(1, n):
        f *= i
    return f


def custom_raise(a):
    for i in range(len(a)):
        a[i] += 1
        if a[i] > 50:
            raise ValueError(f"at {i}")
    return a


def custom_raise2(a):
    for i in range(len(a)):
        if a[i] < 0:
            raise ValueError("negative", i)
        a[i] = math.sqrt(a[i])
    return a


def parallel_raise(a, out):
    for i in range(len(a)):
        out[i] = a[i] * 2
        if a[i] == 3:
            raise RuntimeError("three")


def caught(a):
    n = 0
    for i in range(200):
        try:
            n += a[i]
        except IndexError:
            n += 1000
            break
    return n


def caught_out(a):
    try:
        for i in range(200):
            a[i] += 1
    except IndexError as e:
        return (str(e), a)
    return a


def assertion(a):
    for i in range(len(a)):
        assert a[i] < 90, i
        a[i] = 0
    return a


def shape_error(a, b):
    for _i in range(10):
        a = a + b
    return a


def np_int_wrap(a):
    s = np.int32(0)
    for i in range(len(a)):
        s = s + a[i]
    return s


def np_int8_prod(a):
    p = a[0]
    for i in range(1, len(a)):
        p = p * a[i]
    return p


def u64(a):
    h = np.uint64(1469598103934665603)
    for i in range(len(a)):
        h = (h ^ a[i]) * np.uint64(1099511628211)
    return h


def u64_item(a):
    h = 14695981039346656037
    for c in a.tolist():
        h = (h ^ c) * 1099511628211 & 18446744073709551615
    return h


def u64_list(a):
    return ([x + 1 for x in a.tolist()], a[0].item())


def c_list(a):
    return ([x * 2 for x in a.tolist()], a[0].item(), a.sum().item())


PROGRAMS = [
    (first_over, lambda: (G(1).random(100), 20.0)),
    (first_over, lambda: (G(1).random(100), 2000.0)),
    (oob, lambda: (np.zeros(50),)),
    (oob_neg, lambda: (np.zeros(60), 2)),
    (zdiv, lambda: (np.arange(100),)),
    (zdiv_py, lambda: (100,)),
    (zmod, lambda: (np.arange(60, 0 - 1, -1),)),
    (overflow_exp, lambda: (np.linspace(1, 400, 60),)),
    (domain, lambda: (np.linspace(5, -1, 60),)),
    (bigint, lambda: (60,)),
    (custom_raise, lambda: (np.arange(100),)),
    (custom_raise2, lambda: (np.linspace(5, -1, 60),)),
    (parallel_raise, lambda: (ri(200), np.zeros(200))),
    (caught, lambda: (ri(100),)),
    (caught_out, lambda: (ri(100),)),
    (assertion, lambda: (ri(200),)),
    (shape_error, lambda: (np.ones(3), np.ones(4))),
    (np_int_wrap, lambda: (ri(100, hi=2**31 - 1, dt=np.int32),)),
    (np_int8_prod, lambda: (ri(60, dt=np.int8),)),
    (u64, lambda: (ri(100, dt=np.uint64),)),
    (u64_item, lambda: (ri(100, dt=np.uint64),)),
    (u64_list, lambda: (ri(5, dt=np.uint64),)),
    (c_list, lambda: (G(1).random(5) + 1j,)),
]
