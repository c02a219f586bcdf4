/* LAPACK of the library that products are made with: its routines by type (ELEMENT_F32 to ELEMENT_C128), and
 * how they are called. */
#ifndef FLAMBEAU_LAPACK_H
#define FLAMBEAU_LAPACK_H
#include "runtime/graph.h"

enum { GETRF, GETRS, POTRF, POTRI, GEQRF, ORGQR, SYEVD, GESDD, GEEV, GELSY, LASWP, TRSM, GEMM, ROUTINES };

/* Fortran's: everything by reference, lengths of strings behind the arguments. Integers are 64 bits here; a
 * library with integers of 32 bits reads the low half and writes it, so whatever it may write is cleared
 * before. */
typedef void (*Fortran)();
Fortran flb_lapack_routine(int type, int routine);
int flb_lapack_wide(void); /* whether its integers have 64 bits: arrays of them differ */

/* The k-th of an array of the library's integers. */
static inline int64_t flb_fortran_int(const int64_t *array, int64_t k) {
    return flb_lapack_wide() ? array[k] : ((const int32_t *)array)[k];
}
static inline void flb_set_fortran_int(int64_t *array, int64_t k, int64_t value) {
    if (flb_lapack_wide()) array[k] = value;
    else ((int32_t *)array)[k] = (int32_t)value;
}

extern const int flb_lapack_item[4], flb_lapack_real[4]; /* bytes of an element, and of its real part */
const void *flb_lapack_one(int type, int minus);         /* 1 or -1 */

/* Triangular systems with AVX-512 (triangular.c): for which types they are there, and op(a) = a from the
 * left. */
int flb_triangular_fits(int type);
void flb_solve_left(int type, int upper, int unit, int64_t m, int64_t columns, const char *a, int64_t lda,
                    char *x, int64_t ldx);

/* Factors of one matrix in column-major order, split over the pool: P L U with `pivots` (the library's
 * integers, from 1), and L L^H in the lower triangle. The result is LAPACK's info. The blocks follow from the
 * sizes alone, so the result doesn't depend on the number of threads. */
int64_t flb_lu(int type, char *a, int64_t m, int64_t n, int64_t *pivots);
int64_t flb_cholesky(int type, char *a, int64_t n);
#endif
