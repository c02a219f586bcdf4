/* The loops of attention.c for one element type: included with T, TI (integers as wide), NAME(x), EXP(x),
 * EXPV(v) (for a vector of numbers that aren't above 0) and LOG(x). */

#define BYTES 16
#define LEVEL(x) NAME(x##_plain)
#define TARGET(...) __attribute__((__VA_ARGS__))
#include "kernels/attention_vectors.h"
#if defined(__x86_64__)
#define BYTES 32
#define LEVEL(x) NAME(x##_half)
#define TARGET(...) __attribute__((target("avx2,fma"), __VA_ARGS__))
#include "kernels/attention_vectors.h"
#define BYTES 64
#define LEVEL(x) NAME(x##_wide)
#define TARGET(...) __attribute__((target("avx512f,avx512vl,avx512dq,fma"), __VA_ARGS__))
#include "kernels/attention_vectors.h"
#endif

#define LEVEL(x) {NAME(highest_##x), NAME(weigh_transposed_##x), NAME(score_##x), NAME(mix_##x)}
static const struct {
    T (*highest)(int64_t n, const T *s, T high);
    void (*weigh_transposed)(int causal, int64_t t0, int64_t high, int64_t j0, int64_t n, T *s, T *most,
                             T *sum, T *factor);
    void (*score)(int64_t rows, int64_t n, int64_t width, const T *q, int64_t ldq, const T *k, int64_t ldk,
                  T *s, int64_t ld, int far);
    void (*mix)(int64_t rows, int64_t n, int64_t width, const T *s, int64_t ld, const T *v, int64_t ldv, T *o,
                int64_t ldo, int more, int far);
} NAME(levels)[] = {
    LEVEL(plain),
#if defined(__x86_64__)
    LEVEL(half),
    LEVEL(wide),
#endif
};
#undef LEVEL
#define BY_VECTORS NAME(levels)[flb_cpu_level()]

#define KEPT_BYTES ((a->keys + 7) / 8)
#define KEPT_ROW(t) (kept + (t) * KEPT_BYTES)

#define SCALE_AND_MASK                                                                                     \
    {                                                                                                      \
        int64_t along = a->mask_stride[3];                                                                 \
        const char *m = mask ? mask + (t0 + r) * a->mask_stride[2] + j0 * along : NULL;                    \
        if (m && a->truths)                                                                                \
            for (int64_t j = 0; j < seen; j++) s[j] = s[j] * scale + (m[j * along] ? (T)0 : -(T)INFINITY); \
        else if (m)                                                                                        \
            for (int64_t j = 0; j < seen; j++) s[j] = s[j] * scale + *(const T *)(m + j * along);          \
        else                                                                                               \
            for (int64_t j = 0; j < seen; j++) s[j] *= scale;                                              \
    }

/* s = exp(s - high), and their sum. GCC makes vectors of 256 bits of this loop where it stands alone, but not
 * inside of longer functions. */
ROWS_BY_LEVEL(static void, NAME(exponentials), (int64_t n, T *s, T high, T *sum), (n, s, high, sum)) {
    T total = 0;
    for (int64_t j = 0; j < n; j++) {
        s[j] = EXP(s[j] - high);
        total += s[j];
    }
    *sum = total;
}

/* Rows of scores to weights: s[r] = exp(scale * s[r] + mask - the row's maximum so far), with sums and maxima
 * carried from block to block of keys; the outputs made so far are scaled to the new maximum. Columns from j0
 * on; a row t sees columns up to t where `causal`. The sums are those of all weights, of which dropout then
 * leaves the `kept`. */
ROWS_BY_LEVEL(static void, NAME(weigh),
              (const Attention *a, int64_t t0, int64_t rows, int64_t j0, int64_t n, int64_t ld,
               const char *mask, const uint8_t *kept, T *s, T *most, T *sum, T *out, int64_t ldo),
              (a, t0, rows, j0, n, ld, mask, kept, s, most, sum, out, ldo)) {
    T scale = (T)a->scale, boost = (T)a->boost;
    for (int64_t r = 0; r < rows; r++, s += ld) {
        int64_t seen = a->causal ? t0 + r + 1 - j0 : n;
        seen = seen < 0 ? 0 : seen > n ? n : seen;
        SCALE_AND_MASK
        T high = BY_VECTORS.highest(seen, s, most[r]);
        if (high == -INFINITY) { /* nothing to see yet, or only what is no number */
            int odd = 0;
            for (int64_t j = 0; j < seen; j++) odd |= s[j] != s[j];
            if (!odd) {
                for (int64_t j = 0; j < n; j++) s[j] = 0;
                continue;
            }
            high = 0;
        }
        T total;
        NAME(exponentials)(seen, s, high, &total);
        for (int64_t j = seen; j < n; j++) s[j] = 0;
        if (kept) {
            uint8_t bytes[WIDE];
            const uint8_t *k = as_bytes(KEPT_ROW(t0 + r), j0, seen, bytes);
            for (int64_t j = 0; j < seen; j++) s[j] *= (T)k[j] * boost;
        }
        T factor = most[r] == high ? 1 : EXP(most[r] - high);
        sum[r] = sum[r] * factor + total;
        most[r] = high;
        if (j0 && factor != 1)
            for (int64_t e = 0; e < a->width; e++) out[r * ldo + e] *= factor;
    }
}

