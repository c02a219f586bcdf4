/* The inner loops of convolutions with few channels a group, for one element type and one size of vectors:
 * included with T, NAME(x), BYTES and TARGET. */
#define BY_SIZE(x) JOINED(NAME(x), BYTES)
#define SUM(t) (*(V *)(sums + (t) * (64 / sizeof(T))))

/* to[i] = start + sum over taps of w[t] * from[t][i], for i < n and up to the end of its vector. */
TARGET static void BY_SIZE(correlate)(T *to, int64_t n, T start, int64_t taps, const T *w,
                                      const T *const *from) {
    typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
    enum { LANES = BYTES / sizeof(T) };
    int64_t i = 0;
    V first = start - (V){0};
    for (; i + 7 * LANES < n;
         i += 8 * LANES) { /* eight sums hide the latency of two multiplications a cycle */
        V a = first, b = first, c = first, d = first, e = first, f = first, g = first, h = first;
        for (int64_t t = 0; t < taps; t++) {
            const V *p = (const V *)(from[t] + i);
            T x = w[t];
            a += x * p[0], b += x * p[1], c += x * p[2], d += x * p[3], e += x * p[4], f += x * p[5],
                g += x * p[6], h += x * p[7];
        }
        V *q = (V *)(to + i);
        q[0] = a, q[1] = b, q[2] = c, q[3] = d, q[4] = e, q[5] = f, q[6] = g, q[7] = h;
    }
    for (; i + 3 * LANES < n; i += 4 * LANES) {
        V a = first, b = first, c = first, d = first;
        for (int64_t t = 0; t < taps; t++) {
            const V *p = (const V *)(from[t] + i);
            a += w[t] * p[0], b += w[t] * p[1], c += w[t] * p[2], d += w[t] * p[3];
        }
        V *q = (V *)(to + i);
        q[0] = a, q[1] = b, q[2] = c, q[3] = d;
    }
    for (; i < n; i += LANES) {
        V a = first, b = (V){0};
        int64_t t = 0;
        for (; t + 2 <= taps; t += 2)
            a += w[t] * *(const V *)(from[t] + i), b += w[t + 1] * *(const V *)(from[t + 1] + i);
        if (t < taps) a += w[t] * *(const V *)(from[t] + i);
        *(V *)(to + i) = a + b;
    }
}

/* sums[t] (of 64 bytes) += the lanes of sum over i < n of y[i] * from[t][i]; where `inside` has no bits,
 * from[t] isn't read: it is another row's. */
TARGET static void BY_SIZE(correlate_weight)(T *sums, int64_t n, int64_t taps, const T *y,
                                             const T *const *from, const T *inside) {
    typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
    enum { LANES = BYTES / sizeof(T) };
    typedef int64_t B __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
    int64_t t = 0;
    for (; t + 5 <= taps; t += 5) {
        V a = SUM(t), b = SUM(t + 1), c = SUM(t + 2), d = SUM(t + 3), e = SUM(t + 4);
        for (int64_t i = 0; i < n; i += LANES) {
            V g = *(const V *)(y + i);
            B m = *(const B *)(inside + i);
            a += g * (V)(m & *(const B *)(from[t] + i)), b += g * (V)(m & *(const B *)(from[t + 1] + i));
            c += g * (V)(m & *(const B *)(from[t + 2] + i)), d += g * (V)(m & *(const B *)(from[t + 3] + i));
            e += g * (V)(m & *(const B *)(from[t + 4] + i));
        }
        SUM(t) = a, SUM(t + 1) = b, SUM(t + 2) = c, SUM(t + 3) = d, SUM(t + 4) = e;
    }
    for (; t < taps; t++) {
        V a = SUM(t);
        for (int64_t i = 0; i < n; i += LANES)
            a += *(const V *)(y + i) * (V)(*(const B *)(inside + i) & *(const B *)(from[t] + i));
        SUM(t) = a;
    }
}
#if BYTES < 64 /* 16 registers */
/* to[r * ld + i] = start + sum over taps of w[kh * SIDE + kw] * from[(r + kh) * step + i + kw]: four rows of
 * NV vectors. What is loaded serves the taps of all rows, and the sums stay in registers. */
#define SQUARE(SIDE, NV)                                                                                     \
    TARGET static void BY_SIZE(square##SIDE##x##NV)(const T *from, int64_t step, const T *w, T start, T *to, \
                                                    int64_t ld) {                                            \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                      \
        V sum[4][NV];                                                                                        \
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)                                                  \
            _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) sum[r][v] = start - (V){0};                 \
        _Pragma("GCC unroll 8") for (int q = 0; q < SIDE + 3; q++)                                           \
            _Pragma("GCC unroll 5") for (int k = 0; k < SIDE; k++) {                                         \
            V x[NV];                                                                                         \
            _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) x[v] =                                      \
                ((const V *)(from + q * step + k))[v];                                                       \
            _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++) if (q >= r && q - r < SIDE)                  \
                _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++) sum[r][v] +=                            \
                w[(q - r) * SIDE + k] * x[v];                                                                \
        }                                                                                                    \
        _Pragma("GCC unroll 4") for (int r = 0; r < 4; r++)                                                  \
            _Pragma("GCC unroll 2") for (int v = 0; v < NV; v++)((V *)(to + r * ld))[v] = sum[r][v];         \
    }
SQUARE(3, 1)
SQUARE(3, 2)
SQUARE(5, 1)
SQUARE(5, 2)
#undef SQUARE

/* Correlates a plane with side * side taps, see squares_fit: a last tile that would be cut begins earlier. */
static void BY_SIZE(squares)(const T *from, int64_t step, int64_t side, const T *w, T start, T *to,
                             int64_t rows, int64_t columns) {
    enum { LANES = BYTES / sizeof(T) };
    int64_t wide = columns >= 2 * LANES ? 2 * LANES : LANES;
    void (*tile)(const T *, int64_t, const T *, T, T *, int64_t) = side == 3
        ? wide == LANES ? BY_SIZE(square3x1) : BY_SIZE(square3x2)
        : wide == LANES ? BY_SIZE(square5x1)
                        : BY_SIZE(square5x2);
    for (int64_t r = 0; r < rows; r += 4)
        for (int64_t i = 0; i < columns; i += wide) {
            int64_t y = r + 4 <= rows ? r : rows - 4, x = i + wide <= columns ? i : columns - wide;
            tile(from + y * step + x, step, w, start, to + y * columns + x, columns);
        }
}
#endif
#undef SUM
#undef BY_SIZE
#undef BYTES
#undef TARGET
