/* The packing and the kernels of product.c for one element type: included with T, NAME(x) and SINGLE (whether
 * T is float). */

/* C tile (MR, NV vectors of BYTES bytes) = or += A panel (k, MR) times B rows at b, b + ldb, ... Where the
 * tile is cut (rows, columns), it goes through memory. */
#define EACH _Pragma("GCC unroll 16") for
#if defined(__x86_64__)
/* C (rows, columns) = or += what is cut from sums whose rows lie `step` apart, a multiple of a vector. */
__attribute__((target("avx2,fma"), FAST)) static void
NAME(put_cut)(const T *sums, int64_t step, T *c, int64_t ldc, int64_t rows, int64_t columns, int accumulate) {
    typedef T V __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
    enum { LANES = 32 / sizeof(T), WORDS = sizeof(T) / 4 };
    static const int32_t chosen[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    int64_t whole = columns / LANES * LANES;
    __m256i some = _mm256_loadu_si256((const __m256i *)(chosen + 8 - (columns - whole) * WORDS));
    for (int64_t r = 0; r < rows; r++, sums += step, c += ldc) {
        for (int64_t i = 0; i < whole; i += LANES) {
            V x = *(const V *)(sums + i);
            if (accumulate) x += *(V *)(c + i);
            *(V *)(c + i) = x;
        }
        if (whole == columns) continue;
        V x = *(const V *)(sums + whole);
#if SINGLE
        if (accumulate) x += (V)_mm256_maskload_ps(c + whole, some);
        _mm256_maskstore_ps(c + whole, some, (__m256)x);
#else
        if (accumulate) x += (V)_mm256_maskload_pd(c + whole, some);
        _mm256_maskstore_pd(c + whole, some, (__m256d)x);
#endif
    }
}
#else
static void NAME(put_cut)(const T *sums, int64_t step, T *c, int64_t ldc, int64_t rows, int64_t columns,
                          int accumulate) {}
#endif
#define AHEAD 6 /* rows of B that are on their way to the first-level cache, */
#define FAR 24  /* and where they come from further away */
#define KERNEL(name, target_text, BYTES, MR, NV, AHEAD)                                                     \
    __attribute__((target_text, FAST)) static void NAME(name)(int64_t k, const T *a, const T *b,            \
                                                              int64_t ldb, T *c, int64_t ldc, int64_t rows, \
                                                              int64_t columns, int accumulate) {            \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                     \
        enum { LANES = BYTES / sizeof(T) };                                                                 \
        V sum[MR][NV];                                                                                      \
        EACH(int r = 0; r < MR; r++)                                                                        \
        EACH(int v = 0; v < NV; v++) sum[r][v] = (V){0};                                                    \
        if (BYTES == 32) /* the tile is in the first-level cache when its sums are made */                  \
            EACH(int r = 0; r < MR; r++) {                                                                  \
                __builtin_prefetch(c + r * ldc, 1);                                                         \
                __builtin_prefetch(c + r * ldc + NV * LANES - 1, 1);                                        \
            }                                                                                               \
        for (int64_t p = 0; p < k; p++, a += MR, b += ldb) {                                                \
            V row[NV];                                                                                      \
            EACH(int v = 0; v < NV; v++)                                                                    \
            row[v] = ((const V *)b)[v], __builtin_prefetch(b + AHEAD * ldb + v * LANES);                    \
            EACH(int r = 0; r < MR; r++)                                                                    \
            EACH(int v = 0; v < NV; v++) sum[r][v] += a[r] * row[v];                                        \
        }                                                                                                   \
        if (rows == MR && columns == NV * LANES) {                                                          \
            EACH(int r = 0; r < MR; r++)                                                                    \
            EACH(int v = 0; v < NV; v++) {                                                                  \
                V *to = (V *)(c + r * ldc) + v;                                                             \
                if (accumulate) sum[r][v] += *to;                                                           \
                *to = sum[r][v];                                                                            \
            }                                                                                               \
            return;                                                                                         \
        }                                                                                                   \
        if (BYTES == 32 && columns == NV * LANES) {                                                         \
            EACH(int r = 0; r < MR; r++) if (r < rows) EACH(int v = 0; v < NV; v++) {                       \
                V *to = (V *)(c + r * ldc) + v;                                                             \
                if (accumulate) sum[r][v] += *to;                                                           \
                *to = sum[r][v];                                                                            \
            }                                                                                               \
            return;                                                                                         \
        }                                                                                                   \
        T part[MR * NV * LANES];                                                                            \
        EACH(int r = 0; r < MR; r++)                                                                        \
        EACH(int v = 0; v < NV; v++)((V *)(part + r * NV * LANES))[v] = sum[r][v];                          \
        if (BYTES == 32) {                                                                                  \
            NAME(put_cut)(part, NV * LANES, c, ldc, rows, columns, accumulate);                             \
            return;                                                                                         \
        }                                                                                                   \
        for (int64_t r = 0; r < rows; r++)                                                                  \
            for (int64_t i = 0; i < columns; i++)                                                           \
                c[r * ldc + i] =                                                                            \
                    accumulate ? c[r * ldc + i] + part[r * NV * LANES + i] : part[r * NV * LANES + i];      \
    }

typedef void (*NAME(Kernel))(int64_t, const T *, const T *, int64_t, T *, int64_t, int64_t, int64_t, int);
#if defined(__x86_64__)
KERNEL(k12x2, target("avx512f,avx512vl,avx512dq,fma"), 64, 12, 2, AHEAD)
KERNEL(k8x2, target("avx512f,avx512vl,avx512dq,fma"), 64, 8, 2, AHEAD)
KERNEL(k4x2, target("avx512f,avx512vl,avx512dq,fma"), 64, 4, 2, AHEAD)
KERNEL(k12x1, target("avx512f,avx512vl,avx512dq,fma"), 64, 12, 1, AHEAD)
KERNEL(k8x1, target("avx512f,avx512vl,avx512dq,fma"), 64, 8, 1, AHEAD)
KERNEL(k4x1, target("avx512f,avx512vl,avx512dq,fma"), 64, 4, 1, AHEAD)
/* Of two panels of B, or twice the columns, `apart` elements from each other: four vectors of columns by MR
 * rows of a panel of A that is `high`. `rows` of them are stored. */
#define DOUBLE(name, MR)                                                                                \
    __attribute__((target("avx512f,avx512vl,avx512dq,fma"), FAST)) static void NAME(name)(              \
        int64_t k, const T *a, int64_t high, const T *b, int64_t apart, int64_t ldb, T *c, int64_t ldc, \
        int64_t rows, int accumulate) {                                                                 \
        typedef T V __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));                    \
        enum { LANES = 64 / sizeof(T) };                                                                \
        V sum[MR][4];                                                                                   \
        EACH(int r = 0; r < MR; r++)                                                                    \
        EACH(int v = 0; v < 4; v++) sum[r][v] = (V){0};                                                 \
        const T *d = b + apart;                                                                         \
        for (int64_t p = 0; p < k; p++, a += high, b += ldb, d += ldb) {                                \
            V row[4];                                                                                   \
            EACH(int v = 0; v < 4; v++) {                                                               \
                const T *from = (v < 2 ? b : d) + v % 2 * LANES;                                        \
                row[v] = *(const V *)from, __builtin_prefetch(from + AHEAD * ldb);                      \
            }                                                                                           \
            EACH(int r = 0; r < MR; r++)                                                                \
            EACH(int v = 0; v < 4; v++) sum[r][v] += a[r] * row[v];                                     \
        }                                                                                               \
        EACH(int r = 0; r < MR; r++) if (r < rows) {                                                    \
            V *to = (V *)(c + r * ldc);                                                                 \
            EACH(int v = 0; v < 4; v++) {                                                               \
                if (accumulate) sum[r][v] += to[v];                                                     \
                to[v] = sum[r][v];                                                                      \
            }                                                                                           \
        }                                                                                               \
    }
