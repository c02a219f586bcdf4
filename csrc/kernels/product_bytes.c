/* C = (A - a_zero) (B - b_zero)^T in whole numbers: A (m, k) and B (n, k) of bytes, signed or not, C (m, n)
 * of int32. a_zero is a number, b_zero a number or one for each row of B; either may be left out.
 *
 * Rows of both lie along K, so an element of C is a dot product. Four rows of A meet four of B in registers.
 * The sums are exact while k is below 32,768, and wrap around as int32 does above. With VNNI the processor
 * multiplies unsigned bytes by signed ones: a signed A has 128 added, an unsigned B 128 taken away, and what
 * that changed is put right by sums of rows, as zero points are. Elsewhere bytes become 16-bit integers in
 * registers, whose products are exact in pairs. Rows of C go over the pool when there are many, else its
 * columns; sums don't depend on how. */
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

typedef struct {
    int64_t m, n, k;
    int a_signed, b_signed, by_columns;
    const uint8_t *a, *b;
    int32_t *c;
    int32_t *row_sums, *column_sums; /* sums of the rows of A and B, where they are needed */
    uint32_t a_zero;
    uint32_t *b_zeros; /* for each row of B; NULL: none has one */
} Product;

#define TILE 4
#define EACH _Pragma("GCC unroll 16") for

/* --- dots of `rows` rows from `a` with `columns` rows from `b` --------------------------------------------
 */

static inline int32_t wide_of(const uint8_t *p, int is_signed) { return is_signed ? (int8_t)*p : *p; }

static void plain_dots(const Product *p, int64_t i, int rows, int64_t j, int columns) {
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++) {
            const uint8_t *a = p->a + (i + r) * p->k, *b = p->b + (j + c) * p->k;
            uint32_t sum = 0;
            for (int64_t q = 0; q < p->k; q++)
                sum += (uint32_t)(wide_of(a + q, p->a_signed) * wide_of(b + q, p->b_signed));
            p->c[(i + r) * p->n + j + c] = (int32_t)sum;
        }
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni")))

AVX2 static inline __m256i half_load(const uint8_t *p, int is_signed) {
    __m128i bytes = _mm_loadu_si128((const __m128i *)p);
    return is_signed ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

AVX2 static inline int32_t half_total(__m256i x) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
}

/* `rows` and `columns` are constants where it is called with full tiles, so that the sums stay in registers.
 */
AVX2 static inline __attribute__((always_inline)) void half_block(const Product *p, int64_t i, int rows,
                                                                  int64_t j, int columns) {
    int64_t k = p->k, whole = k / 16 * 16;
    const uint8_t *a = p->a + i * k, *b = p->b + j * k;
    __m256i sums[2][TILE];
    EACH(int r = 0; r < rows; r++) EACH(int c = 0; c < columns; c++) sums[r][c] = _mm256_setzero_si256();
    for (int64_t q = 0; q < whole; q += 16) {
        __m256i x[2];
        EACH(int r = 0; r < rows; r++) x[r] = half_load(a + r * k + q, p->a_signed);
        EACH(int c = 0; c < columns; c++) {
            __m256i y = half_load(b + c * k + q, p->b_signed);
            EACH(int r = 0; r < rows; r++)
            sums[r][c] = _mm256_add_epi32(sums[r][c], _mm256_madd_epi16(x[r], y));
        }
    }
    EACH(int r = 0; r < rows; r++) EACH(int c = 0; c < columns; c++) {
        uint32_t sum = (uint32_t)half_total(sums[r][c]);
        for (int64_t q = whole; q < k; q++)
            sum += (uint32_t)(wide_of(a + r * k + q, p->a_signed) * wide_of(b + c * k + q, p->b_signed));
        p->c[(i + r) * p->n + j + c] = (int32_t)sum;
    }
}

AVX2 static void half_dots(const Product *p, int64_t i, int rows, int64_t j, int columns) {
    int r = 0;
    for (; columns == TILE && r + 2 <= rows; r += 2) half_block(p, i + r, 2, j, TILE);
    for (; r < rows; r++)
        for (int c = 0; c < columns; c++) half_block(p, i + r, 1, j + c, 1);
}

