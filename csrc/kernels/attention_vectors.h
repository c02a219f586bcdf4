/* The loops by vectors of attention.c for one element type and one kind of CPU: included with T, TI (integers
 * as wide), EXPV(v) (exponentials of a vector of numbers that aren't above 0), BYTES (of a vector), LEVEL(x)
 * and TARGET(...), what functions of this kind are compiled with. Vectors wider than the registers would be
 * taken apart by the compiler, comparisons and shuffles down to single numbers. */
#define LANES (BYTES / (int)sizeof(T))
#define V LEVEL(Vector)
#define B LEVEL(Bits)
typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef TI B __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define EITHER(c, a, b) ((V)(((B)(c) & (B)(a)) | (~(B)(c) & (B)(b))))

/* a where it is greater than b, else b, nan too: one instruction that GCC doesn't make of comparisons of
 * vectors. */
TARGET(TRANSPOSED_LOOPS, always_inline) static inline V LEVEL(greater)(V a, V b) {
#if BYTES == 32
    return sizeof(T) == 8 ? (V)_mm256_max_pd((__m256d)a, (__m256d)b) : (V)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return EITHER(a > b, a, b);
#endif
}
#define GREATER LEVEL(greater)

/* The greatest of `high` and n numbers; nan is passed over. */
TARGET(TRANSPOSED_LOOPS) static T LEVEL(highest)(int64_t n, const T *s, T high) {
    int64_t j = 0;
    V most = (V){0} + high;
    for (; j + LANES <= n; j += LANES) {
        V x = *(const V *)(s + j);
        most = GREATER(x, most);
    }
    for (int i = 0; i < LANES; i++) high = most[i] > high ? most[i] : high;
    for (; j < n; j++) high = s[j] > high ? s[j] : high;
    return high;
}

/* Scores s[j][r] of n keys from j0 on and `high` rows from t0 on to weights; maxima and sums of the rows are
 * carried on, `factor` is what the outputs made so far are to be multiplied with. */
TARGET(TRANSPOSED_LOOPS)
static void LEVEL(weigh_transposed)(int causal, int64_t t0, int64_t high, int64_t j0, int64_t n, T *s,
                                    T *most, T *sum, T *factor) {
    for (int64_t r = 0; r < high; r += LANES) {
        V *at = (V *)(s + r), before = *(V *)(most + r), m = before, total = {0};
        int64_t step = high / LANES;
        V nothing = (V){0} - (T)INFINITY;
        if (causal && j0 + n - 1 > t0 + r) {
            B row;
            for (int i = 0; i < LANES; i++) row[i] = t0 + r + i;
            for (int64_t j = 0; j < n; j++) at[j * step] = EITHER(row < (TI)(j0 + j), nothing, at[j * step]);
        }
        for (int64_t j = 0; j < n; j++) {
            V x = at[j * step];
            m = GREATER(x, m);
        }
        V base = EITHER(m == nothing, (V){0}, m), f = before - base;
        EXPV(f);
        for (int64_t j = 0; j < n; j++) {
            V x = at[j * step] - base;
            EXPV(x);
            at[j * step] = x;
            total += x;
        }
        *(V *)(factor + r) = f;
        *(V *)(sum + r) = *(V *)(sum + r) * f + total;
        *(V *)(most + r) = m;
    }
}

