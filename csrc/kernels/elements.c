/* NumPy ufuncs of the functions of element_loops.h: what eager calls run, with the bits of compiled graphs.
 */
#include "runtime/floating.h"
#include "runtime/graph.h"
#include "runtime/levels.h"
#include <math.h>
#include <numpy/ufuncobject.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* Each operation is rounded as IEEE has it, or compiled code would have other bits. */
#define EXACTLY optimize("O3", "fp-contract=off", "no-trapping-math", "no-math-errno")
#define EXACTLY_HERE __attribute__((EXACTLY))
#if defined(__clang__)
#undef EXACTLY_HERE
#define EXACTLY_HERE
#pragma STDC FP_CONTRACT OFF
#elif !defined(__x86_64__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math", "no-math-errno")
#endif

enum { LANES = 16, BLOCK = 512 };

INLINE uint32_t f32_as_i32(float x) {
    union {
        float f;
        uint32_t i;
    } u = {x};
    return u.i;
}
INLINE float i32_as_f32(uint32_t x) {
    union {
        uint32_t i;
        float f;
    } u = {x};
    return u.f;
}
INLINE uint64_t f64_as_i64(double x) {
    union {
        double f;
        uint64_t i;
    } u = {x};
    return u.i;
}
INLINE double i64_as_f64(uint64_t x) {
    union {
        uint64_t i;
        double f;
    } u = {x};
    return u.f;
}

typedef uint32_t i32;
typedef uint64_t i64;
INLINE i32 i32_as_i32(i32 x) { return x; }
INLINE i64 i64_as_i64(i64 x) { return x; }
/* c ? x : y by bits: what is chosen by a condition, GCC makes branches of, and no vector code of those. */
#define CHOSEN(t, type, bits)                            \
    INLINE type chosen_##t(_Bool c, type x, type y) {    \
        bits a = t##_as_##bits(x), b = t##_as_##bits(y); \
        return bits##_as_##t(b ^ ((a ^ b) & -(bits)c));  \
    }
CHOSEN(f32, float, i32)
CHOSEN(f64, double, i64)
CHOSEN(i32, i32, i32)
CHOSEN(i64, i64, i64)

/* `n` elements side by side, a multiple of LANES; the result may lie where an operand does. */
#define PLAIN_1(name, type)                                                                  \
    BY_LEVEL_WITH(EXACTLY, static void, name##_block, (char **at, int64_t n), (at, n)) {     \
        const type *x = (const type *)at[0];                                                 \
        type *out = (type *)at[1];                                                           \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < (n & -LANES); i++) out[i] = name(x[i]); \
    }
#define PLAIN_2(name, type)                                                                        \
    BY_LEVEL_WITH(EXACTLY, static void, name##_block, (char **at, int64_t n), (at, n)) {           \
        const type *x = (const type *)at[0], *y = (const type *)at[1];                             \
        type *out = (type *)at[2];                                                                 \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < (n & -LANES); i++) out[i] = name(x[i], y[i]); \
    }
/* float32 by a loop on float64. */
BY_LEVEL_WITH(EXACTLY, static void, widened, (const float *x, double *out, int64_t n), (x, out, n)) {
    for (int64_t i = 0; i < (n & -LANES); i++) out[i] = x[i];
}
BY_LEVEL_WITH(EXACTLY, static void, narrowed, (const double *x, float *out, int64_t n), (x, out, n)) {
    for (int64_t i = 0; i < (n & -LANES); i++) out[i] = (float)x[i];
}
#define WIDE(name, arity, block)                                                     \
    static void name##_block(char **at, int64_t n) {                                 \
        double wide[arity][BLOCK];                                                   \
        char *inner[] = {(char *)wide[0], (char *)wide[arity - 1], (char *)wide[0]}; \
        for (int k = 0; k < arity; k++) widened((const float *)at[k], wide[k], n);   \
        if (arity == 1) inner[1] = inner[0];                                         \
        block(inner, n);                                                             \
        narrowed(wide[0], (float *)at[arity], n);                                    \
    }
#define WIDE_1(name, block) WIDE(name, 1, block)
#define WIDE_2(name, block) WIDE(name, 2, block)
/* Elements of which the fast way doesn't hold are computed again, one by one. `MANY`: what is done where most
 * of a block would be. */
