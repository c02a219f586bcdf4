/* Matrices of float32 transposed: squares of a vector's lanes, exchanged in registers. */
#include "kernels/conv.h"

#if !defined(__x86_64__)
int SIZED(flb_turn_floats)(const float *from, float *to, int64_t rows, int64_t columns, int64_t r0,
                           int64_t r1) {
    return -1;
}
#else
#include "kernels/conv_lanes.h"

#define SIDE 16 /* whole cache lines are read and written at a time */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A square, or what there is of it: `down` by `across`. */
LINE turn_square(const float *from, int64_t columns, int64_t down, int64_t across, float *to, int64_t rows) {
    Mask high = first_lanes(down), wide = first_lanes(across), none = first_lanes(0);
    Lanes r[L];
    for (int a = 0; a < L; a++)
        r[a] = load_masked(a < down ? wide : none, from + (a < down ? a : 0) * columns);
    turn(r);
    for (int64_t b = 0; b < across; b++) store_masked(to + b * rows, high, r[b]);
}

WIDE int SIZED(flb_turn_floats)(const float *from, float *to, int64_t rows, int64_t columns, int64_t r0,
                                int64_t r1) {
    for (int64_t i = r0; i < r1; i += SIDE)
        for (int64_t j = 0; j < columns; j += SIDE)
            for (int64_t b = j; b < least(j + SIDE, columns); b += L)
                for (int64_t a = i; a < least(i + SIDE, r1); a += L)
                    turn_square(from + a * columns + b, columns, least(L, r1 - a), least(L, columns - b),
                                to + b * rows + a, rows);
    return 0;
}
#endif
