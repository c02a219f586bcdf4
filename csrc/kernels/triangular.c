/* Triangular systems of column-major matrices with AVX-512, where the library's kernels are far from its
 * products': the matrix is halved down to blocks, so that nearly all is products (F. G. Gustavson, "Recursion
 * leads to automatic variable blocking for dense linear-algebra algorithms", 1997), and a block is eliminated
 * from four right-hand sides at a time, which stay in registers. By reciprocals of the diagonal, as the
 * library does it. */
#include "kernels/lapack.h"

#if !defined(__x86_64__)
int flb_triangular_fits(int type) { return 0; }
void flb_solve_left(int type, int upper, int unit, int64_t m, int64_t columns, const char *a, int64_t lda,
                    char *x, int64_t ldx) {}
#else
#include <immintrin.h>

#if defined(__GNUC__) && !defined(__clang__)
#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,fma"), optimize("O3", "fp-contract=fast")))
#else
#define WIDE __attribute__((target("avx512f,avx512vl,avx512dq,fma")))
#endif
#define EACH _Pragma("GCC unroll 16") for
#define VECTORS 4 /* of a column of a block */

#define T float
#define NAME(x) x##_f32
#define Vector __m512
#define LANES 16
#define DO(x) _mm512_##x##_ps
#define SPREAD(v, lane) _mm512_permutexvar_ps(_mm512_set1_epi32(lane), v)
#include "kernels/triangular_kernels.h"
#define T double
#define NAME(x) x##_f64
#define Vector __m512d
#define LANES 8
#define DO(x) _mm512_##x##_pd
#define SPREAD(v, lane) _mm512_permutexvar_pd(_mm512_set1_epi64(lane), v)
#include "kernels/triangular_kernels.h"

int flb_triangular_fits(int type) { return type <= ELEMENT_F64 && flb_cpu_level() == 2; }

/* a x = x of the triangle (upper or lower, unit: its diagonal is one and isn't read) of a column-major matrix
 * (m, m), for columns of x. */
void flb_solve_left(int type, int upper, int unit, int64_t m, int64_t columns, const char *a, int64_t lda,
                    char *x, int64_t ldx) {
    int64_t item = flb_lapack_item[type], block = 64 * VECTORS / item;
    if (m <= 0 || columns <= 0) return;
    if (m <= block) {
        if (type == ELEMENT_F32) block_f32(upper, unit, m, columns, (const float *)a, lda, (float *)x, ldx);
        else block_f64(upper, unit, m, columns, (const double *)a, lda, (double *)x, ldx);
        return;
    }
    int64_t half = (m / 2 + block - 1) / block * block, rest = m - half;
    const char *second = a + (half * lda + half) * item;
    const void *one = flb_lapack_one(type, 0), *minus = flb_lapack_one(type, 1);
    Fortran gemm = flb_lapack_routine(type, GEMM);
    if (upper) {
        flb_solve_left(type, upper, unit, rest, columns, second, lda, x + half * item, ldx);
        gemm("N", "N", &half, &columns, &rest, minus, a + half * lda * item, &lda, x + half * item, &ldx, one,
             x, &ldx, 1L, 1L);
        flb_solve_left(type, upper, unit, half, columns, a, lda, x, ldx);
    } else {
        flb_solve_left(type, upper, unit, half, columns, a, lda, x, ldx);
        gemm("N", "N", &rest, &columns, &half, minus, a + half * item, &lda, x, &ldx, one, x + half * item,
             &ldx, 1L, 1L);
        flb_solve_left(type, upper, unit, rest, columns, second, lda, x + half * item, ldx);
    }
}
#endif
