/* Products with few rows (AVX-512), for one element type: included by product.c with T, NAME(x) and SINGLE.
 *
 * What counts is that each element of B is read once and from where it lies. A's rows are packed, a slice of
 * K at a time. Where rows of memory of B run along the columns of C, a tile is as wide as the registers allow
 * beside all rows, or one vector by 16 rows, and what is next of B is asked for far ahead. Where they run
 * along K (B stored (n, k), the weight of Linear), an element of C is a dot product: SIDE rows of B by HIGH
 * rows of A, a vector of sums each, folded at the end of the slice. An element's sum depends on K alone, not
 * on the tile that it is in. */

#define ACROSS ((int64_t)(64 / sizeof(T)))
#define TARGET target("avx512f,avx512vl,avx512dq,fma")
typedef T NAME(Wide) __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
#if SINGLE
typedef int32_t NAME(Places) __attribute__((vector_size(64)));
#else
typedef int64_t NAME(Places) __attribute__((vector_size(64)));
#endif

static int64_t NAME(few_depth)(int bt, int64_t k) {
    int64_t most = bt ? LONG : SHORT, slices = (k + most - 1) / most,
            depth = slices ? (k + slices - 1) / slices : 1;
    return (depth + ACROSS - 1) / ACROSS * ACROSS;
}

/* Columns of a tile beside m rows. */
static int64_t NAME(few_width)(int64_t m) {
    return ACROSS * (m <= 2 ? 8 : m <= 4 ? 6 : m <= 8 ? 3 : m <= 12 ? 2 : flb_few_loads() ? 3 : 1);
}

/* Rows of the next tile or panel of A when `left` of m are to be made. */
static int64_t NAME(few_height)(int64_t m, int64_t left) {
    int64_t most = flb_few_loads() && m > 12 ? 8 : 16;
    return left >= most ? most : left <= 2 ? 2 : (left + 3) / 4 * 4;
}

#if defined(__x86_64__)
/* to[i]: the sum over the lanes of x[i], for eight vectors. Pairs are folded into one, first by halves. There
 * is room for a vector. */
#define HALVED(PAIRS, HALF)                                                            \
    EACH(int j = 0; j < N; j++)                                                        \
    own[j] = j & HALF ? N + j : j, other[j] = j & HALF ? N + (j & ~(HALF)) : j | HALF; \
    EACH(int i = 0; i < PAIRS; i++)                                                    \
    x[i] = __builtin_shuffle(x[i], x[i + PAIRS], own) + __builtin_shuffle(x[i], x[i + PAIRS], other);
__attribute__((TARGET, FAST, always_inline)) static inline void NAME(fold8)(NAME(Wide) * x, T *to) {
    enum { N = 64 / sizeof(T) };
    NAME(Places) own, other;
    HALVED(4, N / 2)
    HALVED(2, N / 4)
    HALVED(1, N / 8)
#if SINGLE
    EACH(int j = 0; j < N; j++) own[j] = j ^ 1, other[j] = 2 * j % N;
    x[0] += __builtin_shuffle(x[0], own);
    x[0] = __builtin_shuffle(x[0], other);
#endif
    *(NAME(Wide) *)to = x[0];
}
#undef HALVED

/* The first n numbers, and zeros. */
__attribute__((TARGET, FAST, always_inline)) static inline NAME(Wide) NAME(some)(const T *from, int64_t n) {
#if SINGLE
    return (NAME(Wide))_mm512_maskz_loadu_ps((1u << n) - 1, from);
#else
    return (NAME(Wide))_mm512_maskz_loadu_pd((1u << n) - 1, from);
#endif
}

/* C (rows, columns) = or += R packed rows of A times SIDE rows of B, over `steps` vectors and then `rest`
 * elements. */
#define DOTTED(name, R)                                                                              \
    __attribute__((TARGET, FAST)) static void NAME(name)(int64_t steps, int64_t rest, const T *a,    \
                                                         const T *b, int64_t ldb, T *c, int64_t ldc, \
                                                         int64_t rows, int64_t columns, int more) {  \
        NAME(Wide) sum[(R * SIDE + 7) / 8 * 8];                                                      \
        const T *at[SIDE];                                                                           \
        EACH(int j = 0; j < SIDE; j++) at[j] = b + (j < columns ? j : columns - 1) * ldb;            \
        EACH(int i = 0; i < (R * SIDE + 7) / 8 * 8; i++) sum[i] = (NAME(Wide)){0};                   \
        int64_t from = 0;                                                                            \
        for (; steps; steps--, a += R * ACROSS, from += ACROSS) {                                    \
            NAME(Wide) x[R];                                                                         \
            EACH(int r = 0; r < R; r++) x[r] = ((const NAME(Wide) *)a)[r];                           \
            EACH(int j = 0; j < SIDE; j++) {                                                         \
                NAME(Wide) y = *(const NAME(Wide) *)(at[j] + from);                                  \
                __asm__("" : "+v"(y)); /* it is loaded once, not in each of the multiply-adds */     \
                EACH(int r = 0; r < R; r++) sum[r * SIDE + j] += x[r] * y;                           \
            }                                                                                        \
        }                                                                                            \
        if (rest) EACH(int j = 0; j < SIDE; j++) {                                                   \
                NAME(Wide) y = NAME(some)(at[j] + from, rest);                                       \
                EACH(int r = 0; r < R; r++) sum[r * SIDE + j] += ((const NAME(Wide) *)a)[r] * y;     \
            }                                                                                        \
        T total[R * SIDE + 16];                                                                      \
        EACH(int i = 0; i < R * SIDE; i += 8) NAME(fold8)(sum + i, total + i);                       \
        for (int64_t r = 0; r < rows; r++, c += ldc)                                                 \
            if (columns == SIDE) EACH(int j = 0; j < SIDE; j++)                                      \
        c[j] = more ? c[j] + total[r * SIDE + j] : total[r * SIDE + j];                              \
        else for (int64_t j = 0; j < columns; j++) c[j] =                                            \
            more ? c[j] + total[r * SIDE + j] : total[r * SIDE + j];                                 \
    }
