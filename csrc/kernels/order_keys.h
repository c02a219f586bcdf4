/* The order of elements as unsigned integers: nan is the greatest, zeros of both signs are equal. Complex
 * numbers have none. */
#ifndef FLAMBEAU_ORDER_KEYS_H
#define FLAMBEAU_ORDER_KEYS_H
#include "runtime/kernels.h"

static const int item_of[ELEMENT_COUNT] = {
    [ELEMENT_F32] = 4, [ELEMENT_F64] = 8, [ELEMENT_F16] = 2, [ELEMENT_BF16] = 2, [ELEMENT_I64] = 8,
    [ELEMENT_I32] = 4, [ELEMENT_I16] = 2, [ELEMENT_I8] = 1,  [ELEMENT_U8] = 1,
};
static inline int flb_is_ordered(int64_t element) { return item_of[element] != 0; }
static inline int flb_is_floating(int64_t element) {
    return element == ELEMENT_F32 || element == ELEMENT_F64 || element == ELEMENT_F16 ||
        element == ELEMENT_BF16;
}

/* Keys: of 32 bits for types of up to four bytes, of 64 for the others. Without choices, which compilers turn
 * into branches: loops over keys are vectors. */
static inline uint32_t of_f32(uint32_t b) {
    uint32_t nan = -(uint32_t)(b << 1 > 0xff000000u), some = -(uint32_t)(b << 1 != 0);
    return nan | (0x80000000u ^ (((b ^ ((uint32_t)((int32_t)b >> 31) | 0x80000000u)) ^ 0x80000000u) & some));
}
static inline uint32_t of_bf16(uint16_t b) { return of_f32((uint32_t)b << 16); }
static inline uint32_t of_f16(uint16_t b) {
    uint32_t low = (uint32_t)(b & 0x7fff);
    return low > 0x7c00 ? ~0u : b & 0x8000 ? 0x80000000u - low : 0x80000000u + low;
}
static inline uint64_t of_f64(uint64_t b) {
    const uint64_t half = (uint64_t)1 << 63;
    uint64_t nan = -(uint64_t)(b << 1 > 0xffe0000000000000u), some = -(uint64_t)(b << 1 != 0);
    return nan | (half ^ (((b ^ ((uint64_t)((int64_t)b >> 63) | half)) ^ half) & some));
}
static inline uint64_t of_i64(uint64_t b) { return b ^ (uint64_t)1 << 63; }
static inline uint32_t of_i32(uint32_t b) { return b ^ 0x80000000u; }
static inline uint32_t of_i16(uint16_t b) { return (uint32_t)(uint16_t)(b ^ 0x8000u); }
static inline uint32_t of_i8(uint8_t b) { return (uint32_t)(uint8_t)(b ^ 0x80u); }
static inline uint32_t of_u8(uint8_t b) { return b; }
#endif
