/* Elements under a mask, places of what isn't zero, runs, counts of numbers: results whose size depends on
 * values, of arrays in C order. None: not for these arrays. What another thread writes meanwhile changes
 * values, and no size. */
#include "core/calls.h"
#include "core/counts.h"

enum { MOST_DIMS = 64 };
typedef struct {
    uint64_t low, high;
} wide_t; /* a complex128 */

/* count_T(a, n): how many aren't zero. places_T: their coordinates, those of one dimension side by side. */
#define WITH(T)                                                                                        \
    static npy_intp count_##T(const char *a, npy_intp n) {                                             \
        npy_intp found = 0;                                                                            \
        for (npy_intp i = 0; i < n; i++) found += ((const T *)a)[i] != 0;                              \
        return found;                                                                                  \
    }                                                                                                  \
    static void places_##T(const char *a, int nd, const npy_intp *dims, int64_t *to, npy_intp count) { \
        npy_intp index[MOST_DIMS] = {0}, k = 0, last = dims[nd - 1];                                   \
        for (; k < count;) {                                                                           \
            npy_intp before = k;                                                                       \
            int64_t *line = to + (nd - 1) * count;                                                     \
            for (npy_intp j = 0; j < last && k < count; j++) {                                         \
                line[k] = j;                                                                           \
                k += ((const T *)a)[j] != 0;                                                           \
            }                                                                                          \
            for (int d = 0; d < nd - 1; d++)                                                           \
                for (npy_intp i = before; i < k; i++) to[d * count + i] = index[d];                    \
            a += last * (npy_intp)sizeof(T);                                                           \
            int d = nd - 2;                                                                            \
            for (; d >= 0 && ++index[d] == dims[d]; d--) index[d] = 0;                                 \
            if (d < 0) return;                                                                         \
        }                                                                                              \
    }
WITH(uint8_t)
WITH(int32_t)
WITH(int64_t)
WITH(float)
WITH(double)

static int in_c_order(PyObject *o) {
    return PyArray_Check(o) && PyArray_IS_C_CONTIGUOUS((PyArrayObject *)o) &&
        PyArray_NDIM((PyArrayObject *)o);
}

static PyObject *nonzero(PyObject *m, PyObject *o) {
    if (!in_c_order(o) || PyArray_NDIM((PyArrayObject *)o) > MOST_DIMS) Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)o;
    int nd = PyArray_NDIM(a);
    npy_intp n = PyArray_SIZE(a), *dims = PyArray_DIMS(a), shape[2] = {0, nd};
    if (!n) Py_RETURN_NONE;
    const char *from = PyArray_BYTES(a);
#define EACH(DO)                          \
    switch (PyArray_DESCR(a)->type_num) { \
    case NPY_BOOL:                        \
    case NPY_UINT8: DO(uint8_t) break;    \
    case NPY_INT32: DO(int32_t) break;    \
    case NPY_INT64: DO(int64_t) break;    \
    case NPY_FLOAT: DO(float) break;      \
    case NPY_DOUBLE: DO(double) break;    \
    default: Py_RETURN_NONE;              \
    }
#define COUNT(T) shape[0] = count_##T(from, n);
    EACH(COUNT)
    if (!shape[0]) Py_RETURN_NONE;                         /* its strides are the shape rule's to say */
    npy_intp strides[2] = {8, nd == 1 ? 8 : 8 * shape[0]}; /* as the kernel in Python has them */
    PyArrayObject *made =
        (PyArrayObject *)PyArray_New(&PyArray_Type, 2, shape, NPY_INT64, strides, NULL, 0, 0, NULL);
    if (!made) return NULL;
    int64_t *to = (int64_t *)PyArray_BYTES(made);
#define PLACES(T) places_##T(from, nd, dims, to, shape[0]);
    EACH(PLACES)
    return (PyObject *)made;
}

