/* Elementary functions as straight-line code, which C compilers make vectors of. nan stays. */
#ifndef FLAMBEAU_ELEMENTARY_H
#define FLAMBEAU_ELEMENTARY_H
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

/* exp(x) of x up to 88 within 2 ulp, 0 below -87.3. */
INLINE float exp_f32(float x) {
    float y = x < -87.3f ? -87.3f : x, n = __builtin_rintf(y * 1.44269504f);
    float r = y - n * 0.693145752f - n * 1.42860677e-6f;
    float p = 1.f +
        r *
            (1.f +
             r * (.5f + r * (.166666672f + r * (.0416664667f + r * (.00833345205f + r * .00138891447f)))));
    union {
        int32_t i;
        float f;
    } power = {.i = ((int32_t)n + 127) << 23};
    p *= power.f;
    return x < -87.3f ? 0.f : p;
}

INLINE float sigmoid_f32(float x) {
    float e = exp_f32(-__builtin_fabsf(x)), s = 1.f / (1.f + e);
    return x < 0.f ? e * s : s;
}

INLINE float tanh_f32(float x) {
    float e = exp_f32(-2.f * __builtin_fabsf(x)), large = (1.f - e) / (1.f + e), z = x * x;
    float small = x +
        x * z *
            (-.333332819f +
             z * (.133314422f + z * (-.0537397155f + z * (.0206390888f + z * -.00570498873f))));
    return __builtin_fabsf(x) < .625f ? small : __builtin_copysignf(large, x);
}
#endif