DOUBLE(d6x4, 6)
DOUBLE(d4x4, 4)
#undef DOUBLE
KERNEL(h6x2, target("avx2,fma"), 32, 6, 2, AHEAD)
KERNEL(h4x2, target("avx2,fma"), 32, 4, 2, AHEAD)
KERNEL(h2x2, target("avx2,fma"), 32, 2, 2, AHEAD)
KERNEL(h6x1, target("avx2,fma"), 32, 6, 1, AHEAD)
KERNEL(h4x1, target("avx2,fma"), 32, 4, 1, AHEAD)
KERNEL(h2x1, target("avx2,fma"), 32, 2, 1, AHEAD)
/* Of few rows, of columns where they lie: a sum is ready after as many others as here are. */
KERNEL(h4x3, target("avx2,fma"), 32, 4, 3, FAR)
KERNEL(h2x6, target("avx2,fma"), 32, 2, 6, FAR)
#endif
KERNEL(q4x2, unused, 16, 4, 2, AHEAD)
KERNEL(q2x2, unused, 16, 2, 2, AHEAD)
KERNEL(q1x2, unused, 16, 1, 2, AHEAD)
KERNEL(q4x1, unused, 16, 4, 1, AHEAD)
KERNEL(q2x1, unused, 16, 2, 1, AHEAD)
KERNEL(q1x1, unused, 16, 1, 1, AHEAD)
#if SINGLE && defined(__x86_64__)
#define BY_FOUR 4
/* to[i * ld + r] = from[r * step + i] for four rows and four columns. */
static inline void NAME(turn)(const T *from, int64_t step, T *to, int64_t ld) {
    __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + step), c = _mm_loadu_ps(from + 2 * step),
           d = _mm_loadu_ps(from + 3 * step);
    _MM_TRANSPOSE4_PS(a, b, c, d);
    _mm_storeu_ps(to, a), _mm_storeu_ps(to + ld, b), _mm_storeu_ps(to + 2 * ld, c),
        _mm_storeu_ps(to + 3 * ld, d);
}
#endif

