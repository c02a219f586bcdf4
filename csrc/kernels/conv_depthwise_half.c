/* conv_depthwise.c for AVX2. */
#define VECTOR 32
#include "kernels/conv_depthwise.c"
