/* Attention forward for blocks of rows: scores are made transposed (keys by rows), so that maxima and sums of
 * the rows run along the lanes and the weights are the right operand of the second product as they lie. Keys
 * and transposed values are packed once for all blocks. Included by attention_kernels.h. */

/* Outputs o[e][r] times f[r]. */
TRANSPOSED_BY_LEVEL(static void, NAME(scale_transposed), (int64_t width, int64_t high, T *o, const T *f),
                    (width, high, o, f)) {
    for (int64_t e = 0; e < width; e++)
        for (int64_t r = 0; r < high; r++) o[e * high + r] *= f[r];
}

/* Queries q[e][r] times `by`; those after the last row are 0. */
TRANSPOSED_BY_LEVEL(static void, NAME(scale_queries), (int64_t width, int64_t high, int64_t rows, T *q, T by),
                    (width, high, rows, q, by)) {
    for (int64_t e = 0; e < width; e++, q += high) {
        for (int64_t r = 0; r < rows; r++) q[r] *= by;
        for (int64_t r = rows; r < high; r++) q[r] = 0;
    }
}

/* The mask's rows from t0 on and columns from j0 on, transposed, onto n keys' scores; `room` is as large as
 * the scores. */
TRANSPOSED_BY_LEVEL(static void, NAME(bias_transposed),
                    (const Attention *a, const char *mask, int64_t t0, int64_t rows, int64_t high, int64_t j0,
                     int64_t n, T *s, T *room),
                    (a, mask, t0, rows, high, j0, n, s, room)) {
    int64_t down = a->mask_stride[2], along = a->mask_stride[3];
    mask += t0 * down + j0 * along;
    if (!down) {
        for (int64_t j = 0; j < n; j++) {
            T x = a->truths ? mask[j * along] ? (T)0 : -(T)INFINITY : *(const T *)(mask + j * along);
            for (int64_t r = 0; r < high; r++) s[j * high + r] += x;
        }
        return;
    }
    if (a->truths) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t r = 0; r < rows; r++)
                s[j * high + r] += mask[r * down + j * along] ? (T)0 : -(T)INFINITY;
        return;
    }
    if (along == (int64_t)sizeof(T))
        flb_transpose(sizeof(T) == 8, rows, n, mask, down / (int64_t)sizeof(T), room, high);
    else
        for (int64_t j = 0; j < n; j++)
            for (int64_t r = 0; r < rows; r++) room[j * high + r] = *(const T *)(mask + r * down + j * along);
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < rows; r++) s[j * high + r] += room[j * high + r];
}

/* Apply dropout to the weights of n keys; `room` is twice as large as they are. */
TRANSPOSED_BY_LEVEL(static void, NAME(drop_transposed),
                    (const Attention *a, const uint8_t *kept, int64_t t0, int64_t rows, int64_t high,
                     int64_t j0, int64_t n, T *s, T *room),
                    (a, kept, t0, rows, high, j0, n, s, room)) {
    T *factors = room + n * high, boost = (T)a->boost;
    for (int64_t r = 0; r < rows; r++) {
        uint8_t bytes[BLOCK];
        const uint8_t *k = as_bytes(KEPT_ROW(t0 + r), j0, n, bytes);
        for (int64_t j = 0; j < n; j++) factors[r * n + j] = (T)k[j] * boost;
    }
    flb_transpose(sizeof(T) == 8, rows, n, factors, n, room, high);
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = 0; r < rows; r++) s[j * high + r] *= room[j * high + r];
}

static int64_t NAME(panels_of)(int64_t rows) { return (rows + TALL - 1) / TALL * TALL; }

/* Pieces: the keys, then the values of each head. */
static void NAME(pack_heads)(const Attention *a, int64_t begin, int64_t end) {
    int64_t held = a->heads / a->group, each = NAME(panels_of)(a->keys) * a->width,
            transposed = NAME(panels_of)(a->width) * a->keys;
    for (int64_t i = begin; i < end; i++) {
        int64_t head = i / 2, b = head / held, h = head % held;
        T *to = (T *)a->packed + head * (each + transposed);
        if (i % 2 == 0) flb_pack_rows(sizeof(T) == 8, 0, a->keys, a->width, AT(k, b, h), ROW(k), to);
        else flb_pack_rows(sizeof(T) == 8, 1, a->width, a->keys, AT(v, b, h), ROW(v), to + each);
    }
}

/* Pieces: a block of rows of a head. */
static void NAME(forward_transposed)(const Attention *a, int64_t begin, int64_t end) {
    int64_t high = a->high, wide = a->wide, width = a->width, held = a->heads / a->group;
    int64_t each = NAME(panels_of)(a->keys) * width, transposed = NAME(panels_of)(width) * a->keys;
    char *room = flb_api->scratch((high *
                                   (wide + 2 * width + 3 +
                                    (a->kept       ? 2 * wide
                                         : a->mask ? wide
                                                   : 0))) *
                                      sizeof(T) +
                                  64);
    if (!room) {
        *a->failed = 1;
        return;
    }
    T *s = (T *)(((uintptr_t)room + 63) & ~(uintptr_t)63), *q = s + high * wide, *o = q + high * width,
      *most = o + high * width, *sum = most + high, *factor = sum + high, *turn = factor + high;
    int f64 = sizeof(T) == 8;
    for (int64_t i = begin; i < end; i++) {
        int64_t t0 = i % a->cuts * high, h = i / a->cuts % a->heads, b = i / a->cuts / a->heads,
                step = ROW(lse);
        int64_t t1 = t0 + high < a->queries ? t0 + high : a->queries, rows = t1 - t0,
                last = a->causal && t1 < a->keys ? NAME(panels_of)(t1) : a->keys;
        if (last > a->keys) last = a->keys;
        const T *k = (const T *)a->packed + (b * held + h / a->group) * (each + transposed), *v = k + each;
        const char *mask = MASK(b, h);
        const uint8_t *kept = KEPT(b, h);
        flb_transpose(f64, rows, width, AT(q, b, h) + t0 * ROW(q), ROW(q), q, high);
        NAME(scale_queries)(width, high, rows, q, (T)a->scale);
        for (int64_t r = 0; r < high; r++) most[r] = -INFINITY, sum[r] = 0;
        for (int64_t j = 0; j < last; j += wide) {
            int64_t n = j + wide < last ? wide : last - j;
            flb_multiply_panels(f64, a->keys, j, j + n, high, width, 0, width, k, q, high, s, high, 0);
            if (mask) NAME(bias_transposed)(a, mask, t0, rows, high, j, n, s, turn);
            BY_VECTORS.weigh_transposed(a->causal, t0, high, j, n, s, most, sum, factor);
            if (kept) NAME(drop_transposed)(a, kept, t0, rows, high, j, n, s, turn);
            if (j) NAME(scale_transposed)(width, high, o, factor);
            flb_multiply_panels(f64, width, 0, width, high, a->keys, j, n, v, s, high, o, high, j > 0);
        }
        T *lse = AT(lse, b, h) + t0 * step;
        for (int64_t r = 0; r < high; r++)
            factor[r] = sum[r] == 0 ? 0 : 1 / sum[r]; /* a row that sees nothing is 0 */
        NAME(scale_transposed)(width, high, o, factor);
        for (int64_t r = 0; r < rows; r++) lse[r * step] = sum[r] == 0 ? -INFINITY : most[r] + LOG(sum[r]);
        flb_transpose(f64, width, rows, o, high, AT(o, b, h) + t0 * ROW(o), ROW(o));
    }
    flb_api->free(room);
}
