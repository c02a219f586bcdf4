/* softmax(scale Q K^T + mask) V and its derivative, without the matrix of scores in memory (Dao et al. 2022,
 * arXiv:2205.14135).
 *
 * Forward: a block of rows of one head against block after block of keys; scores live in the second-level
 * cache for the time of a block, sums and maxima of the rows are carried on. Kept for the backward: the
 * output and each row's logarithm of the sum of exponentials, from which the weights are made again. A causal
 * mask skips the keys that no row of a block sees. Products are those of product.c, on one thread each; heads
 * and blocks of rows (backward: heads of keys) go over the pool. Cuts depend on sizes only.
 *
 * Dropout comes as truth values (B, H, T, S) that were drawn before, a bit a weight, the same forward and
 * backward: rows of whole bytes, the first key the lowest bit.
 *
 * Shapes: queries (B, H, T, E), keys and values (B, H / group, S, E), mask any strides over (B, H, T, S). */
#include "kernels/elementary.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define ROWS_BY_LEVEL(...)                                                                          \
    BY_LEVEL_WITH(                                                                                  \
        optimize("O3", "no-math-errno", "associative-math", "no-signed-zeros", "no-trapping-math"), \
        __VA_ARGS__)
#define PARTS_LOOPS                                                                            \
    optimize("O3", "no-math-errno", "associative-math", "no-signed-zeros", "no-trapping-math", \
             "fp-contract=fast")
#define TRANSPOSED_LOOPS optimize("O3", "no-math-errno", "fp-contract=fast")
#define TRANSPOSED_BY_LEVEL(...) BY_LEVEL_WITH(TRANSPOSED_LOOPS, __VA_ARGS__)
#else
#define ROWS_BY_LEVEL BY_LEVEL
#define PARTS_LOOPS unused
#define TRANSPOSED_LOOPS unused
#define TRANSPOSED_BY_LEVEL BY_LEVEL
#endif

#define BLOCK (20 * TALL) /* keys of a block of transposed scores */
#define WIDE 512          /* the most keys of a block */
#define AHEAD 8           /* keys and values asked for before they are read, where they are FAR */
#define FAR (1 << 23)     /* bytes of keys and values that the nearer caches don't hold */
#define FEW 8             /* rows up to which products of matrices aren't worth their packing */

typedef struct {
    char *data;
    int64_t stride[4]; /* bytes */
} Operand;

typedef struct {
    int64_t batch, heads, group, queries, keys, width;
    int64_t high, wide, cuts; /* rows and keys of a block; blocks of rows of a head */
    int causal, f64, backward;
    int far; /* keys and values are read from memory */
    double scale;
    GemmFn gemm;
    Operand q, k, v, o, lse, g, gq, gk, gv,
        gm; /* gm: the cotangent of the mask, whose strides are 0 where it is broadcast */
    int64_t joint_batch, joint_heads; /* batches and heads of keys that one piece of the backward goes
                                         through, since they share places of gm */
    const uint8_t *kept;              /* dropout: weights that stay, times boost; bits */
    double boost;
    const char *mask;
    int truths; /* the mask has a byte for each score, 0: -infinity is added to it */
    int64_t mask_stride[4];
    char *packed; /* keys and values of all heads, for transposed scores */
    int *failed;
} Attention;

static void multiply(const Attention *a, char ta, char tb, int64_t m, int64_t n, int64_t k, const void *x,
                     int64_t ldx, const void *y, int64_t ldy, int accumulate, void *z, int64_t ldz) {
    flb_blas_call(a->gemm, a->f64, ta, tb, m, n, k, x, ldx, y, ldy, accumulate, z, ldz);
}

/* The bits of n keys from j0 on, a multiple of 8, as bytes 0 and 1; up to 7 more are written. */
static inline const uint8_t *as_bytes(const uint8_t *bits, int64_t j0, int64_t n, uint8_t *to) {
    for (int64_t j = 0; j < n; j += 8) {
        uint64_t x = (bits[(j0 + j) >> 3] * 0x0101010101010101u & 0x8040201008040201u) + 0x7f7f7f7f7f7f7f7fu;
        x = x >> 7 & 0x0101010101010101u;
        memcpy(to + j, &x, 8);
    }
    return to;
}

/* The same for a vector of numbers that aren't above 0: the rounded power of two stands in the low bits of a
 * sum with 1.5 * 2^23. */
#define EXP_LANES(x)                                                                                         \
    {                                                                                                        \
        B little = x < -87.3f;                                                                               \
        V y = GREATER((V){0} - 87.3f, x), sum_ = y * 1.44269504f + 12582912.f, n_ = sum_ - 12582912.f;       \
        V r_ = y - n_ * 0.693145752f - n_ * 1.42860677e-6f;                                                  \
        V p_ = 1.f +                                                                                         \
            r_ *                                                                                             \
                (1.f +                                                                                       \
                 r_ *                                                                                        \
                     (.5f +                                                                                  \
                      r_ *                                                                                   \
                          (.166666672f + r_ * (.0416666667f + r_ * (.00833345205f + r_ * .00138891447f))))); \
        p_ *= (V)(((B)sum_ - (0x4b400000 - 127)) << 23);                                                     \
        x = (V)((B)p_ & ~little);                                                                            \
    }
#define EACH_LANE(x) \
    for (int i_ = 0; i_ < LANES; i_++) x[i_] = exp(x[i_]);

#define T float
#define TI int32_t
#define EXPV EXP_LANES
#define NAME(x) x##_f32
#define EXP(x) exp_f32(x)
#define LOG(x) logf(x)
#include "kernels/attention_kernels.h"
#undef T
#undef TI
#undef EXPV
#undef NAME
#undef EXP
#undef LOG
#define T double
#define TI int64_t
#define EXPV EACH_LANE
#define NAME(x) x##_f64
#define EXP(x) exp(x)
#define LOG(x) log(x)
#include "kernels/attention_kernels.h"

