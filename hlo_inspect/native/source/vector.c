/* Arrays that grow. */
#include "vector.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_ROOM = 64 };

bool vector_reserve(Vector *vector, size_t more, size_t width) {
    if (more <= vector->room - vector->count) return true;
    if (more > SIZE_MAX / 2 - vector->count) return false;
    size_t room = vector->count + more;
    /* Half as much again: growth copies each item a few times at most, and little memory is idle. */
    if (room < vector->room + vector->room / 2) room = vector->room + vector->room / 2;
    if (room < LEAST_ROOM) room = LEAST_ROOM;
    if (room > SIZE_MAX / width) return false;
    void *items = realloc(vector->items, room * width);
    if (items == NULL) return false;
    vector->items = items;
    vector->room = room;
    return true;
}

void vector_free(Vector *vector) {
    free(vector->items);
    vector->items = NULL;
    vector->count = vector->room = 0;
}

bool push_bytes(Vector *vector, const uint8_t *bytes, size_t count) {
    if (!vector_reserve(vector, count, 1)) return false;
    if (count > 0) memcpy((uint8_t *)vector->items + vector->count, bytes, count);
    vector->count += count;
    return true;
}
