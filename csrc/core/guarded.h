/* Memory between pages that can't be touched, for tests. */
#pragma once
#include <stddef.h>

extern int flb_guarded;
void *flb_guarded_malloc(size_t size, size_t align, int zero);
size_t flb_guarded_size(void *data);
void flb_guarded_free(void *data);
