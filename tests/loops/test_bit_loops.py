"""Loops over the bits of a number are taken in closed form: values beside Python, and that no turn is run."""

import collections
import signal

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.machine import cache, llvm
from flambeau.loops import operator
from flambeau.testing.loops import check

NUMBERS = np.concatenate([np.arange(40), 2 ** np.arange(62), [2**62 - 1, 2**63 - 1, 0x5555_5555_5555, 3**39]])


def cleared(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x &= x - 1
            n += 3
        out[i] = n + x


def cleared_the_other_way(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            n = 1 + n
            x = (x - 1) & x
        out[i] = n


def shifted(a, out):
    for i in range(len(a)):
        x, n, m = int(a[i]), 0, 100
        while x:
            n += x & 1
            x >>= 1
            m = m + 2
        out[i] = n * 1000 + m


def divided(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x //= 8
            n += 1
        out[i] = n


def low_bits_behind_the_shift(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while x:
            x = x >> 1
            n = n + (1 & x) + x % 2 + 1
        out[i] = n


def at_least_one_turn(a, out):
    for i in range(len(a)):
        x, n = int(a[i]), 0
        while True:
            x >>= 2
            n += 1
            if not x:
                break
        out[i] = n


CLOSED = [cleared, cleared_the_other_way, shifted, divided, low_bits_behind_the_shift]


@pytest.mark.parametrize("f", CLOSED, ids=lambda f: f.__name__)
def test_closed_form(f, monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    check(f, NUMBERS, np.zeros(len(NUMBERS), np.int64))
    assert any("@llvm.ctpop" in text for text in texts)


def other_bits(a, out):
    for i in range(len(a)):
        x, n, last = int(a[i]), 0, 0
        while x:
            last = x
            n += x & 2
            x >>= 1
        out[i] = n + last


def numpys(a, out):
    for i in range(len(a)):
        x, n = a[i], 0
        while x:
            x = x & (x - 1)
            n += 1
        out[i] = n


def two_numbers(a, out):
    for i in range(len(a)):
        x, y = int(a[i]), int(a[-1 - i])
        while x:
            x >>= 1
            y >>= 1
        out[i] = y


@pytest.mark.parametrize("f", [at_least_one_turn, other_bits, numpys, two_numbers], ids=lambda f: f.__name__)
def test_loops_that_are_no_bit_loops(f):
    check(f, NUMBERS, np.zeros(len(NUMBERS), np.int64))


def weights(a):
    c = 0
    for v in a:
        x = int(v)
        while x:
            x &= x - 1
            c += 1
    return c


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="interrupts a loop that never ends")
@pytest.mark.parametrize("at", [0, 5, 999])
def test_a_negative_number_is_left_to_python(at, monkeypatch):
    """Which goes on for ever: the native loop has run to its end, and then tells that it had no place for the number."""
    a = np.arange(1000)
    check(weights, a)
    a[at] = -1

    def stop(number, frame):
        if frame.f_code.co_name == "weights" and not all(site.native for site in operator.SITES.values()):
            raise TimeoutError  # Python is in the loop

    monkeypatch.setattr(operator, "SITES", collections.defaultdict(operator.Site))
    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        with pytest.raises(TimeoutError):
            torch.compile(weights)(a)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert [site.native for site in operator.SITES.values()] == [False]


def test_numpys_numbers_may_be_negative():
    """Python's integers would go on for ever there; NumPy's end."""
    check(numpys, np.array([-1, -(2**62), 5]), np.zeros(3, np.int64))


def drawdown(p):
    peak, worst = p[0], 0.0
    for v in p:
        peak = max(peak, v)
        worst = max(worst, (peak - v) / peak)
    return worst


def test_short_loops_that_break_unrolled_are_native():
    """Without which a first call with few elements would leave the function to Python for good."""
    torch._dynamo.reset()
    compiled = torch.compile(drawdown)
    for n in (20, 2000, 3):
        p = np.random.default_rng(n).random(n) + 1
        assert compiled(p) == drawdown(p)
    assert "native" in str(torch._dynamo.explain(drawdown)(np.ones(4)))


def odd_numbers(n, h):
    out = 0.0
    for i in range(1, n):
        for k in range(1, 2 ** (i - 1) + 1):
            out += np.exp(-(2 * k - 1) * h)
    return out


def test_small_multiples_of_a_counter_are_not_checked(monkeypatch):
    texts = []
    addresses = cache.addresses
    monkeypatch.setattr(
        cache, "addresses", lambda kernels, **k: texts.extend(kernels.values()) or addresses(kernels, **k)
    )
    check(lambda a: odd_numbers(len(a), a[0]), np.full(9, 0.01))
    (kernel,) = (text.split("define internal")[0] for text in texts if "; a loop" in text)
    assert "smul.with.overflow" not in kernel


def powers(a, k):
    out, total = np.zeros(len(a)), 0
    for i in range(len(a)):
        n = int(a[i])
        total += 2**n - 4 ** (n // 3) + 3 ** (n // 2) + 4**k + 16 ** (n // 5)
        out[i] = 2**n + 8 ** (n // 4) + 7**k
    return out, total


@pytest.mark.parametrize("most", [40, 62, 70])
@pytest.mark.parametrize("k", [0, 5, 31, 40])
def test_powers_of_powers_of_two_are_shifts(most, k):
    """Of numbers of more than 64 bits too, which are Python's."""
    check(powers, np.arange(most), k, native=None)


def sum_of_exponentials(a):
    total, weighted = 0.0, 0.0
    for i in range(len(a)):
        w = np.exp(-a[i])
        total += w
        weighted += w * i
    return total, weighted


ORDERED_SUM = """define double @sum(ptr %p, i64 %n) {
entry:
  br label %turn
turn:
  %i = phi i64 [0, %entry], [%j, %turn]
  %s = phi double [0.0, %entry], [%r, %turn]
  %q = getelementptr double, ptr %p, i64 %i
  %x = load double, ptr %q
  %y = fdiv double 1.0, %x
  %z = fdiv double %y, %x
  %r = fadd double %s, %z
  %j = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %turn, label %end
end:
  ret double %r
}"""


def test_what_ordered_sums_add_up_is_vectorised():
    """The sums have the bits of Python's order; LLVM, as it is set up, divides whole vectors."""
    a = np.random.default_rng(3).random(1001)
    check(sum_of_exponentials, a)
    binding, machine = llvm._binding(), llvm._machine()
    module = binding.parse_assembly(ORDERED_SUM)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    options = binding.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = True
    passes = binding.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    assert "x double> " in str(module) and "llvm.vector.reduce.fadd" in str(module)