#define WITH_RARE(name, type, arity, MANY, ...)                                                       \
    BY_LEVEL_WITH(EXACTLY, static void, name##_any, (char **at, int64_t n, int *any), (at, n, any)) { \
        const type *x = (const type *)at[0], *y = (const type *)at[arity - 1];                        \
        int found = 0;                                                                                \
        (void)y;                                                                                      \
        for (int64_t i = 0; i < (n & -LANES); i++) found += name##_rare(__VA_ARGS__);                 \
        *any = found;                                                                                 \
    }                                                                                                 \
    BY_LEVEL_WITH(EXACTLY, static void, name##_fast, (char **at, int64_t n), (at, n)) {               \
        const type *x = (const type *)at[0], *y = (const type *)at[arity - 1];                        \
        type *out = (type *)at[arity];                                                                \
        (void)y;                                                                                      \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < (n & -LANES); i++) out[i] = name(__VA_ARGS__);   \
    }                                                                                                 \
    static EXACTLY_HERE void name##_again(char **at, char **from, int64_t n) {                        \
        const type *x = (const type *)from[0], *y = (const type *)from[arity - 1];                    \
        type *out = (type *)at[arity];                                                                \
        (void)y;                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                               \
            if (name##_rare(__VA_ARGS__)) out[i] = name##_slow(__VA_ARGS__);                          \
    }                                                                                                 \
    static void name##_block(char **at, int64_t n) {                                                  \
        type kept[arity][BLOCK];                                                                      \
        char *from[2] = {at[0], at[arity - 1]};                                                       \
        int any;                                                                                      \
        name##_any(at, n, &any);                                                                      \
        MANY for (int k = 0; any && k < arity; k++) from[k] =                                         \
            memcpy(kept[k], at[k], (size_t)n * sizeof(type));                                         \
        name##_fast(at, n);                                                                           \
        if (any) name##_again(at, from, n);                                                           \
    }
#define WITH_RARE_1(name, type) WITH_RARE(name, type, 1, , x[i])
#define WITH_RARE_2(name, type) WITH_RARE(name, type, 2, , x[i], y[i])
/* The slow way is vector code, too: what is many is computed by that at once. */
enum { FEW = 16 };
#define USUALLY_1(name, type)                                                                       \
    BY_LEVEL_WITH(EXACTLY, static void, name##_whole, (char **at, int64_t n), (at, n)) {            \
        const type *x = (const type *)at[0];                                                        \
        type *out = (type *)at[1];                                                                  \
        _Pragma("GCC ivdep") for (int64_t i = 0; i < (n & -LANES); i++) out[i] = name##_slow(x[i]); \
    }                                                                                               \
    WITH_RARE(                                                                                      \
        name, type, 1,                                                                              \
        if (any > FEW) {                                                                            \
            name##_whole(at, n);                                                                    \
            return;                                                                                 \
        },                                                                                          \
        x[i])

#include "kernels/element_loops.h"

typedef struct {
    void (*block)(char **at, int64_t n);
    int arity, item;
    int quiet; /* raises no floating-point flags: SciPy's functions raise none, and the expansions' unused
                  branches do */
} Loop;

INLINE void gather(char *to, const char *from, npy_intp step, int64_t n, int item) {
    if (item == 4)
        for (int64_t i = 0; i < n; i++) ((uint32_t *)to)[i] = *(const uint32_t *)(from + i * step);
    else
        for (int64_t i = 0; i < n; i++) ((uint64_t *)to)[i] = *(const uint64_t *)(from + i * step);
}

/* The inner loop of a ufunc: whole blocks of elements side by side where they lie, all else by way of the
 * stack. */
static void run(char **args, npy_intp const *count, npy_intp const *steps, void *data) {
    const Loop *loop = data;
    int item = loop->item, dense = 1;
    unsigned raised = flb_floating_flags();
    _Alignas(64) char spare[3][BLOCK * sizeof(double)];
    for (int k = 0; k <= loop->arity; k++) dense &= steps[k] == item;
    for (int64_t i = 0, n; i < *count; i += n) {
        n = *count - i < BLOCK ? *count - i : BLOCK;
        char *at[3], *out = args[loop->arity] + i * steps[loop->arity];
        int direct = dense && n >= LANES;
        if (direct) n &= -LANES;
        int64_t whole = (n + LANES - 1) & -LANES;
        for (int k = 0; k < loop->arity; k++) {
            at[k] = args[k] + i * steps[k];
            if (direct) continue;
            gather(spare[k], at[k], steps[k], n, item);
            for (int64_t j = n; j < whole; j++) memcpy(spare[k] + j * item, spare[k], (size_t)item);
            at[k] = spare[k];
        }
        at[loop->arity] = direct ? out : spare[loop->arity];
        loop->block(at, whole);
        if (direct) continue;
        if (steps[loop->arity] == item) memcpy(out, spare[loop->arity], (size_t)(n * item));
        else
            for (int64_t j = 0; j < n; j++)
                memcpy(out + j * steps[loop->arity], spare[loop->arity] + j * item, (size_t)item);
    }
    if (loop->quiet) flb_floating_clear(), flb_floating_raise(raised);
}