/* take_mask(array, mask): a mask of the first dimensions. */
static PyObject *take_mask(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 2 || !in_c_order(args[0]) || !in_c_order(args[1])) Py_RETURN_NONE;
    PyArrayObject *x = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1];
    int nd = PyArray_NDIM(mask), more = PyArray_NDIM(x) - nd;
    if (PyArray_DESCR(mask)->type_num != NPY_BOOL || more < 0) Py_RETURN_NONE;
    npy_intp shape[MOST_DIMS + 1] = {0}, n = PyArray_SIZE(mask), block = PyArray_ITEMSIZE(x);
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(x, d) != PyArray_DIM(mask, d)) Py_RETURN_NONE;
    for (int d = 0; d < more; d++) block *= shape[1 + d] = PyArray_DIM(x, nd + d);
    const uint8_t *holds = (const uint8_t *)PyArray_BYTES(mask);
    npy_intp count = shape[0] = count_uint8_t((const char *)holds, n);
    Py_INCREF(PyArray_DESCR(x));
    PyArrayObject *made = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, PyArray_DESCR(x), 1 + more,
                                                                shape, NULL, NULL, 0, NULL);
    if (!made) return NULL;
    const char *from = PyArray_BYTES(x);
    char *to = PyArray_BYTES(made);
    npy_intp k = 0;
#define TAKE(T)                                     \
    for (npy_intp i = 0; i < n && k < count; i++) { \
        ((T *)to)[k] = ((const T *)from)[i];        \
        k += holds[i] != 0;                         \
    }
    if (block == 1) TAKE(uint8_t)
    else if (block == 2) TAKE(uint16_t)
    else if (block == 4) TAKE(uint32_t)
    else if (block == 8) TAKE(uint64_t)
    else if (block == 16) TAKE(wide_t)
    else
        for (npy_intp i = 0; i < n && k < count; i++)
            if (holds[i]) memcpy(to + k++ * block, from + i * block, (size_t)block);
    if (k < count) memset(to + k * block, 0, (size_t)((count - k) * block));
    return (PyObject *)made;
}

/* Whether none of a block of a mask's values holds: most don't, where a mask is given for a few places. */
enum { BLOCK = 64 };
static inline int none_of(const uint8_t *holds) {
    uint64_t parts[BLOCK / 8], any = 0;
    memcpy(parts, holds, BLOCK);
    for (int i = 0; i < BLOCK / 8; i++) any |= parts[i];
    return !any;
}

/* `i` from 0 to n, without blocks in which nothing holds. */
#define EACH_HOLDING(i, n)                                                               \
    for (npy_intp begin = 0, end = 0; begin < (n); begin = end)                          \
        for (npy_intp i = (end = (n) - begin < BLOCK ? (n) : begin + BLOCK,              \
                          end - begin == BLOCK && none_of(holds + begin) ? end : begin); \
             i < end; i++)

/* By bits, not by a jump: a processor can't tell beforehand what a mask holds. */
#define CHOOSE(T, PLACE, VALUE, HOLDS)                    \
    {                                                     \
        T keep = (T)((T)((HOLDS) != 0) - 1);              \
        PLACE = (T)((PLACE & keep) | (VALUE & (T)~keep)); \
    }

static int overlap(PyArrayObject *a, PyArrayObject *b) {
    const char *p = PyArray_BYTES(a), *q = PyArray_BYTES(b);
    return p < q + PyArray_NBYTES(b) && q < p + PyArray_NBYTES(a);
}

/* The elements of `v`, one for each place of the mask; 0: it has not just these. */
static int put_each(PyArrayObject *x, const uint8_t *holds, npy_intp n, npy_intp block, PyArrayObject *v,
                    int nd) {
    npy_intp count = count_uint8_t((const char *)holds, n), k = 0;
    if (PyArray_NDIM(v) != PyArray_NDIM(x) - nd + 1 || PyArray_DIM(v, 0) != count ||
        !PyArray_IS_C_CONTIGUOUS(v))
        return 0;
    for (int d = 1; d < PyArray_NDIM(v); d++)
        if (PyArray_DIM(v, d) != PyArray_DIM(x, nd + d - 1)) return 0;
    char *to = PyArray_BYTES(x);
    const char *from = PyArray_BYTES(v);
#define PUT_EACH(T, WORDS)                                                                  \
    EACH_HOLDING(i, n) {                                                                    \
        if (k == count) break;                                                              \
        for (int w = 0; w < WORDS; w++)                                                     \
            CHOOSE(T, ((T *)to)[WORDS * i + w], ((const T *)from)[WORDS * k + w], holds[i]) \
        k += holds[i] != 0;                                                                 \
    }
    if (block == 1) PUT_EACH(uint8_t, 1)
    else if (block == 2) PUT_EACH(uint16_t, 1)
    else if (block == 4) PUT_EACH(uint32_t, 1)
    else if (block == 8) PUT_EACH(uint64_t, 1)
    else if (block == 16) PUT_EACH(uint64_t, 2)
    else EACH_HOLDING(i, n)
    if (holds[i] && k < count) memcpy(to + i * block, from + k++ * block, (size_t)block);
    return 1;
}

