/* Matrix products of float32 numbers, to the precision of float32, by the tiles of AMX, which multiply
 * bfloat16 numbers and add in float32.
 *
 * A number of 24 bits is exactly the sum of three of 8 bits, x = x0 + x1 + x2, each about 2^-9 of the one
 * before. Of the nine products of such parts the six greatest are made; what is left out is below 2^-25 of
 * the product, less than its rounding. The sums of 32 terms are made apart by the instruction and then added,
 * so that errors are smaller than those of summing term by term. This is half as many instructions as a third
 * of the time that multiplications of float32 vectors take.
 *
 * The instructions take subnormal numbers for 0 and have 8 bits of exponent for the least part, too. So a row
 * of A, or a column of B, whose greatest magnitude is beyond 2^40 or below 2^-20 is scaled by a power of two
 * first, and the result scaled back. Odd rows and columns are left out: those that aren't finite (their parts
 * would be infinities of both signs), and those with numbers other than 0 below 2^-51, whose least parts,
 * multiplied, would be subnormal. The caller makes them by other means. All that is a matter of a row and a
 * column, so the bits of an element don't depend on which rows and columns are made together.
 *
 * K is cut into slices; of a slice some rows of A are packed to stay in the second-level cache, and 32
 * columns of B at a time, which stay in the first-level one while they meet all of these rows. */
#include "kernels/product_split.h"
#include "runtime/graph.h"
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>

#define DEEP 128  /* most of K in a slice, a multiple of STEP: 32 columns fill half a first-level cache */
#define HIGH 1280 /* rows of A that are packed at a time, a multiple of SIDE: half a second-level cache */
#define STEP 32   /* K of a tile */
#define SIDE 32   /* rows and columns of a block of C: two tiles by two */
#define PARTS 3
#define TILE 512        /* elements of a tile of A or B */
#define PAIR (2 * TILE) /* of two that lie together */
#define FAR 40          /* exponents up to which rows and columns aren't scaled, */
#define NEAR -20        /* and from which on */
#define FINEST -51      /* exponents of the least elements, once scaled */
#define LEAST 64        /* terms below which tiles are mostly empty */
#define SQUARE 120      /* m n / (m + n) below which packing costs more than tiles save, */
#define LITTLE 4000000  /* and multiply-adds */
#define VECTORS target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma"), optimize("O3")
#define TILES target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16"), optimize("O2")
#define EACH _Pragma("GCC unroll 8") for

/* Whether tiles make the products of these sizes. */
int flb_split_fits(int64_t m, int64_t n, int64_t k) {
    return k >= LEAST && m * n >= SQUARE * (m + n) && m * n * k >= LITTLE && flb_has_tiles();
}

/* ---- exponents ----------------------------------------------------------------------------------------- */

/* By which power of two a line is multiplied: the bits of its greatest magnitude, and of its least that isn't
 * 0, less one. */
static int32_t scale_of(uint32_t greatest, uint32_t least) {
    int32_t exponent = (int32_t)(greatest >> 23) - 127, finest = (int32_t)((least + 1) >> 23) - 127, scale;
    if (!greatest) return 0;
    if (exponent == 128) return SPLIT_ODD;
    scale = exponent >= NEAR && exponent <= FAR ? 0 : exponent == -127 ? 126 : -exponent;
    /* A subnormal number may be as small as 2^-149. */
    return (finest == -127 ? -149 : finest) + scale < FINEST ? SPLIT_ODD : scale;
}

/* The greatest of magnitudes, and the least that isn't 0, less one: 0 is the greatest number then. */
typedef struct {
    __m512i most, least;
} Span;
__attribute__((VECTORS, always_inline)) static inline Span nothing(void) {
    return (Span){_mm512_setzero_si512(), _mm512_set1_epi32(-1)};
}
__attribute__((VECTORS, always_inline)) static inline Span with(Span span, __m512i x) {
    x = _mm512_and_si512(x, _mm512_set1_epi32(0x7fffffff));
    return (Span){_mm512_max_epu32(span.most, x),
                  _mm512_min_epu32(span.least, _mm512_sub_epi32(x, _mm512_set1_epi32(1)))};
}

