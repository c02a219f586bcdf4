/* The kernels of recurrent.c for one element type and one width of vectors: included with T, SIGMOID(x),
 * TANHF(x), SINGLE, NAME(x), BYTES and TARGET (attributes). */
#define U (BYTES / (int)sizeof(T))
#define EACH _Pragma("GCC unroll 16") for

/* part (rows, NV vectors) = rows of a, `ld` apart, times a packed block (k, NV vectors). Of fewer than MR
 * rows the last one is repeated. */
#define TILE(name, MR, NV)                                                                          \
    __attribute__((TARGET)) static void NAME(name)(int64_t k, const T *a, int64_t ld, int64_t rows, \
                                                   const T *b, T *part) {                           \
        typedef T V __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));             \
        V sum[MR][NV];                                                                              \
        const T *row[MR];                                                                           \
        EACH(int r = 0; r < MR; r++) {                                                              \
            row[r] = a + (r < rows ? r : rows - 1) * ld;                                            \
            EACH(int v = 0; v < NV; v++) sum[r][v] = (V){0};                                        \
        }                                                                                           \
        for (int64_t p = 0; p < k; p++, b += NV * U) {                                              \
            V x[NV];                                                                                \
            EACH(int v = 0; v < NV; v++) x[v] = ((const V *)b)[v];                                  \
            EACH(int r = 0; r < MR; r++)                                                            \
            EACH(int v = 0; v < NV; v++) sum[r][v] += row[r][p] * x[v];                             \
        }                                                                                           \
        EACH(int r = 0; r < MR; r++)                                                                \
        EACH(int v = 0; v < NV; v++)((V *)part)[r * NV + v] = sum[r][v];                            \
    }
#if BYTES == 64
#define TALL4 6
#define TALL3 8
#define TALL1 8
#define TALL2 8
#define LOW 4
#else
#define TALL4 3
#define TALL3 4
#define TALL1 6
#define TALL2 5
#define LOW 2
#endif
TILE(tall4, TALL4, 4)
TILE(low4, LOW, 4)
TILE(one4, 1, 4)
TILE(tall3, TALL3, 3)
TILE(low3, LOW, 3)
TILE(one3, 1, 3)
TILE(tall1, TALL1, 1)
TILE(low1, LOW, 1)
TILE(one1, 1, 1)
TILE(tall2, TALL2, 2)
TILE(low2, LOW, 2)
TILE(one2, 1, 2)
#undef TILE
#undef EACH

/* The next tile of at most `left` rows, `nv` vectors wide; how many rows it made. */
static int64_t NAME(tile)(int nv, int64_t left, int64_t k, const T *a, int64_t ld, const T *b, T *part) {
    static void (*const kernels[4][3])(int64_t, const T *, int64_t, int64_t, const T *,
                                       T *) = {{NAME(tall1), NAME(low1), NAME(one1)},
                                               {NAME(tall2), NAME(low2), NAME(one2)},
                                               {NAME(tall3), NAME(low3), NAME(one3)},
                                               {NAME(tall4), NAME(low4), NAME(one4)}};
    static const int heights[4] = {TALL1, TALL2, TALL3, TALL4};
    int which = left == 1 ? 2 : left <= LOW ? 1 : 0;
    int64_t rows = which == 2 ? 1 : which ? LOW : heights[nv - 1];
    if (rows > left) rows = left;
    kernels[nv - 1][which](k, a, ld, rows, b, part);
    return rows;
}

/* Blocks of the weight (G H, H): forward (H, G, U) of its transpose, backward (G H, 2 U) of itself; units
 * that don't exist are zero. */
__attribute__((TARGET)) static void NAME(pack)(void *context, int64_t begin, int64_t end) {
    const Recurrence *c = context;
    const T *w = (const T *)c->weight;
    int64_t h = c->hidden, all = c->gates * h;
    for (int64_t i = begin; i < end; i++) {
        if (c->backward) {
            T *to = (T *)c->packed + (i - c->held) * 2 * U * all;
            int64_t width = h - i * 2 * U < 2 * U ? h - i * 2 * U : 2 * U;
            for (int64_t k = 0; k < all; k++, to += 2 * U) {
                memcpy(to, w + k * h + i * 2 * U, (size_t)width * sizeof(T));
                for (int64_t u = width; u < 2 * U; u++) to[u] = 0;
            }
            continue;
        }
        T *to = (T *)c->packed + (i - c->held) * U * all;
        int64_t width = h - i * U < U ? h - i * U : U, step = c->gates * U;
        for (int64_t g = 0; g < c->gates; g++) {
            const T *from = w + (g * h + i * U) * h;
            T *at = to + g * U;
            flb_transpose(!SINGLE, width, h, from, h, at, step);
            for (int64_t u = width; u < U; u++)
                for (int64_t k = 0; k < h; k++) at[k * step + u] = 0;
        }
    }
}

