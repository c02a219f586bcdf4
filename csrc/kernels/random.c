/* Draws from MT19937 (Matsumoto and Nishimura 1998), whose words are those of PyTorch's CPU generator, in
 * blocks: the state moves on by vectors, words are tempered and made numbers by vectors. What a draw takes
 * from the stream and how numbers are made of it is PyTorch's convention (core/generator.py).
 *
 * A generator's state is an ndarray that its owner keeps; the default generator's is here, so that compiled
 * graphs can draw from it without Python. One lock serves all: draws are serial anyway. */
#define _GNU_SOURCE
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <pthread.h>
#include <string.h>

#define WORDS 624
#define FAR 397
#define BLOCK 1024 /* words that are drawn at a time: an even number, and whole groups of 16 */

typedef struct {
    uint32_t key[WORDS];
    int32_t pos, has_normal; /* pos: words of the key that are used up */
    double normal; /* the second one of a pair of normal numbers, for the next that is drawn alone */
} Engine;

static Engine default_engine = {.pos = WORDS};
static pthread_mutex_t drawing = PTHREAD_MUTEX_INITIALIZER;

static void unlocked(void) { pthread_mutex_init(&drawing, NULL); }

static void begin(void) {
    static int registered;
    pthread_mutex_lock(&drawing);
    if (!registered)
        registered = !pthread_atfork(NULL, NULL, unlocked); /* another thread may hold it at a fork */
}
static void end(void) { pthread_mutex_unlock(&drawing); }

/* ---- words --------------------------------------------------------------------------------------------- */

static inline uint32_t mix(uint32_t high, uint32_t low) {
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return y >> 1 ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

BY_LEVEL(static void, twist, (uint32_t *key), (key)) {
    for (int i = 0; i < WORDS - FAR; i++) key[i] = key[i + FAR] ^ mix(key[i], key[i + 1]);
    for (int i = WORDS - FAR; i < WORDS - 1; i++) key[i] = key[i + FAR - WORDS] ^ mix(key[i], key[i + 1]);
    key[WORDS - 1] = key[FAR - 1] ^ mix(key[WORDS - 1], key[0]);
}

BY_LEVEL(static void, temper, (const uint32_t *restrict from, uint32_t *restrict to, int n), (from, to, n)) {
    for (int i = 0; i < n; i++) {
        uint32_t y = from[i];
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c5680u;
        y ^= y << 15 & 0xefc60000u;
        to[i] = y ^ y >> 18;
    }
}

static void words(Engine *e, uint32_t *to, int64_t n) {
    int pos = e->pos >= 0 && e->pos < WORDS ? e->pos : WORDS;
    while (n) {
        if (pos == WORDS) twist(e->key), pos = 0;
        int m = n < WORDS - pos ? (int)n : WORDS - pos;
        temper(e->key + pos, to, m);
        pos += m, to += m, n -= m;
    }
    e->pos = pos;
}

static void seed(Engine *e, uint32_t s) {
    for (int i = 0; i < WORDS; i++) e->key[i] = i ? s = 1812433253u * (s ^ s >> 30) + (uint32_t)i : s;
    e->pos = WORDS, e->has_normal = 0;
}

/* ---- numbers of words: n numbers of n or 2 n words ----------------------------------------------------- */

/* Stretched to [low, high) by one fused multiply-add; what is rounded up to `high` is `low`. */
BY_LEVEL(static void, floats_of,
         (const uint32_t *restrict w, float *restrict to, int n, float low, float high),
         (w, to, n, low, high)) {
    float scale = high - low;
    for (int i = 0; i < n; i++) {
        float x = __builtin_fmaf((float)(int32_t)(w[i] & 0xffffffu) * (1.0f / 16777216.0f), scale, low);
        to[i] = x == high ? low : x;
    }
}
/* The low 53 bits of two words, the first one the high half. As the sum of two parts that are exact. */
#define DOUBLE(w, i)                                         \
    ((double)(int32_t)((w)[2 * (i)] & 0x1fffffu) * 0x1p-21 + \
     ((double)(int32_t)((w)[2 * (i) + 1] ^ 0x80000000u) + 0x1p31) * 0x1p-53)
BY_LEVEL(static void, doubles_of,
         (const uint32_t *restrict w, double *restrict to, int n, double low, double high),
         (w, to, n, low, high)) {
    double scale = high - low;
    for (int i = 0; i < n; i++) {
        double x = __builtin_fma(DOUBLE(w, i), scale, low);
        to[i] = x == high ? low : x;
    }
}
BY_LEVEL(static void, truths_of, (const uint32_t *restrict w, uint8_t *restrict to, int n, double p),
         (w, to, n, p)) {
    for (int i = 0; i < n; i++) to[i] = DOUBLE(w, i) < p;
}

/* ---- normal numbers by Box and Muller, 8 of the first half of 16 uniform ones and 8 of the second ------ */

/* log of a number in (0, 1], as inductor/codegen/expansions/exponentials.py has it. */
static inline float log_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits += 0x3f800000u - 0x3f3504f3u;
    float k = (float)((int32_t)(bits >> 23) - 127), f;
    bits = (bits & 0x7fffffu) + 0x3f3504f3u;
    memcpy(&f, &bits, 4);
    f -= 1;
    float half = 0.5f * f * f, s = f / (2 + f), z = s * s;
    float r = z * (0.66666662693f + z * (0.40000972152f + z * (0.28498786688f + z * 0.24279078841f)));
    return k * 0.693145751953125f + (f - (half - (s * (half + r) + k * 1.428606765330187e-06f)));
}

