"""Special functions as expansions: Bessel's I, the digamma function and its derivative, the scaled complement of the error function, the normal
distribution's quantiles and logarithm, neighbours of numbers, common divisors. Included by :mod:`.scalar_ops`; conventions are
:mod:`.vector_math`'s.

The polynomials are Chebyshev interpolants computed with 90 digits, on the intervals of Cephes (Moshier, Methods and Programs for Mathematical
Functions); quantiles are Cephes' ndtri. float32 is computed through float64.
"""

from __future__ import annotations

import math

from .builder import is_unsigned
from .vector_math import exp, expansion, log, log1p
from .vector_more import _fabs, _signed, _sqrt, _wide

__all__: list[str] = []

# exp(-x) I0(x) on [0, 8], of t = x / 4 - 1, by Chebyshev polynomials, the highest first
_I0_NEAR = (
    -4.4153416464793395e-18,
    3.3307945188222384e-17,
    -2.431279846547955e-16,
    1.715391285555133e-15,
    -1.1685332877993451e-14,
    7.676185498604936e-14,
    -4.856446783111929e-13,
    2.95505266312964e-12,
    -1.726826291441556e-11,
    9.675809035373237e-11,
    -5.189795601635263e-10,
    2.6598237246823866e-09,
    -1.300025009986248e-08,
    6.046995022541919e-08,
    -2.670793853940612e-07,
    1.1173875391201037e-06,
    -4.4167383584587505e-06,
    1.6448448070728896e-05,
    -5.754195010082104e-05,
    0.00018850288509584165,
    -0.0005763755745385824,
    0.0016394756169413357,
    -0.004324309995050576,
    0.010546460394594998,
    -0.02373741480589947,
    0.04930528423967071,
    -0.09490109704804764,
    0.17162090152220877,
    -0.3046826723431984,
    0.33839763720473803,
)
# sqrt(x) exp(-x) I0(x) on [8, inf), of t = 16 / x - 1
_I0_FAR = (
    -7.233180487874754e-18,
    -4.830504485944182e-18,
    4.46562142029676e-17,
    3.461222867697461e-17,
    -2.8276239805165836e-16,
    -3.425485619677219e-16,
    1.7725601330565263e-15,
    3.8116806693526224e-15,
    -9.554846698828307e-15,
    -4.150569347287222e-14,
    1.54008621752141e-14,
    3.8527783827421426e-13,
    7.180124451383666e-13,
    -1.7941785315068062e-12,
    -1.3215811840447713e-11,
    -3.1499165279632416e-11,
    1.1889147107846439e-11,
    4.94060238822497e-10,
    3.3962320257083865e-09,
    2.266668990498178e-08,
    2.0489185894690638e-07,
    2.8913705208347567e-06,
    6.889758346916825e-05,
    0.0033691164782556943,
    0.4022452055070544,
)
# exp(-x) I1(x) / x on [0, 8]
_I1_NEAR = (
    2.7779141127610464e-18,
    -2.111421214358166e-17,
    1.5536319577362005e-16,
    -1.1055969477353862e-15,
    7.600684294735408e-15,
    -5.042185504727912e-14,
    3.223793365945575e-13,
    -1.9839743977649436e-12,
    1.1736186298890901e-11,
    -6.663489723502027e-11,
    3.625590281552117e-10,
    -1.8872497517228294e-09,
    9.381537386495773e-09,
    -4.445059128796328e-08,
    2.0032947535521353e-07,
    -8.568720264695455e-07,
    3.4702513081376785e-06,
    -1.3273163656039436e-05,
    4.781565107550054e-05,
    -0.00016176081582589674,
    0.0005122859561685758,
    -0.0015135724506312532,
    0.004156422944312888,
    -0.010564084894626197,
    0.024726449030626516,
    -0.05294598120809499,
    0.1026436586898471,
    -0.17641651835783406,
    0.12629359322181682,
)
# sqrt(x) exp(-x) I1(x) on [8, inf)
_I1_FAR = (
    7.517296310842105e-18,
    4.414348323071708e-18,
    -4.6503053684893586e-17,
    -3.209525921993424e-17,
    2.96262899764595e-16,
    3.3082023109209285e-16,
    -1.8803547755107825e-15,
    -3.8144030724370075e-15,
    1.0420276984128802e-14,
    4.272440016711951e-14,
    -2.1015418427726643e-14,
    -4.0835511110921974e-13,
    -7.198551776245908e-13,
    2.0356285441470896e-12,
    1.4125807436613782e-11,
    3.2526035830154884e-11,
    -1.8974958123505413e-11,
    -5.589743462196584e-10,
    -3.835380385964237e-09,
    -2.6314688468895196e-08,
    -2.512236237870209e-07,
    -3.882564808877691e-06,
    -0.00011058893876262371,
    -0.009761097491361469,
    0.38928811750914005,
)
# (1 + 2 x) erfcx(x) on [0, inf), of t = (x - 3.75) / (x + 3.75) (Shepherd and Laframboise 1981)
_ERFCX = (
    5.068148904796111e-17,
    7.418235256624044e-17,
    -1.2507950530688648e-15,
    -1.864562880419313e-15,
    3.3478119482868056e-14,
    3.25254814814874e-14,
    -9.65469674843344e-13,
    1.9455868545777347e-13,
    2.86879501093067e-11,
    -6.318088340886684e-11,
    -7.754400208831351e-10,
    4.521959811218287e-09,
    1.076499946567091e-08,
    -2.1886401049234397e-07,
    7.74038306619849e-07,
    4.13902798607301e-06,
    -6.916973302501207e-05,
    0.0004907758365258086,
    -0.002413163540417608,
    0.009074997670705265,
    -0.026658668435305753,
    0.05920993999819189,
    -0.08424913336651792,
    -0.004590054580646478,
    1.1775789345674017,
)