#define MOST_PARTS 8
#if BYTES == 32
/* to[j]: the sum over the lanes of x[j]. */
TARGET(PARTS_LOOPS, always_inline) static inline void LEVEL(fold)(V *x, T *to) {
    if (sizeof(T) == 8) {
        __m256d *y = (__m256d *)x, a = _mm256_hadd_pd(y[0], y[1]), b = _mm256_hadd_pd(y[2], y[3]);
        _mm256_storeu_pd((double *)to,
                         _mm256_permute2f128_pd(a, b, 0x20) + _mm256_permute2f128_pd(a, b, 0x31));
        return;
    }
    __m256 *y = (__m256 *)x, a = _mm256_hadd_ps(_mm256_hadd_ps(y[0], y[1]), _mm256_hadd_ps(y[2], y[3])),
           b = _mm256_hadd_ps(_mm256_hadd_ps(y[4], y[5]), _mm256_hadd_ps(y[6], y[7]));
    _mm256_storeu_ps((float *)to, _mm256_permute2f128_ps(a, b, 0x20) + _mm256_permute2f128_ps(a, b, 0x31));
}
#define FOLDS 1
#elif BYTES == 64 && defined(__GNUC__) && !defined(__clang__)
typedef TI LEVEL(Order) __attribute__((vector_size(BYTES)));

/* to[j]: the sum over the lanes of x[j]. Pairs of vectors are folded into one, first by halves. */
TARGET(PARTS_LOOPS, always_inline) static inline void LEVEL(fold)(V *x, T *to) {
#pragma GCC unroll 4
    for (int h = LANES / 2; h; h /= 2) {
        LEVEL(Order) own, other;
#pragma GCC unroll 16
        for (int j = 0; j < LANES; j++)
            own[j] = j & h ? LANES + j : j, other[j] = j & h ? LANES + (j & ~h) : j | h;
#pragma GCC unroll 8
        for (int i = 0; i < h; i++)
            x[i] = __builtin_shuffle(x[i], x[i + h], own) + __builtin_shuffle(x[i], x[i + h], other);
    }
    *(V *)to = x[0];
}
#define FOLDS 1
#else
#define FOLDS 0
#endif

#if FOLDS
/* s[i] = or += q . key i, for so many keys as there are lanes and the elements of `parts` vectors (MOST_PARTS
 * at most). A key is read whole before the next one, so that lines are asked for in the order of memory.
 * `ask`: those of the keys after them are on their way to the second-level cache. */
TARGET(PARTS_LOOPS, always_inline)
static inline void LEVEL(score_part)(const int parts, const int ask, const T *q, const T *k, int64_t ldk,
                                     T *s, int more) {
    V part[MOST_PARTS], x[LANES];
#pragma GCC unroll 8
    for (int p = 0; p < parts; p++) part[p] = ((const V *)q)[p];
#pragma GCC unroll 16
    for (int i = 0; i < LANES; i++, k += ldk) {
        x[i] = part[0] * *(const V *)k;
        if (ask) __builtin_prefetch(k + AHEAD * ldk, 0, 2);
#pragma GCC unroll 8
        for (int p = 1; p < parts; p++) {
            if (ask && p * BYTES % 64 == 0) __builtin_prefetch(k + AHEAD * ldk + p * LANES, 0, 2);
            x[i] += part[p] * ((const V *)k)[p];
        }
    }
    if (!more) LEVEL(fold)(x, s);
    else {
        V made = *(V *)s;
        LEVEL(fold)(x, s);
        *(V *)s += made;
    }
}
#endif

/* s[r][j] = q[r] . k[j] for few rows: each key is read once, as many together as there are lanes. `far`: the
 * keys lie in memory. */