BY_LEVEL(static void, box_muller, (float *restrict x, int64_t blocks, float mean, float std),
         (x, blocks, mean, std)) {
    for (int64_t b = 0; b < blocks; b++, x += 16) {
        float u[8], v[8], sines[8], cosines[8];
        for (int i = 0; i < 8; i++) u[i] = x[i], v[i] = x[i + 8];
        for (int i = 0; i < 8; i++) {
            float radius = __builtin_sqrtf(-2 * log_of(1 - u[i])), theta = 6.2831855f * v[i];
            /* theta = quarter * pi / 2 + r; sine and cosine of r by fdlibm's polynomials */
            int quarter = (int)(theta * 0.63661975f + 0.5f);
            float q = (float)quarter, r = theta - q * 1.5703125f;
            r -= q * 4.837513e-4f;
            r -= q * 7.549790e-8f;
            float z = r * r;
            float s = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
            float c = 1 - 0.5f * z +
                z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
            float sine = quarter & 1 ? c : s, cosine = quarter & 1 ? s : c;
            sine = quarter & 2 ? -sine : sine;
            cosine = (quarter + 1) & 2 ? -cosine : cosine;
            cosines[i] = radius * cosine * std + mean;
            sines[i] = radius * sine * std + mean;
        }
        for (int i = 0; i < 8; i++) x[i] = cosines[i], x[i + 8] = sines[i];
    }
}

static void box_muller_double(double *x, int64_t blocks, double mean, double std) {
    for (int64_t b = 0; b < blocks; b++, x += 16)
        for (int i = 0; i < 8; i++) {
            double radius = sqrt(-2 * log(1 - x[i])), theta = 6.283185307179586 * x[i + 8];
            x[i] = radius * cos(theta) * std + mean;
            x[i + 8] = radius * sin(theta) * std + mean;
        }
}

static double one_normal(Engine *e) {
    if (e->has_normal) return e->has_normal = 0, e->normal;
    uint32_t w[4];
    words(e, w, 4);
    double r = sqrt(-2.0 * log1p(-DOUBLE(w, 1))), theta = 2.0 * M_PI * DOUBLE(w, 0);
    e->normal = r * sin(theta), e->has_normal = 1;
    return r * cos(theta);
}

/* ---- draws --------------------------------------------------------------------------------------------- */

