/* Matrix products of one thread: packed panels and register kernels (Goto and van de Geijn 2008), for
 * AVX-512, AVX2 and what every x86-64 has.
 *
 * C (m, n) = A B is made in blocks: a slice of K deep enough to stay in the second-level cache, A's rows of
 * it packed in panels of a few rows, B's columns in panels of one or two vectors; where few rows are to be
 * made, B is read where it lies. A kernel keeps a tile of C in registers and reads A by broadcast. Its
 * interface is Fortran's sgemm and dgemm, so it stands wherever BLAS does. The sums of an element are in the
 * order of K, in slices; so the result depends on the shape only. */
#include "kernels/product_split.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define DEEP 384      /* most of K in a slice */
#define WIDE 2048     /* bytes of a row of a block of B: with DEEP, three quarters of a second-level cache */
#define HIGH 1536     /* rows of A that are packed at a time */
#define FEW_ROWS 64   /* up to which B isn't packed: few_kernels.h */
#define PAGED 8192    /* columns of a B (k, n) whose lines are so far apart that more than */
#define PAGED_ROWS 32 /* rows are worth packing it: it is read once then */
#define LONG 1024     /* most of K in a slice there, where an element is a dot product, */
#define SHORT 256     /* and where it isn't */
#define SIDE 6        /* rows of B that are read together for dot products */
#define FEW_TERMS 64  /* of a dot product that is worth it, */
#define TRANSPOSED_ROWS 4 /* from which panels are faster still, where B may be packed once for all */
#define TERMS_A_ROW 12    /* and for each row of A: what packing costs is shared by them */
#define SMALL 20000       /* bytes of B that aren't packed either: they fit into the first-level cache */
#define DOTS_ROWS 24      /* up to which an element is a dot product there without AVX-512 */
#define ONCE_ROWS 6       /* rows of the highest tile without AVX-512, */
#define HELD 524288       /* and bytes of B that a second-level cache holds there */
#define SLOW_HALF 11 /* columns of float32 whose time a tile of one vector takes there: its six sums wait */
#define FEW_ROWS_HALF 16 /* and rows beside which packing B is most of the time */
#define NARROW 24        /* columns below which the library is faster */
#define LITTLE 600000    /* multiply-adds below which it is, */
#define FLAT 1024        /* where B is stored (n, k): for results of so few elements, */
#define SHALLOW 32       /* and sums that are longer */

static GemmFn library[2];

typedef struct {
    int rows[3], bytes; /* heights of the tiles, the greatest first; of a vector: tiles are one or two wide */
} Shape;

#if defined(__GNUC__) && !defined(__clang__)
#define FAST optimize("O3", "fp-contract=fast")
#else
#define FAST unused
#endif

/* Memory for panels, kept by each thread. NULL: there is none. */
static void *panels(size_t size) {
    static __thread void *kept;
    static __thread size_t room;
    if (size > room) {
        free(kept);
        room = 0;
        if ((kept = aligned_alloc(64, (size + 4095) & ~(size_t)4095))) room = (size + 4095) & ~(size_t)4095;
    }
    return kept;
}

/* Bytes of a row of a block of B. With DEEP, three quarters of a second-level cache: 1 MiB where there is
 * AVX-512, elsewhere half of that. */
static int64_t widest(void) { return flb_cpu_level() == 2 ? WIDE : WIDE / 2; }

/* Whether B (k, n), so many bytes of the `whole` columns of a matrix, isn't packed beside m rows. Without
 * AVX-512 a tile has six rows: what is read by several is packed unless a second-level cache holds it all. */
static int stays(int64_t m, int64_t whole, int64_t bytes) {
    if (bytes <= SMALL) return 1;
    return m <= FEW_ROWS && whole < PAGED && (flb_cpu_level() == 2 || m <= ONCE_ROWS || bytes <= HELD);
}

/* Depth of a slice of K, `narrow`: beside few columns. Slices are as equal as they can be. */
static int64_t slice(int64_t k, int narrow) {
    int64_t most = narrow ? DEEP * 4 / 3 : DEEP, slices = (k + most - 1) / most;
    return slices ? (k + slices - 1) / slices : 1;
}