#ifdef BY_FOUR
/* to[i * height + r] = from[r * ld + i] for sixteen rows and four columns: a lane of a vector is four columns
 * of a row, which loads under a mask put there, so that what is left are transpositions of four by four
 * inside of lanes. */
__attribute__((target("avx512f,avx512vl,avx512dq"), FAST)) static inline void
NAME(turn_sixteen)(const T *from, int64_t ld, T *to, int64_t height) {
    __m512 row[4];
    EACH(int i = 0; i < 4; i++) {
        row[i] = _mm512_castps128_ps512(_mm_loadu_ps(from + i * ld));
        EACH(int l = 1; l < 4; l++)
        row[i] = _mm512_mask_broadcast_f32x4(row[i], (__mmask16)(15 << 4 * l),
                                             _mm_loadu_ps(from + (4 * l + i) * ld));
    }
    __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(row[0], row[1])),
            AB = _mm512_castps_pd(_mm512_unpackhi_ps(row[0], row[1]));
    __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(row[2], row[3])),
            CD = _mm512_castps_pd(_mm512_unpackhi_ps(row[2], row[3]));
    _mm512_storeu_pd((void *)to, _mm512_unpacklo_pd(ab, cd));
    _mm512_storeu_pd((void *)(to + height), _mm512_unpackhi_pd(ab, cd));
    _mm512_storeu_pd((void *)(to + 2 * height), _mm512_unpacklo_pd(AB, CD));
    _mm512_storeu_pd((void *)(to + 3 * height), _mm512_unpackhi_pd(AB, CD));
}

/* to[p * height + r] = from[r * ld + p] for 4 * fours rows and the first k / 16 * 16 columns, which it
 * returns: whole cache lines are read, since rows of a matrix whose width is a power of two share a set of
 * the cache. */
__attribute__((target("avx512f,avx512vl,avx512dq"), FAST)) static int64_t
NAME(turn_lines)(const T *from, int64_t ld, int64_t fours, int64_t k, T *to, int64_t height) {
    int64_t p = 0;
    for (; p + 16 <= k; p += 16) {
        int64_t f = 0;
        for (; f + 4 <= fours; f += 4)
            for (int q = 0; q < 16; q += 4)
                NAME(turn_sixteen)(from + 4 * f * ld + p + q, ld, to + (p + q) * height + 4 * f, height);
        for (; f < fours; f++) {
            const T *at = from + 4 * f * ld + p;
            T *into = to + p * height + 4 * f;
            __m512 a = _mm512_loadu_ps(at), b = _mm512_loadu_ps(at + ld), c = _mm512_loadu_ps(at + 2 * ld),
                   d = _mm512_loadu_ps(at + 3 * ld);
            __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b)),
                    AB = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
            __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d)),
                    CD = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
            __m512 column[4] = {
                _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)),
                _mm512_castpd_ps(_mm512_unpacklo_pd(AB, CD)), _mm512_castpd_ps(_mm512_unpackhi_pd(AB, CD))};
            EACH(int i = 0; i < 4; i++) {
                _mm_storeu_ps(into + i * height, _mm512_extractf32x4_ps(column[i], 0));
                _mm_storeu_ps(into + (4 + i) * height, _mm512_extractf32x4_ps(column[i], 1));
                _mm_storeu_ps(into + (8 + i) * height, _mm512_extractf32x4_ps(column[i], 2));
                _mm_storeu_ps(into + (12 + i) * height, _mm512_extractf32x4_ps(column[i], 3));
            }
        }
    }
    return p;
}
#endif

#if defined(__x86_64__)
/* to[p * step + r] = from[r * ld + p] for 2 * twos rows and the columns that fill vectors of 32 bytes,
 * whose number it returns. */