static void uniform(Engine *e, void *to, int f64, int64_t n, double low, double high) {
    uint32_t w[BLOCK];
    for (int64_t i = 0, m; i < n; i += m) {
        int64_t most = f64 ? BLOCK / 2 : BLOCK;
        m = n - i < most ? n - i : most;
        words(e, w, f64 ? 2 * m : m);
        if (f64) doubles_of(w, (double *)to + i, (int)m, low, high);
        else floats_of(w, (float *)to + i, (int)m, (float)low, (float)high);
    }
}

/* `narrow`: 16-bit floats draw nothing for the incomplete block before it is drawn anew. */
static void normal(Engine *e, void *to, int f64, int64_t n, double mean, double std, int narrow) {
    if (n < 16) {
        for (int64_t i = 0; i < n; i++) {
            double x = one_normal(e) * std + mean;
            if (f64) ((double *)to)[i] = x;
            else ((float *)to)[i] = (float)x;
        }
        return;
    }
    int64_t step = 16 * 32, item = f64 ? 8 : 4, whole = n / 16 * 16;
    if (narrow || n == whole) {
        for (int64_t i = 0, m; i < whole; i += m) { /* made normal while they are in the cache */
            m = whole - i < step ? whole - i : step;
            uniform(e, (char *)to + i * item, f64, m, 0, 1);
            if (f64) box_muller_double((double *)to + i, m / 16, mean, std);
            else box_muller((float *)to + i, m / 16, (float)mean, (float)std);
        }
    } else {
        uniform(e, to, f64, n, 0, 1);
        if (f64) box_muller_double(to, whole / 16, mean, std);
        else box_muller(to, whole / 16, (float)mean, (float)std);
    }
    if (n == whole) return;
    char *last = (char *)to + (n - 16) * item; /* the incomplete block is drawn anew over the final 16 */
    uniform(e, last, f64, 16, 0, 1);
    if (f64) box_muller_double((double *)last, 1, mean, std);
    else box_muller((float *)last, 1, (float)mean, (float)std);
}

static void sequence(Engine *e, double *to, int64_t n) {
    for (int64_t i = 0; i < n; i++) to[i] = one_normal(e);
}

static void bernoulli(Engine *e, uint8_t *to, int64_t n, double p) {
    uint32_t w[BLOCK];
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < BLOCK / 2 ? n - i : BLOCK / 2;
        words(e, w, 2 * m);
        truths_of(w, to + i, (int)m, p);
    }
}

/* Rows of n truth values as bits, the first one the lowest of a byte; a row ends with its byte. */
static void truth_bits(Engine *e, uint8_t *to, int64_t bytes, int64_t n, double p) {
    for (uint8_t *last = to + bytes; to < last;)
        for (int64_t i = 0; i < n; i += BLOCK / 2) {
            uint8_t t[BLOCK / 2];
            int64_t m = n - i < BLOCK / 2 ? n - i : BLOCK / 2;
            bernoulli(e, t, m, p);
            memset(t + m, 0, (size_t)(-m & 7));
            for (int64_t k = 0; k < m; k += 8) {
                uint64_t x; /* eight bytes of 0 or 1: the product has their bits in its highest byte */
                memcpy(&x, t + k, 8);
                *to++ = (uint8_t)(x * 0x0102040810204080u >> 56);
            }
        }
}

/* low + (a word modulo span); of two words, the first one high, where `wide`; span 0 is all of them. */
static void integers(Engine *e, int64_t *to, int64_t n, int64_t low, uint64_t span, int wide) {
    uint32_t w[BLOCK];
    for (int64_t i = 0, m; i < n; i += m) {
        int64_t most = wide ? BLOCK / 2 : BLOCK;
        m = n - i < most ? n - i : most;
        words(e, w, wide ? 2 * m : m);
        if (wide)
            for (int64_t k = 0; k < m; k++) {
                uint64_t x = (uint64_t)w[2 * k] << 32 | w[2 * k + 1];
                to[i + k] = (int64_t)(span ? x % span + (uint64_t)low : x);
            }
        else {
            uint32_t by = (uint32_t)span;
            for (int64_t k = 0; k < m; k++) to[i + k] = (int64_t)(uint64_t)(by ? w[k] % by : w[k]) + low;
        }
    }
}

