/* winograd_halves.c for AVX2. */
#define VECTOR 32
#include "kernels/winograd_halves.c"