__attribute__((target("avx2,fma"), FAST)) static int64_t
NAME(turn_half)(const T *from, int64_t ld, int64_t twos, int64_t k, T *to, int64_t step) {
    enum { LANES = 32 / sizeof(T) };
    int64_t whole = k / LANES * LANES, r = 0;
    for (; r + 4 <= 2 * twos; r += 4)
        for (int64_t p = 0; p < whole; p += LANES) {
            const T *at = from + r * ld + p;
            T *into = to + p * step + r;
#if SINGLE
            __m256 a = _mm256_loadu_ps(at), b = _mm256_loadu_ps(at + ld), c = _mm256_loadu_ps(at + 2 * ld),
                   d = _mm256_loadu_ps(at + 3 * ld);
            __m256 ab = _mm256_unpacklo_ps(a, b), AB = _mm256_unpackhi_ps(a, b),
                   cd = _mm256_unpacklo_ps(c, d), CD = _mm256_unpackhi_ps(c, d);
            __m256 column[4] = {_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee),
                                _mm256_shuffle_ps(AB, CD, 0x44), _mm256_shuffle_ps(AB, CD, 0xee)};
            EACH(int i = 0; i < 4; i++) {
                _mm_storeu_ps(into + i * step, _mm256_castps256_ps128(column[i]));
                _mm_storeu_ps(into + (4 + i) * step, _mm256_extractf128_ps(column[i], 1));
            }
#else
            __m256d a = _mm256_loadu_pd(at), b = _mm256_loadu_pd(at + ld), c = _mm256_loadu_pd(at + 2 * ld),
                    d = _mm256_loadu_pd(at + 3 * ld);
            __m256d ab = _mm256_unpacklo_pd(a, b), AB = _mm256_unpackhi_pd(a, b),
                    cd = _mm256_unpacklo_pd(c, d), CD = _mm256_unpackhi_pd(c, d);
            _mm256_storeu_pd(into, _mm256_permute2f128_pd(ab, cd, 0x20));
            _mm256_storeu_pd(into + step, _mm256_permute2f128_pd(AB, CD, 0x20));
            _mm256_storeu_pd(into + 2 * step, _mm256_permute2f128_pd(ab, cd, 0x31));
            _mm256_storeu_pd(into + 3 * step, _mm256_permute2f128_pd(AB, CD, 0x31));
#endif
        }
    for (; r < 2 * twos; r += 2)
        for (int64_t p = 0; p < whole; p += LANES) {
            const T *at = from + r * ld + p;
            T *into = to + p * step + r;
#if SINGLE
            __m256 a = _mm256_loadu_ps(at), b = _mm256_loadu_ps(at + ld);
            __m256 pairs[2] = {_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)};
            EACH(int i = 0; i < 2; i++) {
                __m128 low = _mm256_castps256_ps128(pairs[i]), high = _mm256_extractf128_ps(pairs[i], 1);
                _mm_storel_pi((__m64 *)(into + 2 * i * step), low);
                _mm_storeh_pi((__m64 *)(into + (2 * i + 1) * step), low);
                _mm_storel_pi((__m64 *)(into + (4 + 2 * i) * step), high);
                _mm_storeh_pi((__m64 *)(into + (5 + 2 * i) * step), high);
            }
#else
            __m256d a = _mm256_loadu_pd(at), b = _mm256_loadu_pd(at + ld);
            __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
            _mm_storeu_pd(into, _mm256_castpd256_pd128(even));
            _mm_storeu_pd(into + step, _mm256_castpd256_pd128(odd));
            _mm_storeu_pd(into + 2 * step, _mm256_extractf128_pd(even, 1));
            _mm_storeu_pd(into + 3 * step, _mm256_extractf128_pd(odd, 1));
#endif
        }
    return whole;
}
#endif

/* to[p * step + r] = from[r * ld + p] */
BY_LEVEL(static void, NAME(transpose),
         (const T *from, int64_t ld, int64_t rows, int64_t k, T *to, int64_t step),
         (from, ld, rows, k, to, step)) {
    int64_t r = 0, halves = 0;
#if defined(__x86_64__)
    if (flb_cpu_level() == 1) halves = NAME(turn_half)(from, ld, rows / 2, k, to, step);
#endif
#ifdef BY_FOUR
    int64_t transposed = flb_cpu_level() == 2 ? NAME(turn_lines)(from, ld, rows / 4, k, to, step) : halves;
    for (; r + 4 <= rows; r += 4) {
        int64_t p = transposed;
        for (; p + 4 <= k; p += 4) NAME(turn)(from + r * ld + p, ld, to + p * step + r, step);
        for (; p < k; p++)
            for (int64_t i = r; i < r + 4; i++) to[p * step + i] = from[i * ld + p];
    }
#endif
    for (; r < rows; r++)
        for (int64_t p = r < rows / 2 * 2 ? halves : 0; p < k; p++) to[p * step + r] = from[r * ld + p];
}

/* A panel (k, height) of `rows` lines, which are contiguous along the panel (`along`) or along k; the rest is
 * zero. */