/* put_mask(array, mask, value): `value` where a mask of the first dimensions holds, one element for all
 * places or one for each; False: not for these arrays. */
static PyObject *put_mask(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3 || !in_c_order(args[0]) || !in_c_order(args[1]) || !PyArray_Check(args[2]))
        Py_RETURN_FALSE;
    PyArrayObject *x = (PyArrayObject *)args[0], *mask = (PyArrayObject *)args[1],
                  *v = (PyArrayObject *)args[2];
    int nd = PyArray_NDIM(mask), num = PyArray_DESCR(x)->type_num;
    if (PyArray_DESCR(mask)->type_num != NPY_BOOL || nd > PyArray_NDIM(x) ||
        PyArray_DESCR(v)->type_num != num || num == NPY_OBJECT || !PyArray_ISWRITEABLE(x) || overlap(x, mask))
        Py_RETURN_FALSE;
    for (int d = 0; d < nd; d++)
        if (PyArray_DIM(x, d) != PyArray_DIM(mask, d)) Py_RETURN_FALSE;
    npy_intp n = PyArray_SIZE(mask), item = PyArray_ITEMSIZE(x), inner = n ? PyArray_SIZE(x) / n : 0;
    const uint8_t *holds = (const uint8_t *)PyArray_BYTES(mask);
    if (PyArray_SIZE(v) != 1)
        return PyBool_FromLong(!overlap(x, v) && put_each(x, holds, n, inner * item, v, nd));
    char *to = PyArray_BYTES(x), one[64] __attribute__((aligned(16)));
    if (item > (npy_intp)sizeof one) Py_RETURN_FALSE;
    memcpy(one, PyArray_BYTES(v), (size_t)item);
#define PUT(T, WORDS)  \
    EACH_HOLDING(i, n) \
    for (int w = 0; w < WORDS; w++) CHOOSE(T, ((T *)to)[WORDS * i + w], ((T *)one)[w], holds[i])
    if (inner == 1 && item == 1) PUT(uint8_t, 1)
    else if (inner == 1 && item == 2) PUT(uint16_t, 1)
    else if (inner == 1 && item == 4) PUT(uint32_t, 1)
    else if (inner == 1 && item == 8) PUT(uint64_t, 1)
    else if (inner == 1 && item == 16) PUT(uint64_t, 2)
    else
        for (npy_intp i = 0; i < n; i++)
            for (npy_intp j = 0; holds[i] && j < inner; j++)
                memcpy(to + (i * inner + j) * item, one, (size_t)item);
    Py_RETURN_TRUE;
}

/* The row that k indices of int64 name at place i, in elements of the first dimensions; -1: out of bounds. */
static npy_intp row_at(PyArrayObject *x, const int64_t *const *indices, Py_ssize_t k, npy_intp i) {
    npy_intp row = 0;
    for (Py_ssize_t d = 0; d < k; d++) {
        npy_intp size = PyArray_DIM(x, (int)d), p = indices[d][i];
        if (p < 0) p += size;
        if (p < 0 || p >= size) return -1;
        row = row * size + p;
    }
    return row;
}

/* put_at(array, indices, value): array[indices] = value for a list of index arrays of int64, equal in shape,
 * for the first dimensions; False: not for these arrays, and nothing is written. */