TARGET(PARTS_LOOPS)
static void LEVEL(score)(int64_t rows, int64_t n, int64_t width, const T *q, int64_t ldq, const T *k,
                         int64_t ldk, T *s, int64_t ld, int far) {
    int64_t whole = width / LANES * LANES, j = 0;
#if FOLDS
    for (; whole && j + LANES <= n; j += LANES, k += LANES * ldk)
        for (int64_t r = 0; r < rows; r++) {
            const T *row = q + r * ldq;
            T *to = s + r * ld + j;
            int64_t e = 0;
#define BY_PARTS(PARTS)                                                             \
    for (; e + PARTS * LANES <= whole; e += PARTS * LANES)                          \
        if (far && !r) LEVEL(score_part)(PARTS, 1, row + e, k + e, ldk, to, e > 0); \
        else LEVEL(score_part)(PARTS, 0, row + e, k + e, ldk, to, e > 0);
            BY_PARTS(8)
            BY_PARTS(4)
            BY_PARTS(2)
            BY_PARTS(1)
#undef BY_PARTS
            for (; e < width; e++)
                for (int i = 0; i < LANES; i++) to[i] += row[e] * k[i * ldk + e];
        }
#endif
    for (; j < n; j++, k += ldk)
        for (int64_t r = 0; r < rows; r++) {
            T sum[LANES] = {0}, x = 0;
            for (int64_t e = 0; e < whole; e += LANES)
                for (int64_t i = 0; i < LANES; i++) sum[i] += q[r * ldq + e + i] * k[e + i];
            for (int64_t i = 0; i < LANES; i++) x += sum[i];
            for (int64_t e = whole; e < width; e++) x += q[r * ldq + e] * k[e];
            s[r * ld + j] = x;
        }
}

/* o[e] = or += sum over j of s[j] * v[j][e], for the elements of `parts` vectors (MOST_PARTS at most); those
 * of odd and of even keys are summed apart where the registers allow it. `ask` as above. */
TARGET(PARTS_LOOPS, always_inline)
static inline void LEVEL(mix_part)(int64_t n, const int parts, const int ask, const T *s, const T *v,
                                   int64_t ldv, T *o, int more) {
    V even[MOST_PARTS] = {0}, odd[MOST_PARTS] = {0}, *out = (V *)o;
    const int apart = BYTES == 64 || parts < MOST_PARTS;
    int64_t j = 0;
    for (; j + 2 <= n; j += 2, v += 2 * ldv) {
        const V *first = (const V *)v, *second = (const V *)(v + ldv);
#pragma GCC unroll 8
        for (int i = 0; i < parts; i++) {
            if (ask && i * BYTES % 64 == 0) __builtin_prefetch(v + AHEAD * ldv + i * LANES, 0, 2);
            even[i] += s[j] * first[i];
        }
#pragma GCC unroll 8
        for (int i = 0; i < parts; i++) {
            if (ask && i * BYTES % 64 == 0) __builtin_prefetch(v + (AHEAD + 1) * ldv + i * LANES, 0, 2);
            (apart ? odd : even)[i] += s[j + 1] * second[i];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < parts; i++) {
        if (j < n) even[i] += s[j] * ((const V *)v)[i];
        even[i] += odd[i];
        if (more) even[i] += out[i];
        out[i] = even[i];
    }
}

/* o[r] = or += sum over j of s[r][j] * v[j]; `far`: the values lie in memory. */
TARGET(PARTS_LOOPS)
static void LEVEL(mix)(int64_t rows, int64_t n, int64_t width, const T *s, int64_t ld, const T *v,
                       int64_t ldv, T *o, int64_t ldo, int more, int far) {
    for (int64_t r = 0; r < rows; r++, s += ld, o += ldo) {
        int64_t e = 0;
#define BY_PARTS(PARTS)                                                          \
    for (; e + PARTS * LANES <= width; e += PARTS * LANES)                       \
        if (far && !r) LEVEL(mix_part)(n, PARTS, 1, s, v + e, ldv, o + e, more); \
        else LEVEL(mix_part)(n, PARTS, 0, s, v + e, ldv, o + e, more);
        BY_PARTS(8)
        BY_PARTS(4)
        BY_PARTS(2)
        BY_PARTS(1)
#undef BY_PARTS
        if (e == width) continue;
        for (int64_t i = e; i < width && !more; i++) o[i] = 0;
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = e; i < width; i++) o[i] += s[j] * v[j * ldv + i];
    }
}

#undef FOLDS
#undef MOST_PARTS
#undef GREATER
#undef EITHER
#undef B
#undef V
#undef LANES
#undef BYTES
#undef LEVEL
#undef TARGET
