/* Memory of another owner that large results may take (places.c). */
#pragma once
#include <stddef.h>

extern int flb_places, flb_open_places;
void *flb_place_take(size_t size);   /* NULL: there is none of this size */
size_t flb_place_size(void *data);   /* 0: it is none */
size_t flb_place_return(void *data); /* its size; 0: it is none */