BY_LEVEL(static void, NAME(pack),
         (const T *from, int along, int64_t ld, int64_t rows, int64_t height, int64_t k, T *to),
         (from, along, ld, rows, height, k, to)) {
    if (along && rows == 128 / sizeof(T) && height == rows) {
        /* The next panel's lines are as far apart: no hardware looks ahead there. */
        for (int64_t p = 0; p < k; p++, to += height, from += ld) {
            __builtin_prefetch(from + height);
            __builtin_prefetch(from + height + height / 2);
            memcpy(to, from, 128);
        }
        return;
    }
    if (along && rows == 64 / sizeof(T) && height == rows) {
        for (int64_t p = 0; p < k; p++, to += height, from += ld) {
            __builtin_prefetch(from + height);
            memcpy(to, from, 64);
        }
        return;
    }
    if (along && rows == 6 && height == 6) {
        for (int64_t p = 0; p < k; p++, to += 6, from += ld) memcpy(to, from, 6 * sizeof(T));
        return;
    }
    if (along && rows == 12 && height == 12) {
        for (int64_t p = 0; p < k; p++, to += 12, from += ld) memcpy(to, from, 12 * sizeof(T));
        return;
    }
    if (along) {
        for (int64_t p = 0; p < k; p++, to += height, from += ld) {
            int64_t r = 0;
            for (; r < rows; r++) to[r] = from[r];
            for (; r < height; r++) to[r] = 0;
        }
        return;
    }
    NAME(transpose)(from, ld, rows, k, to, height);
    for (int64_t r = rows; r < height; r++)
        for (int64_t p = 0; p < k; p++) to[p * height + r] = 0;
}

/* The height of the next tile when `left` rows are to be made. */
static int NAME(next)(const Shape *s, int64_t left) {
    for (int i = 2; i > 0; i--)
        if (left <= s->rows[i]) return i;
    return 0;
}

static const struct {
    Shape shape;
    NAME(Kernel) kernels[3][2];
} NAME(levels)[] = {
    {{{4, 2, 1}, 16}, {{NAME(q4x1), NAME(q4x2)}, {NAME(q2x1), NAME(q2x2)}, {NAME(q1x1), NAME(q1x2)}}},
#if defined(__x86_64__)
    {{{6, 4, 2}, 32}, {{NAME(h6x1), NAME(h6x2)}, {NAME(h4x1), NAME(h4x2)}, {NAME(h2x1), NAME(h2x2)}}},
    {{{12, 8, 4}, 64}, {{NAME(k12x1), NAME(k12x2)}, {NAME(k8x1), NAME(k8x2)}, {NAME(k4x1), NAME(k4x2)}}},
#endif
};

/* Two tiles side by side, of a panel of A of shape `which`: see DOUBLE. Where flb_few_loads(). */
static void NAME(tiles)(int which, int64_t k, const T *a, const T *b, int64_t apart, int64_t ldb, T *c,
                        int64_t ldc, int64_t rows, int more) {
#if defined(__x86_64__)
    int64_t high = NAME(levels)[2].shape.rows[which], half = which ? 4 : 6;
    for (int64_t r = 0; r < rows; r += half)
        (which ? NAME(d4x4) : NAME(d6x4))(k, a + r, high, b, apart, ldb, c + r * ldc, ldc, rows - r, more);
#endif
}

/* Panels [from, to) of B (k, n) packed whole: slices of K one after the other, in each all columns in panels
 * of a tile. */
static void NAME(pack_panels)(int bt, int64_t n, int64_t k, const void *b_, int64_t ldb, void *to_,
                              int64_t from, int64_t to) {
    const Shape *s = &NAME(levels)[flb_cpu_level()].shape;
    int64_t lanes = s->bytes / (int64_t)sizeof(T), tile = 2 * lanes, padded = (n + tile - 1) / tile * tile,
            depth = slice(k, n <= widest() / (int64_t)sizeof(T) / 2);
    const T *b = b_;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0;
        for (int64_t j = from; j < to; j++) {
            int64_t i = j * tile, columns = n - i < tile ? n - i : tile;
            NAME(pack)(bt ? b + i * ldb + p0 : b + p0 * ldb + i, !bt, ldb, columns,
                       columns <= lanes ? lanes : tile, deep, (T *)to_ + p0 * padded + i * deep);
        }
    }
}

