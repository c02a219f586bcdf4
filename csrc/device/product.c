/* Products of the simulated device's library, which stands for cuBLASLt: sums in float64, in order. */
#include "device/simulated.h"

#include <string.h>

/* Rows of an operand as it is kept, elements of a row, from one row and one matrix to the next. */
static void layout(const FlbProduct *p, int operand, int64_t out[4]) {
    int64_t a[] = {p->ta ? p->k : p->m, p->ta ? p->m : p->k, p->lda, p->a_distance};
    int64_t b[] = {p->tb ? p->n : p->k, p->tb ? p->k : p->n, p->ldb, p->b_distance};
    int64_t c[] = {p->m, p->n, p->ldc, p->c_distance};
    memcpy(out, operand == 0 ? a : operand == 1 ? b : c, sizeof a);
}
int64_t flb_product_bytes(const FlbProduct *p, int operand) {
    int64_t l[4];
    layout(p, operand, l);
    return ((p->batch - 1) * l[3] + (l[0] - 1) * l[2] + l[1]) * flb_product_width(p);
}

static double element(const FlbProduct *p, const char *from, int64_t at) {
    uint32_t bits;
    uint16_t half;
    float f;
    if (p->type == ELEMENT_F64) return ((const double *)from)[at];
    if (p->type == ELEMENT_F32) return ((const float *)from)[at];
    if (p->type == ELEMENT_F16) return (double)((const _Float16 *)from)[at];
    memcpy(&half, from + 2 * at, 2);
    bits = (uint32_t)half << 16;
    memcpy(&f, &bits, 4);
    return f;
}
static void set(const FlbProduct *p, char *to, int64_t at, double x) {
    uint32_t bits;
    float f = (float)x;
    if (p->type == ELEMENT_F64) ((double *)to)[at] = x;
    else if (p->type == ELEMENT_F32) ((float *)to)[at] = f;
    else if (p->type == ELEMENT_F16) ((_Float16 *)to)[at] = (_Float16)f;
    else {
        memcpy(&bits, &f, 4);
        uint16_t half = f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        memcpy(to + 2 * at, &half, 2);
    }
}

int flb_product(const Product *q, int (*row)(void *about, char *at, size_t bytes, int how), void *about) {
    const FlbProduct *p = &q->what;
    for (int operand = 0; operand < 3; operand++) {
        int64_t l[4];
        layout(p, operand, l);
        for (int64_t z = 0; z < p->batch; z++)
            for (int64_t r = 0; r < l[0]; r++) {
                char *at =
                    q->operands[operand] + (size_t)(z * l[3] + r * l[2]) * (size_t)flb_product_width(p);
                int status = row(about, at, (size_t)l[1] * (size_t)flb_product_width(p),
                                 operand == 2 ? FLB_WRITES : FLB_READS);
                if (status) return status;
            }
    }
    for (int64_t z = 0; z < p->batch; z++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < p->k; k++) {
                    int64_t a = z * p->a_distance + (p->ta ? k * p->lda + i : i * p->lda + k);
                    int64_t b = z * p->b_distance + (p->tb ? j * p->ldb + k : k * p->ldb + j);
                    sum += element(p, q->operands[0], a) * element(p, q->operands[1], b);
                }
                set(p, q->operands[2], z * p->c_distance + i * p->ldc + j, sum);
            }
    return 0;
}