__attribute__((VECTORS)) static void scan_lines(const float *from, int64_t ld, int64_t lines, int64_t k,
                                                int32_t *to) {
    for (int64_t i = 0; i < lines; i++, from += ld) {
        Span spans[4];
        EACH(int j = 0; j < 4; j++) spans[j] = nothing();
        int64_t p = 0;
        for (; p + 64 <= k; p += 64)
            EACH(int j = 0; j < 4; j++) spans[j] = with(spans[j], _mm512_loadu_si512(from + p + 16 * j));
        for (; p < k; p += 16) {
            __mmask16 here = k - p >= 16 ? 0xffff : (__mmask16)((1u << (k - p)) - 1);
            spans[0] = with(spans[0], _mm512_maskz_loadu_epi32(here, from + p));
        }
        for (int j = 1; j < 4; j++) {
            spans[0].most = _mm512_max_epu32(spans[0].most, spans[j].most);
            spans[0].least = _mm512_min_epu32(spans[0].least, spans[j].least);
        }
        to[i] = scale_of(_mm512_reduce_max_epu32(spans[0].most), _mm512_reduce_min_epu32(spans[0].least));
    }
}

__attribute__((VECTORS)) static void scan_across(const float *from, int64_t ld, int64_t lines, int64_t k,
                                                 int32_t *to) {
    for (int64_t i = 0; i < lines; i += 16) {
        __mmask16 here = lines - i >= 16 ? 0xffff : (__mmask16)((1u << (lines - i)) - 1);
        const float *line = from + i;
        Span span = nothing();
        for (int64_t p = 0; p < k; p++, line += ld) span = with(span, _mm512_maskz_loadu_epi32(here, line));
        uint32_t most[16], least[16];
        _mm512_storeu_si512(most, span.most), _mm512_storeu_si512(least, span.least);
        for (int64_t j = 0; j < 16 && i + j < lines; j++) to[i + j] = scale_of(most[j], least[j]);
    }
}

/* ---- packing: a step of K has PARTS pairs of tiles ----------------------------------------------------- */

#define LOW(z) _mm512_cvtpbh_ps((__m256bh)_mm512_castsi512_si256((__m512i)(z)))
#define UPPER(z) _mm512_cvtpbh_ps((__m256bh)_mm512_extracti64x4_epi64((__m512i)(z), 1))

/* Up to 32 lines of `deep` elements as rows of tiles. */
__attribute__((VECTORS)) static void pack_lines(const float *from, int64_t ld, int64_t lines, int64_t deep,
                                                const int32_t *scales, uint16_t *to) {
    for (int64_t r = 0; r < SIDE; r++) {
        uint16_t *out = to + r / 16 * TILE + r % 16 * STEP;
        int empty = r >= lines || scales[r] == SPLIT_ODD;
        if (empty) {
            if (r >= 16 && lines <= 16) return; /* the second tile isn't read */
            for (int64_t q = 0; q < deep; q += STEP)
                for (int part = 0; part < PARTS; part++, out += PAIR)
                    _mm512_storeu_si512(out, _mm512_setzero_si512());
            continue;
        }
        const float *line = from + r * ld;
        __m512 scale = _mm512_castsi512_ps(_mm512_set1_epi32((scales[r] + 127) << 23));
        for (int64_t q = 0; q < deep; q += STEP) {
            __mmask32 here = deep - q >= STEP ? 0xffffffffu : (1u << (deep - q)) - 1;
            __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps((__mmask16)here, line + q), scale),
                   y = _mm512_mul_ps(_mm512_maskz_loadu_ps((__mmask16)(here >> 16), line + q + 16), scale);
            EACH(int part = 0; part < PARTS; part++, out += PAIR) {
                __m512bh z = _mm512_cvtne2ps_pbh(y, x);
                _mm512_storeu_si512(out, (__m512i)z);
                x = _mm512_sub_ps(x, LOW(z)), y = _mm512_sub_ps(y, UPPER(z));
            }
        }
    }
}