/* A loop over the units of a block, of a known number where the block is whole. */
#define UNITS(most, ...)                          \
    do {                                          \
        if (width == (most))                      \
            for (int u = 0; u < (most); u++) {    \
                __VA_ARGS__                       \
            }                                     \
        else                                      \
            for (int64_t u = 0; u < width; u++) { \
                __VA_ARGS__                       \
            }                                     \
    } while (0)

__attribute__((TARGET)) static void NAME(forward)(void *context, int64_t begin, int64_t end) {
    const Recurrence *c = context;
    int64_t h = c->hidden, batch = c->batch, gates = c->gates, blocks = (h + U - 1) / U;
    T part[8 * 4 * U] __attribute__((aligned(64)));
    const T *state = c->before < 0 ? (const T *)c->h0 : (const T *)c->out + c->before * batch * h;
    const T *cells = c->before < 0 ? (const T *)c->c0 : (const T *)c->cn;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % blocks * U, width = h - first < U ? h - first : U,
                end_row = (i / blocks + 1) * CHUNK;
        const T *b = (const T *)c->packed + (first - c->held * U) * h * gates,
                *bias = (const T *)c->bias + first;
        if (end_row > batch) end_row = batch;
        for (int64_t row = i / blocks * CHUNK, rows; row < end_row; row += rows) {
            rows = NAME(tile)((int)gates, end_row - row, h, state + row * h, h, b, part);
            for (int64_t r = row; r < row + rows; r++) {
                const T *restrict sum = part + (r - row) * gates * U,
                                  *restrict in = (const T *)c->inner + (c->t * batch + r) * gates * h + first;
                T *restrict out = (T *)c->out + (c->t * batch + r) * h + first;
                if (c->kind == RECURRENCE_LSTM) {
                    const T *was = cells + r * h + first;
                    T *now = (T *)c->cn + r * h + first;
                    T gate[4 * U] __attribute__((aligned(64))), cell[U] __attribute__((aligned(64)));
                    UNITS(U, gate[u] = SIGMOID(sum[u] + in[u] + bias[u]);
                          gate[U + u] = SIGMOID(sum[U + u] + in[h + u] + bias[h + u]);
                          gate[2 * U + u] = TANHF(sum[2 * U + u] + in[2 * h + u] + bias[2 * h + u]);
                          gate[3 * U + u] = SIGMOID(sum[3 * U + u] + in[3 * h + u] + bias[3 * h + u]);
                          cell[u] = gate[U + u] * was[u] + gate[u] * gate[2 * U + u];
                          out[u] = gate[3 * U + u] * TANHF(cell[u]););
                    memcpy(now, cell, (size_t)width * sizeof(T));
                    if (c->cells)
                        memcpy((T *)c->cells + (c->t * batch + r) * h + first, cell,
                               (size_t)width * sizeof(T));
                    if (c->kept)
                        for (int g = 0; g < 4; g++)
                            memcpy((T *)c->kept + ((c->t * batch + r) * 4 + g) * h + first, gate + g * U,
                                   (size_t)width * sizeof(T));
                } else if (c->kind == RECURRENCE_GRU) {
                    const T *was = state + r * h + first;
                    T gate[4 * U] __attribute__((aligned(64)));
                    UNITS(U, gate[u] = SIGMOID(sum[u] + in[u] + bias[u]);
                          gate[U + u] = SIGMOID(sum[U + u] + in[h + u] + bias[h + u]);
                          gate[3 * U + u] = sum[2 * U + u] + bias[3 * h + u];
                          gate[2 * U + u] =
                              TANHF(in[2 * h + u] + bias[2 * h + u] + gate[u] * gate[3 * U + u]);
                          out[u] = (was[u] - gate[2 * U + u]) * gate[U + u] + gate[2 * U + u];);
                    if (c->kept)
                        for (int g = 0; g < 4; g++)
                            memcpy((T *)c->kept + ((c->t * batch + r) * 4 + g) * h + first, gate + g * U,
                                   (size_t)width * sizeof(T));
                } else if (c->kind == RECURRENCE_TANH) {
                    UNITS(U, out[u] = TANHF(sum[u] + in[u] + bias[u]););
                } else {
                    UNITS(U, T x = sum[u] + in[u] + bias[u]; out[u] = x < 0 ? 0 : x;);
                }
            }
        }
    }
}

/* What was made of a block, gate after gate, to its gates' places: the loops over units write memory of their
 * own, or they would not be vectors. */
static void NAME(spread)(T *to, const T *made, int gates, int64_t h, int64_t width) {
    for (int g = 0; g < gates; g++) memcpy(to + g * h, made + g * 2 * U, (size_t)width * sizeof(T));
}

