/* winograd_volume.c for AVX2. */
#define VECTOR 32
#include "kernels/winograd_volume.c"
#include "kernels/winograd_volume_weight.c"
