/* Transforms of fft.c for one element type and one kind of CPU: included with T, LONG_T (an integer as wide),
 * LANES, NAME(x) and the target in force; it takes them back. */

#if LANES == 2
#define EACH_LANE(f, h) f(0, h), f(1, h)
#elif LANES == 4
#define EACH_LANE(f, h) f(0, h), f(1, h), f(2, h), f(3, h)
#elif LANES == 8
#define EACH_LANE(f, h) f(0, h), f(1, h), f(2, h), f(3, h), f(4, h), f(5, h), f(6, h), f(7, h)
#else
#define EACH_LANE(f, h)                                                                                 \
    f(0, h), f(1, h), f(2, h), f(3, h), f(4, h), f(5, h), f(6, h), f(7, h), f(8, h), f(9, h), f(10, h), \
        f(11, h), f(12, h), f(13, h), f(14, h), f(15, h)
#endif

typedef T NAME(Vector) __attribute__((vector_size(LANES * sizeof(T)), may_alias));
typedef T NAME(Loose) __attribute__((vector_size(LANES * sizeof(T)), aligned(sizeof(T)),
                                     may_alias)); /* in memory of the caller's */
typedef LONG_T NAME(Order) __attribute__((vector_size(LANES * sizeof(T))));
typedef struct {
    NAME(Vector) re, im;
} NAME(Point); /* one point of LANES lines, or LANES points of one */
#define V NAME(Vector)
#define U NAME(Loose)
#define Z NAME(Point)
#define INLINE_HERE static inline __attribute__((always_inline))
#define EACH _Pragma("GCC unroll 16") for
#define MIXED(a, b, of, h) __builtin_shuffle(a, b, (NAME(Order)){EACH_LANE(of, h)})
#define LOW(i, h) ((i) & (h) ? LANES + (i) - (h) : (i))
#define HIGH(i, h) ((i) & (h) ? LANES + (i) : (i) + (h))
#define EVEN(i, h) (2 * (i))
#define ODD(i, h) (2 * (i) + 1)
#define FIRST(i, h) ((i) % 2 * LANES + (i) / 2)
#define SECOND(i, h) ((i) % 2 * LANES + (i) / 2 + LANES / 2)
#define BACK(i, h) \
    ((i) ? LANES - (i) : LANES) /* what is before b, from the end: b[0], a[LANES - 1], ... a[1] */

/* ---- butterflies: a becomes its transform -------------------------------------------------------------- */

