/* Matrix products of bfloat16 numbers with sums in float32, rounded once: AMX tiles, or AVX512_BF16 where
 * there are none. On other CPUs the operands become float32.
 *
 * B is packed whole, in panels of 16 columns in which the pairs of K lie together; A is read where it lies if
 * its rows are side by side and K is a multiple of a step, else its rows are copied. A block of 32 rows by 32
 * columns of C is summed over all of K in registers. Up to FEW rows beside a B that lies by columns (one more
 * token) are dot products, nothing packed. Both instructions take numbers below 2^-126 for 0. Sums don't
 * depend on the threads.
 *
 * With an addend D, C is alpha A B + beta D, computed in float32 and rounded once.
 *
 * Shapes: A (..., M, K), B (..., K, N), C (..., M, N) in C order, D (..., M, N) with any strides, one batch
 * dimension at most. */
#define _GNU_SOURCE
#include "runtime/graph.h"
#include <string.h>

typedef struct {
    int64_t batch, m, n, k, deep; /* deep: K in whole steps */
    const uint16_t *a, *b;
    uint16_t *c, *rows, *panels;  /* rows: a copy of A, or NULL; panels: of B */
    int64_t a_step[3], b_step[3]; /* elements from a matrix, a row, a column to the next */
    int64_t column_groups;
    const uint16_t *addend; /* or NULL */
    int64_t addend_step[3];
    float alpha, beta; /* beta: of the addend */
} Product;

static void steps_of(const View *v, int64_t *to) {
    int d = v->ndim - 2;
    to[0] = d ? v->strides[0] / 2 : 0, to[1] = v->strides[d] / 2, to[2] = v->strides[d + 1] / 2;
}

/* alpha A B + beta D; the numbers are the bits of doubles. */
static void with_addend(Product *p, const View *d, double alpha, double beta) {
    p->addend = (const uint16_t *)d->ptr, p->alpha = (float)alpha, p->beta = (float)beta;
    steps_of(d, p->addend_step);
}

/* ---- in float32 ---------------------------------------------------------------------------------------- */

static float widened(uint16_t x) {
    union {
        uint32_t i;
        float f;
    } u = {.i = (uint32_t)x << 16};
    return u.f;
}

/* To the nearest, half to even; nan stays one. */
static uint16_t rounded(float x) {
    union {
        float f;
        uint32_t i;
    } u = {.f = x};
    if (x != x) return (uint16_t)(u.i >> 16 | 0x40);
    return (uint16_t)((u.i + 0x7fff + (u.i >> 16 & 1)) >> 16);
}

/* An element of a sum of products, with its share of the addend. */
static float weighted(const Product *p, float sum, int64_t matrix, int64_t row, int64_t column) {
    const int64_t *step = p->addend_step;
    return p->addend
        ? p->alpha * sum + p->beta * widened(p->addend[matrix * step[0] + row * step[1] + column * step[2]])
        : p->alpha * sum;
}

/* -1: no memory, or no library. */
static int in_float32(const Product *p) {
    GemmFn gemm = flb_blas_gemm(0);
    float *a = gemm ? flb_api->scratch((p->m * p->k + p->k * p->n + p->m * p->n) * sizeof(float)) : NULL,
          *b = a + p->m * p->k, *c = b + p->k * p->n;
    if (!a) return -1;
    GemmSizes sizes = {.m = p->m, .n = p->n, .k = p->k, .lda = p->k, .ldb = p->n, .ldc = p->n};
    for (int64_t i = 0; i < p->batch; i++) {
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t q = 0; q < p->k; q++)
                a[r * p->k + q] = widened(p->a[i * p->a_step[0] + r * p->a_step[1] + q * p->a_step[2]]);
        for (int64_t q = 0; q < p->k; q++)
            for (int64_t j = 0; j < p->n; j++)
                b[q * p->n + j] = widened(p->b[i * p->b_step[0] + q * p->b_step[1] + j * p->b_step[2]]);
        if (p->k) flb_gemm(gemm, 0, 'N', 'N', &sizes, 0, PRODUCT_USUAL, (char *)a, (char *)b, (char *)c);
        else memset(c, 0, p->m * p->n * sizeof(float));
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t j = 0; j < p->n; j++)
                p->c[(i * p->m + r) * p->n + j] = rounded(weighted(p, c[r * p->n + j], i, r, j));
    }
    flb_api->free(a);
    return 0;
}

