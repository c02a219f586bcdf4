"""The error function, its complement, scaled complement and inverse; the normal distribution's logarithm and quantiles.

The polynomials of erf and its inverse are Chebyshev fits, the inverse near 1 takes a step of Halley's besides; complements are Shepherd and
Laframboise's scaled one (1981), quantiles are Cephes' ndtri.
"""

from __future__ import annotations

import math

from .exponentials import FORMATS, clamp, exp, exp_m1_reduced, exp_parts, exp_reduce, exp_scaled, log, log1p, log_usual
from .table import chebyshev, expansion, fabs, narrow, powers, signed, sqrt, usually, wide

__all__: list[str] = []

# erf(x) / x - 1 as a polynomial in x^2 on |x| <= 1
_ERF = {
    "f32": (
        7.875875062685488e-05,
        -0.000801686428716587,
        0.005189087423433974,
        -0.026854212010626412,
        0.11283594715160218,
        -0.37612626666720334,
        0.1283791658483509,
    ),
    "f64": (
        5.957176147748911e-11,
        -1.1372848856791674e-09,
        1.4659775274047436e-08,
        -1.6350312701054695e-07,
        1.6461000484121368e-06,
        -1.4925595266831182e-05,
        0.0001205533111164271,
        -0.000854832698083379,
        0.0052239776248180145,
        -0.026866170645076792,
        0.11283791670954879,
        -0.3761263890318375,
        0.12837916709551256,
    ),
}
# likewise on |x| <= 1/2
_ERF_NEAR = {
    "f32": _ERF["f32"],
    "f64": (
        -1.4621341491012844e-07, 1.6371282597755977e-06, -1.4923005626894847e-05, 0.00012055286259121393, -0.0008548326511566567,
        0.005223977622024224, -0.026866170645000076, 0.1128379167095487, -0.3761263890318375, 0.1283791670955126,
    ),
}  # fmt: skip
# log erfc(x) on [1, 4]
_ERFC_LOG = (
    1.6371514145936436e-06,
    -4.605804268918978e-05,
    0.0005968056256607798,
    -0.004759596293266265,
    0.026421136005663898,
    -0.11008008294882024,
    -0.631826051559163,
    -1.130233434841994,
    0.00032013804967769883,
)
# erfc(x) e^(x^2) in u = (x - 3) / (x + 3), x on [1, 6]
_ERFCX = (
    3.381355142042904e-09,
    1.2755818949624478e-06,
    2.0135111426447427e-06,
    -8.00978093907608e-06,
    -1.2845780030775907e-05,
    6.406279226046039e-05,
    4.525434558991009e-05,
    -0.0005970624964924544,
    0.0007077464666941425,
    0.004269136356961225,
    -0.024392499318915004,
    0.07166583719747308,
    -0.15011593650077898,
    0.24560380171233487,
    -0.3262335600430372,
    0.17900115118138996,
)


@expansion
def erf(b, t, x):
    a = b.intrinsic("fabs", x)
    small = b.fma(x, b.poly(b.mul(x, x), _ERF[t]), x)
    a = clamp(b, t, a, 1.0, 4.0 if t == "f32" else 6.0)
    if t == "f32":
        g = b.poly(a, _ERFC_LOG)
    else:
        g = b.neg(b.mul(a, a))
    # e^g for -37 <= g <= 0: no special values
    fmt = FORMATS[t]
    n, r = exp_reduce(b, t, g)
    scale = b.op("shl", b.add(n, fmt.bias), fmt.m)
    scale = b.convert("bitcast", scale, t)
    e = b.fma(scale, exp_m1_reduced(b, t, r), scale)
    if t == "f64":
        u = b.div(b.sub(a, 3.0), b.add(a, 3.0))
        e = b.mul(e, b.poly(u, _ERFCX))
    large = b.intrinsic("copysign", b.sub(1.0, e), x)
    return b.select(b.cmp("ogt", b.intrinsic("fabs", x), 1.0), large, small)