/* C = A B for m rows, with B as pack_panels leaves it. -1: no memory for panels. */
static int NAME(multiply_packed)(int at, int64_t m, int64_t n, int64_t k, const void *a_, int64_t lda,
                                 const void *b_, void *c_, int64_t ldc) {
    int level = flb_cpu_level();
    const Shape *s = &NAME(levels)[level].shape;
    int64_t lanes = s->bytes / (int64_t)sizeof(T), tile = 2 * lanes, padded = (n + tile - 1) / tile * tile,
            depth = slice(k, n <= widest() / (int64_t)sizeof(T) / 2);
    const T *a = a_;
    T *left = panels((m + s->rows[0]) * depth * sizeof(T) + 64), *c = c_;
    if (!left) return -1;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0;
        T *panel = left;
        for (int64_t r = 0; r < m;) {
            int64_t height = s->rows[NAME(next)(s, m - r)], rows = m - r < height ? m - r : height;
            NAME(pack)(at ? a + p0 * lda + r : a + r * lda + p0, at, lda, rows, height, deep, panel);
            panel += height * deep, r += rows;
        }
        for (int64_t i = 0; i < n;) {
            int both = flb_few_loads() && n - i >= 2 * tile;
            int64_t columns = both ? 2 * tile
                : n - i < tile     ? n - i
                                   : tile,
                    width = columns <= lanes ? lanes : tile;
            const T *right = (const T *)b_ + p0 * padded + i * deep;
            panel = left;
            for (int64_t r = 0; r < m;) {
                int which = NAME(next)(s, m - r);
                int64_t height = s->rows[which], rows = m - r < height ? m - r : height;
                T *to = c + r * ldc + i;
                if (both) NAME(tiles)(which, deep, panel, right, tile * deep, tile, to, ldc, rows, p0 > 0);
                else NAME(levels)
                [level].kernels[which][width > lanes](deep, panel, right, width, to, ldc, rows, columns,
                                                      p0 > 0);
                panel += height * deep, r += rows;
            }
            i += columns;
        }
    }
    return 0;
}

/* A (m, k), stored (k, m) where `along`, in panels of rows: the panel that begins with row r lies at to + r *
 * k. */
static void NAME(pack_rows)(int along, int64_t m, int64_t k, const void *a_, int64_t lda, void *to) {
    const Shape *s = &NAME(levels)[flb_cpu_level()].shape;
    const T *a = a_;
    for (int64_t r = 0; r < m;) {
        int64_t height = s->rows[NAME(next)(s, m - r)], rows = m - r < height ? m - r : height;
        NAME(pack)(along ? a + r : a + r * lda, along, lda, rows, height, k, (T *)to + r * k);
        r += rows;
    }
}

/* C = or += rows [r0, r1) of A (m, k) from pack_rows, columns [p0, p0 + deep) of it, times B (deep, n); r0 is
 * where a panel begins, n a multiple of a tile. */
static void NAME(multiply_panels)(int64_t m, int64_t r0, int64_t r1, int64_t n, int64_t k, int64_t p0,
                                  int64_t deep, const T *a, const T *b, int64_t ldb, T *c, int64_t ldc,
                                  int more) {
    int level = flb_cpu_level();
    const Shape *s = &NAME(levels)[level].shape;
    int64_t tile = 2 * s->bytes / (int64_t)sizeof(T);
    for (int64_t r = r0; r < r1;) {
        int which = NAME(next)(s, m - r);
        int64_t height = s->rows[which], rows = r1 - r < height ? r1 - r : height;
        const T *panel = a + r * k + p0 * height;
        T *to = c + (r - r0) * ldc;
        int64_t i = 0;
        if (flb_few_loads())
            for (; i + 2 * tile <= n; i += 2 * tile)
                NAME(tiles)(which, deep, panel, b + i, tile, ldb, to + i, ldc, rows, more);
        for (; i < n; i += tile) NAME(levels)
        [level].kernels[which][1](deep, panel, b + i, ldb, to + i, ldc, rows, tile, more);
        r += rows;
    }
}

#include "kernels/few_kernels.h"
#include "kernels/few_half.h"
/* Whether few rows were made in a way of their own (is_few()). */
static int NAME(by_few)(int at, int bt, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                        int64_t ldb, T *c, int64_t ldc, int sum, const T *packed, int64_t n0, int64_t whole) {
    return flb_cpu_level() == 1
        ? NAME(half_dots)(at, m, n, k, a, lda, b, ldb, c, ldc, sum) == 0
        : NAME(few)(at, bt, m, n, k, a, lda, b, ldb, c, ldc, sum, packed, n0, whole) == 0;
}

#if defined(__x86_64__)
/* A tile of six vectors of B (k, n) where it lies, of `high` rows, two or four: a whole number of the tiles
 * that taller panels are made in. */