/* Fisher and Yates from the front: element i changes place with one of those from i on. */
static void permutation(Engine *e, int64_t *to, int64_t n) {
    uint32_t w[BLOCK];
    for (int64_t i = 0; i < n; i++) to[i] = i;
    for (int64_t i = 0, m; i < n - 1; i += m) {
        m = n - 1 - i < BLOCK ? n - 1 - i : BLOCK;
        words(e, w, m);
        for (int64_t k = 0; k < m; k++) {
            int64_t here = i + k, there = here + (int64_t)(w[k] % (uint64_t)(n - here)), x = to[here];
            to[here] = to[there], to[there] = x;
        }
    }
}

/* The state that a kernel draws from: the one it is given, or the default generator's. NULL for memory of
 * another size. */
static Engine *engine_of(const View *v) {
    if (!flb_given(v)) return &default_engine;
    return v->ndim == 1 && v->shape[0] == (int64_t)sizeof(Engine) ? (Engine *)v->ptr : NULL;
}

static int64_t elements(const View *v) {
    int64_t n = 1;
    for (int d = 0; d < v->ndim; d++) n *= v->shape[d];
    return n;
}

FLB_KERNEL(draw) {
    Engine *e = engine_of(&v->engine);
    char *to = v->made.ptr;
    int64_t count = elements(&v->made);
    int f64 = n->f64 != 0;
    if (!e) return 0;
    begin();
    switch (n->what) {
    case DRAW_UNIFORM: uniform(e, to, f64, count, n->first, n->second); break;
    case DRAW_NORMAL: normal(e, to, f64, count, n->first, n->second, n->narrow != 0); break;
    case DRAW_SEQUENCE: sequence(e, (double *)to, count); break;
    case DRAW_BERNOULLI: bernoulli(e, (uint8_t *)to, count, n->first); break;
    }
    end();
    return 0;
}

FLB_KERNEL(draw_bits) {
    Engine *e = engine_of(&v->engine);
    int64_t bytes = elements(&v->made);
    if (!e || n->columns < 1 || bytes % ((n->columns + 7) / 8)) return 0;
    begin();
    truth_bits(e, (uint8_t *)v->made.ptr, bytes, n->columns, n->p);
    end();
    return 0;
}

FLB_KERNEL(draw_integers) {
    Engine *e = engine_of(&v->engine);
    if (!e) return 0;
    begin();
    integers(e, (int64_t *)v->made.ptr, elements(&v->made), n->low, (uint64_t)n->span, n->wide != 0);
    end();
    return 0;
}

FLB_KERNEL(draw_permutation) {
    Engine *e = engine_of(&v->engine);
    if (!e) return 0;
    begin();
    permutation(e, (int64_t *)v->made.ptr, elements(&v->made));
    end();
    return 0;
}

FLB_KERNEL(draw_words) {
    Engine *e = engine_of(&v->engine);
    if (!e) return 0;
    begin();
    words(e, (uint32_t *)v->made.ptr, elements(&v->made));
    end();
    return 0;
}

FLB_KERNEL(seed_engine) {
    Engine *e = engine_of(&v->engine);
    if (!e) return 0;
    begin();
    seed(e, (uint32_t)n->seed);
    end();
    return 0;
}

/* ---- distributions drawn by rejection: one element after another, in doubles --------------------------- */

static double next_uniform(Engine *e) {
    double u;
    uniform(e, &u, 1, 1, 0, 1);
    return u;
}

/* G. Marsaglia, W. Tsang, "A simple method for generating gamma variables" (2000). */
static double gamma_of(Engine *e, double a) {
    if (a == 0 || a != a) return a;
    double scale = 1;
    if (a < 1) scale = pow(1 - next_uniform(e), 1 / a), a += 1;
    double d = a - 1.0 / 3, c = 1 / sqrt(9 * d);
    if (!(d > 0)) return NAN; /* of a negative shape no draw would end */
    for (;;) {
        double x, y = 0;
        while (y <= 0) {
            normal(e, &x, 1, 1, 0, 1, 0);
            y = 1 + c * x;
        }
        double v = y * y * y, u = 1 - next_uniform(e), xx = x * x;
        if (u < 1 - 0.0331 * xx * xx || log(u) < 0.5 * xx + d * (1 - v + log(v))) return scale * d * v;
    }
}

