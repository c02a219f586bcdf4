/* Places: memory of another owner that the next large results of this thread may take.
 *
 * DistributedDataParallel reduces gradients in buckets. A gradient that is made in its bucket isn't copied
 * into it. Who computes it (an operator, a compiled graph) knows nothing of buckets, so the allocator is told
 * of the place of each gradient that is to come, and gives it to a request of exactly that size.
 *
 * That is a guess: another result of this size may take the place, and may live on. The owner asks for what
 * became of it (taken) before he writes there. Memory that was taken is given back as any other, whatever
 * became of the Places. */
#include "core/places.h"
#include "core/tensor_internal.h"
#include <pthread.h>

typedef struct Set {
    struct Set *next;
    char *low, *high; /* all places lie between */
    pthread_t thread; /* whose results may come here */
    int n, open, dropped;
    struct {
        char *data;
        size_t size;
        uint8_t open, taken;
    } places[];
} Set;

typedef struct {
    PyObject_HEAD
    Set *set;
    PyObject *owner;
} Places;

int flb_places;      /* sets that exist */
int flb_open_places; /* places that are open */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Set *sets;

void *flb_place_take(size_t size) {
    void *found = NULL;
    pthread_mutex_lock(&lock);
    for (Set *s = sets; s && !found; s = s->next) {
        if (!s->open || !pthread_equal(s->thread, pthread_self())) continue;
        for (int k = 0; k < s->n && !found; k++)
            if (s->places[k].open && !s->places[k].taken && s->places[k].size == size) {
                s->places[k].taken = 1;
                found = s->places[k].data;
            }
    }
    pthread_mutex_unlock(&lock);
    return found;
}
/* The size of a place that was taken, 0 for other memory. `back`: it is given back. */
static size_t look(void *data, int back) {
    size_t size = 0;
    pthread_mutex_lock(&lock);
    for (Set **at = &sets, *s; (s = *at) && !size; at = &s->next) {
        if ((char *)data < s->low || (char *)data >= s->high) continue;
        int left = 0;
        for (int k = 0; k < s->n; k++) {
            if (s->places[k].data == data && s->places[k].taken) {
                size = s->places[k].size;
                s->places[k].taken = !back;
            }
            left += s->places[k].taken;
        }
        if (size && s->dropped && !left) {
            *at = s->next;
            PyMem_RawFree(s);
            flb_places--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return size;
}
size_t flb_place_size(void *data) { return look(data, 0); }
size_t flb_place_return(void *data) { return look(data, 1); }

/* ---- Python -------------------------------------------------------------------------------------------- */

static PyObject *places_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *owner, *given;
    if (!PyArg_ParseTuple(args, "OO!", &owner, &PyTuple_Type, &given)) return NULL;
    int n = (int)PyTuple_GET_SIZE(given);
    Set *s = PyMem_RawCalloc(1, sizeof(Set) + n * sizeof(s->places[0]));
    if (!s) return PyErr_NoMemory();
    s->n = n;
    for (int k = 0; k < n; k++) {
        unsigned long long address;
        Py_ssize_t size;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, k), "Kn", &address, &size))
            return PyMem_RawFree(s), NULL;
        s->places[k].data = (char *)(uintptr_t)address;
        s->places[k].size = (size_t)size;
        if (!k || s->places[k].data < s->low) s->low = s->places[k].data;
        if (!k || s->places[k].data + size > s->high) s->high = s->places[k].data + size;
    }
    Places *p = (Places *)type->tp_alloc(type, 0);
    if (!p) return PyMem_RawFree(s), NULL;
    p->set = s;
    p->owner = Py_NewRef(owner);
    pthread_mutex_lock(&lock);
    s->next = sets;
    sets = s;
    flb_places++;
    pthread_mutex_unlock(&lock);
    return (PyObject *)p;
}
static void close_all(Set *s) {
    for (int k = 0; k < s->n; k++) s->places[k].open = 0;
    flb_open_places -= s->open;
    s->open = 0;
}
static void places_dealloc(Places *p) {
    Set *s = p->set;
    pthread_mutex_lock(&lock);
    close_all(s);
    int left = 0;
    for (int k = 0; k < s->n; k++) left += s->places[k].taken;
    s->dropped = 1;
    if (!left) {
        Set **at = &sets;
        while (*at != s) at = &(*at)->next;
        *at = s->next;
        PyMem_RawFree(s);
        flb_places--;
    }
    pthread_mutex_unlock(&lock);
    /* Who holds memory that lies there outlives it: its owner stays. */
    if (!left) Py_DECREF(p->owner);
    Py_TYPE(p)->tp_free((PyObject *)p);
}
static int number(Places *p, PyObject *arg) {
    long k = PyLong_AsLong(arg);
    if (k == -1 && PyErr_Occurred()) return -1;
    if (k < 0 || k >= p->set->n) return PyErr_SetString(PyExc_IndexError, "there is no such place"), -1;
    return (int)k;
}
static PyObject *places_open(Places *p, PyObject *arg) {
    int k = number(p, arg);
    if (k < 0) return NULL;
    pthread_mutex_lock(&lock);
    Set *s = p->set;
    s->thread = pthread_self();
    /* flb_malloc asks for sizes from 32 KiB on; data of arrays begins at a cache line. */
    if (!s->places[k].open && !s->places[k].taken && (uintptr_t)s->places[k].data % 64 == 0)
        s->places[k].open = 1, s->open++, flb_open_places++;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}
static PyObject *places_close(Places *p, PyObject *arg) {
    int k = number(p, arg);
    if (k < 0) return NULL;
    pthread_mutex_lock(&lock);
    if (p->set->places[k].open) p->set->places[k].open = 0, p->set->open--, flb_open_places--;
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}
static PyObject *places_close_all(Places *p, PyObject *unused) {
    pthread_mutex_lock(&lock);
    close_all(p->set);
    pthread_mutex_unlock(&lock);
    Py_RETURN_NONE;
}
static PyObject *places_taken(Places *p, PyObject *arg) {
    int k = number(p, arg);
    if (k < 0) return NULL;
    pthread_mutex_lock(&lock);
    int taken = p->set->places[k].taken;
    pthread_mutex_unlock(&lock);
    return PyBool_FromLong(taken);
}
static PyMethodDef places_methods[] = {
    {"open", (PyCFunction)places_open, METH_O,
     "open(k): the next array of its size that this thread makes may take it"},
    {"close", (PyCFunction)places_close, METH_O, "close(k): no array takes it from here on"},
    {"close_all", (PyCFunction)places_close_all, METH_NOARGS, "close_all()"},
    {"taken", (PyCFunction)places_taken, METH_O, "taken(k) -> whether an array that lives has taken it"},
    {NULL},
};
static PyTypeObject Places_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "flambeau._C.Places",
    .tp_doc = "Places(owner, ((address, bytes), ...)): memory of owner's that arrays may be made in",
    .tp_basicsize = sizeof(Places),
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = places_new,
    .tp_dealloc = (destructor)places_dealloc,
    .tp_methods = places_methods,
};
static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

int flb_init_places(PyObject *module) {
    pthread_atfork(before_fork, after_fork, after_fork);
    return PyType_Ready(&Places_Type) < 0 ? -1
                                          : PyModule_AddObjectRef(module, "Places", (PyObject *)&Places_Type);
}
