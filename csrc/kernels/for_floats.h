/* Includes the file KERNELS for float32 and float64, with T and NAME(x) of each. */
#define T float
#define NAME(x) x##_f32
#include KERNELS
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include KERNELS
#undef T
#undef NAME
#undef KERNELS