# log2 of the normal distribution at -a, a polynomial on [0, 6.5] that goes on downwards behind it; (2^r - 1) / r on |r| <= 1/2
_NORMAL_LOG = (
    -1.8339901150534403e-06,
    2.7764797256096584e-05,
    -0.0001331677952218516,
    -0.0002587723396493649,
    0.007213167738185669,
    -0.05259258603103939,
    -0.4591787414136541,
    -1.15110856416842,
    -0.9999999302188493,
)
_POWER = (
    0.00015353697502813108,
    0.0013398896816986079,
    0.00961843620674194,
    0.055503323955339974,
    0.2402264792225702,
    0.6931472029101429,
)


@expansion
def normal_cdf(b, t, x):
    """Within two roundings of 1/2 in float32, which is what gelu needs; 0 below -10.5."""
    if t == "f64":
        return b.mul(b.add(erf(b, t, b.mul(x, math.sqrt(0.5))), 1.0), 0.5)
    fmt = FORMATS[t]
    g = clamp(b, t, b.poly(b.intrinsic("fabs", x), _NORMAL_LOG), -127.0, None)
    # The low bits of the sum are the power of two with its bias: shifted up they are the number 2^n, 0 for n = -127.
    magic = fmt.magic + fmt.bias
    shifted = b.add(g, magic)
    r = b.sub(g, b.sub(shifted, magic))
    scale = b.convert("bitcast", b.op("shl", b.convert("bitcast", shifted, fmt.ints), fmt.m), t)
    tail = b.mul(b.fma(b.poly(r, _POWER), r, 1.0), scale)
    return b.select(b.cmp("ogt", x, 0.0), b.sub(1.0, tail), tail)


# erfinv(x) / x of w = -log(1 - x^2): of w / 2.5 - 1 on [0, 5], and of (sqrt(w) - m) / h on [m - h, m + h], within 2e-8
_ERFINV_NEAR = {
    "f32": (
        -1.2638317173574664e-06,
        2.9332370820253845e-06,
        7.941249076720504e-06,
        -4.140623825365829e-05,
        2.089156243180741e-05,
        0.0002921416157304229,
        -0.0008342566473261421,
        -0.00048787904742196846,
        0.008525415991890028,
        -0.01957356380665251,
        -0.026108236313349985,
        0.6166006919631721,
        1.5014093511107918,
    ),
    "f64": (
        -3.8266700213012684e-11,
        3.858161126784112e-11,
        4.4154081401624544e-10,
        -9.755337189136466e-10,
        -1.9762731377249387e-09,
        1.1039320695967966e-08,
        -6.723947932139946e-09,
        -7.089712161469048e-08,
        1.9955253577447374e-07,
        1.358328533200264e-07,
        -1.8538776245567707e-06,
        2.851653340750412e-06,
        8.652724308992296e-06,
        -4.143207161087569e-05,
        2.0472417318135177e-05,
        0.00029219068516379794,
        -0.0008341356436274527,
        -0.00048789839832821423,
        0.00852540095093571,
        -0.019573561059547235,
        -0.026108235777397546,
        0.6166006918604175,
        1.501409351110792,
    ),
}
_ERFINV_FAR = (
    -0.0001407341140353886, 0.0006811991856487803, -0.0007393972022201842, -0.0009530961390099152, 0.0026540333900776005, -0.0021903686867214504,
    0.0011250401750608784, -0.0011277357578318922, 0.0015694803332937368, -0.002190052408212105, 0.003469571218023242, -0.004955959684525672,
    0.0029225696803438445, 2.026971794866128, 4.085187938419466,
)  # fmt: skip
_ERFINV_M, _ERFINV_H = (6.25 + math.sqrt(5)) / 2, (6.25 - math.sqrt(5)) / 2