/* Four by four; a mask cuts the last bytes, so that nothing is read behind a row. */
VNNI static void wide_tile(const Product *p, int64_t i, int64_t j) {
    const __m512i a_turn = _mm512_set1_epi8(p->a_signed ? (char)0x80 : 0);
    const __m512i b_turn = _mm512_set1_epi8(p->b_signed ? 0 : (char)0x80);
    const uint8_t *a = p->a + i * p->k, *b = p->b + j * p->k;
    __m512i sums[TILE][TILE];
    EACH(int r = 0; r < TILE; r++) EACH(int c = 0; c < TILE; c++) sums[r][c] = _mm512_setzero_si512();
    for (int64_t q = 0; q < p->k; q += 64) {
        __mmask64 mask = p->k - q >= 64 ? ~0ULL : (1ULL << (p->k - q)) - 1;
        __m512i x[TILE], y[TILE];
        EACH(int r = 0; r < TILE; r++) {
            x[r] = _mm512_maskz_mov_epi8(
                mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a + r * p->k + q), a_turn));
            y[r] = _mm512_maskz_mov_epi8(
                mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, b + r * p->k + q), b_turn));
        }
        EACH(int r = 0; r < TILE; r++)
        EACH(int c = 0; c < TILE; c++) sums[r][c] = _mm512_dpbusd_epi32(sums[r][c], x[r], y[c]);
    }
    uint32_t a_more = p->a_signed ? 128 : 0, b_less = p->b_signed ? 0 : 128;
    EACH(int r = 0; r < TILE; r++) EACH(int c = 0; c < TILE; c++) {
        uint32_t sum = (uint32_t)_mm512_reduce_add_epi32(sums[r][c]);
        if (b_less) sum += b_less * (uint32_t)p->row_sums[i + r] + (uint32_t)p->k * a_more * b_less;
        if (a_more) sum -= a_more * (uint32_t)p->column_sums[j + c];
        p->c[(i + r) * p->n + j + c] = (int32_t)sum;
    }
}

VNNI static void wide_dots(const Product *p, int64_t i, int rows, int64_t j, int columns) {
    if (rows == TILE && columns == TILE) wide_tile(p, i, j);
    else half_dots(p, i, rows, j, columns);
}
#endif

typedef void (*Dots)(const Product *, int64_t, int, int64_t, int);

static int has_vnni(void) {
#if defined(__x86_64__)
    return flb_cpu_level() == 2 && __builtin_cpu_supports("avx512vnni");
#else
    return 0;
#endif
}

static Dots dots_here(void) {
#if defined(__x86_64__)
    return has_vnni() ? wide_dots : flb_cpu_level() ? half_dots : plain_dots;
#else
    return plain_dots;
#endif
}

/* --- the whole product ------------------------------------------------------------------------------------
 */

/* Sums of the bytes of each row. */
#define SUM(name, T)                                                                        \
    BY_LEVEL(static void, name, (const uint8_t *x, int64_t rows, int64_t k, int32_t *sums), \
             (x, rows, k, sums)) {                                                          \
        for (int64_t r = 0; r < rows; r++) {                                                \
            int32_t sum = 0;                                                                \
            for (int64_t q = 0; q < k; q++) sum += (T)x[r * k + q];                         \
            sums[r] = sum;                                                                  \
        }                                                                                   \
    }
SUM(sum_unsigned, uint8_t)
SUM(sum_signed, int8_t)

#if defined(__x86_64__)
VNNI static void wide_sums(const uint8_t *x, int64_t rows, int64_t k, int is_signed, int32_t *sums) {
    const __m512i ones = _mm512_set1_epi8(1);
    for (int64_t r = 0; r < rows; r++) {
        __m512i sum = _mm512_setzero_si512();
        for (int64_t q = 0; q < k; q += 64) {
            __mmask64 mask = k - q >= 64 ? ~0ULL : (1ULL << (k - q)) - 1;
            __m512i bytes = _mm512_maskz_loadu_epi8(mask, x + r * k + q);
            sum = is_signed ? _mm512_dpbusd_epi32(sum, ones, bytes) : _mm512_dpbusd_epi32(sum, bytes, ones);
        }
        sums[r] = _mm512_reduce_add_epi32(sum);
    }
}
#endif