/* ---- by instructions for pairs ------------------------------------------------------------------------- */

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#include <cpuid.h>
#include <immintrin.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEP 32 /* K of a tile */
#define FEW 8
#define VECTORS target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma"), optimize("O3")
#define TILES target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16"), optimize("O2")
#define EACH _Pragma("GCC unroll 8") for

enum { NONE, VECTOR, TILE };

static int find(void) {
    unsigned a, b, c, d;
    const char *most = getenv("FLAMBEAU_CPU");
    if (flb_cpu_level() < 2 || !__builtin_cpu_supports("avx512bw") ||
        !__get_cpuid_count(7, 1, &a, &b, &c, &d) || !(a >> 5 & 1))
        return NONE;
    if (most && !strcmp(most, "avx512")) return NONE;
    if (most && !strcmp(most, "avx512_bf16")) return VECTOR;
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    int tiles = (d >> 22 & 1) && (d >> 24 & 1);
    return tiles && !syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tile data */) ? TILE
                                                                                                   : VECTOR;
}

static int kind(void) {
    static int found = -1;
    return found < 0 ? found = find() : found;
}

/* Whether products may be made by tiles. */
int flb_has_tiles(void) { return kind() == TILE; }

#define GROUP 256 /* columns of a piece */

/* ---- packing ------------------------------------------------------------------------------------------- */

/* to[j * to_step + i] = from[i * step + j], in blocks that stay in cache lines. */
__attribute__((VECTORS)) static void turn(const uint16_t *from, int64_t step, int64_t rows, int64_t columns,
                                          uint16_t *to, int64_t to_step) {
    for (int64_t j0 = 0; j0 < columns; j0 += 32)
        for (int64_t i0 = 0; i0 < rows; i0 += 32)
            for (int64_t j = j0; j < columns && j < j0 + 32; j++)
                for (int64_t i = i0; i < rows && i < i0 + 32; i++) to[j * to_step + i] = from[i * step + j];
}

/* Pieces: 32 rows of A. */
static void pack_rows(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    int64_t blocks = (p->m + 31) / 32;
    for (int64_t i = begin; i < end; i++) {
        int64_t r0 = i % blocks * 32, rows = r0 + 32 < p->m ? 32 : p->m - r0;
        const uint16_t *from = p->a + i / blocks * p->a_step[0] + r0 * p->a_step[1];
        uint16_t *to = p->rows + (i / blocks * p->m + r0) * p->deep;
        if (p->a_step[2] == 1)
            for (int64_t r = 0; r < rows; r++) memcpy(to + r * p->deep, from + r * p->a_step[1], p->k * 2);
        else turn(from, p->a_step[2], p->k, rows, to, p->deep);
        for (int64_t r = 0; r < rows && p->deep > p->k; r++)
            memset(to + r * p->deep + p->k, 0, (p->deep - p->k) * 2);
    }
}