# (1 + 2 x) erfcx(x) on [0, inf), of t = (x - 3.75) / (x + 3.75) (Shepherd and Laframboise 1981)
_ERFCX_SCALED = (
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


def _erfcx(b, t, a):
    """Of a number that isn't negative."""
    k = b.const(t, 3.75)
    inf = b.cmp("oeq", a, math.inf)
    place = b.select(inf, 1.0, b.div(b.sub(a, k), b.add(a, k)))
    return b.div(chebyshev(b, t, _ERFCX_SCALED, place), b.fma(a, 2.0, 1.0))


_ERFCX_POWERS = {"f32": powers(_ERFCX_SCALED, 2e-8), "f64": powers(_ERFCX_SCALED)}


def _erfc_by(b, t, x, power):
    """erfc(x), ``power(y, rest)`` being exp(y - rest): the square of x is in two parts."""
    a = fabs(b, x)
    place = b.div(b.sub(a, 3.75), b.add(a, 3.75))
    scaled = b.div(b.poly(place, _ERFCX_POWERS[t]), b.fma(a, 2.0, 1.0))
    square = b.mul(a, a)
    tail = b.mul(scaled, power(b.neg(square), b.fma(a, a, b.neg(square))))
    tail = b.select(b.cmp("ogt", a, 30.0), 0.0, tail)
    far = b.select(b.cmp("olt", x, 0.0), b.sub(2.0, tail), tail)
    # The polynomial of the scaled one rounds much at 0.
    near = b.sub(1.0, b.fma(x, b.poly(b.mul(x, x), _ERF_NEAR[t]), x))
    return b.select(b.cmp("olt", a, 0.5), near, far)


def _erfc(b, t, x):
    def power(y, rest):
        def parts(b, t, y):
            nf, n, r = exp_parts(b, t, y)
            return nf, n, b.sub(r, rest)

        return exp_scaled(b, t, y, 0.0, -104.0 if t == "f32" else -745.2, parts)

    return _erfc_by(b, t, x, power)


def _erfc_normal(b, t, x):
    """Where nothing is subnormal."""

    def power(y, rest):
        _, n, r = exp_parts(b, t, y)
        p = b.convert("bitcast", b.add(exp_m1_reduced(b, t, b.sub(r, rest)), 1.0), FORMATS[t].ints)
        return b.convert("bitcast", b.add(p, b.op("shl", n, FORMATS[t].m)), t)

    return _erfc_by(b, t, x, power)


expansion(usually("erfc", _erfc, _erfc_normal, lambda b, t, x: b.cmp("uge", fabs(b, x), 9.0 if t == "f32" else 26.0)))


def _exp_of_square(b, t, x):
    """exp(x x), the square in two parts."""
    square = b.mul(x, x)
    rest = b.fma(x, x, b.neg(square))
    big = b.cmp("oge", square, 709.0)
    out = exp(b, t, square)
    return b.select(big, out, b.fma(out, rest, out))


def _erfinv_near(b, t, x, log):
    """(|x|, 1 - |x|, w, erfinv(|x|) where w is below 5)."""
    a, one = fabs(b, x), b.const(t, 1.0)
    left = b.sub(one, a)
    w = b.neg(log(b, t, b.mul(left, b.add(one, a))))
    return a, left, w, b.mul(b.poly(b.sub(b.mul(w, 0.4), 1.0), _ERFINV_NEAR[t]), a)


def _erfinv(b, t, x):
    """Where w is 5 or more, in float64 one step of Halley's: what is missing is told from the complement of erf."""
    a, left, w, near = _erfinv_near(b, t, x, log)
    y = b.mul(b.poly(b.mul(b.sub(sqrt(b, w), _ERFINV_M), 1 / _ERFINV_H), _ERFINV_FAR), a)
    one = b.const(t, 1.0)
    if t == "f64":
        place = b.div(b.sub(y, 3.75), b.add(y, 3.75))
        above = b.div(b.poly(place, _ERFCX_POWERS[t]), b.fma(y, 2.0, 1.0))
        u = b.mul(b.sub(b.mul(left, exp(b, t, b.mul(y, y))), above), math.sqrt(math.pi) / 2)
        y = b.sub(y, b.div(u, b.fma(y, u, one)))
    y = b.select(b.cmp("olt", w, 5.0), near, y)
    y = b.select(b.cmp("oeq", a, one), math.inf, y)
    return signed(b, b.select(b.cmp("ogt", a, one), math.nan, y), x)


def _erfinv_usual(b, t, x):
    return signed(b, _erfinv_near(b, t, x, log_usual)[3], x)


# sqrt(1 - exp(-5)) is 0.99663
expansion(usually("erfinv", _erfinv, _erfinv_usual, lambda b, t, x: b.cmp("uge", fabs(b, x), 0.9965)))


@wide
def erfcx(b, t, x):
    a = fabs(b, x)
    right = _erfcx(b, t, a)
    left = b.sub(b.mul(2.0, _exp_of_square(b, t, x)), right)
    return b.select(b.cmp("olt", x, 0.0), left, right)


@wide
def log_ndtr(b, t, x):
    """Below -1 by erfcx, so that nothing underflows."""
    half, low = b.const(t, 0.5), b.cmp("olt", x, -1.0)
    scaled = b.mul(half, _erfcx(b, t, b.mul(fabs(b, x), math.sqrt(0.5))))
    halved = b.mul(b.mul(x, x), half)
    tail = b.mul(scaled, exp(b, t, b.neg(halved)))  # beyond |x|
    below = b.sub(log(b, t, scaled), halved)
    below = b.select(b.cmp("oeq", x, -math.inf), x, below)
    negative = b.cmp("olt", x, 0.0)
    beyond = b.select(negative, b.sub(1.0, tail), tail)
    return b.select(low, below, log1p(b, t, b.neg(beyond)))


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


_EDGE = 0.13533528323661269189  # exp(-2)


def _nearer_end(b, t, x):
    """(whether x is in the upper tail, its distance from the end of [0, 1] that the tail is at)."""
    one = b.const(t, 1.0)
    upper = b.cmp("ogt", x, 1.0 - _EDGE)
    return upper, b.select(upper, b.sub(one, x), x)


def _ratio(b, x, quotient):
    top, bottom = quotient
    return b.div(b.mul(x, b.poly(x, top)), b.poly(x, bottom))


def _ndtri_by(b, t, x, log, tail_of):
    upper, p = _nearer_end(b, t, x)
    y = b.sub(p, 0.5)
    middle = b.mul(b.fma(y, _ratio(b, b.mul(y, y), _NDTRI[0]), y), math.sqrt(2 * math.pi))
    root = sqrt(b, b.mul(-2.0, log(b, t, p)))
    z = b.div(b.const(t, 1.0), root)
    tail = b.sub(b.sub(root, b.mul(log(b, t, root), z)), tail_of(root, z))
    tail = b.select(upper, tail, b.neg(tail))
    return b.select(b.cmp("ogt", p, _EDGE), middle, tail)


def _ndtri(b, t, x):
    def tail_of(root, z):
        return b.select(b.cmp("olt", root, 8.0), *(_ratio(b, z, q) for q in _NDTRI[1:]))

    out = _ndtri_by(b, t, x, log, tail_of)
    one = b.const(t, 1.0)
    out = b.select(b.cmp("oeq", x, 0.0), -math.inf, out)
    out = b.select(b.cmp("oeq", x, one), math.inf, out)
    outside = b.op("or", b.cmp("olt", x, 0.0), b.cmp("ogt", x, one))
    return b.select(outside, math.nan, out)


def _ndtri_usual(b, t, x):
    return _ndtri_by(b, t, x, log_usual, lambda root, z: _ratio(b, z, _NDTRI[1]))


_quantile = usually("ndtri", _ndtri, _ndtri_usual, lambda b, t, x: b.cmp("ule", _nearer_end(b, t, x)[1], 1.3e-14))
narrow("ndtri", _quantile, _quantile)