/* Up to 32 columns of `deep` rows as tiles in which the pairs (2 i, 2 i + 1) of K lie together. */
__attribute__((VECTORS)) static void pack_columns(const float *from, int64_t ld, int64_t columns,
                                                  int64_t deep, const int32_t *scales, uint16_t *to) {
    uint16_t order[32];
    for (int i = 0; i < 16; i++) order[2 * i] = (uint16_t)i, order[2 * i + 1] = (uint16_t)(16 + i);
    __m512i pairs = _mm512_loadu_si512(order), upper = _mm512_set1_epi32((int)0xffff0000u);
    for (int half = 0; half < 2 && half * 16 < columns; half++) {
        __mmask16 here = columns - 16 * half >= 16 ? 0xffff : (__mmask16)((1u << (columns - 16 * half)) - 1);
        __m512i exponents = _mm512_maskz_loadu_epi32(here, scales + 16 * half);
        here = _mm512_mask_cmpneq_epi32_mask(here, exponents, _mm512_set1_epi32(SPLIT_ODD));
        __m512 scale =
            _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(exponents, _mm512_set1_epi32(127)), 23));
        const float *line = from + 16 * half;
        for (int64_t q = 0; q < deep; q += STEP) {
            uint16_t *out = to + q / STEP * PARTS * PAIR + half * TILE;
            for (int64_t i = q; i < q + STEP; i += 2, line += 2 * ld, out += 32) {
                /* What the next panel reads lies pages apart, where no hardware looks ahead. */
                _mm_prefetch((const char *)(line + SIDE), _MM_HINT_T1);
                _mm_prefetch((const char *)(line + SIDE + ld), _MM_HINT_T1);
                __m512 x = _mm512_setzero_ps(), y = x;
                if (i < deep) x = _mm512_maskz_mul_ps(here, _mm512_maskz_loadu_ps(here, line), scale);
                if (i + 1 < deep)
                    y = _mm512_maskz_mul_ps(here, _mm512_maskz_loadu_ps(here, line + ld), scale);
                EACH(int part = 0; part < PARTS; part++) {
                    __m512i z = _mm512_permutexvar_epi16(pairs, (__m512i)_mm512_cvtne2ps_pbh(y, x));
                    _mm512_storeu_si512(out + part * PAIR, z);
                    x = _mm512_sub_ps(x, _mm512_castsi512_ps(_mm512_slli_epi32(z, 16)));
                    y = _mm512_sub_ps(y, _mm512_castsi512_ps(_mm512_and_si512(z, upper)));
                }
            }
        }
    }
}

/* ---- blocks of C --------------------------------------------------------------------------------------- */

/* Tiles 0 to 3: sums, 4 and 5: rows of A, 6 and 7: columns of B. */
__attribute__((TILES, noinline)) static void shape_tiles(void) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } __attribute__((aligned(64))) shapes = {.palette = 1};
    for (int i = 0; i < 8; i++) shapes.bytes[i] = 64, shapes.rows[i] = 16;
    /* GCC's intrinsic reads 8 bytes as far as it knows. */
    __asm__ volatile("" : : "r"(&shapes) : "memory");
    _tile_loadconfig(&shapes);
}

__attribute__((TILES, noinline)) static void release_tiles(void) { _tile_release(); }

#define LOAD(tile, at) _tile_loadd(tile, at, 64)
#define A(part)                 \
    LOAD(4, a + (part) * PAIR); \
    if (tall) LOAD(5, a + (part) * PAIR + TILE)
#define B(part)                 \
    LOAD(6, b + (part) * PAIR); \
    if (wide) LOAD(7, b + (part) * PAIR + TILE)
#define MULTIPLY                       \
    _tile_dpbf16ps(0, 4, 6);           \
    if (wide) _tile_dpbf16ps(1, 4, 7); \
    if (tall) _tile_dpbf16ps(2, 5, 6); \
    if (tall && wide) _tile_dpbf16ps(3, 5, 7)

/* Sums from 0, or with `more` from what c has; the least products first, each pair of parts loaded seldom. */
__attribute__((TILES, always_inline)) static inline void block(int64_t steps, const uint16_t *a,
                                                               const uint16_t *b, float *c, int64_t ldc,
                                                               int more, int tall, int wide) {
    float *low = c + 16 * ldc;
    /* NOTE: tiles are loaded and stored without GCC's knowing of the memory. */
    __asm__ volatile("" : : : "memory");
    if (more) {
        _tile_loadd(0, c, 4 * ldc);
        if (wide) _tile_loadd(1, c + 16, 4 * ldc);
        if (tall) _tile_loadd(2, low, 4 * ldc);
        if (tall && wide) _tile_loadd(3, low + 16, 4 * ldc);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t q = 0; q < steps; q++, a += PARTS * PAIR, b += PARTS * PAIR) {
        A(0);
        B(2);
        MULTIPLY;
        B(1);
        MULTIPLY;
        A(1);
        MULTIPLY;
        B(0);
        MULTIPLY;
        A(2);
        MULTIPLY;
        A(0);
        MULTIPLY;
    }
    _tile_stored(0, c, 4 * ldc);
    if (wide) _tile_stored(1, c + 16, 4 * ldc);
    if (tall) _tile_stored(2, low, 4 * ldc);
    if (tall && wide) _tile_stored(3, low + 16, 4 * ldc);
    __asm__ volatile("" : : : "memory");
}
#undef A
#undef B

