/* The kernels of gemv.c for one element type: included with T and NAME(x). */

#define EACH _Pragma("GCC unroll 16") for

/* y[r * incy] = sum over j < n of a[r * ld + j] x[j] for R rows: two vectors of sums a row, then the rest in
 * turn, whatever R is. */
#define DOTS(name, target_text, BYTES, R)                                                                    \
    __attribute__((target_text, FAST)) static void NAME(name)(int64_t n, const T *a, int64_t ld, const T *x, \
                                                              T *y, int64_t incy) {                          \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                      \
        enum { LANES = BYTES / sizeof(T) };                                                                  \
        V even[R], odd[R];                                                                                   \
        int64_t j = 0;                                                                                       \
        EACH(int r = 0; r < R; r++) even[r] = odd[r] = (V){0};                                               \
        for (; j + 2 * LANES <= n; j += 2 * LANES) {                                                         \
            V first = *(const V *)(x + j), second = *(const V *)(x + j + LANES);                             \
            EACH(int r = 0; r < R; r++) {                                                                    \
                even[r] += *(const V *)(a + r * ld + j) * first;                                             \
                odd[r] += *(const V *)(a + r * ld + j + LANES) * second;                                     \
            }                                                                                                \
        }                                                                                                    \
        for (; j + LANES <= n; j += LANES) {                                                                 \
            V first = *(const V *)(x + j);                                                                   \
            EACH(int r = 0; r < R; r++) even[r] += *(const V *)(a + r * ld + j) * first;                     \
        }                                                                                                    \
        EACH(int r = 0; r < R; r++) {                                                                        \
            even[r] += odd[r];                                                                               \
            V shifted = even[r];                                                                             \
            EACH(int half = LANES / 2; half; half /= 2) {                                                    \
                EACH(int i = 0; i < LANES; i++) shifted[i] = even[r][(i + half) % LANES];                    \
                even[r] += shifted;                                                                          \
            }                                                                                                \
            T sum = even[r][0];                                                                              \
            for (int64_t i = j; i < n; i++) sum += a[r * ld + i] * x[i];                                     \
            y[r * incy] = sum;                                                                               \
        }                                                                                                    \
    }

/* y[j] = or += sum over r < R of x[r] a[r * ld + j] for n columns. */
#define ADDED(name, target_text, BYTES, R)                                                                   \
    __attribute__((target_text, FAST)) static void NAME(name)(int64_t n, const T *a, int64_t ld, const T *x, \
                                                              T *y, int more) {                              \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                      \
        enum { LANES = BYTES / sizeof(T) };                                                                  \
        int64_t j = 0;                                                                                       \
        for (; j + 2 * LANES <= n; j += 2 * LANES) {                                                         \
            V first = more ? *(V *)(y + j) : (V){0}, second = more ? *(V *)(y + j + LANES) : (V){0};         \
            EACH(int r = 0; r < R; r++) {                                                                    \
                first += x[r] * *(const V *)(a + r * ld + j);                                                \
                second += x[r] * *(const V *)(a + r * ld + j + LANES);                                       \
            }                                                                                                \
            *(V *)(y + j) = first, *(V *)(y + j + LANES) = second;                                           \
        }                                                                                                    \
        for (; j < n; j++) {                                                                                 \
            T sum = more ? y[j] : 0;                                                                         \
            EACH(int r = 0; r < R; r++) sum += x[r] * a[r * ld + j];                                         \
            y[j] = sum;                                                                                      \
        }                                                                                                    \
    }

#if defined(__x86_64__)
DOTS(dots4_wide, target("avx512f,avx512vl,avx512dq,fma"), 64, 4)
DOTS(dots1_wide, target("avx512f,avx512vl,avx512dq,fma"), 64, 1)
ADDED(added8_wide, target("avx512f,avx512vl,avx512dq,fma"), 64, 8)
ADDED(added1_wide, target("avx512f,avx512vl,avx512dq,fma"), 64, 1)
DOTS(dots4_half, target("avx2,fma"), 32, 4)
DOTS(dots1_half, target("avx2,fma"), 32, 1)
ADDED(added8_half, target("avx2,fma"), 32, 8)
ADDED(added1_half, target("avx2,fma"), 32, 1)
#endif
DOTS(dots4_plain, unused, 16, 4)
DOTS(dots1_plain, unused, 16, 1)
ADDED(added8_plain, unused, 16, 8)
ADDED(added1_plain, unused, 16, 1)
#undef DOTS
#undef ADDED
#undef EACH

static const struct {
    void (*dots4)(int64_t, const T *, int64_t, const T *, T *, int64_t),
        (*dots1)(int64_t, const T *, int64_t, const T *, T *, int64_t);
    void (*added8)(int64_t, const T *, int64_t, const T *, T *, int),
        (*added1)(int64_t, const T *, int64_t, const T *, T *, int);
} NAME(by_level)[] = {
    {NAME(dots4_plain), NAME(dots1_plain), NAME(added8_plain), NAME(added1_plain)},
#if defined(__x86_64__)
    {NAME(dots4_half), NAME(dots1_half), NAME(added8_half), NAME(added1_half)},
    {NAME(dots4_wide), NAME(dots1_wide), NAME(added8_wide), NAME(added1_wide)},
#endif
};

/* Rows of A times x, which lie along the sum. */
static void NAME(by_dots)(int64_t rows, int64_t k, const void *a_, int64_t ld, const void *x, void *y_,
                          int64_t incy) {
    int level = flb_cpu_level();
    const T *a = a_;
    T *y = y_;
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) NAME(by_level)[level].dots4(k, a + r * ld, ld, x, y + r * incy, incy);
    for (; r < rows; r++) NAME(by_level)[level].dots1(k, a + r * ld, ld, x, y + r * incy, incy);
}

/* The sum of A's k rows, which lie along the result, each times an element of x. */
static void NAME(by_rows)(int64_t columns, int64_t k, const void *a_, int64_t ld, const void *x_, void *y_) {
    int level = flb_cpu_level();
    const T *a = a_, *x = x_;
    T *y = y_;
    if (!k) memset(y, 0, columns * sizeof(T));
    for (int64_t j = 0; j < columns; j += HELD) {
        int64_t n = columns - j < HELD ? columns - j : HELD, i = 0;
        for (; i + 8 <= k; i += 8) NAME(by_level)[level].added8(n, a + i * ld + j, ld, x + i, y + j, i > 0);
        for (; i < k; i++) NAME(by_level)[level].added1(n, a + i * ld + j, ld, x + i, y + j, i > 0);
    }
}

/* y += part */
static void NAME(add)(int64_t n, const void *part_, void *y_) {
    const T *part = part_;
    T *y = y_;
    for (int64_t j = 0; j < n; j++) y[j] += part[j];
}

/* Elements that lie `step` apart, side by side, or back. */
static void NAME(spread)(int64_t n, const void *from_, int64_t from_step, void *to_, int64_t to_step) {
    const T *from = from_;
    T *to = to_;
    for (int64_t j = 0; j < n; j++) to[j * to_step] = from[j * from_step];
}

/* The product as it is written, where there is no memory for copies. */
static void NAME(plainly)(const Gemv *g, int64_t incx) {
    const T *a = (const T *)g->matrix, *x = (const T *)g->x;
    for (int64_t i = 0; i < g->out; i++) {
        T sum = 0;
        for (int64_t j = 0; j < g->k; j++) sum += a[g->by_dots ? i * g->ld + j : j * g->ld + i] * x[j * incx];
        ((T *)g->y)[i * g->incy] = sum;
    }
}