/* Products of uniform numbers, from 10 on W. Hoermann's PTRS (1993). */
static double poisson_of(Engine *e, double rate) {
    if (!(rate > 0)) return 0;
    if (rate < 10) {
        double limit = exp(-rate), product = next_uniform(e), k = 0;
        for (; product > limit; k++) product *= next_uniform(e);
        return k;
    }
    double root = sqrt(rate), log_rate = log(rate), b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), reach = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = next_uniform(e) - 0.5, v = next_uniform(e), us = 0.5 - fabs(u),
               k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= reach) return k;
        if (k < 0 || (us < 0.013 && v > us)) continue;
        if (log(v) + log(inverse) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) return k;
    }
}

/* log k! less Stirling's formula. */
static double tail_of(double k) {
    return lgamma(k + 1) - ((k + 0.5) * log(k + 1) - (k + 1) + 0.5 * log(2 * 3.14159265358979323846));
}

/* Sums of geometric numbers, where the mean is large Hoermann's BTRS. */
static double binomial_of(Engine *e, double n, double p) {
    if (p != p || n != n) return NAN;
    if (n <= 0 || p <= 0) return 0;
    if (p >= 1) return n;
    if (p > 0.5) return n - binomial_of(e, n, 1 - p);
    if (n * p < 10) {
        double total = 0, k = 0, log_q = log1p(-p);
        for (;; k++) {
            double u = next_uniform(e);
            total += u > 0 ? ceil(log(u) / log_q) : INFINITY;
            if (total > n) return k;
        }
    }
    double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation,
           a = -0.0873 + 0.0248 * b + 0.01 * p;
    double c = n * p + 0.5, reach = 0.92 - 4.2 / b, r = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation,
           m = floor((n + 1) * p);
    for (;;) {
        double u = next_uniform(e) - 0.5, v = next_uniform(e), us = 0.5 - fabs(u),
               k = floor((2 * a / us + b) * u + c);
        if (us >= 0.07 && v <= reach) return k;
        if (k < 0 || k > n) continue;
        double bound = (m + 0.5) * log((m + 1) / (r * (n - m + 1))) +
            (n + 1) * log((n - m + 1) / (n - k + 1)) + (k + 0.5) * log(r * (n - k + 1) / (k + 1)) +
            (tail_of(m) + tail_of(n - m) - tail_of(k) - tail_of(n - k));
        if (log(v * alpha / (a / (us * us) + b)) <= bound) return k;
    }
}

static double sample(Engine *e, int64_t distribution, double a, const double *b) {
    if (distribution == DISTRIBUTION_GAMMA) return gamma_of(e, a);
    return distribution == DISTRIBUTION_POISSON ? poisson_of(e, a) : b ? binomial_of(e, a, *b) : NAN;
}

FLB_KERNEL(sample) {
    Engine *e = engine_of(&v->engine);
    const double *a = (const double *)v->a.ptr, *b = (const double *)v->b.ptr;
    double *to = (double *)v->made.ptr;
    int64_t count = elements(&v->a);
    if (!e) return 0;
    for (int64_t i = 0; i < count && n->distribution == DISTRIBUTION_POISSON; i++)
        if (!(a[i] >= 0) && !status[0]) status[0] = n->negative + 1;
    begin();
    for (int64_t i = 0; i < count && !status[0]; i++)
        to[i] = sample(e, n->distribution, a[i], b ? b + i : NULL);
    end();
    return 0;
}

/* default_engine(): its state, an ndarray of bytes over the memory that compiled graphs draw from. */
PyObject *flb_default_engine(PyObject *self, PyObject *unused) {
    npy_intp n = sizeof(Engine);
    return PyArray_SimpleNewFromData(1, &n, NPY_UINT8, &default_engine);
}