__attribute__((TILES, noinline)) static void block_of(int64_t steps, const uint16_t *a, const uint16_t *b,
                                                      float *c, int64_t ldc, int more, int tall, int wide) {
    if (tall && wide) block(steps, a, b, c, ldc, more, 1, 1);
    else if (tall) block(steps, a, b, c, ldc, more, 1, 0);
    else if (wide) block(steps, a, b, c, ldc, more, 0, 1);
    else block(steps, a, b, c, ldc, more, 0, 0);
}

/* Between C and a block of sums: before (`made` 0) sums begin with what isn't scaled of C, if `more`; then
 * what is scaled goes back and is added. */
__attribute__((VECTORS)) static void exchange(float *sums, int64_t rows, int64_t columns,
                                              const int32_t *of_rows, const int32_t *of_columns, float *c,
                                              int64_t ldc, int more, int made) {
    __m512 zero = _mm512_setzero_ps();
    for (int64_t j = 0; j < columns; j += 16) {
        __mmask16 here = columns - j >= 16 ? 0xffff : (__mmask16)((1u << (columns - j)) - 1);
        __m512i exponents = _mm512_maskz_loadu_epi32(here, of_columns + j);
        __mmask16 of_some = _mm512_cmpneq_epi32_mask(exponents, _mm512_setzero_si512());
        for (int64_t r = 0; r < rows; r++) {
            float *to = c + r * ldc + j, *sum = sums + r * SIDE + j;
            __mmask16 scaled = of_rows[r] ? 0xffff : of_some;
            __m512 old = more ? _mm512_maskz_loadu_ps(here, to) : zero;
            if (!made) {
                _mm512_store_ps(sum, _mm512_mask_mov_ps(old, scaled, zero));
                continue;
            }
            __m512 x = _mm512_load_ps(sum);
            __m512i back = _mm512_sub_epi32(_mm512_set1_epi32(-of_rows[r]), exponents);
            /* What isn't finite has sums of 0. */
            x = _mm512_mask_scalef_ps(x, scaled, x, _mm512_cvtepi32_ps(back));
            _mm512_mask_storeu_ps(to, here, _mm512_mask_add_ps(x, scaled, x, old));
        }
        for (int64_t r = rows; !made && r < (rows > 16 ? SIDE : 16); r++)
            _mm512_store_ps(sums + r * SIDE + j, zero);
    }
}

/* ---- products ------------------------------------------------------------------------------------------ */

typedef struct {
    int32_t *rows, *columns, *odd_rows, *odd_columns; /* exponents in a slice; SPLIT_ODD where any slice is */
    uint16_t *a, *b;
    float *apart, *sums; /* lines in the other order; a block of C */
} Room;

/* Slices of K, as equal as steps allow. */
static int64_t depth_of(int64_t k) {
    int64_t slices = (k + DEEP - 1) / DEEP;
    return ((k + slices - 1) / slices + STEP - 1) / STEP * STEP;
}

/* Memory that each thread keeps. -1: there is none. */
static int room_for(int64_t m, int64_t n, int64_t k, Room *to) {
    static __thread char *kept;
    static __thread size_t size;
    int64_t deep = k < DEEP ? (k + STEP - 1) / STEP * STEP : DEEP,
            high = m < HIGH ? (m + SIDE - 1) / SIDE * SIDE : HIGH;
    size_t of_exponents = (size_t)(2 * (m + n + 2 * SIDE) * 4 + 63) / 64 * 64,
           of_a = (size_t)(high * deep * PARTS * 2), of_b = (size_t)(SIDE * deep * PARTS * 2),
           of_apart = (size_t)(SIDE * deep * 4), of_sums = SIDE * SIDE * 4,
           wanted = of_exponents + of_a + of_b + of_apart + of_sums;
    if (wanted > size) {
        free(kept);
        size = 0;
        if (!(kept = aligned_alloc(64, wanted))) return -1;
        size = wanted;
    }
    char *at = kept;
    to->rows = (int32_t *)at, to->columns = to->rows + m + SIDE;
    to->odd_rows = to->columns + n + SIDE, to->odd_columns = to->odd_rows + m, at += of_exponents;
    to->a = (uint16_t *)at, at += of_a;
    to->b = (uint16_t *)at, at += of_b;
    to->apart = (float *)at, at += of_apart;
    to->sums = (float *)at;
    return 0;
}

