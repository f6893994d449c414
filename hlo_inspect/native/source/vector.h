/* Arrays that grow. Their sizes are bounded by the text, and checked for overflow all the same. */
#ifndef HLO_VECTOR_H
#define HLO_VECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    void *items;
    size_t count; /* items in use */
    size_t room;  /* items for which there is memory */
} Vector;

/* Make room for `more` items of `width` bytes each. Return false without memory; the vector is then as before. */
bool vector_reserve(Vector *vector, size_t more, size_t width);

void vector_free(Vector *vector);

static inline bool push_number(Vector *vector, int32_t number) {
    if (vector->count == vector->room && !vector_reserve(vector, 1, sizeof number)) return false;
    ((int32_t *)vector->items)[vector->count++] = number;
    return true;
}

static inline bool push_byte(Vector *vector, uint8_t byte) {
    if (vector->count == vector->room && !vector_reserve(vector, 1, sizeof byte)) return false;
    ((uint8_t *)vector->items)[vector->count++] = byte;
    return true;
}

/* Append bytes to a vector of bytes. */
bool push_bytes(Vector *vector, const uint8_t *bytes, size_t count);

/* Return the number at an index, or -1 behind the end. */
static inline int32_t number_at(const Vector *vector, size_t index) {
    return index < vector->count ? ((const int32_t *)vector->items)[index] : -1;
}

static inline void vector_cut(Vector *vector, size_t count) {
    if (count < vector->count) vector->count = count;
}

#endif
