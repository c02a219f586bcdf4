/* What tests hand to csrc/device/cublas.c as cuBLASLt: it keeps a record, and computes in the columns that its interface speaks of. Memory is the
 * host's, as fake_libcuda.c's is. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char log_[1 << 16];
static size_t used;
const char *fake_cublas_log(void) { return log_; }
#define LOG(...) used += (size_t)snprintf(log_ + used, sizeof log_ - used, __VA_ARGS__)

typedef struct {
    int type, transposed[2], batch;
    int64_t rows, columns, leading, distance;
} Thing; /* an operation or a layout */
typedef struct {
    size_t room;
    int aligned[4];
} Wishes;
typedef struct {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} Result;
static int things, refuse;
int fake_cublas_things(void) { return things; }
void fake_cublas_refuse(int yes) { refuse = yes; }

int cublasLtCreate(void **handle) { return *handle = &things, LOG("create\n"), 0; }
static Thing *made(void) { return things++, calloc(1, sizeof(Thing)); }
int cublasLtMatmulDescCreate(void **out, int compute, int scale) {
    Thing *t = made();
    t->type = compute;
    LOG("compute %d scale %d\n", compute, scale);
    return *out = t, 0;
}
int cublasLtMatmulDescSetAttribute(void *o, int what, const void *value, size_t n) {
    if (n != 4 || (what != 3 && what != 4)) return 7;
    return ((Thing *)o)->transposed[what - 3] = *(const int *)value, 0;
}
int cublasLtMatmulDescDestroy(void *o) { return free(o), things--, 0; }
int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t leading) {
    Thing *t = made();
    *t = (Thing){.type = type, .batch = 1, .rows = (int64_t)rows, .columns = (int64_t)columns, .leading = leading};
    return *out = t, leading < (int64_t)rows ? 7 : 0;
}
int cublasLtMatrixLayoutSetAttribute(void *o, int what, const void *value, size_t n) {
    Thing *t = o;
    if (what == 5 && n == 4) return t->batch = *(const int *)value, 0;
    if (what == 6 && n == 8) return t->distance = *(const int64_t *)value, 0;
    return 7;
}
int cublasLtMatrixLayoutDestroy(void *o) { return free(o), things--, 0; }
int cublasLtMatmulPreferenceCreate(void **out) { return *out = calloc(1, sizeof(Wishes)), things++, 0; }
int cublasLtMatmulPreferenceSetAttribute(void *o, int what, const void *value, size_t n) {
    Wishes *w = o;
    if (what == 1 && n == 8) return w->room = *(const size_t *)value, 0;
    if (what >= 5 && what <= 8 && n == 4) return w->aligned[what - 5] = *(const int *)value, 0;
    return 7;
}
int cublasLtMatmulPreferenceDestroy(void *o) { return free(o), things--, 0; }
int cublasLtMatmulAlgoGetHeuristic(void *h, void *o, void *a, void *b, void *c, void *d, void *wishes, int wanted, Result *out, int *found) {
    Wishes *w = wishes;
    LOG("heuristic of %d, room %zu, aligned %d %d %d %d\n", wanted, w->room, w->aligned[0], w->aligned[1], w->aligned[2], w->aligned[3]);
    if (refuse) return *found = 0, 0;
    memset(out, 0, sizeof *out);
    out->algorithm[0] = 42, out->workspace = 1000;
    return *found = 1, h == &things && o && a && b && c == d ? 0 : 7;
}

static double get(const void *from, int type, int64_t at) {
    if (type == 1) return ((const double *)from)[at];
    if (type == 0) return ((const float *)from)[at];
    return (double)((const _Float16 *)from)[at];
}
int cublasLtMatmul(void *h, void *operation, const void *alpha, const void *a, void *la, const void *b, void *lb, const void *beta, const void *c, void *lc,
                   void *d, void *ld, const uint64_t *algorithm, void *workspace, size_t n, void *stream) {
    (void)h, (void)stream;
    const Thing *o = operation, *x = la, *y = lb, *z = ld;
    double one = o->type == 70 ? *(const double *)alpha : *(const float *)alpha, none = o->type == 70 ? *(const double *)beta : *(const float *)beta;
    if (algorithm[0] != 42 || !workspace || n != 1000 || c != d || lc != ld || one != 1 || none != 0) return 7;
    int64_t m = z->rows, k = o->transposed[0] ? x->rows : x->columns;
    if ((o->transposed[0] ? x->columns : x->rows) != m || (o->transposed[1] ? y->rows : y->columns) != z->columns) return 7;
    if ((o->transposed[1] ? y->columns : y->rows) != k || x->batch != z->batch || y->batch != z->batch) return 7;
    LOG("product %lld %lld %lld, batch %d\n", (long long)m, (long long)z->columns, (long long)k, z->batch);
    for (int64_t g = 0; g < z->batch; g++)
        for (int64_t j = 0; j < z->columns; j++)
            for (int64_t i = 0; i < m; i++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += get(a, x->type, g * x->distance + (o->transposed[0] ? l + i * x->leading : i + l * x->leading)) *
                           get(b, y->type, g * y->distance + (o->transposed[1] ? j + l * y->leading : l + j * y->leading));
                int64_t at = g * z->distance + i + j * z->leading;
                if (z->type == 1) ((double *)d)[at] = sum;
                else if (z->type == 0) ((float *)d)[at] = (float)sum;
                else ((_Float16 *)d)[at] = (_Float16)sum;
            }
    return 0;
}