static void attention_range(void *context, int64_t begin, int64_t end) {
    const Attention *a = context;
    if (a->packed) (a->f64 ? forward_transposed_f64 : forward_transposed_f32)(a, begin, end);
    else if (a->backward) (a->f64 ? backward_f64 : backward_f32)(a, begin, end);
    else (a->f64 ? forward_f64 : forward_f32)(a, begin, end);
}

static void pack_range(void *context, int64_t begin, int64_t end) {
    const Attention *a = context;
    (a->f64 ? pack_heads_f64 : pack_heads_f32)(a, begin, end);
}

static void run(Attention *a) {
    /* With AVX2 the library's products are as fast as ours, but they can't leave packing to be done once. */
    int transposed = !a->backward && a->queries > FEW && (flb_is_own(a->gemm) || flb_cpu_level() == 1);
    a->high = a->causal && a->queries <= 512 ? 32 : 64;
    a->wide = a->keys < WIDE ? a->keys : WIDE;
    if (transposed) {
        int64_t held = a->batch * (a->heads / a->group), keys = (a->keys + TALL - 1) / TALL * TALL,
                width = (a->width + TALL - 1) / TALL * TALL;
        if (a->queries <= 32) a->high = 32;
        a->wide = a->keys < BLOCK ? a->keys : BLOCK;
        if (!(a->packed = flb_api->scratch(held * (keys * a->width + width * a->keys) * (a->f64 ? 8 : 4)))) {
            *a->failed = 1;
            return;
        }
        flb_parallel(pack_range, a, 2 * held, 1 + 100000 / (a->keys * a->width));
    }
    a->cuts = (a->queries + a->high - 1) / a->high;
    int64_t total = a->backward ? a->batch * (a->heads / a->group) / (a->joint_batch * a->joint_heads)
                                : a->batch * a->heads * a->cuts;
    double flops = (a->backward ? 10. : 4.) * a->batch * a->heads * a->queries * a->keys * a->width;
    flb_parallel(attention_range, a, total, 1 + (int64_t)(5e5 * (double)total / flops));
    flb_api->free(a->packed);
}

/* A view as an operand; a stride of one row may be anything. */
static Operand operand(const View *x, int item) {
    Operand o = {.data = x->ptr};
    for (int d = 0; d < x->ndim; d++) o.stride[d] = x->strides[d];
    if (x->ndim == 4 && x->shape[2] == 1) o.stride[2] = x->shape[3] * item;
    return o;
}

/* Shared by forward and backward, which get the same numbers. */
static Attention opened(const View *q, const View *k, const View *v, const View *mask, const View *kept,
                        const flb_attention_numbers *n) {
    const int64_t *s = q->shape;
    int item = n->f64 ? 8 : 4;
    Attention a = {.batch = s[0],
                   .heads = s[1],
                   .group = s[1] / k->shape[1],
                   .queries = s[2],
                   .keys = k->shape[2],
                   .width = s[3],
                   .causal = n->causal != 0,
                   .f64 = n->f64 != 0,
                   .joint_batch = 1,
                   .joint_heads = 1,
                   .gemm = flb_blas_gemm(n->f64 != 0),
                   .far = k->shape[0] * k->shape[1] * k->shape[2] * 2 * s[3] * item > FAR,
                   .scale = n->scale,
                   .boost = n->boost,
                   .q = operand(q, item),
                   .k = operand(k, item),
                   .v = operand(v, item)};
    if (flb_given(mask)) {
        a.mask = mask->ptr;
        a.truths = n->truths != 0;
        for (int d = 0; d < 4; d++) a.mask_stride[d] = mask->strides[d];
    }
    if (flb_given(kept)) a.kept = (const uint8_t *)kept->ptr;
    return a;
}

FLB_KERNEL(attention) {
    int failed = 0, item = n->f64 ? 8 : 4;
    Attention a = opened(&v->query, &v->key, &v->value, &v->mask, &v->kept, n);
    if (!a.gemm) return -1; /* lowering asks for a library first */
    a.failed = &failed;
    a.o = operand(&v->out, item), a.lse = operand(&v->sums, item);
    run(&a);
    return failed ? -1 : 0;
}

FLB_KERNEL(attention_backward) {
    int failed = 0, item = n->f64 ? 8 : 4;
    _Static_assert(sizeof *n == sizeof(flb_attention_numbers), "the numbers of attention");
    Attention a = opened(&v->query, &v->key, &v->value, &v->mask, &v->kept, (const flb_attention_numbers *)n);
    if (!a.gemm) return -1;
    a.failed = &failed, a.backward = 1;
    a.g = operand(&v->cotangent, item), a.o = operand(&v->out, item), a.lse = operand(&v->sums, item);
    a.gq = operand(&v->d_query, item), a.gk = operand(&v->d_key, item), a.gv = operand(&v->d_value, item);
    if (flb_given(&v->d_mask)) {
        const View *x = &v->d_mask;
        int64_t size = item;
        for (int d = 0; d < x->ndim; d++) {
            size *= x->shape[d];
            if (x->shape[d] > 1) a.gm.stride[4 - x->ndim + d] = x->strides[d];
        }
        memset(a.gm.data = x->ptr, 0, size);
        if (!a.gm.stride[0]) a.joint_batch = a.batch;
        if (!a.gm.stride[1]) a.joint_heads = a.heads / a.group;
    }
    run(&a);
    return failed ? -1 : 0;
}
