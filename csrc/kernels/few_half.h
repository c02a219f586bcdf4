/* Dot products of few rows of A and the rows of B (n, k) where they lie (AVX2), for one element type:
 * included by product_kernels.h with T, NAME(x) and SINGLE.
 *
 * As in few_kernels.h each element of B is read once from memory: four rows of B meet all rows of A, a slice
 * of K at a time, three or two of them by four in the sixteen registers. An element's sum depends on K alone,
 * not on the tile that it is in. */

#define HALF_LANES ((int64_t)(32 / sizeof(T)))
#define HALF_SIDE 4    /* rows of B that are read together */
#define HALF_LONG 2048 /* most bytes of a row in a slice: a quarter of the first-level cache has four */

static int64_t NAME(half_depth)(int64_t k) {
    int64_t most = HALF_LONG / (int64_t)sizeof(T), slices = (k + most - 1) / most,
            depth = slices ? (k + slices - 1) / slices : 1;
    return (depth + HALF_LANES - 1) / HALF_LANES * HALF_LANES;
}

#if defined(__x86_64__)
#define HALF_TARGET target("avx2,fma")
typedef T NAME(Half) __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

/* to[i]: the sum over the lanes of x[i], for four vectors. */
__attribute__((HALF_TARGET, FAST, always_inline)) static inline void NAME(fold4)(const NAME(Half) * x,
                                                                                 T *to) {
#if SINGLE
    __m256 all = _mm256_hadd_ps(_mm256_hadd_ps((__m256)x[0], (__m256)x[1]),
                                _mm256_hadd_ps((__m256)x[2], (__m256)x[3]));
    _mm_storeu_ps(to, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
#else
    __m256d low = _mm256_hadd_pd((__m256d)x[0], (__m256d)x[1]),
            high = _mm256_hadd_pd((__m256d)x[2], (__m256d)x[3]);
    _mm256_storeu_pd(
        to, _mm256_add_pd(_mm256_permute2f128_pd(low, high, 0x20), _mm256_permute2f128_pd(low, high, 0x31)));
#endif
}

/* The first n numbers, and zeros. */
__attribute__((HALF_TARGET, FAST, always_inline)) static inline NAME(Half)
    NAME(some_half)(const T *from, int64_t n) {
    static const int32_t chosen[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    __m256i some = _mm256_loadu_si256((const __m256i *)(chosen + 8 - n * (int64_t)sizeof(T) / 4));
#if SINGLE
    return (NAME(Half))_mm256_maskload_ps(from, some);
#else
    return (NAME(Half))_mm256_maskload_pd(from, some);
#endif
}

/* C (rows, columns) = or += R packed rows of A times HALF_SIDE rows of B, over `steps` vectors and then
 * `rest` elements. What lies `ahead` of the rows of B is asked for. */
#define DOTTED(name, R)                                                                                     \
    __attribute__((HALF_TARGET, FAST)) static void NAME(name)(                                              \
        int64_t steps, int64_t rest, const T *a, const T *b, int64_t ldb, int64_t ahead, T *c, int64_t ldc, \
        int64_t rows, int64_t columns, int more) {                                                          \
        NAME(Half) sum[R * HALF_SIDE];                                                                      \
        const T *at[HALF_SIDE];                                                                             \
        EACH(int j = 0; j < HALF_SIDE; j++) at[j] = b + (j < columns ? j : columns - 1) * ldb;              \
        EACH(int i = 0; i < R * HALF_SIDE; i++) sum[i] = (NAME(Half)){0};                                   \
        int64_t from = 0;                                                                                   \
        for (; steps; steps--, a += R * HALF_LANES, from += HALF_LANES) {                                   \
            NAME(Half) x[R];                                                                                \
            EACH(int r = 0; r < R; r++) x[r] = ((const NAME(Half) *)a)[r];                                  \
            EACH(int j = 0; j < HALF_SIDE; j++) {                                                           \
                NAME(Half) y = *(const NAME(Half) *)(at[j] + from);                                         \
                __builtin_prefetch(at[j] + from + ahead);                                                   \
                __asm__("" : "+x"(y)); /* it is loaded once, not in each of the multiply-adds */            \
                EACH(int r = 0; r < R; r++) sum[r * HALF_SIDE + j] += x[r] * y;                             \
            }                                                                                               \
        }                                                                                                   \
        if (rest) EACH(int j = 0; j < HALF_SIDE; j++) {                                                     \
                NAME(Half) y = NAME(some_half)(at[j] + from, rest);                                         \
                EACH(int r = 0; r < R; r++) sum[r * HALF_SIDE + j] += ((const NAME(Half) *)a)[r] * y;       \
            }                                                                                               \
        T total[R * HALF_SIDE];                                                                             \
        EACH(int r = 0; r < R; r++) NAME(fold4)(sum + r * HALF_SIDE, total + r * HALF_SIDE);                \
        for (int64_t r = 0; r < rows; r++, c += ldc)                                                        \
            for (int64_t j = 0; j < columns; j++)                                                           \
                c[j] = more ? c[j] + total[r * HALF_SIDE + j] : total[r * HALF_SIDE + j];                   \
    }
DOTTED(half_dotted3, 3)
DOTTED(half_dotted2, 2)
#undef DOTTED

/* Rows of the next tile when `left` are to be made: four are two and two. */
static int64_t NAME(half_height)(int64_t left) { return left == 3 || left > 4 ? 3 : 2; }

/* Rows [0, m) and the next `deep` of K: of each tile a vector of every row in turn; zero where there is
 * nothing. */
__attribute__((HALF_TARGET, FAST)) static void NAME(half_lines)(int at, int64_t m, int64_t deep, const T *a,
                                                                int64_t lda, T *to) {
    for (int64_t r0 = 0, high; r0 < m; r0 += high) {
        high = NAME(half_height)(m - r0);
        for (int64_t p = 0; p < deep; p += HALF_LANES)
            for (int64_t r = r0; r < r0 + high; r++, to += HALF_LANES) {
                int64_t n = r >= m ? 0 : deep - p < HALF_LANES ? deep - p : HALF_LANES, i = 0;
                if (n == HALF_LANES && !at) {
                    *(NAME(Half) *)to = *(const NAME(Half) *)(a + r * lda + p);
                    continue;
                }
                for (; i < n; i++) to[i] = at ? a[(p + i) * lda + r] : a[r * lda + p + i];
                for (; i < HALF_LANES; i++) to[i] = 0;
            }
    }
}

/* C = or += A B. -1: no memory for panels. */
static int NAME(half_dots)(int at, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                           int64_t ldb, T *c, int64_t ldc, int sum) {
    int64_t depth = NAME(half_depth)(k);
    T *left = panels((m + 1) * depth * sizeof(T));
    if (!left) return -1;
    for (int64_t p0 = 0; p0 < k; p0 += depth) {
        int64_t deep = p0 + depth < k ? depth : k - p0,
                padded = (deep + HALF_LANES - 1) / HALF_LANES * HALF_LANES;
        NAME(half_lines)(at, m, deep, at ? a + p0 * lda : a + p0, lda, left);
        for (int64_t i = 0; i < n; i += HALF_SIDE)
            for (int64_t r = 0, high; r < m; r += high) {
                high = NAME(half_height)(m - r);
                (high == 3 ? NAME(half_dotted3) : NAME(half_dotted2))(
                    deep / HALF_LANES, deep % HALF_LANES, left + r * padded, b + i * ldb + p0, ldb,
                    r ? 0 : HALF_SIDE * ldb, c + r * ldc + i, ldc, m - r < high ? m - r : high,
                    n - i < HALF_SIDE ? n - i : HALF_SIDE, sum || p0);
            }
    }
    return 0;
}
#undef HALF_TARGET
#else
static int NAME(half_dots)(int at, int64_t m, int64_t n, int64_t k, const T *a, int64_t lda, const T *b,
                           int64_t ldb, T *c, int64_t ldc, int sum) {
    return -1;
}
#endif
#undef HALF_LANES
#undef HALF_SIDE
#undef HALF_LONG
