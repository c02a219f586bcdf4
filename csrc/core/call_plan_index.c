/* Steps of call plans that read and write by index: loops around one element, or around a block of bytes. */
#include "core/call_plan.h"

/* The places of a step's operands and loads, and how they move; 0: an index is out of bounds. */
typedef struct {
    char *operand[2], *load[R_LOADS];
    npy_intp index[R_DIMS];
} Walk;

static inline char *place(const Operand *o, char **slots) { return slots[o->slot] + o->offset; }
static inline void start(Walk *w, const Step *s, char **slots) {
    memset(w->index, 0, sizeof w->index);
    for (int k = 0; k < 2; k++) w->operand[k] = place(&s->operand[k], slots);
    for (int k = 0; k < s->n_loads; k++) w->load[k] = place(&s->load[k].at, slots);
}
/* Bytes that the loaded indices add; 0: one is out of bounds. */
static inline int loaded(const Walk *w, const Step *s, npy_intp *bytes) {
    *bytes = 0;
    for (int k = 0; k < s->n_loads; k++) {
        const Load *l = &s->load[k];
        npy_intp i = l->item == 8 ? *(int64_t *)w->load[k] : *(int32_t *)w->load[k];
        if (i < 0 && l->wrap) i += l->size;
        if (i < 0 || i >= l->size) return 0;
        *bytes += i * l->stride;
    }
    return 1;
}
/* To the next element of the first n loops; 0: there is none. */
static inline int step(Walk *w, const Step *s, int n) {
    for (int d = n - 1; d >= 0; d--) {
        int more = ++w->index[d] < s->dims[d];
        npy_intp m = more ? 1 : 1 - s->dims[d];
        for (int k = 0; k < 2; k++) w->operand[k] += s->operand[k].strides[d] * m;
        for (int k = 0; k < s->n_loads; k++) w->load[k] += s->load[k].at.strides[d] * m;
        if (more) return 1;
        w->index[d] = 0;
    }
    return 0;
}

/* Rows along the last loop of elements of type T, by one index of 64 bits each; 0: out of bounds. */
#define ROW_OF(T)                                                                                        \
    static int row_##T(const Walk *w, const Step *s) {                                                   \
        const Load *l = &s->load[0];                                                                     \
        const int last = s->n_dims - 1;                                                                  \
        const npy_intp n = s->dims[last], size = l->size, stride = l->stride, wrap = l->wrap ? size : 0; \
        const npy_intp step0 = s->operand[0].strides[last], step1 = s->operand[1].strides[last],         \
                       step2 = l->at.strides[last];                                                      \
        const char *from = w->operand[0], *index = w->load[0];                                           \
        char *to = w->operand[1];                                                                        \
        for (npy_intp k = 0; k < n; k++, from += step0, to += step1, index += step2) {                   \
            npy_intp i = *(const int64_t *)index;                                                        \
            if (i < 0) i += wrap;                                                                        \
            if (i < 0 || i >= size) return 0;                                                            \
            *(T *)to = *(const T *)(from + i * stride);                                                  \
        }                                                                                                \
        return 1;                                                                                        \
    }
ROW_OF(uint32_t)
ROW_OF(uint64_t)

int flb_call_plan_gather(const Step *s, char **slots) {
    Walk w;
    start(&w, s, slots);
    if (s->n_loads == 1 && s->n_dims && s->load[0].item == 8 && (s->block == 4 || s->block == 8)) {
        do
            if (!(s->block == 4 ? row_uint32_t : row_uint64_t)(&w, s)) return 0;
        while (step(&w, s, s->n_dims - 1));
        return 1;
    }
    do {
        npy_intp at;
        if (!loaded(&w, s, &at)) return 0;
        switch (s->block) {
        case 4: memcpy(w.operand[1], w.operand[0] + at, 4); break;
        case 8: memcpy(w.operand[1], w.operand[0] + at, 8); break;
        default: memcpy(w.operand[1], w.operand[0] + at, s->block);
        }
    } while (step(&w, s, s->n_dims));
    return 1;
}

/* ---- writes -------------------------------------------------------------------------------------------- */

#define COMBINING(NAME, T, value)                   \
    static void NAME(char *to, const char *from) {  \
        T a = *(const T *)to, b = *(const T *)from; \
        *(T *)to = (T)(value);                      \
    }
#define INTEGERS(T, U, SUFFIX)                    \
    COMBINING(add_##SUFFIX, T, (U)a + (U)b)       \
    COMBINING(multiply_##SUFFIX, T, (U)a *(U)b)   \
    COMBINING(minimum_##SUFFIX, T, b < a ? b : a) \
    COMBINING(maximum_##SUFFIX, T, b > a ? b : a)
#define FLOATS(T, SUFFIX)                                   \
    COMBINING(add_##SUFFIX, T, a + b)                       \
    COMBINING(multiply_##SUFFIX, T, a *b)                   \
    COMBINING(minimum_##SUFFIX, T, b < a || b != b ? b : a) \
    COMBINING(maximum_##SUFFIX, T, b > a || b != b ? b : a)
FLOATS(float, f32)
FLOATS(double, f64)
INTEGERS(int64_t, uint64_t, i64)
INTEGERS(int32_t, uint32_t, i32)
INTEGERS(int16_t, uint32_t, i16)
INTEGERS(int8_t, uint32_t, i8)
INTEGERS(uint8_t, uint32_t, u8)

static const struct {
    const char *name;
    int types[7];
    CombineFn fns[7];
} combining[] = {
#define ROW(NAME)                                                                               \
    {                                                                                           \
        #NAME, {NPY_FLOAT, NPY_DOUBLE, NPY_INT64, NPY_INT32, NPY_INT16, NPY_INT8, NPY_UINT8}, { \
            NAME##_f32, NAME##_f64, NAME##_i64, NAME##_i32, NAME##_i16, NAME##_i8, NAME##_u8    \
        }                                                                                       \
    }
    ROW(add), ROW(multiply), ROW(minimum), ROW(maximum)};

CombineFn flb_call_plan_combine(const char *name, int type) {
    for (size_t i = 0; i < sizeof combining / sizeof *combining; i++)
        for (int k = 0; k < 7 && !strcmp(combining[i].name, name); k++)
            if (combining[i].types[k] == type) return combining[i].fns[k];
    return NULL;
}
int flb_call_plan_scatter(const Step *s, char **slots) {
    Walk w;
    start(&w, s, slots);
    do {
        npy_intp at;
        if (!loaded(&w, s, &at)) return 0;
        if (s->combine) s->combine(w.operand[1] + at, w.operand[0]);
        else memcpy(w.operand[1] + at, w.operand[0], s->block);
    } while (step(&w, s, s->n_dims));
    return 1;
}
