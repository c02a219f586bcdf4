/* Products of float32 numbers by AMX tiles: product_split.c. */
#ifndef FLB_PRODUCT_SPLIT_H
#define FLB_PRODUCT_SPLIT_H
#include <stdint.h>

/* C = A B, or += with `sum`, in C order; `at`: A is stored (k, m), `bt` likewise. */
typedef struct {
    int at, bt, sum;
    int64_t m, n, k;
    const float *a;
    int64_t lda;
    const float *b;
    int64_t ldb;
    float *c;
    int64_t ldc;
    const void *packed; /* without `sum`: all of B by flb_split_pack(), which isn't read then; or NULL */
} SplitProduct;

#define SPLIT_ODD INT32_MIN /* the exponent of a row or column that tiles can't make */

int flb_split_fits(int64_t m, int64_t n, int64_t k);
int64_t flb_split_packed(int64_t n, int64_t k, int64_t *bytes); /* panels that may be packed apart */
void flb_split_pack(int bt, int64_t n, int64_t k, const float *b, int64_t ldb, void *to, int64_t from,
                    int64_t end);
int flb_split_product(const SplitProduct *p, const int32_t **rows, const int32_t **columns);
#endif