static void NAME(six_half)(int64_t high, int64_t k, const T *a, const T *b, int64_t ldb, T *c, int64_t ldc,
                           int64_t rows, int more) {
    int64_t lanes = 32 / (int64_t)sizeof(T);
    if (high == 2) NAME(h2x6)(k, a, b, ldb, c, ldc, rows, 6 * lanes, more);
    else
        for (int64_t i = 0; i < 6 * lanes; i += 3 * lanes)
            NAME(h4x3)(k, a, b + i, ldb, c + i, ldc, rows, 3 * lanes, more);
}
#else
static void NAME(six_half)(int64_t high, int64_t k, const T *a, const T *b, int64_t ldb, T *c, int64_t ldc,
                           int64_t rows, int more) {}
#endif

/* B[p, i] (k, n) of what is packed, `few`: by pack_few(). */
static T NAME(packed_at)(const T *packed, int few, int64_t n, int64_t k, int64_t p, int64_t i) {
    int64_t lanes = NAME(levels)[flb_cpu_level()].shape.bytes / (int64_t)sizeof(T),
            tile = few ? lanes : 2 * lanes;
    int64_t depth = few ? NAME(few_depth)(0, k) : slice(k, n <= widest() / (int64_t)sizeof(T) / 2),
            p0 = p / depth * depth;
    int64_t deep = k - p0 < depth ? k - p0 : depth, j = i / tile * tile,
            width = n - j <= lanes ? lanes : tile;
    return packed[p0 * ((n + tile - 1) / tile * tile) + j * deep + (p - p0) * width + i - j];
}

/* In the row-major sense C = A B, or += with `sum`; `at`: A is stored (k, m), `bt` likewise. `all` and
 * `whole`: the rows and columns of the result that this is a piece of, from column n0 on. They say how K is
 * cut, so that an element's sum doesn't depend on the pieces. `packed`: all of B as flb_pack_panels() leaves
 * it, or flb_pack_few() (`few`), or NULL. */
static void NAME(plain)(int at, int bt, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                        int64_t ldb, T *c, int64_t ldc, int sum, int64_t all, int64_t whole, const T *packed,
                        int64_t n0, int few) {
    if ((packed ? few : is_few(bt, all, whole, k)) &&
        NAME(by_few)(at, bt, m, n, k, a, lda, b, ldb, c, ldc, sum, packed, n0, whole))
        return;
    int level = flb_cpu_level();
    const Shape *s = &NAME(levels)[level].shape;
    int64_t lanes = s->bytes / (int64_t)sizeof(T), tile = 2 * lanes, wide = widest() / (int64_t)sizeof(T);
    /* Beside one block of columns a panel of A is read only once: right after it is packed. */
    int once = n <= wide;
    int64_t depth = slice(k, whole <= wide / 2), high = once || m < HIGH ? m : HIGH, kept = once ? 0 : high,
            most = packed ? 0
        : n < wide        ? n
                          : wide,
            padded = (whole + tile - 1) / tile * tile;
    int in_place = !packed && !bt && stays(m, whole, n * k * (int64_t)sizeof(T));
    T *left =
        k > 0 && !(packed && few) ? panels((kept + s->rows[0] + most + tile) * depth * sizeof(T) + 64) : NULL;
    if (!left) {
        for (int64_t r = 0; r < m; r++) /* nothing to sum, or no memory for panels: as it is written */
            for (int64_t i = 0; i < n; i++) {
                T x = sum ? c[r * ldc + i] : 0;
                for (int64_t p = 0; p < k; p++)
                    x += (at ? a[p * lda + r] : a[r * lda + p]) *
                        (packed   ? NAME(packed_at)(packed, few, whole, k, p, n0 + i)
                             : bt ? b[i * ldb + p]
                                  : b[p * ldb + i]);
                c[r * ldc + i] = x;
            }
        return;
    }
    T *right = (T *)(((uintptr_t)(left + (kept + s->rows[0]) * depth) + 63) & ~(uintptr_t)63);
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0;
        int more = sum || p0;
        for (int64_t r0 = 0; r0 < m; r0 += high) {
            int64_t r1 = r0 + high < m ? r0 + high : m;
            for (int64_t i0 = 0; i0 < n; i0 += wide) {
                int64_t i1 = i0 + wide < n ? i0 + wide : n;
                if (!in_place && !packed) {
                    T *to = right;
                    for (int64_t i = i0; i < i1;) {
                        int64_t width = i1 - i <= lanes ? lanes : tile,
                                columns = i1 - i < width ? i1 - i : width;
                        NAME(pack)(bt ? b + i * ldb + p0 : b + p0 * ldb + i, !bt, ldb, columns, width, deep,
                                   to);
                        to += width * deep, i += columns;
                    }
                }
                T *panel = left;
                for (int64_t r = r0; r < r1;) {
                    int which = NAME(next)(s, r1 - r);
                    int64_t height = s->rows[which], rows = r1 - r < height ? r1 - r : height;
                    if (i0 == 0)
                        NAME(pack)(at ? a + p0 * lda + r : a + r * lda + p0, at, lda, rows, height, deep,
                                   panel);
                    const T *from = packed ? packed + p0 * padded + (n0 + i0) * deep : right;
                    for (int64_t i = i0; i < i1;) {
                        int64_t width = i1 - i <= lanes ? lanes : tile,
                                columns = i1 - i < width ? i1 - i : width, step = width;
                        const T *cols = from;
                        if (flb_few_loads() && i1 - i >= 2 * tile) {
                            if (in_place)
                                NAME(tiles)(which, deep, panel, b + p0 * ldb + i, tile, ldb, c + r * ldc + i,
                                            ldc, rows, more);
                            else
                                NAME(tiles)(which, deep, panel, from, tile * deep, tile, c + r * ldc + i, ldc,
                                            rows, more);
                            from += in_place ? 0 : 2 * tile * deep;
                            i += 2 * tile;
                            continue;
                        }
                        if (in_place && level == 1 && height < 6 && i1 - i >= 3 * tile) {
                            NAME(six_half)(height, deep, panel, b + p0 * ldb + i, ldb, c + r * ldc + i, ldc,
                                           rows, more);
                            i += 3 * tile;
                            continue;
                        }
                        if (in_place && columns == width) cols = b + p0 * ldb + i, step = ldb;
                        else if (in_place && r == r0)
                            NAME(pack)(b + p0 * ldb + i, 1, ldb, columns, width, deep, right);
                        NAME(levels)
                        [level].kernels[which][width > lanes](deep, panel, cols, step, c + r * ldc + i, ldc,
                                                              rows, columns, more);
                        from += in_place ? 0 : width * deep;
                        i += columns;
                    }
                    if (!once) panel += height * deep;
                    r += rows;
                }
            }
        }
    }
}

