/* FLAMBEAU_ALLOCATOR=guarded: each block of memory in pages of its own between two that can't be touched, for
 * tests. It ends right before the second (guarded_below: begins right behind the first), what is left of its
 * pages is filled with a pattern that is looked at when it is freed, and new memory is all ones, which is no
 * number. So a kernel that reads or writes outside of an operand, a result, an arena or a workspace, or after
 * they were freed, ends the process. */
#define _GNU_SOURCE
#include "core/guarded.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define PATTERN 0xA5
#define HEADER ((size_t)64)

typedef struct {
    char *mapping;
    size_t total, size;
} Header;

int flb_guarded; /* 0: off, 1: blocks end at a page, 2: they begin at one */

__attribute__((constructor)) static void choose(void) {
    const char *choice = getenv("FLAMBEAU_ALLOCATOR");
    if (choice) flb_guarded = !strcmp(choice, "guarded") ? 1 : !strcmp(choice, "guarded_below") ? 2 : 0;
}

/* Layout: a page that can't be touched, `room` bytes, another one; when blocks begin at a page the header has
 * a page before all that. */
static Header *header_of(void *data) {
    return (Header *)((char *)data - (flb_guarded == 1 ? HEADER : 2 * PAGE));
}

void *flb_guarded_malloc(size_t size, size_t align, int zero) {
    if (size > (size_t)1 << 46) return NULL;
    int below = flb_guarded == 2;
    size_t rounded = (size + align - 1) / align * align,
           room = (rounded + (below ? 1 : HEADER) + PAGE - 1) / PAGE * PAGE;
    size_t before = below ? 2 * PAGE : PAGE, total = before + room + PAGE;
    char *mapping = mmap(NULL, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) return NULL;
    if (mprotect(mapping + before, room, PROT_READ | PROT_WRITE) ||
        (below && mprotect(mapping, PAGE, PROT_READ | PROT_WRITE))) {
        munmap(mapping, total);
        return NULL;
    }
    char *data = mapping + before + (below ? 0 : room - rounded);
    *header_of(data) = (Header){mapping, total, size};
    if (!zero) memset(data, 0xFF, size);
    memset(data + size, PATTERN, (size_t)(mapping + before + room - (data + size)));
    return data;
}

size_t flb_guarded_size(void *data) { return header_of(data)->size; }

void flb_guarded_free(void *data) {
    Header h = *header_of(data);
    for (unsigned char *p = (unsigned char *)data + h.size,
                       *end = (unsigned char *)h.mapping + h.total - PAGE;
         p < end; p++)
        if (*p != PATTERN) {
            fprintf(stderr, "flambeau: memory was written %zu bytes behind a block of %zu bytes\n",
                    (size_t)(p - (unsigned char *)data) - h.size, h.size);
            abort();
        }
    munmap(h.mapping, h.total);
}