/* Pieces: 16 columns of B, the pairs (2 i, 2 i + 1) of K side by side. */
__attribute__((VECTORS)) static void pack_panels(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    int64_t panels = (p->n + 15) / 16, pairs = p->k / 2;
    for (int64_t i = begin; i < end; i++) {
        int64_t j0 = i % panels * 16, columns = j0 + 16 < p->n ? 16 : p->n - j0, step = p->b_step[1];
        const uint16_t *from = p->b + i / panels * p->b_step[0] + j0 * p->b_step[2];
        uint16_t *to = p->panels + i * 16 * p->deep;
        if (columns < 16) memset(to, 0, 32 * p->deep);
        if (step == 1) {
            if (p->b_step[2] % 2 == 0) flb_transpose(0, columns, pairs, from, p->b_step[2] / 2, to, 16);
            else
                for (int64_t j = 0; j < columns; j++)
                    for (int64_t q = 0; q < pairs; q++)
                        memcpy(to + (q * 16 + j) * 2, from + j * p->b_step[2] + 2 * q, 4);
        } else
            for (int64_t q = 0; q < pairs; q++) {
                const uint16_t *x = from + 2 * q * step, *y = x + step;
                if (columns == 16) {
                    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)x)),
                            high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)y));
                    _mm512_storeu_si512(to + q * 32, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
                } else
                    for (int64_t j = 0; j < columns; j++)
                        to[(q * 16 + j) * 2] = x[j], to[(q * 16 + j) * 2 + 1] = y[j];
            }
        if (p->k % 2)
            for (int64_t j = 0; j < 16; j++) {
                to[(pairs * 16 + j) * 2] = j < columns ? from[j * p->b_step[2] + (p->k - 1) * step] : 0;
                to[(pairs * 16 + j) * 2 + 1] = 0;
            }
        memset(to + (p->k + 1) / 2 * 32, 0, (p->deep / 2 - (p->k + 1) / 2) * 64);
    }
}

/* ---- blocks of C: sums (32, 32) of up to 32 rows of A and two panels of B ------------------------------ */

typedef void (*Block)(int64_t deep, const uint16_t *a, int64_t lda, int64_t rows, const uint16_t *b,
                      const uint16_t *b1, float *sums);

#define ROWS(name, R)                                                                                 \
    __attribute__((VECTORS)) static void name(int64_t deep, const uint16_t *a, int64_t lda,           \
                                              const uint16_t *b, const uint16_t *b1, float *sums) {   \
        __m512 s[R][2];                                                                               \
        EACH(int r = 0; r < R; r++) s[r][0] = s[r][1] = _mm512_setzero_ps();                          \
        for (int64_t q = 0; q < deep; q += 2) {                                                       \
            __m512bh x = (__m512bh)_mm512_loadu_si512(b + q * 16),                                    \
                     y = (__m512bh)_mm512_loadu_si512(b1 + q * 16);                                   \
            EACH(int r = 0; r < R; r++) {                                                             \
                int pair;                                                                             \
                memcpy(&pair, a + r * lda + q, 4);                                                    \
                __m512bh z = (__m512bh)_mm512_set1_epi32(pair);                                       \
                s[r][0] = _mm512_dpbf16_ps(s[r][0], z, x), s[r][1] = _mm512_dpbf16_ps(s[r][1], z, y); \
            }                                                                                         \
        }                                                                                             \
        EACH(int r = 0; r < R; r++)                                                                   \
        _mm512_storeu_ps(sums + r * 32, s[r][0]), _mm512_storeu_ps(sums + r * 32 + 16, s[r][1]);      \
    }
ROWS(eight_rows, 8)
ROWS(one_row, 1)

static void by_vectors(int64_t deep, const uint16_t *a, int64_t lda, int64_t rows, const uint16_t *b,
                       const uint16_t *b1, float *sums) {
    int64_t r = 0;
    for (; r + 8 <= rows; r += 8) eight_rows(deep, a + r * lda, lda, b, b1, sums + r * 32);
    for (; r < rows; r++) one_row(deep, a + r * lda, lda, b, b1, sums + r * 32);
}

