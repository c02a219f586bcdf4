/* The memory of a launch's slots. Some lie in the arena, which the call holds from its beginning to its end;
 * others have memory of their own from their first step to their last. */
#include "runtime/launch.h"

int flb_place_slots(Call *c, int stage) {
    Graph *g = c->g;
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        Place *p = &c->places[i];
        if (s->stage != stage) continue;
        if (s->kind == SLOT_ARENA) p->ptr = c->arena + c->f[s->at];
        else if (s->kind == SLOT_CONSTANT)
            p->ptr = PyArray_DATA((PyArrayObject *)s->constant), p->owner = Py_NewRef(s->constant);
        else if (s->kind == SLOT_OUTPUT && !(c->consumes && !stage) &&
                 !(p->owner = flb_new_output(s, c->f, &p->ptr)))
            return -1;
    }
    return 0;
}

int flb_turn_over(Call *c, int begin, int end) {
    Graph *g = c->g;
    for (int i = 0; i < g->nslots; i++)
        if (g->lives[i].last < begin && !g->lives[i].kept) Py_CLEAR(c->places[i].owner);
    for (int i = 0; i < g->nslots; i++) {
        const Slot *s = &g->slots[i];
        int first = g->lives[i].first;
        if (s->kind == SLOT_OUTPUT && !s->stage && first >= begin && first < end &&
            !(c->places[i].owner = flb_new_output(s, c->f, &c->places[i].ptr)))
            return -1;
    }
    return 0;
}

int flb_take_slots(Call *c, int end) {
    const Graph *g = c->g;
    for (; c->taken < g->nowned && g->takes[c->taken].step < end; c->taken++) {
        int slot = g->takes[c->taken].slot;
        if (!(c->places[slot].ptr = flb_api->scratch(c->f[g->slots[slot].at])))
            return c->starved = 1, c->status[0] = -1;
    }
    return 0;
}

void flb_give_slots(Call *c, int end) {
    const Graph *g = c->g;
    for (; c->given < g->nowned && g->gives[c->given].step < end; c->given++) {
        Place *p = &c->places[g->gives[c->given].slot];
        flb_api->free(p->ptr);
        p->ptr = NULL;
    }
}