#if SINGLE
/* The end of a run of lines that are all odd or all not. */
static int64_t run_of(const int32_t *exponents, int64_t from, int64_t end) {
    int odd = exponents[from] == SPLIT_ODD;
    while (from < end && (exponents[from] == SPLIT_ODD) == odd) from++;
    return from;
}

/* A product by tiles, and what isn't finite of it by vectors. -1: no memory. */
static int split(const SplitProduct *p, int64_t all, int64_t whole) {
    const int32_t *rows, *columns;
    int odd = flb_split_product(p, &rows, &columns);
    for (int64_t r = 0, r1; odd > 0 && r < p->m; r = r1) {
        r1 = run_of(rows, r, p->m);
        int odd_rows = rows[r] == SPLIT_ODD;
        for (int64_t i = 0, i1; i < p->n; i = i1) {
            i1 = run_of(columns, i, p->n);
            if (odd_rows || columns[i] == SPLIT_ODD)
                plain_f32(p->at, p->bt, r1 - r, i1 - i, p->k, p->at ? p->a + r : p->a + r * p->lda, p->lda,
                          p->bt ? p->b + i * p->ldb : p->b + i, p->ldb, p->c + r * p->ldc + i, p->ldc, p->sum,
                          all, whole, NULL, 0, 0);
        }
    }
    return odd < 0 ? -1 : 0;
}
#endif

/* plain(), or by tiles where the CPU has them and sizes are worth it. */
static void NAME(multiply)(int at, int bt, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda,
                           const T *b, int64_t ldb, T *c, int64_t ldc, int sum, int64_t all, int64_t whole,
                           const T *packed, int64_t n0, int few) {
#if SINGLE
    SplitProduct p = {at, bt, sum, m, n, k, a, lda, b, ldb, c, ldc};
    if (!packed && by_tiles(bt, all, whole, k) && split(&p, all, whole) == 0) return;
#endif
    NAME(plain)(at, bt, m, n, k, a, lda, b, ldb, c, ldc, sum, all, whole, packed, n0, few);
}

/* sgemm or dgemm, with alpha one and beta zero or one. */
static void NAME(product)(const char *tb, const char *ta, const int64_t *n, const int64_t *m,
                          const int64_t *k, const void *alpha, const void *b, const int64_t *ldb,
                          const void *a, const int64_t *lda, const void *beta, void *c, const int64_t *ldc) {
    int at = *ta == 'T' || *ta == 't', bt = *tb == 'T' || *tb == 't';
    if (passed_on(!SINGLE, bt, *m, *n, *k))
        library[!SINGLE](tb, ta, n, m, k, alpha, b, ldb, a, lda, beta, c, ldc);
    else
        NAME(multiply)(at, bt, *m, *n, *k, a, *lda, b, *ldb, c, *ldc, *(const T *)beta != 0, *m, *n, NULL, 0,
                       0);
}
#undef BY_FOUR
#undef EACH