/* Tiles 0 to 3: sums, 4 and 5: rows of A, 6 and 7: columns of B. */
__attribute__((TILES)) static void shape_tiles(int64_t rows) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } __attribute__((aligned(64))) shapes = {.palette = 1};
    int first = rows < 16 ? (int)rows : 16, second = rows > 16 ? (int)rows - 16 : 1;
    for (int i = 0; i < 8; i++) shapes.bytes[i] = 64, shapes.rows[i] = 16;
    shapes.rows[0] = shapes.rows[1] = shapes.rows[4] = (uint8_t)first;
    shapes.rows[2] = shapes.rows[3] = shapes.rows[5] = (uint8_t)second;
    __asm__ volatile(""
                     :
                     : "r"(&shapes)
                     : "memory"); /* NOTE: GCC's intrinsic reads 8 bytes as far as it knows */
    _tile_loadconfig(&shapes);
}

__attribute__((TILES)) static void release_tiles(void) { _tile_release(); }

__attribute__((TILES)) static void by_tiles(int64_t deep, const uint16_t *a, int64_t lda, int64_t rows,
                                            const uint16_t *b, const uint16_t *b1, float *sums) {
    _tile_zero(0);
    _tile_zero(1);
    if (rows <= 16) {
        for (int64_t q = 0; q < deep; q += STEP) {
            _tile_loadd(4, a + q, lda * 2);
            _tile_loadd(6, b + q * 16, 64);
            _tile_loadd(7, b1 + q * 16, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
    } else {
        const uint16_t *more = a + 16 * lda;
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t q = 0; q < deep; q += STEP) {
            _tile_loadd(4, a + q, lda * 2);
            _tile_loadd(6, b + q * 16, 64);
            _tile_loadd(7, b1 + q * 16, 64);
            _tile_loadd(5, more + q, lda * 2);
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(2, sums + 512, 128);
        _tile_stored(3, sums + 528, 128);
    }
    _tile_stored(0, sums, 128);
    _tile_stored(1, sums + 16, 128);
}

/* C[matrix, row, column : column + n] of its sums. */
__attribute__((VECTORS)) static void finish_row(const Product *p, const float *from, int64_t n,
                                                int64_t matrix, int64_t row, int64_t column) {
    uint16_t *to = p->c + (matrix * p->m + row) * p->n + column;
    const int64_t *step = p->addend_step;
    const uint16_t *d = p->addend ? p->addend + matrix * step[0] + row * step[1] + column * step[2] : NULL;
    __m512 alpha = _mm512_set1_ps(p->alpha), beta = _mm512_set1_ps(p->beta);
    for (int64_t j = 0; j < n; j += 16) {
        int64_t columns = n - j >= 16 ? 16 : n - j;
        __mmask16 here = (__mmask16)((1u << columns) - 1);
        __m512 sums = _mm512_mul_ps(alpha, _mm512_maskz_loadu_ps(here, from + j));
        if (d) {
            uint16_t apart[16] = {0};
            for (int64_t i = 0; step[2] != 1 && i < columns; i++) apart[i] = d[(j + i) * step[2]];
            __m256i x = _mm256_maskz_loadu_epi16(here, step[2] == 1 ? d + j : apart);
            sums = _mm512_fmadd_ps(beta, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)),
                                   sums);
        }
        _mm256_mask_storeu_epi16(to + j, here, (__m256i)_mm512_cvtneps_pbh(sums));
    }
}

/* Pieces: 32 rows by GROUP columns of C. */
static void blocks(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    int tiles = kind() == TILE;
    int64_t row_blocks = (p->m + 31) / 32, panels = (p->n + 15) / 16, shaped = 0;
    float sums[32 * 32];
    for (int64_t i = begin; i < end; i++) {
        int64_t j0 = i % p->column_groups * GROUP, j1 = j0 + GROUP < p->n ? j0 + GROUP : p->n,
                rest = i / p->column_groups;
        int64_t r0 = rest % row_blocks * 32, matrix = rest / row_blocks,
                rows = r0 + 32 < p->m ? 32 : p->m - r0;
        int64_t lda = p->rows ? p->deep : p->a_step[1];
        const uint16_t *a =
            p->rows ? p->rows + (matrix * p->m + r0) * lda : p->a + matrix * p->a_step[0] + r0 * lda;
        if (tiles && shaped != rows) shape_tiles(shaped = rows);
        for (int64_t j = j0; j < j1; j += 32) {
            const uint16_t *b = p->panels + (matrix * panels + j / 16) * 16 * p->deep,
                           *b1 = j + 16 < p->n ? b + 16 * p->deep : b;
            (tiles ? by_tiles : by_vectors)(p->deep, a, lda, rows, b, b1, sums);
            for (int64_t r = 0; r < rows; r++)
                finish_row(p, sums + r * 32, j1 - j < 32 ? j1 - j : 32, matrix, r0 + r, j);
        }
    }
    if (shaped) release_tiles();
}