/* Exponents of lines in a slice, and which were odd in any. Returns whether some are scaled or odd. */
static int note_exponents(int across, const float *from, int64_t ld, int64_t lines, int64_t deep, int32_t *to,
                          int32_t *odd, int sum) {
    int some = 0;
    (across ? scan_across : scan_lines)(from, ld, lines, deep, to);
    for (int64_t i = 0; i < lines; i++) {
        if (to[i] == SPLIT_ODD) odd[i] = SPLIT_ODD;
        else if (sum && odd[i]) to[i] = SPLIT_ODD;
        some |= to[i] != 0;
    }
    return some;
}

/* The lines of A or B that aren't finite, before anything is added to C. */
static void find_odd(int across, const float *from, int64_t ld, int64_t lines, int64_t k, int32_t *odd) {
    (across ? scan_across : scan_lines)(from, ld, lines, k, odd);
    for (int64_t i = 0; i < lines; i++)
        if (odd[i] != SPLIT_ODD) odd[i] = 0;
}

/* A panel of 32 columns of B, of a slice: its exponents to `columns`; room for the other order in `apart`. */
static int pack_panel(const SplitProduct *p, int64_t p0, int64_t deep, int64_t i, float *apart,
                      int32_t *columns, int32_t *odd, uint16_t *to) {
    int64_t wide = p->n - i < SIDE ? p->n - i : SIDE, ld = p->ldb;
    const float *from = p->bt ? p->b + i * ld + p0 : p->b + p0 * ld + i;
    if (p->bt) {
        flb_transpose(0, wide, deep, from, ld, apart, SIDE);
        from = apart, ld = SIDE;
    }
    int scaled = note_exponents(1, from, ld, wide, deep, columns, odd, p->sum);
    pack_columns(from, ld, wide, deep, columns, to);
    return scaled;
}

#define LINE 32 /* elements of 16 bits of a cache line */
#define HEAD (SIDE * 2 + LINE)

/* Elements of 16 bits of a panel with all of K: of each slice the exponents, whether some aren't 0, and the
 * parts. */
static int64_t whole_panel(int64_t k) {
    int64_t depth = depth_of(k), slices = (k + depth - 1) / depth;
    return slices * HEAD + (k + STEP - 1) / STEP * PARTS * PAIR;
}

int64_t flb_split_packed(int64_t n, int64_t k, int64_t *bytes) {
    int64_t panels = (n + SIDE - 1) / SIDE;
    return *bytes = panels * whole_panel(k) * 2, panels;
}

void flb_split_pack(int bt, int64_t n, int64_t k, const float *b, int64_t ldb, void *to, int64_t from,
                    int64_t end) {
    SplitProduct p = {.bt = bt, .n = n, .k = k, .b = b, .ldb = ldb};
    float apart[SIDE * DEEP] __attribute__((aligned(64)));
    int32_t odd[SIDE];
    int64_t depth = depth_of(k);
    for (int64_t j = from; j < end; j++) {
        uint16_t *at = (uint16_t *)to + j * whole_panel(k);
        for (int64_t p0 = 0; p0 < k; p0 += depth) {
            int64_t deep = p0 + depth < k ? depth : k - p0;
            int32_t *head = (int32_t *)at;
            memset(head, 0, HEAD * 2);
            head[SIDE] = pack_panel(&p, p0, deep, j * SIDE, apart, head, odd, at + HEAD);
            at += HEAD + (deep + STEP - 1) / STEP * PARTS * PAIR;
        }
    }
}

/* -1: there is no memory, nothing is written; else how many rows and columns are odd. Their elements (with
 * `sum`, as they were) are the caller's to make. */
