/* Numbers for distinct byte strings. */
#include "interner.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 256 };

/* Multiply to 128 bits and fold the halves. */
static uint64_t mixed(uint64_t left, uint64_t right) {
#ifdef __SIZEOF_INT128__
    __extension__ typedef unsigned __int128 Wide;
    Wide product = (Wide)left * right;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t low = (left & UINT32_MAX) * (right & UINT32_MAX), high = (left >> 32) * (right >> 32);
    uint64_t one = (left >> 32) * (right & UINT32_MAX), other = (left & UINT32_MAX) * (right >> 32);
    uint64_t middle = (low >> 32) + (one & UINT32_MAX) + (other & UINT32_MAX);
    high += (one >> 32) + (other >> 32) + (middle >> 32);
    return high ^ ((middle << 32) | (low & UINT32_MAX));
#endif
}

uint64_t hash_of(const uint8_t *bytes, size_t count, uint64_t seed) {
    uint64_t hash = seed ^ (UINT64_C(0x9E3779B97F4A7C15) * (count + 1)), word = 0;
    for (; count >= sizeof word; bytes += sizeof word, count -= sizeof word) {
        memcpy(&word, bytes, sizeof word);
        hash = mixed(hash ^ word, seed | UINT64_C(0xE7037ED1A0B428DB));
    }
    word = 0;
    if (count > 0) memcpy(&word, bytes, count);
    return mixed(hash ^ word, UINT64_C(0x8EBC6AF09C88C6E3));
}

static Slot *free_slots(size_t count) {
    if (count > SIZE_MAX / sizeof(Slot)) return NULL;
    Slot *slots = malloc(count * sizeof(Slot));
    if (slots != NULL) memset(slots, 0xFF, count * sizeof(Slot)); /* NONE in each */
    return slots;
}

bool interner_begin(Interner *interner, uint64_t seed) {
    memset(interner, 0, sizeof *interner);
    interner->seed = seed;
    interner->mask = FIRST_SLOTS - 1;
    interner->slots = free_slots(FIRST_SLOTS);
    return interner->slots != NULL;
}

void interner_end(Interner *interner) {
    vector_free(&interner->starts);
    vector_free(&interner->lengths);
    vector_free(&interner->tags);
    free(interner->slots);
    interner->slots = NULL;
}

/* Use four times the slots, before half of them are taken. */
static bool grow(Interner *interner) {
    size_t count = interner->mask + 1;
    if (count > SIZE_MAX / 4) return false;
    Slot *slots = free_slots(4 * count);
    if (slots == NULL) return false;
    size_t mask = 4 * count - 1;
    for (size_t index = 0; index < count; index++) {
        Slot slot = interner->slots[index];
        if (slot.number == NONE) continue;
        size_t at = slot.hash & mask;
        while (slots[at].number != NONE) at = (at + 1) & mask;
        slots[at] = slot;
    }
    free(interner->slots);
    interner->slots = slots;
    interner->mask = mask;
    return true;
}

static bool is_string(const Interner *interner, int32_t number, Text buffer, Span string, int32_t tag) {
    size_t index = (size_t)number;
    Span known = {number_at(&interner->starts, index), number_at(&interner->lengths, index)};
    return number_at(&interner->tags, index) == tag && same_bytes(buffer, known, string);
}

int32_t intern(Interner *interner, Text buffer, Span string, int32_t tag) {
    const uint8_t *bytes = bytes_of(buffer, string);
    if (bytes == NULL) return NONE;
    uint32_t hash = (uint32_t)hash_of(bytes, (size_t)string.length, interner->seed + (uint32_t)tag);
    size_t at = hash & interner->mask;
    for (; interner->slots[at].number != NONE; at = (at + 1) & interner->mask) {
        Slot slot = interner->slots[at];
        if (slot.hash == hash && is_string(interner, slot.number, buffer, string, tag)) return slot.number;
    }
    int32_t number = interned_count(interner);
    bool is_stored = push_number(&interner->starts, string.start) && push_number(&interner->lengths, string.length) &&
                     push_number(&interner->tags, tag);
    if (!is_stored) return NONE;
    interner->slots[at] = (Slot){hash, number};
    if (interner->starts.count > interner->mask / 2 && !grow(interner)) return NONE;
    return number;
}