/* Pieces: 4 columns of C, which are rows of memory of B, by all rows of A. */
__attribute__((VECTORS)) static void dots(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    for (int64_t i = 4 * begin; i < 4 * end && i < p->n; i += 4) {
        int64_t columns = i + 4 < p->n ? 4 : p->n - i;
        for (int64_t r = 0; r < p->m; r++) {
            const uint16_t *x = p->a + r * p->a_step[1], *w[4];
            __m512 s[4];
            EACH(int j = 0; j < 4; j++)
            s[j] = _mm512_setzero_ps(), w[j] = p->b + (j < columns ? i + j : i) * p->b_step[2];
            for (int64_t q = 0; q < p->k; q += 32) {
                __mmask32 here = p->k - q >= 32 ? 0xffffffffu : (1u << (p->k - q)) - 1;
                __m512bh in = (__m512bh)_mm512_maskz_loadu_epi16(here, x + q);
                EACH(int j = 0; j < 4; j++)
                s[j] = _mm512_dpbf16_ps(s[j], (__m512bh)_mm512_maskz_loadu_epi16(here, w[j] + q), in);
            }
            float totals[4];
            EACH(int j = 0; j < 4; j++) totals[j] = _mm512_reduce_add_ps(s[j]);
            finish_row(p, totals, columns, 0, r, i);
        }
    }
}

/* Whether nothing is packed: few rows beside columns of B that are contiguous. */
static int is_dots(int transposed, int64_t batch, int64_t m) { return batch == 1 && m <= FEW && transposed; }

/* `packed`: B is in p.panels. */
static int by_pairs(Product p, int packed) {
    /* A stride of a dimension of size 1 may be anything. */
    if (p.k == 1) p.a_step[2] = p.b_step[1] = 1;
    if (p.m == 1 && p.a_step[2] == 1) p.a_step[1] = p.k;
    if (p.n == 1 && p.b_step[1] == 1) p.b_step[2] = p.k;
    if (!packed && is_dots(p.b_step[1] == 1, p.batch, p.m) && p.a_step[2] == 1) {
        flb_parallel(dots, &p, (p.n + 3) / 4, 1 + 50000 / (4 * p.m * p.k));
        return 0;
    }
    p.deep = (p.k + STEP - 1) / STEP * STEP;
    int64_t panels = (p.n + 15) / 16, row_blocks = (p.m + 31) / 32;
    int copied = p.a_step[2] != 1 || p.deep != p.k;
    size_t of_panels = packed ? 0 : (size_t)(p.batch * panels * 16 * p.deep * 2),
           of_rows = copied ? (size_t)(p.batch * p.m * p.deep * 2) : 0;
    char *room = of_panels + of_rows ? flb_api->scratch(of_panels + of_rows + 64) : NULL;
    if (!room && of_panels + of_rows) return -1;
    char *begin = (char *)(((uintptr_t)room + 63) & ~(uintptr_t)63);
    if (!packed) p.panels = (uint16_t *)begin;
    if (copied) p.rows = (uint16_t *)(begin + of_panels);
    p.column_groups = (p.n + GROUP - 1) / GROUP;
    if (!packed) flb_parallel(pack_panels, &p, p.batch * panels, 1 + 40000 / (16 * p.deep));
    if (copied) flb_parallel(pack_rows, &p, p.batch * row_blocks, 1 + 20000 / (32 * p.deep));
    double flops = 2. * 32 * (double)(p.n < GROUP ? p.n : GROUP) * (double)p.deep;
    flb_parallel(blocks, &p, p.batch * row_blocks * p.column_groups, 1 + (int64_t)(4e6 / flops));
    flb_api->free(room);
    return 0;
}