static PyObject *put_at(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    if (nargs != 3 || !in_c_order(args[0]) || !PyList_Check(args[1]) || !PyArray_Check(args[2]))
        Py_RETURN_FALSE;
    PyArrayObject *x = (PyArrayObject *)args[0], *v = (PyArrayObject *)args[2], *first = NULL;
    Py_ssize_t k = PyList_GET_SIZE(args[1]);
    int num = PyArray_DESCR(x)->type_num, nd = PyArray_NDIM(x);
    if (!k || k > nd || k > MOST_DIMS || PyArray_DESCR(v)->type_num != num || num == NPY_OBJECT ||
        !PyArray_ISWRITEABLE(x) || !PyArray_IS_C_CONTIGUOUS(v) || overlap(x, v))
        Py_RETURN_FALSE;
    const int64_t *indices[MOST_DIMS];
    for (Py_ssize_t d = 0; d < k; d++) {
        if (!in_c_order(PyList_GET_ITEM(args[1], d))) Py_RETURN_FALSE;
        PyArrayObject *index = (PyArrayObject *)PyList_GET_ITEM(args[1], d);
        if (!first) first = index;
        if (PyArray_DESCR(index)->type_num != NPY_INT64 || overlap(x, index) ||
            PyArray_NDIM(index) != PyArray_NDIM(first) ||
            !PyArray_CompareLists(PyArray_DIMS(index), PyArray_DIMS(first), PyArray_NDIM(first)))
            Py_RETURN_FALSE;
        indices[d] = (const int64_t *)PyArray_BYTES(index);
    }
    /* The value has all that is selected, or what ends its shape. */
    int wide = PyArray_NDIM(first), selected = wide + nd - (int)k, given = PyArray_NDIM(v);
    if (given > selected) Py_RETURN_FALSE;
    npy_intp block = PyArray_ITEMSIZE(x), n = PyArray_SIZE(first), size = PyArray_SIZE(v);
    for (int d = (int)k; d < nd; d++) block *= PyArray_DIM(x, d);
    for (int d = 0; d < given; d++) {
        int at = selected - given + d;
        if (PyArray_DIM(v, d) != (at < wide ? PyArray_DIM(first, at) : PyArray_DIM(x, (int)k + at - wide)))
            Py_RETURN_FALSE;
    }
    int one = size * PyArray_ITEMSIZE(x) == block, each = given == selected;
    if (!block || !n || !(one || each)) Py_RETURN_FALSE;
    for (npy_intp i = 0; i < n; i++)
        if (row_at(x, indices, k, i) < 0) Py_RETURN_FALSE;
    char *to = PyArray_BYTES(x);
    const char *from = PyArray_BYTES(v);
    for (npy_intp i = 0; i < n; i++, from += each ? block : 0) {
        npy_intp row = row_at(x, indices, k, i);
        if (row < 0) continue; /* another thread has written it meanwhile */
        if (block == 4) memcpy(to + row * 4, from, 4);
        else if (block == 8) memcpy(to + row * 8, from, 8);
        else memcpy(to + row * block, from, (size_t)block);
    }
    Py_RETURN_TRUE;
}

static PyArrayObject *made_of(npy_intp n, int type) {
    return (PyArrayObject *)PyArray_SimpleNew(1, &n, type);
}
/* bincount(least, array): how often each of 0, 1, ... occurs in a line of int64, for `least` numbers or more.
 */
static PyObject *bincount(PyObject *m, PyObject *const *args, Py_ssize_t nargs) {
    PyArrayObject *a = nargs == 2 && in_c_order(args[1]) ? (PyArrayObject *)args[1] : NULL;
    if (!a || PyArray_NDIM(a) != 1 || PyArray_DESCR(a)->type_num != NPY_INT64) Py_RETURN_NONE;
    int64_t most = PyLong_AsLongLong(args[0]), least = 0;
    if (most == -1 && PyErr_Occurred()) return NULL;
    const int64_t *x = (const int64_t *)PyArray_BYTES(a);
    npy_intp n = PyArray_SIZE(a);
    most--;
    flb_range_of(x, n, &least, &most);
    if (!n || least < 0 || most >= (1 << 24)) Py_RETURN_NONE; /* Python's kernel says what is wrong */
    PyArrayObject *made = made_of(most + 1, NPY_INT64);
    if (made) flb_count(x, n, (int64_t *)PyArray_BYTES(made), most + 1);
    return (PyObject *)made;
}