DOTTED(dotted4, 4)
DOTTED(dotted2, 2)
#undef DOTTED

/* Rows [0, m) and the next `deep` of K: groups of `high` rows, in each a vector of every row in turn; zero
 * where there is nothing. */
__attribute__((TARGET, FAST)) static void NAME(pack_lines)(int at, int64_t m, int64_t high, int64_t deep,
                                                           const T *a, int64_t lda, T *to) {
    int64_t steps = (deep + ACROSS - 1) / ACROSS;
    for (int64_t r = 0; r < (m + high - 1) / high * high; r++)
        for (int64_t s = 0; s < steps; s++) {
            T *into = to + ((r / high * steps + s) * high + r % high) * ACROSS;
            int64_t n = r >= m ? 0 : deep - s * ACROSS < ACROSS ? deep - s * ACROSS : ACROSS, i = 0;
            if (n == ACROSS && !at) {
                *(NAME(Wide) *)into = *(const NAME(Wide) *)(a + r * lda + s * ACROSS);
                continue;
            }
            for (; i < n; i++) into[i] = at ? a[(s * ACROSS + i) * lda + r] : a[r * lda + s * ACROSS + i];
            for (; i < ACROSS; i++) into[i] = 0;
        }
}

/* B is (n, k) in memory. */
static int NAME(few_dots)(int at, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                          int64_t ldb, T *c, int64_t ldc, int sum) {
    int64_t depth = NAME(few_depth)(1, k), high = m <= 2 ? 2 : 4;
    T *left = panels((m + 3) * depth * sizeof(T));
    if (!left) return -1;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0, steps = (deep + ACROSS - 1) / ACROSS;
        NAME(pack_lines)(at, m, high, deep, at ? a + p0 * lda : a + p0, lda, left);
        for (int64_t i = 0; i < n; i += SIDE)
            for (int64_t r = 0; r < m; r += high)
                (high == 4 ? NAME(dotted4) : NAME(dotted2))(deep / ACROSS, deep % ACROSS,
                                                            left + r * steps * ACROSS, b + i * ldb + p0, ldb,
                                                            c + r * ldc + i, ldc, m - r < high ? m - r : high,
                                                            n - i < SIDE ? n - i : SIDE, sum || p0);
    }
    return 0;
}

KERNEL(f2x8, TARGET, 64, 2, 8, FAR)
KERNEL(f4x6, TARGET, 64, 4, 6, FAR)
KERNEL(f8x3, TARGET, 64, 8, 3, FAR)
KERNEL(f12x2, TARGET, 64, 12, 2, FAR)
KERNEL(f16x1, TARGET, 64, 16, 1, FAR)
KERNEL(f12x1, TARGET, 64, 12, 1, FAR)
KERNEL(f8x1, TARGET, 64, 8, 1, FAR)
KERNEL(f4x1, TARGET, 64, 4, 1, FAR)
KERNEL(f2x1, TARGET, 64, 2, 1, FAR)
static const NAME(Kernel) NAME(of_few)[][2] = {
    {NAME(f2x1), NAME(f2x8)},   {NAME(f4x1), NAME(f4x6)},   {NAME(f8x1), NAME(f8x3)},
    {NAME(f12x1), NAME(f12x2)}, {NAME(f16x1), NAME(f16x1)},
};

/* C (rows, NV vectors) = or += a panel of A that is MR high times vectors of B that are `apart`, whose rows
 * are ldb from each other. */