__attribute__((TARGET)) static void NAME(backward)(void *context, int64_t begin, int64_t end) {
    const Recurrence *c = context;
    int64_t h = c->hidden, batch = c->batch, all = c->gates * h, blocks = (h + 2 * U - 1) / (2 * U);
    T part[8 * 2 * U] __attribute__((aligned(64))), made[4 * 2 * U] __attribute__((aligned(64)));
    const T *after = c->before < 0 ? NULL : (const T *)c->d_hidden + c->before * batch * all;
    if (!after) memset(part, 0, sizeof part);
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % blocks * 2 * U, width = h - first < 2 * U ? h - first : 2 * U,
                end_row = (i / blocks + 1) * CHUNK;
        const T *b = (const T *)c->packed + (first - c->held * 2 * U) * all;
        if (end_row > batch) end_row = batch;
        for (int64_t row = i / blocks * CHUNK, rows; row < end_row; row += rows) {
            rows = after            ? NAME(tile)(2, end_row - row, all, after + row * all, all, b, part)
                : end_row - row < 8 ? end_row - row
                                    : 8;
            for (int64_t r = row; r < row + rows; r++) {
                /* dh holds what comes past the product (the GRU's), dc what comes to the cells. */
                const T *restrict sum = part + (r - row) * 2 * U;
                T *dh = (T *)c->dh + r * h + first;
                if (c->t < 0) {
                    UNITS(2 * U, dh[u] = c->kind == RECURRENCE_GRU ? dh[u] + sum[u] : sum[u];);
                    continue;
                }
                int64_t place = c->t * batch + r;
                const T *restrict ct = (const T *)c->ct + place * h + first,
                                  *out = (const T *)c->out + place * h + first;
                T *d = (T *)c->d_inner + place * all + first;
                if (c->kind == RECURRENCE_LSTM) {
                    const T *restrict gate = (const T *)c->kept + place * 4 * h + first,
                                      *restrict cell = (const T *)c->cells + place * h + first;
                    int64_t t = c->back;
                    const T *restrict was = t < 0 ? (const T *)c->c0 + r * h + first
                                                  : (const T *)c->cells + (t * batch + r) * h + first;
                    T *dc = (T *)c->dc + r * h + first, carried[2 * U] __attribute__((aligned(64)));
                    if (!after) {
                        if (c->ct_c)
                            memcpy(dc, (const T *)c->ct_c + r * h + first, (size_t)width * sizeof(T));
                        else memset(dc, 0, (size_t)width * sizeof(T));
                    }
                    UNITS(2 * U, T g = ct[u] + sum[u], i = gate[u], f = gate[h + u], n = gate[2 * h + u],
                          o = gate[3 * h + u], y = TANHF(cell[u]);
                          T e = dc[u] + g * o * (1 - y * y); made[u] = e * n * (i * (1 - i));
                          made[2 * U + u] = e * was[u] * (f * (1 - f)); made[4 * U + u] = e * i * (1 - n * n);
                          made[6 * U + u] = g * y * (o * (1 - o)); carried[u] = e * f;);
                    memcpy(dc, carried, (size_t)width * sizeof(T));
                    NAME(spread)(d, made, 4, h, width);
                } else if (c->kind == RECURRENCE_GRU) {
                    const T *restrict gate = (const T *)c->kept + place * 4 * h + first;
                    const T *restrict was = c->back < 0
                        ? (const T *)c->h0 + r * h + first
                        : (const T *)c->out + (c->back * batch + r) * h + first;
                    T *e = (T *)c->d_hidden + place * all + first, passed[2 * U] __attribute__((aligned(64)));
                    if (!after) memset(dh, 0, (size_t)width * sizeof(T));
                    UNITS(2 * U, T g = ct[u] + sum[u] + dh[u], q = gate[u], z = gate[h + u],
                          n = gate[2 * h + u], y = gate[3 * h + u];
                          T dn = g * (1 - z) * (1 - n * n); made[u] = dn * y * (q * (1 - q));
                          made[2 * U + u] = g * (was[u] - n) * (z * (1 - z)); made[4 * U + u] = dn;
                          made[6 * U + u] = dn * q; passed[u] = g * z;);
                    memcpy(dh, passed, (size_t)width * sizeof(T));
                    NAME(spread)(d, made, 3, h, width);
                    NAME(spread)(e, made, 2, h, width);
                    memcpy(e + 2 * h, made + 6 * U, (size_t)width * sizeof(T));
                } else if (c->kind == RECURRENCE_TANH) {
                    UNITS(2 * U, T y = out[u]; made[u] = (ct[u] + sum[u]) * (1 - y * y););
                    NAME(spread)(d, made, 1, h, width);
                } else {
                    UNITS(2 * U, made[u] = out[u] <= 0 ? 0 : ct[u] + sum[u];);
                    NAME(spread)(d, made, 1, h, width);
                }
            }
        }
    }
}
#undef UNITS
#undef U
#undef TALL4
#undef TALL3
#undef TALL2
#undef TALL1
#undef LOW
#undef NAME
#undef BYTES
#undef TARGET