/* Whether a product with `m` rows in all is made by few_kernels.h, or with AVX2 by few_half.h. */
static int is_few(int bt, int64_t m, int64_t n, int64_t k) {
    if (flb_cpu_level() == 1) return bt && m <= DOTS_ROWS && k >= FEW_TERMS && k >= TERMS_A_ROW * m;
    if (!bt && m > PAGED_ROWS && n >= PAGED) return 0;
    return flb_cpu_level() == 2 && m <= FEW_ROWS && (bt ? k >= FEW_TERMS && k >= TERMS_A_ROW * m : k > 0);
}

/* Whether tiles make a product of float32 numbers with `m` rows in all. */
static int by_tiles(int bt, int64_t m, int64_t n, int64_t k) {
    return !is_few(bt, m, n, k) && flb_split_fits(m, n, k);
}

/* Whether the library measured faster with AVX2 alone, where OpenBLAS's kernels have the shape of ours:
 * narrow results, sums of several slices, and in float32 columns that fill the last tile badly. */
static int passed_on_half(int f64, int bt, int64_t m, int64_t n, int64_t k) {
    int64_t tile = f64 ? 8 : 16, rest = n % tile,
            slow = rest > tile / 2 ? tile
        : rest                     ? SLOW_HALF * tile / 16
                                   : 0;
    if (n >= tile && is_few(bt, m, n, k)) return 0;
    if (n < tile || (k > DEEP * 4 / 3 && m > FEW_ROWS_HALF)) return 1;
    return !f64 && (n - rest + slow) * 16 > n * 17;
}

/* Whether the library measured faster: narrow results, small products (OpenBLAS has kernels for them that
 * pack nothing), and large ones with long sums in float64. */
static int passed_on(int f64, int bt, int64_t m, int64_t n, int64_t k) {
    if (!library[f64] || (!f64 && by_tiles(bt, m, n, k))) return 0;
    if (flb_cpu_level() == 1) return passed_on_half(f64, bt, m, n, k);
    if (f64 && n >= 1024 && k >= 1024 && m > FEW_ROWS) return 1;
    return n < NARROW || (bt ? m * n <= FLAT && k >= SHALLOW && m * n * k <= LITTLE : m * n * k < LITTLE);
}

#define T float
#define NAME(x) x##_f32
#define SINGLE 1
#include "kernels/product_kernels.h"
#undef T
#undef NAME
#undef SINGLE
#define T double
#define NAME(x) x##_f64
#define SINGLE 0
#include "kernels/product_kernels.h"

/* What makes products where the library has `theirs`: ours on CPUs with AVX-512 or AVX2, which passes on what
 * measured slower; elsewhere the library has the better kernels. FLAMBEAU_PRODUCTS=library or =own insists.
 */
GemmFn flb_best_gemm(int f64, GemmFn theirs) {
    const char *wish = getenv("FLAMBEAU_PRODUCTS");
    int own = wish && !strcmp(wish, "own");
    if (theirs && !own && (flb_cpu_level() < 1 || (wish && !strcmp(wish, "library")))) return theirs;
    library[f64] = own ? NULL : theirs;
    return f64 ? product_f64 : product_f32;
}

/* What makes the pieces of a product of these sizes: for all of them the same, so that results don't depend
 * on how many there are. */
GemmFn flb_for_sizes(GemmFn fn, int f64, char tb, int64_t m, int64_t n, int64_t k) {
    return flb_is_own(fn) && passed_on(f64, tb != 'N', m, n, k) ? library[f64] : fn;
}

/* A piece, some rows and columns from n0 on, of a product with so many `rows` and `columns` that
 * flb_for_sizes() leaves to us. `packed`: its right operand packed by a way, or NULL; then n0 is a multiple
 * of PACKED_CUT. */
void flb_product_piece(int f64, int at, int bt, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                       const void *b, int64_t ldb, void *c, int64_t ldc, int64_t rows, int64_t columns,
                       const void *packed, int64_t n0, int way) {
    if (f64)
        multiply_f64(at, bt, m, n, k, a, lda, b, ldb, c, ldc, 0, rows, columns, packed, n0,
                     way == PRODUCT_FEW);
    else
        multiply_f32(at, bt, m, n, k, a, lda, b, ldb, c, ldc, 0, rows, columns, packed, n0,
                     way == PRODUCT_FEW);
}

/* Whether tiles make a product of float32 numbers of these sizes; the way of all its pieces. */
int flb_by_tiles(int bt, int64_t m, int64_t n, int64_t k) { return by_tiles(bt, m, n, k); }