/* The first of each run of equal elements, the run of each, how long each is. */
#define RUNS(T)                                                                                           \
    static npy_intp runs_##T(const char *a, npy_intp n, char *values, int64_t *places, int64_t *counts) { \
        npy_intp k = -1;                                                                                  \
        for (npy_intp i = 0; i < n; i++) {                                                                \
            T x = ((const T *)a)[i];                                                                      \
            if (k < 0 || x != ((T *)values)[k]) ((T *)values)[++k] = x, counts[k] = 0;                    \
            places[i] = k, counts[k]++;                                                                   \
        }                                                                                                 \
        return k + 1;                                                                                     \
    }
RUNS(float)
RUNS(double)
RUNS(int64_t)
/* runs(line): (values, places, counts) of a line in C order. */
static PyObject *runs(PyObject *m, PyObject *o) {
    if (!in_c_order(o) || PyArray_NDIM((PyArrayObject *)o) != 1 || !PyArray_SIZE((PyArrayObject *)o))
        Py_RETURN_NONE;
    PyArrayObject *a = (PyArrayObject *)o, *made[3] = {NULL};
    npy_intp n = PyArray_SIZE(a), count = 0;
    int num = PyArray_DESCR(a)->type_num;
    if (num != NPY_FLOAT && num != NPY_DOUBLE && num != NPY_INT64) Py_RETURN_NONE;
    for (int i = 0; i < 3; i++)
        if (!(made[i] = made_of(n, i ? NPY_INT64 : num))) goto failed;
    char *to = PyArray_BYTES(made[0]);
    int64_t *places = (int64_t *)PyArray_BYTES(made[1]), *counts = (int64_t *)PyArray_BYTES(made[2]);
    count = num == NPY_FLOAT ? runs_float(PyArray_BYTES(a), n, to, places, counts)
        : num == NPY_DOUBLE  ? runs_double(PyArray_BYTES(a), n, to, places, counts)
                             : runs_int64_t(PyArray_BYTES(a), n, to, places, counts);
    for (int i = 0; i < 3 && count < n; i += 2) { /* of their own size */
        PyArrayObject *fit = made_of(count, i ? NPY_INT64 : num);
        if (!fit) goto failed;
        memcpy(PyArray_BYTES(fit), PyArray_BYTES(made[i]), (size_t)(count * PyArray_ITEMSIZE(fit)));
        Py_SETREF(made[i], fit);
    }
    return Py_BuildValue("(NNN)", made[0], made[1], made[2]);
failed:
    for (int i = 0; i < 3; i++) Py_XDECREF(made[i]);
    return NULL;
}

static PyMethodDef functions[] = {
    {"bincount", (PyCFunction)(void (*)(void))bincount, METH_FASTCALL,
     "bincount(least, array): how often each number of a line occurs, for so many numbers or more; None: not "
     "for this array."},
    {"runs", runs, METH_O,
     "runs(line): (the first of each run of equal elements, the run of each, how long each is); None: not "
     "for this line."},
    {"put_mask", (PyCFunction)(void (*)(void))put_mask, METH_FASTCALL,
     "put_mask(array, mask, value): writes one element, or one each, under a mask of the first dimensions; "
     "False: not for these."},
    {"put_at", (PyCFunction)(void (*)(void))put_at, METH_FASTCALL,
     "put_at(array, indices, value): array[indices] = value for index arrays of the first dimensions; False: "
     "not for these."},
    {"nonzero", nonzero, METH_O,
     "nonzero(array): coordinates (count, dimensions) of what isn't zero; None: not for this array."},
    {"take_mask", (PyCFunction)(void (*)(void))take_mask, METH_FASTCALL,
     "take_mask(array, mask): the elements under a mask of the first dimensions; None: not for these "
     "arrays."},
    {NULL}};
int flb_init_masked(PyObject *module) { return PyModule_AddFunctions(module, functions); }