static void sum_rows(const uint8_t *x, int64_t rows, int64_t k, int is_signed, int32_t *sums) {
#if defined(__x86_64__)
    if (has_vnni()) {
        wide_sums(x, rows, k, is_signed, sums);
        return;
    }
#endif
    (is_signed ? sum_signed : sum_unsigned)(x, rows, k, sums);
}

/* What the zero points take away, of `rows` rows and `columns` columns. */
static void subtract_zeros(const Product *p, int64_t i, int64_t rows, int64_t j, int64_t columns) {
    for (int64_t r = i; r < i + rows; r++) {
        int32_t *c = p->c + r * p->n;
        if (p->b_zeros)
            for (int64_t q = j; q < j + columns; q++)
                c[q] = (int32_t)((uint32_t)c[q] - p->b_zeros[q] * (uint32_t)p->row_sums[r]);
        if (p->a_zero && p->b_zeros)
            for (int64_t q = j; q < j + columns; q++)
                c[q] = (int32_t)((uint32_t)c[q] -
                                 p->a_zero * ((uint32_t)p->column_sums[q] - (uint32_t)p->k * p->b_zeros[q]));
        else if (p->a_zero)
            for (int64_t q = j; q < j + columns; q++)
                c[q] = (int32_t)((uint32_t)c[q] - p->a_zero * (uint32_t)p->column_sums[q]);
    }
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    Dots dots = dots_here();
    int64_t lines = p->by_columns ? p->n : p->m, others = p->by_columns ? p->m : p->n;
    for (int64_t t = begin * TILE; t < end * TILE && t < lines; t += TILE) {
        int size = lines - t < TILE ? (int)(lines - t) : TILE;
        for (int64_t u = 0; u < others; u += TILE) {
            int other = others - u < TILE ? (int)(others - u) : TILE;
            if (p->by_columns) dots(p, u, other, t, size);
            else dots(p, t, size, u, other);
        }
        if (p->by_columns) subtract_zeros(p, 0, p->m, t, size);
        else subtract_zeros(p, t, size, 0, p->n);
    }
}

/* Zero points of the rows of B into `zeros`, which `found` is made where one isn't 0. */
static void read_zeros(const View *given, int64_t n, uint32_t *zeros, uint32_t **found) {
    uint32_t any = 0;
    int64_t step = given->ndim ? given->strides[0] : 0;
    for (int64_t j = 0; j < n; j++) any |= zeros[j] = (uint32_t)*(const int64_t *)(given->ptr + j * step);
    if (any) *found = zeros;
}

FLB_KERNEL(product_bytes) {
    Product p = {.m = v->a.shape[0],
                 .n = v->b.shape[0],
                 .k = v->a.shape[1],
                 .a_signed = (int)n->a_signed,
                 .b_signed = (int)n->b_signed,
                 .a = (const uint8_t *)v->a.ptr,
                 .b = (const uint8_t *)v->b.ptr,
                 .c = (int32_t *)v->made.ptr};
    if (!p.m || !p.n) return 0;
    if (!p.k) return memset(p.c, 0, p.m * p.n * sizeof(int32_t)), 0;
    p.row_sums = flb_api->scratch((p.m + 2 * p.n) * sizeof(int32_t));
    if (!p.row_sums) return -1;
    p.column_sums = p.row_sums + p.m;
    if (flb_given(&v->a_zero)) p.a_zero = (uint32_t)*(const int64_t *)v->a_zero.ptr;
    if (flb_given(&v->b_zero)) read_zeros(&v->b_zero, p.n, (uint32_t *)p.column_sums + p.n, &p.b_zeros);
    if (p.b_zeros || (has_vnni() && !p.b_signed)) sum_rows(p.a, p.m, p.k, p.a_signed, p.row_sums);
    if (p.a_zero || (has_vnni() && p.a_signed)) sum_rows(p.b, p.n, p.k, p.b_signed, p.column_sums);
    p.by_columns = p.n > p.m;
    int64_t lines = p.by_columns ? p.n : p.m, others = p.by_columns ? p.m : p.n;
    flb_parallel(run_tiles, &p, (lines + TILE - 1) / TILE, 1 + 2000000 / (TILE * others * p.k));
    flb_api->free(p.row_sums);
    return 0;
}
