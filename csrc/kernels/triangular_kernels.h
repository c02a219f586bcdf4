/* The blocks of triangular.c for one element type: included with T, NAME(x), Vector, LANES, DO(x) (an
 * intrinsic of 512 bits) and SPREAD(v, lane) (a lane in all lanes); it takes them back. */

/* n columns of x, in registers: one unknown after the other is eliminated from those below it, or above.
 * `by`: reciprocals of the diagonal. */
static inline __attribute__((always_inline)) WIDE void NAME(eliminate)(int upper, int unit, int64_t m,
                                                                       const T *a, int64_t lda, const T *by,
                                                                       T *x, int64_t ldx, const int n) {
    Vector v[4][VECTORS];
    unsigned rows[VECTORS]; /* lanes that are rows of the block */
    EACH(int r = 0; r < VECTORS; r++) {
        int64_t left = m - r * LANES;
        rows[r] = left >= LANES ? (1u << LANES) - 1 : left > 0 ? (1u << left) - 1 : 0;
        EACH(int c = 0; c < n; c++)
        v[c][r] = DO(maskz_loadu)(rows[r], x + c * ldx + (rows[r] ? r * LANES : 0));
    }
    EACH(int step = 0; step < VECTORS; step++) {
        const int g = upper ? VECTORS - 1 - step : step;
        int64_t count = m - g * LANES < LANES ? m - g * LANES : LANES;
        for (int64_t i = 0; i < count; i++) {
            int64_t lane = upper ? count - 1 - i : i, k = g * LANES + lane;
            const T *column = a + k * lda;
            unsigned here = 1u << lane, others = rows[g] & (upper ? here - 1 : ~(2 * here - 1));
            Vector found[4], of = DO(maskz_loadu)(others, column + g * LANES);
            EACH(int c = 0; c < n; c++) {
                found[c] = SPREAD(v[c][g], (int)lane);
                if (!unit) {
                    found[c] = DO(mul)(found[c], DO(set1)(by[k]));
                    v[c][g] = DO(mask_mov)(v[c][g], here, found[c]);
                }
                v[c][g] =
                    DO(mask3_fnmadd)(found[c], of, v[c][g], others); /* an infinity times zero would be nan */
            }
            EACH(int r = 0; r < VECTORS; r++)
            if (upper ? r < g : r > g) {
                Vector part = DO(maskz_loadu)(rows[r], column + (rows[r] ? r * LANES : 0));
                EACH(int c = 0; c < n; c++) v[c][r] = DO(fnmadd)(found[c], part, v[c][r]);
            }
        }
    }
    EACH(int r = 0; r < VECTORS; r++)
    if (rows[r]) EACH(int c = 0; c < n; c++) DO(mask_storeu)(x + c * ldx + r * LANES, rows[r], v[c][r]);
}

#define SIDES(upper, unit, n) NAME(eliminate)(upper, unit, m, a, lda, by, x + c * ldx, ldx, n)
#define WAYS(n)                        \
    if (upper && unit) SIDES(1, 1, n); \
    else if (upper) SIDES(1, 0, n);    \
    else if (unit) SIDES(0, 1, n);     \
    else SIDES(0, 0, n)

WIDE static void NAME(block)(int upper, int unit, int64_t m, int64_t columns, const T *a, int64_t lda, T *x,
                             int64_t ldx) {
    T by[VECTORS * LANES];
    int64_t c = 0;
    for (int64_t k = 0; k < m && !unit; k++) by[k] = 1 / a[k * lda + k];
    for (; c + 4 <= columns; c += 4) {
        WAYS(4);
    }
    for (; c < columns; c++) {
        WAYS(1);
    }
}
#undef SIDES
#undef WAYS
#undef T
#undef NAME
#undef Vector
#undef LANES
#undef DO
#undef SPREAD