def _series(b, t, coefficients, x):
    """A sum of Chebyshev polynomials (Clenshaw), the highest first."""
    twice = b.add(t, x, x)
    one = two = b.const(t, 0.0)
    for c in coefficients[:-1]:
        one, two = b.add(t, b.sub(t, b.mul(t, twice, one), two), b.const(t, c)), one
    return b.add(t, b.sub(t, b.mul(t, x, one), two), b.const(t, coefficients[-1]))


def _scaled_bessel(b, t, a, near, far, odd):
    """exp(-a) I(a) of a number that isn't negative."""
    small = b.cmp("ole", t, a, b.const(t, 8.0))
    inside = b.select(t, small, a, b.const(t, 8.0))
    below = _series(b, t, near, b.sub(t, b.mul(t, inside, b.const(t, 0.25)), b.const(t, 1.0)))
    outside = b.select(t, small, b.const(t, 8.0), a)
    above = _series(b, t, far, b.sub(t, b.div(t, b.const(t, 16.0), outside), b.const(t, 1.0)))
    above = b.div(t, above, _sqrt(b, t, outside))
    return b.select(t, small, b.mul(t, below, a) if odd else below, above)


@_wide
def i0e(b, t, x):
    return _scaled_bessel(b, t, _fabs(b, t, x), _I0_NEAR, _I0_FAR, False)


@_wide
def i1e(b, t, x):
    return _signed(b, t, _scaled_bessel(b, t, _fabs(b, t, x), _I1_NEAR, _I1_FAR, True), x)


@_wide
def i0(b, t, x):
    a = _fabs(b, t, x)
    return b.mul(t, exp(b, t, a), _scaled_bessel(b, t, a, _I0_NEAR, _I0_FAR, False))


@_wide
def i1(b, t, x):
    a = _fabs(b, t, x)
    return _signed(b, t, b.mul(t, exp(b, t, a), _scaled_bessel(b, t, a, _I1_NEAR, _I1_FAR, True)), x)


# B(2 k) / (2 k) for k = 7 to 1, and B(2 k): the asymptotic series of the digamma function and of its derivative
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
_TRIGAMMA = (7 / 6, -691 / 2730, 5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6)
_UP = 10  # from here on they are exact


def _from_ten(b, t, x, step):
    """(x or, below ten, the first of x + 1, x + 2, ... that isn't; the sum of step(y) for the y passed)."""
    total = b.const(t, 0.0)
    for _ in range(_UP):
        low = b.cmp("olt", t, x, b.const(t, float(_UP)))
        total = b.add(t, total, b.select(t, low, step(x), b.const(t, 0.0)))
        x = b.select(t, low, b.add(t, x, b.const(t, 1.0)), x)
    return x, total


