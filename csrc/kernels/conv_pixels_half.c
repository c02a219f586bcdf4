/* Convolutions by pixels for AVX2: vectors of 8 channels, and tiles that 16 registers hold. */
#define VECTOR 32
#include "kernels/conv_pixels.c"
#include "kernels/conv_pixels_pack.c"
#include "kernels/conv_pixels_places.c"
#include "kernels/conv_pixels_product.c"
#include "kernels/conv_pixels_weight.c"