int flb_split_product(const SplitProduct *p, const int32_t **rows, const int32_t **columns) {
    Room room;
    int64_t m = p->m, n = p->n, k = p->k, odd = 0;
    if (room_for(m, n, k, &room) < 0) return -1;
    memset(room.odd_rows, 0, (size_t)(m + n) * 4);
    if (p->sum) {
        find_odd(p->at, p->a, p->lda, m, k, room.odd_rows);
        find_odd(!p->bt, p->b, p->ldb, n, k, room.odd_columns);
    }
    int64_t depth = depth_of(k);
    shape_tiles();
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0, steps = (deep + STEP - 1) / STEP,
                panel = steps * PARTS * PAIR;
        int more = p->sum || p0;
        for (int64_t r0 = 0; r0 < m; r0 += HIGH) {
            int64_t r1 = r0 + HIGH < m ? r0 + HIGH : m;
            int scaled_rows = 0;
            for (int64_t r = r0; r < r1; r += SIDE) {
                int64_t lines = r1 - r < SIDE ? r1 - r : SIDE, ld = p->lda;
                const float *from = p->at ? p->a + p0 * ld + r : p->a + r * ld + p0;
                if (p->at) {
                    flb_transpose(0, deep, lines, from, ld, room.apart, deep);
                    from = room.apart, ld = deep;
                }
                scaled_rows |=
                    note_exponents(0, from, ld, lines, deep, room.rows + r, room.odd_rows + r, p->sum);
                pack_lines(from, ld, lines, deep, room.rows + r, room.a + (r - r0) / SIDE * panel);
            }
            for (int64_t i = 0; i < n; i += SIDE) {
                int64_t wide = n - i < SIDE ? n - i : SIDE;
                const int32_t *of_columns = room.columns + i;
                const uint16_t *b = room.b;
                int scaled = scaled_rows;
                if (p->packed) {
                    const uint16_t *at = (const uint16_t *)p->packed + i / SIDE * whole_panel(k) +
                        p0 / depth * HEAD + p0 / STEP * PARTS * PAIR;
                    of_columns = (const int32_t *)at, b = at + HEAD, scaled |= of_columns[SIDE];
                    for (int64_t j = 0; of_columns[SIDE] && j < wide; j++)
                        if (of_columns[j] == SPLIT_ODD) room.odd_columns[i + j] = SPLIT_ODD;
                } else
                    scaled |= pack_panel(p, p0, deep, i, room.apart, room.columns + i, room.odd_columns + i,
                                         room.b);
                for (int64_t r = r0; r < r1; r += SIDE) {
                    int64_t tall = r1 - r < SIDE ? r1 - r : SIDE;
                    const uint16_t *a = room.a + (r - r0) / SIDE * panel;
                    float *c = p->c + r * p->ldc + i;
                    if (tall == SIDE && wide == SIDE && !scaled) {
                        const char *next = (const char *)(c + SIDE * p->ldc);
                        for (int64_t j = 0; r + SIDE < r1 && j < SIDE; j++, next += p->ldc * 4)
                            _mm_prefetch(next, _MM_HINT_T0), _mm_prefetch(next + 64, _MM_HINT_T0);
                        block_of(steps, a, b, c, p->ldc, more, 1, 1);
                        continue;
                    }
                    exchange(room.sums, tall, wide, room.rows + r, of_columns, c, p->ldc, more, 0);
                    block_of(steps, a, b, room.sums, SIDE, 1, tall > 16, wide > 16);
                    exchange(room.sums, tall, wide, room.rows + r, of_columns, c, p->ldc, more, 1);
                }
            }
        }
    }
    release_tiles();
    for (int64_t i = 0; i < m + n; i++) odd += room.odd_rows[i] != 0;
    *rows = room.odd_rows, *columns = room.odd_columns;
    return (int)odd;
}

#else
int flb_split_fits(int64_t m, int64_t n, int64_t k) { return 0; }
int64_t flb_split_packed(int64_t n, int64_t k, int64_t *bytes) { return *bytes = 0; }
void flb_split_pack(int bt, int64_t n, int64_t k, const float *b, int64_t ldb, void *to, int64_t from,
                    int64_t end) {}
int flb_split_product(const SplitProduct *p, const int32_t **rows, const int32_t **columns) { return -1; }
#endif