ROWS_BY_LEVEL(static void, NAME(finish),
              (const Attention *a, int64_t rows, const T *most, const T *sum, T *out, int64_t ldo, T *lse,
               int64_t step),
              (a, rows, most, sum, out, ldo, lse, step)) {
    for (int64_t r = 0; r < rows; r++) {
        T by = sum[r] == 0 ? 0 : 1 / sum[r]; /* a row that sees nothing is 0 */
        for (int64_t e = 0; e < a->width; e++) out[r * ldo + e] *= by;
        lse[r * step] = sum[r] == 0 ? -INFINITY : most[r] + LOG(sum[r]);
    }
}

/* A row of scores s to weights, d from cotangents of the weights to those of the products. */
ROWS_BY_LEVEL(static void, NAME(weights), (int64_t n, T *s, T *d, T whole, T sub, T outer),
              (n, s, d, whole, sub, outer)) {
    for (int64_t j = 0; j < n; j++) {
        T p = EXP(s[j] - whole), g = p * (d[j] - sub) * outer;
        s[j] = p;
        d[j] = p == 0 ? 0 : g; /* what isn't seen has no part in it, whatever its value */
    }
}

/* s: scores to weights, by their logarithmic sums, less what dropout took; d: cotangents of the weights to
 * those of the products. The cotangent of the mask, where there is one, is added to at gm. */
ROWS_BY_LEVEL(static void, NAME(differentiate),
              (const Attention *a, int64_t t0, int64_t rows, int64_t j0, int64_t n, int64_t ld,
               const char *mask, const uint8_t *kept, char *gm, T *s, T *d, const T *lse, int64_t step,
               const T *dot),
              (a, t0, rows, j0, n, ld, mask, kept, gm, s, d, lse, step, dot)) {
    T scale = (T)a->scale, outer = gm ? 1 : scale, boost = (T)a->boost;
    for (int64_t r = 0; r < rows; r++, s += ld, d += ld) {
        int64_t seen = a->causal ? t0 + r + 1 - j0 : n;
        seen = seen < 0 ? 0 : seen > n ? n : seen;
        T whole = lse[r * step], sub = dot[r];
        if (whole == -INFINITY) seen = 0;
        SCALE_AND_MASK
        uint8_t bytes[WIDE];
        const uint8_t *k = kept ? as_bytes(KEPT_ROW(t0 + r), j0, seen, bytes) : NULL;
        if (kept)
            for (int64_t j = 0; j < seen; j++) d[j] *= (T)k[j] * boost;
        NAME(weights)(seen, s, d, whole, sub, outer);
        for (int64_t j = seen; j < n; j++) s[j] = d[j] = 0;
        if (kept)
            for (int64_t j = 0; j < seen; j++) s[j] *= (T)k[j] * boost;
        if (!gm) continue;
        char *to = gm + (t0 + r) * a->gm.stride[2] + j0 * a->gm.stride[3];
        for (int64_t j = 0; j < seen; j++) {
            *(T *)(to + j * a->gm.stride[3]) += d[j];
            d[j] *= scale;
        }
    }
}

ROWS_BY_LEVEL(static void, NAME(dots),
              (int64_t rows, int64_t width, const T *g, int64_t ldg, const T *o, int64_t ldo, T *to),
              (rows, width, g, ldg, o, ldo, to)) {
    for (int64_t r = 0; r < rows; r++) {
        T x = 0;
        for (int64_t e = 0; e < width; e++) x += g[r * ldg + e] * o[r * ldo + e];
        to[r] = x;
    }
}

#define AT(what, b, h) ((T *)(a->what.data + (b) * a->what.stride[0] + (h) * a->what.stride[1]))
#define MASK(b, h) (a->mask ? a->mask + (b) * a->mask_stride[0] + (h) * a->mask_stride[1] : NULL)
#define KEPT(b, h) (a->kept ? a->kept + ((b) * a->heads + (h)) * a->queries * KEPT_BYTES : NULL)
#define ROW(what) (a->what.stride[2] / (int64_t)sizeof(T))

#include "kernels/attention_transposed.h"

