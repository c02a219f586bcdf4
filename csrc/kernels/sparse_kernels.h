/* The kernels of sparse.c for one type of element: included with T, NAME(x) and ADD_PRODUCT(to, a, b), which
 * is to += a * b. */

/* Rows of the blocks of WIDE columns from the column `first` on, blocks outermost: a block of the dense
 * operand stays in the second-level cache. A term after the other. */
CLONES static void NAME(sparse_dense)(void *context, int64_t begin, int64_t end) {
    const Product *p = context;
    const T *values = p->a.values, *dense = p->dense;
    for (int64_t u = begin; u < end; u++) {
        int64_t r = u % p->rows, j0 = p->first + u / p->rows * WIDE,
                width = p->n - j0 < WIDE ? p->n - j0 : WIDE;
        T sum[WIDE];
        for (int64_t j = 0; j < width; j++) sum[j] = (T){0};
        for (int64_t i = p->a.ranges[r]; i < p->a.ranges[r + 1]; i++) {
            const T *row = dense + p->a.columns[i] * p->n + j0;
            T v = values[i];
            for (int64_t j = 0; j < width; j++) ADD_PRODUCT(sum[j], v, row[j]);
        }
        memcpy((T *)p->out + r * p->n + j0, sum, (size_t)width * sizeof(T));
    }
}

/* Rows of a sparse product (Gustavson 1978): terms are added up in a dense row, then taken out by increasing
 * column. */
static void NAME(sparse_sparse)(void *context, int64_t begin, int64_t end) {
    Product *p = context;
    int64_t words = (p->n + 63) / 64;
    T *sum = malloc((size_t)p->n * sizeof(T) + 1);
    uint64_t *met = calloc((size_t)words + 1, 8);
    if (!sum || !met) p->failed = 1;
    for (int64_t r = begin; r < end && !p->failed; r++) {
        int64_t first = p->out_ranges[r], *columns = p->out_columns + first, count = 0;
        T *to = (T *)p->out + first;
        for (int64_t i = p->a.ranges[r]; i < p->a.ranges[r + 1]; i++) {
            int64_t k = p->a.columns[i];
            T v = ((const T *)p->a.values)[i];
            for (int64_t j = p->b.ranges[k]; j < p->b.ranges[k + 1]; j++) {
                int64_t c = p->b.columns[j];
                uint64_t bit = (uint64_t)1 << (c & 63);
                if (!(met[c >> 6] & bit)) met[c >> 6] |= bit, columns[count++] = c, sum[c] = (T){0};
                ADD_PRODUCT(sum[c], v, ((const T *)p->b.values)[j]);
            }
        }
        if (count * 16 < words) qsort(columns, (size_t)count, sizeof *columns, by_number);
        else
            for (int64_t w = 0, i = 0; w < words; w++)
                for (uint64_t left = met[w]; left; left &= left - 1)
                    columns[i++] = w << 6 | __builtin_ctzll(left);
        for (int64_t i = 0; i < count; i++) to[i] = sum[columns[i]], met[columns[i] >> 6] = 0;
    }
    free(sum), free(met);
}

/* Sums of runs of rows of values, in the order given. */
static void NAME(sum_runs)(void *context, int64_t begin, int64_t end) {
    const Runs *r = context;
    const T *values = (const T *)r->values;
    for (int64_t k = begin; k < end; k++) {
        T *to = (T *)r->out + k * r->width;
        memcpy(to, values + r->order[r->starts[k]] * r->width, (size_t)r->width * sizeof(T));
        for (int64_t i = r->starts[k] + 1; i < r->starts[k + 1]; i++) {
            const T *from = values + r->order[i] * r->width;
            for (int64_t j = 0; j < r->width; j++) ADD(to[j], from[j]);
        }
    }
}
