/* Lists, deques, dicts and sets of numbers that native loops change (loops/containers/). Items are words of
 * 8 bytes; a kernel's containers are chained, and given back when it ends. */
#define NO_IMPORT_ARRAY
#include "runtime/graph.h"
#include <string.h>

typedef struct Container {
    struct Container *next;
    int64_t *items; /* entries in the order in which they were inserted: key, value, whether it is there */
    int64_t count, used;   /* entries that are there; and that were */
    int64_t nkey, width;   /* words of a key, none of a list's; of an entry */
    int64_t room, nplaces; /* entries that there is memory for; places of the table, a power of two */
    int64_t *places;       /* entry + 1, by the key's hash; 0 for none */
    int64_t changes;       /* how often a table got or lost a key, a deque an item */
    int64_t ahead;         /* entries that there is memory for in front of the items of a list or deque */
} Container;

/* A new one in the chain; NULL where there is no memory. A list has no keys. */
void *flb_container_new(Container **chain, int64_t nkey, int64_t nvalue) {
    Container *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    c->nkey = nkey;
    c->width = nkey + nvalue + (nkey > 0);
    c->next = *chain;
    return *chain = c;
}

static int64_t *memory(Container *c) { return c->items - c->ahead * c->width; }

void flb_container_end(Container *chain) {
    while (chain) {
        Container *next = chain->next;
        free(chain->items ? memory(chain) : NULL);
        free(chain->places);
        free(chain);
        chain = next;
    }
}

static int grow(Container *c) {
    if (c->used < c->room) return 1;
    if (c->ahead > c->used) { /* what has left at the front makes room */
        memmove(memory(c), c->items, c->used * c->width * sizeof(int64_t));
        c->items = memory(c);
        c->room += c->ahead;
        c->ahead = 0;
        return 1;
    }
    int64_t room = c->room ? 2 * c->room : 8;
    int64_t *items = realloc(c->items ? memory(c) : NULL, (c->ahead + room) * c->width * sizeof(int64_t));
    if (!items) return 0;
    c->items = items + c->ahead * c->width;
    c->room = room;
    return 1;
}

/* Where a list's next item goes; NULL where there is no memory. */
int64_t *flb_list_append(Container *c) {
    if (!grow(c)) return NULL;
    c->count++;
    return c->items + c->width * c->used++;
}

/* The first item leaves the list; it is copied to `out`. */
void flb_list_shift(Container *c, int64_t *out) {
    memcpy(out, c->items, c->width * sizeof(int64_t));
    c->count = --c->used;
    c->items += c->width;
    c->ahead++;
    c->room--;
}

/* Where an item goes in front of the others; NULL where there is no memory. */
int64_t *flb_list_prepend(Container *c) {
    if (!c->ahead) {
        int64_t more = c->used < 8 ? 8 : c->used;
        int64_t *items = malloc((more + c->room) * c->width * sizeof(int64_t));
        if (!items) return NULL;
        if (c->used) memcpy(items + more * c->width, c->items, c->used * c->width * sizeof(int64_t));
        free(c->items);
        c->items = items + more * c->width;
        c->ahead = more;
    }
    c->items -= c->width;
    c->ahead--;
    c->room++;
    c->count = ++c->used;
    return c->items;
}

