/* The kernels of weight_only.c for vectors of LANES floats: included with LANES, NAME(x), TARGET and how
 * weights are read. */

typedef float NAME(V) __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
#define V NAME(V)

static inline __attribute__((always_inline)) float NAME(total)(const float *x) {
    float s = 0;
    for (int l = 0; l < LANES; l++) s += x[l];
    return s;
}

/* y[r + m, i + j] for R rows of x and W columns of y. */
#define DOTS(R, W)                                                                                           \
    __attribute__((TARGET)) static void NAME(bytes_##R##x##W)(const Product *a, int64_t r, int64_t i) {      \
        const int8_t *w = (const int8_t *)a->weight + i * a->k;                                              \
        const float *x = a->x + r * a->k;                                                                    \
        V sum[R][W];                                                                                         \
        EACH(int m = 0; m < R; m++)                                                                          \
        EACH(int j = 0; j < W; j++) sum[m][j] = (V){0};                                                      \
        int64_t p = 0;                                                                                       \
        for (; p + LANES <= a->k; p += LANES) {                                                              \
            V row[W];                                                                                        \
            EACH(int j = 0; j < W; j++) row[j] = BYTES_AT(w + j * a->k + p);                                 \
            EACH(int m = 0; m < R; m++)                                                                      \
            EACH(int j = 0; j < W; j++) sum[m][j] += row[j] * *(const V *)(x + m * a->k + p);                \
        }                                                                                                    \
        for (int m = 0; m < R; m++)                                                                          \
            for (int j = 0; j < W; j++) {                                                                    \
                float s = NAME(total)((const float *)&sum[m][j]);                                            \
                for (int64_t q = p; q < a->k; q++) s += (float)w[j * a->k + q] * x[m * a->k + q];            \
                a->y[(r + m) * a->n + i + j] = s * a->scales[i + j];                                         \
            }                                                                                                \
    }                                                                                                        \
    __attribute__((TARGET)) static void NAME(nibbles_##R##x##W)(const Product *a, int64_t r, int64_t i) {    \
        const uint8_t *w = (const uint8_t *)a->weight + i * a->k / 2;                                        \
        const float *x = a->x + r * a->k;                                                                    \
        int64_t groups = a->k / a->group;                                                                    \
        V sum[R][W];                                                                                         \
        float shift[R][W];                                                                                   \
        EACH(int m = 0; m < R; m++)                                                                          \
        EACH(int j = 0; j < W; j++) sum[m][j] = (V){0}, shift[m][j] = 0;                                     \
        for (int64_t g = 0; g < groups; g++) {                                                               \
            V part[R][W];                                                                                    \
            EACH(int m = 0; m < R; m++)                                                                      \
            EACH(int j = 0; j < W; j++) part[m][j] = (V){0};                                                 \
            for (int64_t p = g * a->group; p < (g + 1) * a->group; p += 32)                                  \
                EACH(int h = 0; h < 16; h += LANES) {                                                        \
                    __typeof__(PAIRS_AT(w)) both[W];                                                         \
                    EACH(int j = 0; j < W; j++) both[j] = PAIRS_AT(w + (j * a->k + p) / 2 + h);              \
                    EACH(int m = 0; m < R; m++) {                                                            \
                        const V low = *(const V *)(x + m * a->k + p + h),                                    \
                                high = *(const V *)(x + m * a->k + p + 16 + h);                              \
                        EACH(int j = 0; j < W; j++) part[m][j] += LOW(both[j]) * low + HIGH(both[j]) * high; \
                    }                                                                                        \
                }                                                                                            \
            const float *scale = a->scales + 2 * (g * a->n + i);                                             \
            EACH(int m = 0; m < R; m++)                                                                      \
            EACH(int j = 0; j < W; j++) {                                                                    \
                sum[m][j] += part[m][j] * scale[2 * j];                                                      \
                shift[m][j] += a->sums[(r + m) * groups + g] * scale[2 * j + 1];                             \
            }                                                                                                \
        }                                                                                                    \
        for (int m = 0; m < R; m++)                                                                          \
            for (int j = 0; j < W; j++)                                                                      \
                a->y[(r + m) * a->n + i + j] = NAME(total)((const float *)&sum[m][j]) + shift[m][j];         \
    }
DOTS(1, 4)
DOTS(4, 2)
DOTS(1, 1)
#undef DOTS

/* to[j, p - p0] = the weights of columns [i, i + wide) of y, [p0, p0 + deep) of K; of four bits p0 and deep
 * are multiples of 32. */
__attribute__((TARGET)) static void NAME(bytes)(const Product *a, int64_t i, int64_t wide, int64_t p0,
                                                int64_t deep, float *to) {
    for (int64_t j = 0; j < wide; j++, to += deep) {
        const int8_t *w = (const int8_t *)a->weight + (i + j) * a->k + p0;
        float scale = a->scales[i + j];
        int64_t p = 0;
        for (; p + LANES <= deep; p += LANES) *(V *)(to + p) = BYTES_AT(w + p) * scale;
        for (; p < deep; p++) to[p] = (float)w[p] * scale;
    }
}

__attribute__((TARGET)) static void NAME(nibbles)(const Product *a, int64_t i, int64_t wide, int64_t p0,
                                                  int64_t deep, float *to) {
    for (int64_t j = 0; j < wide; j++, to += deep) {
        const uint8_t *w = (const uint8_t *)a->weight + ((i + j) * a->k + p0) / 2;
        for (int64_t p = 0; p < deep; p += 32) {
            const float *scale = a->scales + 2 * ((p0 + p) / a->group * a->n + i + j);
            EACH(int h = 0; h < 16; h += LANES) {
                __typeof__(PAIRS_AT(w)) both = PAIRS_AT(w + p / 2 + h);
                *(V *)(to + p + h) = LOW(both) * scale[0] + scale[1];
                *(V *)(to + p + 16 + h) = HIGH(both) * scale[0] + scale[1];
            }
        }
    }
}
#undef V
#undef BYTES_AT
#undef PAIRS_AT
#undef LOW
#undef HIGH
#undef LANES
#undef NAME
#undef TARGET
