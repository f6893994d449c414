/* Numbers for distinct byte strings: equal strings have one number, in the order of their first occurrence.

   A string is an extent of a buffer that the caller passes to each call: the text, or a vector of bytes. The buffer may
   move and grow between calls, as long as its bytes stay. */
#ifndef HLO_INTERNER_H
#define HLO_INTERNER_H

#include "text.h"
#include "vector.h"

typedef struct {
    uint32_t hash;
    int32_t number; /* NONE if the slot is free */
} Slot;

typedef struct {
    Vector starts;  /* of each string, its extent and its tag */
    Vector lengths;
    Vector tags;
    Slot *slots;
    size_t mask; /* number of slots, a power of two, minus 1 */
    uint64_t seed;
} Interner;

/* Return the hash of bytes. The seed makes it impossible to write a text whose hashes meet. */
uint64_t hash_of(const uint8_t *bytes, size_t count, uint64_t seed);

bool interner_begin(Interner *interner, uint64_t seed);

void interner_end(Interner *interner);

/* Return the number of a string, a new one if `tag` or bytes are new. NONE without memory, or outside the buffer. */
int32_t intern(Interner *interner, Text buffer, Span string, int32_t tag);

static inline int32_t interned_count(const Interner *interner) { return (int32_t)interner->starts.count; }

#endif