static const struct {
    const char *name;
    Loop loops[2];
} functions[] = {
#define ROW(name, arity) {#name, {{name##_f32_block, arity, 4, 0}, {name##_f64_block, arity, 8, 0}}},
    ELEMENT_LOOPS(ROW)
#undef ROW
};

/* The loop of a function over elements side by side, a multiple of 16 of them. NULL: there is none of that
 * name. */
FlbElementBlock flb_element_block(const char *name, int wide) {
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        if (!strcmp(functions[f].name, name)) return functions[f].loops[wide].block;
    return NULL;
}

enum { MOST = 4 };
typedef struct {
    PyUFuncGenericFunction functions[MOST];
    void *data[MOST];
    Loop loops[2];
    char types[MOST * 3];
} Tables; /* NumPy keeps the pointers for good */

/* The loops of `other` for complex numbers behind ours. -1: an error is set. */
static int add_complex(Tables *t, int have, int arity, PyObject *other) {
    PyUFuncObject *u = (PyUFuncObject *)other;
    for (int i = 0; i < u->ntypes && have < MOST; i++) {
        int kind = u->types[i * u->nargs], same = kind == NPY_CFLOAT || kind == NPY_CDOUBLE;
        for (int k = 0; k < u->nargs; k++) same &= u->types[i * u->nargs + k] == kind;
        if (!same || !u->functions[i]) continue;
        t->functions[have] = u->functions[i], t->data[have] = u->data ? u->data[i] : NULL;
        memset(t->types + have * (arity + 1), kind, (size_t)arity + 1);
        have++;
    }
    return have;
}

/* element_function(name, other): a ufunc. Without NumPy's of the same name it raises no floating-point flags.
 */
PyObject *flb_element_function(PyObject *self, PyObject *args) {
    const char *name;
    PyObject *other;
    if (!PyArg_ParseTuple(args, "sO", &name, &other)) return NULL;
    if (other != Py_None && strcmp(Py_TYPE(other)->tp_name, "numpy.ufunc"))
        return PyErr_SetString(PyExc_TypeError, "element_function(name, ufunc or None)"), NULL;
    if (!PyUFunc_API && _import_umath() < 0) return NULL;
    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++) {
        if (strcmp(functions[f].name, name)) continue;
        Tables *t = PyMem_RawMalloc(sizeof *t);
        if (!t) return PyErr_NoMemory();
        int arity = functions[f].loops[0].arity, have = 2;
        for (int k = 0; k < 2; k++) {
            t->loops[k] = functions[f].loops[k], t->loops[k].quiet = other == Py_None;
            t->functions[k] = run, t->data[k] = &t->loops[k];
            memset(t->types + k * (arity + 1), k ? NPY_DOUBLE : NPY_FLOAT, (size_t)arity + 1);
        }
        if (other != Py_None) have = add_complex(t, have, arity, other);
        return PyUFunc_FromFuncAndData(t->functions, t->data, t->types, have, arity, 1, PyUFunc_None,
                                       functions[f].name, "As compiled graphs compute it.", 0);
    }
    return PyErr_Format(PyExc_LookupError, "no function of elements is called %s", name), NULL;
}

PyObject *flb_element_functions(PyObject *self, PyObject *unused) {
    PyObject *names = PyTuple_New((Py_ssize_t)(sizeof functions / sizeof *functions));
    for (size_t f = 0; names && f < sizeof functions / sizeof *functions; f++) {
        PyObject *name = PyUnicode_FromString(functions[f].name);
        if (!name) Py_CLEAR(names);
        else PyTuple_SET_ITEM(names, (Py_ssize_t)f, name);
    }
    return names;
}