/* Pieces: a block of rows of a head. */
static void NAME(forward)(const Attention *a, int64_t begin, int64_t end) {
    char *room = flb_api->scratch((a->high * (a->wide + 2)) * sizeof(T));
    if (!room) {
        *a->failed = 1;
        return;
    }
    T *s = (T *)room, *most = s + a->high * a->wide, *sum = most + a->high;
    int64_t ldq = ROW(q), ldk = ROW(k), ldv = ROW(v), ldo = ROW(o), step = ROW(lse);
    for (int64_t i = begin; i < end; i++) {
        int64_t t0 = i % a->cuts * a->high, h = i / a->cuts % a->heads, b = i / a->cuts / a->heads;
        int64_t t1 = t0 + a->high < a->queries ? t0 + a->high : a->queries, rows = t1 - t0,
                last = a->causal && t1 < a->keys ? t1 : a->keys;
        const char *mask = MASK(b, h);
        const uint8_t *kept = KEPT(b, h);
        const T *q = AT(q, b, h) + t0 * ldq, *k = AT(k, b, h / a->group), *v = AT(v, b, h / a->group);
        T *o = AT(o, b, h) + t0 * ldo;
        for (int64_t r = 0; r < rows; r++) most[r] = -INFINITY, sum[r] = 0;
        for (int64_t j = 0; j < last; j += a->wide) {
            int64_t n = j + a->wide < last ? a->wide : last - j;
            if (rows <= FEW)
                BY_VECTORS.score(rows, n, a->width, q, ldq, k + j * ldk, ldk, s, a->wide, a->far);
            else multiply(a, 'N', 'T', rows, n, a->width, q, ldq, k + j * ldk, ldk, 0, s, a->wide);
            NAME(weigh)(a, t0, rows, j, n, a->wide, mask, kept, s, most, sum, o, ldo);
            if (rows <= FEW)
                BY_VECTORS.mix(rows, n, a->width, s, a->wide, v + j * ldv, ldv, o, ldo, j > 0, a->far);
            else multiply(a, 'N', 'N', rows, a->width, n, s, a->wide, v + j * ldv, ldv, j > 0, o, ldo);
        }
        NAME(finish)(a, rows, most, sum, o, ldo, AT(lse, b, h) + t0 * step, step);
    }
    flb_api->free(room);
}

/* Pieces: a head of keys, with all heads of queries that share it; heads and batches that share the cotangent
 * of a mask are one piece. */
static void NAME(backward)(const Attention *a, int64_t begin, int64_t end) {
    char *room = flb_api->scratch((a->high * (2 * a->wide + 1)) * sizeof(T));
    if (!room) {
        *a->failed = 1;
        return;
    }
    T *s = (T *)room, *d = s + a->high * a->wide, *dot = d + a->high * a->wide;
    int64_t ldq = ROW(q), ldk = ROW(k), ldv = ROW(v), ldo = ROW(o), ldg = ROW(g), step = ROW(lse),
            held = a->heads / a->group;
    int64_t ldgq = ROW(gq), ldgk = ROW(gk), ldgv = ROW(gv), joint = a->joint_batch * a->joint_heads,
            across = held / a->joint_heads;
    for (int64_t i = begin * joint; i < end * joint; i++) {
        int64_t piece = i / joint, inside = i % joint;
        int64_t b = piece / across * a->joint_batch + inside / a->joint_heads,
                one = piece % across * a->joint_heads + inside % a->joint_heads;
        const T *k = AT(k, b, one), *v = AT(v, b, one);
        T *gk = AT(gk, b, one), *gv = AT(gv, b, one);
        for (int64_t j = 0; j < a->keys; j++)
            memset(gk + j * ldgk, 0, a->width * sizeof(T)), memset(gv + j * ldgv, 0, a->width * sizeof(T));
        for (int64_t h = one * a->group; h < (one + 1) * a->group; h++)
            for (int64_t t0 = 0; t0 < a->queries; t0 += a->high) {
                int64_t t1 = t0 + a->high < a->queries ? t0 + a->high : a->queries, rows = t1 - t0,
                        last = a->causal && t1 < a->keys ? t1 : a->keys;
                const char *mask = MASK(b, h);
                const uint8_t *kept = KEPT(b, h);
                char *gm = a->gm.data ? (char *)AT(gm, b, h) : NULL;
                const T *q = AT(q, b, h) + t0 * ldq, *g = AT(g, b, h) + t0 * ldg, *o = AT(o, b, h) + t0 * ldo,
                        *lse = AT(lse, b, h) + t0 * step;
                T *gq = AT(gq, b, h) + t0 * ldgq;
                NAME(dots)(rows, a->width, g, ldg, o, ldo, dot);
                for (int64_t j = 0; j < last; j += a->wide) {
                    int64_t n = j + a->wide < last ? a->wide : last - j;
                    multiply(a, 'N', 'T', rows, n, a->width, q, ldq, k + j * ldk, ldk, 0, s, a->wide);
                    multiply(a, 'N', 'T', rows, n, a->width, g, ldg, v + j * ldv, ldv, 0, d, a->wide);
                    NAME(differentiate)(a, t0, rows, j, n, a->wide, mask, kept, gm, s, d, lse, step, dot);
                    multiply(a, 'T', 'N', n, a->width, rows, s, a->wide, g, ldg, 1, gv + j * ldgv, ldgv);
                    multiply(a, 'N', 'N', rows, a->width, n, d, a->wide, k + j * ldk, ldk, j > 0, gq, ldgq);
                    multiply(a, 'T', 'N', n, a->width, rows, d, a->wide, q, ldq, 1, gk + j * ldgk, ldgk);
                }
            }
    }
    flb_api->free(room);
}
#undef AT
#undef MASK
#undef KEPT
#undef KEPT_ROW
#undef SCALE_AND_MASK
#undef KEPT_BYTES
#undef ROW
#undef BY_VECTORS