def _sine_and_cosine_of_pi(b, t, x):
    """(sin, cos) of pi times the distance from x to the nearest integer."""
    r = b.mul(t, b.sub(t, x, b.intrinsic("rint", t, x)), b.const(t, math.pi))
    square = b.mul(t, r, r)
    factorials = [math.factorial(k) for k in range(24)]
    sine = [(-1.0) ** (k // 2) / factorials[k] for k in range(21, 0, -2)]
    cosine = [(-1.0) ** (k // 2) / factorials[k] for k in range(22, -1, -2)]
    return b.mul(t, r, b.poly(t, square, sine)), b.poly(t, square, cosine)


@_wide
def digamma(b, t, x):
    """By recurrence to ten and the asymptotic series; by reflection below 0."""
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    negative = b.cmp("olt", t, x, zero)
    y = b.select(t, negative, b.sub(t, one, x), x)
    y, passed = _from_ten(b, t, y, lambda v: b.div(t, one, v))
    z = b.div(t, one, b.mul(t, y, y))
    rest = b.add(t, b.div(t, b.const(t, 0.5), y), b.mul(t, z, b.poly(t, z, _DIGAMMA)))
    out = b.sub(t, b.sub(t, log(b, t, y), rest), passed)
    sine, cosine = _sine_and_cosine_of_pi(b, t, x)
    reflected = b.sub(t, out, b.div(t, b.mul(t, b.const(t, math.pi), cosine), sine))
    pole = b.op("and", "bool", negative, b.cmp("oeq", t, sine, zero))
    out = b.select(t, negative, b.select(t, pole, b.const(t, math.nan), reflected), out)
    out = b.select(t, b.cmp("oeq", t, x, b.const(t, math.inf)), x, out)
    return b.select(t, b.cmp("oeq", t, x, zero), _signed(b, t, b.const(t, math.inf), b.op("fneg", t, x)), out)


@_wide
def trigamma(b, t, x):
    zero, one = b.const(t, 0.0), b.const(t, 1.0)
    negative = b.cmp("olt", t, x, zero)
    y = b.select(t, negative, b.sub(t, one, x), x)
    y, passed = _from_ten(b, t, y, lambda v: b.div(t, one, b.mul(t, v, v)))
    w = b.div(t, one, y)
    z = b.mul(t, w, w)
    rest = b.mul(t, b.mul(t, z, w), b.poly(t, z, _TRIGAMMA))
    out = b.add(t, b.add(t, b.add(t, w, b.mul(t, z, b.const(t, 0.5))), rest), passed)
    sine, _ = _sine_and_cosine_of_pi(b, t, x)
    ratio = b.div(t, b.const(t, math.pi), sine)
    reflected = b.sub(t, b.mul(t, ratio, ratio), out)
    pole = b.op("or", "bool", b.cmp("oeq", t, x, zero), b.op("and", "bool", negative, b.cmp("oeq", t, sine, zero)))
    out = b.select(t, pole, b.const(t, math.inf), b.select(t, negative, reflected, out))
    return b.select(t, b.cmp("oeq", t, x, b.const(t, -math.inf)), b.const(t, math.nan), out)


def _erfcx(b, t, a):
    """Of a number that isn't negative."""
    k = b.const(t, 3.75)
    inf = b.cmp("oeq", t, a, b.const(t, math.inf))
    place = b.select(t, inf, b.const(t, 1.0), b.div(t, b.sub(t, a, k), b.add(t, a, k)))
    return b.div(t, _series(b, t, _ERFCX, place), b.fma(t, a, b.const(t, 2.0), b.const(t, 1.0)))


def _exp_of_square(b, t, x):
    """exp(x x), the square in two parts."""
    square = b.mul(t, x, x)
    rest = b.fma(t, x, x, b.op("fneg", t, square))
    big = b.cmp("oge", t, square, b.const(t, 709.0))
    out = exp(b, t, square)
    return b.select(t, big, out, b.fma(t, out, rest, out))


@_wide
def erfcx(b, t, x):
    a = _fabs(b, t, x)
    right = _erfcx(b, t, a)
    left = b.sub(t, b.mul(t, b.const(t, 2.0), _exp_of_square(b, t, x)), right)
    return b.select(t, b.cmp("olt", t, x, b.const(t, 0.0)), left, right)


@_wide
def log_ndtr(b, t, x):
    """Below -1 by erfcx, so that nothing underflows."""
    half, low = b.const(t, 0.5), b.cmp("olt", t, x, b.const(t, -1.0))
    scaled = b.mul(t, half, _erfcx(b, t, b.mul(t, _fabs(b, t, x), b.const(t, math.sqrt(0.5)))))
    halved = b.mul(t, b.mul(t, x, x), half)
    tail = b.mul(t, scaled, exp(b, t, b.op("fneg", t, halved)))  # beyond |x|
    below = b.sub(t, log(b, t, scaled), halved)
    below = b.select(t, b.cmp("oeq", t, x, b.const(t, -math.inf)), x, below)
    negative = b.cmp("olt", t, x, b.const(t, 0.0))
    beyond = b.select(t, negative, b.sub(t, b.const(t, 1.0), tail), tail)
    return b.select(t, low, below, log1p(b, t, b.op("fneg", t, beyond)))


_NDTRI = (  # numerator and denominator: of the middle, and of tails up to exp(-32) and beyond
    (
        (-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1, 1.39312609387279679503e1, -1.23916583867381258016e0),
        (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1, -2.25462687854119370527e2, 2.00260212380060660359e2,
         -8.20372256168333339912e1, 1.59056225126211695515e1, -1.18331621121330003142e0),
    ),
    (
        (4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1, 4.40805073893200834700e1, 1.46849561928858024014e1,
         2.18663306850790267539e0, -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
        (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1, 1.50425385692907503408e1, 2.50464946208309415979e0,
         -1.42182922854787788574e-1, -3.80806407691578277194e-2, -9.33259480895457427372e-4),
    ),
    (
        (3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0, 1.33303460815807542389e0, 2.01485389549179081538e-1,
         1.23716634817820021358e-2, 3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9),
        (1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0, 2.16236993594496635890e-1, 1.34204006088543189037e-2,
         3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9),
    ),
)  # fmt: skip


@_wide
def ndtri(b, t, x):
    one, edge = b.const(t, 1.0), 0.13533528323661269189  # exp(-2)
    upper = b.cmp("ogt", t, x, b.const(t, 1.0 - edge))
    p = b.select(t, upper, b.sub(t, one, x), x)
    y = b.sub(t, p, b.const(t, 0.5))
    square = b.mul(t, y, y)
    (top, bottom), *tails = _NDTRI
    ratio = b.div(t, b.mul(t, square, b.poly(t, square, top)), b.poly(t, square, bottom))
    middle = b.mul(t, b.fma(t, y, ratio, y), b.const(t, math.sqrt(2 * math.pi)))
    root = _sqrt(b, t, b.mul(t, b.const(t, -2.0), log(b, t, p)))
    z = b.div(t, one, root)
    near, far = (b.div(t, b.mul(t, z, b.poly(t, z, top)), b.poly(t, z, bottom)) for top, bottom in tails)
    start = b.sub(t, root, b.div(t, log(b, t, root), root))
    tail = b.sub(t, start, b.select(t, b.cmp("olt", t, root, b.const(t, 8.0)), near, far))
    tail = b.select(t, upper, tail, b.op("fneg", t, tail))
    out = b.select(t, b.cmp("ogt", t, p, b.const(t, edge)), middle, tail)
    out = b.select(t, b.cmp("oeq", t, x, b.const(t, 0.0)), b.const(t, -math.inf), out)
    out = b.select(t, b.cmp("oeq", t, x, one), b.const(t, math.inf), out)
    outside = b.op("or", "bool", b.cmp("olt", t, x, b.const(t, 0.0)), b.cmp("ogt", t, x, one))
    return b.select(t, outside, b.const(t, math.nan), out)


@expansion
def nextafter(b, t, x, y):
    """The bits of a number, as an integer, one on or one back."""
    i = "i32" if t == "f32" else "i64"
    bits, zero = b.convert("bitcast", t, x, i), b.const(t, 0.0)
    away = b.op("xor", "bool", b.cmp("olt", t, x, y), b.cmp("olt", t, x, zero))
    moved = b.add(i, bits, b.select(i, away, b.const(i, 1), b.const(i, -1)))
    out = b.convert("bitcast", i, moved, t)
    least = b.convert("bitcast", i, b.const(i, 1), t)
    out = b.select(t, b.cmp("oeq", t, x, zero), _signed(b, t, least, y), out)
    out = b.select(t, b.cmp("oeq", t, x, y), y, out)
    return b.select(t, b.cmp("uno", t, x, y), b.add(t, x, y), out)


@expansion
def gcd(b, t, x, y):
    """Euclid's algorithm, of all lanes until the last has ended; as NumPy's, the least number of a signed type stays negative."""
    ty, unsigned = b.ty(t), "u" + t[1:]
    high, low = b.names.slot(ty), b.names.slot(ty)
    for slot, v in ((high, x), (low, y)):
        b.out.append(f"store {ty} {v if is_unsigned(t) else b.intrinsic_abs(t, v)}, ptr {slot}")
    loop, turn, done = (b.names.fresh(n) for n in ("loop", "turn", "done"))
    b.branch(None, loop)
    b.label(loop)
    m, n = (b.emit(f"load {ty}, ptr {slot}") for slot in (high, low))
    more = b.cmp("ne", t, n, b.const(t, 0))
    b.branch(b.any(more), turn, done)
    b.label(turn)
    rest = b.op("urem", unsigned, m, b.select(t, more, n, b.const(t, 1)))
    b.out.append(f"store {ty} {b.select(t, more, n, m)}, ptr {high}")
    b.out.append(f"store {ty} {b.select(t, more, rest, b.const(t, 0))}, ptr {low}")
    b.branch(None, loop)
    b.label(done)
    return m


@expansion
def lcm(b, t, x, y):
    divisor = gcd(b, t, x, y)
    safe = b.select(t, b.cmp("eq", t, divisor, b.const(t, 0)), b.const(t, 1), divisor)
    first, second = (v if is_unsigned(t) else b.intrinsic_abs(t, v) for v in (x, y))
    return b.mul(t, b.op("udiv", "u" + t[1:], first, safe), second)
