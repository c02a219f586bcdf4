/* y = x W^T with W in 8 or 4 bits: the weights become float32 inside of the product, so that memory is read a
 * fourth or an eighth as often.
 *
 * Few rows (one more token) are dot products along K: bytes or halves of bytes are widened in registers, and
 * each is read once for four rows. Many rows: a block of 32 columns of y is widened slice by slice of K,
 * transposed, and multiplied by the register kernels of product.c while it is in the first-level cache.
 * Columns of y go over the pool; sums don't depend on how.
 *
 * Shapes: x (M, K) and y (M, N), float32. 8 bits: W (N, K) and scales (N), a weight is w * scale. 4 bits: W
 * (N, K / 2), scales (K / group, N, 2), a weight is (w - 8) * scale + zero; of 32 weights the first 16 are
 * the low halves of 16 bytes, the rest the high ones. */
#include "runtime/graph.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct {
    int64_t m, n, k, group; /* group 0: 8 bits */
    const float *x, *scales;
    const void *weight;
    float *y, *sums, *packed; /* sums (M, K / group) of x, for the zeros; packed: x in panels of rows, when
                                 they are many */
    int *failed;
} Product;

#define FEW 8    /* rows that are dot products */
#define WIDE 32  /* columns of a block */
#define DEEP 384 /* most of K in a slice */
#define EACH _Pragma("GCC unroll 16") for

#if defined(__GNUC__) && !defined(__clang__)
#define FAST optimize("O3", "fp-contract=fast")
#else
#define FAST unused
#endif

/* What a vector is made of: BYTES_AT of signed bytes as floats, PAIRS_AT of bytes as integers, of whose
 * halves LOW and HIGH are w - 8. */
#if defined(__x86_64__)
#define LANES 16
#define NAME(x) wide_##x
#define TARGET target("avx512f,avx512vl,avx512dq,fma"), FAST
#define BYTES_AT(p) ((V)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(p)))))
#define PAIRS_AT(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define LOW(x) \
    ((V)_mm512_permutexvar_ps(x, _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7)))
#define HIGH(x) LOW(_mm512_srli_epi32(x, 4))
#include "kernels/weight_only_kernels.h"
#define LANES 8
#define NAME(x) half_##x
#define TARGET target("avx2,fma"), FAST
#define BYTES_AT(p) ((V)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(p)))))
#define PAIRS_AT(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p)))
#define LESS_EIGHT(x) ((V)_mm256_cvtepi32_ps(_mm256_sub_epi32(x, _mm256_set1_epi32(8))))
#define LOW(x) LESS_EIGHT(_mm256_and_si256(x, _mm256_set1_epi32(15)))
#define HIGH(x) LESS_EIGHT(_mm256_srli_epi32(x, 4))
#include "kernels/weight_only_kernels.h"
#endif
#define LANES 4
#define NAME(x) plain_##x
#define TARGET FAST
#define FOUR(t, p) \
    ((Four){((const t *)(p))[0], ((const t *)(p))[1], ((const t *)(p))[2], ((const t *)(p))[3]})
#define BYTES_AT(p) __builtin_convertvector(FOUR(int8_t, p), V)
#define PAIRS_AT(p) FOUR(uint8_t, p)
#define LOW(x) __builtin_convertvector(((x) & 15) - 8, V)
#define HIGH(x) __builtin_convertvector(((x) >> 4) - 8, V)
typedef int32_t Four __attribute__((vector_size(16)));
#include "kernels/weight_only_kernels.h"