/* Some rows of a product with `all`, with B packed by flb_split_pack(), too. -1: no memory. */
int flb_multiply_split(int at, int bt, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                       const float *b, int64_t ldb, const void *packed, float *c, int64_t ldc, int64_t all) {
    SplitProduct p = {at, bt, 0, m, n, k, a, lda, b, ldb, c, ldc, packed};
    return split(&p, all, n);
}

GemmFn flb_own_gemm(int f64) { return f64 ? product_f64 : product_f32; }

int flb_is_own(GemmFn fn) { return fn == product_f32 || fn == product_f64; }

/* How the right operand of a product may be packed once for many calls: PRODUCT_PANELS, PRODUCT_FEW, or 0: B
 * is read where it lies, or the library makes the product. The result has the bits that it has without, where
 * a product of many rows packs the same panels at each call; but for few rows beside B (n, k), whose result
 * has the bits of that with B (k, n). */
int flb_packed_way(int f64, int bt, int64_t m, int64_t n, int64_t k) {
    if (!flb_is_own(flb_blas_gemm(f64)) || m < 2 || n < 2 || k < 1 || passed_on(f64, bt, m, n, k)) return 0;
    if (!f64 && by_tiles(bt, m, n, k)) return 0;
    if (is_few(bt, m, n, k) && bt && m < TRANSPOSED_ROWS) return 0;
    if (is_few(bt, m, n, k) && flb_cpu_level() == 2) return PRODUCT_FEW;
    return bt || n * k * (f64 ? 8 : 4) > SMALL ? PRODUCT_PANELS : 0;
}

/* Panels of B that may be packed apart, and elements of all. */
int64_t flb_packed_panels(int f64, int way, int64_t n, int64_t k, int64_t *size) {
    int64_t across = f64 ? 8 : 16, npanels;
    if (way == PRODUCT_FEW) return *size = (n + across - 1) / across * across * k, (n + across - 1) / across;
    flb_packed_size(f64, n, k, size, &npanels);
    *size /= f64 ? 8 : 4;
    return npanels;
}

void flb_pack_few(int f64, int bt, int64_t n, int64_t k, const void *b, int64_t ldb, void *to, int64_t from,
                  int64_t end) {
    (f64 ? pack_few_f64 : pack_few_f32)(bt, n, k, b, ldb, to, from, end);
}

/* Products with a B that is packed once for many blocks of rows. Panels of B (k, n) may be packed apart:
 * *npanels of them, *bytes together. */
void flb_packed_size(int f64, int64_t n, int64_t k, int64_t *bytes, int64_t *npanels) {
    int64_t item = f64 ? 8 : 4,
            tile = 2 *
        (f64 ? levels_f64[flb_cpu_level()].shape.bytes : levels_f32[flb_cpu_level()].shape.bytes) / item;
    *npanels = (n + tile - 1) / tile;
    *bytes = *npanels * tile * k * item;
}

void flb_pack_panels(int f64, int bt, int64_t n, int64_t k, const void *b, int64_t ldb, void *to,
                     int64_t from, int64_t end) {
    (f64 ? pack_panels_f64 : pack_panels_f32)(bt, n, k, b, ldb, to, from, end);
}

int flb_multiply_packed(int f64, int at, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                        const void *b, void *c, int64_t ldc) {
    return (f64 ? multiply_packed_f64 : multiply_packed_f32)(at, m, n, k, a, lda, b, c, ldc);
}

/* The parts of a product for callers that keep packed operands (attention.c): see product_kernels.h. Room for
 * panels of m rows: m rounded up to TALL. */
void flb_pack_rows(int f64, int along, int64_t m, int64_t k, const void *a, int64_t lda, void *to) {
    (f64 ? pack_rows_f64 : pack_rows_f32)(along, m, k, a, lda, to);
}

void flb_transpose(int f64, int64_t rows, int64_t columns, const void *from, int64_t ld, void *to,
                   int64_t step) {
    if (f64) transpose_f64(from, ld, rows, columns, to, step);
    else transpose_f32(from, ld, rows, columns, to, step);
}

void flb_multiply_panels(int f64, int64_t m, int64_t r0, int64_t r1, int64_t n, int64_t k, int64_t p0,
                         int64_t deep, const void *a, const void *b, int64_t ldb, void *c, int64_t ldc,
                         int more) {
    if (f64) multiply_panels_f64(m, r0, r1, n, k, p0, deep, a, b, ldb, c, ldc, more);
    else multiply_panels_f32(m, r0, r1, n, k, p0, deep, a, b, ldb, c, ldc, more);
}