/* Elements of B (k, n) packed for products with m rows; 0: it isn't packed. */
int64_t flb_bf16_packed_size(int transposed, int64_t m, int64_t n, int64_t k) {
    return !kind() || m < 1 || n < 1 || k < 1 || is_dots(transposed, 1, m)
        ? 0
        : (n + 15) / 16 * 16 * ((k + STEP - 1) / STEP * STEP);
}

FLB_KERNEL(prepack_bf16) {
    Product p = {.batch = 1,
                 .k = v->b.shape[0],
                 .n = v->b.shape[1],
                 .b = (const uint16_t *)v->b.ptr,
                 .panels = (uint16_t *)v->packed.ptr};
    steps_of(&v->b, p.b_step);
    if (p.k == 1) p.b_step[1] = 1;
    if (p.n == 1 && p.b_step[1] == 1) p.b_step[2] = p.k;
    p.deep = (p.k + STEP - 1) / STEP * STEP;
    if (!kind() || v->packed.shape[0] != (p.n + 15) / 16 * 16 * p.deep) return -1;
    flb_parallel(pack_panels, &p, (p.n + 15) / 16, 1 + 40000 / (16 * p.deep));
    return 0;
}

FLB_KERNEL(product_bf16_packed) {
    Product p = {.batch = 1,
                 .m = v->a.shape[0],
                 .k = v->a.shape[1],
                 .n = v->made.shape[1],
                 .a = (const uint16_t *)v->a.ptr,
                 .alpha = 1,
                 .c = (uint16_t *)v->made.ptr,
                 .panels = (uint16_t *)v->packed.ptr};
    if (!p.m || !p.n) return 0;
    if (!kind() || v->packed.shape[0] != (p.n + 15) / 16 * 16 * ((p.k + STEP - 1) / STEP * STEP)) return -1;
    steps_of(&v->a, p.a_step);
    p.b_step[1] = p.b_step[2] = 1;
    if (flb_given(&v->addend)) with_addend(&p, &v->addend, n->alpha, n->beta);
    return by_pairs(p, 1);
}

#else
static int by_pairs(Product p, int packed) { return -1; }
static int kind(void) { return 0; }
int flb_has_tiles(void) { return 0; }
int64_t flb_bf16_packed_size(int transposed, int64_t m, int64_t n, int64_t k) { return 0; }
FLB_KERNEL(prepack_bf16) { return -1; }
FLB_KERNEL(product_bf16_packed) { return -1; }
#endif

FLB_KERNEL(product_bf16) {
    int d = v->a.ndim - 2;
    Product p = {.batch = d ? v->a.shape[0] : 1,
                 .m = v->a.shape[d],
                 .k = v->a.shape[d + 1],
                 .n = v->b.shape[d + 1],
                 .alpha = 1,
                 .a = (const uint16_t *)v->a.ptr,
                 .b = (const uint16_t *)v->b.ptr,
                 .c = (uint16_t *)v->made.ptr};
    if (!p.batch || !p.m || !p.n) return 0;
    steps_of(&v->a, p.a_step), steps_of(&v->b, p.b_step);
    if (flb_given(&v->addend)) with_addend(&p, &v->addend, n->alpha, n->beta);
    return p.k && kind() ? by_pairs(p, 0) : in_float32(&p);
}

/* bf16_products(): how they are made, 0 in float32, 1 by AVX512_BF16, 2 by AMX. */
PyObject *flb_bf16_products(PyObject *self, PyObject *unused) { return PyLong_FromLong(kind()); }