typedef void (*Dots)(const Product *, int64_t, int64_t);
typedef void (*Widen)(const Product *, int64_t, int64_t, int64_t, int64_t, float *);
#define LEVEL(x)                                                             \
    {                                                                        \
        {{x##_bytes_1x1, x##_bytes_1x4, x##_bytes_4x2}, x##_bytes}, {        \
            {x##_nibbles_1x1, x##_nibbles_1x4, x##_nibbles_4x2}, x##_nibbles \
        }                                                                    \
    }
static const struct {
    Dots dots[3]; /* 1 by 1, 1 by 4, 4 by 2 */
    Widen widen;
} levels[][2] = {
    LEVEL(plain),
#if defined(__x86_64__)
    LEVEL(half),
    LEVEL(wide),
#endif
};

static void few_rows(void *context, int64_t begin, int64_t end) {
    const Product *a = context;
    const Dots *dots = levels[flb_cpu_level()][a->group != 0].dots;
    for (int64_t i = 4 * begin; i < 4 * end && i < a->n; i += 4) {
        int64_t r = 0, stop = i + 4 < a->n ? i + 4 : a->n;
        for (; stop == i + 4 && r + 4 <= a->m; r += 4) dots[2](a, r, i), dots[2](a, r, i + 2);
        for (; r < a->m; r++)
            if (stop == i + 4) dots[1](a, r, i);
            else
                for (int64_t j = i; j < stop; j++) dots[0](a, r, j);
    }
}

static void many_rows(void *context, int64_t begin, int64_t end) {
    const Product *a = context;
    Widen widen = levels[flb_cpu_level()][a->group != 0].widen;
    int64_t cut = a->n % WIDE;
    float *rows = flb_api->scratch((2 * DEEP * WIDE + (cut ? a->m * WIDE : 0)) * sizeof(float)),
          *transposed = rows + DEEP * WIDE, *edge = transposed + DEEP * WIDE;
    if (!rows) {
        *a->failed = 1;
        return;
    }
    for (int64_t b = begin; b < end; b++) {
        int64_t i = b * WIDE, wide = i + WIDE <= a->n ? WIDE : cut;
        float *y = wide == WIDE ? a->y + i : edge;
        for (int64_t p0 = 0; p0 < a->k; p0 += DEEP) {
            int64_t deep = p0 + DEEP < a->k ? DEEP : a->k - p0;
            widen(a, i, wide, p0, deep, rows);
            if (wide < WIDE) memset(rows + wide * deep, 0, (WIDE - wide) * deep * sizeof(float));
            flb_transpose(0, WIDE, deep, rows, deep, transposed, WIDE);
            flb_multiply_panels(0, a->m, 0, a->m, WIDE, a->k, p0, deep, a->packed, transposed, WIDE, y,
                                wide == WIDE ? a->n : WIDE, p0 > 0);
        }
        for (int64_t r = 0; wide < WIDE && r < a->m; r++)
            memcpy(a->y + r * a->n + i, edge + r * WIDE, wide * sizeof(float));
    }
    flb_api->free(rows);
}

static void sum_groups(const Product *a) {
    for (int64_t g = 0; g < a->m * a->k / a->group; g++) {
        const float *x = a->x + g * a->group;
        float s[16] = {0}, total = 0;
        for (int64_t p = 0; p < a->group; p += 16)
            for (int l = 0; l < 16; l++) s[l] += x[p + l];
        for (int l = 0; l < 16; l++) total += s[l];
        a->sums[g] = total;
    }
}

FLB_KERNEL(weight_only) {
    int failed = 0;
    Product a = {.m = v->x.shape[0],
                 .n = v->weight.shape[0],
                 .k = v->x.shape[1],
                 .group = n->group,
                 .x = (const float *)v->x.ptr,
                 .weight = v->weight.ptr,
                 .scales = (const float *)v->scales.ptr,
                 .y = (float *)v->made.ptr,
                 .failed = &failed};
    int few = a.m <= FEW;
    if (!a.m || !a.n) return 0;
    if (!a.k) return memset(a.y, 0, a.m * a.n * sizeof(float)), 0;
    float *room = NULL;
    if (few && a.group) room = a.sums = flb_api->scratch(a.m * (a.k / a.group) * sizeof(float));
    else if (!few) room = a.packed = flb_api->scratch((a.m + TALL - 1) / TALL * TALL * a.k * sizeof(float));
    if (!room && (!few || a.group)) return -1;
    if (few) {
        if (a.group) sum_groups(&a);
        flb_parallel(few_rows, &a, (a.n + 3) / 4, 1 + 200000 / (4 * a.m * a.k));
    } else {
        flb_pack_rows(0, 0, a.m, a.k, a.x, a.k, a.packed);
        flb_parallel(many_rows, &a, (a.n + WIDE - 1) / WIDE, 1 + 500000 / (WIDE * a.m * a.k));
    }
    flb_api->free(room);
    return failed ? -1 : 0;
}
