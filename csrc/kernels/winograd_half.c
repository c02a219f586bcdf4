/* winograd.c for AVX2. */
#define VECTOR 32
#include "kernels/winograd.c"