static uint64_t hash(const int64_t *key, int64_t n) {
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (int64_t k = 0; k < n; k++) {
        h = (h ^ (uint64_t)key[k]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h;
}

static int64_t *entry(Container *c, int64_t n) { return c->items + n * c->width; }

/* Where the entry of a key is, or NULL. */
int64_t *flb_table_find(Container *c, const int64_t *key) {
    if (!c->nplaces) return NULL;
    for (uint64_t at = hash(key, c->nkey);; at++) {
        int64_t n = c->places[at & (c->nplaces - 1)];
        if (!n) return NULL;
        int64_t *e = entry(c, n - 1);
        if (e[c->width - 1] && !memcmp(e, key, c->nkey * sizeof(int64_t))) return e;
    }
}

/* A table of `nplaces` for the entries that are there, which move together. */
static int rebuild(Container *c, int64_t nplaces) {
    int64_t *places = calloc(nplaces, sizeof(int64_t));
    if (!places) return 0;
    int64_t n = 0;
    for (int64_t k = 0; k < c->used; k++) {
        if (!entry(c, k)[c->width - 1]) continue;
        if (n != k) memcpy(entry(c, n), entry(c, k), c->width * sizeof(int64_t));
        uint64_t at = hash(entry(c, n), c->nkey);
        while (places[at & (nplaces - 1)]) at++;
        places[at & (nplaces - 1)] = ++n;
    }
    c->used = n;
    free(c->places);
    c->places = places;
    c->nplaces = nplaces;
    return 1;
}

/* The entry of a key, a new one where it has none; NULL where there is no memory. */
int64_t *flb_table_put(Container *c, const int64_t *key) {
    int64_t *found = flb_table_find(c, key);
    if (found) return found;
    if (3 * (c->used + 1) > 2 * c->nplaces) {
        int64_t n = 16;
        while (n < 3 * (c->count + 1)) n *= 2;
        if (!rebuild(c, n)) return NULL;
    }
    if (!grow(c)) return NULL;
    int64_t *e = entry(c, c->used);
    memcpy(e, key, c->nkey * sizeof(int64_t));
    memset(e + c->nkey, 0, (c->width - c->nkey) * sizeof(int64_t));
    e[c->width - 1] = 1;
    uint64_t at = hash(key, c->nkey);
    while (c->places[at & (c->nplaces - 1)]) at++;
    c->places[at & (c->nplaces - 1)] = ++c->used;
    c->count++;
    c->changes++;
    return e;
}

/* An entry that flb_table_find gave is no longer there. */
void flb_table_remove(Container *c, int64_t *e) {
    e[c->width - 1] = 0;
    c->count--;
    c->changes++;
}

void flb_container_clear(Container *c) {
    c->count = c->used = 0;
    c->changes++;
    if (c->places) memset(c->places, 0, c->nplaces * sizeof(int64_t));
}

/* ---- behind the loop ----------------------------------------------------------------------------------- */

/* (words, dtype): for each row of words (address, owner, sizes, strides) a new array of the elements that lie
 * there. */
PyObject *flb_arrays_at(PyObject *self, PyObject *args) {
    PyArrayObject *words;
    PyArray_Descr *dtype;
    if (!PyArg_ParseTuple(args, "O!O!", &PyArray_Type, &words, &PyArrayDescr_Type, &dtype)) return NULL;
    int nd = PyArray_NDIM(words) == 2 ? (int)(PyArray_DIM(words, 1) - 2) / 2 : -1;
    if (PyArray_TYPE(words) != NPY_INT64 || nd < 0 || nd > NPY_MAXDIMS || !PyArray_IS_C_CONTIGUOUS(words))
        return PyErr_SetString(PyExc_ValueError, "rows of int64 (address, owner, sizes, strides) are wanted"),
               NULL;
    npy_intp rows = PyArray_DIM(words, 0);
    const int64_t *row = PyArray_DATA(words);
    PyObject *out = PyList_New(rows);
    for (npy_intp k = 0; out && k < rows; k++, row += 2 + 2 * nd) {
        npy_intp sizes[NPY_MAXDIMS], strides[NPY_MAXDIMS];
        for (int d = 0; d < nd; d++) sizes[d] = row[2 + d], strides[d] = row[2 + nd + d];
        PyObject *view = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)Py_NewRef(dtype), nd, sizes,
                                              strides, (void *)(uintptr_t)row[0], NPY_ARRAY_ALIGNED, NULL);
        PyObject *made = view ? PyArray_NewCopy((PyArrayObject *)view, NPY_KEEPORDER) : NULL;
        Py_XDECREF(view);
        if (made) PyList_SET_ITEM(out, k, made);
        else Py_CLEAR(out);
    }
    return out;
}
