/* The nodes of a run: found by a table, in the order of their creation reversed by a heap. */
#include "autograd/engine.h"

static int grow(Run *r) {
    Py_ssize_t capacity = r->capacity ? r->capacity * 2 : 32;
    size_t size = (size_t)capacity * 2;
    Task *tasks = PyMem_Realloc(r->tasks, capacity * sizeof(Task));
    if (!tasks) return PyErr_NoMemory(), -1;
    r->tasks = tasks;
    int32_t *table = PyMem_Calloc(size, sizeof(int32_t));
    if (!table) return PyErr_NoMemory(), -1;
    PyMem_Free(r->table);
    r->table = table;
    r->mask = size - 1;
    r->capacity = capacity;
    for (Py_ssize_t i = 0; i < r->n; i++) {
        size_t h = hash_of(tasks[i].node) & r->mask;
        while (table[h]) h = (h + 1) & r->mask;
        table[h] = (int32_t)i + 1;
    }
    return 0;
}
Py_ssize_t flb_task_of(Run *r, FlbNode *node, int *fresh) {
    Py_ssize_t i = r->n ? flb_find_task(r, node) : -1;
    *fresh = i < 0;
    if (i >= 0) return i;
    if (r->n == r->capacity && grow(r) < 0) return -1;
    i = r->n++;
    r->tasks[i] = (Task){.node = (FlbNode *)Py_NewRef(node), .capture = -1};
    size_t h = hash_of(node) & r->mask;
    while (r->table[h]) h = (h + 1) & r->mask;
    r->table[h] = (int32_t)i + 1;
    return i;
}
void flb_run_free(Run *r) {
    for (Py_ssize_t i = 0; i < r->n; i++) {
        Task *t = &r->tasks[i];
        if (t->cts && t->cts != &t->one)
            for (int k = 0; k < t->node->n_outputs; k++) Py_XDECREF(t->cts[k]);
        if (t->cts && t->cts != &t->one) PyMem_Free(t->cts);
        Py_XDECREF(t->one);
    }
    for (Py_ssize_t i = 0; i < r->n; i++) Py_DECREF(r->tasks[i].node);
    for (int i = 0; r->captured && i < r->n_wanted; i++) Py_XDECREF(r->captured[i]);
    PyMem_Free(r->tasks);
    PyMem_Free(r->table);
    PyMem_Free(r->heap);
    PyMem_Free(r->next_capture);
    PyMem_Free(r->wanted_nr);
    PyMem_Free(r->captured);
}

static inline int before(Run *r, int32_t a, int32_t b) {
    return r->tasks[a].node->sequence_nr > r->tasks[b].node->sequence_nr;
}
void flb_heap_push(Run *r, Py_ssize_t task) {
    Py_ssize_t i = r->n_heap++;
    while (i && before(r, (int32_t)task, r->heap[(i - 1) / 2]))
        r->heap[i] = r->heap[(i - 1) / 2], i = (i - 1) / 2;
    r->heap[i] = (int32_t)task;
}
Py_ssize_t flb_heap_pop(Run *r) {
    int32_t top = r->heap[0], last = r->heap[--r->n_heap];
    Py_ssize_t i = 0;
    for (;;) {
        Py_ssize_t c = 2 * i + 1;
        if (c >= r->n_heap) break;
        if (c + 1 < r->n_heap && before(r, r->heap[c + 1], r->heap[c])) c++;
        if (!before(r, r->heap[c], last)) break;
        r->heap[i] = r->heap[c];
        i = c;
    }
    r->heap[i] = last;
    return top;
}
int flb_explore(Run *r) {
    for (Py_ssize_t i = 0; i < r->n; i++) { /* tasks are the queue */
        FlbNode *node = r->tasks[i].node;
        for (int e = 0; e < node->n_edges; e++) {
            if (!node->edges[e].node) continue;
            int fresh;
            Py_ssize_t k = flb_task_of(r, node->edges[e].node, &fresh);
            if (k < 0) return -1;
            if (r->n >= INT32_MAX)
                return PyErr_SetString(PyExc_OverflowError, "a graph of more than 2**31 nodes"), -1;
            r->tasks[k].deps++;
        }
    }
    return 0;
}
static __thread Run *sorting;
static int by_age(const void *a, const void *b) {
    uint64_t x = sorting->tasks[*(const int32_t *)a].node->sequence_nr,
             y = sorting->tasks[*(const int32_t *)b].node->sequence_nr;
    return x < y ? -1 : x > y;
}
/* Only nodes from which a wanted edge can be reached run: a node is younger than those its edges lead to
 * (leaves apart). */
int flb_mark_needed(Run *r) {
    int32_t *order = PyMem_Malloc(sizeof(int32_t) * (r->n + 1));
    if (!order) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < r->n; i++) order[i] = (int32_t)i;
    Run *outer = sorting;
    sorting = r;
    qsort(order, r->n, sizeof(int32_t), by_age);
    sorting = outer;
    for (Py_ssize_t i = 0; i < r->n; i++) {
        Task *t = &r->tasks[order[i]];
        if (t->capture >= 0 && r->accumulate) t->needed = 1;
        for (int e = 0; !t->needed && e < t->node->n_edges; e++) {
            if (!t->node->edges[e].node) continue;
            Task *to = &r->tasks[flb_find_task(r, t->node->edges[e].node)];
            t->needed = to->needed || to->capture >= 0;
        }
    }
    PyMem_Free(order);
    return 0;
}