#define VECTORS(name, MR, NV)                                                                              \
    __attribute__((TARGET, FAST)) static void NAME(name)(int64_t k, const T *a, const T *b, int64_t apart, \
                                                         int64_t ldb, T *c, int64_t ldc, int64_t rows,     \
                                                         int accumulate) {                                 \
        NAME(Wide) sum[MR][NV];                                                                            \
        const T *at[NV];                                                                                   \
        EACH(int v = 0; v < NV; v++) at[v] = b + v * apart;                                                \
        EACH(int r = 0; r < MR; r++)                                                                       \
        EACH(int v = 0; v < NV; v++) sum[r][v] = (NAME(Wide)){0};                                          \
        for (int64_t p = 0; p < k; p++, a += MR) {                                                         \
            NAME(Wide) row[NV];                                                                            \
            EACH(int v = 0; v < NV; v++) {                                                                 \
                row[v] = *(const NAME(Wide) *)(at[v] + p * ldb);                                           \
                __builtin_prefetch(at[v] + (p + FAR) * ldb);                                               \
            }                                                                                              \
            EACH(int r = 0; r < MR; r++)                                                                   \
            EACH(int v = 0; v < NV; v++) sum[r][v] += a[r] * row[v];                                       \
        }                                                                                                  \
        EACH(int r = 0; r < MR; r++) if (r < rows) EACH(int v = 0; v < NV; v++) {                          \
            NAME(Wide) *to = (NAME(Wide) *)(c + r * ldc) + v;                                              \
            if (accumulate) sum[r][v] += *to;                                                              \
            *to = sum[r][v];                                                                               \
        }                                                                                                  \
    }
VECTORS(v12x2, 12, 2)
VECTORS(v8x3, 8, 3)
VECTORS(v4x3, 4, 3)
VECTORS(v2x3, 2, 3)
#undef VECTORS

/* B is (k, n) in memory: tiles of few_width() columns, then of a vector. Or it is packed, with `whole`
 * columns in all of which n0 is the first: slices of K, in each panels of a vector's columns, which the
 * memory gives faster than lines a row apart. */
static int NAME(few_rows)(int at, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                          int64_t ldb, T *c, int64_t ldc, int sum, const T *packed, int64_t n0,
                          int64_t whole) {
    int together = flb_few_loads() && m > 4;
    int64_t depth = NAME(few_depth)(0, k), most = packed && !together ? ACROSS : NAME(few_width)(m),
            padded = (whole + ACROSS - 1) / ACROSS * ACROSS;
    T *left = panels((m + 3 + ACROSS) * depth * sizeof(T)), *right = left + (m + 3) * depth;
    if (!left) return -1;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0, height, width;
        for (int64_t r = 0; r < m; r += height) {
            height = NAME(few_height)(m, m - r);
            NAME(pack)(at ? a + p0 * lda + r : a + r * lda + p0, at, lda, m - r < height ? m - r : height,
                       height, deep, left + r * deep);
        }
        for (int64_t i = 0; i < n; i += width) {
            width = n - i < most ? ACROSS : most;
            int64_t columns = n - i < width ? n - i : width, step = packed || columns < width ? width : ldb;
            const T *cols = packed ? packed + p0 * padded + (n0 + i) * deep
                : columns < width  ? right
                                   : b + p0 * ldb + i;
            if (cols == right) NAME(pack)(b + p0 * ldb + i, 1, ldb, columns, width, deep, right);
            for (int64_t r = 0; r < m; r += height) {
                height = NAME(few_height)(m, m - r);
                if (together && width > ACROSS) {
                    (height == 12      ? NAME(v12x2)
                         : height == 8 ? NAME(v8x3)
                         : height == 4 ? NAME(v4x3)
                                       : NAME(v2x3))(deep, left + r * deep, cols,
                                                     packed ? deep * ACROSS : ACROSS, packed ? ACROSS : ldb,
                                                     c + r * ldc + i, ldc, m - r, sum || p0);
                    continue;
                }
                NAME(of_few)
                [height / 4][width > ACROSS](deep, left + r *deep, cols, step, c + r *ldc + i, ldc,
                                             m - r < height ? m - r : height, columns, sum || p0);
            }
        }
    }
    return 0;
}

/* Panels [from, to) of B, as few_rows() reads them. */
static void NAME(pack_few)(int bt, int64_t n, int64_t k, const void *b_, int64_t ldb, void *to_, int64_t from,
                           int64_t to) {
    int64_t depth = NAME(few_depth)(0, k), padded = (n + ACROSS - 1) / ACROSS * ACROSS;
    const T *b = b_;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0;
        for (int64_t i = from * ACROSS; i < n && i < to * ACROSS; i += ACROSS)
            NAME(pack)(bt ? b + i * ldb + p0 : b + p0 * ldb + i, !bt, ldb, n - i < ACROSS ? n - i : ACROSS,
                       ACROSS, deep, (T *)to_ + p0 * padded + i * deep);
    }
}
#else
static void NAME(pack_few)(int bt, int64_t n, int64_t k, const void *b, int64_t ldb, void *to, int64_t from,
                           int64_t end) {}
#endif

/* -1: no memory for panels. */
static int NAME(few)(int at, int bt, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                     int64_t ldb, T *c, int64_t ldc, int sum, const T *packed, int64_t n0, int64_t whole) {
#if defined(__x86_64__)
    if (bt && !packed) return NAME(few_dots)(at, m, n, k, a, lda, b, ldb, c, ldc, sum);
    return NAME(few_rows)(at, m, n, k, a, lda, b, ldb, c, ldc, sum, packed, n0, whole);
#else
    return -1;
#endif
}
#undef ACROSS
#undef TARGET
