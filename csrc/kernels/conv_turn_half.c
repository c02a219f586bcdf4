/* conv_turn.c for AVX2. */
#define VECTOR 32
#include "kernels/conv_turn.c"