INLINE_HERE Z NAME(plus)(Z a, Z b) { return (Z){a.re + b.re, a.im + b.im}; }
INLINE_HERE Z NAME(minus)(Z a, Z b) { return (Z){a.re - b.re, a.im - b.im}; }
INLINE_HERE Z NAME(transposed)(Z a) { return (Z){a.im, -a.re}; } /* times -i */
INLINE_HERE Z NAME(scaled)(Z a, T by) { return (Z){a.re * by, a.im * by}; }
INLINE_HERE Z NAME(times)(Z a, T re, T im) { return (Z){a.re * re - a.im * im, a.re * im + a.im * re}; }
INLINE_HERE Z NAME(product)(Z a, Z b) { return (Z){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

INLINE_HERE void NAME(butterfly2)(Z *a) {
    Z b = a[0];
    a[0] = NAME(plus)(b, a[1]), a[1] = NAME(minus)(b, a[1]);
}

INLINE_HERE void NAME(butterfly4)(Z *a) {
    Z b = NAME(plus)(a[0], a[2]), c = NAME(minus)(a[0], a[2]), d = NAME(plus)(a[1], a[3]),
      e = NAME(transposed)(NAME(minus)(a[1], a[3]));
    a[0] = NAME(plus)(b, d), a[1] = NAME(plus)(c, e), a[2] = NAME(minus)(b, d), a[3] = NAME(minus)(c, e);
}

INLINE_HERE void NAME(butterfly8)(Z *a) {
    const T half = (T)0.70710678118654752440L;
    Z even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
    NAME(butterfly4)(even), NAME(butterfly4)(odd);
    Z b = odd[1], d = odd[3];
    odd[1] = (Z){(b.re + b.im) * half, (b.im - b.re) * half};
    odd[2] = NAME(transposed)(odd[2]);
    odd[3] = (Z){(d.im - d.re) * half, (d.re + d.im) * -half};
    EACH(int k = 0; k < 4; k++) a[k] = NAME(plus)(even[k], odd[k]), a[4 + k] = NAME(minus)(even[k], odd[k]);
}

#if LANES == 16
INLINE_HERE void NAME(butterfly16)(Z *a) {
    Z t[4][4];
    EACH(int k = 0; k < 4; k++) {
        Z b[4] = {a[k], a[4 + k], a[8 + k], a[12 + k]};
        NAME(butterfly4)(b);
        EACH(int j = 0; j < 4; j++)
        t[j][k] = j && k ? NAME(times)(b[j], (T)cosines16[j * k], -(T)sines16[j * k]) : b[j];
    }
    EACH(int j = 0; j < 4; j++) {
        NAME(butterfly4)(t[j]);
        EACH(int i = 0; i < 4; i++) a[j + 4 * i] = t[j][i];
    }
}
#endif

/* An odd radix: points k and R - k are taken together. cosines, sines: of 2 pi k / R. */
INLINE_HERE void NAME(butterfly_odd)(Z *a, const int R, const long double *cosines,
                                     const long double *sines) {
    enum { MOST = 7 };
    Z sum[MOST], difference[MOST], first = a[0], all = first;
    EACH(int k = 1; k <= R / 2; k++)
    sum[k] = NAME(plus)(a[k], a[R - k]), difference[k] = NAME(minus)(a[k], a[R - k]),
    all = NAME(plus)(all, sum[k]);
    EACH(int j = 1; j <= R / 2; j++) {
        Z c = first, s = {{0}, {0}};
        EACH(int k = 1; k <= R / 2; k++) {
            T by = (T)cosines[j * k % R], sine = (T)sines[j * k % R];
            c.re += sum[k].re * by, c.im += sum[k].im * by;
            s.re += difference[k].re * sine, s.im += difference[k].im * sine;
        }
        a[j] = (Z){c.re + s.im, c.im - s.re}, a[R - j] = (Z){c.re - s.im, c.im + s.re};
    }
    a[0] = all;
}
#define BUTTERFLY_ODD(R) \
    INLINE_HERE void NAME(butterfly##R)(Z * a) { NAME(butterfly_odd)(a, R, cosines##R, sines##R); }
BUTTERFLY_ODD(3)
BUTTERFLY_ODD(5)
BUTTERFLY_ODD(7)
BUTTERFLY_ODD(11)
BUTTERFLY_ODD(13)

/* One stage (Stockham's): x as (R, m, s), y as (m, R, s); the output k of p is turned by w^(p k), w the root
 * of order R m. */
#define STAGE(R)                                                                                       \
    static void NAME(stage##R)(const Z *restrict x, Z *restrict y, const T *w, int64_t m, int64_t s) { \
        for (int64_t q = 0; q < s; q++) {                                                              \
            Z a[R];                                                                                    \
            EACH(int k = 0; k < R; k++) a[k] = x[q + s * m * k];                                       \
            NAME(butterfly##R)(a);                                                                     \
            EACH(int k = 0; k < R; k++) y[q + s * k] = a[k];                                           \
        }                                                                                              \
        for (int64_t p = 1; p < m; p++) {                                                              \
            const T *root = w + 2 * (R - 1) * p;                                                       \
            for (int64_t q = 0; q < s; q++) {                                                          \
                Z a[R];                                                                                \
                EACH(int k = 0; k < R; k++) a[k] = x[q + s * (p + m * k)];                             \
                NAME(butterfly##R)(a);                                                                 \
                y[q + s * R * p] = a[0];                                                               \
                EACH(int k = 1; k < R; k++)                                                            \
                y[q + s * (R * p + k)] = NAME(times)(a[k], root[2 * k - 2], root[2 * k - 1]);          \
            }                                                                                          \
        }                                                                                              \
    }
STAGE(2)
STAGE(3)
STAGE(4)
STAGE(5)
STAGE(7)
STAGE(8)
STAGE(11)
STAGE(13)

/* The transforms of LANES lines of points, with room for as many; where they are: x or y. */
static Z *NAME(stages)(const Stages *plan, Z *x, Z *y) {
    int64_t m = plan->n, s = 1;
    for (int i = 0; i < plan->count; i++) {
        int radix = plan->radix[i];
        const T *w = plan->roots[i];
        m /= radix;
        switch (radix) {
        case 2: NAME(stage2)(x, y, w, m, s); break;
        case 3: NAME(stage3)(x, y, w, m, s); break;
        case 4: NAME(stage4)(x, y, w, m, s); break;
        case 5: NAME(stage5)(x, y, w, m, s); break;
        case 7: NAME(stage7)(x, y, w, m, s); break;
        case 8: NAME(stage8)(x, y, w, m, s); break;
        case 11: NAME(stage11)(x, y, w, m, s); break;
        default: NAME(stage13)(x, y, w, m, s);
        }
        s *= radix;
        Z *made = y;
        y = x, x = made;
    }
    return x;
}

/* ---- between lines and lanes --------------------------------------------------------------------------- */

#define EXCHANGE(h)                                                    \
    EACH(int i = 0; i < LANES; i++)                                    \
    if (!(i & (h))) {                                                  \
        V a = r[i], b = r[i + (h)];                                    \
        r[i] = MIXED(a, b, LOW, h), r[i + (h)] = MIXED(a, b, HIGH, h); \
    }
/* The transpose of LANES vectors (J. O. Eklundh, 1972). */
INLINE_HERE void NAME(transpose)(V *r) {
#if LANES > 8
    EXCHANGE(8)
#endif
#if LANES > 4
    EXCHANGE(4)
#endif
#if LANES > 2
    EXCHANGE(2)
#endif
    EXCHANGE(1)
}

/* Numbers i of the lines to vectors (i * gap) ^ swap; complex numbers are two numbers each. */
static void NAME(read)(const Side *side, int64_t count, V *to, int gap, int swap) {
    char *const *lines = side->lines;
    if (side->packed) {
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) {
            V r[LANES];
            EACH(int l = 0; l < LANES; l++) r[l] = *(const U *)(lines[l] + i * (int64_t)sizeof(T));
            NAME(transpose)(r);
            EACH(int j = 0; j < LANES; j++) to[((i + j) * gap) ^ swap] = r[j];
        }
        for (; i < count; i++)
            for (int l = 0; l < LANES; l++)
                to[(i * gap) ^ swap][l] = *(const T *)(lines[l] + i * (int64_t)sizeof(T));
    } else if (side->adjacent && !side->pairs) {
        for (int64_t i = 0; i < count; i++) to[(i * gap) ^ swap] = *(const U *)(lines[0] + i * side->step);
    } else if (side->adjacent) {
        for (int64_t i = 0; i < count; i += 2) {
            const U *at = (const U *)(lines[0] + i / 2 * side->step);
            V a = at[0], b = at[1];
            to[i ^ swap] = MIXED(a, b, EVEN, 0), to[(i + 1) ^ swap] = MIXED(a, b, ODD, 0);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = side->pairs ? i / 2 * side->step + i % 2 * (int64_t)sizeof(T) : i * side->step;
            for (int l = 0; l < LANES; l++) to[(i * gap) ^ swap][l] = *(const T *)(lines[l] + at);
        }
    }
}

/* The inverse of read, times `scale`. */
static void NAME(write)(const Side *side, int64_t count, const V *from, int gap, int swap, T scale) {
    char *const *lines = side->lines;
    if (side->packed) {
        int64_t i = 0;
        for (; i + LANES <= count; i += LANES) {
            V r[LANES];
            EACH(int j = 0; j < LANES; j++) r[j] = from[((i + j) * gap) ^ swap] * scale;
            NAME(transpose)(r);
            EACH(int l = 0; l < LANES; l++) * (U *)(lines[l] + i * (int64_t)sizeof(T)) = r[l];
        }
        for (; i < count; i++)
            for (int l = 0; l < LANES; l++)
                *(T *)(lines[l] + i * (int64_t)sizeof(T)) = from[(i * gap) ^ swap][l] * scale;
    } else if (side->adjacent && !side->pairs) {
        for (int64_t i = 0; i < count; i++)
            *(U *)(lines[0] + i * side->step) = from[(i * gap) ^ swap] * scale;
    } else if (side->adjacent) {
        for (int64_t i = 0; i < count; i += 2) {
            U *at = (U *)(lines[0] + i / 2 * side->step);
            V a = from[i ^ swap] * scale, b = from[(i + 1) ^ swap] * scale;
            at[0] = MIXED(a, b, FIRST, 0), at[1] = MIXED(a, b, SECOND, 0);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            int64_t at = side->pairs ? i / 2 * side->step + i % 2 * (int64_t)sizeof(T) : i * side->step;
            for (int l = 0; l < LANES; l++) *(T *)(lines[l] + at) = from[(i * gap) ^ swap][l] * scale;
        }
    }
}

/* ---- real lines of even length n, as n / 2 complex points ---------------------------------------------- */

/* Root number k of the plan. */
INLINE_HERE const T *NAME(root)(const Plan *plan, int64_t k) {
    return (const T *)plan->halves + k / LANES * 2 * LANES + k % LANES;
}

/* X[0 .. n/2] from the transform of the pairs. */
static void NAME(separate)(const Plan *plan, const Z *x, Z *y) {
    int64_t h = plan->n / 2;
    y[0] = (Z){x[0].re + x[0].im, (V){0}}, y[h] = (Z){x[0].re - x[0].im, (V){0}};
    for (int64_t k = 1; k <= h / 2; k++) {
        const T *w = NAME(root)(plan, k);
        Z a = x[k], b = {x[h - k].re, -x[h - k].im};
        Z sum = NAME(scaled)(NAME(plus)(a, b), (T)0.5),
          rest = NAME(times)(NAME(transposed)(NAME(minus)(a, b)), w[0] / 2, w[LANES] / 2);
        Z first = NAME(plus)(sum, rest), last = NAME(minus)(sum, rest);
        y[k] = first, y[h - k] = (Z){last.re, -last.im};
    }
}

/* The inverse, twice it; the parts of each point of y are swapped. */
static void NAME(unite)(const Plan *plan, const Z *x, Z *y) {
    int64_t h = plan->n / 2;
    y[0] = (Z){x[0].re - x[h].re, x[0].re + x[h].re};
    for (int64_t k = 1; k <= h / 2; k++) {
        const T *w = NAME(root)(plan, k);
        Z a = x[k], b = {x[h - k].re, -x[h - k].im};
        Z sum = NAME(plus)(a, b), rest = NAME(times)(NAME(minus)(a, b), w[0], -w[LANES]); /* times i below */
        y[k] = (Z){sum.im + rest.re, sum.re - rest.im};
        y[h - k] = (Z){rest.re - sum.im, sum.re + rest.im};
    }
}

/* ---- one block: LANES lines side by side --------------------------------------------------------------- */

static void NAME(block)(const Job *job, const Side *sides, Z *x, Z *y) {
    const Side *in = &sides[0], *out = &sides[1];
    const Plan *plan = job->plan;
    int64_t n = plan->n, half = n / 2 + 1;
    T scale = (T)job->scale;
    if (job->kind == TRANSFORM_FORWARD || job->kind == TRANSFORM_INVERSE) {
        int swap = job->kind == TRANSFORM_INVERSE;
        NAME(read)(in, 2 * n, (V *)x, 1, swap);
        NAME(write)(out, 2 * n, (V *)NAME(stages)(&plan->whole, x, y), 1, swap, scale);
    } else if (job->kind == TRANSFORM_TO_REAL) {
        NAME(read)(in, 2 * half, (V *)x, 1, 0);
        if (n % 2) {
            for (int64_t k = 1; k < half; k++) x[n - k] = (Z){-x[k].im, x[k].re};
            for (int64_t k = 1; k < half; k++) x[k] = (Z){x[k].im, x[k].re};
            x[0] = (Z){{0}, x[0].re};
            NAME(write)(out, n, (V *)NAME(stages)(&plan->whole, x, y), 2, 1, scale);
        } else {
            NAME(unite)(plan, x, y);
            NAME(write)(out, n, (V *)NAME(stages)(&plan->whole, y, x), 1, 1, scale);
        }
    } else {
        Z *made;
        if (n % 2) {
            NAME(read)(in, n, (V *)x, 2, 0);
            for (int64_t k = 0; k < n; k++) x[k].im = (V){0};
            made = NAME(stages)(&plan->whole, x, y);
            made[0].im = (V){0};
        } else {
            NAME(read)(in, n, (V *)x, 1, 0);
            Z *pairs = NAME(stages)(&plan->whole, x, y);
            made = pairs == x ? y : x;
            NAME(separate)(plan, pairs, made);
        }
        if (job->kind == TRANSFORM_FROM_REAL_WHOLE)
            for (int64_t k = half; k < n; k++) made[k] = (Z){made[n - k].re, -made[n - k].im};
        NAME(write)(out, job->kind == TRANSFORM_FROM_REAL_WHOLE ? 2 * n : 2 * half, (V *)made, 1, 0, scale);
    }
}

/* ---- one line: LANES of its points side by side (D. H. Bailey's four steps, 1990) ---------------------- */

INLINE_HERE Z NAME(apart)(const char *at, int swap) {
    V a = ((const U *)at)[0], b = ((const U *)at)[1], re = MIXED(a, b, EVEN, 0), im = MIXED(a, b, ODD, 0);
    return swap ? (Z){im, re} : (Z){re, im};
}

INLINE_HERE void NAME(together)(char *at, Z z, int swap) {
    V a = swap ? z.im : z.re, b = swap ? z.re : z.im;
    ((U *)at)[0] = MIXED(a, b, FIRST, 0), ((U *)at)[1] = MIXED(a, b, SECOND, 0);
}

#define BUTTERFLY_OF(lanes) BUTTERFLY_PASTED(lanes)
#define BUTTERFLY_PASTED(lanes) NAME(butterfly##lanes)

/* LANES m points in order to m elements: of output c of transforms of LANES points m apart, turned by the
 * root of what is left. From x, LANES points to an element, or from memory of the caller's. */
INLINE_HERE void NAME(cross)(const Plan *plan, const Z *x, const char *in, int swap, Z *y) {
    int64_t blocks = plan->inner.n / LANES;
    const Z *roots = plan->crossing;
    for (int64_t b = 0; b < blocks; b++, roots += LANES) {
        Z t[LANES];
        V re[LANES], im[LANES];
        EACH(int a = 0; a < LANES; a++)
        t[a] = x ? x[a * blocks + b] : NAME(apart)(in + (a * blocks + b) * 2 * (int64_t)sizeof(V), swap);
        BUTTERFLY_OF(LANES)(t);
        re[0] = t[0].re, im[0] = t[0].im;
        EACH(int c = 1; c < LANES; c++) {
            Z z = NAME(product)(t[c], roots[c]);
            re[c] = z.re, im[c] = z.im;
        }
        NAME(transpose)(re);
        NAME(transpose)(im);
        EACH(int i = 0; i < LANES; i++) y[b * LANES + i] = (Z){re[i], im[i]};
    }
}

/* The points h - k of the LANES points k of element d, conjugated; x[blocks] is the point h. */
INLINE_HERE Z NAME(mirror)(const Z *x, int64_t blocks, int64_t d) {
    Z a = x[blocks - d - 1], b = x[blocks - d];
    return (Z){MIXED(a.re, b.re, BACK, 0), -MIXED(a.im, b.im, BACK, 0)};
}

/* x and y have room for one element more than the points. */
static void NAME(single)(const Job *job, const char *in, char *out, Z *x, Z *y) {
    const Plan *plan = job->plan;
    int64_t blocks = plan->whole.n / LANES, bytes = 2 * sizeof(V);
    const Z *w = plan->halves;
    T scale = (T)job->scale;
    if (job->kind == TRANSFORM_FORWARD || job->kind == TRANSFORM_INVERSE) {
        int swap = job->kind == TRANSFORM_INVERSE;
        NAME(cross)(plan, NULL, in, swap, y);
        const Z *made = NAME(stages)(&plan->inner, y, x);
        for (int64_t d = 0; d < blocks; d++)
            NAME(together)(out + d * bytes, NAME(scaled)(made[d], scale), swap);
    } else if (job->kind == TRANSFORM_TO_REAL) {
        for (int64_t d = 0; d < blocks; d++) y[d] = NAME(apart)(in + d * bytes, 0);
        const T *last = (const T *)(in + blocks * bytes);
        y[blocks] =
            (Z){{last[0]},
                {0}}; /* the last point, the imaginary part of it doesn't count, nor that of the first */
        y[0].im[0] = 0;
        for (int64_t d = 0; d < blocks; d++) {
            Z a = y[d], b = NAME(mirror)(y, blocks, d), sum = NAME(plus)(a, b), rest = NAME(minus)(a, b);
            rest = NAME(product)(rest, (Z){w[d].re, -w[d].im});
            x[d] = (Z){sum.im + rest.re, sum.re - rest.im};
        }
        NAME(cross)(plan, x, NULL, 0, y);
        const Z *made = NAME(stages)(&plan->inner, y, x);
        for (int64_t d = 0; d < blocks; d++) NAME(together)(out + d * bytes, NAME(scaled)(made[d], scale), 1);
    } else {
        NAME(cross)(plan, NULL, in, 0, y);
        Z *made = NAME(stages)(&plan->inner, y, x);
        made[blocks] = made[0];
        T by = scale / 2;
        for (int64_t d = 0; d < blocks; d++) {
            Z a = made[d], b = NAME(mirror)(made, blocks, d),
              rest = NAME(product)(NAME(transposed)(NAME(minus)(a, b)), w[d]);
            NAME(together)(out + d * bytes, NAME(scaled)(NAME(plus)(NAME(plus)(a, b), rest), by), 0);
        }
        T *line = (T *)out;
        line[1] = 0;
        line[plan->n] = (made[0].re[0] - made[0].im[0]) * scale, line[plan->n + 1] = 0;
        if (job->kind == TRANSFORM_FROM_REAL_WHOLE)
            for (int64_t k = plan->n / 2 + 1; k < plan->n; k++)
                line[2 * k] = line[2 * (plan->n - k)], line[2 * k + 1] = -line[2 * (plan->n - k) + 1];
    }
}

static void NAME(range)(void *context, int64_t begin, int64_t end) {
    Job *job = context;
    const Plan *plan = job->plan;
    int across = !job->single;
    int64_t points = across ? plan->n + 2 : plan->whole.n / LANES + 1;
    Z few[2 * FEW], *x = few;
    char *memory = points > FEW ? flb_api->scratch(2 * points * sizeof(Z) + 64) : NULL;
    if (points > FEW) {
        if (!memory) {
            job->failed = 1;
            return;
        }
        x = (Z *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);
    }
    Cursor c;
    Side sides[2];
    go_to(job, begin * (across ? LANES : 1), &c);
    open_sides(job, sides, sizeof(T));
    for (int64_t i = begin; i < end; i++) {
        if (across) {
            next_lines(job, &c, job->lines - i * LANES, LANES, sides, sizeof(T));
            NAME(block)(job, sides, x, x + points);
        } else {
            NAME(single)(job, c.ptr[0], c.ptr[1], x, x + points);
            advance(job, &c);
        }
    }
    flb_api->free(memory);
}

#undef V
#undef U
#undef Z
#undef INLINE_HERE
#undef EACH
#undef MIXED
#undef LOW
#undef HIGH
#undef EVEN
#undef ODD
#undef FIRST
#undef SECOND
#undef BACK
#undef BUTTERFLY_ODD
#undef STAGE
#undef EXCHANGE
#undef BUTTERFLY_OF
#undef BUTTERFLY_PASTED
#undef EACH_LANE
#undef T
#undef LONG_T
#undef LANES
#undef NAME
